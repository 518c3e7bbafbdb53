"""Break-even: against formulas, against every whole number of a range, and where there is none."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.one_phase import one_phase
from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import parse_option
from whatif.errors import UsageError
from whatif.schema.toml import parse_document
from whatif.studies.break_even import break_even
from whatif.studies.search_space import Varied, parse_varied

X, Y = "parameters.x", "parameters.y"


def crossings(first, second, *varied, **parameters):
    one, other = (
        Scenario(parse_document(one_phase(f"= 1 s * ({formula})", x=2.0, **parameters), "t.toml"))
        for formula in (first, second)
    )
    found = break_even(one, other, ("a", "b"), [parse_varied(text, one.program) for text in varied])
    return found, [(one.at[X], one.less_below, one.less_above) for one in found.crossings]


@pytest.mark.parametrize(
    ("first", "second", "span", "expected"),
    [
        ("12 / x + 1", "x + 2", X, [(3.0, "b", "a")]),
        ("(x - 1) * (x - 3) * (x - 5) + 50", "50 + 0 * x", f"{X}=0.5 .. 8",
         [(1.0, "a", "b"), (3.0, "b", "a"), (5.0, "a", "b")]),
        # Where both stay the same, and a jump of one of them over the other.
        ("max(x, 3)", "3 + 0 * x", f"{X}=1 .. 5", [(3.0, "both", "b")]),
        ("ceil(x)", "2.5 + 0 * x", f"{X}=1.1 .. 2.9", [(2.0, "a", "b")]),
        ("x", "2 * x", X, []),
        ("abs_x + x", "abs_x + x", X, []),
    ],
)  # fmt: skip
def test_every_crossing_is_found_with_who_leads_on_its_sides(first, second, span, expected):
    found, places = crossings(first, second, span, abs_x=1.0)
    assert [place[1:] for place in places] == [place[1:] for place in expected]
    assert_allclose([place[0] for place in places], [place[0] for place in expected], rtol=1e-11, atol=0)
    for one in found.crossings:
        assert one.at[X] == pytest.approx(2.0) or one.first == pytest.approx(one.second, rel=1e-9)


def test_a_change_across_values_without_a_result_is_found_beyond_them():
    scenario = Scenario.open("llama_training")
    path = "application.rank_count"
    other = scenario.changed({"application.plan.virtual_count": 10})
    found = break_even(scenario, other, ("as is", "10"), [parse_varied(f"{path}=64 .. 512", scenario.program)])
    assert [(one.at[path], one.less_below, one.less_above) for one in found.crossings] == [(256.0, "as is", "10")]
    assert found.crossings[0].second < found.crossings[0].first
    assert found.obstacle() == ""


def test_whole_numbers_are_all_compared_if_they_are_few_and_else_it_is_stated():
    one, other = (Scenario.open("jacobi2d").on_platform(name) for name in ("summit", "lassen"))
    ranks = np.arange(1500, 1701.0)
    times = [evaluate(it.program, {"application.rank_count": ranks}).numbers("iteration.time") for it in (one, other)]
    sign = np.sign(times[0] - times[1])
    sign = sign[np.isfinite(sign)]
    few = break_even(one, other, ("summit", "lassen"), [Varied("application.rank_count", 1500, 1700)])
    assert len(few.crossings) == np.count_nonzero(np.diff(sign)) > 5
    assert not any("at most one is found" in text for text in few.summary())
    one, other = (Scenario.open("llama_training").on_platform(name) for name in ("dgx_h100", "gb200_nvl72"))
    many = break_even(one, other, ("DGX H100", "GB200"), [Varied("application.rank_count")])
    assert any("of 64,000 whole numbers were tried" in text for text in many.summary())
    assert many.obstacle().endswith("GB200 has the smaller one at the 4 points with both")


def test_with_a_second_parameter_it_is_a_curve():
    found, places = crossings("12 / x + y", "x + 2 * y", X, f"{Y}=1, 2, 4, 30000", y=1.0)
    # 12 / x - x = y.
    expected = {y: (-y + np.sqrt(y * y + 48)) / 2 for y in (1.0, 2.0, 4.0, 30000.0)}
    assert [one.at[Y] for one in found.crossings] == [1.0, 2.0, 4.0]
    assert_allclose([place[0] for place in places], [expected[y] for y in (1.0, 2.0, 4.0)], rtol=1e-10, atol=0)
    assert found.leaders() == ["b", "b", "b", "a"]
    # Between listed values there is none.
    assert crossings("12 / x + 1", "x + 2", f"{X}=1, 2, 4")[1] == [(4.0, "b", "a")]
    assert len(crossings("12 / x + y", "x + 2 * y", X, f"{Y}=1 .. 4", y=1.0)[0].seconds) == 17


def test_machines_cross_at_the_whole_numbers_where_single_runs_do():
    scenario = Scenario.open("jacobi2d")
    other = scenario.on_platform("lassen")
    path = "application.rank_count"
    found = break_even(scenario, other, ("summit", "lassen"), [parse_varied(f"{path}=1 .. 30", scenario.program)])
    axis = Grid((parse_option(f"{path}=1 .. 30 step 1", scenario.program, 100),))
    times = [run_whole(one, axis).columns["iteration_time"] for one in (scenario, other)]
    leaders = np.sign(times[0] - times[1])
    places = np.flatnonzero(np.diff(leaders))
    # Equal at a single count, they are met there.
    expected = [n + 2.0 for n in places if not (leaders[n] == 0 and n > 0 and leaders[n - 1] != 0)]
    assert [one.at[path] for one in found.crossings] == expected
    assert len(expected) > 5


def test_a_parameter_of_the_machine_moves_on_the_first_machine_only(whatif_main):
    path = "platform.node.gpu.dram_bandwidth"
    code, _, err = whatif_main("seek", "jacobi2d", "--vary", path, "--equal-to", "lasen")
    assert (code, "--equal-to: platform: `lasen`" in err) == (3, True)
    code, out, _ = whatif_main("seek", "jacobi2d", "--vary", path, "--equal-to", "lassen", "--format", "csv")
    assert code == 0
    (row,) = csv.DictReader(io.StringIO(out))
    scenario = Scenario.open("jacobi2d")
    lassen = float(run_whole(scenario.on_platform("lassen"), Grid()).columns["iteration_time"])
    sets = {path: f"{float(row[f'{path} [B/s]'])!r} B/s"}
    assert_allclose(
        float(run_whole(scenario.changed(sets), Grid()).columns["iteration_time"]), lassen, rtol=1e-10, atol=0
    )
    assert (row["less_below"], row["less_above"]) == ("Lassen", "Summit")
    assert float(row["Lassen iteration_time [s]"]) == lassen


def test_two_choices_on_one_machine_and_the_pictures(whatif_main):
    model, width = "application.phases.halo.model", "application.phases.halo.halo_width"
    asked = (
        "seek",
        "jacobi2d",
        "--vary",
        f"{width}=1 .. 4096",
        "--equal-to",
        f"{model}=postal",
        "--result",
        "terms.halo",
    )
    code, out, err = whatif_main(*asked)
    assert (code, out) == (4, "")
    assert "model=postal has the smaller one over the whole range" in err
    bandwidth = "platform.node.gpu.dram_bandwidth"
    code, out, _ = whatif_main("seek", "jacobi2d", "--vary", bandwidth, "--equal-to", "lassen", "--plot")
    assert (code, "Summit" in out, "Lassen" in out) == (0, True, True)
    curve = ("--vary", "application.grid.cells.x=1024 .. 16384")
    code, out, _ = whatif_main("seek", "jacobi2d", "--vary", bandwidth, *curve, "--equal-to", "frontier", "--plot")
    assert (code, "break-even" in out) == (0, True)


def test_invalid_targets_are_refused():
    with pytest.raises(UsageError, match="has no effect on iteration_time"):
        crossings("x", "2 * x", Y, y=1.0)
    with pytest.raises(UsageError, match="over one parameter"):
        crossings("x", "2 * x", X, Y, "platform=summit, lassen", y=1.0)
