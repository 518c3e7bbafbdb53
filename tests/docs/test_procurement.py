"""What docs/procurement.md shows works: its commands run, and its sections are those of the page."""

from __future__ import annotations

import csv
import re
import shlex

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "procurement.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_the_commands_write_a_page_with_the_sections_that_the_table_lists(tmp_path, whatif_main, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS:
        code, _, err = whatif_main(*shlex.split(line)[1:])
        assert code == 0, err
    heads = re.findall(r"<h2>(.*?)</h2>", (tmp_path / "page.html").read_text(encoding="utf-8"))
    listed = re.findall(r"^\| ([A-Z][^|]*?) \|", PAGE, re.MULTILINE)
    # The template states no target.
    assert heads == [name for name in listed if name != "Targets"]
    with (tmp_path / "questions.csv").open(encoding="utf-8") as file:
        assert {row["bid"] for row in csv.DictReader(file)} == {"north", "south"}
