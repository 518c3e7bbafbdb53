"""Calibration: known corrections are found again, held-out runs decide, files keep their comments."""

from __future__ import annotations

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

TRUE = {
    "calibration.application.kernel_factors.force": 3.5,
    "calibration.application.doubling_time": "150 us",
    "calibration.platforms.lassen.doubling_factor": 0.25,
}
HEADINGS = {
    "iteration_time": "iteration_time [s]",
    "terms.force": "force [s]",
    "communication_time": "exchange + reverse_exchange [s]",
}


def written(folder, overrides, ranks=(16, 32, 64, 128, 256), noise=0.0, names=HEADINGS):
    """File of runs of MiniMD on Lassen as predicted with some corrections, and with noise."""
    swept = whatif.sweep("minimd", {"application.rank_count": list(ranks)}, overrides=overrides)
    factors = np.exp(noise * np.random.default_rng(7).normal(size=(len(names), len(ranks))))
    columns = [swept[name] * factor for name, factor in zip(names, factors, strict=True)]
    lines = [",".join(["platform", "rank_count", *names.values()])]
    lines += [
        ",".join(["lassen", str(rank), *map(repr, map(float, row))]) for rank, *row in zip(ranks, *columns, strict=True)
    ]
    path = folder / "runs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_known_corrections_are_found_again(tmp_path):
    found = whatif.calibrate("minimd", runs=written(tmp_path, TRUE))
    assert set(found.values) == set(TRUE)
    expected = [150e-6 if isinstance(value, str) else value for value in TRUE.values()]
    np.testing.assert_allclose([found.values[path] for path in TRUE], expected, rtol=0.02, atol=0)
    assert max(item.mean_absolute_error for item in found.after.accuracy) < 1e-2
    further = {"application.rank_count": 1024}
    predicted = whatif.run(found.calibrated, overrides=further)["iteration_time"]
    np.testing.assert_allclose(predicted, whatif.run("minimd", overrides=TRUE | further)["iteration_time"], rtol=0.02)


def test_intervals_contain_the_values_that_noisy_runs_come_from(tmp_path):
    found = whatif.calibrate("minimd", runs=written(tmp_path, TRUE, noise=0.02), corrections=("kernels", "overhead"))
    table = found.to_pandas().set_index("correction")
    row = table.loc["calibration.application.kernel_factors.force"]
    assert row["lower"] < 3.5 < row["upper"]
    assert 0.01 < (row["upper"] - row["lower"]) / 3.5 < 0.3


def test_runs_of_the_model_itself_need_no_correction(tmp_path):
    found = whatif.calibrate("minimd", runs=written(tmp_path, {}))
    assert found.values == {}
    assert found.summary() == ("no correction lowers the error at held-out runs",)
    for write in (found.to_toml, lambda: found.write(tmp_path / "out.toml")):
        with pytest.raises(whatif.WhatifError, match="not written: no correction"):
            write()
    assert not (tmp_path / "out.toml").exists()


def test_corrections_that_raise_the_error_of_the_iteration_are_warned_of(tmp_path):
    path = written(tmp_path, TRUE)
    head, *rows = (line.split(",") for line in path.read_text().splitlines())
    at, plain = (
        head.index("iteration_time [s]"),
        whatif.sweep("minimd", {"application.rank_count": [16, 32, 64, 128, 256]}),
    )
    for row, value in zip(rows, plain["iteration_time"], strict=True):
        row[at] = repr(float(value))
    path.write_text("\n".join(map(",".join, [head, *rows])) + "\n")
    found = whatif.calibrate("minimd", runs=path, corrections=("kernels",))
    before, after = (part.accuracy[0].mean_absolute_error for part in (found.before, found.after))
    warning = f"warning: the corrections raise the error of iteration_time from {before:.1%} to {after:.1%}"
    assert warning in found.summary()
    assert not any("raise" in line for line in whatif.calibrate("minimd").summary())


def table_of_the_docs():
    """Rows of the table of errors in docs/calibration.md: scenario, result, and errors in per cent."""
    text = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    rows = text.split("| as published |")[1].split("\n\n")[0].splitlines()[2:]
    for row in rows:
        name, *numbers = (cell.strip() for cell in row.strip("|").split("|"))
        scenario, result = name.split(", ")
        yield scenario.lower(), result, list(map(float, numbers))


RESULTS = {
    "time step": "iteration_time",
    "iteration": "iteration_time",
    "exchanges": "exchange + reverse_exchange",
    "force": "force",
    "halo": "halo",
}


def published(scenario):
    """Errors with plain rooflines, without launches and congestion."""
    phases = whatif.load(scenario).program.loaded.scenario.application.phases
    kernels = {f"application.phases.{name}": phase for name, phase in phases.items() if phase.kind == "kernel"}
    plain = {f"{path}.model": "roofline" for path in kernels} | {"application.congestion": "none"}
    plain |= {f"{path}.measured_factor": 1 for path, phase in kernels.items() if phase.measured_factor is not None}
    plain |= {f"{path}.launch_time": "0 s" for path in kernels} | {"platform.node.gpu.launch_interval": "0 s"}
    return whatif.validate(scenario, overrides=plain).accuracy


@pytest.mark.parametrize("scenario", ["minimd", "minife", "jacobi2d"])
def test_errors_are_those_of_the_docs(scenario):
    found = whatif.calibrate(scenario)
    parts = (published(scenario), found.before.accuracy, found.after.accuracy, found.held_out)
    errors = [{item.result: 100 * item.mean_absolute_error for item in part} for part in parts]
    for name, result, stated in table_of_the_docs():
        if name == scenario:
            assert [error[RESULTS[result]] for error in errors] == pytest.approx(stated, abs=0.0501, rel=0), result


MESSAGES_PAGE = (ROOT / "docs" / "models" / "messages.md").read_text(encoding="utf-8")
EXCHANGES = {"jacobi2d": ("halo",), "minife": ("halo",), "minimd": ("exchange", "reverse_exchange")}


def exchange(accuracy):
    """Entry of the exchanges among the errors of a scenario."""
    return next(item for item in accuracy if item.result in ("halo", RESULTS["exchanges"]))


def modelled(scenario, model):
    """Overrides of a scenario whose exchanges have a model."""
    return {f"application.phases.{phase}.model": model for phase in EXCHANGES[scenario]}


@pytest.mark.parametrize(
    ("model", "stated"), [("postal", 74.6), ("max_rate", 61.5), ("k_model", 66.5), ("node_aware", 50.1)]
)
def test_errors_of_models_at_exchanges_of_minimd_and_minife_are_those_of_the_page(model, stated):
    found = [
        exchange(whatif.validate(name, overrides=modelled(name, model) | {"application.congestion": "none"}).accuracy)
        for name in ("minife", "minimd")
    ]
    counts = [item.run_count for item in found]
    assert counts == [5, 6]
    assert all(item.bias == -item.mean_absolute_error for item in found)
    mean = np.average([100 * item.mean_absolute_error for item in found], weights=counts)
    assert mean == pytest.approx(stated, abs=0.0501, rel=0)
    assert str(stated) in MESSAGES_PAGE


@pytest.mark.parametrize(("model", "stated"), [("k_model", "10.5 to 12.0 %"), ("node_aware", "12.0 to 17.5 %")])
def test_errors_at_held_out_exchanges_are_those_of_the_page(model, stated):
    held_out = [exchange(whatif.calibrate(name, overrides=modelled(name, model)).held_out) for name in EXCHANGES]
    errors = sorted(100 * item.mean_absolute_error for item in held_out)
    assert f"{errors[0]:.1f} to {errors[-1]:.1f} %" == stated
    assert f"{stated} (`{model}`)" in MESSAGES_PAGE


def test_calibrated_minimd_on_summit_is_slower_with_few_ranks_and_faster_with_many():
    calibrated = whatif.calibrate("minimd").calibrated

    def ratio(ranks):
        overrides = {"application.rank_count": ranks}
        times = [whatif.run(calibrated.on(name), overrides=overrides) for name in ("summit", "lassen")]
        return float(times[0]["iteration_time"] / times[1]["iteration_time"])

    assert ratio(16) == pytest.approx(1.05, abs=0.005, rel=0)
    assert ratio(512) == pytest.approx(0.78, abs=0.005, rel=0)


def test_corrections_without_an_effect_are_left_out(tmp_path):
    found = whatif.calibrate("minimd", corrections=("congestion",))
    assert list(found.values) == ["calibration.platforms.lassen.doubling_factor"]
    (tmp_path / "one_node.csv").write_text("rank_count,halo [ms]\n2,5\n4,5\n")
    with pytest.raises(whatif.WhatifError, match="no measured value depends on corrections of congestion"):
        whatif.calibrate("minife", runs=tmp_path / "one_node.csv", corrections=("messages", "congestion"))


def test_choice_needs_runs_with_different_parameters(tmp_path):
    (tmp_path / "r.csv").write_text("rank_count,iteration_time [ms]\n4,9\n4,9.4\n")
    with pytest.raises(whatif.WhatifError, match="needs at least 2 with different parameters; --correct KIND fits"):
        whatif.calibrate("minife", runs=tmp_path / "r.csv")
    found = whatif.calibrate("minife", runs=tmp_path / "r.csv", corrections=("kernels",))
    assert found.summary()[-1] == "no held-out errors: too few runs with different parameters"
    found.write(tmp_path / "out.toml")
    assert whatif.load(tmp_path / "out.toml").program.loaded.scenario.accuracy == {}


def test_repetitions_are_held_out_together(tmp_path):
    (tmp_path / "r.csv").write_text("rank_count,iteration_time [ms]\n4,9\n4,9.4\n8,12\n8,12.4\n")
    problem = whatif.calibrate("minife", runs=tmp_path / "r.csv", corrections=("kernels",)).problem
    assert [rows.tolist() for _, rows in problem.folds()] == [[True, True, False, False], [False, False, True, True]]


def test_results_that_are_not_linear_are_refused(tmp_path):
    overlap = '[application.overlaps.hidden]\nphases = ["halo", "matvec_inner"]\nfraction = 1.0\n'
    (tmp_path / "over.toml").write_text(f'extends = "minife"\n{overlap}')
    (tmp_path / "r.csv").write_text("rank_count,iteration_time [ms]\n4,9\n8,12\n16,16\n32,18\n")
    with pytest.raises(whatif.WhatifError, match=r"iteration_time is not linear in the corrections: .*overlaps"):
        whatif.calibrate(tmp_path / "over.toml", runs=tmp_path / "r.csv", corrections=("messages",))


def test_kernels_measured_together_have_a_common_factor(tmp_path):
    overrides = {"calibration.application.kernel_factor": 1.5}
    swept = whatif.sweep("minimd", {"application.rank_count": [16, 32, 64]}, overrides=overrides)
    times = swept["terms.pack"] + swept["terms.unpack"]
    lines = [f"{ranks},{float(time)!r}" for ranks, time in zip((16, 32, 64), times, strict=True)]
    (tmp_path / "r.csv").write_text("\n".join(["rank_count,pack + unpack [s]", *lines]) + "\n")
    found = whatif.calibrate("minimd", runs=tmp_path / "r.csv")
    assert found.values == pytest.approx({"calibration.application.kernel_factor": 1.5}, rel=0.01, abs=0)


HALO = """
platform = "generic_cpu"
[application]
name = "h"
rank_count = 8
iteration_count = 1
ranks_per_node = 4
[application.grid]
scaling = "weak"
cells = { x = 200, y = 200, z = 200 }
decomposition = "bisection"
[application.phases.halo]
kind = "halo"
model = "k_model"
neighbours = "all"
element_size = "8 B"
halo_width = 1
"""


def test_every_platform_of_the_runs_has_its_corrections(tmp_path):
    """The first one is a single node, without links between nodes."""
    (tmp_path / "h.toml").write_text(HALO)
    rows = "generic_cpu,2,600\ngeneric_cpu,4,900\nlassen,8,296\nlassen,64,451\nlassen,256,544\n"
    (tmp_path / "r.csv").write_text(f"platform,rank_count,halo [us]\n{rows}")
    found = whatif.calibrate(tmp_path / "h.toml", runs=tmp_path / "r.csv", corrections=("congestion",))
    names = ("congestion_factor", "doubling_factor")
    assert list(found.values) == [f"calibration.platforms.lassen.{name}" for name in names]
    assert found.errors.max() < 100


def test_intervals_end_at_the_smallest_value(tmp_path):
    times = {"communication_time": "exchange + reverse_exchange [s]"}
    path = written(tmp_path, {"calibration.application.message_factor": 1.02}, noise=0.2, names=times)
    rows = whatif.calibrate("minimd", runs=path, corrections=("messages",)).to_pandas().set_index("correction")
    assert rows.loc["calibration.application.message_factor", "lower"] == 1.0


def test_validation_of_a_calibrated_scenario_with_its_own_runs_says_so(tmp_path, whatif_main):
    whatif.calibrate("minife").write(tmp_path / "out.toml")
    written_text = (tmp_path / "out.toml").read_text()
    code, _, err = whatif_main("validate", "out.toml", "--by", "result")
    assert code == 0
    assert "calibrated: 4 corrections" in err
    assert "the corrections were fitted to these runs" in err
    for words in (("-o", "out.toml"), ("-o", "new.toml"), ("--format", "toml")):
        code, out, err = whatif_main("validate", "out.toml", *words)
        assert (code, out, "not written: the corrections were fitted" in err) == (2, "", True)
    assert (tmp_path / "out.toml").read_text() == written_text
    (tmp_path / "later.csv").write_text("rank_count,iteration_time [ms]\n64,6\n")
    code, _, err = whatif_main("validate", "out.toml", "--runs", "later.csv", "-o", "new.toml")
    assert (code, "fitted to these runs" in err) == (0, False)
    assert whatif.load(tmp_path / "new.toml").program.loaded.scenario.runs == "later.csv"


@pytest.mark.parametrize("verb", ["validate", "calibrate"])
def test_files_of_runs_are_neither_replaced_nor_dropped(tmp_path, whatif_main, verb):
    text = (ROOT / "scenarios" / "minife_runs.csv").read_text()
    (tmp_path / "r.csv").write_text(text)
    code, _, err = whatif_main(verb, "minife", "--runs", "r.csv", "-o", "./r.csv")
    assert (code, "r.csv: holds the measurements" in err) == (2, True)
    assert (tmp_path / "r.csv").read_text() == text
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "r.csv").write_text("rank_count,iteration_time [ms]\n4,5\n")
    code, _, err = whatif_main(verb, "minife", "--runs", "r.csv", "-o", "there/out.toml")
    assert (code, "r.csv`, which holds others" in err) == (2, True)
    assert not (tmp_path / "there" / "out.toml").exists()


def test_corrections_of_a_message_are_the_stated_arithmetic():
    overrides = {
        "calibration.application.message_factor": 1.5,
        "calibration.application.message_time": "2 us",
        "calibration.platforms.lassen.doubling_factor": 0.1,
        "application.rank_count": 64,
    }
    plain, corrected = (whatif.run("minimd", overrides=its) for its in ({"application.rank_count": 64}, overrides))
    expected = (1.5 + 0.1 * np.log2(16)) * plain["terms.exchange"] + 6 * 2e-6
    np.testing.assert_allclose(corrected["terms.exchange"], expected, rtol=1e-12, atol=0)


def halo_time(platform, ranks, model, buffers, **overrides):
    """Halo of MiniFE without congestion."""
    stated = {"rank_count": ranks, "phases.halo.model": model, "buffers": buffers, "congestion": "none"}
    applied = {f"application.{key}": value for key, value in stated.items()} | overrides
    return float(whatif.run("minife", platform=platform, overrides=applied)["terms.halo"])


UNSHARED = {"calibration.platforms.lassen.sharing_factor": 0}


@pytest.mark.parametrize("buffers", ["host", "staged", "device"])
@pytest.mark.parametrize(("model", "ranks"), [("postal", 16), ("node_aware", 4)])
def test_messages_that_share_no_adapter_take_no_time_of_sharing(model, ranks, buffers):
    alone = halo_time("lassen", ranks, model, buffers, **UNSHARED)
    np.testing.assert_allclose(alone, halo_time("lassen", ranks, model, buffers), rtol=1e-12, atol=0)


@pytest.mark.parametrize("buffers", ["host", "staged", "device"])
def test_without_sharing_the_k_model_and_max_rate_are_equal(buffers):
    alone, one = (halo_time("lassen", 16, model, buffers, **UNSHARED) for model in ("k_model", "max_rate"))
    np.testing.assert_allclose(alone, one, rtol=1e-12, atol=0)
    assert 0 < alone < halo_time("lassen", 16, "k_model", buffers)


def test_corrections_of_a_platform_stay_there(tmp_path):
    overrides = {"calibration.platforms.lassen.doubling_factor": 0.5, "calibration.application.doubling_time": "1 ms"}
    on = {name: whatif.run("minimd", platform=name, overrides=overrides) for name in ("lassen", "summit")}
    plain = {name: whatif.run("minimd", platform=name) for name in on}
    assert float(on["lassen"]["terms.exchange"]) > 2 * float(plain["lassen"]["terms.exchange"])
    np.testing.assert_allclose(on["summit"]["terms.exchange"], plain["summit"]["terms.exchange"], rtol=1e-12, atol=0)
    assert float(on["summit"]["terms.correction"]) == pytest.approx(np.log2(171) * 1e-3, rel=1e-12, abs=0)
    (tmp_path / "faster.toml").write_text('extends = "lassen"\nname = "Lassen 2"\n')
    further = whatif.run("minimd", platform=tmp_path / "faster.toml", overrides=overrides)
    np.testing.assert_allclose(further["terms.exchange"], on["lassen"]["terms.exchange"], rtol=1e-12, atol=0)


def test_file_keeps_comments_and_states_source_intervals_and_range(tmp_path, whatif_main):
    for name in ("minife.toml", "minife_runs.csv"):
        (tmp_path / name).write_bytes((ROOT / "scenarios" / name).read_bytes())
    code, out, err = whatif_main("calibrate", "minife.toml", "-o", "out.toml")
    assert (code, out) == (0, "")
    assert "held-out runs" in err
    before, after = (tmp_path / name for name in ("minife.toml", "out.toml"))
    added = [line for line in after.read_text().splitlines() if line not in before.read_text().splitlines()]
    gone = [line for line in before.read_text().splitlines() if line not in after.read_text().splitlines()]
    assert [line.split(" = ")[0] for line in gone] == ["iteration", "communication", "kernel"]
    assert added[0] == "[calibration.application]"
    assert any(line.startswith("kernel_factor = 0.9") for line in added)
    fitted = whatif.load(after).program.parameters["calibration.application.kernel_factor"]
    assert "5 runs of minife_runs.csv" in fitted.source
    assert fitted.grade == "measured"
    assert 0 < fitted.fitted.standard_error < 0.1
    assert fitted.fitted.ranges == {"rank_count": (2.0, 32.0)}
    assert len(fitted.fitted.correlation) == 4
    again = whatif.calibrate(after)
    np.testing.assert_allclose(list(again.values.values()), list(whatif.calibrate("minife").values.values()), rtol=1e-9)
    errors = {item.result: item.mean_absolute_error for item in whatif.validate(after).accuracy}
    assert errors["iteration_time"] < 0.02
    code, out, err = whatif_main("run", "out.toml", "--point")
    assert "calibrated: 4 corrections (whatif calibrate: 5 runs of minife_runs.csv)" in err
    code, out, err = whatif_main("run", "out.toml", "--point", "--samples", "64")
    assert "8 uncertain values" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sedov",), "no measured runs"),
        (
            ("minife", "--runs", "few.csv", "--correct", "kernels", "--correct", "overhead"),
            "1 measured value cannot determine 2 corrections",
        ),
        (
            ("minife", "--runs", "halo.csv", "--correct", "kernels"),
            "no measured value depends on corrections of kernels",
        ),
        (("minife", "--correct", "kernel"), "--correct kernel: expected one of "),
        (("minife", "-o", "x.svg"), "no picture"),
    ],
)
def test_wrong_input_writes_nothing(whatif_main, tmp_path, words, message):
    (tmp_path / "few.csv").write_text("rank_count,iteration_time [ms]\n4,5\n")
    (tmp_path / "halo.csv").write_text("rank_count,halo [ms]\n4,5\n8,5\n")
    more = () if "-o" in words else ("-o", "x.toml")
    code, out, err = whatif_main("calibrate", *words, *more)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.glob("x.*"))


def test_unknown_kernel_of_a_calibration_is_an_error(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('extends = "minimd"\n[calibration.application.kernel_factors]\nforc = 2\n')
    with pytest.raises(whatif.WhatifError, match=r"x.toml:3:1: .*no kernel phase `forc`; did you mean `force`"):
        whatif.run(path)


def test_infeasible_run_is_refused_with_its_line(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("rank_count,iteration_time [ms]\n4,5\n8,6\n70000,7\n")
    with pytest.raises(whatif.WhatifError, match=":4:1: infeasible: the ranks need more nodes"):
        whatif.calibrate("minife", runs=path)


@pytest.fixture(scope="module")
def calibrated_minife(tmp_path_factory):
    path = tmp_path_factory.mktemp("calibrated") / "minife_lassen.toml"
    whatif.calibrate("minife").write(path)
    return path


@pytest.mark.parametrize(("ranks", "outside"), [(2, False), (32, False), (1, True), (64, True)])
def test_a_number_of_ranks_outside_of_the_runs_is_an_extrapolation(calibrated_minife, ranks, outside):
    notes = whatif.run(calibrated_minife, overrides={"application.rank_count": ranks}).notes
    note = f"warning: calibration: numbers of ranks of {ranks} lie outside the 2 to 32 of its runs"
    assert (note in notes) == outside


def test_large_added_times_and_growth_of_one_machine_are_noted(calibrated_minife):
    here, elsewhere = (
        whatif.run(calibrated_minife, platform=name, overrides={"application.rank_count": 512})
        for name in ("lassen", "perlmutter")
    )
    growth = "runs on lassen alone do not show whether the added growth with the nodes is due to the network"
    growth = f"warning: calibration: {growth}"
    assert growth in elsewhere.notes
    assert growth not in here.notes
    share = float(elsewhere["terms.correction"] / elsewhere["iteration_time"])
    assert share > 0.2
    assert f"warning: {share:.0%} of the iteration is time that calibration adds without a model" in elsewhere.notes


def test_measured_times_in_a_wrong_unit_are_suspected(tmp_path):
    runs = (ROOT / "scenarios" / "minife_runs.csv").read_text(encoding="utf-8")
    (tmp_path / "wrong.csv").write_text(runs.replace("iteration_time [us]", "iteration_time [ms]"), encoding="utf-8")
    wrong = {"runs": tmp_path / "wrong.csv"}
    for found in (whatif.validate("minife", **wrong), whatif.calibrate("minife", **wrong)):
        (line,) = [line for line in found.summary() if "unit of its column" in line]
        assert "iteration_time: measured is 1,0" in line
    assert not [line for line in whatif.validate("minife").summary() if "unit" in line]
