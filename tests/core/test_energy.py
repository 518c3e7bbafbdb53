"""Power, energy, cost and carbon of a run: against hand arithmetic, and what is missing or wrong is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.one_phase import one_phase
from whatif.axes import Grid
from whatif.core.derivation import explain
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError, UsageError
from whatif.models.power import iteration_energy, mean_power, total_energy
from whatif.schema.toml import parse_document
from whatif.studies.elasticity import elasticities
from whatif.studies.purchase import checked_limits, offers
from whatif.units import parse_quantity
from whatif.validation.tables import TABLES

# A node of 2 GPUs and 1 socket idles at 2 x 50 + 40 + 50 + 10 = 200 W; 4 ranks take 2 nodes.
MACHINE = """
[platform]
extends = "dgx_a100"
[platform.node]
gpu_count = 2
socket_count = 1
gpu = { idle_power = "50 W", dynamic_power = "250 W", empty_kernel_time = "0 s", launch_interval = "0 s" }
cpu = { idle_power = "40 W", dynamic_power = "200 W" }
host = { power = "50 W" }
network_power = "10 W"
[platform.site]
power_usage_effectiveness = 1.5
carbon_intensity = "360 gCO2e/kWh"
[platform.price]
node_price = "87660 EUR"
lifetime = "5 year"
utilisation = 0.5
energy_price = "0.1 EUR/kWh"
[application]
name = "t"
rank_count = 4
iteration_count = 10
"""
KERNEL = '[application.phases.{name}]\nkind = "measured_kernel"\nkernel_time = "{time}"\n'
WAITING = '[application.phases.waiting]\nkind = "overhead"\noverhead_time = "1 s"\n'
TEXT = MACHINE + KERNEL.format(name="work", time="3 s") + WAITING


def scenario(text=TEXT, **sets):
    return Scenario(
        parse_document(text, "t.toml"), overrides={path.replace("__", "."): value for path, value in sets.items()}
    )


def columns(inputs):
    return {name: float(array) for name, array in run_whole(inputs, Grid()).columns.items()}


def test_idle_power_counts_all_the_time_and_dynamic_power_while_kernels_run():
    found = columns(scenario())
    # 1.5 (2 nodes x 200 W x 4 s + 4 GPUs x 250 W x 3 s), ten times in 40 s.
    assert_allclose(found["iteration_energy"], 1.5 * (2 * 200 * 4 + 4 * 250 * 3), rtol=1e-12, atol=0)
    assert_allclose(found["total_energy"], 69_000, rtol=1e-12, atol=0)
    assert_allclose(found["mean_power"], 69_000 / 40, rtol=1e-12, atol=0)
    assert_allclose(found["total_carbon"], 69_000 / 3.6e6 * 360, rtol=1e-12, atol=0)


def test_a_job_pays_its_share_of_the_capital_and_its_energy():
    # 2 nodes x 40 s of 87,660 EUR in half of 5 years, which are 43,830 h: 4 EUR/h.
    found = columns(scenario())
    assert_allclose(found["total_cost"], 2 * 40 * 4 / 3600 + 69_000 / 3.6e6 * 0.1, rtol=1e-12, atol=0)
    whole = columns(scenario(TEXT.replace('node_price = "87660 EUR"', 'machine_price = "= 280 * 87660 EUR"')))
    assert_allclose(whole["total_cost"], found["total_cost"], rtol=1e-12, atol=0)


def test_rent_includes_the_energy_unless_its_price_is_stated():
    head, _, rest = TEXT.partition('node_price = "87660 EUR"')
    rented = f'{head}node_rate = "9 EUR/h"{rest}'
    assert_allclose(columns(scenario(rented))["total_cost"], 0.2 + 69_000 / 3.6e7, rtol=1e-12, atol=0)
    without = rented.replace('energy_price = "0.1 EUR/kWh"', "")
    assert_allclose(columns(scenario(without))["total_cost"], 0.2, rtol=1e-12, atol=0)


def test_two_kernels_that_overlap_keep_a_device_busy_once():
    both = KERNEL.format(name="one", time="3 s") + KERNEL.format(name="two", time="2 s")
    overlap = '[application.overlaps.pair]\nphases = ["one", "{}"]\nfraction = 1\n'
    found = columns(scenario(MACHINE + both + overlap.format("two")))
    assert_allclose(found["iteration_energy"], 1.5 * (2 * 200 * 3 + 4 * 250 * 3), rtol=1e-12, atol=0)
    hidden = columns(scenario(TEXT.replace("phases.work", "phases.one") + overlap.format("waiting")))
    assert_allclose(hidden["iteration_energy"], 1.5 * (2 * 200 * 3 + 4 * 250 * 3), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("ranks", "per_gpu", "per_node", "nodes", "devices"),
    [
        (3, 1, 2, 2, 3),  # the last node has one rank
        (8, 4, 1, 8, 8),  # a device that takes four ranks has one where its node has one
        (6, 2, 3, 2, 4),
        (5, 2, 3, 2, 3),  # two devices on the first node, one on the last
        (8, 1, 4, 2, 4),  # ranks beyond those of the devices share them
        (2, 1, 4, 1, 1),  # so do two of them, whose kernels take as long as on one device
        (3, 1, 4, 1, 2),
    ],
)
def test_devices_without_a_rank_stay_idle(ranks, per_gpu, per_node, nodes, devices):
    placed = {"rank_count": ranks, "ranks_per_gpu": per_gpu, "ranks_per_node": per_node}
    found = columns(scenario(**{f"application__{key}": str(value) for key, value in placed.items()}))
    assert_allclose(found["iteration_energy"], 1.5 * (nodes * 200 * 4 + devices * 250 * 3), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("mapping", "devices"),
    [
        ("block", 3),  # 4 and 2 ranks
        ("round_robin", 4),  # 3 and 3
        ("file", 4),  # 3, 2 and 1
    ],
)
def test_devices_in_use_are_those_of_the_mapping(tmp_path, mapping, devices):
    (tmp_path / "nodes.txt").write_text("0\n0\n0\n1\n1\n2\n")
    file = 'mapping_file = "nodes.txt"\n' if mapping == "file" else ""
    grid = f'[application.grid]\nscaling = "weak"\ncells = {{ x = 6 }}\nmapping = "{mapping}"\n{file}'
    document = parse_document(TEXT.replace("rank_count = 4", "rank_count = 6") + grid, "t.toml", tmp_path)
    placed = {"application.ranks_per_node": "4", "application.ranks_per_gpu": "2"}
    assert evaluate(Scenario(document, overrides=placed).program).values["placement.devices_in_use"] == devices


def test_kernels_of_a_machine_without_gpus_run_on_its_sockets():
    text = TEXT.replace('"dgx_a100"', '"dahu"').replace("gpu_count = 2\nsocket_count = 1", "socket_count = 2")
    lines = [line for line in text.splitlines() if not line.startswith("gpu =")]
    inputs = scenario("\n".join(lines), application__ranks_per_node="2")
    # A node idles at 2 x 40 + 50 + 10 W; four ranks of two a node are on all four sockets.
    assert_allclose(columns(inputs)["iteration_energy"], 1.5 * (2 * 140 * 4 + 4 * 200 * 3), rtol=1e-12, atol=0)


def test_setup_is_spent_at_idle_power():
    cells = '[application.grid]\nscaling = "strong"\ncells = { x = 4 }\n'
    cells += '[application.phases.cells]\nkind = "structured_grid"\n'
    rates = 'halo_cell_count = 1\ncell_rate = "1 cell/s"\nhalo_rate = "1e9 cell/s"\nstartup_time = "7 s"\n'
    found = columns(scenario(MACHINE + cells + rates))
    assert_allclose(found["total_energy"] - 10 * found["iteration_energy"], 1.5 * 2 * 200 * 7, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("line", "lost", "kept"),
    [
        ('host = { power = "50 W" }', ("total_energy", "total_carbon", "total_cost"), "total_time"),
        ('carbon_intensity = "360 gCO2e/kWh"', ("total_carbon",), "total_cost"),
        ('lifetime = "5 year"', ("total_cost",), "total_energy"),
        ('energy_price = "0.1 EUR/kWh"', ("total_cost",), "total_energy"),
    ],
)
def test_missing_values_give_a_reason_instead_of_a_number(line, lost, kept):
    # The platform states the power of its hosts.
    program = scenario(TEXT.replace(line, 'host = { power = "none" }' if "host" in line else "")).program
    parameter = "host.power" if "host" in line else line.partition(" ")[0]
    assert kept in program.columns
    for name in lost:
        assert name not in program.columns
        for ask in (program.term_of, lambda result: explain(evaluate(program), result)):
            with pytest.raises(UsageError, match=rf"DGX A100 does not state .*{parameter}"):
                ask(name)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("energy_price", "0.1 USD/kWh", "prices in EUR and USD"),
        ("energy_price", "= 0.1 USD / 3.6e6 J", "prices in EUR and USD"),
        ("energy_price", "= 5 J", r"`= 5 J` is in J; write a price such as `0.15 EUR/kWh`"),
        ("node_price", "5", "has no currency"),
        ("node_price", "-5 EUR", "must be at least 0"),
        ("node_rate", "5 EUR/h", "`node_price` and `node_rate` exclude each other"),
        ("lifetime", "0 year", "greater than 0"),
    ],
)
def test_prices_that_make_no_sense_are_refused(path, value, message):
    with pytest.raises(InvalidFileError, match=message):
        _ = scenario(**{f"platform__price__{path}": value}).program


def test_energies_follow_power_and_times_do_not():
    program = scenario().program
    followed = {its.path: its.elasticity for its in elasticities(program, "total_energy")}
    assert_allclose(followed["platform.node.gpu.dynamic_power"], 45_000 / 69_000, rtol=1e-3, atol=0)
    assert "platform.node.gpu.dynamic_power" not in {its.path for its in elasticities(program, "total_time")}
    unassumed = {f"application.phases.{name}": "none" for name in ("pack", "unpack", "stencil", "reduce")}
    plain = Scenario.open("jacobi2d", overrides={"application.congestion": "none", **unassumed}).program
    assert (plain.grade, plain.other_grades["total_energy"]) == ("datasheet", "assumed")


@pytest.fixture(name="without_power")
def folder_of_a_platform_without_power(tmp_path):
    """Folder of `plain`, a platform that does not state the power of its hosts."""
    (tmp_path / "plain.toml").write_text('extends = "titan"\nname = "Plain"\nnode.host.power = "none"\n')
    return tmp_path


def test_machines_in_one_sweep_may_lack_energy_and_differ_in_currency(without_power):
    inputs = Scenario(parse_document(one_phase("1 s", platform="frontier"), "t.toml", without_power))
    result = run_whole(inputs, grid_of([parse_option("platform=plain, frontier, jupiter", inputs.program, 10)], 10))
    assert np.isnan(result.columns["total_energy"]).tolist() == [True, False, False]
    assert result.table().columns["total_energy"].unit == "J"
    energy = "= 0 * platform.price.machine_price / 1 J"
    inputs = inputs.changed({"platform.price.lifetime": "5 year", "platform.price.energy_price": energy})
    result = run_whole(inputs, grid_of([parse_option("platform=frontier, jupiter", inputs.program, 10)], 10))
    assert np.isnan(result.columns["total_cost in USD"]).tolist() == [False, True]
    assert np.isnan(result.columns["total_cost in EUR"]).tolist() == [True, False]


def test_what_takes_no_time_has_no_energy_however_large_the_power():
    assert float(iteration_energy(4.0, 1e308, 0.0, 8.0, 1e308, 0.0, 1.5)) == 0
    assert float(total_energy(10.0, 3.0, 0.0, 4.0, 1e308, 1.5)) == 30


def test_the_mean_power_of_unknown_times_is_unknown():
    assert np.isnan(mean_power(np.array([np.nan, 1.0]), np.array([np.nan, np.nan]))).all()
    assert mean_power(np.array([0.0, 6.0]), np.array([0.0, 2.0])).tolist() == [0, 3]


CAPPED = """
[application.phases.work]
kind = "kernel"
model = "roofline"
metrics_per = "rank"
dominant_operation = "fp_64"
operations = "{} Gflop"
dram_size = "{} GB"
compute_fraction = 1
load_store_fraction = 0
"""


def capped(operations, size, cap, **gpu):
    """An A100: 9.7 Tflop/s, 1.555 TB/s."""
    stated = {f"platform__node__gpu__{key}": value for key, value in gpu.items()}
    found = columns(scenario(MACHINE + CAPPED.format(operations, size), platform__node__gpu__power_cap=cap, **stated))
    return found["iteration_time"], found["iteration_energy"]


def test_under_a_power_cap_the_clock_falls_with_the_cube_root_of_the_power():
    time, energy = capped(9700, 0, "300 W")
    assert_allclose([time, energy], [1.0, 1.5 * (400 + 4 * 250)], rtol=1e-12, atol=0)
    # 200 W are left of 250 W: (200 / 250)^(1/3) of the clock.
    slower = (250 / 200) ** (1 / 3)
    time, energy = capped(9700, 0, "250 W")
    assert_allclose([time, energy], [slower, slower * 1.5 * (400 + 4 * 200)], rtol=1e-12, atol=0)


def test_below_the_floor_of_the_voltage_the_clock_falls_with_the_power():
    # 81.25 W are left of 250 W, less than 0.87^3 of them.
    slower = 250 / 81.25 * 0.87**2
    time, energy = capped(9700, 0, "131.25 W")
    assert_allclose([time, energy], [slower, slower * 1.5 * (400 + 4 * 81.25)], rtol=1e-12, atol=0)
    without = capped(9700, 0, "131.25 W", voltage_floor=0)[0]
    assert_allclose(without, (250 / 81.25) ** (1 / 3), rtol=1e-12, atol=0)


def test_a_kernel_that_memory_limits_loses_no_time_under_a_cap_but_saves_energy():
    time, energy = capped(97, 1360, "131.25 W")
    assert_allclose([time, energy], [1.0, 1.5 * (400 + 4 * 81.25)], rtol=1e-12, atol=0)


def test_the_exponent_of_power_and_clock_can_be_stated():
    text = (MACHINE + CAPPED.format(9700, 0)).replace(
        'dynamic_power = "250 W"', 'dynamic_power = "250 W", power_exponent = 2'
    )
    found = columns(scenario(text, platform__node__gpu__power_cap="131.25 W"))
    slower = 250 / 81.25 * 0.87
    assert_allclose(found["iteration_time"], slower, rtol=1e-12, atol=0)
    assert_allclose(found["iteration_energy"], slower * 1.5 * (400 + 4 * 81.25), rtol=1e-12, atol=0)


def test_a_cap_needs_the_powers_that_it_caps_and_parameters_some_to_compute_with():
    waiting = MACHINE + WAITING
    low = run_whole(scenario(waiting, platform__node__gpu__power_cap="50 W"), Grid())
    assert low.reasons[0].startswith("the power cap leaves nothing to compute with")
    rates = ("peak_single_rate", "peak_double_rate", "peak_integer_rate", "peak_add_rate", "peak_shared_rate")
    gpu = "".join(f'{key} = "1 Gop/s"\n' for key in rates) + 'dram_bandwidth = "1 GB/s"\nl2_bandwidth = "1 GB/s"\n'
    node = "[platform.node]\ngpu_count = 1\nsocket_count = 1\n[platform.network.inter_node]\nextends = 'slingshot-11'\n"
    machine = f'[platform]\nname = "m"\nnode_count = 9\n{node}[platform.node.gpu]\nname = "g"\n{gpu}'
    application = '[application]\nname = "a"\nrank_count = 1\niteration_count = 1\n'
    with pytest.raises(InvalidFileError, match=r"a power cap needs .*gpu.idle_power and .*gpu.dynamic_power"):
        _ = scenario(machine + application + WAITING, platform__node__gpu__power_cap="200 W").program


def test_a_cap_that_cannot_be_kept_or_followed_is_refused():
    infeasible = run_whole(scenario(MACHINE + CAPPED.format(9700, 0), platform__node__gpu__power_cap="50 W"), Grid())
    assert infeasible.reasons == (
        "the power cap leaves nothing to compute with (platform.node.gpu.power_cap is not above idle_power)",
    )
    with pytest.raises(InvalidFileError, match="`work` was measured and does not follow a power cap"):
        _ = scenario(platform__node__gpu__power_cap="200 W").program


def bought(limits, **sets):
    given = checked_limits({name: parse_quantity(text) for name, text in limits.items()})
    return offers({"t": scenario(**sets)}, ["dgx_a100"], given)[0]


def test_a_budget_buys_whole_nodes_and_the_tightest_limit_binds():
    # Nodes draw 1.5 (200 + 2 x 250) W while kernels run; jobs of 40 s take two.
    found = bought({"capital": "1 MEUR", "power": "7.4 kW"})
    assert (found.node_count, found.limit, found.job_count) == (7, "power", 3)
    assert_allclose([found.daily_jobs, found.energy], [3 * 86_400 / 40, 69_000], rtol=1e-12, atol=0)
    found = bought({"capital": "876600 EUR", "power": "1 MW"})
    assert (found.node_count, found.limit, found.reason) == (10, "capital", "")


def test_a_budget_for_the_lifetime_pays_for_nodes_and_their_energy():
    """All jobs of the lifetime at their own cost are the budget again."""
    found = bought({"cost": "1 MEUR"})
    jobs = found.daily_jobs / found.job_count * found.node_count / 2 * 5 * 365.25 * 0.5
    each = 2.5 * 365.25 * 24 * 69_000 / 40 / 2 / 1000 * 0.1 + 87_660
    assert found.node_count == 1e6 // each
    assert_allclose(jobs * found.cost.value, found.node_count * each, rtol=1e-12, atol=0)


def test_a_budget_without_a_result_is_a_row_with_the_reason(without_power):
    assert bought({"power": "2 kW"}).reason == "a job needs 2 nodes, the offer has 1"
    assert bought({"power": "1 kW"}).reason == "not one node is within the budget"
    assert bought({"capital": "1 EUR"}, platform__price__node_price="0 EUR").reason == "nodes take no capital there"
    work = {"application__phases__work__kernel_time": "0 s", "application__phases__waiting__overhead_time": "0 s"}
    assert bought({"power": "1 MW"}, **work).reason == "a job takes no time there"
    plain = Scenario(parse_document(one_phase("1 s"), "t.toml", without_power))
    found = offers({"t": plain}, ["plain"], {"power": parse_quantity("1 MW")})
    assert "platform.node.host.power" in found[0].reason
    with pytest.raises(UsageError, match="the budget is in USD, the prices of DGX A100 are in EUR"):
        bought({"capital": "1 MUSD"})
    with pytest.raises(UsageError, match="a power above 0"):
        bought({"power": "-5 MW"})
    for limits in ({"capital": "1 MW"}, {"power": "1 EUR"}, {"power": "0 W"}, {}):
        with pytest.raises(UsageError):
            bought(limits)


def test_the_budget_of_the_command_line(whatif_main, without_power):
    words = [
        "jacobi2d",
        "--platform",
        str(without_power / "plain.toml"),
        "--platform",
        "perlmutter",
        "--platform",
        "frontier",
        "--power",
        "1 MW",
    ]
    _, out, text = whatif_main("budget", *words, "--format", "json")
    assert "Frontier: rests on assumed values" in text
    rows = json.loads(out)["rows"]
    assert [(row["platform"], row["limit"]) for row in rows[:2]] == [("perlmutter", "power"), ("frontier", "power")]
    assert rows[2]["reason"].startswith("not stated: ")
    assert whatif_main("budget", "jacobi2d", *words[1:5], "--power", "1 MW")[0] == 0
    assert "expected money, such as `20 MUSD`" in whatif_main("budget", *words[:3], "--capital", "100 M")[2]
    code, _, text = whatif_main("budget", "minife_devices", *words[1:3], "--power", "1 MW")
    assert (code, "no machine has an answer" in text) == (4, True)
    assert "minife_devices itself states platform.node.gpu.peak_single_rate" in text
    assert "and 4 more: the same on every machine" in text


def test_a_budget_warns_of_a_value_that_changes_neither_a_result_nor_a_limit():
    """Energy is paid for where the cost is known, of rented nodes in addition to the rent."""
    energy, lifetime = "platform.price.energy_price", "platform.price.lifetime"
    given = {energy: "1 USD/kWh", lifetime: "1 year", "application.rank_count": 64}

    def warned(platforms, *paths, **limits):
        overrides = {path: given[path] for path in (*paths, "application.rank_count")}
        found = whatif.budget("jacobi2d", platforms, overrides=overrides, **limits)
        return [path for path in paths if any(f"--set {path}=" in note for note in found.remarks)]

    assert warned(["frontier"], energy, power="1 MW") == [energy]
    assert warned(["frontier"], energy, lifetime, power="1 MW") == []
    assert warned(["aws_p5"], energy, lifetime, power="1 MW") == [lifetime]
    assert warned(["aws_p5"], energy, lifetime, cost="50 MUSD") == []
    assert warned(["frontier", "aws_p5"], energy, power="1 MW") == []


def test_a_parameter_of_no_platform_in_a_budget_is_an_error(whatif_main):
    for wrong in (("--platform", "nowhere"), ("--platform", "frontier", "--set", "application.nonsense=1")):
        code, _, text = whatif_main("budget", "jacobi2d", *wrong, "--power", "1 MW")
        assert (code, wrong[-1].rpartition(".")[2].partition("=")[0] in text) == (3, True)
    gpu = ("--set", "platform.node.gpu.dram_bandwidth=1 TB/s")
    _, _, text = whatif_main("budget", "jacobi2d", "--platform", "fugaku", *gpu, "--power", "1 MW")
    assert "platform.node.gpu: fugaku has no GPUs; a new table also needs name, peak_double_rate, " in text


def test_full_load_of_whole_machines_is_near_their_published_power():
    errors = np.abs(TABLES["power"]().columns["error"].values)
    assert len(errors) == 11
    assert float(errors.mean()) < 0.13
    assert float(errors.max()) < 0.32
