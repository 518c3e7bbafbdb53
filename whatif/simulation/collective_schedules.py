"""Messages of collective operations by algorithm.

An algorithm is a function of the members of a communicator, [member], their number P and the root. It returns
`Rounds`, whose shares are multiples of the size that the trace gives (`RankProgram.size`). Any P ≥ 1 and any root.

Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", International
Journal of High Performance Computing Applications 19(1), 2005, and those named in `whatif.models.collectives`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.simulation.collective_blocks import (
    around,
    bruck_allgather,
    butterfly,
    core,
    doubling_allgather,
    halving,
    neighbour_exchange,
    powers,
    ring_blocks,
    surplus_of,
)
from whatif.simulation.collective_expansion import Algorithm, Members, Rounds
from whatif.simulation.collective_trees import (
    binary_tree,
    broadcast_along,
    chain,
    doubling_barrier,
    doubling_tree,
    in_sequence,
    knomial_tree,
    reduction_along,
)
from whatif.simulation.rank_programs import Kind


def _tree(member: Members, process_count: int, root: int) -> tuple[Members, FloatArray, Members, FloatArray]:
    """Binomial tree: parents, blocks below each member, children, blocks below each child; nearest leaves first."""
    power = powers(process_count)
    place = ((member - root) % process_count)[:, np.newaxis]
    child = (place % (2 * power) == 0) & (place + power < process_count)
    up = np.where(place % (2 * power) == power, (place - power + root) % process_count, -1)
    down = np.where(child, (place + power + root) % process_count, -1)
    below = np.minimum(power, process_count - place).astype(np.float64)
    below_child = np.minimum(power, process_count - place - power).astype(np.float64)
    return up, below, down, below_child


def binomial_broadcast(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Rounds of a broadcast in which the number of members with the message doubles."""
    up, _, down, _ = _tree(member, process_count, root)
    return [Rounds(up[:, ::-1], 1.0, down[:, ::-1], 1.0)]


def binomial_reduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """The broadcast backwards."""
    up, _, down, _ = _tree(member, process_count, root)
    return [Rounds(down, 1.0, up, 1.0, combines=True)]


def binomial_gather(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Along the tree of the reduction, every message with all blocks gathered so far."""
    up, below, down, below_child = _tree(member, process_count, root)
    return [Rounds(down, below_child, up, below)]


def binomial_scatter(member: Members, process_count: int, root: int) -> list[Rounds]:
    """The gather backwards."""
    up, below, down, below_child = _tree(member, process_count, root)
    return [Rounds(up[:, ::-1], below[:, ::-1], down[:, ::-1], below_child[:, ::-1])]


def _linear(member: Members, process_count: int, root: int) -> tuple[Members, Members]:
    """The others for the root, in order; the root for the others."""
    is_root = (member == root)[:, np.newaxis]
    others = np.where(is_root, (root + np.arange(1, process_count)) % process_count, -1)
    return others, np.where(is_root, -1, np.append(np.full(max(process_count - 2, 0), -1), root)[: process_count - 1])


def linear_to_root(member: Members, process_count: int, root: int) -> list[Rounds]:
    """All send to the root at once: a flat gather or reduction."""
    others, to_root = _linear(member, process_count, root)
    return [Rounds(others, 1.0, to_root, 1.0, together=True)]


def linear_from_root(member: Members, process_count: int, root: int) -> list[Rounds]:
    """The root sends to all at once: a flat scatter or broadcast."""
    others, from_root = _linear(member, process_count, root)
    return [Rounds(from_root, 1.0, others, 1.0, together=True)]


def signalled_gather(member: Members, process_count: int, root: int) -> list[Rounds]:
    """The root signals each member in turn and receives its block; an empty message follows from each."""
    own, place = ((member - root) % process_count)[:, np.newaxis], np.arange(1, process_count)
    others = np.where(own == 0, (root + place) % process_count, -1)
    to_root = np.where(own == place, root, -1)
    shape, share = (len(member), 2 * len(place)), np.tile([0.0, 1.0], len(place))
    source, target = (np.stack(ways, axis=-1).reshape(shape) for ways in ((to_root, others), (others, to_root)))
    return [Rounds(source, share, target, share), Rounds(others, 0.0, to_root, 0.0, together=True)]


def changed(algorithm: Algorithm, **flags: Any) -> Algorithm:
    """Algorithm whose rounds have other flags: `together` for all messages at once, `combines` for a reduction."""

    def rounds(member: Members, process_count: int, root: int) -> list[Rounds]:
        return [replace(part, **flags) for part in algorithm(member, process_count, root)]

    return rounds


def scattered(allgather: Algorithm) -> Algorithm:
    """Broadcast that scatters a message in P blocks and collects these by an allgather."""

    def rounds(member: Members, process_count: int, root: int) -> list[Rounds]:
        parts = [*binomial_scatter(member, process_count, root), *allgather(member, process_count, root)]
        return _of_blocks(parts, process_count)

    return rounds


def rabenseifner_reduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """A reduction that is scattered, near members first, and the gather of its blocks."""
    parts = [*halving(member, process_count, root, far_first=False), *binomial_gather(member, process_count, root)]
    return _of_blocks(parts, process_count)


def _of_blocks(parts: Iterable[Rounds], process_count: int) -> list[Rounds]:
    """Rounds with shares of one of P blocks as shares of the whole."""
    block = 1 / process_count
    return [
        replace(part, source_share=part.source_share * block, target_share=part.target_share * block) for part in parts
    ]


def recursive_doubling_allreduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Exchange of the whole buffer at distances 1, 2, 4, .. ."""
    partner, source, target = core(member, process_count)
    return [
        Rounds(source, 1.0, target, 1.0, combines=True),
        Rounds(partner, 1.0, partner, 1.0, combines=True),
        Rounds(target, 1.0, source, 1.0),
    ]


def rabenseifner_allreduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Rounds with halves, quarters, .. to reduce and scatter, and with .., quarters, halves to gather."""
    partner, source, target = core(member, process_count)
    share = 0.5 ** np.arange(1.0, partner.shape[1] + 1)
    back = partner[:, ::-1]
    return [
        Rounds(source, 1.0, target, 1.0, combines=True),
        Rounds(partner, share, partner, share, combines=True),
        Rounds(back, share[::-1], back, share[::-1]),
        Rounds(target, 1.0, source, 1.0),
    ]


def halved_rabenseifner_allreduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """As `rabenseifner_allreduce`, but surplus members first reduce half of the buffer each, as in Open MPI."""
    surplus, column = surplus_of(process_count), member[:, np.newaxis]
    paired, odd = column < 2 * surplus, column % 2 == 1
    mate = np.where(paired, np.where(odd, column - 1, column + 1), -1)[:, : min(surplus, 1)]
    of_even, of_odd = np.where(odd, -1, mate), np.where(odd, mate, -1)
    other = np.where(paired, column // 2, column - surplus) ^ powers(process_count - surplus)
    partner = np.where(paired & odd, -1, np.where(other < surplus, 2 * other, other + surplus))
    share = 0.5 ** np.arange(1.0, partner.shape[1] + 1)
    back = partner[:, ::-1]
    return [
        Rounds(mate, 0.5, mate, 0.5, combines=True),
        Rounds(of_even, 0.5, of_odd, 0.5),
        Rounds(partner, share, partner, share, combines=True),
        Rounds(back, share[::-1], back, share[::-1]),
        Rounds(of_odd, 1.0, of_even, 1.0),
    ]


def ring_allreduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """P - 1 rounds around a ring to reduce and scatter, P - 1 to gather."""
    turn = around(member, process_count, process_count - 1, 1 / process_count)
    return [replace(turn, combines=True), turn]


def bidirectional_ring_allreduce(member: Members, process_count: int, root: int) -> list[Rounds]:
    """The ring with half of each block in either direction, one after the other."""
    share = 0.5 / process_count
    return [
        Rounds(
            *(np.stack(ways, axis=-1).reshape(len(member), -1), share),
            *(np.stack(ways[::-1], axis=-1).reshape(len(member), -1), share),
            combines=turn.combines,
        )
        for turn in ring_allreduce(member, process_count, root)
        for ways in [(turn.source, turn.target)]
    ]


def dissemination(member: Members, process_count: int, root: int) -> list[Rounds]:
    """In round r each member signals the one 2^r further on."""
    column, power = member[:, np.newaxis], powers(process_count)
    return [Rounds((column - power) % process_count, 0.0, (column + power) % process_count, 0.0)]


def pairwise(member: Members, process_count: int, root: int) -> list[Rounds]:
    """In round r each member sends a block to the one r further on."""
    column, distance = member[:, np.newaxis], np.arange(1, process_count)
    return [Rounds((column - distance) % process_count, 1.0, (column + distance) % process_count, 1.0)]


def bruck_alltoall(member: Members, process_count: int, root: int) -> list[Rounds]:
    """In round r each member sends to the one 2^r further on all blocks whose way has that step."""
    column, power = member[:, np.newaxis], powers(process_count)
    ways = np.arange(process_count)[:, np.newaxis]
    share = ((ways & power) > 0).sum(axis=0).astype(np.float64)
    return [Rounds((column - power) % process_count, share, (column + power) % process_count, share)]


def reduce_linear_scatter(member: Members, process_count: int, root: int) -> list[Rounds]:
    """A reduction of all P blocks to the root, which sends each member its own."""
    (whole,) = binomial_reduce(member, process_count, root)
    every = float(process_count)
    return [replace(whole, source_share=every, target_share=every), *linear_from_root(member, process_count, root)]


def recursive_doubling_scan(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Exchange of the whole buffer at distances 1, 2, 4, .. as far as such a member exists."""
    partner = member[:, np.newaxis] ^ powers(process_count)
    partner = np.where(partner < process_count, partner, -1)
    return [Rounds(partner, 1.0, partner, 1.0, combines=True)]


def linear_scan(member: Members, process_count: int, root: int) -> list[Rounds]:
    """From each member to the next one."""
    column = member[:, np.newaxis]
    none = np.full_like(column, -1)
    source, target = column - 1, np.where(column + 1 < process_count, column + 1, -1)
    return [Rounds(source, 1.0, none, 1.0, combines=True), Rounds(none, 1.0, target, 1.0)]


ALGORITHMS: Final[Mapping[Kind, Mapping[str, Algorithm]]] = {
    Kind.BARRIER: {
        "dissemination": dissemination,
        "recursive_doubling": doubling_barrier,
        "linear": in_sequence(linear_to_root, linear_from_root, size=0.0),
        "binomial_tree": in_sequence(binomial_reduce, binomial_broadcast, size=0.0),
    },
    Kind.BROADCAST: {
        "binomial_tree": binomial_broadcast,
        "scatter_ring_allgather": scattered(ring_blocks),
        "scatter_bruck_allgather": scattered(bruck_allgather),
        "scatter_doubling_allgather": scattered(doubling_allgather),
        "linear": linear_from_root,
        "one_by_one": changed(linear_from_root, together=False),
        "chain": broadcast_along(chain),
        "binary_tree": broadcast_along(binary_tree),
        "doubling_tree": broadcast_along(doubling_tree),
        "knomial_tree": broadcast_along(knomial_tree),
    },
    Kind.REDUCE: {
        "binomial_tree": binomial_reduce,
        "rabenseifner": rabenseifner_reduce,
        "linear": changed(linear_to_root, combines=True),
        "one_by_one": changed(linear_to_root, together=False, combines=True),
        "chain": reduction_along(chain),
        "binary_tree": reduction_along(binary_tree),
    },
    Kind.ALLREDUCE: {
        "recursive_doubling": recursive_doubling_allreduce,
        "rabenseifner": rabenseifner_allreduce,
        "halved_rabenseifner": halved_rabenseifner_allreduce,
        "ring": ring_allreduce,
        "bidirectional_ring": bidirectional_ring_allreduce,
        "reduce_linear": in_sequence(binomial_reduce, linear_from_root),
        "reduce_binary_tree": in_sequence(binomial_reduce, broadcast_along(binary_tree)),
        "reduce_knomial_tree": in_sequence(binomial_reduce, broadcast_along(knomial_tree)),
    },
    Kind.GATHER: {
        "binomial_tree": binomial_gather,
        "linear": linear_to_root,
        "one_by_one": changed(linear_to_root, together=False),
        "signalled": signalled_gather,
    },
    Kind.SCATTER: {
        "binomial_tree": binomial_scatter,
        "linear": linear_from_root,
        "one_by_one": changed(linear_from_root, together=False),
    },
    Kind.ALLGATHER: {
        "ring_allgather": ring_blocks,
        "bruck_allgather": bruck_allgather,
        "doubling_allgather": doubling_allgather,
        "neighbour_exchange": neighbour_exchange,
    },
    Kind.ALLTOALL: {"pairwise": pairwise, "bruck": bruck_alltoall, "linear": changed(pairwise, together=True)},
    Kind.REDUCE_SCATTER: {
        "pairwise": changed(pairwise, combines=True),
        "ring": changed(ring_blocks, combines=True),
        "recursive_halving": halving,
        "reduce_linear_scatter": reduce_linear_scatter,
        "butterfly": butterfly,
    },
    Kind.SCAN: {"recursive_doubling": recursive_doubling_scan, "linear": linear_scan},
}
"""By kind and name; the first of a kind is its default."""


def check_algorithm(kind: Kind, name: str) -> None:
    """Raise `UsageError` for an algorithm that a kind of collective does not have."""
    known = ALGORITHMS[kind]
    if name not in known:
        raise UsageError(
            f"no algorithm `{name}` for {_word(kind)}; there are {', '.join(known)}{did_you_mean(name, known)}"
        )


def _word(kind: Kind) -> str:
    return kind.name.lower().replace("_", "-")
