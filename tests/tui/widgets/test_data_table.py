"""Tables show whole columns next to those that name a row, and their frames say where there are more."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical

from tests.page_harness import few_machines, on_page
from whatif.tui.commands.explorer_commands import Show
from whatif.tui.pages.decide import DecidePage
from whatif.tui.pages.messages import MessagesPage
from whatif.tui.themes import series_variables
from whatif.tui.widgets.data_table import Cell, TableRows, TableView

TABLE = Show("picture", "table")


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    few_machines(monkeypatch)


def test_a_decision_keeps_the_names_of_its_rows_next_to_whole_columns():
    async def check(page):
        assert "platform" in page.line("merit")
        assert "m asks the next question · ← → other columns" in page.text
        await page.press(*["right"] * 9)
        titles = page.line("platform")
        assert "infeasible" in titles
        assert "merit" not in titles
        assert "bridges" in page.line("the ranks need more nodes")
        await page.change(Show("picture", "plot"))
        assert "other columns" not in page.text

    on_page(DecidePage, check, size=(66, 20), changes=(Show("decide.decision", "machines"), TABLE))


def test_the_curves_of_messages_are_whole_columns_next_to_the_sizes():
    async def check(page):
        assert "time over message size · ← → other columns" in page.text
        assert "max-rate k=6" in page.line("message size  ")
        await page.press("right")
        titles = page.line("message size  ")
        assert "max-rate k=6" in titles
        assert "K-model k=3.5" not in titles

    on_page(MessagesPage, check, size=(80, 16), changes=(TABLE,))


class Framed(App[None]):
    """A table with long names in a frame."""

    CSS = ".panel { border: round white; }"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return series_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel"):
            yield TableView()

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())


def test_a_long_name_leaves_room_for_one_column():
    async def check():
        app = Framed()
        async with app.run_test(size=(30, 8)) as pilot:
            row = tuple(map(Cell, ("platform.node.gpu.dram_bandwidth", "12345", "67890")))
            app.query_one(TableView).show(TableRows(("name", "left", "right"), (row,)))
            await pilot.pause()
            assert "platform.node.gpu.dr…  12345" in app.text
            await pilot.press("right")
            assert "platform.node.gpu.dr…  67890" in app.text

    asyncio.run(check())
