"""Kernels on sockets: times, energy and memory against hand arithmetic, and what is told about assumptions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.kernel_notes import kernel_notes
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError
from whatif.schema.toml import parse_document

# 2 sockets of 16 cores: 1 core has 62.5 Gflop/s and 20 GB/s, all 16 have 1 Tflop/s and 100 GB/s.
MACHINE = """
[platform]
name = "Cluster"
node_count = 100
[platform.node]
socket_count = 2
[platform.node.cpu]
name = "Processor"
core_count = 16
peak_double_rate = "1 Tflop/s"
memory_bandwidth = "100 GB/s"
core_bandwidth = "20 GB/s"
idle_power = "50 W"
dynamic_power = "150 W"
[platform.node.host]
power = "100 W"
memory_size = "64 GB"
[platform.network.inter_node]
short_limit = "128 B"
eager_limit = "64 KiB"
[platform.network.inter_node.postal]
short = { latency = "1 us", bandwidth = "1 GB/s" }
eager = { latency = "2 us", bandwidth = "5 GB/s" }
rendezvous = { latency = "4 us", bandwidth = "10 GB/s" }
"""
WORK = """
[application]
name = "t"
rank_count = 64
iteration_count = 10
[application.phases.work]
kind = "kernel"
model = "roofline_l2"
dominant_operation = "fp_64"
metrics_per = "rank"
operations = "1 Gflop"
dram_size = "25 GB"
l2_size = "1 PB"
operation_efficiency = 0.5
compute_fraction = 0.001
load_store_fraction = 0.9
roof_exponent = 4
block_count = 3
measured_factor = 7
launch_time = "1 s"
"""
FLOPS = {"application.phases.work.dram_size": "0 B", "application.phases.work.operations": "500 Gflop"}


def scenario(text=MACHINE + WORK, **sets):
    overrides = {path.replace("__", "."): str(value) for path, value in sets.items()}
    return Scenario(parse_document(text, "t.toml"), overrides=overrides)


def time_of(overrides, column="kernel_time"):
    evaluation = evaluate(Scenario(parse_document(MACHINE + WORK, "t.toml"), overrides=overrides).program)
    return float(evaluation.column(column))


@pytest.mark.parametrize(
    ("overrides", "bandwidth"),
    [
        ({}, 100e9 / 16),
        ({"application.rank_count": "1"}, 20e9),
        ({"application.ranks_per_node": "1"}, 200e9),
        ({"application.ranks_per_node": "2"}, 100e9),
        ({"application.ranks_per_node": "64"}, 100e9 / 32),
        ({"application.threads_per_rank": "4"}, 100e9 / 4),
        ({"application.threads_per_rank": "1", "application.ranks_per_node": "2"}, 20e9),
        # A domain of 4 cores has 25 GB/s: one rank with a core in each has its 20 GB/s, with 4 all of it.
        ({"platform.node.cpu.numa_domain_count": "4", "application.ranks_per_node": "8"}, 25e9),
        (
            {
                "platform.node.cpu.numa_domain_count": "4",
                "application.ranks_per_node": "8",
                "application.threads_per_rank": "1",
            },
            20e9,
        ),
    ],
)
def test_a_rank_has_the_bandwidth_of_its_cores(overrides, bandwidth):
    assert_allclose(time_of(overrides), 25e9 / bandwidth, rtol=1e-12, atol=0)


def test_bandwidths_that_are_not_stated_follow_the_rules():
    text = (MACHINE + WORK).replace('memory_bandwidth = "100 GB/s"\ncore_bandwidth = "20 GB/s"\n', "")
    text = text.replace('memory_size = "64 GB"', 'memory_bandwidth = "200 GB/s"')
    assert_allclose(
        float(evaluate(scenario(text).program).column("kernel_time")), 25e9 / (0.75 * 200e9 / 16), rtol=1e-12, atol=0
    )
    one = evaluate(scenario(text, application__rank_count=1).program)
    assert_allclose(float(one.column("kernel_time")), 25e9 / (0.75 * 200e9 / 8), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("overrides", "rate"),
    [
        ({}, 62.5e9),
        ({"application.ranks_per_node": "4"}, 8 * 62.5e9),
        ({"application.phases.work.dominant_operation": "fp_32"}, 125e9),
        ({"application.phases.work.dominant_operation": "integer"}, 125e9),
        (
            {
                "platform.node.cpu.peak_single_rate": "3 Tflop/s",
                "application.phases.work.dominant_operation": "fp_32",
            },
            3e12 / 16,
        ),
        (
            {
                "platform.node.cpu.sustained_clock": "2 GHz",
                "platform.node.cpu.double_operations_per_cycle": "16 flop",
            },
            32e9,
        ),
        ({"platform.node.cpu.sustained_clock": "2 GHz"}, 62.5e9),
    ],
)
def test_a_rank_has_the_rate_of_its_cores(overrides, rate):
    assert_allclose(time_of(FLOPS | overrides), 500e9 / (0.5 * rate), rtol=1e-12, atol=0)


def test_a_working_set_needs_the_cache_of_the_platform():
    text = MACHINE + WORK + 'working_set = "1 MB"\n'
    cached = {"platform__node__cpu__cache_size": "16 MB", "platform__node__cpu__cache_bandwidth": "1.6 TB/s"}
    assert_allclose(
        float(evaluate(scenario(text, **cached).program).column("kernel_time")), 25e9 / 100e9, rtol=1e-12, atol=0
    )
    without = scenario(text).program
    assert_allclose(float(evaluate(without).column("kernel_time")), 4.0, rtol=1e-12, atol=0)
    assert any("the working_set of work has no effect" in note for note in kernel_notes(without))
    assert not any("no effect" in note for note in kernel_notes(scenario(text, **cached).program))


@pytest.mark.parametrize(
    ("bound", "profiled", "seconds"),
    [
        ("dram_bandwidth", 'profiled_bandwidth = "50 GB/s"', 8.0),
        ("peak_double_rate", 'profiled_rate = "125 Gflop/s"', 2.0),
        ("peak_single_rate", 'profiled_rate = "125 Gflop/s"', 1.0),
    ],
)
def test_a_measured_kernel_follows_the_rate_that_bounds_it(bound, profiled, seconds):
    head = WORK.partition("[application.phases")[0]
    phase = f'[application.phases.w]\nkind = "measured_kernel"\nkernel_time = "1 s"\nbound = "{bound}"\n{profiled}\n'
    found = evaluate(scenario(MACHINE + head + phase).program)
    assert_allclose(float(found.column("kernel_time")), seconds, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("per_node", "sockets"), [("1", 2), ("2", 2), ("32", 2)])
def test_energy_is_that_of_the_busy_sockets(per_node, sockets):
    overrides = {"application.ranks_per_node": per_node, "application.rank_count": per_node}
    seconds = time_of(overrides)
    joules = (2 * 50 + 100 + sockets * 150) * seconds
    assert_allclose(time_of(overrides, "iteration_energy"), joules, rtol=1e-12, atol=0)


def test_ranks_that_do_not_fit_the_memory_of_a_node_are_infeasible():
    full = evaluate(scenario(application__memory_size="2 GB").program)
    assert full.reasons() == ()
    over = evaluate(scenario(application__memory_size="2.1 GB").program)
    assert "does not fit the node (platform.node.host.memory_size)" in over.reasons()[0]


def test_only_ranks_that_run_need_memory():
    """Two ranks of 30 GB on a node of 64 GB with 32 cores: 32 ranks would need 960 GB."""
    assert evaluate(scenario(application__memory_size="30 GB", application__rank_count=2).program).reasons() == ()


def test_a_sweep_of_the_ranks_of_a_node_is_each_of_its_points():
    stated = scenario(application__ranks_per_node=32)
    axis = parse_option("application.ranks_per_node=1, 3, 32, 40", stated.program, 10)
    swept = run_whole(stated, grid_of([axis], 10))
    points = [time_of({"application.ranks_per_node": count}) for count in ("1", "3", "32", "40")]
    assert_allclose(np.ravel(swept.columns["kernel_time"]), points, rtol=1e-15, atol=0)


CACHE = 'numa_domain_count = 2\ncache_size = "20 MB"\ncache_bandwidth = "1.6 TB/s"\n'
CACHED = (
    MACHINE.replace("core_count", f"{CACHE}core_count")
    + WORK.replace("rank_count", "threads_per_rank = 3\nranks_per_node = 8\nrank_count")
    + 'working_set = "2 MB"\n'
)
REACHED = [
    path
    for path, parameter in scenario(CACHED).program.parameters.items()
    if path in scenario(CACHED).program.reached and not parameter.structural
]


@pytest.mark.parametrize("path", REACHED)
def test_a_sweep_is_each_of_its_points_alone(path):
    program = scenario(CACHED).program
    value = program.parameters[path].text(17)
    number, _, unit = value.partition(" ")
    points = [f"{float(number) * factor:.17g} {unit}".strip() for factor in (1, 2, 4)]
    if "fraction" in path or "efficiency" in path:
        points = ["0.25", "0.5", "0.75"]
    swept = run_whole(scenario(CACHED), grid_of([parse_option(f"{path}={', '.join(points)}", program, 10)], 10))
    alone = [scenario(CACHED, **{path.replace(".", "__"): point}) for point in points]
    for column in ("kernel_time", "iteration_energy"):
        single = [float(evaluate(point.program).column(column)) for point in alone]
        assert_allclose(np.ravel(np.broadcast_to(swept.columns[column], 3)), single, rtol=1e-15, atol=0)


def test_notes_tell_what_was_assumed():
    notes = list(kernel_notes(scenario().program))
    assert notes == [
        "a rank for each core of a node, as application.ranks_per_node is not stated",
        "kernels run on Processor: a rank has the rate and the memory bandwidth of its cores",
        "assumed of kernels on processors: operations at the double-precision peak, no limit by other instructions or "
        "shared memory, no limit by the L2 cache, no measured_factor, no launch_time, the highest roof alone, "
        "work that fills the cores",
    ]
    stated = list(kernel_notes(scenario(application__ranks_per_node=4).program))
    assert stated == notes[1:]


def test_ranks_that_do_not_fill_a_node_are_reported():
    few = scenario(application__rank_count=3)
    full = int(evaluate(few.program).values["placement.ranks_per_node"])
    assert list(kernel_notes(few.program))[1] == (
        f"3 ranks on the first cores of a node, which has room for {full}: "
        "with application.ranks_per_node = 3 they share all its cores"
    )
    spread = scenario(application__rank_count=3, application__ranks_per_node=3)
    times = [float(evaluate(item.program).column("kernel_time")) for item in (few, spread)]
    assert times[1] < times[0]


def test_a_machine_with_gpus_can_leave_them_idle():
    on_gpus = Scenario.open("minife", platform="perlmutter")
    assert list(kernel_notes(on_gpus.program)) == []
    on_cpus = Scenario.open("minife", platform="perlmutter", overrides={"application.runs_on": "cpu"})
    evaluation = evaluate(on_cpus.program)
    assert float(evaluation.values["placement.ranks_per_node"]) == 64
    # The GPUs draw their idle power, the socket that of a kernel too.
    idle, dynamic = (
        float(evaluation.values[f"platform.node.{name}"]) for name in ("gpu.idle_power", "cpu.dynamic_power")
    )
    watts = float(evaluation.column("mean_power")) / np.ceil(256 / 64)
    assert watts > 4 * idle + dynamic


def test_hpl_refuses_a_device():
    hpl = 'kind = "hpl"\nmatrix_size = 1024\nblock_size = 64\nprocess_rows = 1\nprocess_columns = 1\nruns_on = "cpu"\n'
    text = f'platform = "dahu"\n[application]\niteration_count = 1\n{hpl}'
    with pytest.raises(InvalidFileError, match=r"application\.runs_on: no effect on HPL"):
        _ = scenario(text).program


REUSE = {"application__phases__work__load_store_size": "100 GB", "platform__node__cpu__core_reuse_bandwidth": "25 GB/s"}


def test_loads_from_the_first_cache_take_time_of_their_own():
    one_core = {"application__ranks_per_node": "1", "application__threads_per_rank": "1"}
    found = float(evaluate(scenario(**one_core, **REUSE).program).column("kernel_time"))
    assert_allclose(found, 25 / 20 + (100 - 25) / 25, rtol=1e-12, atol=0)


def test_all_cores_saturate_the_memory_in_spite_of_loads_from_the_first_cache():
    assert_allclose(float(evaluate(scenario(**REUSE).program).column("kernel_time")), 4.7, rtol=0.1, atol=0)


def test_loads_from_the_first_cache_lower_the_bandwidth_of_the_last():
    cached = {"platform__node__cpu__cache_size": "16 MB", "platform__node__cpu__cache_bandwidth": "1.6 TB/s"}
    reuse = {"platform__node__cpu__cache_reuse_bandwidth": "4 TB/s", **REUSE}
    found = evaluate(scenario(MACHINE + WORK + 'working_set = "1 MB"\n', **cached, **reuse).program)
    assert_allclose(float(found.column("kernel_time")), 25 / 100 + 75 / 250, rtol=1e-12, atol=0)


def test_loads_without_the_bandwidth_of_the_platform_are_reported():
    stated = scenario(application__phases__work__load_store_size="100 GB").program
    assert_allclose(
        float(evaluate(stated).column("kernel_time")),
        float(evaluate(scenario().program).column("kernel_time")), rtol=1e-15, atol=0,
    )  # fmt: skip
    assert any("the load_store_size of work has no effect" in note for note in kernel_notes(stated))


@pytest.mark.parametrize(("ranks", "warned"), [(256, False), (257, True)])
def test_more_ranks_than_cores_of_a_node_are_warned_of(whatif_main, tmp_path, ranks, warned):
    (tmp_path / "s.toml").write_text(
        f'platform = "turin"\n[application]\nname = "S"\nrank_count = {ranks}\nranks_per_node = {ranks}\n'
        'iteration_count = 1\n[application.phases.wait]\nkind = "overhead"\noverhead_time = "1 us"\n'
        '[application.phases.work]\nkind = "kernel"\nmodel = "roofline"\ndominant_operation = "fp_64"\n'
        'metrics_per = "rank"\noperations = "1 Gflop"\ndram_size = "1 GB"\n'
    )
    code, _, err = whatif_main("run", "s.toml")
    assert code == 0, err
    assert ("warning: ranks take 257 cores of a node, which has 256: they share cores" in err) == warned
