"""Phases whose terms are nearly leaves: a measured overhead, and the fitted structured-grid model."""

from __future__ import annotations

from whatif.engine.context import Context
from whatif.engine.term import PhaseTerm, Reference
from whatif.models.structured_grid import communication_time_with_reduction, computation_time, setup_time
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
    communication = wiring.add(f"{name}.communication", communication_time_with_reduction, ranks | exchange)
    rest = wiring.sum(f"{name}.miscellaneous", [f"application.phases.{name}.miscellaneous_time"])
    # Eq. 3 without its sum over iterations: O_i stands in the iteration, where it can be compared.
    once: dict[str, Reference] = {
        "iteration_count": Quantity(0.0, ONE),
        "miscellaneous_time": Quantity(0.0, SECOND),
    }
    setup = wiring.add(f"{name}.setup", setup_time, once | cells | leaves("cell_setup_time", "startup_time"))
    wiring.setups.append(setup)
    return [
        PhaseTerm(f"{name}.computation", computation, "kernel"),
        PhaseTerm(f"{name}.communication", communication, "communication"),
        PhaseTerm(f"{name}.miscellaneous", rest, "overhead"),
    ]
