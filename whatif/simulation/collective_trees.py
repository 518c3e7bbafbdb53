"""Messages of broadcasts and reductions along chains and trees, and of barriers.

Members are counted from the root: a tree is the parent of each of these places. The shapes are those of Open MPI
(ompi/mca/coll/base/coll_base_topo.c, open-mpi/ompi).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from whatif.simulation.collective_expansion import Algorithm, Members, Rounds
from whatif.simulation.flat_lists import list_items

Tree = Callable[[Members, int], tuple[Members, Members]]
"""Function of all places but the root's and their number: the parent of each, and its turn among its siblings."""
_RADIX: Final = 4
_NONE: Final = -1


def chain(place: Members, process_count: int) -> tuple[Members, Members]:
    """Each member passes the message to the next one."""
    return place - 1, place


def binary_tree(place: Members, process_count: int) -> tuple[Members, Members]:
    """Two children each; those of a level have the parents of the level above in turn."""
    width = 1 << (np.frexp(place + 1.0)[1].astype(np.int64) - 2)
    return width - 1 + (place - width + 1) % width, place


def doubling_tree(place: Members, process_count: int) -> tuple[Members, Members]:
    """Binomial tree in which members at distance 1, 2, 4, .. are reached in turn."""
    return place - (1 << (np.frexp(place)[1].astype(np.int64) - 1)), place


def knomial_tree(place: Members, process_count: int) -> tuple[Members, Members]:
    """Tree in which a member reaches three others at each distance of a power of four, far ones first."""
    power = np.ones_like(place)
    while ((place % (_RADIX * power)) == 0).any():
        power = np.where(place % (_RADIX * power) == 0, _RADIX * power, power)
    return place // (_RADIX * power) * (_RADIX * power), place // power % _RADIX - _RADIX * power


def broadcast_along(tree: Tree) -> Algorithm:
    """Broadcast in which a member has the message from its parent before it sends it to its children in turn."""

    def rounds(member: Members, process_count: int, root: int) -> list[Rounds]:
        parent, children = _relatives(tree, member, process_count, root)
        return [_one_way(parent, sends=False), _one_way(children, sends=True)]

    return rounds


def reduction_along(tree: Tree) -> Algorithm:
    """Reduction in which a member combines what its children send in turn, and sends it to its parent."""

    def rounds(member: Members, process_count: int, root: int) -> list[Rounds]:
        parent, children = _relatives(tree, member, process_count, root)
        return [_one_way(children, sends=False, combines=True), _one_way(parent, sends=True)]

    return rounds


def in_sequence(*algorithms: Algorithm, size: float = 1.0) -> Algorithm:
    """Algorithms one after the other, with their messages `size` times as large; 0 for a barrier."""

    def rounds(member: Members, process_count: int, root: int) -> list[Rounds]:
        parts = [part for algorithm in algorithms for part in algorithm(member, process_count, root)]
        return [
            Rounds(part.source, size * part.source_share, part.target, size * part.target_share, part.together,
                   part.combines if size else False)
            for part in parts
        ]  # fmt: skip

    return rounds


def doubling_barrier(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Signals at distances 1, 2, 4, .. ; members beyond the largest power of two signal one below it."""
    core = 1 << (process_count.bit_length() - 1)
    column = member[:, np.newaxis]
    surplus = column >= core
    partner = np.where(surplus, _NONE, column ^ (1 << np.arange(core.bit_length() - 1)))
    to_core = np.where(surplus, column - core, _NONE)
    from_surplus = np.where(~surplus & (column + core < process_count), column + core, _NONE)
    return [
        Rounds(from_surplus, 0.0, to_core, 0.0),
        Rounds(partner, 0.0, partner, 0.0),
        Rounds(to_core, 0.0, from_surplus, 0.0),
    ]


def _one_way(others: Members, *, sends: bool, combines: bool = False) -> Rounds:
    """Messages to or from some members, one after the other."""
    none = np.full_like(others, _NONE)
    source, target = (none, others) if sends else (others, none)
    return Rounds(source, 1.0, target, 1.0, combines=combines)


def _relatives(tree: Tree, member: Members, process_count: int, root: int) -> tuple[Members, Members]:
    """Parent [member, 1] and children [member, child] in their turns, -1 for none."""
    place = np.arange(1, process_count)
    above, turn = tree(place, process_count)
    order = np.lexsort((turn, above))
    count = np.bincount(above, minlength=process_count)
    children = np.full((process_count, max(int(count.max(initial=0)), 1)), _NONE)
    children[above[order], list_items(0, count)] = (place[order] + root) % process_count
    own = (member - root) % process_count
    parent = np.where(own > 0, (np.append(0, above)[own] + root) % process_count, _NONE)
    return parent[:, np.newaxis], children[own]
