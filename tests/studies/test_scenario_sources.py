"""What a verb is given: scenarios, traces and profiles, told apart by what they are."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.paths import DATA
from whatif.cli.main import program
from whatif.core.platform import Platform
from whatif.core.sweep import file_axes, grid_of
from whatif.errors import InvalidFileError, UsageError
from whatif.files.trace_scenario import trace_scenario
from whatif.schema.shipped import shipped_folder
from whatif.studies.scenario_sources import ScenarioSource, open_source
from whatif.table import Table
from whatif.units import ONE

TRACE = DATA / "traces" / "goal" / "binary_tree_32.goal"
PROFILE = DATA / "profiles" / "nsys" / "saxpy_a100.sqlite"
OURS = 'extends = "lassen"\nname = "Ours"\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in (TRACE, PROFILE):
        shutil.copy(file, tmp_path)


def opened(source: str, platform: str | None = None) -> ScenarioSource:
    return open_source(source, platform=platform)


def machine(source: ScenarioSource) -> str:
    return source.scenario.program.loaded.scenario.platform.name


@pytest.mark.parametrize(
    ("source", "kind"), [(TRACE.name, "trace"), (PROFILE.name, "profile"), ("jacobi2d", "scenario")]
)
def test_a_platform_in_a_file_serves_every_kind_of_source(source, kind):
    folder = Path("machines")
    folder.mkdir()
    (folder / "ours.toml").write_text(OURS)
    found = opened(source, "machines/ours.toml")
    assert (found.kind, machine(found)) == (kind, "Ours")


def test_a_profile_is_written_as_a_scenario_of_a_platform_in_a_file():
    Path("ours.toml").write_text(OURS)
    result = CliRunner().invoke(program, ["import", "profile", PROFILE.name, "--platform", "ours.toml", "-o", "s.toml"])
    assert result.exit_code == 0, result.output
    assert machine(opened("s.toml")) == "Ours"


@pytest.mark.parametrize("inside", [None, "notes.txt"])
def test_a_folder_does_not_hide_the_shipped_scenario_of_its_name(inside):
    Path("jacobi2d").mkdir()
    if inside is not None:
        Path("jacobi2d", inside).write_text("nothing to replay\n")
    assert opened("jacobi2d").kind == "scenario"


def test_a_folder_with_a_trace_is_the_trace_whatever_its_name():
    Path("jacobi2d").mkdir()
    shutil.copy(TRACE, "jacobi2d")
    assert opened("jacobi2d").kind == "trace"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ("no trace: the file is empty", "expected a profile")),
        (b"<!DOCTYPE html><html></html>", ("no trace: a web page", "web page (HTML)")),
        (b"rank,time\n0,1\n", ("no trace: text of another kind", "expected a profile")),
        (b"SQLite format 3\0" + bytes(200), ("no trace: an SQLite database", "damaged or cut off")),
        (bytes(range(256)), ("no trace: a binary file", "expected a profile")),
    ],
)
def test_files_that_are_neither_trace_nor_profile_are_refused(content, message):
    Path("odd.bin").write_bytes(content)
    with pytest.raises(InvalidFileError) as caught:
        opened("odd.bin")
    for problem, words in zip(caught.value.problems, message, strict=True):
        assert problem.file == "odd.bin"
        assert words in problem.message


def test_a_folder_without_a_trace_is_refused_as_one():
    Path("empty").mkdir()
    with pytest.raises(InvalidFileError, match="no trace: no file in this folder is one"):
        opened("empty")


@pytest.mark.parametrize("source", ["", "jacobi3d", "x" * 5000, "a\0b"])
def test_a_name_of_nothing_is_refused_as_a_scenario(source):
    with pytest.raises(InvalidFileError, match="no such file or shipped name"):
        opened(source)


def test_a_profile_on_a_machine_without_gpus_is_refused_with_the_reason():
    with pytest.raises(UsageError, match="Dahu has no GPU: a profile's copies and kernels need one"):
        opened(PROFILE.name, "dahu")


def ranks_per_node(platform: str, folder: str = "") -> object:
    document = trace_scenario(Path(TRACE.name), Platform.open(platform, platform_dirs=[folder]))
    return document.data["application"].get("ranks_per_node")


def test_a_trace_states_the_ranks_of_a_node_where_the_platform_has_no_default():
    assert ranks_per_node("dahu") is None
    assert ranks_per_node("summit") is None
    text = re.sub(r"\[node.cpu\]\nextends = .*\n", "", (shipped_folder("platforms") / "dahu.toml").read_text())
    Path("bare.toml").write_text(text)
    assert ranks_per_node("bare") == 1


def test_the_scenario_of_a_trace_has_three_replays():
    scenario = opened(TRACE.name).scenario
    grid = grid_of(file_axes(scenario.program, 1000), 1000)
    assert grid.shape == (3,)
    result = CliRunner().invoke(program, ["import", "trace", TRACE.name, "-o", "tree.toml"])
    assert result.exit_code == 0, result.output
    swept = CliRunner().invoke(program, ["run", "tree.toml", "--format", "csv"])
    assert swept.exit_code == 0, swept.output
    assert len(swept.stdout.splitlines()) == 4


def test_a_table_of_rows_has_numbers_and_texts():
    table = Table.of_rows({"name": None, "share": ONE}, [("a", 1), ("b", np.nan)], {"file": "x"})
    assert list(table.rows()) == [("a", 1.0), ("b", None)]
    assert table.columns["share"].values.dtype == np.float64
    assert table.notes == {"file": "x"}


def test_a_table_of_no_rows_keeps_its_columns():
    table = Table.of_rows({"name": None, "share": ONE}, [])
    assert (len(table), list(table.columns)) == (0, ["name", "share"])
    assert table.columns["share"].values.dtype == np.float64


@pytest.mark.parametrize("row", [("a",), ("a", 1.0, 2.0)])
def test_a_row_with_other_cells_than_columns_is_an_error(row):
    with pytest.raises(ValueError, match="argument"):
        Table.of_rows({"name": None, "share": ONE}, [row])
