"""Charges of simulated messages: the parameters of the chosen model at every distance, by protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from whatif.core.context import Context
from whatif.core.phases.device_messages import from_memory
from whatif.core.phases.message import parameters_at, protocol_time
from whatif.core.term import Reference
from whatif.models.charges import LONG, by_protocol_charges, loggops_charges, serial_charges
from whatif.models.workload import by_kind
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, Quantity
from whatif.vocabulary import DISTANCES, PROTOCOLS

_SIZES = {"empty_time": Quantity(0.0, BYTE), "long_time": Quantity(LONG, BYTE)}


def wire_charges(
    context: Context, phase: str, model: str, process_counts: Mapping[str, Reference]
) -> dict[str, Reference]:
    """Wire `charges` [protocol, charge, size] and `limits` [limit] of the messages of a phase, all distances after
    one another; `process_counts` are the k of each distance, for models that share."""
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
    joined = context.wiring.add(f"{phase}.charges", by_protocol_charges, charges)
    return {"charges": joined, "limits": context.wiring.add(f"{phase}.limits", by_kind, limits)}


def _loggops(context: Context, name: str, base: str, note: str) -> str:
    inputs: dict[str, Reference] = {
        key: f"{base}.{key}" for key in ("latency", "overhead_time", "bandwidth", "gap_time", "processing_bandwidth")
    }
    if inputs["processing_bandwidth"] not in context.wiring.parameters:
        inputs["processing_bandwidth"] = Quantity(math.inf, BYTE_PER_SECOND)
    return context.wiring.add(f"{name}_charges", loggops_charges, inputs, note=note)
