"""Answers of a sweep, with their marks on its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from whatif.axes import Grid
from whatif.core.answer_words import larger_is_better
from whatif.core.curve_answers import Answer, ResultSpace, break_even, crossovers, first_infeasible, knee_of, optimum
from whatif.core.result import Result, joined
from whatif.core.sweep_figure import Y_COLUMN, alone, axis_description, axis_positions
from whatif.plotting.description import AxisDescription, Description, HeatMap, PlotDescription, PlotLine, PlotMark
from whatif.plotting.presentable import Presentable
from whatif.table import Column, Table, text_column

Drawn = TypeVar("Drawn", bound=PlotDescription | HeatMap)


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Presentable):
    """Answers that a sweep gives about one result, in order of importance."""

    answers: tuple[Answer, ...]
    drawn: Description | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentence of each answer."""
        return tuple(answer.text for answer in self.answers)

    @property
    def sentence(self) -> str:
        """All sentences in one line."""
        return "; ".join(self.notes)

    def sentence_without(self, reason: str) -> str:
        """All sentences in one line, without a reason of infeasible points that is stated elsewhere."""
        return "; ".join(note.removesuffix(f": {reason}") for note in self.notes)

    @property
    def optimum(self) -> Answer | None:
        """The best point; None if all results are the same, or none is feasible."""
        return next((answer for answer in self.answers if answer.kind == "optimum"), None)

    def table(self) -> Table:
        """One row per answer: kind, places, result and sentence."""
        names = dict.fromkeys(name for answer in self.answers for name in answer.at)
        places = {name: Column(np.array([answer.at.get(name) for answer in self.answers], object)) for name in names}
        values = Column(np.array([answer.value for answer in self.answers], np.float64))
        kinds, texts = (text_column(texts) for texts in ((a.kind for a in self.answers), self.notes))
        return Table({"kind": kinds, **places, "value": values, "text": texts})

    def to_dict(self) -> dict[str, Any]:
        """Plain data in base units: `{"answers": [{"kind": .., "at": {path: value}, "value": .., "text": ..}]}`."""
        return {"answers": [answer.to_dict() for answer in self.answers]}

    def picture(self) -> Description:
        """Picture of the sweep with its marks; raise `UsageError` for a single point."""
        return cast("Description", super().picture()) if self.drawn is None else self.marked(self.drawn)

    def marked(self, description: Drawn) -> Drawn:
        """Another picture of the same sweep with its marks; a mark that lies on no drawn curve is left out."""
        drawn = [answer for answer in self.answers if answer.mark is not None and _is_drawn(answer, description)]
        if isinstance(description, HeatMap):
            marks = tuple(_on_map(answer, description) for answer in drawn)
        else:
            marks = tuple(answer.mark for answer in drawn if answer.mark is not None)
        return replace(description, marks=marks)


def _is_drawn(answer: Answer, description: Description) -> bool:
    """Whether a point of the sweep is in its picture, which has one place of a third axis, and few of a second one."""
    if isinstance(description, HeatMap):
        return len(answer.index) > 1 and not any(answer.index[2:])
    if not answer.index or not np.isfinite(answer.value):
        return True
    return any(bool(np.any(line.y == answer.value)) for line in description.lines)


def _on_map(answer: Answer, description: HeatMap) -> PlotMark:
    assert answer.mark is not None
    across, up = answer.index[:2]
    return replace(answer.mark, x=float(description.xs[across]), y=float(description.ys[up]))


def sweep_answers(
    result: Result, y: str = Y_COLUMN, drawn: PlotDescription | None = None, *, most: bool | None = None
) -> Answers:
    """Answers of a sweep about a column; none for a single point.

    `drawn` are its curves, by default those of its picture. `most`: whether the greatest value is the best; by
    default that of a rate is, and the least of anything else. Raise `UsageError` for a column that the result lacks.
    """
    if not result.grid.axes:
        return Answers(())
    greatest = larger_is_better(result.dimension_of(y)) if most is None else most
    plot = alone(result, y) if drawn is None else drawn
    if len(result.grid.axes) > 1:
        return Answers(tuple(_of_axes(result, y, plot, most=greatest)), plot)
    return Answers(tuple(_of_curve(result, y, plot, most=greatest)), plot)


def answers_of_parts(parts: Sequence[Result], grid: Grid) -> Answers:
    """Answers of a sweep that was evaluated in parts, in the order of the points; none if some are missing."""
    if not parts or sum(part.grid.size for part in parts) != grid.size:
        return Answers(())
    return sweep_answers(parts[0] if len(parts) == 1 else joined(parts, grid))


def _of_curve(result: Result, y: str, plot: PlotDescription, *, most: bool) -> Iterator[Answer]:
    line, *others = (line for line in plot.lines if line.style == "data")
    reasons = result.reason.ravel().tolist() if result.reasons else ()
    space = ResultSpace((plot.x,), (line.x,), line.y, plot.y, y, most, reasons)
    yield from optimum(space)
    before = next((other for other in plot.lines if other.style == "baseline"), None)
    if before is not None:
        yield from break_even(plot, line, before, most=most)
    yield from crossovers(plot, others, lambda before, after: f"{after.label} exceeds {before.label}", most=True)
    yield from knee_of(space)
    yield from first_infeasible(space)


def _of_axes(result: Result, y: str, plot: PlotDescription, *, most: bool) -> Iterator[Answer]:
    axes = result.grid.axes
    described = tuple(axis_description(result, axis) for axis in axes)
    label = AxisDescription(y, result.dimensions[y])
    reasons = result.reasons
    yield from optimum(ResultSpace(described, tuple(map(axis_positions, axes)), result[y], label, y, most, reasons))
    yield from _between(plot, plot.lines, most=most)


def _between(plot: PlotDescription, lines: Sequence[PlotLine], *, most: bool) -> Iterator[Answer]:
    curves = [line for line in lines if line.style == "data"]
    return crossovers(plot, curves, lambda before, after: f"{after.label} ahead of {before.label}", most=most)


def curve_family_answers(plot: PlotDescription, name: str, family: str, *, opposite: bool = False) -> Answers:
    """Answers about curves over the same x, such as those of machines; `family` is what their labels name.

    With `opposite`, the worst point takes the place of the best one.
    """
    curves = [line for line in plot.lines if line.style == "data"]
    most = larger_is_better(plot.y.dimension) != opposite
    names = AxisDescription(family, ticks=tuple(line.label for line in curves))
    values, numbers = np.stack([line.y for line in curves], axis=1), np.arange(len(curves), dtype=np.float64)
    space = ResultSpace((plot.x, names), (curves[0].x, numbers), values, plot.y, name, most)
    return Answers((*optimum(space), *_between(plot, curves, most=most)), plot)
