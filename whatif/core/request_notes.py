"""Remarks on a request that are known before it is evaluated."""

from __future__ import annotations

from whatif.core.calibration_notes import model_notes
from whatif.core.kernel_notes import kernel_notes
from whatif.core.scenario import EvaluationRequest
from whatif.core.term import Program
from whatif.core.uncertainty import NOTHING_UNCERTAIN, sampled_program, uncertain
from whatif.schema.parameters import worst
from whatif.units import counted


def request_notes(request: EvaluationRequest) -> tuple[str, ...]:
    """Scenario, platform, worst grade of its values, axes, and samples of uncertain values."""
    program, grid, sampling = request.scenario.program, request.grid, request.sampling
    axes = " x ".join(f"{' + '.join(axis.parameters)} ({len(axis)})" for axis in grid.axes) or "one point"
    platform = program.loaded.scenario.platform.name
    notes = [
        program.loaded.question or program.loaded.name,
        f"platform {platform}; worst grade of its values: {program.grade}{_energy(program)}; {axes}",
        *model_notes(program),
        *kernel_notes(program),
    ]
    if sampling is not None:
        count = len(uncertain(sampled_program(program, sampling), sampling, grid.parameters()))
        bands = f"{sampling.names[0]} to {sampling.names[2]} of {sampling.count:,} samples"
        notes.append(f"{counted(count, 'uncertain value')}; {bands}" if count else NOTHING_UNCERTAIN)
    elif any(parameter.distribution is not None for parameter in program.parameters.values()):
        notes.append("some values are distributions: --samples 1024 shows their effect on the results")
    return tuple(notes)


def _energy(program: Program) -> str:
    """Worst grade of energy and cost, where it is lower than that of the times."""
    grade = worst([program.grade, *program.other_grades.values()])
    return "" if grade == program.grade else f" (energy and cost: {grade})"
