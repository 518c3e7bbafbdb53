"""The fit page: measured times of messages, the parameters fitted to them, and the way into the platform."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.api.editing import own_folder
from whatif.core.scenario import Scenario
from whatif.errors import UsageError, WhatifError
from whatif.paths import is_file
from whatif.schema.shipped import require_name
from whatif.studies.message_study import DISTANCE_LABELS
from whatif.table import Column, Table
from whatif.tui.commands.explorer_commands import Adopt, EditAll
from whatif.tui.dialogs.windows import path_to_write
from whatif.tui.files.file_paths import paths_of
from whatif.tui.jobs.fit_job import (
    DistanceFit,
    Protocol,
    fit_of_view,
    limits_of,
    moved_limits,
    write_fit,
)
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.worker import run_once
from whatif.tui.labels import percent, warning_lines, with_error
from whatif.tui.page_views import FitView
from whatif.tui.pages.measurement_page import MeasurementPage
from whatif.tui.pages.page import PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import Cell, ColumnsView, TableRows, TableView
from whatif.tui.widgets.fit_plot import FitPlot
from whatif.units import BYTE, ONE, SECOND, format_quantity
from whatif.vocabulary import MODEL_LABELS

_MODEL: Final = re.compile(r"network\.\w+\.(?P<model>\w+)\.")
"""Beginning of a warning about one model only."""
_WARNINGS: Final = 3
"""Number of warnings shown; those of the files come first."""


class FitPage(MeasurementPage[FitView, DistanceFit]):
    """Measured points with the fitted curve, its residuals and parameters; protocol limits move by `,` and `.`."""

    NAME: ClassVar[str] = "fit"
    COMPUTE = fit_of_view
    MEASUREMENTS = "Measurements"
    COLUMNS = "message_size=size [B],time=time [us]"
    CHOICE = "limits"
    PANEL = "#fitted"
    WORDS = "#fit-words"
    NOTHING = (
        "No measurements yet. n reads files or folders of the OSU and Intel MPI Benchmarks, Netgauge, SimGrid and "
        "others; so does `whatif open SCENARIO --measured FILE`."
    )
    REMEDY = "n reads other measurements, N names the columns of CSV files."
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 26, "-flat": 14}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("open", "n", "open", "measurements", "Read measurements: files or folders of OSU, IMB, Netgauge .."),
        extra_key("columns", "N", "columns", "columns", "Name the columns of CSV files"),
        PageKey("model", "y", "model", "model", "Fit the next model that the measurements allow"),
        extra_key("distance", "d", "turn('distance')", "distance", "Show the next measured distance"),
        extra_key("buffers", "m", "buffers", "buffers", "Show the next measured kind of buffers"),
        PageKey("limit", "x", "limit", "limit", "Select the other protocol limit"),
        PageKey("lower", "comma", "move(-1)", "lower", "Move the limit to the next smaller measured size"),
        PageKey("higher", "full_stop", "move(1)", "higher", "Move the limit to the next larger measured size"),
        PageKey("automatic", "r", "automatic", "find limits", "Find the protocol limits automatically"),
        PageKey("accept", "a", "accept", "accept", "Use the fitted values in this scenario"),
        PageKey("write", "A", "write", "platform", "Write a platform with the fitted values and use it"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table of the points"),
    )
    DEFAULT_CSS = """
    FitPage #fitted { height: 1fr; }
    FitPage #fit-parameters { height: auto; max-height: 50%; }
    FitPage #fit-words { height: auto; max-height: 5; padding: 0 1; }
    FitPage.-empty .panel { display: none; }
    FitPage.-empty #fit-words { max-height: 100%; }
    FitPage.-low #fit-words { max-height: 2; }
    FitPage.-low.-empty #fit-words { max-height: 100%; }
    FitPage.-flat #fit-parameters, FitPage.-flat #fit-words { display: none; }
    FitPage.-flat.-empty #fit-words { display: block; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._chosen = 1

    def compose(self) -> ComposeResult:
        """The picture or its table, the parameters, and in words how good the fit is."""
        with Vertical(id="fitted", classes="panel"):
            yield FitPlot()
            yield TableView(id="points")
        yield ColumnsView(id="fit-parameters", classes="panel")
        yield Static(id="fit-words", markup=False)

    def enter(self) -> None:
        """Focus the picture or the table; without a fit, nothing."""
        self.screen.set_focus(None)
        if isinstance(self._found, DistanceFit):
            self.focus_first((self.query_one(FitPlot), self.query_one("#points", TableView)))

    def job(self, state: ExplorerState) -> Job | None:
        """Read and fit, unless only something else has changed."""
        view = self.view_in(state.view)
        if not view.files or (view == self._inputs and self._found is not None):
            return None
        return Job(fit_of_view, (view,))

    def take(self, value: DistanceFit | JobRefusal) -> None:
        """Show a fit, or the reason why it failed."""
        self._found, self._inputs = value, self.view
        self._fill()

    def summary(self, found: DistanceFit) -> Content:
        """Error of the fit, the recommended model, and warnings."""
        good = f"{MODEL_LABELS[found.model]}: RMS error {percent(found.error)}"
        others = ", ".join(f"{MODEL_LABELS[name]} {percent(error)}" for name, error in found.held_out.items())
        held = f" · points left out: {others} · {MODEL_LABELS[found.recommended]} is recommended" if others else ""
        ours = [warning for warning in found.warnings if _is_of(warning, found.model)]
        return Content.assemble(f"{good}{held}", *warning_lines(ours, _WARNINGS))

    def draw(self, found: DistanceFit) -> None:
        """The picture or the points, and the parameters."""
        view, tabular = self.view, self.state.view.picture == "table"
        limits = limits_of(view, found)
        plot, table, panel = self.query_one(FitPlot), self.query_one("#points", TableView), self.query_one("#fitted")
        plot.display, table.display = not tabular, tabular
        plot.show_fit(found, limits, self._chosen)
        panel.border_title = Content(headed(found, view))
        panel.border_subtitle = Content(_limits_words(found, limits))
        table.show(points_table(found))
        parameters = self.query_one("#fit-parameters", ColumnsView)
        parameters.border_title = "parameters ± standard errors"
        parameters.show(parameter_rows(found), 1)

    def action_model(self) -> None:
        """Draw the next model."""
        if isinstance(self._found, DistanceFit):
            models, recommended = self._found.models, self._found.recommended
            self.choose("model", lambda view: stepped(models, view.model if view.model in models else recommended))

    def action_buffers(self) -> None:
        """Fit the measurements with the next kind of buffers."""
        if isinstance(self._found, DistanceFit):
            kinds = tuple(sorted(self._found.buffers))
            shown = self._found.buffers[0]
            self.choose(
                "buffers",
                lambda view: stepped(kinds, view.buffers if view.buffers in kinds else shown),
            )

    def action_limit(self) -> None:
        """Choose the other limit."""
        self._chosen = 1 - self._chosen
        self._fill()

    def action_move(self, steps: int) -> None:
        """Move the limit to another measured size; the other one is never passed."""
        found, chosen = self._found, self._chosen
        if isinstance(found, DistanceFit):
            self.choose("limits", lambda view: moved_limits(view, found, chosen, steps))

    def action_automatic(self) -> None:
        """Find the limits again."""
        if self.view.limits is not None:
            self.ask("limits", None)

    def action_accept(self) -> None:
        """Take the fitted values into the scenario, all at once."""
        found = self._ready()
        if found is not None:
            self.request(EditAll(found.texts))

    @work
    async def action_write(self) -> None:
        """Write a platform that extends the present one, and take it."""
        if self._ready() is None:
            return
        state, machine = self.state, self.state.platform_name
        if machine is None:
            self.report("the scenario describes its machine itself: there is no platform to extend")
            return
        start = str(own_folder(state.session.scenario) / f"{machine}_measured.toml")
        path = await path_to_write(self.app, f"Write {machine} with the fitted values to", start)
        if path is not None:
            await self._write(state, path, machine)

    async def _write(self, state: ExplorerState, path: Path, machine: str) -> None:
        """Write a platform in a worker process, and use it if it will be found."""
        folders = state.session.scenario.search_folders
        try:
            adoption = _adoption(state.session.scenario, path)
            await run_once(write_fit, self.view_in(state.view), path, machine, folders)
        except WhatifError as problem:
            self.report(str(problem))
        else:
            self.request(adoption)
            self.notify(f"written to {path}")

    def _ready(self) -> DistanceFit | None:
        """Requested fit; None, with a message, while it is computed and if it failed."""
        if not isinstance(self._found, DistanceFit):
            self.report("no fit to accept; n reads measurements")
            return None
        if self._inputs != self.view:
            self.report("the fit is not ready yet; try again")
            return None
        return self._found


def _adoption(scenario: Scenario, path: Path) -> Adopt:
    """Change that adopts a platform still to be written; raise `UsageError` if its name would find no, or another,
    file."""
    require_name(path)
    folder, folders = path.parent.resolve(), [place.resolve() for place in scenario.search_folders]
    earlier = next((place for place in folders if place != folder and is_file(place / path.name)), None)
    if earlier is not None and folder not in folders[: folders.index(earlier)]:
        raise UsageError(f"{path.stem}: {earlier / path.name} has this name and would be found first")
    return Adopt(path.stem, "" if folder in folders else str(folder))


def headed(found: DistanceFit, view: FitView) -> str:
    """Title of the picture: files, source, distance, buffers and model."""
    names = ", ".join(path.name for path in paths_of(view.files))
    parts = (names, found.source, DISTANCE_LABELS[found.distance], found.buffers[0], MODEL_LABELS[found.model])
    return " · ".join(part for part in parts if part)


def _limits_words(found: DistanceFit, limits: tuple[float, float]) -> str:
    if limits != found.limits:
        return "fitting …"
    words = "limits found" if limits == found.found_limits else "limits moved, r finds them again"
    return f"{words} · x other limit · , . move it"


def parameter_rows(found: DistanceFit) -> TableRows:
    """A row for each protocol: where it holds, its parameters with standard errors, the distance of its points."""
    names = list(dict.fromkeys(item.name for protocol in found.protocols for item in protocol.parameters))
    titles = ("protocol", "messages", *(name.replace("_", " ") for name in names), "points", "residual")
    rows = tuple(
        (
            Cell(item.name, "text"),
            Cell(words, "text"),
            *_values(item, names),
            Cell(str(item.point_count)),
            Cell(percent(item.error)),
        )
        for item, words in zip(found.protocols, _ranges(found.limits), strict=True)
    )
    return TableRows(titles, rows, frozenset((0, 1)))


def _values(protocol: Protocol, names: list[str]) -> list[Cell]:
    known = {item.name: item for item in protocol.parameters}
    items = (known.get(name) for name in names)
    return [Cell("–", "faint") if it is None else Cell(with_error(it.value, it.error, it.dimension)) for it in items]


def _ranges(limits: tuple[float, float]) -> tuple[str, str, str]:
    short, eager = (format_quantity(limit, BYTE) for limit in limits)
    return f"to {short}", f"to {eager}", f"beyond {eager}"


def points_table(found: DistanceFit) -> Table:
    """The points in numbers."""
    points = found.points
    residual = np.array([percent(value) for value in found.fitted / points.time - 1], dtype=object)
    return Table(
        {
            "message size": Column(points.size, BYTE),
            "pairs": Column(points.count, ONE),
            "measured": Column(points.time, SECOND),
            "fitted": Column(found.fitted, SECOND),
            "residual": Column(residual),
        }
    )


def _is_of(warning: str, model: str) -> bool:
    """Whether a warning is of a model, or of all of them."""
    place = _MODEL.match(warning)
    return place is None or place["model"] == model or place["model"] not in MODEL_LABELS
