"""Remarks on a request that are known before it is evaluated."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from whatif.axes import Grid
from whatif.core.calibration_notes import model_notes
from whatif.core.collective_notes import collective_notes, mesh_notes
from whatif.core.context import Context
from whatif.core.evaluate import evaluate
from whatif.core.kept_values import kept_value_notes
from whatif.core.kernel_notes import kernel_notes, sharing_notes
from whatif.core.machine_notes import PLACED, constant_notes, notes_by_machine, placement, size_notes
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import PLATFORM_PARAMETER, is_machine
from whatif.core.term import Program
from whatif.core.uncertainty import NOTHING_UNCERTAIN, sampled_program, uncertain
from whatif.core.wiring import Wiring
from whatif.plugins import application_kind, resolve
from whatif.schema.application import Application, HaloPhase, TransferPhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.load import stated_platform
from whatif.schema.parameters import worst
from whatif.schema.relative import is_relative
from whatif.units import counted


def request_notes(request: EvaluationRequest) -> tuple[str, ...]:
    """Scenario, platform, lowest grade of its values, axes, and samples of uncertain values."""
    program, grid, sampling = request.scenario.program, request.grid, request.sampling
    machines = request.scenario.machines(grid)
    notes = [
        program.loaded.question or program.loaded.name,
        "; ".join(_basis(request.scenario, grid)),
        *notes_by_machine({name: _program_notes(its, grid) for name, its in machines.items()}),
        *size_notes(machines, grid.parameters()),
        *constant_notes(machines),
        *_unused_overrides(request.scenario, grid),
        *_idle_overrides(request.scenario, grid, machines.values()),
    ]
    if sampling is not None:
        count = len(uncertain(sampled_program(program, sampling), sampling, grid.parameters()))
        bands = f"{sampling.names[0]} to {sampling.names[2]} of {sampling.count:,} samples"
        notes.append(f"{counted(count, 'uncertain value')}; {bands}" if count else NOTHING_UNCERTAIN)
    elif any(parameter.distribution is not None for parameter in program.parameters.values()):
        notes.append("some values are distributions: --samples 1024 shows their effect on the results")
    return tuple(notes)


def _unused_overrides(scenario: Scenario, grid: Grid) -> Iterator[str]:
    """Warning of overrides of swept parameters, unless swept values are relative to them."""
    for path, text in ((path, text) for axis in grid.axes for path, text in axis.texts.items()):
        if path in scenario.overrides and not any(map(is_relative, re.split(r",|\.\.", text))):
            yield f"warning: --set {path}={scenario.overrides[path]}: no effect, as the sweep gives its values"


def _idle_overrides(scenario: Scenario, grid: Grid, programs: Collection[Program]) -> Iterator[str]:
    """Warning of overrides of numbers that no result depends on, unless choices are swept: some may need them."""
    swept = grid.parameters()
    if any(its.parameters[path].structural for its in programs for path in swept if path in its.parameters):
        return
    yield from idle_overrides({path: its for path, its in scenario.overrides.items() if path not in swept}, programs)


def idle_overrides(
    overrides: Mapping[str, Any], programs: Collection[Program], terms: Collection[str] = ()
) -> Iterator[str]:
    """Warning of overrides of numbers that no result, and none of some further terms, depends on."""
    for path, text in overrides.items():
        found = [program for program in programs if path in program.parameters]
        matters = any(its.parameters[path].structural or path in its.reached | its.upstream(terms) for its in found)
        if found and not matters:
            yield f"warning: --set {path}={text}: no result depends on it, see `whatif sensitivity`"


def _basis(scenario: Scenario, grid: Grid) -> Iterator[str]:
    """Platform, placement and lowest grade, as far as they are the same at all points, and the axes."""
    program, swept = scenario.program, grid.parameters()
    if PLATFORM_PARAMETER not in swept:
        name = f"{program.loaded.scenario.platform.name}{_replaced(scenario)}"
        yield ": ".join(filter(None, (f"platform {name}", _placement(program, swept))))
    if not any(map(is_machine, swept)):
        yield f"lowest grade of its values: {program.grade}{_energy(program)}"
    yield " x ".join(f"{' + '.join(axis.parameters)} ({len(axis)})" for axis in grid.axes) or "one point"


def _placement(program: Program, swept: Collection[str]) -> str:
    """Ranks and nodes; empty if a swept parameter may change them."""
    numeric = {path for path, parameter in program.parameters.items() if not parameter.structural}
    free = numeric - program.upstream(PLACED)
    return placement(evaluate(program.part(PLACED))) if free.issuperset(swept) else ""


def _replaced(scenario: Scenario) -> str:
    """Name of the file's own platform, which its question may state, if another one replaces it; else empty."""
    own = None if scenario.platform is None else stated_platform(scenario.document, scenario.folders)
    return "" if own in (None, scenario.platform) else f" in place of {own}"


def _program_notes(program: Program, grid: Grid) -> tuple[str, ...]:
    """Remarks on the models, kernels, messages and collectives of a program."""
    return (
        *model_notes(program),
        *kept_value_notes(program),
        *kernel_notes(program),
        *sharing_notes(program, grid.arrays()),
        *_message_notes(program),
        *collective_notes(program, grid.arrays()),
        *mesh_notes(program, grid.arrays()),
        *_registered_notes(program, grid),
    )


def _message_notes(program: Program) -> Iterator[str]:
    """Path of the messages between GPUs, and parameters that replace others."""
    application = program.loaded.scenario.application
    sending = any(isinstance(phase, HaloPhase | CollectivePhase) for phase in application.phases.values())
    buffers = Context(Wiring(program.loaded, program.parameters)).buffers if sending else "host"
    if buffers != "host":
        between = "without copies" if buffers == "device" else "through main memory"
        assumed = "" if application.buffers else " (assumed: application.buffers is not stated)"
        library = "GPU-aware, " if buffers == "device" else ""
        yield f"messages between GPUs: {library}over peer links in a link domain, {between} between domains{assumed}"
        yield from _copies_of_messages(application)
    topology = program.loaded.scenario.platform.network.topology
    if application.communication == "shared_links" and getattr(topology, "routing", "") == "adaptive":
        yield "links are simulated with static routes; those of the platform are adaptive"
    for name, phase in application.phases.items() if application.communication == "modelled" else ():
        if isinstance(phase, HaloPhase) and phase.model == "node_aware" and phase.concurrency == "concurrent":
            yield f"{name}: `concurrency` has no effect with `node_aware`, whose ranks send one message after another"
    yield from dict.fromkeys(term.note for term in program.terms.values() if ": those of " in term.note)


def _copies_of_messages(application: Application) -> Iterator[str]:
    """Phases that copy the messages of a halo between GPU and host, where these leave from the GPU."""
    for name, phase in application.phases.items():
        if isinstance(phase, TransferPhase) and phase.halo and phase.direction in ("host_to_device", "device_to_host"):
            copied = f"copies the messages of {phase.halo}, which leave from the GPU"
            yield f"warning: {name}: {copied}; `--set application.phases.{name}=none` removes the copies"


def _registered_notes(program: Program, grid: Grid) -> tuple[str, ...]:
    """Remarks of the plug-in of an application."""
    kind = application_kind(program.loaded.scenario.application)
    return () if kind is None else resolve(kind.remarks)(program, grid.arrays())


def _energy(program: Program) -> str:
    """Lowest grade of energy and cost, where it is lower than that of the times."""
    grade = worst([program.grade, *program.other_grades.values()])
    return "" if grade == program.grade else f" (energy and cost: {grade})"
