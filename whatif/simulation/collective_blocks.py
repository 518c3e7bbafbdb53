"""Messages of allgathers and of reductions that are scattered, in blocks, and the core of a power of two members."""

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


def surplus_of(process_count: int) -> int:
    """By how much P exceeds the next lower power of two."""
    return process_count - (1 << (process_count.bit_length() - 1))


def core(member: Members, process_count: int) -> tuple[Members, Members, Members]:
    """Partners at distances 1, 2, 4, .. of the largest power of two, and the messages before: (source, target).

    Of the first 2 · surplus members the even ones send their data to the next one and take no part, as in MPICH.
    """
    surplus = surplus_of(process_count)
    paired, odd = member < 2 * surplus, member % 2 == 1
    source = np.where(paired & odd, member - 1, -1)[:, np.newaxis][:, : min(surplus, 1)]
    target = np.where(paired & ~odd, member + 1, -1)[:, np.newaxis][:, : min(surplus, 1)]
    # Members of a round lie together in memory, as rounds are read one by one.
    other = np.where(paired, member // 2, member - surplus) ^ powers(process_count - surplus)[:, np.newaxis]
    partner = np.where(other < surplus, 2 * other + 1, other + surplus)
    partner[:, paired & ~odd] = -1
    return partner.T, source, target


def halving(member: Members, process_count: int, root: int, *, far_first: bool = True) -> list[Rounds]:
    """A reduction that is scattered: half of the P blocks at the largest distance, a quarter at half of it, .. .

    Without `far_first` the distances grow; surplus members get their block in the end.
    """
    partner, source, target = core(member, process_count)
    partner = partner[:, ::-1] if far_first else partner
    share = process_count * 0.5 ** np.arange(1.0, partner.shape[1] + 1)
    whole = float(process_count)
    return [
        Rounds(source, whole, target, whole, combines=True),
        Rounds(partner, share, partner, share, combines=True),
        Rounds(target, 1.0, source, 1.0),
    ]


def butterfly(member: Members, process_count: int, root: int) -> list[Rounds]:
    """Halving at distances 1, 2, 4, ..; members then send their block to its owners, at the mirrored place."""
    surplus, column = surplus_of(process_count), member[:, np.newaxis]
    paired, bits = column < 2 * surplus, (process_count - surplus).bit_length() - 1
    place = np.where(paired, column // 2, column - surplus)
    mirrored = sum((place >> bit & 1) << (bits - 1 - bit) for bit in range(bits)) + 0 * place
    holder = np.where(mirrored < surplus, 2 * mirrored + 1, mirrored + surplus)
    active = ~paired | (column % 2 == 1)
    exchange = np.where(active & (mirrored != place), holder, -1)
    to_even = np.where(active & (mirrored < surplus), 2 * mirrored, -1)
    *halves, _ = halving(member, process_count, root, far_first=False)
    return [*halves, Rounds(exchange, 1.0, exchange, 1.0), Rounds(np.where(active, -1, holder), 1.0, to_even, 1.0)]
