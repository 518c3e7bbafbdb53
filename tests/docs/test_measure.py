"""Commands of docs/measure.md run, on a simulated machine; its means are those of the errors that it lists."""

from __future__ import annotations

import re
import shlex

from tests.measured_at_hand import simulated
from tests.paths import ROOT
from whatif.api import measuring

PAGE = (ROOT / "docs" / "measure.md").read_text(encoding="utf-8")


def test_commands_of_the_page_run(whatif_main, monkeypatch):
    monkeypatch.setattr(measuring, "Instruments", simulated)
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = block.strip().splitlines()
    assert [line.split()[1] for line in lines] == ["measure", "run"]
    for line in lines:
        code, output, errors = whatif_main(*shlex.split(line)[1:])
        assert code == 0, errors
        assert output


def test_means_of_the_page_are_those_of_its_errors():
    rows = re.findall(r"^\| (?:in|out of) cache \| \d \| (.*?) % \| (.*?) % \| (.*?) % \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for listed, mean, absolute in rows:
        errors = [float(number) for number in listed.split(",")]
        assert abs(sum(errors) / len(errors) - float(mean)) <= 0.6
        assert abs(sum(map(abs, errors)) / len(errors) - float(absolute)) <= 0.6
