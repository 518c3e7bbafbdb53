"""Values that meet targets, break-even points and Pareto fronts as objects of the library."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.errors import InfeasiblePointError, UsageError

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
RANKS = "application.rank_count"


def time(scenario, **overrides):
    return float(whatif.run(scenario, overrides=overrides)["iteration_time"])


def test_a_sought_value_meets_the_target_and_is_a_table_with_units():
    found = whatif.seek("minife", BANDWIDTH, "iteration_time <= 4 ms")
    assert found.is_met
    assert found.obstacle() == ""
    assert_allclose(time("minife", **{BANDWIDTH: f"{found.values[BANDWIDTH]!r} B/s"}), 4e-3, rtol=1e-9, atol=0)
    plain = found.to_dict()
    assert plain["units"]["sought"] == "B/s"
    assert plain["rows"][0]["sought"] == found.values[BANDWIDTH]
    assert found.to_pandas()["factor"][0] > 1
    assert len(repr(found).splitlines()) == 3


def test_an_unmet_target_has_the_closest_value_and_the_reason():
    found = whatif.seek("minife", [BANDWIDTH], ["iteration_time <= 1 ms"])
    assert not found.is_met
    assert "longest phases: matvec_inner" in found.obstacle()
    searched = whatif.seek("minife", [BANDWIDTH], ["iteration_time <= 1 ms"], points=100)
    assert not searched.is_met
    assert "nothing in these ranges meets iteration_time <= 1 ms" in searched.obstacle()


def test_a_search_has_the_best_choices_and_values_and_says_what_binds():
    heard = []
    vary = {"platform": ["summit", "lassen"], BANDWIDTH: ""}
    target = "iteration_time <= 8 ms"
    found = whatif.seek("jacobi2d", vary, target, minimise=BANDWIDTH, points=1500, progress=heard.append)
    assert (found.is_met, found.choices) == (True, {"platform": "lassen"})
    assert heard[-1] == f"platform=lassen: {found.best.points:,} points"
    assert max(answer.points for answer in found.answers) <= 1500
    assert any(note.startswith("next best: platform=summit, ") for note in found.notes)
    lassen = whatif.load("jacobi2d", platform="lassen")
    assert_allclose(time(lassen, **{BANDWIDTH: f"{found.values[BANDWIDTH]!r} B/s"}), 8e-3, rtol=1e-9, atol=0)
    frame = found.to_pandas().set_index("name")
    assert frame.loc["iteration_time", "note"] == "<= 8 ms, binds"
    assert frame.loc[BANDWIDTH, "sought"] == found.values[BANDWIDTH]
    assert found.readable_table().to_dict()["rows"][2]["sought"] == "8 ms"


def test_the_same_seed_gives_the_same_answer_with_and_without_progress():
    first, second = (
        whatif.seek("jacobi2d", BANDWIDTH, minimise="total_time", seed=7, points=200, progress=report).to_dict()
        for report in (None, lambda text: None)
    )
    assert first == second


def test_no_feasible_combination_is_an_obstacle_and_an_empty_table():
    found = whatif.seek("jacobi2d", "application.phases.halo.model=loggp", minimise="total_time")
    assert (found.is_met, dict(found.values), dict(found.choices), found.best) == (False, {}, {}, None)
    assert found.obstacle() == "infeasible: no combination of these choices is feasible"
    assert any("loggp" in note for note in found.notes)
    assert found.to_dict()["rows"] == []
    assert repr(found).startswith("<SearchResult: 0 rows>")


def test_break_even_is_where_both_platforms_have_the_same_result():
    found = whatif.break_even("jacobi2d", BANDWIDTH, "lassen")
    lassen = time(whatif.load("jacobi2d", platform="lassen"))
    (crossing,) = found.crossings
    assert_allclose(time("jacobi2d", **{BANDWIDTH: f"{crossing.at[BANDWIDTH]!r} B/s"}), lassen, rtol=1e-9, atol=0)
    (row,) = found.to_dict()["rows"]
    assert (row["less_below"], row["less_above"]) == ("Lassen", "Summit")
    assert found.to_pandas().attrs["units"][BANDWIDTH] == "B/s"
    assert [line.label for line in found.picture().lines] == ["Summit", "Lassen"]
    assert repr(found).startswith("<BreakEven: 1 row>")


def test_a_platform_built_in_python_can_be_the_other_one():
    lassen = whatif.Platform.open("lassen")
    found = whatif.break_even("jacobi2d", BANDWIDTH, lassen)
    assert found.to_dict() == whatif.break_even("jacobi2d", BANDWIDTH, "lassen").to_dict()
    assert found.to_dict() == whatif.break_even("jacobi2d", BANDWIDTH, "platform = lassen").to_dict()


def test_results_that_are_never_equal_have_a_leader():
    model = "application.phases.halo.model=postal"
    found = whatif.break_even("jacobi2d", "application.phases.halo.halo_width=1 .. 64", model, result="terms.halo")
    assert (found.crossings, found.leaders()) == ((), ["model=postal"])
    assert "model=postal has the smaller one over the whole range" in found.obstacle()
    assert found.to_dict()["rows"] == []


def test_a_front_has_no_point_that_another_one_beats():
    found = whatif.pareto_front(
        "jacobi2d_strong", {RANKS: [6, 12, 24, 48]}, "iteration_time, application.rank_count", within=0.5
    )
    times = [time("jacobi2d_strong", **{RANKS: count}) for count in (48, 24, 12, 6)]
    assert_allclose(found.results["iteration_time"], times, rtol=1e-12, atol=0)
    assert len(found.to_pandas()) == len(found.to_dict()["rows"]) == 4
    assert (found.within, found.obstacle()) == (0.5, "")
    assert "4 of 4 points are on the front" in found.notes
    assert len(found.picture().lines) == 1
    assert len(repr(found).splitlines()) == 6
    nothing = whatif.pareto_front(
        "jacobi2d_strong", f"{RANKS}=6, 12", ["total_time", f"max {RANKS}"], targets="iteration_time <= 1 ns"
    )
    assert nothing.obstacle() == "infeasible: none of 2 points meets iteration_time <= 1 ns"
    assert np.size(nothing.results["total_time"]) == len(nothing.to_pandas()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BANDWIDTH,), "state an aim"),
        (([], "total_time <= 1 s"), "state at least one parameter"),
        (({BANDWIDTH: "1 TB/s .. 2 TB/s"}, "total_time <= 1 s", 0), "--points 0: expected at least 1"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    vary, *targets = arguments[:2]
    with pytest.raises(UsageError, match=message):
        whatif.seek("jacobi2d", vary, *targets, points=arguments[2] if len(arguments) > 2 else None)


def test_invalid_shares_and_ranges_without_results_are_refused():
    with pytest.raises(UsageError, match="--within 0: expected a share above 0"):
        whatif.pareto_front("jacobi2d", BANDWIDTH, ["total_time", BANDWIDTH], within=0)
    full = whatif.load("jacobi2d_strong", overrides={"application.memory_size": "40 GB"})
    with pytest.raises(InfeasiblePointError, match="does not fit the device"):
        whatif.seek(full, "application.memory_size=20 GB .. 30 GB", "iteration_time <= 20 ms")
