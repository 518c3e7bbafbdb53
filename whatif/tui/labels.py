"""Words and colours of numbers and grades, the same in every widget."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Final

from whatif.errors import WhatifError
from whatif.plotting.description import shorten
from whatif.units import SECOND, Dimension, format_quantity, parse_quantity

_TOAST_WIDTH, _TOAST_MARGIN = 54, 4
"""Most cells of a line, and those of the frame; Textual gives a message at most half of the screen."""
_SMALL, _EQUAL, _FACTOR = 0.0005, 1e-9, 10.0
"""Relative difference below which one decimal shows nothing, and below which only rounding differs; the factor from
which a change is stated as one."""
StyledText = tuple[str, str]
"""A text and its style, as `Content.assemble` takes them."""
MUTED: Final = "$foreground-muted"
_GRADES: Final = {"measured": "$text-success", "datasheet": "$text-primary", "assumed": "$text-warning"}


# What leads a message: the place in a file, or the edit, and the tables that a parameter stands in.
_PLACE: Final = re.compile(r"^(?:--set [\w.]+=.*?: |\S.*?:\d+:\d+: )")
_TABLES: Final = re.compile(
    r"^(?:application|platform|parameters|calibration|bids|limits|mix|site|options|rates)\.(?:[\w-]+\.)*(?=[\w-]+: )"
)


def brief(message: str) -> str:
    """A message for narrow screens, in one line: without places in files, of a path the last word."""
    return "; ".join(_TABLES.sub("", _PLACE.sub("", line)) for line in message.splitlines())


def reason_of(problem: WhatifError) -> str:
    """Message of an error without the words `infeasible: `, where the sentence around it has them."""
    return str(problem).removeprefix("infeasible: ")


def grade_style(grade: str) -> str:
    """The colour of a grade: measured is good, assumed is a warning."""
    return _GRADES.get(grade, MUTED)


def duration(seconds: float, digits: int = 5) -> str:
    """Time with `digits` significant digits, or a dash for an infeasible point."""
    return format_quantity(seconds, SECOND, digits) if math.isfinite(seconds) else "–"


def percent(fraction: float) -> str:
    """A share with one decimal, or a dash."""
    return f"{fraction:.1%}" if math.isfinite(fraction) else "–"


def change_text(now: float, before: float) -> str:
    """Relative difference from the baseline: `+3.2%`, with one digit below 0.05 %, `±0%` for none, `x76.9` from ten
    times the baseline; empty for infeasible points and a baseline of 0."""
    if not (before > 0 and math.isfinite(now)):
        return ""
    change = now / before - 1
    if now / before >= _FACTOR:
        return f"x{now / before:.3g}"
    if abs(change) < _EQUAL:
        return "±0%"
    return f"{change:+.1%}" if abs(change) >= _SMALL else f"{100 * change:+.1g}%"


def with_error(value: float, error: float, dimension: Dimension) -> str:
    """A value with its standard error in the same unit, to two digits of the error: `1.240 ± 0.012 us`."""
    number, _, unit = format_quantity(value, dimension).partition(" ")
    if not math.isfinite(error) or error <= 0:
        return f"{number} {unit}"
    size = parse_quantity(f"1 {unit}").value
    digits = min(max(1 - math.floor(math.log10(error / size)), 0), 6)
    return f"{value / size:.{digits}f} ± {error / size:.{digits}f} {unit}"


def warning_lines(warnings: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Warnings with their colour, a line each; after `most` of them the number of the others."""
    more = [f"and {len(warnings) - most} more"] if len(warnings) > most else []
    return [(f"\n▲ {warning}", "$text-warning") for warning in (*warnings[:most], *more)]


def toast(text: str, screen_width: int) -> str:
    """A text that may cover a corner of the screen, no more: three lines, the last one with `..` where more follow."""
    width = max(min(screen_width // 2 - _TOAST_MARGIN, _TOAST_WIDTH), 1)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]
    return "\n".join(lines[:3] if len(lines) <= 3 else [*lines[:2], shorten(f"{lines[2]} ..", width)])
