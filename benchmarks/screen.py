"""Explorer: time from key press to new picture, time to draw a plot, and start of the program."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget

from benchmarks.measure import Row, median_seconds
from benchmarks.model import BANDWIDTH, MEMORY
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep_figure import figure
from whatif.plotting.axis_view import points_of
from whatif.plotting.description import PlotDescription
from whatif.tui import app as explorer
from whatif.tui.app import Explorer
from whatif.tui.commands.explorer_commands import Edit, SweepParameter
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.themes import series_variables
from whatif.tui.variants.variant_commands import Fork
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.plot_view import PlotView

SIZE = (200, 50)
GPUS = "platform.node.gpu_count"
_VARIANTS = 7


class Watched(Explorer):
    """Explorer that records the times of its frames."""

    CSS_PATH = Path(explorer.__file__).with_name("explorer.tcss")

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.frames: list[float] = []

    def _display(self, screen: Screen, renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        # The screen behind it is empty.
        if isinstance(screen, MainScreen):
            self.frames.append(time.perf_counter())


async def _presses(count: int, folder: Path, points: int = 10_000, variants: int = 0) -> list[float]:
    """Seconds from each of `count` key presses to its last frame, with a sweep of some points and other variants."""
    app = Watched(Scenario.open("jacobi2d"), recovery_folder=folder)
    times = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(1)
        app.runner.ask(SweepParameter(BANDWIDTH, f"1 GB/s .. 100 GB/s log {points}"))
        for number in range(variants):
            if number:
                app.runner.ask(Fork())
            app.runner.ask(Edit(GPUS, str(7 + number)))
        app.main_screen.query_one(ParameterTree).select(MEMORY)
        await app.runner.idle()
        await pilot.pause(1)
        explorer.keep_memory()
        for number in range(count):
            start = time.perf_counter()
            await pilot.press("plus" if number % 2 else "minus")
            await app.runner.idle()
            await pilot.pause(0.1)
            times.append(app.frames[-1] - start)
    if min(times) <= 0:
        raise RuntimeError("a key press drew nothing")
    return times


def _from_the_command_line() -> None:
    """Draw the same picture in a new process."""
    sweep = f"{BANDWIDTH}=1 GB/s .. 100 GB/s log 10000"
    words = [sys.executable, "-m", "whatif", "run", "jacobi2d", "--sweep", sweep, "--plot"]
    subprocess.run(words, check=True, capture_output=True)


def key_to_picture() -> Iterator[Row]:
    """Time of a key press in the explorer with 10^4 points, against `whatif run --plot`; then of the plot alone."""
    with TemporaryDirectory() as folder:
        times = sorted(asyncio.run(_presses(45, Path(folder)))[5:])
    median = statistics.median(times)
    afresh = median_seconds(_from_the_command_line, 5)
    yield Row(
        f"key press to new picture, 10^4 points, {SIZE[0]}x{SIZE[1]} (p95 {times[-2] * 1e3:.0f} ms)",
        f"{median * 1e3:.0f} ms",
        f"{afresh * 1e3:.0f} ms",
        afresh / median,
        "whatif run --plot",
    )
    with TemporaryDirectory() as folder:
        seven = statistics.median(sorted(asyncio.run(_presses(45, Path(folder), 1000, _VARIANTS)))[5:])
    words = f"the same of 10^3 points with {_VARIANTS} other variants"
    yield Row(words, f"{seven * 1e3:.0f} ms", "50 ms", 0.05 / seven, "the target")
    yield from (asyncio.run(_drawing(count)) for count in (10_000, 200))


class Plots(App[None]):
    """Our plot and that of textual-plotext, each filling the screen."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of curves, as in the explorer."""
        return series_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        """Widgets of both plots; one at a time is displayed."""
        from textual_plotext import PlotextPlot

        yield PlotView()
        yield PlotextPlot()


async def _drawing(count: int) -> Row:
    """Time to draw the curves of a sweep in both widgets, from new data to the lines of the screen."""
    session = Session.start(Scenario.open("jacobi2d")).sweep(BANDWIDTH, f"1 GB/s .. 100 GB/s log {count}")
    described = figure(session.result, here=session.here)
    app = Plots()
    async with app.run_test(size=SIZE) as pilot:
        ours, theirs = app.query("Plots > *, Screen > *").results(Widget)
        times = []
        for widget, show in ((ours, _show_ours), (theirs, _show_theirs)):
            ours.display, theirs.display = widget is ours, widget is theirs
            await pilot.pause()
            times.append(median_seconds(lambda widget=widget, show=show: _drawn(widget, described, show), 15))
    return Row(
        f"draw {len(described.lines)} curves of {count} points, {SIZE[0]}x{SIZE[1]}",
        f"{times[0] * 1e3:.1f} ms",
        f"{times[1] * 1e3:.1f} ms",
        times[1] / times[0],
        "textual-plotext",
    )


def _drawn(widget: Widget, described: PlotDescription, show: Callable[[Widget, PlotDescription], None]) -> None:
    show(widget, described)
    widget.render_lines(Region(0, 0, *SIZE))


def _show_ours(widget: Widget, described: PlotDescription) -> None:
    widget.show(replace(described))


def _show_theirs(widget: Widget, described: PlotDescription) -> None:
    """Show the same curves in axis space, as the logarithmic axes of plotext fail at zero."""
    widget.plt.clear_data()
    for line, (x, y) in zip(described.lines, points_of(described), strict=True):
        known = np.isfinite(y)
        widget.plt.plot(x[known].tolist(), y[known].tolist(), marker="braille", label=line.label)
    widget.refresh()


def _cpu(code: str) -> float:
    """CPU seconds of a Python process, minimum of five runs."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def start() -> Iterator[Row]:
    """Time of `whatif --help`, against the imports of the explorer."""
    program = "import sys; sys.argv = ['whatif', '--help']; from whatif.cli.main import main; main()"
    ours, eager = _cpu(program), _cpu("import numpy, pydantic, textual.app")
    yield Row(
        "whatif --help, CPU",
        f"{ours * 1e3:.0f} ms",
        f"{eager * 1e3:.0f} ms",
        eager / ours,
        "import numpy, pydantic and textual",
    )
