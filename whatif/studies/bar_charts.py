"""Horizontal bars as pure data: the phases of an iteration, a tornado, a ladder of ideals, a waterfall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from whatif.core.iteration_timeline import Timeline
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.plotting.bars import LESS, MORE, BarChart, BarRow
from whatif.plotting.description import AxisDescription, series_style
from whatif.studies.attribution import Attribution
from whatif.studies.bottlenecks import Bottlenecks
from whatif.studies.elasticity import Elasticity
from whatif.studies.ranking import Ranking
from whatif.studies.sobol import Variance
from whatif.units import format_quantity
from whatif.vocabulary import CATEGORIES

_PATH_WIDTH: Final = 44
_MOST_BARS: Final = 16


def category_styles(categories: Iterable[str]) -> dict[str, str]:
    """The style of each kind of work that there is: as its curve has in a sweep, where the whole has the first."""
    there = set(categories)
    return {name: series_style(1 + at) for at, name in enumerate(name for name in CATEGORIES if name in there)}


def phase_bars(program: Program, timeline: Timeline) -> BarChart:
    """When each phase of an iteration runs, with its time and share."""
    whole, dimension = timeline.iteration_time, program.dimension_of("iteration_time")
    styles = category_styles(bar.category for bar in timeline.bars if bar.duration > 0)
    rows = [
        BarRow(bar.phase, bar.start, bar.end, styles.get(bar.category, "faint"),
               f"{format_quantity(bar.duration, dimension)}  {bar.duration / whole if whole > 0 else 0.0:.1%}")
        for bar in timeline.bars
    ]  # fmt: skip
    legend = tuple((style, name) for name, style in styles.items())
    return BarChart("one iteration", AxisDescription("time", dimension), tuple(rows), legend)


def tornado_bars(program: Program, result: str, found: Sequence[Elasticity]) -> BarChart:
    """The largest elasticities; values that are assumed say so."""
    shown = [item for item in found if item.elasticity and not item.reason][:_MOST_BARS]
    rows = [
        BarRow(short_path(item.path), 0.0, item.elasticity, MORE if item.elasticity > 0 else LESS,
               f"{item.elasticity:+.2g}{'  assumed' if program.parameters[item.path].grade == 'assumed' else ''}")
        for item in shown
    ]  # fmt: skip
    legend = ((LESS, "falls as this grows"), (MORE, "rises as this grows"))
    return BarChart(f"elasticity of {result}", AxisDescription("% for 1 %"), tuple(rows), legend)


def variance_bars(result: str, found: Variance) -> BarChart:
    """What each uncertain value explains of the variance, with all that it does together with others."""
    rows = [
        BarRow(short_path(", ".join(item.paths)), 0.0, item.total, LESS, f"{item.total:.0%} ± {item.total_error:.0%}")
        for item in found.indices[:_MOST_BARS]
        if item.total > 0
    ]
    return BarChart(f"what explains the variance of {result}", AxisDescription("total Sobol' index"), tuple(rows))


def merit_bars(found: Ranking) -> BarChart:
    """The merit of every machine, with its band and how likely it is the best where samples were drawn."""
    rows = []
    for its in found.standings:
        if math.isfinite(its.merit):
            chances = its.chances
            band = (
                f"  ({chances.merits[0]:.3g} to {chances.merits[2]:.3g}; best: {chances.best:.0%})" if chances else ""
            )
            rows.append(BarRow(its.platform, 0.0, its.merit, LESS, f"{its.merit:.3g}{band}"))
    title = f"merit over {', '.join(found.weights)}"
    return BarChart(title, AxisDescription("merit"), tuple(rows))


def ladder_bars(program: Program, found: Bottlenecks) -> BarChart:
    """What is left of a result with the worst part ideal, then the next one too."""
    dimension = program.dimension_of(found.result)

    def row(label: str, left: float, style: str) -> BarRow:
        share = f"  {left / found.time:.0%}" if found.time else ""
        return BarRow(label, 0.0, left, style, f"{format_quantity(left, dimension)}{share}")

    rows = [row(short_path(rung.part), rung.left, LESS) for rung in found.rungs[:_MOST_BARS]]
    title = f"what is left of {found.result} with a part ideal, and all above it"
    return BarChart(title, AxisDescription(found.result, dimension), (row("as it stands", found.time, "faint"), *rows))


def waterfall_bars(program: Program, found: Attribution, names: tuple[str, str]) -> BarChart:
    """From one result to the other, change by change; the smallest ones together."""
    dimension = program.dimension_of(found.result)
    parts = [(change.name, change.contribution) for change in found.changes[:_MOST_BARS]]
    rest = [change.contribution for change in found.changes[_MOST_BARS:]]
    parts += [(f"{len(rest)} smaller changes", sum(rest))] if rest else []
    ends = list(accumulate((part for _, part in parts), initial=found.before))
    steps = [
        BarRow(short_path(name), start, end, MORE if end > start else LESS,
               f"{'+' if part > 0 else ''}{format_quantity(part, dimension)}")
        for (name, part), (start, end) in zip(parts, pairwise(ends), strict=True)
    ]  # fmt: skip
    first, last = (
        BarRow(name, 0.0, value, "faint", format_quantity(value, dimension))
        for name, value in zip(names, (found.before, found.after), strict=True)
    )
    legend = ((LESS, "less"), (MORE, "more"))
    return BarChart(
        f"from {names[0]} to {names[1]}", AxisDescription(found.result, dimension), (first, *steps, last), legend
    )


def names_of(one: Scenario, other: Scenario) -> tuple[str, str]:
    """What tells two questions apart: their machines, or else their scenarios."""
    here, there = one.program.loaded, other.program.loaded
    machines = here.scenario.platform.name, there.scenario.platform.name
    if machines[0] != machines[1]:
        return machines
    return (here.name, there.name) if here.name != there.name else ("before", "after")


def short_path(path: str) -> str:
    """The end of a path that is too long for a label."""
    if len(path) <= _PATH_WIDTH:
        return path
    keys = path.split(".")
    fitting = (".".join(keys[at:]) for at in range(1, len(keys)))
    return "…" + next((text for text in fitting if len(text) < _PATH_WIDTH), keys[-1])
