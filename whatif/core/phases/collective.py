"""A collective: the rounds of its algorithm, each charged with the time of a message."""

from __future__ import annotations

from whatif.core.context import Context
from whatif.core.phases.link_sharing import is_congested, wire_collective_congestion, with_congestion
from whatif.core.phases.message import message_time
from whatif.core.term import PhaseTerm, Reference
from whatif.models.collectives import ALGORITHMS, rounds_time
from whatif.models.workload import repeated
from whatif.schema.application import CollectivePhase


def wire_collective(context: Context, name: str, phase: CollectivePhase) -> list[PhaseTerm]:
    """The terms of a collective phase."""
    path, wiring = f"application.phases.{name}", context.wiring
    sizes_of, counts_of = ALGORITHMS[phase.algorithm]
    ranks: dict[str, Reference] = {"process_count": context.rank_count}
    counts = wiring.add(f"{name}.round_counts", counts_of, ranks)
    sizes = wiring.add(f"{name}.round_sizes", sizes_of, ranks | {"message_size": f"{path}.message_size"})
    times = message_time(context, name, phase.model, phase.distance, sizes, context.sharing(phase.distance))
    once = wiring.add(f"{name}.operation_time", rounds_time, {"round_counts": counts, "round_times": times})
    if context.scenario.application.communication != "modelled":
        from whatif.core.phases.simulated_exchange import wire_simulated_collective

        once = wire_simulated_collective(context, name, phase.model, phase.algorithm, f"{path}.message_size")
    repeats = f"{path}.operation_count"
    if phase.distance == "inter_node" and is_congested(context):
        congestion = wire_collective_congestion(context, name, phase.model, phase.algorithm, f"{path}.message_size")
        once = with_congestion(context, name, once, congestion, repeats)
    inputs: dict[str, Reference] = {"once_time": once, "repeat_count": repeats}
    return [PhaseTerm(name, wiring.add(name, repeated, inputs), "communication")]
