"""Remarks on rates and times of a GPU that follow by rule, where times of kernels depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.parameter_paths import GPU
from whatif.core.term import Program
from whatif.schema.expressions import Expression
from whatif.schema.parameters import DEFAULT

_CHANGE: Final = 0.97
"""Factor of a rate that shows whether a time depends on it."""
_LAUNCHES: Final = (f"{GPU}.empty_kernel_time", f"{GPU}.launch_interval")
_MUCH: Final = 0.1
"""Share of the time of kernels from which the launches are remarked on."""


def rule_notes(program: Program) -> tuple[str, ...]:
    """Rates by rule that bind some kernel, and times of launches by rule where they take much of all kernels' time.

    Rates of a kernel that is bound by other rates are not named.
    """
    rates = [path for path in sorted(program.timed) if _is_by_rule(program, path)]
    times = [path for path in _LAUNCHES if path in program.timed and program.parameters[path].source == DEFAULT]
    if not rates and not times:
        return ()
    kernels = _kernels(program)
    before = evaluate(kernels)
    binding = [path.removeprefix(f"{GPU}.") for path in rates if _moves(kernels, before, path)]
    gpu = program.loaded.scenario.platform.node.gpu
    name = "" if gpu is None else f" of {gpu.name}"
    bound = f"kernels are bound by {', '.join(binding)}{name}, which no source states: by rule (docs/devices.md)"
    return (*([bound] if binding else []), *_launches(kernels, before, times))


def _launches(kernels: Program, before: Evaluation, times: Sequence[str]) -> Iterator[str]:
    """Remark on times of launches by rule, if they take more than a tenth of the kernels' time."""
    after = evaluate(kernels, dict.fromkeys(times, np.asarray(0.0)))
    whole, part = (float(sum(found.values[its.term] for its in kernels.phases)) for found in (before, after))
    if times and part < (1 - _MUCH) * whole:
        names = " and ".join(path.removeprefix(f"{GPU}.") for path in times)
        yield f"launches take {1 - part / whole:.0%} of the time of kernels: {names} by rule (docs/devices.md)"


def _is_by_rule(program: Program, path: str) -> bool:
    parameter = program.parameters[path]
    return path.startswith(f"{GPU}.") and parameter.source == DEFAULT and isinstance(parameter.value, Expression)


def _kernels(program: Program) -> Program:
    """Terms of the kernels alone, without simulated messages."""
    phases = tuple(phase for phase in program.phases if phase.category == "kernel")
    return program.part([phase.term for phase in phases], phases)


def _moves(program: Program, before: Evaluation, path: str) -> bool:
    """Whether a smaller rate makes some kernel take longer."""
    after = evaluate(program, {path: _CHANGE * before.values[path]})
    return any(not np.array_equal(before.values[phase.term], after.values[phase.term]) for phase in program.phases)
