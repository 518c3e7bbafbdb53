"""Command that gives a parameter the value that meets a target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.result import has_column
from whatif.core.sweep_figure import Y_COLUMN
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError
from whatif.tui.state import ExplorerState
from whatif.units import exact_quantity, format_quantity, parse_quantity

if TYPE_CHECKING:
    from whatif.schema.parameters import Parameter
    from whatif.studies.search import SearchResult
    from whatif.studies.threshold import SeekResult, Target

_DIGITS: Final = (6, 9)


@dataclass(frozen=True, slots=True)
class Seek:
    """Command that gives a parameter the value nearest to its present one that meets a target.

    A target without a name is one of the drawn result.
    """

    path: str
    target: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the value, and a note of it; raise `WhatifError` if none meets the target."""
        if takes_minutes(state):
            raise UsageError("every point is simulated, which takes long: use `whatif seek`, which shows its progress")
        found, target, value = self._found(state)
        present = state.session.parameter(self.path)
        if value == float(present.value):
            return replace(state, note=f"{target} is already met{_result(found, present=True)}")
        changed = state.session.edit(self.path, _text(state.session.program, present, value, target))
        adopted = f"{self.path.rpartition('.')[2]} = {changed.parameter(self.path).text()}"
        return replace(state.with_session(changed), note=f"{target} is met by {adopted}{_result(found)}")

    def sought(self, state: ExplorerState) -> str:
        """Text of the value; raise `WhatifError` if none meets the target."""
        _, target, value = self._found(state)
        return _text(state.session.program, state.session.parameter(self.path), value, target)

    def _found(self, state: ExplorerState) -> tuple[SeekResult | SearchResult, Target, float]:
        from whatif.api.searches import seek  # noqa: PLC0415 - not for the first frame
        from whatif.studies.search_space import own_number  # noqa: PLC0415
        from whatif.studies.threshold import SeekResult  # noqa: PLC0415

        own_number(self.path, state.session.parameter(self.path))
        text = f"{drawn(state)} {self.target}" if self.target.startswith(("<", ">")) else self.target
        found = seek(state.session.scenario, self.path, text)
        if not found.is_met:
            raise InfeasiblePointError(found.obstacle())
        target = found.target if isinstance(found, SeekResult) else found.goal.targets[0]
        return found, target, float(found.values[self.path])

    def line(self) -> str:
        """`seek PATH = TARGET`."""
        return f"seek {self.path} = {self.target}"


def _result(found: SeekResult | SearchResult, *, present: bool = False) -> str:
    """The result that the target is about, at the value found or at the present one, where the search states it."""
    from whatif.studies.threshold import SeekResult  # noqa: PLC0415 - not for the first frame

    if not isinstance(found, SeekResult):
        return ""
    number = found.now if present else found.then
    return f": {found.target.result} = {format_quantity(number, found.target.dimension)}"


def takes_minutes(state: ExplorerState) -> bool:
    """Whether every point is simulated, so that a search takes long."""
    from whatif.studies.search_space import is_simulated  # noqa: PLC0415 - not for the first frame

    return is_simulated(state.session.program)


def drawn(state: ExplorerState) -> str:
    """Result of a target that names none."""
    return state.view.y if has_column(state.session.point, state.view.y) else Y_COLUMN


def _text(program: Program, parameter: Parameter, value: float, target: Target) -> str:
    """Value in as few digits as still meet the target: rounded away from the present value, else exact."""
    from whatif.studies.search_space import term_named  # noqa: PLC0415 - not for the first frame

    term = term_named(target.result, program)
    for text in () if parameter.field is None or parameter.field.domain.whole else _rounded(parameter, value):
        number = np.array([parse_quantity(text).value])
        met = target.met(evaluate(program, {parameter.path: number}).numbers(term)).all()
        if met and parameter.field is not None and parameter.field.domain.accepts(float(number[0])):
            return text
    return exact_quantity(value, parameter.dimension)


def _rounded(parameter: Parameter, value: float) -> Iterator[str]:
    away = math.copysign(0.5, value - float(parameter.value)) * math.copysign(1.0, value)
    for digits in _DIGITS:
        yield format_quantity(value * (1 + away * 10.0 ** (1 - digits)), parameter.dimension, digits)
