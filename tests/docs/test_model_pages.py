"""Pages of the models: every equation is on one page, every symbol is defined, every accuracy stands in its source."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter

import pytest

import whatif
from docs.site.equations import MARK, functions, symbols
from tests.paths import ROOT
from whatif.core.accuracy_cards import model_cards

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
MODEL_PAGES = {name: page for name, page in PAGES.items() if MARK.search(page)}
SECTIONS = ["Symbols", "Equations", "Assumptions", "Where it fails", "Accuracy", "References"]


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


@pytest.mark.parametrize("name", MODEL_PAGES)
def test_no_symbol_has_two_rows(name):
    rows = re.findall(r"^\| (\$.*?) \|", MODEL_PAGES[name], re.MULTILINE)
    found = Counter(symbol for row in rows for symbol in re.findall(r"\$(.*?)\$", row))
    assert [symbol for symbol, count in found.items() if count > 1] == []


@pytest.mark.parametrize("name", MODEL_PAGES)
def test_a_page_has_all_sections(name):
    found = re.findall(r"^## (.*)", MODEL_PAGES[name], re.MULTILINE)
    assert [section for section in found if section in SECTIONS] == SECTIONS


def test_every_equation_is_on_exactly_one_page():
    found = (module.name for module in pkgutil.walk_packages(whatif.__path__, "whatif."))
    with_equations = {name: 1 for name in found if not name.endswith("__main__") and next(functions(name), None)}
    assert Counter(name for page in MODEL_PAGES.values() for name in modules(page)) == with_equations


def test_every_family_is_in_the_index():
    linked = set(re.findall(r"\]\((\w+\.md)\)", PAGES["models/index.md"]))
    assert linked == {name.removeprefix("models/") for name in MODEL_PAGES}


def test_every_accuracy_of_the_index_stands_in_the_table_that_it_links_to():
    links = re.findall(r"\[([^\]]*\d[^\]]*)\]\(\.\./([\w.]+)#([\w-]+)\)", PAGES["models/index.md"])
    assert len(links) > 20
    assert [link for link in links if not stands_in(link[0], section(PAGES[link[1]], link[2]))] == []


def stands_in(number, text):
    alone = re.escape(number.replace(" ", ""))
    if "." in number:
        alone = alone.removesuffix("%")  # Tables may have it in their heading.
    return re.search(rf"(?<![\d.]){alone}(?![\d]|\.\d)", text.replace(" ", "")) is not None


def section(page, anchor):
    """Text below the heading with an anchor, up to the next heading of its level."""
    parts = re.split(r"^(#+ .*)$", page, flags=re.MULTILINE)
    start = next(at for at, part in enumerate(parts) if part.startswith("#") and anchor_of(part) == anchor)
    level = parts[start].split(" ")[0]
    end = next((at for at in range(start + 2, len(parts), 2) if len(parts[at].split(" ")[0]) <= len(level)), len(parts))
    return "".join(parts[start:end])


def anchor_of(heading):
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lstrip("# ")).strip().lower())


def test_numbers_of_accuracy_cards_are_those_of_the_program():
    stated = re.compile(r"accuracy card `(\w+)\.(\w+)`: mean absolute error ([\d.]+) % of (\d+) runs")
    found = [match for page in PAGES.values() for match in stated.findall(" ".join(page.split()))]
    assert len(found) > 2
    for category, model, error, count in found:
        card = model_cards()[category, model]
        assert (error, count) == (f"{card.mean_absolute_error:.1%}".rstrip("%"), str(card.run_count)), (category, model)
