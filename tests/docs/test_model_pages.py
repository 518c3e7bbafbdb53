"""Pages of the models: every symbol of their equations is defined, and every equation is on a page."""

from __future__ import annotations

import re

import pytest

from docs.site.equations import MARK, functions, symbols
from tests.paths import ROOT

PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
MODEL_PAGES = {name: page for name, page in PAGES.items() if MARK.search(page)}


def modules(page):
    return [name for mark in MARK.finditer(page) for name in mark[1].split(", ")]


@pytest.mark.parametrize("name", MODEL_PAGES)
def test_every_symbol_of_a_page_is_defined_on_it(name):
    page = MODEL_PAGES[name]
    rows = re.findall(r"^\| (\$.*?) \|", page, re.MULTILINE)
    defined = {symbol for row in rows for symbol in re.findall(r"\$(.*?)\$", row)}
    used = {s: f.__name__ for module in modules(page) for f in functions(module) for s in symbols(f.citation.equation)}
    assert {symbol: function for symbol, function in used.items() if symbol not in defined} == {}
    assert defined - set(used) == set(), "defined, but in no equation of this page"
