"""Break-even: the values of a parameter at which two machines, or two choices, come to the same result.

The ratio of the two results is looked at over the whole range; between two neighbouring points where it passes 1 the
place is found by dividing their distance again and again. Two crossings between two neighbours are missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.studies.bracketing import narrowed
from whatif.studies.population import Told
from whatif.studies.search_space import Span, Varied, idle_parameter, is_played, quantity_named, span_of, term_named
from whatif.units import Dimension

_POINTS, _PLAYED_POINTS, _CURVE_POINTS = 2049, 17, 17
_PARTS, _ROUNDS = 32, 11
"""Into how many parts a distance is divided, and how often: to less than float64 can tell."""
_PLAYED_PARTS, _PLAYED_ROUNDS = 2, 20
_EQUAL: Final = 1e-12
"""Results that differ by less, relatively, are the same."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value of the parameter at which the two come to the same; for a whole number the first one beyond."""

    at: Mapping[str, float]
    """Values of the parameter, and of the second one where there is one, in base units."""
    first: float
    """The result of the first there; of a jump, just beyond."""
    second: float
    less_below: str
    """Which of the two has the smaller result just below, and just above; `both` where they are the same."""
    less_above: str


@dataclass(frozen=True, slots=True, eq=False)
class BreakEven:
    """Two questions over a range of one parameter, or of two."""

    names: tuple[str, str]
    result: str
    dimension: Dimension
    span: Span
    along: Span | None
    seconds: FloatArray
    """The values of the second parameter; one NaN without."""
    grid: FloatArray
    first: FloatArray
    """Results [second, grid], NaN where there is none."""
    second: FloatArray
    crossings: tuple[Crossing, ...]

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """The results of both."""
        return self.first, self.second

    def leaders(self) -> list[str]:
        """For each value of the second parameter, who has the smaller result where it begins; empty where nobody has
        any."""
        signs = _signs(self.first, self.second)
        rows = (row[np.isfinite(row)] for row in signs)
        return [_leader(row[0], self.names) if row.size else "" for row in rows]


def break_even(
    one: Scenario, other: Scenario, names: tuple[str, str], varied: Sequence[Varied], result: str = "iteration_time",
    *, same_machine: bool = False, told: Told = lambda count: None,
) -> BreakEven:  # fmt: skip
    """All crossings over the range of the first parameter, for each value of the second parameter if there is one.

    A parameter of the machine moves on the first machine only, unless both are the same; one of the application on
    both. Raise `UsageError` for more parameters, choices, and a parameter that the results do not depend on.
    """
    if not 1 <= len(varied) <= 2 or any(item.choices for item in varied):
        raise UsageError("a break-even is sought over one parameter that is a number, or over two")
    first, second = one.program, other.program
    span = span_of(first, varied[0])
    along = span_of(first, varied[1]) if len(varied) == 2 else None
    pair = _Pair((first, second), span, along, result, same_machine, told)
    pair.refuse_idle()
    grid = span.grid(_PLAYED_POINTS if pair.is_played else _POINTS)
    seconds = np.array([np.nan]) if along is None else along.grid(_CURVE_POINTS)
    places, others = np.meshgrid(grid, seconds)
    results = [array.reshape(places.shape) for array in pair(places.ravel(), others.ravel())]
    dimension = quantity_named(result, first)[1]
    found = BreakEven(names, result, dimension, span, along, seconds, grid, results[0], results[1], ())
    return replace(found, crossings=_crossings(found, pair))


class _Pair:
    """The results of both programs at points of the parameters."""

    def __init__(
        self, programs: tuple[Program, Program], span: Span, along: Span | None, result: str, same_machine: bool,
        told: Told,
    ) -> None:  # fmt: skip
        self.programs, self.span, self.result = programs, span, result
        self.paths = [span.path] if along is None else [span.path, along.path]
        self.terms = [term_named(result, program) for program in programs]
        self.told, self.count = told, 0
        self.is_played = any(is_played(program) for program in programs)
        self.own = [path for path in self.paths if same_machine or not path.startswith("platform.")]

    def refuse_idle(self) -> None:
        """Raise `UsageError` for a parameter that neither result depends on."""
        reached = [program.inputs_of(term) for program, term in zip(self.programs, self.terms, strict=True)]
        for path in self.paths:
            if path not in reached[0] and not (path in self.own and path in reached[1]):
                raise idle_parameter(path, [self.result])

    def __call__(self, places: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Results [point] of both; a parameter that the second one has not, or that is its machine's, stays there."""
        step = 1 if self.is_played else max(len(places), 1)
        parts = []
        for at in range(0, len(places), step):
            parts.append(self._results(places[at : at + step], others[at : at + step]))
            self.count += step
            self.told(self.count)
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
    """-1 where the first is less, 1 where the second is, 0 where they are the same, NaN where one has no number."""
    near = np.abs(first - second) <= _EQUAL * np.maximum(np.abs(first), np.abs(second))
    return np.where(near, 0.0, np.sign(first - second))


def _leader(sign: float, names: tuple[str, str]) -> str:
    return "both" if sign == 0 else names[0] if sign < 0 else names[1]


def _crossings(found: BreakEven, pair: _Pair) -> tuple[Crossing, ...]:
    signs = _signs(found.first, found.second)
    rows, columns = np.nonzero(np.isfinite(signs[:, :-1]) & np.isfinite(signs[:, 1:]) & (signs[:, :-1] != signs[:, 1:]))
    before = signs[rows, columns]
    places = _narrowed(pair, found.seconds[rows], (found.grid[columns], found.grid[columns + 1]), before)
    padded = np.pad(signs, ((0, 0), (1, 1)), constant_values=np.nan)
    result = []
    for row, column, place, sign in zip(rows, columns, places, before, strict=True):
        previous, after, beyond = padded[row, column], signs[row, column + 1], padded[row, column + 3 :][:1]
        if sign == 0 and np.isfinite(previous) and previous != 0:
            continue  # A single point at which they are the same is met already from the other side.
        if after == 0 and np.isfinite(beyond).all() and beyond.size:
            after = beyond[0]
        leaders = _leader(sign, found.names), _leader(after, found.names)
        result.append(_crossing(found, pair, (float(place), float(found.seconds[row])), leaders))
    return tuple(result)


def _crossing(found: BreakEven, pair: _Pair, point: tuple[float, float], leaders: tuple[str, str]) -> Crossing:
    first, second = pair(np.array(point[:1]), np.array(point[1:]))
    at = {found.span.path: float(point[0])}
    if found.along is not None:
        at[found.along.path] = float(point[1])
    return Crossing(at, float(first[0]), float(second[0]), *leaders)


def _narrowed(pair: _Pair, others: FloatArray, between: tuple[FloatArray, FloatArray], sides: FloatArray) -> FloatArray:
    """First places [bracket] at which the sign is no longer that of the lower side, to the precision of float64."""
    lower, upper = between
    if pair.span.values is not None:
        return upper  # Listed values have nothing between them.

    def passed(places: FloatArray) -> NDArray[np.bool_]:
        first, second = pair(places.ravel(), np.repeat(others, places.shape[1]))
        return np.asarray(_signs(first, second).reshape(places.shape) != sides[:, None])

    parts, rounds = (_PLAYED_PARTS, _PLAYED_ROUNDS) if pair.is_played else (_PARTS, _ROUNDS)
    rounding = np.round if pair.span.whole else None
    return narrowed(lower, upper, passed, parts=parts, rounds=rounds, rounding=rounding)[1]
