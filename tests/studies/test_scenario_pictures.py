"""Roofline, messages, placement, domains and timeline: tables and pictures against the numbers of the studies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.iteration_timeline import timeline
from whatif.errors import InfeasiblePointError, UsageError
from whatif.plotting.picture import draw
from whatif.studies.message_curves import message_curves
from whatif.studies.roofline_study import gpu_roofs, kernel_points, second_gpu
from whatif.tui.widgets.message_costs import message_rows


def rows(found):
    return found.table().to_dict()["rows"]


def column(found, name):
    return [row[name] for row in rows(found)]


def exact(numbers, expected):
    assert_allclose(np.array(numbers, dtype=float), np.array(expected, dtype=float), rtol=1e-12, atol=0)


def test_roofline_has_the_kernels_of_the_explorer_and_the_roofs_of_the_gpu():
    scenario = whatif.load("minife")
    program, at = scenario.program, evaluate(scenario.program)
    kernels, gpu = kernel_points(program, at), gpu_roofs(program, at)
    found = rows(whatif.roofline("minife"))[: len(kernels) + 2]
    assert [row["name"] for row in found] == [*(kernel.name for kernel in kernels), "DRAM roof", "fp64 roof"]
    for key, name in (("time", "time"), ("rate", "achieved_rate"), ("own_roof", "attainable_rate"),
                      ("intensity", "intensity"), ("share", "share")):  # fmt: skip
        exact([row[key] for row in found[: len(kernels)]], [getattr(kernel, name) for kernel in kernels])
    memory, peak = found[-2:]
    exact([memory["bandwidth"], peak["rate"]], [gpu.dram_bandwidth, gpu.peaks["fp_64"]])
    exact([peak["intensity"]], [gpu.peaks["fp_64"] / gpu.dram_bandwidth])


def test_kernels_of_a_second_gpu_are_those_of_the_study():
    second = second_gpu(whatif.load("minife"), "frontier")
    found = whatif.roofline("minife", against="frontier")
    there = [row for row in rows(found) if row["device"] == second.roofs.name]
    assert second.roofs.name != found.gpu.name
    exact([row["time"] for row in there if row["time"] is not None], [kernel.time for kernel in second.kernels])
    labels = [line.label for line in found.picture().lines]
    assert [label for label in labels if label.startswith("frontier ")] == [
        "frontier DRAM 1.248 TB/s", "frontier fp64 23.9 Tflop/s",
    ]  # fmt: skip


def test_picture_has_each_kernel_below_its_own_roof_and_lines_that_meet_at_the_ridge():
    found = whatif.roofline("jacobi2d")
    picture = found.picture()
    marks = {mark.word: mark for mark in picture.marks if mark.glyph == "◆"}
    own = [mark for mark in picture.marks if mark.glyph == "◇"]
    for kernel, roof in zip(found.kernels, own, strict=True):
        exact([marks[kernel.name].x, marks[kernel.name].y], [kernel.intensity, kernel.achieved_rate])
        assert roof.x == kernel.intensity
        assert roof.y > marks[kernel.name].y
    slope, *flat = picture.lines
    exact(slope.y / slope.x, np.full(slope.x.size, found.gpu.dram_bandwidth))
    exact([max(slope.y)], [max(line.y[0] for line in flat)])


def test_curves_and_messages_are_those_of_the_study():
    scenario = whatif.load("minife")
    curves = message_curves(scenario.program, evaluate(scenario.program))
    found = whatif.messages(scenario)
    table = found.table()
    assert len(table.columns) == 1 + len(curves.curves)
    exact(table.columns["message size"].values, curves.sizes)
    k_model = next(curve for curve in curves.curves if curve.model == "k_model" and curve.distance == "inter_node")
    name = next(name for name in table.columns if name.startswith("across nodes K-model"))
    exact(table.columns[name].values, k_model.times)
    readable = found.readable_table()
    assert 5 < len(readable) < len(table) / 3
    sent = whatif.messages(scenario, sent=True)
    (phase,) = [item for item in curves.phases if item.phase == "halo"]
    exact(column(sent, "each")[: len(phase.messages)], [message.time for message in phase.messages])
    exact([column(sent, "together")[-1]], [phase.time])
    # The list of the explorer's page has the same rows.
    assert len(message_rows(phase, 120).cells) == len(sent.table())


def test_placement_is_the_one_of_the_mapping_by_hand():
    # Ranks in rows of 3 x 4, six a node, three a socket.
    found = whatif.placement("jacobi2d", overrides={"application.rank_count": 12})
    assert column(found, "rank") == list(range(12))
    assert column(found, "node") == [rank // 6 for rank in range(12)]
    assert column(found, "socket") == [rank % 6 // 3 for rank in range(12)]
    assert list(zip(column(found, "row"), column(found, "column"), strict=True)) == [
        divmod(rank, 3) for rank in range(12)
    ]
    picture = found.picture()
    assert (picture.numbers == found.whole.part.ranks).all()
    assert picture.stressed.sum() == 6
    (axes,) = draw(picture).axes
    assert [text.get_text() for text in axes.texts] == [str(rank) for rank in range(12)]


def test_placement_of_boxes_names_each_rank_once_and_other_planes_other_ranks():
    first = whatif.placement("minife", plane=0)
    last = whatif.placement("minife", plane=7)
    ranks = [set(column(found, "rank")) for found in (first, last)]
    assert all(ranks)
    assert not ranks[0] & ranks[1]
    assert len(rows(first)) == len(ranks[0])


def test_domains_have_the_links_of_the_platform_file_and_what_the_farthest_message_crosses():
    found = rows(whatif.domains("jacobi2d", platform="summit"))
    assert [row["domain"] for row in found] == ["machine", "node", "socket", "link domain"]
    assert [row["count"] for row in found] == [1, 4608, 2, 2]
    assert [row["inside"] for row in found] == ["", "machine", "node", "node"]
    postal = "platform.network.inter_node.postal"
    parameters = whatif.load("jacobi2d").program.parameters
    exact([found[0]["latency"]], [parameters[f"{postal}.short.latency"].value])
    exact([found[0]["bandwidth"]], [parameters[f"{postal}.rendezvous.bandwidth"].value])
    assert [row["crossed"] for row in found] == ["yes", "yes", "yes", "no"]
    near = whatif.domains("jacobi2d", message=1)
    assert near.domains.chosen.distance == "intra_socket"
    assert [row["crossed"] for row in rows(near)] == ["no", "no", "yes", "no"]


def test_timeline_is_that_of_the_study_with_overlaps():
    scenario = whatif.load(ROOT / "scenarios" / "jacobi2d.toml")
    expected = timeline(scenario.program, evaluate(scenario.program))
    found = whatif.timeline(scenario)
    exact(column(found, "start"), [bar.start for bar in expected.bars])
    exact(column(found, "end"), [bar.end for bar in expected.bars])
    exact([sum(column(found, "share"))], [1.0])
    chart = found.picture()
    assert [(row.start, row.end) for row in chart.rows] == [(bar.start, bar.end) for bar in expected.bars]
    assert chart.title == "one iteration of Jacobi2D on Summit"


def test_second_gpu_of_sockets_is_refused():
    with pytest.raises(UsageError, match="only GPUs are compared"):
        whatif.roofline("minife", platform="fugaku", against="frontier")


def test_roofs_of_cores_are_drawn_without_a_gpu():
    found = whatif.roofline("minife", platform="fugaku")
    assert "A64FX" in found.gpu.name
    assert all(np.isfinite(line.y).all() for line in found.picture().lines)


def test_infeasible_points_raise_but_domains_remain():
    changes = {"application.rank_count": 1_000_000}
    for function in (whatif.roofline, whatif.messages, whatif.placement, whatif.timeline):
        with pytest.raises(InfeasiblePointError, match="infeasible"):
            function("jacobi2d", overrides=changes)
    found = whatif.domains("jacobi2d", overrides=changes)
    assert found.obstacle().startswith("infeasible: ")
    assert found.domains.chosen is None


def test_results_are_frozen_and_have_short_representations():
    found = whatif.roofline("jacobi2d")
    assert len(repr(found)) < 2000
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.gpu = None
