"""The explorer: from key press to new picture, and the start of the program."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.measure import Row, median_seconds
from benchmarks.model import BANDWIDTH
from whatif.engine.result import Question
from whatif.engine.session import Session
from whatif.export.figure import figure
from whatif.export.plot_plotext import render_runs
from whatif.tui.app import Explorer

SIZE = (120, 36)


async def _presses(count: int) -> list[float]:
    """Seconds from each of `count` nudges to the finished frame, with a sweep of 10^4 points."""
    app = Explorer(Question.open("jacobi2d", sets={}))
    app._session = app._session.sweep(BANDWIDTH, "1 GB/s .. 100 GB/s log 10000")
    times = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for _ in range(count):
            start = time.perf_counter()
            await pilot.press("right")
            await pilot.pause()
            times.append(time.perf_counter() - start)
    return times


def _afresh() -> None:
    """What a program without a session does for the same picture: read, compile, evaluate, draw."""
    session = Session.start(Question.open("jacobi2d")).sweep(BANDWIDTH, "1 GB/s .. 100 GB/s log 10000")
    render_runs(figure(session.result), 75, 17)


def key_to_picture() -> Iterator[Row]:
    """A nudge in the explorer, 10^4 points, against answering the question anew without a screen."""
    times = sorted(asyncio.run(_presses(40))[5:])
    median = statistics.median(times)
    afresh = median_seconds(_afresh, 9)
    yield Row(
        f"key press to new picture, 10^4 points, {SIZE[0]}x{SIZE[1]} (p95 {times[-2] * 1e3:.0f} ms)",
        f"{median * 1e3:.0f} ms",
        f"{afresh * 1e3:.0f} ms",
        afresh / median,
        "read, compile, evaluate and draw anew",
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
