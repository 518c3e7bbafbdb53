"""Phases whose terms are nearly leaves: a measured overhead, and the fitted structured-grid model."""

from __future__ import annotations

from collections.abc import Callable

from whatif.engine.context import Context
from whatif.engine.term import PhaseTerm, Reference
from whatif.models.structured_grid import (
    communication_time_by_distance,
    communication_time_with_reduction,
    computation_time,
    inter_node_share,
    scattered_time,
    setup_time,
)
from whatif.schema.application import OverheadPhase, StructuredGridPhase
from whatif.units import ONE, SECOND, Quantity


def wire_overhead(context: Context, name: str, phase: OverheadPhase) -> list[PhaseTerm]:
    """A measured overhead is its leaf."""
    time = context.wiring.sum(name, [f"application.phases.{name}.overhead_time"])
    return [PhaseTerm(name, time, "overhead")]


def wire_structured_grid(context: Context, name: str, phase: StructuredGridPhase) -> list[PhaseTerm]:
    """Computation, communication and the miscellaneous rest of one iteration (Sharif et al., Eq. 1, 6, 3)."""
    wiring = context.wiring

    def leaves(*keys: str) -> dict[str, Reference]:
        return {key: f"application.phases.{name}.{key}" for key in keys}

    cells: dict[str, Reference] = {"cell_count": context.total_cell_count}
    ranks: dict[str, Reference] = {"process_count": context.rank_count}
    work = leaves("halo_cell_count", "cell_rate", "packing_time", "overhead_time")
    exchange = leaves("halo_cell_count", "halo_rate", "latency", "reduction_time")
    computation = wiring.add(f"{name}.computation", computation_time, cells | ranks | work)
    function: Callable[..., object] = communication_time_with_reduction
    if phase.intra_node_halo_rate is not None:
        ends: dict[str, Reference] = {"process_count": context.rank_count, "ranks_per_node": context.ranks_per_node}
        share = wiring.add(f"{name}.inter_node_share", inter_node_share, ends)
        exchange |= {"inter_node_share": share, **leaves("intra_node_halo_rate", "intra_node_latency")}
        function = communication_time_by_distance
    communication = wiring.add(f"{name}.communication", function, ranks | exchange)
    rest = wiring.sum(f"{name}.miscellaneous", [f"application.phases.{name}.miscellaneous_time"])
    # Eq. 3 without its sum over iterations: O_i stands in the iteration, where it can be compared.
    once: dict[str, Reference] = {
        "iteration_count": Quantity(0.0, ONE),
        "miscellaneous_time": Quantity(0.0, SECOND),
    }
    setup = wiring.add(f"{name}.setup", setup_time, once | cells | leaves("cell_setup_time", "startup_time"))

    def single(term: str, part: str) -> str:
        if getattr(phase, f"{part}_factor") is None:
            return term
        inputs: dict[str, Reference] = {"time": term, "factor": f"application.phases.{name}.{part}_factor"}
        return wiring.add(f"{term}.single_run", scattered_time, inputs)

    wiring.setups.append(single(setup, "setup"))
    return [
        PhaseTerm(f"{name}.computation", single(computation, "computation"), "kernel"),
        PhaseTerm(f"{name}.communication", single(communication, "communication"), "communication"),
        PhaseTerm(f"{name}.miscellaneous", single(rest, "setup"), "overhead"),
    ]
