"""whatif as a library: the verbs of the command line as functions, by the same names.

>>> import whatif
>>> answer = whatif.run("jacobi2d", platform="frontier", sets={"application.rank_count": 64})
>>> round(float(answer["iteration_time"]) * 1e3, 2) > 0
True
>>> swept = whatif.sweep("jacobi2d", {"platform.node.gpu_count": [2, 4, 6]})
>>> swept.to_pandas()["platform.node.gpu_count"].tolist()
[2.0, 4.0, 6.0]

A scenario is a shipped name, a path, or what `load` returned. What is wrong raises `WhatifError`, with the message that
the command line prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whatif.axes import Axis, Grid
from whatif.core.result import Result, run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import file_axes, grid_of, parse_axis
from whatif.core.uncertainty import Sampling
from whatif.errors import WhatifError
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.models.quantities import FloatArray
from whatif.studies.attribution import Attribution, attribute
from whatif.studies.elasticity import Elasticity, elasticities
from whatif.studies.ranking import Ranking, ranking
from whatif.studies.threshold import SeekResult, parse_target
from whatif.studies.threshold import seek as seek_parameter

AnyScenario = str | Path | Scenario
"""A shipped name, a path, or a scenario that was loaded or built."""
Values = str | Sequence[str | int | float] | FloatArray
"""What a parameter is swept over: the text of the command line, or values; an array is in base units."""


def load(
    scenario: AnyScenario,
    *,
    platform: str | None = None,
    sets: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
) -> Scenario:
    """A scenario, on another platform and with other values, where they are given.

    `sets` are texts, as `--set` has them, or plain numbers for counts and fractions; `folders` hold platforms.
    Raise `InvalidFileError` with all that is wrong with the files, `UsageError` for an unknown name.
    """
    if isinstance(scenario, Scenario):
        both = {**scenario.sets, **(sets or {})}
        return scenario.changed(both, platform or scenario.platform) if sets or platform else scenario
    return Scenario.open(scenario, platform=platform, sets=sets, folders=tuple(Path(folder) for folder in folders))


def run(scenario: AnyScenario, *, samples: Sampling | int | None = None, **changes: Any) -> Result:
    """The answer at one point, with bands of so many samples of what is uncertain; `changes` are those of `load`."""
    return run_whole(load(scenario, **changes), Grid(), _sampling(samples))


def sweep(
    scenario: AnyScenario, *axes: Mapping[str, Values], samples: Sampling | int | None = None, **changes: Any
) -> Result:
    """The answer over a grid: one axis a mapping of parameters, which move together; without any, the scenario's
    own."""
    question = load(scenario, **changes)
    limit = DEFAULT_MAXIMUM_POINTS
    swept = [_axis(axis, question) for axis in axes] or file_axes(question.program, limit)
    return run_whole(question, grid_of(swept, limit), _sampling(samples))


def compare(
    scenarios: Sequence[AnyScenario] | Mapping[str, AnyScenario],
    platforms: Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    result: str = "total_time",
    samples: Sampling | int | None = None,
) -> Ranking:
    """Machines ranked over applications (see `whatif.studies.ranking.ranking`); reference times are in s."""
    named = scenarios if isinstance(scenarios, Mapping) else {_name(item): item for item in scenarios}
    questions = {name: load(item) for name, item in named.items()}
    return ranking(questions, platforms, weights, references, result, _sampling(samples))


def seek(scenario: AnyScenario, vary: str, target: str, **changes: Any) -> SeekResult:
    """The value of the parameter `vary`, nearest to the present one, that meets a target: `iteration_time <= 5 ms`."""
    program = load(scenario, **changes).program
    return seek_parameter(program, vary, parse_target(target, program))


def diff(first: AnyScenario, second: AnyScenario, result: str = "iteration_time", **options: Any) -> Attribution:
    """What explains that a result differs between two scenarios; options as of `attribution.attribute`."""
    return attribute(load(first).program, load(second).program, result, **options)


def sensitivity(scenario: AnyScenario, result: str = "iteration_time", **changes: Any) -> tuple[Elasticity, ...]:
    """The elasticity of a result in every value that it depends on, the largest first."""
    return elasticities(load(scenario, **changes).program, result)


def _sampling(samples: Sampling | int | None) -> Sampling | None:
    return Sampling(samples) if isinstance(samples, int) else samples


def _name(scenario: AnyScenario) -> str:
    return Path(scenario.document.name).stem if isinstance(scenario, Scenario) else str(scenario)


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


__all__ = [
    "Attribution",
    "Elasticity",
    "Ranking",
    "Result",
    "Sampling",
    "Scenario",
    "SeekResult",
    "WhatifError",
    "compare",
    "diff",
    "load",
    "run",
    "seek",
    "sensitivity",
    "sweep",
]
