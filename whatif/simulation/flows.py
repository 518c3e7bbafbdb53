"""Replay of a schedule in which the messages between nodes are flows that share links, max-min fair.

The costs are those of `Costs`, with one change for messages between nodes: their bytes are charged once, by links. A
message of n bytes enters its links when the constant part of its flight and the latencies of the links are over, and
has arrived when n - free_size bytes have passed at its rate, at most 1 / w, where w is the greatest of the s/B of its
gaps and its flight. Its receive is charged the part of its own s/B beyond w. A message alone therefore takes the time
of `Costs`, and messages that share links take longer. A rendezvous send between nodes has not finished before its
message has arrived. A receive takes its message when it is posted, also where costs say `on_arrival`. With `node_gap`
the messages that leave a node also share a link of 1 / node_gap.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.charges import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, SEND_OVERHEAD
from whatif.models.patterns import INTER_NODE
from whatif.models.quantities import FloatArray
from whatif.simulation import flow_kernel, link_kernel
from whatif.simulation.flow_state import (
    TALLIES,
    Bundle,
    BundleLink,
    FlowState,
    NetworkLink,
    Operation,
    Queue,
    Side,
    column,
    listed,
    rows,
)
from whatif.simulation.jit import CompilerError, jitted, plain
from whatif.simulation.rank_programs import Kind
from whatif.simulation.replay_state import NONE
from whatif.simulation.schedule import Costs, Places, Schedule, Step
from whatif.simulation.schedule_checks import check_completion, check_schedule, cost_table
from whatif.simulation.sharing import Routes
from whatif.simulation.topology import Topology

COMPILED_FROM: Final = 10_000
"""Operations, of all replays so far, that take Python longer than it takes to load the compiled loop."""
UNLIMITED: Final = 1e300
"""B/s of a flow without limits: bytes over it are no time, and it can still be multiplied."""


class _Replayed:
    """Operations replayed so far: a sweep or a session replays small schedules hundreds of times."""

    operations: ClassVar[int] = 0


@dataclass(frozen=True, slots=True, eq=False)
class FlowReplay:
    """Start and end of each operation in s, and the operation it was matched with (-1: none)."""

    start: FloatArray
    end: FloatArray
    match: NDArray[np.int32]

    @property
    def run_time(self) -> float:
        """End of the last operation, in s."""
        return float(self.end.max(initial=0.0))


def replay_flows(
    schedule: Schedule, places: Places, costs: Costs, topology: Topology, compiled_loop: bool | None = None
) -> FlowReplay:
    """Start and end of each operation in s.

    The loop is compiled according to `compiled_loop`, or once `COMPILED_FROM` operations were replayed. Node n of
    `places` is node n of the topology. Raises UsageError for a schedule that is not consistent and for nodes
    that do not exist, InfeasiblePointError for sizes that are not finite, a deadlock, messages left over and messages
    larger than their receives.
    """
    check_schedule(schedule, places, costs)
    if compiled_loop is None:
        _Replayed.operations += len(schedule.step)
        compiled_loop = _Replayed.operations >= COMPILED_FROM
    state = _final_state(_state(schedule, places, costs, topology), compiled_loop)
    start, end, match = (column(state.operations, name) for name in ("start", "end", "match"))
    # Without operations, as in groups of one rank, the numbers have no type.
    match = match.astype(np.int32)
    check_completion(schedule, end, match)
    return FlowReplay(start, end, match)


def _final_state(state: FlowState, compiled_loop: bool) -> FlowState:
    """State after the last event: in arrays for the compiled loop, in lists for the loop in Python."""
    if compiled_loop:
        with suppress(CompilerError):
            jitted((link_kernel, flow_kernel), (flow_kernel.run.__name__,))[0](state)
            return state
    state = listed(state)
    flow_kernel.run(state)
    return state


def _state(schedule: Schedule, places: Places, costs: Costs, topology: Topology) -> FlowState:
    """Nothing started, all free."""
    rank, wild = schedule.rank, schedule.is_wild
    channel = _channels(schedule, rank, wild)
    charges, limits = _charges(costs)
    cost, bundle, pairs, (protocol, stretch) = _bundles(schedule, places, costs, rank)
    routes = topology.routes(*pairs)
    bundles, links, entries = _network(routes, pairs, limits[protocol] / stretch, topology, costs)
    units = schedule.processor_count
    unit = rank * units + (0 if schedule.processor is None else schedule.processor.astype(np.int32))
    size = np.where(schedule.step == Step.COMPUTE, schedule.size, np.maximum(schedule.size - costs.free_size, 0.0))
    count, of_ranks = len(rank), 2 * schedule.rank_count
    operations = rows(
        Operation,
        count,
        step=schedule.step,
        rank=rank,
        unit=unit,
        peer=schedule.peer,
        tag=schedule.tag,
        size=size,
        charged=size if schedule.stretch is None else size * schedule.stretch,
        channel=channel,
        cost=cost,
        waits=cost % costs.protocol_count >= costs.eager_count,
        bundle=bundle,
        need=schedule.need_count,
    )
    return FlowState(
        operations=operations,
        next_start=plain(schedule.next_start, np.int64),
        next=plain(schedule.next, np.int32),
        charges=plain(charges, np.float64),
        unit_free=_filled(units * schedule.rank_count, 0.0),
        sides=rows(Side, of_ranks),
        side_next=_filled(count, NONE),
        channels=rows(Queue, int(channel.max(initial=NONE)) + 1),
        channel_next=_filled(count, NONE),
        loose=rows(Queue, of_ranks),
        loose_next=_filled(count, NONE),
        wild=plain(schedule.has_wild, np.bool_),
        bundles=bundles,
        links=links,
        entries=entries,
        **{name: _filled(len(bundles), NONE) for name in ("changed", "members", "open")},
        component=_filled(len(links), NONE),
        kinds=3 * costs.protocol_count,
        tally=_filled(TALLIES, 0),
    )


def _filled(count: int, value: float) -> Any:
    """An array of a number, 32 bits wide if it is whole."""
    return np.full(count, value, dtype=np.int32 if isinstance(value, int) else np.float64)


def _bundles(
    schedule: Schedule, places: Places, costs: Costs, rank: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], tuple[NDArray[np.int64], FloatArray]]:
    """Cost and bundle of each operation; the nodes at both ends of a bundle [2, bundle], its protocol and stretch."""
    sends = np.flatnonzero(schedule.step == Step.SEND)
    here, there = rank[sends], schedule.peer[sends]
    near = places.node[here] == places.node[there]
    distance = np.where(near, places.socket[here] != places.socket[there], INTER_NODE)
    size = schedule.size[sends]
    nonblocking = schedule.origin_kind[sends] == Kind.ISEND
    protocol, count = costs.protocols(size, distance, nonblocking), costs.protocol_count
    cost, bundle = np.zeros(len(rank), dtype=np.int32), np.full(len(rank), NONE, dtype=np.int32)
    cost[sends] = count * distance + protocol
    # Only protocols, and numbers of messages that share a node, have limits of their own.
    factors = np.ones(1) if schedule.stretch is None else np.unique(schedule.stretch)
    if schedule.stretch is not None:
        protocol = protocol + count * np.searchsorted(factors, schedule.stretch[sends])
    nodes, kinds = int(places.node.max(initial=0)) + 1, count * len(factors)
    keys = kinds * (places.node[here].astype(np.int64) * nodes + places.node[there]) + protocol
    keys, bundle[sends[~near]] = np.unique(keys[~near], return_inverse=True)
    kind = keys % kinds
    return cost, bundle, np.stack(np.divmod(keys // kinds, nodes)), (kind % count, factors[kind // count])


def _charges(costs: Costs) -> tuple[FloatArray, FloatArray]:
    """The five costs [five, distance, protocol, 2], flat; the highest rate between nodes [protocol]."""
    charges = cost_table(costs)
    slopes = charges[:, INTER_NODE, :, 1]
    if costs.overhead_first:
        wire = slopes[FLIGHT] - slopes[SEND_OVERHEAD]
        slopes[[SEND_GAP, FLIGHT]] -= wire
    else:
        wire = slopes[[SEND_GAP, FLIGHT, RECEIVE_GAP]].max(axis=0)
        slopes[FLIGHT] = 0.0
        received = [RECEIVE_OVERHEAD, RECEIVE_GAP]
        slopes[received] = np.maximum(slopes[received] - wire, 0.0)
    limits = np.divide(1.0, wire, out=np.full(len(wire), UNLIMITED), where=wire > 0)
    return charges.ravel(), limits


def _channels(schedule: Schedule, rank: NDArray[np.int32], wild: NDArray[np.bool_]) -> NDArray[np.int32]:
    """[op]: a number for its sender, receiver and tag; `NONE` for wildcards, and operations without a message."""
    channels = np.full(len(rank), NONE, dtype=np.int32)
    message = np.flatnonzero(np.isin(schedule.step, (Step.SEND, Step.RECEIVE)) & ~wild)
    sending = schedule.step[message] == Step.SEND
    own, peer = rank[message].astype(np.int64), schedule.peer[message]
    sender, receiver = np.where(sending, own, peer), np.where(sending, peer, own)
    tags, tag = np.unique(schedule.tag[message], return_inverse=True)
    keys = (sender * schedule.rank_count + receiver) * len(tags) + tag
    channels[message] = np.unique(keys, return_inverse=True)[1]
    return channels


def _network(
    routes: Routes, pairs: NDArray[np.int64], limits: FloatArray, topology: Topology, costs: Costs
) -> tuple[MutableSequence[Bundle], MutableSequence[NetworkLink], MutableSequence[BundleLink]]:
    """The links, with the adapters of the nodes where these have a limit; bundles cross those that can be full."""
    link, bundle, capacities = routes.link, routes.flow, topology.capacities
    share = np.ones(len(link))
    if costs.overhead_first:
        # A message of a piece alone takes its whole link, as in SimGrid: more of them are not faster together.
        slowest = np.full(len(routes), np.inf)
        np.minimum.at(slowest, bundle, capacities[link])
        share = (slowest / limits)[bundle]
    if topology.cross_traffic > 0:
        back = topology.routes(pairs[1], pairs[0])
        link, bundle = np.concatenate([link, back.link]), np.concatenate([bundle, back.flow])
        share = np.concatenate([share, np.full(len(back.link), topology.cross_traffic)])
    if costs.node_gap > 0:
        link = np.concatenate([link, (len(capacities) + pairs[0]).astype(np.int32)])
        bundle, share = np.concatenate([bundle, np.arange(len(routes))]), np.concatenate([share, np.ones(len(routes))])
        capacities = np.concatenate([capacities, np.full(topology.node_count, 1 / costs.node_gap)])
    order = np.argsort(bundle, kind="stable")
    order = order[np.isfinite(capacities[link[order]])]
    link, bundle, share = link[order], bundle[order], share[order]
    first, last = np.searchsorted(bundle, np.stack([np.arange(len(routes)), np.arange(len(routes)) + 1]))
    latency = routes.sums(topology.latencies)
    bundles = rows(Bundle, len(routes), first=first, last=last, limit=limits, latency=latency)
    return (
        bundles,
        rows(NetworkLink, len(capacities), capacity=capacities),
        rows(BundleLink, len(link), link=link, bundle=bundle, share=share),
    )
