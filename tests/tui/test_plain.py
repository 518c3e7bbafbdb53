"""The explorer in plain text, and a table in the place of every picture."""

from __future__ import annotations

import re

import pytest

from tests.driver import drive
from whatif.tui.config import Config
from whatif.tui.page_registry import PAGES

DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
WORDS_ALONE = {"files", "variants", "study", "memory"}
"""Pages without a picture, and one whose bar has all its numbers below it."""


@pytest.mark.parametrize("config", [None, Config(plain=True)], ids=["environment", "file"])
def test_pages_open_with_tables_and_nothing_is_drawn(monkeypatch, config):
    if config is None:
        monkeypatch.setenv("WHATIF_PLAIN", "1")
    found = {}

    async def check(driver):
        assert driver.app.state.view.picture == "table"
        for page in "1234567":
            await driver.press(page)
            await driver.calm()
            found[page] = driver.screen_text()

    drive(check, config=config)
    assert {page for page, text in found.items() if DRAWN.search(text)} == set()
    assert len(set(found.values())) == 7
    assert "gpu_count" in found["1"]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in WORDS_ALONE], ids=lambda page: page.name)
def test_every_page_with_a_picture_has_a_table(page):
    kind = page.load()
    tabular = {key.name for key in kind.KEYS} | {getattr(binding, "id", "") for binding in kind.BINDINGS}
    assert any("table" in (name or "") for name in tabular), sorted(tabular)
