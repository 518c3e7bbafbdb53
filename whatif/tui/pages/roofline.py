"""The roofline: what the GPU can do, where each kernel stands below that, and the same on another GPU."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.core.scenario import Scenario
from whatif.errors import WhatifError
from whatif.schema.load import load_platform
from whatif.studies.roofline_study import (
    LIMITS,
    OPERATIONS,
    KernelPoint,
    Roofline,
    Roofs,
    SecondGpu,
    gpu_roofs,
    of_roof,
    roofline_at,
    second_gpu,
)
from whatif.tui.jobs.job import Job
from whatif.tui.labels import brief, duration, percent, reason_of
from whatif.tui.page_views import RooflineView
from whatif.tui.pages.page import Page, PageKey, stepped_to
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import WORDS, Cell, ColumnsView, TableRows, TableView, speedup
from whatif.tui.widgets.roofline_plot import RoofsView, letter, limit_style
from whatif.units import BYTE_PER_SECOND, FLOP_PER_BYTE, FLOP_PER_SECOND, format_quantity

_KEPT: Final = 2
"""The columns that stay: letter and kernel."""
_TITLES: Final = {
    "sign": "",
    "name": "kernel",
    "limit": "limit",
    "time": "time",
    "share": "share",
    "rate": "rate",
    "part": "of roof",
    "intensity": "intensity",
    "there_time": "",
    "there_ratio": "",
    "there_limit": "limit there",
    "there_rate": "rate there",
    "own": "own roof",
}
_TEXTS: Final = frozenset(("sign", "name", "limit", "there_limit"))
NO_KERNELS: Final = "This scenario has no kernels: no phase is of the kind `kernel`. The roofs are those of its GPU."
NO_GPU: Final = "This machine has no GPU, so there are no roofs to draw. P chooses another platform."


class RooflinePage(Page[RooflineView]):
    """Roofs with the kernels below them, and a list of the kernels; `x` compares with another GPU."""

    NAME: ClassVar[str] = "roofline"
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 20, "-flat": 8}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("second", "x", "second(1)", "second GPU", "Compare with the GPU of the next platform"),
        PageKey("table", "v", "table", "table", "Switch between the roofline and a table of the kernels"),
    )
    DEFAULT_CSS = """
    RooflinePage #roofs { height: 1fr; }
    RooflinePage #no-kernels { width: 1fr; height: auto; color: $text-muted; }
    RooflinePage.-tabular #roofs, RooflinePage.-bare ColumnsView { display: none; }
    RooflinePage.-tabular ColumnsView { display: block; height: 1fr; max-height: 100%; }
    RooflinePage.-flat #roofs { display: none; }
    RooflinePage.-flat ColumnsView { display: block; max-height: 100%; }
    RooflinePage.-flat.-bare #roofs { display: block; }
    RooflinePage.-flat.-bare ColumnsView { display: none; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._second: SecondGpu | None = None
        self._found: Roofline | None = None

    def compose(self) -> ComposeResult:
        """The picture, and below it the kernels."""
        with Vertical(id="roofs", classes="panel"):
            yield RoofsView()
            yield Static(id="no-kernels", markup=False)
        yield ColumnsView(classes="panel")

    def enter(self) -> None:
        """Focus the kernels."""
        self.query_one(ColumnsView).focus()

    def show(self, state: ExplorerState) -> None:
        """Show a state: the present GPU at once, the second one as it was until it has been asked."""
        self.state = state
        if self._second is not None and self._second.platform != self.view_in(state.view).second:
            self._second = None
        self._fill()

    def job(self, state: ExplorerState) -> Job | None:
        """Request the second GPU."""
        name = self.view_in(state.view).second
        return Job(second_gpu, (state.session.scenario, name)) if name else None

    def take(self, value: SecondGpu) -> None:
        """Show the second GPU."""
        self._second = value
        self._fill()

    def _fill(self) -> None:
        state, second = self.state, self.view.second
        found, reason = roofline_of(state, self._second)
        # A machine without GPUs has no peaks.
        roofed = bool(found.gpu.peaks)
        tabular = state.view.picture == "table" and roofed
        panel, table = self.query_one("#roofs"), self.query_one(ColumnsView)
        panel.border_title = Content(f"{found.gpu.name} of {state.session.program.loaded.scenario.platform.name}")
        panel.border_subtitle = Content(_in_words(found, second))
        self.update_classes({"-tabular": tabular, "-bare": not found.kernels})
        self.query_one("#no-kernels", Static).update(reason)
        self.query_one("#no-kernels").display = bool(reason)
        self.query_one(RoofsView).display = roofed
        table.border_title = "kernels and roofs" if tabular else "kernels"
        hint = reason if tabular else "" if second else "x compares with another GPU"
        table.show(rows(found, with_roofs=tabular), _KEPT, hint)
        self._found = found if roofed else None
        self._stress()

    @on(TableView.Pointed)
    def _stress(self) -> None:
        """Stress the kernel under the cursor."""
        if self._found is not None:
            self.query_one(RoofsView).show((self._found, self.query_one(ColumnsView).cursor))

    def action_second(self, steps: int) -> None:
        """Compare with the GPU of the next platform that has one; after the last one, with none."""
        scenario = self.state.session.scenario
        choices = ("", *_others(scenario))
        self.choose("second", lambda view: stepped_to(choices, view.second, partial(_has_gpu, scenario), steps))


def _others(scenario: Scenario) -> list[str]:
    """Other platforms; the present one too if its GPU was edited."""
    present = scenario.platform_name
    edited = any(path.startswith("platform.node.gpu.") for path in scenario.overrides)
    return [name for name in scenario.known_platforms if edited or name != present]


def _has_gpu(scenario: Scenario, name: str) -> bool:
    try:
        platform, _ = load_platform(name, scenario.search_folders)
    except WhatifError:
        return False
    return platform.node.gpu is not None


def _in_words(found: Roofline, name: str) -> str:
    """Whose roofs the dashed ones are; the machine alone while it is being asked, or where it has no answer."""
    second = found.second
    if second is None or second.roofs is None:
        return name
    same = replace(second.roofs, name=found.gpu.name) == found.gpu
    return f"{second.platform} has the same roofs" if same else f"╍╍○ {second.roofs.name} of {second.platform}"


def roofline_of(state: ExplorerState, second: SecondGpu | None) -> tuple[Roofline, str]:
    """Roofline of a state, and the reason for missing kernels; empty with kernels."""
    program, at = state.session.program, state.session.at
    gpu = gpu_roofs(program, at)
    if not gpu.peaks:
        return Roofline(gpu), NO_GPU
    try:
        found = roofline_at(program, at, second)
    except WhatifError as problem:
        return Roofline(gpu, (), second), f"No kernel can be drawn: {reason_of(problem)}"
    return found, "" if found.kernels else NO_KERNELS


def rows(found: Roofline, *, with_roofs: bool) -> TableRows:
    """Kernels in numbers, also on the second GPU, with the roofs below if requested."""
    second = found.second
    titles = dict(_TITLES)
    if second is None or second.roofs is None:
        titles = {key: title for key, title in titles.items() if not key.startswith("there")}
    else:
        titles["there_time"] = f"on {second.platform}"
    others = {kernel.name: kernel for kernel in second.kernels} if second is not None else {}
    lines = [_kernel(index, kernel, others.get(kernel.name)) for index, kernel in enumerate(found.kernels)]
    if second is not None and second.reason:
        reason = Cell(brief(second.reason.splitlines()[0]), WORDS)
        lines.append({"name": Cell(f"on {second.platform}"), "limit": reason})
    if with_roofs:
        lines += _roofs(found.gpu, found)
        lines += _roofs(second.roofs, found, f" on {second.platform}") if second is not None and second.roofs else []
    cells = tuple(tuple(line.get(key, Cell("")) for key in titles) for line in lines)
    return TableRows(tuple(titles.values()), cells, frozenset(at for at, key in enumerate(titles) if key in _TEXTS))


def _kernel(index: int, kernel: KernelPoint, other: KernelPoint | None) -> dict[str, Cell]:
    """Cells of a kernel, with its time on the second GPU."""
    line = {
        "sign": Cell(letter(index), limit_style(kernel)),
        "name": Cell(kernel.name, "text"),
        "limit": Cell(LIMITS[kernel.limit], limit_style(kernel)),
        "time": Cell(duration(kernel.time)),
        "share": Cell(percent(kernel.share)),
        "rate": Cell(_rate(kernel.achieved_rate)),
        "part": Cell(percent(of_roof(kernel))),
        "own": Cell(_rate(kernel.attainable_rate), "faint"),
        "intensity": Cell(_intensity(kernel.intensity)),
    }
    if other is not None:
        line["there_time"] = Cell(duration(other.time))
        line["there_ratio"] = speedup(other.time, kernel.time)
        line["there_limit"] = Cell(LIMITS[other.limit], limit_style(other))
        line["there_rate"] = Cell(_rate(other.achieved_rate))
    return line


def _roofs(gpu: Roofs, found: Roofline, where: str = "") -> list[dict[str, Cell]]:
    """The roofs of a GPU: bandwidths and peak rates, with the least intensity that reaches each peak."""
    lines = [
        {"name": Cell(LIMITS[name] + where), "rate": Cell(format_quantity(bandwidth, BYTE_PER_SECOND))}
        for name, bandwidth in found.memories(gpu).items()
    ]
    for name in found.operations():
        peak = gpu.peaks[name]
        ridge = Cell(f"from {_intensity(peak / gpu.dram_bandwidth)}")
        lines.append({"name": Cell(f"{OPERATIONS[name]} peak{where}"), "rate": Cell(_rate(peak)), "intensity": ridge})
    return lines


def _rate(rate: float) -> str:
    return format_quantity(rate, FLOP_PER_SECOND)


def _intensity(intensity: float) -> str:
    return "no bytes" if math.isinf(intensity) else format_quantity(intensity, FLOP_PER_BYTE)
