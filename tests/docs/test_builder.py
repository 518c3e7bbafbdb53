"""What docs/builder.md shows works: its journal lines, its motifs, its keys."""

from __future__ import annotations

import re

import whatif
from tests.driver import drive
from tests.paths import ROOT
from whatif.schema.motifs import motifs
from whatif.tui.commands.phase_commands import PHASE_LINES
from whatif.tui.widgets.phase_keys import PHASE_KEYS

PAGE = (ROOT / "docs" / "builder.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
(JOURNAL,) = (text for kind, text in BLOCKS if not kind)


def test_journal_of_the_page_replays(tmp_path):
    async def check(driver):
        await driver.until(lambda: len(driver.state.unsaved()) == len(JOURNAL.splitlines()))
        path = tmp_path / "mine.toml"
        text = driver.session.scenario.to_toml().replace('runs = "jacobi2d_runs.csv"\n', "")
        path.write_text(text)
        expected = float(driver.session.point.columns["iteration_time"])
        assert float(whatif.run(path)["iteration_time"]) == expected
        assert "# Messages of main memory, as in the paper." in text

    drive(check, replay=JOURNAL.splitlines())


def test_motifs_of_the_page_are_those_of_the_program():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.split("## Motifs")[1], re.MULTILINE)
    kinds = {motif.name: dict.fromkeys(table["kind"] for table in motif.phases.values()) for motif in motifs()}
    assert rows == [(motif.name, motif.description, ", ".join(kinds[motif.name])) for motif in motifs()]


def test_keys_and_lines_of_the_page_are_those_of_the_program():
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    keys = {name.lower() for cell in cells for name in re.findall(r"`(.*?)`", cell)}
    assert {binding.key.lower() for binding in PHASE_KEYS} <= keys
    assert {f"phase {word}" for word in re.findall(r"`phase (\w+) NAME", PAGE)} == set(PHASE_LINES)
