"""Evaluation of scenarios: at one point, over a grid, and what explains a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from whatif.api.common import AnyScenario, load, sampling_of
from whatif.axes import Axis, Grid
from whatif.core.result import Result, run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import file_axes, grid_of, parse_axis
from whatif.core.uncertainty import Sampling
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.models.quantities import FloatArray

Values = str | Sequence[str | int | float] | FloatArray
"""What a parameter is swept over: the text of the command line, or values; an array is in base units."""


def run(scenario: AnyScenario, *, samples: Sampling | int | None = None, **changes: Any) -> Result:
    """The answer at one point, with bands of so many samples of what is uncertain; `changes` are those of `load`."""
    return run_whole(load(scenario, **changes), Grid(), sampling_of(samples))


def sweep(
    scenario: AnyScenario, *axes: Mapping[str, Values], samples: Sampling | int | None = None, **changes: Any
) -> Result:
    """The answer over a grid: one axis a mapping of parameters, which move together; without any, the scenario's
    own."""
    question = load(scenario, **changes)
    limit = DEFAULT_MAXIMUM_POINTS
    swept = [_axis(axis, question) for axis in axes] or file_axes(question.program, limit)
    return run_whole(question, grid_of(swept, limit), sampling_of(samples))


def _axis(parameters: Mapping[str, Values], question: Scenario) -> Axis:
    program = question.program
    texts = {path: _texts(path, values, question) for path, values in parameters.items()}
    return parse_axis(next(iter(parameters)), texts, program, DEFAULT_MAXIMUM_POINTS)


def _texts(path: str, values: Values, question: Scenario) -> str | Sequence[str | int | float]:
    """Values as a person would write them: an array gets the unit of its parameter."""
    if not isinstance(values, np.ndarray):
        return values
    parameter = question.program.parameters.get(path)
    unit = "" if parameter is None or str(parameter.dimension) == "1" else f" {parameter.dimension}"
    return [f"{float(value)!r}{unit}" for value in values.ravel()]
