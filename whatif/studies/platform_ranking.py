"""Ranking of platforms with weights and references given as text, and nodes required for targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from whatif.core.calibration_notes import model_notes
from whatif.core.machine_notes import constant_notes, note_on, notes_by_machine, size_notes
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import NOTHING_UNCERTAIN, Sampling
from whatif.errors import InfeasiblePointError, InvalidFileError, UsageError
from whatif.studies.ranking import Ranking, ranking
from whatif.studies.required_nodes import required_nodes
from whatif.studies.study_result import values_on_all_platforms
from whatif.units import Quantity, UnitError, parse_quantity
from whatif.vocabulary import RankingView


def ranking_study(
    scenarios: Mapping[str, Scenario],
    platforms: Sequence[str],
    *,
    weights: Mapping[str, str | float],
    references: Mapping[str, str | float],
    measured: Mapping[str, str | float],
    within: Mapping[str, str],
    result: str,
    sampling: Sampling | None,
    show: RankingView,
) -> Ranking:
    """Ranking of platforms over applications by name.

    Weights and references are numbers, or texts such as `2` and `120 s`; `within` states a target per application,
    such as `total_time <= 1 s`, for which the nodes required on each platform are a column.
    Raise `UsageError` for a target with `show="commitment"`, where it has no effect.
    """
    if within and show != "ranking":
        raise UsageError(f"--within: no effect with --show {show}")
    for name in within:
        if name not in scenarios:
            raise UsageError(f"--within: `{name}` is not one of the applications {', '.join(scenarios)}")
    counted = {name: _weight(weight) for name, weight in weights.items()}
    given = {"--reference": references, "--measured": measured}
    read = {option: {name: _result(option, item) for name, item in its.items()} for option, its in given.items()}
    numbers = [
        {name: item.value if isinstance(item, Quantity) else item for name, item in its.items()}
        for its in read.values()
    ]
    found = ranking(scenarios, list(dict.fromkeys(platforms)), counted, numbers[0], result, sampling, numbers[1])
    for option, its in read.items():
        for name, item in its.items():
            if isinstance(item, Quantity) and item.dimension != found.dimension:
                raise UsageError(f"{option}: that of {name} must be in {found.dimension}, as {result} is")
    remarks = [*_about_machines(scenarios, found), *_other_bases(scenarios, found)]
    remarks += [NOTHING_UNCERTAIN] if sampling is not None and not found.drawn else []
    required = {name: _required(scenarios[name], name, platforms, target, remarks) for name, target in within.items()}
    shared = values_on_all_platforms(*scenarios.values())
    return replace(found, show=show, required=required, remarks=(*remarks, *shared))


def _weight(weight: str | float) -> float:
    try:
        return float(weight)
    except ValueError:
        raise UsageError(f"--weight: `{weight}` is not a number") from None


def _about_machines(scenarios: Mapping[str, Scenario], found: Ranking) -> Iterator[str]:
    """Notes on each application: its nodes by platform, as platforms are compared at equal numbers of ranks, and the
    error of its predictions at measured runs."""
    for name, scenario in scenarios.items():
        programs = {
            standing.platform: scenario.moved(standing.platform).program
            for standing in found.standings
            if not standing.answers[name].reason
        }
        about = notes_by_machine({platform: model_notes(program) for platform, program in programs.items()})
        yield from (note_on(name, note) for note in (*size_notes(programs), *about, *constant_notes(programs)))


def _other_bases(scenarios: Mapping[str, Scenario], found: Ranking) -> Iterator[str]:
    """Platforms whose memory bandwidth is a peak, or of unknown basis, if those of others are sustained."""
    scenario = next(iter(scenarios.values()))
    sustained: dict[str, bool] = {}
    for standing in found.standings:
        with suppress(InvalidFileError):
            gpu = scenario.moved(standing.platform).program.loaded.scenario.platform.node.gpu
            if gpu is not None:
                sustained[standing.platform] = gpu.is_sustained
    peaks = [name for name, known in sustained.items() if not known]
    if peaks and len(peaks) < len(sustained):
        yield f"warning: dram_bandwidth of {', '.join(peaks)} is a peak or of unknown basis, of the others sustained"


def _result(option: str, stated: str | float) -> Quantity | float:
    """Result as a quantity; a number is in the base unit of the result that is compared."""
    try:
        found = parse_quantity(stated) if isinstance(stated, str) else stated
    except UnitError as error:
        raise UsageError(f"{option}: {error}") from None
    if not 0 < (found.value if isinstance(found, Quantity) else found) < math.inf:
        raise UsageError(f"{option}: `{stated}` must be greater than 0, such as `120 s`")
    return found


def _required(
    scenario: Scenario, name: str, platforms: Sequence[str], target: str, remarks: list[str]
) -> dict[str, float]:
    """Nodes required on each platform; NaN, and a remark, if no number of nodes meets the target."""
    nodes: dict[str, float] = {}
    for platform in platforms:
        try:
            found = required_nodes(scenario.moved(platform), target)
        except (InfeasiblePointError, InvalidFileError) as problem:
            nodes[platform] = math.nan
            remarks.append(f"{name} on {platform}: {problem}")
            continue
        nodes[platform] = found.count
        if found.doubt:
            remarks.append(f"{name} on {platform}: {found.doubt}")
    return nodes
