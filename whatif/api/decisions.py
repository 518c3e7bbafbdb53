"""Decisions: which machine, which value, why results differ, and what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whatif.api.common import AnyScenario, load, sampling_of
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.studies.ranking import Ranking, ranking
from whatif.studies.threshold import SeekResult, parse_target
from whatif.studies.threshold import seek as seek_parameter


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
    return ranking(questions, platforms, weights, references, result, sampling_of(samples))


def seek(scenario: AnyScenario, vary: str, target: str, **changes: Any) -> SeekResult:
    """The value of the parameter `vary`, nearest to the present one, that meets a target: `iteration_time <= 5 ms`."""
    program = load(scenario, **changes).program
    return seek_parameter(program, vary, parse_target(target, program))


def _name(scenario: AnyScenario) -> str:
    return Path(scenario.document.name).stem if isinstance(scenario, Scenario) else str(scenario)
