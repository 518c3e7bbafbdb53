"""Compile a scenario: read its structural leaves, wire the terms of every phase, then what is summed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from whatif.engine.context import Context
from whatif.engine.phases.collective import wire_collective
from whatif.engine.phases.fixed import wire_overhead, wire_structured_grid
from whatif.engine.phases.halo import wire_halo
from whatif.engine.phases.kernel import wire_kernel
from whatif.engine.phases.transfer import wire_transfer
from whatif.engine.term import CATEGORIES, PhaseTerm, Program
from whatif.engine.wiring import Wiring
from whatif.models.iteration import iteration_time, overlap_time, run_time
from whatif.schema.leaves import leaf_table
from whatif.schema.load import Loaded

WIRERS: Final[Mapping[str, Callable[[Context, str, Any], list[PhaseTerm]]]] = {
    "kernel": wire_kernel,
    "halo": wire_halo,
    "collective": wire_collective,
    "transfer": wire_transfer,
    "overhead": wire_overhead,
    "structured_grid": wire_structured_grid,
}


def compile_scenario(loaded: Loaded) -> Program:
    """The terms of a scenario; raise `InvalidFileError` for what only shows when they are wired."""
    wiring = Wiring(loaded, leaf_table(loaded))
    wiring.expressions()
    context = Context(wiring)
    phases: list[PhaseTerm] = []
    # Transfers of a halo need its sizes: halos are wired first, but keep their place in the iteration.
    wired: dict[str, list[PhaseTerm]] = {}
    application = loaded.scenario.application
    for name, phase in sorted(application.phases.items(), key=lambda item: item[1].kind != "halo"):
        wired[name] = WIRERS[phase.kind](context, name, phase)
    for name in application.phases:
        phases.extend(wired[name])
    columns = _columns(context, phases)
    context.machine_constraints()
    wiring.raise_problems()
    return Program(loaded, wiring.leaves, wiring.terms, tuple(wiring.constraints), tuple(phases), columns)


def _columns(context: Context, phases: list[PhaseTerm]) -> dict[str, str]:
    """The result columns, in the order in which they are shown, and the terms behind them."""
    wiring = context.wiring
    sums = {
        f"{category}_time": wiring.sum(f"iteration.{category}_time", [p.term for p in phases if p.category == category])
        for category in CATEGORIES
    }
    sums["overlap_time"] = _overlap(context)
    iteration = wiring.add("iteration.time", iteration_time, sums)
    setup = wiring.sum("setup.time", [term for term in wiring.terms if term.endswith(".setup")])
    inputs = {"iteration_time": iteration, "setup_time": setup, "iteration_count": "application.iteration_count"}
    total = wiring.add("total.time", run_time, inputs)
    return {"total_time": total, "iteration_time": iteration, **sums, "setup_time": setup}


def _overlap(context: Context) -> str:
    saved = [
        context.wiring.add(
            f"overlap.{name}",
            overlap_time,
            {
                "fraction": f"application.overlaps.{name}.fraction",
                "first_time": overlap.phases[0],
                "second_time": overlap.phases[1],
            },
        )
        for name, overlap in context.scenario.application.overlaps.items()
    ]
    return context.wiring.sum("iteration.overlap_time", saved)
