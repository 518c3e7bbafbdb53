"""Lists to choose from: platforms, parts and values, with descriptions."""

from pathlib import Path

import pytest

from whatif.core.parts_in_use import parts_in_use
from whatif.core.scenario import Scenario
from whatif.schema.shipped import shipped_names
from whatif.studies.choice_lists import part_choices, platform_choices, value_choices

SCENARIO = Scenario.open("jacobi2d")


def test_platform_choices_state_nodes_devices_power_and_price():
    choices = dict(platform_choices(SCENARIO))
    assert list(choices) == list(shipped_names("platforms"))
    assert choices["frontier"].startswith(
        "9,856 nodes, 8 x MI250X (one graphics compute die) of 280 W, machine price 600 MUSD; Frontier, Oak Ridge"
    )
    assert choices["pleiades"].startswith("2,088 nodes, 2 x Xeon E5-2680 v3 of 120 W; Pleiades")
    assert choices["bridges"].startswith("32 nodes, 2 x Tesla P100-PCIE-16GB of 250 W; Bridges")


def test_platform_next_to_the_scenario_is_a_choice_and_a_broken_one_has_its_reason(tmp_path: Path):
    (tmp_path / "mine.toml").write_text('extends = "summit"\nname = "Mine"\nnode_count = 12\ndescription = "Ours."\n')
    (tmp_path / "bad.toml").write_text('extends = "summit"\nname = "Bad"\nnode_count = "many"\n')
    (tmp_path / "app.toml").write_text('extends = "jacobi2d"\n')
    choices = dict(platform_choices(Scenario.open(tmp_path / "app.toml")))
    assert choices["mine"] == "12 nodes, 6 x Tesla V100-SXM2-16GB of 300 W; Ours."
    assert choices["bad"].startswith("cannot be used: ")
    assert "node_count" in choices["bad"]


def test_part_choices_are_of_the_kind_of_the_table():
    gpus = dict(part_choices("platform.node.gpu.extends", SCENARIO))
    assert gpus["h200-sxm"].startswith("H200-SXM-141GB, 4258 GB/s, 141 GB")
    assert "epyc-7763" not in gpus
    assert "slingshot-11" in dict(part_choices("platform.network.inter_node.extends", SCENARIO))
    assert "nvlink3-4" in dict(part_choices("platform.node.peer_link.extends", SCENARIO))
    assert "epyc-7763" in dict(part_choices("platform.node.cpu.extends", SCENARIO))


def test_parts_in_use_are_those_of_tables_that_the_platform_has():
    used = parts_in_use(Scenario.open("jacobi2d", platform="perlmutter").program.loaded)
    assert used["platform.node.gpu.extends"] == "a100-sxm4-40gb"
    assert used["platform.node.cpu.extends"] == "epyc-7763"
    assert "platform.node.cpu.extends" not in parts_in_use(SCENARIO.program.loaded)
    edited = Scenario.open("jacobi2d", overrides={"platform.node.gpu.extends": "h200-sxm"})
    assert parts_in_use(edited.program.loaded)["platform.node.gpu.extends"] == "h200-sxm"


@pytest.mark.parametrize(
    ("path", "choice", "text"),
    [
        ("application.phases.halo.model", "injection", "Gropp's form of it"),
        ("application.phases.halo.model", "k_model", "max_rate where k counts only messages to other nodes"),
        ("application.grid.mapping", "file", "from `mapping_file`"),
        ("application.buffers", "host", "main memory"),
        ("application.grid.decomposition", "given", "`ranks`"),
    ],
)
def test_value_choices_have_what_the_help_says_of_them(path, choice, text):
    assert dict(value_choices(SCENARIO.program.parameters[path]))[choice] == text


def test_algorithms_of_collectives_have_their_operations():
    phase = {"kind": "collective", "model": "postal", "algorithm": "ring", "message_size": "1 MiB"}
    application = {"name": "a", "rank_count": 12, "iteration_count": 1, "phases": {"sum": phase}}
    program = Scenario.of(application=application, platform="summit").program
    choices = dict(value_choices(program.parameters["application.phases.sum.algorithm"]))
    assert choices["ring"] == "allreduce"
    assert choices["binomial_tree"] == "broadcast, reduce"
    assert choices["best"] == "the fastest one"
    assert choices["measured"] == "by the times of `[platform.network.collectives.measured]`"
