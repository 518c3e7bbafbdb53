"""Format of files: the key `format`, files written by earlier versions, and files that the program writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.files.platform_file import present
from whatif.files.scenario_edits import toml_patch
from whatif.files.trace_scenario import trace_scenario
from whatif.schema.load import load_part, load_platform
from whatif.schema.study_file import open_study
from whatif.schema.toml import FORMAT, parse_document

TRACE = ROOT / "docs" / "examples" / "tree.goal"
OLD = ROOT / "tests" / "data" / "format_1"
SCENARIOS = ("game_of_life", "jacobi2d", "jacobi2d_strong", "llama_training", "minife", "sedov")
PLATFORMS = ("bridges", "frontier", "lassen", "summit")
PARTS = sorted(path.stem for path in (OLD / "parts").glob("*.toml"))


def test_every_old_file_is_read_here():
    assert sorted(path.stem for path in OLD.glob("*.toml")) == sorted([*SCENARIOS, *PLATFORMS, "successor"])
    assert len(PARTS) >= 5


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_old_scenario_gives_an_answer(name):
    found = whatif.run(OLD / f"{name}.toml")
    assert np.isfinite(float(found["total_time"]))
    assert float(found["total_time"]) > 0


@pytest.mark.parametrize("name", PLATFORMS)
def test_an_old_platform_is_read_and_runs_a_scenario(name):
    platform, layers = load_platform(OLD / f"{name}.toml")
    assert platform.node_count > 0
    assert {layer.document.folder for layer in layers.items} <= {OLD, OLD / "parts"}
    found = whatif.run("jacobi2d", platform=OLD / f"{name}.toml", overrides={"application.rank_count": "8"})
    assert float(found["total_time"]) > 0


@pytest.mark.parametrize("name", PARTS)
def test_an_old_part_is_read(name):
    assert load_part(OLD / "parts" / f"{name}.toml")


def test_an_old_study_is_read():
    assert list(open_study(OLD / "successor.toml").spec.bids)


def with_format(path, stated):
    text = path.read_text(encoding="utf-8")
    return parse_document(f"format = {stated}\n{text}", path.name, path.parent)


def test_a_file_may_state_its_format(tmp_path):
    for path in (OLD / "jacobi2d.toml", OLD / "summit.toml", OLD / "parts" / "slingshot-11.toml"):
        document = with_format(path, FORMAT)
        assert document.data == parse_document(path.read_text(encoding="utf-8"), path.name).data
        assert document.text.startswith("format = 1")
    # The formats of the scenario, of the one it extends and of its platform do not meet.
    (tmp_path / "base.toml").write_text(with_format(OLD / "jacobi2d.toml", 1).text)
    (tmp_path / "summit.toml").write_text(with_format(OLD / "summit.toml", 1).text)
    (tmp_path / "ours.toml").write_text('format = 1\nextends = "base"\napplication.rank_count = 12\n')
    assert Scenario.open(tmp_path / "ours.toml").program.loaded.scenario.application.rank_count == 12


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("2", "this whatif reads format 1; the file states format 2, which a newer whatif reads"),
        ("0", "`0` is not a format; the first is 1"),
        ("-1", "`-1` is not a format; the first is 1"),
        ('"1"', "must be a whole number: `format = 1`"),
        ("1.0", "must be a whole number: `format = 1`"),
        ("true", "must be a whole number: `format = 1`"),
        ("[1]", "must be a whole number: `format = 1`"),
    ],
)
def test_another_format_is_rejected(stated, message):
    with pytest.raises(InvalidFileError) as found:
        with_format(OLD / "summit.toml", stated)
    assert str(found.value) == f"summit.toml:1:1: format: {message}"


def test_the_format_of_a_platform_that_a_scenario_names_is_checked(tmp_path):
    (tmp_path / "far.toml").write_text('# New.\nformat = 7\nextends = "summit"\n')
    (tmp_path / "ours.toml").write_text('extends = "jacobi2d"\nplatform = "far"\n')
    with pytest.raises(InvalidFileError, match=r"far\.toml:2:1: format: this whatif reads format 1"):
        _ = Scenario.open(tmp_path / "ours.toml").program


def test_new_files_state_the_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whatif.new("first", gpu="h200-sxm", gpus_per_node=4).write()
    whatif.new_study("study.toml")
    whatif.Platform.of({"extends": "summit", "name": "ours"}).write("ours.toml")
    whatif.resolve("jacobi2d").write("whole.toml")
    Path("fitted.toml").write_text(present(Path("fitted.toml"), "summit").text)
    Path("replay.toml").write_text(trace_scenario(TRACE, whatif.Platform.open("summit")).text)
    Path("patch.toml").write_text(toml_patch(whatif.load("jacobi2d", overrides={"application.rank_count": "12"}), []))
    written = sorted(path.stem for path in tmp_path.glob("*.toml"))
    assert written == ["first", "first_machine", "fitted", "ours", "patch", "replay", "study", "whole"]
    for name in written:
        assert tomli.loads(Path(f"{name}.toml").read_text(encoding="utf-8"))["format"] == FORMAT, name


def test_the_version_is_stated_once():
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "whatif/__init__.py"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == whatif.__version__
