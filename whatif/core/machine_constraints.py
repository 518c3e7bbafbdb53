"""Constraints of the machine: enough nodes for the ranks, and enough memory for their data."""

from __future__ import annotations

from typing import Final

from whatif.core.context import Context
from whatif.core.parameter_paths import NODE_COUNT, NODES_NEEDED
from whatif.core.term import Reference
from whatif.models.decomposition import MOST_RANKS
from whatif.models.ranks import device_memory, memory_fits
from whatif.models.workload import memory_with_cells
from whatif.schema.application import HaloPhase
from whatif.schema.parameters import DEFAULT
from whatif.units import ONE, Quantity

_MEMORY: Final = "application.memory_size"


def require_room(context: Context) -> None:
    """Wire what the ranks of an application require of the machine."""
    reason = f"at most {MOST_RANKS:,} ranks are supported (application.rank_count)"
    context.wiring.require_fit("placement.rank_count", reason, context.rank_count, Quantity(MOST_RANKS, ONE))
    reason = "the ranks need more nodes than the platform has (platform.node_count)"
    context.wiring.require_fit(NODES_NEEDED, reason, context.nodes_needed, NODE_COUNT)
    _require_memory(context)


def _require_memory(context: Context) -> None:
    """Wire that the data of all ranks of a GPU, or of the sockets of a node, fit its memory if that is stated."""
    wiring = context.wiring
    device, room = ("device", "gpu") if context.on_gpus else ("node", "host")
    room = f"platform.node.{room}.memory_size"
    if room not in wiring.parameters:
        return
    size, words = _data_of_rank(context)
    sharing = context.ranks_on_gpu if context.on_gpus else context.sharing("inter_node")
    needed = wiring.add("placement.memory_size", device_memory, {"memory_size": size, "ranks_per_device": sharing})
    sizes: dict[str, Reference] = {"needed_size": needed, "available_size": room}
    wiring.require("placement.memory_size fits", f"{words} does not fit the {device} ({room})", memory_fits, sizes)


def _data_of_rank(context: Context) -> tuple[Reference, str]:
    """Memory of a rank, as stated or at least one copy of the cells that a halo is of, and its name."""
    application, parameters = context.scenario.application, context.wiring.parameters
    stated = _MEMORY not in parameters or parameters[_MEMORY].source != DEFAULT
    halos = (
        name
        for name, phase in application.phases.items()
        if isinstance(phase, HaloPhase) and phase.message_size is None and not phase.message_sizes
    )
    halo = None if stated or application.grid is None else next(halos, None)
    if halo is None:
        return _MEMORY, _MEMORY
    inputs = {
        "memory_size": _MEMORY,
        "cells": context.rank_cells,
        "element_size": f"application.phases.{halo}.element_size",
    }
    words = f"the memory of a rank ({_MEMORY}, at least one copy of its cells)"
    return context.once("placement.rank_memory_size", memory_with_cells, **inputs), words
