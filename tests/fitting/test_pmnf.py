"""Search over the normal form: against Extra-P on its own samples, against known truths, and with bad input."""

from __future__ import annotations

import csv
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from whatif.errors import UsageError
from whatif.fitting.hypotheses import least_squares, probability
from whatif.fitting.normal_form import EXPONENTS, Factor, value_of
from whatif.fitting.pmnf import search
from whatif.importers.extrap import read_extrap
from whatif.importers.run_columns import identifier
from whatif.schema.expressions import parse_expression

DATA = TEST_DATA / "runs"
# Where we choose other terms than Extra-P: its model has a term that fails its F test at 5 % ("test"), or a larger
# leave-one-out error ("error"; it ranks the constant, and sums of several variables, by their error in the sample).
OTHERWISE = {
    "jsonlines/cross_matrix_2p.jsonl <root> metr": "error",
    "text/mpa/1_param_base.txt main() time": "test",
    "text/mpa/1_param_base8.txt main() time": "test",
    "text/mpa/2_param_base.txt main() time": "error",
    "text/mpa/2_param_base2.txt main() time": "error",
    "text/mpa/2_param_base3.txt main() time": "error",
    "text/mpa/3_param_add.txt main() time": "error",
    "text/mpa/3_param_base.txt main() time": "test",
    "text/mpa/3_param_gpr.txt main() time": "error",
    "text/mpa/4_param_add.txt main() time": "error",
    "text/mpa/4_param_base.txt main() time": "test",
    "text/mpa/4_param_gpr.txt main() time": "error",
    "text/mpa/relearn_data.txt Exchange branch nodes (w/ Allgather) time": "test",
    "text/one_parameter_6.txt met1 ": "error",
    "text/one_parameter_7.txt met1 ": "error",
}


@cache
def table(name):
    return read_extrap(DATA / "extrap" / name).columns


def runs(name, region="", metric=""):
    """Variables by name, and values, of a region and metric of a sample file."""
    columns = table(name)
    metric_column = columns[identifier(metric) if metric else "value"].values
    chosen = (columns["region"].values == region.replace("<root>", "")) & ~np.isnan(metric_column)
    variables = list(columns)[: list(columns).index("region")]
    return {key: columns[key].values[chosen] for key in variables}, metric_column[chosen]


def extrap_models():
    with (DATA / "extrap_models.csv").open() as file:
        return list(csv.DictReader(file))


def read_terms(text):
    words = [[factor.split() for factor in term.split(" * ")] for term in text.split(" + ") if term]
    return [tuple(Factor(name, Fraction(i), int(j)) for name, i, j in term) for term in words]


def grid(**axes):
    return dict(
        zip(axes, (x.ravel() for x in np.meshgrid(*map(np.asarray, axes.values()), indexing="ij")), strict=True)
    )


def noise(count, sigma, seed=7):
    return np.exp(sigma * np.random.default_rng(seed).normal(size=count))


def fit_of(terms, variables, values):
    columns = np.array([value_of(term, variables) for term in terms]).reshape(-1, len(values)).T
    return least_squares(columns, np.arange(len(terms))[None], values)


def pointwise(variables, values):
    """Mean of the repetitions of each point."""
    points, place = np.unique(np.column_stack(list(variables.values())), axis=0, return_inverse=True)
    means = np.bincount(place.ravel(), values) / np.bincount(place.ravel())
    return dict(zip(variables, points.T, strict=True)), means


def test_models_of_extrap_samples_are_its_own_or_differ_for_a_stated_reason():
    reasons = {}
    for row in extrap_models():
        variables, values = runs(row["file"], row["region"], row["metric"])
        best, theirs = search(variables, values).best, read_terms(row["terms"])
        points, means = pointwise(variables, values)
        numbers = np.array(row["coefficients"].split(), dtype=float)
        if set(best.factors) == set(theirs):
            slopes = dict(zip(best.factors, best.coefficients[1:], strict=True))
            assert_allclose([slopes[term] for term in theirs], numbers[1:], rtol=1e-6, atol=0)
            fitted = numbers[0] + sum(c * value_of(term, points) for c, term in zip(numbers[1:], theirs, strict=True))
            assert_allclose(best(points), fitted + np.zeros(len(means)), rtol=1e-6, atol=0)
            continue
        fit = fit_of(theirs, points, means)
        fails = (probability(fit.term_f, 1, fit.freedom) > 0.05).any()
        better = best.cross_validated <= fit.smape(fit.left_out)[0]
        assert better or fails
        reasons[f"{row['file']} {row['region']} {row['metric']}"] = "error" if better else "test"
    assert reasons == OTHERWISE
    assert len(extrap_models()) == 92


def test_errors_of_points_left_out_are_those_that_extrap_finds_by_as_many_fits():
    stated = {row["file"]: float(row["smape"]) for row in extrap_models()}
    for name, region, metric in (
        ("input/input_data_1p.txt", "reg", "metr"),
        ("text/mpa/1_param_add.txt", "main()", "time"),
        ("text/strong_scaling/one_parameter_1.txt", "compute", "time"),
    ):
        assert_allclose(search(*runs(name, region, metric)).best.cross_validated, stated[name], rtol=1e-9, atol=0)


def test_errors_of_points_left_out_are_those_of_fits_without_them():
    variables = grid(x=[4.0, 8, 16, 32], y=[1.0, 3, 9])
    values = (5 + 2 * variables["x"] + variables["x"] * variables["y"]) * noise(12, 0.1)
    terms = [(Factor("x", Fraction(1)),), (Factor("x", Fraction(1)), Factor("y", Fraction(1)))]
    left_out = fit_of(terms, variables, values).left_out[0]
    for at in range(12):
        others = np.arange(12) != at
        design = np.column_stack([np.ones(12), *(value_of(term, variables) for term in terms)])
        coefficients = np.linalg.lstsq(design[others], values[others], rcond=None)[0]
        assert_allclose(left_out[at], values[at] - design[at] @ coefficients, rtol=1e-9, atol=0)


def test_coefficients_standard_errors_and_tests_are_those_of_the_normal_equations():
    variables = grid(x=[4.0, 8, 16, 32, 64], y=[1.0, 3, 9, 27, 81])
    values = (5 + 2 * variables["x"] ** 2 + variables["x"] * variables["y"]) * noise(25, 0.05)
    best = search(variables, values).best
    terms = [value_of(term, variables) for term in best.factors]
    design = np.column_stack((np.ones(25), *terms))
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    squares = [rest(design, values)]
    squares += [rest(np.delete(design, at, axis=1), values) for at in range(1, design.shape[1])]
    variance = squares[0] / best.freedom
    assert_allclose(best.coefficients, coefficients, rtol=1e-8, atol=0)
    assert_allclose(
        best.standard_errors, np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design))), rtol=1e-6, atol=0
    )
    assert_allclose(best.term_f, [(without - squares[0]) / variance for without in squares[1:]], rtol=1e-6, atol=0)
    of_constant = rest(np.ones((25, 1)), values)
    assert_allclose(best.f, (of_constant - squares[0]) / len(terms) / variance, rtol=1e-8, atol=0)
    assert_allclose(best.r_squared, 1 - squares[0] / of_constant, rtol=1e-8, atol=0)


def rest(design, values):
    return float(((values - design @ np.linalg.lstsq(design, values, rcond=None)[0]) ** 2).sum())


def test_probabilities_are_those_of_printed_tables():
    assert_allclose(probability(np.array([10.128]), 1, 3), 0.05, rtol=1e-4, atol=0)
    assert_allclose(probability(np.array([5.7861]), 2, 5), 0.05, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("i", "j"), EXPONENTS)
def test_every_term_is_found_again_in_runs_without_noise(i, j):
    x = 2.0 ** np.arange(3, 10)
    term = Factor("x", i, j)
    best = search({"x": x}, 3 + 0.5 * term(x)).best
    assert best.factors == ((term,),)
    assert_allclose(best.coefficients, [3, 0.5], rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("truth", "terms"),
    [
        (lambda x, y, z: 9 + 4 * x + 2 * y**2 + z, {"x", "y**2", "z"}),
        (lambda x, y, z: 9 + 0.1 * x * y**2 * z, {"x * y**2 * z"}),
        (lambda x, y, z: 9 + 3 * x * y**2 + 40 * z, {"x * y**2", "z"}),
        (lambda x, y, z: 9 + 30 * x + 2 * x * y**2 + 0.5 * x * y**2 * z, {"x", "x * y**2", "x * y**2 * z"}),
        (lambda x, y, z: 9 + 0 * z + 3 * x * y**2, {"x * y**2"}),
    ],
)
def test_sums_and_products_of_three_variables_are_found_again_in_runs_with_noise(truth, terms):
    variables = grid(x=[4.0, 8, 16, 32, 64], y=[10.0, 20, 30, 40, 50], z=[1.0, 3, 5, 7, 9])
    exact = truth(**variables)
    best = search(variables, exact + np.log(noise(exact.size, 0.02))).best
    assert set(best.terms) == terms
    assert_allclose(best(variables), exact, rtol=0.01, atol=0)


def test_models_of_one_variable_have_one_term():
    x = 2.0 ** np.arange(2, 12)
    values = (7 + 300 * np.log2(x) + 0.5 * x**1.5) * noise(10, 0.001)
    assert len(search({"x": x}, values).best.terms) == 1


def test_noise_alone_has_no_terms_in_most_searches():
    x = 2.0 ** np.arange(3, 13)
    found = [len(search({"x": x}, 10 * noise(10, 0.05, seed), kept=1).best.factors) for seed in range(100)]
    assert sum(found) <= 12


def test_repetitions_count_as_one_point_with_their_mean():
    x = np.repeat(np.arange(1.0, 7), 3)
    values = 10 * x + np.tile([-1.0, 0, 4], 6)
    found = search({"x": x}, values)
    assert (found.point_count, found.best.freedom, found.tried) == (6, 4, 43)
    assert_allclose(found.best.coefficients, [1, 10], rtol=1e-9, atol=0)


def test_models_with_insignificant_terms_rank_last():
    x = 2.0 ** np.arange(3, 10)
    models = search({"x": x}, 10 * noise(7, 0.1), kept=50).models
    earned = [model.earned for model in models]
    assert len(models) == 43
    assert earned == sorted(earned, reverse=True)
    for kind in (True, False):
        errors = [model.cross_validated for model in models if model.earned == kind]
        assert errors == sorted(errors)
    assert all((probability(model.term_f, 1, model.freedom) <= 0.05).all() == model.earned for model in models)


def test_terms_and_formulas_are_expressions():
    for i, j in EXPONENTS:
        parse_expression("= " + str(Factor("x", i, j)))
    assert str(Factor("x", Fraction(1, 2), 1)) == "x**0.5 * log2(x)"
    assert str(Factor("x", Fraction(4, 3), 2)) == "x**(4/3) * log2(x)**2"
    variables = grid(x=[4.0, 8, 16, 32, 64], y=[10.0, 20, 30, 40, 50])
    best = search(variables, 9 + 3 * variables["x"] + 2 * variables["x"] * variables["y"] ** 2).best
    assert best.formula("time") == "time ~ x + I(x * y**2)"
    assert parse_expression("= " + best.text).names() == ("x", "y")


def test_a_response_that_does_not_vary_is_a_constant():
    for value in (0.0, 0.1):
        found = search({"x": np.repeat(np.arange(1.0, 8), 3)}, np.full(21, value))
        assert (found.best.factors, found.tried, found.best.formula("time")) == ((), 1, "time ~ 1")
        assert_allclose(found.best.coefficients, [value], rtol=1e-15, atol=0)


def test_logarithms_are_left_out_below_one_with_a_warning():
    x = np.array([0.25, 0.5, 1, 2, 4, 8])
    found = search({"x": x}, 1 + x**2, kept=50)
    assert found.best.terms == ("x**2",)
    assert not any("log2" in term for model in found.models for term in model.terms)
    assert "values below 1" in found.warnings[0]


def test_falling_times_have_a_negative_term_with_a_warning():
    x = 2.0 ** np.arange(3, 9)
    values = 100 - 10 * np.log2(x)
    found = search({"x": x}, values)
    assert "negative" in found.warnings[0]
    assert_allclose(found.best.coefficients, [100, -10], rtol=1e-9, atol=0)


def test_falling_times_are_powers_of_the_inverse():
    x = 2.0 ** np.arange(0, 6)
    found = search({"x": x}, 3 + 64 / x).best
    assert found.factors == ((Factor("x", Fraction(-1)),),)
    assert_allclose(found.coefficients, [3, 64], rtol=1e-9, atol=0)
    assert found.formula("time") == "time ~ I(x**-1)"


def test_rising_times_have_no_negative_powers():
    x = 2.0 ** np.arange(0, 6)
    found = search({"x": x}, 10 - 5 / x, kept=100)
    assert all(factor.power >= 0 for model in found.models for term in model.factors for factor in term)


def test_models_that_fall_below_zero_beyond_the_runs_are_rejected():
    x = 2.0 ** np.arange(3, 9)
    for values in (100 - 10 * np.log2(x), 500 / x - 1.8):
        models = search({"x": x}, values, positive_beyond=True, kept=100).models
        assert min(model({"x": np.array([8 * 256.0])})[0] for model in models) > 0


def test_responses_below_zero_allow_models_below_zero():
    x = 2.0 ** np.arange(3, 9)
    found = search({"x": x}, 60 - 10 * np.log2(x), positive_beyond=True).best
    assert_allclose(found.coefficients, [60, -10], rtol=1e-9, atol=0)


def test_a_cross_of_runs_cannot_separate_sum_and_product_with_a_warning():
    x = np.array([1.0, 2, 3, 4, 5, 3, 3, 3, 3])
    y = np.array([3.0, 3, 3, 3, 3, 1, 2, 4, 5])
    assert "do not separate" in search({"x": x, "y": y}, 2 + x**2 + 5 * y).warnings[0]


def test_few_values_of_variable_are_reported():
    assert "has 4 different values" in search({"x": np.arange(1.0, 5)}, np.arange(1.0, 5) ** 2).warnings[0]
    x, y = [1.0, 2, 3, 1, 1, 1, 1, 4, 5], [1.0, 1, 1, 2, 3, 4, 5, 2, 3]
    warnings = search({"x": np.array(x), "y": np.array(y)}, np.array(x) * y).warnings
    assert "only 3 runs differ in `x` alone" in warnings[0]


FIVE = np.arange(1.0, 6)


@pytest.mark.parametrize(
    ("variables", "values", "message"),
    [
        ({"x": np.ones(5)}, FIVE, "`x` is 1 in all runs: leave it out"),
        ({"x": FIVE % 2}, FIVE, "`x` has 2 different values; a term needs at least 3"),
        ({"x": FIVE - 2}, FIVE, "`x` has values that are negative or missing"),
        ({"x": FIVE * np.nan}, FIVE, "`x` has values that are negative or missing"),
        ({"x": FIVE}, FIVE * np.nan, "no value in some runs"),
        ({"x": FIVE}, FIVE[:4], "one value for each of the 4 runs"),
        ({"x": FIVE[:0]}, FIVE[:0], "no value"),
        ({}, FIVE, "1 to 4 variables, not 0"),
        ({"x": FIVE, "y": FIVE**2}, FIVE, "no 3 runs differ in `x` alone.*run also x = 2, 3, 4, 5 at y = 1"),
    ],
)
def test_runs_that_cannot_be_searched_are_refused(variables, values, message):
    with pytest.raises(UsageError, match=message):
        search(variables, values)
