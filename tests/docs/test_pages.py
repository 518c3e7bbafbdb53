"""Pages show what their commands print; `WHATIF_WRITE_PAGES=1 pytest tests/docs/test_pages.py` writes it."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from tests.docs.pages import EXAMPLES, replayed, sessions
from tests.paths import ROOT
from tests.tui.test_screenshots import DRAWN

WRITE = os.environ.get("WHATIF_WRITE_PAGES") == "1"
PICTURES = ROOT / "screenshots"


@pytest.mark.parametrize("path", sessions(), ids=lambda path: str(path.relative_to(ROOT)))
def test_sessions_print_what_the_page_shows(path, whatif_main, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "24")
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    for folder in ("tests", "validation"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    page = path.read_text(encoding="utf-8")
    now = replayed(page, whatif_main, tmp_path)
    if WRITE:
        path.write_text(now, encoding="utf-8")
    assert now == page or WRITE
    for picture in tmp_path.glob("*.svg"):
        compare_pictures(PICTURES / picture.name, picture)


def compare_pictures(shown, drawn):
    """Compare the texts: another version of matplotlib sets letters elsewhere, but writes the same."""
    if not shown.exists():
        return
    texts = [re.findall(r"<text[^>]*>([^<]*)", picture.read_text(encoding="utf-8")) for picture in (shown, drawn)]
    if WRITE:
        shutil.copy(drawn, shown)
    assert WRITE or texts[0] == texts[1] != []


def test_test_files_that_pages_name_exist():
    pages = (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
    named = {
        name for page in pages for name in re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.py\b", page.read_text("utf-8"))
    }
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_pictures_of_commands_are_shown():
    shown = {name for page in sessions() for name in re.findall(r"screenshots/(\w+)\.svg", page.read_text("utf-8"))}
    drawn = {name for page in sessions() for name in re.findall(r"-o (\w+)\.svg", page.read_text("utf-8"))}
    assert set(DRAWN) <= shown & drawn
