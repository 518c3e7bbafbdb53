"""The runs page: a regression of measured runs, how good it is, terms in and out by key, the way into a scenario."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.api.editing import own_folder
from whatif.api.formulas import with_other_link, with_term, without_term
from whatif.errors import WhatifError
from whatif.tui.commands.explorer_commands import EditAll
from whatif.tui.dialogs.windows import TextPrompt, path_to_write
from whatif.tui.files.file_paths import paths_of
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.regression_job import RunsRegression, SavedModel, regression_of_view, write_model
from whatif.tui.jobs.worker import run_once
from whatif.tui.labels import warning_lines
from whatif.tui.page_views import RunsView
from whatif.tui.pages.measurement_page import MeasurementPage
from whatif.tui.pages.page import PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import WORDS, Cell, ColumnsView, TableRows, TableView
from whatif.tui.widgets.runs_plot import RunsPlot

if TYPE_CHECKING:
    from whatif.api.regressions import Coefficient

_NARROW: Final = 100
"""Width below which there is one column."""
_WARNINGS: Final = 4
_STARS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
"""Marks of significance, as in R."""


class RunsPage(MeasurementPage[RunsView, RunsRegression]):
    """Measured runs over those that a formula gives, with residuals and coefficients; enter removes or adds a term."""

    NAME: ClassVar[str] = "runs"
    COMPUTE = regression_of_view
    MEASUREMENTS = "Runs"
    COLUMNS = "time=Wall time [ms],nodes=nodes"
    CHOICE = "formula"
    PANEL = "#runs-fit"
    WORDS = "#runs-words"
    NOTHING = (
        "No runs yet. n reads CSV files with a run in each row and units in the headings, `time [ms]`; "
        "so does `whatif open SCENARIO --runs FILE`."
    )
    REMEDY = "n reads other runs, N names the columns of CSV files, f changes the formula."
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 26, "-flat": 12}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("open", "n", "open", "runs", "Read runs: files or folders with one run per row"),
        extra_key("columns", "N", "columns", "columns", "Name the columns of CSV files"),
        PageKey("formula", "f", "formula", "formula", "Type another formula"),
        PageKey("term", "d", "term", "add/remove", "Remove the term under the cursor from the model, or add it"),
        PageKey("others", "plus", "others", "terms", "List the terms that could be added, the best first"),
        PageKey("link", "o", "link", "log", "Fit the logarithm of the response, or the response itself"),
        PageKey("against", "x", "against", "residuals", "Plot the residuals over the next column"),
        PageKey("accept", "a", "accept", "accept", "Write the model to a file and use it in the scenario"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table of the runs"),
        PageKey("pin", "b", "pin", "baseline", "Set the present model as the baseline"),
    )
    DEFAULT_CSS = """
    RunsPage #runs-body { height: 1fr; }
    RunsPage #runs-fit { width: 1fr; height: 1fr; }
    RunsPage #runs-model { width: 70; height: 1fr; }
    RunsPage #terms { height: auto; max-height: 60%; }
    RunsPage #models { height: auto; max-height: 6; }
    RunsPage #runs-words { height: auto; max-height: 14; padding: 0 1; }
    RunsPage.-roomy #runs-model { width: 84; }
    RunsPage.-narrow #runs-body { layout: vertical; }
    RunsPage.-narrow #runs-model { width: 1fr; height: auto; max-height: 60%; }
    RunsPage.-narrow #terms { height: auto; max-height: 9; }
    RunsPage.-narrow #runs-words { max-height: 3; }
    RunsPage.-low #terms { max-height: 7; }
    RunsPage.-low #models { display: none; }
    RunsPage.-low #runs-words { max-height: 3; }
    RunsPage.-flat #runs-model { display: none; }
    RunsPage.-empty .panel { display: none; }
    RunsPage.-empty #runs-model { display: block; width: 1fr; height: 1fr; max-height: 100%; }
    RunsPage.-empty #runs-words { max-height: 100%; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._refused = ""
        self._last = ""
        self._seen: dict[str, None] = {}
        self._adding = False

    def compose(self) -> ComposeResult:
        """The picture or its table; the terms, the models that are compared, and in words how good the fit is."""
        with Horizontal(id="runs-body"):
            with Vertical(id="runs-fit", classes="panel"):
                yield RunsPlot()
                yield TableView(id="runs-table")
            with Vertical(id="runs-model"):
                yield ColumnsView(id="terms", classes="panel")
                yield ColumnsView(id="models", classes="panel")
                yield Static(id="runs-words", markup=False)

    def enter(self) -> None:
        """Focus the terms; without terms, the hidden parameters must lose the focus."""
        self.screen.set_focus(None)
        self.focus_first((self.query_one("#terms"), self.query_one(RunsPlot), self.query_one("#runs-table")))

    def on_resize(self) -> None:
        """Adapt to the width: lay the parts in one column, or give the terms more room."""
        width = self.size.width
        self.update_classes({"-narrow": width < _NARROW, "-roomy": width >= 2 * _NARROW - 40})

    @property
    def command(self) -> str:
        """The command line that fits the same."""
        if not isinstance(self._found, RunsRegression):
            return ""
        view = self.view
        words = ["whatif", "fit", "regression", *map(str, paths_of(view.files)), "--formula", self._found.formula]
        words += ["--columns", view.columns] if view.columns else []
        words += ["--where", view.rows] if view.rows else []
        return shlex.join(words)

    def show(self, state: ExplorerState) -> None:
        """Show the known regression of the runs of a state."""
        if self._inputs is None or self._inputs.files != self.view_in(state.view).files:
            self._seen, self._last, self._refused = {}, "", ""
        super().show(state)

    def job(self, state: ExplorerState) -> Job | None:
        """Read and fit, unless only something else has changed."""
        view = self.view_in(state.view)
        if not view.files or (self._found is not None and self._is_current(state)):
            return None
        return Job(regression_of_view, (view, self._before(view), tuple(self._seen)))

    def _before(self, view: RunsView) -> str:
        """The formula that the one of a view follows, of the same runs."""
        found = self._found
        if not isinstance(found, RunsRegression) or self._inputs is None or self._inputs.source != view.source:
            return ""
        return found.formula if found.formula != (view.formula or found.first) else self._last

    def take(self, value: RunsRegression | JobRefusal) -> None:
        """Show a fit; if it fails, show the reason and keep the last one of the same runs."""
        view = self.view
        same = self._inputs is not None and self._inputs.files == view.files
        before, self._inputs = self._before(view), view
        self._refused = view.formula if isinstance(value, JobRefusal) else ""
        if isinstance(value, JobRefusal) and same and isinstance(self._found, RunsRegression):
            self.report(value.reason)
        else:
            self._found = value
        if isinstance(value, RunsRegression):
            self._last = before
            self._seen |= dict.fromkeys(item.name for item in value.terms)
        self._fill()

    def summary(self, found: RunsRegression) -> Content:
        """Quality of the fit, its comparison with the others, and warnings."""
        compared = [f"{item.name}: {item.verdict}" for item in found.models if item.verdict]
        lines = "\n".join((" · ".join(found.left_out), *compared, " · ".join(found.quality)))
        return Content.assemble(lines, *warning_lines(found.warnings, _WARNINGS))

    def draw(self, found: RunsRegression) -> None:
        """The picture or the runs, the terms and the models."""
        tabular = self.state.view.picture == "table"
        plot, table, panel = (
            self.query_one(RunsPlot),
            self.query_one("#runs-table", TableView),
            self.query_one("#runs-fit"),
        )
        plot.display, table.display = not tabular, tabular
        plot.show_runs(found, self.view.against)
        panel.border_title = Content(found.formula)
        refused = f"refused: {self._refused} · " if self._refused else ""
        panel.border_subtitle = Content(f"{refused}{found.files} · {len(found.measured)} runs")
        table.show(found.table)
        terms, models = self.query_one("#terms", ColumnsView), self.query_one("#models", ColumnsView)
        terms.border_title = f"terms of {'log ' * found.logarithmic}{found.response}"
        hint = "enter: remove or add" if self._adding else "enter: remove or add · + others"
        terms.show(term_rows(found, list(self._seen), adding=self._adding), 1, hint)
        models.border_title = "models"
        models.show(model_rows(found), 1)

    @work
    async def action_formula(self) -> None:
        """Prompt for a formula; a refused one can be corrected."""
        found = self._found
        if found is None:
            return
        title = "Formula, as `time ~ x1 * x2 + I(x1**2) - x1:x2 + log(x3)`"
        text = await self.app.push_screen_wait(TextPrompt(title, self._refused or getattr(found, "formula", "")))
        if text:
            self._seen = {}
            self.ask("formula", text)

    def _change(self, change: Callable[[str], str]) -> None:
        """Request a change of the last requested formula; a refused one is ignored."""
        found, refused = self._found, self._refused
        if isinstance(found, RunsRegression):
            good = found.formula if refused else ""
            self.choose("formula", lambda view: change(good or view.formula or found.first))
        else:
            self.report("no fit to change; n reads runs")

    @on(TableView.Chosen, "#terms")
    def action_term(self) -> None:
        """Take the term under the cursor out of the model, or into it."""
        found = self._found
        if isinstance(found, RunsRegression):
            rows, at = _listed(found, list(self._seen), adding=self._adding), self.query_one("#terms", TableView).cursor
            name = rows[at].name
            within = any(item.name == name for item in found.terms)
            self._change(lambda text: (without_term if within else with_term)(text, name))

    def action_others(self) -> None:
        """List the terms that could be added, the most telling first, or no longer."""
        found = self._found
        if not isinstance(found, RunsRegression):
            self.report("no fit to change; n reads runs")
            return
        self._adding = not self._adding
        self._fill()
        if self._adding:
            table = self.query_one("#terms", ColumnsView)
            table.action_move(len(_listed(found, list(self._seen), adding=False)) - table.cursor)
            table.focus()

    def action_link(self) -> None:
        """Fit the logarithm of the response, or the response itself."""
        self._change(with_other_link)

    def action_pin(self) -> None:
        """Set the present model as the baseline."""
        if isinstance(self._found, RunsRegression):
            self.ask("pinned", self._found.formula)

    def action_against(self) -> None:
        """Draw the residuals over the next column."""
        if isinstance(self._found, RunsRegression):
            names = ("", *(name for name, _, _ in self._found.variables))
            self.choose("against", lambda view: stepped(names, view.against))

    @work
    async def action_accept(self) -> None:
        """Write the model to a file, and take it into the scenario."""
        state, found = self.state, self._found
        if not isinstance(found, RunsRegression) or not self._is_current(state):
            self.report("no fit to accept yet; n reads runs")
            return
        start = str(own_folder(state.session.scenario) / f"{found.response}_model.toml")
        path = await path_to_write(self.app, "Write the model to", start)
        if path is not None:
            await self._write(state, replace(self.view_in(state.view), formula=found.formula), path)

    def _is_current(self, state: ExplorerState) -> bool:
        """Whether the visible fit is the one of the view."""
        return self._inputs is not None and self._inputs.fit == self.view_in(state.view).fit

    async def _write(self, state: ExplorerState, view: RunsView, path: Path) -> None:
        """Write a model; where the scenario finds it, take it in, else write a scenario that asks it."""
        folders = [folder.resolve() for folder in state.session.scenario.search_folders]
        within = path.parent.resolve() in folders
        try:
            taken: SavedModel = await run_once(write_model, view, path, state.platform_name, not within)
        except WhatifError as problem:
            self.report(str(problem))
            return
        if taken.edits:
            self.request(EditAll(taken.edits))
        asks = (
            ""
            if taken.scenario is None
            else f"; {taken.scenario} uses it: open it on page files, or with `whatif open`"
        )
        self.notify(f"written to {path}{asks}")


def _listed(found: RunsRegression, seen: list[str], *, adding: bool) -> list[Coefficient]:
    """Terms in the order they came into the model, those that were taken out in their place; then others."""
    known = {item.name: item for item in (*found.terms, *found.others)}
    order = dict.fromkeys((*(name for name in seen if name in known), *(item.name for item in found.terms)))
    return [*(known[name] for name in order), *(item for item in found.others if adding and item.name not in order)]


def term_rows(found: RunsRegression, seen: list[str], *, adding: bool) -> TableRows:
    """A row a term with its estimate and test; of those that are not in the model, what they would be."""
    within = {item.name for item in found.terms}
    rows = tuple(_row(item, within=item.name in within) for item in _listed(found, seen, adding=adding))
    return TableRows(("term", "estimate", "± error", "t", "p", ""), rows, frozenset((0, 5)))


def _row(item: Coefficient, *, within: bool) -> tuple[Cell, ...]:
    stars = next((stars for limit, stars in _STARS if item.p < limit), "")
    numbers = _short(item.estimate, 4), _short(item.standard_error, 2), _short(item.t, 3), f"{item.p:.1g}"
    part = "cell" if within else "faint"
    name = Cell(item.name if within else f"+ {item.name}", "text" if within else "faint")
    return name, *(Cell(text, part) for text in numbers), Cell(stars, "better" if within else "faint")


def _short(value: float, digits: int) -> str:
    """A number with a few digits, in full up to a million."""
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e6 else f"{value:.{digits}g}"


def model_rows(found: RunsRegression) -> TableRows:
    """A row a model: the present one, the pinned one, the one before."""
    rows = tuple(
        (Cell(item.name, "text"), Cell(str(item.term_count)), Cell(item.residual), Cell(item.left_out),
         Cell(item.formula, WORDS))
        for item in found.models
    )  # fmt: skip
    return TableRows(("model", "terms", "residual", "left out", "formula"), rows, frozenset((0, 4)))
