"""Results as plot descriptions: what is drawn for a sweep, the same on the command line and in the explorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis
from whatif.engine.result import Result
from whatif.engine.term import CATEGORIES
from whatif.export.plot import AxisDescription, BarSegment, Line, Marker, PlotDescription, Scale, StackedBar
from whatif.models.quantities import FloatArray
from whatif.units import ONE, SECOND, format_quantity

Y_COLUMN: Final = "iteration_time"
MAXIMUM_CURVES: Final = 6


def figure(
    result: Result, y: str = Y_COLUMN, here: float | None = None, before: Result | None = None
) -> PlotDescription:
    """A sweep as curves over its first axis: one of `y` for each place of the second axis, or, with a single
    axis, `y` and what it is made of. `here` marks the present value of the swept leaf, `before` is the
    same sweep to compare `y` with."""
    axis = result.grid.axes[0]
    path = next(iter(axis.leaves))
    x = _positions(axis)
    markers = () if here is None else (Marker(here, "now"),)
    single = len(result.grid.axes) == 1
    lines = _categories(result, y, x) if single else _family(result, y, x)
    if single and before is not None and has_column(before, y):
        lines = (*lines, Line("before", x, before.grid.spread(array_of(before, y)).ravel(), "baseline"))
    scale = Scale.LOG if _spans_decades([line.y for line in lines]) else Scale.LINEAR
    return PlotDescription(y, _x_axis(result, axis, path), AxisDescription("time", SECOND, scale), lines, markers)


def _positions(axis: Axis) -> FloatArray:
    values = next(iter(axis.leaves.values()))
    return np.arange(len(values), dtype=np.float64) if values.dtype == object else values.astype(np.float64)


def _x_axis(result: Result, axis: Axis, path: str) -> AxisDescription:
    values = axis.leaves[path]
    if values.dtype == object:
        return AxisDescription(path, ONE, Scale.LINEAR, tuple(str(value) for value in values))
    scale = Scale.LOG if _spaced_evenly_in_log(values) else Scale.LINEAR
    return AxisDescription(path, result.program.leaves[path].dimension, scale)


def _spaced_evenly_in_log(values: NDArray[Any]) -> bool:
    """Whether an axis was made by factors rather than by steps."""
    if len(values) < 3 or np.any(values <= 0):
        return False
    steps, factors = np.diff(values), np.diff(np.log(values))
    return float(np.ptp(factors)) * abs(float(steps.mean())) < float(np.ptp(steps)) * abs(float(factors.mean()))


def _spans_decades(curves: Sequence[FloatArray]) -> bool:
    """Whether the curves differ by more than two decades where they are drawn."""
    drawn = np.concatenate([curve[np.isfinite(curve) & (curve > 0)] for curve in curves] or [np.array([])])
    return bool(drawn.size) and float(drawn.max()) > 100 * float(drawn.min())


def _categories(result: Result, y: str, x: FloatArray) -> tuple[Line, ...]:
    """`y`, and beside the time of an iteration the categories it is made of."""
    parts = [f"{category}_time" for category in CATEGORIES] if y == Y_COLUMN else []
    curves = ((name, result.grid.spread(array_of(result, name)).ravel()) for name in (y, *parts))
    return tuple(Line(_label(name), x, curve) for name, curve in curves if name == y or np.nansum(curve) > 0)


def _label(name: str) -> str:
    return name.removesuffix("_time").removeprefix("terms.")


def _family(result: Result, y: str, x: FloatArray) -> tuple[Line, ...]:
    """One curve for each place of the second axis, a few of many; further axes stay at their first place."""
    second = result.grid.axes[1]
    values = result.grid.spread(array_of(result, y))
    values = values.reshape(*values.shape[:2], -1)[:, :, 0]
    chosen = np.unique(np.linspace(0, len(second) - 1, min(len(second), MAXIMUM_CURVES)).astype(int))
    return tuple(Line(_place(result, second, int(index)), x, values[:, index]) for index in chosen)


def _place(result: Result, axis: Axis, index: int) -> str:
    path, values = next(iter(axis.leaves.items()))
    if values.dtype == object:
        return str(values[index])
    return f"{path.rpartition('.')[2]} {format_quantity(float(values[index]), result.program.leaves[path].dimension)}"


def array_of(result: Result, name: str) -> FloatArray:
    """A result column, or the time of a phase as `terms.NAME`."""
    return result.terms[name.removeprefix("terms.")] if name.startswith("terms.") else result.columns[name]


def has_column(result: Result, name: str) -> bool:
    """Whether a result has such a column or phase."""
    return name in result.columns or (name.startswith("terms.") and name.removeprefix("terms.") in result.terms)


def columns_to_plot(result: Result) -> tuple[str, ...]:
    """The columns and phases that take any time, the most telling first."""
    names = [
        Y_COLUMN,
        *(name for name in result.columns if name != Y_COLUMN),
        *(f"terms.{name}" for name in result.terms),
    ]
    return tuple(name for name in names if name == Y_COLUMN or np.nansum(array_of(result, name)) > 0)


@dataclass(frozen=True, slots=True)
class Headline:
    """What one point comes to, in a few numbers; NaN where the point cannot exist."""

    iteration_time: float
    total_time: float
    communication_time: float
    communication_fraction: float
    bottleneck: str
    bottleneck_time: float
    bottleneck_fraction: float


def headline(point: Result) -> Headline:
    """The times of one point, the share of communication, and the phase that takes longest."""
    iteration, total, communication = (
        float(np.ravel(point.columns[name])[0]) for name in (Y_COLUMN, "total_time", "communication_time")
    )
    phases = {name: float(np.ravel(array)[0]) for name, array in point.terms.items()}
    worst = max(phases, key=lambda name: phases[name], default="")
    longest = phases.get(worst, np.nan)
    whole = iteration if iteration > 0 else np.nan
    return Headline(iteration, total, communication, communication / whole, worst, longest, longest / whole)


def breakdown(point: Result) -> StackedBar:
    """One iteration at one point, by phase in order."""
    return StackedBar(tuple(BarSegment(name, float(np.ravel(array)[0])) for name, array in point.terms.items()))


def terminal_plot(result: Result) -> str:
    """The figure of a sweep as text for a terminal of the present size."""
    import shutil

    from whatif.export.plot_plotext import render

    size = shutil.get_terminal_size((100, 30))
    return render(figure(result), max(size.columns, 40), min(max(size.lines - 4, 12), 40))
