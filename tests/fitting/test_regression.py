"""Regressions of measured runs: formulas, fits, their checks, and the way into a scenario."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import tomli
from numpy.testing import assert_allclose
from scipy.stats import f as f_distribution

from tests.paths import DATA
from whatif.errors import UsageError
from whatif.fitting.additive import additive
from whatif.fitting.formula import parse_formula
from whatif.fitting.least_squares import fit_runs
from whatif.fitting.model_checks import compare, cross_validate, diagnose
from whatif.fitting.regression_tables import second_opinion
from whatif.importers.run_files import read_runs
from whatif.schema.load import load_part
from whatif.schema.shipped import shipped_folder
from whatif.table import Column, Table
from whatif.units import BYTE, ONE, SECOND

MEMORY = (1.25, 2.5, 5.0, 10.0, 20.0)
FULL = "time ~ (x1 + I(x1**2)) * x2"
TRUE = {"Intercept": 100.0, "x1": 20.0, "I(x1 ** 2)": 0.5, "x2": 0.01, "x1:x2": 1e-3, "I(x1 ** 2):x2": 1e-4}


def runs(count=120, seed=0, scatter=5.0):
    """Runs in ms and GB with a known truth and normal scatter."""
    rng = np.random.default_rng(seed)
    x1, x2 = rng.choice(MEMORY, count), rng.choice((512.0, 1024.0, 2048.0, 3584.0), count)
    time = 100 + 20 * x1 + 0.5 * x1**2 + (0.01 + 1e-3 * x1 + 1e-4 * x1**2) * x2 + rng.normal(0, scatter, count)
    names = Column(np.array(["P100", "K80"] * (count // 2), dtype=object))
    return Table(
        {
            "time": Column(time * 1e-3, SECOND, "ms"),
            "x1": Column(x1 * 1e9, BYTE, "GB"),
            "x2": Column(x2, ONE),
            "device": names,
            "nodes": Column(np.full(count, 4.0), ONE),
        },
        {"file": "runs.csv"},
    )


def columns(table):
    return {name: None if it.dimension is None else it.as_written() for name, it in table.columns.items()}


def written(folder, table, name="runs.csv"):
    rows = [["time [ms]", "x1 [GB]", "x2"]]
    rows += [
        [f"{value!r}" for value in row]
        for row in zip(*(columns(table)[it].tolist() for it in ("time", "x1", "x2")), strict=True)
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    (folder / name).write_text(text.getvalue())
    return folder / name


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, runs())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("time ~ (x1 + I(x1**2)) * x2", list(TRUE)),
        ("time ~ x1 / x2 - 1", ["x1", "x1:x2"]),
        ("log(time) ~ 0 + log2(x1):sqrt(x2)", ["log2(x1):sqrt(x2)"]),
        ("time ~ (x1 + x2)**2", ["Intercept", "x1", "x2", "x1:x2"]),
        ("time ~ 1", ["Intercept"]),
        ("time ~ 0 + I(x1 * 1e-3 + 1.E+3)", ["I(x1 * 0.001 + 1000.0)"]),
    ],
)
def test_a_formula_has_the_terms_that_r_gives_it(text, names):
    assert [term.name for term in parse_formula(text, columns(runs())).terms] == names


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_polynomials_are_orthogonal_and_of_length_one_as_those_of_r(degree):
    given = columns(runs())
    design = parse_formula(f"time ~ 0 + poly(x1, {degree})", given).design(given)
    products = np.column_stack((np.ones(len(design)), design)).T @ np.column_stack((np.ones(len(design)), design))
    products[0, 0] = 1.0
    assert np.abs(products - np.eye(degree + 1)).max() < 1e-10
    # Of R 4: `poly(1:5, 2)`, with its signs.
    five = {"x": np.arange(1.0, 6.0)}
    found = parse_formula("x ~ poly(x, 2)", five).design(five)[:, 1:]
    assert_allclose(found[:, 0], np.array([-2, -1, 0, 1, 2]) / np.sqrt(10), rtol=1e-12, atol=1e-15)
    assert_allclose(found[:, 1], np.array([2, -1, -2, -1, 2]) / np.sqrt(14), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time ~ x9", "`x9`: the runs have no such column; the columns are time, x1"),
        ("time ~ I(log)", "`log`: the runs have no such column"),
        ("time ~ (x1 + 0*2**(0 0**2)) * x2", "not a formula such as `time ~ x1 * x2`"),
        ("time ~ I ()", "`I`: the runs have no column `I`"),
        ("time ~ " + "1" * 100 + " $", "a formula holds no `$`"),
        ("time ~ X1", "`X1`: the runs have no such column; did you mean `x1`"),
        (
            "time ~ device",
            "or keep the runs of one text with --where device=TEXT",
        ),
        ("time ~ open(x1)", "`open(..)`: no such function; allowed: I, poly, min"),
        ("time ~ x1.__class__", "a formula holds no `.__class__`"),
        ("time ~ __import__('os')", "a formula holds no `'os')`"),
        ("time ~ x2 + 1 / x1", "`1 / x1` in a formula nests terms: write `I(1 / x1)` for the quotient"),
        ("time ~ x1/2", "write `I(x1/2)` for the quotient"),
        ("time ~ x1**2", "write `I(x1**2)` for its square"),
        ("time ~ 2*x1", "Numeric literals other than `1`"),
        ("time ~ I(2 + )", "invalid syntax"),
        ("x1 + x2", "expected `RESPONSE ~ TERMS`"),
        ("time ~ x1 ~ x2", "expected `RESPONSE ~ TERMS`"),
        ("sqrt(time) ~ x1", "expected `RESPONSE ~ TERMS` or `log(RESPONSE) ~ TERMS`"),
        ("time ~ x1 +", "`time ~ x1 +`: not a formula such as `time ~ x1 * x2`: "),
        ("time ~ 0", "has no terms"),
        ("time ~ poly(x1, x2)", "expected `poly(COLUMN, DEGREE)`"),
        ("time ~ poly(x1, 5)", "`x1` has only 5 different values"),
        ("time ~ poly(x1, 7)", "with a degree from 1 to 5"),
        ("time ~ (x1 + x2)**99999", "at most 12 together"),
        ("time ~ ((x1 + x2)**9)**9", "at most 12 together"),
        ("time ~ x1 + log(time)", "`time` is on both sides"),
        ("time ~ I(x1 - x1)", "`I(x1 - x1)` is 0 in all runs"),
        ("time ~ " + " * ".join(f"a{i}" for i in range(14)), "explains by 14 columns: at most 12"),
        ("time ~ " + "x" * 2000, "characters"),
        ("time ~ x1 + I(2 * x1)", "`I(2 * x1)` is a sum of `x1` in all runs"),
        ("time ~ nodes", "`nodes` is 4 in all runs"),
        ("nodes ~ x1", "`nodes` is 4 in all runs: nothing to explain"),
        ("time ~ log(x1 - 5)", "has no value in"),
        ("log(x2) ~ log(x1 - 20)", "has no value in"),
    ],
)
def test_invalid_regressions_are_refused(text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        fit_runs(runs(), text)


def test_runs_must_be_more_than_terms_and_those_without_a_number_are_left_out():
    with pytest.raises(UsageError, match="6 runs for 6 terms: a regression needs more runs than terms"):
        fit_runs(runs(6), FULL)
    table = runs()
    table.columns["x2"].values[:3] = np.nan
    fit = fit_runs(table, FULL)
    assert fit.warnings == ("3 of 120 runs lack a number that the formula reads; they are left out",)
    assert len(fit.measured) == 117
    table.columns["time"].values[:] *= -1
    with pytest.raises(UsageError, match="`time` is not positive in 120 runs"):
        fit_runs(table, "log(time) ~ x1")


def test_coefficients_and_errors_are_those_of_the_normal_equations():
    """Written out anew: b = (X'X)^-1 X'y, and its covariance s² (X'X)^-1."""
    fit = fit_runs(runs(), FULL)
    x1, x2, time = (fit.columns[name] for name in ("x1", "x2", "time"))
    design = np.stack([x1**0, x1, x1**2, x2, x1 * x2, x1**2 * x2], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    expected = inverse @ design.T @ time
    scatter = np.sqrt(((time - design @ expected) ** 2).sum() / (120 - 6))
    assert_allclose(fit.coefficients, expected, rtol=1e-8, atol=0)
    assert_allclose(fit.residual_standard_error, scatter, rtol=1e-9, atol=0)
    assert_allclose(fit.covariance, scatter**2 * inverse, rtol=1e-7, atol=0)


def test_stated_errors_cover_the_true_value():
    """t of the true coefficients over 200 experiments: a share of 95 % within its quantiles, give or take 2.5 %."""
    truth = np.array(list(TRUE.values()))
    fits = [fit_runs(runs(60, seed), FULL) for seed in range(200)]
    t = np.array([(fit.coefficients - truth) / fit.standard_errors for fit in fits])
    assert abs((np.abs(t) < 2.005).mean() - 0.95) < 0.025


@pytest.mark.parametrize("formula", [FULL, "log(time) ~ log(x1) * x2"])
def test_prediction_intervals_hold_the_share_of_new_runs_that_they_state(formula):
    seen, new = runs(400), runs(4000, 1)
    if formula != FULL:
        for table in (seen, new):
            x1, x2 = (columns(table)[name] for name in ("x1", "x2"))
            scatter = np.random.default_rng(len(table)).normal(0, 0.2, len(table))
            table.columns["time"].values[:] = 1e-3 * np.exp(
                3 + 0.9 * np.log(x1) + (1e-4 * np.log(x1) + 1e-4) * x2 + scatter
            )
    fit = fit_runs(seen, formula)
    inside = fit.predict(columns(new), 0.9).holds(columns(new)["time"]).mean()
    assert abs(inside - 0.9) < 0.03
    narrow = fit.predict(columns(new), 0.9, "confidence").holds(columns(new)["time"]).mean()
    assert narrow < 0.5


def test_a_regression_of_the_logarithm_never_predicts_a_negative_time():
    """Where the plain one's interval goes below zero, as in Table 12 of the paper."""
    table = runs(scatter=60.0)
    far = {"x1": np.array([1.25]), "x2": np.array([512.0])}
    assert fit_runs(table, "time ~ x1 * x2").predict(far).lower[0] < 0
    table.columns["time"].values[:] = np.abs(table.columns["time"].values)
    assert fit_runs(table, "log(time) ~ log(x1)").predict(far).lower[0] > 0


def test_comparison_is_the_analysis_of_variance_with_the_variance_of_the_largest_model():
    small, middle, large = (fit_runs(runs(), text) for text in ("time ~ x1", "time ~ x1 * x2", FULL))
    steps = compare([large, small, middle])
    assert [step.freedom for step in steps] == [118, 116, 114]
    variance = steps[2].rss / 114
    for before, step in pairwise(steps):
        f = (before.rss - step.rss) / 2 / variance
        assert_allclose((step.f, step.p), (f, f_distribution.sf(f, 2, 114)), rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (["time ~ x1", "time ~ x2"], "have equally many terms"),
        (["time ~ x1", "time ~ x2 + I(x2**2)"], "the larger one lacks `x1`"),
        (["time ~ x1", "log(time) ~ x1 * x2"], "different runs or responses"),
    ],
)
def test_models_that_do_not_hold_each_other_are_not_compared_by_their_variance(others, message):
    with pytest.raises(UsageError, match=message):
        compare([fit_runs(runs(), text) for text in others])


def test_cross_validation_is_what_fits_without_each_fold_predict():
    fit = fit_runs(runs(), FULL)
    found = cross_validate(fit, folds=7, repeats=2, seed=3)
    rng, expected = np.random.default_rng(3), np.empty((2, 120))
    points = np.unique(fit.design, axis=0, return_inverse=True)[1].ravel()
    for row in expected:
        for chosen in np.array_split(rng.permutation(points.max() + 1), 7):
            part = np.flatnonzero(np.isin(points, chosen))
            rest = np.setdiff1d(np.arange(120), part)
            row[part] = fit.design[part] @ np.linalg.lstsq(fit.design[rest], fit.measured[rest], rcond=None)[0]
    assert_allclose(found.predicted, expected, rtol=1e-9, atol=0)
    assert_allclose(found.rmse, np.sqrt(((expected - fit.measured) ** 2).mean()), rtol=1e-9, atol=0)
    assert found.undetermined == 0


def test_a_fold_without_which_a_term_is_unknown_is_counted_and_left_out():
    """Only two runs differ in x2: folds that hold both leave the others without variation."""
    table = runs(30)
    table.columns["x2"].values[:] = 512.0
    table.columns["x2"].values[:2] = 1024.0
    found = cross_validate(fit_runs(table, "time ~ x1 + x2"), folds=3, repeats=20)
    assert 0 < found.undetermined < 20
    assert np.isnan(found.predicted).any()
    assert np.isfinite(found.rmse)


def test_diagnostics_see_scatter_that_grows_a_run_that_is_wrong_and_terms_that_say_the_same():
    table = runs(200)
    quiet = diagnose(fit_runs(table, FULL))
    assert quiet.heteroscedasticity > 0.05
    assert quiet.distances.max() < 1
    x1 = table.columns["x1"].values / 1e9
    table.columns["time"].values[:] += np.random.default_rng(1).normal(0, 1e-3, 200) * x1**1.5
    assert diagnose(fit_runs(table, FULL)).heteroscedasticity < 1e-3
    table.columns["time"].values[17] *= 3
    wrong = diagnose(fit_runs(table, FULL))
    assert wrong.distances.argmax() == np.abs(wrong.studentised).argmax() == 17
    assert wrong.normality < 1e-3
    straight = diagnose(fit_runs(table, "time ~ x1 + x2"))
    assert straight.inflation[1:].max() < 1.2
    assert quiet.inflation[1:].max() > 10


def test_shares_that_sum_to_one_are_diagnosed_like_one_share_and_a_constant():
    rng = np.random.default_rng(0)
    share, size = rng.uniform(0, 1, (2, 60))
    table = Table(
        {
            "time": Column(5 - 2 * share + size + rng.normal(0, 0.1, 60), SECOND),
            "gpu_share": Column(share, ONE), "cpu_share": Column(1 - share, ONE), "size": Column(size, ONE),
        }
    )  # fmt: skip
    both = diagnose(fit_runs(table, "time ~ 0 + gpu_share + cpu_share + size"))
    one = diagnose(fit_runs(table, "time ~ gpu_share + size"))
    assert both.inflation[:2].tolist() == [np.inf, np.inf]
    assert_allclose(both.inflation[2], one.inflation[2], rtol=1e-9, atol=0)
    assert_allclose(both.heteroscedasticity, one.heteroscedasticity, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("term", "value"), [("log(x1)", "-5 GB"), ("log(x1)", "0 GB"), ("I(1 / x1)", "0 GB")])
def test_a_point_where_a_term_has_no_value_is_refused(whatif_main, file, term, value):
    words = ("fit", "regression", file, "--formula", f"time ~ {term}", "--at", f"x1={value}")
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert f"x1 = {value.removesuffix(' GB')}: `{term}` has no value there" in err


def test_from_a_csv_of_runs_to_a_prediction_with_an_interval_in_two_commands(whatif_main, file, tmp_path):
    code, out, err = whatif_main(
        "fit", "regression", file, "--formula", FULL, "--level", "90%", "--at", "x1=40 GB,x2=2048",
        "--format", "csv", "-o", tmp_path / "step.toml", "--scenario", tmp_path / "ask.toml",
    )  # fmt: skip
    assert code == 0
    assert "warning: `x1` of 40 is outside the range of the runs, 1.25 to 20" in err
    fit, lower, upper = map(float, out.splitlines()[1].split(",")[2:])
    truth = 1e-3 * (100 + 800 + 800 + (0.01 + 0.04 + 0.16) * 2048)
    assert lower < truth < upper
    variables = [("x1", "40 GB"), ("x2", "2048")]
    sets = [
        item for name, value in variables for item in ("--set", f"application.phases.time.variables.{name}={value}")
    ]
    code, out, err = whatif_main("run", tmp_path / "ask.toml", "--point", *sets, "--samples", "4096", "--format", "csv")
    assert "x1 of 40 GB lies outside the 1.25 GB to 20 GB that application.phases.time was fitted to" in err
    row = dict(zip(*csv.reader(io.StringIO(out)), strict=True))
    found = [float(row[f"total_time{ending} [s]"]) for ending in ("", ".p5", ".p95")]
    assert_allclose(found, [fit, lower, upper], rtol=1.5e-3, atol=0)
    code, _, err = whatif_main("fit", "regression", file, "--formula", FULL, "-o", tmp_path / "ask.toml")
    assert code == 2
    assert "ask.toml: already exists and holds something else; not overwritten" in err


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_command_prints_the_tables_that_papers_print(whatif_main, file):
    def printed(*options):
        code, out, err = whatif_main("fit", "regression", file, "--formula", FULL, "--format", "csv", *options)
        assert code == 0
        return table_of(out), err

    rows, err = printed()
    assert list(rows[0]) == ["term", "estimate", "standard_error", "t_value", "p_value"]
    assert [row["term"] for row in rows] == list(TRUE)
    assert "residual standard error 4.9" in err or "residual standard error 5." in err
    rows, _ = printed("--compare", "time ~ x1 * x2")
    assert [row["freedom"] for row in rows] == ["116.0", "114.0"]
    rows, _ = printed("--compare", "time ~ x2", "--folds", 10, "--repeat", 3, "--show", "folds")
    assert float(rows[0]["rmse [s]"]) < 0.007
    assert float(rows[1]["rmse [s]"]) > 0.1
    rows, err = printed("--hold-out", 20, "--second-opinion")
    assert len(rows) == 20
    assert "of 20 runs lie in the 95 % prediction interval" in err
    assert "additive model of smooth curves: residual standard error" in err
    rows, err = printed("--held-out", file, "--interval", "confidence")
    assert "it is of the mean, single runs scatter beyond it" in err
    rows, err = printed("--show", "influence")
    assert len(rows) == 10
    assert "Breusch-Pagan p" in err


def test_terms_are_searched_and_then_fitted_like_any_other(whatif_main):
    file = DATA / "runs" / "extrap" / "text" / "one_parameter_1.txt"
    code, out, err = whatif_main("fit", "regression", file, "--search", "time ~ x", "--at", "x=100", "--format", "csv")
    assert code == 0
    assert "43 hypotheses over 5 points; the best: -0.8898 + 0.2017 x**2" in err
    assert "time ~ I(x**2): residual standard error" in err
    x, fit, lower, upper = map(float, out.splitlines()[1].split(","))
    assert (x, round(fit, 1)) == (100, 2015.9)
    assert lower < fit < upper
    code, out, _ = whatif_main("fit", "regression", file, "--search", "time ~ x", "--show", "models", "--format", "csv")
    errors = [float(row["cross_validated"]) for row in table_of(out)]
    assert errors == sorted(errors)
    told = "the search for terms used all runs; with --hold-out N it uses none of those left out"
    for model, said in (("--search", True), ("--formula", False)):
        code, _, err = whatif_main("fit", "regression", file, model, "time ~ x", "--folds", 5)
        assert (code, told in err) == (0, said)
    code, _, err = whatif_main("fit", "regression", file, "--formula", "time ~ x", "--show", "models")
    assert (code, "--show models needs --search" in err) == (2, True)


def searched_prediction(tmp_path, whatif_main, rows, *options):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["nodes,time [s]", *(f"{nodes},{time}" for nodes, time in rows), ""]))
    code, out, err = whatif_main("fit", "regression", path, "--search", "time ~ nodes", "--format", "csv", *options)
    assert code == 0, err
    return table_of(out), err


def test_searched_strong_scaling_is_a_negative_power(tmp_path, whatif_main):
    rows = [(p, 100 / p + 2) for p in (1, 2, 4, 8, 16)]
    found, err = searched_prediction(tmp_path, whatif_main, rows, "--at", "nodes=64")
    assert "time ~ I(nodes**-1)" in err
    assert float(found[0]["fit [s]"]) == pytest.approx(2 + 100 / 64)


@pytest.mark.parametrize("step", [1, 7])
def test_search_never_predicts_a_negative_time(step, tmp_path, whatif_main):
    """A linear decrease: the line itself crosses 0 at 100 nodes. The model does not depend on what is asked."""
    rows = [(p, 100 - p + p % step) for p in (1, 20, 40, 60, 80)]
    _, alone = searched_prediction(tmp_path, whatif_main, rows)
    for nodes in (90, 500, 640):
        (found,), err = searched_prediction(tmp_path, whatif_main, rows, "--at", f"nodes={nodes}")
        assert err.splitlines()[0] == alone.splitlines()[0]
        assert float(found["fit [s]"]) > 0
        assert float(found["lower [s]"]) >= 0


def test_an_exact_fit_is_no_reason_for_a_warning_of_the_statistics_package(tmp_path, whatif_main):
    path = tmp_path / "runs.csv"
    path.write_text("nodes,time [s]\n" + "".join(f"{p},{4 + 96 / p}\n" for p in (1, 2, 4, 8)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, err = whatif_main("fit", "regression", str(path), "--formula", "time ~ I(1/nodes)")
    assert "F inf, p 0" in err


def test_search_counts_repetitions_as_the_regression_does(tmp_path, whatif_main):
    """Twenty runs on 8 nodes draw the regression below 0 on 16 nodes, where the search, with their mean, is above."""
    rows = [(1, 34), (2, 27), (4, 12), *[(8, 3)] * 20, (16, 2)]
    found, err = searched_prediction(tmp_path, whatif_main, rows, "--show", "runs")
    assert "nodes**(-2/3)" not in err
    assert min(float(row["fit [s]"]) for row in found) > 0


def test_constant_found_by_a_search_is_predicted(tmp_path, whatif_main):
    rows = zip((1, 2, 4, 8, 16), (10, 10.1, 9.9, 10.05, 10.0), strict=True)
    found, err = searched_prediction(tmp_path, whatif_main, rows, "--at", "nodes=64")
    assert "time ~ 1" in err
    assert float(found[0]["nodes"]) == 64
    assert float(found[0]["fit [s]"]) == pytest.approx(10.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--formula states the model"),
        (["--formula", "time ~ x1", "--level", "95"], "--level 95: is 9500%; for 95 per cent write `95%`"),
        (["--formula", "time ~ x1", "--at", "x1=8"], "--at x1=8: the runs have it in GB"),
        (["--formula", "time ~ x1 + x2", "--at", "x1=8 GB"], "the value of `x2` is missing"),
        (["--formula", "time ~ x1", "--at", "x3=8"], "--at x3: the formula does not read it"),
        (["--formula", "time ~ x1", "--scenario", "a.toml"], "--scenario needs -o MODEL.toml"),
        (["--formula", "time ~ x1", "--hold-out", "500"], "of 120 runs some must be left to fit"),
        (["--formula", "time ~ x1", "--folds", "1"], "1 folds of 120 runs, 5 of them different"),
        (["--formula", "time ~ x1", "--repeat", "3"], "--repeat needs --folds"),
        (["--formula", "time ~ x1", "--level", "100%"], "expected a level above 0 %"),
        (["--formula", "time ~ x1", "--show", "validation"], "nothing is held out"),
        (["--formula", "time ~ x1", "--show", "comparison"], "needs --compare"),
        (["--formula", "time ~ x1", "--at", "x1=8 GB", "--folds", "5", "--format", "csv"], "is of one table"),
        (["--search", "log(time) ~ x1"], "the search finds powers and logarithms itself"),
        (["--search", "time ~ log(x1)"], "the search finds powers and logarithms itself"),
    ],
)
def test_options_that_make_no_sense_are_refused(whatif_main, file, options, message):
    code, _, err = whatif_main("fit", "regression", file, *options)
    assert code == 2
    assert message in err


EPOCHS = DATA / "runs" / "zeus" / "resnet50_v100.csv"


@pytest.mark.parametrize("name", ["time", "power", "energy"])
def test_models_of_epochs_that_ship_are_those_of_the_measured_runs(name):
    model = load_part(shipped_folder("scenarios") / "parts" / f"epoch_{name}.toml")
    fit = fit_runs(read_runs([EPOCHS]), model.formula)
    assert_allclose(list(model.coefficients.values()), fit.coefficients, rtol=1e-6, atol=0)
    assert_allclose(
        [error.value for error in model.fits["coefficients"].standard_errors], fit.standard_errors, rtol=1e-6, atol=0
    )
    assert model.data.run_count == 56


@pytest.mark.parametrize(("batch", "error"), [(64, 0.012), (128, 0.0065), (192, 0.009), (256, 0.013)])
def test_a_power_model_holds_for_batch_sizes_that_it_was_not_fitted_to(batch, error):
    """Watts of ResNet-50 on a V100 at seven power limits, from the runs at seven other batch sizes."""
    runs = read_runs([EPOCHS])
    held = runs.columns["batch_size"].values == batch
    seen, new = (
        Table({key: replace(column, values=column.values[rows]) for key, column in runs.columns.items()})
        for rows in (~held, held)
    )
    fit = fit_runs(seen, "power ~ poly(power_limit, 2) * log(batch_size)")
    found, measured = fit.predict(columns(new), 0.99), new.columns["power"].as_written()
    assert found.holds(measured).all()
    assert (np.abs(found.fit / measured - 1)).mean() < error


def test_near_collinear_terms_have_the_errors_of_exact_arithmetic():
    """Powers of 100 to 120: their condition is 1e8, and its square beyond all digits."""
    x = np.linspace(100.0, 120.0, 40)
    table = Table({"y": Column(3 + x + np.sin(np.arange(40.0)), ONE), "x": Column(x, ONE)})
    fit, same = (fit_runs(table, text) for text in ("y ~ x + I(x**2) + I(x**3)", "y ~ poly(x, 3)"))
    far = {"x": np.array([90.0, 110.0, 130.0])}
    found, expected = fit.predict(far), same.predict(far)
    assert_allclose([found.fit, found.lower], [expected.fit, expected.lower], rtol=1e-6, atol=0)
    basis = np.vander((x - 110) / 10, 4, increasing=True)
    shift = np.array([[1, -11, 121, -1331], [0, 0.1, -2.2, 36.3], [0, 0, 0.01, -0.33], [0, 0, 0, 0.001]])
    exact = shift @ np.linalg.inv(basis.T @ basis) @ shift.T * same.residual_standard_error**2
    assert_allclose(fit.standard_errors, np.sqrt(np.diag(exact)), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("formula", "table"),
    [("x2 ~ x1", "estimates.x2"), ("time ~ 1", "phases.time"), ("total ~ x1", "phases.total_fit")],
)
def test_every_written_scenario_runs(whatif_main, file, tmp_path, formula, table):
    name = formula.split()[0]
    mapping = f"{name}={'x2' if name == 'x2' else 'time'},x1=x1"
    files = ("-o", tmp_path / "m.toml", "--scenario", tmp_path / "q.toml")
    code, _, err = whatif_main("fit", "regression", file, "--columns", mapping, "--formula", formula, *files)
    assert code == 0, err
    assert f"[application.{table}]" in (tmp_path / "q.toml").read_text()
    code, out, err = whatif_main("run", tmp_path / "q.toml", "--point", "--samples", 64)
    assert code == 0, err
    assert table.rpartition(".")[2] in out


def test_curves_that_fit_no_better_than_lines_are_not_recommended():
    rng = np.random.default_rng(0)
    text = []
    for _ in range(10):
        a, b = rng.uniform(1, 10, (2, 80))
        table = Table({"y": Column(2 + a + b + rng.normal(0, 1, 80), ONE), "a": Column(a, ONE), "b": Column(b, ONE)})
        fit = fit_runs(table, "y ~ a + b")
        text.append("miss a bend" in second_opinion(fit, additive(fit)))
    assert sum(text) <= 1
    bent = Table({"y": Column(a + 3 * np.sin(a) + rng.normal(0, 0.5, 80), ONE), "a": Column(a, ONE)})
    fit = fit_runs(bent, "y ~ a")
    assert "the curves explain more: the terms miss a bend" in second_opinion(fit, additive(fit))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("1,1\n2,2\n3,3\n4,4\n", (), "the runs lie on the model exactly"),
        ("1,1\n2,5\n3,3\n4,9\n", ("--compare", "time ~ 1", "--compare", "time ~ nodes - 1"), "equally many terms"),
        ("1,1\n2,5\n3,3\n4,9\n", ("--held-out", "texts.csv"), "no column of numbers `nodes`"),
        ("1,1\n2,5\n3,3\n4,9\n", ("--held-out", "gaps.csv"), "no run has a number for each of time, nodes"),
    ],
)
def test_nothing_is_written_where_an_answer_is_refused(whatif_main, tmp_path, rows, options, message):
    for name, text in (("runs", rows), ("texts", "1,a\n2,b\n"), ("gaps", "1,\n,2\n,\n,4\n")):
        (tmp_path / f"{name}.csv").write_text(f"time [s],nodes\n{text}")
    files = ("-o", "m.toml", "--scenario", "q.toml")
    code, _, err = whatif_main("fit", "regression", "runs.csv", "--formula", "time ~ nodes", *files, *options)
    assert code in (2, 3)
    assert message in err
    assert not (tmp_path / "m.toml").exists()
    assert not (tmp_path / "q.toml").exists()


SCALING = "nodes,ranks,time [s]\n" + "".join(
    f"{nodes},{64 * nodes},{time}\n" for nodes, time in ((1, 100.3), (2, 52.1), (4, 27.0), (8, 14.9), (16, 8.4))
)


def scenario_of(whatif_main, tmp_path, text, formula, *options):
    (tmp_path / "runs.csv").write_text(text)
    asked = ("--formula", formula, "-o", "m.toml", "--scenario", "ask.toml", *options)
    code, _, err = whatif_main("fit", "regression", "runs.csv", *asked)
    assert code == 0, err
    return tomli.loads((tmp_path / "ask.toml").read_text())


@pytest.mark.parametrize(
    ("text", "formula", "ranks", "per_node", "parameters"),
    [
        (SCALING, "log(time) ~ log(nodes)", "= nodes * 64", 64, {"nodes": 4}),
        (SCALING, "log(time) ~ log(ranks)", "= ranks", 64, {"ranks": 256}),
        (SCALING.replace("ranks", "x"), "log(time) ~ log(nodes)", "= nodes", 1, {"nodes": 4}),
        (SCALING.replace("ranks", "size"), "log(time) ~ log(size)", 16, 1, None),
        (SCALING.replace("nodes", "part").replace("ranks", "size"), "log(time) ~ log(size)", 1, 1, None),
        (SCALING.replace("64,", "63.5,", 1), "log(time) ~ log(nodes)", "= nodes", 1, {"nodes": 4}),
    ],
)
def test_a_scenario_follows_the_ranks_and_nodes_of_its_runs(
    whatif_main, tmp_path, text, formula, ranks, per_node, parameters
):
    found = scenario_of(whatif_main, tmp_path, text, formula)
    assert (found["application"]["rank_count"], found["application"]["ranks_per_node"]) == (ranks, per_node)
    assert found.get("parameters") == parameters
    code, out, err = whatif_main("run", "ask.toml", "--format", "csv")
    assert code == 0, err
    assert "infeasible" not in err
    assert {row["infeasible"] for row in csv.DictReader(out.splitlines())} == {""}


def test_a_scenario_of_runs_has_no_energy_until_a_machine_is_stated(whatif_main, tmp_path):
    found = scenario_of(whatif_main, tmp_path, SCALING, "log(time) ~ log(nodes)")
    assert found["platform"]["extends"] == "ask_machine"
    (row,) = json.loads(whatif_main("run", "ask.toml", "--point", "--format", "json")[1])["rows"]
    assert not [name for name in row if "energy" in name or "power" in name or "cost" in name]
    code, _, err = whatif_main("explain", "ask.toml", "total_energy")
    assert (code, "Machine of the runs does not state" in err) == (2, True)
    energies = []
    for nodes in (4, 16):
        stated = ("--platform", "lumi", "--set", f"parameters.nodes={nodes}")
        (row,) = json.loads(whatif_main("run", "ask.toml", "--point", "--format", "json", *stated)[1])["rows"]
        energies.append(row["total_energy"] / row["total_time"])
    assert energies[1] == pytest.approx(4 * energies[0], rel=1e-9)


def test_a_stated_platform_needs_no_machine_file(whatif_main, tmp_path):
    found = scenario_of(whatif_main, tmp_path, SCALING, "log(time) ~ log(nodes)", "--platform", "lumi")
    assert found["platform"]["extends"] == "lumi"
    assert not (tmp_path / "ask_machine.toml").exists()


SPACES = SCALING.replace("nodes,ranks,time", "Node count,ranks,Wall time")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--formula", "Wall time ~ ranks"], "the heading `Wall time` is `Wall_time` in a formula"),
        (["--formula", "Wall_time ~ Node_count", "--at", "Node count=3"], "the heading `Node count` is `Node_count`"),
        (["--search", "log(Wall_time) ~ ranks"], "for a logarithm of the response, `--formula 'log(Wall_time) ~ ..'`"),
        (["--formula", "Wall_time ~ 1", "--at", "ranks=3"], "it is a constant and reads no column"),
    ],
)
def test_errors_name_what_to_write_instead(whatif_main, tmp_path, options, message):
    (tmp_path / "r.csv").write_text(SPACES)
    code, _, err = whatif_main("fit", "regression", "r.csv", *options)
    assert (code, message in err) == (2, True), err


def test_a_second_opinion_on_few_runs_has_numbers_or_a_reason(whatif_main, tmp_path):
    (tmp_path / "r.csv").write_text(SCALING)
    asked = ("fit", "regression", "r.csv", "--formula", "log(time) ~ log(nodes)", "--second-opinion")
    code, _, err = whatif_main(*asked)
    assert (code, "nan" in err, "effective parameters" in err) == (0, False, True)
    (tmp_path / "r.csv").write_text(SCALING.rsplit("\n", 2)[0] + "\n")
    code, _, err = whatif_main(*asked)
    assert (code, "needs more than 4 runs: there are 4" in err) == (2, True)


def test_a_mistyped_phase_is_named(whatif_main, tmp_path):
    scenario_of(whatif_main, tmp_path, SCALING, "log(time) ~ log(nodes)")
    code, _, err = whatif_main("run", "ask.toml", "--set", "application.phases.tim.variables.nodes=3")
    assert (code, "no phase `tim`; did you mean `time`?" in err) == (3, True)
    assert "measured_kernel" not in err
