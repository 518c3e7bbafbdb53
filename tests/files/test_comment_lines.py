"""Names of foreign files in the comments of written files: always one line."""

from __future__ import annotations

import tomli

import whatif
from tests.paths import ROOT
from whatif.schema.toml_text import comment_line, file_text

TREE = ROOT / "docs" / "examples" / "tree.goal"


def test_a_comment_is_one_line_without_control_characters():
    assert comment_line("") == ""
    assert comment_line("a\nb\x1b[31m\r\nc") == "# a b [31m c\n"
    assert tomli.loads(file_text({"name": "x"}, "two\nlines = 3"))["name"] == "x"


def test_a_machine_whose_name_has_a_line_end_can_be_used_everywhere(tmp_path, whatif_main):
    machine = tmp_path / "odd.toml"
    machine.write_text('extends = "dahu"\nname = "odd\\nlines = 3"\n')
    code, _, err = whatif_main("simulate", TREE, "--platform", machine)
    assert code == 0, err
    scenario = whatif.import_trace(TREE, platform=machine)
    tomli.loads(scenario.to_toml())
    predicted = whatif.hpl(ROOT / "tests" / "data" / "hpl" / "HPL.dat.4x4", platform=machine)
    tomli.loads(predicted.scenario.to_toml())


def test_a_formula_of_several_lines_gives_a_valid_file(tmp_path):
    runs = ROOT / "docs" / "examples" / "epoch_runs.csv"
    fit = whatif.fit_regression(runs, formula="time ~ power_limit +\nbatch_size")
    fit.write(tmp_path / "model.toml")
    assert whatif.check(tmp_path / "model.toml").problems == ()
