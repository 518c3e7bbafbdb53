"""What the terms that play messages have in common: their inputs, the machine they are played on, points of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from whatif import units
from whatif.core.context import Context
from whatif.core.evaluate import REFUSED
from whatif.core.phases.message import parameters_at
from whatif.core.phases.message_charges import wire_charges
from whatif.core.phases.node_links import LinkBandwidths, by_link
from whatif.core.term import Reference
from whatif.errors import UsageError, WhatifError
from whatif.models.charges import LONG
from whatif.models.patterns import sockets
from whatif.models.quantities import Core, FloatArray
from whatif.models.workload import along_dimensions
from whatif.schema.application import HaloPhase
from whatif.simulation.activity import activity
from whatif.simulation.critical import critical_path
from whatif.simulation.flows import FlowReplay, replay_flows
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Schedule
from whatif.simulation.topology import Topology, dragonfly, fat_tree, star, torus

Limits = Annotated[FloatArray, units.BYTE, Core("kind")]
LinkCounts = Annotated[FloatArray, units.ONE, Core("dimension")]
NO_LINKS: LinkBandwidths = np.empty(0)
NO_LATENCY: FloatArray = np.zeros(())
NO_COUNTS: LinkCounts = np.empty(0)
UNLIMITED: FloatArray = np.full((), np.inf)
MACHINE_CORES: Final = (3, 1, 1, 0, 1, 0)
"""The axes that belong to one point: of charges, limits, link bandwidths, latency and counts, injection bandwidth."""
MACHINE_INPUTS: Final[Mapping[str, tuple[tuple[int, ...], FloatArray]]] = {
    "charges": ((9, 5, 2), UNLIMITED),
    "limits": ((6,), UNLIMITED),
    "link_bandwidths": ((-1,), NO_LINKS),
    "link_latency": ((), NO_LATENCY),
    "link_counts": ((-1,), NO_COUNTS),
    "injection_bandwidth": ((), UNLIMITED),
}
"""Those inputs of a playing term: the shape at one point, and what stands for one that is not fed."""
SOURCE: Final = "each message played; Choi et al. 2020, section 3.2 (NACoM)"
_TOPOLOGY: Final = "platform.network.topology"
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "star": (),
    "fat_tree": ("level_count", "down_count", "up_count"),
    "dragonfly": ("group_count", "router_count", "nodes_per_router", "global_link_count"),
}


class SimulationInputs(NamedTuple):
    """What a playing term is fed with beside its pattern: inputs, and structural choices."""

    inputs: dict[str, Reference]
    options: dict[str, Any]


def wire_playing(context: Context, phase: str, model: str, process_counts: Mapping[str, Reference]) -> SimulationInputs:
    """Wire the charges of a phase's messages, and the links that they share where the application asks for it."""
    inputs = wire_charges(context, phase, model, process_counts)
    _, table, _ = parameters_at(context, phase, model, "inter_node")
    options: dict[str, Any] = {"on_arrival": table == "loggp", "topology": ""}
    if table == "injection":
        inputs["injection_bandwidth"] = "platform.network.inter_node.injection.rendezvous.injection_bandwidth"
    grid = context.scenario.application.grid
    if grid is not None and grid.mapping != "block" and phase not in _halos(context):
        context.wiring.problem("application.grid.mapping", f"`{phase}` can only be played with `block` mapping")
    if context.scenario.application.communication == "shared_links":
        inputs |= _links(context)
        topology = context.scenario.platform.network.topology
        options["topology"] = topology.kind if topology is not None else ""
    return SimulationInputs(inputs, options)


def _halos(context: Context) -> list[str]:
    phases = context.scenario.application.phases
    return [name for name, phase in phases.items() if isinstance(phase, HaloPhase)]


def _links(context: Context) -> dict[str, Reference]:
    """The bandwidths, latency and counts of the platform's topology."""
    topology, wiring = context.scenario.platform.network.topology, context.wiring
    if topology is None:
        name = context.scenario.platform.name
        wiring.problem(
            "application.communication", f"{name} does not state `[network.topology]`, whose links are shared"
        )
        wiring.raise_problems()
    bandwidths = [f"{_TOPOLOGY}.bandwidth"]
    if f"{_TOPOLOGY}.global_bandwidth" in wiring.parameters:
        bandwidths.append(f"{_TOPOLOGY}.global_bandwidth")
    found: dict[str, Reference] = {
        "link_bandwidths": context.once("topology.bandwidths", by_link, **{path: path for path in bandwidths}),
        "link_latency": f"{_TOPOLOGY}.latency",
    }
    extents = f"{_TOPOLOGY}.extents."
    stated = [f"{_TOPOLOGY}.{key}" for key in _COUNTS.get(topology.kind if topology else "", ())]
    counts = stated or [path for path in wiring.parameters if path.startswith(extents)]
    if counts:
        found["link_counts"] = context.once("topology.counts", along_dimensions, **{path: path for path in counts})
    return found


@lru_cache(maxsize=16)
def _topology(
    kind: str, node_count: int, bandwidths: tuple[float, ...], latency: float, counts: tuple[int, ...]
) -> Topology:
    bandwidth = bandwidths[0]
    if kind == "star":
        return star(node_count, bandwidth, latency)
    if kind == "torus":
        return torus(counts, bandwidth, latency)
    if kind == "fat_tree":
        levels, down, up = counts
        return fat_tree([down] * levels, [1, *[up] * (levels - 1)], [1] * levels, bandwidth, latency)
    groups, routers, nodes, ports = counts
    return dragonfly(groups, routers, nodes, ports, (bandwidth, bandwidth, bandwidths[-1]), (latency,) * 3)


def costs_of(charges: FloatArray, limits: FloatArray, on_arrival: bool = False) -> Costs:
    """What the replay charges, from `charges` [protocol, charge, size] and `limits` [limit] of one point."""
    empty, long = np.moveaxis(charges.reshape(3, 3, 5, 2), -1, 0)
    lines = np.stack([empty, (long - empty) / LONG], axis=-1)
    # What LogGOPS charges counts from the second byte on.
    free_size = 1.0 if on_arrival else 0.0
    send, gap, flight, receive, receive_gap = (lines[:, :, number] for number in range(5))
    short, eager = limits.reshape(3, 2).T
    return Costs(send, gap, flight, receive, receive_gap, short, eager, free_size, on_arrival=on_arrival)


def block_places(rank_count: int, ranks_per_node: int, ranks_per_socket: int) -> Places:
    """Consecutive ranks fill a node, and its sockets."""
    node = np.arange(rank_count, dtype=np.int32) // np.int32(ranks_per_node)
    return Places(node, sockets(node, ranks_per_socket))


class MessageMachine(NamedTuple):
    """What messages of one point are charged with, and the links that they share, if any."""

    costs: Costs
    links: Callable[[int], Topology] | None = None
    """The topology, for so many nodes."""

    def run_time(self, schedule: Schedule, places: Places) -> float:
        """When the last rank is done, in s."""
        if self.links is not None:
            return self.shared(schedule, places).run_time
        return replay(schedule, places, self.costs).time

    def shared(self, schedule: Schedule, places: Places) -> FlowReplay:
        """The replay over shared links; raise `UsageError` for more nodes than the topology has."""
        if self.links is None:
            raise UsageError("no links are shared")
        return replay_flows(schedule, places, self.costs, self.links(int(places.node.max()) + 1))

    def times(self, schedule: Schedule, places: Places) -> FloatArray:
        """Computation on the critical path and the rest, in s; over shared links, of the rank that is done last."""
        if self.links is None:
            played = replay(schedule, places, self.costs)
            computed = critical_path(schedule, played, self.costs).compute_time
            return np.array([computed, played.time - computed])
        flows = self.shared(schedule, places)
        spent = activity(schedule, flows.start, flows.end, flows.match)
        computed = float(spent.rank_times()[spent.rank_ends().argmax(), 0])
        return np.array([computed, flows.run_time - computed])


def machine_of(
    stated: tuple[FloatArray, ...],
    topology: str,
    on_arrival: bool,
) -> MessageMachine:
    """The machine at one point; `stated` are the last six arguments of a playing term."""
    charges, limits, bandwidths, latency, counts, injection = stated
    costs = replace(costs_of(charges, limits, on_arrival), node_gap=1 / float(injection))
    if not topology:
        return MessageMachine(costs)
    links = (tuple(bandwidths.tolist()), float(latency), tuple(int(count) for count in counts))
    return MessageMachine(costs, lambda node_count: _topology(topology, node_count, *links))


def each_point(
    function: Callable[..., Any], cores: tuple[int, ...], *arrays: FloatArray, shape: tuple[int, ...] = ()
) -> FloatArray:
    """A function of points, with results of a `shape`, over arrays whose last axes, as many as `cores` says, belong to
    one point. Points that cannot be played are NaN, and say why."""
    leads = [array.shape[: array.ndim - core] for array, core in zip(arrays, cores, strict=True)]
    lead = np.broadcast_shapes(*leads)
    spread = [np.broadcast_to(a, (*lead, *a.shape[a.ndim - c :])) for a, c in zip(arrays, cores, strict=True)]
    result, said = np.full((*lead, *shape), np.nan), np.full(lead, "", dtype=object)
    for at in np.ndindex(lead):
        try:
            result[at] = function(*(array[at] for array in spread))
        except WhatifError as error:
            said[at] = str(error)
    if (said != "").any():
        REFUSED.get([]).append(said)
    return result
