"""New scenarios: machines of parts, phases from motifs and files, measured runs, and files that are not overwritten."""

import shutil
from pathlib import Path

import pytest
import tomli

import whatif
from tests.paths import DATA
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.files.machine_template import MachineParts
from whatif.schema.load import load_platform, load_platform_document
from whatif.schema.shipped import shipped_names
from whatif.studies.machine_form import machine_form, machine_of, machine_problems
from whatif.studies.new_scenario import named_phases
from whatif.units import parse_quantity

TRACE = DATA / "traces" / "goal" / "binary_tree_32.goal"
PROFILE = DATA / "profiles" / "nsys" / "saxpy_a100.sqlite"
RUNS = "nodes,ranks,time [s],user\n1,4,1.2,me\n2,8,1.4,me\n4,16,1.9,me\n"
PARTS = {"gpu": "h100-sxm5-80gb", "gpus_per_node": 4, "network": "slingshot-11", "ports_per_node": 4, "node_count": 8}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def application(made):
    return tomli.loads(made.text)["application"]


def test_a_machine_of_parts_is_a_complete_platform_beside_the_scenario(tmp_path):
    whatif.new("mine", **PARTS, processor="epyc-9755", sockets_per_node=2, phases=["stencil", "allreduce"]).write()
    machine = load_platform(tmp_path / "mine_machine.toml")[0]
    assert (machine.node_count, machine.node.gpu_count, machine.node.socket_count) == (8, 4, 2)
    assert machine.network.port_count == 4
    assert machine.node.gpu.name == "H100-SXM5-80GB"
    assert machine.node.cpu.name == "EPYC 9755"
    assert machine.network.inter_node.eager_limit == 16 * 1024
    result = whatif.run(tmp_path / "mine.toml")
    assert float(result["iteration_time"]) > 0
    assert {file.kind for file in whatif.check(tmp_path / "mine.toml", tmp_path / "mine_machine.toml").files} == {
        "scenario", "platform",
    }  # fmt: skip


def test_values_that_are_not_given_are_assumed_or_those_of_a_machine_with_the_same_part():
    machine = MachineParts("h100-sxm5-80gb", processor="epyc-9755").document("m")
    assert machine.data["node"]["host_link"] == {"extends": "pcie5-x16"}
    assert machine.data["node"]["peer_link"] == {"extends": "nvlink4-18"}
    assert {source["grade"] for source in machine.data["sources"].values()} == {"assumed"}
    assert load_platform_document(machine)[0].node.host.memory_bandwidth == 576e9


@pytest.mark.parametrize(
    ("gpu", "gpus_per_node", "shipped"),
    [
        ("h100-sxm5-80gb", 8, "dgx_h100"),
        ("h200-sxm", 8, "aws_p5e"),
        ("a100-sxm4-40gb", 4, "perlmutter"),
        ("a100-sxm4-40gb", 8, "dgx_a100"),
        ("a100-sxm4-80gb", 8, "dgx_a100"),
        ("gb200", 4, "gb200_nvl72"),
        ("mi325x", 8, "mi300x_node"),
        ("mi250x-gcd", 8, "frontier"),
    ],
)
def test_links_between_gpus_of_parts_are_those_of_a_shipped_machine(gpu, gpus_per_node, shipped):
    whatif.new("m", gpu=gpu, gpus_per_node=gpus_per_node, node_count=18, phases=["allreduce"]).write()
    phase = "application.phases.allreduce"
    sent = {f"{phase}.model": "nccl", f"{phase}.message_size": "1 GiB", "application.rank_count": gpus_per_node}
    times = [float(whatif.run("m.toml", platform=name, overrides=sent)["iteration_time"]) for name in (None, shipped)]
    assert times[0] == pytest.approx(times[1], rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("gpu", "gpus_per_node", "node_count", "link", "domain"),
    [
        ("mi355x", 8, 2, "infinity-fabric-mi355x", None),
        ("gb200", 4, 36, "nvlink5-18", 72),
        ("gb200", 4, 2, "nvlink5-18", 8),
        ("v100-sxm2-16gb", 4, 2, "nvlink2-3", 2),
        ("v100-sxm2-16gb", 1, 2, "nvlink2-3", None),
        ("l40s", 4, 2, None, None),
    ],
)
def test_link_domains_of_parts(gpu, gpus_per_node, node_count, link, domain):
    node = MachineParts(gpu, gpus_per_node, node_count=node_count).document("m").data["node"]
    assert (node.get("peer_link", {}).get("extends"), node.get("domain_gpu_count")) == (link, domain)


@pytest.mark.parametrize(
    ("gpu", "sockets", "network", "ports", "shipped"),
    [
        ("mi300a", 4, "slingshot-11", 4, "el_capitan"),
        ("rubin", 2, "infiniband-800", 8, "vera_rubin_nvl72"),
        ("gb200", 2, "infiniband-400", 4, "gb200_nvl72"),
    ],
)
def test_a_superchip_brings_its_processor_and_main_memory(gpu, sockets, network, ports, shipped):
    parts = {"gpus_per_node": 4, "sockets_per_node": sockets, "network": network, "ports_per_node": ports}
    whatif.new("m", gpu=gpu, **parts, node_count=18, phases=["transfer"]).write()
    pageable = {"application.phases.transfer.memory": "pageable"}
    made, known = (whatif.run("m.toml", platform=name, overrides=pageable) for name in (None, shipped))
    for result in ("iteration_time", "iteration_energy"):
        assert float(made[result]) == pytest.approx(float(known[result]), rel=1e-5, abs=0)


def test_a_stated_processor_of_a_superchip_brings_its_own_memory():
    machine = load_platform_document(MachineParts("mi300a", processor="epyc-9755").document("m"))[0]
    assert (machine.node.cpu.name, machine.node.host.memory_bandwidth) == ("EPYC 9755", 576e9)


def test_tiles_of_parts_share_the_link_of_their_gpu():
    assert MachineParts("max-1550-tile").document("m").data["node"]["host_link"]["device_count"] == 2


@pytest.mark.parametrize("gpu", ["", "k20x", "l40s", "mi300a", "max-1550-tile", "gb300"])
@pytest.mark.parametrize("processor", ["", "a64fx", "grace"])
def test_parts_of_any_kind_go_together(gpu, processor):
    made = whatif.new("m", gpu=gpu or None, processor=processor or None, node_count=2, phases=["cg"])
    made.write()
    assert float(whatif.run("m.toml")["iteration_time"]) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "h100"}, "`h100`: no GPU of this name; did you mean `h100-sxm5-80gb`"),
        ({"processor": "epyc"}, "no processor of this name; did you mean"),
        ({"network": "infiniband-ndr"}, "did you mean `infiniband-400`?"),
        ({"network": "NDR"}, "did you mean `infiniband-400`?"),
        ({"network": "nowhere"}, "no network of this name; known: aries"),
        ({"gpu": "epyc-9755"}, "no GPU of this name"),
        ({"gpu": "k20", "network": "NDR"}, "did you mean `k20x`.*\n.*did you mean `infiniband-400`?"),
        ({"gpus_per_node": 4}, "no effect without a gpu"),
        ({"node_count": 0}, "0 nodes: expected a whole number of at least 1"),
        ({"platform": "summit", "gpu": "k20x"}, "exclude each other"),
        ({"platform": "sumit"}, "did you mean `summit`"),
        ({"phases": ["stencle"]}, "no such motif, scenario or file; did you mean `stencil`"),
        ({"phases": ["2=stencil"]}, "a name must start with a letter"),
        ({"platform": "turin", "phases": ["gemm"]}, "GPU"),
        ({"runs": "none.csv"}, "none.csv: no such file of runs"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_probably_meant(options, message):
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.new("mine", **options)


@pytest.mark.parametrize("taken", ["mine.toml", "mine_machine.toml"])
def test_no_file_is_overwritten_and_none_is_written_then(tmp_path, taken):
    (tmp_path / taken).write_text("# mine\n")
    with pytest.raises(UsageError, match=rf"{taken}: exists already"):
        whatif.new("mine", **PARTS).write()
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "# mine\n"


@pytest.mark.parametrize("platform", shipped_names("platforms"))
def test_a_new_scenario_asks_for_no_more_ranks_than_the_machine_has(platform):
    made = whatif.new("mine", platform=platform)
    scenario = Scenario.of(tomli.loads(made.text))
    ranks = application(made)["rank_count"]
    assert 1 <= ranks <= 16
    assert not whatif.run(scenario).obstacle()


def test_ranks_of_a_small_machine():
    assert application(whatif.new("m", gpu="k20x", gpus_per_node=2, node_count=3))["rank_count"] == 6


def test_phases_are_named_after_their_sources_or_as_stated():
    found = named_phases(["stencil", "stencil", "sum=allreduce", "minife:dot", "runs/a.b.sqlite"])
    assert found == (
        ("stencil", "stencil"), ("stencil_2", "stencil"), ("sum", "allreduce"), ("dot", "minife:dot"),
        ("a", "runs/a.b.sqlite"),
    )  # fmt: skip


def test_a_profile_gives_ranks_and_iterations_as_import_does(tmp_path):
    shutil.copy(PROFILE, tmp_path)
    made = whatif.new("mine", platform="perlmutter", phases=[f"gpu={PROFILE.name}", "allreduce"])
    imported = tomli.loads(whatif.import_profile(PROFILE.name, platform="perlmutter").to_toml())["application"]
    table = application(made)
    assert (table["rank_count"], table["iteration_count"]) == (imported["rank_count"], imported["iteration_count"])
    found = {name.removeprefix("gpu_"): phase for name, phase in table["phases"].items() if name != "allreduce"}
    assert found == imported["phases"]


def test_a_trace_gives_its_ranks(tmp_path):
    shutil.copy(TRACE, tmp_path)
    made = whatif.new("mine", gpu="k20x", node_count=64, phases=[TRACE.name])
    made.write()
    assert application(made)["rank_count"] == 32
    assert float(whatif.run("mine.toml")["iteration_time"]) > 0


def test_runs_give_ranks_and_nodes_and_can_be_calibrated(tmp_path):
    (tmp_path / "scaling.csv").write_text(RUNS)
    made = whatif.new("mine", **PARTS, phases=["stencil"], runs="scaling.csv")
    made.write()
    table = application(made)
    assert (table["rank_count"], table["ranks_per_node"]) == (16, 4)
    assert tomli.loads(made.text)["runs"] == "mine_runs.csv"
    lines = (tmp_path / "mine_runs.csv").read_text().splitlines()
    assert lines[1:3] == ["rank_count,total_time [s],ranks_per_node", "4,1.2,4"]
    assert [note.partition(": ")[2] for note in made.notes] == [
        "`nodes` is used with the ranks: `ranks_per_node`",
        "`ranks` is taken as `rank_count`",
        "`time [s]` is taken as `total_time`",
        "`user` is left out",
    ]
    assert len(whatif.validate("mine.toml").table()) == 3
    assert whatif.calibrate("mine.toml").values


def test_runs_of_no_stated_machine_are_refused(tmp_path):
    (tmp_path / "scaling.csv").write_text("ranks,time [s]\n4,1\n")
    with pytest.raises(UsageError, match="runs: state the machine of the runs"):
        whatif.new("mine", runs=tmp_path / "scaling.csv")


def test_runs_that_fit_as_they_are_are_not_copied(tmp_path):
    (tmp_path / "mine.csv").write_text("rank_count,iteration_time [us]\n2,100\n8,120\n")
    made = whatif.new("mine", platform="summit", phases=["stencil"], runs="mine.csv")
    assert [path.name for path in made.files] == ["mine.toml"]
    assert tomli.loads(made.text)["runs"] == "mine.csv"
    assert application(made)["rank_count"] == 8
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    assert [path.name for path in whatif.new(elsewhere / "mine", platform="summit", runs="mine.csv").files] == [
        "mine_runs.csv", "mine.toml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes,time [s]\n1,2\n", "`nodes` needs a column of the ranks"),
        ("ranks,nodes,time [s]\n4,3,1\n", "scaling.csv:2.*4 ranks do not fill 3 nodes evenly"),
        ("ranks,nodes,time [s]\n4,0,1\n", "do not fill 0 nodes"),
        ("ranks,time\n4,1\n", "is a number without a unit; it must be in s: `total_time \\[s\\]`"),
        ("ranks,time [s],runtime [s]\n4,1,1\n", "runtime .s.: a second column of `total_time`"),
        ("ranks,rank_count,time [s]\n4,8,1\n", "rank_count: a second column of `rank_count`"),
        ("rank_count,ranks,time [s]\n4,8,1\n", "ranks: a second column of `rank_count`"),
        ("ranks,user\n4,me\n", "no measured result among the columns"),
        ("time [s]\n4\n", "no parameter among the columns"),
        ("ranks,time [s]\n", "no runs"),
    ],
)
def test_runs_that_cannot_be_used_are_refused_with_the_reason(tmp_path, text, message):
    (tmp_path / "scaling.csv").write_text(text)
    with pytest.raises(InvalidFileError, match=message):
        whatif.new("mine", platform="summit", runs="scaling.csv")


def test_the_machine_of_a_form_is_that_of_its_texts():
    fields = machine_form("mine_machine")
    texts = {field.path: field.text for field in fields}
    assert machine_problems(fields, texts) == {}
    assert machine_of(texts) == MachineParts(node_count=16)
    typed = {
        **texts,
        "gpu": "k20x",
        "gpus_per_node": "2",
        "processor": "grace",
        "network": "aries",
        "ports_per_node": "2",
    }
    assert machine_of(typed) == MachineParts("k20x", 2, "grace", 1, "aries", 2, 16)


@pytest.mark.parametrize(
    ("typed", "path", "message"),
    [
        ({"gpu": "h100"}, "gpu", "did you mean `h100-sxm5-80gb`"),
        ({"gpus_per_node": "0"}, "gpus_per_node", "at least 1"),
        ({"node_count": "1.5"}, "node_count", "whole number"),
        ({"node_count": ""}, "node_count", "is required"),
        ({"name": "taken"}, "name", "taken.toml exists already"),
        ({"name": "a/b"}, "name", "the name of a machine holds only ASCII letters"),
    ],
)
def test_a_wrong_text_of_the_form_of_a_machine_is_told_at_its_field(typed, path, message):
    fields = machine_form("mine_machine")
    Path("taken.toml").write_text("")
    found = machine_problems(fields, {**{field.path: field.text for field in fields}, **typed}, (), Path())
    assert list(found) == [path]
    assert message in found[path]


@pytest.mark.parametrize(
    ("network", "ports", "shipped"),
    [("efa-100", 32, "aws_p5"), ("tofu-d", 6, "fugaku"), ("infiniband-400", 8, "dgx_h100")],
)
def test_ports_of_parts_have_the_rates_of_a_shipped_machine(network, ports, shipped):
    machine = MachineParts("h100-sxm5-80gb", network=network, ports_per_node=ports).document("m")
    own, theirs = (found[0].network.inter_node for found in (load_platform_document(machine), load_platform(shipped)))
    assert own.injection.rendezvous == theirs.injection.rendezvous


@pytest.mark.parametrize(
    ("parts", "shipped"),
    [
        (("h100-sxm5-80gb", 8, "xeon-platinum-8480c", 2, "infiniband-400", 8), "dgx_h100"),
        (("a100-sxm4-40gb", 4, "epyc-7763", 1, "slingshot-11", 4), "perlmutter"),
        (("mi250x-gcd", 8, "epyc-7a53", 1, "slingshot-11", 4), "frontier"),
        (("gh200-96gb", 4, "grace", 4, "slingshot-11", 4), "alps"),
        (("mi300a", 4, "epyc-7a53", 1, "slingshot-11", 4), "el_capitan"),
        (("", 1, "grace", 2, "infiniband-400", 1), "grace_grace"),
        (("", 1, "xeon-platinum-8160", 2, "omni-path-100"), "stampede2_skx"),
    ],
)
def test_the_rest_of_a_node_of_parts_draws_what_that_of_a_shipped_machine_does(parts, shipped):
    own, theirs = (
        spec.node.host.power
        for spec, _ in (load_platform_document(MachineParts(*parts).document("m")), load_platform(shipped))
    )
    assert own == pytest.approx(theirs, rel=0.4, abs=0)


def test_memory_of_a_machine_of_parts_grows_with_its_cores_or_gpus(tmp_path):
    cases = (("", 1, "epyc-9654", 2), ("", 1, "a64fx", 2), ("a100-sxm4-40gb", 8), ("a100-sxm4-40gb", 16), ("l40s", 4))
    hosts = [load_platform_document(MachineParts(*parts).document("m"))[0].node.host for parts in cases]
    assert [host.memory_size for host in hosts] == [192 * 4e9, 2**36, 1152 * 2**30, 2304 * 2**30, 64e9]
    (tmp_path / "own.toml").write_text('part = "cpu"\nname = "Own"\ncore_count = 8\npeak_double_rate = "1 Tflop/s"\n')
    own = MachineParts(processor="own").document("m", [tmp_path]).data["node"]["host"]
    assert own == {"memory_size": "32 GB"}


@pytest.mark.parametrize("network", ["", "aries", "infiniband-400", "omni-path-100", "infiniband-edr-dual"])
@pytest.mark.parametrize("size", ["16 MiB", "64 MiB"])
def test_processes_of_a_node_of_parts_share_the_line_of_its_port(network, size):
    """Each of two nodes sends half of the data of its 256 ranks, in eager or rendezvous messages."""
    machine = MachineParts("", 1, "epyc-9755", 2, network, 1, 2).document("m")
    line = load_platform_document(machine)[0].network.inter_node.line_bandwidth
    assert 0.5 * line < _rate_of_exchange(machine.text, size) < 1.02 * line


@pytest.mark.parametrize("size", ["16 MiB", "64 MiB"])
@pytest.mark.parametrize(("sockets", "cores"), [(1, 256), (2, 128)])
def test_processes_of_a_node_that_extends_the_generic_one_share_the_line_of_its_port(size, sockets, cores):
    node = f"node_count = 2\nnode.socket_count = {sockets}\nnode.cpu.core_count = {cores}\n"
    rate = _rate_of_exchange(f'extends = "generic_cpu"\nname = "M"\n{node}', size)
    assert 0.5 * 12.5e9 < rate < 1.02 * 12.5e9


def _rate_of_exchange(machine: str, size: str) -> float:
    """Bandwidth of what leaves each of two nodes of 256 ranks in an all-to-all."""
    Path("m.toml").write_text(machine)
    phase = {"kind": "collective", "operation": "alltoall", "algorithm": "pairwise", "model": "max_rate"}
    phases = {"all": {**phase, "message_size": size}}
    application = {"name": "A", "rank_count": 512, "iteration_count": 1, "phases": phases}
    time = float(whatif.run(Scenario.of(application=application, platform=Path("m.toml")))["iteration_time"])
    return 256 * parse_quantity(size).value / 2 / time
