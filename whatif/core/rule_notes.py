"""Remark on rates of a GPU that follow by rule, where times depend on them."""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.core.energy import GPU
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.term import Program
from whatif.schema.expressions import Expression
from whatif.schema.parameters import DEFAULT

_CHANGE: Final = 0.97
"""Factor of a rate that shows whether a time depends on it."""


def rule_notes(program: Program) -> tuple[str, ...]:
    """Rates by rule that bind some kernel; those of a kernel that is bound by other rates are not named."""
    known = [path for path in sorted(program.timed) if _is_by_rule(program, path)]
    if not known:
        return ()
    kernels = _kernels(program)
    before = evaluate(kernels)
    binding = [path.removeprefix(f"{GPU}.") for path in known if _moves(kernels, before, path)]
    if not binding:
        return ()
    gpu = program.loaded.scenario.platform.node.gpu
    name = "" if gpu is None else f" of {gpu.name}"
    return (f"kernels are bound by {', '.join(binding)}{name}, which no source states: by rule (docs/devices.md)",)


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
