"""Phases with stated times: a measured overhead, and the fitted structured-grid model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from whatif.core.context import Context
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.core.wiring import total
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
    """Phase of a measured overhead: its parameter."""
    time = context.wiring.sum(name, [f"application.phases.{name}.overhead_time"])
    return [PhaseTerm(name, time, "overhead")]


def wire_structured_grid(context: Context, name: str, phase: StructuredGridPhase) -> list[PhaseTerm]:
    """Phases of computation, communication and miscellaneous work of one iteration (Sharif et al., Eq. 1, 6, 3)."""
    wiring = context.wiring

    parameters = partial(parameters_in, f"application.phases.{name}")

    def term(part: str, factor: str, function: Callable[..., object], inputs: dict[str, Reference]) -> str:
        """Mean time, multiplied by the factor of single runs if it is stated."""
        if getattr(phase, factor) is None:
            return wiring.add(f"{name}.{part}", function, inputs)
        mean = wiring.add(f"{name}.mean_{part}", function, inputs)
        single: dict[str, Reference] = {"time": mean, "factor": f"application.phases.{name}.{factor}"}
        return wiring.add(f"{name}.{part}", scattered_time, single)

    cells: dict[str, Reference] = {"cell_count": context.total_cell_count}
    ranks: dict[str, Reference] = {"process_count": context.rank_count}
    work = parameters("halo_cell_count", "cell_rate", "packing_time", "overhead_time")
    exchange = parameters("halo_cell_count", "halo_rate", "latency", "reduction_time")
    computation = term("computation", "computation_factor", computation_time, cells | ranks | work)
    function: Callable[..., object] = communication_time_with_reduction
    if phase.intra_node_halo_rate is not None:
        ends: dict[str, Reference] = {"process_count": context.rank_count, "ranks_per_node": context.ranks_per_node}
        share = wiring.add(f"{name}.inter_node_fraction", inter_node_share, ends)
        exchange |= {"inter_node_fraction": share, **parameters("intra_node_halo_rate", "intra_node_latency")}
        function = communication_time_by_distance
    communication = term("communication", "communication_factor", function, ranks | exchange)
    # Eq. 3 without its sum over iterations: O_i is a part of the iteration, where it can be compared.
    once: dict[str, Reference] = {
        "iteration_count": Quantity(0.0, ONE),
        "miscellaneous_time": Quantity(0.0, SECOND),
    }
    starts = once | cells | parameters("cell_setup_time", "startup_time")
    wiring.setups.append(term("setup", "setup_factor", setup_time, starts))
    path = f"application.phases.{name}.miscellaneous_time"
    rest = term("miscellaneous", "setup_factor", total, {path: path})
    return [
        PhaseTerm(f"{name}.computation", computation, "kernel"),
        PhaseTerm(f"{name}.communication", communication, "communication"),
        PhaseTerm(f"{name}.miscellaneous", rest, "overhead"),
    ]
