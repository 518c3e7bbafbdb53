"""Pareto fronts: the filter against all pairs, the front against a sweep."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace

import numpy as np
import pytest

import whatif
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import parse_option
from whatif.studies.pareto import front, non_dominated
from whatif.studies.population import Objective
from whatif.studies.search_space import parse_varied
from whatif.studies.threshold import parse_target

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
RANKS = "application.rank_count"


def by_pairs(costs):
    """No other point is at most as large in all, and smaller in one."""
    at_most = (costs[None] <= costs[:, None]).all(axis=2)
    return ~(at_most & (costs[None] < costs[:, None]).any(axis=2)).any(axis=1) & ~np.isnan(costs).any(axis=1)


@pytest.mark.parametrize("objectives", [2, 3, 4])
@pytest.mark.parametrize("digits", [1, 9])
def test_the_filter_keeps_what_all_pairs_keep(objectives, digits):
    random = np.random.default_rng(objectives)
    # With one digit there are many ties and many equal points.
    costs = np.round(random.random((700, objectives)), digits)
    costs[::50] = np.nan
    np.testing.assert_array_equal(non_dominated(costs), by_pairs(costs))
    assert not non_dominated(np.full((3, objectives), np.nan)).any()
    assert non_dominated(np.ones((3, objectives))).all()
    assert non_dominated(np.empty((0, objectives))).size == 0


def test_a_front_of_many_points_is_that_of_all_pairs_and_quick():
    angle = np.random.default_rng(1).random(3000) * np.pi / 2
    circle = np.stack([1 - np.cos(angle), 1 - np.sin(angle)], axis=1)
    three = np.column_stack([circle, np.zeros(3000)])
    assert non_dominated(circle).all()
    assert non_dominated(three).all()
    costs = np.random.default_rng(2).random((200_000, 3))
    began = time.process_time()
    kept = non_dominated(costs)
    assert time.process_time() - began < 2
    # None of the others can be kept: each falls to one of those.
    some = costs[~kept][:2000]
    assert (costs[kept][None] <= some[:, None]).all(axis=2).any(axis=1).all()
    np.testing.assert_array_equal(by_pairs(costs[kept]), np.ones(kept.sum(), dtype=bool))


def test_the_front_is_that_of_the_whole_sweep():
    scenario = Scenario.open("jacobi2d_strong")
    program = scenario.program
    varied = [parse_varied(text, program) for text in (f"{RANKS}=6 .. 200", "platform=summit, lassen")]
    objectives = [Objective("iteration_time"), Objective(RANKS), Objective("terms.halo")]
    target = parse_target("iteration_time <= 10 ms", program)
    found = front(scenario, varied, objectives, [target])
    rows = []
    for machine in ("summit", "lassen"):
        result = run_whole(
            scenario.on_platform(machine), Grid((parse_option(f"{RANKS}=6 .. 200 step 1", program, 1000),))
        )
        columns = result.columns["iteration_time"], np.arange(6.0, 201.0), result.terms["halo"]
        rows += [(*point, machine) for point in zip(*columns, strict=True) if point[0] <= 10e-3]
    kept = by_pairs(np.array([row[:3] for row in rows], dtype=np.float64))
    expected = sorted(row for row, keep in zip(rows, kept, strict=True) if keep)
    machines = [choices["platform"] for choices in found.choices]
    assert sorted(zip(*found.results.values(), machines, strict=True)) == expected
    assert found.points == 2 * 195
    np.testing.assert_array_equal(found.values[RANKS], found.results[RANKS])
    assert (np.diff(found.results["iteration_time"]) >= 0).all()


def test_the_verb_prints_the_front_and_draws_it(whatif_main):
    asked = (
        "seek",
        "jacobi2d",
        "--vary",
        f"{BANDWIDTH}=1 TB/s .. 4 TB/s",
        "--pareto",
        f"iteration_time,max {BANDWIDTH}",
    )
    code, out, err = whatif_main(*asked, "--points", "9", "--format", "csv")
    assert (code, "1 of 9 points" in err) == (0, True)
    (row,) = csv.DictReader(io.StringIO(out))
    assert float(row[f"{BANDWIDTH} [B/s]"]) == 4e12
    cost = ("--pareto", f"iteration_time,{BANDWIDTH}", "--points", "9")
    code, out, err = whatif_main(*asked[:4], *cost, "--plot")
    assert (code, "9 of 9 points" in err, "Pareto front" in out) == (0, True, True)
    code, out, err = whatif_main(*asked[:4], *cost, "--target", "iteration_time <= 1 ms")
    assert (code, out) == (4, "")
    assert "none of 9 points meets iteration_time <= 1 ms" in err


def test_an_interrupted_front_is_that_of_the_evaluated_points():
    def progress(count):
        raise KeyboardInterrupt

    scenario = Scenario.open("jacobi2d")
    varied = [parse_varied(text, scenario.program) for text in (BANDWIDTH, "platform=summit, lassen")]
    found = front(scenario, varied, [Objective("total_time"), Objective(BANDWIDTH)], points=5, progress=progress)
    assert (found.points, found.ended) == (5, False)
    assert {choices["platform"] for choices in found.choices} == {"summit"}


def test_a_front_reports_the_range_close_to_both_optima(whatif_main):
    """Against the sweep: the least of the larger excess, and the ends of the points whose excess is small."""
    vary = "parameters.power_limit=100 W .. 250 W"
    code, out, err = whatif_main(
        "seek",
        "training_power_limit",
        "--pareto",
        "total_time,energy",
        "--vary",
        vary,
        "--points",
        301,
        "--format",
        "csv",
    )
    rows = np.array([[float(cell) for cell in row[:3]] for row in list(csv.reader(io.StringIO(out)))[1:]])
    limit, excess = rows[:, 0], (rows[:, 1:] / rows[:, 1:].min(axis=0) - 1).max(axis=1)
    near = limit[excess <= 0.1]
    assert code == 0
    assert (
        f"best compromise: parameters.power_limit {limit[excess.argmin()]:.4g} W, where each result is within 7.0"
        in err
    )
    assert f"within 10 % of each best: parameters.power_limit {near.min():.4g} W to {near.max():.4g} W" in err


def test_the_best_compromise_names_choices_and_leaves_out_parameters_without_a_value():
    vary = {"platform": ["summit", "lassen"], RANKS: [6, 12, 24]}
    found = replace(whatif.pareto_front("jacobi2d_strong", vary, ["iteration_time", RANKS]), within=9)
    at = next(at for at, number in enumerate(found.values[RANKS]) if number == 12)
    machines = dict.fromkeys(choices["platform"] for choices in found.choices)
    best, near = found.summary()[-2:]
    assert best.startswith(f"best compromise: platform {found.choices[at]['platform']}, {RANKS} 12, where")
    assert near.endswith(f"of each best: platform {' or '.join(machines)}, {RANKS} 6 to 24")
    one = replace(found, values={RANKS: np.full_like(found.values[RANKS], 12.0)})
    assert one.summary()[-1].endswith(f", {RANKS} 12")
    some = np.where(found.values[RANKS] == 12, np.nan, found.values[RANKS])
    best, near = replace(found, values={RANKS: some}).summary()[-2:]
    assert best.startswith(f"best compromise: platform {found.choices[at]['platform']}, where")
    assert near.endswith(f"{RANKS} 6 to 24")
    assert any("platform summit" in text for text in replace(found, values={}).summary())
