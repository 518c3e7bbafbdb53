"""Overrides: values by dotted path that replace those of the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from whatif.errors import UsageError
from whatif.schema.toml import MAXIMUM_DEPTH


def checked_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as plain Python values. Raise `UsageError` for a path that no value can have, and for `platform`."""
    for path in overrides:
        if path == "platform":
            raise UsageError("--set platform=..: use --platform NAME")
        if path.count(".") > MAXIMUM_DEPTH:
            raise UsageError(f"--set {path[:60]}..: no value lies more than {MAXIMUM_DEPTH} tables deep")
    return {path: value.item() if isinstance(value, np.generic) else value for path, value in overrides.items()}
