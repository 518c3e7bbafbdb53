"""Compilation of a scenario: structural parameters select the terms of every phase, which are summed to results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.energy import wire_energy
from whatif.core.machine_constraints import require_room
from whatif.core.phases.collective import wire_collective
from whatif.core.phases.correction import with_corrections
from whatif.core.phases.fixed import wire_overhead, wire_structured_grid
from whatif.core.phases.gpu_sharing import with_switches
from whatif.core.phases.halo import wire_halo
from whatif.core.phases.host_transfer import wire_transfer
from whatif.core.phases.kernel import wire_kernel, wire_measured_kernel
from whatif.core.phases.matrix_product import wire_gemm
from whatif.core.phases.regression_model import wire_estimates, wire_regression
from whatif.core.term import PhaseTerm, Program, Reference
from whatif.core.whole_values import with_whole_values
from whatif.core.wiring import Wiring
from whatif.errors import did_you_mean
from whatif.models.iteration import iteration_time, occasional_overlap_time, overlap_time, repeated_time, run_time
from whatif.plugins import application_kind, resolve
from whatif.schema.load import Loaded
from whatif.schema.parameters import parameter_table
from whatif.units import ONE, Quantity
from whatif.vocabulary import CATEGORIES


def deferred(reference: str) -> Callable[..., list[PhaseTerm]]:
    """Wirer whose module, with the simulation behind it, is imported when a scenario first needs it."""

    def wire(*arguments: Any) -> list[PhaseTerm]:
        found: list[PhaseTerm] = resolve(reference)(*arguments)
        return found

    return wire


WIRERS: Final[Mapping[str, Callable[[Context, str, Any], list[PhaseTerm]]]] = {
    "kernel": wire_kernel,
    "measured_kernel": wire_measured_kernel,
    "gemm": wire_gemm,
    "halo": wire_halo,
    "collective": wire_collective,
    "transfer": wire_transfer,
    "overhead": wire_overhead,
    "structured_grid": wire_structured_grid,
    "regression": wire_regression,
    "trace": deferred("whatif.core.phases.traced_run:wire_trace"),
}


def compile_scenario(loaded: Loaded) -> Program:
    """Compiled scenario. Raise `InvalidFileError` for errors that only wiring finds, such as units of expressions."""
    wiring = Wiring(loaded, parameter_table(loaded))
    wiring.expressions()
    wiring.parameters = with_whole_values(wiring)
    context = Context(wiring)
    # First, so that the reason of an infeasible point is the cause and not a consequence.
    require_room(context)
    # Corrections count the messages of one repetition.
    phases = _with_repeats(context, with_corrections(context, with_switches(context, _phases(context))))
    times = _columns(context, phases)
    worth, missing = wire_energy(context, phases, times)
    worth |= _results(context, times | worth)
    worth |= _estimates(context, times | worth | missing)
    wiring.raise_problems()
    constraints = tuple(wiring.constraints)
    return Program(loaded, wiring.parameters, wiring.terms, constraints, tuple(phases), times | worth, missing)


def _results(context: Context, times: Mapping[str, str]) -> dict[str, str]:
    """Terms of the further results of an application of a plug-in, by name."""
    kind = application_kind(context.scenario.application)
    found: dict[str, str] = resolve(kind.results)(context, times) if kind is not None and kind.results else {}
    return found


def _phases(context: Context) -> list[PhaseTerm]:
    """Phases in the order of the file; halos are wired first because transfers of a halo need its sizes."""
    application = context.scenario.application
    kind = application_kind(application)
    if kind is not None:
        return deferred(kind.wirer)(context)
    stated = application.phases
    wired: dict[str, list[PhaseTerm]] = {}
    for name, phase in sorted(stated.items(), key=lambda item: item[1].kind != "halo"):
        wired[name] = WIRERS[phase.kind](context, name, phase)
    return [part for name in stated for part in wired[name]]


def _with_repeats(context: Context, parts: list[PhaseTerm]) -> list[PhaseTerm]:
    """Phases, those of `[application.repeats]` with all repetitions of an iteration."""
    application = context.scenario.application
    if not (repeats := getattr(application, "repeats", {})):
        return parts
    for name in repeats.keys() - application.phases.keys():
        hint = did_you_mean(name, application.phases) or f"; known: {', '.join(application.phases)}"
        context.wiring.problem(f"application.repeats.{name}", f"`{name}`: no such phase{hint}")
    context.wiring.raise_problems()
    stated = ((part, part.phase.partition(".")[0]) for part in parts)
    return [_repeated(context, part, name) if name in repeats else part for part, name in stated]


def _repeated(context: Context, part: PhaseTerm, name: str) -> PhaseTerm:
    """Phase that runs several times in an iteration, or not in every one, on devices; the slowest device counts."""
    path = f"application.repeats.{name}"
    inputs: dict[str, Reference] = {
        "once_time": part.term,
        "iteration_count": "application.iteration_count",
        "repeat_count": f"{path}.repeat_count",
        "interval": f"{path}.interval",
        "device_count": f"{path}.device_count",
        "device_spread": f"{path}.device_spread",
    }
    return replace(part, term=context.wiring.add(f"{part.phase}.repeated", repeated_time, inputs))


def _estimates(context: Context, taken: Collection[str]) -> dict[str, str]:
    """Terms of results that regressions predict, by name."""
    estimates = wire_estimates(context)
    for name in estimates.keys() & taken:
        context.wiring.problem(f"application.estimates.{name}", f"`{name}` is a result; give the estimate another name")
    return estimates


def _columns(context: Context, phases: list[PhaseTerm]) -> dict[str, str]:
    """Terms of the result columns of time, in the order in which they are shown."""
    wiring = context.wiring
    sums = {
        f"{category}_time": wiring.sum(f"iteration.{category}_time", [p.term for p in phases if p.category == category])
        for category in CATEGORIES
    }
    sums["overlap_time"] = _overlap(context, {phase.phase: phase.term for phase in phases})
    iteration = wiring.add("iteration.time", iteration_time, sums)
    setup = wiring.sum("setup.time", wiring.setups)
    inputs = {"iteration_time": iteration, "setup_time": setup, "iteration_count": "application.iteration_count"}
    total = wiring.add("total.time", run_time, inputs)
    return {"total_time": total, "iteration_time": iteration, **sums, "setup_time": setup}


def _intervals(context: Context, phases: Sequence[str]) -> dict[str, Reference]:
    """Intervals of two phases, with the iterations, if one of them is in `[application.repeats]`; else empty."""
    repeats = getattr(context.scenario.application, "repeats", {})
    names = [phase.partition(".")[0] for phase in phases]
    if not any(name in repeats for name in names):
        return {}
    first, second = (
        f"application.repeats.{name}.interval" if name in repeats else Quantity(1.0, ONE) for name in names
    )
    return {"iteration_count": "application.iteration_count", "first_interval": first, "second_interval": second}


def _overlap(context: Context, phases: Mapping[str, str]) -> str:
    """Term of the time that all stated overlaps hide; `phases` are the terms of all phases by name."""
    saved: list[str] = []
    hidden: set[str] = set()
    for name, overlap in context.scenario.application.overlaps.items():
        path = f"application.overlaps.{name}"
        for unknown in (phase for phase in overlap.phases if phase not in phases):
            hint = did_you_mean(unknown, phases) or f"; known: {', '.join(phases)}"
            context.wiring.problem(f"{path}.phases", f"no phase `{unknown}`{hint}")
        if overlap.phases[0] == overlap.phases[1]:
            context.wiring.problem(f"{path}.phases", "a phase cannot overlap with itself")
        for twice in hidden.intersection(overlap.phases):
            context.wiring.problem(f"{path}.phases", f"`{twice}` overlaps already: no time can be hidden twice")
        hidden.update(overlap.phases)
        context.wiring.raise_problems()
        first, second = (phases[phase] for phase in overlap.phases)
        inputs: dict[str, Reference] = {"fraction": f"{path}.fraction", "first_time": first, "second_time": second}
        intervals = _intervals(context, overlap.phases)
        function = occasional_overlap_time if intervals else overlap_time
        saved.append(context.wiring.add(f"overlap.{name}", function, inputs | intervals))
    return context.wiring.sum("iteration.overlap_time", saved)
