"""The scaling planner: against sweeps, definitions by hand, and an isoefficiency that has a closed form."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import parse_option
from whatif.models.decomposition import balanced_extents
from whatif.schema.toml import parse_document
from whatif.studies.calibration import calibrate
from whatif.studies.isoefficiency import isoefficiency
from whatif.studies.required_nodes import required_nodes
from whatif.studies.scaling import Planner, answers
from whatif.studies.scaling_plan import scaling_study

RANKS = "application.rank_count"
NODES = [1, 2, 4, 8, 16, 32, 64]


def swept(scenario, name="iteration_time"):
    axis = parse_option(f"{RANKS}={', '.join(str(6 * count) for count in NODES)}", scenario.program, 100)
    return run_whole(scenario, Grid((axis,))).columns[name]


def test_the_files_own_way_to_scale_is_its_sweep_over_ranks_and_the_gains_are_the_definitions():
    planner = Planner(Scenario.open("jacobi2d_strong"))
    strong = planner.scaling("strong", NODES)
    times = swept(planner.scenario)
    counts = np.array(NODES, dtype=np.float64)
    np.testing.assert_array_equal(strong.time, times)
    assert_allclose(strong.speedup, times[0] / times, rtol=1e-15, atol=0)
    assert_allclose(strong.efficiency, times[0] / times / counts, rtol=1e-15, atol=0)
    assert_allclose(strong.communication, swept(planner.scenario, "communication_time") / times, rtol=1e-15, atol=0)
    assert_allclose(strong.node_time, counts * swept(planner.scenario, "total_time"), rtol=1e-15, atol=0)
    weak = Planner(Scenario.open("jacobi2d")).scaling("weak", NODES)
    times = swept(Scenario.open("jacobi2d"))
    np.testing.assert_array_equal(weak.time, times)
    assert_allclose(weak.efficiency, times[0] / times, rtol=1e-15, atol=0)
    assert_allclose(weak.speedup, times[0] / times * counts, rtol=1e-15, atol=0)


def test_numbers_of_nodes_beyond_the_calibration_are_named(tmp_path):
    calibrate(Scenario.open("minife")).write(tmp_path / "own.toml")
    calibrated = Scenario.open(tmp_path / "own.toml")
    warning = "warning: calibration: numbers of ranks of 64 lie outside the 2 to 32 of its runs"
    assert warning in scaling_study(calibrated, [2, 8, 16], "50%", "scaling").summary()
    within = scaling_study(calibrated, [2, 8], "50%", "scaling")
    assert not any("lie outside" in line for line in within.summary())


@pytest.mark.parametrize(("name", "cells"), [("jacobi2d", 16384), ("jacobi2d_strong", 65536)])
def test_the_other_way_has_the_same_problem_at_the_files_ranks(name, cells):
    scenario = Scenario.open(name)
    ranks = float(scenario.program.parameters[RANKS].value)
    nodes = int(ranks / 6) if ranks % 6 == 0 else None
    planner = Planner(scenario if nodes else scenario.changed({RANKS: "96"}))
    nodes = nodes or 16
    at_home = float(run_whole(planner.scenario, Grid()).columns["iteration_time"])
    for mode in ("strong", "weak"):
        assert_allclose(planner.scaling(mode, [nodes]).time, at_home, rtol=1e-15, atol=0)
    extents = np.array(balanced_extents(nodes * 6, 2))
    whole, part = (cells * extents, [cells] * 2) if name == "jacobi2d" else ([cells] * 2, np.ceil(cells / extents))
    np.testing.assert_array_equal(planner.whole, whole)
    np.testing.assert_array_equal(planner.part, part)


def test_places_worth_knowing_are_those_of_the_table():
    plans = {"strong": Planner(Scenario.open("jacobi2d_strong")).scaling("strong", NODES)}
    strong = plans["strong"]
    found = answers(plans, 0.6)
    assert (
        strong.nodes[found["max nodes at >= 60% strong-scaling efficiency"][1]]
        == strong.nodes[strong.efficiency >= 0.6].max()
    )
    assert strong.node_time[found["fewest node-hours"][1]] == strong.node_time.min()
    both = strong.node_time * strong.time
    assert both[found["fewest node-hours x time"][1]] == both.min()
    assert {"max nodes at >= 100% strong-scaling efficiency"} <= answers(plans, 1.0).keys()
    assert {"max nodes at >= 49.96% strong-scaling efficiency"} <= answers(plans, 0.4996).keys()


def test_an_answer_at_the_end_of_the_range_is_told():
    near = scaling_study(Scenario.open("jacobi2d_strong"), [1, 2, 4], "50%", "answers").summary()
    names = [f"max nodes at >= 50% {mode}-scaling efficiency" for mode in ("strong", "weak")]
    end = "4 nodes are the most that were evaluated; more may be better: "
    assert end + "; ".join([*names, "fewest node-hours x time"]) in near
    far = scaling_study(Scenario.open("jacobi2d_strong"), [1, 16, 128, 1024], "50%", "answers").summary()
    assert end.replace("4", "1,024", 1) + names[1] in far


@pytest.mark.parametrize("share", [1, 2])
def test_memory_follows_the_cells_and_the_fewest_nodes_are_the_first_that_have_room(share):
    # 64 ranks have 8192 x 8192 cells in 4 GB each; a device has 16 GB for one of them or two.
    sets = {"application.memory_size": "4 GB", "application.ranks_per_gpu": str(share)}
    planner = Planner(Scenario.open("jacobi2d_strong", overrides=sets))
    strong = planner.scaling("strong", [1, 2, 3, 4, 8])

    def needed(nodes):
        return share * 4e9 * np.prod(np.ceil(65536 / np.array(balanced_extents(6 * share * nodes, 2)))) / 8192**2

    assert_allclose(strong.memory, [needed(nodes) for nodes in (1, 2, 3, 4, 8)], rtol=1e-12, atol=0)
    room = float(planner.scenario.program.parameters["platform.node.gpu.memory_size"].value)
    first = next(nodes for nodes in range(1, 100) if needed(nodes) <= room)
    assert planner.least_nodes() == first == 3
    np.testing.assert_array_equal(np.isfinite(strong.time), [False, False, True, True, True])
    assert "does not fit the device" in strong.reasons[0]
    assert strong.efficiency[2] == 1.0
    np.testing.assert_array_equal(planner.scaling("weak", [1, 2]).memory, [share * 4e9] * 2)
    assert Planner(Scenario.open("jacobi2d_strong")).least_nodes() is None


def test_a_plan_of_full_nodes_does_not_depend_on_the_ranks_of_the_file():
    sets = {"application.memory_size": "1 GB", "application.ranks_per_gpu": "2", RANKS: "1"}
    assert Planner(Scenario.open("jacobi2d_strong", overrides=sets)).ranks_per_device == 2


def test_an_iteration_without_time_has_no_efficiency():
    """A rank alone sends nothing: its reduction takes no time."""
    text = (
        'platform = "summit"\n[application]\nname = "t"\nrank_count = 2\nranks_per_node = 1\niteration_count = 1\n'
        '[application.grid]\nscaling = "strong"\ncells = { x = 64 }\n'
        '[application.phases.sum]\nkind = "collective"\nmodel = "postal"\nalgorithm = "ring"\nmessage_size = "8 B"\n'
    )
    found = scaling_study(Scenario(parse_document(text, "t.toml")), [1, 2], "50%", "scaling")
    assert "fewest node-hours: 1 node, 0 s, 0 node-hours" in found.summary()


FORMULA = """
platform = "summit"
[application]
name = "t"
rank_count = 6
iteration_count = 10
[application.grid]
scaling = "strong"
cells = { x = 1_000_000 }
[application.phases.work]
kind = "overhead"
overhead_time = "= 1 us * application.grid.cells.x / application.rank_count"
[application.phases.tree]
kind = "overhead"
overhead_time = "= 300 us * log2(application.rank_count / 6)"
"""


@pytest.mark.parametrize("efficiency", [0.5, 0.8])
def test_the_isoefficiency_of_a_tree_is_p_log_p(efficiency):
    planner = Planner(Scenario(parse_document(FORMULA, "t.toml")))
    found = isoefficiency(planner, efficiency, NODES)
    ranks = 6.0 * np.array(NODES[1:])
    # E = W a / (W a + b P log P) against the 6 ranks of one node, where log P is 0.
    expected = efficiency / (1 - efficiency) * 300 * ranks * np.log2(ranks / 6)
    np.testing.assert_array_equal(found.nodes, NODES[1:])
    assert_allclose(found.cells, expected, rtol=3e-5, atol=1)
    assert_allclose(found.growth, found.cells / 1e6, rtol=1e-12, atol=0)
    assert_allclose(found.time, expected * 1e-6 / ranks / efficiency, rtol=1e-4, atol=0)
    exponent, first, last = found.law()
    upper = expected[[2, -1]], ranks[[2, -1]]
    assert_allclose(exponent, np.diff(np.log(upper[0]))[0] / np.diff(np.log(upper[1]))[0], rtol=1e-3, atol=0)
    assert (first, last) == (8, 64)


def test_runs_of_the_grown_grid_have_the_efficiency():
    # More than a device has, which refuses no base.
    sets = {"application.memory_size": "17 GB", "application.ranks_per_gpu": "2"}
    scenario = Scenario.open("jacobi2d_strong", overrides=sets)
    found = isoefficiency(Planner(scenario), 0.8, [1, 8])
    side = np.sqrt(found.cells[0])
    cells = {f"application.grid.cells.{key}": f"{side:.0f}" for key in "xy"}

    def time(ranks):
        changed = scenario.changed({**sets, RANKS: str(ranks), "application.memory_size": "0 B", **cells})
        return float(run_whole(changed, Grid()).columns["iteration_time"])

    assert side % 1 == 0
    assert_allclose(time(12) / time(96) / 8, 0.8, rtol=1e-3, atol=0)
    assert_allclose(found.memory, 2 * 17e9 * np.ceil(side / 12) * np.ceil(side / 8) / 8192**2, rtol=1e-12, atol=0)


def test_an_efficiency_that_no_problem_reaches_is_an_infeasible_point(whatif_main, tmp_path):
    (tmp_path / "t.toml").write_text(FORMULA.replace("300 us *", "1 us * application.grid.cells.x *"))
    code, out, err = whatif_main("scale", "t.toml", "--show", "isoefficiency", "--nodes", "2 .. 64")
    assert (code, out) == (4, "")
    assert "no grid up to 2^30 times as large" in err


def test_problems_larger_than_the_device_memory_are_reported(whatif_main):
    asked = ("scale", "jacobi2d_strong", "--nodes", "1, 64, 512", "--show", "isoefficiency", "--format", "csv")
    code, out, err = whatif_main(*asked, "--set", "application.memory_size=8 GB")
    memory = [float(row["memory [B]"]) for row in csv.DictReader(io.StringIO(out))]
    device = float(Scenario.open("jacobi2d_strong").program.parameters["platform.node.gpu.memory_size"].value)
    assert code == 0
    assert max(memory) <= device
    assert "need more memory" not in err
    code, out, err = whatif_main(*asked, "--set", "application.memory_size=16 GB", "--efficiency", "80%")
    memory = [float(row["memory [B]"]) for row in csv.DictReader(io.StringIO(out))]
    count = sum(size > device for size in memory)
    assert count > 0
    assert f"{count} of 2 need more memory than a device has" in err


def test_the_verb_prints_tables_answers_and_pictures(whatif_main):
    code, out, err = whatif_main("scale", "jacobi2d", "--nodes", "1 .. 6000", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["nodes"] for row in rows[:14]] == [*(f"{2.0**power}" for power in range(13)), "6000.0"]
    assert {row["scaling"] for row in rows} == {"strong", "weak"}
    # The 3.3 TB of the grid fit the GPUs of 64 nodes.
    assert (
        "8 of 28 points infeasible: the memory of a rank (application.memory_size, at least one copy of its cells) does"
        in err
    )
    assert [row["infeasible"] == "" for row in rows[:14]] == [False] * 6 + [True] * 7 + [False]
    (home,) = (row for row in rows if (row["scaling"], row["nodes"]) == ("weak", "256.0"))
    assert_allclose(float(home["node_hours"]), 256 * 100 * float(home["iteration_time [s]"]) / 3600, rtol=1e-12, atol=0)
    assert "memory [B]" not in home
    code, out, _ = whatif_main("scale", "minimd", "--nodes", "1, 2, 8", "--show", "answers", "--format", "json")
    assert code == 0
    assert [row["nodes"] for row in json.loads(out)["rows"]] == [8, 8, 1, 8]
    for show in ("scaling", "isoefficiency"):
        code, out, err = whatif_main("scale", "minimd", "--nodes", "1 .. 8", "--show", show, "--plot")
        assert (code, "nodes" in out) == (0, True)
        assert "the same at all numbers of ranks: overhead" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--nodes", "0 .. 4"], 2, "from at least 1 upwards"),
        (["--nodes", "1.5, 2"], 2, "--nodes 1.5, 2: `1.5` is not allowed"),
        (["--nodes", "1 s"], 2, "`1 s` is in s"),
        (["--efficiency", "120%"], 2, "expected a share above 0"),
        (["--nodes", "5000 .. 6000"], 4, "the ranks need more nodes than the platform has"),
        (["--nodes", "5000 .. 10000", "--show", "isoefficiency"], 4, "the ranks need more nodes than the platform has"),
        (["--nodes", "1", "--show", "isoefficiency"], 2, "at least two numbers of nodes"),
        (["--nodes", "1 .. 8", "--set", "application.memory_size=17 GB"], 4, "the whole grid has room on"),
    ],
)
def test_invalid_options_are_refused(whatif_main, arguments, code, message):
    found, out, err = whatif_main("scale", "jacobi2d", *arguments)
    assert (found, out) == (code, "")
    assert message in err


def test_without_a_grid_only_weak_scaling_is_told_and_a_given_decomposition_gives_way():
    text = FORMULA.replace('[application.grid]\nscaling = "strong"\ncells = { x = 1_000_000 }\n', "")
    planner = Planner(Scenario(parse_document(text.replace("application.grid.cells.x", "6"), "t.toml")))
    assert planner.modes() == ("weak",)
    assert "only weak scaling" in planner.remarks[0]
    assert_allclose(planner.scaling("weak", [1, 2]).time, [1e-6, 0.5e-6 + 300e-6], rtol=1e-12, atol=0)
    grid = "application.grid"
    sets = {RANKS: "96", f"{grid}.decomposition": "given", f"{grid}.ranks.x": "96", f"{grid}.ranks.y": "1"}
    given = Planner(Scenario.open("jacobi2d", overrides=sets))
    np.testing.assert_array_equal(given.whole, [96 * 16384, 16384])
    assert "`balanced` here" in given.remarks[0]
    assert np.isfinite(given.scaling("strong", [4]).time).all()


def test_without_a_grid_the_memory_of_a_rank_stays_that_of_the_file():
    scenario = Scenario.open("llama_training", overrides={"application.memory_size": "10 GB"})
    assert Planner(scenario).modes() == ("strong",)
    np.testing.assert_array_equal(Planner(scenario).scaling("strong", [8, 16]).memory, [1e10, 1e10])
    assert required_nodes(scenario, "iteration_time <= 11 s").count == 16


def test_the_memory_of_a_node_of_sockets_is_shared_by_its_ranks():
    sets = {"application.ranks_per_node": "4", "application.memory_size": "6 GB"}
    planner = Planner(Scenario.open("minife", platform="fugaku", overrides=sets))
    assert (planner.ranks_per_device, planner.device_memory) == (4, 32 * 2**30)
    plan = planner.scaling("weak", [1.0, 2.0])
    assert plan.memory.tolist() == [24e9, 24e9]
