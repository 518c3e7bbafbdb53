"""The machine library: where every value comes from, the rules of assumed ones, published figures of machines."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
import tomli
from numpy.testing import assert_allclose

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.transfer import pcie_bandwidth
from whatif.schema.load import load_part, load_platform
from whatif.schema.parameters import DEFAULT, parameter_table
from whatif.schema.platform_spec import GRADES
from whatif.schema.shipped import shipped_folder, shipped_names
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, format_quantity

PLATFORMS = shipped_names("platforms")
PARTS = shipped_names("parts")
MACHINES = {name: load_platform(name)[0] for name in PLATFORMS}
WITH_GPUS = [name for name, machine in MACHINES.items() if machine.node.gpu_count]
# Their network was measured and printed whole, no rule made it (Sierra's is Lassen's).
MEASURED = ("blue_waters", "bridges", "lassen", "sierra", "summit")
# Where a part of each kind can stand in a machine.
TABLES = {
    "gpu": "platform.node.gpu",
    "cpu": "platform.node.cpu",
    "host": "platform.node.host",
    "link": "platform.node.host_link",
    "distance": "platform.network.inter_node",
    "transformer": "application.transformer",
}
ASSUMED = re.compile(r"rule ([a-z ]+): |as |derived from |vendor figure, page not retrieved|256 B, usual for this chip")
PAGE = ROOT / "docs" / "machines.md"


@cache
def shipped_values(name):
    return values(name)


def values(name, overrides=None, folders=(), scenario="jacobi2d", table="platform"):
    """The numeric values of a machine, or of another table, by path, that are stated in some file."""
    loaded = Scenario.open(scenario, platform=name, overrides=overrides, folders=folders).program.loaded
    stated = (item for item in parameter_table(loaded).values() if not item.structural and item.source != DEFAULT)
    return {parameter.path: parameter for parameter in stated if parameter.path.startswith(f"{table}.")}


def part_text(name):
    return (shipped_folder("parts") / f"{name}.toml").read_text(encoding="utf-8")


def part_values(name, text, folders=()):
    """The numeric values of a part, put into Summit, or into the training of a model."""
    table = TABLES[tomli.loads(text)["part"]]
    machine, scenario = ("dgx_h100", "llama_training") if table.startswith("application.") else ("summit", "jacobi2d")
    return values(machine, {f"{table}.extends": name}, folders, scenario, table)


def unsourced(parameters):
    """Paths whose source is none, or only the name of the file that states them."""
    return [
        path
        for path, parameter in parameters.items()
        if parameter.source.endswith(".toml") or len(parameter.source) < 10
    ]


def test_there_are_at_least_twenty_machines():
    assert len({machine.name for machine in MACHINES.values()}) >= 20


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_value_of_a_machine_has_a_source_and_a_grade(name):
    parameters = shipped_values(name)
    assert len(parameters) > 25
    assert unsourced(parameters) == []
    assert {parameter.grade for parameter in parameters.values()} <= set(GRADES)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_loads_alone_and_all_its_values_have_a_source(name):
    load_part(name)
    parameters = part_values(name, part_text(name))
    assert len(parameters) >= 3
    assert unsourced(parameters) == []


def without_each_source(text):
    """A file again and again, each time without another line of its [sources]."""
    head, _, table = text.partition("[sources]\n")
    entries = table.splitlines(keepends=True)
    for index in range(len(entries)):
        yield f"{head}[sources]\n{''.join(entries[:index] + entries[index + 1 :])}"


def test_a_machine_that_lost_any_of_its_sources_is_found_out(tmp_path):
    shipped = (shipped_folder("platforms") / "frontier.toml").read_text(encoding="utf-8")
    for text in without_each_source(shipped):
        (tmp_path / "copy.toml").write_text(text)
        assert unsourced(values("copy", folders=(tmp_path,)))


def test_a_part_that_lost_its_source_for_all_is_found_out(tmp_path):
    text = next(without_each_source(part_text("slingshot-11")))
    (tmp_path / "copy.toml").write_text(text)
    lost = unsourced(part_values("copy", text, (tmp_path,)))
    assert "platform.network.inter_node.postal.eager.latency" in lost
    assert "platform.network.inter_node.short_limit" not in lost


@pytest.mark.parametrize("name", PLATFORMS)
def test_an_assumed_value_states_its_rule_or_platform(name):
    page = PAGE.read_text(encoding="utf-8")
    for parameter in shipped_values(name).values():
        form = ASSUMED.match(parameter.source)
        assert (parameter.grade == "assumed") == bool(form), (parameter.path, parameter.source)
        assert form is None or form[1] is None or f"**{form[1]}**" in page, parameter.source


@pytest.mark.parametrize("name", PARTS)
def test_an_assumed_value_of_a_part_is_marked(name):
    for parameter in part_values(name, part_text(name)).values():
        assert (parameter.grade == "assumed") == bool(ASSUMED.match(parameter.source)), (
            parameter.path,
            parameter.source,
        )


def ranks_of_a_node(machine):
    node = machine.node
    return node.gpu_count or node.socket_count * node.cpu.core_count


WITH_PORTS = {name for name in PLATFORMS if MACHINES[name].network.port_count is not None}


@pytest.mark.parametrize("name", sorted(set(PLATFORMS) - set(MEASURED) - WITH_PORTS))
def test_rule_node_share(name):
    """All k processes of a node together reach its rate: R_Cb + (k - 1) R_Ci = R_N, with 0 ≤ R_Ci ≤ R_Cb."""
    distance, k = MACHINES[name].network.inter_node, ranks_of_a_node(MACHINES[name])
    source = shipped_values(name)["platform.network.inter_node.max_rate.eager.additional_bandwidth"].source
    assert f"all k = {k:.0f} processes" in source
    for protocol in ("eager", "rendezvous"):
        rate = getattr(distance.injection, protocol).injection_bandwidth
        found = getattr(distance.max_rate, protocol)
        share = (rate - found.base_bandwidth) / (k - 1) if k > 1 else 0.0
        assert_allclose(found.additional_bandwidth, min(max(share, 0), found.base_bandwidth), rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", sorted(set(PLATFORMS) - set(MEASURED)))
def test_node_rate_is_ports_times_their_rate_where_the_source_says_so(name):
    rate = "platform.network.inter_node.injection.rendezvous.injection_bandwidth"
    parameter = shipped_values(name)["platform.network.port_count" if name in WITH_PORTS else rate]
    stated = re.match(r"(\d+) x (\d+) Gb/s: ", parameter.source)
    assert (parameter.grade == "datasheet") == bool(stated)
    if stated:
        known = 1.0 if name in WITH_PORTS else int(stated[2]) * 1e9 / 8
        assert parameter.value == int(stated[1]) * known


@pytest.mark.parametrize("name", [name for name in PARTS if "rule protocols" in part_text(name)])
def test_rule_protocols(name):
    """Latencies exceed that of short messages by overheads; bandwidths are in the ratio of Summit between nodes."""
    summit, part = MACHINES["summit"].network.inter_node.postal, load_part(name)
    bandwidth = part.postal.rendezvous.bandwidth / summit.rendezvous.bandwidth
    for protocol, overhead in (("short", 0.0), ("eager", 0.9e-6), ("rendezvous", 5e-6)):
        found, like = getattr(part.postal, protocol), getattr(summit, protocol)
        assert_allclose(found.latency, part.postal.short.latency + overhead, rtol=1e-5, atol=0)
        assert_allclose(found.bandwidth, bandwidth * like.bandwidth, rtol=1e-5, atol=0)
        for model, key in ((part.max_rate, "base_bandwidth"), (part.injection, "process_bandwidth")):
            other = getattr(model, protocol)
            assert other.latency == found.latency
            assert getattr(other, key, None) in (found.bandwidth, None)
    stated = re.match(r"rule protocols: L = ([\d.]+) us.*R_b = .*?([\d.]+) GB/s", part.sources["*"].source)
    assert_allclose(part.postal.short.latency, float(stated[1]) * 1e-6, rtol=4e-3, atol=0)
    assert_allclose(part.postal.rendezvous.bandwidth, float(stated[2]) * 1e9, rtol=4e-3, atol=0)


@pytest.mark.parametrize("name", [name for name in PARTS if "rule banks" in part_text(name)])
def test_rule_banks(name):
    part = load_part(name)
    lanes = re.search(r"32/\(2 x (\d+)\)", part.sources["peak_shared_rate"].source)
    assert_allclose(part.peak_shared_rate, 32 / (2 * int(lanes[1])) * part.peak_single_rate, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", [name for name in PARTS if "rule integer" in part_text(name)])
def test_rule_integer(name):
    part, v100 = load_part(name), load_part("v100-sxm2-16gb")
    lanes = re.search(r"times (\d+)/(\d+) integer lanes", part.sources["peak_integer_rate"].source)
    assert f"(2 x {lanes[2]})" in part.sources["peak_shared_rate"].source
    scale = int(lanes[1]) / int(lanes[2]) * part.peak_single_rate / v100.peak_single_rate
    assert_allclose(part.peak_integer_rate, scale * v100.peak_integer_rate, rtol=1e-5, atol=0)
    assert_allclose(part.peak_add_rate, scale * v100.peak_add_rate, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", [name for name in PARTS if "rule vector" in part_text(name)])
def test_a_processors_peak_is_cores_times_operations_times_clock(name):
    part = load_part(name)
    cores, operations, clock = re.search(r"(\d+) cores x (\d+) flop x ([\d.]+) GHz", part.sources["*"].source).groups()
    assert part.core_count == int(cores)
    assert_allclose(part.peak_double_rate, int(cores) * int(operations) * float(clock) * 1e9, rtol=1e-12, atol=0)
    assert part.peak_single_rate == 2 * part.peak_double_rate


@pytest.mark.parametrize("name", [name for name in PARTS if "rule thermal design" in part_text(name)])
def test_rules_thermal_design_and_idle_share(name):
    part = load_part(name)
    whole = float(re.match(r"rule thermal design: ([\d.]+) W", part.sources["dynamic_power"].source)[1])
    share, of = re.match(r"rule idle share: 1/(\d) of ([\d.]+) W", part.sources["idle_power"].source).groups()
    assert (int(share), float(of)) == (8 if tomli.loads(part_text(name))["part"] == "gpu" else 3, whole)
    assert_allclose(part.idle_power, whole / int(share), rtol=1e-4, atol=0)
    assert_allclose(part.idle_power + part.dynamic_power, whole, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", MACHINES)
def test_rule_rest_of_node(name):
    node, source = MACHINES[name].node, shipped_values(name)["platform.node.host.power"].source
    devices = float(re.match(r"rule rest of node: 8 % of the ([\d.]+) W of its devices", source)[1])
    more = {
        what: float(power) * float(count) for power, count, what in re.findall(r"([\d.]+) W x ([\d.]+) (\w+)", source)
    }
    assert_allclose(node.host.power, 0.08 * devices + sum(more.values()), rtol=1e-4, atol=0)
    counted = ((node.gpu, node.gpu_count), (node.cpu, node.socket_count))
    # Of a superchip's power, a processor that computes takes what its GPU draws less: only its idle power comes on top.
    superchips = node.gpu is not None and "superchips" in source
    busy = [not (superchips and part is node.cpu) for part, _ in counted]
    powers = [
        part.idle_power + part.dynamic_power * on if part else 0 for (part, _), on in zip(counted, busy, strict=True)
    ]
    drawn = sum(power * count for power, (_, count) in zip(powers, counted, strict=True) if power)
    described_nowhere = re.search(r"x (\d) idle .* of (\d+) W, which are no part", source)
    others = math.prod(map(float, described_nowhere.groups())) if described_nowhere else 0.0
    assert_allclose(drawn, devices - others, rtol=1e-4, atol=0)
    assert "GB" not in more or abs(more["GB"] / (0.375e-9 * node.host.memory_size) - 1) < 1e-4


@pytest.mark.parametrize(("device", "peak_single_rate"), [("v100", 15.7e12), ("p100", 9.3e12)])
def test_rule_banks_gives_the_measured_values(device, peak_single_rate):
    """64 lanes a multiprocessor on both; the peaks are those of the data sheets."""
    lines = (ROOT / "tests" / "data" / "gpuroofperf" / "gpu_params" / f"tesla_{device}.csv").read_text().splitlines()
    cells = dict(zip(*(re.split(r", *", line.replace('"', "")) for line in lines[:2]), strict=True))
    assert_allclose(float(cells["GOPS - SHMEM"]) * 1e9, 32 / (2 * 64) * peak_single_rate, rtol=0.03, atol=0)


# Published peaks of whole machines in flop/s, the devices that were counted, and how far off we may be.
PEAKS = [
    (("titan",), 27112.5e12, "gpu cpu", 0.002),  # TOP500, November 2012
    (("theta",), 11661.312e12, "cpu", 0.005),  # TOP500, June 2021
    (("stampede2", "stampede2_skx"), 18309.222e12, "cpu", 0.006),  # TOP500, June 2021; without its 224 ICX nodes
    (("fugaku",), 537e15, "cpu", 0.001),  # RIKEN, boost mode
    (("el_capitan",), 2746e15, "gpu", 0.01),  # TOP500, November 2024
    (("frontier",), 2e18, "gpu", 0.06),  # OLCF: "approximately 2 exaflops"
    (("summit",), 4608 * 40e12, "gpu", 0.06),  # OLCF: "approximately 40 TF" a node; our rate is a measured one
    (("lassen",), 23047.2e12, "gpu", 0.13),  # TOP500, June 2021, processors included; ours measured
    (("sierra",), 125712e12, "gpu", 0.13),  # TOP500, June 2021, processors included; ours measured
    (("aurora",), 10624 * 127e12, "gpu", 0.05),  # ALCF: all twelve tiles of a node at once, measured
    (("dahu",), 32 * 2150.4e9, "cpu", 1e-9),  # Grid'5000, nominal clock
]


@pytest.mark.parametrize(("names", "published", "counted", "tolerance"), PEAKS)
def test_nodes_times_devices_give_the_published_peak(names, published, counted, tolerance):
    found = 0.0
    for machine in (MACHINES[name] for name in names):
        node = machine.node
        devices = {"gpu": (node.gpu, node.gpu_count), "cpu": (node.cpu, node.socket_count)}
        counts = [devices[kind] for kind in counted.split()]
        found += machine.node_count * sum(device.peak_double_rate * count for device, count in counts)
    assert_allclose(found, published, rtol=tolerance, atol=0)


# Bandwidth of a direction in GB/s as centres and vendors print it.
LINKS = {
    "infinity-fabric-dies": 50,
    "infinity-fabric-host": 36,
    "infinity-fabric-mi300a": 128,
    "infinity-fabric-mi300x": 64,
    "infinity-fabric-mi355x": 76.5,
    "infinity-fabric-mi455x": 128,
    "mi300a-memory": 1769.1,
    "nvlink-c2c": 450,
    "nvlink-c2c-half": 225,
    "nvlink2-3": 75,
    "nvlink3-12": 300,
    "nvlink3-4": 100,
    "nvlink4-18": 450,
    "nvlink4-6": 150,
    "nvlink5-18": 900,
    "nvlink6-18": 1800,
    "ualoe-36": 1800,
    "pcie2-x16": 8,
    "pcie4-x16": 31.5,
    "pcie5-x16": 63,
    "xe-link": 15,
}


@pytest.mark.parametrize("name", [name for name in PARTS if 'part = "link"' in part_text(name)])
def test_lanes_and_links_give_the_published_bandwidth(name):
    link = load_part(name)
    if link.kind == "pcie":
        found = pcie_bandwidth(np.float64(link.lane_count), np.float64(link.generation))
    else:
        found = link.link_count * link.lane_count * link.lane_bandwidth
    assert_allclose(found, LINKS[name] * 1e9, rtol=0.002, atol=0)


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_machine_knows_what_each_message_model_needs_between_nodes(name):
    distance = MACHINES[name].network.inter_node
    assert None not in (distance.postal, distance.max_rate, distance.injection)


# Between them they have kernels, copies over the host link, and halos by two of the message models.
@pytest.mark.parametrize("scenario", ["jacobi2d_strong", "minife_gpus_per_node"])
@pytest.mark.parametrize("name", WITH_GPUS)
def test_every_machine_with_gpus_has_an_answer(name, scenario):
    # Bridges has 64 GPUs, too few for the ranks of most scenarios.
    overrides = {"application.rank_count": "64"} if name == "bridges" else {}
    evaluation = evaluate(Scenario.open(scenario, platform=name, overrides=overrides).program)
    assert evaluation.reasons() == ()
    assert 0 < float(evaluation.column("iteration_time")) < 10


def test_perlmutter_with_h200_is_three_lines(tmp_path):
    lines = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    assert len(lines.splitlines()) == 3
    (tmp_path / "mine.toml").write_text(lines)
    parameters = values("mine", folders=(tmp_path,))
    assert parameters["platform.node.gpu.dram_bandwidth"].value == 4.258e12
    assert parameters["platform.node_count"].value == MACHINES["perlmutter"].node_count
    assert unsourced(parameters) == []


def table_of_machines():
    head = "| machine | file | nodes | a node | double | memory | size | node rate | m / d / a |\n"
    return head + "|---|---|---:|---|---:|---:|---:|---:|---:|\n" + "".join(row(name) for name in PLATFORMS)


def list_of_parts():
    kinds = {kind: [name for name in PARTS if f'part = "{kind}"' in part_text(name)] for kind in TABLES}
    return "".join(f"- {kind}: {', '.join(f'`{name}`' for name in names)}\n" for kind, names in kinds.items() if names)


def row(name):
    machine, node = MACHINES[name], MACHINES[name].node
    device, count = (node.gpu, node.gpu_count) if node.gpu else (node.cpu, node.socket_count)
    bandwidth, size = (
        (node.gpu.dram_bandwidth, node.gpu.memory_size)
        if node.gpu
        else (node.host.memory_bandwidth, node.host.memory_size)
    )
    grades = Counter(parameter.grade for parameter in shipped_values(name).values())
    rate = machine.network.inter_node.injection.rendezvous.injection_bandwidth * (machine.network.port_count or 1)
    cells = (
        *(machine.name, f"`{name}`", f"{machine.node_count:,.0f}", f"{count:.0f} x {device.name}"),
        format_quantity(device.peak_double_rate, FLOP_PER_SECOND, 3),
        format_quantity(bandwidth, BYTE_PER_SECOND, 3),
        format_quantity(size, BYTE, 3),
        format_quantity(rate, BYTE_PER_SECOND, 3),
        " / ".join(str(grades[grade]) for grade in GRADES),
    )
    return f"| {' | '.join(cells)} |\n"


def test_the_tables_of_the_page_are_those_of_the_files():
    assert_shown(PAGE, "machines", f"{table_of_machines()}\nThe parts:\n\n{list_of_parts()}")
