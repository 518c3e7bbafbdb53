"""HPL with panels on the host of the accelerators: against plain Python, sums by hand, and limits."""

from __future__ import annotations

import csv
import io
import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.linpack.simulation import accelerated_kernel, solve_kernel
from whatif.linpack.simulation import simulator as simulation
from whatif.linpack.simulation.configuration import Broadcast, Configuration, RowSwap
from whatif.linpack.simulation.costs import KERNELS
from whatif.linpack.simulation.panel import PIVOT, panel_calls
from whatif.linpack.simulation.simulator import HostProcessors, HPLMachine, simulate

COPIES = np.array([[3e-6, 1e-9], [2e-6, 2e-9]])
NO_COPIES = np.zeros((2, 2))
INPUT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
0            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
6000         Ns
1            # of NBs
256          NBs
1            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
4            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
32           NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
2            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
0            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
1            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
0            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""
"""The input that rocHPL comes with, on one node and smaller."""
SCENARIO = """
platform = "{platform}"
[application]
kind = "hpl"
matrix_size = 2000
block_size = 100
process_rows = 2
process_columns = 2
ranks_per_node = 4
panel_on = "host"
"""


def kernels(scale=1.0, constant=0.0, spread=0.0):
    """Every kernel linear, no two alike."""
    table = np.zeros((len(KERNELS), 5))
    table[0], table[4] = [constant, 1e-11, 1e-10, 2e-10, 3e-10], np.inf
    for row in range(5, len(KERNELS)):
        table[row, :2] = constant, row * 1e-10
    table[:4] *= scale
    table[5:] *= scale
    table[1] = table[0] * spread
    table[5:, 2:4] = table[5:, :2] * spread
    return table


def machine(rank_count, host, *, ranks_per_node=2, message_scale=1.0, device_scale=1.0, spread=0.0):
    """Three protocols, and nodes whose ranks share an adapter."""
    row = np.array([0.0, 1e-6, 1e-10, 1e-7, 1e-11, 2e-7, 2e-11, 0.0]) * message_scale
    near = np.array([row, row, row])
    near[:, 0], near[:, 7] = [0.0, 2000.0, 8000.0], [0, 1, 2]
    far = near.copy()
    far[:, 1:3] *= 3
    nodes = np.arange(rank_count) // ranks_per_node
    table = kernels(device_scale, spread=spread)
    return HPLMachine(table, np.array([near, far]), nodes, np.ones(rank_count), 4e-10 * message_scale, host=host)


def product(m, n, k):
    return 1e-11 * m * n * k + 1e-10 * m * n + (2e-10 * m + 3e-10 * n) * k


SLOPES = {name: kernels()[row, 1] for row, name in enumerate(KERNELS) if name}


def panel_time(its, start):
    """Kernels of one panel on one process, times the scale of its kernels."""
    time = 0.0
    for call in panel_calls(its, min(its.block_size, its.matrix_size - start)):
        if call is not PIVOT:
            extent = call.fixed + call.each * (its.matrix_size - start - call.done)
            matrix = call.kernel == "dgemm"
            time += product(extent, call.columns, call.depth) if matrix else SLOPES[call.kernel] * extent
    return time


def panel_copies(its, start):
    """Both ways, L + n / BW, of all rows that are left."""
    size = 8.0 * (its.matrix_size - start) * min(its.block_size, its.matrix_size - start)
    return COPIES[:, 0].sum() + COPIES[:, 1].sum() * size


def update_time(its, start, columns):
    """One process applies a panel to so many columns."""
    width = min(its.block_size, its.matrix_size - start)
    rows = its.matrix_size - start - width
    others = SLOPES["dtrsm"] * width**2 + SLOPES["dlaswp00n"] * width
    return others * columns + product(rows, columns, width)


def solve_time(its):
    """The back substitution of one process."""
    starts = range(0, its.matrix_size, its.block_size)
    widths = [min(its.block_size, its.matrix_size - start) for start in starts]
    return sum(SLOPES["dtrsv"] * width + SLOPES["dgemv"] * start * width
               for start, width in zip(starts, widths, strict=True))  # fmt: skip


@pytest.mark.parametrize("depth", [0, 1])
def test_compiled_runs_are_those_of_plain_python(depth, monkeypatch):
    host = HostProcessors(kernels(0.7, 1e-7, 0.1), COPIES, 0.4)
    choices = itertools.product((Broadcast.RING, Broadcast.LONG_MODIFIED), RowSwap)
    runs = [Configuration(150, 16, 3, 2, broadcast, depth, swap, 30) for broadcast, swap in choices]
    runs += [Configuration(150, 16, 2, 5, depth=depth), Configuration(64, 16, 1, 1, depth=depth)]

    def outcomes():
        return [simulate(run, machine(run.rank_count, host, spread=0.1), seed=5, noisy=True, panels_seen=3)
                for run in runs]  # fmt: skip

    compiled, plain = outcomes(), (accelerated_kernel.accelerated_steps, solve_kernel.back_substitute)
    monkeypatch.setattr(simulation, "jitted_or_plain", lambda *_, **__: plain)
    for found, expected in zip(compiled, outcomes(), strict=True):
        assert_allclose(found.ends, expected.ends, rtol=1e-12, atol=0)
        assert_allclose(found.seen, expected.seen, rtol=1e-12, atol=0)
        assert_allclose(found.time, expected.time, rtol=1e-12, atol=0)
        for name, part in expected.components.items():
            assert_allclose(found.components[name], part, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("size", [96, 100])
def test_one_process_takes_in_each_step_the_longer_of_its_panel_and_its_update(scale, size):
    its = Configuration(size, 16, 1, 1)
    starts = list(range(0, size, 16))
    on_host = [panel_copies(its, start) + scale * panel_time(its, start) for start in starts]
    expected = on_host[0]
    for number, start in enumerate(starts[1:], start=1):
        width = min(16, size - start)
        first = update_time(its, starts[number - 1], width)
        rest = update_time(its, starts[number - 1], size - start - width + 1)
        expected += first + max(rest, on_host[number])
    expected += update_time(its, starts[-1], 1) + solve_time(its)
    found = simulate(its, machine(1, HostProcessors(kernels(scale), COPIES, 0.5))).time
    assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_without_look_ahead_one_process_takes_the_sum_of_all():
    its = Configuration(100, 16, 1, 1, depth=0)
    expected = solve_time(its)
    for start in range(0, 100, 16):
        behind = 100 - min(start + 16, 100)
        expected += 2 * panel_time(its, start) + panel_copies(its, start) + update_time(its, start, behind + 1)
    found = simulate(its, machine(1, HostProcessors(kernels(2.0), COPIES, 0.5))).time
    assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_a_host_without_cost_leaves_the_time_of_the_device():
    its = Configuration(100, 16, 1, 1)
    free = HostProcessors(kernels(0.0), NO_COPIES, 0.5)
    beside, alone = machine(1, free), machine(1, None)
    for each in (beside, alone):
        each.kernels[0, 2:] = 0.0  # So that two calls of dgemm cost what one does.
    on_device = simulate(its, alone)
    panels = float(on_device.components["recursive_factorisation"].sum())
    assert_allclose(simulate(its, beside).time, on_device.time - panels, rtol=1e-12, atol=0)


def test_panels_follow_one_another_where_all_else_costs_nothing():
    its = Configuration(150, 16, 1, 4)
    expected = sum(panel_time(its, start) + panel_copies(its, start) for start in range(0, 150, 16))
    found = simulate(its, machine(4, HostProcessors(kernels(), COPIES, 0.5), message_scale=0.0, device_scale=0.0)).time
    assert_allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("rows", "columns"), [(1, 4), (2, 2), (4, 1)])
def test_processes_of_a_column_divide_the_cores_of_their_node_and_those_of_a_row_lend_theirs(rows, columns):
    def time(ranks_per_node):
        its, host = Configuration(150, 16, rows, columns), HostProcessors(kernels(), NO_COPIES, 0.5)
        free = machine(4, host, ranks_per_node=ranks_per_node, message_scale=0.0, device_scale=0.0)
        return simulate(its, free).time

    assert_allclose(time(4), rows * time(1), rtol=1e-12, atol=0)


def test_the_swap_of_one_section_hides_behind_the_update_of_the_other():
    its = Configuration(1600, 16, 2, 1, swap=RowSwap.SPREAD_ROLL)

    def total_and_parts(split_fraction):
        host = HostProcessors(kernels(0.0), NO_COPIES, split_fraction)
        found = simulate(its, machine(2, host, message_scale=4.0))
        return found.time, *(float(found.components[name].max()) for name in
                             ("update", "row_swap", "recursive_factorisation", "back_substitution"))  # fmt: skip

    time, update, swap, factorisation, solve = total_and_parts(0.0)
    assert_allclose(time, update + factorisation + solve, rtol=0.002, atol=0)  # Nothing is hidden.
    time, update, swap, factorisation, solve = total_and_parts(1.0)
    assert update + solve < time < update + 0.5 * factorisation + solve  # Panels are, swaps are not.
    time, update, swap, factorisation, solve = total_and_parts(0.5)
    assert swap > 0.3 * (update - swap)
    assert time < update - 0.25 * swap + solve


def test_only_an_update_ahead_hides_the_panel():
    """Where all rows are swapped behind the broadcast, the device has nothing to do until then."""
    its = Configuration(1600, 16, 2, 2)

    def extra(split_fraction):
        hosts = (
            HostProcessors(kernels(0.3), COPIES / 10, split_fraction),
            HostProcessors(kernels(0.0), NO_COPIES, split_fraction),
        )
        time, free = (simulate(its, machine(4, host, message_scale=0.01)).time for host in hosts)
        return time - free

    assert extra(0.0) > 20 * extra(1.0)


def test_hpl_looks_no_further_ahead_than_a_panel():
    with pytest.raises(UsageError, match="depth is 2; on GPUs"):
        simulate(Configuration(100, 16, 2, 2, depth=2), machine(4, HostProcessors(kernels(), COPIES, 0.5)))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["hpl", "HPL.dat"], "HPL.dat:25:1: DEPTH: on GPUs HPL looks ahead one panel, or none"),
        (["tune", "hpl", "--ranks", "8", "--matrix-sizes", "6000", "--depths", "0, 2"], "one panel, or none"),
    ],
)
def test_an_infeasible_depth_is_refused_before_a_simulation(whatif_main, tmp_path, command, message):
    (tmp_path / "HPL.dat").write_text(INPUT.replace("1            DEPTHs", "2            DEPTHs"))
    code, out, error = whatif_main(*command, "--platform", "frontier", "--panel-on", "host")
    assert (code > 0, out) == (True, "")
    assert message in error


def plan_and_values(tmp_path, platform, **sets):
    path = tmp_path / "hpl.toml"
    path.write_text(SCENARIO.format(platform=platform))
    scenario = Scenario.open(path, overrides={name.replace("__", "."): value for name, value in sets.items()})
    values = evaluate(scenario.program).values
    plan = scenario.program.terms["hpl.times"].options["plan"]
    return plan, {parameter: float(values[parameter]) for parameter in plan.parameters}


def test_host_and_link_are_charged_by_their_data_sheets(tmp_path):
    """Polaris: one socket, and PCIe 4.0 x16, whose packets carry 256 B to the host, and 64 B to the device."""
    plan, values = plan_and_values(tmp_path, "polaris")
    host = plan.machine(values, 4, 4, 1).host
    rate, bandwidth = values["platform.node.cpu.peak_double_rate"], values["platform.node.host.memory_bandwidth"]
    dgemm, dtrsm, dger = (host.kernels[KERNELS.index(name), 1] for name in ("dgemm", "dtrsm", "dger"))
    assert_allclose([dgemm, dtrsm, dger], [2 / rate, 1 / rate, 16 / bandwidth], rtol=1e-12, atol=0)
    link = 16 * 16e9 / 8 * 128 / 130
    assert_allclose(host.copies[:, 1], [(1 + 24 / 256) / link, (1 + 20 / 64) / link], rtol=1e-6, atol=0)
    latencies = [values[f"platform.node.host_link.pinned_{way}_latency"] for way in ("write", "read")]
    assert_allclose(host.copies[:, 0], latencies, rtol=1e-12, atol=0)
    assert host.split_fraction == 0.3
    # What stays in the caches of both sockets.
    cached = {"platform__node__cpu__cache_bandwidth": "1 TB/s", "platform__node__socket_count": "2"}
    plan, values = plan_and_values(tmp_path, "polaris", **cached)
    found = plan.machine(values, 4, 4, 2).host.kernels[KERNELS.index("dger"), 1]
    assert_allclose(found, 16 / 2e12, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("platform", "message"),
    [("theta", "platform.node.gpu_count"), ("summit", "platform.node.cpu.peak_double_rate")],
)
def test_a_platform_without_costs_of_panels_on_the_host_is_refused(tmp_path, platform, message):
    with pytest.raises(InvalidFileError, match=rf"panel_on = \"host\"` needs .*`{re.escape(message)}`"):
        plan_and_values(tmp_path, platform)


@pytest.mark.parametrize(
    ("place", "message"),
    [("device", "factored on the GPUs, without copies"), ("host", "copied to the host and factored")],
)
def test_the_command_prints_and_saves_where_panels_are_factored(whatif_main, tmp_path, place, message):
    (tmp_path / "HPL.dat").write_text(INPUT)
    ask = ("hpl", "HPL.dat", "--platform", "frontier", "--panel-on", place)
    code, out, error = whatif_main(*ask, "--format", "csv")
    assert (code, message in error) == (0, True)
    (row,) = csv.DictReader(io.StringIO(out))
    assert whatif_main(*ask, "--save", "run.toml")[0] == 0
    assert f'panel_on = "{place}"' in (tmp_path / "run.toml").read_text()
    time = float(evaluate(Scenario.open(tmp_path / "run.toml").program).values["total.time"])
    assert_allclose(float(row["time [s]"]), time, rtol=1e-12, atol=0)


def test_parameters_of_the_host_and_its_link_can_be_swept(tmp_path):
    def time(**sets):
        path = tmp_path / "hpl.toml"
        path.write_text(SCENARIO.format(platform="frontier"))
        scenario = Scenario.open(path, overrides={name.replace("__", "."): value for name, value in sets.items()})
        return float(evaluate(scenario.program).values["total.time"])

    base = time()
    assert time(platform__node__host_link__lane_bandwidth="0.45 GB/s") > 1.02 * base
    assert time(platform__node__cpu__peak_double_rate="200 Gflop/s") > 1.02 * base
    assert time(application__split_fraction="0") > time(application__split_fraction="1")
    assert np.isnan(time(application__look_ahead_depth="2"))
