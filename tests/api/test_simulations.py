"""`simulate` and `import_trace`: examples run, numbers are those of the command line, unused options are refused."""

from __future__ import annotations

import doctest
import json
import shutil

import numpy as np
import pytest

import whatif
from tests.paths import DATA
from whatif.api import simulations

TREE = DATA / "traces" / "goal" / "binary_tree_32.goal"


def test_examples_of_the_docstrings_run():
    found = doctest.testmod(simulations)
    assert found.attempted >= 7
    assert found.failed == 0


@pytest.mark.parametrize("show", ["ranks", "messages", "path", "slopes"])
def test_tables_are_those_of_the_command_line(whatif_main, show):
    out = whatif_main("simulate", TREE, "--platform", "lassen", "--show", show, "--format", "json")[1]
    found = whatif.simulate(TREE, platform="lassen", show=show)
    assert json.loads(out)["rows"] == json.loads(json.dumps(found.to_dict()))["rows"]
    assert found.table().columns.keys() == whatif.simulate(TREE, platform="lassen").table(show).columns.keys()


def test_notes_state_the_run_time_and_what_is_not_simulated(whatif_main):
    factor = "application.phases.trace.computation_factor"
    found = whatif.simulate(TREE, platform="lassen", overrides={factor: 2})
    assert "32 ranks" in found.notes[0]
    assert any("computation_factor" in note for note in found.notes)
    error = whatif_main("simulate", TREE, "--platform", "lassen", "--set", f"{factor}=2")[2]
    assert all(note in error for note in found.notes)
    assert repr(found).startswith("<Simulation: 32 rows>")


def test_simulation_on_a_platform_built_in_python():
    ours = whatif.Platform.of(extends="lassen", name="ours") if hasattr(whatif, "Platform") else "lassen"
    expected = whatif.simulate(TREE, platform="lassen").to_pandas()
    np.testing.assert_array_equal(whatif.simulate(TREE, platform=ours).to_pandas()["time"], expected["time"])


def test_scenario_of_a_trace_takes_as_long_as_its_simulation():
    trace = whatif.import_trace(TREE, platform="lassen")
    simulated = whatif.simulate(TREE, platform="lassen")
    assert float(whatif.run(trace.scenario)["total_time"]) == pytest.approx(simulated.activity.run_time, rel=1e-12)
    again = whatif.simulate(trace.scenario)
    np.testing.assert_array_equal(again.activity.end, simulated.activity.end)


def test_written_scenario_is_that_of_the_command_line(whatif_main, tmp_path):
    file = shutil.copy(TREE, tmp_path)
    whatif.import_trace(file, platform="dahu").write(tmp_path / "tree.toml")
    out = whatif_main("import", "trace", file, "--platform", "dahu", "--format", "toml")[1]
    assert out == (tmp_path / "tree.toml").read_text(encoding="utf-8")
    with pytest.raises(whatif.WhatifError, match="folder of its trace"):
        whatif.import_trace(file).write(tmp_path.parent / "tree.toml")


@pytest.mark.parametrize(
    ("scenario", "options", "message"),
    [
        ("jacobi2d", {"model": "postal"}, "model: only for traces"),
        ("jacobi2d", {"iterations": 0}, "expected at least 1"),
        ("jacobi2d", {"show": "rank"}, "expected one of ranks, messages, path, slopes"),
        (TREE, {"iterations": 2}, "iterations: only for scenarios"),
        (DATA / "profiles" / "nsys" / "saxpy_a100.sqlite", {}, "holds no messages"),
        ("jacobi2d", {"overrides": {"application.communication": "modelled"}}, "modelled"),
    ],
)
def test_options_without_effect_are_refused(scenario, options, message):
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.simulate(scenario, **options)


@pytest.mark.parametrize("option", [("--platform", "lassen"), ("--platform-dir", ".")])
def test_platform_of_a_table_of_a_trace_is_refused(whatif_main, option):
    code, _, error = whatif_main("import", "trace", TREE, *option)
    assert code == 2
    assert "no effect on a table" in error
