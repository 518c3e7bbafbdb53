"""A halo exchange: messages counted from the placement of the ranks, the time of each, the slowest rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.phases.correction import Corrections
from whatif.core.phases.halo_wiring import HaloWiring
from whatif.core.phases.link_sharing import is_congested, wire_exchange_congestion, with_congestion
from whatif.core.phases.message import choose_protocol, node_rates, parameters_at
from whatif.core.term import PhaseTerm, Reference
from whatif.models.corrections import time_of_sharing
from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.patterns import message_kinds
from whatif.models.phase import concurrent_time, node_aware_time, serialised_time
from whatif.models.workload import by_kind, halo_fits, halo_sizes, rank_size
from whatif.schema.application import HaloPhase
from whatif.units import ONE, Quantity
from whatif.vocabulary import DISTANCES, PROTOCOLS

_RATES: Final = ("base", "additional", "largest")
"""Bandwidths of a node, in the order of `node_rates`."""


def wire_halo(context: Context, name: str, phase: HaloPhase) -> list[PhaseTerm]:
    """The terms of a halo phase; its time is that of all exchanges of one iteration."""
    wiring = context.wiring
    sizes = _sizes(context, name, phase, message_kinds(len(context.grid.cells), phase.neighbours))
    exchange = HaloWiring(context, name, phase, *_placement(context, phase), sizes)
    counts = exchange.count("rank_counts")
    wiring.add(f"{name}.rank_size", rank_size, {"rank_counts": counts, "message_sizes": sizes})
    once = _node_aware(exchange, counts) if phase.model == "node_aware" else _by_rank(exchange, counts)
    repeats = f"application.phases.{name}.exchange_count"
    if context.is_simulated:
        from whatif.core.phases.simulated_exchange import wire_simulated_halo

        once = wire_simulated_halo(exchange, _sharing(exchange))
    elif Corrections(context).stated("sharing_factor"):
        _time_of_sharing(exchange, once, counts, repeats)
    if is_congested(context):
        once = with_congestion(context, name, once, wire_exchange_congestion(exchange, once), repeats)
    return [PhaseTerm(name, wiring.repeat(name, once, repeats), "communication")]


def _time_of_sharing(exchange: HaloWiring, once: str, counts: str, repeats: str) -> None:
    """Wire the part of the time that is due to sharing, for its correction."""
    wiring, name, alone = exchange.context.wiring, exchange.name, replace(exchange, name=f"{exchange.name}.alone")
    # The K-model alone is max-rate with one process; the node-aware model is that of a rank whose messages are postal.
    model = {"k_model": "max_rate", "node_aware": "postal"}.get(exchange.phase.model, exchange.phase.model)
    busy = DISTANCES[:-1] if exchange.phase.model == "node_aware" else ()
    times: dict[str, Reference] = {
        f"{distance}_time": alone.busy_time(distance)
        if distance in busy
        else alone.message_time(model, distance, Quantity(1.0, ONE))
        for distance in DISTANCES
    }
    time = _exchange_time(alone, counts, times)
    shared = wiring.add(f"{name}.exchange_shared_time", time_of_sharing, {"time": once, "time_alone": time})
    wiring.repeat(f"{name}.shared_time", shared, repeats)


def _placement(context: Context, phase: HaloPhase) -> tuple[dict[str, Reference], dict[str, Any]]:
    """Inputs and structural choices of the functions that count the messages."""
    ranks, groups = context.domains, context.grid_groups
    if context.grid.decomposition == "bisection":
        return ranks | {"rank_count": context.placed_count, "cells": context.all_cells}, {}
    grid = context.grid
    choices = {"periodic": grid.periodic, "neighbours": phase.neighbours, "order": grid.order}
    return ranks | groups | {"dims": context.rank_dimensions}, choices | {"mapping": context.mapping}


def _by_rank(exchange: HaloWiring, counts: str) -> str:
    """The paper's models: each message at its own distance, the slowest rank decides."""
    model = exchange.phase.model
    sharing = _sharing(exchange)
    times: dict[str, Reference] = {
        f"{distance}_time": exchange.message_time(model, distance, sharing[distance]) for distance in DISTANCES
    }
    return _exchange_time(exchange, counts, times)


def _exchange_time(exchange: HaloWiring, counts: str, times: dict[str, Reference]) -> str:
    """Time of the messages of the slowest rank, which travel at once or follow one another."""
    function = concurrent_time if exchange.is_concurrent else serialised_time
    return exchange.context.wiring.add(f"{exchange.name}.exchange_time", function, {"rank_counts": counts} | times)


def _sharing(exchange: HaloWiring) -> dict[str, Reference]:
    """The k of each distance."""
    sharing: dict[str, Reference] = {distance: exchange.context.sharing(distance) for distance in DISTANCES}
    if exchange.phase.model == "k_model":
        sharing["inter_node"] = f"{exchange.name}.effective_k"
        if sharing["inter_node"] not in exchange.context.wiring.terms:
            _add_effective_k(exchange)
    return sharing


def _add_effective_k(exchange: HaloWiring) -> None:
    """Add k of the K-model: the processes of a node, scaled by the share of messages that leave it."""
    wiring, phase = exchange.context.wiring, exchange.phase
    inputs: dict[str, Reference] = {"process_count": exchange.context.sharing("inter_node")}
    for key, stated in (("inter_node_count", phase.inter_node_count), ("total_count", phase.total_count)):
        inputs[key] = exchange.count(key) if stated is None else f"application.phases.{exchange.name}.{key}"
    reason = f"application.phases.{exchange.name}: inter_node_count (K_inter) exceeds total_count (K_total)"
    wiring.require_fit(f"{exchange.name}.inter_node_count", reason, inputs["inter_node_count"], inputs["total_count"])
    k = wiring.add(f"{exchange.name}.k", k_factor, inputs)
    wiring.add(f"{exchange.name}.effective_k", effective_process_count, {"k": k})


def _node_aware(exchange: HaloWiring, counts: str) -> str:
    """The node-aware model: ranks work off their own messages, nodes the bytes that leave them."""
    context, name = exchange.context, exchange.name
    used, table, note = parameters_at(context, name, "max_rate", "inter_node")

    def chosen(key: str, values: Sequence[Reference]) -> str:
        by_name: dict[str, Reference] = dict(zip(PROTOCOLS, values, strict=True))
        return choose_protocol(context, f"{name}.inter_node.{key}", used, exchange.sizes, by_name, note)

    latencies: list[Reference] = [f"platform.network.{used}.{table}.{protocol}.latency" for protocol in PROTOCOLS]
    rates = zip(*(node_rates(context, protocol) for protocol in PROTOCOLS), strict=True)
    inputs: dict[str, Reference] = {
        "rank_counts": counts,
        "node_counts": exchange.count("node_counts"),
        **{f"{distance}_time": exchange.busy_time(distance) for distance in DISTANCES[:-1]},
        "message_size": exchange.sizes,
        "process_count": context.sharing("inter_node"),
        "latency": exchange.from_memory("inter_node", lambda: chosen("latency", latencies)),
        **{f"{key}_bandwidth": chosen(f"{key}_bandwidth", values) for key, values in zip(_RATES, rates, strict=True)},
    }
    return context.wiring.add(f"{name}.exchange_time", node_aware_time, inputs)


def _sizes(context: Context, name: str, phase: HaloPhase, kinds: tuple[tuple[int, ...], ...]) -> str:
    """Size of each kind of message: stated in the file, or computed from the rank's box and the halo's width."""
    path, wiring = f"application.phases.{name}", context.wiring
    if phase.message_sizes:
        named = [f"{path}.message_sizes.{key}" for key in _size_keys(context, name, phase, kinds)]
        return wiring.add(f"{name}.message_size", by_kind, {item: item for item in named})
    if phase.message_size is not None:
        same: dict[str, Reference] = {str(kind): f"{path}.message_size" for kind in kinds}
        return wiring.add(f"{name}.message_size", by_kind, same)
    inputs: dict[str, Reference] = {
        "cells": context.rank_cells,
        "halo_width": f"{path}.halo_width",
        "element_size": f"{path}.element_size",
    }
    extents: dict[str, Reference] = {key: inputs[key] for key in ("halo_width", "cells")}
    reason = f"{path}.halo_width exceeds the cells of a rank along a dimension that ranks share"
    wiring.require(f"{name}.halo_width fits", reason, halo_fits, extents | {"all_cells": context.all_cells})
    return wiring.add(f"{name}.message_size", halo_sizes, inputs, options={"kinds": kinds})


def _size_keys(context: Context, name: str, phase: HaloPhase, kinds: tuple[tuple[int, ...], ...]) -> list[str]:
    """The keys of `message_sizes` in the order of the kinds; each kind must have its size."""
    axes = list(context.grid.cells)
    keys = ["".join(axes[dimension] for dimension in kind) for kind in kinds]
    if set(keys) != set(phase.message_sizes):
        wanted = ", ".join(keys)
        context.wiring.refuse(f"application.phases.{name}.message_sizes", f"needs exactly the keys {wanted}")
    return keys
