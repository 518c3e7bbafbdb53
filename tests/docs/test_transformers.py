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
COMMANDS = re.search(r"```sh\n(.*?)```", TEXT, re.DOTALL)[1].splitlines()
WRITE = os.environ.get("WHATIF_WRITE_TRANSFORMERS") == "1"
START, END = "<!-- explain -->\n\n", "\n<!-- end of explain -->\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page_run(command, whatif_main):
    code, out, error = whatif_main(*shlex.split(command)[1:])
    assert code == 0, error
    assert out.strip()


def test_the_scenario_is_the_shipped_one():
    shown = tomli.loads(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1])
    shipped = tomli.loads((ROOT / "scenarios" / "llama_training.toml").read_text(encoding="utf-8"))
    del shipped["sweep"]
    assert shown == shipped


def test_times_are_those_of_the_command(whatif_main):
    _, out, _ = whatif_main("explain", "llama_training", "iteration_time", "--depth", "2")
    lines = [line.partition("  (")[0] for line in out.splitlines() if "of the iteration" in line]
    lines = [f"    {line}" for line in lines if " 0 s " not in line and " 0.0% " not in line]
    before, _, rest = TEXT.partition(START)
    written = f"{before}{START}{chr(10).join(lines)}\n{END}{rest.partition(END)[2]}"
    if WRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert written == TEXT or WRITE


def test_errors_are_those_of_the_comparison():
    rows = rows_of("training_steps.csv")
    errors = whatif.comparisons("transformers").table().columns["error"].values
    for kind, mask in kinds(rows).items():
        mean, bias = abs(errors[mask]).mean(), errors[mask].mean()
        assert f"| {kind} | {mask.sum()} | {mean:.1%} | {bias:+.1%} |" in TEXT
