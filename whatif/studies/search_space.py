"""Search spaces: parameters between two ends or over listed values, and choices that decide which terms exist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation
from whatif.core.grid_run import unfit
from whatif.core.scenario import Scenario
from whatif.core.sweep import RANGE, parameter_points, swept_parameter
from whatif.core.term import Program, common_dimension
from whatif.errors import InvalidFileError, UsageError, did_you_mean
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.models.quantities import FloatArray
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.schema.relative import absolute
from whatif.units import Dimension, Quantity, format_quantity

SPREAD: Final = 1000.0
"""Factor from the present value to the ends of a default range."""
MOST_COMBINATIONS: Final = 1000
_HINT: Final = "expected PATH, or PATH=LOW .. HIGH, or PATH=A, B, C"


@dataclass(frozen=True, slots=True)
class Varied:
    """Parameter to vary as stated: between two ends in base units (None: the default), or over listed values."""

    path: str
    low: float | None = None
    high: float | None = None
    values: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()
    """Texts of a parameter that decides which terms exist."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Values that a parameter of a program may take, as a coordinate from 0 to 1.

    It is proportional to the logarithm if all values are greater than 0; whole numbers are rounded, listed values
    have equal shares of it.
    """

    parameter: Parameter
    low: float
    high: float
    values: FloatArray | None = None
    """Listed values, in increasing order."""

    @property
    def path(self) -> str:
        """The parameter's path."""
        return self.parameter.path

    @property
    def present(self) -> float:
        """Present value of the parameter."""
        return float(self.parameter.value)

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are allowed."""
        return self.parameter.field is not None and self.parameter.field.domain.whole

    @property
    def count(self) -> float:
        """Number of values; infinite unless they are listed or whole."""
        return len(self.values) if self.values is not None else self.high - self.low + 1 if self.whole else np.inf

    def at(self, coordinate: FloatArray) -> FloatArray:
        """Values at coordinates, elementwise."""
        coordinate = np.clip(coordinate, 0.0, 1.0)
        if self.values is not None:
            return np.asarray(
                self.values[np.minimum((coordinate * len(self.values)).astype(int), len(self.values) - 1)]
            )
        ratio = self.high / self.low if self.low > 0 else 0.0
        found = self.low * ratio**coordinate if ratio else self.low + (self.high - self.low) * coordinate
        # Powers of a ratio miss the ends by rounding.
        return np.clip(np.round(found) if self.whole else found, self.low, self.high)

    def coordinate(self, value: float) -> float:
        """Coordinate of a value, of the nearest end for a value beyond it."""
        if self.values is not None:
            return (float(np.abs(self.values - value).argmin()) + 0.5) / len(self.values)
        value = min(max(value, self.low), self.high)
        if self.low > 0:
            return float(np.log(value / self.low) / np.log(self.high / self.low))
        return (value - self.low) / (self.high - self.low)

    def grid(self, count: int) -> FloatArray:
        """All values if there are at most `count`, else `count` of them from end to end."""
        if self.values is not None:
            return self.values
        if self.count <= count:
            return np.arange(self.low, self.high + 1)
        return np.unique(self.at(np.linspace(0.0, 1.0, max(count, 2))))


@dataclass(frozen=True, slots=True)
class Combination:
    """Combination of choices with its program; None, with the reason, if it does not compile."""

    choices: Mapping[str, str]
    program: Program | None
    reason: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{path}={value}" for path, value in self.choices.items())


def parse_varied(text: str, program: Program) -> Varied:
    """Parameter to vary from `PATH`, `PATH=LOW .. HIGH`, `PATH=A, B, C` or values as in a sweep; raise `UsageError`."""
    path, equals, spec = (part.strip() for part in text.partition("="))
    parameter = program.parameters.get(path)
    if parameter is None or parameter.structural:
        swept_parameter(path, program)
        return _varied_choice(path, parameter, spec, program)
    if not equals:
        return Varied(path)
    if RANGE.fullmatch(spec) or (".." not in spec and "," in spec):
        return Varied(
            path, values=tuple(np.unique(parameter_points(path, spec, program, DEFAULT_MAXIMUM_POINTS)).tolist())
        )
    low, dots, high = (part.strip() for part in spec.partition(".."))
    if not dots:
        raise UsageError(f"--vary {text}: {_HINT}")
    return Varied(path, _end(low, parameter, text), _end(high, parameter, text))


def _varied_choice(path: str, parameter: Parameter | None, spec: str, program: Program) -> Varied:
    words: str | tuple[str, ...] = spec or (() if parameter is None else parameter.choices)
    if not words:
        raise UsageError(f"--vary {path}: state which: {path}=A, B, C")
    points = parameter_points(path, words, program, MOST_COMBINATIONS)
    return Varied(path, choices=tuple(dict.fromkeys(map(str, points))))


def _end(text: str, parameter: Parameter, whole: str) -> float:
    """End of a range in base units."""
    assert parameter.field is not None
    try:
        end = parameter.field.parse(text if isinstance(parameter.value, Expression) else absolute(parameter, text))
    except ValueError as error:
        raise UsageError(f"--vary {whole}: {error}") from None
    if isinstance(end, Quantity):
        return end.value
    if not isinstance(end, float):
        raise UsageError(f"--vary {whole}: `{text}` is not a number")
    return end


def combinations(scenario: Scenario, varied: Iterable[Varied]) -> Iterator[Combination]:
    """All combinations of choices, compiled, or with the reason if the platform does not support one."""
    chosen = [item for item in varied if item.choices]
    count = int(np.prod([len(item.choices) for item in chosen]))
    if count > MOST_COMBINATIONS:
        raise UsageError(f"{count:,} combinations of choices; at most {MOST_COMBINATIONS:,}")
    for texts in product(*(item.choices for item in chosen)):
        choices = {item.path: text for item, text in zip(chosen, texts, strict=True)}
        try:
            yield Combination(choices, scenario.program_at(choices))
        except InvalidFileError as problem:
            yield Combination(choices, None, unfit(scenario, problem, choices))


def prepared(
    scenario: Scenario, varied: Sequence[Varied], names: Sequence[str]
) -> list[tuple[Combination, list[Span]]]:
    """All combinations of choices, each with the ranges of the parameters that the named results depend on.

    Raise `UsageError` for a parameter without effect in all combinations, on a result or on what is feasible, and for
    costs in several currencies.
    """
    found = [
        (combination, _spans(combination.program, varied, names)) for combination in combinations(scenario, varied)
    ]
    programs = [scenario.program, *(combination.program for combination, _ in found if combination.program)]
    for name in names:
        common_dimension(name, (quantity_named(name, program)[1] for program in programs))
    moved = {span.path for _, within in found for span in within}
    idle = next((item.path for item in varied if not item.choices and item.path not in moved), None)
    if idle is not None and any(combination.program for combination, _ in found):
        raise idle_parameter(idle, names)
    return found


def _spans(program: Program | None, varied: Iterable[Varied], names: Iterable[str]) -> list[Span]:
    if program is None:
        return []
    reached = reached_by(program, names)
    return [span_of(program, item) for item in varied if not item.choices and item.path in reached]


def reached_by(program: Program, names: Iterable[str]) -> frozenset[str]:
    """Parameters that results depend on, in their values or in their feasibility."""
    terms = [term_named(name, program) for name in names]
    terms += [constraint.term for constraint in program.constraints]
    return frozenset().union(*(program.inputs_of(term) for term in terms))


def idle_parameter(path: str, names: Iterable[str]) -> UsageError:
    """Error for a parameter without effect on the named results."""
    return UsageError(f"`{path}` has no effect on {' and '.join(dict.fromkeys(names))}")


def span_of(program: Program, varied: Varied) -> Span:
    """Values that a parameter may take; raise `UsageError` for a dependent number or an empty range."""
    parameter = own_number(varied.path, program.parameters.get(varied.path))
    if varied.values:
        return Span(parameter, min(varied.values), max(varied.values), np.array(varied.values))
    return Span(parameter, *ends(parameter, varied.low, varied.high))


def own_number(path: str, parameter: Parameter | None) -> Parameter:
    """The same parameter; raise `UsageError` if it is not a number, or is computed from others."""
    if parameter is None or not parameter.independent:
        raise UsageError(f"`{path}`: only an independent number can be sought")
    return parameter


def ends(parameter: Parameter, low: float | None, high: float | None) -> tuple[float, float]:
    """Ends of a range in base units; default ends are `SPREAD` times the present value, within the domain."""
    assert parameter.field is not None
    domain, present = parameter.field.domain, float(parameter.value)
    if present <= 0 and low is None and high is None:
        raise UsageError(f"`{parameter.path}` is {parameter.text()}: state the range to search, PATH=LOW .. HIGH")
    first = max(present / SPREAD, domain.minimum) if low is None else low
    last = min(present * SPREAD, domain.maximum) if high is None else high
    if domain.whole:
        first, last = float(np.ceil(first)), float(np.floor(last))
    if low is not None and high is not None and not low < high:
        ends_said = (format_quantity(end, parameter.dimension) for end in (low, high))
        raise UsageError(f"`{parameter.path}`: no range: LOW must be below HIGH in {' .. '.join(ends_said)}")
    if not (first < last and domain.accepts(last) and domain.accepts(first)):
        raise UsageError(f"`{parameter.path}`: no range; values must be {domain.describe(parameter.dimension)}")
    return first, last


def quantity_named(name: str, program: Program) -> tuple[str, Dimension]:
    """Term of a result, a phase (`terms.NAME`) or a parameter, with its unit; raise `UsageError` for other names."""
    parameter = program.parameters.get(name)
    if parameter is not None and parameter.field is not None:
        return name, program.dimension(name)
    known = [path for path, parameter in program.parameters.items() if parameter.field is not None]
    try:
        return program.term_of(name), program.dimension_of(name)
    except UsageError as error:
        hint = "" if "did you mean" in str(error) else did_you_mean(name, known)
        raise UsageError(f"{error}{hint}") from None


def term_named(name: str, program: Program) -> str:
    """Term of a result, a phase or a parameter; raise `UsageError` for other names."""
    return quantity_named(name, program)[0]


def every_point(grids: Sequence[Sequence[float]]) -> FloatArray:
    """All points [point, parameter] of a grid of values; a single one without parameters."""
    return np.array(list(product(*grids))).reshape(math.prod(map(len, grids)), len(grids))


def phase_times(evaluation: Evaluation) -> dict[str, float]:
    """Times of the phases at the first point, the longest first."""
    times = {phase.phase: first_number(evaluation.values[phase.term]) for phase in evaluation.program.phases}
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def is_simulated(program: Program) -> bool:
    """Whether every point of a program is simulated message by message, or step by step, which takes time."""
    application = program.loaded.scenario.application
    traced = any(phase.kind == "trace" for phase in application.phases.values())
    return application.costly_points or application.communication != "modelled" or traced


def headings(paths: Sequence[str], *, short: bool) -> dict[str, str]:
    """Paths as headings of columns: whole, or their shortest ends of at least two keys that distinguish them."""
    if not short:
        return {path: path for path in paths}
    found = {}
    for path in paths:
        keys = path.split(".")
        ways = (".".join(keys[-count:]) for count in range(min(2, len(keys)), len(keys) + 1))
        alone = (tail for tail in ways if sum(f".{other}".endswith(f".{tail}") for other in paths) == 1)
        found[path] = next(alone, path)
    return found
