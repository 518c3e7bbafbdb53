"""Curves of a sweep relative to a baseline: speedup, parallel efficiency, ratio.

With y0 the value of the baseline, a point or a curve at the same x, and y that of the curve: the ratio is y / y0; the
speedup is y0 / y, of a rate y / y0, so that larger is better. Parallel efficiency is that of `studies.scaling`, over
numbers of ranks P, with P_b the fewest ranks of the curve: T(P_b) P_b / (T(P) P) in strong scaling, T(P_b) / T(P) in
weak scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from whatif.axes import first_number
from whatif.core.answer_words import larger_is_better
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.result import Result, array_of
from whatif.core.sweep_figure import suiting
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.description import AxisDescription, HeatMap, PlotDescription, PlotLine, PlotMark, Scale
from whatif.units import ONE, SECOND
from whatif.vocabulary import Relation

_LABELS: Final = {"speedup": "speedup over {}", "efficiency": "parallel efficiency", "ratio": "ratio to {}"}
_NEEDS: Final = {
    "speedup": "needs a time or a rate",
    "efficiency": f"needs a time over `{RANK_COUNT}`",
}
Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]
"""Values at some x from those of their curve, its x and its y."""


def relations(result: Result, y: str) -> tuple[Relation, ...]:
    """Scales of y that a sweep can be drawn on: speedup for times and rates, efficiency for times over ranks."""
    dimension = result.dimensions[y]
    speedup: tuple[Relation, ...] = ("speedup",) if dimension == SECOND or larger_is_better(dimension) else ()
    ranks = bool(result.grid.axes) and next(iter(result.grid.axes[0].parameters)) == RANK_COUNT and dimension == SECOND
    return ("value", *speedup, *(("efficiency",) if ranks else ()), "ratio")


def relative(
    plot: PlotDescription,
    result: Result,
    y: str,
    relation: Relation,
    baseline: Result | PlotLine,
    scale: Scale | None = None,
) -> PlotDescription:
    """Curves of a column on another scale of y, with their marks.

    `baseline` is a single point, and parts of a result are left out, or one of the curves of several machines. Raise
    `UsageError` where the scale has no meaning, or the baseline has no value.
    """
    if relation == "value":
        return plot
    if relation not in relations(result, y):
        raise UsageError(f"{relation} of `{y}` over {plot.x.name}: {_NEEDS[relation]}")
    alike = isinstance(baseline, PlotLine) or len(result.grid.axes) > 1
    transform = _efficiency(result) if relation == "efficiency" else _ratio(result, y, relation, baseline)
    names = (plot.lines[0].label, "measured")
    parts = ("data", "points")
    kept = [line for line in plot.lines if alike or line.style not in parts or line.label in names]
    # Crossovers of parts, which have no word, go with the parts.
    marked = [mark for mark in plot.marks if mark.word or alike]
    with np.errstate(divide="ignore", invalid="ignore"):
        lines = tuple(replace(line, y=transform(line.x, line.y, line.x, line.y)) for line in kept)
        moved = [_moved(mark, kept, transform) for mark in marked]
    name = baseline.label if isinstance(baseline, PlotLine) else "the baseline"
    axis = AxisDescription(_LABELS[relation].format(name), ONE, scale or suiting([line.y for line in lines]))
    return replace(plot, y=axis, lines=lines, marks=tuple(mark for mark in moved if np.isfinite(mark.y)))


def relative_map(
    plot: HeatMap, result: Result, y: str, relation: Relation, before: FloatArray, name: str = "the baseline"
) -> HeatMap:
    """Heat map of a column as a ratio to other values of it, a single one or one for each point, which have a name.

    Raise `UsageError` if the scale has no meaning.
    """
    if relation == "value":
        return plot
    if relation == "efficiency" or relation not in relations(result, y):
        raise UsageError(f"{relation} of `{y}` on a heat map; there are speedup and ratio")
    known = np.where(before > 0, before, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = known / plot.values if _inverse(result, y, relation) else plot.values / known
    label = _LABELS[relation].format(name)
    return replace(plot, z=AxisDescription(label, ONE, suiting([values])), values=values)


def _inverse(result: Result, y: str, relation: Relation) -> bool:
    """Whether a relation inverts the values of a column."""
    return relation == "speedup" and not larger_is_better(result.dimensions[y])


def _moved(mark: PlotMark, lines: Sequence[PlotLine], transform: Transform) -> PlotMark:
    """Mark on the scale of the curve that it lies on, else of the first one."""
    line = next((line for line in lines if np.any((line.x == mark.x) & (line.y == mark.y))), lines[0])
    return replace(mark, y=float(transform(np.array(mark.x), np.array(mark.y), line.x, line.y)))


def _ratio(result: Result, y: str, relation: Relation, baseline: Result | PlotLine) -> Transform:
    inverse = _inverse(result, y, relation)

    def transform(x: FloatArray, values: FloatArray, _: FloatArray, __: FloatArray) -> FloatArray:
        base = _at(baseline, x) if isinstance(baseline, PlotLine) else _point(baseline, y, relation)
        return np.asarray(base / values if inverse else values / base)

    return transform


def _at(curve: PlotLine, x: FloatArray) -> FloatArray:
    """Values of a curve, whose points may be in any order."""
    order = np.argsort(curve.x, kind="stable")
    return np.interp(x, curve.x[order], curve.y[order])


def _point(baseline: Result, y: str, relation: Relation) -> float:
    base = first_number(array_of(baseline, y))
    if not (np.isfinite(base) and base > 0):
        raise UsageError(f"{relation}: the baseline has no `{y}`")
    return base


def _efficiency(result: Result) -> Transform:
    strong = result.program.loaded.scenario.application.keeps_whole

    def transform(x: FloatArray, times: FloatArray, ranks: FloatArray, curve: FloatArray) -> FloatArray:
        known = np.flatnonzero(np.isfinite(curve))
        if not known.size:
            return np.full_like(times, np.nan)
        fewest = known[ranks[known].argmin()]
        return np.asarray(curve[fewest] / times * (ranks[fewest] / x if strong else 1.0))

    return transform
