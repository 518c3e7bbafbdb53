"""Responsiveness of the explorer: typing during a long job, and the time to the first frame."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from benchmarks.measure import Row
from benchmarks.screen import GPUS, SIZE, Watched
from whatif.core.scenario import Scenario
from whatif.tui.commands.explorer_commands import Edit
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.parameter_tree import ParameterTree

_JOB_SECONDS = 10.0


class Long(Edit):
    """An edit that keeps Python busy for ten seconds."""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the new value, after ten seconds."""
        busy()
        return super().apply(state)


def busy() -> None:
    """Keep the interpreter busy for ten seconds, like a simulator in pure Python."""
    end, count = time.perf_counter() + _JOB_SECONDS, 0
    while time.perf_counter() < end:
        count += 1


async def _typed(folder: Path, in_thread: bool) -> list[float]:
    """Seconds from each typed character to its frame, while a job of ten seconds runs."""
    app = Watched(Scenario.open("jacobi2d"), recovery_folder=folder)
    times = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(1)
        app.main_screen.query_one(ParameterTree).select(GPUS)
        await pilot.press("enter")
        await pilot.pause(0.5)
        if in_thread:
            Thread(target=busy, daemon=True).start()
        else:
            app.runner.ask(Long(GPUS, "8"))
        await pilot.pause(0.5)
        for _ in range(40):
            app.frames.clear()
            start = time.perf_counter()
            await pilot.press("1")
            await pilot.pause(0.05)
            # Textual repeats the layout after every character; the first frame already shows the character.
            times.append(app.frames[0] - start)
        if not in_thread and not app.runner.busy:
            raise RuntimeError("the job ended before the typing")
        app.runner.stop()
    return sorted(times)


def typing() -> Iterator[Row]:
    """Time of a typed character while a job runs in the worker process, against the same job in a thread."""
    with TemporaryDirectory() as folder:
        ours, theirs = (asyncio.run(_typed(Path(folder), in_thread)) for in_thread in (False, True))
    yield Row(
        f"typed character during a job of 10 s (worst {ours[-1] * 1e3:.0f} ms)",
        f"{statistics.median(ours) * 1e3:.0f} ms",
        f"{statistics.median(theirs) * 1e3:.0f} ms",
        statistics.median(theirs) / statistics.median(ours),
        f"the job in a thread (worst {theirs[-1] * 1e3:.0f} ms)",
    )


_FIRST_FRAME = """
from whatif.tui.terminal.fast_start import fast_start

fast_start()
import asyncio, sys, time
from pathlib import Path
from benchmarks.screen import Watched
from whatif.core.scenario import Scenario

async def main():
    name, *folders = sys.argv[1:]
    app = Watched(Scenario.open(name, folders=tuple(map(Path, folders))))
    async with app.run_test(size=(120, 36)) as pilot:
        while not app.frames:
            await pilot.pause()
        print(time.process_time())

asyncio.run(main())
"""


def cpu_to_first_frame(*arguments: str) -> float:
    """CPU seconds from the start of Python to the first frame, minimum of five runs: scenario, folder of platforms."""
    words = [sys.executable, "-c", _FIRST_FRAME, *arguments]
    done = (subprocess.run(words, check=True, capture_output=True, text=True) for _ in range(5))
    return min(float(process.stdout.split()[-1]) for process in done)


def first_frame() -> Iterator[Row]:
    """Time to the first frame of the smallest and of the largest shipped scenario."""
    small, large = (cpu_to_first_frame(name) for name in ("jacobi2d_strong", "minimd"))
    yield Row("start to first frame, CPU", f"{small * 1e3:.0f} ms", "800 ms", 0.8 / small, "the target")
    yield Row("the same on the largest shipped scenario, minimd", f"{large * 1e3:.0f} ms", "", 0.0, "")
