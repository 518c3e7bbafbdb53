"""Break-even: values of a parameter at which two platforms, or two values of another parameter, have equal results.

Both results are compared on a grid over the whole range; between neighbouring points at which the smaller one changes,
the bracket is narrowed. Two crossings between the same neighbours are missed, which whole numbers may have: all of them
are compared if there are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import suiting
from whatif.core.term import Program, common_dimension
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.studies.bracketing import narrowed
from whatif.studies.population import Progress
from whatif.studies.search_space import (
    Span,
    Varied,
    headings,
    idle_parameter,
    is_simulated,
    quantity_named,
    span_of,
    term_named,
)
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import Dimension, counted, format_quantity

_POINTS, _SIMULATED_POINTS, _CURVE_POINTS, _WHOLE_POINTS = 2049, 17, 17, 4096
_PARTS, _ROUNDS = 32, 11
"""Parts of a bracket in each round, and the rounds: to the precision of float64."""
_SIMULATED_PARTS, _SIMULATED_ROUNDS = 2, 20
_MOST_MARKERS: Final = 5
_EQUAL: Final = 1e-12
"""Relative difference up to which results are equal."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Value of the parameter at which both results are equal; of whole numbers, and beyond values without a result, the
    first one with another leader."""

    at: Mapping[str, float]
    """Values of the parameter, and of the second one if there is one, in base units."""
    first: float
    """Result of the first scenario there; at a jump, just beyond it."""
    second: float
    less_below: str
    """Name of the scenario with the smaller result just below; `both` if they are equal."""
    less_above: str


@dataclass(frozen=True, eq=False, repr=False)
class BreakEven(StudyResult):
    """Results of two scenarios over a range of one parameter, or of two, and the places where they are equal."""

    names: tuple[str, str]
    result: str
    dimension: Dimension
    span: Span
    along: Span | None
    """Second parameter."""
    seconds: FloatArray
    """Values of the second parameter; one NaN without it."""
    grid: FloatArray
    first: FloatArray
    """Results [second, grid], NaN without one."""
    second: FloatArray
    crossings: tuple[Crossing, ...]
    shows_failures = True

    @property
    def optional_columns(self) -> tuple[list[str], ...]:
        """Groups of columns omitted on a narrow terminal."""
        return [f"{self.names[1]} {self.result}"], [f"{self.names[0]} {self.result}"]

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """Results of both scenarios."""
        return self.first, self.second

    def leaders(self) -> list[str]:
        """Scenario with the smaller result at the first point of every value of the second parameter; empty if no
        point has both results."""
        signs = _signs(self.first, self.second)
        rows = (row[np.isfinite(row)] for row in signs)
        return [_leader(row[0], self.names) if row.size else "" for row in rows]

    def table(self, *, short: bool = False) -> Table:
        """One row per crossing: the parameters, the scenarios with less below and above, and both results."""
        spans = [self.span] if self.along is None else [self.along, self.span]
        heading = headings([span.path for span in spans], short=short)
        columns: dict[str, Dimension | None] = {heading[span.path]: span.parameter.dimension for span in spans}
        columns |= {"less_below": None, "less_above": None}
        columns |= dict.fromkeys((f"{name} {self.result}" for name in self.names), self.dimension)
        rows = [
            [*(one.at[span.path] for span in spans), one.less_below, one.less_above, one.first, one.second]
            for one in self.crossings
        ]
        return Table.of_rows(columns, rows, {"result": self.result})

    def readable_table(self) -> Table:
        """The table with short headings."""
        return self.table(short=True)

    def picture(self) -> PlotDescription:
        """Both results over the parameter; with a second parameter, the break-even curve over that."""
        if self.along is not None:
            return self._curve(self.along)
        lines = tuple(PlotLine(name, self.grid, row[0]) for name, row in zip(self.names, self.numbers, strict=True))
        y = AxisDescription(self.result, self.dimension, suiting([line.y for line in lines]))
        markers = tuple(Marker(one.at[self.span.path], "break-even") for one in self.crossings[:_MOST_MARKERS])
        return PlotDescription(self.result, _axis(self.span), y, lines, markers)

    def _curve(self, along: Span) -> PlotDescription:
        x, y = (np.array([one.at[path] for one in self.crossings]) for path in (along.path, self.span.path))
        title = f"break-even of {self.result}"
        return PlotDescription(title, _axis(along), _axis(self.span), (PlotLine("break-even", x, y),))

    def summary(self) -> tuple[str, ...]:
        """Number of points without a result, by scenario, and whether whole numbers were left out."""
        missing = {name: int((~np.isfinite(array)).sum()) for name, array in zip(self.names, self.numbers, strict=True)}
        total = self.first.size
        words = [f"{name}: {count:,} of {total:,} points have no result" for name, count in missing.items() if count]
        if self.span.whole and len(self.grid) < self.span.count:
            tried = f"{len(self.grid):,} of {self.span.count:,.0f} whole numbers were tried"
            words.append(f"{tried}: of several crossings between two of them, at most one is found")
        return tuple(words)

    def obstacle(self) -> str:
        """Reason why there is no crossing: the scenario that has the smaller result everywhere."""
        if self.crossings:
            return ""
        low, high = (format_quantity(end, self.span.parameter.dimension) for end in (self.span.low, self.span.high))
        return f"no break-even of {self.result} for {self.span.path} between {low} and {high}: {self._never_equal()}"

    def _never_equal(self) -> str:
        """Reason why results without a crossing are never equal."""
        leaders = sorted({name for name in self.leaders() if name})
        match leaders:
            case []:
                return "one of them has no result"
            case ["both"]:
                return "they are equal over the whole range"
            case [leader]:
                both = int(np.isfinite(self.first + self.second).sum())
                some = f"at the {counted(both, 'point')} with both"
                return f"{leader} has the smaller one {some if both < self.first.size else 'over the whole range'}"
            case _:
                return "the smaller one depends on the second parameter only"


def _axis(span: Span) -> AxisDescription:
    scale = Scale.LOG if span.low > 0 else Scale.LINEAR
    return AxisDescription(span.path, span.parameter.dimension, scale, whole=span.whole)


def break_even(
    one: Scenario, other: Scenario, names: tuple[str, str], varied: Sequence[Varied], result: str = "iteration_time",
    *, same_platform: bool = False, progress: Progress = lambda count: None,
) -> BreakEven:  # fmt: skip
    """All crossings over the range of the first parameter, for each value of the second parameter if there is one.

    Parameters of the platform vary on the first platform only, unless both scenarios are on the same one; those of the
    application vary in both. Raise `UsageError` for more than two parameters, for choices, for a parameter that the
    results do not depend on, and for costs in two currencies.
    """
    if not 1 <= len(varied) <= 2 or any(item.choices for item in varied):
        raise UsageError("a break-even is sought over one parameter that is a number, or over two")
    first, second = one.program, other.program
    dimension = common_dimension(result, (quantity_named(result, program)[1] for program in (first, second)))
    span = span_of(first, varied[0])
    along = span_of(first, varied[1]) if len(varied) == 2 else None
    pair = _Pair((first, second), span, along, result, same_platform, progress)
    pair.refuse_idle()
    count = _WHOLE_POINTS if span.whole and along is None else _POINTS
    grid = span.grid(_SIMULATED_POINTS if pair.is_simulated else count)
    seconds = np.array([np.nan]) if along is None else along.grid(_CURVE_POINTS)
    places, others = np.meshgrid(grid, seconds)
    results = [array.reshape(places.shape) for array in pair(places.ravel(), others.ravel())]
    found = BreakEven(names, result, dimension, span, along, seconds, grid, results[0], results[1], ())
    return replace(found, crossings=_crossings(found, pair))


class _Pair:
    """Results of both programs at points of the parameters."""

    def __init__(
        self, programs: tuple[Program, Program], span: Span, along: Span | None, result: str, same_platform: bool,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.programs, self.span, self.result = programs, span, result
        self.paths = [span.path] if along is None else [span.path, along.path]
        self.terms = [term_named(result, program) for program in programs]
        self.progress, self.count = progress, 0
        self.is_simulated = any(is_simulated(program) for program in programs)
        self.own = [path for path in self.paths if same_platform or not path.startswith("platform.")]

    def refuse_idle(self) -> None:
        """Raise `UsageError` for a parameter that neither result depends on."""
        reached = [program.inputs_of(term) for program, term in zip(self.programs, self.terms, strict=True)]
        for path in self.paths:
            if path not in reached[0] and not (path in self.own and path in reached[1]):
                raise idle_parameter(path, [self.result])

    def __call__(self, places: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Results [point] of both programs; the second one keeps parameters of its platform, and lacks some."""
        step = 1 if self.is_simulated else max(len(places), 1)
        parts = []
        for at in range(0, len(places), step):
            parts.append(self._results(places[at : at + step], others[at : at + step]))
            self.count += step
            self.progress(self.count)
        one, other = (np.concatenate(results) for results in zip(*parts, strict=True))
        return one, other

    def _results(self, places: FloatArray, others: FloatArray) -> list[FloatArray]:
        moved = dict(zip(self.paths, (places, others), strict=False))
        second = {
            path: array for path, array in moved.items() if path in self.own and path in self.programs[1].parameters
        }
        results = (
            evaluate(program, parameters).numbers(term)
            for program, parameters, term in zip(self.programs, (moved, second), self.terms, strict=True)
        )
        return [np.broadcast_to(result, places.shape) for result in results]


def _signs(first: FloatArray, second: FloatArray) -> FloatArray:
    """-1 if the first is less, 1 if the second is, 0 if they are equal, NaN if one has no number; elementwise."""
    near = np.abs(first - second) <= _EQUAL * np.maximum(np.abs(first), np.abs(second))
    return np.where(near, 0.0, np.sign(first - second))


def _leader(sign: float, names: tuple[str, str]) -> str:
    return "both" if sign == 0 else names[0] if sign < 0 else names[1]


@dataclass(frozen=True, slots=True)
class _Bracket:
    """Neighbouring points with both results, between which the smaller one changes."""

    row: int
    lower: int
    upper: int
    before: float
    after: float
    """Signs on both sides; beyond the upper point if the results are equal there."""


def _brackets(signs: FloatArray) -> Iterator[_Bracket]:
    """Brackets of all rows; points without a result are left out, so that a change across them counts."""
    for row, every in enumerate(signs):
        known = np.flatnonzero(np.isfinite(every))
        its = every[known]
        for at in np.flatnonzero(its[1:] != its[:-1]).tolist():
            if its[at] == 0 and at > 0 and its[at - 1] != 0:
                continue  # A single point at which they are equal is counted from its other side.
            after = its[at + 2] if its[at + 1] == 0 and at + 2 < len(its) else its[at + 1]
            yield _Bracket(row, int(known[at]), int(known[at + 1]), float(its[at]), float(after))


def _crossings(found: BreakEven, pair: _Pair) -> tuple[Crossing, ...]:
    brackets = list(_brackets(_signs(found.first, found.second)))
    others = found.seconds[[its.row for its in brackets]]
    ends = (found.grid[[its.lower for its in brackets]], found.grid[[its.upper for its in brackets]])
    places = _narrowed(pair, others, ends, np.array([its.before for its in brackets]))
    leaders = [(_leader(its.before, found.names), _leader(its.after, found.names)) for its in brackets]
    points = zip(places.tolist(), others.tolist(), strict=True)
    return tuple(_crossing(found, pair, point, sides) for point, sides in zip(points, leaders, strict=True))


def _crossing(found: BreakEven, pair: _Pair, point: tuple[float, float], leaders: tuple[str, str]) -> Crossing:
    first, second = pair(np.array(point[:1]), np.array(point[1:]))
    at = {found.span.path: point[0]}
    if found.along is not None:
        at[found.along.path] = point[1]
    return Crossing(at, float(first[0]), float(second[0]), *leaders)


def _narrowed(pair: _Pair, others: FloatArray, between: tuple[FloatArray, FloatArray], sides: FloatArray) -> FloatArray:
    """First places [bracket] with both results whose sign is not that of the lower side, to float64 precision."""
    lower, upper = between
    if pair.span.values is not None:
        return upper  # Listed values have nothing between them.

    def passed(places: FloatArray) -> NDArray[np.bool_]:
        first, second = pair(places.ravel(), np.repeat(others, places.shape[1]))
        signs = _signs(first, second).reshape(places.shape)
        return np.asarray(np.isfinite(signs) & (signs != sides[:, None]))

    parts, rounds = (_SIMULATED_PARTS, _SIMULATED_ROUNDS) if pair.is_simulated else (_PARTS, _ROUNDS)
    rounding = np.round if pair.span.whole else None
    return narrowed(lower, upper, passed, parts=parts, rounds=rounds, rounding=rounding)[1]
