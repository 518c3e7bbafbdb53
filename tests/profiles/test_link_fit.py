"""The fit of a link to its copies, on what AHEAD's authors measured on Titan and Summit."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.profiles.copy_times import link_bandwidth
from whatif.profiles.link_fit import TransferFit, fit_transfer, weighted_error
from whatif.profiles.nvprof import read_copy_summary
from whatif.schema.platform_spec import NVLink, PCIe, Staging
from whatif.schema.toml import parse_document
from whatif.table import Column, Table

SWEEP = DATA / "ahead" / "memcpy_sweep.csv"
MIB = 2.0**20
READ, WRITE = "host_to_device", "device_to_host"
LATENCIES = {f"{memory}_{way}_latency": "1 us" for memory in ("pinned", "pageable") for way in ("read", "write")}
CACHE = Staging.model_validate({"read_bandwidth": "1 GB/s", "write_bandwidth": "1 GB/s", "cache_size": "10 MiB"})
TITAN = PCIe.model_validate({"kind": "pcie", "generation": 2, **LATENCIES})
PCIE_3 = PCIe.model_validate({"kind": "pcie", "generation": 3, **LATENCIES})
PLAIN_SUMMIT = NVLink.model_validate({"kind": "nvlink", "link_count": 2, "lane_bandwidth": "25 Gbit/s", **LATENCIES})
SUMMIT = PLAIN_SUMMIT.model_copy(update={"staging": CACHE})
LINKS = {"Titan": TITAN, "Summit": SUMMIT}


def copies(direction: str, memory: str, sizes, times, **more) -> Table:
    columns = {
        "direction": Column(np.full(len(sizes), direction, dtype=object)),
        "memory": Column(np.full(len(sizes), memory, dtype=object)),
        "message_size": Column(np.array(sizes, dtype=float)),
        "time": Column(np.array(times, dtype=float)),
    }
    return Table({**columns, **{name: Column(np.array(values)) for name, values in more.items()}})


def parameters(fit: TransferFit) -> dict[str, float]:
    """The fitted values by path in the platform."""
    pairs = [(each, dict(zip(each.dimensions, each.values, strict=True))) for each in fit.fits]
    return {f"{each.path}.{name}": value for each, values in pairs for name, value in values.items()}


def errors(fit: TransferFit) -> dict[tuple[str, str, str], float]:
    return {row[:3]: round(100 * row[3], 1) for row in fit.comparison.rows()}


def only(table: Table, keep) -> Table:
    return Table({name: Column(column.values[keep], column.dimension) for name, column in table.columns.items()})


@pytest.mark.parametrize(
    ("machine", "memory_bandwidth", "pinned", "staged", "eq_9"),
    [("Titan", 51.2e9, (1.6, 0.3), (0.1, 0.3), (46.9, 31.6)), ("Summit", 170e9, (0.3, 0.4), (5.7, 12.3), (58.2, 55.6))],
)
def test_how_far_the_formulas_are_from_the_released_sweeps(machine, memory_bandwidth, pinned, staged, eq_9):
    table = read_copy_summary(SWEEP)
    found = errors(fit_transfer(table, LINKS[machine], machine=machine, memory_bandwidth=memory_bandwidth))
    for place, direction in enumerate((READ, WRITE)):
        assert found[direction, "pinned", "pinned"] == pytest.approx(pinned[place], abs=0.06)
        assert found[direction, "pageable", "staged"] == pytest.approx(staged[place], abs=0.06)
        assert found[direction, "pageable", "ahead"] == pytest.approx(eq_9[place], abs=0.06)
        assert found[direction, "pageable", "line"] > 2.5 * staged[place]


@pytest.mark.parametrize(
    ("machine", "direction", "first", "second"),
    [
        ("Titan", READ, 0.3, 0.3),
        ("Titan", WRITE, 0.6, 0.6),
        ("Summit", READ, 9.0, 4.0),
        # Neighbouring sizes ran at 11 and 18 GB/s: every second one says little about the others.
        ("Summit", WRITE, 32.0, 42.5),
    ],
)
def test_a_fit_to_every_second_size_predicts_the_others(machine, direction, first, second):
    table = read_copy_summary(SWEEP)
    chosen = table.columns["machine"].values == machine
    chosen &= (table.columns["direction"].values == direction) & (table.columns["memory"].values == "pageable")
    places = np.flatnonzero(chosen)
    for start, bar in ((0, first), (1, second)):
        fit = fit_transfer(only(table, places[start::2]), LINKS[machine])
        others = only(table, places[1 - start :: 2])
        predicted = fit.curve(direction, "pageable", "staged", others.columns["message_size"].values)
        assert 100 * weighted_error(predicted, others.columns["time"].values) < bar


def test_pageable_copies_of_an_a100_whose_sizes_are_no_powers_of_two():
    """HolisticTraceAnalysis @f4d0062c (MIT), benchmark_result_2869224: sizes in bytes, durations in whole µs."""
    measured = {
        256: 1, 768: 1, 1024: 1, 1536: 1, 4000: 2, 16384: 2.5, 92928: 12, 1228800: 110, 2359296: 365, 2654208: 423,
        3538944: 620, 16384000: 3684, 67108864: 15497, 150994944: 34780,
    }  # fmt: skip
    sizes, times = np.array(list(measured), dtype=float), np.array(list(measured.values())) * 1e-6
    fit = fit_transfer(copies(READ, "pageable", sizes, times), PCIE_3)
    large = sizes > MIB
    residuals = fit.curve(READ, "pageable", "staged", sizes)[large] / times[large] - 1
    assert np.abs(residuals).max() < 0.065
    assert errors(fit)[READ, "pageable", "staged"] == pytest.approx(1.2, abs=0.06)


def test_exact_copies_give_back_their_parameters():
    link = SUMMIT
    sizes = 2.0 ** np.arange(0, 29, 0.5)
    true = fit_transfer(read_copy_summary(SWEEP), link, machine="Summit")
    for direction, memory, model in (
        (READ, "pinned", "pinned"),
        (READ, "pageable", "staged"),
        (WRITE, "pageable", "staged"),
    ):
        table = copies(direction, memory, sizes, true.curve(direction, memory, model, sizes))
        again = parameters(fit_transfer(table, link))
        expected = {name: value for name, value in parameters(true).items() if name in again}
        assert len(expected) == len(again) == (1 if memory == "pinned" else 3)
        assert_allclose(list(again.values()), [expected[name] for name in again], rtol=1e-6, atol=0)


def test_standard_errors_cover_the_scatter_of_repeated_fits():
    generator = np.random.default_rng(4)
    sizes = 2.0 ** np.arange(0, 29)
    true = fit_transfer(read_copy_summary(SWEEP), TITAN, machine="Titan")
    times = true.curve(READ, "pageable", "staged", sizes)
    expected = np.array(list(parameters(true).values()))[[1, 4]]  # the pageable read latency and bandwidth
    scores = []
    for _ in range(200):
        noisy = times * (1 + 0.03 * generator.standard_normal(len(sizes)))
        latency, staging = fit_transfer(copies(READ, "pageable", sizes, noisy), TITAN).fits
        off = np.array([latency.values[0], staging.values[0]]) - expected
        scores.append(off / [latency.standard_errors[0], staging.standard_errors[0]])
    assert_allclose(np.std(scores, axis=0), 1.0, rtol=0.15, atol=0)


def test_each_set_of_copies_is_a_fit_named_as_the_platform_file_has_it():
    fit = fit_transfer(read_copy_summary(SWEEP), SUMMIT, machine="Summit")
    link = [each for each in fit.fits if each.path == "node.host_link"]
    staging = [each for each in fit.fits if each.path == "node.host_link.staging"]
    assert sorted(name for each in link for name in each.dimensions) == sorted(LATENCIES)
    assert {len(each.dimensions) for each in staging} == {2}
    assert {name for each in staging for name in each.dimensions} < set(Staging.model_fields)
    assert [each.point_count for each in (*link, *staging)] == [29] * 6
    assert {tuple(each.ranges["message_size"]) for each in fit.fits} == {(1.0, 256 * MIB)}
    assert [each.covariance.shape for each in staging] == [(2, 2)] * 2
    # In one table, from one fit: what the cache copies faster, memory need not.
    assert all(-1 < each.correlation[0, 1] < 0 for each in staging)
    assert all((each.standard_errors > 0).all() for each in fit.fits)
    pinned = link[0]
    assert list(pinned.dimensions) == ["pinned_read_latency"]
    residuals = fit.curve(READ, "pinned", "pinned", pinned_column(fit, "message_size")) / pinned_column(fit, "time") - 1
    assert pinned.error == pytest.approx(float(np.sqrt(np.mean(residuals**2))), rel=1e-12)
    assert parameters(fit)["node.host_link.pinned_read_latency"] == pytest.approx(1.78e-6, rel=0.03)
    assert len(fit.points) == 116
    again = pickle.loads(pickle.dumps(fit))  # noqa: S301 - written here
    assert again.curve(READ, "pinned", "line", [MIB]) == fit.curve(READ, "pinned", "line", [MIB])


def pinned_column(fit: TransferFit, name: str):
    columns = {key: column.values for key, column in fit.points.columns.items()}
    return columns[name][(columns["direction"] == READ) & (columns["memory"] == "pinned")]


def test_of_the_copies_of_one_size_the_median_counts():
    sizes, times = [MIB] * 5 + [4 * MIB, 16 * MIB], [9e-3, 1e-3, 2e-3, 1.5e-3, math.nan, 4e-3, 16e-3]
    fit = fit_transfer(copies(READ, "pinned", sizes, times), TITAN)
    assert_allclose(fit.points.columns["time"].values, [1.5e-3, 4e-3, 16e-3], rtol=1e-12, atol=0)
    counts = [1.0, 1.0, 100.0, 1.0, 1.0, np.nan, 1.0]
    fit = fit_transfer(copies(READ, "pinned", sizes, times, repetition_count=counts), TITAN)
    assert_allclose(fit.points.columns["time"].values, [2e-3, 4e-3, 16e-3], rtol=1e-12, atol=0)


def test_staging_is_undetermined_without_large_copies():
    table = read_copy_summary(SWEEP)
    chosen = (table.columns["machine"].values == "Titan") & (table.columns["message_size"].values <= MIB)
    fit = fit_transfer(only(table, chosen), TITAN)
    assert {each.path for each in fit.fits} == {"node.host_link"}
    assert any(
        "the bandwidth of staging cannot be determined: there must be two sizes beyond 1 MiB" in w for w in fit.warnings
    )
    assert (READ, "pageable", "staged") not in errors(fit)


def test_implausible_measurements_are_warnings():
    table = read_copy_summary(SWEEP)
    text = "\n".join(fit_transfer(table, PLAIN_SUMMIT, machine="Summit").warnings)
    assert "the time falls from 7.399 us to 4.882 us where the size grows from 64 KiB to 128 KiB" in text
    assert "a cache may explain it: state `staging.cache_size` of the link" in text
    text = "\n".join(fit_transfer(table, TITAN, machine="Summit").warnings)
    assert "pinned, host to device: measured 46.99 GB/s, more than the 8 GB/s of the link" in text


def test_pinned_copies_that_contradict_data_sheet_are_reported():
    table = read_copy_summary(SWEEP)
    foreign = fit_transfer(table, PLAIN_SUMMIT, machine="Titan").warnings
    message = [line for line in foreign if "the data sheet of the link does not fit" in line]
    assert [line.partition(":")[0] for line in message] == ["pinned, host to device", "pinned, device to host"]
    assert not any("data sheet" in line for line in fit_transfer(table, SUMMIT, machine="Summit").warnings)


def test_files_of_different_machines_are_reported():
    table = read_copy_summary(SWEEP)
    machines = table.columns["machine"].values
    pooled = {name: column for name, column in table.columns.items() if name != "machine"}
    files = Column(np.array([f"{machine.lower()}.csv" for machine in machines], dtype=object))
    text = "\n".join(fit_transfer(Table({**pooled, "file": files}), TITAN).warnings)
    assert re.search(r"pinned, host to device: summit.csv and titan.csv differ: .* are these one machine\?", text)


@pytest.mark.parametrize(("factor", "message"), [(1.15, False), (1.3, True)])
def test_files_that_scatter_as_runs_do_are_one_machine(factor, message):
    sizes, times = np.tile([MIB, 4 * MIB, 16 * MIB], 2), np.array([1e-3, 4e-3, 16e-3])
    table = copies(READ, "pinned", sizes, np.concatenate([times, factor * times]), file=["a"] * 3 + ["b"] * 3)
    assert ("a and b differ" in "\n".join(fit_transfer(table, TITAN).warnings)) == message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (copies(READ, "pinned", [1e300, 1, 2], [1, 2, 3]), "the copies: 1 rows of impossible sizes or times"),
        (copies(READ, "pinned", [1, 2, 3], [1e-300, 2, 3]), "are the units mixed up"),
        (copies(READ, "pinned", [1, 2, 3], [1, 2, 1e7]), "3 B in 1e\\+07 s"),
        (Table({"time": Column(np.ones(3))}), "no column `direction`"),
        (copies("device_to_device", "device", [1, 2, 3], [1, 2, 3]), "no copies between host and device"),
        (copies(READ, "pinned", [MIB] * 5, [1, 2, 3, 4, 5]), "pinned, host to device: 1 different sizes"),
        (copies(READ, "pinned", [1, 2, 3], [1, math.nan, 0]), "1 different sizes with a time; a fit needs 3"),
        (copies(READ, "pinned", [1, 2, 3], [3, 2, 1]), "the times do not grow with the size"),
        (copies(READ, "pinned", [1, 2, 3], [1, 1, 1]), "the times do not grow with the size"),
        (copies(READ, "pinned", [1, 2], [1, 2], machine=["a", "b"]), "of several machines, a, b: choose one"),
    ],
)
def test_measurements_that_cannot_be_fitted_are_refused_with_the_reason(table, message):
    with pytest.raises(UsageError, match=message):
        fit_transfer(table, TITAN)


def test_a_machine_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="no copies of `Sierra`; the machines are Summit, Titan"):
        fit_transfer(read_copy_summary(SWEEP), TITAN, machine="Sierra")


def test_a_link_with_an_expression_is_refused():
    link = PCIe.model_validate({"kind": "pcie", "generation": "= 2", **LATENCIES})
    with pytest.raises(UsageError, match="`generation` of the link is an expression"):
        link_bandwidth(link)


# The model in a scenario.

SCENARIO = """
[platform]
extends = "{platform}"
{staging}
[application]
name = "test"
rank_count = 6
iteration_count = 1
[application.phases.copy]
kind = "transfer"
direction = "{direction}"
memory = "pageable"
pageable_model = "staged"
transfer_size = "2.5 MiB"
"""
STAGING = """\
[platform.node.host_link.staging]
chunk_size = "1 MiB"
read_bandwidth = "10 GB/s"
write_bandwidth = "10 GB/s"
cache_size = "0 B"
cached_read_bandwidth = "10 GB/s"
cached_write_bandwidth = "20 GB/s"
"""


def scenario_time(direction: str, staging: str, platform: str = "summit") -> float:
    text = SCENARIO.format(direction=direction, staging=staging, platform=platform)
    result = run_whole(Scenario(parse_document(text, "test.toml", None)), Grid())
    return float(result.terms["copy"])


def test_a_staged_transfer_follows_the_platform():
    # By hand: chunks of 1, 1 and 1/2 MiB; the link is faster than the processor, which copies 1 MiB in MIB / 10e9.
    read_bytes, write_bytes = 16 + 2.5 * MIB + 16 * 10240, 2.5 * MIB + 16 * 10240
    read, write = read_bytes / 50e9 / (2.5 * MIB), write_bytes / 50e9 / (2.5 * MIB)
    half = MIB / 2
    assert_allclose(
        scenario_time(READ, STAGING), 1.2515e-6 + MIB / 10e9 + half / 10e9 + half * read, rtol=1e-12, atol=0
    )  # fmt: skip
    assert_allclose(
        scenario_time(WRITE, STAGING), 1.7805e-6 + MIB * write + MIB / 10e9 + half * write, rtol=1e-12, atol=0
    )  # fmt: skip


def test_the_cache_speeds_the_first_bytes_up():
    cached = STAGING.replace('"0 B"', '"2 MiB"')
    rate = 2.5 * MIB / (2 * MIB / 20e9 + MIB / 2 / 10e9)
    saved = MIB / 10e9 - MIB / rate
    assert_allclose(
        scenario_time(WRITE, STAGING) - scenario_time(WRITE, cached), saved, rtol=1e-9, atol=0
    )  # fmt: skip
    assert scenario_time(READ, cached) == pytest.approx(scenario_time(READ, STAGING), rel=1e-14)


def test_platform_without_staging_is_reported():
    with pytest.raises(
        InvalidFileError, match=r"pageable_model: Lassen does not state `platform.node.host_link.staging`"
    ):
        scenario_time(READ, "", "lassen")


def test_machines_are_named_in_any_letters():
    table = read_copy_summary(SWEEP)
    small, written = (fit_transfer(table, TITAN, machine=name) for name in ("titan", "Titan"))
    assert [fit.values.tolist() for fit in small.fits] == [fit.values.tolist() for fit in written.fits]
