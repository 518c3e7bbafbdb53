"""`python -m benchmarks.measured_machine PLATFORM.toml`: a kernel that is in no fit, predicted and measured here.

A sweep of Jacobi's method on a grid of each core, in and out of the last-level cache, on one core and on all; the
platform is one that `whatif measure` wrote on this machine. Prints the Markdown of docs/measure.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import whatif
from benchmarks import jacobi_sweep
from whatif.schema.load import load_platform
from whatif.simulation.jit import jitted

SECONDS: Final = 0.5
"""Duration of one measurement."""
ROUNDS: Final = 9
_SCENARIO: Final = """
platform = {platform}
[application]
name = "Jacobi sweep"
rank_count = {ranks}
ranks_per_node = {ranks}
threads_per_rank = 1
iteration_count = 1
[application.phases.sweep]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "launch"
operations = "{operations} flop"
dram_size = "{moved} B"
load_store_size = "{all_moved} B"
working_set = "{working_set} B"
"""


@dataclass(frozen=True)
class Case:
    """Sweeps over a grid of `side` x `side` cells on each of some cores."""

    name: str
    side: int
    cores: int

    @property
    def cells(self) -> int:
        """Inner cells."""
        return (self.side - 2) ** 2

    def predicted(self, platform: Path) -> float:
        """Time of a sweep: 4 operations a cell, 8 B read and 8 B written; with the neighbours 40 B."""
        sizes = {"moved": 16 * self.cells, "all_moved": 40 * self.cells, "working_set": 16 * self.side**2}
        text = _SCENARIO.format(
            platform=f'"{platform.stem}"', ranks=self.cores, operations=4 * self.cells, **sizes
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sweep.toml"
            path.write_text(text, encoding="utf-8")
            return float(whatif.run(path, platform_dirs=[platform.parent])["iteration_time"])

    def measured(self) -> tuple[float, float]:
        """Median time of a sweep on the slowest core, and its relative scatter."""
        per_round = max(2 * round(SECONDS / max(self._once(2), 1e-9) / 2), 2)
        times = np.array([self._once(per_round) for _ in range(ROUNDS)])
        return float(np.median(times)), float(1.4826 * np.median(np.abs(times / np.median(times) - 1)))

    def _once(self, count: int) -> float:
        """Time of one sweep, of `count` on each core."""
        (run,) = jitted((jacobi_sweep,), ("sweeps",))
        barrier, taken = threading.Barrier(self.cores), np.zeros(self.cores)

        def work(at: int) -> None:
            os.sched_setaffinity(0, {sorted(_PROCESSORS)[at]})
            grids = np.random.default_rng(at).random((2, self.side, self.side))
            run(grids[0], grids[1], 2)
            barrier.wait()
            begin = time.perf_counter()
            run(grids[0], grids[1], count)
            taken[at] = time.perf_counter() - begin

        threads = [threading.Thread(target=work, args=(at,)) for at in range(self.cores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return float(taken.max()) / count


_PROCESSORS: Final = os.sched_getaffinity(0)


def cases(cache_size: float) -> Iterator[Case]:
    """In cache, a core's grids have half of its share; out of it each grid has four times the cache."""
    every = len(_PROCESSORS)
    inside, outside = int((0.5 * cache_size / every / 16) ** 0.5), int((4 * cache_size / 8) ** 0.5)
    for name, side in (("in cache", inside), ("out of cache", outside)):
        for cores in sorted({1, every}):
            yield Case(name, side, cores)


def main(words: list[str]) -> None:
    """Print a table."""
    platform = Path(words[0]).resolve()
    cpu = load_platform(str(platform))[0].node.cpu
    if cpu is None or not isinstance(cpu.cache_size, float):
        raise SystemExit(f"{platform}: no `node.cpu.cache_size`: is it a platform that `whatif measure` wrote?")
    print(
        "| sweep | cells of a core | cores | measured | scatter | predicted | error |\n"
        "|---|---:|---:|---:|---:|---:|---:|"
    )
    for case in cases(cpu.cache_size):
        predicted, (found, scatter) = case.predicted(platform), case.measured()
        print(
            f"| {case.name} | {case.side}² | {case.cores} | {found * 1e3:.3f} ms | {scatter:.1%} "
            f"| {predicted * 1e3:.3f} ms | {predicted / found - 1:+.1%} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
