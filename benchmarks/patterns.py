"""Patterns simulated round by round: messages per second, against LogGOPSim and the message-by-message replay.

LogGOPSim's times for a broadcast on 2^20 ranks were recorded with its results (traces/loggops/README.md of the data
folder): 5.1 s, plus 42 s to write and translate its schedule, on one core of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.measure import Row, median_seconds
from whatif.models.patterns import GridPattern
from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import Kind, Trace
from whatif.simulation.schedule import Costs, Places

RANKS = 2**20
RING = 2**12
SIZE = 1024.0
REPLAYED_RANKS = 2**15
PEER, PEER_PREPARATION = 5.1, 42.0


def patterns() -> Iterator[Row]:
    """Time of a broadcast on 2^20 ranks, and messages per second of every structured pattern on one core."""
    from whatif.simulation import generate, rounds

    places, costs = _places(RANKS), _loggops()
    seconds = median_seconds(lambda: rounds.broadcast_times(RANKS, SIZE, places, costs), 9)
    yield _broadcast(seconds, PEER, "LogGOPSim, printed, without preparation")
    yield _broadcast(seconds, PEER + PEER_PREPARATION, "LogGOPSim, printed, with preparation")
    trees = {"broadcast": Kind.BROADCAST, "reduce": Kind.REDUCE}
    exchanges = {"dissemination": Kind.BARRIER, "recursive_doubling": Kind.ALLREDUCE}
    for name, kind in {**trees, **exchanges}.items():
        count = RANKS - 1 if name in trees else RANKS * 20
        trace = generate.collective_trace(kind, REPLAYED_RANKS, SIZE)
        others = REPLAYED_RANKS - 1 if name in trees else REPLAYED_RANKS * 15
        for what, charges in (("LogGOPS", costs), ("postal by distance", _postal())):
            simulate = partial(getattr(rounds, f"{name}_times"), RANKS, SIZE, places, charges, None)
            yield _row(f"{name}, {what}", simulate, count, trace, others)
    yield from _rings()
    yield from _halos()


def _rings() -> Iterator[Row]:
    """Rate of a ring allgather in which ranks enter at different times, so that all rounds differ."""
    from whatif.simulation import generate, rounds

    places, arrival = _places(RING), np.random.default_rng(1).uniform(0, 1e-3, RING)
    trace = generate.collective_trace(Kind.ALLGATHER, 256, SIZE)
    simulate = partial(rounds.ring_allgather_times, RING, SIZE, places, _postal(same=True), arrival)
    yield _row("ring_allgather, postal", simulate, RING * (RING - 1), trace, 256 * 255)


def _halos() -> Iterator[Row]:
    """Rate of a halo exchange on 10^6 ranks that enter at different times."""
    from whatif.simulation import generate, posted

    arrival = np.random.default_rng(1).uniform(0, 1e-6, 10**6)
    faces = (GridPattern((n, n, n), 42, 21, periodic=True) for n in (100, 16))
    every = (GridPattern((n, n, n), 42, 21, neighbours="all") for n in (100, 16))
    for name, (pattern, small) in (("6 neighbours, periodic", faces), ("26 neighbours", every)):
        count, others = (sum(len(sender) for _, sender, _ in each.messages()) for each in (pattern, small))
        simulate = partial(posted.halo_times, pattern, SIZE, _postal(), arrival, iteration_count=4)
        yield _row(f"halo of {name}, postal by distance", simulate, 4 * count, generate.halo_trace(small, SIZE), others)


def _broadcast(seconds: float, other: float, alternative: str) -> Row:
    return Row("broadcast on 2^20 ranks", f"{seconds:.3f} s", f"{other:.1f} s", other / seconds, alternative)


def _row(name: str, simulate: Callable[[], FloatArray], count: int, trace: Trace, replayed_count: int) -> Row:
    """Messages per second, against the replay of the same pattern on fewer ranks from a prepared schedule."""
    from whatif.simulation.lower import lower
    from whatif.simulation.replay import replay

    schedule, places = lower(trace), _places(trace.rank_count)
    rate = count / median_seconds(simulate, 5)
    other = replayed_count / median_seconds(lambda: replay(schedule, places, _postal()), 3)
    alternative = "compiled replay, fewer ranks"
    return Row(f"{name}, messages", f"{rate / 1e6:.0f} M/s", f"{other / 1e6:.2f} M/s", rate / other, alternative)


def _places(rank_count: int) -> Places:
    ranks = np.arange(rank_count, dtype=np.int32)
    return Places(ranks // np.int32(42), ranks // np.int32(21))


def _loggops() -> Costs:
    """Costs with the parameters of the recorded results: L 2500, o 1500, g 1000, G 6 ns."""
    overhead, gap, flight, receive = (_linear(*pair) for pair in ((1500, 0), (1000, 6), (4000, 0), (1500, 6)))
    limits = np.full((3, 2), 65535.0)
    return Costs(overhead, gap, flight, receive, gap, limits, free_size=1.0, on_arrival=True)


def _postal(same: bool = False) -> Costs:
    """Costs with latency and time per byte that increase with the distance, or not."""
    factor = np.ones(3) if same else np.array([1.0, 2.0, 4.0])
    nothing, time = _linear(0, 0), _linear(500, 0.1) * factor[:, np.newaxis, np.newaxis]
    return Costs(nothing, time, time, nothing, nothing, np.full((3, 2), np.inf))


def _linear(constant: float, per_byte: float) -> FloatArray:
    """Linear cost for all distances and protocols, from ns and ns/B."""
    return np.tile(np.array([constant, per_byte]) * 1e-9, (3, 3, 1))
