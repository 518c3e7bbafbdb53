"""Congestion of halos and collectives: their messages counted by link along the routes of the topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from whatif import units
from whatif.core.context import Context
from whatif.core.evaluate import REFUSED
from whatif.core.phases.collective_wiring import CollectiveWiring
from whatif.core.phases.halo_wiring import HaloWiring
from whatif.core.phases.message import choose_protocol, message_time, parameters_at, protocol_time
from whatif.core.phases.node_links import by_link
from whatif.core.term import Reference
from whatif.errors import UsageError
from whatif.models.congestion import (
    SHARE,
    LinkCounts,
    RoundLoads,
    congested_time,
    exchange_congestion,
    rounds_congestion,
)
from whatif.models.decomposition import MOST_CELLS, MOST_RANKS, PerDimension, is_count
from whatif.models.patterns import Neighbours, Pattern, message_kinds
from whatif.models.placed_rounds import round_sizes
from whatif.models.placement import ONE_GROUP, ONE_NODE, boxes_at, each_distinct, grid_at, pattern_at
from whatif.models.quantities import Core, Count, FloatArray, model
from whatif.models.workload import along_dimensions
from whatif.units import BYTE, Quantity
from whatif.vocabulary import MODEL_OF_ONE_MESSAGE, PROTOCOLS

if TYPE_CHECKING:
    from whatif.simulation.channel_nodes import ChannelNodes

TopologyCounts = Annotated[FloatArray, units.ONE, Core("dimension")]
Network = tuple[str, bool, tuple[int, ...]]
"""Kind and routing of a topology, and its counts in the order of the file."""
NO_COUNTS: TopologyCounts = np.empty(0)
ONE_CHANNEL: Count = np.ones(())
TOPOLOGY: Final = "platform.network.topology"
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "star": (),
    "fat_tree": ("level_count", "down_count", "up_count", "upper_up_count"),
    "dragonfly": ("group_count", "router_count", "nodes_per_router", "global_link_count"),
}
_SOURCE: Final = "counted along the routes of the link simulation"


def topology_inputs(context: Context) -> dict[str, Reference]:
    """References to bandwidths, latency and counts of the platform's topology, which must be stated."""
    topology, wiring = context.scenario.platform.network.topology, context.wiring
    assert topology is not None
    bandwidths = [
        path for key in ("bandwidth", "global_bandwidth") if (path := f"{TOPOLOGY}.{key}") in wiring.parameters
    ]
    found: dict[str, Reference] = {
        "link_bandwidths": context.once("topology.bandwidths", by_link, **{path: path for path in bandwidths}),
        "link_latency": f"{TOPOLOGY}.latency",
    }
    keys = [f"extents.{key}" for key in topology.extents] if topology.kind == "torus" else _COUNTS[topology.kind]
    counts = [path for key in keys if (path := f"{TOPOLOGY}.{key}") in wiring.parameters]
    if counts:
        found["link_counts"] = context.once("topology.counts", along_dimensions, **{path: path for path in counts})
    return found


def is_congested(context: Context) -> bool:
    """Whether a modelled phase has a congestion part: the platform states a topology, and the application wants it."""
    application = context.scenario.application
    stated = context.scenario.platform.network.topology is not None
    return stated and application.communication == application.congestion == "modelled"


@model("messages by link and step", _SOURCE)
def halo_link_counts(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count = ONE_NODE,
    group_stride: Count = ONE_GROUP,
    group_count: Count = ONE_GROUP,
    link_counts: TopologyCounts = NO_COUNTS,
    *,
    topology: str,
    spread: bool,
    **choices: Any,
) -> LinkCounts:
    """Messages of an exchange on a grid over the links that can be the fullest, [..., row, link, step].

    `dims` and `link_counts` [..., dimension], the others [...]; `choices` are those of `GridPattern`, `topology` and
    `spread` kind and routing of the topology. Rows are those of `models.congestion`. NaN for an infeasible placement,
    and with a reason for nodes that the topology does not have.
    """
    places = [ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count]
    points = [*np.moveaxis(dims, -1, 0), *places]
    slots = step_kinds(dims.shape[-1], choices.get("neighbours", "faces"))
    return _exchange_counts(points, link_counts, partial(grid_at, choices=choices), (topology, spread, slots))


@model("messages by link and step", _SOURCE)
def box_link_counts(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count = ONE_NODE,
    link_counts: TopologyCounts = NO_COUNTS,
    *,
    topology: str,
    spread: bool,
) -> LinkCounts:
    """`halo_link_counts` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = [rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain, *np.moveaxis(cells, -1, 0)]
    slots = step_kinds(cells.shape[-1], "all")
    return _exchange_counts(points, link_counts, boxes_at, (topology, spread, slots))


@model("messages by link and round", _SOURCE)
def collective_round_loads(
    rank_count: Count,
    group_size: Count,
    group_stride: Count,
    ranks_per_node: Count,
    nodes_per_domain: Count = ONE_NODE,
    channel_count: Count = ONE_CHANNEL,
    link_counts: TopologyCounts = NO_COUNTS,
    *,
    algorithm: str,
    topology: str,
    spread: bool,
) -> RoundLoads:
    """Messages of each round of a collective in all groups over the fullest link, [..., row, round], block mapping.

    A message is divided evenly among `channel_count` channels, which leave the link domain through different nodes.
    Of an all-to-all between more than 65 ranks, 64 rounds are followed. The rest is as in `halo_link_counts`.
    """

    def loads(row: FloatArray, sizes: tuple[int, ...]) -> FloatArray | None:
        *counts, nodes, channels = (int(number) for number in row)
        return _round_loads(*counts, (nodes, min(nodes, channels)), algorithm, (topology, spread, sizes))

    points: list[ArrayLike] = [rank_count, group_size, group_stride, ranks_per_node, nodes_per_domain, channel_count]
    return _at_points(points, link_counts, loads, (6, 1))


def step_kinds(dimension_count: int, neighbours: Neighbours) -> tuple[int, ...]:
    """Kind of each step of an exchange: a step for each sign of each dimension of a kind."""
    kinds = enumerate(message_kinds(dimension_count, neighbours))
    return tuple(number for number, kind in kinds for _ in range(2 ** len(kind)))


def _exchange_counts(
    points: list[ArrayLike], link_counts: FloatArray, pattern_of: Callable[[tuple[int, ...]], Pattern], network: Any
) -> FloatArray:
    """Counts of the patterns of points; `network` are kind and routing of the topology, and the kinds of the steps."""
    topology, spread, slots = network

    def counts(row: FloatArray, sizes: tuple[int, ...]) -> FloatArray | None:
        pattern = pattern_at(row, pattern_of)
        return None if pattern is None else _exchange_loads(pattern, (topology, spread, sizes), slots)

    return _at_points(points, link_counts, counts, (4, 1, len(slots)))


def _at_points(
    points: list[ArrayLike],
    link_counts: FloatArray,
    loads_at: Callable[[FloatArray, tuple[int, ...]], FloatArray | None],
    shape: tuple[int, ...],
) -> FloatArray:
    """Loads at each distinct point and counts of the topology; NaN, with the reason, where it has no such nodes."""
    refused: dict[tuple[float, ...], str] = {}

    def loads(row: FloatArray) -> FloatArray | None:
        if not is_count(row, most=MOST_CELLS).all():
            return None
        try:
            return loads_at(row[: len(points)], tuple(int(count) for count in row[len(points) :]))
        except UsageError as error:
            refused[tuple(row.tolist())] = f"{error} ({TOPOLOGY})"
            return None

    columns = [*points, *np.moveaxis(link_counts, -1, 0)]
    result = each_distinct(columns, loads, shape)
    if refused:
        rows = np.stack(np.broadcast_arrays(*columns), axis=-1)
        texts = [refused.get(tuple(row), "") for row in rows.reshape(-1, len(columns)).tolist()]
        REFUSED.get([]).append(np.array(texts, dtype=object).reshape(rows.shape[:-1]))
    return result


@lru_cache(maxsize=1024)
def _exchange_loads(pattern: Pattern, network: Network, slots: tuple[int, ...]) -> FloatArray:
    """Loads [row, link, step] of an exchange; batches of messages of a kind take its steps in turn."""
    from whatif.simulation.channel_nodes import leave_domain
    from whatif.simulation.link_loads import fullest, link_loads

    node = pattern.nodes()
    batches: list[Any] = [(node[:0], node[:0], None)] * len(slots)
    used, taken = np.zeros(max(slots) + 1, dtype=int), np.zeros(len(slots))
    for kind, sender, receiver in pattern.messages():
        away = leave_domain(node[sender], node[receiver], pattern.nodes_per_domain)
        step = slots.index(kind) + used[kind]
        batches[step], taken[step] = (node[sender][away], node[receiver][away], None), np.any(sender != receiver)
        used[kind] += 1
    loads = link_loads(_topology(network, int(node.max()) + 1), batches, network[1])
    return _joined((fullest(loads.near), fullest(loads.far), loads.longest[np.newaxis], taken[np.newaxis]))


@lru_cache(maxsize=1024)
def _round_loads(
    rank_count: int,
    group_size: int,
    group_stride: int,
    ranks_per_node: int,
    channels: ChannelNodes,
    algorithm: str,
    network: Network,
) -> FloatArray | None:
    """Loads, shares and repetitions [row, round] of the rounds of a collective."""
    from whatif.simulation.channel_nodes import between_nodes
    from whatif.simulation.link_loads import peaks
    from whatif.simulation.round_patterns import collective_rounds

    if rank_count > MOST_RANKS or rank_count % (group_size * group_stride):
        return None
    rounds = collective_rounds(algorithm, rank_count, group_size, group_stride, ranks_per_node * channels[0])
    if not rounds:
        return np.zeros((6, 1))
    node_count = -(-rank_count // ranks_per_node)
    steps = (between_nodes(item, ranks_per_node, node_count, channels) for item in rounds)
    near, far, longest, mean = peaks(_topology(network, node_count), steps, network[1])
    waits = np.array([item.waits for item in rounds])
    own = np.array([[item.share, item.repeats] for item in rounds]).T
    return np.stack([near, far, np.where(waits, longest, mean), *own, waits])


def _topology(network: Network, node_count: int) -> Any:
    from whatif.simulation.topology import topology_of

    kind, _, counts = network
    return topology_of(kind, node_count, (1.0, 1.0), 0.0, counts)


def _joined(parts: tuple[FloatArray, ...]) -> FloatArray:
    """Parts [link, step] as rows [row, link, step], padded with 0."""
    result = np.zeros((len(parts), max(len(part) for part in parts), parts[0].shape[1]))
    for row, part in enumerate(parts):
        result[row, : len(part)] = part
    return result


def wire_exchange_congestion(exchange: HaloWiring, exchange_time: str) -> str:
    """Wire the time by which shared links prolong an exchange, whose messages alone take `exchange_time`."""
    context, name, phase = exchange.context, exchange.name, exchange.phase
    wiring, shared = context.wiring, topology_inputs(context)
    boxes = "rank_count" in exchange.placed
    inputs = {**exchange.placed, **({"link_counts": shared.pop("link_counts")} if "link_counts" in shared else {})}
    function = box_link_counts if boxes else halo_link_counts
    counts = wiring.add(f"{name}.link_counts", function, inputs, options={**exchange.options, **_routing(context)})
    single = _single_message(context, name, phase.model, exchange.sizes)
    times: dict[str, Reference] = {"message_size": exchange.sizes, "exchange_time": exchange_time}
    kinds = step_kinds(len(context.grid.cells), phase.neighbours)
    return wiring.add(
        f"{name}.exchange_congestion",
        exchange_congestion,
        {"message_counts": counts, **shared, **times, **single},
        options={"step_kinds": kinds, "at_once": exchange.is_concurrent},
    )


def wire_collective_congestion(collective: CollectiveWiring) -> str:
    """Wire the congestion of one operation of a collective."""
    context, name, wiring = collective.context, collective.name, collective.context.wiring
    shared = topology_inputs(context)
    inputs: dict[str, Reference] = {"rank_count": context.placed_count, **collective.group, **context.domains}
    del inputs["ranks_per_socket"]
    leaving = wiring.terms.get(f"{name}.leaving_count")
    if leaving is not None and "nodes_per_domain" in inputs:
        inputs["channel_count"] = leaving.inputs["channel_count"]
    if "link_counts" in shared:
        inputs["link_counts"] = shared.pop("link_counts")
    options = {"algorithm": collective.schedule, **_routing(context)}
    loads = wiring.add(f"{name}.round_loads", collective_round_loads, inputs, options=options)
    sized: dict[str, Reference] = {"rounds": loads, "message_size": collective.size}
    sizes = wiring.add(f"{name}.routed_sizes", round_sizes, sized, options={"row": SHARE})
    times = {"message_sizes": sizes, **_round_times(collective, sizes)}
    return wiring.add(f"{name}.operation_congestion", rounds_congestion, {"round_loads": loads, **shared, **times})


def _round_times(collective: CollectiveWiring, sizes: str) -> dict[str, Reference]:
    """Terms of the times of rounds that an operation is charged with, and of the latencies of their messages."""
    context, name, model = collective.context, f"{collective.name}.routed", collective.phase.model
    if collective.phase.distance:
        single = _single_message(context, name, model, sizes)
        return {"round_times": single["message_time"], "latencies": single["latency"]}
    channel = f"{collective.name}.channel_sizes"
    sent = channel if channel in context.wiring.terms else sizes
    return {"round_times": f"{collective.name}.round_times", "latencies": _latency(context, name, model, sent)}


def with_congestion(context: Context, name: str, once: str, congestion: str, repeats: str) -> str:
    """Wire the time of a phase with its congestion, whose part of the iteration is a term of its own."""
    context.wiring.repeat(f"{name}.congestion_time", congestion, repeats)
    return context.wiring.add(f"{name}.congested_time", congested_time, {"time": once, "congestion_time": congestion})


def _routing(context: Context) -> dict[str, Any]:
    topology = context.scenario.platform.network.topology
    assert topology is not None
    return {"topology": topology.kind, "spread": topology.routing == "adaptive"}


def _single_message(context: Context, name: str, model: str, sizes: Reference) -> dict[str, Reference]:
    """Terms of the time and of the latency of a message between nodes, by the protocol of its size."""
    time = f"{name}.inter_node.message_time"
    if time not in context.wiring.terms:
        sharing = context.sharing("inter_node")
        message_time(context, name, MODEL_OF_ONE_MESSAGE.get(model, model), "inter_node", sizes, sharing)
    return {"message_time": time, "latency": _latency(context, name, model, sizes)}


def _latency(context: Context, name: str, model: str, sizes: Reference) -> str:
    """Term of the latency of a message between nodes, by the protocol of its size."""
    sharing = context.sharing("inter_node")
    used, table, note = parameters_at(context, name, MODEL_OF_ONE_MESSAGE.get(model, model), "inter_node")
    empty: dict[str, Reference] = {
        protocol: protocol_time(
            context, f"{name}.{protocol}_latency", used, table, protocol, Quantity(0.0, BYTE), sharing, note
        )
        for protocol in PROTOCOLS
    }
    return choose_protocol(context, f"{name}.message_latency", used, sizes, empty, note)
