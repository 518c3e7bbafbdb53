"""Measurements of a simulated machine, and the platform that is written of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.measured_at_hand import (
    CACHE,
    CORE,
    DOUBLE,
    MACHINE,
    PRODUCT,
    REUSE,
    SOCKET,
    SimulatedTeam,
    no_messages,
    simulated,
)
from whatif.errors import UsageError
from whatif.files.measured_platform import MARK, MeasuredPlatform
from whatif.measuring.blas_calls import KERNELS, LARGEST, SMALLEST, largest_size, time_kernels
from whatif.measuring.hardware import PhysicalCore
from whatif.measuring.loops import OVER_CACHE, OVER_CACHE_QUICK, core_counts, triads_by_cores
from whatif.measuring.whole_machine import MeasurementOptions, measure_machine
from whatif.schema.load import load_platform, load_platform_document
from whatif.schema.parameters import provenance
from whatif.schema.toml import read_document

SECONDS = 20.0


@pytest.fixture(scope="module")
def found():
    return measure_machine(MeasurementOptions(SECONDS), simulated())


@pytest.fixture(scope="module")
def written(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("measured") / "mine.toml"
    MeasuredPlatform(found).write(path)
    return path


def test_cores_are_doubled_up_to_all():
    assert core_counts(MACHINE) == [1, 2, 4, 8]
    assert core_counts(replace(MACHINE, cores=MACHINE.cores[:6])) == [1, 2, 4, 6]
    assert core_counts(replace(MACHINE, cores=MACHINE.cores[:1])) == [1]


@pytest.mark.parametrize("over_cache", [OVER_CACHE, OVER_CACHE_QUICK])
def test_arrays_in_memory_exceed_the_caches_and_each_core_has_those_that_it_needs(over_cache):
    """Memory of cores that share a cache adds up to what one of them needs, not to that of each."""
    asked = []

    class Recording(SimulatedTeam):
        def rounds(self, workers, count, **command):
            asked.append({"workers": workers, **command})
            return super().rounds(workers, count, **command)

    for _, task in triads_by_cores(Recording(), MACHINE, over_cache):
        task.run()
    assert [item["workers"] for item in asked] == [1, 2, 4, 8]
    for item in asked:
        touched = len({(core.socket, core.cache) for core in MACHINE.spread[: item["workers"]]})
        each = 8 * item["length"] * item["workers"]
        assert_allclose(each, over_cache * MACHINE.last_level * touched, rtol=1e-6, atol=0)
        assert 3 * each >= 4 * MACHINE.last_level * touched * (1 - 1e-6)
        assert all(length >= item["length"] for length in item["longest"][: item["workers"]])
    assert asked[0]["longest"][-1] == asked[-1]["length"]


def test_all_parts_are_measured_within_their_time():
    team = SimulatedTeam()
    found = measure_machine(MeasurementOptions(SECONDS), simulated(team))
    assert team.now < 1.5 * SECONDS
    assert [sample.name for sample in found.memory] == [
        "triad on 1 core", "triad on 2 cores", "triad on 4 cores", "triad on 8 cores",
    ]  # fmt: skip
    assert set(found.kernels.columns["kernel"].values) == set(KERNELS)


def test_written_platform_has_the_rates_of_the_machine(written):
    node = load_platform(str(written))[0].node
    assert (node.socket_count, node.cpu.core_count, node.cpu.numa_domain_count) == (2, 4, 1)
    assert (node.cpu.name, node.cpu.cache_size, node.host.memory_size) == ("Test CPU", 2.0**25, 64e9)
    expected = {
        "core_bandwidth": CORE, "memory_bandwidth": SOCKET, "cache_bandwidth": CACHE, "peak_double_rate": 4 * DOUBLE,
        "peak_single_rate": 8 * DOUBLE, "core_reuse_bandwidth": REUSE["memory"],
        "cache_reuse_bandwidth": REUSE["cache"],
    }  # fmt: skip
    for name, value in expected.items():
        assert_allclose(getattr(node.cpu, name), value, rtol=0.02, atol=0, err_msg=name)
    assert_allclose(node.host.memory_bandwidth, SOCKET / 0.75, rtol=0.02, atol=0)


def test_written_platform_has_the_costs_of_kernels_and_messages(written):
    platform = load_platform(str(written))[0]
    assert_allclose(platform.kernels.dgemm.mnk, 2 / PRODUCT, rtol=0.01, atol=0)
    for name in set(KERNELS) - {"dgemm"}:
        assert_allclose(getattr(platform.kernels, name).size, 1e-9, rtol=0.02, atol=0, err_msg=name)
    assert platform.kernels.busy_cores == 8
    distance = platform.network.intra_socket
    assert_allclose(distance.postal.rendezvous.bandwidth, 20e9, rtol=0.02, atol=0)
    assert_allclose(distance.postal.eager.latency, 200e-9, rtol=0.02, atol=0)
    assert distance.eager_limit == 4096
    assert len(distance.pieces) >= 2


ALLREDUCE = """
platform = "mine"
[application]
name = "sum"
rank_count = {ranks}
ranks_per_node = {ranks}
iteration_count = 1
[application.phases.sum]
kind = "collective"
algorithm = "measured"
operation = "allreduce"
model = "postal"
message_size = "4096 B"
"""


def test_measured_collectives_of_the_written_platform_answer(written, tmp_path):
    path = tmp_path / "sum.toml"
    path.write_text(ALLREDUCE.format(ranks=2))
    found = whatif.run(path, platform_dirs=[written.parent])
    assert_allclose(float(found["iteration_time"]), 1e-6 + 4096e-9, rtol=1e-5, atol=0)
    path.write_text(ALLREDUCE.format(ranks=4))
    assert np.isnan(float(whatif.run(path, platform_dirs=[written.parent])["iteration_time"]))


def test_every_value_has_its_source_and_grade(written):
    layers = load_platform_document(read_document(written))[1]

    def source(path):
        return provenance(tuple(path.split(".")), layers)

    measured = "measured on testhost, 2026-11-23: "
    text, grade = source("node.cpu.peak_double_rate")
    assert text.startswith(f"{measured}multiply-add, double, 8 cores busy, ")
    assert "scatter 0." in text
    assert grade == "measured"
    assert source("node.cpu.memory_bandwidth")[0].startswith(f"{measured}triads by number of cores, ")
    assert source("kernels.dgemm.mnk")[0].startswith(f"{measured}HPL's kernels with ")
    assert source("network.intra_socket.postal.eager.latency")[0].startswith(f"{measured}messages between two ranks")
    assert source("node.cpu.core_count") == ("reported by hwloc 2.9.0 on testhost, 2026-11-23", "datasheet")
    allreduce = source("network.collectives.measured.mpi_allreduce_2_2.times")
    assert allreduce == (f"{measured}collectives of 2 ranks of Test MPI 1.0, 6 repetitions", "measured")
    assert source("node.host.memory_bandwidth")[1] == "assumed"
    assert source("network.inter_node.postal.eager.latency")[1] != "measured"


def test_messages_between_nodes_are_those_of_every_model(found, tmp_path):
    between = replace(found.messages, rows={"inter_node": found.messages.rows["intra_socket"]})
    MeasuredPlatform(replace(found, messages=between)).write(tmp_path / "mine.toml")
    network = load_platform(str(tmp_path / "mine.toml"))[0].network.inter_node
    for protocol in ("short", "eager", "rendezvous"):
        alone, shared, injected = (
            getattr(table, protocol) for table in (network.postal, network.max_rate, network.injection)
        )
        assert shared.latency == injected.latency == alone.latency
        assert injected.process_bandwidth == alone.bandwidth


def test_values_have_standard_errors(written):
    fits = load_platform(str(written))[0].fits
    errors = dict(zip(fits["node.cpu"].parameters, fits["node.cpu"].standard_errors, strict=True))
    assert set(errors) >= {"peak_double_rate", "memory_bandwidth", "core_bandwidth", "core_reuse_bandwidth"}
    assert all(error.value > 0 for error in errors.values())
    assert {"kernels.dgemm", "network.intra_socket.postal.eager"} <= fits.keys()


def test_written_platform_runs_kernels_and_is_valid(written):
    (file,) = whatif.check(str(written)).files
    assert not file.problems
    found = whatif.run(
        "minife", platform="mine", platform_dirs=[written.parent], overrides={"application.rank_count": 8}
    )
    assert float(found["kernel_time"]) > 0


def test_table_names_what_was_measured_and_what_was_not(found):
    rows = MeasuredPlatform(found).table().to_pandas().set_index("quantity")
    assert rows.loc["triad on 1 core", "grade"] == "measured"
    assert rows.loc["triad on 1 core", "value"].startswith("20.0") or rows.loc["triad on 1 core", "value"] == "20 GB/s"
    assert rows.loc["cache L3", "value"] == "32 MiB"
    assert rows.loc["power", "grade"] == "assumed"
    assert (rows.loc["allreduce, 2 ranks", "grade"], rows.loc["allreduce, 2 ranks", "repetitions"]) == ("measured", 6)


def test_without_mpi_messages_are_those_of_the_base(tmp_path):
    found = MeasuredPlatform(measure_machine(MeasurementOptions(SECONDS), simulated(messages=no_messages)))
    assert "messages were not measured: mpi4py is not installed" in found.notes
    assert found.table().to_pandas().set_index("quantity").loc["messages in a node", "grade"] == "assumed"
    found.write(tmp_path / "mine.toml")
    layers = load_platform_document(read_document(tmp_path / "mine.toml"))[1]
    assert provenance(("network", "intra_socket", "postal", "eager", "latency"), layers)[1] == "assumed"


def test_a_machine_of_one_core_without_known_caches(tmp_path):
    machine = replace(MACHINE, cores=(PhysicalCore((0,)),), caches=(), memory_size=0.0, clock=0.0)
    found = MeasuredPlatform(measure_machine(MeasurementOptions(SECONDS), simulated(machine=machine)))
    found.write(tmp_path / "mine.toml")
    cpu = load_platform(str(tmp_path / "mine.toml"))[0].node.cpu
    assert cpu.core_count == 1
    assert cpu.cache_size is None


def test_another_measurement_replaces_the_file_and_nothing_else(found, tmp_path):
    path = tmp_path / "mine.toml"
    MeasuredPlatform(found).write(path)
    assert path.read_text().startswith(MARK)
    MeasuredPlatform(found).write(path)
    other = tmp_path / "other.toml"
    other.write_text('extends = "summit"\n')
    with pytest.raises(UsageError, match="not written by `whatif measure`"):
        MeasuredPlatform(found).write(other)
    assert other.read_text() == 'extends = "summit"\n'


def test_sizes_of_kernels_follow_the_rate_and_the_memory():
    team = SimulatedTeam()
    assert largest_size(team, MACHINE, 1e-3) == SMALLEST
    assert largest_size(team, MACHINE, 1e3) == LARGEST
    room = replace(MACHINE, memory_size=8 * 8 * 1000.0**2 * 4)
    assert largest_size(team, room, 1e3) == 1000


def test_calls_have_the_sizes_of_hpl():
    table = time_kernels(team := SimulatedTeam(), MACHINE, 5.0, team.clock)
    columns = {name: column.values for name, column in table.columns.items()}
    thin = np.isin(columns["kernel"], ["dtrsv", "dgemv", "dger"])
    assert columns["n"][thin].max() <= 16
    moves = np.char.startswith(columns["kernel"].astype(str), "dlaswp")
    assert columns["m"][moves].max() <= 256
    assert set(columns["busy_cores"]) == {8.0}
