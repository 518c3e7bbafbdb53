"""Crosshair of a plot: its position, and the values there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import axis_space
from whatif.plotting.description import AxisDescription, Description, HeatMap, PlotDescription, PlotLine
from whatif.units import format_quantity

NOTHING = "–"


class Reading(NamedTuple):
    """A value read from a plot: its label, and the value with its unit."""

    label: str
    value: str


def readout(description: Description, x: float, y: float = np.nan) -> tuple[Reading, ...]:
    """Values nearest to `x`, and on a heat map to `y`: the position first, then every curve, or the cell.

    With a baseline, the first curve also shows its difference from it. The text of a gap is `–`.
    """
    if isinstance(description, HeatMap):
        return _read_heat(description, x, y)
    x = move_crosshair(description, (x, y))[0]
    place = Reading(description.x.name, value_text(x, description.x))
    readings = [
        Reading(line.label, value_text(_at(line, x, description.x), description.y))
        for line in description.lines
        if line.label
    ]
    change = _change(description, x)
    if change and readings:
        readings[0] = readings[0]._replace(value=f"{readings[0].value} {change}")
    return (place, *readings)


def _read_heat(description: HeatMap, x: float, y: float) -> tuple[Reading, ...]:
    at_x, at_y = nearest(description.xs, x, description.x), nearest(description.ys, y, description.y)
    if at_x is None or at_y is None:
        values = (np.nan, np.nan, np.nan)
    else:
        values = (float(description.xs[at_x]), float(description.ys[at_y]), float(description.values[at_x, at_y]))
    axes = (description.x, description.y, description.z)
    return tuple(Reading(axis.name, value_text(value, axis)) for axis, value in zip(axes, values, strict=True))


def value_text(value: float, axis: AxisDescription) -> str:
    """Text of a value of an axis: with its unit, or the name of a category."""
    if not np.isfinite(value):
        return NOTHING
    if axis.ticks:
        return axis.ticks[min(max(round(value), 0), len(axis.ticks) - 1)]
    return format_quantity(float(value), axis.dimension)


def nearest(values: FloatArray, wanted: float, axis: AxisDescription) -> int | None:
    """Index of the value nearest to another on the drawn axis; None if no value can be drawn."""
    distances = np.abs(axis_space(values, axis) - axis_space(np.array(wanted), axis))
    return int(np.nanargmin(distances)) if np.isfinite(distances).any() else None


def _at(line: PlotLine, x: float, axis: AxisDescription) -> float:
    at = nearest(line.x, x, axis)
    return np.nan if at is None else float(line.y[at])


def _change(description: PlotDescription, x: float) -> str:
    """Relative difference of the first curve from the baseline, as text; empty without one."""
    baseline = next((line for line in description.lines if line.style == "baseline"), None)
    if baseline is None or baseline is description.lines[0]:
        return ""
    now, before = (_at(line, x, description.x) for line in (description.lines[0], baseline))
    return f"({now / before - 1:+.1%})" if before > 0 and np.isfinite(now / before) else ""


def present_point(description: Description) -> tuple[float, float]:
    """Present point of the scenario; NaN where it is not known."""
    if isinstance(description, HeatMap):
        return description.here or (np.nan, np.nan)
    return (description.markers[0].x if description.markers else np.nan), np.nan


def move_crosshair(
    description: Description, cross: tuple[float, float], steps: int = 0, steps_up: int = 0
) -> tuple[float, float]:
    """Position of the crosshair moved by points along x, and on a heat map along y, within the data."""
    x = _stepped(_stops(description), cross[0], steps, description.x)
    y = _stepped(description.ys, cross[1], steps_up, description.y) if isinstance(description, HeatMap) else np.nan
    return x, y


def _stops(description: Description) -> FloatArray:
    """Values of x with a point on any curve."""
    if isinstance(description, HeatMap):
        return description.xs
    first, *others = (line.x for line in description.lines) if description.lines else (np.array([]),)
    return np.concatenate([first, *(x for x in others if not np.array_equal(x, first))])


def _stepped(values: FloatArray, value: float, steps: int, axis: AxisDescription) -> float:
    stops = np.unique(values[np.isfinite(axis_space(values, axis))])
    if not stops.size:
        return np.nan
    at = nearest(stops, value, axis) or 0
    return float(stops[min(max(at + steps, 0), stops.size - 1)])
