"""The data of the messages screen: curves by hand and by the engine, the application's messages, the placement."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from whatif.axes import Grid
from whatif.core.derivation import explain
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import InfeasiblePointError, UsageError, WhatifError
from whatif.models import decomposition
from whatif.models.patterns import BoxPattern
from whatif.schema.toml import parse_document
from whatif.studies import placement_layout as placement_picture
from whatif.studies.message_curves import LARGEST_SIZE, counts, message_curves
from whatif.studies.placement_layout import busiest_node, halo_pattern
from whatif.tui.widgets.message_costs import message_rows

HALO_MODELS = ("postal", "max_rate", "injection", "k_model", "node_aware")


def halo(name: str) -> str:
    return "exchange" if name == "minimd" else "halo"


def curves_of(
    name: str, platform: str | None = None, overrides: dict[str, str] | None = None, phase: str | None = None
):
    program = Scenario.open(name, platform=platform, overrides=overrides).program
    return message_curves(program, evaluate(program), phase)


def counts_of(name: str, platform: str | None = None, overrides: dict[str, str] | None = None):
    program = Scenario.open(name, platform=platform, overrides=overrides).program
    return counts(program, evaluate(program), halo(name))


def curve(found, distance: str, model: str):
    (one,) = (item for item in found.curves if (item.distance, item.model) == (distance, model))
    return one


def time_at(found, distance: str, model: str, size: float) -> float:
    """The time at a size that the curves have."""
    (index,) = np.flatnonzero(found.sizes == size)
    return curve(found, distance, model).times[index]


# Curves against the printed tables: α, β or R of Tables 2 to 4 and k' of the machine, times by hand.


@pytest.mark.parametrize(
    ("platform", "distance", "model", "size", "seconds"),
    [
        ("summit", "inter_node", "postal", 1, 1.24e-6 + 1.01e-9),
        ("summit", "inter_node", "postal", 128, 1.24e-6 + 128 * 1.01e-9),
        ("summit", "inter_node", "postal", 129, 2.86e-6 + 129 * 1.55e-10),
        ("summit", "inter_node", "postal", 65536, 2.86e-6 + 65536 * 1.55e-10),
        ("summit", "inter_node", "postal", 65537, 7.59e-6 + 65537 * 8.7e-11),
        ("summit", "intra_socket", "postal", 12289, 2.18e-6 + 12289 * 5.37e-11),
        ("lassen", "intra_socket", "postal", 12288, 5.21e-7 + 12288 * 6.44e-11),
        ("lassen", "inter_node", "postal", 65537, 8.81e-6 + 65537 * 7.18e-11),
        # Table 3: k' processes share 1/β; inside a socket of three there are two pairs.
        ("summit", "inter_node", "max_rate", 128, 1.51e-6 + 6 * 128 * 6.32e-10),
        ("summit", "inter_socket", "max_rate", 128, 1.02e-6 + 3 * 128 * 1.45e-9),
        ("summit", "intra_socket", "max_rate", 128, 6.29e-7 + 2 * 128 * 6.21e-10),
        ("lassen", "inter_node", "max_rate", 128, 1.55e-6 + 4 * 128 * 8.84e-10),
        # Table 4: k' n / (R_Cb + (k' − 1) R_Ci).
        ("summit", "inter_node", "max_rate", 129, 2.39e-6 + 6 * 129 / (6.68e9 + 5 * 1.27e9)),
        ("summit", "inter_node", "max_rate", 65537, 9.33e-6 + 6 * 65537 / (12.3e9 + 5 * 2.58e7)),
        ("summit", "inter_socket", "max_rate", 12289, 4.04e-6 + 3 * 12289 / (8.28e9 + 2 * 7.08e9)),
        ("summit", "intra_socket", "max_rate", 12289, 3.59e-6 + 2 * 12289 / (18e9 + 15.3e9)),
        ("lassen", "inter_socket", "max_rate", 12289, 3.41e-6 + 2 * 12289 / (8.41e9 + 7.09e9)),
        ("lassen", "inter_node", "max_rate", 65537, 1.06e-5 + 4 * 65537 / (17.9e9 + 3 * 2.22e9)),
        # Table 5 for Jacobi2D: k = 14/24 · 6 on Summit, 10/16 · 4 on Lassen.
        ("summit", "inter_node", "k_model", 128, 1.51e-6 + 3.5 * 128 * 6.32e-10),
        ("summit", "inter_node", "k_model", 65537, 9.33e-6 + 3.5 * 65537 / (12.3e9 + 2.5 * 2.58e7)),
        ("lassen", "inter_node", "k_model", 65537, 1.06e-5 + 2.5 * 65537 / (17.9e9 + 1.5 * 2.22e9)),
        # Gropp's form: all six together ask for more than the node can send.
        ("summit", "inter_node", "injection", 65537, 9.33e-6 + 6 * 65537 / 12.429e9),
    ],
)
def test_curves_give_the_times_of_tables_2_to_5_by_hand(platform, distance, model, size, seconds):
    found = curves_of("jacobi2d", platform)
    assert_allclose(time_at(found, distance, model, size), seconds, rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("name", "platform", "process_counts"),
    [
        ("jacobi2d", "summit", {("inter_node", "max_rate"): 6, ("inter_node", "k_model"): 3.5}),
        ("jacobi2d", "summit", {("intra_socket", "max_rate"): 2, ("inter_socket", "k_model"): 3}),
        ("minife", "lassen", {("inter_node", "k_model"): 92 / 104 * 4, ("inter_node", "injection"): 4}),
        ("minimd", "lassen", {("inter_node", "k_model"): 3, ("inter_node", "postal"): None}),
    ],
)
def test_each_curve_names_its_k(name, platform, process_counts):
    found = curves_of(name, platform)
    for key, expected in process_counts.items():
        assert curve(found, *key).process_count == (None if expected is None else pytest.approx(expected, rel=1e-15))


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
@pytest.mark.parametrize("model", ["postal", "max_rate", "k_model", "injection"])
def test_a_curve_equals_evaluations_point_by_point(name, model):
    """Halos of other sizes, each as a scenario of its own, compiled and evaluated alone."""
    found = curves_of(name, "summit")
    phase = f"application.phases.{halo(name)}"
    every = [item.distance for item in found.curves if item.model == model]
    assert "inter_node" in every
    for index in (0, 40, 80, len(found.sizes) - 1):
        size = f"{found.sizes[index]:.0f} B"
        axes = "xyz" if name == "minimd" else ""
        sizes = {f"{phase}.message_sizes.{axis}": size for axis in axes} or {f"{phase}.message_size": size}
        program = Scenario.open(name, platform="summit", overrides={**sizes, f"{phase}.model": model}).program
        values = evaluate(program).values
        for distance in every:
            alone = values[f"{halo(name)}.{distance}.message_time"]
            assert_array_equal(alone, np.full_like(alone, curve(found, distance, model).times[index]))


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
@pytest.mark.parametrize("platform", ["summit", "lassen", "bridges"])
def test_sizes_ascend_beyond_all_limits_and_messages_and_times_are_numbers(name, platform):
    overrides = {"platform.node_count": "4608"}
    found = curves_of(name, platform, overrides)
    assert found.sizes[0] == 1
    assert (np.diff(found.sizes) > 0).all()
    for limits in found.limits:
        for limit in (limits.short_limit, limits.eager_limit):
            assert {limit, limit + 1} <= set(found.sizes)
            assert found.sizes[-1] >= 8 * limit
    assert found.sizes[-1] >= 8 * max(message.size for phase in found.phases for message in phase.messages) - 0.5
    for item in found.curves:
        assert item.times.shape == found.sizes.shape
        assert (np.isfinite(item.times) & (item.times > 0)).all()


def test_only_what_the_platform_has_parameters_for_is_drawn():
    lassen = {(item.distance, item.model) for item in curves_of("jacobi2d", "lassen").curves}
    assert ("intra_socket", "postal") in lassen
    assert ("intra_socket", "max_rate") not in lassen
    assert ("inter_socket", "max_rate") in lassen
    bridges = curves_of("jacobi2d", "bridges", {"application.rank_count": "6"})
    assert [item.distance for item in bridges.limits] == ["inter_socket", "inter_node"]
    assert not [item for item in bridges.curves if item.distance == "intra_socket" or item.model == "loggp"]


def test_loggp_is_drawn_where_the_platform_has_it():
    protocols = "\n".join(
        f"[platform.network.inter_node.loggp.{protocol}]\n"
        'latency = "1 us"\noverhead_time = "0.5 us"\nbandwidth = "10 GB/s"'
        for protocol in ("short", "eager", "rendezvous")
    )
    program = scenario(protocols + GRID + HALO.format(model="loggp")).program
    found = message_curves(program, evaluate(program))
    assert [item.distance for item in found.curves if item.model == "loggp"] == ["inter_node"]
    assert_allclose(time_at(found, "inter_node", "loggp", 129), 2e-6 + 128 / 10e9, rtol=1e-13, atol=0)


def test_limits_are_those_of_the_file_and_a_limit_beyond_all_sizes_is_none():
    limits = {item.distance: item for item in curves_of("jacobi2d").limits}
    assert (limits["inter_node"].short_limit, limits["inter_node"].eager_limit) == (128, 65536)
    assert (limits["intra_socket"].short_limit, limits["intra_socket"].eager_limit) == (128, 12288)
    without = curves_of("jacobi2d", overrides={"platform.network.inter_node.eager_limit": "1e300 B"})
    assert without.sizes[-1] <= 8 * LARGEST_SIZE
    eager = 2.86e-6 + without.sizes[-1] * 1.55e-10
    assert_allclose(curve(without, "inter_node", "postal").times[-1], eager, rtol=1e-13, atol=0)


def test_edits_and_expressions_move_the_curves():
    session = Session.start(Scenario.open("jacobi2d"))
    session = session.edit("platform.network.inter_node.postal.rendezvous.bandwidth", "20 GB/s")
    session = session.edit("platform.network.inter_node.eager_limit", "1 KiB")
    session = session.edit("platform.network.inter_node.postal.eager.latency", "= 2 * 3 us")
    found = message_curves(session.program, session.at)
    assert_allclose(time_at(found, "inter_node", "postal", 1024), 6e-6 + 1024 * 1.55e-10, rtol=1e-13, atol=0)
    assert_allclose(time_at(found, "inter_node", "postal", 1025), 7.59e-6 + 1025 / 20e9, rtol=1e-13, atol=0)


def test_the_values_are_those_of_the_evaluation():
    """As where one point of a sweep is looked at, whose parameter stands otherwise in the file."""
    program = Scenario.open("jacobi2d").program
    at = evaluate(program, {"platform.network.inter_node.postal.short.latency": np.array(5e-6)})
    assert_allclose(time_at(message_curves(program, at), "inter_node", "postal", 1), 5e-6 + 1.01e-9, rtol=1e-13, atol=0)


def test_fatter_nodes_share_more():
    session = Session.start(Scenario.open("jacobi2d")).edit("platform.node.gpu_count", "8")
    found = message_curves(session.program, session.at)
    assert curve(found, "inter_node", "max_rate").process_count == 8
    assert curve(found, "inter_socket", "max_rate").process_count == 4
    expected = 9.33e-6 + 8 * 65537 / (12.3e9 + 7 * 2.58e7)
    assert_allclose(time_at(found, "inter_node", "max_rate", 65537), expected, rtol=1e-13, atol=0)


def test_the_k_of_the_curves_is_that_of_the_selected_phase():
    overrides = {
        "application.phases.reverse_exchange.inter_node_count": "6",
        "application.phases.reverse_exchange.total_count": "24",
    }
    assert curve(curves_of("minimd", overrides=overrides), "inter_node", "k_model").process_count == 18 / 24 * 4
    other = curves_of("minimd", overrides=overrides, phase="reverse_exchange")
    assert curve(other, "inter_node", "k_model").process_count == 1
    assert other.phase == "reverse_exchange"


def test_a_phase_that_is_no_halo_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match="`force` is not a halo phase; halo phases: exchange, reverse_exchange"):
        curves_of("minimd", phase="force")
    with pytest.raises(UsageError, match="`exchang` is not a halo phase; did you mean `exchange`"):
        curves_of("minimd", phase="exchang")


# The application's own messages.


@pytest.mark.parametrize("model", HALO_MODELS)
@pytest.mark.parametrize("platform", ["summit", "lassen"])
@pytest.mark.parametrize("name", ["jacobi2d", "jacobi2d_strong", "minife", "minimd"])
def test_the_messages_of_the_slowest_rank_take_the_time_of_the_exchange(name, platform, model):
    overrides = {f"application.phases.{halo(name)}.model": model, "application.congestion": "none"}
    program = Scenario.open(name, platform=platform, overrides=overrides).program
    (phase, *_) = message_curves(program, evaluate(program)).phases
    spent = sum(message.count * message.time for message in phase.messages) + phase.node_time
    expected = float(run_whole(Scenario.open(name, platform=platform, overrides=overrides), Grid()).terms[halo(name)])
    assert_allclose(spent, expected, rtol=1e-13, atol=0)
    assert phase.time == expected
    assert (phase.node_time > 0) == (model == "node_aware")


def test_the_messages_are_those_that_an_explanation_names():
    program = Scenario.open("minife").program
    evaluation = evaluate(program)
    (phase,) = message_curves(program, evaluation).phases
    shown = {node.name: node.value for node in explain(evaluation, "halo.exchange_time").inputs}
    # Kinds in the order x, y, z, xy, xz, yz, xyz; faces of 200 x 200 cells of 8 B, edges of 200, corners of 1.
    assert shown["halo.inter_node.message_time"].startswith("[58.71 us, 58.71 us, 58.71 us, 2.885 us, 2.885 us")
    by_kind = {(item.distance, item.kind): item for item in phase.messages}
    assert_allclose(by_kind["inter_node", "x"].time, 58.71e-6, rtol=1e-4, atol=0)
    assert_allclose(by_kind["inter_node", "xz"].time, 2.885e-6, rtol=1e-4, atol=0)
    assert {item.kind: item.size for item in phase.messages} == {
        **dict.fromkeys(("x", "y", "z"), 320000.0),
        **dict.fromkeys(("xy", "xz", "yz"), 1600.0),
        "xyz": 8.0,
    }
    assert sum(item.count for item in phase.messages) == 26


def test_jacobi2d_on_summit_sends_three_faces_away_and_one_to_a_neighbour():
    (phase,) = curves_of("jacobi2d").phases
    found = [(item.distance, item.kind, item.size, item.count) for item in phase.messages]
    size = 16384 * 8
    assert found == [("intra_socket", "y", size, 1), ("inter_node", "x", size, 2), ("inter_node", "y", size, 1)]
    assert_allclose(phase.messages[0].time, 3.59e-6 + 2 * size / 33.3e9, rtol=1e-13, atol=0)
    assert_allclose(phase.messages[1].time, 9.33e-6 + 3.5 * size / (12.3e9 + 2.5 * 2.58e7), rtol=1e-13, atol=0)


def test_exchanges_of_an_iteration_multiply_the_messages():
    once, thrice = (curves_of("jacobi2d", overrides={"application.phases.halo.exchange_count": n}) for n in ("1", "3"))
    assert [item.count for item in thrice.phases[0].messages] == [3 * item.count for item in once.phases[0].messages]
    assert_allclose(thrice.phases[0].time, 3 * once.phases[0].time, rtol=1e-15, atol=0)


def test_of_concurrent_messages_the_slowest_decides():
    (phase,) = curves_of(
        "minife", overrides={"application.phases.halo.concurrency": "concurrent", "application.congestion": "none"}
    ).phases
    assert phase.combined == "concurrent"
    assert max(item.time for item in phase.messages) == phase.time


def test_a_node_aware_message_keeps_both_ends_busy_and_only_starts_towards_other_nodes():
    (phase,) = curves_of("jacobi2d", overrides={"application.phases.halo.model": "node_aware"}).phases
    size = 16384 * 8
    times = {item.distance: item.time for item in phase.messages}
    assert_allclose(times["intra_socket"], 2 * (2.18e-6 + size * 5.37e-11), rtol=1e-13, atol=0)
    assert_allclose(times["inter_socket"], 2 * (4.6e-6 + size * 1.18e-10), rtol=1e-13, atol=0)
    assert_allclose(times["inter_node"], 9.33e-6, rtol=1e-13, atol=0)
    assert_allclose(phase.node_time, 14 * size / (12.3e9 + 5 * 2.58e7), rtol=1e-12, atol=0)


def test_messages_name_the_source_of_their_parameters():
    (lassen,) = curves_of("jacobi2d", "lassen").phases
    inside, *outside = lassen.messages
    assert (inside.distance, inside.model, inside.parameters) == ("intra_socket", "postal", "intra_socket")
    assert (
        inside.note == "the platform has no max_rate parameters for intra_socket messages: the postal model is applied"
    )
    assert {(item.model, item.note) for item in outside} == {("k_model", "")}
    four = {"application.rank_count": "16", "platform.node.gpu_count": "4"}
    (bridges,) = curves_of("jacobi2d", "bridges", four).phases
    (near,) = (item for item in bridges.messages if item.distance == "intra_socket")
    assert (near.model, near.parameters) == ("postal", "inter_socket")
    assert "the platform has no intra_socket parameters: those of inter_socket are applied" in near.note


def test_a_rank_alone_sends_nothing():
    found = curves_of("jacobi2d", overrides={"application.rank_count": "1"})
    assert found.phases[0].messages == ()
    assert found.phases[0].time == 0
    assert curve(found, "inter_node", "max_rate").process_count == 1


HEAD = """
[platform]
extends = "summit"
[application]
name = "test"
rank_count = {ranks}
iteration_count = 10
"""
GRID = """
[application.grid]
scaling = "weak"
cells = {{ x = 1000, y = 1000 }}
"""
HALO = """
[application.phases.halo]
kind = "halo"
model = "{model}"
neighbours = "faces"
"""
COLLECTIVE = """
[application.phases.reduce]
kind = "collective"
algorithm = "{algorithm}"
model = "max_rate"
message_size = "1 MiB"
operation_count = 3
"""


def scenario(body: str, ranks: int = 36, folder=None) -> Scenario:
    text = HEAD.format(ranks=ranks) + body.replace("{{", "{").replace("}}", "}")
    return Scenario(parse_document(text, "test.toml", folder))


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "ring", "rabenseifner", "bruck_allgather"])
def test_the_rounds_of_a_collective_take_its_time(algorithm):
    program = scenario(COLLECTIVE.format(algorithm=algorithm)).program
    evaluation = evaluate(program)
    (phase,) = message_curves(program, evaluation).phases
    spent = sum(item.count * item.time for item in phase.messages)
    assert_allclose(spent, float(evaluation.values["reduce"]), rtol=1e-13, atol=0)
    assert (phase.model, phase.combined, phase.node_time) == ("max_rate", algorithm, 0)


def test_the_arithmetic_of_a_reduction_is_a_part_of_its_time():
    text = HEAD.replace("summit", "fugaku").format(ranks=36) + COLLECTIVE.format(algorithm="rabenseifner")
    program = Scenario(parse_document(text, "test.toml")).program
    evaluation = evaluate(program)
    (phase,) = message_curves(program, evaluation).phases
    spent = sum(item.count * item.time for item in phase.messages)
    assert phase.reduction_time > 0
    assert_allclose(spent + phase.reduction_time, phase.time, rtol=1e-13, atol=0)
    shown = message_rows(phase, 200)
    assert [cell.text for cell in shown.cells[-2]][:2] == ["in memory", "arithmetic"]


def test_recursive_doubling_sends_the_buffer_in_every_round_and_has_no_k():
    program = scenario(COLLECTIVE.format(algorithm="recursive_doubling")).program
    found = message_curves(program, evaluate(program))
    # 36 processes, 6 on a node: 5 rounds, and 2 for those beyond 32; three operations.
    (messages,) = (phase.messages for phase in found.phases)
    counts = {(item.distance, item.size): item.count for item in messages}
    assert sum(item.count for item in messages) == 21
    assert set(counts) == {("intra_socket", 2**20), ("inter_socket", 2**20), ("inter_node", 2**20)} & set(counts)
    assert counts["inter_node", 2**20] >= 9
    assert found.phase is None
    assert {item.model for item in found.curves} == {"postal", "max_rate", "injection"}
    assert curve(found, "intra_socket", "max_rate").process_count == 2


def test_a_point_that_cannot_exist_has_curves_of_the_platform_and_a_reason():
    found = curves_of("jacobi2d", overrides={"platform.node_count": "10"})
    reason = "the ranks need more nodes than the platform has (platform.node_count); 256 needed, 10 available"
    assert found.infeasible == reason
    assert found.phases == ()
    assert {item.model for item in found.curves} == {"postal", "max_rate", "injection"}
    assert all(np.isfinite(item.times).all() for item in found.curves)


def test_curves_that_an_impossible_value_spoils_are_left_out():
    path = "platform.network.inter_node.postal.short.latency"
    found = curves_of("jacobi2d", overrides={path: "= 1 us / (application.rank_count - 1536)"})
    assert path in found.infeasible
    assert "postal" not in {item.model for item in found.curves if item.distance == "inter_node"}
    assert "max_rate" in {item.model for item in found.curves if item.distance == "inter_node"}


# K of the paper.


@pytest.mark.parametrize("model", ["k_model", "max_rate", "node_aware"])
@pytest.mark.parametrize(
    ("name", "platform", "overrides", "expected"),
    [
        ("jacobi2d", "summit", {}, (14, 24, 6, "3.50")),
        ("jacobi2d", "lassen", {"application.rank_count": "768"}, (10, 16, 4, "2.50")),
        ("minimd", "summit", {}, (28, 36, 6, "4.67")),
        ("minimd", "lassen", {}, (18, 24, 4, "3.00")),
        ("minimd", "bridges", {"platform.node_count": "512"}, (10, 12, 2, "1.67")),
        ("minife", "lassen", {}, (92, 104, 4, "3.54")),
        ("minife", "bridges", {"platform.node_count": "128"}, (50, 52, 2, "1.92")),
    ],
)
def test_table_5_whatever_the_model_of_the_phase(name, platform, overrides, expected, model):
    found = counts_of(name, platform, {**overrides, f"application.phases.{halo(name)}.model": model})
    assert (found.inter_node_count, found.total_count, found.process_count, f"{found.k:.2f}") == expected
    assert found.effective_k == found.k
    assert not found.stated


FIGURE_1 = {
    "application.rank_count": "48",
    "application.grid.decomposition": "given",
    "application.grid.ranks.x": "6",
    "application.grid.ranks.y": "8",
    "application.grid.order": "fortran",
    "application.grid.periodic": "true",
}


def test_figure_1_six_processes_in_each_column_share_a_node():
    found = counts_of("jacobi2d", overrides=FIGURE_1)
    assert (found.inter_node_count, found.total_count, found.process_count, found.k) == (12, 24, 6, 3)
    drawn = picture("jacobi2d", overrides=FIGURE_1)
    assert_array_equal(drawn.nodes, np.broadcast_to(np.arange(8), (6, 8)))
    assert_array_equal(drawn.sockets, np.repeat([[0], [0], [0], [1], [1], [1]], 8, axis=1))
    assert drawn.axes == ("x", "y")
    # Up and down each rank has two neighbours on the node, four of the twelve messages cross to the other socket.
    assert drawn.sent == {"intra_socket": 8, "inter_socket": 4, "inter_node": 12}


def test_stated_counts_take_the_place_of_counted_ones():
    path = "application.phases.halo"
    overrides = {f"{path}.inter_node_count": "135", f"{path}.total_count": "156", f"{path}.model": "max_rate"}
    found = counts_of("minife", "summit", overrides)
    assert (found.inter_node_count, found.total_count, found.stated) == (135, 156, True)
    assert_allclose(found.k, 135 / 156 * 6, rtol=1e-15, atol=0)


def test_less_than_one_process_is_charged_as_one():
    found = counts_of("jacobi2d", overrides={"application.rank_count": "12"})
    values = evaluate(Scenario.open("jacobi2d", overrides={"application.rank_count": "12"}).program).values
    assert (found.inter_node_count, found.total_count) == (3, 17)
    assert_allclose(found.k, 3 / 17 * 6, rtol=1e-15, atol=0)
    assert (found.k, found.effective_k) == (values["halo.k"], values["halo.effective_k"])
    alone = counts_of("jacobi2d", overrides={"application.rank_count": "6"})
    assert (alone.k, alone.effective_k) == (0, 1)


def test_counts_and_pictures_of_an_impossible_point_raise_its_reason():
    program = Scenario.open("jacobi2d", overrides={"platform.node_count": "10"}).program
    evaluation = evaluate(program)
    for ask in (
        lambda: counts(program, evaluation, "halo"),
        lambda: placement_picture.placement_picture(program, evaluation, "halo", 80, 24),
    ):
        with pytest.raises(InfeasiblePointError, match=r"infeasible: the ranks need more nodes .*platform.node_count"):
            ask()


# The placement as a picture.


def picture(name, width=1000, height=1000, plane=None, platform=None, overrides=None):
    asked = name if isinstance(name, Scenario) else Scenario.open(name, platform=platform, overrides=overrides)
    phase = "halo" if isinstance(name, Scenario) else halo(name)
    program = asked.program
    return placement_picture.placement_picture(program, evaluate(program), phase, width, height, plane)


def on_grid(x: int, y: int, more: str = "", folder=None, gpu_count: int = 4, socket_count: int = 2) -> Scenario:
    grid = f'decomposition = "given"\nranks = {{ x = {x}, y = {y} }}\n{more}\n'
    node = f"[platform.node]\ngpu_count = {gpu_count}\nsocket_count = {socket_count}\n"
    return scenario(node + GRID + grid + HALO.format(model="postal"), x * y, folder)


def test_consecutive_ranks_share_a_node_and_its_first_half_a_socket():
    drawn = picture(on_grid(3, 4))
    assert_array_equal(drawn.part.ranks, np.arange(12).reshape(3, 4))
    assert_array_equal(drawn.nodes, [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]])
    assert_array_equal(drawn.sockets, [[0, 0, 1, 1]] * 3)
    # The middle row sends four messages up and four down, inside it two pairs and one step between the sockets.
    assert (drawn.busiest_node, drawn.node_count) == (1, 3)
    assert drawn.sent == {"intra_socket": 4, "inter_socket": 2, "inter_node": 8}
    assert_array_equal(drawn.busiest, [[False] * 4, [True] * 4, [False] * 4])
    assert (drawn.part.shown, drawn.part.plane_count, drawn.part.plane_name) == ("3 x 4 ranks", 1, "")


def test_a_node_may_have_more_than_two_sockets():
    drawn = picture(on_grid(3, 6, gpu_count=6, socket_count=3))
    assert_array_equal(drawn.sockets, [[0, 0, 1, 1, 2, 2]] * 3)
    assert drawn.sent == {"intra_socket": 6, "inter_socket": 4, "inter_node": 12}


def test_ranks_dealt_in_turn_have_no_neighbour_on_their_node():
    drawn = picture(on_grid(3, 4, 'mapping = "round_robin"'))
    assert_array_equal(drawn.nodes, [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]])
    # Ranks 0, 3 of node 0 are on its first socket, 6, 9 on its second.
    assert_array_equal(drawn.sockets[drawn.nodes == 0], [0, 0, 1, 1])
    assert (drawn.sent["intra_socket"], drawn.sent["inter_socket"]) == (0, 0)


def test_tiles_are_squares():
    drawn = picture(on_grid(8, 8, 'mapping = "tiles"'))
    assert_array_equal(drawn.nodes, np.kron(np.arange(16).reshape(4, 4), np.ones((2, 2))))
    assert_array_equal(drawn.sockets, [[row % 2] * 8 for row in range(8)])
    assert drawn.busiest_node == 5
    assert drawn.sent == {"intra_socket": 4, "inter_socket": 4, "inter_node": 8}


def test_a_mapping_file_decides_and_the_window_is_around_the_busiest_node(tmp_path):
    """One node a rank, but two ranks that are no neighbours share one: it alone sends eight messages."""
    nodes = list(range(100, 181))
    nodes[4 * 9 + 4] = nodes[6 * 9 + 6] = 7
    (tmp_path / "map.txt").write_text("\n".join(map(str, nodes)))
    asked = on_grid(9, 9, 'mapping = "file"\nmapping_file = "map.txt"', tmp_path, gpu_count=2)
    drawn = picture(asked, width=3, height=7)
    assert drawn.sent == {"intra_socket": 0, "inter_socket": 0, "inter_node": 8}
    assert (drawn.busiest_node, drawn.node_count) == (0, 80)
    assert_array_equal(drawn.part.ranks, np.arange(81).reshape(9, 9)[2:9, 5:8])
    assert_array_equal(np.argwhere(drawn.busiest), [[4, 1]])
    assert drawn.part.shown == "7 x 3 of 9 x 9 ranks"


def test_a_window_stays_inside_the_grid():
    drawn = picture("jacobi2d", width=12, height=16)
    assert drawn.nodes.shape == (16, 12)
    assert drawn.part.shown == "16 x 12 of 48 x 32 ranks"
    # Node 6 holds ranks 36 to 41 of the second row, columns 4 to 9.
    assert_array_equal(drawn.part.ranks, np.arange(1536).reshape(48, 32)[:16, 1:13])
    assert_array_equal(np.argwhere(drawn.busiest), [[1, column] for column in range(3, 9)])
    assert picture("jacobi2d", width=0, height=-1).nodes.shape == (1, 1)


def test_a_chain_of_ranks_is_one_row():
    chain = 'cells = { x = 1000 }\ndecomposition = "balanced"\n'
    body = f'[application.grid]\nscaling = "weak"\n{chain}' + HALO.format(model="postal")
    drawn = picture(scenario(body, 12))
    assert_array_equal(drawn.nodes, [[0] * 6 + [1] * 6])
    assert (drawn.axes, drawn.part.shown) == (("x",), "12 ranks")
    assert drawn.sent == {"intra_socket": 8, "inter_socket": 2, "inter_node": 1}
    assert picture(scenario(body, 12), width=5).part.shown == "5 of 12 ranks"


def test_a_grid_in_three_dimensions_is_drawn_plane_by_plane():
    """8 x 8 x 16 ranks on Lassen: four consecutive ranks along z share a node."""
    drawn = picture("minimd", plane=3)
    assert_array_equal(drawn.part.ranks, np.arange(1024).reshape(8, 8, 16)[3])
    assert_array_equal(drawn.nodes, np.arange(1024).reshape(8, 8, 16)[3] // 4)
    assert (drawn.axes, drawn.part.shown) == (("y", "z"), "8 x 16 ranks")
    assert (drawn.part.plane, drawn.part.plane_count, drawn.part.plane_name) == (3, 8, "x = 3")
    assert not drawn.busiest.any()
    own = picture("minimd")
    assert own.part.plane == 0
    assert own.busiest.sum() == 4
    assert [picture("minimd", plane=plane).part.plane for plane in (-1, 99)] == [0, 7]


def test_four_dimensions_have_a_plane_for_each_place_in_the_first_two():
    ranks = "ranks = { w = 2, x = 3, y = 4, z = 5 }\n"
    cells = 'cells = { w = 9, x = 9, y = 9, z = 9 }\ndecomposition = "given"\norder = "fortran"\n'
    body = f'[application.grid]\nscaling = "weak"\n{cells}{ranks}' + HALO.format(model="postal")
    drawn = picture(scenario(body, 120), plane=4)
    assert_array_equal(drawn.part.ranks, np.arange(120).reshape(2, 3, 4, 5, order="F")[1, 1])
    assert (drawn.part.plane_count, drawn.part.plane_name) == (6, "w = 1, x = 1")


@pytest.mark.parametrize("plane", range(8))
def test_boxes_of_minife_are_drawn_over_their_cells(plane):
    """256 boxes of 200^3 cells: 8 x 4 x 8, which a raster of one sample a box shows as a grid of ranks."""
    drawn = picture("minife", width=8, height=4, plane=plane)
    boxes = decomposition.bisection(256, (1600, 800, 1600))
    for row, column in itertools.product(range(4), range(8)):
        corner = [200 * plane, 200 * row, 200 * column]
        (rank,) = np.flatnonzero((boxes[:, :, 0] == corner).all(axis=1))
        assert drawn.part.ranks[row, column] == rank
        assert drawn.nodes[row, column] == rank // 4
    assert drawn.part.plane_name == f"x = {200 * plane}"
    assert drawn.part.plane_count == 8
    assert drawn.part.shown == "4 x 8 samples of 800 x 1600 cells"
    assert drawn.axes == ("y", "z")


@pytest.mark.parametrize("ranks", ["24", "256", "1001"])
def test_the_plane_drawn_unless_another_is_asked_for_is_that_of_the_busiest_node(ranks):
    overrides = {"application.rank_count": ranks, "platform.node_count": "1000"}
    drawn = picture("minife", overrides=overrides)
    assert drawn.busiest.any()
    assert set(drawn.nodes[drawn.busiest]) == {drawn.busiest_node}
    again = picture("minife", plane=drawn.part.plane, overrides=overrides)
    assert_array_equal(again.part.ranks, drawn.part.ranks)


BISECTION = """
[application.grid]
scaling = "strong"
cells = {cells}
decomposition = "bisection"
[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "all"
"""


@pytest.mark.parametrize(
    ("ranks", "cells"), [(13, (9, 7, 11)), (30, (3, 5, 4)), (7, (12, 5)), (100, (2, 6, 4)), (5, (23,))]
)
def test_each_cell_of_any_bisection_belongs_to_the_box_that_holds_it(ranks, cells):
    """Cuts that do not line up, and more ranks than cells; every plane between two cuts, cell by cell."""
    stated = "{ " + ", ".join(f"{axis} = {extent}" for axis, extent in zip("xyz", cells, strict=False)) + " }"
    asked = scenario(BISECTION.format(cells=stated), ranks)
    boxes = decomposition.bisection(ranks, cells)
    planes = picture(asked).part.plane_count
    for plane in range(planes):
        drawn = picture(asked, plane=plane)
        assert drawn.part.ranks.shape == ((1, *cells) if len(cells) == 1 else cells[-2:])
        first = [int(drawn.part.plane_name.removeprefix("x = "))] if len(cells) == 3 else []
        for place, rank in np.ndenumerate(drawn.part.ranks):
            cell = np.array([*first, *place[-len(cells) + len(first) :]])
            assert ((boxes[rank, :, 0] <= cell) & (cell < boxes[rank, :, 1])).all()
    assert planes == (
        len(np.unique(boxes[(boxes[:, :, 0] < boxes[:, :, 1]).all(axis=1), 0, 0])) if len(cells) == 3 else 1
    )


def test_cells_are_sampled_in_the_middle_of_what_they_stand_for():
    """Five boxes of 23 cells begin at 0, 5, 10, 15 and 19; two samples stand for a half each: cells 5 and 17."""
    drawn = picture(scenario(BISECTION.format(cells="{ x = 23 }"), 5), width=2)
    boxes = decomposition.bisection(5, (23,))
    begins = boxes[:, 0, 0]
    assert begins.tolist() == [0, 5, 10, 15, 19]
    assert drawn.part.ranks.tolist() == [[1, 3]]
    assert drawn.part.shown == "2 samples of 23 cells"


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
@pytest.mark.parametrize("platform", ["summit", "lassen"])
def test_the_busiest_node_sends_k_inter_messages(name, platform):
    overrides = {"application.rank_count": "96"}
    drawn = picture(name, platform=platform, overrides=overrides)
    found = counts_of(name, platform, overrides)
    assert drawn.sent["inter_node"] == found.inter_node_count
    assert sum(drawn.sent.values()) <= found.total_count
    assert drawn.node_count == 96 / found.process_count


@pytest.mark.parametrize(("width", "height"), [(7, 5), (8, 1), (2, 9)])
def test_the_messages_of_the_busiest_node_equal_a_count_in_plain_python(width, height):
    """Periodic, where both neighbours may be one rank, and a rank its own neighbour, to which it sends nothing."""
    drawn = picture(on_grid(height, width, 'periodic = true\nmapping = "round_robin"', gpu_count=6))
    nodes = -(-width * height // 6)
    sent = {}
    for x, y, (dx, dy) in itertools.product(range(height), range(width), ((-1, 0), (1, 0), (0, -1), (0, 1))):
        here, there = x * width + y, (x + dx) % height * width + (y + dy) % width
        # Dealt in turn; the first three ranks of a node are on its first socket.
        (node, socket), (other, far) = ((rank % nodes, rank // nodes // 3) for rank in (here, there))
        distance = "inter_node" if node != other else "inter_socket" if socket != far else "intra_socket"
        sent.setdefault(node, dict.fromkeys(drawn.sent, 0))[distance] += here != there
    most = max(item["inter_node"] for item in sent.values())
    first = min(node for node, item in sent.items() if item["inter_node"] == most)
    assert (drawn.busiest_node, drawn.sent) == (first, sent[first])


def test_too_many_ranks_have_a_reason_instead_of_a_picture():
    overrides = {
        "application.rank_count": str(2**20 + 1),
        "platform.node_count": "1000000",
        "application.congestion": "none",
    }
    program = Scenario.open("jacobi2d", overrides=overrides).program
    with pytest.raises(WhatifError, match=r"1,048,577 ranks are too many for a picture.*application\.rank_count"):
        placement_picture.placement_picture(program, evaluate(program), "halo", 80, 24)


def test_boxes_are_counted_as_boxes():
    program = Scenario.open("minife", overrides={"application.rank_count": "24"}).program
    pattern = halo_pattern(program, evaluate(program), "halo")
    assert isinstance(pattern, BoxPattern)
    assert (pattern.box_count, pattern.ranks_per_node, pattern.ranks_per_socket) == (24, 4, 2)
    node, sent = busiest_node(pattern)
    assert sent[2] == counts(program, evaluate(program), "halo").inter_node_count
    assert 0 <= node < 6


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
def test_everything_crosses_to_another_process_and_is_small(name):
    program = Scenario.open(name).program
    evaluation = evaluate(program)
    found = message_curves(program, evaluation)
    text = pickle.dumps(found)
    again = pickle.loads(text)  # noqa: S301 - what this test has just written
    assert (again.phases, again.limits) == (found.phases, found.limits)
    assert_array_equal(again.curves[0].times, found.curves[0].times)
    drawn = picture(name, width=120, height=40)
    assert_array_equal(pickle.loads(pickle.dumps(drawn)).nodes, drawn.nodes)  # noqa: S301
    assert pickle.loads(pickle.dumps(counts(program, evaluation, halo(name)))).k > 1  # noqa: S301
    assert max(len(text), len(pickle.dumps(drawn))) < 100_000


def test_the_wiring_of_the_curves_parameters_the_program_as_it_is():
    program = Scenario.open("jacobi2d").program
    terms, parameters = dict(program.terms), dict(program.parameters)
    message_curves(program, evaluate(program))
    assert (dict(program.terms), dict(program.parameters)) == (terms, parameters)
