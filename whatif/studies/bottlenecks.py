"""Bottlenecks in order: the result with one part infinitely fast, then with the next one too, and so on.

A part is one rate of a node, all rates and times of one distance of the network, or the fixed time of a phase. Each
step makes the part ideal that saves most of what the steps before have left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.answer_words import larger_is_better
from whatif.core.evaluate import Values, evaluate
from whatif.core.result import NO_NUMBER
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import LESS, BarChart, BarRow
from whatif.plotting.description import AxisDescription
from whatif.schema.parameters import Parameter
from whatif.studies.bar_charts import MOST_BARS, share_bar, short_path
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension, format_quantity

_INFINITE: Final = 1e12
"""Factor of an ideal rate."""
_NOTHING: Final = 1e-9
_LEAST: Final = 1e-3
"""The ladder ends at the first step that saves a smaller share of the present result."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One step of the ladder: a part that becomes ideal in addition to those before."""

    part: str
    """A parameter, a distance of the network such as `platform.network.inter_node`, or a phase."""
    saved: float
    left: float
    """The result with this part and all before ideal."""


@dataclass(frozen=True, eq=False, repr=False)
class Bottlenecks(StudyResult):
    """Bottlenecks of a result, the worst first, with the remaining result after each."""

    result: str
    time: float
    """The present result."""
    rungs: tuple[Bottleneck, ...]
    dimension: Dimension = SECOND
    optional_columns = (["what_is_left"],)

    def table(self) -> Table:
        """One row per part: time saved, and the result with this part and all above ideal."""
        columns = {"ideal": None, "saved": self.dimension, "left": self.dimension, "share_left": ONE}
        rows = [[rung.part, rung.saved, rung.left, rung.left / self.time] for rung in self.rungs]
        return Table.of_rows(columns, rows, {"result": self.result, "time": f"{self.time!r}"}, ("share_left",))

    def readable_table(self) -> Table:
        """The table with a bar per row."""
        return self.table().with_texts("what_is_left", (share_bar(rung.left / self.time) for rung in self.rungs))

    def picture(self) -> BarChart:
        """Bars of the remaining result with the worst part ideal, then with the next one ideal, too."""
        rows = [self._bar(short_path(rung.part), rung.left, LESS) for rung in self.rungs[:MOST_BARS]]
        axis = AxisDescription(self.result, self.dimension)
        title = f"cumulative idealisation of {self.result}"
        return BarChart(title, axis, (self._bar("present", self.time, "faint"), *rows))

    def _bar(self, label: str, left: float, style: str) -> BarRow:
        share = f"  {left / self.time:.0%}" if self.time else ""
        return BarRow(label, 0.0, left, style, f"{format_quantity(left, self.dimension)}{share}")

    def summary(self) -> tuple[str, ...]:
        """The present result."""
        now = format_quantity(self.time, self.dimension, 4)
        return (f"{self.result}: {now} now; each row is ideal with all above",)


def ladder(program: Program, result: str = "iteration_time") -> Bottlenecks:
    """Bottlenecks of a result column or phase (`terms.NAME`), until one saves less than 0.1 % of it.

    Rates become 10^12 times as high, times 0. Raise `UsageError` for an unknown result and for a rate, which is no sum
    to take parts from, `InfeasiblePointError` if it has no value at present.
    """
    term = program.term_of(result)
    if larger_is_better(program.dimension_of(result)):
        raise UsageError(f"`{result}` is a rate: --show ladder needs a result to lower, such as a time or an energy")
    parts = ideal_parts(program, result)
    ideal: list[str] = []
    rungs: list[Bottleneck] = []
    first = left = float(_results(program, term, [[]], parts)[0])
    while len(ideal) < len(parts):
        candidates = [name for name in parts if name not in ideal]
        found = _results(program, term, [[*ideal, name] for name in candidates], parts)
        best = int(np.argmin(found))
        saved = left - float(found[best])
        if not saved > _LEAST * first:
            break
        # Ideal rates are finite: a trillionth of a time counts as 0.
        left = float(found[best]) if found[best] > _NOTHING * first else 0.0
        ideal.append(candidates[best])
        rungs.append(Bottleneck(candidates[best], saved, left))
    return Bottlenecks(result, first, tuple(rungs), program.dimension_of(result))


def ideal_parts(program: Program, result: str) -> dict[str, list[Parameter]]:
    """Parts that can become ideal, by name, with their parameters; raise `UsageError` for an unknown result."""
    parts: dict[str, list[Parameter]] = {}
    inputs = program.inputs_of(program.term_of(result))
    for path, parameter in program.parameters.items():
        ideal = parameter.dimension == SECOND or larger_is_better(parameter.dimension)
        if ideal and path in inputs and parameter.independent:
            parts.setdefault(_part(path), []).append(parameter)
    return parts


def _part(path: str) -> str:
    """Part of a parameter: the distance of the network, the phase of the application, or the parameter itself."""
    if path.startswith(("platform.network.", "application.phases.")):
        return ".".join(path.split(".")[:3])
    return path


def _results(
    program: Program, term: str, ideals: Sequence[Sequence[str]], parts: Mapping[str, list[Parameter]]
) -> FloatArray:
    """Result with some parts ideal [point]; infinite for an infeasible point."""
    swept: Values = {}
    for name, parameters in parts.items():
        chosen = np.array([name in ideal for ideal in ideals])
        for parameter in parameters if chosen.any() else ():
            swept[parameter.path] = np.where(chosen, _ideal(parameter), float(parameter.value))
    evaluation = evaluate(program, swept)
    numbers = np.broadcast_to(evaluation.masked(term), len(ideals))
    if not swept and not np.isfinite(numbers).all():
        raise InfeasiblePointError(f"infeasible: {evaluation.obstacle() or NO_NUMBER}")
    return np.where(np.isfinite(numbers), numbers, np.inf)


def _ideal(parameter: Parameter) -> float:
    if larger_is_better(parameter.dimension):
        return float(parameter.value) * _INFINITE
    assert parameter.field is not None
    return 0.0 if parameter.field.domain.accepts(0.0) else float(parameter.value) / _INFINITE
