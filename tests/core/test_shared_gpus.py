"""Ranks that share a GPU: each has an equal share of its rates."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

import whatif

KERNEL = {
    "kind": "kernel",
    "model": "roofline",
    "dominant_operation": "fp_64",
    "metrics_per": "rank",
    "operations": "1 Gflop",
    "dram_size": "9 GB",
}
GEMM = {"kind": "gemm", "precision": "fp64", "m": 8192, "n": 8192, "k": 8192, "launch_time": "0 s"}
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
@pytest.mark.parametrize("phase", [KERNEL, GEMM, MEASURED], ids=lambda phase: phase["kind"])
def test_kernels_take_as_many_times_as_long_as_ranks_share_a_gpu(phase, placed, share):
    fixed = 0.0
    if phase is not GEMM:
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


def test_ranks_on_cores_have_no_gpu_to_share():
    assert time_of(KERNEL, "turin", ranks_per_gpu=4) == time_of(KERNEL, "turin")


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
    one, eight = (
        float(whatif.run("jacobi2d", overrides={"application.ranks_per_gpu": str(share)})["total_energy"])
        for share in (1, 8)
    )
    assert 0.9 * one < eight < 1.5 * one
