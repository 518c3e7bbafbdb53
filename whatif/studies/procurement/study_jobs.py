"""Jobs of a study: time, nodes, energy and power of every application on every machine, at the samples that all share.

Arrays have one dimension: place 0 is the expected value, with all uncertain values at their centres and the mean error
of the models corrected; the others are samples. Sample i of every job uses the same values, so that errors that
machines or applications have in common do not blur their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from whatif.core.energy import BUSY_POWER
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.parameter_paths import NODE_COUNT, NODES_NEEDED, RANK_COUNT
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.core.uncertainty import Sampling, sample_axis, sampled_program, shared_keys
from whatif.errors import InvalidFileError
from whatif.models.quantities import FloatArray
from whatif.schema.load import load_platform
from whatif.schema.study_file import StudyFile
from whatif.schema.study_spec import PRESENT
from whatif.studies.procurement.placing import Adjustment, adjustments, located, placed
from whatif.studies.required_nodes import RequiredNodes

_PLACES: Final = "placement.ranks_per_node"


@dataclass(frozen=True, eq=False)
class StudyJob:
    """An application on a machine; NaN for numbers that are unknown, or of a job that cannot run."""

    time: FloatArray
    node_count: FloatArray
    energy: FloatArray
    """Energy of the job in J, with cooling."""
    power: FloatArray
    """Power of one of its nodes under load in W, with cooling."""
    predicted: float = np.nan
    """Time as `whatif run` has it: without the mean error of the models, and without the factor of the runs."""
    reason: str = ""
    """Reason why the job cannot run; empty if it can."""
    lacks_nodes: bool = False
    """Whether its ranks need more nodes than the machine has."""
    grade: str = ""
    """Lowest grade of the values that its time rests on."""
    unknown: tuple[str, ...] = ()
    """Parameters that the energy lacks."""
    outside: tuple[str, ...] = ()
    """Inputs outside the range of their fits."""
    partly_used: tuple[str, ...] = ()
    """Warning of a job that uses its only node in part."""
    assumed: tuple[str, ...] = ()
    """Values of the platform that were assumed, by path, and reach the time."""

    @property
    def correction(self) -> float:
        """Expected time over the predicted one."""
        return float(self.time[0] / self.predicted)


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs by machine and application, and the adjustments to runs of the present machine."""

    by_machine: Mapping[str, Mapping[str, StudyJob]]
    adjustments: Mapping[str, Adjustment]
    scenarios: Mapping[str, Mapping[str, Scenario]]

    def of(self, machine: str) -> Mapping[str, StudyJob]:
        """Jobs of a machine by application."""
        return self.by_machine[machine]


@dataclass
class JobCache:
    """Compiled scenarios, adjustments, jobs and nodes of targets of studies that differ in a few values."""

    scenarios: dict[str, Scenario] = field(default_factory=dict)
    adjusted: dict[str, dict[str, Adjustment]] = field(default_factory=dict)
    jobs: dict[str, StudyJob] = field(default_factory=dict)
    required: dict[str, RequiredNodes | str] = field(default_factory=dict)
    """Fewest nodes that meet a target, or the reason why none do."""


def jobs_of(study: StudyFile, sampling: Sampling, cache: JobCache) -> Jobs:
    """Jobs of all machines and applications of a study.

    Raise `InvalidFileError` for files that cannot be used; a job that cannot run has a reason instead.
    """
    adjusted = _adjusted(study, cache)
    scenarios = {
        machine: {name: _kept(placed(study, name, machine, adjusted[name]), cache) for name in study.spec.mix}
        for machine in study.spec.machines
    }
    programs = [
        _compiled(study, name, machine, scenario)
        for machine, its in scenarios.items()
        for name, scenario in its.items()
    ]
    alike = replace(sampling, keys=shared_keys(filter(None, programs), sampling))
    found = {
        machine: {name: _job(scenario, alike, cache) for name, scenario in its.items()}
        for machine, its in scenarios.items()
    }
    return Jobs(_scaled(found, adjusted, sampling), adjusted, scenarios)


def _adjusted(study: StudyFile, cache: JobCache) -> dict[str, Adjustment]:
    """Adjustments of a study, or of an earlier one with the same applications on the same machine."""
    parts = {name: part.model_copy(update={"weight": 1.0, "target": None}) for name, part in study.spec.mix.items()}
    key = repr((study.document.name, study.spec.present, parts, study.spec.site))
    if key not in cache.adjusted:
        cache.adjusted[key] = adjustments(study)
    return cache.adjusted[key]


def _kept(scenario: Scenario, cache: JobCache) -> Scenario:
    """The same scenario of an earlier study, which is compiled."""
    return cache.scenarios.setdefault(scenario_key(scenario), scenario)


def scenario_key(scenario: Scenario) -> str:
    """Text that distinguishes scenarios."""
    return repr((scenario.document.name, scenario.platform, scenario.folders, sorted(scenario.overrides.items())))


def _compiled(study: StudyFile, application: str, machine: str, scenario: Scenario) -> Program | None:
    """Compiled scenario; None if this machine lacks what the application needs.

    Raise `InvalidFileError` for a value of the study that is wrong, and for an invalid platform.
    """
    try:
        return scenario.program
    except InvalidFileError as problem:
        found = located(study, application, machine, problem)
        if machine == PRESENT or found.problems != problem.problems:
            raise found from None
        load_platform(study.source(study.spec.machines[machine].platform), (study.folder,))
        return None


def _job(scenario: Scenario, sampling: Sampling, cache: JobCache) -> StudyJob:
    key = f"{scenario_key(scenario)} {sampling}"
    if key not in cache.jobs:
        cache.jobs[key] = _evaluated(scenario, sampling)
    return cache.jobs[key]


def _evaluated(scenario: Scenario, sampling: Sampling) -> StudyJob:
    """Job as expected, and at every sample."""
    try:
        program = scenario.program
    except InvalidFileError as error:
        nothing = np.full(sampling.count + 1, np.nan)
        reason = "; ".join(dict.fromkeys(item.message for item in error.problems))
        return StudyJob(nothing, nothing, nothing, nothing, reason=reason)
    plain = evaluate(program)
    sampled = sampled_program(program, sampling)
    axis = sample_axis(sampled, sampling)
    expected, drawn = (evaluate(sampled, its) for its in ({}, {} if axis is None else axis.parameters))
    time, nodes, used, power = (_column(expected, drawn, term, sampling.count) for term in amounts_of(program))
    return StudyJob(
        time,
        nodes,
        used,
        power,
        float(plain.column("total_time")),
        reason=_reason(plain),
        lacks_nodes=_needs_more_nodes(plain),
        grade=program.grade,
        unknown=program.missing.get("total_energy", ()),
        outside=tuple(extrapolations(plain)),
        partly_used=tuple(_empty_places(plain)),
        assumed=tuple(_assumed(program)),
    )


def _empty_places(evaluation: Evaluation) -> Iterator[str]:
    """Warning of a job that uses at most half of the cores of its only node: its ranks may share one socket."""
    scenario = evaluation.program.loaded.scenario
    places, ranks = (float(evaluation.values.get(term, np.nan)) for term in (_PLACES, RANK_COUNT))
    if not scenario.on_gpus and 2 * ranks <= places:
        yield f"its {ranks:,.0f} ranks use part of one node, which holds {places:,.0f} (application.ranks_per_node)"


def _reason(evaluation: Evaluation) -> str:
    """Reason why a job cannot run; a job that needs more nodes than available has no other."""
    if _needs_more_nodes(evaluation):
        ranks, needed, available = (float(evaluation.values[term]) for term in (RANK_COUNT, NODES_NEEDED, NODE_COUNT))
        return f"{ranks:,.0f} ranks need {needed:,.0f} nodes, the machine has {available:,.0f}"
    takes_no_time = float(evaluation.column("total_time")) == 0
    return "a job takes no time" if takes_no_time else evaluation.obstacle()


def _needs_more_nodes(evaluation: Evaluation) -> bool:
    return float(evaluation.values[NODES_NEEDED]) > float(evaluation.values[NODE_COUNT])


def amounts_of(program: Program) -> tuple[str, str, str, str]:
    """Terms of time, nodes, energy and power of a node; the last two are empty if the platform states no power."""
    energy = program.columns.get("total_energy", "")
    return program.columns["total_time"], NODES_NEEDED, energy, BUSY_POWER if energy else ""


def _column(expected: Evaluation, drawn: Evaluation, term: str, count: int) -> FloatArray:
    """Expected value of a term, then that at every sample; NaN without the term."""
    if not term:
        return np.full(count + 1, np.nan)
    return np.concatenate(
        [np.atleast_1d(expected.numbers(term)), np.broadcast_to(np.atleast_1d(drawn.numbers(term)), count)]
    )


def _assumed(program: Program) -> Iterator[str]:
    """Assumed values of the platform that some result depends on."""
    for path in sorted(program.reached):
        parameter = program.parameters.get(path)
        if parameter is not None and parameter.grade == "assumed" and path.startswith("platform."):
            yield path


def _scaled(
    found: Mapping[str, Mapping[str, StudyJob]], adjusted: Mapping[str, Adjustment], sampling: Sampling
) -> dict[str, dict[str, StudyJob]]:
    """Jobs times measured / predicted of their application on the present machine.

    They lose the error that the prediction for the present machine has, and the samples gain that of the mean of its
    runs.
    """
    scaled = {machine: dict(its) for machine, its in found.items()}
    for number, (name, item) in enumerate(adjusted.items()):
        base = found[PRESENT][name]
        if item.factor is None or base.reason:
            continue
        noise = np.random.default_rng((sampling.seed, number)).normal(0.0, item.error, sampling.count)
        factor = item.factor * np.concatenate([[1.0], np.exp(noise)]) * base.predicted / base.time
        for its in scaled.values():
            its[name] = replace(its[name], time=its[name].time * factor, energy=its[name].energy * factor)
    return scaled
