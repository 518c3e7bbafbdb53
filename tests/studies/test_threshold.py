"""Values that meet a target: against inverted formulas, against runs, and where none does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.one_phase import one_phase
from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError
from whatif.schema.toml import parse_document
from whatif.studies.threshold import near_numbers, parse_target, seek

BANDWIDTH = "platform.node.gpu.dram_bandwidth"


def sought(formula, x, target, low=None, high=None):
    program = Scenario(parse_document(one_phase(f"= 1 s * ({formula})", x=x), "t.toml")).program
    return seek(program, "parameters.x", parse_target(target, program), low, high)


@pytest.mark.parametrize(
    ("formula", "target", "expected"),
    [
        ("12 / x", "iteration_time <= 3 s", 4.0),
        ("12 / x", "terms.work <= 25 %", 8.0),
        ("12 / x", "total_time >= 24 s", 0.5),
        ("x * x + 5", "iteration_time < 7.25 s", 1.5),
        # Of two ways out, the nearer one: (x - 2)^2 is 1/4 at 1.5 and at 2.5, above that x = 2.6.
        ("1 + (x - 2.6) ** 2", "iteration_time >= 1.49 s", 1.9),
        # 1.1 is nearer to 2 by difference, 3.1 by factor.
        ("1 + (x - 2.1) ** 2", "iteration_time >= 2 s", 3.1),
    ],
)
def test_the_value_is_that_of_the_inverted_formula(formula, target, expected):
    found = sought(formula, 2.0, target)
    assert found.is_met
    assert_allclose(found.value, expected, rtol=1e-9, atol=0)


def test_a_target_that_is_met_parameters_the_value_as_it_is():
    found = sought("12 / x", 2.0, "iteration_time <= 6 s")
    assert (found.value, found.now, found.then, found.is_met) == (2.0, 6.0, 6.0, True)


def test_whole_numbers_stay_whole_and_the_last_that_misses_is_next_to_the_first_that_meets():
    scenario = Scenario.open("minife")
    program = scenario.program
    found = seek(program, "application.grid.cells.x", parse_target("iteration_time <= 4 ms", program), 100.0, 300.0)

    def time(cells):
        sets = {"application.grid.cells.x": str(int(cells))}
        return float(run_whole(scenario.changed(sets), Grid()).columns["iteration_time"])

    assert found.value % 1 == 0
    assert time(found.value) == found.then <= 4e-3 < time(found.value + 1)


@pytest.mark.parametrize(
    ("target", "low", "high"),
    [
        ("iteration_time <= 11.73 ms", 700, 1800),
        ("iteration_time <= 11.745 ms", 1400, 2000),
        ("iteration_time >= 11.84 ms", 1500, 2400),
        ("iteration_time <= 1 ms", 1500, 1600),
    ],
)
def test_of_whole_numbers_the_nearest_is_found(target, low, high):
    """Every number of ranks of jacobi2d on Summit; those that do not divide the grid well are slower."""
    program = Scenario.open("jacobi2d").program
    ranks, wanted = np.arange(low, high + 1.0), parse_target(target, program)
    times = evaluate(program, {"application.rank_count": ranks}).numbers("iteration.time")
    nearest = np.abs(np.log(ranks / 1536))
    met = wanted.met(times)
    found = seek(program, "application.rank_count", wanted, float(low), float(high))
    assert found.is_met == met.any()
    assert found.tried_all
    assert found.then == (times[np.where(met, nearest, np.inf).argmin()] if met.any() else np.nanmin(times))
    assert not met.any() or found.value == ranks[np.where(met, nearest, np.inf).argmin()]


@pytest.mark.parametrize(("target", "expected"), [("3 s", 512), ("1.6 s", 1024)])
def test_whole_numbers_of_which_few_have_a_result_are_found(target, expected):
    program = Scenario.open("llama_training").program
    found = seek(program, "application.rank_count", parse_target(f"iteration_time <= {target}", program))
    assert (found.value, found.is_met) == (expected, True)


def test_numbers_that_were_not_tried_are_a_doubt():
    program = Scenario.open("llama_training").program
    found = seek(program, "application.rank_count", parse_target("iteration_time <= 1 ms", program))
    assert not found.tried_all
    assert found.obstacle().endswith("; not all whole numbers were tried")


def test_the_number_of_tried_values_is_reported():
    program, lines = Scenario.open("jacobi2d").program, []
    target = parse_target("iteration_time <= 1 ms", program)
    found = seek(program, "application.rank_count", target, 6.0, 300.0, lines.append)
    assert found.tried_all
    assert lines == [f"{at} of 295 values of application.rank_count are tried" for at in (0, 256)] + [
        f"{at} of 296 values of application.rank_count are tried" for at in (0, 256)
    ]


def test_the_result_equals_that_of_a_run_with_the_value():
    scenario = Scenario.open("minife")
    found = seek(scenario.program, BANDWIDTH, parse_target("iteration_time <= 4 ms", scenario.program))
    answer = run_whole(scenario.changed({BANDWIDTH: f"{found.value!r} B/s"}), Grid())
    assert_allclose(answer.columns["iteration_time"], found.then, rtol=1e-12, atol=0)
    assert_allclose(found.then, 4e-3, rtol=1e-9, atol=0)
    assert found.then <= 4e-3


def test_without_a_solution_the_closest_value_and_longest_phases_are_reported():
    program = Scenario.open("minife").program
    found = seek(program, BANDWIDTH, parse_target("iteration_time <= 1 ms", program))
    assert not found.is_met
    assert found.then > 1e-3
    assert list(found.phases)[:2] == ["matvec_inner", "halo"]
    assert_allclose(sum(found.phases.values()), found.then, rtol=1e-12, atol=0)


def test_a_range_that_is_given_is_kept_and_points_that_cannot_exist_meet_nothing():
    found = sought("12 / x", 2.0, "iteration_time <= 3 s", 1.0, 3.0)
    assert (found.is_met, found.value) == (False, 3.0)
    # The present value meets this one, but lies outside the range.
    assert sought("12 / x", 2.0, "iteration_time <= 6 s", 3.0, 5.0).value == 3.0
    found = sought("sqrt(x - 1)", 2.0, "iteration_time <= 0.5 s", 0.5, 4.0)
    assert_allclose(found.value, 1.25, rtol=1e-9, atol=0)
    with pytest.raises(InfeasiblePointError, match="infeasible"):
        sought("sqrt(x - 10)", 2.0, "iteration_time <= 0.5 s", 1.0, 4.0)
    with pytest.raises(UsageError, match="no range"):
        sought("x", 2.0, "iteration_time <= 1 s", 3.0, 3.0)
    with pytest.raises(UsageError, match="state the range to search"):
        sought("x + 4", 0.0, "iteration_time <= 1 s")
    assert_allclose(sought("x + 4", 0.0, "iteration_time <= 3 s", -5.0, 5.0).value, -1.0, rtol=1e-9, atol=0)


def test_a_parameter_that_decides_feasibility_has_an_effect():
    memory = "application.memory_size"
    program = Scenario.open("jacobi2d_strong", overrides={memory: "40 GB"}).program
    target = parse_target("iteration_time <= 20 ms", program)
    room = float(program.parameters["platform.node.gpu.memory_size"].value)
    assert_allclose(seek(program, memory, target).value, room, rtol=1e-9, atol=0)
    with pytest.raises(InfeasiblePointError, match=r"between 20 GB and 30 GB has .* does not fit the device"):
        seek(program, memory, target, 20e9, 30e9)


def test_the_verb_prints_the_value_or_the_longest_phases(whatif_main):
    code, out, _ = whatif_main(
        "seek", "minife", "--vary", BANDWIDTH, "--target", "iteration_time <= 4 ms", "--format", "csv"
    )
    assert code == 0
    heading, row = (line.split(",") for line in out.splitlines())
    assert heading == [
        "parameter",
        "now [B/s]",
        "sought [B/s]",
        "factor",
        "iteration_time now [s]",
        "iteration_time then [s]",
    ]
    assert_allclose(float(row[2]) / float(row[1]), float(row[3]), rtol=1e-12, atol=0)
    assert np.isclose(float(row[3]), 1.346, rtol=1e-2, atol=0)
    code, out, err = whatif_main("seek", "minife", "--vary", BANDWIDTH, "--target", "iteration_time <= 1 ms")
    assert (code, out) == (4, "")
    assert f"no value of {BANDWIDTH} from 779.4 MB/s to 779.4 TB/s meets" in err
    assert "at best it is 1.192 ms" in err
    assert "longest phases: matvec_inner 493 us" in err
    code, out, err = whatif_main("seek", "minife", "--vary", BANDWIDTH, "--target", "iteration_time <= 1 s")
    assert (code, err.splitlines()[-1]) == (0, "iteration_time <= 1 s is already met")
    code, _, err = whatif_main(
        "seek", "minife", "--vary", BANDWIDTH, "--target", "iteration_time <= 4 ms", "--points", "60", "--seed", "3"
    )
    assert (code, "60 points in 1 search; seed 3" in err) == (0, True)


@pytest.mark.parametrize(
    ("vary", "target", "message"),
    [
        (BANDWIDTH, "iteration_time <= 4 GB", "iteration_time is in s; `4 GB` is not"),
        (BANDWIDTH, "iteration_time <= 10", "`10` has no unit; write a quantity in s, such as `10 s`"),
        (BANDWIDTH, "iteration_time = 4 ms", "expected RESULT <= TIME"),
        (BANDWIDTH, "iteration_tine <= 4 ms", "did you mean `iteration_time`"),
        (BANDWIDTH, "iteration_time <= e %", "`e %` is not a share"),
        (BANDWIDTH, "terms.halo <= 1 us", f"`{BANDWIDTH}` has no effect on terms.halo"),
        ("platform.node.gpu.dram_bandwidht", "iteration_time <= 4 ms", f"did you mean `{BANDWIDTH}`"),
        ("platform.name", "iteration_time <= 4 ms", "no result depends on this text"),
        (f"{BANDWIDTH}=1 s .. 2 s", "iteration_time <= 4 ms", "`1 s` is in s"),
        (f"{BANDWIDTH}=4 TB/s .. 2 TB/s", "iteration_time <= 4 ms", "LOW must be below HIGH in 4 TB/s .. 2 TB/s"),
        (f"{BANDWIDTH}=1 GB/s", "iteration_time <= 4 ms", "expected PATH, or PATH=LOW .. HIGH"),
        (f"{BANDWIDTH}== 3 .. 4 GB/s", "iteration_time <= 4 ms", "is not a number"),
    ],
)
def test_invalid_options_are_refused(whatif_main, vary, target, message):
    code, out, err = whatif_main("seek", "minife", "--vary", vary, "--target", target)
    assert (code, out) == (2, "")
    assert message in err


def test_whole_numbers_far_from_both_ends_are_tried_from_the_present_one():
    """A present number beyond the most that are tried on either side."""
    near, is_all = near_numbers(30_000, 1, 30_000_000)
    assert near[:3].tolist() == [30_000, 30_001, 29_999]
    assert not is_all


def test_a_value_from_which_a_whole_number_is_computed_is_sought_among_whole_numbers():
    program = Scenario.open("game_of_life").program
    found = seek(program, "parameters.cells", parse_target("iteration_time >= 101 %", program))
    cells = np.arange(1e8, 1.03e8)
    times = evaluate(program, {"parameters.cells": cells}).numbers("iteration.time")
    first = int(np.argmax(times >= found.target.bound))
    assert (found.value, found.then) == (cells[first], times[first])
