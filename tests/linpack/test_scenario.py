"""HPL as the application of a scenario: its parameters, the machine they make, what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.linpack.hpl_terms import outcome_at
from whatif.linpack.machine import CHOICES, plan_of
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.costs import AT_ONCE, KERNELS, RENDEZVOUS, WHEN_RECEIVED, PieceColumn
from whatif.linpack.simulation.simulator import HPLMachine, simulate

# An ideal machine: one switch, kernels with a linear cost, as the emulated runs of validation/hpl_emulator.csv.
PLATFORM = """
name = "Ideal"
node_count = 64
[node]
socket_count = 1
[node.host]
memory_size = "64 GiB"
[network.inter_node]
short_limit = "0 B"
eager_limit = "0 B"
pieces_early_limit = "0 B"
pieces_eager_limit = "65535 B"
[network.inter_node.pieces.all]
smallest_size = "0 B"
latency = "2 us"
bandwidth = "12.5 GB/s"
[kernels.dgemm]
mnk = "0.01029 ns"
[kernels.dtrsm]
size = "0.01029 ns"
"""
APPLICATION = """
platform = "ideal"
[application]
kind = "hpl"
matrix_size = 3000
block_size = 128
process_rows = 2
process_columns = 3
ranks_per_node = 1
swap = "binary_exchange"
panel_factorisation = "crout"
recursive_factorisation = "right"
recursion_minimum = 2
"""


@pytest.fixture
def file(tmp_path):
    def write(application=APPLICATION, platform=PLATFORM):
        (tmp_path / "ideal.toml").write_text(platform)
        path = tmp_path / "hpl.toml"
        path.write_text(application)
        return path

    return write


def plan_and_values(path, **sets):
    scenario = Scenario.open(path, overrides=sets)
    values = evaluate(scenario.program).values
    plan = scenario.program.terms["hpl.times"].options["plan"]
    return plan, {parameter: float(values[parameter]) for parameter in plan.parameters}


def test_a_scenario_takes_the_time_of_the_run_it_describes(file):
    result = evaluate(Scenario.open(file()).program)
    kernels = np.zeros((len(KERNELS), 5))
    kernels[4] = np.inf
    kernels[0, 1] = kernels[KERNELS.index("dtrsm"), 1] = 1.029e-11
    rows = [[0, 2e-6, 8e-11, 0, 0, 0, 0, WHEN_RECEIVED], [65536, 2e-6, 8e-11, 0, 0, 0, 0, RENDEZVOUS]]
    machine = HPLMachine(kernels, np.array([rows, rows]), np.arange(6), np.ones(6))
    swap, crout, right = RowSwap.BINARY_EXCHANGE, Looking.CROUT, Looking.RIGHT
    run = Configuration(3000, 128, 2, 3, Broadcast.RING_MODIFIED, 1, swap, 64, crout, 2, 2, right)
    assert_allclose(result.values["total.time"], simulate(run, machine).time, rtol=1e-12, atol=0)
    parts = [result.values[name] for name in ("hpl.update", "hpl.rest")]
    assert_allclose(sum(parts), result.values["total.time"], rtol=1e-12, atol=0)


def test_every_number_of_hpl_dat_sweeps(file):
    moved = {
        "matrix_size": "2000, 4000", "block_size": "64, 192", "process_rows": "1, 3", "process_columns": "1, 4",
        "look_ahead_depth": "0, 1", "recursion_minimum": "1, 64", "recursion_divisions": "2, 5",
    }  # fmt: skip
    scenario = Scenario.open(file())
    for name, values in moved.items():
        times = [evaluate(Scenario.open(file(), overrides={f"application.{name}": value}).program).values["total.time"]
                 for value in values.split(", ")]  # fmt: skip
        assert times[0] != times[1], name
    assert set(scenario.program.terms["hpl.times"].options["plan"].parameters) >= {
        f"application.{name}" for name in moved
    }


def test_a_faster_network_is_never_slower(file):
    def time(**sets):
        pieces = "platform.network.inter_node.pieces.all"
        scenario = Scenario.open(file(), overrides={f"{pieces}.{key}": value for key, value in sets.items()})
        return float(evaluate(scenario.program).values["total.time"])

    assert time(latency="0 s", bandwidth="1 TB/s") < time() < time(latency="20 us") < time(latency="200 us")


def test_the_ranks_follow_from_the_grid_of_processes(file):
    values = evaluate(Scenario.open(file()).program).values
    assert values["application.rank_count"] == 6


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("application.rank_count", "7", "P x Q = 6 processes"),
        ("application.process_rows", "65", "more nodes than the platform has"),
        ("application.matrix_size", "400000", "does not fit the memory"),
    ],
)
def test_an_infeasible_point_has_a_reason(file, path, value, message):
    evaluation = evaluate(Scenario.open(file(), overrides={path: value}).program)
    assert np.isnan(evaluation.masked("total.time")).all()
    assert message in " ".join(evaluation.reasons())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("kind = 'hpk'", "did you mean `hpl`?"),
        ("kind = 'hpl'\nblock_sise = 3", "did you mean `block_size`?"),
        ("kind = 'hpl'\nbroadcast = 'rings'", "is not one of ring, ring_modified"),
        ("kind = 'hpl'\n[application.phases.x]\nkind = 'overhead'\noverhead_time = '1 s'", "at most 0"),
    ],
)
def test_a_typo_is_refused_with_its_line(file, wrong, message):
    with pytest.raises(InvalidFileError, match=r"hpl\.toml:[0-9]+") as error:
        _ = Scenario.open(file(APPLICATION.replace('kind = "hpl"', "") + "\n" + wrong)).program
    assert message in str(error.value)


def test_a_platform_without_kernels_is_charged_by_its_data_sheet(file):
    platform = PLATFORM[: PLATFORM.index("[kernels.dgemm]")].replace("socket_count = 1", "socket_count = 2")
    platform += '[node.cpu]\nname = "x"\ncore_count = 8\npeak_double_rate = "100 Gflop/s"\n'
    plan, values = plan_and_values(file(platform=platform))
    machine = plan.machine(values, 6, 1, 2)
    assert_allclose(machine.kernels[0, 1], 2 / 200e9, rtol=1e-12, atol=0)
    assert_allclose(plan.machine(values, 6, 4, 2).kernels[0, 1], 2 / 50e9, rtol=1e-12, atol=0)


def test_a_platform_without_processors_is_refused(file):
    platform = PLATFORM[: PLATFORM.index("[kernels.dgemm]")]
    with pytest.raises(InvalidFileError, match=r"neither `\[kernels\.dgemm\]` nor a data sheet"):
        _ = Scenario.open(file(platform=platform)).program


def test_pieces_are_cut_where_the_protocol_changes(file):
    more = '[network.inter_node.pieces.long]\nsmallest_size = "8 KiB"\nlatency = "5 us"\nbandwidth = "10 GB/s"\n'
    plan, values = plan_and_values(file(platform=PLATFORM.replace("[kernels.dgemm]", more + "[kernels.dgemm]")))
    pieces = plan.machine(values, 6, 1, 1).pieces[1]
    finite = pieces[np.isfinite(pieces[:, 0])]
    assert finite[:, PieceColumn.SMALLEST_SIZE].tolist() == [0, 1, 8192, 65536]
    assert finite[:, PieceColumn.PROTOCOL].tolist() == [AT_ONCE, WHEN_RECEIVED, WHEN_RECEIVED, RENDEZVOUS]
    assert_allclose(finite[:, PieceColumn.LATENCY], [2e-6, 2e-6, 5e-6, 5e-6], rtol=1e-12, atol=0)


def test_ranks_take_the_sockets_in_turn_or_fill_them(file):
    factors = "\n".join(f"node{node}_cpu{cpu} = {1 + node + cpu / 10}" for node in (1, 2) for cpu in (0, 1))
    platform = PLATFORM.replace("socket_count = 1", "socket_count = 2") + f"[kernels.processors]\n{factors}\n"
    for binding, wanted in (("by_core", [2.0, 2.0, 2.1, 2.1, 3.0, 3.0]), ("by_socket", [2.0, 2.1, 2.0, 2.1, 3.0, 3.1])):
        plan, values = plan_and_values(file(APPLICATION + f'binding = "{binding}"\n', platform))
        assert_allclose(plan.machine(values, 6, 4, 2).factors, wanted, rtol=1e-12, atol=0)
    with pytest.raises(UsageError, match="the ranks need 6 processors"):
        plan.machine(values, 12, 4, 2)


def test_large_products_are_charged_as_offloaded_ones(file):
    offloaded = '[kernels.dgemm.offloaded]\nmnk = "0.001 ns"\nsmallest_m = 100\nsmallest_n = 100\nsmallest_k = 100\n'
    base, faster = (evaluate(Scenario.open(file(platform=text)).program).values["total.time"]
                    for text in (PLATFORM, PLATFORM + offloaded))  # fmt: skip
    assert faster < 0.7 * base


def test_noise_is_drawn_from_the_seed(file):
    noisy = PLATFORM.replace('mnk = "0.01029 ns"', 'mnk = "0.01029 ns"\ndeviation = { mnk = "0.001 ns" }')

    def time(seed):
        path = file(APPLICATION + f'noise = "kernels"\nseed = {seed}\n', noisy)
        return float(evaluate(Scenario.open(path).program).values["total.time"])

    quiet = float(evaluate(Scenario.open(file()).program).values["total.time"])
    assert time(1) == time(1) != time(2)
    assert quiet < time(1) < 1.2 * quiet


def test_messages_take_the_time_of_one_of_their_modes(file):
    def time(modes, noise):
        platform = PLATFORM.replace('bandwidth = "12.5 GB/s"', f'bandwidth = "12.5 GB/s"\n{modes}')
        path = file(APPLICATION + f'noise = "{noise}"\n', platform)
        return float(evaluate(Scenario.open(path).program).values["total.time"])

    some, all_of_them = "modes.a = { weight = 0.9, factor = 1.0 }\nmodes.b = ", "modes.b = "
    slow = [time(f"{modes}{{ weight = 0.1, factor = 20.0 }}", "network") for modes in (some, all_of_them)]
    quiet = time(f"{some}{{ weight = 0.1, factor = 20.0 }}", "none")
    assert quiet < slow[0] < slow[1]
    with pytest.raises(InvalidFileError, match="noise of messages needs `modes`"):
        time("", "both")


def test_messages_share_the_links_of_a_tapered_fat_tree(file):
    """Four switches of two nodes, with one link upwards each or as many as nodes."""
    tree = '[network.topology]\nkind = "fat_tree"\nlevel_count = 2\ndown_count = 2\nbandwidth = "1 GB/s"\nup_count = '
    platform = PLATFORM.replace('bandwidth = "12.5 GB/s"', 'bandwidth = "1 GB/s"')
    run = APPLICATION.replace("rows = 2", "rows = 4").replace("columns = 3", "columns = 2")
    plain, wide, narrow = (
        float(evaluate(Scenario.open(file(run, text)).program).values["total.time"])
        for text in (platform, f"{platform}\n{tree}2\n", f"{platform}\n{tree}1\n")
    )
    assert plain <= wide < narrow
    plan, values = plan_and_values(file(run, f"{platform}\n{tree}1\n"))
    machine = plan.machine(values, 8, 1, 1)
    assert machine.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert machine.links.tolist() == [0] * 8
    assert_allclose(machine.adapter_gap, 1e-9, rtol=1e-12, atol=0)
    # A single level has no links upwards.
    single = tree.replace("level_count = 2", "level_count = 1").replace("down_count = 2", "down_count = 4")
    plan, values = plan_and_values(file(run, f"{platform}\n{single}1\n"))
    assert plan.machine(values, 8, 1, 1).groups is None


def test_adapters_are_shared_by_the_ranks_of_a_node(file):
    crowded = APPLICATION.replace("ranks_per_node = 1", "ranks_per_node = 3")
    plan, values = plan_and_values(file(crowded))
    machine = plan.machine(values, 6, 3, 1)
    assert machine.nodes.tolist() == [0, 0, 0, 1, 1, 1]
    assert_allclose(machine.adapter_gap, 1 / 12.5e9, rtol=1e-12, atol=0)
    assert plan.machine(values, 6, 1, 1).adapter_gap == 0
    alone = outcome_at(plan, tuple(values[parameter] for parameter in plan.parameters), 6, 1, 1)
    together = outcome_at(plan, tuple(values[parameter] for parameter in plan.parameters), 6, 3, 1)
    assert together.time > alone.time


def test_a_plan_needs_messages_between_nodes():
    with pytest.raises(UsageError, match="neither `pieces` nor `postal`"):
        plan_of({"platform.kernels.dgemm.mnk": 1.0}, [""] * len(CHOICES))
