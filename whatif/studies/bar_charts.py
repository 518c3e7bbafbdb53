"""Bar charts as plain data: phases of an iteration, tornado, bottlenecks, waterfall, ranking."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.core.iteration_timeline import Timeline
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.plotting.bars import LESS, MORE, BarChart, BarRow
from whatif.plotting.description import AxisDescription, series_style
from whatif.units import format_quantity
from whatif.vocabulary import CATEGORIES

if TYPE_CHECKING:
    from whatif.studies.attribution import Attribution
    from whatif.studies.elasticity import Elasticity
    from whatif.studies.ranking import Ranking

_PATH_WIDTH: Final = 44
_BAR_WIDTH: Final = 24
MOST_BARS: Final = 16


def category_styles(categories: Iterable[str]) -> dict[str, str]:
    """Style of each category that occurs: that of its curve in a sweep, where the total has the first style."""
    there = set(categories)
    return {name: series_style(1 + at) for at, name in enumerate(name for name in CATEGORIES if name in there)}


def phase_bars(program: Program, timeline: Timeline) -> BarChart:
    """Timeline of an iteration: one bar per phase, with its time and share."""
    dimension = program.dimension_of("iteration_time")
    styles = category_styles(bar.category for bar in timeline.bars if bar.duration > 0)
    rows = [
        BarRow(bar.phase, bar.start, bar.end, styles.get(bar.category, "faint"),
               f"{format_quantity(bar.duration, dimension)}  {np.nan_to_num(timeline.share(bar)):.1%}")
        for bar in timeline.bars
    ]  # fmt: skip
    legend = tuple((style, name) for name, style in styles.items())
    return BarChart("one iteration", AxisDescription("time", dimension), tuple(rows), legend)


def tornado_bars(program: Program, result: str, found: Sequence[Elasticity]) -> BarChart:
    """Tornado chart of the largest elasticities; assumed values are marked."""
    shown = [item for item in found if item.elasticity and not item.reason][:MOST_BARS]
    rows = [
        BarRow(short_path(item.path), 0.0, item.elasticity, MORE if item.elasticity > 0 else LESS,
               f"{item.elasticity:+.2g}{'  assumed' if program.parameters[item.path].grade == 'assumed' else ''}")
        for item in shown
    ]  # fmt: skip
    legend = ((LESS, "falls as this grows"), (MORE, "rises as this grows"))
    return BarChart(f"elasticity of {result}", AxisDescription("% for 1 %"), tuple(rows), legend)


def merit_bars(found: Ranking) -> BarChart:
    """Merit of each platform; with samples its band and its probability of being the best."""
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


def waterfall_bars(found: Attribution, names: tuple[str, str]) -> BarChart:
    """Waterfall from one result to the other, one bar per change, the smallest changes in one bar."""
    dimension = found.dimension
    parts = [(change.name, change.contribution) for change in found.changes[:MOST_BARS]]
    rest = [change.contribution for change in found.changes[MOST_BARS:]]
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


def share_bar(share: float) -> str:
    """Share as a bar of characters, for a table."""
    return ("#" * round(min(share, 1.0) * _BAR_WIDTH)).ljust(_BAR_WIDTH)


def names_of(one: Scenario, other: Scenario) -> tuple[str, str]:
    """Labels of two scenarios: their platforms if these differ, else their own names."""
    here, there = one.program.loaded, other.program.loaded
    machines = here.scenario.platform.name, there.scenario.platform.name
    if machines[0] != machines[1]:
        return machines
    return (here.name, there.name) if here.name != there.name else ("before", "after")


def short_path(path: str) -> str:
    """Path shortened from the left to the width of a label."""
    if len(path) <= _PATH_WIDTH:
        return path
    keys = path.split(".")
    fitting = (".".join(keys[at:]) for at in range(1, len(keys)))
    return "…" + next((text for text in fitting if len(text) < _PATH_WIDTH), keys[-1])
