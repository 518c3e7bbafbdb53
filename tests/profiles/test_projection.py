"""Projection of profiles to other machines: AHEAD's data, its metric, the time line, and the scenario of a profile."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.paths import DATA, SHARED
from tests.profiles_at_hand import V100, copy, kernel, profile, sweep
from whatif.axes import Grid
from whatif.cli import import_profile as profile_verb
from whatif.cli import project as project_verb
from whatif.core.grid_run import run_whole
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.profiles.copy_times import RATES
from whatif.profiles.formats import read_profile
from whatif.profiles.operation_replay import hidden_time, overlapped_times, profile_timeline, total_time
from whatif.profiles.projection import project, weighted_error
from whatif.profiles.scenario_text import scenario_toml
from whatif.schema.load import load_part, load_platform

MACHINES = {name: load_platform(name.lower())[0] for name in ("Titan", "Summit", "Perlmutter")}
TITAN, SUMMIT, PERLMUTTER = MACHINES.values()
H200_COPIES = DATA / "profiles" / "kineto" / "torch_copies_h200.json.gz"
TITAN_COPIES = DATA / "importers" / "transfer" / "titan_copies.nvvp"
LAMMPS = SHARED / "profiles" / "ahead/Summit_Data/Applications_Traces/lammps/peak-51127-lammps-h41n08-54871.nvvp"
READ, WRITE, INSIDE, PEER = "host_to_device", "device_to_host", "device_to_device", "peer_to_peer"
MIB = 2.0**20


def lammps():
    return read_profile(LAMMPS)


def last(table):
    *_, row = table.rows()
    return dict(zip(table.columns, row, strict=True))


@pytest.mark.parametrize(
    ("source", "target", "direction", "pinned", "pageable"),
    [
        ("Titan", "Summit", "HtoD", 0.4, 9.2),
        ("Titan", "Summit", "DtoH", 0.5, 13.8),
        ("Summit", "Titan", "HtoD", 1.6, 2.7),
        ("Summit", "Titan", "DtoH", 0.3, 9.7),
    ],
)
def test_the_released_sweeps_are_within_the_bars_both_ways(source, target, direction, pinned, pageable):
    """Weighted mean errors in per cent of data-sheet values and one latency of the other machine; bars: 2 and 15 %."""
    for memory, stated, bar in (("pinned", pinned, 2.0), ("pageable", pageable, 15.0)):
        measured = sweep(target, direction, memory)
        found = project(measured, MACHINES[source], MACHINES[target], measured)
        error = 100 * found.error().total
        assert error == pytest.approx(stated, abs=0.06)
        assert error < bar
        assert error < 100 * found.error("peak").total < 100 * found.error("envelope").total


@pytest.mark.parametrize(("source", "target", "stated"), [("Titan", "Summit", 2.5), ("Summit", "Titan", 0.4)])
def test_copies_of_a_gpu_to_itself_follow_the_sustained_bandwidth(source, target, stated):
    measured = sweep(target, "DtoD", "device")
    found = project(measured, MACHINES[source], MACHINES[target], measured)
    assert 100 * found.error().total == pytest.approx(stated, abs=0.05)


def test_staging_on_a_machine_that_no_figure_was_chosen_on():
    """Perlmutter: pageable copies of 250 MiB (hpcgroup/pipit @46d41f2a, saxpy-mpi-cuda, MIT), times in ns."""
    times = {READ: (18830458, 18112420, 19112439, 18154915), WRITE: (19833582, 19736303, 19758896, 19688208)}
    rows = [copy(way, "pageable", 262144000.0, time * 1e-9) for way, several in times.items() for time in several]
    measured = profile(rows)
    table = project(measured, SUMMIT, PERLMUTTER, measured).summary()
    errors = dict(zip(table.columns["direction"].values, table.columns["projected_error"].values, strict=True))
    assert 100 * errors[READ] == pytest.approx(12, abs=1)
    assert 100 * errors[WRITE] == pytest.approx(17, abs=1)


def test_single_copies_of_a_recorded_profile_of_titan():
    measured = read_profile(TITAN_COPIES)
    found = project(measured, SUMMIT, TITAN, measured)
    # 4 % off: the steady copies lack the first one of each size, which touches new pages and is in the means.
    assert 0.02 < found.error().total < 0.05
    assert found.warnings == ()


@pytest.mark.shared_data
def test_lammps_with_titans_latencies_on_summit():
    measured = lammps()
    found = project(measured, TITAN, SUMMIT, measured)
    # The paper: 19 % on average over five applications.
    assert 100 * found.error().total == pytest.approx(0.25, abs=0.01)
    assert 100 * found.error("peak").total == pytest.approx(6.1, abs=0.1)
    assert found.kernel_range == (1.0, 1.0)
    whole = last(found.summary())
    assert (whole["count"], round(whole["actual_time"], 3)) == (2089, 2.228)
    by_size = found.by_size()
    assert by_size.columns["count"].values.sum() == 2089
    assert_allclose(by_size.columns["projected_time"].values.sum(), whole["projected_time"], rtol=1e-12, atol=0)


def test_each_kind_of_operation_by_hand():
    size = 64 * MIB
    rows = [
        copy(READ, "pinned", size, 1.0),
        copy(INSIDE, "device", size, 1.0),
        copy(PEER, "device", size, 1.0),
        {"operation": "fill", "memory": "device", "message_size": size, "time": 1.0},
        copy(READ, "pageable", 65536.0, 1.0),
        copy(WRITE, "managed", 0.0, 1.0),
    ]
    found = project(profile(rows), TITAN, SUMMIT)
    read, write = TITAN.node.host_link.pinned_read_latency, TITAN.node.host_link.pinned_write_latency
    inside, dram, link = TITAN.node.gpu.copy_latency, SUMMIT.node.gpu.dram_bandwidth, 50e9
    flits, peak = size * 17 / 16, 900e9
    assert peak > dram
    expected = {
        "projected": [
            read + (flits + 16) / link,
            inside + 2 * size / dram,
            write + flits / link,
            inside + size / dram,
            TITAN.node.host_link.pageable_read_latency + 65536 / 10.7e9,
            write,
        ],
        "peak": [read + size / link, inside + size / peak, write + size / link, inside + size / peak,
                 TITAN.node.host_link.pageable_read_latency + 65536 / link, write],
        "envelope": [size / link, size / peak, size / link, size / peak, 65536 / link, 0.0],
    }  # fmt: skip
    for approach, times in expected.items():
        assert_allclose(found.operations.columns[f"{approach}_time"].values, times, rtol=1e-12, atol=0)
    assert found.warnings == ("1 copies or fills of managed memory or memory of unknown kind: taken as pinned",)


def test_what_others_hide_is_the_sum_of_times_less_their_union():
    """A kernel from 0 to 10 ms, a copy from 2 to 7 and one from 6 to 12 ms: 21 ms in 12."""
    start, time = np.array([0.0, 0.002, 0.006]), np.array([0.010, 0.005, 0.006])
    assert_allclose(hidden_time(start, time), 0.009, rtol=1e-12, atol=0)
    assert hidden_time(np.array([0.0, 0.01]), np.array([0.01, 0.02])) == 0
    assert hidden_time(np.array([]), np.array([])) == 0


@pytest.mark.parametrize("source", ["titan", "summit"])
def test_a_device_that_is_not_that_of_the_platform_has_the_rates_of_its_data_sheet(source):
    """An H200 on Summit: kernels take longer, whatever the machine of the latencies."""
    found = project(read_profile(H200_COPIES), Platform.open(source).spec, SUMMIT)
    h200, v100 = (load_part(name) for name in ("h200-sxm", "v100-sxm2-16gb"))
    ratios = [getattr(h200, name) / getattr(v100, name) for name in RATES]
    assert_allclose(found.kernel_range, (min(ratios), max(ratios)), rtol=1e-12, atol=0)
    assert min(ratios) > 5


def test_the_metric_of_the_paper_by_hand():
    error = weighted_error(np.array([1.0, 3.0, np.nan]), np.array([2.0, 2.5, 1.0]))
    # Weighted errors 1/4 and 0.5/4: their sum is the usual weighted mean error, their average the paper's words.
    assert_allclose((error.total, error.mean, error.deviation), (0.375, 0.1875, 0.0625), rtol=1e-15, atol=0)
    assert np.isnan(weighted_error(np.array([]), np.array([])).total)


def test_the_kth_copy_of_a_size_is_compared_with_the_kth_of_the_targets_profile():
    before = profile([copy(READ, "pinned", size, 1.0, start) for start, size in enumerate((8.0, 16.0, 8.0, 8.0))])
    after = profile([copy(READ, "pinned", 8.0, 2e-6), copy(READ, "pinned", 8.0, 3e-6, 1.0), kernel(9.0, 2.0)])
    found = project(before, TITAN, SUMMIT, after)
    assert_array_equal(found.operations.columns["actual_time"].values, [2e-6, np.nan, 3e-6, np.nan])
    assert "2 copies or fills have no counterpart in the target's profile" in found.warnings


def test_kernels_get_the_range_of_both_rooflines():
    rows = [kernel(1.0, 0.0), copy(READ, "pinned", 8.0, 1e-6, 1.5)]
    v100, k20x = SUMMIT.node.gpu, TITAN.node.gpu
    ratios = [getattr(v100, name) / getattr(k20x, name) for name in
              ("dram_bandwidth", "peak_single_rate", "peak_double_rate")]  # fmt: skip
    found = project(profile(rows, [V100]), SUMMIT, TITAN)
    assert_allclose(found.kernel_range, (min(ratios), max(ratios)), rtol=1e-12, atol=0)
    assert project(profile(rows, [V100]), SUMMIT, SUMMIT).kernel_range == (1.0, 1.0)
    # What is not of the source's device counts with what the profile tells of its own.
    foreign = project(profile(rows, [V100]), TITAN, TITAN)
    assert foreign.kernel_range[0] <= 898e9 / k20x.dram_bandwidth <= foreign.kernel_range[1]
    assert foreign.warnings[0].startswith("the profile is of Tesla V100-SXM2-16GB, not of Titan's Tesla K20X")


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        ([kernel(1.0, 0.0)], {}, "no copies and no fills"),
        ([copy(READ, "pageable", 8.0, 1.0)], {"host": None}, "Summit does not state `node.host.memory_bandwidth`"),
        ([copy(READ, "pinned", 8.0, 1.0)], {"host_link": None}, "Summit does not state `node.host_link`"),
        ([copy(INSIDE, "device", 8.0, 1.0)], {"gpu": None}, "Summit does not state `node.gpu.dram_bandwidth`"),
    ],
)
def test_missing_parameters_of_a_platform_are_errors(rows, changes, message):
    host = SUMMIT.node.host.model_copy(update={"memory_bandwidth": None})
    node = SUMMIT.node.model_copy(update={key: host if key == "host" else None for key in changes})
    with pytest.raises(UsageError, match=message):
        project(profile(rows), TITAN, SUMMIT.model_copy(update={"node": node}))


def test_copies_without_a_size_keep_their_time_and_peers_without_a_link_take_the_hosts():
    rows = [copy(READ, "unknown", float("nan"), 0.5), copy(PEER, "device", 6e9, 3.0, 1.0)]
    found = project(profile(rows), SUMMIT, TITAN)
    assert_allclose(found.times(1.0)[0], 0.5, rtol=0, atol=0)
    assert found.operations.columns["projected_time"].values[1] > 6e9 / 8e9
    assert [line.split(":")[0] for line in found.warnings] == [
        "1 copies or fills have no size",
        "1 copies or fills of managed memory or memory of unknown kind",
        "Titan states no link between devices",
    ]


def _operations(draw_rows):
    rows = sorted(draw_rows, key=lambda row: row[0])
    kinds = {0: ("kernel", ""), 1: ("copy", READ), 2: ("copy", WRITE)}
    return profile([
        {"operation": kinds[kind][0], "direction": kinds[kind][1], "start_time": start * 1e-9, "time": time * 1e-9,
         "stream": float(stream), "message_size": 8.0}
        for start, time, stream, kind in rows
    ]).operations  # fmt: skip


ROWS = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 500), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40
)


@given(ROWS)
def test_a_time_line_replayed_with_its_own_times_is_itself_to_the_last_bit(rows):
    line = profile_timeline(_operations(rows))
    assert_array_equal(line.replay(line.time), line.start_time)


@given(ROWS, st.randoms(use_true_random=False))
def test_nothing_starts_earlier_where_operations_take_longer(rows, random):
    line = profile_timeline(_operations(rows))
    longer = line.time + np.array([random.choice([0.0, 1e-7, 1e-6]) for _ in line.time])
    assert (line.replay(longer) >= line.start_time * (1 - 1e-12)).all()


def test_an_overlap_is_kept_and_projected():
    """A kernel of 10 s in one stream; beside it a copy of 4 s that starts 1 s later; then a kernel that waits for both
    streams' work, 0.5 s after the first kernel ended."""
    table = profile([
        copy(WRITE, "pinned", 8.0, 1.0, 0.0, stream=1.0),
        kernel(10.0, 1.0, stream=1.0),
        copy(READ, "pinned", 8.0, 4.0, 2.0, stream=2.0),
        kernel(3.0, 11.5, stream=1.0),
    ]).operations  # fmt: skip
    line = profile_timeline(table)
    assert_array_equal(line.stream_before, [-1, 0, -1, 1])
    assert_array_equal(line.host_before, [-1, 0, 0, 1])
    assert overlapped_times(line.kind, line.start_time, line.time) == {("kernel", READ): 4.0}
    half = np.array([1.0, 5.0, 2.0, 1.5])
    start = line.replay(half)
    assert_array_equal(start, [0.0, 1.0, 2.0, 6.5])
    assert (total_time(start, half), overlapped_times(line.kind, start, half)) == (8.0, {("kernel", READ): 2.0})


def test_copies_of_one_direction_wait_for_the_engine():
    table = profile([copy(READ, "pinned", 8.0, 1.0, start, stream=start) for start in (0.0, 1.0, 2.0)]).operations
    line = profile_timeline(table)
    assert_array_equal(line.replay(np.array([3.0, 1.0, 1.0])), [0.0, 3.0, 4.0])
    for wrong in ([1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(UsageError, match="a time line of 3 operations"):
            line.replay(np.array(wrong))


def _scenario(text, tmp_path, platform=None):
    file = tmp_path / "profile.toml"
    file.write_text(text, encoding="utf-8")
    return run_whole(Scenario.open(str(file), platform=platform), Grid())


def _columns(result, name):
    return float(np.asarray(result.columns[name]))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("void at::native::(anonymous namespace)::sum_kernel<float>(float*)", "sum_kernel"),
        ("_Z7stencilPdS_i", "stencil"),
        ("void kokkos::cuda_parallel_launch<lmp::TagPairForce>(double*)", "PairForce"),
    ],
)
def test_phases_of_a_profile_have_the_names_that_kernels_have_elsewhere(name, key):
    text = scenario_toml(profile([kernel(0.0, 1.0, name)], [V100]), "summit", "By hand", SUMMIT)
    assert f"[application.phases.kernel_1_{key}]" in text


def test_the_scenario_of_a_profile_takes_its_copies_kernels_gaps_and_overlaps(tmp_path):
    rows = [
        copy(READ, "pageable", 3 * MIB, 1e-3, 0.0),
        kernel(2.0, 1.0, "void ns::dot<double>(int)"),
        copy(WRITE, "pinned", 47e9, 1.0, 2.0, stream=2.0),
        {"operation": "fill", "memory": "device", "message_size": 8.0, "time": 1e-3, "start_time": 3.5},
    ]
    recorded = profile(rows, [V100], tool="hand")
    text = scenario_toml(recorded, "summit", "By hand", SUMMIT)
    assert "[application.phases.kernel_1_dot]" in text
    result = _scenario(text, tmp_path)
    projected = np.nansum(project(recorded, SUMMIT, SUMMIT).operations.columns["projected_time"].values[:3])
    assert_allclose(_columns(result, "transfer_time"), projected, rtol=1e-12, atol=0)
    assert_allclose(_columns(result, "kernel_time"), 2.001, rtol=1e-12, atol=0)
    # 3.501 s in all: 2 s kernel, two copies, the fill; 1 s of the copy is hidden, 1.499 s belong to the host.
    assert_allclose(_columns(result, "overhead_time"), 3.501 - (2.0 + 1.0 + 1e-3 + 1e-3 - 1.0), rtol=1e-9, atol=0)
    # The copy runs beside the kernel from its start to its end, however long it takes.
    parts = [_columns(result, f"{name}_time") for name in ("kernel", "transfer", "overhead", "total")]
    write = project(recorded, SUMMIT, SUMMIT).operations.columns["projected_time"].values[2]
    assert_allclose(sum(parts[:3]) - parts[3], write, rtol=1e-9, atol=0)


def test_many_sizes_become_octaves_without_losing_bytes_or_copies(tmp_path):
    generator = np.random.default_rng(7)
    sizes = generator.integers(1, 2**20, 300).astype(float)
    recorded = profile([copy(READ, "pinned", size, 1e-6, 1e-3 * row) for row, size in enumerate(sizes)])
    text = scenario_toml(recorded, "summit", "Many")
    pairs = [line.split(" = ")[1].strip('"') for line in text.splitlines() if line.startswith("transfer_")]
    mean, count = np.array([float(value.removesuffix(" B")) for value in pairs]).reshape(-1, 2).T
    assert len(count) <= 20
    assert count.sum() == 300
    assert_allclose(mean @ count, sizes.sum(), rtol=1e-12, atol=0)
    projected = project(recorded, SUMMIT, SUMMIT).operations.columns["projected_time"].values.sum()
    assert_allclose(_columns(_scenario(text, tmp_path), "transfer_time"), projected, rtol=2e-3, atol=0)


def test_a_real_profile_becomes_a_scenario_that_lasts_as_long_on_its_machine(tmp_path):
    recorded = read_profile(DATA / "profiles" / "ahead" / "lammps_summit.nvvp")
    result = _scenario(scenario_toml(recorded, "summit", "LAMMPS", SUMMIT), tmp_path)
    columns = recorded.operations.columns
    measured = total_time(columns["start_time"].values, columns["time"].values)
    assert_allclose(_columns(result, "total_time"), measured, rtol=1e-3, atol=0)
    in_kernels = columns["time"].values[columns["operation"].values == "kernel"].sum()
    assert_allclose(_columns(result, "kernel_time"), in_kernels, rtol=1e-3, atol=0)


def _output_of(command, capsys, *arguments):
    capsys.readouterr()
    command.main([*map(str, arguments)], standalone_mode=False)
    return capsys.readouterr()


def test_project_prints_three_columns_and_narrates(capsys):
    machines = (TITAN_COPIES, "--from", "summit", "--to", "titan")
    out, err = _output_of(project_verb.command, capsys, *machines, "--target-profile", TITAN_COPIES, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["operation"] for row in rows] == ["copy", "copy", "all"]
    assert {"projected_time [s]", "peak_time [s]", "envelope_time [s]", "projected_error"} <= rows[0].keys()
    assert "latencies of Summit, data sheet of Titan" in err
    assert "weighted mean error of all copies and fills: 3." in err
    out, _ = _output_of(project_verb.command, capsys, *machines, "--operations")
    assert len(out.splitlines()) == 1 + 87
    out, _ = _output_of(project_verb.command, capsys, *machines, "--sizes")
    assert out.splitlines()[1].split()[:4] == ["device_to_host", "pageable", "<", "10"]


def test_import_profile_prints_tables_or_a_scenario_that_loads(capsys, tmp_path):
    out, _ = _output_of(profile_verb.command, capsys, TITAN_COPIES)
    assert [line for line in out.splitlines() if line in {"totals", "classes", "sizes", "streams", "kernels"}] == [
        "totals", "classes", "sizes", "streams",
    ]  # fmt: skip
    file = tmp_path / "copies.toml"
    _output_of(profile_verb.command, capsys, TITAN_COPIES, "-o", file, "--platform", "titan")
    assert _columns(run_whole(Scenario.open(str(file)), Grid()), "transfer_time") > 0.1
    with pytest.raises(UsageError, match="name the platform by --platform"):
        profile_verb.command.main([str(TITAN_COPIES), "--format", "toml"], standalone_mode=False)
    with pytest.raises(UsageError, match="--table kernels: the profile has no rows for it"):
        profile_verb.command.main([str(TITAN_COPIES), "--table", "kernels"], standalone_mode=False)
