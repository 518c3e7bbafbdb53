"""Charges of simulated messages: the parameters of the chosen model at every distance, by protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from whatif.core.context import Context
from whatif.core.phases.device_messages import from_memory
from whatif.core.phases.message import node_rates, parameters_at, pieces_at, protocol_time
from whatif.core.term import Reference, parameters_in, signature
from whatif.models.charges import (
    LONG,
    by_protocol_charges,
    by_protocol_rates,
    loggops_charges,
    piece_charges,
    serial_charges,
)
from whatif.models.workload import by_kind
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, Quantity
from whatif.vocabulary import DISTANCES, PROTOCOLS

_SIZES = {"empty_time": Quantity(0.0, BYTE), "long_time": Quantity(LONG, BYTE)}


def wire_charges(
    context: Context, phase: str, model: str, process_counts: Mapping[str, Reference]
) -> dict[str, Reference]:
    """Wire `charges` [protocol, charge, size] and `limits` [limit] of the messages of a phase, all distances after
    one another; `process_counts` are the k of each distance, for models that share.

    The limits are the largest sizes of the short and of the eager protocol; of pieces the least sizes of the pieces,
    and the largest one of an eager message.
    """
    if model == "pieces":
        return _wire_pieces(context, phase)
    charges: dict[str, Reference] = {}
    limits: dict[str, Reference] = {}
    for distance in DISTANCES:
        used, table, note = parameters_at(context, phase, model, distance)
        # The sharing of a node's adapter is simulated: messages queue there.
        alone = table == "injection" and distance == "inter_node"
        sharing = Quantity(1.0, ONE) if alone else process_counts[distance]
        linked = context.buffers != "host" and distance != "inter_node"
        for protocol in PROTOCOLS:
            name = f"{phase}.{distance}.{protocol}"
            if table == "loggp" and not linked:
                term = _loggops(context, name, f"platform.network.{used}.{table}.{protocol}", note)
            else:
                send = partial(protocol_time, context, distance=used, table=table, protocol=protocol, note=note)
                times: dict[str, Reference] = {
                    key: from_memory(
                        context,
                        f"{name}_{key}",
                        distance,
                        size,
                        partial(send, f"{name}_{key}", message_size=size, process_count=sharing),
                    )
                    for key, size in _SIZES.items()
                }
                term = context.wiring.add(f"{name}_charges", serial_charges, times, note=note)
            charges[term] = term
        limits |= {f"{distance}.{key}": f"platform.network.{used}.{key}" for key in ("short_limit", "eager_limit")}
    return _joined(context, phase, charges, limits)


def wire_shared_rates(context: Context, phase: str) -> str:
    """Wire the rates of messages between nodes that share their node, by protocol, from the parameters of max-rate."""
    rates: list[Reference] = [rate for protocol in PROTOCOLS for rate in node_rates(context, protocol)]
    return context.wiring.add(
        f"{phase}.shared_rates", by_protocol_rates, {str(at): rate for at, rate in enumerate(rates)}
    )


def _joined(
    context: Context, phase: str, charges: dict[str, Reference], limits: dict[str, Reference]
) -> dict[str, Reference]:
    joined = context.wiring.add(f"{phase}.charges", by_protocol_charges, charges)
    return {"charges": joined, "limits": context.wiring.add(f"{phase}.limits", by_kind, limits)}


def _wire_pieces(context: Context, phase: str) -> dict[str, Reference]:
    """Wire the pieces of all distances, padded to the same number by pieces that begin at infinity."""
    network = context.scenario.platform.network
    places = {distance: pieces_at(context, phase, distance) for distance in DISTANCES}
    if context.buffers != "host":
        problem = '`pieces` describe messages of main memory: set `application.buffers = "host"`'
        context.wiring.refuse(f"application.phases.{phase}.model", problem)
    names = {distance: list(getattr(network, used).pieces) for distance, (used, _) in places.items()}
    longest = max(map(len, names.values()))
    charges: dict[str, Reference] = {}
    limits: dict[str, Reference] = {}
    for distance, (used, note) in places.items():
        table = f"platform.network.{used}"
        for number in range(longest):
            piece = f"{table}.pieces.{names[distance][min(number, len(names[distance]) - 1)]}"
            name = f"{phase}.{distance}.piece{number + 1}_charges"
            term = context.wiring.add(name, piece_charges, _piece(context, piece), note=note)
            charges[term] = term
            is_real = number < len(names[distance])
            limits[name] = f"{piece}.smallest_size" if is_real else Quantity(math.inf, BYTE)
        stated = f"{table}.pieces_eager_limit"
        eager = stated if stated in context.wiring.parameters else f"{table}.eager_limit"
        limits[f"{distance}.eager_limit"] = eager
    return _joined(context, phase, charges, limits)


def _piece(context: Context, piece: str) -> dict[str, Reference]:
    """Inputs of the charges of a piece; without a bandwidth, an overhead does not grow with the size."""
    none = Quantity(math.inf, BYTE_PER_SECOND)
    keys = signature(piece_charges).parameters
    return {key: f"{piece}.{key}" if f"{piece}.{key}" in context.wiring.parameters else none for key in keys}


def _loggops(context: Context, name: str, base: str, note: str) -> str:
    inputs = parameters_in(base, "latency", "overhead_time", "bandwidth", "gap_time", "processing_bandwidth")
    if inputs["processing_bandwidth"] not in context.wiring.parameters:
        inputs["processing_bandwidth"] = Quantity(math.inf, BYTE_PER_SECOND)
    return context.wiring.add(f"{name}_charges", loggops_charges, inputs, note=note)
