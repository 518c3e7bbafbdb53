"""Uncertain values: distributions against scipy's, bands against closed forms, and what no distribution can be."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tests.one_phase import one_phase
from tests.page_harness import on_page
from whatif.axes import Axis, Grid
from whatif.core.grid_run import run, run_whole
from whatif.core.result_summary import Counted
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling, bands_of, correlations, sample_axis, values_at
from whatif.errors import InfeasiblePointError, InvalidFileError, UsageError
from whatif.schema.distributions import Uncertain
from whatif.schema.expressions import Expression
from whatif.schema.fields import Domain, QuantityField
from whatif.schema.toml import parse_document
from whatif.studies import sobol
from whatif.studies.sobol import sobol_indices, variance_of
from whatif.tui.commands.explorer_commands import Adopt, Show
from whatif.tui.labels import duration
from whatif.tui.pages.explore import ExplorePage
from whatif.units import BYTE_PER_SECOND, ONE, SECOND

ANY = Domain(minimum=-math.inf)
SHARES = np.linspace(0.001, 0.999, 999)
TIME = QuantityField(SECOND)


def scenario(formula, **parameters):
    quoted = {name: json.dumps(value) for name, value in parameters.items()}
    return Scenario(parse_document(one_phase(f"= 1 s * ({formula})", **quoted), "t.toml"))


def band(formula, sampling=Sampling(4096), **parameters):  # noqa: B008
    result = run_whole(scenario(formula, **parameters), Grid(), sampling)
    return [float(array) for array in result.bands.values["iteration_time"]]


def distribution(text, dimension=SECOND, domain=ANY):
    return QuantityField(dimension, domain).parse(text).distribution


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("3 s +- 0.5 s", stats.norm(3, 0.5)),
        ("3 ± 0.5 s", stats.norm(3, 0.5)),
        ("3 s +/- 10 %", stats.norm(3, 0.3)),
        ("normal(3000 ms, 500 ms)", stats.norm(3, 0.5)),
        ("lognormal(3 s, 1.2)", stats.lognorm(math.log(1.2), scale=3)),
        ("uniform(2 s, 5 s)", stats.uniform(2, 3)),
        ("triangular(2 s, 3 s, 6 s)", stats.triang(0.25, 2, 4)),
    ],
)
def test_quantiles_are_those_of_scipy(text, reference):
    assert_allclose(values_at(distribution(text), SHARES, ANY), reference.ppf(SHARES), rtol=1e-12, atol=0)


def test_an_empirical_value_is_one_of_those_it_was():
    drawn = values_at(distribution("empirical(3 us, 1 us, 2 us, 8 us)"), SHARES, ANY)
    assert_allclose(np.unique(drawn), [1e-6, 2e-6, 3e-6, 8e-6], rtol=1e-15, atol=0)
    assert_allclose(drawn, np.quantile([1e-6, 2e-6, 3e-6, 8e-6], SHARES, method="inverted_cdf"), rtol=1e-15, atol=0)


def test_a_value_never_parameters_its_domain_and_keeps_its_shape_inside():
    domain = Domain(maximum=1)
    drawn = values_at(distribution("0.9 +- 0.3", ONE, domain), SHARES, domain)
    reference = stats.truncnorm(-3, 1 / 3, loc=0.9, scale=0.3)
    assert_allclose(drawn, reference.ppf(SHARES), rtol=1e-9, atol=0)


def test_whole_numbers_stay_whole_and_are_equally_likely():
    domain = Domain(minimum=1, whole=True)
    drawn = values_at(distribution("uniform(2, 5)", ONE, domain), SHARES, domain)
    assert_allclose(np.unique(drawn, return_counts=True)[0], [2, 3, 4, 5], rtol=0, atol=0)
    assert_allclose(np.unique(drawn, return_counts=True)[1], 999 / 4, rtol=0.01, atol=0)


def test_a_bandwidth_written_as_time_per_byte_keeps_its_relative_deviation():
    value = QuantityField(BYTE_PER_SECOND).parse("0.1 ns/B +- 0.005 ns/B")
    assert_allclose([value, *value.distribution.numbers], [1e10, 1e10, 5e8], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("text", "centre"),
    [("3 s +- 0.5 s", 3), ("lognormal(3 s, 2)", 3), ("uniform(2 s, 6 s)", 4), ("triangular(1 s, 2 s, 9 s)", 2),
     ("empirical(5 s, 1 s, 2 s)", 2)],
)  # fmt: skip
def test_without_samples_a_value_is_at_its_centre(text, centre):
    value = TIME.parse(text)
    assert (float(value), value.distribution.text) == (centre, text)
    copied = pickle.loads(pickle.dumps(value))  # noqa: S301
    assert isinstance(copied, Uncertain)
    assert (copied, copied.distribution) == (value, value.distribution)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3 s +- -1 s", "a standard deviation must not be negative"),
        ("normal(3 s, -1 s)", "a standard deviation must not be negative"),
        ("3 s +- 1 GB", "s and B in one distribution"),
        ("3 s +- 5", "write `+- 5 s`, or `+- 5 %`"),
        ("uniform(2 s, 1 s)", "`2 s, 1 s`: write the numbers from the least to the largest"),
        ("unifrm(1 s, 2 s)", "`unifrm`: no such distribution; did you mean `uniform`?"),
        ("3 s +- x", "`x` is not a number with a unit"),
        ("uniform(3 s, 3 s)", "the numbers must not all be equal"),
        ("uniform(3 s)", "uniform(..) has 2 numbers"),
        ("triangular(1 s, 2 s)", "triangular(..) has 3 numbers"),
        ("lognormal(3 s, 0.5)", "its geometric standard deviation at least 1"),
        ("lognormal(3 s, 0.5 s)", "is a factor without a unit"),
        ("uniform(-1 s, 1 s)", "it must be at least 0 s"),
        ("empirical()", "empirical(..) has 1 to 1000 numbers"),
        ("3 GB +- 1 GB", "write a quantity in s"),
    ],
)  # fmt: skip
def test_malformed_distributions_are_refused(text, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        TIME.parse(text)
    assert reason in str(caught.value)


def test_the_band_of_a_sum_of_normals_is_that_of_a_normal():
    found = band("a + b", a="3 +- 0.3", b="5 +- 0.4")
    assert_allclose(found, stats.norm(8, 0.5).ppf([0.05, 0.5, 0.95]), rtol=1e-3, atol=0)


def test_the_band_of_a_product_of_log_normals_is_that_of_a_log_normal():
    found = band("a * b", Sampling(4096, level=0.5), a="lognormal(3, 1.3)", b="lognormal(2, 1.4)")
    reference = stats.lognorm(math.hypot(math.log(1.3), math.log(1.4)), scale=6)
    assert_allclose(found, reference.ppf([0.25, 0.5, 0.75]), rtol=3e-3, atol=0)


def test_every_point_of_a_sweep_has_its_band_and_a_swept_value_is_known():
    inputs = scenario("a * x", a="uniform(1, 2)", x="3 +- 1")
    axis = Axis("x", {"parameters.x": np.array([1.0, 10.0, 100.0])})
    whole = run_whole(inputs, Grid((axis,)), Sampling(2048))
    lower, _, upper = whole.bands.values["iteration_time"]
    assert_allclose(lower, [1.05, 10.5, 105.0], rtol=1e-3, atol=0)
    assert_allclose(upper, [1.95, 19.5, 195.0], rtol=1e-3, atol=0)
    parts = [item.bands.values["iteration_time"][0] for item in run(inputs, Grid((axis,)), 4096, Sampling(2048))]
    assert len(parts) == 2
    assert_allclose(np.concatenate(parts), lower, rtol=0, atol=0)


def test_samples_without_a_result_are_counted_separately():
    inputs = scenario("a", a="1 +- 0.1").changed({"application.rank_count": "uniform(27001, 28301)"})
    bands = run_whole(inputs, Grid(), Sampling(4096)).bands
    # Summit has 4,608 nodes of 6 GPUs.
    assert_allclose(bands.answered, (27648 - 27000) / 1301, rtol=0.01, atol=0)
    assert np.isfinite(bands.values["iteration_time"]).all()


@pytest.mark.parametrize(
    ("name", "overrides", "platforms"),
    [
        ("llama_serving", {}, ("dgx_h100", "summit", "dgx_b200")),
        ("jacobi2d", {"application.rank_count": 16}, ("summit", "aws_p4d")),
    ],
)
def test_parts_of_a_sweep_over_machines_have_the_columns_of_the_whole(name, overrides, platforms):
    """Summit cannot run the first scenario, and has no price."""
    opened = Scenario.open(name, overrides=overrides)
    axis, sampling = Axis("platform", {"platform": np.array(platforms, dtype=object)}), Sampling(16)
    whole = run_whole(opened, Grid((axis,)), sampling)
    parts = list(run(opened, Grid((axis,)), 16, sampling))
    assert len(parts) == len(platforms)
    columns = whole.table().columns
    for at, part in enumerate(parts):
        assert list(part.table().columns) == list(columns)
        rows = (part.table().columns["total_time.p50"].values, columns["total_time.p50"].values[at : at + 1])
        np.testing.assert_array_equal(*rows)
    assert whole.bands.answered == 1.0
    assert not any("of the samples" in note for note in whole.notes)


def test_samples_of_infeasible_points_are_not_lost_ones():
    inputs = scenario("a", a="1 +- 0.1")
    ranks = Axis("ranks", {"application.rank_count": np.array([12.0, 1e9])})
    whole = run_whole(inputs, Grid((ranks,)), Sampling(64))
    assert whole.bands.answered == 1.0
    assert bands_of(inputs.program, Grid((ranks.slice(slice(1, 2)),)), Sampling(64)).answered == 1.0
    drawn = inputs.changed({"application.rank_count": "uniform(27001, 28000)"})
    nodes = Axis("nodes", {"platform.node_count": np.array([1.0, 4608.0])})
    parts = Counted(run(drawn, Grid((nodes,)), 256, Sampling(256)))
    assert len(list(parts)) == 2
    lost = "warning: 35.2% of the samples have no answer and do not count"
    assert lost in run_whole(drawn, Grid(), Sampling(256)).notes
    assert lost in parts.tally.notes(Grid((nodes,)))


FITS = """
[platform]
extends = "summit"
[platform.network.inter_node.postal.rendezvous]
latency = "5 us"
bandwidth = "10 GB/s"
[platform.fits."network.inter_node.postal.rendezvous"]
parameters = ["latency", "bandwidth"]
standard_errors = ["1 us", "1 GB/s"]
correlation = {correlation}
point_count = 9
error = 0.1
[application]
name = "t"
rank_count = 12
iteration_count = 1
[application.grid]
scaling = "weak"
cells = {{ x = 32768, y = 32768 }}
[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "faces"
"""


def fitted(correlation):
    return Scenario(parse_document(FITS.format(correlation=correlation), "f.toml")).program


def test_values_of_one_fit_are_correlated_as_stated():
    program = fitted([[1, -0.8], [-0.8, 1]])
    axis = sample_axis(program, Sampling(4096))
    latency, bandwidth = (axis.parameters[f"platform.network.inter_node.postal.rendezvous.{key}"]
                          for key in ("latency", "bandwidth"))  # fmt: skip
    assert_allclose(np.corrcoef(latency, bandwidth)[0, 1], -0.8, rtol=0.01, atol=0)
    assert_allclose([latency.mean(), latency.std()], [5e-6, 1e-6], rtol=0.01, atol=0)
    assert_allclose([bandwidth.mean(), bandwidth.std()], [1e10, 1e9], rtol=0.01, atol=0)
    assert_allclose(correlations(program, list(axis.parameters)), [[1, -0.8], [-0.8, 1]], rtol=0, atol=0)


def test_a_covariance_that_is_not_positive_is_refused():
    rows = '["latency", "bandwidth"]', '["latency", "bandwidth", "bandwidth"]'
    text = FITS.format(correlation=[[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]).replace(*rows)
    text = text.replace('["1 us", "1 GB/s"]', '["1 us", "1 GB/s", "1 GB/s"]')
    with pytest.raises(InvalidFileError, match="negative eigenvalue"):
        _ = Scenario(parse_document(text, "f.toml")).program


def test_values_of_a_grade_can_be_given_a_spread():
    program = Scenario.open("jacobi2d", platform="frontier").program
    assumed = {path for path in program.reached if program.parameters[path].grade == "assumed"}
    sampled = sample_axis(program, Sampling(64, spreads={"assumed": 0.2}))
    # Whole numbers and zeros have no spread, and expressions follow what they are computed from.
    kept = {
        path
        for path in assumed
        if program.parameters[path].field.domain.whole
        or not program.parameters[path].value
        or isinstance(program.parameters[path].value, Expression)
    }
    assert set(sampled.parameters) == assumed - kept != set()
    path, drawn = next(iter(sampled.parameters.items()))
    assert_allclose(np.exp(np.log(drawn).std()), 1.2, rtol=0.02, atol=0)
    assert_allclose(np.median(drawn), program.parameters[path].value, rtol=0.01, atol=0)


def test_a_spread_leaves_the_stated_value_in_the_middle():
    """A PUE that is not stated is 1, the least one, and does not rise."""
    program = Scenario.open("jacobi2d", platform="dgx_h100").program
    axis = sample_axis(program, Sampling(256, spreads={"assumed": 0.2}))
    stated = [program.parameters[path].value for path in axis.parameters]
    assert_allclose([np.median(its) for its in axis.parameters.values()], stated, rtol=5e-3, atol=0)


@pytest.mark.parametrize(
    "bad",
    [{"count": 1}, {"level": 1.0}, {"level": 0.0}, {"spreads": {"sure": 0.1}}, {"spreads": {"assumed": math.inf}}],
)
def test_a_sampling_that_is_none_is_refused(bad):
    with pytest.raises(UsageError):
        Sampling(**bad)


def test_sobol_indices_are_those_of_the_formula():
    inputs = scenario("a + b * c", a="uniform(0, 1)", b="uniform(0, 1)", c="uniform(0, 1)")
    found = sobol_indices(inputs.program, Sampling(8192))
    assert_allclose([found.mean, found.deviation**2], [3 / 4, 19 / 144], rtol=0.002, atol=0)
    indices = {item.paths: item for item in found.indices}
    for name, first, total in (("a", 12 / 19, 12 / 19), ("b", 3 / 19, 4 / 19), ("c", 3 / 19, 4 / 19)):
        item = indices[(f"parameters.{name}",)]
        assert_allclose([item.first, item.total], [first, total], rtol=0.02, atol=0)
        assert abs(item.first - first) < item.first_error < 0.1 * first
        assert abs(item.total - total) < item.total_error < 0.1 * total


def test_sobol_indices_of_the_same_samples_are_scipy_s():
    draw = np.random.default_rng(3).normal(5.0, 1.0, (4, 256))
    found = variance_of(draw[0], draw[1], {("b",): draw[2], ("c",): draw[3]}, Sampling(256))
    reference = stats.sobol_indices(func={"f_A": draw[:1], "f_B": draw[1:2], "f_AB": draw[2:, np.newaxis]}, n=256)
    indices = {item.paths[0]: item for item in found.indices}
    assert_allclose([indices[name].first for name in "bc"], reference.first_order, rtol=1e-9, atol=0)
    assert_allclose([indices[name].total for name in "bc"], reference.total_order, rtol=1e-9, atol=0)


def test_values_of_one_fit_are_one_factor():
    found = sobol_indices(fitted([[1, -0.8], [-0.8, 1]]), Sampling(1024, model_error=False))
    [only] = found.indices
    assert [path.rpartition(".")[2] for path in only.paths] == ["latency", "bandwidth"]
    assert_allclose([only.first, only.total], [1, 1], rtol=0.03, atol=0)
    assert found.picture().rows[0].text == f"{only.total:.2f} ± {only.total_error:.2f}"
    assert len(found.summary()) == 1


def test_few_samples_without_an_answer_are_left_out_and_stated():
    """Of a normal value three standard deviations above 0, 0.13 % are below, where a time cannot be."""
    program = scenario("a + b", a="3 +- 1", b="uniform(0, 0.001)").program
    found = sobol_indices(program, Sampling(1024))
    assert 0 < found.missing < 10
    assert f"of which {found.missing} have no answer" in found.summary()[0]
    assert found.indices[0].paths == ("parameters.a",)
    assert_allclose(found.indices[0].total, 1, rtol=0.01, atol=0)


def test_values_that_fits_correlate_by_way_of_others_are_one_factor(monkeypatch):
    related = np.array([[1, 0.5, 0, 0], [0.5, 1, 0, 0.5], [0, 0, 1, 0], [0, 0.5, 0, 1]])
    monkeypatch.setattr(sobol, "correlations", lambda program, paths: related)
    assert sobol.factors(None, ["a", "b", "c", "d"]) == [("a", "b", "d"), ("c",)]


def test_without_variance_there_is_nothing_to_explain():
    with pytest.raises(UsageError, match="is uncertain"):
        sobol_indices(scenario("a", a="1").program, Sampling(64))
    with pytest.raises(InfeasiblePointError, match="the same result"):
        sobol_indices(scenario("max(a, 9)", a="uniform(0, 1)").program, Sampling(64))
    inputs = scenario("a", a="1 +- 0.1").changed({"application.rank_count": "uniform(27001, 28301)"})
    with pytest.raises(InfeasiblePointError, match="256 of 256 samples have no answer: the ranks need more nodes"):
        sobol_indices(inputs.program, Sampling(256))


def test_the_command_line_shows_bands_and_what_explains_them(whatif_main):
    spread = ("--spread", "assumed=20%", "--samples", "256")
    code, out, err = whatif_main("run", "minimd", "--platform", "frontier", *spread, "--format", "json", "--point")
    row = json.loads(out)["rows"][0]
    assert code == 0
    assert row["iteration_time.p5"] < row["iteration_time.p50"] < row["iteration_time.p95"]
    assert row["terms"]["force.p5"] <= row["terms"]["force.p95"]
    assert "p5 to p95 of 256 samples" in err
    shown = whatif_main("run", "minimd", "--platform", "frontier", *spread, "--point")[1]
    assert shown.splitlines()[0].split() == ["p5", "p50", "p95"]
    code, out, err = whatif_main("sensitivity", "minimd", "--platform", "frontier", *spread, "--show", "sobol")
    assert code == 0
    assert "model_error.communication" in out.splitlines()[1]
    assert "base_bandwidth" in out
    assert "of 1,024 samples" in whatif_main("run", "minimd", "--spread", "assumed=20%", "--point")[2]
    assert whatif_main("run", "minimd", "--spread", "assumed=x")[0] == 2
    assert (
        "--spread assumed=20: is 2000%; for 20 per cent write `20%`"
        in whatif_main("run", "minimd", "--spread", "assumed=20")[2]
    )
    assert whatif_main("run", "minimd", "--samples", "64", "--level", "x")[0] == 2


def test_the_explorer_shows_bands_and_takes_them_away():
    async def check(page):
        page.app.show(Adopt("frontier").apply(page.app.state))
        await page.settle()
        before = page.lines
        page.app.show(Show("samples", "256").apply(page.app.state))
        await page.settle()
        assert "4 uncertain values" in str(page.page.query_one("#sweep").border_subtitle)
        page.app.show(Show("spread", "assumed").apply(page.app.state))
        await page.settle()
        assert "p5 to p95 of 256 samples" in str(page.page.query_one("#sweep").border_subtitle)
        program = page.app.state.session.program
        lower, _, upper = bands_of(program, Grid(), Sampling(256, spreads={"assumed": 0.2})).values["iteration_time"]
        # The unit stands once, or a narrow tile would cut the upper end.
        assert f"{duration(float(lower), 3).removesuffix(' ms')} .. {duration(float(upper), 3)}" in page.line(" .. ")
        page.app.show(Show("samples", "off").apply(page.app.state))
        await page.settle()
        assert page.lines == before

    on_page(ExplorePage, check, "minimd", (150, 40))


def test_the_errors_of_models_are_told_apart_where_they_explain_something(whatif_main):
    found = whatif_main("sensitivity", "minimd", "--samples", "64", "--show", "sobol")
    assert "platform.model_error.kernel" in found[1]
    assert "platform.model_error: those on this machine or its GPU alone" in found[2]
