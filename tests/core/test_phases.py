"""Every kind of phase through the whole way, text to number, against arithmetic done by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.axes import Grid
from whatif.core.derivation import explain, lines
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.result import Result
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError, UsageError
from whatif.schema.toml import parse_document

HEAD = """
[platform]
extends = "{platform}"
[application]
name = "test"
congestion = "none"
rank_count = {ranks}
iteration_count = 10
"""
GRID = """
[application.grid]
scaling = "weak"
cells = {{ x = 1000, y = 1000 }}
{more}
"""
HALO = """
[application.phases.halo]
kind = "halo"
model = "{model}"
neighbours = "faces"
{more}
"""


def scenario(text: str, folder: Path | None = None) -> Scenario:
    return Scenario(parse_document(text, "test.toml", folder))


def point(text: str, folder: Path | None = None) -> Result:
    return run_whole(scenario(text, folder), Grid())


def head(platform: str = "summit", ranks: int = 36) -> str:
    return HEAD.format(platform=platform, ranks=ranks)


def halo(model: str, more: str = "", grid: str = "") -> str:
    return GRID.format(more=grid) + HALO.format(model=model, more=more)


def close(array, expected):
    assert_allclose(float(array), expected, rtol=1e-13, atol=0)


ONE_PER_NODE = "[platform.node]\ngpu_count = 1\nsocket_count = 1\n"
# 3 x 3 ranks, one a node: the middle rank sends four messages of 8000 B between nodes.
NINE = head(ranks=9) + ONE_PER_NODE


def test_postal_serialised_and_concurrent():
    message = 2.86e-6 + 8000 * 1.55e-10
    close(point(NINE + halo("postal")).terms["halo"], 4 * message)
    close(point(NINE + halo("postal", 'concurrency = "concurrent"')).terms["halo"], message)
    close(point(NINE + halo("postal", "exchange_count = 3")).terms["halo"], 12 * message)


def test_one_rank_a_node_makes_max_rate_and_k_model_the_same():
    eager = 2.39e-6 + 8000 / 6.68e9
    close(point(NINE + halo("max_rate")).terms["halo"], 4 * eager)
    close(point(NINE + halo("k_model")).terms["halo"], 4 * eager)


@pytest.mark.parametrize(("size", "expected"), [("128 B", 1.51e-6 + 128 * 6.32e-10), ("129 B", 2.39e-6 + 129 / 6.68e9)])
def test_protocol_limits_are_inclusive(size, expected):
    close(point(NINE + halo("max_rate", f'message_size = "{size}"')).terms["halo"], 4 * expected)


def test_halo_width_and_element_size():
    message = 2.86e-6 + 3 * 4 * 1000 * 1.55e-10
    close(point(NINE + halo("postal", 'halo_width = 3\nelement_size = "4 B"')).terms["halo"], 4 * message)


INJECTION = "\n".join(
    f"[platform.network.inter_node.injection.{protocol}]\n"
    'latency = "2 us"\nprocess_bandwidth = "6 GB/s"\ninjection_bandwidth = "20 GB/s"'
    for protocol in ("short", "eager", "rendezvous")
)


@pytest.mark.parametrize(
    ("width", "ranks", "more", "fits"),
    [
        (1000, 9, "", True),
        (1001, 9, "", False),
        (1001, 1, "", True),
        (1001, 3, 'decomposition = "given"\nranks = { x = 3, y = 1 }', False),
        (1001, 9, 'decomposition = "bisection"', False),
    ],
)
def test_a_halo_is_at_most_as_wide_as_the_cells_of_a_rank(width, ranks, more, fits):
    text = head(ranks=ranks) + ONE_PER_NODE + halo("postal", f"halo_width = {width}", more)
    result = point(text.replace("faces", "all"))
    reason = "application.phases.halo.halo_width exceeds the cells of a rank along a dimension that ranks share"
    assert result.reasons == (() if fits else (reason,))


def test_a_halo_may_be_wider_than_a_dimension_that_no_ranks_share():
    given = 'decomposition = "given"\nranks = { x = 9, y = 1 }'
    text = NINE + halo("postal", "halo_width = 2", given).replace("y = 1000", "y = 1")
    assert point(text).reasons == ()


def test_too_few_nodes_are_the_reason_before_the_width_of_a_halo():
    text = head(ranks=10**7) + halo("postal", "halo_width = 1001")
    assert point(text).reasons == ("the ranks need more nodes than the platform has (platform.node_count)",)


def test_a_stated_decomposition_of_other_ranks_states_both_numbers():
    given = 'decomposition = "given"\nranks = { x = 3, y = 2 }'
    reason = "the ranks along the dimensions do not multiply to application.rank_count"
    assert point(NINE + halo("postal", grid=given)).notes == (f"infeasible: {reason}; 6, not 9",)


def test_injection_limit_of_the_node():
    close(point(NINE + INJECTION + halo("injection")).terms["halo"], 4 * (2e-6 + 8000 / 6e9))
    # 12 ranks a node in a column of a 6 x 12 grid: two messages leave, two stay; 12 x 6 GB/s exceed 20 GB/s.
    many = head(ranks=72) + "[platform.node]\ngpu_count = 12\nsocket_count = 1\n" + INJECTION
    grid = 'decomposition = "given"\nranks = { x = 6, y = 12 }'
    away = 2e-6 + 12 * 8000 / 20e9
    near = 5.96e-7 + 8000 * 1.12e-10
    close(point(many + halo("injection", grid=grid)).terms["halo"], 2 * away + 2 * near)


def test_models_that_the_platform_has_no_parameters_for():
    with pytest.raises(InvalidFileError, match="`loggp` has no parameters; Summit has postal, max_rate, injection"):
        point(NINE + halo("loggp"))
    tree = lines(explain(evaluate(scenario(head("lassen", 16) + halo("max_rate")).program), "halo"))
    assert any(
        "the platform has no max_rate parameters for intra_socket messages: the postal model is applied" in x
        for x in tree
    )


def test_a_distance_without_parameters_takes_those_of_the_next_farther_one():
    four = head("bridges", 16) + "[platform.node]\ngpu_count = 4\n"
    tree = "\n".join(lines(explain(evaluate(scenario(four + halo("postal")).program), "halo")))
    assert "the platform has no intra_socket parameters: those of inter_socket are applied" in tree


def test_loggp():
    table = "\n".join(
        f"[platform.network.inter_node.loggp.{protocol}]\n"
        'latency = "3 us"\noverhead_time = "0.5 us"\nbandwidth = "10 GB/s"'
        for protocol in ("short", "eager", "rendezvous")
    )
    close(point(NINE + table + halo("loggp")).terms["halo"], 4 * (3e-6 + 2 * 0.5e-6 + 7999 / 10e9))


def test_node_aware_counts_the_bytes_that_leave_the_node():
    """2 nodes of 6 in a column of 6: each rank exchanges one message off the node and up to two on it."""
    grid = 'decomposition = "given"\nranks = { x = 2, y = 6 }'
    on_socket = 5.96e-7 + 8000 * 1.12e-10
    between = 1.03e-6 + 8000 * 2.27e-10
    rank = 2.39e-6 + max(4 * on_socket, 2 * on_socket + 2 * between)
    node = 6 * 8000 / (6.68e9 + 5 * 1.27e9)
    close(point(head(ranks=12) + halo("node_aware", grid=grid)).terms["halo"], rank + node)


def test_mappings(tmp_path):
    """A ring of 4 ranks on 2 nodes of 2: in blocks one of two messages parameters, in turn both do, tiles as blocks."""
    text = head(ranks=4) + "[platform.node]\ngpu_count = 2\nsocket_count = 1\n"
    grid = 'decomposition = "given"\nranks = {{ x = 4, y = 1 }}\nperiodic = true\n{}'
    near, far = 5.96e-7 + 8000 * 1.12e-10, 2.86e-6 + 8000 * 1.55e-10
    times = {
        name: float(point(text + halo("postal", grid=grid.format(f'mapping = "{name}"'))).terms["halo"])
        for name in ("block", "round_robin", "tiles")
    }
    assert_allclose(
        [times["block"], times["round_robin"], times["tiles"]], [near + far, 2 * far, near + far], rtol=1e-13, atol=0
    )
    (tmp_path / "nodes.txt").write_text("0\n1\n0\n1\n")
    named = grid.format('mapping = "file"\nmapping_file = "nodes.txt"')
    close(point(text + halo("postal", grid=named), tmp_path).terms["halo"], 2 * far)
    (tmp_path / "nodes.txt").write_text("0\n1\n0\n")
    assert point(text + halo("postal", grid=named), tmp_path).reasons == (
        "application.grid.mapping_file places 3 ranks, not application.rank_count",
    )


def test_nodes_and_sharing_are_those_of_the_mapping(tmp_path):
    """6 ranks on nodes of 4: 2 nodes; in turn 3 and 3 ranks, of which 3 share an adapter; one node each in the file."""
    text = head(ranks=6) + "[platform.node]\ngpu_count = 4\nsocket_count = 1\n"
    grid = 'decomposition = "given"\nranks = {{ x = 6, y = 1 }}\nmapping = "{}"\nmapping_file = "nodes.txt"'

    def placed(mapping: str) -> list[float]:
        found = evaluate(scenario(text + halo("max_rate", grid=grid.format(mapping)), tmp_path).program)
        assert found.reasons() == ()
        return [float(found.values[f"placement.{name}"]) for name in ("nodes_needed", "node_sharing_count")]

    (tmp_path / "nodes.txt").write_text("0\n1\n2\n3\n4\n5\n")
    assert [placed(name) for name in ("block", "tiles", "round_robin", "file")] == [[2, 4], [2, 4], [2, 3], [6, 1]]
    (tmp_path / "nodes.txt").write_text("0\n0\n0\n0\n0\n1\n")
    full = point(text + halo("max_rate", grid=grid.format("file")), tmp_path).reasons
    assert full == ("application.grid.mapping_file places more ranks on a node than application.ranks_per_node",)


def test_all_neighbours_send_faces_edges_and_corners():
    text = head(ranks=27) + ONE_PER_NODE + (
        '[application.grid]\nscaling = "weak"\ncells = { x = 10, y = 20, z = 30 }\n'
        '[application.phases.halo]\nkind = "halo"\nmodel = "postal"\nneighbours = "all"\n'
    )  # fmt: skip
    sizes = [8 * n for n in (600, 600, 300, 300, 200, 200, *[30] * 4, *[20] * 4, *[10] * 4, *[1] * 8)]

    def time(size: float) -> float:
        return 1.24e-6 + size * 1.01e-9 if size <= 128 else 2.86e-6 + size * 1.55e-10

    close(point(text).terms["halo"], sum(map(time, sizes)))


@pytest.mark.parametrize(
    ("algorithm", "rounds"),
    [
        ("binomial_tree", [(6, 1 << 20)]),
        ("recursive_doubling", [(6, 1 << 20)]),
        ("ring", [(126, (1 << 20) / 64)]),
        ("rabenseifner", [(2, (1 << 20) / 2**i) for i in range(1, 7)]),
        ("dissemination", [(6, 0)]),
    ],
)
def test_collectives(algorithm, rounds):
    text = head(ranks=64) + (
        f'[application.phases.sum]\nkind = "collective"\nalgorithm = "{algorithm}"\nmodel = "postal"\n'
        'message_size = "1 MiB"\noperation_count = 2\ndistance = "inter_node"\n'
    )

    def time(size: float) -> float:
        if size <= 128:
            return 1.24e-6 + size * 1.01e-9
        return 2.86e-6 + size * 1.55e-10 if size <= 65536 else 7.59e-6 + size * 8.7e-11

    close(point(text).terms["sum"], 2 * sum(count * time(size) for count, size in rounds))


KERNEL = """
[application.phases.work]
kind = "kernel"
model = "{model}"
dominant_operation = "fp_64"
metrics_per = "{per}"
operations = "1 Mflop"
dram_size = "80 MB"
l2_size = "400 MB"
compute_fraction = 0.2
load_store_fraction = 0.2
launch_time = "0 s"
{more}
"""


@pytest.mark.parametrize(
    ("per", "more", "launches"),
    [
        ("launch", "launch_count = 3", 3),
        ("rank", "launch_count = 3", 1),
        ("profile", "launch_count = 3\nprofiled_launch_count = 12", 0.25),
        ("cell", "launch_count = 3", 3e6),
        ("launch", 'follows = "cells"\nprofiled_cells = { x = 500, y = 1000 }', 2),
        ("launch", 'follows = "surface"\nprofiled_cells = { x = 500, y = 1000 }', 4 / 3),
    ],
)
def test_kernel_metrics_equal_those_of_the_file(per, more, launches):
    text = head() + GRID.format(more="") + KERNEL.format(model="roofline", per=per, more=more)
    close(point(text).terms["work"], launches * 80e6 / 779.4108e9)


def test_roofline_with_l2():
    text = head() + KERNEL.format(model="roofline_l2", per="launch", more="")
    close(point(text).terms["work"], max(80e6 / 779.4108e9, 400e6 / 2878.6151e9))


def transfer(more: str) -> str:
    return f'[application.phases.copy]\nkind = "transfer"\ntransfer_size = "1 MB"\n{more}\n'


@pytest.mark.parametrize(
    ("platform", "more", "expected"),
    [
        ("summit", 'direction = "host_to_device"', 1.7805e-6 + (1e6 + 16 * (1 + 3907)) / 50e9),
        ("summit", 'direction = "device_to_host"', 1.7798e-6 + (1e6 + 16 * 3907) / 50e9),
        ("summit", 'direction = "peer_to_peer"', 1.7798e-6 + (1e6 + 16 * 3907) / 50e9),
        ("summit", 'direction = "device_to_device"', 1.2073e-6 + 2e6 / 779.4108e9),
        (
            "summit",
            'direction = "device_to_host"\nmemory = "pageable"\ntransfer_count = 2',
            2 * (1.7805e-6 + 2e6 / 170e9 + (1e6 + 16 * 3907) / 50e9),
        ),
        ("bridges", 'direction = "device_to_host"', 1.3738e-6 + (1e6 + 24 * 3907) / (16 * 8e9 / 8 * 128 / 130)),
        (
            "bridges",
            'direction = "host_to_device"',
            1.2582e-6 + (24 + 512 + 15625 * 20 + 1e6) / (16 * 8e9 / 8 * 128 / 130),
        ),
    ],
)
def test_transfers(platform, more, expected):
    close(point(head(platform) + transfer(more)).terms["copy"], expected)


def test_a_transfer_of_a_halo_copies_the_messages_of_the_busiest_rank():
    text = NINE + halo("postal") + (
        '[application.phases.copy]\nkind = "transfer"\ndirection = "device_to_host"\nhalo = "halo"\n'
    )  # fmt: skip
    size = 4 * 8000
    close(point(text).terms["copy"], 1.7798e-6 + (size + 16 * math.ceil(size / 256)) / 50e9)


def test_phases_add_up_and_overlaps_hide_the_stated_fraction():
    text = head() + (
        '[application.phases.a]\nkind = "overhead"\noverhead_time = "30 us"\n'
        '[application.phases.b]\nkind = "overhead"\noverhead_time = "20 us"\n'
        '[application.overlaps.ab]\nphases = ["a", "b"]\nfraction = 0.5\n'
    )
    result = point(text)
    close(result.columns["overlap_time"], 10e-6)
    close(result.columns["iteration_time"], 40e-6)
    close(result.columns["total_time"], 400e-6)


def test_points_that_cannot_exist_are_nan_with_a_reason():
    memory = head().replace("iteration_count", 'memory_size = "17 GB"\niteration_count')
    result = point(memory + transfer('direction = "device_to_host"'))
    assert np.isnan(result.columns["total_time"])
    assert result.reasons == ("application.memory_size does not fit the device (platform.node.gpu.memory_size)",)
    inputs = scenario(head(ranks=12) + halo("postal", grid='decomposition = "given"\nranks = { x = 3, y = 4 }'))
    grid = grid_of([parse_option("application.grid.ranks.x=2, 3, 4", inputs.program, 9)], 9)
    result = run_whole(inputs, grid)
    assert np.isnan(result.columns["total_time"]).tolist() == [True, False, True]
    assert np.isfinite(result.terms["halo"]).tolist() == [False, True, False]


def test_computation_and_communication_of_a_structured_grid_may_overlap():
    text = head(ranks=4) + GRID.format(more="") + (
        '[application.phases.step]\nkind = "structured_grid"\nhalo_cell_count = 4000\ncell_rate = "1 Gcell/s"\n'
        'halo_rate = "1 Gcell/s"\n'
        '[application.overlaps.hidden]\nphases = ["step.computation", "step.communication"]\nfraction = 1\n'
    )  # fmt: skip
    close(point(text).columns["iteration_time"], 1e6 / 1e9)
    with pytest.raises(InvalidFileError, match=r"no phase `step`; did you mean `step\.computation` or"):
        point(text.replace('"step.computation"', '"step"'))


def test_no_time_is_hidden_twice():
    phases = "".join(
        f'[application.phases.{name}]\nkind = "overhead"\noverhead_time = "1 s"\n' for name in ("a", "b", "c")
    )
    overlaps = (
        '[application.overlaps.one]\nphases = ["a", "b"]\nfraction = 1\n'
        '[application.overlaps.two]\nphases = ["b", "c"]\nfraction = 1\n'
    )
    with pytest.raises(InvalidFileError, match="`b` overlaps already: no time can be hidden twice"):
        point(head() + phases + overlaps)


def test_shares_of_an_instruction_mix_leave_room_for_the_rest():
    text = head() + KERNEL.format(model="roofline", per="launch", more="")
    result = point(text.replace("load_store_fraction = 0.2", "load_store_fraction = 0.9"))
    assert result.reasons == ("application.phases.work: compute_fraction and load_store_fraction together exceed 1",)
    assert np.isfinite(point(text.replace("load_store_fraction = 0.2", "load_store_fraction = 0.8")).terms["work"])


def test_measured_k_counts_come_together_and_in_order():
    both = "inter_node_count = {}\ntotal_count = 24"
    assert np.isfinite(point(NINE + halo("k_model", both.format(14))).terms["halo"])
    assert "exceeds total_count" in point(NINE + halo("k_model", both.format(25))).reasons[0]
    with pytest.raises(InvalidFileError, match="or neither"):
        point(NINE + halo("k_model", "inter_node_count = 14"))


def test_protocol_limits_are_in_order():
    limits = '[platform.network.inter_node]\neager_limit = "1 B"\n'
    assert "short_limit exceeds eager_limit" in point(NINE + limits + halo("postal")).reasons[0]


def test_every_exchange_of_a_halo_is_copied():
    copy = '[application.phases.copy]\nkind = "transfer"\ndirection = "device_to_host"\nhalo = "halo"\n'
    once, thrice = (point(NINE + halo("postal", f"exchange_count = {n}") + copy).terms["copy"] for n in (1, 3))
    close(thrice, 3 * float(once))


def test_a_collective_but_a_barrier_states_its_size():
    text = head() + '[application.phases.sum]\nkind = "collective"\nalgorithm = "{}"\nmodel = "postal"\n'
    assert np.isfinite(point(text.format("dissemination")).terms["sum"])
    with pytest.raises(InvalidFileError, match="message_size: missing key"):
        point(text.format("ring"))


def test_a_platform_next_to_the_scenario_may_extend_the_shipped_one_of_its_name(tmp_path):
    (tmp_path / "summit.toml").write_text('extends = "summit"\n[node]\ngpu_count = 8\n')
    text = head() + transfer('direction = "device_to_host"')
    program = scenario(text, tmp_path).program
    assert program.parameters["platform.node.gpu_count"].value == 8
    (tmp_path / "own.toml").write_text('extends = "own"\n')
    with pytest.raises(InvalidFileError, match="extends itself: own -> own"):
        point(text.replace('"summit"', '"own"'), tmp_path)
    with pytest.raises(InvalidFileError, match="`jacobi2d` is a scenario, not a platform"):
        Scenario.open("jacobi2d", platform="jacobi2d").program  # noqa: B018


def test_an_unstated_parameter_is_named_in_the_error():
    with pytest.raises(UsageError, match="is not stated in this scenario; give it a value first with --set"):
        parse_option("application.phases.halo.inter_node_count=1, 2", Scenario.open("jacobi2d").program, 9)
    with pytest.raises(UsageError, match=": no result depends on this text"):
        parse_option("platform.name=a, b", Scenario.open("jacobi2d").program, 9)
