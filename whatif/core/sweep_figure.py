"""Plot descriptions of sweeps, shared by the command line and the explorer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis, first_number
from whatif.core.result import Result, array_of, has_column
from whatif.models.quantities import FloatArray
from whatif.plotting.crosshair import value_text
from whatif.plotting.description import (
    AxisDescription,
    BarSegment,
    Description,
    HeatMap,
    Marker,
    PlotDescription,
    PlotLine,
    PlotStack,
    Scale,
    StackedBar,
)
from whatif.table import Column, Table
from whatif.units import ONE, SECOND, format_quantity
from whatif.vocabulary import CATEGORIES

Y_COLUMN: Final = "iteration_time"
MAXIMUM_CURVES: Final = 6


def figure(
    result: Result,
    y: str = Y_COLUMN,
    here: float | None = None,
    before: Result | None = None,
    x_scale: Scale | None = None,
    y_scale: Scale | None = None,
) -> PlotDescription:
    """A sweep as curves over its first axis: one of `y` for each place of the second axis, or, with a single
    axis, `y` and its parts.

    `here` marks the present value of the swept parameter, `before` is the same sweep to compare `y` with. Without a
    scale, an axis has the one that suits its values, and the parts of a result that varies by little are left out
    where they would make it look flat.
    """
    axis = result.grid.axes[0]
    x = axis_positions(axis)
    markers = () if here is None else (Marker(here, "now"),)
    single = len(result.grid.axes) == 1
    lines = _categories(result, y, x) if single else _family(result, y, x)
    if single and before is not None and has_column(before, y):
        lines = (*lines, PlotLine("before", x, before.grid.spread(array_of(before, y)).ravel(), "baseline"))
    dimension = result.dimensions[y]
    label = "time" if dimension == SECOND else y
    close_up = single and y_scale is None
    y_axis = AxisDescription(label, dimension, y_scale or suiting([line.y for line in lines]), close_up=close_up)
    return PlotDescription(y, axis_description(result, axis, x_scale), y_axis, lines, markers)


def heat_map(
    result: Result,
    y: str = Y_COLUMN,
    here: tuple[float | None, float | None] | None = None,
    x_scale: Scale | None = None,
    y_scale: Scale | None = None,
) -> HeatMap:
    """A sweep of two parameters as a map of the column `y`, the first parameter across and the second one up.

    Further axes stay at their first place. `here` is the present point on both axes, None if it is on neither.
    """
    first, second = result.grid.axes[:2]
    values, (x, up) = _over_two_axes(result.grid.spread(array_of(result, y))), here or (None, None)
    return HeatMap(
        y,
        axis_description(result, first, x_scale),
        axis_description(result, second, y_scale),
        AxisDescription(label_of(y), result.dimensions[y], suiting([values])),
        axis_positions(first),
        axis_positions(second),
        values,
        None if x is None or up is None else (x, up),
    )


def with_distinct_positions(description: PlotDescription, result: Result) -> PlotDescription:
    """Plot with a name for each place of its first axis, if values occur more than once.

    The same holds for parameters that vary together: curves over the first one alone could be ambiguous.
    """
    axis = result.grid.axes[0]
    x = axis_positions(axis)
    if np.unique(x).size == x.size:
        return description
    alone = [Axis(path, {path: values}) for path, values in axis.parameters.items()]
    tied = [(axis_description(result, one, None), axis_positions(one)) for one in alone]
    names = ([value_text(float(value), described) for value in values] for described, values in tied)
    ticks = tuple(", ".join(place) for place in zip(*names, strict=True))
    label = ", ".join(described.name for described, _ in tied)
    places = np.arange(x.size, dtype=np.float64)
    lines = tuple(replace(line, x=places) for line in description.lines)
    return replace(description, x=AxisDescription(label, ticks=ticks), lines=lines, markers=())


def axis_positions(axis: Axis) -> FloatArray:
    """Values of the first parameter of an axis; the numbers of its choices."""
    values = next(iter(axis.parameters.values()))
    return np.arange(len(values), dtype=np.float64) if values.dtype == object else values.astype(np.float64)


def axis_description(result: Result, axis: Axis, scale: Scale | None = None) -> AxisDescription:
    """Axis of a sweep as an axis of a picture; without a scale, the one that suits its values."""
    path, values = next(iter(axis.parameters.items()))
    if values.dtype == object:
        return AxisDescription(path, ONE, Scale.LINEAR, tuple(str(value) for value in values))
    suiting = Scale.LOG if _spaced_evenly_in_log(values) else Scale.LINEAR
    parameter = result.program.parameters[path]
    whole = parameter.field is not None and parameter.field.domain.whole
    return AxisDescription(path, parameter.dimension, scale or suiting, whole=whole)


def _spaced_evenly_in_log(values: NDArray[Any]) -> bool:
    """Whether the values of an axis grow by a factor rather than by a step."""
    if len(values) < 3 or np.any(values <= 0):
        return False
    steps, factors = np.diff(values), np.diff(np.log(values))
    return float(np.ptp(factors)) * abs(float(steps.mean())) < float(np.ptp(steps)) * abs(float(factors.mean()))


def suiting(values: Sequence[FloatArray]) -> Scale:
    """Logarithmic scale if the values differ by more than two decades, else linear."""
    drawn = np.concatenate([array[np.isfinite(array) & (array > 0)] for array in values] or [np.array([])])
    return Scale.LOG if drawn.size and float(drawn.max()) > 100 * float(drawn.min()) else Scale.LINEAR


def _categories(result: Result, y: str, x: FloatArray) -> tuple[PlotLine, ...]:
    """`y`; for the time of an iteration also its categories."""
    parts = [f"{category}_time" for category in CATEGORIES] if y == Y_COLUMN else []
    curves = ((name, result.grid.spread(array_of(result, name)).ravel()) for name in parts)
    main = PlotLine(label_of(y), x, result.grid.spread(array_of(result, y)).ravel())
    bands = (PlotLine(label, x, end.ravel(), "band") for label, end in _ends(result, y).items())
    return (main, *bands, *(PlotLine(label_of(name), x, curve) for name, curve in curves if np.nansum(curve) > 0))


def _ends(result: Result, y: str) -> dict[str, FloatArray]:
    """Lower and upper end of the band of a result, over the grid, by name; empty without samples."""
    if result.bands is None:
        return {}
    names, quantiles = result.bands.sampling.names, result.bands.values[y]
    return {names[at]: result.grid.spread(quantiles[at]) for at in (0, 2)}


def label_of(name: str) -> str:
    """Label of the curve of a result."""
    return name.removesuffix("_time").removeprefix("terms.")


def _family(result: Result, y: str, x: FloatArray) -> tuple[PlotLine, ...]:
    """Curves for places of the second axis, at most a few; further axes stay at their first place."""
    second, values = result.grid.axes[1], _over_two_axes(result.grid.spread(array_of(result, y)))
    ends = [_over_two_axes(end) for end in _ends(result, y).values()]
    chosen = np.unique(np.linspace(0, len(second) - 1, min(len(second), MAXIMUM_CURVES)).astype(int))
    lines: list[PlotLine] = []
    for index in chosen.tolist():
        lines.append(PlotLine(_place(result, second, index), x, values[:, index]))
        lines += [PlotLine("", x, end[:, index], "band") for end in ends]
    return tuple(lines)


def _over_two_axes(values: FloatArray) -> FloatArray:
    """Result over the first two axes, at the first place of the others."""
    return values.reshape(*values.shape[:2], -1)[:, :, 0]


def _place(result: Result, axis: Axis, index: int) -> str:
    path, values = next(iter(axis.parameters.items()))
    if values.dtype == object:
        return str(values[index])
    return (
        f"{path.rpartition('.')[2]} {format_quantity(float(values[index]), result.program.parameters[path].dimension)}"
    )


def columns_to_plot(result: Result) -> tuple[str, ...]:
    """Columns and phases with any time, the most important first."""
    names = [
        Y_COLUMN,
        *(name for name in result.columns if name != Y_COLUMN),
        *(f"terms.{name}" for name in result.terms),
    ]
    return tuple(name for name in names if name == Y_COLUMN or np.nansum(array_of(result, name)) > 0)


@dataclass(frozen=True, slots=True)
class Headline:
    """Main numbers of one point; NaN if it is infeasible."""

    iteration_time: float
    total_time: float
    communication_time: float
    communication_fraction: float
    bottleneck: str
    bottleneck_time: float
    bottleneck_fraction: float


def headline(point: Result) -> Headline:
    """Times of one point, share of communication, and longest phase."""
    iteration, total, communication = (
        first_number(point.columns[name]) for name in (Y_COLUMN, "total_time", "communication_time")
    )
    phases = {name: first_number(array) for name, array in point.terms.items()}
    worst = max(phases, key=lambda name: phases[name], default="")
    longest = phases.get(worst, np.nan)
    whole = iteration if iteration > 0 else np.nan
    return Headline(iteration, total, communication, communication / whole, worst, longest, longest / whole)


def breakdown(point: Result, by: str = "phase") -> StackedBar:
    """Phases of one iteration at one point, in order, or its categories if `category`."""
    times = {name: first_number(array) for name, array in point.terms.items()}
    if by == "category":
        phases = [(phase.category, times[phase.phase]) for phase in point.program.phases]
        times = {kind: sum(time for other, time in phases if other == kind) for kind, _ in phases}
    return StackedBar(tuple(BarSegment(name, time) for name, time in times.items()))


def plot_table(description: Description | PlotStack) -> Table:
    """Table of a plot: its x, and a column for each curve, or for each y of a heat map.

    Of two plots over different values it has the upper one alone.
    """
    if isinstance(description, PlotStack):
        return _curve_table((description.above, description.below) if description.shared else (description.above,))
    if isinstance(description, HeatMap):
        rows = [f"{description.y.name} {value_text(float(y), description.y)}" for y in description.ys]
        columns, xs, axis = zip(rows, description.values.T, strict=True), description.xs, description.z
        return _table(description, xs, list(columns), axis)
    return _curve_table((description,))


def _curve_table(plots: Sequence[PlotDescription]) -> Table:
    """Table of the curves of plots over the same values; a value has as many rows as points of a curve."""
    places = [_places(line.x) for plot in plots for line in plot.lines]
    rows = np.unique(np.concatenate([np.zeros((0, 2)), *places]), axis=0)
    numbers, columns = {tuple(row): number for number, row in enumerate(rows.tolist())}, dict[str, Column]()
    for plot in plots:
        curves = [(name, _aligned(line, numbers)) for name, line in _named(plot.lines)]
        columns |= _table(replace(plot, x=plots[0].x), rows[:, 0], curves, plot.y).columns
    return Table(columns)


def _named(lines: Iterable[PlotLine]) -> Iterator[tuple[str, PlotLine]]:
    """Lines with the names of their columns: in a family of curves after the first one has its name too."""
    family = ""
    for line in lines:
        if line.style != "data" or not line.of:
            yield line.label, line
            continue
        family = line.label or family
        yield f"{family}, {line.of}", line


def _places(x: FloatArray) -> FloatArray:
    """Rows of the finite values: the value, and how often it came before."""
    known = np.sort(x[np.isfinite(x)])
    return np.stack([known, np.arange(known.size) - np.searchsorted(known, known)], axis=1)


def _aligned(line: PlotLine, numbers: Mapping[tuple[float, ...], int]) -> FloatArray:
    """y of a line in the row of each of its points, NaN in the others."""
    values = np.full(len(numbers), np.nan)
    known = np.flatnonzero(np.isfinite(line.x))
    order = known[np.argsort(line.x[known], kind="stable")]
    values[[numbers[tuple(place)] for place in _places(line.x).tolist()]] = line.y[order]
    return values


def _table(
    description: Description, xs: FloatArray, named: Sequence[tuple[str, FloatArray]], axis: AxisDescription
) -> Table:
    columns = {description.x.label: _column(xs, description.x)}
    for name, values in named:
        columns[name if name not in columns else f"{name} #{len(columns)}"] = _column(values, axis)
    return Table(columns)


def _column(values: FloatArray, axis: AxisDescription) -> Column:
    if axis.ticks:
        return Column(np.array([value_text(float(value), axis) for value in values], dtype=object))
    return Column(values, axis.dimension)


def alone(result: Result, y: str = Y_COLUMN) -> PlotDescription:
    """Figure of a sweep by itself: its title states grade and extrapolations."""
    description = with_distinct_positions(figure(result, y), result)
    words = ["rests on assumed values"] if result.grade == "assumed" else []
    beyond = dict.fromkeys(text.partition(":")[0] for text in result.extrapolated)
    words += [f"{', '.join(beyond)}: beyond the fitted range"] if beyond else []
    return replace(description, title=" · ".join([description.title, *words]))
