"""What docs/transformers.md and docs/serving.md show works: commands, scenarios, outputs, and tables of errors.

`WHATIF_WRITE_TRANSFORMERS=1 pytest tests/docs/test_transformers.py` writes the outputs.
"""

from __future__ import annotations

import os
import re
import shlex

import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.validation import serving_runs, training_steps
from whatif.validation.tables import rows_of

PAGES = {name: ROOT / "docs" / f"{name}.md" for name in ("transformers", "serving")}
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in PAGES.items()}
SCENARIOS = {"transformers": "llama_training", "serving": "llama_serving"}
BLOCKS = [block for text in TEXTS.values() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]
WRITE = os.environ.get("WHATIF_WRITE_TRANSFORMERS") == "1"
FASTEST = "application.plan.largest_batch=1 .. 256"


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("in_a_folder")
def test_commands_of_the_pages_run(command, whatif_main):
    code, out, error = whatif_main(*shlex.split(command)[1:])
    assert code == 0, error
    assert out.strip() or "-o" in command


@pytest.mark.parametrize("page", PAGES)
def test_the_scenario_is_the_shipped_one(page):
    shown = tomli.loads(re.search(r"```toml\n(.*?)```", TEXTS[page], re.DOTALL)[1])
    shipped = tomli.loads((ROOT / "scenarios" / f"{SCENARIOS[page]}.toml").read_text(encoding="utf-8"))
    del shipped["sweep"], shipped["accuracy"]
    assert shown == shipped


def times(scenario, whatif_main):
    _, out, _ = whatif_main("explain", scenario, "iteration_time", "--depth", "2")
    lines = [line.partition("  (")[0] for line in out.splitlines() if "of the iteration" in line]
    return [line for line in lines if " 0 s " not in line and " 0.0% " not in line]


def plans(scenario, whatif_main):
    _, _, error = whatif_main("tune", "transformer", scenario)
    return [line for line in error.splitlines() if "plans" in line or "fastest" in line]


def target(scenario, whatif_main):
    options = ("--maximise", "token_rate", "--vary", FASTEST, "--target", "token_time <= 30 ms")
    _, out, _ = whatif_main("seek", scenario, *options)
    return out.splitlines()


@pytest.mark.parametrize(
    ("page", "name", "lines"),
    [("transformers", "explain", times), ("transformers", "tune", plans), ("serving", "explain", times),
     ("serving", "target", target)],
)  # fmt: skip
def test_output_is_that_of_the_command(page, name, lines, whatif_main):
    text = PAGES[page].read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    assert end
    shown = "\n".join(f"    {line}" for line in lines(SCENARIOS[page], whatif_main))
    written = f"{before}{start}\n{shown}\n\n{end}{after}"
    if WRITE:
        PAGES[page].write_text(written, encoding="utf-8")
    assert written == text or WRITE


@pytest.mark.parametrize(
    ("page", "topic", "file", "module"),
    [("transformers", "training", "training_steps.csv", training_steps),
     ("serving", "serving", "serving_runs.csv", serving_runs)],
)  # fmt: skip
def test_errors_are_those_of_the_comparison(page, topic, file, module):
    errors = whatif.comparisons(topic).table().columns["error"].values
    for kind, mask in module.kinds(rows_of(file)).items():
        assert f"| {kind} | {mask.sum()} | {row_of(errors[mask])} |" in TEXTS[page]


def test_errors_of_first_tokens_are_those_of_the_comparison():
    errors = whatif.comparisons("first_tokens").table().columns["error"].values
    assert f"| first token | {len(errors)} | {row_of(errors)} |" in TEXTS["serving"]


def row_of(errors):
    """Mean absolute error and bias, as the tables show them."""
    return f"{abs(errors).mean():.1%} | {errors.mean():+.1%}"
