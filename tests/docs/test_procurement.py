"""What docs/procurement.md shows works: its excerpts, its options, the sections of the page for the committee."""

from __future__ import annotations

import csv
import re

import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.schema.toml import walk

PAGE = ROOT / "docs" / "procurement.md"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
    for options in (
        ("--new", "ours.toml"),
        ("ours.toml", "-o", "page.html"),
        ("ours.toml", "--show", "questions", "-o", "questions.csv"),
    ):
        code, _, error = whatif_main("study", *options)
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
