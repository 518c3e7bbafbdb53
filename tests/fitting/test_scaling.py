"""Scaling fits: known truths, intervals, pooling, published series, and wrong input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from scipy.stats import t as student

import whatif
from tests.fitting import scaling_errors
from tests.paths import DATA, ROOT
from whatif.api.measurements import ImportedTable
from whatif.errors import UsageError
from whatif.fitting.scaling_fits import CACHE, CANDIDATES, POWER, TERMS, Problems, non_negative, predictions
from whatif.fitting.scaling_runs import runs_of
from whatif.fitting.scaling_study import NOTHING_HELD_OUT, ScalingOptions, study_scaling
from whatif.table import Column, Table
from whatif.units import ONE, SECOND

LULESH = DATA / "runs" / "caliper" / "lulesh_grid_runs.csv"
P = 2.0 ** np.arange(6)
PLAIN = [it for it in CANDIDATES if not {CACHE, POWER} & set(it.terms)]


def table(counts, time, name="nodes", **others):
    columns = {name: Column(np.asarray(counts, float), ONE), "total_time": Column(np.asarray(time, float), SECOND)}
    columns |= {key: Column(np.asarray(it, float), ONE) for key, it in others.items() if key != "case"}
    columns |= {"case": Column(np.array(others["case"], dtype=object))} if "case" in others else {}
    return Table(columns, {"file": "runs.csv"})


def predicted(runs, *points, **options):
    fit = study_scaling(
        runs, ScalingOptions([{key: str(it) for key, it in point.items()} for point in points], **options)
    )
    return fit.table().to_pandas(), fit.notes


def problem(p, time, target, n=None, target_n=None):
    apart = n is not None
    arrays = [np.asarray(it, float)[None] for it in (p, n if apart else p, time)]
    ends = [np.array([float(it)]) for it in (target, target_n if apart else target)]
    return Problems(*arrays, np.ones_like(arrays[0], dtype=bool), np.array([apart]), *ends)


@pytest.mark.parametrize("candidate", PLAIN, ids=lambda it: it.name)
def test_exact_times_give_back_the_form(candidate):
    p, n = np.array([2.0, 4, 4, 8, 16, 32, 64]), np.array([1.0, 1, 2, 2, 2, 4, 8])
    p, n = (p, n) if candidate.apart else (p[2:], p[2:])

    def truth(p, n):
        return sum(2.0**-at * TERMS[name](p, n) for at, name in enumerate(candidate.terms))

    found = predictions(problem(p, truth(p, n), 256.0, n if candidate.apart else None, 32.0))
    expected = truth(np.array([256.0]), np.array([32.0 if candidate.apart else 256.0]))
    assert_allclose(np.exp(found[CANDIDATES.index(candidate)]), expected, rtol=1e-6, atol=0)


def test_power_law_is_found_and_never_falls_faster_than_perfect_scaling():
    row = next(at for at, it in enumerate(CANDIDATES) if POWER in it.terms)
    assert_allclose(np.exp(predictions(problem(P, P**-0.7, 64.0))[row]), 64**-0.7, rtol=1e-9, atol=0)
    (steep,) = np.exp(predictions(problem(P, P**-1.5, 64.0))[row])
    assert 0.99 * 32**-1.5 / 2 < steep < 1.6 * 32**-1.5 / 2


def test_work_in_cache_is_found():
    row = next(at for at, it in enumerate(CANDIDATES) if it.terms == ("1/p", CACHE))
    truth = 1 / P + 2 * np.maximum(1 / P - 1 / 8, 0)
    assert_allclose(np.exp(predictions(problem(P, truth, 64.0))[row]), 1 / 64, rtol=1e-3, atol=0)


def test_non_negative_coefficients_are_those_of_scipy():
    random = np.random.default_rng(0)
    design, values = random.normal(size=(50, 6, 3)), random.normal(size=(50, 6))
    found, squares = non_negative(design, values)
    for row in range(50):
        expected, length = nnls(design[row], values[row])
        assert_array_equal(found[row] > 0, expected > 0)
        assert_allclose(found[row], expected, rtol=1e-6, atol=0)
        assert_allclose(squares[row], length**2, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("truth", "most"),
    [
        (lambda p: 100 / p, 0.001),
        (lambda p: 100 / p + 3, 0.06),
        (lambda p: 100 / p + 20 * p ** (-2 / 3), 0.01),
        (lambda p: 100 / p + 2 * np.log2(p), 0.06),
        (lambda p: 50 + 3 * np.log2(p), 0.02),
        (lambda p: 100 / p + 200 * np.maximum(1 / p - 1 / 8, 0), 0.03),
    ],
    ids=["perfect", "Amdahl", "halo", "reduction", "weak", "cache"],
)
def test_known_truths_are_extrapolated(truth, most):
    rows, _ = predicted(table(P, truth(P)), {"nodes": 64})
    error = abs(rows["fit"][0] / truth(np.array([64.0]))[0] - 1)
    assert error < most
    assert rows["lower"][0] < truth(np.array([64.0]))[0] < rows["upper"][0]


def test_intervals_hold_runs_of_known_truths_and_grow_with_the_distance():
    random, inside, widths = np.random.default_rng(1), [], []
    for _ in range(150):
        serial, halo, tree = random.choice([0, 1], 3) * np.exp(random.uniform(np.log(0.003), np.log(0.1), 3))
        counts = 2.0 ** np.arange(random.integers(4, 7))
        everywhere = np.append(counts, [2 * counts[-1], 4 * counts[-1]])
        truth = 1 / everywhere + (serial + halo * everywhere ** (-2 / 3) + tree * np.log2(everywhere)) / counts[-1]
        time = truth * np.exp(random.normal(0, 0.02, len(truth)))
        rows, _ = predicted(table(counts, time[:-2]), *({"nodes": it} for it in everywhere[-2:]))
        inside.append((rows["lower"] <= time[-2:]) & (time[-2:] <= rows["upper"]))
        widths.append(np.log(rows["upper"] / rows["lower"]))
    assert (np.mean(inside, axis=0) >= 0.9).all()
    assert (np.diff(widths, axis=1) > 0).all()
    assert np.median(widths, axis=0)[0] < 0.6


def test_higher_levels_have_wider_intervals():
    rows = [predicted(table(P, 100 / P + P**-0.5), {"nodes": 64}, level=level)[0] for level in (0.5, 0.95)]
    assert rows[0]["upper"][0] < rows[1]["upper"][0]
    assert rows[0]["fit"][0] == rows[1]["fit"][0]


def saturating(names):
    """Series of one program whose serial part shows only from four nodes on."""
    parts = [(P[:3] if name == "short" else P, 10.0 + number) for number, name in enumerate(names)]
    names = np.concatenate([[name] * len(p) for name, (p, _) in zip(names, parts, strict=True)])
    times = np.concatenate([100 / p + serial for p, serial in parts])
    return table(np.concatenate([p for p, _ in parts]), times, case=names)


def test_series_of_one_program_share_which_form_holds():
    truth = 100 / 32 + 10
    alone, _ = predicted(saturating(["short"]), {"nodes": 32})
    pooled, _ = predicted(saturating(["short", *"abcde"]), {"nodes": 32})
    errors = [abs(rows["fit"][0] / truth - 1) for rows in (alone, pooled)]
    assert errors[1] < errors[0] / 2
    share, _, form = pooled["model"][0].partition("% ")
    assert int(share) >= 90
    assert form == "1/p + 1"


@pytest.mark.parametrize("counts", [P, [1.0, 2, 4, 8, 10, 11, 16], [1.0, 2, 4, 8, 12, 13]])
def test_held_out_prediction_does_not_know_what_it_predicts(counts):
    counts = np.array(counts)
    time = 100 / counts + 2
    later = np.where(1.4 * counts > counts[-1], 50, time)
    first, other = (study_scaling(table(counts, it), ScalingOptions()).table().to_pandas() for it in (time, later))
    assert_allclose(*(it[["fit", "lower", "upper"]] for it in (first, other)), rtol=1e-9, atol=0)
    assert first["nodes"].tolist() == [counts[-1]]
    assert first["measured"][0] == pytest.approx(time[-1])
    assert other["measured"][0] == pytest.approx(50)


def test_naive_rule_is_reported_on_the_same_runs():
    rows, notes = predicted(table(P, 100 / P + 3), {"nodes": 64})
    assert rows["naive"][0] == pytest.approx((100 / 32 + 3) / 2)
    assert re.search(r"largest counts of 1 series, predicted from smaller ones: mean error [\d.]+%", notes[0])
    assert "perfect scaling from the last run: mean error 24.5%" in notes[1]


def test_naive_rule_of_weak_scaling_is_the_same_time():
    rows, _ = predicted(table(P, 50 + np.log2(P)), {"nodes": 64})
    assert rows["naive"][0] == pytest.approx(55)


def test_bandwidth_of_nodes_that_ranks_share():
    ranks, nodes = np.array([1.0, 2, 4, 8, 16, 16, 16, 16]), np.array([1.0, 1, 1, 1, 1, 2, 4, 8])
    runs = table(nodes, 100 / (ranks * nodes) + 30 / nodes, processes=ranks * nodes)
    rows, notes = predicted(runs, {"nodes": 16, "processes": 256}, {"nodes": 16, "processes": 64})
    expected = np.array([100 / 256 + 30 / 16, 100 / 64 + 30 / 16])
    assert_allclose(rows["fit"], expected, rtol=0.1, atol=0)
    assert not any("16 processes on a node" in note for note in notes)
    same, notes = predicted(runs, {"nodes": 16})
    assert same["fit"][0] == pytest.approx(rows["fit"][0])
    assert any("nodes=16: 16 processes on a node, as in the largest run" in note for note in notes)


def test_processes_and_nodes_in_proportion_are_one_count():
    runs = table(P, 100 / P + 1, processes=32 * P)
    by_nodes, by_both = (predicted(runs, point)[0] for point in ({"nodes": 64}, {"nodes": 64, "processes": 2048}))
    assert by_nodes["fit"][0] == by_both["fit"][0]
    with pytest.raises(UsageError, match="all runs have 32 processes on a node"):
        predicted(runs, {"nodes": 64, "processes": 1024})


def test_repetitions_count_as_their_median_and_widen_the_interval():
    time = 100 / P + 1
    once, _ = predicted(table(P, time), {"nodes": 64})
    noisy = table(np.repeat(P, 3), np.outer(time, [0.9, 1.0, 1.3]).ravel())
    repeated, _ = predicted(noisy, {"nodes": 64})
    assert repeated["fit"][0] == pytest.approx(once["fit"][0], rel=1e-9)
    assert repeated["upper"][0] > once["upper"][0]


@pytest.mark.parametrize("repetitions", [2, 3, 10])
def test_scatter_does_not_depend_on_the_number_of_repetitions(repetitions):
    counts = np.repeat(np.arange(1.0, 401), repetitions)
    noise = np.random.default_rng(3).normal(0, 0.05, len(counts))
    (series,) = runs_of(table(counts, np.exp(noise) / counts)).series
    assert series.scatter == pytest.approx(0.05, rel=0.1)


def test_different_cases_at_one_count_are_remarked():
    runs = runs_of(table(np.repeat(P, 2), np.outer(100 / P, [1, 1.6]).ravel()))
    assert runs.warnings == (
        "runs.csv: times of one count differ by a factor of 1.6: --series COLUMN,.. separates different cases",
    )
    assert not runs_of(table(np.repeat(P, 2), np.outer(100 / P, [1, 1.4]).ravel())).warnings


def test_times_are_scaled_to_iterations():
    time, steps = 100 / P + 1, np.array([10.0, 10, 10, 10, 50, 50])
    plain, _ = predicted(table(P, 5 * time), {"nodes": 64})
    runs = table(P, time * steps / 10, iterations=steps)
    mixed, notes = predicted(runs, {"nodes": 64})
    assert mixed["fit"][0] == pytest.approx(plain["fit"][0])
    assert "warning: runs.csv: times are scaled to 50 iterations" in notes
    stated, _ = predicted(runs, {"nodes": 64, "iterations": 100}, {"nodes": 64})
    assert stated["iterations"].tolist() == [100, 50]
    assert_allclose(stated["fit"], [2 * plain["fit"][0], plain["fit"][0]], rtol=1e-9, atol=0)


def test_dense_counts_are_predicted_a_step_of_1_4_away():
    (series,) = (runs := runs_of(table(np.arange(1.0, 65), 100 / np.arange(1.0, 65)))).series
    origins = runs.origins()
    assert len(origins.measured) == 16
    assert (origins.problems.target_processes >= 1.4 * series.processes[origins.length - 1]).all()


def test_predictions_are_positive_whatever_the_runs():
    random = np.random.default_rng(2)
    for _ in range(50):
        counts = np.unique(random.integers(1, 100, 6))
        rows, _ = predicted(table(counts, np.exp(random.normal(0, 1, len(counts)))), {"nodes": 1000})
        assert (rows[["fit", "lower", "upper"]].to_numpy() > 0).all()


def test_counts_that_hardly_differ_give_finite_predictions():
    rows, _ = predicted(table([80_000, 80_001, 80_002], [1, 1, 3]), {"nodes": 160_000})
    assert 0.5 <= rows["fit"][0] <= 6


def test_two_counts_have_the_interval_of_the_priors():
    """Student's t of 4 degrees of freedom, 5 % for a doubling and the variance between the models (docs/scaling.md)."""
    rows, notes = predicted(table([1, 2], [10, 5.5]), {"nodes": 4})
    found = predictions(problem([1, 2], [10, 5.5], 4))[:, 0]
    priors = np.array([0.1 * 2 ** max(it.parameters - 2, 0) * (1.5 if it.grows else 1) for it in CANDIDATES])
    known = np.isfinite(found)
    weights = priors[known] ** -8 / (priors[known] ** -8).sum()
    centre = weights @ found[known]
    deviation = np.sqrt(0.05**2 + weights @ (found[known] - centre) ** 2)
    assert rows["fit"][0] == pytest.approx(np.exp(centre))
    assert rows["upper"][0] == pytest.approx(np.exp(centre + student.ppf(0.975, 4) * deviation))
    assert rows["lower"][0] == pytest.approx(np.exp(centre - student.ppf(0.975, 4) * deviation))
    assert NOTHING_HELD_OUT in notes


def test_distance_of_nodes_counts_as_that_of_processes():
    runs = table([1, 1, 1, 2, 2], [8, 4, 2.1, 1.2, 2.2], processes=[1, 2, 4, 8, 4])
    _, notes = predicted(runs, {"nodes": 64, "processes": 64})
    assert any("5.0 doublings beyond" in note for note in notes)


def test_held_out_runs_state_both_counts_where_they_vary_apart():
    runs = table([1, 1, 1, 1, 1], [8, 4.1, 2.2, 1.3, 0.8], processes=[1, 2, 4, 8, 16])
    rows = study_scaling(runs, ScalingOptions()).table().to_pandas()
    assert rows[["nodes", "processes"]].to_numpy().tolist() == [[1, 16]]


@pytest.mark.parametrize(("point", "words"), [({"nodes": 8}, "within the runs"), ({"nodes": 1024}, "5.0 doublings")])
def test_predictions_within_and_far_from_the_runs_are_remarked(point, words):
    assert any(words in note for note in predicted(table(P, 100 / P), point)[1])


def test_models_are_listed_with_reasons():
    found = study_scaling(table(P, 100 / P + 5), ScalingOptions(show="models")).table().to_pandas()
    assert len(found) == len(CANDIDATES)
    assert found["model"][0] == "1/p + 1"
    assert found["weight"].sum() == pytest.approx(1)


def test_lulesh_scales_weakly():
    """LULESH on 27 to 343 processes (LLNL/thicket, MIT); by the naive rule the error is 19 %."""
    runs = whatif.import_runs(LULESH)
    processes, time = (runs.values.columns[name].values for name in ("processes", "total_time"))
    fewer = ImportedTable(runs.values.at(processes < 343))
    row = whatif.fit_scaling(fewer, predict=["processes=343"]).to_pandas().iloc[0]
    assert row["lower"] < time[-1] < row["upper"]
    assert abs(row["fit"] / time[-1] - 1) < abs(row["naive"] / time[-1] - 1)


COUNT = "total_time [s]"


def test_a_predicted_count_may_have_another_usual_heading(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("tasks,time [s]\n1,10\n2,6\n4,4\n8,3\n")
    ranks, processes = (whatif.fit_scaling(path, predict=[f"{name}=16"]).to_pandas() for name in ("ranks", "processes"))
    assert ranks.equals(processes)
    with pytest.raises(UsageError, match="--predict ranks: no such column"):
        whatif.fit_scaling(path, predict=["ranks=16,processes=16"])


WRONG = {
    "one count": ("nodes,T\n4,1\n4,2\n", "runs.csv: run 1: `nodes` is 4 in all runs: scaling needs at least 2"),
    "one run": ("nodes,T\n4,1\n", "`nodes` is 4 in all runs"),
    "time of zero": ("nodes,T\n1,1\n2,0\n", "runs.csv: run 2: `total_time` is 0: a time is above 0"),
    "negative time": ("nodes,T\n1,-1\n2,1\n", "runs.csv: run 1: `total_time` is -1"),
    "count below 1": (
        "nodes,T\n0,1\n2,1\n",
        "runs.csv: run 1: `nodes` is 0: a count is a whole number from 1 to 2**53",
    ),
    "other unit": (
        "nodes,T\n1,1\n2,1e13\n",
        "run 2: `total_time` is 1e+13: out of range (1e-12 to 1e12 s); check the unit",
    ),
    "count and a half": ("nodes,T\n1.5,1\n2,1\n", "run 1: `nodes` is 1.5: a count is a whole number from 1"),
    "no time": ("nodes,t\n1,1\n2,1\n", "no column `total_time` or `time`; the columns are `nodes`, `t`"),
    "time without a unit": (
        "nodes,time\n1,1\n2,1\n",
        "`time` is in no unit, not in s; write the unit into",
    ),
    "no number": ("nodes,T\n1,NaN\n2,NA\n", "runs.csv: no run has a number in each of nodes, total_time"),
    "several sizes": ("nodes,cells,T\n1,5,1\n1,9,1\n2,5,1\n", "differ in `cells`: --series cells separates them"),
    "other column": ("processes,T\n1,1\n2,1\n", "--predict nodes: no such column"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_wrong_runs_are_refused_by_name(text, message, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(text.replace("T", COUNT))
    with pytest.raises(UsageError) as caught:
        whatif.fit_scaling(path, predict=["nodes=4"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predict": ["node=4"]}, "--predict node: no such column; did you mean `nodes`?"),
        ({"predict": ["nodes=x"]}, "--predict nodes=x: "),
        ({"predict": ["nodes=nan"]}, "--predict nodes=nan: "),
        ({"predict": ["nodes=0"]}, "--predict nodes=0: expected a whole number from 1 to 2**53"),
        ({"predict": ["nodes=4 GB"]}, "--predict nodes=4 GB: expected a whole number from 1 to 2**53"),
        ({"predict": ["nodes"]}, "--predict nodes: expected NAME=VALUE, such as nodes=64"),
        ({"predict": ["nodes=4.5"]}, "--predict nodes=4.5: expected a whole number from 1 to 2**53"),
        ({"predict": ["nodes=4,8"]}, "thousands have no mark; state each point with its own --predict"),
        ({"predict": ["total_time=4"]}, "--predict total_time: expected a column of counts, such as nodes=64"),
        ({"predict": ["cells=4"]}, "--predict cells: no such column"),
        ({"predict": ["iterations=4"]}, "--predict : expected one count"),
        ({"predict": ["nodes=4", "nodes=4,processes=8"]}, "another one states nodes"),
        ({"predict": ["nodes=4"], "show": "models"}, "--predict: no effect on the shown models"),
        ({"show": "prediction"}, "--show prediction needs --predict"),
        ({"show": "curves"}, "--show curves: expected one of"),
        ({"show": "models", "level": 0.9}, "--level: no effect on the shown models"),
        ({"level": 1.0}, "--level 1.0: expected a level above 0 % and below 100 %, such as 95%"),
        ({"series": "machine"}, "--series machine: no such column"),
    ],
)
def test_wrong_options_are_refused(options, message, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("nodes,processes,iterations,total_time [s]\n1,2,5,4\n2,4,5,2\n4,8,5,1\n")
    with pytest.raises(UsageError) as caught:
        whatif.fit_scaling(path, **options)
    assert message in str(caught.value)


def test_runs_without_a_number_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("nodes,total_time [s]\n1,4\n2,2\n4,NaN\n8,0.5\n")
    fit = whatif.fit_scaling(path, predict=["nodes=16"])
    assert any("runs.csv: run 3: no number in `total_time`; runs left out: 1" in note for note in fit.notes)


def test_series_are_told_apart_by_columns_and_files(tmp_path):
    for name, factor in (("a", 1), ("b", 2)):
        rows = [f"{p},{p * size},{size},{factor * size / p}" for size in (1, 5) for p in (1, 2, 4)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["nodes,tasks,cells,total_time [s]", *rows, ""]))
    rows = whatif.fit_scaling([tmp_path / "a.csv", tmp_path / "b.csv"], predict=["nodes=8"], series="cells").to_pandas()
    assert rows["series"].tolist() == ["a.csv, 1", "a.csv, 5", "b.csv, 1", "b.csv, 5"]
    assert_allclose(rows["fit"], [1 / 8, 5 / 8, 2 / 8, 10 / 8], rtol=0.02, atol=0)


@pytest.mark.shared_data
def test_published_series_and_the_documentation():
    alone = scaling_errors.scaling(1, pooled=False)
    errors = np.abs([error for error, _ in alone.values()])
    assert errors.mean() < 0.1
    assert np.median(errors) < 0.05
    assert np.mean([inside for _, inside in alone.values()]) >= 0.9
    assert min(error for error, _ in scaling_errors.others(1, "`fit regression --search`").values()) > -1
    text = (ROOT / "docs" / "scaling.md").read_text()
    for row in [*scaling_errors.rules_table(), *scaling_errors.programs_table()]:
        assert row in text
