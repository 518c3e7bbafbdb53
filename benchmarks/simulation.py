"""Replay of schedules: events per second, compiled against plain loops and LogGOPSim, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Row, median_seconds, peak_memory
from whatif.simulation.schedule import Costs, Places, Schedule, Step

PEER = 1.7e6
"""Best rate of LogGOPSim in events per second, built with -O3 (1.4 to 1.7 million); it counts a message and its send.

Its results in validation/ were recorded with a build that is not optimised: 0.6 to 1.25 million."""
PEER_ALLTOALL_TIME = 300.0
"""Time in s after which LogGOPSim had not finished the linear all-to-all of 1024 ranks."""
EXAMPLE = {"latency": 2.5e-6, "overhead": 1.5e-6, "gap": 1e-6, "byte_gap": 6e-9}


def replaying() -> Iterator[Row]:
    """Rate of replay for general traces of 64 and 1024 ranks and a linear all-to-all, and memory of 10^7 operations."""
    from whatif.simulation import replay as module

    for rank_count, iteration_count in ((64, 1600), (1024, 100)):
        yield _events(f"replay a trace of {rank_count} ranks", general_trace(rank_count, iteration_count))
    small = general_trace(64, 30)
    compiled_time = _seconds_an_operation(general_trace(64, 1600))
    limit, module.SMALL = module.SMALL, len(small.step)
    plain_time = _seconds_an_operation(small)
    module.SMALL = limit
    rates = (f"{1e-6 / seconds:.2f} M op/s" for seconds in (compiled_time, plain_time))
    yield Row("replay, an operation", *rates, plain_time / compiled_time, "the same kernel, not compiled")
    seconds = median_seconds(_replay_of(linear_alltoall(1024)), 3, time.process_time)
    yield Row(
        "linear all-to-all, 1024 ranks, 2.1 M operations",
        f"{seconds:.2f} s",
        "> 300 s",
        PEER_ALLTOALL_TIME / seconds,
        "LogGOPSim, as its data's README states",
    )
    yield Row("replay 10^7 operations, all memory", f"{peak_memory(_ten_million) / 1e9:.2f} GB")


def _events(what: str, schedule: Schedule) -> Row:
    events = len(schedule.step) + np.count_nonzero(schedule.step == Step.SEND)
    rate = events / median_seconds(_replay_of(schedule), 5, time.process_time)
    peer = "LogGOPSim built with -O3, 1.4 to 1.7 M event/s"
    return Row(what, f"{rate / 1e6:.1f} M ev/s", f"{PEER / 1e6:.2f} M ev/s", rate / PEER, peer)


def _seconds_an_operation(schedule: Schedule) -> float:
    return median_seconds(_replay_of(schedule), 3, time.process_time) / len(schedule.step)


def _replay_of(schedule: Schedule) -> Callable[[], object]:
    from whatif.simulation.replay import replay

    node = np.arange(schedule.rank_count, dtype=np.int32)
    return lambda: replay(schedule, Places(node, node), loggops_costs())


def _ten_million() -> None:
    _replay_of(general_trace(1000, 1000))()


def loggops_costs() -> Costs:
    """LogGOPSim's defaults."""
    latency, overhead, gap, byte_gap = EXAMPLE.values()
    parts = ((overhead, 0), (gap, byte_gap), (overhead + latency, 0), (overhead, byte_gap), (gap, byte_gap))
    lines = (np.broadcast_to(np.array(part, dtype=float), (3, 3, 2)) for part in parts)
    return Costs(*lines, np.tile([0.0, 65535.0], (3, 1)), free_size=1.0, on_arrival=True)


def linear_alltoall(rank_count: int) -> Schedule:
    """Trace of 8 B from every rank to every other rank, all at once."""
    step = np.tile(np.array([Step.SEND, Step.RECEIVE], dtype=np.uint8), rank_count * (rank_count - 1))
    rank, distance = np.arange(rank_count)[:, None], np.arange(1, rank_count)
    peer = np.stack([rank + distance, rank - distance], axis=-1).ravel() % rank_count
    none = np.zeros(len(step), dtype=np.int32)
    starts = np.arange(rank_count + 1) * 2 * (rank_count - 1)
    ends = np.zeros(len(step) + 1, dtype=np.int64)
    size = np.full(len(step), 8.0)
    return Schedule(starts, step, peer.astype(np.int32), size, none, None, ends, none[:0], none, none, step)


def general_trace(rank_count: int, iteration_count: int) -> Schedule:
    """Trace of ten operations per step: computation, four receives, four sends of random size and distance, a wait."""
    generator = np.random.default_rng(1)
    ahead = generator.choice(np.arange(1, rank_count), 4, replace=False)
    shape, rank = (rank_count, iteration_count, 10), np.arange(rank_count)[:, None, None]
    step = np.tile(np.array([0, 2, 2, 2, 2, 1, 1, 1, 1, 3], dtype=np.uint8), rank_count * iteration_count)
    peer, tag, size = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32), np.zeros(shape)
    peer[:, :, 1:5], peer[:, :, 5:9] = (rank - ahead) % rank_count, (rank + ahead) % rank_count
    tag[:, :, 1:9] = np.tile(np.arange(4), 2)
    size[:, :, 0] = generator.exponential(1e-6, shape[:2])
    # A receive has the size of its message.
    size[:, :, 5:9] = generator.integers(8, 4000, (*shape[:2], 4))
    size[:, :, 1:5] = 4000
    need = np.tile(np.array([1] * 9 + [8], dtype=np.int32), (*shape[:2], 1))
    need[:, 0, 0] = 0
    next_count = np.tile(np.array([8] + [1] * 9), (*shape[:2], 1))
    next_count[:, -1, -1] = 0
    first = np.arange(rank_count * iteration_count)[:, None] * 10
    following = (first + np.array([*range(1, 9), *([9] * 8), 10])).reshape(rank_count, -1)[:, :-1]
    origin = np.tile(np.arange(10 * iteration_count, dtype=np.int32), rank_count)
    return Schedule(
        rank_start=np.arange(rank_count + 1) * 10 * iteration_count,
        step=step,
        peer=peer.ravel(),
        size=size.ravel(),
        tag=tag.ravel(),
        processor=None,
        next_start=np.concatenate([[0], np.cumsum(next_count)]),
        next=following.astype(np.int32).ravel(),
        need_count=need.ravel(),
        origin=origin,
        origin_kind=step,
    )
