"""Machines ranked over applications, against hand arithmetic and single runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import whatif
from tests.one_phase import one_phase
from whatif.axes import Axis, Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling, shares_of_the_best
from whatif.errors import InfeasiblePointError, UsageError
from whatif.schema.toml import parse_document
from whatif.studies import required_nodes as required
from whatif.studies.ranking import ranking
from whatif.studies.required_nodes import RequiredNodes, required_nodes
from whatif.studies.scaling import Planner


def scenario(formula, ranks=4):
    return Scenario(parse_document(one_phase(f"= 1 s * {formula}", ranks=ranks), "t.toml"))


def applications():
    """6 s and 10 s on a node of Summit with its 6 GPUs; 4 s and 15 s on one of Lassen with 4."""
    return {"a": scenario("platform.node.gpu_count"), "b": scenario("60 / platform.node.gpu_count")}


def test_the_merit_is_the_weighted_geometric_mean_of_the_speedups():
    found = ranking(applications(), ["summit", "lassen"], {"a": 3.0})
    lassen, summit = found.standings
    assert (lassen.platform, summit.platform) == ("lassen", "summit")
    assert found.weights == {"a": 0.75, "b": 0.25}
    assert found.references == {"a": 6.0, "b": 10.0}
    assert_allclose([lassen.speedups["a"], lassen.speedups["b"]], [1.5, 2 / 3], rtol=1e-12, atol=0)
    assert_allclose([lassen.merit, summit.merit], [1.5**0.5, 1.0], rtol=1e-12, atol=0)


def test_the_weight_at_which_another_platform_leads_is_reported():
    found = ranking(applications(), ["summit", "lassen"], {"a": 3.0})
    assert [(turn.application, turn.leader) for turn in found.turns] == [("a", "summit"), ("b", "summit")]
    assert_allclose([turn.turns_at for turn in found.turns], [0.5, 0.5], rtol=1e-12, atol=0)
    for weight, leader in ((0.49, "summit"), (0.51, "lassen")):
        weights = {"a": weight, "b": 1 - weight}
        assert ranking(applications(), ["summit", "lassen"], weights).standings[0].platform == leader
    alone = ranking({"a": applications()["a"]}, ["summit", "lassen"])
    assert (alone.standings[0].platform, alone.turns) == ("lassen", ())


def test_an_application_of_weight_zero_without_an_answer_hides_no_turn():
    # Lassen, which leads, has too few nodes for `large`.
    asked = {**applications(), "large": scenario("2", ranks=4000)}
    found = ranking(asked, ["summit", "lassen"], {"a": 3.0, "large": 0.0})
    assert found.standings[0].platform == "lassen"
    turns = {turn.application: turn for turn in found.turns}
    assert_allclose([turns[name].turns_at for name in asked], [0.5, 0.5, 0.0], rtol=1e-12, atol=0)
    assert [turns[name].leader for name in asked] == ["summit"] * 3
    assert found.summary()[-3:] == (
        "summit leads if a weighs less than 50.0%",
        "summit leads if b weighs more than 50.0%",
        "summit leads if large weighs more than 0.0%",
    )


def test_of_two_equal_merits_the_other_leads_on_the_side_of_its_faster_application():
    first, second = (ranking(applications(), names) for names in (["summit", "lassen"], ["lassen", "summit"]))
    assert [(turn.leader, turn.above) for turn in first.turns] == [("lassen", True), ("lassen", False)]
    assert [(turn.leader, turn.above) for turn in second.turns] == [("summit", False), ("summit", True)]


def test_reference_times_shift_all_merits_by_one_factor():
    found = ranking(applications(), ["summit", "lassen"], {"a": 3.0}, {"a": 12.0})
    assert found.references == {"a": 12.0, "b": 10.0}
    assert_allclose([its.merit for its in found.standings], [1.5**0.5 * 2**0.75, 2**0.75], rtol=1e-12, atol=0)


def test_a_platform_without_a_result_is_last_with_a_reason():
    # Lassen has 792 nodes of 4 GPUs.
    asked = {"small": scenario("platform.node.gpu_count"), "large": scenario("2", ranks=4000)}
    found = ranking(asked, ["summit", "lassen"])
    assert [its.platform for its in found.standings] == ["summit", "lassen"]
    assert math.isnan(found.standings[1].merit)
    assert found.standings[1].reason.startswith("large: the ranks need more nodes")
    assert found.turns == ()
    found = ranking(asked, ["summit", "lassen"], {"large": 0.0})
    assert_allclose(found.standings[0].merit, 1.5, rtol=1e-12, atol=0)
    assert found.standings[0].platform == "lassen"


def test_samples_of_an_application_are_equal_on_all_platforms():
    text = one_phase("= 1 s * x * platform.node.gpu_count", x='"lognormal(1, 3)"')
    asked = Scenario(parse_document(text, "t.toml"))
    found = ranking({"a": asked}, ["summit", "lassen"], sampling=Sampling(1024))
    lassen, summit = (its.chances for its in found.standings)
    assert (lassen.ahead, lassen.best, summit.ahead, summit.best) == (1.0, 1.0, 0.0, 0.0)
    assert_allclose(lassen.merits[2] / lassen.merits[0], 3 ** (2 * 1.6449), rtol=0.02, atol=0)


def test_platforms_that_tie_share_the_probability_to_be_the_best():
    asked = Scenario(parse_document(one_phase("= 1 s * x", x='"lognormal(1, 3)"'), "t.toml"))
    found = ranking({"a": asked}, ["summit", "lassen", "frontier"], sampling=Sampling(64))
    assert_allclose([its.chances.best for its in found.standings], 1 / 3, rtol=1e-12, atol=0)
    assert [its.chances.ahead for its in found.standings] == [0.0] * 3


def test_a_candidate_without_a_number_is_not_the_best_of_a_sample():
    scores = np.array([[3.0, math.nan, 2.0, math.nan], [1.0, 1.0, 2.0, math.nan]])
    assert_allclose(shares_of_the_best(scores), [1.5 / 3, 1.5 / 3], rtol=1e-12, atol=0)


def test_samples_of_a_platform_are_independent_of_others():
    """Both have the same GPU: ln of the ratio is normal, sqrt(2) ln 1.2 wide, around ln 1.5 / 10."""
    formula = "platform.node.gpu_count ** 0.1 * (1 GB/s / platform.node.gpu.dram_bandwidth)"
    grade = scenario(formula).program.parameters["platform.node.gpu.dram_bandwidth"].grade
    found = ranking({"a": scenario(formula)}, ["summit", "lassen"], sampling=Sampling(8192, spreads={grade: 0.2}))
    chances = {its.platform: its.chances for its in found.standings}
    expected = stats.norm.cdf(0.1 * math.log(1.5) / (math.sqrt(2) * math.log(1.2)))
    assert_allclose(chances["lassen"].ahead, expected, rtol=0.01, atol=0)
    assert_allclose(chances["lassen"].best + chances["summit"].best, 1.0, rtol=1e-12, atol=0)


def test_a_machine_commits_to_the_time_it_keeps(whatif_main):
    options = ("--platform", "summit", "--platform", "frontier", "--samples", "512", "--spread", "assumed=20%")
    code, out, _ = whatif_main("compare", "minimd", *options, "--show", "commitment", "--format", "json")
    rows = {row["platform"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    asked = Scenario.open("minimd", platform="frontier")
    upper = run_whole(asked, Grid(), Sampling(512, spreads={"assumed": 0.2})).bands.values["total_time"][2]
    assert_allclose(rows["frontier"]["time 95% sure"], upper, rtol=0.03, atol=0)
    assert rows["frontier"]["grade"] == "assumed"
    _, out, err = whatif_main("compare", "minimd", *options[:-2], "--format", "json")
    assert "leads whatever" not in err
    assert "merit p5" in json.loads(out)["rows"][0]
    assert_allclose(
        rows["frontier"]["speedup 95% sure"], rows["summit"]["time"] / rows["frontier"]["time 95% sure"], rtol=1e-12
    )
    shown = whatif_main("compare", "minimd", *options, "--format", "html")[1]
    assert shown.startswith("<table>")
    assert "<td>frontier</td>" in shown


@pytest.mark.parametrize(
    ("weights", "references", "message"),
    [
        ({"a": 0.0, "b": 0.0}, {}, "weights add up to 0"),
        ({"a": -1.0}, {}, "weight of `a`: -1 must be 0 or more"),
        ({"c": 1.0}, {}, "weight of `c`: it is not one of the applications a, b"),
        ({}, {"c": 1.0}, "reference time of `c`"),
    ],
)
def test_weights_that_add_up_to_zero_are_refused(weights, references, message):
    with pytest.raises(UsageError, match=message):
        ranking(applications(), ["summit", "lassen"], weights, references)


def test_the_verb_prints_a_row_a_machine(whatif_main):
    names = ("jacobi2d", "minife")
    machines = ("--platform", "summit", "--platform", "frontier", "--platform", "jupiter")
    code, out, err = whatif_main("compare", *names, *machines, "--weight", "minife=3", "--format", "csv")
    assert code == 0
    heading, *rows = (line.split(",") for line in out.splitlines())
    assert heading[:4] == ["platform", "merit", "jacobi2d time [s]", "jacobi2d speedup"]
    assert [row[0] for row in rows] == ["jupiter", "frontier", "summit"]
    for row in rows:
        for name, time in zip(names, row[2::2], strict=True):
            answer = run_whole(Scenario.open(name, platform=row[0]), Grid()).columns["total_time"]
            assert_allclose(float(time), answer, rtol=1e-12, atol=0)
        assert_allclose(float(row[1]), float(row[3]) ** 0.25 * float(row[5]) ** 0.75, rtol=1e-12, atol=0)
    assert "minife: weight 75.0%, reference time 1.13 s" in err
    assert "jupiter leads whatever one application weighs" in err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--weight", "minife"], 2, "--weight minife: expected SCENARIO=VALUE"),
        (["--weight", "minife=much"], 2, "`much` is not a number"),
        (["--reference", "minife=3 GB"], 2, "that of minife must be in s, as total_time is"),
        (["--result", "transfer_time"], 2, "on summit: transfer_time is 0 s there, which has no speedup"),
        (["--result", "transfer_time", "--reference", "minife=1 s"], 4, "no machine has an answer"),
        (["--reference", "minife=0 s"], 2, "`0 s` must be greater than 0"),
        (["--result", "total_cost"], 2, "on summit: `total_cost`: Summit does not state platform.price"),
        (["--result", "terms.nope"], 2, "`terms.nope`: no such result"),
        (
            ["--set", "application.rank_count=1000000"],
            2,
            "no reference time of `minife`: on summit: the ranks need more",
        ),
        (["--set", "application.rank_count=1000000", "--reference", "minife=1 s"], 4, "no machine has an answer"),
    ],
)
def test_invalid_options_are_refused(whatif_main, options, code, message):
    found, _, err = whatif_main("compare", "minife", "--platform", "summit", *options)
    assert found == code
    assert message in err


def test_machines_are_compared_by_their_energy_too(whatif_main, tmp_path):
    (tmp_path / "plain.toml").write_text('extends = "titan"\nname = "Plain"\nnode.host.power = "none"\n')
    words = ["jacobi2d", "--platform", "summit", "--platform", "frontier", "--platform", "plain.toml"]
    code, out, err = whatif_main("compare", *words, "--result", "total_energy", "--format", "json")
    first, second, last = json.loads(out)["rows"]
    assert (code, first["platform"], second["merit"], last["merit"]) == (0, "frontier", 1, None)
    energies = [row["jacobi2d total energy"] for row in (first, second)]
    assert_allclose(first["merit"], energies[1] / energies[0], rtol=1e-12, atol=0)
    assert "Plain does not state platform.node.host.power" in last["infeasible"]
    assert "kJ" in err


def test_the_fewest_nodes_for_a_target_are_those_of_all_numbers_tried(whatif_main):
    asked = Scenario.open("jacobi2d_strong")
    counts = np.arange(1.0, 80.0)
    swept = Axis("ranks", {"application.rank_count": 6 * counts})
    times = run_whole(asked, Grid((swept,))).columns["iteration_time"]
    found = required_nodes(asked, "iteration_time <= 1.5 ms").count
    assert found == counts[(times <= 1.5e-3).argmax()] > 1
    out = whatif_main("compare", "jacobi2d_strong", "--platform", "summit", "--platform", "lassen",
                      "--within", "jacobi2d_strong=iteration_time <= 1.5 ms", "--format", "json")[1]  # fmt: skip
    needed = {row["platform"]: row["jacobi2d_strong nodes"] for row in json.loads(out)["rows"]}
    assert needed["summit"] == found < needed["lassen"]
    # 64 ranks have 4 GB each; the whole grid has room on 3 nodes or more.
    roomy = Scenario.open("jacobi2d_strong", overrides={"application.memory_size": "4 GB"})
    assert required_nodes(roomy, "iteration_time <= 1 s").count == Planner(roomy).least_nodes() == 3


def test_fewer_nodes_than_a_number_that_misses_the_target_may_meet_it(whatif_main, monkeypatch):
    """Jacobi2D has less communication on 121 nodes of Lassen than on 129."""
    asked = Scenario.open("jacobi2d_strong", platform="lassen")
    counts = np.arange(1.0, 160.0)
    swept = Axis("ranks", {"application.rank_count": 4 * counts})
    times = run_whole(asked, Grid((swept,))).columns["iteration_time"]
    met = times <= 1.0704e-3
    first = met.argmax()
    assert not met[first:].all()
    assert required_nodes(asked, "iteration_time <= 1.0704 ms") == RequiredNodes(counts[first], fewest=True)
    monkeypatch.setattr(required, "_TRIED_RANKS", 40)
    found = required_nodes(asked, "iteration_time <= 1.0704 ms")
    at = int(found.count) - 1
    assert (found.fewest, at > first, met[at], met[at - 1]) == (False, True, True, False)
    words = ("--platform", "lassen", "--within", "jacobi2d_strong=iteration_time <= 1.0704 ms")
    err = whatif_main("compare", "jacobi2d_strong", *words)[2]
    assert f"not all smaller numbers than {found.count:.0f} nodes were tried" in err


def test_a_target_that_no_number_of_nodes_meets_says_so(whatif_main):
    with pytest.raises(InfeasiblePointError, match="met on none of up to 4,608 nodes"):
        required_nodes(Scenario.open("jacobi2d_strong"), "iteration_time <= 1 ns")
    with pytest.raises(InfeasiblePointError, match="no whole problem to spread"):
        required_nodes(scenario("2"), "iteration_time <= 1 s")
    machine = ("--platform", "summit")
    code, out, err = whatif_main("compare", "minife", *machine, "--within", "minife=iteration_time <= 1 ns")
    assert (code, "on summit: infeasible" in err, "minife nodes" in out) == (0, True, True)
    code, _, err = whatif_main("compare", "minife", *machine, "--within", "minimd=iteration_time <= 1 ns")
    assert (code, "`minimd` is not one of the applications" in err) == (2, True)


def test_equal_ranks_that_take_other_numbers_of_nodes_are_named():
    found = whatif.compare(["jacobi2d"], ["frontier", "aurora"])
    assert "jacobi2d: the same ranks take other numbers of nodes: 192 of frontier, 128 of aurora" in found.remarks


def test_the_only_machine_with_an_answer_is_not_the_best_of_several():
    scenarios = {"a": scenario("platform.node.gpu_count"), "b": scenario("1 / (platform.node.gpu_count - 4)", ranks=6)}
    found = ranking(scenarios, ["summit", "lassen"], sampling=Sampling(64, spreads={"measured": 0.1}))
    assert [math.isfinite(its.merit) for its in found.standings] == [True, False]
    assert [its.chances for its in found.standings] == [None, None]


def test_of_rates_the_highest_is_the_best_and_the_low_end_is_committed():
    machines = ("dgx_h100", "dgx_b200")
    spreads = {"assumed": 0.2}
    found = whatif.compare("llama_serving", machines, result="token_rate", samples=64, spreads=spreads)
    rates = {its.platform: its.answers["llama_serving"].number for its in found.standings}
    best, other = found.standings
    assert rates[best.platform] > rates[other.platform]
    assert_allclose(best.speedups["llama_serving"], rates[best.platform] / rates["dgx_h100"], rtol=1e-12, atol=0)
    assert best.chances.best > 0.5
    committed = replace(found, show="commitment").table().columns["token rate 95% sure"].values
    assert committed[0] < rates[best.platform]
