"""Patterns with messages in rounds, simulated round by round for all ranks at once, at any number of ranks.

The times are those of a replay of the same program (`generate`; charges: `Costs`), without its events: an
array for each clock and a few operations on arrays a round. Each function takes the number of ranks, the bytes that
one rank contributes (as `RankProgram.size` counts them), `Places`, `Costs` and, unless all start at 0, the `arrival` of
each rank [rank] in s, and returns the end of each rank [rank] in s. The algorithms are those of `collective_schedules`.

UsageError: places or arrivals of another number of ranks, a size that is not a number ≥ 0, costs with a `node_gap`
(the order of ranks that share an adapter spans several rounds), more than `clocks.MOST_MESSAGES` messages.

Sources: as in `whatif.models.collectives`; LogGOPS: Hoefler, Schneider and Lumsdaine, "LogGOPSim: simulating
large-scale applications in the LogGOPS model", HPDC 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.simulation.clocks import Clocks, checked_size, refuse_too_many
from whatif.simulation.schedule import Costs, Places
from whatif.simulation.steps import Exchange, broadcast, combine, exchange, powers, reduce, transfer

Times = Callable[[int, float, Places, Costs, FloatArray | None], FloatArray]
Rounds = Callable[[Clocks, float], None]
"""Simulation of the rounds of a pattern on clocks, with the bytes that one rank contributes."""


def _timed(rounds: Rounds) -> Times:
    """End of each rank of a pattern."""

    @wraps(rounds)
    def times(
        rank_count: int, message_size: float, places: Places, costs: Costs, arrival: FloatArray | None = None
    ) -> FloatArray:
        clocks = Clocks.starting(rank_count, places, costs, arrival)
        rounds(clocks, checked_size(message_size))
        return clocks.times

    return times


@_timed
def broadcast_times(clocks: Clocks, message_size: float) -> None:
    """Binomial-tree broadcast: the number of ranks with the message doubles in every round."""
    broadcast(clocks, message_size)


@_timed
def reduce_times(clocks: Clocks, message_size: float) -> None:
    """Binomial-tree reduction: the rounds of the broadcast in reverse order, each with its arithmetic."""
    reduce(clocks, message_size)


@_timed
def dissemination_times(clocks: Clocks, message_size: float) -> None:
    """Dissemination barrier: in round r each rank sends to the one 2^r further on."""
    _exchanges(clocks, (Exchange(power, message_size) for power in powers(clocks.rank_count)))


@_timed
def recursive_doubling_times(clocks: Clocks, message_size: float) -> None:
    """An allreduce: exchange of the whole buffer at distances 1, 2, 4, .. ; surplus ranks as in MPICH."""
    distances = powers(_core_count(clocks.rank_count))
    _in_core(clocks, message_size, [Exchange(power, message_size, paired=True, combines=True) for power in distances])


@_timed
def rabenseifner_times(clocks: Clocks, message_size: float) -> None:
    """An allreduce: halves, quarters, .. at distances 1, 2, .. to reduce and scatter, and the same back to gather."""
    distances = powers(_core_count(clocks.rank_count))
    there = [Exchange(power, message_size / (2 * power), paired=True) for power in distances]
    _in_core(clocks, message_size, [*(replace(turn, combines=True) for turn in there), *reversed(there)])


@_timed
def ring_allreduce_times(clocks: Clocks, message_size: float) -> None:
    """An allreduce: blocks of n / P go around a ring, P - 1 rounds to reduce and scatter, P - 1 to gather."""
    turn = Exchange(1, message_size / clocks.rank_count, clocks.rank_count - 1)
    _exchanges(clocks, [replace(turn, combines=True), turn])


@_timed
def ring_allgather_times(clocks: Clocks, message_size: float) -> None:
    """An allgather: the block of each rank goes around a ring in P - 1 rounds."""
    _exchanges(clocks, [Exchange(1, message_size, clocks.rank_count - 1)])


@_timed
def bruck_allgather_times(clocks: Clocks, message_size: float) -> None:
    """Bruck allgather: each round doubles the blocks of a rank; the last one sends the missing blocks."""
    count = clocks.rank_count
    _exchanges(clocks, (Exchange(-held, message_size * min(held, count - held)) for held in powers(count)))


@_timed
def pairwise_alltoall_times(clocks: Clocks, message_size: float) -> None:
    """An all-to-all: in round r each rank sends a block to the one r further on."""
    refuse_too_many(clocks.rank_count * (clocks.rank_count - 1))
    _exchanges(clocks, (Exchange(distance, message_size) for distance in range(1, clocks.rank_count)))


def _core_count(rank_count: int) -> int:
    """The largest power of two that is not above."""
    return 1 << (rank_count.bit_length() - 1)


def _in_core(clocks: Clocks, message_size: float, turns: list[Exchange]) -> None:
    """Exchanges among a power of two of ranks: of the first 2 · surplus the even ones send before and receive after."""
    rank_count = clocks.rank_count
    surplus = rank_count - _core_count(rank_count)
    if not surplus:
        _exchanges(clocks, turns)
        return
    aside, odd = slice(0, 2 * surplus, 2), slice(1, 2 * surplus, 2)
    transfer(clocks, aside, odd, message_size)
    combine(clocks, odd, message_size)
    core = np.concatenate([np.arange(rank_count)[odd], np.arange(2 * surplus, rank_count)])
    inner = clocks.part(core)
    _exchanges(inner, turns)
    clocks.put(core, inner)
    transfer(clocks, odd, aside, message_size)


def _exchanges(clocks: Clocks, turns: Iterable[Exchange]) -> None:
    for turn in turns:
        exchange(clocks, turn)
