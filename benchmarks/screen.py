"""The explorer: from key press to new picture, and the start of the program."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from textual.screen import Screen

from benchmarks.measure import Row, median_seconds
from benchmarks.model import BANDWIDTH
from whatif.engine.result import Question
from whatif.tui import app as explorer
from whatif.tui.app import Explorer

SIZE = (120, 36)


class Watched(Explorer):
    """The explorer, remembering when it last wrote a frame."""

    CSS_PATH = Path(explorer.__file__).with_name("explorer.tcss")
    drawn = 0.0

    def _display(self, screen: Screen, renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        self.drawn = time.perf_counter()


async def _presses(count: int) -> list[float]:
    """Seconds from each of `count` nudges to the last frame it caused, with a sweep of 10^4 points."""
    app = Watched(Question.open("jacobi2d"))
    app._session = app._session.sweep(BANDWIDTH, "1 GB/s .. 100 GB/s log 10000")
    times = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(1)
        for _ in range(count):
            start = time.perf_counter()
            await pilot.press("right")
            await pilot.pause(0.1)
            times.append(app.drawn - start)
    return times


def _from_the_command_line() -> None:
    """The same picture as a new process draws it."""
    sweep = f"{BANDWIDTH}=1 GB/s .. 100 GB/s log 10000"
    words = [sys.executable, "-m", "whatif", "run", "jacobi2d", "--sweep", sweep, "--plot"]
    subprocess.run(words, check=True, capture_output=True)


def key_to_picture() -> Iterator[Row]:
    """A nudge in the explorer with 10^4 points, against `whatif run --plot`."""
    times = sorted(asyncio.run(_presses(45))[5:])
    median = statistics.median(times)
    afresh = median_seconds(_from_the_command_line, 5)
    yield Row(
        f"key press to new picture, 10^4 points, {SIZE[0]}x{SIZE[1]} (p95 {times[-2] * 1e3:.0f} ms)",
        f"{median * 1e3:.0f} ms",
        f"{afresh * 1e3:.0f} ms",
        afresh / median,
        "whatif run --plot",
    )


def _cpu(code: str) -> float:
    """CPU seconds of a Python process, the least of five."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def start() -> Iterator[Row]:
    """`whatif --help` against importing what the explorer needs."""
    program = "import sys; sys.argv = ['whatif', '--help']; from whatif.cli.main import main; main()"
    ours, eager = _cpu(program), _cpu("import numpy, pydantic, textual.app")
    yield Row(
        "whatif --help, CPU",
        f"{ours * 1e3:.0f} ms",
        f"{eager * 1e3:.0f} ms",
        eager / ours,
        "import numpy, pydantic and textual",
    )
