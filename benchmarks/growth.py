"""Growth of times with the size of a question: points, ranks, operations, matrix size of HPL, GPUs of a plan."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.history import this_run
from benchmarks.measure import median_seconds

MARK = "<!-- measured: `python -m benchmarks growth -o docs/performance.md` writes what follows -->"
Point = tuple[str, float]
"""Size and time in s."""


def growth_page() -> str:
    """Tables of all curves in Markdown, with machine and date."""
    run = this_run()
    tables = [_table(*curve) for curve in CURVES]
    return (
        f"Measured on {run.date[:10]} (commit {run.commit}), CPU times of one process: {run.machine}.\n\n"
        + "\n".join(tables)
    )


def _table(title: str, size: str, points: Callable[[], Iterator[Point]]) -> str:
    rows = "".join(f"| {amount} | {_shown(seconds)} |\n" for amount, seconds in points())
    return f"**{title}**\n\n| {size} | time |\n|---:|---:|\n{rows}"


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _once(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _points() -> Iterator[Point]:
    from benchmarks.model import BANDWIDTH, MEMORY, OVERHEAD
    from whatif.core.grid_run import run_whole
    from whatif.core.scenario import Scenario
    from whatif.core.sweep import grid_of, parse_option

    scenario = Scenario.open("jacobi2d")
    for count in (1, 10, 100, 200):
        axes = (
            f"{BANDWIDTH} = 1 GB/s .. 100 GB/s log {count}",
            f"{MEMORY} = 100 GB/s .. 3000 GB/s log {count}",
            f"{OVERHEAD} = 0 us .. 1 ms linear {count}",
        )
        grid = grid_of([parse_option(axis, scenario.program, 10**7) for axis in axes if count > 1], 10**7)
        yield f"{grid.size:,}", median_seconds(lambda grid=grid: run_whole(scenario, grid), 3, time.process_time)


def broadcast_schedule(rank_count: int) -> str:
    """GOAL schedule of a broadcast of 8 B along a binomial tree."""
    lines = [f"num_ranks {rank_count}\n"]
    for rank in range(rank_count):
        lowest = rank & -rank or 1 << (rank_count - 1).bit_length()
        children = (rank + (1 << bit) for bit in reversed(range(lowest.bit_length() - 1)))
        lines.append(f"rank {rank} {{\n")
        lines += [f"l0: recv 8b from {rank - lowest} tag 0\n"] * bool(rank)
        for number, target in enumerate((child for child in children if child < rank_count), 1):
            lines.append(f"l{number}: send 8b to {target} tag 0\n" + f"l{number} requires l0\n" * bool(rank))
        lines.append("}\n")
    return "".join(lines)


def replayed_broadcast(path: Path) -> float:
    """Run time in s of a schedule: read, lowered and replayed."""
    from benchmarks.simulation import loggops_costs
    from whatif.importers.goal import read_goal
    from whatif.simulation.lower import lower
    from whatif.simulation.replay import replay
    from whatif.simulation.schedule import Places

    schedule = lower(read_goal(path))
    node = np.arange(schedule.rank_count, dtype=np.int32)
    return replay(schedule, Places(node, node), loggops_costs()).time


def _ranks() -> Iterator[Point]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "broadcast.goal")
        path.write_text(broadcast_schedule(2**16), encoding="utf-8")
        replayed_broadcast(path)  # compiles the loops
        for exponent in (10, 12, 14, 16, 18):
            path.write_text(broadcast_schedule(2**exponent), encoding="utf-8")
            yield f"{2**exponent:,}", _once(lambda: replayed_broadcast(path))


def _operations() -> Iterator[Point]:
    from benchmarks.simulation import general_trace, loggops_costs
    from whatif.simulation.replay import replay
    from whatif.simulation.schedule import Places

    for iterations in (10, 100, 1000, 10_000):
        schedule = general_trace(100, iterations)
        node = np.arange(schedule.rank_count, dtype=np.int32)
        action = lambda schedule=schedule, node=node: replay(schedule, Places(node, node), loggops_costs())  # noqa: E731
        yield f"{len(schedule.step):,}", median_seconds(action, 1, time.process_time)


def _matrix_sizes() -> Iterator[Point]:
    from benchmarks.hpl import small_run

    for size in (9600, 19_200, 38_400, 76_800, 153_600):
        yield f"{size:,}", median_seconds(small_run(size), 3, time.process_time)


def _gpus() -> Iterator[Point]:
    from benchmarks.transformers import plan_search

    for count in (256, 1024, 4096, 16_384):
        yield f"{count:,}", median_seconds(plan_search(count), 1, time.process_time)


CURVES = (
    ("Sweep of Jacobi2D over three parameters", "points", _points),
    ("Broadcast along a tree from a GOAL file: read, lowered, replayed", "ranks", _ranks),
    ("Replay of a trace of 100 ranks", "operations", _operations),
    ("HPL on 64 ranks, blocks of 128, step by step", "matrix size N", _matrix_sizes),
    ("Search of all plans of Llama 3 405B", "GPUs", _gpus),
)
