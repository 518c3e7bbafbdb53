"""Answers that evaluated curves give: optimum, knee, crossovers, break-even and the first infeasible value.

Crossovers lie on straight lines between neighbouring points on the drawn scales; for whole numbers, the points around
them are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.core.answer_words import amount, joined, lead_text, percent, place, placed, places_in_words, superlative
from whatif.core.curve_features import Lead, best, knee, leads, level_stretch, runner_up
from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import axis_space, from_axis_space
from whatif.plotting.crosshair import value_text
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, PlotMark
from whatif.units import ONE, counted

Kind = Literal["optimum", "knee", "crossover", "break-even", "infeasible", "flat"]
GLYPHS: Final[dict[Kind, str]] = {"optimum": "◆", "knee": "◇", "crossover": "×", "break-even": "×", "infeasible": "!"}
_LEVEL: Final = 0.01
"""Relative difference from the optimum within which a curve is called level."""
_CROSSOVERS: Final = 3
"""Most crossovers that have a sentence each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its kind, sentence and place."""

    kind: Kind
    text: str
    at: dict[str, float | str] = field(default_factory=dict)
    """Value of each axis in base units; of a crossover, interpolated."""
    value: float = np.nan
    """Result there, in base units."""
    between: tuple[float, float] | None = None
    """Neighbouring values around a crossover."""
    index: tuple[int, ...] = ()
    """Point of the sweep: an index for each axis."""
    mark: PlotMark | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data: kind, place, value and text, without what does not apply."""
        facts = {
            "kind": self.kind,
            "at": self.at or None,
            "between": None if self.between is None else list(self.between),
            "value": self.value if np.isfinite(self.value) else None,
            "text": self.text,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}


class ResultSpace(NamedTuple):
    """Evaluated values of a result over axes, NaN at infeasible points."""

    axes: tuple[AxisDescription, ...]
    positions: tuple[FloatArray, ...]
    """Values of each axis; numbers of choices."""
    values: FloatArray
    """Results, with one dimension for each axis."""
    y: AxisDescription
    name: str
    """Name of the result."""
    most: bool
    """Whether the greatest value is sought."""
    reasons: Sequence[str] = ()
    """Why each point has no value; empty texts at feasible points."""

    def place(self, index: Sequence[int]) -> str:
        """Place of a point in words."""
        return places_in_words(self._at(index))

    def at(self, index: Sequence[int]) -> dict[str, float | str]:
        """Value of each axis at a point."""
        return {axis.label: axis.ticks[round(x)] if axis.ticks else x for axis, x in self._at(index)}

    def _at(self, index: Sequence[int]) -> Iterator[tuple[AxisDescription, float]]:
        for axis, positions, i in zip(self.axes, self.positions, index, strict=True):
            yield axis, float(positions[i])

    def texts(self, indices: Iterable[int]) -> list[str]:
        """Values of the first axis as texts."""
        return [value_text(float(self.positions[0][i]), self.axes[0]) for i in indices]

    @property
    def discrete(self) -> bool:
        """Whether all axes have names or whole numbers."""
        return all(is_discrete(axis, positions) for axis, positions in zip(self.axes, self.positions, strict=True))

    @property
    def word(self) -> str:
        """Superlative of the result."""
        return superlative(self.y.dimension, self.name, most=self.most)


def is_discrete(axis: AxisDescription, values: FloatArray) -> bool:
    """Whether an axis has names or whole numbers."""
    return bool(axis.ticks) or (axis.dimension == ONE and bool(np.all(values == np.rint(values))))


def optimum(space: ResultSpace) -> Iterator[Answer]:
    """The best point over all axes; or that all results are the same, or that no point is feasible."""
    values = space.values.ravel()
    ties, second = best(values, most=space.most), runner_up(values, most=space.most)
    if values.size < 2:
        return
    if not ties.size:
        reasons = "; ".join(dict.fromkeys(filter(None, space.reasons)))
        yield Answer("infeasible", f"infeasible at all {values.size} points{': ' * bool(reasons)}{reasons}")
        return
    index, value = tuple(int(i) for i in np.unravel_index(ties[0], space.values.shape)), float(values[ties[0]])
    number = value_text(value, space.y)
    if second is None and ties.size > 1:
        yield Answer("flat", f"{space.name} is the same at all {ties.size} feasible points: {number}", value=value)
        return
    words = f"{space.word} {_where(space, index, ties)}: {number}"
    if second is None:
        words = f"feasible only {space.place(index)}: {number}"
    elif ties.size == 1 or space.discrete:
        words += _margin(space, index, second)
    mark = PlotMark(float(space.positions[0][index[0]]), value, GLYPHS["optimum"], space.word)
    yield Answer("optimum", words, space.at(index), value, index=index, mark=mark)


def _where(space: ResultSpace, index: tuple[int, ...], ties: NDArray[np.intp]) -> str:
    """Place of the optimum, or the places of a tie, perhaps thousands."""
    if ties.size == 1:
        return f"{space.place(index)}{_at_end(space, index)}"
    if len(space.axes) > 1:
        return f"{space.place(index)} and {counted(ties.size - 1, 'other point')}"
    if ties.size > 2 and bool(np.all(np.diff(ties) == 1)):
        return f"from {amount(space.axes[0], ' to '.join(space.texts(ties[[0, -1]])))}"
    few = joined(space.texts(ties if ties.size <= 4 else ties[:3]))
    more = f" and {counted(ties.size - 3, 'other value')}" if ties.size > 4 else ""
    return f"{placed(space.axes[0], few)}{more}"


def _at_end(space: ResultSpace, index: tuple[int, ...]) -> str:
    """Remark on an optimum at the end of a continuous axis: it may lie beyond."""
    if len(space.axes) > 1 or space.discrete:
        return ""
    x = space.positions[0]
    return ", the largest value" if x[index[0]] == x.max() else ", the smallest value" if x[index[0]] == x.min() else ""


def _margin(space: ResultSpace, index: tuple[int, ...], second: int) -> str:
    """Lead of the optimum over the second best point; on a continuous axis, the range of equal results."""
    if not space.discrete:
        return _level(space, index[0]) if len(space.axes) == 1 else ""
    other = tuple(map(int, np.unravel_index(second, space.values.shape)))
    if not (space.values[other] > 0 and space.values[index] > 0):
        return ""
    ratio = float(space.values[other] / space.values[index])
    return f", {lead_text(1 / ratio if space.most else ratio)} ahead of {joined(_apart(space, index, other))}"


def _apart(space: ResultSpace, index: Sequence[int], other: Sequence[int]) -> list[str]:
    """Values of a point where it differs from another one; on one of several axes a number needs its name."""
    differing = [at for at in range(len(space.axes)) if index[at] != other[at]]
    texts = {at: value_text(float(space.positions[at][other[at]]), space.axes[at]) for at in differing}
    alone = len(space.axes) == 1
    return [text if alone or space.axes[at].ticks else amount(space.axes[at], text) for at, text in texts.items()]


def _level(space: ResultSpace, at: int) -> str:
    order = np.argsort(space.positions[0], kind="stable")
    first, last = level_stretch(space.values[order], int(np.flatnonzero(order == at)[0]), _LEVEL)
    if first == 0 and last == order.size - 1:
        return ", within 1 % everywhere"
    low, high = space.texts(order[[first, last]].tolist())
    return f", within 1 % from {low} to {high}" if first < last else ""


def knee_of(space: ResultSpace) -> Iterator[Answer]:
    """The knee of a curve on the drawn scales (see `curve_features.knee`), and the share of the change before it."""
    axis, x, values = space.axes[0], space.positions[0], space.values
    at = None if axis.ticks else knee(axis_space(x, axis), axis_space(values, space.y), most=space.most)
    if at is None:
        return
    known = np.flatnonzero(np.isfinite(values))
    ends = [int(known[x[known].argmin()]), int(known[x[known].argmax()])]
    first, last = values[ends]
    share, span = percent(float((values[at] - first) / (last - first))), " to ".join(space.texts(ends))
    is_gain = (last > first) == space.most
    of_what = f"gain from {span}" if is_gain else f"loss from {span}, which grows faster beyond"
    text = f"knee {space.place([at])}: {share} of the {of_what}"
    mark = PlotMark(float(x[at]), float(values[at]), GLYPHS["knee"], "knee")
    yield Answer("knee", text, space.at([at]), float(values[at]), index=(at,), mark=mark)


def first_infeasible(space: ResultSpace) -> Iterator[Answer]:
    """The first infeasible value of an axis that has feasible ones too, with its reason."""
    axis, x = space.axes[0], space.positions[0]
    order = np.argsort(x, kind="stable")
    places = np.flatnonzero(~np.isfinite(space.values[order]))
    count = places.size
    if count in (0, x.size):
        return
    below = places[-1] == count - 1 and count > 1 and not axis.ticks
    at = int(order[places[-1 if below else 0]])
    value = amount(axis, space.texts([at])[0])
    if below:
        words = f"infeasible up to {value}"
    elif places[0] == x.size - count and count > 1 and not axis.ticks:
        words = f"infeasible from {value} on"
    else:
        words = f"infeasible {place(axis, float(x[at]))}{f' and {count - 1} more' * (count > 1)}"
    reason = space.reasons[at] if len(space.reasons) else ""
    mark = PlotMark(float(x[at]), np.nan, GLYPHS["infeasible"], "infeasible")
    yield Answer("infeasible", f"{words}{': ' * bool(reason)}{reason}", space.at([at]), index=(at,), mark=mark)


def crossovers(
    plot: PlotDescription, lines: Sequence[PlotLine], name: Callable[[PlotLine, PlotLine], str], *, most: bool
) -> Iterator[Answer]:
    """Places where the best of some curves over the same x changes; further ones than the first three are counted.

    `name` returns the words for a change from one curve to another.
    """
    if len(lines) < 2 or plot.x.ticks:
        return
    x = lines[0].x
    drawn = np.stack([axis_space(line.y, plot.y) for line in lines])
    found = list(leads(axis_space(x, plot.x), drawn, most=most))
    for lead in found[:_CROSSOVERS]:
        yield _crossover(plot, x, lead, name(lines[lead.before], lines[lead.after]))
    if len(found) > _CROSSOVERS:
        yield Answer("crossover", f"{len(found) - _CROSSOVERS} more crossovers")


def _crossover(plot: PlotDescription, x: FloatArray, lead: Lead, name: str) -> Answer:
    axis = plot.x
    at, value = from_axis_space(lead.x, axis), from_axis_space(lead.y, plot.y)
    low, high = sorted((float(x[lead.last]), float(x[lead.first])))
    texts = [value_text(end, axis) for end in (low, high)]
    if low == high or not is_discrete(axis, x):
        words = place(axis, low if low == high else at)
    elif x[lead.first] - x[lead.last] == 1:
        words = f"from {amount(axis, texts[1])} on"
    else:
        words = f"between {amount(axis, joined(texts))}"
    mark = PlotMark(at, value, GLYPHS["crossover"])
    return Answer("crossover", f"{name} {words}", {axis.label: at}, value, (low, high), mark=mark)


def break_even(plot: PlotDescription, line: PlotLine, before: PlotLine, *, most: bool) -> Iterator[Answer]:
    """Places where a curve becomes better or worse than the baseline."""

    def name(_: PlotLine, after: PlotLine) -> str:
        return f"{'ahead of' if after is line else 'behind'} the baseline"

    for answer in crossovers(plot, (line, before), name, most=most):
        mark = answer.mark and replace(answer.mark, word="break-even")
        yield replace(answer, kind="break-even", mark=mark)
