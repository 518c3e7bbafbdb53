"""The variants page: results and differing values side by side, and why one variant differs from another."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.core.sweep_figure import Y_COLUMN
from whatif.errors import WhatifError
from whatif.plotting.bars import BarChart
from whatif.plotting.description import shorten
from whatif.studies.side_by_side import SideBySide, side_by_side
from whatif.tui.decisions.answers import DecisionRequest
from whatif.tui.decisions.decision_job import decide
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.events import VariantFilesRequested
from whatif.tui.jobs.job import Job
from whatif.tui.labels import change_text
from whatif.tui.page_views import VariantsView
from whatif.tui.pages.decision_page import START_KEY, WAITING, DecisionPage
from whatif.tui.pages.page import PageKey, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.variants.variant_commands import Delete, Rename
from whatif.tui.variants.variant_set import Variant, checked_name, scenario_key
from whatif.tui.widgets.chart_bars import ChartBars
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.text_columns import tail

_ALONE: Final = "There is one variant only. Change a value, or press f to fork the present values into a new variant."
_WIDE_PATH, _NARROW_PATH, _TEXT = 34, 22, 20
"""Most cells of a path on wide and on narrow screens, and of a text."""


class VariantsPage(DecisionPage[VariantsView]):
    """Variants side by side: results, platform and values that differ, and what the difference comes from."""

    NAME: ClassVar[str] = "variants"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 18, "-flat": 12}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("against", "x", "against", "reference", "Explain the difference from the next variant"),
        PageKey("rename", "r", "rename", "rename", "Rename the present variant"),
        PageKey("delete", "d", "delete", "delete", "Delete the present variant"),
        PageKey("write", "n", "write", "files", "Write each variant to a scenario file of its own"),
        PageKey("result", "y", "result(1)", "result", "Explain the next result"),
        PageKey("last_result", "Y", "result(-1)", "", "Explain the previous result"),
        START_KEY,
        PageKey("table", "v", "table", "table", "Switch between bars and a table"),
    )
    DEFAULT_CSS = """
    VariantsPage .panel { padding: 0 1; height: 1fr; }
    VariantsPage #words { height: auto; max-height: 4; width: 1fr; color: $text-muted; }
    VariantsPage.-low #words { max-height: 1; }
    VariantsPage.-alike #why, VariantsPage.-flat #why { display: none; }
    VariantsPage #alone { display: none; color: $text-muted; }
    VariantsPage.-alone #alone { display: block; }
    VariantsPage.-alone #values { display: none; }
    """

    def compose(self) -> ComposeResult:
        """The table of the variants, and what one difference comes from."""
        with Vertical(id="side", classes="panel"):
            yield Static(_ALONE, id="alone", markup=False)
            yield TableView(id="values")
        with Vertical(id="why", classes="panel"):
            yield ChartBars()
            yield TableView(id="contributions")
            yield Static(id="words", markup=False)

    def enter(self) -> None:
        """Focus the table."""
        self.focus_first(self.query(TableView))

    def show(self, state: ExplorerState) -> None:
        """Show a state; while a difference is explained anew, the last explanation stays."""
        self.state = state
        variants, pair = state.listed(), self._pair(state)
        self._inputs = () if pair is None else (_key_of(pair[0]), _key_of(pair[1]), state.explained)
        self.update_classes({"-alone": len(variants) < 2, "-alike": pair is None})
        self.query_one("#side").border_title = Content("variants")
        self.query_one("#side").border_subtitle = Content("f forks · F goes to the next one")
        if len(variants) > 1:
            self.query_one("#values", TableView).show(_rows(state, variants, self.size.width))
        self._fill()

    def _pair(self, state: ExplorerState) -> tuple[Variant, Variant] | None:
        """The variants that are explained: the one asked for, or the first other one, and the present one."""
        items = {item.letter: item for item in state.listed()}
        present, wanted = items.pop(state.variants.current, None), self.view_in(state.view).against
        if present is None or not items:
            return None
        return items.get(wanted) or next(iter(items.values())), present

    def job(self, state: ExplorerState) -> Job | None:
        """Explain the difference, unless that is done."""
        pair = self._pair(state)
        if pair is None or self._fresh:
            return None
        one, other = pair
        seconds = sum(state.session.at.seconds.values())
        inputs = other.session.inputs, one.session.inputs, True
        names = one.label, other.label
        self._request = DecisionRequest(*inputs, "why", "", state.view, state.explained, seconds, names)
        return Job(decide, (self._request,))

    def _fill(self) -> None:
        found = self._decision if self._inputs else None
        chart = found.picture if found is not None and isinstance(found.picture, BarChart) else None
        tabular = self.state.view.picture == "table" and found is not None and found.table is not None
        bars, table = self.query_one(ChartBars), self.query_one("#contributions", TableView)
        bars.display, table.display = chart is not None and not tabular, tabular
        self.query_one("#why").border_title = Content(self._title())
        if chart is not None:
            bars.show(chart)
        if tabular and found is not None and found.table is not None:
            table.show(found.table)
        words = (WAITING,) if found is None else found.sentences
        self.query_one("#words", Static).update(Content("\n".join(words)))
        self.screen.refresh_bindings()

    def _title(self) -> str:
        pair = self._pair(self.state)
        if pair is None:
            return ""
        return f"why {self.state.explained} of {pair[1].label} differs from {pair[0].label}"

    def offers(self, action: str) -> bool:
        """Only a name for one variant; the comparison with the next one for three."""
        if action == "start":
            return self.startable
        return len(self.state.listed()) > (2 if action == "against" else 0 if action == "rename" else 1)

    def action_against(self) -> None:
        """Explain the difference from the next variant."""
        present = self.state.variants.current
        letters = [item.letter for item in self.state.listed() if item.letter != present]
        if letters:
            self.choose("against", lambda view: stepped(letters, view.against))

    def action_delete(self) -> None:
        """Delete the present variant."""
        self.request(Delete(self.state.variants.current))

    @work
    async def action_rename(self) -> None:
        """Rename the present variant."""
        variants = self.state.variants
        letter, present = variants.current, variants.at(variants.current)
        before = "" if present is None else present.name
        name = await self.app.push_screen_wait(TextPrompt(f"Name of variant {letter}", before, check=_wrong_name))
        if name:
            self.request(Rename(letter, name))

    def action_write(self) -> None:
        """Write each variant to a scenario file of its own."""
        if self.offers("write"):
            self.post_message(VariantFilesRequested())
        else:
            self.report(_ALONE)


def _wrong_name(text: str) -> str:
    try:
        checked_name(text)
    except WhatifError as problem:
        return str(problem)
    return ""


def _key_of(item: Variant) -> tuple[object, ...]:
    return item.label, *scenario_key(item.scenario)


def _rows(state: ExplorerState, variants: tuple[Variant, ...], width: int) -> TableRows:
    """Results and differing values as texts; what equals the baseline is faint."""
    programs = {item.label: item.session.program for item in variants}
    found = side_by_side(programs, {item.label: item.session.point for item in variants})
    present = state.variants.current
    titles = ("", *(f"{item.label}{' (now)' * (item.letter == present)}" for item in variants))
    most = _WIDE_PATH if width >= 100 else _NARROW_PATH
    edited = {"platform.name", *(path for item in variants for path in item.scenario.overrides)}
    rows = sorted(found.rows(), key=lambda row: _place(row[0], found, edited))
    cells = [(Cell(tail(name, most), "text"), *_cells(found, name, texts)) for name, texts in rows]
    reasons = [(Cell("infeasible", "text"), *(Cell(text, "faint") for text in found.reasons))]
    return TableRows(titles, (*cells, *(reasons if any(found.reasons) else [])), frozenset({0}))


def _place(name: str, found: SideBySide, edited: Collection[str]) -> int:
    """Order of the rows: the main results, what was edited, the other results, all else that differs."""
    if name in found.results:
        return 0 if name in (Y_COLUMN, "total_time") else 2
    return 1 if name in edited else 3


def _cells(found: SideBySide, name: str, texts: tuple[str, ...]) -> list[Cell]:
    first = texts[0]
    changes = [_change(found.results.get(name, ()), at) for at in range(len(texts))]
    return [
        Cell(f"{shorten(text, _TEXT)}{change}", "faint" if at and text == first else "cell")
        for at, (text, change) in enumerate(zip(texts, changes, strict=True))
    ]


def _change(numbers: tuple[float, ...], at: int) -> str:
    """Relative difference of a result from the baseline; empty for values and equal results."""
    text = change_text(numbers[at], numbers[0]) if at and numbers and numbers[at] != numbers[0] else ""
    return f" {text}" if text else ""
