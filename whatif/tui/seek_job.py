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
from whatif.units import format_quantity, parse_quantity

if TYPE_CHECKING:
    from whatif.studies.threshold import SeekResult

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
        from whatif.api.searches import seek  # noqa: PLC0415 - not for the first frame
        from whatif.studies.search_space import is_simulated, own_number  # noqa: PLC0415
        from whatif.studies.threshold import SeekResult  # noqa: PLC0415

        program = state.session.program
        if is_simulated(program):
            raise UsageError("every point is simulated, which takes long: use `whatif seek`, which shows its progress")
        own_number(self.path, state.session.parameter(self.path))
        text = f"{drawn(state)} {self.target}" if self.target.startswith(("<", ">")) else self.target
        found = seek(state.session.scenario, self.path, text)
        assert isinstance(found, SeekResult)  # noqa: S101 - one number and one target
        if not found.is_met:
            raise InfeasiblePointError(found.obstacle())
        if found.value == float(found.parameter.value):
            return replace(state, note=f"{found.target} is met as it stands: {_result(found, found.now)}")
        changed = state.session.edit(self.path, _text(program, found))
        value = f"{self.path.rpartition('.')[2]} = {changed.parameter(self.path).text()}"
        words = f"{found.target} is met by {value}: {_result(found, found.then)}"
        return replace(state.with_session(changed), note=words)

    def line(self) -> str:
        """`seek PATH = TARGET`."""
        return f"seek {self.path} = {self.target}"


def _result(found: SeekResult, number: float) -> str:
    return f"{found.target.result} = {format_quantity(number, found.target.dimension)}"


def drawn(state: ExplorerState) -> str:
    """Result of a target that names none."""
    return state.view.y if has_column(state.session.point, state.view.y) else Y_COLUMN


def _text(program: Program, found: SeekResult) -> str:
    """Value in as few digits as still meet the target: rounded away from the present value, else exact."""
    from whatif.studies.search_space import term_named  # noqa: PLC0415 - not for the first frame

    parameter, target = found.parameter, found.target
    term = term_named(target.result, program)
    for text in () if parameter.field is None or parameter.field.domain.whole else _rounded(found):
        value = np.array([parse_quantity(text).value])
        met = target.met(evaluate(program, {parameter.path: value}).numbers(term)).all()
        if met and parameter.field is not None and parameter.field.domain.accepts(float(value[0])):
            return text
    return format_quantity(found.value, parameter.dimension, 17)


def _rounded(found: SeekResult) -> Iterator[str]:
    away = math.copysign(0.5, found.value - float(found.parameter.value)) * math.copysign(1.0, found.value)
    for digits in _DIGITS:
        yield format_quantity(found.value * (1 + away * 10.0 ** (1 - digits)), found.parameter.dimension, digits)
