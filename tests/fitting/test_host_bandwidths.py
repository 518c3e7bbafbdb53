"""Bandwidths of a socket and of one core from triads: recovered where known, refused where nothing shows them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import DATA
from whatif.errors import UsageError
from whatif.fitting.host_bandwidths import MeasuredSockets, fit_host, node_bandwidth
from whatif.importers.host_benchmarks import parse_host
from whatif.schema.load import load_platform

TWO_SOCKETS = MeasuredSockets(2.0, 18.0)


def table(rows):
    return parse_host("cores,bandwidth [GB/s]\n" + "".join(f"{cores},{value!r}\n" for cores, value in rows))


def values(fit):
    (only,) = fit.fits
    return dict(zip(only.dimensions, only.values, strict=True))


@pytest.mark.parametrize("binding", ["spread", "sockets", "compact"])
def test_both_bandwidths_are_recovered(binding):
    sockets = MeasuredSockets(2.0, 16.0, 2.0, binding=binding)
    cores = np.array([1.0, 2.0, 5.0, 8.0, 20.0, 32.0])
    measured = node_bandwidth(cores, 12e9, 90e9, sockets)
    fit = fit_host([table(zip(cores.tolist(), (measured / 1e9).tolist(), strict=True))], sockets)
    assert_allclose(list(values(fit).values()), [90e9, 12e9], rtol=1e-6, atol=0)
    assert fit.warnings == ()


def test_standard_errors_cover_scattered_triads():
    generator, cores = np.random.default_rng(1), np.repeat([1.0, 2.0, 4.0, 8.0, 16.0, 36.0], 6)
    exact = node_bandwidth(cores, 11e9, 60e9, TWO_SOCKETS)
    within = 0
    for _ in range(60):
        measured = exact * (1 + 0.03 * generator.standard_normal(len(cores)))
        fit = fit_host([table(zip(cores.tolist(), (measured / 1e9).tolist(), strict=True))], TWO_SOCKETS)
        (found,) = fit.fits
        within += (np.abs(found.values - [60e9, 11e9]) < 2 * found.standard_errors).sum()
    assert 0.88 < within / 120 < 1.0


def test_runs_with_one_count_of_cores_give_one_bandwidth():
    assert values(fit_host([table([(1, 10.0), (1, 12.0)])], TWO_SOCKETS)) == {"core_bandwidth": 11e9}
    assert values(fit_host([table([(36, 120.0)])], TWO_SOCKETS)) == {"memory_bandwidth": 60e9}


def test_triads_below_the_limit_of_a_socket_give_that_of_a_core_alone():
    fit = fit_host([table([(1, 12.0), (2, 24.2), (4, 48.6)])], MeasuredSockets(2.0, 56.0))
    assert_allclose(values(fit)["core_bandwidth"], 12.08e9, rtol=1e-3, atol=0)
    assert set(values(fit)) == {"core_bandwidth"}
    assert np.isfinite(fit.fits[0].standard_errors).all()
    assert fit.warnings == ("the triads do not reach the limit of a socket; memory_bandwidth is not determined",)


def test_sockets_whose_cores_all_draw_less_have_what_they_draw():
    fit = fit_host([table([(1, 12.0), (2, 24.2)])], MeasuredSockets(1.0, 2.0))
    assert_allclose(values(fit)["memory_bandwidth"], 24.1e9, rtol=1e-3, atol=0)
    assert fit.warnings == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(4, 40.0)], "all runs have 4 active cores: measure with 1 core and with all 36"),
        ([(1, 10.0), (72, 200.0)], "72 active cores, but 2 sockets of 18 cores; state --sockets"),
    ],
)
def test_measurements_that_show_nothing_are_refused(rows, message):
    with pytest.raises(UsageError) as refused:
        fit_host([table(rows)], TWO_SOCKETS)
    assert message in str(refused.value)


def test_only_triads_count():
    named = "function,cores,bandwidth [GB/s]\ncopy,1,99\ntriad,1,10\ntriad,36,120\n"
    assert len(fit_host([parse_host(named)], TWO_SOCKETS).measured) == 2
    with pytest.raises(UsageError, match="no triad was measured, only copy"):
        fit_host([parse_host("function,cores,bandwidth [GB/s]\ncopy,1,99\n")], TWO_SOCKETS)


def test_doubtful_measurements_are_told():
    sockets = MeasuredSockets(2.0, 18.0, peak_bandwidth=76.8e9)
    (line,) = fit_host([table([(1, 10.69), (32, 176.33), (36, 114.8)])], sockets).warnings
    assert line == "32 cores: 176 GB/s measured, but a peak of 154 GB/s; do the arrays fit a cache?"
    (line,) = fit_host([table([(1, 10.69), (8, 60.0)])], sockets).warnings
    assert line == "at most 4 of the 18 cores of a NUMA domain were active: the bandwidth of a socket is extrapolated"


def test_the_fit_is_written_with_its_errors(tmp_path):
    path = tmp_path / "mine.toml"
    files = DATA / "importers" / "host" / "stream_e5_2695v4.txt"
    fit = whatif.fit_host(files, platform="dahu")
    fit.write(path, extends="dahu")
    cpu = load_platform(path)[0].node.cpu
    (found,) = fit.fits
    assert_allclose([cpu.memory_bandwidth, cpu.core_bandwidth], found.values, rtol=1e-5, atol=0)
    assert "standard_errors" in path.read_text()


def test_the_processor_must_be_known():
    files = DATA / "importers" / "host" / "likwid_bench.txt"
    for platform in (None, "summit"):
        with pytest.raises(UsageError, match=r"name a platform with `\[node.cpu\]` by --platform"):
            whatif.fit_host(files, platform=platform)
