"""Search over several parameters: against closed forms, against all points of a grid, and against the root finder."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.one_phase import one_phase
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.schema.toml import parse_document
from whatif.studies.calibration import calibrate
from whatif.studies.population import Objective, SearchGoal
from whatif.studies.search import Optimum, present_choice, ranked, search
from whatif.studies.search_space import Combination, Varied, parse_varied
from whatif.studies.seeking import has_root_finder
from whatif.studies.threshold import Target, parse_target, seek

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
MODEL = "application.phases.halo.model"
X, Y = "parameters.x", "parameters.y"


def question_of(formula, **parameters):
    return Scenario(parse_document(one_phase(f"= 1 s * ({formula})", **parameters), "t.toml"))


def searched(scenario, varied, targets=(), objective=None, **options):
    """Answers, the best first, and combinations without a program."""
    program = scenario.program
    goal = SearchGoal(tuple(parse_target(text, program) for text in targets), objective)
    found = list(search(scenario, [parse_varied(text, program) for text in varied], goal, **options))
    answers = [item for item in found if isinstance(item, Optimum)]
    return ranked(answers, goal, scenario), [item for item in found if isinstance(item, Combination)]


def test_the_cheapest_way_to_a_sum_of_two_terms_is_that_of_lagrange():
    scenario = question_of("12 / x + 8 / y", x=2.0, y=2.0, cost='"= 3 * x + 5 * y"')
    (found,), _ = searched(scenario, [X, Y], ["iteration_time <= 3 s"], Objective("parameters.cost"))
    # Minimal 3 x + 5 y with 12 / x + 8 / y = 3: x = sqrt(12 / 3) k, y = sqrt(8 / 5) k.
    k = (np.sqrt(12 * 3) + np.sqrt(8 * 5)) / 3
    assert_allclose(found.then["parameters.cost"], (np.sqrt(36) + np.sqrt(40)) ** 2 / 3, rtol=1e-10, atol=0)
    assert_allclose([found.values[X], found.values[Y]], [2 * k, np.sqrt(1.6) * k], rtol=1e-5, atol=0)
    (target,) = (parse_target("iteration_time <= 3 s", scenario.program),)
    assert found.is_met
    assert found.binds(target)
    assert found.then["iteration_time"] <= 3.0
    assert found.at_end(X) == ""


def test_without_an_objective_the_factors_are_the_smallest_that_do():
    scenario = question_of("12 / x + 8 / y", x=2.0, y=2.0)
    (found,), _ = searched(scenario, [X, Y], ["iteration_time <= 3 s"])
    x, y = found.values[X], found.values[Y]
    assert_allclose(12 / x + 8 / y, 3.0, rtol=1e-10, atol=0)
    assert_allclose(np.log(x / 2) * x / 12, np.log(y / 2) * y / 8, rtol=1e-4, atol=0)
    # Along the curve on which the target binds no point is nearer.
    others = np.geomspace(4.1, 100.0, 20_001)
    assert found.change <= (np.log(others / 2) ** 2 + np.log(8 / (3 - 12 / others) / 2) ** 2).min() * (1 + 1e-12)
    again = searched(scenario, [X, Y], ["iteration_time <= 3 s"])[0][0]
    assert again.values == found.values


def test_one_parameter_is_where_the_root_finder_has_it():
    scenario = Scenario.open("minife")
    (found,), _ = searched(scenario, [BANDWIDTH], ["iteration_time <= 4 ms"])
    alone = seek(scenario.program, BANDWIDTH, parse_target("iteration_time <= 4 ms", scenario.program))
    assert_allclose(found.values[BANDWIDTH], alone.value, rtol=1e-9, atol=0)


def test_whole_numbers_and_choices_are_the_best_of_all_points():
    scenario = Scenario.open("jacobi2d")
    cells, gpus = "application.grid.cells.x", "platform.node.gpu_count"
    varied = [
        f"{cells}=12000 .. 15000",
        f"{gpus}=1 .. 6",
        f"{MODEL}=k_model, postal, loggp",
        BANDWIDTH + "=700 GB/s, 800 GB/s",
    ]
    answers, refused = searched(scenario, varied, ["iteration_time <= 9.5 ms"], Objective(cells, least=False))
    sweeps = [f"{cells}=12000 .. 15000 step 1", f"{gpus}=1 .. 6 step 1", BANDWIDTH + "=700 GB/s, 800 GB/s"]
    assert [str(item) for item in refused] == [f"{MODEL}=loggp"]
    assert "loggp" in refused[0].reason
    for answer in answers:
        other = scenario.changed(answer.combination.choices)
        whole = run_whole(other, grid_of([parse_option(text, other.program, 10**6) for text in sweeps], 10**6))
        met = whole.grid.spread(whole.columns["iteration_time"]) <= 9.5e-3
        assert answer.values[cells] == whole.grid.coordinate(cells)[met].max()
        assert answer.values[cells] % 1 == answer.values[gpus] % 1 == 0
        sets = {path: repr(value) + " B/s" * (path == BANDWIDTH) for path, value in answer.values.items()}
        then = run_whole(other.changed({**answer.combination.choices, **sets}), Grid()).columns["iteration_time"]
        assert_allclose(float(then), answer.then["iteration_time"], rtol=1e-12, atol=0)
    assert answers[0].values[cells] == max(answer.values[cells] for answer in answers)


def test_a_mixed_search_is_the_best_of_a_root_for_every_whole_number(tmp_path):
    gpus = "platform.node.gpu_count"
    cost = f'cost = "= {BANDWIDTH} / 1 GB/s * (1 + 0.001 * ({gpus} - 5.2) ** 2)"'
    (tmp_path / "t.toml").write_text(f'extends = "jacobi2d"\n[parameters]\n{cost}\n')
    scenario = Scenario.open(tmp_path / "t.toml")
    (found,), _ = searched(
        scenario, [f"{gpus}=1 .. 8", BANDWIDTH], ["iteration_time <= 9 ms"], Objective("parameters.cost")
    )
    target = parse_target("iteration_time <= 9 ms", scenario.program)
    roots = {
        count: seek(scenario.changed({gpus: str(count)}).program, BANDWIDTH, target).value for count in range(1, 9)
    }
    costs = {count: root / 1e9 * (1 + 0.001 * (count - 5.2) ** 2) for count, root in roots.items()}
    assert found.values[gpus] == min(costs, key=costs.__getitem__)
    assert_allclose(found.then["parameters.cost"], min(costs.values()), rtol=1e-9, atol=0)
    assert 1 < found.values[gpus] < 8


def test_few_points_are_all_evaluated_and_of_equals_the_present_choice_is_kept():
    scenario = Scenario.open("jacobi2d")
    answers, _ = searched(
        scenario, ["platform=lassen, summit", f"{BANDWIDTH}=1 TB/s, 2 TB/s"], ["iteration_time <= 10 ms"]
    )
    assert [answer.combination.choices["platform"] for answer in answers] == ["summit", "lassen"]
    assert [answer.points for answer in answers] == [2, 2]
    assert [answer.values[BANDWIDTH] for answer in answers] == [1e12, 1e12]
    assert answers[0].at_end(BANDWIDTH) == "lower"


def test_a_small_value_of_a_wide_range_is_not_at_its_lower_end():
    scenario = question_of("1 / x", x=1.0)
    (found,), _ = searched(scenario, [f"{X}=1e-6 .. 1e6"], ["iteration_time <= 10000 s"], Objective(X))
    assert_allclose(found.values[X], 1e-4, rtol=1e-9, atol=0)
    assert found.at_end(X) == ""
    (least,), _ = searched(scenario, [f"{X}=1e-6 .. 1e6"], [], Objective(X))
    assert least.at_end(X) == "lower"


def test_the_part_of_a_machine_is_the_present_choice_of_its_parts():
    part = "platform.node.gpu.extends"
    scenario = Scenario.open("jacobi2d")
    assert present_choice(scenario, part) == "v100-sxm2-16gb"
    answers, _ = searched(scenario, [f"{part}=a100-sxm4-80gb, v100-sxm2-16gb"], ["iteration_time <= 1 s"])
    assert answers[0].combination.choices == {part: "v100-sxm2-16gb"}
    edited = scenario.with_overrides({part: "a100-sxm4-80gb"})
    assert present_choice(edited, part) == "a100-sxm4-80gb"


def test_where_nothing_is_feasible_the_nearest_point_is_an_end_of_the_range():
    scenario = question_of("12 / x + 8 / y + 2", x=2.0, y=2.0)
    (found,), _ = searched(scenario, [f"{X}=1 .. 10", f"{Y}=1 .. 20"], ["iteration_time <= 3 s", "total_time >= 1 s"])
    assert not found.is_met
    assert (found.values[X], found.values[Y]) == (10.0, 20.0)
    assert (found.at_end(X), found.at_end(Y)) == ("upper", "upper")
    assert_allclose(found.then["iteration_time"], 12 / 10 + 8 / 20 + 2, rtol=1e-12, atol=0)
    first, second = (parse_target(text, scenario.program) for text in ("iteration_time <= 3 s", "total_time >= 1 s"))
    assert (found.misses(first), found.misses(second)) == (True, False)


def test_points_without_a_number_are_no_answers():
    scenario = question_of("sqrt(x - 5) + 1", x=7.0)
    (found,), _ = searched(scenario, [f"{X}=1 .. 9"], [], Objective("total_time"), points=1500)
    assert_allclose(found.then["total_time"], 1.0, rtol=0, atol=1e-3)
    assert found.points <= 1500
    # Without a number at present, the scale is that of the numbers that are found.
    large = question_of("10 ** 20 * (1 + (x - 7) ** 2) + 0 * sqrt(x - 5)", x=2.0)
    (found,), _ = searched(large, [f"{X}=6 .. 9"], [], Objective("total_time"), points=200)
    assert_allclose(found.values[X], 7.0, rtol=1e-2, atol=0)
    (none,), _ = searched(scenario, [f"{X}=1 .. 4"], [], Objective("total_time"), points=100)
    assert (none.is_met, np.isnan(none.then["total_time"])) == (False, True)


def test_an_interrupted_search_keeps_the_best_so_far_and_ends():
    def progress(combination, count):
        if count > 100:
            raise KeyboardInterrupt

    scenario = question_of("12 / x + 8 / y", x=2.0, y=2.0)
    (found,), _ = searched(scenario, [X, Y], ["iteration_time <= 3 s"], progress=progress)
    assert not found.ended
    assert found.is_met
    assert found.then["iteration_time"] <= 3.0


def test_few_points_close_in_on_the_best():
    scenario = question_of("(x - 3) ** 2 + (y - 5) ** 2 + 1", x=2.0, y=2.0)
    counted = []
    (found,), _ = searched(scenario, [f"{X}=1 .. 9", f"{Y}=1 .. 9"], [], Objective("total_time"), points=200,
                           progress=lambda combination, count: counted.append(count))  # fmt: skip
    assert found.points == counted[-1] <= 200
    assert searched(scenario, [X, Y], [], Objective("total_time"), points=1)[0][0].points == 1
    assert_allclose([found.values[X], found.values[Y]], [3.0, 5.0], rtol=0, atol=0.05)


def test_simulated_points_have_no_root_finder():
    hpl = 'platform = "dahu"\n[application]\nkind = "hpl"\nmatrix_size = 1000\nblock_size = 100\n'
    hpl += "process_rows = 2\nprocess_columns = 2\nranks_per_node = 4\n"
    for text, simple in ((hpl, False), (one_phase("1 s"), True)):
        scenario = Scenario(parse_document(text, "t.toml"))
        target = Target("total_time", at_most=True, bound=1.0)
        assert has_root_finder(scenario, [Varied("application.rank_count")], (target,), None) == simple


def test_the_verb_prints_choices_parameters_and_results_with_what_binds(whatif_main):
    arguments = ("seek", "jacobi2d", "--vary", BANDWIDTH, "--vary", "platform=summit, lassen", "--points", "1500")
    aims = ("--target", "iteration_time <= 8 ms", "--target", "terms.halo <= 100 us")
    code, out, err = whatif_main(*arguments, *aims, "--format", "csv")
    assert code == 0
    assert "next best: platform=summit" in err
    assert "misses terms.halo <= 100 us" in err
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(out))}
    assert (rows["platform"]["now"], rows["platform"]["sought"]) == ("summit", "lassen")
    assert rows["iteration_time"]["note"] == "<= 8 ms, binds"
    assert rows["terms.halo"]["note"] == "<= 100 us"
    assert_allclose(float(rows["iteration_time"]["sought"]), 8e-3, rtol=1e-9, atol=0)
    assert rows[BANDWIDTH]["unit"] == "B/s"
    assert float(rows[BANDWIDTH]["now"]) == float(Scenario.open("jacobi2d").program.parameters[BANDWIDTH].value)
    code, out, err = whatif_main(*arguments, "--target", "iteration_time <= 1 ms")
    assert (code, out) == (4, "")
    assert re.search(r"at best iteration_time is 4\.8\d+ ms, at platform=lassen", err)
    assert "longest phases: pack" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", BANDWIDTH], "state an aim"),
        (["--vary", BANDWIDTH, "--vary", BANDWIDTH, "--minimise", "total_time"], "given twice"),
        (["--vary", "platform", "--minimise", "total_time"], "state which: platform=A, B, C"),
        (["--vary", "platform.name=a, b", "--minimise", "total_time"], "no result depends on this text"),
        (["--vary", f"{MODEL}=postel", "--minimise", "total_time"], "did you mean `postal`"),
        (["--vary", BANDWIDTH, "--minimise", "platform.prize"], "no such result or phase"),
        (["--vary", BANDWIDTH, "--minimise", "total_time", "--maximise", "total_time"], "exclude each other"),
        (["--vary", BANDWIDTH, "--minimise", "terms.halo"], f"`{BANDWIDTH}` has no effect on terms.halo"),
        (["--vary", BANDWIDTH, "--equal-to", "lassen", "--pareto", "a,b"], "--equal-to excludes"),
        (["--vary", BANDWIDTH, "--equal-to", f"{BANDWIDTH}=1 TB/s"], f"`{BANDWIDTH}` is moved by --vary"),
        (
            ["--vary", BANDWIDTH, "--equal-to", "lassen", "--seed", "1"],
            "--seed: no effect with --equal-to and --pareto",
        ),
        (["--vary", BANDWIDTH, "--equal-to", "lassen", "--points", "9"], "--points: no effect with --equal-to"),
        (["--vary", BANDWIDTH, "--pareto", f"total_time,{BANDWIDTH}", "--points", "1"], "2 points; --points is 1"),
        (["--vary", BANDWIDTH, "--pareto", "total_time"], "at least two results"),
        (["--vary", BANDWIDTH, "--pareto", "total_time,most total_time"], "expected RESULT, or max RESULT"),
        (
            ["--vary", BANDWIDTH, "--target", "total_time <= 1 s", "--plot"],
            "--plot and pictures need --equal-to or --pareto",
        ),
        (["--vary", f"{BANDWIDTH}=1 s, 2 s", "--minimise", "total_time"], "`1 s` is in s"),
    ],
)
def test_invalid_options_are_refused(whatif_main, arguments, message):
    code, out, err = whatif_main("seek", "jacobi2d", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("more", [{}, {"points": 64}])
def test_an_answer_beyond_the_calibration_is_named(tmp_path, more):
    calibrate(Scenario.open("minife")).write(tmp_path / "own.toml")
    found = whatif.seek(
        tmp_path / "own.toml", vary="application.rank_count=1 .. 4096", targets="iteration_time >= 6.1 ms", **more
    )
    ranks = found.values["application.rank_count"]
    assert ranks > 32
    warning = f"warning: at the values sought: calibration: numbers of ranks of {ranks:.0f} lie outside the 2 to 32"
    assert any(note.startswith(warning) for note in found.notes)
