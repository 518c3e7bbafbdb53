"""Texts, curves, rows and lanes of a run of HPL: its rate, the parts of its time, its first panels, and other grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from whatif.linpack.grid_lines import WORK, GridLine, line_spans
from whatif.linpack.machine import NOISES
from whatif.linpack.output_reader import COMPONENTS, variant_code
from whatif.linpack.prediction_tables import PARTS as LINE_PARTS
from whatif.linpack.process_grids import Grid, HPLRunView, Share
from whatif.linpack.simulation.simulator import HPLOutcome
from whatif.plotting.description import HEAT_STYLES, AxisDescription, PlotDescription, PlotLine
from whatif.plotting.lanes import NO_MESSAGES, NO_PATH, PARTS, Kinds, Lanes
from whatif.studies.rank_lanes import main_groups
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.data_table import Cell, ColumnsView, TableRows
from whatif.tui.widgets.picture import HEAT_HUES
from whatif.units import FLOP_PER_SECOND, format_quantity

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray, IntArray

PANEL_KINDS: Final = Kinds(WORK, ("", "series-6", "series-1", "series-2", "series-3"), " FBw-", "+FBW=")
THEY_OVERLAP: Final = "they overlap: + is in the line above, waiting counts"
_LATELY: Final = 0.05
"""Share of the columns over which the recent rate is taken."""
_BAR: Final = 20
"""The cells of the bar of the best grid."""
_DARKEST: Final = 3
"""The first heat that is seen on a dark screen."""


class GridsView(ColumnsView):
    """A row for each grid, with a bar of heat."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{style}" for style in HEAT_STYLES}
    DEFAULT_CSS = "".join(f"GridsView > .table--{style} {{ color: {hue}; }}\n" for style, hue in HEAT_HUES.items())


def rate_words(rate: float) -> str:
    """Rate with the unit and digits that users of HPL expect."""
    return format_quantity(rate, FLOP_PER_SECOND, 4)


def sentences(run: HPLRunView) -> list[str]:
    """Rate of a run, its parameters, and the random seed."""
    outcome, chosen = run.outcome, run.outcome.configuration
    drawn = f"noise {NOISES[run.noise]}; pivots lie"
    return [
        f"{rate_words(outcome.rate)} in {duration(outcome.time)} on {run.machine}, N = {chosen.matrix_size:,}, "
        f"NB = {chosen.block_size:,}, P x Q = {chosen.process_rows:,} x {chosen.process_columns:,}",
        f"{variant_code(chosen)}; {drawn} as drawn with seed {run.seed}",
    ]


def share_words(share: Share | None) -> str:
    """Progress of the simulation."""
    if share is None:
        return "simulating …"
    return f"simulating{' other grids' if share.of_grids else ''}: {share.done:.0%}"


def rate_plot(outcome: HPLOutcome) -> PlotDescription:
    """The rate over the share of the columns that is done: since the begin, and over the last few of them.

    Panels that are factored ahead count as done: there is no rate until they are few of those that are.
    """
    done, rate = outcome.progress()
    depth, count = outcome.configuration.depth, len(done)
    ahead = min(max(depth, min(10 * depth, count // 10)), count - 1)
    curves = {"since the start": rate, f"over the last {_LATELY:.0%}": _lately(outcome, done, rate)}
    lines = tuple(PlotLine(name, done[ahead:], curve[ahead:]) for name, curve in curves.items())
    return PlotDescription("", AxisDescription("share of the columns"), AxisDescription("rate", FLOP_PER_SECOND), lines)


def _lately(outcome: HPLOutcome, done: FloatArray, rate: FloatArray) -> FloatArray:
    """The rate over the last few per cent of the columns, over one panel at least; NaN for the first of them."""
    panels = max(1, round(_LATELY * len(done)))
    found = np.full(len(done), np.nan)
    operations = rate * outcome.ends
    time = outcome.ends[panels:] - outcome.ends[:-panels]
    np.divide(operations[panels:] - operations[:-panels], time, out=found[panels:], where=time > 0)
    return found


def component_rows(outcome: HPLOutcome) -> TableRows:
    """A row for each part of the time, by its name in HPL's detailed timing, over the processes."""
    titles = ("HPL's timer", "mean", "share", "min", "max")
    named = [(label, name) for label, name in COMPONENTS.items() if name in outcome.components]
    rows = (
        _component(f"{'+ ' if name in LINE_PARTS else ''}{label}", outcome.components[name], outcome.time)
        for label, name in named
    )
    return TableRows(titles, tuple(rows), frozenset((0,)))


def _component(label: str, times: FloatArray, run_time: float) -> tuple[Cell, ...]:
    mean = float(times.mean())
    texts = (duration(mean), percent(mean / run_time), duration(float(times.min())), duration(float(times.max())))
    return Cell(label, "text"), *(Cell(text) for text in texts)


def grid_rows(shown: list[Grid], rates: Mapping[Grid, float], here: Grid) -> TableRows:
    """A row for each grid: its rate, its share of the best rate, and a bar; the present one is marked."""
    known = [rates[grid] for grid in shown if grid in rates]
    low, best = min(known, default=0.0), max(known, default=0.0)
    rows = (_grid(grid, rates.get(grid), low, best, marked=grid == here) for grid in shown)
    return TableRows(("P x Q", "rate", "of best", ""), tuple(rows), frozenset((0, 3)))


def _grid(grid: Grid, rate: float | None, low: float, best: float, *, marked: bool) -> tuple[Cell, ...]:
    part = "marked" if marked else "cell"
    name = Cell(f"{'▸' if marked else ' '} {grid[0]} x {grid[1]}", part)
    if rate is None:
        return name, Cell("–", "faint"), Cell("–", "faint"), Cell("")
    heat = _DARKEST + round((len(HEAT_STYLES) - 1 - _DARKEST) * ((rate - low) / (best - low) if best > low else 1.0))
    share = "best" if rate == best else percent(rate / best)
    bar = Cell("█" * max(1, round(_BAR * rate / best)), HEAT_STYLES[heat])
    return name, Cell(rate_words(rate), part), Cell(share, "better" if rate == best else part), bar


def best_words(shown: list[Grid], rates: Mapping[Grid, float], here: Grid) -> str:
    """Best of the simulated grids, compared with the present one."""
    best = max((grid for grid in shown if grid in rates), key=lambda grid: rates[grid], default=here)
    if here not in rates or best == here:
        return f"{here[0]} x {here[1]} is the best of them"
    return f"{best[0]} x {best[1]} is {rates[best] / rates[here] - 1:.1%} faster"


def panel_lanes(outcome: HPLOutcome, nodes: IntArray, line: GridLine, panel_count: int) -> Lanes:
    """Lanes of the processes of a line, from the start of the run to the end of the updates with its first panels.

    Time without other work is that of updates, with their row swaps and what these wait for.
    """
    spans = line_spans(outcome, line, panel_count)
    window = 0.0, spans.duration
    group = main_groups(spans.lane, spans.kind, spans.start, spans.end, window, len(spans.last))
    middle = window[0] + (np.arange(PARTS) + 0.5) / PARTS * (window[1] - window[0])
    group[(group == 0) & (middle < spans.last[:, None])] = len(WORK)
    return Lanes(window, 0, line.of_grid(nodes).astype(np.int32), group, NO_PATH, NO_MESSAGES)


def lanes_words(line: GridLine, panel_count: int) -> str:
    """Title of the lanes: the line and the panels."""
    first = f"the first {panel_count} panels" if panel_count > 1 else "the first panel"
    return f"process {line}, {first}"
