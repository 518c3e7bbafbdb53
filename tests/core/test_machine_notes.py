"""Notes on sweeps and comparisons of machines."""

from __future__ import annotations

import pytest

import whatif
from whatif.core.machine_notes import notes_by_machine

ELSEWHERE = "communication within 37% (bias -37%) of 20 runs on summit, lassen; none on this platform"


def test_a_note_names_its_machines_unless_it_holds_on_all_of_them():
    notes = {"a": ["x", "warning: y"], "b": ["x"], "c": ["z", "x", "z"]}
    assert notes_by_machine(notes) == ("x", "warning: a: y", "c: z")
    assert notes_by_machine({"": ["x", "warning: y"]}) == ("x", "warning: y")
    assert notes_by_machine({}) == ()


def test_a_note_on_many_machines_names_some():
    notes = {name: ["x"] for name in "abcdef"} | {"g": []}
    assert notes_by_machine(notes) == ("a, b, c, d and 2 more: x",)


def test_notes_of_a_sweep_are_those_of_the_swept_machines():
    found = whatif.sweep("jacobi2d", "platform=perlmutter, turin")
    assert ELSEWHERE in found.notes
    mixed = whatif.sweep("jacobi2d", "platform=perlmutter, summit").notes
    assert f"perlmutter: {ELSEWHERE}" in mixed
    assert f"summit: {ELSEWHERE.partition(';')[0]}" in mixed


@pytest.mark.parametrize(
    ("axes", "sizes"),
    [
        (["platform=perlmutter, turin"], "384 of perlmutter, 6 of turin"),
        (["platform=perlmutter, lassen"], ""),
        (["platform=perlmutter, turin", "application.rank_count=64, 128"], ""),
    ],
)
def test_a_sweep_of_machines_states_what_each_runs_on(whatif_main, axes, sizes):
    """The file's own platform, Summit, is not among them."""
    code, _, err = whatif_main("run", "jacobi2d", *(word for axis in axes for word in ("--sweep", axis)))
    assert code == 0
    assert "platform Summit" not in err
    assert ("the same ranks take other numbers of nodes" in err) == bool(sizes)
    assert sizes in err
    assert ("kernels run on EPYC 9755" in err) == ("turin" in axes[0])


def test_a_sweep_of_parts_names_the_platform_and_the_parts(whatif_main):
    err = whatif_main("run", "jacobi2d", "--sweep", "platform.node.gpu.extends=h100-sxm5-80gb, l40s")[2]
    assert "platform Summit; platform.node.gpu.extends (2)" in err
    assert "l40s: kernels are bound by" in err


def test_machines_that_a_scenario_does_not_fit_have_no_notes(whatif_main):
    code, _, err = whatif_main("run", "llama_training", "--sweep", "platform=dgx_h100, turin, theta")
    assert code == 0
    assert "platform (3)" in err
    assert "turin: " not in err
    assert "EPYC 9755 has no GPUs" in err


@pytest.mark.parametrize(("routing", "noted"), [("adaptive", True), ("static", False)])
def test_simulated_links_have_static_routes(whatif_main, routing, noted):
    sets = ("platform.network.topology.routing=" + routing, "application.communication=shared_links")
    words = (word for text in sets for word in ("--set", text))
    err = whatif_main("run", "minimd", "--point", "--set", "application.rank_count=8", *words)[2]
    assert ("links are simulated with static routes; those of the platform are adaptive" in err) == noted


@pytest.mark.parametrize(("scenario", "phases"), [("triton", "step.computation, step.communication"), ("minife", "")])
def test_phases_that_no_machine_changes_are_named(whatif_main, scenario, phases):
    """Measured kernels, unlike rooflines; an overhead is stated and needs no remark."""
    err = whatif_main("run", scenario, "--sweep", "platform=summit, dgx_h100")[2]
    compared = " ".join(whatif.compare([scenario], ["summit", "dgx_h100"]).notes)
    for text in (err, compared):
        assert ("the same on every machine" in text) == bool(phases)
        assert phases in text
    assert "the same on every machine" not in whatif_main("run", scenario, "--sweep", "platform=summit")[2]


def test_remarks_on_a_sweep_of_choices_are_those_of_the_stated_one(whatif_main):
    def memory(*options):
        _, _, said = whatif_main("run", "llama_training", *options)
        return next(line for line in said.splitlines() if line.startswith("memory of a rank"))

    assert memory("--sweep", "application.plan.sharding=full,none") == memory()


@pytest.mark.parametrize(
    ("swept", "placed"),
    [
        ("platform.node.gpu.dram_bandwidth=1 TB/s, 2 TB/s", ": 64 ranks on 11 nodes"),
        ("platform.node.gpu_count=4, 8", ""),
        ("application.rank_count=8, 16", ""),
        ("application.phases.halo.model=postal, k_model", ""),
    ],
)
def test_ranks_and_nodes_are_stated_unless_the_sweep_may_change_them(whatif_main, swept, placed):
    err = whatif_main("run", "jacobi2d", "--set", "application.rank_count=64", "--sweep", swept)[2]
    assert f"platform Summit{placed}; lowest grade" in err


def test_nodes_are_stated_where_the_platform_has_too_few(whatif_main):
    err = whatif_main("run", "jacobi2d", "--point", "--set", "application.rank_count=100000")[2]
    assert "platform Summit: 100,000 ranks on 16,667 nodes;" in err
