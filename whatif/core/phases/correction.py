"""Corrections of `[calibration]`: phases with corrected times, and the time that is added to an iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from whatif.core.context import Context
from whatif.core.phases.collective_choice import compared_times
from whatif.core.term import PhaseTerm, Reference
from whatif.errors import did_you_mean
from whatif.models.corrections import (
    all_rounds,
    busiest_count,
    corrected_message_time,
    corrected_time,
    correction_time,
    count_of_fastest,
)
from whatif.schema.correction_tables import ApplicationCorrections, PlatformCorrections
from whatif.schema.validated import platform_names
from whatif.units import ONE, SECOND, Quantity

CORRECTION: Final = "correction"
"""Phase of the time that a calibration adds to each iteration."""
NEUTRAL: Final = {
    "message_factor": Quantity(1.0, ONE),
    "sharing_factor": Quantity(1.0, ONE),
    "congestion_factor": Quantity(1.0, ONE),
    "doubling_factor": Quantity(0.0, ONE),
    "message_time": Quantity(0.0, SECOND),
    "overhead_time": Quantity(0.0, SECOND),
    "doubling_time": Quantity(0.0, SECOND),
}
"""Value of each correction that changes nothing; that of a factor of kernels is 1."""
_COUNTS: Final = {
    "rank_counts": ("exchange_count", busiest_count),
    "round_counts": ("operation_count", all_rounds),
}
"""Terms that count messages, the parameter that repeats them, and their sum."""


class Corrections:
    """Corrections that apply to one scenario on its platform, as references to their parameters."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._calibration = context.scenario.calibration

    @cached_property
    def application(self) -> ApplicationCorrections | None:
        """Corrections of the application; None without a calibration."""
        return None if self._calibration is None else self._calibration.application

    @cached_property
    def platform(self) -> tuple[str, PlatformCorrections] | None:
        """Name and corrections of the platform, or of the nearest one that it extends; None without any."""
        known = {} if self._calibration is None else self._calibration.platforms
        names = platform_names(self._context.wiring.loaded.layers)
        return next(((name, known[name]) for name in names if name in known), None)

    def reference(self, name: str) -> Reference:
        """Parameter of a correction, or its neutral value."""
        if getattr(self.application, name, None) is not None:
            return f"calibration.application.{name}"
        if self.platform is not None and getattr(self.platform[1], name, None) is not None:
            return f"calibration.platforms.{self.platform[0]}.{name}"
        return NEUTRAL[name]

    def stated(self, *names: str) -> bool:
        """Whether any of some corrections is stated."""
        return any(isinstance(self.reference(name), str) for name in names)

    def kernel(self, phase: str) -> Reference | None:
        """Parameter of the factor of a kernel; None without any."""
        if self.application is None:
            return None
        if phase in self.application.kernel_factors:
            return f"calibration.application.kernel_factors.{phase}"
        return None if self.application.kernel_factor is None else "calibration.application.kernel_factor"


def with_corrections(context: Context, phases: Sequence[PhaseTerm]) -> list[PhaseTerm]:
    """Phases with the corrections of the calibration, and the phase of the time that it adds."""
    corrections = Corrections(context)
    if corrections.application is None:
        return list(phases)
    _refuse_unknown(context, corrections.application, phases)
    corrected = [_corrected(context, corrections, phase) for phase in phases]
    if corrections.stated("overhead_time", "doubling_time"):
        inputs = {name: corrections.reference(name) for name in ("overhead_time", "doubling_time")}
        inputs["node_count"] = context.nodes_needed
        time = context.wiring.add(CORRECTION, correction_time, inputs)
        corrected.append(PhaseTerm(CORRECTION, time, "overhead"))
    return corrected


def _refuse_unknown(context: Context, application: ApplicationCorrections, phases: Sequence[PhaseTerm]) -> None:
    kernels = [phase.phase for phase in phases if phase.category == "kernel"]
    for name in application.kernel_factors.keys() - set(kernels):
        hint = did_you_mean(name, kernels) or f"; kernels: {', '.join(kernels)}"
        context.wiring.problem(f"calibration.application.kernel_factors.{name}", f"no kernel phase `{name}`{hint}")
    context.wiring.raise_problems()


def _corrected(context: Context, corrections: Corrections, phase: PhaseTerm) -> PhaseTerm:
    if phase.category == "kernel":
        factor = corrections.kernel(phase.phase)
        if factor is None:
            return phase
        inputs: dict[str, Reference] = {"time": phase.term, "factor": factor}
        return replace(phase, term=context.wiring.add(f"{phase.phase}.corrected", corrected_time, inputs))
    names = ("message_factor", "message_time", "sharing_factor", "congestion_factor", "doubling_factor")
    if phase.category != "communication" or not corrections.stated(*names):
        return phase
    inputs = {
        **{name: corrections.reference(name) for name in names},
        "time": phase.term,
        "node_count": context.nodes_needed,
        "message_count": _message_count(context, phase.phase),
        "shared_time": _part(context, f"{phase.phase}.shared_time"),
        "congestion_time": _part(context, f"{phase.phase}.congestion_time"),
    }
    return replace(phase, term=context.wiring.add(f"{phase.phase}.corrected", corrected_message_time, inputs))


def _message_count(context: Context, phase: str) -> Reference:
    """Term of the messages of the busiest rank; 0 where they are not counted, as in a trace."""
    if times := compared_times(context.wiring.terms, phase):
        return _count_of_fastest(context, phase, times)
    for counts, (repeats, function) in _COUNTS.items():
        if f"{phase}.{counts}" in context.wiring.terms:
            inputs = {counts: f"{phase}.{counts}", "repeat_count": f"application.phases.{phase}.{repeats}"}
            return context.wiring.add(f"{phase}.message_count", function, inputs)
    return Quantity(0.0, ONE)


def _count_of_fastest(context: Context, phase: str, times: Mapping[str, str]) -> str:
    """Term of the rounds of the fastest algorithm of a collective; `times` are terms by the names of algorithms."""
    repeats = f"application.phases.{phase}.operation_count"
    inputs: dict[str, Reference] = {time: time for time in times.values()}
    for name in times:
        rounds: dict[str, Reference] = {"round_counts": f"{name}.round_counts", "repeat_count": repeats}
        inputs[f"{name}.message_count"] = context.wiring.add(f"{name}.message_count", all_rounds, rounds)
    return context.wiring.add(f"{phase}.message_count", count_of_fastest, inputs)


def _part(context: Context, term: str) -> Reference:
    """Term of a part of the time of a phase; 0 where the phase has none."""
    return term if term in context.wiring.terms else Quantity(0.0, SECOND)
