"""Messages of reductions that are scattered by halving, and the core of a power of two members that they have."""

from __future__ import annotations

import numpy as np

from whatif.simulation.collective_allgathers import powers
from whatif.simulation.collective_expansion import Members, Rounds


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


def recursive_halving(member: Members, process_count: int, root: int) -> list[Rounds]:
    """A reduction that is scattered: half of the P blocks at the largest distance, a quarter at half of it, .. ."""
    return halving(member, process_count, far_first=True)


def halving(member: Members, process_count: int, *, far_first: bool) -> list[Rounds]:
    """Exchanges of half of the P blocks, a quarter, .. ; surplus members get theirs in the end."""
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
    *halves, _ = halving(member, process_count, far_first=False)
    return [*halves, Rounds(exchange, 1.0, exchange, 1.0), Rounds(np.where(active, -1, holder), 1.0, to_even, 1.0)]
