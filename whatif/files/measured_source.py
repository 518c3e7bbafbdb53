"""Text that says where a measured value comes from."""

from __future__ import annotations

import numpy as np

from whatif.measuring.study import Measurements
from whatif.units import counted


def source_of(found: Measurements, what: str, count: int, scatter: float = np.nan) -> str:
    """Text of `[sources]` of something measured."""
    spread = f", scatter {scatter:.1%}" if np.isfinite(scatter) else ""
    return f"measured on {found.machine.host}, {found.date}: {what}, {counted(count, 'repetition')}{spread}"
