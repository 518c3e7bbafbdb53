"""Remarks on collectives: the chosen algorithm, parts of domains, arithmetic that is left out, another mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd
from typing import Final

import numpy as np

from whatif.core.context import DOMAIN_GPUS, GPU_COUNT, Context
from whatif.core.evaluate import Values, evaluate
from whatif.core.phases.collective_choice import compared_times, taken_algorithm
from whatif.core.phases.gpu_library import PEER_COUNT
from whatif.core.phases.reduction import missing_of_arithmetic, reduces
from whatif.core.term import Program, Term, as_array
from whatif.core.wiring import Wiring
from whatif.models.quantities import FloatArray
from whatif.schema.collective_phase import CollectivePhase
from whatif.simulation.collective_stages import NESTED, members_of_domain
from whatif.units import counted

_PLACES: Final = ("group_size", "group_stride", "ranks_per_node", "nodes_per_domain")


def collective_notes(program: Program, arrays: Mapping[str, FloatArray]) -> Iterator[str]:
    """Remarks on the collectives of a program; parts of domains at the swept values, the others at the stated ones."""
    phases = program.loaded.scenario.application.phases.items()
    collectives = {name: phase for name, phase in phases if isinstance(phase, CollectivePhase)}
    for name, phase in collectives.items():
        if phase.model != "nccl" and phase.algorithm == "best":
            yield _fastest(program, name, phase)
        elif phase.model != "nccl" and phase.algorithm in NESTED:
            yield from _parts(program, arrays, name, phase.algorithm)
    yield from _arithmetic(program, collectives)
    yield from _mapping(program, collectives)


def mesh_notes(program: Program, arrays: Mapping[str, FloatArray]) -> Iterator[str]:
    """Warning of a mesh of more devices than one has links for, at the swept or stated values, if a result needs it."""
    if PEER_COUNT not in program.reached:
        return
    counts = DOMAIN_GPUS if DOMAIN_GPUS in program.parameters else GPU_COUNT
    stated = ({**program.numbers, **arrays}).get
    most, peers = np.max(stated(counts, 0.0)), np.min(stated(PEER_COUNT, np.inf))
    if most - 1 > peers:
        yield (
            f"warning: a mesh of {most:g} GPUs, each with links to {peers:g} others ({PEER_COUNT}): all share these; "
            'for GPUs that switches join, state `platform.node.domain_topology = "switch"` and their links'
        )


def _fastest(program: Program, name: str, phase: CollectivePhase) -> str:
    """Algorithm of a collective with `algorithm = "best"`, at the stated values."""
    times = compared_times(program.terms, name).values()
    values = evaluate(program.part(times)).values
    _, algorithm = taken_algorithm(program, values, name, phase)
    return f"{name}: by {algorithm}, the fastest {phase.operation or 'allreduce'} at the stated values"


def _parts(program: Program, arrays: Mapping[str, FloatArray], name: str, algorithm: str) -> Iterator[str]:
    """Remark on a collective with stages by domain whose ranks do not fill their domains, where its parts are least."""
    term = program.terms.get(f"{name}.rounds") or program.terms[f"{name}.simulated_time"]
    known = [item for key in _PLACES if isinstance(item := term.inputs.get(key), str)]
    values = evaluate(program.part(known), arrays).values
    found = [(gcd(size, full), full, size) for size, full in _members(term, values) if size % full]
    if found:
        part, full, size = min(found)
        yield (
            f"{name}: `{algorithm}` takes parts of {counted(part, 'rank')}, not the {full} of a node or link domain, "
            f"which {counted(size, 'rank')} do not fill evenly"
        )


def _members(term: Term, values: Values) -> Iterator[tuple[int, int]]:
    """Ranks of a group, and those of them that are in a full domain, at each distinct point."""
    given = [term.inputs.get(key) for key in _PLACES]
    numbers = [
        values[item] if isinstance(item, str) else as_array(1.0 if item is None else item.value) for item in given
    ]
    points = np.stack(np.broadcast_arrays(*numbers), axis=-1).reshape(-1, len(_PLACES))
    for size, stride, ranks, nodes in np.unique(points[np.isfinite(points).all(axis=1)], axis=0).astype(int).tolist():
        yield size, members_of_domain(size, stride, ranks * nodes)


def _arithmetic(program: Program, collectives: Mapping[str, CollectivePhase]) -> Iterator[str]:
    """Reductions whose arithmetic is left out, as the platform does not state a memory bandwidth."""
    counted_ones = [name for name, phase in collectives.items() if phase.arithmetic == "memory" and reduces(phase)]
    context = Context(Wiring(program.loaded, program.parameters))
    if counted_ones and (missing := missing_of_arithmetic(context, program.parameters)):
        names = ", ".join(counted_ones)
        yield f"{names}: the time to combine the numbers is left out, as the platform does not state {missing}"


def _mapping(program: Program, collectives: Mapping[str, CollectivePhase]) -> Iterator[str]:
    """Collectives whose ranks fill the nodes in order, although those of the grid do not."""
    grid = program.loaded.scenario.application.grid
    placed = [name for name, phase in collectives.items() if phase.distance is None and phase.algorithm != "measured"]
    if placed and grid is not None and grid.mapping != "block":
        yield (
            f"warning: {', '.join(placed)}: placed as with `block` mapping; "
            f'`application.grid.mapping = "{grid.mapping}"` applies to halos only'
        )
