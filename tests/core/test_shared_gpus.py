"""Ranks that share a GPU: at the same time, each with an equal share of its rates, or in time slices."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.core.request_notes import request_notes
from whatif.core.scenario import EvaluationRequest
from whatif.core.sweep import grid_of

KERNEL = {
    "kind": "kernel",
    "model": "roofline",
    "dominant_operation": "fp_64",
    "metrics_per": "rank",
    "operations": "1 Gflop",
    "dram_size": "9 GB",
}
GEMM = {"kind": "gemm", "precision": "fp64", "m": 8192, "n": 8192, "k": 8192, "launch_time": "0 s"}
LARGE = GEMM | {"efficiency": 0.7}
MEASURED = {"kind": "measured_kernel", "kernel_time": "5 ms", "bound": "dram_bandwidth", "profiled_bandwidth": "2 TB/s"}


def time_of(phase, platform="perlmutter", **application):
    """Time of one phase on nodes of four GPUs."""
    about = {"name": "one", "rank_count": 64, "iteration_count": 1, "phases": {"work": phase}, **application}
    built = whatif.Scenario.of(application=about, name="one", platform=platform)
    return float(whatif.run(built)["terms.work"])


@pytest.mark.parametrize(
    ("placed", "share"),
    [
        ({"ranks_per_gpu": 4}, 4),
        ({"ranks_per_node": 4}, 1),
        ({"ranks_per_node": 1}, 1),
        ({"ranks_per_node": 8}, 2),
        ({"ranks_per_node": 6}, 2),
        ({"ranks_per_node": 8, "ranks_per_gpu": 4}, 4),
        ({"ranks_per_node": 1, "ranks_per_gpu": 4}, 1),
        ({"rank_count": 1, "ranks_per_gpu": 4}, 1),
        ({"rank_count": 2, "ranks_per_gpu": 4}, 2),
    ],
)
@pytest.mark.parametrize("phase", [KERNEL, LARGE, MEASURED], ids=lambda phase: phase["kind"])
def test_kernels_take_as_many_times_as_long_as_ranks_share_a_gpu(phase, placed, share):
    fixed = 0.0
    if phase is not LARGE:
        fixed = (
            whatif.load("jacobi2d", platform="perlmutter")
            .program.parameters["platform.node.gpu.empty_kernel_time"]
            .value
        )
    assert_allclose(time_of(phase, **placed) - fixed, share * (time_of(phase) - fixed), rtol=1e-9, atol=0)


@pytest.mark.parametrize(("per_node", "fits"), [(4, True), (8, False)])
def test_ranks_that_share_a_gpu_share_its_memory(per_node, fits):
    """A GPU of 40 GB holds one rank of 30 GB, not two."""
    sets = {"application.memory_size": "30 GB", "application.ranks_per_node": str(per_node)}
    found = whatif.run("jacobi2d", platform="perlmutter", overrides=sets | {"application.rank_count": "64"})
    assert (found.reasons == ()) == fits
    assert fits or "does not fit the device" in found.reasons[0]


def test_a_lone_rank_has_the_memory_of_its_gpu_alone():
    sets = {"application.memory_size": "30 GB", "application.ranks_per_gpu": "4", "application.rank_count": "1"}
    assert whatif.run("jacobi2d", platform="perlmutter", overrides=sets).reasons == ()


@pytest.mark.parametrize("sharing", ["mps", "time_slices"])
def test_ranks_on_cores_have_no_gpu_to_share(sharing):
    assert time_of(KERNEL, "turin", ranks_per_gpu=4, gpu_sharing=sharing) == time_of(KERNEL, "turin")


FEW_BLOCKS = KERNEL | {"dram_size": "1 MB", "block_count": 20, "block_size": 256}
"""Fewer blocks than the 108 multiprocessors of an A100, each of which has two thirds of the threads that fill it."""
LAUNCH = 2e-6


@pytest.mark.parametrize(
    ("share", "filled"), [(1, 20 / 108 * 2 / 3), (4, 80 / 108 * 2 / 3), (8, 160 / 216), (16, 320 / 324)]
)
def test_blocks_of_ranks_at_the_same_time_fill_the_gpu_together(share, filled):
    time = time_of(FEW_BLOCKS, ranks_per_gpu=share)
    assert_allclose(time - LAUNCH, share * 1e9 / (9.7e12 * filled), rtol=1e-6, atol=0)


@pytest.mark.parametrize("phase", [FEW_BLOCKS, GEMM | {"m": 512, "n": 512, "launch_time": "5 us"}])
def test_kernels_of_ranks_in_time_slices_follow_one_another(phase):
    one, four = (time_of(phase, ranks_per_gpu=count, gpu_sharing="time_slices") for count in (1, 4))
    assert_allclose(four, 4 * one, rtol=1e-12, atol=0)


def test_products_of_ranks_at_the_same_time_fill_the_gpu_together():
    """One rank has 64 tiles of 64 x 64 on 108 multiprocessors; six have 384 in four waves."""
    one, six = (time_of(GEMM | {"m": 512, "n": 512}, ranks_per_gpu=count) for count in (1, 6))
    assert_allclose(six / one, 6 * (64 / 108) / (384 / 432), rtol=1e-9, atol=0)


@pytest.mark.parametrize(("share", "resident"), [(1, True), (2, True), (3, False)])
def test_data_of_ranks_at_the_same_time_share_the_cache(share, resident):
    """20 MB of a rank in a cache of 50 MB."""
    phase = KERNEL | {"operations": "0 flop", "dram_size": "20 MB", "working_set": "20 MB"}
    gpu = whatif.load("jacobi2d", platform="dgx_h100").program.parameters
    bandwidth = gpu[f"platform.node.gpu.{'l2' if resident else 'dram'}_bandwidth"].value
    time = time_of(phase, "dgx_h100", ranks_per_gpu=share)
    assert_allclose(
        time - gpu["platform.node.gpu.empty_kernel_time"].value, share * 20e6 / bandwidth, rtol=1e-9, atol=0
    )


ALLREDUCE = {"kind": "collective", "model": "postal", "algorithm": "ring", "message_size": "1 MB", "operation_count": 3}
COPY = {"kind": "transfer", "direction": "device_to_host", "transfer_size": "8 B", "transfer_count": 2}


@pytest.mark.parametrize(
    ("share", "phases", "waits"),
    [
        (1, {"work": KERNEL, "sum": COPY | {"blocking": True}}, 0),
        (4, {"work": FEW_BLOCKS, "sum": COPY | {"blocking": True}}, 4 * 2),
        (4, {"work": FEW_BLOCKS, "sum": COPY}, 4 * 837.05e-6 / 1.2e-3),
        (4, {"work": FEW_BLOCKS, "sum": COPY | {"blocking": True}, "all": ALLREDUCE}, 4 * (2 + 3)),
    ],
    ids=["one rank", "copies", "no wait", "copies and collectives"],
)
def test_gpus_in_time_slices_switch_where_a_rank_waits_and_after_a_slice(share, phases, waits):
    about = {"name": "one", "rank_count": 64, "iteration_count": 1, "phases": phases, "ranks_per_gpu": share}
    built = whatif.Scenario.of(application=about | {"gpu_sharing": "time_slices"}, name="one", platform="perlmutter")
    assert_allclose(float(whatif.run(built)["terms.gpu_switches"]), waits * 135e-6, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("sets", "note"),
    [
        ({}, None),
        ({"application.ranks_per_gpu": "2"}, "as under MPS (assumed: application.gpu_sharing is not stated)"),
        ({"application.ranks_per_gpu": "2", "application.gpu_sharing": "mps"}, "as under MPS"),
        ({"application.ranks_per_gpu": "2", "application.gpu_sharing": "time_slices"}, "in time slices"),
    ],
)
def test_notes_state_how_ranks_share_a_gpu(sets, note):
    request = EvaluationRequest(whatif.load("jacobi2d", overrides=sets), grid_of([], 1), None)
    found = [text for text in request_notes(request) if "share a GPU" in text]
    assert len(found) == (note is not None)
    assert note is None or note in found[0]
    assert ("assumed" in "".join(found)) == ("assumed" in (note or ""))


def test_ways_to_share_a_gpu_are_swept():
    values = {"application.gpu_sharing": "mps,time_slices"}
    together, sliced = whatif.sweep("jacobi2d", values, overrides={"application.ranks_per_gpu": "4"})["total_time"]
    assert 1.05 * together < sliced < 1.5 * together


@pytest.mark.parametrize("scenario", ["llama_training", "llama_serving"])
@pytest.mark.parametrize(
    "placed",
    [{"application.ranks_per_gpu": "2"}, {"application.ranks_per_node": "16"}],
    ids=lambda placed: next(iter(placed)),
)
def test_ranks_of_transformers_share_no_gpu(scenario, placed):
    assert not whatif.run(scenario).reasons
    (reason,) = whatif.run(scenario, overrides=placed).reasons
    assert "share no GPU" in reason


def test_sharing_gpus_does_not_save_their_energy():
    cells = {"application.grid.cells.x": "8192"}
    one, eight = (
        float(whatif.run("jacobi2d", overrides={**cells, "application.ranks_per_gpu": str(share)})["total_energy"])
        for share in (1, 8)
    )
    assert 0.9 * one < eight < 1.5 * one


def test_time_slices_of_a_machine_without_gpus_are_refused():
    with pytest.raises(whatif.WhatifError, match="has no GPU for this kernel"):
        time_of(MEASURED | {"bound": "nothing"}, "turin", runs_on="gpu", ranks_per_gpu=4, gpu_sharing="time_slices")


LINK = {"kind": "transfer", "direction": "host_to_device", "transfer_size": "64 MiB"}


@pytest.mark.parametrize("sharing", ["mps", "time_slices"])
@pytest.mark.parametrize(
    "copy",
    [
        LINK,
        LINK | {"direction": "device_to_host"},
        LINK | {"direction": "peer_to_peer"},
        LINK | {"direction": "device_to_device"},
    ],
    ids=lambda copy: copy["direction"],
)
def test_copies_of_ranks_share_the_link_or_the_memory_of_their_gpu(copy, sharing):
    empty = time_of(copy | {"transfer_size": "0 B"})
    one, four = (time_of(copy, ranks_per_gpu=count, gpu_sharing=sharing) for count in (1, 4))
    assert_allclose(four - empty, 4 * (one - empty), rtol=1e-9, atol=0)


def test_staged_copies_of_ranks_share_the_link_but_not_the_cores():
    """A core of Summit fills buffers at 11.8 GB/s; eight ranks share the 47 GB/s of the link."""
    staged = LINK | {"memory": "pageable", "pageable_model": "staged", "transfer_size": "1 GiB"}
    one, two, eight = (time_of(staged, "summit", ranks_per_gpu=count) for count in (1, 2, 8))
    assert two < 1.01 * one < eight < 3 * one


@pytest.mark.parametrize(
    ("placed", "copying", "share"),
    [
        ({"rank_count": 12}, {}, 2),
        ({"rank_count": 1}, {}, 1),
        ({"rank_count": 24, "ranks_per_node": 1}, {}, 1),
        ({"rank_count": 12, "ranks_per_gpu": 3}, {}, 6),
        ({"rank_count": 4, "ranks_per_gpu": 3}, {}, 4),
        ({"rank_count": 12}, {"device_count": 1}, 1),
        ({"rank_count": 12}, {"device_count": 12}, 2),
    ],
)
def test_copies_of_tiles_share_the_link_of_their_gpu(placed, copying, share):
    """Two of the twelve tiles of a node of Aurora share a link."""
    copy = LINK | copying
    empty, one = (time_of(LINK | {"transfer_size": size}, "aurora", rank_count=1) for size in ("0 B", "64 MiB"))
    assert_allclose(time_of(copy, "aurora", **placed) - empty, share * (one - empty), rtol=1e-9, atol=0)


LINKS = {
    "first": {"ends": ["cpu0", "gpu0"], "bandwidth": "8 GB/s"},
    "up": {"ends": ["cpu0", "switch0"], "bandwidth": "8 GB/s"},
    **{f"to{gpu}": {"ends": ["switch0", f"gpu{gpu}"], "bandwidth": "8 GB/s"} for gpu in (1, 2, 3)},
}
"""Three of four GPUs behind one switch."""


@pytest.mark.parametrize(("placed", "share"), [({}, 3), ({"rank_count": 2}, 1), ({"rank_count": 3}, 2)])
def test_all_devices_with_ranks_share_the_links_of_a_node(placed, share):
    machine = {"extends": "perlmutter", "name": "Behind a switch", "node": {"links": LINKS}}
    empty, one = (time_of(LINK | {"transfer_size": size}, machine, rank_count=1) for size in ("0 B", "64 MiB"))
    assert_allclose(time_of(LINK, machine, **placed) - empty, share * (one - empty), rtol=1e-9, atol=0)


@pytest.mark.parametrize("direction", ["host_to_device", "device_to_host"])
def test_copies_in_the_memory_that_a_gpu_shares_with_its_processor_are_no_faster_than_inside_the_gpu(direction):
    shared, inside = (time_of(LINK | {"direction": way}, "el_capitan") for way in (direction, "device_to_device"))
    assert inside < shared < 1.1 * inside
