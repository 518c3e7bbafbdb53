"""What docs/procurement.md shows works: every command, and the output of its examples.

`WHATIF_WRITE_PROCUREMENT=1 pytest tests/docs/test_procurement.py` writes the output.
"""

from __future__ import annotations

import csv
import os
import re
import shlex

import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.schema.toml import walk

PAGE = ROOT / "docs" / "procurement.md"
WRITE = os.environ.get("WHATIF_WRITE_PROCUREMENT") == "1"
COMMANDS, OF_OWN_FILES, OF_THE_PAGE = (
    block.splitlines() for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
)
SHOWN = {
    "bids": ("whatif study successor", "out"),
    "sweep": (COMMANDS[7], "error"),
    "changes": ("whatif study successor --show changes", "out"),
}
"""Command and stream of each example."""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS + OF_OWN_FILES)
def test_commands_of_the_page_run(command, whatif_main):
    words = shlex.split(command)
    code, out, error = whatif_main(*words[1:])
    assert code == 0, error
    assert out.strip() or "-o" in words


def test_the_first_commands_make_a_study_that_runs(whatif_main):
    block = re.search(r"(?:^    whatif .*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]
    for line in block.splitlines():
        assert whatif_main(*shlex.split(line, comments=True)[1:])[0] == 0


@pytest.mark.parametrize("name", SHOWN)
def test_the_examples_print_what_the_page_shows(name, whatif_main):
    command, stream = SHOWN[name]
    _, out, error = whatif_main(*shlex.split(command)[1:])
    lines = (out if stream == "out" else error).splitlines()
    kept = [line.rstrip() for line in lines if stream == "out" or " is best " in line]
    page = PAGE.read_text(encoding="utf-8")
    before, start, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    text = "\n".join(f"    {line}" for line in [f"$ {command}", *kept])
    written = f"{before}{start}\n{text}\n\n{end}{after}"
    if WRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert page == written or WRITE


def test_the_excerpt_is_part_of_the_shipped_study():
    excerpt = tomli.loads(re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1])
    whole = dict(walk(tomli.loads((ROOT / "studies" / "successor.toml").read_text(encoding="utf-8"))))
    assert {path: whole[path] for path, _ in walk(excerpt)} == dict(walk(excerpt))


def test_machines_and_applications_of_ones_own_extend_shipped_ones(tmp_path):
    files = re.findall(r"```toml\n# (\w+\.toml): (\w+) = .*\n((?:.*\n)*?)```", PAGE.read_text(encoding="utf-8"))
    assert [name for name, *_ in files] == ["north.toml", "solver.toml"]
    for name, _, text in files:
        (tmp_path / name).write_text(text)
    bids = '[bids.north]\nplatform = "north.toml"\nnode_count = 400\n'
    bids += '[bids.north.overrides]\nnode.host.memory_bandwidth = "x1.2"\n'
    mix = '[mix.solver]\nscenario = "solver.toml"\nweight = 1\n'
    study = f'question = "?"\n[present]\nplatform = "lassen"\nnode_count = 300\n{bids}{mix}'
    (tmp_path / "ours.toml").write_text(study)
    found = whatif.study(tmp_path / "ours.toml")
    node = found.jobs.scenarios["north"]["solver"].program.loaded.scenario.platform.node
    assert (node.gpu_count, node.socket_count, node.host.power) == (2, 2, 160)
    assert found.jobs.of("north")["solver"].node_count[0] == 64
    assert found.bids["north"].throughput[0] > 0


def test_the_page_for_the_committee_has_the_sections_that_the_document_lists(tmp_path, whatif_main):
    for command in OF_THE_PAGE:
        code, _, error = whatif_main(*shlex.split(command)[1:])
        assert code == 0, error
    heads = re.findall(r"<h2>(.*?)</h2>", (tmp_path / "page.html").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8").partition("## The page for the committee")[2].partition("\n## ")[0]
    # The template states no target.
    assert heads == [name for name in re.findall(r"^\| ([A-Z][^|]*?) \|", text, re.MULTILINE) if name != "Targets"]
    with (tmp_path / "questions.csv").open(encoding="utf-8") as file:
        assert {row["bid"] for row in csv.DictReader(file)} == {"north", "south"}


def test_the_options_of_the_page_are_options_of_the_shipped_study(tmp_path):
    tables = tomli.loads(re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[-1])["options"]
    overrides = {f"options.{name}.{'.'.join(path)}": value for name, its in tables.items() for path, value in walk(its)}
    rows = whatif.study("successor", overrides=overrides, show="options").to_dict()["rows"]
    assert {row["option"] for row in rows} == set(tables)
    frugal = next(row for row in rows if (row["option"], row["bid"]) == ("frugal_accelerators", "accelerators"))
    plain = whatif.study("successor").bids["accelerators"]
    assert frugal["power"] < plain.power[0]
    assert frugal["cost"] < plain.ownership[0]
    assert frugal["worth a node"] is None
