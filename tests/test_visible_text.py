"""Text of files, made safe to show."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata

import numpy as np
import pytest
import tomli

from whatif.schema.toml_text import toml_text
from whatif.table import Table, text_column
from whatif.table_writers import TABLE_WRITERS
from whatif.units import ONE
from whatif.visible_text import is_visible, spreadsheet_cell, visible, visible_json

HOSTILE = "\x1b]0;PWNED\x07a\u202eb\x9b31m\U000e0041"
SHOWN = r"\x1b]0;PWNED\x07a\u202eb\x9b31m\U000e0041"


def test_every_control_and_direction_character_of_unicode_is_visible():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert visible(char, "").isascii(), hex(code)
            assert not is_visible(char), hex(code)
        elif unicodedata.category(char) != "Cn":
            assert visible(char, "") == char, hex(code)


def test_line_ends_and_tabs_are_kept_unless_they_would_break_a_table():
    assert visible("a\tb\r\nc") == "a\tb\\r\nc"
    assert visible("a\tb\nc", "") == "a\\tb\\nc"


@pytest.mark.parametrize("text", ["=cmd|calc!A1", "@SUM(1)", "+1+2", "-2+3", " =1", "\t=1", "\r=1", "＝1", "-1 ms;=A1"])
def test_what_a_spreadsheet_would_compute_is_quoted(text):
    assert spreadsheet_cell(text) == "'" + visible(text, "\n")


@pytest.mark.parametrize("text", ["-1.5e3", "+2", "-.5", "-", "+", "a=b", "1-2", "", "m/s", "2026-01-01"])
def test_numbers_and_other_texts_are_not_quoted(text):
    assert spreadsheet_cell(text) == text


def written(kind, *cells):
    out = io.StringIO()
    table = Table.of_rows({HOSTILE: None, "n": ONE}, [(cell, -1.5) for cell in cells], {"note": HOSTILE})
    TABLE_WRITERS[kind](table, out)
    return out.getvalue()


@pytest.mark.parametrize("kind", sorted(TABLE_WRITERS))
def test_no_table_holds_a_control_character(kind):
    text = written(kind, HOSTILE, "=1+1")
    assert is_visible(text.replace("\n", "")), repr(text)
    assert SHOWN in text or json.loads(text)["rows"][0] == {HOSTILE: HOSTILE, "n": -1.5}


def test_cells_of_csv_are_quoted_and_numbers_are_not():
    rows = list(csv.reader(io.StringIO(written("csv", "=HYPERLINK(1)", "two\nlines"))))
    assert rows[1:] == [["'=HYPERLINK(1)", "-1.5"], ["two\nlines", "-1.5"]]


def test_markdown_has_no_tag_of_a_file():
    assert r"&lt;img src=x onerror=alert(1)> 1 \| < 2" in written("markdown", "<img src=x onerror=alert(1)> 1 | < 2")


def test_json_and_toml_are_the_same_documents():
    data = {"key": HOSTILE, HOSTILE: 1}
    assert json.loads(visible_json(json.dumps(data, ensure_ascii=False, indent=1))) == data
    assert tomli.loads(toml_text(data)) == data
    assert is_visible(toml_text(data).replace("\n", ""))


def test_a_text_column_of_objects_is_written_as_before():
    out = io.StringIO()
    TABLE_WRITERS["csv"](Table({"name": text_column(["a", "b,c"])}), out)
    assert out.getvalue() == 'name\na\n"b,c"\n'
    assert np.all(text_column(["a"]).values == "a")
