"""What docs/transformers.md shows works: commands, the scenario, times, and its table of errors.

`WHATIF_WRITE_TRANSFORMERS=1 pytest tests/docs/test_transformers.py` writes the times.
"""

from __future__ import annotations

import os
import re
import shlex

import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.validation.tables import rows_of
from whatif.validation.training_steps import kinds

PAGE = ROOT / "docs" / "transformers.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
WRITE = os.environ.get("WHATIF_WRITE_TRANSFORMERS") == "1"


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("in_a_folder")
def test_commands_of_the_page_run(command, whatif_main):
    code, out, error = whatif_main(*shlex.split(command)[1:])
    assert code == 0, error
    assert out.strip() or "-o" in command


def test_the_scenario_is_the_shipped_one():
    shown = tomli.loads(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1])
    shipped = tomli.loads((ROOT / "scenarios" / "llama_training.toml").read_text(encoding="utf-8"))
    del shipped["sweep"]
    assert shown == shipped


def times(whatif_main):
    _, out, _ = whatif_main("explain", "llama_training", "iteration_time", "--depth", "2")
    lines = [line.partition("  (")[0] for line in out.splitlines() if "of the iteration" in line]
    return [line for line in lines if " 0 s " not in line and " 0.0% " not in line]


def plans(whatif_main):
    _, _, error = whatif_main("tune", "transformer", "llama_training")
    return [line for line in error.splitlines() if "plans" in line or "fastest" in line]


@pytest.mark.parametrize(("name", "lines"), [("explain", times), ("tune", plans)])
def test_output_is_that_of_the_command(name, lines, whatif_main):
    text = PAGE.read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    assert end
    shown = "\n".join(f"    {line}" for line in lines(whatif_main))
    written = f"{before}{start}\n{shown}\n\n{end}{after}"
    if WRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert written == text or WRITE


def test_errors_are_those_of_the_comparison():
    rows = rows_of("training_steps.csv")
    errors = whatif.comparisons("transformers").table().columns["error"].values
    for kind, mask in kinds(rows).items():
        mean, bias = abs(errors[mask]).mean(), errors[mask].mean()
        assert f"| {kind} | {mask.sum()} | {mean:.1%} | {bias:+.1%} |" in TEXT
