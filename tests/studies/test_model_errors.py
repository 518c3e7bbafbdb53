"""Errors of predictions against measured runs: arithmetic by hand, the reader of runs, and wrong files."""

from __future__ import annotations

import numpy as np
import pytest

import whatif
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.session import Session
from whatif.errors import InvalidFileError, UsageError
from whatif.studies import model_errors, run_predictions
from whatif.studies.measured_points import sweep_measurements

NAP = {
    "name": "nap",
    "rank_count": 6,
    "iteration_count": 10,
    "phases": {
        "sleep": {"kind": "overhead", "overhead_time": "2 ms"},
        "doze": {"kind": "overhead", "overhead_time": "6 ms"},
    },
}


@pytest.fixture
def nap(tmp_path):
    """A scenario of 2 + 6 ms, in a folder of its own."""
    path = tmp_path / "nap.toml"
    whatif.Scenario.of(application=NAP, platform="summit", name="nap").write(path)
    return path


def runs(folder, text):
    """File of runs with a text."""
    path = folder / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_errors_are_predicted_over_measured_minus_one(nap, tmp_path):
    text = "rank_count,sleep [ms],sleep + doze [ms],iteration_time [s]\n6,1,16,0.008\n12,4,,0.004\n"
    errors = whatif.validate(nap, runs=runs(tmp_path, text))
    found = {item.result: item for item in errors.accuracy}
    np.testing.assert_allclose(errors.errors(errors.runs.results[0]), [1.0, -0.5], rtol=1e-12, atol=0)
    assert found["sleep"].bias == pytest.approx(0.25, rel=1e-12, abs=0)
    assert found["sleep"].mean_absolute_error == pytest.approx(0.75, rel=1e-12, abs=0)
    assert (found["sleep + doze"].run_count, found["sleep + doze"].bias) == (1, pytest.approx(-0.5, rel=1e-12, abs=0))
    assert found["iteration_time"].largest_error == pytest.approx(1.0, rel=1e-12, abs=0)


def test_rows_that_are_equal_in_every_column_are_reported(nap, tmp_path):
    said = "warning: rows that are equal in every column count as separate runs: "
    text = "rank_count,sleep [ms],doze [ms],source\n6,1,,a\n12,1,6,a\n6,1,,a\n6,1.1,,a\n12,1,6,b\n12,1,6,a\n"
    errors = whatif.validate(nap, runs=runs(tmp_path, text))
    assert len(errors.runs) == 6
    assert f"{said}line 4 as line 2, line 7 as line 3" in errors.notes
    errors = whatif.validate(nap, runs=runs(tmp_path, "rank_count,sleep [ms]\n" + "6,1\n" * 9))
    assert f"{said}line 3 as line 2, line 4 as line 2, line 5 as line 2 and 5 more" in errors.notes
    errors = whatif.validate(nap, runs=runs(tmp_path, "rank_count,sleep [ms]\n6,1\n6,1.1\n12,1\n"))
    assert not [note for note in errors.notes if said in note]


def test_table_has_a_row_for_each_measured_value(nap, tmp_path):
    text = "# a remark\nrank_count,sleep [ms],doze [ms],source\n6,1,6,log 1\n\n12,4,,log 2\n"
    frame = whatif.validate(nap, runs=runs(tmp_path, text)).to_pandas()
    assert frame["run"].tolist() == [1, 1, 2]
    assert frame["result"].tolist() == ["sleep", "doze", "sleep"]
    assert frame["category"].tolist() == ["overhead"] * 3
    np.testing.assert_allclose(frame["measured"], [1e-3, 6e-3, 4e-3], rtol=1e-12, atol=0)


def test_parameters_of_the_runs_apply(nap, tmp_path):
    text = (
        "platform,application.phases.sleep.overhead_time [us],iteration_count,total_time [s]\n"
        "summit,1000,10,1\nfrontier,4000,5,1\n"
    )
    frame = whatif.validate(nap, runs=runs(tmp_path, text)).to_pandas()
    np.testing.assert_allclose(frame["predicted"], [0.07, 0.05], rtol=1e-12, atol=0)


def test_predictions_are_those_of_run_at_each_point():
    errors = whatif.validate("jacobi2d")
    for run in (0, 7, 15):
        platform, ranks = (errors.runs.axis.parameters[name][run] for name in ("platform", "application.rank_count"))
        alone = whatif.run("jacobi2d", platform=platform, overrides={"application.rank_count": int(ranks)})
        assert errors.predicted["halo"][run] == pytest.approx(float(alone["terms.halo"]), rel=1e-12, abs=0)


def test_runs_are_evaluated_some_at_a_time(monkeypatch):
    whole = whatif.validate("jacobi2d")
    sizes = []

    def counted(program, swept):
        sizes.append(max(map(len, swept.values())))
        return evaluate(program, swept)

    monkeypatch.setattr(run_predictions, "evaluate", counted)
    monkeypatch.setattr(run_predictions, "_RUNS_AT_A_TIME", 3)
    parts = whatif.validate("jacobi2d")
    assert max(sizes) == 3
    assert sum(sizes) == len(whole.runs)
    assert parts.to_pandas().equals(whole.to_pandas())


def test_errors_of_a_table_are_not_computed_again_for_each_run(nap, tmp_path, monkeypatch):
    text = "rank_count,sleep [ms]\n" + "6,1\n" * 100
    found = whatif.validate(nap, runs=runs(tmp_path, text))
    calls, errors = [], model_errors.ModelErrors.errors
    monkeypatch.setattr(model_errors.ModelErrors, "errors", lambda *given: calls.append(1) or errors(*given))
    assert len(found.table()) == 100
    assert len(calls) < 5


def test_platform_chooses_the_runs():
    assert len(whatif.validate("jacobi2d", platform="lassen").runs) == 9
    assert len(whatif.validate("jacobi2d").runs) == 20
    with pytest.raises(whatif.WhatifError, match="no runs on frontier; there are runs on summit, lassen"):
        whatif.validate("jacobi2d", platform="frontier")


def test_results_without_a_value_on_the_platform_are_left_out(nap, tmp_path):
    text = "platform,rank_count,sleep [ms],doze [ms]\nsummit,6,1,\nsummit,12,4,\nlassen,4,,6\nfrontier,8,,\n"
    errors = whatif.validate(nap, runs=runs(tmp_path, text), platform="summit")
    assert errors.summary() == ("sleep: mean absolute error 75.0%, bias +25.0%, 2 runs",)
    with pytest.raises(UsageError, match="no measured value in the runs on frontier"):
        whatif.validate(nap, runs=tmp_path / "runs.csv", platform="frontier")


def test_runs_are_not_inherited(nap, tmp_path):
    nap.write_text('runs = "runs.csv"\n' + nap.read_text())
    runs(tmp_path, "rank_count,sleep [ms]\n6,1\n")
    assert len(whatif.validate(nap).runs) == 1
    (tmp_path / "long.toml").write_text('extends = "nap"\n[application]\niteration_count = 20\n')
    with pytest.raises(whatif.WhatifError, match="no measured runs; give a CSV file"):
        whatif.validate(tmp_path / "long.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank_cout,sleep [ms]\n6,1\n", "rank_cout: neither a parameter nor a result .*did you mean `rank_count`"),
        ("rank_count,iteration_time_us\n6,1\n", r"did you mean `iteration_time \[us\]`\?"),
        ("rank_count,time_ms\n6,1\n", r"time_ms: neither .*did you mean `total_time \[ms\]`\?"),
        ("rank_count,slep [ms]\n6,1\n", "slep: neither .*did you mean `sleep`"),
        ("rank_count,sleep [ms]\n6,1\n6.5,1\n", r":3:1: rank_count: 6.5 is not allowed; .* whole number"),
        ("rank_count,sleep\n6,1\n", r"sleep: is a number without a unit; it must be in s: `sleep \[s\]`"),
        ("rank_count,sleep [GB]\n6,1\n", "is in GB; it must be in s"),
        ("rank_count [s],sleep [s]\n6,1\n", "is in s; application.rank_count is a number without a unit"),
        (
            "rank_count,sleep [s]\n6,1\n6,0\n",
            ":3:1: sleep .*0: a measured value must be greater than 0; leave the cell",
        ),
        ("rank_count,sleep [s]\n6,\n", "no values"),
        ("rank_count,sleep [s]\n100000,1\n", ":2:1: infeasible: the ranks need more nodes"),
        (
            "rank_count,sleep [fortnight]\n6,1\n",
            "unknown unit `fortnight`; known are such as us, MB and GB/s",
        ),
        ("platform,sleep [s]\nsummit,1\n,2\n", ":3:1: platform: empty: every run needs a value"),
        ("platform,sleep [s]\nsumit,1\n", ":2:1: `sumit`: platform not found; did you mean `summit`"),
        ("rank_count,application.rank_count,sleep [s]\n6,6,1\n", "a second column of `application.rank_count`"),
        ("rank_count\n6\n", "no measured result among the columns"),
        ("sleep [s]\n6\n", "no parameter among the columns"),
        ("kind,sleep [s]\noverhead,6\n", "several parameters end like this"),
        ("rank_count,sleep [s],total_energy [J]\n6,1,1\n", "results in J and s"),
        ("rank_count,sleep [s]\n", "no runs: only a line of headings"),
        ("", "it is empty"),
        ("rank_count,sleep [s]\n6,1,3\n", "3 cells where the heading has 2"),
    ],
)
def test_wrong_runs_are_refused_with_their_place(nap, tmp_path, text, message):
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.validate(nap, runs=runs(tmp_path, text))


def test_overrides_of_what_the_runs_state_have_no_effect(whatif_main, nap, tmp_path):
    runs(tmp_path, "rank_count,iteration_time [ms]\n6,9\n12,9\n24,9\n")
    for verb in ("validate", "calibrate"):
        words = (verb, "nap.toml", "--runs", "runs.csv", "--set")
        code, _, err = whatif_main(*words, "application.rank_count=96")
        assert (code, "warning: application.rank_count: the override has no effect" in err) == (0, True)
        assert "no effect" not in whatif_main(*words, "application.iteration_count=5")[2]


@pytest.mark.parametrize("verb", [whatif.validate, whatif.calibrate])
def test_usual_headings_are_those_of_the_scenario(nap, tmp_path, verb):
    usual = verb(nap, runs=runs(tmp_path, "Ranks,steps,Time [ms]\n6,2,18\n12,2,18\n24,2,18\n")).runs
    own = verb(nap, runs=runs(tmp_path, "rank_count,iteration_count,total_time [ms]\n6,2,18\n12,2,18\n24,2,18\n")).runs
    assert list(usual.axis.parameters) == list(own.axis.parameters)
    assert [result.name for result in usual.results] == [result.name for result in own.results] == ["total_time"]
    assert [note.partition(": ")[2] for note in usual.notes] == [
        "`Ranks` is taken as `rank_count`", "`steps` is taken as `iteration_count`",
        "`Time [ms]` is taken as `total_time`",
    ]  # fmt: skip
    assert own.notes == ()


def test_nodes_of_runs_are_used_with_their_ranks(nap, tmp_path):
    path = runs(tmp_path, "ranks,nodes,sleep [s]\n6,1,1\n12,4,1\n")
    with pytest.raises(whatif.WhatifError, match=r"nodes: neither .*; to use it, state `application.ranks_per_node`"):
        whatif.validate(nap, runs=path)
    stated = {"application.ranks_per_node": 6}
    found = whatif.validate(nap, runs=path, overrides=stated).runs.axis.parameters
    assert found["application.ranks_per_node"].tolist() == [6, 3]
    uneven = runs(tmp_path, "ranks,nodes,sleep [s]\n6,1,1\n12,5,1\n")
    with pytest.raises(whatif.WhatifError, match=":3:1: nodes: 12 ranks do not fill 5 nodes evenly"):
        whatif.validate(nap, runs=uneven, overrides=stated)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "rank_count,sleep [ms],speed,doze [ms]\n6,1,1,1\n0,-1,1,1\n,1,1,1e999\n1.5,0,1,1\n",
            ["0: speed", "3: rank_count", "3: sleep [ms]", "4: rank_count", "4: doze [ms]", "5: rank_count",
             "5: sleep [ms]"],
        ),
        ("platform,sleep [ms]\nsummit,1\nsumit,1\nsumit,1\nlasen,1\n", ["3: ", "5: "]),
        ("rank_count,sleep [ms]\n6,1\n9000000,1\n12,1\n8000000,1\n", ["3: ", "5: "]),
        ("rank_count,sleep [ms],doze [ms]\n6,1,1\n12,1 2,3 4\n", ["3: sleep [ms]", "3: doze [ms]"]),
    ],
)  # fmt: skip
def test_all_errors_of_a_file_are_reported_at_once(nap, tmp_path, text, problems):
    with pytest.raises(InvalidFileError) as caught:
        whatif.validate(nap, runs=runs(tmp_path, text))
    assert [f"{item.line}: {item.key}" for item in caught.value.problems] == problems


def test_the_first_errors_of_many_are_shown_and_the_others_counted(nap, tmp_path):
    with pytest.raises(InvalidFileError, match=r"runs.csv:51:1: .*\nand 50 more problems$"):
        whatif.validate(nap, runs=runs(tmp_path, "rank_count,sleep [ms]\n" + "6,-1\n" * 100))


@pytest.mark.parametrize(
    "text", ["rank_count,sleep [ms]\n" + "6,-1\n" * 1001, "ranks,nodes,sleep [s]\n" + "7,2,1\n" * 1001]
)
def test_at_most_1000_problems_of_a_column_are_kept(nap, tmp_path, text):
    with pytest.raises(InvalidFileError) as caught:
        whatif.validate(nap, runs=runs(tmp_path, text), overrides={"application.ranks_per_node": 6})
    assert len(caught.value.problems) == 1000


@pytest.mark.parametrize("word", ["TIMEOUT", "abc"])
def test_failed_runs_are_counted(whatif_main, nap, tmp_path, word):
    lost = f"`iteration_time [ms]`: 1 row has `{word}` for a number, taken as missing"
    for rows, code in (("6,9\n12,9\n", 0), ("6,9\n", 2)):
        runs(tmp_path, f"rank_count,iteration_time [ms]\n{rows}24,{word}\n")
        noted = f"warning: runs.csv:{rows.count(chr(10)) + 2}: {lost}"
        assert noted in whatif_main("validate", "nap.toml", "--runs", "runs.csv")[2]
        found, _, err = whatif_main("calibrate", "nap.toml", "--runs", "runs.csv")
        assert (found, lost in err) == (code, True)
    runs(tmp_path, f"rank_count,iteration_time [ms]\n6,9\n12,9\n{word},9\n")
    code, _, err = whatif_main("validate", "nap.toml", "--runs", "runs.csv")
    assert (code, f"runs.csv:4:1: rank_count: `{word}` is not a number" in err) == (3, True)


@pytest.mark.parametrize(("runs", "message"), [(".", "a folder, not a file of runs"), ("no.csv", "no such file")])
def test_a_folder_is_no_file_of_runs(whatif_main, nap, runs, message):
    code, _, err = whatif_main("validate", "nap.toml", "--runs", runs)
    assert (code, message in err) == (3, True)


def test_unknown_units_have_the_exit_code_of_a_file(whatif_main, nap, tmp_path):
    runs(tmp_path, "rank_count,sleep [fortnight]\n6,1\n")
    code, _, err = whatif_main("validate", "nap.toml", "--runs", "runs.csv")
    assert (code, "--columns" in err) == (3, False)


def test_accuracy_of_overlapping_results_is_refused(nap, tmp_path):
    found = whatif.validate(nap, runs=runs(tmp_path, "rank_count,sleep [ms],sleep + doze [ms]\n6,1,9\n"))
    with pytest.raises(whatif.WhatifError, match=r"`sleep` and `sleep \+ doze` both contain sleep"):
        found.write(tmp_path / "out.toml")


@pytest.mark.parametrize("name", ["../runs.csv", "/etc/passwd", "..", "a/b.csv"])
def test_runs_lie_next_to_the_scenario(nap, name):
    nap.write_text(f'runs = "{name}"\n{nap.read_text()}')
    with pytest.raises(whatif.WhatifError, match="runs: expected the name of a CSV file next to the scenario"):
        whatif.validate(nap)


def test_verb_prints_errors_and_exits_with_5_beyond_the_tolerance(whatif_main):
    code, out, err = whatif_main("validate", "minife", "--tolerance", "70 %", "--format", "csv")
    assert (code, out.count("\n")) == (0, 16)
    assert "iteration_time: mean absolute error" in err
    code, out, err = whatif_main("validate", "minife", "--tolerance", "0.001")
    assert (code, out.count("\n")) == (5, 16)
    assert "beyond the tolerance of 0.1 %: iteration_time" in err
    code, out, _ = whatif_main("validate", "minife", "--by", "result")
    assert (code, out.count("\n")) == (0, 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("minife", "links"), "links: one SCENARIO at a time"),
        (("links", "--runs", "x.csv"), "--runs: no effect without SCENARIO"),
        (("minife", "--tolerance", "much"), "--tolerance much: expected a share"),
        (("minife", "--tolerance", "15"), "--tolerance 15: is 1500%; for 15 per cent write `15%`"),
        (("sedov",), 'give a CSV file with --runs, or state `runs = "FILE.csv"`'),
    ],
)
def test_verb_refuses_options_without_effect(whatif_main, words, message):
    code, out, err = whatif_main("validate", *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
def test_shipped_runs_state_their_source(name):
    head = (ROOT / "scenarios" / f"{name}_runs.csv").read_text(encoding="utf-8").split("platform,")[0]
    assert "minitu/" in head


def test_measured_points_of_a_sweep_have_the_present_values(nap, tmp_path):
    nap.write_text('runs = "runs.csv"\n' + nap.read_text())
    text = "platform,rank_count,iteration_count,sleep [ms],sleep + doze [ms]\n"
    runs(tmp_path, f"{text}summit,6,10,1,16\nsummit,12,10,4,8\nsummit,24,20,1,1\nfrontier,8,10,1,1\n")
    session = Session.start(whatif.load(nap)).sweep("application.rank_count", "6, 12, 24")
    found = sweep_measurements(session.inputs)
    assert set(found.points) == {"terms.sleep", "overhead_time"}
    np.testing.assert_array_equal(found.points["terms.sleep"].x, [6, 12])
    np.testing.assert_allclose(found.points["overhead_time"].predicted, [8e-3, 8e-3], rtol=1e-12, atol=0)
    elsewhere = sweep_measurements(session.edit("application.iteration_count", "7").inputs)
    assert elsewhere.points == {}


def test_measured_points_of_a_sweep_are_those_of_the_present_part(nap, tmp_path):
    nap.write_text('runs = "runs.csv"\n' + nap.read_text())
    text = "platform,platform.node.gpu.extends,rank_count,sleep [ms]\n"
    runs(tmp_path, f"{text}summit,v100-sxm2-16gb,6,1\nsummit,a100-sxm4-80gb,6,2\nsummit,a100-sxm4-80gb,12,3\n")
    for overrides, ranks in (({}, [6]), ({"platform.node.gpu.extends": "a100-sxm4-80gb"}, [6, 12])):
        session = Session.start(whatif.load(nap, overrides=overrides)).sweep("application.rank_count", "6, 12")
        assert sweep_measurements(session.inputs).points["terms.sleep"].x.tolist() == ranks


def test_wrong_runs_are_a_remark_of_the_sweep(nap, tmp_path):
    nap.write_text('runs = "runs.csv"\n' + nap.read_text())
    runs(tmp_path, "rank_cout,sleep [ms]\n6,1\n")
    session = Session.start(whatif.load(nap)).sweep("application.rank_count", "6, 12")
    assert "did you mean `rank_count`" in sweep_measurements(session.inputs).remark
