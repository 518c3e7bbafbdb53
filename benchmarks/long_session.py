"""Explorer after an hour: memory after 2,000 edits on all pages, and the start beside a library of 200 machines.

`python -m benchmarks.long_session EDITS` prints the resident memory, with `-X tracemalloc` the allocated memory.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.explorer import cpu_to_first_frame
from benchmarks.measure import Row, memory
from benchmarks.model import BANDWIDTH, MEMORY
from benchmarks.screen import SIZE, Watched
from whatif.core.scenario import Scenario
from whatif.tui.commands.explorer_commands import Edit, Show, SweepParameter
from whatif.tui.page_registry import screens

EDITS = 2_000
ROUND = 280
"""Edits that visit all pages once."""
_LIBRARY = 200


async def _hour(folder: Path, edits: int) -> float:
    """Memory in MB after edits of a sweep of 10^4 points, during which all pages are visited."""
    app = Watched(Scenario.open("jacobi2d"), recovery_folder=folder)
    pages = [page.name for page in screens()]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(1)
        app.runner.ask(SweepParameter(BANDWIDTH, "1 GB/s .. 100 GB/s log 10000"))
        for number in range(edits):
            if number % 20 == 0:
                app.runner.ask(Show("screen", pages[number // 20 % len(pages)]))
            app.runner.ask(Edit(MEMORY, f"{700 + number % 100} GB/s"))
            await app.runner.idle()
            await pilot.pause()
        if app.state.session.program.parameters[MEMORY].text() != f"{700 + (edits - 1) % 100} GB/s":
            raise RuntimeError("the edits were not performed")
    return (tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else memory("VmRSS")) / 1e6


def main() -> None:
    """Print the memory of one session, which has a process of its own."""
    with TemporaryDirectory() as folder:
        print(asyncio.run(_hour(Path(folder), int(sys.argv[1]))))


def long_session() -> Iterator[Row]:
    """Memory that is allocated after 2,000 edits on all pages, and the resident memory after all pages."""
    allocated, resident = _memory("-X", "tracemalloc", edits=EDITS), _memory(edits=ROUND)
    words = f"memory after {EDITS:,} edits on all pages, allocated by Python and numpy"
    yield Row(words, f"{allocated:.0f} MB", "110 MB", 110 / allocated, "the target")
    yield Row(
        f"resident memory after {ROUND} edits on all pages, with all libraries", f"{resident:.0f} MB", "", 0.0, ""
    )


def _memory(*options: str, edits: int) -> float:
    """Memory in MB of a session in a process of its own."""
    words = [sys.executable, *options, "-m", "benchmarks.long_session", str(edits)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def large_library() -> Iterator[Row]:
    """Start in a folder with 200 platforms and 200 scenarios, against an empty folder."""
    with TemporaryDirectory() as full, TemporaryDirectory() as empty:
        for number in range(_LIBRARY):
            (Path(full) / f"machine{number}.toml").write_text(f'name = "M{number}"\nextends = "lassen"\n')
            (Path(full) / f"question{number}.toml").write_text('extends = "jacobi2d"\n')
        times = [cpu_to_first_frame("jacobi2d", folder) for folder in (full, empty)]
    words = f"start beside {_LIBRARY} platforms and {_LIBRARY} scenarios"
    yield Row(words, *(f"{time * 1e3:.0f} ms" for time in times), times[1] / times[0], "an empty folder")


if __name__ == "__main__":
    main()
