"""Shared parts: tables of a platform that extend a part file, and machines without GPUs."""

from __future__ import annotations

import pytest

from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.schema.load import load_document, load_part, load_platform
from whatif.schema.parameters import parameter_table
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import parse_document

H200 = """\
part = "gpu"
name = "H200"
peak_single_rate = "67 Tflop/s"
peak_double_rate = "34 Tflop/s"
peak_integer_rate = "33 Top/s"
peak_add_rate = "33 Top/s"
peak_shared_rate = "10 Top/s"
dram_bandwidth = "4.8 TB/s"
l2_bandwidth = "10 TB/s"

[sources]
"*" = { grade = "datasheet", source = "the vendor" }
peak_shared_rate = { grade = "assumed", source = "a rule" }
"""
THREE_LINES = 'extends = "summit"\nname = "Summit with H200"\nnode.gpu.extends = "h200"\n'
GPU = "platform.node.gpu"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "h200.toml").write_text(H200)
    (tmp_path / "summit_h200.toml").write_text(THREE_LINES)
    return tmp_path


def parameters(folder, text, **options):
    return parameter_table(load_document(parse_document(text, "s.toml", folder), **options))


def test_platform_with_another_gpu_in_three_lines(folder):
    platform, _ = load_platform(folder / "summit_h200.toml")
    summit, _ = load_platform("summit")
    assert platform.node.gpu.name == "H200"
    assert platform.node.gpu.dram_bandwidth == 4.8e12
    assert platform.network == summit.network


def test_part_replaces_the_whole_table(folder):
    """Summit's copy latency was measured on a V100 and does not apply to the H200, whose file states none."""
    assert load_platform("summit")[0].node.gpu.copy_latency is not None
    assert load_platform(folder / "summit_h200.toml")[0].node.gpu.copy_latency is None


def test_values_of_a_part_have_the_sources_of_its_file(folder):
    table = parameters(folder, 'extends = "jacobi2d"\nplatform = "summit_h200"\n')
    assert (table[f"{GPU}.dram_bandwidth"].grade, table[f"{GPU}.dram_bandwidth"].source) == ("datasheet", "the vendor")
    assert (table[f"{GPU}.peak_shared_rate"].grade, table[f"{GPU}.peak_shared_rate"].source) == ("assumed", "a rule")
    assert table["platform.node.socket_count"].source.startswith("Choi")


def test_value_in_the_extending_table_overrides_the_part(folder):
    text = 'extends = "jacobi2d"\n[platform.node.gpu]\nextends = "h200"\ndram_bandwidth = "4 TB/s"\n'
    table = parameters(folder, text)
    assert table[f"{GPU}.dram_bandwidth"].value == 4e12
    assert table[f"{GPU}.l2_bandwidth"].value == 1e13


def test_part_can_be_selected_by_override(folder):
    table = parameters(folder, 'extends = "jacobi2d"\n', overrides={f"{GPU}.extends": "h200"})
    assert table[f"{GPU}.name"].value == "H200"


def problem(call):
    with pytest.raises(InvalidFileError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"h200"', '"h201"', "summit_h200.toml:3:1: node.gpu.extends: `h201`: part not found; did you mean `h200`?"),
        ('"h200"', '"../h200"', "summit_h200.toml:3:1: node.gpu.extends: `../h200`: part not found"),
        ('"h200"', '"s"', "; state the values of another one in place of `extends`"),
        ("node.gpu.", "node.host.", "`h200` is a gpu, not a host"),
        ("node.gpu.", "node.", "`node` cannot extend a part; gpu, cpu, host"),
    ],
)
def test_missing_or_wrong_part_is_reported_with_its_line(folder, old, new, message):
    (folder / "summit_h200.toml").write_text(THREE_LINES.replace(old, new))
    assert message in problem(lambda: load_platform(folder / "summit_h200.toml"))


def test_generation_of_infiniband_is_answered_with_its_rate(folder):
    network = '[network.inter_node]\nextends = "infiniband-hdr"\n'
    (folder / "summit_h200.toml").write_text(THREE_LINES + network)
    found = problem(lambda: load_platform(folder / "summit_h200.toml"))
    assert "part not found; did you mean `infiniband-200`?" in found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'part = "gpu"',
            'part = "gpus"',
            "h200.toml:1:1: part: must be one of gpu, cpu, host, link, distance, transformer, phase; did you mean",
        ),
        (
            "dram_bandwidth",
            "dram_bandwith",
            "h200.toml:8:1: dram_bandwith: `dram_bandwith`: unknown key; did you mean `dram_bandwidth`",
        ),
        ('grade = "assumed"', 'grade = "guessed"', "`guessed` is not one of measured, datasheet, assumed"),
        ('"4.8 TB/s"', '"4.8 TB"', "h200.toml:8:1: dram_bandwidth: `4.8 TB` is in B"),
    ],
)
def test_error_in_a_part_is_reported_in_its_file(folder, old, new, message):
    (folder / "parts" / "h200.toml").write_text(H200.replace(old, new))
    assert message in problem(lambda: load_platform(folder / "summit_h200.toml"))
    assert message in problem(lambda: load_part(folder / "parts" / "h200.toml"))


CPU_MACHINE = """\
name = "Cluster"
node_count = 8

[node]
socket_count = 2
cpu = { name = "Some CPU", core_count = 16, peak_double_rate = "1 Tflop/s" }

[network.inter_node]
short_limit = "128 B"
eager_limit = "64 KiB"

[network.inter_node.postal]
short = { latency = "1 us", bandwidth = "1 GB/s" }
eager = { latency = "2 us", bandwidth = "5 GB/s" }
rendezvous = { latency = "4 us", bandwidth = "10 GB/s" }
"""
CPU_SCENARIO = """\
platform = "cluster"

[application]
name = "Halo"
rank_count = 64
ranks_per_node = 32
iteration_count = 1

[application.grid]
scaling = "weak"
cells = { x = 1024, y = 1024 }

[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "faces"
"""


def test_machine_without_gpus_places_the_stated_ranks_per_node(tmp_path):
    (tmp_path / "cluster.toml").write_text(CPU_MACHINE)
    scenario = Scenario(parse_document(CPU_SCENARIO, "s.toml", tmp_path))
    result = run_whole(scenario, Grid())
    # Four messages of 8 kB with the eager protocol, one after another.
    assert float(result.columns["iteration_time"]) == pytest.approx(4 * (2e-6 + 8192 / 5e9), rel=1e-12)


WITHOUT_CPU = CPU_MACHINE.replace('cpu = { name = "Some CPU", core_count = 16, peak_double_rate = "1 Tflop/s" }\n', "")
WORK = (
    '[application.phases.work]\nkind = "kernel"\nmodel = "roofline"\ndominant_operation = "fp_64"\n'
    'metrics_per = "rank"\noperations = "1 flop"\ndram_size = "1 B"\n'
    "compute_fraction = 0.5\nload_store_fraction = 0.2\n"
)


@pytest.mark.parametrize(
    ("machine", "text", "message"),
    [
        (
            WITHOUT_CPU,
            CPU_SCENARIO.replace("ranks_per_node = 32\n", ""),
            "application.ranks_per_node: missing: Cluster has no GPUs and no `[platform.node.cpu]`, so state how many",
        ),
        (WITHOUT_CPU, CPU_SCENARIO + WORK, "Cluster has no processor for this kernel (`[platform.node.cpu]`)"),
        (
            CPU_MACHINE,
            CPU_SCENARIO.replace("ranks_per_node", 'runs_on = "gpu"\nranks_per_node') + WORK,
            'Cluster has no GPU for this kernel (`[platform.node.gpu]`), but application.runs_on = "gpu"',
        ),
        (
            CPU_MACHINE,
            CPU_SCENARIO + WORK,
            "cpu.memory_bandwidth: missing: the sustained bandwidth of a socket (STREAM)",
        ),
    ],
)
def test_kernels_without_their_device_are_errors(tmp_path, machine, text, message):
    (tmp_path / "cluster.toml").write_text(machine)
    assert message in problem(lambda: Scenario(parse_document(text, "s.toml", tmp_path)).program)


def test_gpu_count_without_gpu_table_is_an_error(tmp_path):
    (tmp_path / "cluster.toml").write_text(CPU_MACHINE.replace("[node]\n", "[node]\ngpu_count = 4\n"))
    found = problem(lambda: load_platform(tmp_path / "cluster.toml"))
    assert "`[node.gpu]` is missing, but `gpu_count` is stated" in found


def test_a_scenario_with_the_name_of_a_shipped_platform_does_not_take_its_place(tmp_path):
    """A copy of a scenario may be saved under any name, next to others that ask for that platform."""
    text = (shipped_folder("scenarios") / "minife.toml").read_text(encoding="utf-8")
    for name in ("given", "lassen"):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    assert Scenario.open(str(tmp_path / "given.toml")).program.loaded.scenario.platform.name == "Lassen"
    beside = Scenario.open("minife", platform="lassen", folders=(tmp_path,))
    assert beside.program.loaded.scenario.platform.name == "Lassen"
    (tmp_path / "lassen.toml").write_text('extends = "lassen"\nname = "mine"\n', encoding="utf-8")
    assert Scenario.open(str(tmp_path / "given.toml")).program.loaded.scenario.platform.name == "mine"


def test_all_unknown_parts_are_named_at_once(tmp_path):
    (tmp_path / "m.toml").write_text(
        'name = "M"\nnode_count = 2\n[node]\nsocket_count = 1\ngpu_count = 1\ngpu.extends = "b200"\n'
        'peer_link.extends = "nvlink5"\n[network]\ninter_node.extends = "ib-xdr"\n'
    )
    with pytest.raises(InvalidFileError) as caught:
        load_platform(str(tmp_path / "m.toml"))
    assert [problem.line for problem in caught.value.problems] == [6, 7, 9]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", ("mesh", False)),
        ('node.peer_link.extends = "nvlink4-18"\n', ("switch", True)),
        ('node.peer_link.extends = "nvlink4-18"\nnode.domain_topology = "mesh"\n', ("mesh", True)),
        ('node.peer_link.extends = "infinity-fabric-dies"\n', ("ring", False)),
        ('node.host_link.extends = "nvlink4-18"\n', ("mesh", False)),
    ],
)
def test_a_link_between_devices_brings_the_topology_of_their_domain(tmp_path, lines, expected):
    (tmp_path / "m.toml").write_text(f'extends = "perlmutter"\nname = "M"\n{lines}')
    node = load_platform(tmp_path / "m.toml")[0].node
    assert (node.domain_topology, node.switch_reduction) == expected


def test_the_topology_of_a_link_replaces_that_of_an_earlier_one(tmp_path):
    (tmp_path / "m.toml").write_text('extends = "dgx_h100"\nname = "M"\nnode.peer_link.extends = "nvlink3-4"\n')
    node = load_platform(tmp_path / "m.toml")[0].node
    assert (node.domain_topology, node.switch_reduction) == ("mesh", False)
