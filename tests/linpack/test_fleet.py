"""Nodes left out, named, drawn and with fewer links, as options of `whatif hpl` and `whatif tune hpl`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.linpack.test_hpl_verb import hpl_input
from whatif.linpack.fleet import Fleet, fleet_change
from whatif.schema.load import load_platform

DAHU = load_platform("dahu")[0]
FACTORS = DAHU.kernels.processors
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

    def times(platform="dahu", **options):
        found = whatif.hpl("HPL.dat", platform=platform, ranks_per_node=1, **options)
        return next(iter(found)).row.time, found

    return times


def processors(**options):
    """Factors that nodes have in order after a change of Dahu."""
    change = fleet_change(Fleet(**options), DAHU)
    lead = "platform.kernels.processors."
    return [value for path, value in change.overrides.items() if path.startswith(lead)], change


def test_the_slowest_nodes_are_left_out_in_order():
    found, change = processors(without_slowest=4)
    slow = [key for key in FACTORS if key.rpartition("_")[0] in ("node13", "node14", "node15", "node16")]
    assert found == [FACTORS[key] for key in FACTORS if key not in slow] + [FACTORS[key] for key in slow]
    assert change.overrides["platform.node_count"] == 28
    assert change.notes[0].startswith("28 of 32 nodes; left out: node13 (+9.5%), node14")


def test_hosts_are_used_in_the_order_stated(tmp_path):
    found, change = processors(hosts=("node16", "node2"))
    names = ["node16_cpu0", "node16_cpu1", "node2_cpu0", "node2_cpu1"]
    assert found[:4] == [FACTORS[name] for name in names]
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
    found, change = processors(cluster=4000, spreads={"node": 0.05}, cluster_seed=3)
    nodes = np.array(found).reshape(-1, 2)
    assert (nodes[:, 0] == nodes[:, 1]).all()
    assert_allclose(np.std(np.log(nodes[:, 0]), ddof=1), 0.05, rtol=0.05, atol=0)
    assert_allclose(nodes.mean(), 1.0, rtol=0.005, atol=0)
    assert change.overrides["platform.node_count"] == 4000


def test_a_drawn_cluster_spreads_by_default_as_the_nodes_of_the_platform():
    nodes = np.array(list(FACTORS.values())).reshape(-1, 2).mean(axis=1)
    found, _ = processors(cluster=4000)
    assert_allclose(np.std(np.log(found[::2])), np.std(np.log(nodes), ddof=1), rtol=0.05, atol=0)


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
    assert "1 links upwards of a lowest switch (--without-uplinks)" in found.notes


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
        ("generic_cpu", {"without_slowest": 1}, "its nodes are alike"),
        ("dahu", {"spread": "node=2%"}, "no effect without --cluster"),
        ("dahu", {"cluster": 28, "spread": "nodes=2%"}, "did you mean `node`"),
        ("dahu", {"cluster": 28, "spread": "node=much"}, "`much` is no number"),
        ("dahu", {"cluster": 28, "spread": "node=-1%"}, "must be at least 0"),
        ("theta", {"cluster": 10_000_000}, "there must be at least 1 node"),
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
