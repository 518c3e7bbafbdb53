"""Messages of allgathers: around a ring, by Bruck's algorithm, by recursive doubling, between neighbours."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.simulation.collective_expansion import Members, Rounds


def powers(process_count: int) -> Members:
    """1, 2, 4, .. below P."""
    return np.left_shift(1, np.arange((process_count - 1).bit_length(), dtype=np.int32))


def around(member: Members, process_count: int, round_count: int, share: float) -> Rounds:
    """Every member sends to the next one, `round_count` times."""
    shape = (len(member), round_count)
    source = np.broadcast_to(((member - 1) % process_count)[:, np.newaxis], shape)
    target = np.broadcast_to(((member + 1) % process_count)[:, np.newaxis], shape)
    return Rounds(source, share, target, share)


def ring_blocks(member: Members, process_count: int, root: int) -> list[Rounds]:
    """P - 1 rounds around a ring, a block in each: an allgather, or a reduction that is scattered."""
    return [around(member, process_count, process_count - 1, 1.0)]


def bruck_allgather(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Each round doubles the blocks that a member holds; the last one sends the missing blocks."""
    column, power = member[:, np.newaxis], powers(process_count)
    share = np.minimum(power, process_count - power).astype(np.float64)
    return [Rounds((column + power) % process_count, share, (column - power) % process_count, share)]


def doubling_allgather(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Exchange of all gathered blocks at distances 1, 2, 4, ..; Bruck's algorithm unless P is a power of two."""
    if process_count & (process_count - 1):
        return bruck_allgather(member, process_count, root)
    power = powers(process_count)
    partner, share = member[:, np.newaxis] ^ power, power.astype(np.float64)
    return [Rounds(partner, share, partner, share)]


def neighbour_exchange(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Exchanges with either neighbour in turn, first of one block, then of two; a ring if P is odd."""
    if process_count % 2:
        return ring_blocks(member, process_count, root)
    turn = np.arange(process_count // 2)
    forward = (member[:, np.newaxis] + turn) % 2 == 0
    partner = (member[:, np.newaxis] + np.where(forward, 1, -1)) % process_count
    share: FloatArray = np.where(turn == 0, 1.0, 2.0)
    return [Rounds(partner, share, partner, share)]
