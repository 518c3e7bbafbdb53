"""Measured values of a platform, with the text that says where they come from."""

from __future__ import annotations

import numpy as np

from whatif.files.platform_file import PlatformChange, change_of
from whatif.fitting.fit_result import Fit
from whatif.measuring.whole_machine import Measurements
from whatif.units import Dimension, counted


def source_of(found: Measurements, what: str, count: int, scatter: float = np.nan) -> str:
    """Text of `[sources]` of something measured."""
    spread = f", scatter {scatter:.1%}" if np.isfinite(scatter) else ""
    return f"measured on {found.machine.host}, {found.date}: {what}, {counted(count, 'repetition')}{spread}"


def value_change(
    found: Measurements, path: str, dimension: Dimension, value: float, error: float, said: tuple[str, int, float]
) -> PlatformChange:
    """One measured value with its standard error, NaN where that is not known.

    `said` is what was measured, the number of repetitions, and their scatter.
    """
    what, count, scatter = said
    table, _, key = path.rpartition(".")
    fit = Fit(table, {key: dimension}, np.array([value]), np.array([[error**2]]), {}, count, finite(scatter))
    return change_of([fit], source_of(found, what, count, scatter))


def finite(number: float) -> float:
    """The number, or 0 for one that is not known."""
    return number if np.isfinite(number) else 0.0
