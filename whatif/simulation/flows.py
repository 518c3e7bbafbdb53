"""Replay of a schedule in which the messages between nodes are flows that share links, max-min fair.

The costs are those of `Costs`, with one change for messages between nodes: their bytes are charged once, by links.
A message of n bytes enters its links when the constant part of its flight and the latencies of the links are over, and
has arrived when n - free_size bytes have passed at the rate that it gets, at most 1 / w, where w is the greatest of
the s/B of its gaps and its flight. Its receive is charged what its own s/B are greater than w. So a message alone
takes what `Costs` says, and messages that meet take longer. A rendezvous send between nodes has not finished before
its message has arrived. A receive takes its message when it is posted, also where costs say `on_arrival`. With
`node_gap` the messages that leave a node also share a link of 1 / node_gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation import flow_kernel, link_kernel
from whatif.simulation.checks import check_completion, check_schedule, cost_table
from whatif.simulation.compiled import compiled
from whatif.simulation.flow_kernel import FLIGHT, NOTHING, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, Operations, Work
from whatif.simulation.link_kernel import Links
from whatif.simulation.schedule import Costs, Places, Schedule, Step
from whatif.simulation.sharing import Routes
from whatif.simulation.topology import Topology
from whatif.simulation.trace import ANY

COMPILED_FROM: Final = 200_000
"""Operations that take Python longer than it takes to load the compiled loop."""
UNLIMITED: Final = 1e300
"""B/s of a flow without limits: bytes over it are no time, and it can still be multiplied."""
INTER_NODE: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class FlowReplay:
    """When each operation started and ended in s, and with which operation it was matched (-1: none)."""

    start: FloatArray
    end: FloatArray
    match: NDArray[np.int32]

    @property
    def run_time(self) -> float:
        """When the last operation had ended, in s."""
        return float(self.end.max(initial=0.0))


def replay_flows(
    schedule: Schedule, places: Places, costs: Costs, topology: Topology, compiled_loop: bool | None = None
) -> FlowReplay:
    """Start and end of each operation in s; `compiled_loop` None leaves it to the size whether the loop is compiled.

    Node n of `places` is node n of the topology. Raises UsageError for a schedule that is not consistent and for nodes
    that do not exist, ImpossiblePointError for sizes that are not finite, a deadlock, messages left over and messages
    larger than their receives.
    """
    check_schedule(schedule, places, costs)
    operations, links = _prepare(schedule, places, costs, topology)
    work = _work(schedule, operations)
    if compiled_loop or (compiled_loop is None and len(schedule.step) >= COMPILED_FROM):
        (run,) = compiled((link_kernel, flow_kernel), (flow_kernel.replay.__name__,))
        run(operations, work, links)
    else:
        work = _listed(work)
        flow_kernel.replay(_listed(operations), work, _listed(links))
    played = FlowReplay(np.asarray(work.start), np.asarray(work.end), np.asarray(work.match, dtype=np.int32))
    # It asks for `end` and `match` only.
    check_completion(schedule, cast("Any", played))
    return played


Columns = TypeVar("Columns", Operations, Work, Links)


def _listed(columns: Columns) -> Columns:
    """The same columns as lists, whose elements Python reaches faster."""
    lists: list[Any] = [column.tolist() for column in columns]
    return type(columns)(*lists)


def _prepare(schedule: Schedule, places: Places, costs: Costs, topology: Topology) -> tuple[Operations, Links]:
    rank = np.repeat(np.arange(schedule.rank_count, dtype=np.int32), np.diff(schedule.rank_start))
    sends = np.flatnonzero(schedule.step == Step.SEND)
    here, there = rank[sends], schedule.peer[sends]
    near = places.node[here] == places.node[there]
    distance = np.where(near, places.socket[here] != places.socket[there], INTER_NODE)
    size = schedule.size[sends]
    protocol = (size > costs.short_limit[distance]).astype(np.int64) + (size > costs.eager_limit[distance])
    cost, bundle = np.zeros(len(rank), dtype=np.uint8), np.full(len(rank), NOTHING, dtype=np.int32)
    cost[sends] = 3 * distance + protocol
    crossing = sends[~near]
    # Only protocols have limits of their own: pairs of nodes and protocols are the bundles.
    pair = places.node[here].astype(np.int64) * topology.node_count + places.node[there]
    keys, bundle[crossing] = np.unique((3 * pair + protocol)[~near], return_inverse=True)
    source, destination = np.divmod(keys // 3, topology.node_count)
    routes = topology.routes(source, destination)
    charges, limits = _charges(costs)
    links = _links(routes, source, limits[keys % 3], topology, costs.node_gap, len(rank))
    units = 1 if schedule.processor is None else int(schedule.processor.max(initial=0)) + 1
    unit = rank * units + (0 if schedule.processor is None else schedule.processor.astype(np.int32))
    wild = (schedule.step == Step.RECEIVE) & ((schedule.peer == ANY) | (schedule.tag == ANY))
    operations = Operations(
        step=schedule.step,
        rank=rank,
        unit=unit,
        peer=schedule.peer,
        tag=schedule.tag,
        size=schedule.size,
        next_start=schedule.next_start,
        next=schedule.next,
        channel=_channels(schedule, rank, wild),
        loose=np.bincount(rank[wild], minlength=schedule.rank_count) > 0,
        cost=cost,
        charges=charges,
        rendezvous=np.arange(9) % 3 == 2,
        bundle=bundle,
        latency=routes.sums(topology.latencies),
        free_size=np.array([costs.free_size]),
    )
    return operations, links


def _charges(costs: Costs) -> tuple[FloatArray, FloatArray]:
    """The five costs [five, distance, protocol, 2], flat; the highest rate between nodes [protocol]."""
    charges = cost_table(costs)
    slopes = charges[:, INTER_NODE, :, 1]
    wire = slopes[[SEND_GAP, FLIGHT, RECEIVE_GAP]].max(axis=0)
    slopes[FLIGHT] = 0.0
    for received in (RECEIVE_OVERHEAD, RECEIVE_GAP):
        slopes[received] = np.maximum(slopes[received] - wire, 0.0)
    limits = np.divide(1.0, wire, out=np.full(3, UNLIMITED), where=wire > 0)
    return charges.ravel(), limits


def _channels(schedule: Schedule, rank: NDArray[np.int32], wild: NDArray[np.bool_]) -> NDArray[np.int32]:
    """[op]: a number for its sender, receiver and tag; `NOTHING` for receives of any, and what is no message."""
    channels = np.full(len(rank), NOTHING, dtype=np.int32)
    message = np.flatnonzero(np.isin(schedule.step, (Step.SEND, Step.RECEIVE)) & ~wild)
    sending = schedule.step[message] == Step.SEND
    own, peer = rank[message].astype(np.int64), schedule.peer[message]
    sender, receiver = np.where(sending, own, peer), np.where(sending, peer, own)
    tags, tag = np.unique(schedule.tag[message], return_inverse=True)
    keys = (sender * schedule.rank_count + receiver) * len(tags) + tag
    channels[message] = np.unique(keys, return_inverse=True)[1]
    return channels


def _links(
    routes: Routes, source: NDArray[np.int64], limits: FloatArray, topology: Topology, node_gap: float, flow_count: int
) -> Links:
    """The links that can be shared, with the adapters of the nodes where they have a limit, and nothing on them."""
    start, link, capacities = routes.start, routes.link, topology.capacities
    if node_gap > 0:
        link = np.insert(link, start[:-1], (len(capacities) + source).astype(np.int32))
        start = start + np.arange(len(start))
        capacities = np.concatenate([capacities, np.full(topology.node_count, 1 / node_gap)])
    bundle = Routes(start, link).flow
    shared = np.isfinite(capacities[link])
    start = np.searchsorted(bundle[shared], np.arange(len(limits) + 1))
    link, bundle = link[shared].astype(np.int32), bundle[shared]
    of_bundles, of_links, of_entries, of_flows = len(limits), len(capacities), len(link), flow_count

    def numbers(count: int) -> NDArray[np.int32]:
        return np.full(count, NOTHING, dtype=np.int32)

    return Links(
        route_start=start.astype(np.int64),
        route_link=link,
        entry_bundle=bundle.astype(np.int32),
        capacity=capacities,
        limit=limits,
        flow_count=np.zeros(of_bundles, dtype=np.int64),
        rate=np.zeros(of_bundles),
        served=np.zeros(of_bundles),
        since=np.zeros(of_bundles),
        end=np.full(of_bundles, np.nan),
        root=numbers(of_bundles),
        threshold=np.zeros(of_flows),
        child=numbers(of_flows),
        sibling=numbers(of_flows),
        link_head=numbers(of_links),
        before=numbers(of_entries),
        after=numbers(of_entries),
        changed=numbers(of_bundles),
        marked=np.zeros(of_bundles, dtype=np.bool_),
        members=numbers(of_bundles),
        inside=np.zeros(of_bundles, dtype=np.bool_),
        component=numbers(of_links),
        found=np.zeros(of_links, dtype=np.bool_),
        tally=np.zeros(3, dtype=np.int64),
        usage=np.zeros(of_links),
        level=np.zeros(of_links),
        lowest=np.zeros(of_links),
        remaining=np.zeros(of_links),
        own_level=np.zeros(of_bundles),
        open=numbers(of_bundles),
    )


def _work(schedule: Schedule, operations: Operations) -> Work:
    """Nothing started, all free."""
    of_operations, of_ranks = len(schedule.step), schedule.rank_count
    of_channels = int(operations.channel.max(initial=NOTHING)) + 1

    def numbers(count: int) -> NDArray[np.int32]:
        return np.full(count, NOTHING, dtype=np.int32)

    return Work(
        need=schedule.need_count.copy(),
        start=np.zeros(of_operations),
        end=np.full(of_operations, np.nan),
        match=numbers(of_operations),
        arrived=np.zeros(of_operations, dtype=np.bool_),
        unit_free=np.zeros(int(operations.unit.max(initial=0)) + 1),
        side_free=np.zeros(2 * of_ranks),
        side_head=numbers(2 * of_ranks),
        side_tail=numbers(2 * of_ranks),
        side_next=numbers(of_operations),
        channel_head=numbers(of_channels),
        channel_tail=numbers(of_channels),
        channel_next=numbers(of_operations),
        loose_head=numbers(2 * of_ranks),
        loose_tail=numbers(2 * of_ranks),
        loose_next=numbers(of_operations),
    )
