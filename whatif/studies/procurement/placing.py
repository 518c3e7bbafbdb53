"""Scenarios of a study: every application on every machine, calibrated on runs of the present one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.core.parameter_paths import NODE_COUNT, RANK_COUNT
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, InvalidFileError, Problem, UsageError, WhatifError
from whatif.schema.shipped import looks_like_platform
from whatif.schema.study_file import StudyFile
from whatif.schema.study_spec import PRESENT, flattened, machine_path
from whatif.schema.toml import parse_document
from whatif.studies.calibration import Calibration, calibrate
from whatif.studies.measured_runs import measured_runs, stated_runs
from whatif.studies.run_accuracy import ITERATION, category_ratios
from whatif.studies.run_predictions import MeasuredRuns
from whatif.units import counted, format_quantity

EFFECTIVENESS: Final = "platform.site.power_usage_effectiveness"
_EXPECTED: Final = 0.1
"""Relative scatter that is assumed of a single run."""
_LARGE: Final = 2.0
"""Least factor of measured runs that a study warns of."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Agreement of an application with its runs on the present machine."""

    factor: float | None = None
    """Measured / predicted time on the present machine, a geometric mean, after the corrections; None without runs of a
    whole iteration."""
    error: float = 0.0
    """Standard error of the logarithm of the factor."""
    corrections: Mapping[str, Any] = field(default_factory=dict)
    """Overrides of the scenario: corrections, and accuracy at held-out runs."""
    origin: str = ""
    """Number of the runs and the name of their file; empty without runs."""
    note: str = ""
    """Corrections and factor from the runs, and the machines that they apply to."""
    outside: str = ""
    """Extrapolation of the job beyond the runs, such as more ranks; empty without one."""

    @property
    def is_calibrated(self) -> bool:
        """Whether runs determine any of it."""
        return bool(self.origin)


def placed(study: StudyFile, application: str, machine: str, adjustment: Adjustment) -> Scenario:
    """Scenario of an application on a machine, with the values that the study states for both.

    Raise `InvalidFileError` at the key of the study whose file cannot be used.
    """
    part, stated = study.spec.mix[application], study.spec.machines[machine]
    try:
        scenario = Scenario.open(study.source(part.scenario), folders=(study.folder,))
    except InvalidFileError as problem:
        raise _at(study, f"mix.{application}.scenario", problem) from None
    if looks_like_platform(scenario.document.data):
        raise study.refused(f"mix.{application}.scenario", f"`{part.scenario}` is a platform, not a scenario")
    overrides = {
        **dict(flattened(part.overrides)),
        **adjustment.corrections,
        **_of_site(study),
        **stated.settings(),
        **dict(flattened(part.on.get(machine, {}))),
    }
    if stated.node_count is not None:
        overrides[NODE_COUNT] = int(stated.node_count)
    return scenario.on(study.source(stated.platform)).changed(overrides)


def present_scenario(study: StudyFile) -> Scenario:
    """The first application of the mix on the present machine, with the values of the study, as an unwritten file.

    Raise `InvalidFileError` for files that cannot be used.
    """
    from whatif.files.trace_scenario import free_name

    name = next(iter(study.spec.mix))
    scenario = placed(study, name, PRESENT, Adjustment())
    path = free_name(Path(f"{Path(study.document.name).stem}_{name}.toml"))
    document = parse_document(scenario.to_toml(), str(path), scenario.document.folder)
    return Scenario(document, folders=scenario.folders)


def _of_site(study: StudyFile) -> dict[str, Any]:
    """Overrides of the site of every machine."""
    effectiveness = study.spec.site.power_usage_effectiveness
    return {} if effectiveness is None else {EFFECTIVENESS: float(effectiveness)}


def _at(study: StudyFile, path: str, problem: InvalidFileError) -> InvalidFileError:
    """Problems of a file that the study names, after the place where it names it, unless they have places."""
    if all(item.line for item in problem.problems):
        return problem
    first = problem.problems[0]
    return study.refused(path, f"`{first.file}`: {first.message}")


def located(study: StudyFile, application: str, machine: str, problem: InvalidFileError) -> InvalidFileError:
    """Problems of a placed scenario, at the keys of the study that cause them unless they are those of other files."""
    return InvalidFileError([_located(study, application, machine, item) for item in problem.problems])


def _located(study: StudyFile, application: str, machine: str, item: Problem) -> Problem:
    at = machine_path(machine)
    if item.file == "--platform":
        return study.problem(f"{at}.platform", item.message)
    path = item.file.removeprefix("--set ").partition("=")[0]
    below = path.removeprefix("platform.")
    places = {
        f"mix.{application}.on.{machine}.{path}": path
        in dict(flattened(study.spec.mix[application].on.get(machine, {}))),
        f"{at}.overrides.{below}": path in study.spec.machines[machine].settings(),
        f"mix.{application}.overrides.{path}": path in dict(flattened(study.spec.mix[application].overrides)),
    }
    place = next((place for place, stated in places.items() if stated), "")
    return study.problem(place, item.message) if place else item


def adjustment_of(study: StudyFile, application: str) -> Adjustment:
    """Agreement of an application with its runs on the present machine; neutral without runs.

    Runs calibrate the scenario as `whatif calibrate` does. The mean of measured / predicted that remains is a factor on
    its times on all machines. Raise `InvalidFileError` for runs that do not fit or are of another machine.
    """
    scenario = placed(study, application, PRESENT, Adjustment())
    try:
        scenario.program  # noqa: B018 - compiles it
    except InvalidFileError as problem:
        raise located(study, application, PRESENT, problem) from None
    path = file_of_runs(study, application, scenario)
    if path is None:
        return Adjustment()
    where = f"mix.{application}.{'runs' if study.spec.mix[application].runs else 'scenario'}"
    try:
        return _adjusted(_with_all_nodes(scenario), path)
    except (InvalidFileError, InfeasiblePointError) as problem:
        raise study.refused(where, str(problem)) from None
    except UsageError as problem:
        if study.spec.mix[application].runs is None:
            return Adjustment(note=f"not calibrated: {str(problem).partition(': ')[2]}")
        message = f"{problem}; reference runs must be of the present machine, {study.spec.present.platform}"
        raise study.refused(where, message) from None


def _with_all_nodes(scenario: Scenario) -> Scenario:
    """Scenario on the nodes of the platform's file, if the study states fewer: runs may have taken more of them."""
    own = scenario.changed({path: value for path, value in scenario.overrides.items() if path != NODE_COUNT})
    nodes, own_nodes = (its.program.parameters[NODE_COUNT].value for its in (scenario, own))
    return own if float(own_nodes) > float(nodes) else scenario


def _adjusted(scenario: Scenario, path: Path) -> Adjustment:
    """Corrections and factor that the runs of a file determine. Raise as `measured_runs` does."""
    runs = measured_runs(scenario, path)
    found = _calibration(scenario, path)
    if found is None:
        return _factor(scenario, runs, {}, "")
    cards = {f"accuracy.{name}": card.model_dump() for name, card in found.accuracy_cards.items()}
    corrections = {path: text for path, text in found.calibrated.overrides.items() if path.startswith("calibration.")}
    return _factor(found.calibrated, found.runs, {**corrections, **cards}, _corrections_of(found))


def file_of_runs(study: StudyFile, application: str, scenario: Scenario) -> Path | None:
    """File of runs that the study states, else that of the scenario."""
    part = study.spec.mix[application]
    if part.runs is not None:
        return study.folder / part.runs
    try:
        return stated_runs(scenario)
    except WhatifError:
        return None


def _calibration(scenario: Scenario, path: Path) -> Calibration | None:
    """Corrections that the runs support; None if there are too few, or none lowers the error."""
    try:
        found = calibrate(scenario, path, of_application=True)
    except UsageError:
        return None
    return found if found.corrections else None


def _factor(scenario: Scenario, runs: MeasuredRuns, corrections: Mapping[str, Any], transfer: str) -> Adjustment:
    """Adjustment with the factor that makes the mean of the measured iterations that of the predicted ones."""
    ratios = category_ratios(runs, runs.predicted(scenario)).get(ITERATION)
    build = partial(Adjustment, corrections=corrections, origin=runs.origin, outside=_outside(scenario, runs))
    if ratios is None or not np.isfinite(ratios).any():
        return build(note="; ".join(filter(None, (transfer, "no run measured a whole iteration"))))
    logs = np.log(ratios[np.isfinite(ratios)])
    scatter = logs.std(ddof=1) if logs.size > 1 else _EXPECTED
    factor, words = float(np.exp(logs.mean())), counted(logs.size, "run")
    spread = f", scatter {np.expm1(scatter):.0%}" if logs.size > 1 else ""
    text = f"times x {factor:.3g} on all machines, the mean of {words}{spread}"
    return build(factor, float(scatter / np.sqrt(logs.size)), note="; ".join(filter(None, (transfer, text))))


def _outside(scenario: Scenario, runs: MeasuredRuns) -> str:
    """Extrapolation of the ranks of a job beyond those of its runs; empty without one."""
    ranks, counts = scenario.program.parameters[RANK_COUNT].value, runs.axis.parameters.get(RANK_COUNT)
    if counts is None or not isinstance(ranks, float) or counts.min() <= ranks <= counts.max():
        return ""
    span = f"{counts.min():,.0f} to {counts.max():,.0f}" if counts.min() < counts.max() else f"{counts.min():,.0f}"
    return f"its runs have {span} ranks, the job has {ranks:,.0f}"


def _corrections_of(found: Calibration) -> str:
    """Corrections of the application, in words."""
    values = (format_quantity(found.values[item.path], item.dimension, 3) for item in found.corrections)
    texts = [f"{item.name} = {value}" for item, value in zip(found.corrections, values, strict=True)]
    return f"{', '.join(texts)} on all machines"


def adjustments(study: StudyFile) -> dict[str, Adjustment]:
    """Adjustments of all applications."""
    return {name: adjustment_of(study, name) for name in study.spec.mix}


def remarks(found: Mapping[str, Adjustment]) -> Iterator[str]:
    """Accuracy of each application on its measured runs."""
    for name, item in found.items():
        if item.is_calibrated:
            yield f"{name}: calibrated with {item.origin}: {item.note}"
            if item.factor is not None and not 1 / _LARGE <= item.factor <= _LARGE:
                text = f"its runs take {item.factor:.3g} times the predicted time"
                yield f"warning: {name}: {text}; the cause may not be the same on other machines"
            if item.outside:
                yield f"warning: {name}: {item.outside}"
        else:
            text = item.note or "not calibrated: no runs"
            yield f"{name}: {text}; its band is that of the accuracy of the models"
