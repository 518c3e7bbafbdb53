"""Tables, plots and words of break-even points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whatif.core.sweep_figure import suiting
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.studies.search_space import Span, headings
from whatif.table import Table
from whatif.units import Dimension, counted, format_quantity

if TYPE_CHECKING:
    from whatif.studies.break_even import BreakEven

_MOST_MARKERS = 5


def break_even_table(found: BreakEven, *, short: bool = False) -> Table:
    """One row per crossing: parameters, scenarios with less below and above, results; `short` shortens headings."""
    spans = [*([found.along] if found.along is not None else []), found.span]
    paths = [span.path for span in spans]
    heading = headings(paths, short=short)
    columns: dict[str, Dimension | None] = {heading[span.path]: span.parameter.dimension for span in spans}
    columns |= {"less_below": None, "less_above": None}
    columns |= dict.fromkeys((f"{name} {found.result}" for name in found.names), found.dimension)
    rows = [
        [*(one.at[path] for path in paths), one.less_below, one.less_above, one.first, one.second]
        for one in found.crossings
    ]
    return Table.of_rows(columns, rows, {"result": found.result})


def break_even_picture(found: BreakEven) -> PlotDescription:
    """Both results over the parameter; with a second parameter, the break-even curve over that."""
    if found.along is not None:
        return _curve(found, found.along)
    path = found.span.path
    lines = tuple(PlotLine(name, found.grid, row[0]) for name, row in zip(found.names, found.numbers, strict=True))
    y = AxisDescription(found.result, found.dimension, suiting([line.y for line in lines]))
    markers = tuple(Marker(one.at[path], "break-even") for one in found.crossings[:_MOST_MARKERS])
    return PlotDescription(found.result, _axis(found.span), y, lines, markers)


def _curve(found: BreakEven, along: Span) -> PlotDescription:
    x, y = (np.array([one.at[path] for one in found.crossings]) for path in (along.path, found.span.path))
    title = f"break-even of {found.result}"
    return PlotDescription(title, _axis(along), _axis(found.span), (PlotLine("break-even", x, y),))


def _axis(span: Span) -> AxisDescription:
    scale = Scale.LOG if span.low > 0 else Scale.LINEAR
    return AxisDescription(span.path, span.parameter.dimension, scale, whole=span.whole)


def never_equal(found: BreakEven) -> str:
    """Reason why results without a crossing are never equal."""
    span = found.span
    low, high = (format_quantity(end, span.parameter.dimension) for end in (span.low, span.high))
    leaders = sorted({name for name in found.leaders() if name})
    match leaders:
        case []:
            why = "one of them has no result"
        case ["both"]:
            why = "they are equal over the whole range"
        case [leader]:
            both = int(np.isfinite(found.first + found.second).sum())
            where = "over the whole range" if both == found.first.size else f"at the {counted(both, 'point')} with both"
            why = f"{leader} has the smaller one {where}"
        case _:
            why = "the smaller one depends on the second parameter only"
    return f"no break-even of {found.result} for {span.path} between {low} and {high}: {why}"
