"""A part in place of another: what follows it, what a file keeps, and what is said of it."""

from __future__ import annotations

import pytest

from whatif.core.context import Context
from whatif.core.evaluate import evaluate
from whatif.core.kept_values import kept_value_notes
from whatif.core.scenario import Scenario
from whatif.core.wiring import Wiring
from whatif.errors import InvalidFileError
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import parse_document

NETWORK = "platform.network.inter_node.extends"
PROCESSOR = "platform.node.cpu.extends"
LINK = "platform.network.topology.bandwidth"
MEMORY = "platform.node.host.memory_bandwidth"
APPLICATION = '[application]\nname = "A"\niteration_count = 1\nrank_count = '
HALO = (
    f'{APPLICATION}64\n[application.grid]\nscaling = "weak"\ncells = {{ x = 512, y = 512, z = 512 }}\n'
    '[application.phases.p]\nkind = "halo"\nmodel = "max_rate"\nneighbours = "faces"\n'
)
EXCHANGE = (
    f'{APPLICATION}64\n[application.phases.p]\nkind = "collective"\noperation = "alltoall"\nalgorithm = "pairwise"\n'
    'model = "max_rate"\nmessage_size = "64 MiB"\n'
)
KERNEL = (
    f'{APPLICATION}2\nranks_per_node = 2\n[application.phases.p]\nkind = "kernel"\nmodel = "roofline"\n'
    'dominant_operation = "fp_64"\nmetrics_per = "rank"\noperations = "1 flop"\ndram_size = "1 GB"\n'
)
OWN = {"processor": 'part = "cpu"\nname = "Own"\ncore_count = 128\npeak_double_rate = "1 Tflop/s"\n'}


def program(text, machine, folder=None, **overrides):
    document = parse_document(f'platform = "{machine}"\n{text}', "s.toml", folder)
    return Scenario(document, overrides={path.replace("__", "."): value for path, value in overrides.items()}).program


def at(text, machine, overrides, *columns, folder=None):
    scenario = Scenario(parse_document(f'platform = "{machine}"\n{text}', "s.toml", folder), overrides=overrides)
    found = evaluate(scenario.program)
    return [float(found.values[name]) for name in columns or ("p",)]


def notes(text, machine, overrides, folder=None):
    document = parse_document(f'platform = "{machine}"\n{text}', "s.toml", folder)
    return list(kept_value_notes(Scenario(document, overrides=overrides).program))


def test_halo_on_a_faster_network_is_not_limited_by_the_links_of_the_former_one():
    """Four ports of 100 GB/s carry all that four processes send, so that nothing waits for a link."""
    without = {"application.congestion": "none"}
    for part in ("infiniband-400", "infiniband-800"):
        times = [at(HALO, "perlmutter", {NETWORK: part, **more})[0] for more in ({}, without)]
        assert times[0] == pytest.approx(times[1], rel=1e-9)


@pytest.mark.parametrize("ports", ["8", "16"])
def test_an_exchange_follows_ports_and_their_rate(ports):
    times = [
        at(EXCHANGE, "dgx_h100", {NETWORK: f"infiniband-{rate}", "platform.network.port_count": ports})[0]
        for rate in (400, 800)
    ]
    assert times[1] < 0.7 * times[0]


def test_links_of_a_node_are_all_its_ports():
    overrides = {NETWORK: "infiniband-800", "platform.network.port_count": "16"}
    assert at(HALO, "perlmutter", overrides, LINK) == [1.6e12]
    assert at(HALO, "perlmutter", overrides, "platform.network.topology.global_bandwidth") == [1e11]
    assert at(HALO, "perlmutter", overrides | {LINK: "300 GB/s"}, LINK) == [3e11]


def test_links_of_a_torus_are_those_of_one_port():
    assert at(HALO, "fugaku", {"application.ranks_per_node": "4"}, LINK) == [6.8e9]
    assert at(HALO, "fugaku", {"application.ranks_per_node": "4", NETWORK: "infiniband-200"}, LINK) == [25e9]


def test_links_without_ports_have_the_line_of_the_whole_node():
    assert at(HALO, "summit", {}, LINK) == [25e9]
    assert at(HALO, "summit", {NETWORK: "infiniband-400"}, LINK) == [50e9]


def test_links_of_a_part_without_a_line_must_be_stated(tmp_path):
    (tmp_path / "own.toml").write_text(
        'part = "distance"\nshort_limit = "1 kB"\neager_limit = "8 kB"\n[max_rate]\n'
        'short = { latency = "1 us", bandwidth = "1 GB/s" }\n'
        'eager = { latency = "1 us", base_bandwidth = "2 GB/s", additional_bandwidth = "0 GB/s" }\n'
        'rendezvous = { latency = "1 us", base_bandwidth = "9 GB/s", additional_bandwidth = "0 GB/s" }\n'
    )
    with pytest.raises(InvalidFileError, match=r"topology: missing `bandwidth`; or state .*inter_node.line_bandwidth"):
        at(HALO, "perlmutter", {NETWORK: "own"}, folder=tmp_path)
    assert at(HALO, "perlmutter", {NETWORK: "own", LINK: "36 GB/s"}, LINK, folder=tmp_path) == [36e9]


def test_links_that_a_file_states_are_kept_with_a_warning(tmp_path):
    text = 'extends = "perlmutter"\nname = "Mine"\nnetwork.topology.bandwidth = "100 GB/s"\n'
    (tmp_path / "mine.toml").write_text(text)
    assert notes(HALO, "mine", {}, tmp_path) == []
    assert at(HALO, "mine", {NETWORK: "infiniband-800"}, LINK, folder=tmp_path) == [100e9]
    assert notes(HALO, "mine", {NETWORK: "infiniband-800"}, tmp_path) == [
        "warning: platform.network.inter_node.extends = infiniband-800, but platform.network.topology.bandwidth "
        "remains 100 GB/s, as stated for another part"
    ]


@pytest.mark.parametrize(
    ("processor", "peak"),
    [
        ("epyc-9654", 460.8),
        ("epyc-9755", 576),
        ("epyc-9965", 576),
        ("xeon-6980p", 844.8),
        ("xeon-platinum-8480c", 307.2),
    ],
)
def test_a_kernel_on_another_processor_has_its_memory(processor, peak):
    """Two ranks use all memory of two sockets: 1 GB each at three quarters of the peak of the data sheet."""
    (time,) = at(KERNEL, "turin", {PROCESSOR: processor})
    assert time == pytest.approx(1 / (0.75 * peak), rel=1e-3)


@pytest.mark.parametrize("processor", [name for name in shipped_names("parts") if name.startswith(("epyc", "xeon"))])
def test_no_shipped_processor_has_the_memory_of_the_former_one(processor):
    assert notes(KERNEL, "turin", {PROCESSOR: processor}) == []


def test_memory_that_a_machine_or_the_user_states_has_precedence(tmp_path):
    text = 'extends = "turin"\nname = "M"\nnode.cpu.extends = "epyc-9654"\nnode.host.memory_bandwidth = "400 GB/s"\n'
    (tmp_path / "mine.toml").write_text(text)
    assert at(KERNEL, "mine", {}, MEMORY, folder=tmp_path) == [400e9]
    assert at(KERNEL, "mine", {PROCESSOR: "epyc-9965"}, MEMORY, folder=tmp_path) == [576e9]
    assert at(KERNEL, "turin", {PROCESSOR: "epyc-9965", MEMORY: "614 GB/s"}, MEMORY) == [614e9]
    # The rest of the table is that of the machine.
    assert at(KERNEL, "turin", {PROCESSOR: "epyc-9654"}, "platform.node.host.power") == [681]


def test_memory_of_a_processor_has_the_source_of_its_part():
    found = program(KERNEL, "turin", platform__node__cpu__extends="epyc-9654").parameters[MEMORY]
    assert (found.grade, found.source) == (
        "assumed",
        "vendor figure, page not retrieved: twelve DDR5-4800 channels a socket",
    )


def test_a_processor_without_a_data_sheet_of_its_memory_keeps_the_former_one_with_a_warning(tmp_path):
    (tmp_path / "own.toml").write_text(OWN["processor"])
    assert notes(KERNEL, "turin", {PROCESSOR: "own"}, tmp_path) == [
        "warning: platform.node.cpu.extends = own, but platform.node.host.memory_bandwidth remains 576 GB/s, "
        "as stated for another part"
    ]
    (tmp_path / "own.toml").write_text(OWN["processor"] + 'memory_bandwidth = "300 GB/s"\n')
    assert notes(KERNEL, "turin", {PROCESSOR: "own"}, tmp_path) == []
    (tmp_path / "own.toml").write_text(OWN["processor"] + '[host]\nmemory_bandwidth = "300 GB/s"\n')
    assert notes(KERNEL, "turin", {PROCESSOR: "own"}, tmp_path) == []
    assert at(KERNEL, "turin", {PROCESSOR: "own"}, MEMORY, folder=tmp_path) == [300e9]


def test_an_unknown_key_of_the_memory_is_reported_in_the_part(tmp_path):
    (tmp_path / "own.toml").write_text(OWN["processor"] + '[host]\nmemory_size = "64 GB"\n')
    with pytest.raises(InvalidFileError, match=r"own.toml:6:1: host.memory_size: `memory_size`: unknown key"):
        at(KERNEL, "turin", {PROCESSOR: "own"}, folder=tmp_path)


def test_a_host_part_beside_a_processor_is_the_memory(tmp_path):
    (tmp_path / "memory.toml").write_text('part = "host"\nmemory_bandwidth = "1 TB/s"\nmemory_size = "1 TB"\n')
    text = 'extends = "turin"\nname = "M"\nnode.host.extends = "memory"\nnode.cpu.extends = "epyc-9654"\n'
    (tmp_path / "mine.toml").write_text(text)
    assert at(KERNEL, "mine", {}, MEMORY, folder=tmp_path) == [1e12]


SUM = (
    f'{APPLICATION}4\n[application.phases.p]\nkind = "collective"\nalgorithm = "ring"\nmodel = "max_rate"\n'
    'message_size = "16 MiB"\n'
)
GPUS = 'node.gpu.extends = "a100-sxm4-40gb"\nnode.gpu_count = 4\n'
LINKS = 'node.peer_link.extends = "nvlink3-4"\n'


@pytest.mark.parametrize(
    ("machine", "lines", "buffers"),
    [
        ("generic_cpu", GPUS + LINKS, "device"),
        ("generic_cpu", GPUS, "host"),
        ("lassen", "", "host"),
        ("lassen", LINKS, "device"),
        ("lassen", 'node.peer_link.lane_bandwidth = "50 Gbit/s"\n', "host"),
        ("perlmutter", f'{LINKS}network.intra_socket.extends = "infiniband-100"\n', "host"),
        ("perlmutter", 'network.intra_socket.extends = "infiniband-100"\n', "device"),
    ],
)
def test_host_messages_count_in_the_file_that_states_the_links(tmp_path, machine, lines, buffers):
    (tmp_path / "mine.toml").write_text(f'extends = "{machine}"\nname = "Mine"\n{lines}')
    found = program(SUM, "mine", tmp_path)
    assert Context(Wiring(found.loaded, found.parameters)).buffers == buffers


def test_what_a_library_of_gpus_needs_is_named():
    library = SUM.replace('"max_rate"', '"nccl"')
    with pytest.raises(InvalidFileError, match=r'memory of GPUs: state `application.buffers = "device"`$'):
        program(library, "lassen")
    with pytest.raises(InvalidFileError, match=r"memory of GPUs: Titan needs `\[platform.node.peer_link\]`$"):
        program(library, "titan")


GPU = "platform.node.gpu.extends"
PEER = "platform.node.peer_link.extends"


@pytest.mark.parametrize(
    ("machine", "overrides", "kept"),
    [
        ("dgx_a100", {GPU: "h100-sxm5-80gb"}, ["node.gpu", "node.peer_link remains nvlink3-12"]),
        ("dgx_a100", {GPU: "h100-sxm5-80gb", PEER: "nvlink4-18"}, []),
        ("dgx_a100", {"platform.node.gpu.memory_size": "80 GB"}, []),
        ("dgx_a100", {PEER: "nvlink3-12"}, []),
        ("gb200_nvl72", {PEER: "nvlink4-18"}, ["node.peer_link", "node.domain_gpu_count remains 72"]),
        ("gb200_nvl72", {PEER: "nvlink4-18", "platform.node.domain_gpu_count": "4"}, []),
        ("aws_p5e", {}, []),
    ],
)
def test_links_of_another_gpu_and_domains_of_another_link_are_kept_with_a_warning(machine, overrides, kept):
    found = notes(SUM, machine, {"application.buffers": "device", **overrides})
    table, rest = kept or ("", "")
    assert [note for note in found if "price" not in note] == [
        f"warning: platform.{table}.extends = {overrides.get(f'platform.{table}.extends')}, but platform.{rest}, "
        "as stated for another part"
    ] * bool(kept)


def test_links_that_no_result_depends_on_are_kept_without_a_warning():
    assert notes(SUM, "dgx_a100", {GPU: "h100-sxm5-80gb", "application.buffers": "host"}) == []


def test_the_link_to_the_host_and_the_price_of_another_gpu_are_kept_with_a_warning():
    copy = (
        f'{APPLICATION}8\n[application.phases.p]\nkind = "transfer"\ndirection = "host_to_device"\n'
        'transfer_size = "1 GB"\n'
    )
    lead, end = f"warning: {GPU} = gh200-96gb, but platform.", ", as stated for another part"
    found = notes(copy, "aws_p5", {GPU: "gh200-96gb"})
    assert found == [f"{lead}node.host_link remains pcie5-x16{end}", f"{lead}price remains{end}"]
    assert notes(copy, "aws_p5", {GPU: "gh200-96gb", "platform.price.node_rate": "90 USD/h"}) == found[:1]


@pytest.mark.parametrize(
    ("machine", "gpu"),
    [
        ("dgx_h100", "h100-sxm5-80gb"),
        ("dgx_h100", "h200-sxm"),
        ("dgx_a100", "a100-sxm4-80gb"),
        ("summit", "v100-sxm2-16gb"),
    ],
)
def test_links_that_go_with_the_other_gpu_are_kept_without_a_warning(machine, gpu):
    assert notes(SUM, machine, {GPU: gpu, "application.buffers": "device"}) == []


@pytest.mark.parametrize("machine", shipped_names("platforms"))
def test_no_shipped_machine_keeps_a_value_of_another_part(machine):
    assert notes(SUM, machine, {}) == []


def test_the_power_of_the_rest_of_a_node_of_other_devices_is_kept_with_a_warning(tmp_path):
    lines = f'extends = "generic_cpu"\nname = "M"\n{GPUS}{LINKS}'
    (tmp_path / "mine.toml").write_text(lines)
    # Four A100 of 400 W and the generic processor of 150 W.
    assert notes(SUM, "mine", {}, tmp_path) == [
        "warning: platform.node.host.power remains 61 W, less than 8% of the power of its devices, 140 W "
        "(docs/machines.md, rest of node)"
    ]
    assert notes(SUM, "mine", {"platform.node.host.power": "100 W"}, tmp_path) == []
    (tmp_path / "mine.toml").write_text(f'{lines}node.host.power = "100 W"\n')
    assert notes(SUM, "mine", {}, tmp_path) == []
    assert notes(SUM, "dgx_a100", {GPU: "a100-sxm4-80gb"}) == []
