"""Halo exchanges and collectives, simulated message by message instead of by a closed form."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from whatif.core.context import Context
from whatif.core.message_simulation import SOURCE, MessageMachine, block_places, simulated_term, wire_machine
from whatif.core.phases.halo_wiring import HaloWiring
from whatif.core.phases.message import parameters_at
from whatif.core.phases.message_charges import wire_shared_rates
from whatif.core.term import Reference
from whatif.errors import UsageError
from whatif.models.decomposition import MOST_CELLS, MOST_RANKS, PerDimension, is_count
from whatif.models.patterns import GridPattern, Pattern, domains, message_kinds
from whatif.models.phase import KindSize
from whatif.models.placement import boxes_at, grid_at, pattern_at
from whatif.models.quantities import Bytes, Count, FloatArray, Seconds, model
from whatif.simulation import rounds
from whatif.simulation.collective_stages import contributed, schedules_of, stages
from whatif.simulation.exchange import exchange_schedule
from whatif.simulation.generate import staged_trace
from whatif.simulation.lower import lower
from whatif.simulation.posted import halo_times
from whatif.simulation.round_sharing import with_sharing
from whatif.simulation.schedule import Places
from whatif.units import ONE, Quantity
from whatif.vocabulary import DISTANCES, MODEL_OF_ONE_MESSAGE

_ONE: Final = Quantity(1.0, ONE)
_RECURRENCES: Final[Mapping[str, rounds.Times]] = {
    "binomial_tree": rounds.broadcast_times,
    "binomial_reduce": rounds.reduce_times,
    "recursive_doubling": rounds.recursive_doubling_times,
    "ring": rounds.ring_allreduce_times,
    "rabenseifner": rounds.rabenseifner_times,
    "dissemination": rounds.dissemination_times,
    "ring_allgather": rounds.ring_allgather_times,
    "bruck_allgather": rounds.bruck_allgather_times,
    "pairwise": rounds.pairwise_alltoall_times,
}
"""Recurrences of algorithms between all ranks."""


@model("T = end of the last rank", SOURCE)
@simulated_term()
def simulated_halo_time(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    message_size: KindSize,
    nodes_per_domain: Count,
    group_stride: Count,
    group_count: Count,
    machine: MessageMachine,
    **choices: Any,
) -> Seconds:
    """Time of an exchange on a Cartesian grid in which each rank posts all receives, then all sends.

    `dims` [..., dimension], `message_size` [..., kind], `charges` [..., protocol, charge, size], `limits`
    [..., kind], the others [...]; `choices` are those of `GridPattern`. NaN for an infeasible placement. With the
    times of one model it is `serialised_time`, except where a neighbour sends late.
    """
    places = (ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count)
    pattern = pattern_at(np.append(dims, places), lambda row: grid_at(row, choices))
    return np.array(np.nan if pattern is None else _exchange(pattern, message_size, machine))


@model("T = end of the last rank", SOURCE)
@simulated_term()
def simulated_box_time(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    message_size: KindSize,
    nodes_per_domain: Count,
    machine: MessageMachine,
) -> Seconds:
    """Time of an exchange between the boxes of a bisection of `cells` [..., dimension], as in MiniFE.

    Shapes and errors as in `simulated_halo_time`.
    """
    row = np.concatenate([[rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain], cells])
    if not is_count(row, most=MOST_CELLS).all() or rank_count > MOST_RANKS:
        return np.array(np.nan)
    pattern = boxes_at(tuple(int(number) for number in row))
    return np.array(_exchange(pattern, message_size, machine))


def _exchange(pattern: Pattern, sizes: FloatArray, machine: MessageMachine) -> float:
    machine.refuse_shared_domains(pattern.nodes_per_domain)
    if isinstance(pattern, GridPattern) and pattern.group_count == 1 and machine.links is None:
        # Recurrences that do not hold raise; then messages are simulated one by one.
        with suppress(UsageError):
            return float(halo_times(pattern, sizes, machine.costs).max())
    places = Places(*domains(pattern))
    kind_count = len(message_kinds(len(pattern.dims), pattern.neighbours))
    schedule = exchange_schedule(pattern, np.broadcast_to(sizes, kind_count))
    return machine.run_time(schedule, places)


@model("T = end of the last rank", SOURCE)
@simulated_term()
def simulated_collective_time(
    rank_count: Count,
    group_size: Count,
    group_stride: Count,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    message_size: Bytes,
    nodes_per_domain: Count,
    machine: MessageMachine,
    *,
    algorithm: str,
) -> Seconds:
    """Time of a collective that all ranks enter at once, each message with the costs of its own distance.

    All groups of `group_size` ranks, `group_stride` apart, run at once. `message_size` is that of the buffer; of an
    allgather, of the gathered one; of an all-to-all, of what a rank sends. Shapes as in `simulated_halo_time`.
    """
    numbers = np.array([rank_count, group_size, group_stride, ranks_per_node, ranks_per_socket, nodes_per_domain])
    if not is_count(numbers, most=MOST_RANKS).all() or rank_count % (group_size * group_stride):
        return np.array(np.nan)
    return np.array(_collective(algorithm, [int(number) for number in numbers], float(message_size), machine))


def _collective(algorithm: str, numbers: list[int], message_size: float, machine: MessageMachine) -> float:
    rank_count, size, stride, ranks_per_node, _, nodes_per_domain = numbers
    parts = stages(algorithm, size, stride, ranks_per_node * nodes_per_domain)
    machine.refuse_shared_domains(nodes_per_domain)
    places = block_places(rank_count, *numbers[3:])
    if machine.links is None and algorithm in _RECURRENCES and size == rank_count:
        with suppress(UsageError):
            own = contributed(parts[0].kind, message_size, rank_count)
            return float(_RECURRENCES[algorithm](rank_count, own, places, machine.costs, None).max())
    schedule = lower(staged_trace(parts, rank_count, message_size), schedules_of(parts), machine.costs.reduction_time)
    return machine.run_time(with_sharing(schedule, parts, places, machine.costs), places)


def wire_simulated_halo(exchange: HaloWiring, sharing: Mapping[str, Reference]) -> str:
    """Wire the time of one exchange, simulated message by message."""
    wiring, name, stated = exchange.context.wiring, exchange.name, exchange.phase.model
    model = MODEL_OF_ONE_MESSAGE.get(stated, stated)
    note = "" if model == stated else f"messages of {model}: {stated} is a closed form of whole exchanges"
    simulated = wire_machine(exchange.context, name, model, sharing)
    boxes = "rank_count" in exchange.placed
    function = simulated_box_time if boxes else simulated_halo_time
    alone: dict[str, Reference] = {} if boxes else {"group_stride": _ONE, "group_count": _ONE}
    places = {"nodes_per_domain": _ONE, **alone, **exchange.placed}
    inputs = {**places, "message_size": exchange.sizes, **simulated.inputs}
    options = {**exchange.options, **simulated.options}
    return wiring.add(f"{name}.simulated_time", function, inputs, options=options, note=note)


def wire_simulated_collective(
    context: Context,
    name: str,
    model: str,
    algorithm: str,
    buffer: Mapping[str, Reference],
    reducing_bandwidth: Reference | None,
) -> str:
    """Wire the time of one operation; `buffer` is its message size, and size and stride of its groups.

    `reducing_bandwidth` is that at which a rank combines what it receives; None if that is not counted.
    """
    sharing: dict[str, Reference] = {distance: context.sharing(distance) for distance in DISTANCES}
    rates: dict[str, Reference] = {}
    if parameters_at(context, name, model, "inter_node")[1] == "max_rate":
        sharing["inter_node"], rates["shared_rates"] = _ONE, wire_shared_rates(context, name)
    simulated = wire_machine(context, name, model, sharing)
    inputs: dict[str, Reference] = {
        "rank_count": context.placed_count,
        "nodes_per_domain": _ONE,
        **context.domains,
        **buffer,
        **simulated.inputs,
        **rates,
    }
    if reducing_bandwidth is not None:
        inputs["reducing_bandwidth"] = reducing_bandwidth
    options = {"algorithm": algorithm, **simulated.options}
    return context.wiring.add(f"{name}.simulated_time", simulated_collective_time, inputs, options=options)
