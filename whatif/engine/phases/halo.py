"""A halo exchange: messages counted from the placement of the ranks, the time of each, the slowest rank."""

from __future__ import annotations

from typing import Any

from whatif.engine.context import Context
from whatif.engine.phases.message import DISTANCES, message_time
from whatif.engine.term import PhaseTerm, Reference
from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.phase import concurrent_time, serialised_time
from whatif.models.placement import inter_node_count, message_kinds, rank_message_counts, total_count
from whatif.models.workload import by_kind, halo_sizes, rank_size, repeated
from whatif.schema.application import HaloPhase

COMBINED = {"serialised": serialised_time, "concurrent": concurrent_time}


def wire_halo(context: Context, name: str, phase: HaloPhase) -> list[PhaseTerm]:
    """The terms of a halo phase; its time is that of all exchanges of one iteration."""
    path, wiring = f"application.phases.{name}", context.wiring
    kinds = message_kinds(len(context.grid.cells), phase.neighbours)
    sizes = _sizes(context, name, phase, kinds)
    options = _pattern(context, phase)
    ranks: dict[str, Reference] = {"dims": context.rank_dimensions, "ranks_per_node": context.ranks_per_node}
    sockets: dict[str, Reference] = {"ranks_per_socket": context.ranks_per_socket}
    counts = wiring.add(f"{name}.rank_counts", rank_message_counts, ranks | sockets, options=options)
    wiring.add(f"{name}.rank_size", rank_size, {"rank_counts": counts, "message_sizes": sizes})
    k = _inter_node_sharing(context, name, phase, ranks, options)
    sharing = {distance: context.sharing(distance) for distance in DISTANCES} | {"inter_node": k}
    times: dict[str, Reference] = {
        f"{distance}_time": message_time(context, name, phase.model, distance, sizes, sharing[distance])
        for distance in DISTANCES
    }
    once = wiring.add(f"{name}.exchange_time", COMBINED[phase.concurrency], {"rank_counts": counts} | times)
    inputs: dict[str, Reference] = {"time": once, "repeat_count": f"{path}.exchange_count"}
    return [PhaseTerm(name, wiring.add(name, repeated, inputs), "communication")]


def _pattern(context: Context, phase: HaloPhase) -> dict[str, Any]:
    """The structural choices that decide who sends to whom."""
    grid = context.grid
    return {
        "periodic": grid.periodic,
        "neighbours": phase.neighbours,
        "mapping": context.mapping,
        "order": grid.order,
    }


def _sizes(context: Context, name: str, phase: HaloPhase, kinds: tuple[tuple[int, ...], ...]) -> str:
    """The size of each kind of message: as the file says, or as the rank's box and the halo's width give it."""
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
    return wiring.add(f"{name}.message_size", halo_sizes, inputs, options={"kinds": kinds})


def _size_keys(context: Context, name: str, phase: HaloPhase, kinds: tuple[tuple[int, ...], ...]) -> list[str]:
    """The keys of `message_sizes` in the order of the kinds; each kind must have its size."""
    axes = list(context.grid.cells)
    keys = ["".join(axes[dimension] for dimension in kind) for kind in kinds]
    if set(keys) != set(phase.message_sizes):
        wanted = ", ".join(keys)
        context.wiring.problem(f"application.phases.{name}.message_sizes", f"needs exactly the keys {wanted}")
        context.wiring.raise_problems()
    return keys


def _inter_node_sharing(
    context: Context, name: str, phase: HaloPhase, ranks: dict[str, Reference], options: dict[str, Any]
) -> Reference:
    """k between nodes: the processes of a node (max-rate), or only the share that sends off the node (K-model)."""
    wiring, path = context.wiring, f"application.phases.{name}"
    k_prime = context.sharing("inter_node")
    if phase.model != "k_model":
        return k_prime
    inputs: dict[str, Reference] = {"process_count": k_prime}
    for key, count, stated in (
        ("inter_node_count", inter_node_count, phase.inter_node_count),
        ("total_count", total_count, phase.total_count),
    ):
        measured = stated is not None
        inputs[key] = f"{path}.{key}" if measured else wiring.add(f"{name}.{key}", count, ranks, options=options)
    k = wiring.add(f"{name}.k", k_factor, inputs)
    return wiring.add(f"{name}.effective_k", effective_process_count, {"k": k})


