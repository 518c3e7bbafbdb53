"""What `whatif seek --equal-to` prints: where two machines, or two choices, come to the same result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from whatif.cli.options import Draw, named_platform, print_table
from whatif.cli.seek_search import progress
from whatif.errors import ImpossiblePointError

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.plotting.description import PlotDescription
    from whatif.studies.break_even import BreakEven
    from whatif.studies.search_space import Span, Varied
    from whatif.table import Table


def show_break_even(
    question: Scenario, equal_to: str, varied: Sequence[Varied], result: str, draw: Draw | None, file_format: str
) -> None:
    """Every crossing as a table, or drawn; raise `ImpossiblePointError` where there is none, saying who leads."""
    from whatif.studies.break_even import break_even

    other, names, same_machine = _opponent(question, equal_to)
    with progress() as told:
        found = break_even(question, other, names, varied, result, same_machine=same_machine,
                           told=lambda count: told(f"{count:,} points"))  # fmt: skip
    _tell(found)
    if draw is not None:
        draw(_picture(found))
    elif found.crossings:
        print_table(_table(found, file_format), file_format, [[f"{names[1]} {result}"], [f"{names[0]} {result}"]])
    if not found.crossings:
        raise ImpossiblePointError(_never(found))


def _opponent(question: Scenario, equal_to: str) -> tuple[Scenario, tuple[str, str], bool]:
    """The other question, what the two are called, and whether both are on one machine."""
    from dataclasses import replace

    path, equals, value = (part.strip() for part in equal_to.partition("="))
    if equals and path != "platform":
        other = question.changed({**question.sets, path: value}, question.platform)
        texts = (program.parameters[path].text() if path in program.parameters else "as it is"
                 for program in (question.program, other.program))  # fmt: skip
        first, second = (f"{path.rpartition('.')[2]}={text}" for text in texts)
        return other, (first, second), True
    name, platform_dirs = named_platform(value or path, question.folders)
    other = replace(question.on_platform(name), folders=platform_dirs)
    present = question.program.loaded.scenario.platform.name
    opponent = other.program.loaded.scenario.platform.name
    return other, (present, f"{opponent} as it is" if opponent == present else opponent), False


def _tell(found: BreakEven) -> None:
    """Points without a result."""
    import numpy as np

    for name, numbers in zip(found.names, found.numbers, strict=True):
        missing = int((~np.isfinite(numbers)).sum())
        if missing:
            click.echo(f"{name}: {missing:,} of {numbers.size:,} points that were looked at have no result", err=True)


def _never(found: BreakEven) -> str:
    from whatif.units import format_quantity

    low, high = (format_quantity(end, found.span.parameter.dimension) for end in (found.span.low, found.span.high))
    leaders = sorted({name for name in found.leaders() if name})
    said = {0: "one of them has no result", 1: f"{leaders[0]} has the smaller one all over" if leaders else ""}
    more = "they are the same all over" if leaders == ["both"] else said.get(len(leaders), "the smaller one depends on "
            "the second parameter only")  # fmt: skip
    return f"no break-even of {found.result} for {found.span.path} between {low} and {high}: {more}"


def _table(found: BreakEven, file_format: str) -> Table:
    """One row a crossing: the second parameter if there is one, the first, who has less on which side, both results."""
    from whatif.studies.search_space import tails
    from whatif.table import Table

    spans = [*([found.along] if found.along is not None else []), found.span]
    paths = [span.path for span in spans]
    heading = tails(paths) if file_format == "table" else {path: path for path in paths}
    columns = {heading[span.path]: span.parameter.dimension for span in spans} | {
        "less_below": None,
        "less_above": None,
    }
    columns |= dict.fromkeys((f"{name} {found.result}" for name in found.names), found.dimension)
    rows = [
        [*(one.at[path] for path in paths), one.less_below, one.less_above, one.first, one.second]
        for one in found.crossings
    ]
    return Table.of_rows(columns, rows, {"result": found.result})


def _picture(found: BreakEven) -> PlotDescription:
    """Both results over the parameter; with a second one, the break-even curve over that."""
    import numpy as np

    from whatif.core.sweep_figure import suiting
    from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale

    def scale(of: Span) -> Scale:
        return Scale.LOG if of.low > 0 else Scale.LINEAR

    span, along = found.span, found.along
    own = AxisDescription(span.path, span.parameter.dimension, scale(span))
    if along is None:
        lines = tuple(PlotLine(name, found.grid, row[0]) for name, row in zip(found.names, found.numbers, strict=True))
        y = AxisDescription(found.result, found.dimension, suiting([line.y for line in lines]))
        markers = tuple(Marker(one.at[span.path], "break-even") for one in found.crossings[:5])
        return PlotDescription(found.result, own, y, lines, markers)
    places, values = (np.array([one.at[path] for one in found.crossings]) for path in (along.path, span.path))
    across = AxisDescription(along.path, along.parameter.dimension, scale(along))
    return PlotDescription(f"break-even of {found.result}", across, own, (PlotLine("break-even", places, values),))
