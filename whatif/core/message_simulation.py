"""Terms that simulate messages: their inputs, the machine they are simulated on, and the points of a sweep."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import numpy as np

from whatif import units
from whatif.core.context import Context
from whatif.core.evaluate import REFUSED
from whatif.core.phases.link_sharing import NO_COUNTS, TOPOLOGY, TopologyCounts, topology_inputs
from whatif.core.phases.message import injection_bandwidth, parameters_at
from whatif.core.phases.message_charges import wire_charges
from whatif.core.term import Reference
from whatif.errors import UsageError, WhatifError
from whatif.models.charges import (
    FLIGHT,
    LONG,
    RECEIVE_GAP,
    RECEIVE_OVERHEAD,
    SEND_GAP,
    SEND_OVERHEAD,
    ProtocolCharges,
    SharedRates,
)
from whatif.models.congestion import LinkBandwidths
from whatif.models.patterns import block_nodes, nested_domains
from whatif.models.quantities import BytesPerSecond, Core, FloatArray, Fraction, Seconds
from whatif.models.reductions import TRAFFIC
from whatif.schema.application import HaloPhase
from whatif.simulation.activity import activity
from whatif.simulation.critical import critical_path
from whatif.simulation.flows import FlowReplay, replay_flows
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Schedule
from whatif.simulation.topology import Topology, topology_of

Limits = Annotated[FloatArray, units.BYTE, Core("kind")]
NO_LINKS: LinkBandwidths = np.empty(0)
NO_LATENCY: FloatArray = np.zeros(())
NO_RATES: SharedRates = np.empty((0, 3))
NO_CROSS_TRAFFIC: FloatArray = np.zeros(())
UNLIMITED: FloatArray = np.full((), np.inf)
SIMULATED: Final[ContextVar[Callable[[], None]]] = ContextVar("SIMULATED")
"""Called after every simulated point, where somebody counts them."""
SOURCE: Final = "each message simulated; Choi et al. 2020, section 3.2 (NACoM)"


class MachineInputs(NamedTuple):
    """Inputs of a simulated term that describe its machine; those with a default need no reference."""

    charges: ProtocolCharges
    limits: Limits
    link_bandwidths: LinkBandwidths = NO_LINKS
    link_latency: Seconds = NO_LATENCY
    link_counts: TopologyCounts = NO_COUNTS
    cross_traffic: Fraction = NO_CROSS_TRAFFIC
    injection_bandwidth: BytesPerSecond = UNLIMITED
    reducing_bandwidth: BytesPerSecond = UNLIMITED
    shared_rates: SharedRates = NO_RATES


class SimulationReferences(NamedTuple):
    """References of a simulated term to its `MachineInputs`, and its structural choices."""

    inputs: dict[str, Reference]
    options: dict[str, Any]


def wire_machine(
    context: Context, phase: str, model: str, process_counts: Mapping[str, Reference]
) -> SimulationReferences:
    """Wire the charges of a phase's messages, and the links that they share if the application requests it."""
    inputs = wire_charges(context, phase, model, process_counts)
    table = model if model == "pieces" else parameters_at(context, phase, model, "inter_node")[1]
    options: dict[str, Any] = {"table": table, "topology": ""}
    if table == "injection":
        inputs["injection_bandwidth"] = injection_bandwidth(context, "rendezvous")
    grid = context.scenario.application.grid
    if grid is not None and grid.mapping != "block" and phase not in _halos(context):
        context.wiring.problem("application.grid.mapping", f"`{phase}` can only be simulated with `block` mapping")
    if context.scenario.application.communication == "shared_links":
        inputs |= _links(context)
        topology = context.scenario.platform.network.topology
        options["topology"] = topology.kind if topology is not None else ""
    return SimulationReferences(inputs, options)


def _halos(context: Context) -> list[str]:
    phases = context.scenario.application.phases
    return [name for name, phase in phases.items() if isinstance(phase, HaloPhase)]


def _links(context: Context) -> dict[str, Reference]:
    """Bandwidths, latency and counts of the platform's topology."""
    if context.scenario.platform.network.topology is None:
        name = context.scenario.platform.name
        context.wiring.refuse(
            "application.communication", f"{name} does not state `[network.topology]`, whose links are shared"
        )
    return {**topology_inputs(context), "cross_traffic": f"{TOPOLOGY}.cross_traffic"}


def costs_of(charges: FloatArray, limits: FloatArray, table: str = "") -> Costs:
    """Costs of the replay, from `charges` [protocol, charge, size] and `limits` [limit] of one point."""
    empty, long = np.moveaxis(charges.reshape(3, -1, 5, 2), -1, 0)
    lines, sizes = np.stack([empty, (long - empty) / LONG], axis=-1), limits.reshape(3, -1)
    if table == "pieces":
        return _costs_of_pieces(lines, sizes)
    send, gap, flight, receive, receive_gap = (lines[:, :, number] for number in range(5))
    # LogGOPS charges bytes from the second one on.
    loggops = table == "loggp"
    return Costs(send, gap, flight, receive, receive_gap, sizes, free_size=1.0 if loggops else 0.0, on_arrival=loggops)


def _costs_of_pieces(lines: FloatArray, limits: FloatArray) -> Costs:
    """Costs of pieces [distance, piece, cost, 2], whose least sizes and largest eager size are the `limits`.

    Each piece is three protocols: of eager messages, of longer messages of blocking sends, which no processor handles,
    and of nonblocking ones, which the sender handles.
    """
    starts, eager = limits[:, :-1], limits[:, -1:]
    order = np.argsort(starts, axis=1, kind="stable")
    lines = np.take_along_axis(lines, order[:, :, None, None], axis=1)
    ends = np.nextafter(np.take_along_axis(starts, order, axis=1)[:, 1:], 0.0)
    nonblocking = lines.copy()
    nonblocking[:, :, [RECEIVE_OVERHEAD, RECEIVE_GAP]] = 0.0
    blocking = nonblocking.copy()
    blocking[:, :, [SEND_GAP, FLIGHT]] -= lines[:, :, [SEND_OVERHEAD]]
    blocking[:, :, SEND_OVERHEAD] = 0.0
    send, gap, flight, receive, receive_gap = np.moveaxis(np.concatenate([lines, blocking, nonblocking], axis=1), 2, 0)
    sizes = np.concatenate([np.minimum(ends, eager), eager, np.maximum(ends, eager)], axis=1)
    count = lines.shape[1]
    return Costs(send, gap, flight, receive, receive_gap, sizes, count, isend_shift=count, overhead_first=True)


def block_places(rank_count: int, ranks_per_node: int, ranks_per_socket: int, nodes_per_domain: int = 1) -> Places:
    """Domains of ranks that fill a node, and its sockets, one after another."""
    node = block_nodes(rank_count, ranks_per_node)
    return Places(*nested_domains(node, ranks_per_socket, nodes_per_domain), home=node)


class MessageMachine(NamedTuple):
    """Charges of messages at one point, and the links that they share, if any."""

    costs: Costs
    links: Callable[[int], Topology] | None = None
    """Topology for a number of nodes."""

    def refuse_shared_domains(self, nodes_per_domain: int) -> None:
        """Raise `UsageError` for nodes of one link domain that share adapters or links with others."""
        if nodes_per_domain > 1 and (self.links is not None or self.costs.node_gap > 0):
            raise UsageError(
                'adapters and links of nodes in one link domain are not simulated; state `communication = "modelled"`'
            )

    def run_time(self, schedule: Schedule, places: Places) -> float:
        """End of the last rank, in s."""
        if self.links is not None:
            return self.shared(schedule, places).run_time
        return replay(schedule, places, self.costs).time

    def shared(self, schedule: Schedule, places: Places) -> FlowReplay:
        """Replay over shared links; raise `UsageError` for more nodes than the topology has."""
        if self.links is None:
            raise UsageError("no links are shared")
        return replay_flows(schedule, places, self.costs, self.links(int(places.node.max()) + 1))

    def times(self, schedule: Schedule, places: Places) -> FloatArray:
        """Computation on the critical path and the rest of it, in s; over shared links, of the last rank."""
        if self.links is None:
            replayed = replay(schedule, places, self.costs)
            computed = critical_path(schedule, replayed, self.costs).compute_time
            return np.array([computed, replayed.time - computed])
        flows = self.shared(schedule, places)
        spent = activity(schedule, flows.start, flows.end, flows.match)
        computed = float(spent.rank_times()[spent.rank_ends().argmax(), 0])
        return np.array([computed, flows.run_time - computed])


def machine_of(stated: MachineInputs, topology: str, table: str) -> MessageMachine:
    """Machine at one point, for messages by the parameters of a table."""
    charges, limits, bandwidths, latency, counts, cross_traffic, injection, reducing, rates = stated
    charged = costs_of(charges, limits, table)
    costs = replace(charged, node_gap=1 / float(injection), reduction_time=TRAFFIC / float(reducing))
    costs = replace(costs, sharing=rates if rates.size else None)
    if not topology:
        return MessageMachine(costs)
    links = (tuple(bandwidths.tolist()), float(latency), tuple(int(count) for count in counts))

    def network(node_count: int) -> Topology:
        return replace(topology_of(topology, node_count, *links), cross_traffic=float(cross_traffic))

    return MessageMachine(costs, network)


def each_point(
    function: Callable[..., Any], cores: tuple[int, ...], *arrays: FloatArray, shape: tuple[int, ...] = ()
) -> FloatArray:
    """Results [..., shape] of a function of one point over arrays [..., core], with `cores` axes in the core of each.

    Points that cannot be simulated are NaN, with the reason in `REFUSED`.
    """
    leads = [array.shape[: array.ndim - core] for array, core in zip(arrays, cores, strict=True)]
    lead = np.broadcast_shapes(*leads)
    spread = [np.broadcast_to(a, (*lead, *a.shape[a.ndim - c :])) for a, c in zip(arrays, cores, strict=True)]
    result, reasons = np.full((*lead, *shape), np.nan), np.full(lead, "", dtype=object)
    for at in np.ndindex(lead):
        try:
            result[at] = function(*(array[at] for array in spread))
        except WhatifError as error:
            reasons[at] = str(error)
        SIMULATED.get(_nothing)()
    if (reasons != "").any():
        REFUSED.get([]).append(reasons)
    return result


def _nothing() -> None:
    """Nobody counts."""


def simulated_term(shape: tuple[int, ...] = ()) -> Callable[[Callable[..., Any]], Callable[..., FloatArray]]:
    """Decorator: a term over arrays of points, from a function of one point with a parameter `machine`.

    In place of `machine`, a `MessageMachine`, the term has the parameters of `MachineInputs` and the options `topology`
    and `table`. Its result is [..., *shape].
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., FloatArray]:
        own, hints = inspect.signature(function).parameters.values(), get_type_hints(function, include_extras=True)
        of_machine = get_type_hints(MachineInputs, include_extras=True)
        names = [p.name for p in own if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "machine"]
        cores = tuple(core_count((hints | of_machine)[name]) for name in (*names, *MachineInputs._fields))
        defaults = MachineInputs._field_defaults

        def term(*, topology: str = "", table: str = "", **named: Any) -> FloatArray:
            arrays = [named.pop(name) for name in names]
            machine = [named.pop(name, defaults.get(name)) for name in MachineInputs._fields]

            def simulated(*point: Any) -> Any:
                stated = MachineInputs(*point[len(names) :])
                return function(*point[: len(names)], machine_of(stated, topology, table), **named)

            return each_point(simulated, cores, *arrays, *machine, shape=shape)

        kinds = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in (*names, *of_machine)]
        term.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
        term.__annotations__ = {name: hints[name] for name in (*names, "return")} | of_machine
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(term, name, getattr(function, name))
        return term

    return decorate


def core_count(annotation: Any) -> int:
    """Axes of one point in a quantity."""
    return next((len(item.axes) for item in getattr(annotation, "__metadata__", ()) if isinstance(item, Core)), 0)
