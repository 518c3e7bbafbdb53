"""Files copied into other folders: measured runs and the schema are found from there too."""

from __future__ import annotations

import pytest

from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.files.file_copies import copy_file, with_schema
from whatif.schema.shipped import shipped_folder
from whatif.studies.measured_runs import measured_runs

SHIPPED = shipped_folder("scenarios") / "jacobi2d.toml"


def test_a_copied_scenario_keeps_its_measured_runs(tmp_path):
    runs, path = tmp_path / "jacobi2d_runs.csv", tmp_path / "mine.toml"
    assert copy_file(SHIPPED, path) == f", its runs to {runs}"
    assert len(measured_runs(Scenario.open(path))) == len(measured_runs(Scenario.open("jacobi2d"))) > 0
    runs.write_text("a file of the user\n")
    assert copy_file(SHIPPED, path) == f"; {runs} is another file than its runs"
    assert runs.read_text() == "a file of the user\n"


def test_the_schema_line_leads_to_the_same_file_and_all_else_stays(tmp_path):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "schemas" / "a.json").write_text("{}")
    before, after = tmp_path / "scenarios", tmp_path / "mine" / "one"
    text = "#:schema ../schemas/a.json\r\n# \udcff\r\n"
    assert with_schema(text, before, after) == text.replace("../", "../../")
    assert with_schema(text, before, before) == text


@pytest.mark.parametrize("path", ["https://example.org/a.json", "../none.json", "/etc/hostname"])
def test_other_schema_lines_stay(tmp_path, path):
    text = f"#:schema {path}\nname = 'a'\n"
    assert with_schema(text, tmp_path, tmp_path / "mine") == text


def test_invalid_files_are_copied_as_they_are(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"runs = \xff\r\n")
    assert copy_file(tmp_path / "a.toml", tmp_path / "b.toml") == ""
    assert (tmp_path / "b.toml").read_bytes() == b"runs = \xff\r\n"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read"):
        copy_file(tmp_path / "none.toml", tmp_path / "b.toml")
