"""Phases and estimates that a regression gives: a part file that `whatif fit regression` writes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.axes import Axis, Grid
from whatif.core.compile import compile_scenario
from whatif.core.evaluate import evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.uncertainty import Sampling, bands_of, result_samples
from whatif.errors import InvalidFileError
from whatif.schema.load import load_document
from whatif.schema.toml import parse_document

STEP = """\
part = "phase"
kind = "regression"
formula = "time ~ x1 + I(x1**2):x2"
response_unit = "ms"
residual = "0 +- 5"
units = { x1 = "GB", x2 = "1" }
terms = { Intercept = "1", x1 = "x1", square = "x1**2 * x2" }
coefficients = { Intercept = 100.0, x1 = 20.0, square = 0.001 }

[sources.coefficients]
grade = "measured"
source = "fitted to runs.csv"

[fits.coefficients]
parameters = ["Intercept", "x1"]
values = [100.0, 20.0]
standard_errors = [2.0, 1.0]
correlation = [[1.0, -0.9], [-0.9, 1.0]]
ranges = { x1 = ["1 GB", "20 GB"] }
point_count = 100
error = 0.05
"""
QUESTION = """\
platform = "summit"
[application]
name = "lab"
rank_count = 6
iteration_count = 10
[application.phases.step]
extends = "step"
variables = { x1 = "8 GB", x2 = 2048 }
"""
X1 = "application.phases.step.variables.x1"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "step.toml").write_text(STEP)
    return tmp_path


def compiled(folder, text=QUESTION, **options):
    return compile_scenario(load_document(parse_document(text, "q.toml", folder), **options))


def problems(folder, text=QUESTION, **options):
    with pytest.raises(InvalidFileError) as caught:
        compiled(folder, text, **options)
    return str(caught.value)


def test_a_fitted_phase_is_the_sum_of_its_terms_in_its_own_units(folder):
    program = compiled(folder)
    time = evaluate(program).column("total_time")
    assert program.parameters[X1].field.domain.describe(program.parameters[X1].dimension) == "any number"
    assert_allclose(time, 10 * 1e-3 * (100 + 20 * 8 + 0.001 * 64 * 2048), rtol=1e-14, atol=0)


def test_the_logarithm_of_a_response_gives_a_positive_time(folder):
    (folder / "step.toml").write_text(STEP.replace('residual = "0 +- 5"', 'link = "log"\nresidual = "0 +- 0.1"'))
    sets = {"application.phases.step.coefficients.Intercept": "-100", X1: "1 GB"}
    time = evaluate(compiled(folder, overrides=sets)).column("iteration_time")
    assert_allclose(time, 1e-3 * np.exp(-100 + 20 + 2.048), rtol=1e-12, atol=0)


def test_samples_of_a_regression_have_the_covariance_of_its_coefficients_and_the_scatter_of_runs(folder):
    samples = result_samples(compiled(folder), "iteration_time", Sampling(2**14))
    mean, variance = 391.072, 2.0**2 + 8**2 * 1.0**2 - 2 * 0.9 * 8 * 2.0 * 1.0 + 5.0**2
    assert_allclose(samples.mean() * 1e3, mean, rtol=1e-4, atol=0)
    assert_allclose(samples.std() * 1e3, np.sqrt(variance), rtol=1e-2, atol=0)


def test_a_regression_beyond_its_runs_is_a_warning(folder):
    grid = Grid((Axis("x1", {X1: np.array([10e9, 20e9, 40e9])}),))
    found = extrapolations(evaluate(compiled(folder), grid.arrays()))
    assert list(found) == [
        "step: x1 of 40 GB lies outside the 1 GB to 20 GB that application.phases.step was fitted to"
    ]
    assert np.asarray(*found.values()).tolist() == [False, False, True]


def test_where_a_regression_is_not_positive_there_is_no_point(folder):
    evaluation = evaluate(compiled(folder, overrides={"application.phases.step.coefficients.Intercept": "-1000"}))
    assert np.isnan(evaluation.column("total_time"))
    assert "the regression gives a value that is not positive here" in str(evaluation.reasons())


def test_an_estimate_is_a_result_of_its_own_with_its_own_unit(folder):
    (folder / "power.toml").write_text(STEP.replace('"ms"', '"W"'))
    text = QUESTION + '[application.estimates.device_power]\nextends = "power"\nvariables = { x1 = "1 GB", x2 = 0 }\n'
    program = compiled(folder, text)
    assert_allclose(evaluate(program).column("device_power"), 120.0, rtol=1e-14, atol=0)
    assert str(program.dimension_of("device_power")) == "W"
    low, _, high = bands_of(program, Grid(()), Sampling(1024)).values["device_power"]
    assert 100 < low < 120 < high < 140


def test_a_resolved_scenario_keeps_the_fit(folder, whatif_main):
    (folder / "q.toml").write_text(QUESTION)
    (folder / "whole.toml").write_text(whatif_main("resolve", folder / "q.toml")[1])
    first, second = (whatif_main("run", folder / name, "--samples", 64)[1] for name in ("q.toml", "whole.toml"))
    assert first == second
    assert "p50" in first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('x1 = "8 GB", ', "", "step.variables.x1: missing: the value of `x1`, in GB"),
        ('"8 GB"', '"8 GHz"', "`x1` is in 1/s; the regression was fitted in GB"),
        ("x2 = 2048", "x2 = 2048, x3 = 1", "the regression has no such variable; its variables: x1, x2"),
    ],
)
def test_variables_must_be_those_of_the_fit(folder, old, new, message):
    assert message in problems(folder, QUESTION.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('x1 = "x1", ', 'x1 = "x9", ', "`x9` is not a variable of `units`"),
        ('x1 = "x1", ', 'x1 = "open(x1)", ', "unknown function `open`; allowed: "),
        ("x1 = 20.0, ", "", "`x1` has no coefficient of its name"),
        ('"GB"', '"Gb"', "did you mean Gbit or GB?"),
        (
            '"ms"',
            '"W"',
            "`W` is not a time: a regression of another quantity belongs in `[application.estimates.step]`",
        ),
        ('part = "phase"\n', "", "step.toml"),
        ('"regression"', '"regresion"', "did you mean `regression`?"),
    ],
)
def test_errors_in_a_model_file_name_that_file(folder, old, new, message):
    (folder / "step.toml").write_text(STEP.replace(old, new))
    assert message in problems(folder)
    assert "step.toml" in problems(folder)


def test_a_term_that_cannot_be_read_is_one_problem(folder):
    (folder / "step.toml").write_text(STEP.replace('x1 = "x1", ', 'x1 = "open(x1)", '))
    assert len(problems(folder).splitlines()) == 1


def test_a_phase_that_repeats_waits_for_the_slowest_device_as_in_equation_7(folder):
    """Against Eq. 7 itself, added up over normal times of each iteration and device."""
    text = QUESTION.replace("iteration_count = 10", "iteration_count = 50") + (
        '[application.phases.control]\nkind = "overhead"\noverhead_time = "30 ms"\n'
        "[application.repeats.step]\nrepeat_count = 100\ndevice_count = 8\ndevice_spread = 0.1\n"
        "[application.repeats.control]\ninterval = 20\ndevice_count = 8\ndevice_spread = 0.2\n"
    )
    total = float(evaluate(compiled(folder, text)).column("total_time"))
    rng, step = np.random.default_rng(0), 0.391072
    tracking = 100 * step * (1 + 0.1 * rng.standard_normal((400, 50, 8)))
    control = 0.03 * (1 + 0.2 * rng.standard_normal((400, 2, 8)))
    expected = tracking.max(axis=2).sum(axis=1) + control.max(axis=2).sum(axis=1)
    assert_allclose(total, expected.mean(), rtol=1e-3, atol=0)
    alone = compiled(
        folder, text, overrides={f"application.repeats.{name}.device_spread": "0" for name in ("step", "control")}
    )
    assert_allclose(evaluate(alone).column("total_time"), 50 * 100 * step + 2 * 0.03, rtol=1e-12, atol=0)


def test_repeats_are_of_phases_that_are_there(folder):
    text = QUESTION + "[application.repeats.stap]\ninterval = 2\n"
    assert "`stap`: no such phase; did you mean `step`?" in problems(folder, text)
