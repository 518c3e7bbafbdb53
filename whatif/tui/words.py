"""How numbers and grades are put in words and colours, the same in every widget."""

from __future__ import annotations

import math
from typing import Final

from whatif.units import SECOND, format_quantity

MUTED: Final = "$foreground-muted"
_GRADES: Final = {"measured": "$text-success", "datasheet": "$text-primary", "assumed": "$text-warning"}


def grade_style(grade: str) -> str:
    """The colour of a grade: measured is good, assumed is a warning."""
    return _GRADES.get(grade, MUTED)


def duration(seconds: float) -> str:
    """A time as a reader expects it, or a dash for a point that cannot exist."""
    return format_quantity(seconds, SECOND, digits=5) if math.isfinite(seconds) else "–"


def percent(fraction: float) -> str:
    """A share with one decimal, or a dash."""
    return f"{fraction:.1%}" if math.isfinite(fraction) else "–"
