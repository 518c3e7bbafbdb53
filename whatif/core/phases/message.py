"""Time of a message at one distance: the chosen model with the parameters of each protocol, then the protocol."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.term import Reference, signature
from whatif.models.loggp import loggp
from whatif.models.max_rate import (
    max_rate,
    max_rate_injection,
    max_rate_short,
    node_bandwidth,
    port_additional_bandwidth,
)
from whatif.models.postal import postal
from whatif.models.protocol import by_protocol
from whatif.models.ranks import memory_fits
from whatif.schema.network import Distance, Network
from whatif.units import BYTE_PER_SECOND, Quantity
from whatif.vocabulary import DISTANCES, MESSAGE_MODELS, PARAMETER_TABLES, PROTOCOLS

PORT_COUNT: Final = "platform.network.port_count"
_FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("max_rate", "short"): max_rate_short,
    ("max_rate", "eager"): max_rate,
    ("max_rate", "rendezvous"): max_rate,
    **{("postal", protocol): postal for protocol in PROTOCOLS},
    **{("injection", protocol): max_rate_injection for protocol in PROTOCOLS},
    **{("loggp", protocol): loggp for protocol in PROTOCOLS},
}


def message_time(
    context: Context, phase: str, model: str, distance: str, message_size: Reference, process_count: Reference
) -> str:
    """Wire the time of messages of `phase` over a distance; `process_count` is the k of models that share."""
    used, table, note = parameters_at(context, phase, model, distance)
    times: dict[str, Reference] = {}
    for protocol in PROTOCOLS:
        name = f"{phase}.{distance}.{protocol}_time"
        times[protocol] = protocol_time(context, name, used, table, protocol, message_size, process_count, note)
    return choose_protocol(context, f"{phase}.{distance}.message_time", used, message_size, times, note)


def protocol_time(
    context: Context,
    name: str,
    distance: str,
    table: str,
    protocol: str,
    message_size: Reference,
    process_count: Reference,
    note: str = "",
) -> str:
    """Wire the time of a message by one protocol, whatever its size, with the parameters of one table."""
    function = _FUNCTIONS[table, protocol]
    base = f"platform.network.{distance}.{table}.{protocol}"
    given = {"message_size": message_size, "process_count": process_count}
    if distance == "inter_node" and PORT_COUNT in context.wiring.parameters:
        given |= _of_ports(context, name, table, protocol, process_count)
        function = max_rate if function is max_rate_short else function
    inputs = {key: given.get(key, f"{base}.{key}") for key in signature(function).parameters}
    return context.wiring.add(name, function, inputs, note=note)


def _of_ports(context: Context, name: str, table: str, protocol: str, process_count: Reference) -> dict[str, Reference]:
    """Bandwidths of a node from those of its ports, which the parameters of messages between nodes describe."""
    if table == "injection":
        return {"injection_bandwidth": injection_bandwidth(context, protocol)}
    if table != "max_rate":
        return {}
    additional = _additional(context, f"{name}.additional", protocol, process_count)
    return {"base_bandwidth": _port_rates(protocol)["base_bandwidth"], "additional_bandwidth": additional}


def _additional(context: Context, name: str, protocol: str, process_count: Reference) -> str:
    inputs: dict[str, Reference] = {
        "process_count": process_count,
        "port_count": PORT_COUNT,
        **_port_rates(protocol),
    }
    return context.wiring.add(name, port_additional_bandwidth, inputs)


def _port_rates(protocol: str) -> dict[str, Reference]:
    """Bandwidths of one process and of one port, which short messages use at the rate of eager ones at most."""
    base, short = "platform.network.inter_node.max_rate", protocol == "short"
    return {
        "base_bandwidth": f"{base}.short.bandwidth" if short else f"{base}.{protocol}.base_bandwidth",
        "port_bandwidth": f"{base}.{'eager' if short else 'rendezvous'}.base_bandwidth",
    }


def node_rates(context: Context, protocol: str) -> tuple[Reference, Reference, Reference]:
    """Bandwidths of max-rate messages that leave a node: of the first one, of each further one, and the largest."""
    base = f"platform.network.inter_node.max_rate.{protocol}"
    if PORT_COUNT in context.wiring.parameters:
        rates = _port_rates(protocol)
        ports = {"port_count": PORT_COUNT, "port_bandwidth": rates["port_bandwidth"]}
        most = context.once(f"network.{protocol}.ports_bandwidth", node_bandwidth, **ports)
        return rates["base_bandwidth"], rates["base_bandwidth"], most
    if protocol == "short":
        return f"{base}.bandwidth", Quantity(0.0, BYTE_PER_SECOND), Quantity(math.inf, BYTE_PER_SECOND)
    return f"{base}.base_bandwidth", f"{base}.additional_bandwidth", Quantity(math.inf, BYTE_PER_SECOND)


def injection_bandwidth(context: Context, protocol: str) -> str:
    """Bandwidth at which a node injects messages of a protocol: as stated, or that of its ports together."""
    stated = f"platform.network.inter_node.injection.{protocol}.injection_bandwidth"
    if PORT_COUNT not in context.wiring.parameters:
        return stated
    name = f"network.{protocol}.injection_bandwidth"
    return context.once(name, node_bandwidth, port_count=PORT_COUNT, port_bandwidth=stated)


def choose_protocol(
    context: Context, name: str, distance: str, message_size: Reference, values: Mapping[str, Reference], note: str = ""
) -> str:
    """Wire the choice among three values, one a protocol, by the limits of a distance."""
    base = f"platform.network.{distance}"
    limits: dict[str, Reference] = {limit: f"{base}.{limit}" for limit in ("short_limit", "eager_limit")}
    agrees = f"placement.{distance} limits agree"
    if agrees not in context.wiring.terms:
        sizes = {"needed_size": limits["short_limit"], "available_size": limits["eager_limit"]}
        context.wiring.require(agrees, f"{base}: short_limit exceeds eager_limit", memory_fits, sizes)
    inputs = {"message_size": message_size, **limits, **values}
    return context.wiring.add(name, by_protocol, inputs, note=note)


def pieces_at(context: Context, phase: str, distance: str) -> tuple[str, str]:
    """Distance whose pieces apply, with a note if they are those of a longer one."""
    network, platform = context.scenario.platform.network, context.scenario.platform.name
    farther = [item for item in DISTANCES[DISTANCES.index(distance) :] if getattr(network, item) is not None]
    used = next((item for item in farther if getattr(network, item).pieces), "")
    if not used:
        problem = f"`pieces`: {platform} has none for inter_node messages (`[network.inter_node.pieces]`)"
        context.wiring.refuse(f"application.phases.{phase}.model", problem)
    note = "" if used == distance else f"the platform has no {distance} pieces: those of {used} are applied"
    return used, note


def _peer_link(context: Context) -> str:
    """Advice for messages between GPUs without links of their own."""
    node = context.scenario.platform.node
    return "" if node.gpu is None or node.peer_link is not None else "; state node.peer_link for those between GPUs"


def distance_at(network: Network, distance: str) -> tuple[str, Distance]:
    """Distance whose parameters apply: the stated one, or the next farther one that the platform describes."""
    farther = ((item, getattr(network, item)) for item in DISTANCES[DISTANCES.index(distance) :])
    return next((item, parameters) for item, parameters in farther if parameters is not None)


def parameters_at(context: Context, phase: str, model: str, distance: str) -> tuple[str, str, str]:
    """Distance and table of the parameters that apply, with a note if they are not the stated ones."""
    platform = context.scenario.platform.name
    used, parameters = distance_at(context.scenario.platform.network, distance)
    notes = []
    if used != distance:
        notes.append(f"the platform has no {distance} parameters: those of {used} are applied{_peer_link(context)}")
    table = PARAMETER_TABLES[model]
    if getattr(parameters, table) is None:
        # Choi et al. 2020, Tables 3 and 4: "N/A (Apply postal model)".
        notes.append(f"the platform has no {table} parameters for {used} messages: the postal model is applied")
        missing = distance == "inter_node" or parameters.postal is None
        table = "postal"
        if missing:
            has = [name for name in MESSAGE_MODELS if getattr(parameters, name)]
            known = f"{platform} has {', '.join(has)} for {used} messages"
            context.wiring.refuse(f"application.phases.{phase}.model", f"`{model}` has no parameters; {known}")
    return used, table, "; ".join(notes)
