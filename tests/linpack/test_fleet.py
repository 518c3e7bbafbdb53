"""Nodes left out, named, drawn and with fewer links, as options of `whatif hpl` and `whatif tune hpl`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.linpack.test_hpl_verb import hpl_input
from tests.paths import DATA
from whatif.fitting.processors import processors as calibrated
from whatif.fitting.processors import spread as spread_of
from whatif.linpack.fleet import Fleet, fleet_change
from whatif.schema.load import load_platform

DAHU = whatif.hpl(DATA / "hpl" / "HPL.dat.4x4", platform="dahu").runs
FACTORS = load_platform("dahu")[0].kernels.processors
LEAD = "platform.kernels.processors."
TREE = """
extends = "dahu"
name = "Dahu with a tree"
[network.topology]
kind = "fat_tree"
level_count = 2
down_count = 4
up_count = 2
bandwidth = "1 GB/s"
latency = "0.1 us"
[sources]
"network.topology" = { grade = "assumed", source = "a guess" }
"""


@pytest.fixture
def predict(tmp_path, monkeypatch):
    """Time of a run on 7 x 4 nodes of Dahu with a rank each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HPL.dat").write_text(hpl_input(N="5000", NB="128", P="7", Q="4"))
    (tmp_path / "tree.toml").write_text(TREE)
    (tmp_path / "empty").write_text("# nothing\n")

    def times(platform="dahu", **options):
        found = whatif.hpl("HPL.dat", platform=platform, ranks_per_node=1, **options)
        return next(iter(found)).row.time, found

    return times


def processors(**options):
    """Factors that nodes have in order after a change of Dahu."""
    change = fleet_change(Fleet(**options), DAHU)
    return [float(text) for path, text in change.overrides.items() if path.startswith(LEAD)], change


def test_the_slowest_nodes_are_left_out_in_order():
    found, change = processors(without_slowest=4)
    slow = [key for key in FACTORS if key.rpartition("_")[0] in ("node13", "node14", "node15", "node16")]
    assert found == [FACTORS[key] for key in FACTORS if key not in slow]
    assert change.overrides["platform.node_count"] == 28
    assert change.notes[0].startswith("28 of 32 nodes; left out: node13 (+9.5%), node14")


def test_hosts_are_used_in_the_order_stated():
    found, change = processors(hosts=("node16", "node2"))
    names = ["node16_cpu0", "node16_cpu1", "node2_cpu0", "node2_cpu1"]
    assert found == [FACTORS[name] for name in names]
    assert change.overrides["platform.node_count"] == 2


def test_a_run_without_slow_nodes_is_faster_and_one_on_a_slow_node_slower(predict):
    every, _ = predict()
    quick, _ = predict(without_slowest=4)
    hosts = [f"node{at}" for at in (15, *range(1, 13), *range(17, 32))]
    slow, _ = predict(hosts=",".join(hosts))
    assert quick < every
    assert quick < slow


def test_hosts_come_from_a_file_with_slots_and_comments(predict, tmp_path):
    names = [f"node{at}" for at in range(1, 29)]
    (tmp_path / "hosts").write_text("# the first nodes\n" + "".join(f"{name} slots=32\n" for name in names))
    assert predict(hosts="hosts")[0] == predict(hosts=names)[0]


def test_a_drawn_cluster_has_the_stated_spread_of_nodes():
    found, change = processors(cluster=4000, spreads={"node": 0.05, "processor": 0}, cluster_seed=3)
    nodes = np.array(found).reshape(-1, 2)
    assert (nodes[:, 0] == nodes[:, 1]).all()
    assert_allclose(np.std(np.log(nodes[:, 0]), ddof=1), 0.05, rtol=0.05, atol=0)
    assert_allclose(nodes.mean(), 1.0, rtol=0.005, atol=0)
    assert change.overrides["platform.node_count"] == 4000


def test_a_drawn_cluster_spreads_by_default_as_the_nodes_of_the_platform():
    def effects(factors):
        node, cpu = np.divmod(np.arange(len(factors)), 2)
        found = spread_of(calibrated(node, cpu, factors))
        return [found.node, found.cpu]

    found, _ = processors(cluster=4000)
    assert_allclose(effects(found), effects(list(FACTORS.values())), rtol=0.05, atol=0)


def test_a_fleet_is_that_of_the_machine_after_all_overrides(predict):
    slow = {f"{LEAD}node1_cpu0": 2, "platform.node_count": 30}
    _, found = predict(without_slowest=2, overrides=slow)
    assert "28 of 30 nodes; left out: node1 (" in found.notes[1]
    drawn = predict(cluster=28, overrides={f"{LEAD}node1_cpu0": 2})[1].scenario.program
    assert drawn.parameters[f"{LEAD}node1_cpu0"].value < 1.5


def test_calls_deviate_by_a_share_of_costs_that_follow_from_a_data_sheet(predict):
    drawn = {"cluster": 28, "spread": "node=0, processor=0, call=10%", "noise": True, "replicates": 2}
    parameters = predict("theta", **drawn)[1].scenario.program.parameters
    # theta.toml: 2 flop / 2,662.4 Gflop/s.
    assert_allclose(parameters["platform.kernels.dgemm.deviation.mnk"].value, 0.1 * 2 / 2662.4e9, rtol=1e-6, atol=0)


def test_chosen_nodes_keep_the_uncertainty_of_their_processors(predict):
    deviation = "platform.kernels.deviations.node2_cpu0"
    uncertain = {f"{LEAD}node2_cpu0": "1.01 +- 0.02", deviation: "1.1 +- 0.3"}
    names = ["node3", "node2", *(f"node{at}" for at in range(4, 30))]
    parameters = predict(hosts=names, overrides=uncertain)[1].scenario.program.parameters
    # The second node of the run has the first place behind the two processors of the first.
    assert parameters[f"{LEAD}node2_cpu0"].text() == "1.01 +- 0.02"
    assert parameters[deviation].text() == "1.1 +- 0.3"
    assert parameters[f"{LEAD}node1_cpu0"].value == FACTORS["node3_cpu0"]


def test_processors_of_a_node_share_their_day(predict):
    spread = "node=0, processor=0, day=5%"
    runs = predict(cluster=28, spread=spread, noise=True, replicates=1)[1].runs
    days = runs.drawn(seed=4)
    shares = np.array([
        [days[path] / runs.program.parameters[path].value for path in (f"{LEAD}node{at}_cpu0", f"{LEAD}node{at}_cpu1")]
        for at in range(1, 29)
    ])  # fmt: skip
    assert_allclose(shares[:, 0], shares[:, 1], rtol=1e-12, atol=0)
    assert_allclose(np.std(shares[:, 0]), 0.05, rtol=0.4, atol=0)


def test_days_are_drawn_for_each_replicate_and_calls_deviate(predict):
    drawn = {"cluster": 28, "noise": True, "replicates": 6, "overrides": {"platform.kernels.run_deviation": 0}}

    def width(spread):
        low, high = next(iter(predict(spread=spread, **drawn)[1])).row.interval
        return high / low - 1

    calm = width("node=2%, day=0, call=0")
    assert width("node=2%, day=10%, call=0") > 2 * calm
    quiet, loud = (predict(spread=f"node=0, call={call}", **drawn)[0] for call in ("0", "20%"))
    assert loud > 1.02 * quiet


def test_fewer_links_upwards_slow_the_run_down(predict):
    full, _ = predict("tree.toml")
    tapered, found = predict("tree.toml", without_uplinks=1)
    assert tapered > 1.05 * full
    assert "1 link upwards of a lowest switch (--without-uplinks)" in found.notes
    assert not any("no effect" in note for note in found.notes)


def test_links_that_no_message_crosses_are_a_note(predict, tmp_path):
    note = "--without-uplinks has no effect: no message waits for a link upwards"
    (tmp_path / "HPL.dat").write_text(hpl_input(N="2000", NB="128", P="2", Q="2"))
    assert any(note in it for it in predict("tree.toml", without_uplinks=1)[1].notes)
    heard: list[str] = []
    observer = whatif.api.linpack.TuningObserver()
    observer.note = heard.append
    whatif.tune_hpl(
        platform="tree.toml", without_uplinks=1, grids=["2x2"], ranks_per_node=1, matrix_sizes=[500], candidates=1,
        observer=observer,
    )  # fmt: skip
    assert any(note in it for it in heard)


def test_search_takes_the_grids_of_the_nodes_that_remain():
    found = whatif.tune_hpl(
        platform="dahu", ranks_per_node=1, without_slowest=4, matrix_sizes=[1000], block_sizes=[100],
        broadcasts=["ring"], swaps=["mix"], depths=[0],
    )  # fmt: skip
    grids = {(run.process_rows, run.process_columns) for run in found.times}
    assert grids == {(p, 28 // p) for p in (1, 2, 4, 7, 14, 28)}


@pytest.mark.parametrize(
    ("platform", "options", "message"),
    [
        ("dahu", {"hosts": "nod15"}, "did you mean `node15`"),
        ("dahu", {"hosts": "node1, node1"}, "a node is named twice"),
        ("dahu", {"without_slowest": 32}, "there are 32 nodes"),
        ("generic_cpu", {"without_slowest": 1}, "its nodes are identical"),
        ("dahu", {"spread": "node=2%"}, "no effect without --cluster"),
        ("dahu", {"cluster": 28, "spread": "nodes=2%"}, "did you mean `node`"),
        ("dahu", {"cluster": 28, "spread": "node=much"}, "--spread node=much: expected LEVEL=SHARE"),
        ("dahu", {"cluster": 28, "spread": "node=-1%"}, "--spread node=-1%: expected LEVEL=SHARE"),
        ("dahu", {"cluster": 28, "spread": {"node": -0.1}}, "--spread node=-0.1: must be at least 0"),
        ("dahu", {"cluster": 28, "spread": {"nodes": 0.1}}, "did you mean `node`"),
        ("dahu", {"cluster": 28, "spread": "day=1%"}, "--spread day=..: no effect without the noise of kernels"),
        ("dahu", {"cluster": 28, "spread": "call=1%", "network_noise": True}, "no effect without the noise of kernels"),
        ("dahu", {"cluster_seed": 3}, "--cluster-seed: no effect without --cluster"),
        ("dahu", {"cluster": 28, "cluster_seed": -1}, "a seed of -1"),
        ("dahu", {"cluster": 0}, "0 nodes: there must be at least 1"),
        ("theta", {"cluster": 10_000_000}, "there must be at least 1 and at most 1,000,000"),
        ("dahu", {"without_slowest": -1}, "--without-slowest -1: must be at least 0"),
        ("tree.toml", {"without_uplinks": -1}, "--without-uplinks -1: must be at least 0"),
        ("dahu", {"hosts": ","}, "--hosts ,: no node is named"),
        ("dahu", {"hosts": "empty"}, "--hosts empty: no node is named"),
        ("dahu", {"hosts": ",".join(f"node{at}" for at in range(1, 99))}, "no node `node33`"),
        ("dahu", {"without_uplinks": 1}, "states no fat tree"),
        ("tree.toml", {"without_uplinks": 2}, "a lowest switch has 2 links upwards"),
    ],
)
def test_impossible_fleets_are_refused(predict, platform, options, message):
    with pytest.raises(whatif.WhatifError, match=message):
        predict(platform, **options)


def test_options_of_the_command_line_are_those_of_the_library(predict, whatif_main):
    expected, _ = predict(without_slowest=4)
    code, out, error = whatif_main("hpl", "HPL.dat", "--platform", "dahu", "--ranks-per-node", "1",
                                   "--without-slowest", "4", "--format", "csv")  # fmt: skip
    assert code == 0
    assert float(out.splitlines()[1].split(",")[5]) == expected
    assert "left out: node13" in error
