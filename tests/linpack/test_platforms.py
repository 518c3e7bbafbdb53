"""The kernels and messages of HPL on the shipped machines, held to the calibrations they were made from."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.linpack.datasheet import fill_from_datasheet
from whatif.linpack.simulation.costs import AT_ONCE, KERNELS, RENDEZVOUS, PieceColumn, matrix_mean, size_time
from whatif.schema.load import load_platform

DATA = TEST_DATA / "hpl_platforms"
WINTER = DATA / "dahu_dgemm_2020.csv"
TERMS = ("intercept", "mnk", "mn", "mk", "nk")
# Sizes of the updates of HPL with NB = 128, from the first step of a large matrix to late ones.
UPDATES = [(15625, 15625, 128), (8000, 8000, 128), (8000, 2000, 128), (3000, 3000, 128)]
# Ezibenroc/hpl, branch homogeneous_dgemm: time and standard deviation, of a call or of an element.
PUBLISHED = {
    "dtrsm": ("size", 5.445540e-11, 3.093410e-12),
    "dlaswp01t": ("size", 7.547639e-09, 1.371708e-09),
    "dlaswp02n": ("size", 2.822241e-08, 5.497050e-09),
    "dlaswp03t": ("size", 3.775240e-09, 2.968320e-10),
    "dlaswp04t": ("size", 8.498957e-09, 2.218070e-09),
    "daxpy": ("constant", 6.680085e-07, 9.265829e-07),
    "dscal": ("size", 3.798686e-10, 1.490121e-10),
    "idamax": ("size", 6.052262e-10, 2.380847e-10),
    "dgemv": ("size", 1.278804e-09, 1.645759e-11),
    "dtrsv": ("constant", 2.438651e-05, 4.452153e-06),
    "dlacpy": ("size", 3.871806e-09, 1.328595e-09),
    "dlatcpy": ("size", 4.893900e-09, 4.691039e-10),
}
SCENARIO = """
platform = "{platform}"
[application]
kind = "hpl"
matrix_size = 20000
block_size = 128
process_rows = {rows}
process_columns = {columns}
ranks_per_node = {ranks}
binding = "by_socket"
"""


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def calibrated(suffix=""):
    """[processor, term]: the models of the 64 processors, or their deviations."""
    return np.array(
        [[float(row[f"{term}{suffix}"]) for term in TERMS] for row in rows_of(DATA / "dahu_dgemm_2019.csv")]
    )


def polynomial(terms, m, n, k):
    return terms @ np.array([1, m * n * k, m * n, m * k, n * k])


@pytest.fixture
def machine(tmp_path):
    """What the engine makes of a platform."""

    def made(platform, rows, columns, ranks):
        path = tmp_path / "hpl.toml"
        path.write_text(SCENARIO.format(platform=platform, rows=rows, columns=columns, ranks=ranks))
        scenario = Scenario.open(path)
        values = evaluate(scenario.program).values
        plan = scenario.program.terms["hpl.times"].options["plan"]
        numbers = {parameter: float(values[parameter]) for parameter in plan.parameters}
        return plan.machine(numbers, rows * columns, ranks, int(float(values["platform.node.socket_count"])))

    return made


def test_the_calibration_was_copied_without_a_slip():
    """Its authors state the means over the processors of all but the slow nodes 13 to 16."""
    normal = np.r_[0:24, 32:64]
    stated = [5.249134e-07, 6.864500e-11, -1.793648e-10, 1.604311e-09, 2.922754e-09]
    assert_allclose(calibrated()[normal].mean(axis=0), stated, rtol=1e-6, atol=0)
    deviation = [6.060802e-07, 7.495901e-13, 2.927438e-11, 5.905245e-11, 5.780894e-11]
    assert_allclose(calibrated("_residual")[normal].mean(axis=0), deviation, rtol=1e-6, atol=0)


@pytest.mark.parametrize("sizes", UPDATES)
def test_each_rank_of_dahu_takes_as_long_for_an_update_as_its_processor_was_calibrated(machine, sizes):
    dahu = machine("dahu", 32, 32, 32)
    times = [factor * matrix_mean(dahu.kernels, *sizes) for factor in dahu.factors]
    # Ranks of a node take turns on its two processors.
    ranks = np.arange(1024)
    expected = polynomial(calibrated(), *sizes)[ranks // 32 * 2 + ranks % 2]
    assert_allclose(times, expected, rtol=0.01, atol=0)
    assert_allclose(np.mean(times), expected.mean(), rtol=3e-4, atol=0)


def test_the_deviation_of_dgemm_on_dahu_is_the_mean_of_those_calibrated(machine):
    table = machine("dahu", 32, 32, 32).kernels
    assert_allclose(table[1], calibrated("_residual").mean(axis=0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_the_other_kernels_of_dahu_are_those_published(machine, kernel):
    term, mean, deviation = PUBLISHED[kernel]
    table, size = machine("dahu", 4, 8, 32).kernels, 1000.0
    unit = size if term == "size" else 1.0
    assert_allclose(size_time(table, KERNELS.index(kernel), size, False, None), mean * unit, rtol=1e-6, atol=0)
    assert_allclose(table[KERNELS.index(kernel), 2:4] @ [1, size], deviation * unit, rtol=1e-6, atol=0)


def simgrid(name):
    """[(smallest size, values..)] of a property of dahu.xml."""
    found = re.search(rf'id="smpi/{name}" value="([^"]+)"', (DATA / "dahu.xml").read_text(encoding="utf-8"))
    return [tuple(float(number) for number in part.split(":")) for part in found[1].split(";")]


# Ezibenroc/hpl @277bbf0b, bin/SMPI/dahu_ringrong.xml, from 6 MB on: size, bandwidth factor, latency factor.
SLOW = {
    1: [
        (6e6, 0.13003278960133288, 0),
        (42672591, 0.10354740223279707, 0),
        (160097505, 0.40258935729656503, 970913.4558),
    ],
    0: [
        (6e6, 0.07551057012803415, 0),
        (36900419, 0.04281516758309203, 0),
        (160097505, 0.174405187959926, 1017885.35188),
    ],
}


@pytest.mark.parametrize(("distance", "latency", "bandwidth"), [(1, 2 * 0.1e-6, 12.5e9), (0, 0.1e-6, 25e9)])
def test_messages_of_dahu_above_6_mb_are_those_of_the_later_calibration(machine, distance, latency, bandwidth):
    pieces = machine("dahu", 8, 8, 32).pieces[distance][5:]
    for piece, (size, bandwidth_factor, latency_factor) in zip(pieces, SLOW[distance], strict=True):
        expected = [size, latency * latency_factor, 1 / (bandwidth * bandwidth_factor)]
        assert_allclose(piece[: PieceColumn.PER_BYTE + 1], expected, rtol=1e-6, atol=0)
    assert (pieces[:, PieceColumn.PROTOCOL] == RENDEZVOUS).all()
    # A message of 8 MB takes seven to nine times as long as on the line through smaller ones.
    small = machine("dahu", 8, 8, 32).pieces[distance][4, PieceColumn.PER_BYTE]
    assert 7 < pieces[0, PieceColumn.PER_BYTE] / small < 10


def test_a_message_of_exactly_the_limit_takes_the_parameters_below_it(machine):
    network = load_platform("lassen")[0].network.inter_node
    pieces = machine("lassen", 2, 2, 4).pieces[1]
    limits = (0, network.short_limit + 1, network.eager_limit + 1)
    assert_allclose(pieces[:, PieceColumn.SMALLEST_SIZE], limits, rtol=0, atol=0)
    expected = [getattr(network.postal, protocol).latency for protocol in ("short", "eager", "rendezvous")]
    assert_allclose(pieces[:, PieceColumn.LATENCY], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("distance", "latency", "bandwidth"), [(1, 2 * 0.1e-6, 12.5e9), (0, 0.0, 18.348422228142724e9)]
)
def test_messages_of_dahu_are_charged_as_simgrid_charges_them(machine, distance, latency, bandwidth):
    pieces = machine("dahu", 8, 8, 32).pieces[distance][:5]
    factors, latencies, sends, receives = (simgrid(name) for name in ("bw-factor", "lat-factor", "os", "or"))
    assert [(start,) for start, _ in factors] == [(piece[PieceColumn.SMALLEST_SIZE],) for piece in pieces]
    assert_allclose(pieces[:, PieceColumn.LATENCY], [latency * factor for _, factor in latencies], rtol=1e-6, atol=0)
    assert_allclose(
        pieces[:, PieceColumn.PER_BYTE], [1 / (bandwidth * factor) for _, factor in factors], rtol=1e-6, atol=0
    )
    for side, table in ((PieceColumn.SEND, sends), (PieceColumn.RECEIVE, receives)):
        assert_allclose(pieces[:, side], [constant for _, constant, _ in table], rtol=1e-6, atol=0)
        assert_allclose(pieces[:, side + 1], [slope for *_, slope in table], rtol=1e-6, atol=0)
    limit = simgrid("send-is-detached-thresh")[0][0]
    assert simgrid("async-small-thresh") == [(limit,)]
    expected = [AT_ONCE if start < limit else RENDEZVOUS for start, _ in factors]
    assert pieces[:, PieceColumn.PROTOCOL].tolist() == expected


def test_the_processors_of_2020_match_its_calibrations():
    times: dict[str, list[float]] = {}
    for row in rows_of(WINTER):
        times.setdefault(f"node{row['node']}_cpu{row['cpu']}", []).append(float(row["mnk"]))
    means = {key: np.mean(found) for key, found in times.items()}
    overall = np.mean(list(means.values()))
    found = load_platform("dahu_2020")[0].kernels.processors
    assert list(found) == [f"node{node}_cpu{cpu}" for node in range(1, 33) for cpu in range(2)]
    assert_allclose(list(found.values()), [means[key] / overall for key in found], rtol=1e-5, atol=0)


def test_deviations_of_2020_match_its_calibrations(machine):
    rows = [
        (f"node{row['node']}_cpu{row['cpu']}", float(row["mnk"]), float(row["mnk_residual"])) for row in rows_of(WINTER)
    ]
    means = {
        key: np.mean([row[1:] for row in rows if row[0] == key], axis=0)
        for key in dict.fromkeys(row[0] for row in rows)
    }
    overall = np.mean(list(means.values()), axis=0)
    assert_allclose(machine("dahu_2020", 8, 8, 32).kernels[1, 1], overall[1], rtol=1e-5, atol=0)
    expected = [(deviation / overall[1]) / (time / overall[0]) for time, deviation in means.values()]
    found = load_platform("dahu_2020")[0].kernels.deviations
    assert_allclose(list(found.values()), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("sizes", UPDATES)
def test_dgemm_of_2020_is_the_polynomial_of_its_authors(machine, sizes):
    published = np.array([2.573935e-06, 6.913763e-11, -2.113842e-10, 6.562226e-10, 2.267745e-09])
    table = machine("dahu_2020", 32, 32, 32).kernels
    assert_allclose(matrix_mean(table, *sizes), polynomial(published, *sizes), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("platform", "sizes", "rate"),
    [
        ("stampede", (1281, 1281, 257), 1e12),
        ("stampede", (50000, 50000, 1024), 1e12),
        ("stampede", (1280, 50000, 1024), 345.6e9),
        ("stampede", (50000, 50000, 256), 345.6e9),
        ("theta", (80000, 260000, 336), 2662.4e9),
    ],
)
def test_rate_of_dgemm_on_a_node_is_the_printed_one(machine, platform, sizes, rate):
    table = machine(platform, 4, 4, 1).kernels
    m, n, k = sizes
    assert_allclose(2 * m * n * k / matrix_mean(table, *sizes), rate, rtol=1e-9, atol=0)


def test_kernels_that_nobody_measured_are_charged_with_memory_on_stampede(machine):
    table = machine("stampede", 4, 4, 1).kernels
    # One rank has both sockets' 51.2 GB/s; a matrix-vector product reads 8 B an element.
    assert_allclose(table[KERNELS.index("dgemv"), 1], 8 / (2 * 51.2e9), rtol=1e-9, atol=0)
    assert not table[KERNELS.index("dtrsv")].any()
    assert_allclose(size_time(table, KERNELS.index("dtrsm"), 1e9, False, None), 1e-3, rtol=1e-9, atol=0)


def test_swaps_and_copies_by_memory_bandwidth_take_a_third_to_three_times_as_long_as_calibrated_on_dahu():
    """Six kernels of the paper's authors, with the 8 GB/s of a rank; 0.84 times as long in the geometric mean."""
    table = np.zeros((len(KERNELS), 5))
    fill_from_datasheet(table, 1.0, 2 * 128e9 / 32)
    names = ("dlaswp01t", "dlaswp02n", "dlaswp03t", "dlaswp04t", "dlacpy", "dlatcpy")
    ratios = [table[KERNELS.index(name), 1] / PUBLISHED[name][1] for name in names]
    assert_allclose(np.exp(np.mean(np.log(ratios))), 0.84, rtol=0.01, atol=0)
    assert max(ratios) < 3
    assert min(ratios) > 1 / 3


def test_rows_on_a_gpu_cost_sectors_of_32_bytes_for_each_element(machine):
    table = machine("frontier", 2, 2, 8).kernels
    bandwidth = load_platform("frontier")[0].node.gpu.dram_bandwidth
    # Exchanged rows: one is contiguous in columns, of the other each element is in a sector that is read and written.
    expected = {"dlaswp00n": 8 + 8 + 32 + 32, "dlaswp01t": 32 + 8, "dlaswp04t": 8 + 32, "dlacpy": 8 + 8}
    for name, size in expected.items():
        assert_allclose(table[KERNELS.index(name), 1], size / bandwidth, rtol=1e-9, atol=0)
