"""`whatif fit kernel`: kernels, processors and messages of known truth, real calibrations, and bad ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tomli

from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError, UsageError
from whatif.fitting.blas_costs import fit_kernel
from whatif.fitting.blas_regression import regression
from whatif.fitting.blas_samples import samples_of
from whatif.fitting.coefficients import fit_coefficients
from whatif.fitting.mixture import mixture
from whatif.fitting.pieces import fit_pieces
from whatif.fitting.processors import processors, spread, synthetic_processors
from whatif.importers.calibration_tables import read_calibration
from whatif.schema.load import load_platform
from whatif.table import Column, Table
from whatif.units import BYTE, ONE, SECOND

DATA = TEST_DATA / "kernels"
COEFFICIENTS, MESSAGES = DATA / "dahu_dgemm_calibration.csv", DATA / "dahu_pycewise_data.csv"
TWO_CORES = DATA / "two_cores_kernels.csv"
# One core of Dahu as Ezibenroc/hpl (branch homogeneous_dgemm) has it: constant, M N K, M N, M K, N K.
DGEMM = np.array([2.8447e-07, 6.317136e-11, 1.489053e-10, 2.107985e-09, 3.332944e-09])
DEVIATION = np.array([1.087202e-07, 2.976703e-12, 8.365868e-12, 1.528598e-10, 9.931248e-11])
BASE = """\
extends = "lassen"
name = "Mine"

[kernels]
dgemm.mnk = "7e-11 s"
dtrsm.size = "5e-11 s"

[sources]
"kernels" = { grade = "assumed", source = "a guess" }
"""


def half_normal(random, count):
    """Draws with mean 0 and standard deviation 1 of a half-normal distribution."""
    return (np.abs(random.normal(size=count)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)


def products(m, n, k):
    return np.stack((np.ones_like(m), m * n * k, m * n, m * k, n * k), axis=1)


def sizes(random, count):
    return np.round(np.exp(random.uniform(np.log(8), np.log(8192), (3, count))))


def calls(time, columns, **texts):
    numbers = {name: Column(np.asarray(values, dtype=float), ONE) for name, values in columns.items()}
    labels = {name: Column(np.array([str(value) for value in values], dtype=object)) for name, values in texts.items()}
    return Table({"time": Column(time, SECOND), **numbers, **labels}, {"kind": "samples"})


@pytest.mark.parametrize(("slope", "is_doubted"), [(-0.5, True), (0.0, False)])
def test_times_that_go_down_with_the_size_are_doubted(slope, is_doubted):
    random = np.random.default_rng(3)
    size = np.round(random.uniform(10, 1000, 80))
    scatter = random.normal(size=80)
    # A slope by chance that is negative, as in half of all samples without one.
    scatter *= -np.sign(np.corrcoef(scatter, size)[0, 1])
    found = fit_kernel(calls(1e-7 * (2 + slope * size / 1000 + 0.05 * scatter), {"n": size}), "dscal", "M-0")
    doubts = [text for text in found.warnings if "go down with the size: are the columns mixed up?" in text]
    assert bool(doubts) == is_doubted


def two_cores(kernel):
    """Calls of a kernel on two cores of a virtual machine."""
    return read_calibration(TWO_CORES, where={"kernel": kernel})


def written_calibration(path, kernel):
    """A file of 30 calls with 3 % scatter: M N K of a dgemm, M N N of a dtrsm, and a constant."""
    random = np.random.default_rng(7)
    m, n, k = sizes(random, 30)
    columns = {"m": m, "n": n} | ({"k": k} if kernel == "dgemm" else {})
    time = (0.5 + 7e-11 * m * n * (k if kernel == "dgemm" else n)) * (1 + random.normal(0, 0.03, 30))
    pd.DataFrame(columns | {"time": time}).to_csv(path, index=False)
    return path


def test_stated_standard_errors_of_mean_and_deviation_are_those_of_repeated_calibrations():
    random = np.random.default_rng(1)
    scores = []
    for _ in range(120):
        terms = products(*sizes(random, 1500))
        time = terms @ DGEMM + terms @ DEVIATION * half_normal(random, 1500)
        found = regression(terms, terms, time, "N-2")
        errors = np.sqrt(np.diag(found.covariance)), np.sqrt(np.diag(found.deviation_covariance))
        scores.append([(found.mean.coefficients - DGEMM) / errors[0], (found.deviations - DEVIATION) / errors[1]])
    spreads, biases = np.nanstd(scores, axis=0), np.nanmean(scores, axis=0)
    np.testing.assert_allclose(spreads[0], 1, rtol=0.2, atol=0)
    np.testing.assert_allclose(biases[0], 0, rtol=0, atol=0.35)
    # Those of the deviation take the mean as known, and one that ends at its bound has none.
    assert ((spreads[1] > 0.8) & (spreads[1] < 1.6)).all()


def test_the_criterion_finds_the_model_and_the_processors_that_made_the_times():
    random = np.random.default_rng(2)
    m, n, k = sizes(random, 4000)
    owner, factors = random.integers(0, 12, 4000), np.exp(random.normal(0, 0.04, 12))
    factors /= factors.mean()
    terms = products(m, n, k)
    time = factors[owner] * (terms @ DGEMM) + terms @ DEVIATION * half_normal(random, 4000)
    fit = fit_kernel(calls(time, {"m": m, "n": n, "k": k}, node=owner // 2 + 7, cpu=owner % 2), "dgemm")
    assert (fit.model, fit.noise) == ("M_H-2", "N-2")
    mean, deviation = fit.fits
    assert (mean.path, deviation.path) == ("kernels.dgemm", "kernels.dgemm.deviation")
    assert (np.abs(mean.values - DGEMM) < 4 * mean.standard_errors).all()
    np.testing.assert_allclose(deviation.values[1], DEVIATION[1], rtol=0.1, atol=0)
    assert fit.processors.keys[:2] + fit.processors.keys[-1:] == ("node7_cpu0", "node7_cpu1", "node12_cpu1")
    np.testing.assert_allclose(fit.processors.factors, factors, rtol=0.01, atol=0)


@pytest.mark.parametrize("kernel", ["dgemm", "dtrsm"])
def test_plain_regressions_are_those_of_numpy(tmp_path, kernel):
    path = written_calibration(tmp_path / f"{kernel}.csv", kernel)
    rows, table = pd.read_csv(path), read_calibration(path)
    product = rows.m * rows.n * (rows.k if kernel == "dgemm" else rows.n)
    design, time = np.stack((np.ones(len(rows)), product), axis=1), rows.time.to_numpy()
    expected = {
        "N-1": np.linalg.lstsq(design, time, rcond=None)[0],
        "N-0": np.linalg.lstsq(design / time[:, None], np.ones(len(rows)), rcond=None)[0],
    }
    for noise, values in expected.items():
        fit = fit_kernel(table, kernel, "M-1", noise)
        np.testing.assert_allclose(fit.fits[0].values[:2], values, rtol=1e-9, atol=0)
    freedom = len(rows) - 2
    scatter = np.sqrt(((design @ expected["N-1"] - time) ** 2).sum() / freedom)
    found = fit_kernel(table, kernel, "M-1", "N-1").fits[1]
    np.testing.assert_allclose(found.values[0], scatter, rtol=1e-9, atol=0)


def test_of_the_two_triangular_solves_the_one_on_which_the_times_lie_is_taken(tmp_path):
    fit = fit_kernel(read_calibration(written_calibration(tmp_path / "dtrsm.csv", "dtrsm")), "dtrsm")
    assert "M N N" in fit.warnings[0]
    assert fit.comparison.columns["error"].values.min() < 0.1


def test_a_breakpoint_beyond_which_an_accelerator_takes_the_calls_is_found():
    random = np.random.default_rng(3)
    m, n, k = np.round(random.uniform(16, 4096, (3, 1200)))
    far = (m >= 900) & (k >= 300)
    time = np.where(far, 2e-3 + 2e-12 * m * n * k, 1e-6 + 7e-11 * m * n * k)
    fit = fit_kernel(calls(time * (1 + random.normal(0, 0.02, 1200)), {"m": m, "n": n, "k": k}), "dgemm")
    assert fit.model == "M'"
    near, offloaded = fit.fits[0], fit.fits[-1]
    assert offloaded.path == "kernels.dgemm.offloaded"
    found = dict(zip(offloaded.dimensions, offloaded.values, strict=True))
    np.testing.assert_allclose([found["constant"], found["mnk"]], [2e-3, 2e-12], rtol=0.5, atol=0)
    np.testing.assert_allclose(near.values[1], 7e-11, rtol=0.05, atol=0)
    wrong = ((m >= found["smallest_m"]) & (n >= found["smallest_n"]) & (k >= found["smallest_k"])) != far
    assert wrong.mean() < 0.05


def test_large_calls_that_another_program_slows_down_are_on_no_accelerator():
    random = np.random.default_rng(3)
    m, n, k = np.round(random.uniform(16, 4096, (3, 1200)))
    slowed = np.where((m >= 900) & (k >= 300), 1.5, 1.0)
    time = slowed * (1e-6 + 7e-11 * m * n * k) * (1 + random.normal(0, 0.02, 1200))
    fit = fit_kernel(calls(time, {"m": m, "n": n, "k": k}), "dgemm")
    assert not fit.model.endswith("'")
    errors = dict(
        zip(fit.comparison.columns["model"].values, fit.comparison.columns["held_out_error"].values, strict=True)
    )
    assert errors["M'"] < 0.5 * errors[fit.model]


def test_held_out_block_sizes_reject_an_accelerator_that_the_criterion_prefers():
    """Calls of OpenBLAS on two cores: small ones are slower, but there is no second processor."""
    fit = fit_kernel(two_cores("dgemm"), "dgemm")
    assert fit.model == "M-2"
    columns = fit.comparison.columns
    assert columns["model"].values[np.argmin(columns["criterion"].values)].endswith("'")
    errors = dict(zip(columns["model"].values, columns["held_out_error"].values, strict=True))
    assert errors["M-2"] < 0.2
    assert errors["M'"] > errors["M-2"]


@pytest.mark.parametrize("kernel", ["dgemm", "dtrsm"])
def test_held_out_errors_do_not_depend_on_the_order_of_calls(kernel):
    table = two_cores(kernel)
    order = np.random.default_rng(1).permutation(len(table))
    mixed = Table({name: Column(it.values[order], it.dimension) for name, it in table.columns.items()}, table.notes)
    errors = [fit_kernel(it, kernel).comparison.columns["held_out_error"].values for it in (table, mixed)]
    np.testing.assert_allclose(*errors, rtol=1e-4, atol=0)


def test_constant_is_at_most_half_more_than_the_shortest_call():
    for kernel in ("dtrsm", "dgemv", "dlaswp01t"):
        table = two_cores(kernel)
        constant = fit_kernel(table, kernel).fits[0].values[0]
        assert constant <= 1.5 * table.columns["time"].values.min()


def test_interrupted_calls_are_left_out_with_a_remark():
    random = np.random.default_rng(5)
    size = np.round(random.uniform(1, 1e4, 400))
    time = (1e-6 + 1e-9 * size) * (1 + random.normal(0, 0.02, 400))
    interrupted = time.copy()
    interrupted[::80] += 4e-3
    plain, fit = (fit_kernel(calls(it, {"size": size}), "daxpy") for it in (time, interrupted))
    assert fit.warnings[0].startswith("daxpy: 5 of 400 calls were interrupted, ")
    assert fit.warnings[0].endswith("was the machine busy with other work?")
    np.testing.assert_allclose(fit.fits[0].values, plain.fits[0].values, rtol=0.01, atol=0)


def test_calls_beyond_a_cache_are_not_taken_for_interrupted():
    """Ten times as slow from a size on: far from a line through all calls, but alike at each size."""
    size = np.random.default_rng(6).permutation(np.linspace(1, 1e5, 400))
    time = np.where(size > 6e4, 1e-8, 1e-9) * size
    found, remarks = samples_of(calls(time, {"size": size}), "daxpy")
    assert (len(found.time), remarks) == (400, [])


def test_calls_of_which_more_than_a_twentieth_take_long_are_all_kept():
    size = np.random.default_rng(6).permutation(np.linspace(1, 1e5, 400))
    time = 1e-6 + 1e-9 * size
    time[::10] *= 20
    found, remarks = samples_of(calls(time, {"size": size}), "daxpy")
    assert len(found.time) == 400
    assert remarks[0].startswith("daxpy: 40 of 400 calls took 5 times as long as others of their sizes; all are kept")


@pytest.mark.parametrize(
    ("cores", "message"), [(None, "dgemm: no column `busy_cores`"), (1, "dgemm was timed on a single core"), (2, "")]
)
def test_dgemm_timed_with_idle_cores_is_a_warning(whatif_main, tmp_path, cores, message):
    rows = pd.read_csv(TWO_CORES).query("kernel == 'dgemm'").drop(columns="busy_cores")
    (rows if cores is None else rows.assign(busy_cores=cores)).to_csv(tmp_path / "dgemm.csv", index=False)
    code, _, error = whatif_main("fit", "kernel", "dgemm.csv", "-o", "mine.toml", "--extends", "generic_cpu")
    assert code == 0
    assert "time dgemm with all cores busy" in error if message else "busy" not in error
    assert message in error
    kernels = load_platform("mine", (tmp_path,))[0].kernels
    assert kernels.busy_cores == cores


def test_coefficients_of_processors_become_their_mean_and_a_factor_for_each():
    rows = pd.read_csv(COEFFICIENTS)
    fit = fit_coefficients(read_calibration(COEFFICIENTS))
    means = rows.groupby(["node", "cpu"])[["intercept", "mnk", "intercept_residual", "mnk_residual"]].mean()
    found = [*fit.fits[0].values[:2], *fit.fits[1].values[:2]]
    np.testing.assert_allclose(found, means.mean().to_numpy(), rtol=1e-12, atol=0)
    np.testing.assert_allclose(fit.processors.factors, (means.mnk / means.mnk.mean()).to_numpy(), rtol=1e-12, atol=0)
    spreads = rows.groupby(["node", "cpu"]).mnk.agg(["var", "count"])
    pooled = np.sqrt((spreads["var"] * (spreads["count"] - 1)).sum() / (spreads["count"] - 1).sum())
    np.testing.assert_allclose(fit.processors.drift, pooled / means.mnk.mean(), rtol=1e-12, atol=0)
    np.testing.assert_allclose(fit.fits[0].standard_errors[1], means.mnk.sem(), rtol=1e-12, atol=0)
    assert fit.processors.keys[-1] == "node32_cpu1"


def test_a_slow_processor_is_named_replaced_by_the_others_and_left_out():
    factors = np.array([0.99, 1.0, 1.01, 1.3, 1.0, 0.98])
    found = processors(["a-9", "a-9", "a-10", "a-10", "a-11", "a-11"], list("010101"), factors)
    assert found.slow == ("a_10_cpu1",)
    averaged, without = found.averaged(["a-10"]), found.without(["a_10"])
    others = factors[[0, 1, 4, 5]] / factors.mean()
    np.testing.assert_allclose(averaged.factors[2:4], others.mean(), rtol=1e-12, atol=0)
    np.testing.assert_allclose(without.factors, others, rtol=1e-12, atol=0)
    assert without.keys == ("a_9_cpu0", "a_9_cpu1", "a_11_cpu0", "a_11_cpu1")
    with pytest.raises(UsageError, match="no node is left"):
        found.without(["a-9", "a-10", "a-11"])


def test_a_synthetic_machine_spreads_as_the_calibrated_one():
    random = np.random.default_rng(4)
    node, cpu = random.normal(0, 0.05, (400, 1)), random.normal([0.03, -0.03], 0.02, (400, 2))
    times = np.exp(node + cpu)[..., None] * (1 + random.normal(0, 0.01, (400, 2, 3)))
    names = np.indices(times.shape).reshape(3, -1)
    found = spread(processors(names[0], names[1], times.ravel()))
    np.testing.assert_allclose([found.node, found.cpu], [0.05, 0.02], rtol=0.12, atol=0)
    np.testing.assert_allclose(found.means[0] - found.means[1], 0.06, rtol=0.06, atol=0)
    drawn = synthetic_processors(found, 3000, seed=9)
    logs = np.log(list(drawn.values())).reshape(-1, 2)
    np.testing.assert_allclose(np.cov(logs.T)[0, 1] ** 0.5, 0.05, rtol=0.12, atol=0)
    np.testing.assert_allclose((logs[:, 0] - logs[:, 1]).std(), 0.02 * 2**0.5, rtol=0.12, atol=0)
    assert drawn == synthetic_processors(found, 3000, seed=9) != synthetic_processors(found, 3000, seed=8)


@pytest.mark.parametrize(
    ("weights", "means"), [((1.0,), (1.0,)), ((0.8, 0.2), (1.0, 1.6)), ((0.5, 0.3, 0.2), (0, 1, 3))]
)
def test_a_mixture_has_the_modes_it_was_drawn_from(weights, means):
    random = np.random.default_rng(5)
    mode = random.choice(len(weights), 1500, p=weights)
    found = mixture(np.array(means)[mode] + random.normal(0, 0.08, 1500))
    assert len(found) == len(weights)
    np.testing.assert_allclose(found.weights, weights, rtol=0, atol=0.04)
    np.testing.assert_allclose(found.means, means, rtol=0, atol=0.02)


def test_equal_values_are_one_mode_and_few_values_have_few():
    assert len(mixture(np.ones(50))) == 1
    three_modes = np.add.outer([0.0, 10.0, 20.0], np.linspace(0, 0.3, 4))
    assert [len(mixture(three_modes[:, :count])) for count in (1, 3, 4)] == [1, 2, 3]


def messages(random, noise, slow=0.0):
    """Two protocols: to 4 KiB a sender does not wait; beyond, calls last as long as the message."""
    size = np.unique(np.round(np.exp(random.uniform(np.log(1), np.log(1e8), 400))))
    eager = size < 4096
    send = np.where(eager, 0.3e-6 + size / 10e9, 6e-6 + size / 11e9)
    receive = np.where(eager, 0.5e-6 + size / 8e9, 6e-6 + size / 11e9)
    way = np.where(eager, 0.8e-6 + size / 5e9 + send + receive, 6e-6 + size / 11e9)
    way *= np.where(random.random(len(size)) < slow, 1.5, 1.0)
    times = np.concatenate((2 * way, send, receive)) * (1 + random.normal(0, noise, 3 * len(size)))
    tests = np.repeat(np.array(["pingpong", "send", "recv"], dtype=object), len(size))
    return Table(
        {"test": Column(tests), "message_size": Column(np.tile(size, 3), BYTE), "time": Column(times, SECOND)},
        {"kind": "messages"},
    )


def test_messages_of_two_protocols_give_their_pieces_back():
    fit = fit_pieces(messages(np.random.default_rng(6), 0.01))
    small, large = (dict(zip(item.dimensions, item.values, strict=True)) for item in fit.fits)
    assert large["smallest_size"] == 4096
    expected = {
        "latency": 0.8e-6, "bandwidth": 5e9, "send_overhead": 0.3e-6, "send_bandwidth": 10e9,
        "receive_overhead": 0.5e-6, "receive_bandwidth": 8e9,
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(small[name], value, rtol=0.1, atol=0)
    np.testing.assert_allclose([large["latency"], large["bandwidth"]], [6e-6, 11e9], rtol=0.01, atol=0)
    assert large["send_overhead"] == large["receive_overhead"] == 0
    assert "send_bandwidth" not in large


def test_calls_of_sizes_without_a_ping_pong_do_not_count():
    table = messages(np.random.default_rng(6), 0.01)
    tests, size = (table.columns[name].values for name in ("test", "message_size"))
    ways = tests == "pingpong"
    fit = fit_pieces(table.at(np.flatnonzero(~ways | (size <= 8192))))
    small = dict(zip(fit.fits[0].dimensions, fit.fits[0].values, strict=True))
    np.testing.assert_allclose([small["latency"], small["bandwidth"]], [0.8e-6, 5e9], rtol=0.1, atol=0)
    assert "timed there and back" in fit.remarks[0]
    assert fit.remarks[1] == f"not used: {((size > 8192) & ~ways).sum()} calls shorter or longer than all ping-pongs"
    fit = fit_pieces(table.at(np.flatnonzero(~ways | (size >= 8192))))
    np.testing.assert_allclose(fit.fits[0].values[1:3], [6e-6, 11e9], rtol=0.01, atol=0)
    with pytest.raises(UsageError, match="recv: 0 message sizes among those of the ping-pongs"):
        fit_pieces(table.at(np.flatnonzero((tests == "recv") == (size > 8192))))


def test_every_piece_has_a_ping_pong():
    table = messages(np.random.default_rng(6), 0.01)
    tests, size, time = (table.columns[name].values for name in ("test", "message_size", "time"))
    alone = (size > 500) & (size < 1e5)
    slower = Column(np.where(alone, 3 * time, time), SECOND)
    table = Table({**table.columns, "time": slower}).at(np.flatnonzero((tests != "pingpong") | ~alone))
    pieces = fit_pieces(table).points.columns["piece"].values
    assert set(pieces) == set(range(1, int(pieces.max()) + 1))


def test_some_slow_messages_are_a_mode_of_their_own():
    fit = fit_pieces(messages(np.random.default_rng(7), 0.01, slow=0.2))
    last = fit.fits[-2:]
    assert [item.path.split(".", 4)[-1] for item in last] == ["modes.mode1", "modes.mode2"]
    np.testing.assert_allclose(last[1].values[1] / last[0].values[1], 1.5, rtol=0.03, atol=0)
    np.testing.assert_allclose(last[1].values[0], 0.2, rtol=0.35, atol=0)
    assert not any(
        ".modes." in item.path for item in fit_pieces(messages(np.random.default_rng(7), 0.01), noise="N-0").fits
    )


def test_the_messages_of_dahu_change_where_the_platform_of_its_authors_says():
    """Ezibenroc/hpl @81185458, bin/SMPI/dahu.xml: pieces from 8133, 33956, 63305 B, the last at 0.98680 x 12.5 GB/s."""
    fit = fit_pieces(read_calibration(MESSAGES))
    pieces = [item for item in fit.fits if ".modes." not in item.path]
    found = [dict(zip(item.dimensions, item.values, strict=True)) for item in pieces]
    starts = [piece["smallest_size"] for piece in found]
    assert all(min(abs(start / stated - 1) for start in starts) < 0.06 for stated in (8133, 33956, 63305))
    np.testing.assert_allclose(found[-1]["bandwidth"], 0.9867951 * 12.5e9, rtol=0.02, atol=0)
    eager = max((piece for piece in found if piece["smallest_size"] < 8000), key=lambda piece: piece["smallest_size"])
    np.testing.assert_allclose(eager["send_overhead"], 2.9655e-07, rtol=0.25, atol=0)
    assert max(item.error for item in pieces) < 0.1
    residuals = fit.points.columns["residual"].values
    assert np.abs(np.mean(residuals)) < 0.01


def test_a_calibration_becomes_a_platform_with_sources(whatif_main, tmp_path):
    (tmp_path / "mine.toml").write_text(BASE)
    code, out, err = whatif_main("fit", "kernel", COEFFICIENTS, MESSAGES, "-o", "mine.toml", "--average", "25")
    assert code == 0
    assert "from one calibration to the next" in err
    assert "kernels.processors.node1_cpu0" in out
    platform = load_platform("mine", [tmp_path])[0]
    mnk = fit_coefficients(read_calibration(COEFFICIENTS)).fits[0].values[1]
    np.testing.assert_allclose(platform.kernels.dgemm.mnk, mnk, rtol=1e-5, atol=0)
    assert platform.kernels.processors["node25_cpu0"] == platform.kernels.processors["node25_cpu1"]
    assert platform.kernels.dtrsm.size == 5e-11
    assert list(platform.network.inter_node.pieces)[:2] == ["piece1", "piece2"]
    data = tomli.loads((tmp_path / "mine.toml").read_text())
    assert data["sources"]["kernels.processors.node25_cpu0"]["grade"] == "assumed"
    assert "mnk" in data["fits"]["kernels.dgemm"]["parameters"]
    code, _, err = whatif_main("fit", "kernel", COEFFICIENTS, "-o", "mine.toml", "--without", "25")
    assert code == 2
    assert "node25_cpu0 and 1 more" in err


def test_a_synthetic_machine_is_written_with_its_seed(whatif_main, tmp_path):
    (tmp_path / "mine.toml").write_text(BASE)
    arguments = ("fit", "kernel", COEFFICIENTS, "-o", "mine.toml", "--synthetic", "40", "--seed", "7")
    assert whatif_main(*arguments)[0] == 0
    platform = load_platform("mine", [tmp_path])[0]
    assert (platform.node_count, len(platform.kernels.processors)) == (40, 80)
    source = tomli.loads((tmp_path / "mine.toml").read_text())["sources"]["kernels.processors"]
    assert (source["grade"], "seed 7" in source["source"]) == ("assumed", True)


def test_nothing_is_written_beside_a_breakpoint_that_the_new_model_has_not(whatif_main, tmp_path):
    text = BASE.replace("dtrsm", 'dgemm.offloaded.mnk = "1e-12 s"\ndtrsm', 1)
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = whatif_main("fit", "kernel", COEFFICIENTS, "-o", "mine.toml")
    assert code == 2
    assert "[kernels.dgemm] has offloaded" in err
    assert (tmp_path / "mine.toml").read_text() == text


def test_rows_of_a_calibration_are_chosen_by_numbers_as_those_of_other_sheets():
    text = "time [ms],m,n,k,run\n1,4,4,4,2.0\n3,4,4,4,3\n"
    assert read_calibration(text, where={"run": "2"}).columns["time"].values.tolist() == [1e-3]


@pytest.mark.parametrize("separator", [" ", "|", ",", "\t"])
def test_calibrations_are_laid_out_as_other_sheets_may_be(separator):
    rows = ("# time [us],size", "2,10", "4,20", "6,3 # the shortest")
    table = read_calibration("\n".join(row.replace(",", separator) for row in rows) + "\n")
    assert table.columns["time"].values.tolist() == [2e-6, 4e-6, 6e-6]
    assert table.columns["size"].values.tolist() == [10, 20, 3]


HEAD = "time,m,n,k\n"
ROWS = "".join(f"{1e-9 * (4 + i) ** 3},{4 + i},{5 + i},{6 + i}\n" for i in range(20))


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "it is empty"),
        (HEAD, "no rows"),
        (HEAD + "-1,4,4,4\n", "dgemm.csv:2:1: time: `-1` must be a number above zero"),
        (HEAD + "1,4,4,x\n", "dgemm.csv:2:1: k: `x` is not a number"),
        (HEAD + "nan,4,4,4\n", "`nan` must be a number above zero"),
        (HEAD + "1,4,0,4\n", "dgemm.csv:2:1: n: `0` must be a number at least 1"),
        (HEAD + "1,4,4,4\n" * 3, "3 calls; at least 7 are needed"),
        (HEAD + "1,4,4,4\n" * 9, "all sizes are equal"),
        (HEAD + "1,4,4\n" + ROWS, "3 cells where the heading has 4"),
        ("time,m,n\n" + "1,4,4\n" * 9, "no column `k`; `--columns k=HEADING`"),
        ("when,what\n1,2\n", "no calibration: the columns are `when`, `what`"),
        (HEAD.replace("time", "time [GB/s]") + ROWS, "time [GB/s]: must be in s"),
        ("<!DOCTYPE html><html>", "web page"),
        ("constant,mnk\n0,0\n", "a coefficient `mnk` of zero"),
        ("test,message_size,time\n" + "".join(f"pingpong,{n},1e-6\n" for n in (1, 2, 3)), "3 message sizes"),
        ("test,message_size,time\nsend,1,1\n", "no rows `pingpong`"),
        ("constant,mnk\n0,1\n0,1,1\n", "3 cells where the heading has 2"),
        ("cluster,constant,mnk\na,1,1\nb,1,1\n", "rows of 2 machines (`a`, `b`); `--where`"),
    ],
)
def test_bad_calibrations_are_refused_with_the_reason(whatif_main, tmp_path, text, reported):
    (tmp_path / "dgemm.csv").write_text(text)
    code, out, err = whatif_main("fit", "kernel", "dgemm.csv")
    assert (code in (2, 3), out) == (True, "")
    assert reported in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kernel", "dgem"), "did you mean `dgemm` or `dgemv`?"),
        (("--model", "M-3"), "unknown model `M-3`"),
        (("--model", "M_H-1"), "needs columns `node` or `cpu`"),
        (("--noise", "N'"), "unknown noise `N'`"),
        (("--columns", "k=depth"), "no column `depth`"),
        (("--without", "3"), "--without: no processors were calibrated"),
    ],
)
def test_options_that_do_not_fit_are_refused(whatif_main, tmp_path, options, message):
    (tmp_path / "dgemm.csv").write_text(HEAD + ROWS)
    code, _, err = whatif_main("fit", "kernel", "dgemm.csv", *options)
    assert code == 2
    assert message in err


def test_a_last_row_that_was_cut_off_is_left_out_and_units_of_headings_count():
    table = read_calibration("time [us],size\n2,10\n4,20\n6,3", "daxpy.csv")
    assert table.columns["time"].values.tolist() == [2e-6, 4e-6]
    assert "daxpy.csv:4: a last row" in table.notes["warnings"]
    with pytest.raises(InvalidFileError, match="must be a number at least 1"):
        read_calibration("time,size\n1,0.5\n", "daxpy.csv")


def test_exact_times_give_a_kernel_of_one_size_back():
    size = np.arange(1.0, 40)
    fit = fit_kernel(calls(1e-7 + 4e-10 * size, {"n": size}), "daxpy")
    np.testing.assert_allclose(fit.fits[0].values, [1e-7, 4e-10], rtol=1e-6, atol=0)
    assert fit.model == "M-1"
    assert tuple(fit.fits[0].dimensions) == ("constant", "size")


@pytest.mark.parametrize("count", [7, 8, 10])
def test_few_calls_on_a_line_are_no_constant(count):
    size = 50 * 2.0 ** np.arange(count)
    assert fit_kernel(calls(1e-6 + 1e-7 * size, {"size": size}), "daxpy").model == "M-1"
