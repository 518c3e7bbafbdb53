"""Kernels under their roofs: against the predictions of gpuroofperf's authors, and by hand from the files."""

from __future__ import annotations

import json
import math
import pickle

import pytest
from numpy.testing import assert_allclose

from tests.models.test_models_roofline import COLUMNS, DATA, PREDICTIONS, read_kernels
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import InfeasiblePointError
from whatif.schema.toml import parse_document
from whatif.studies.roofline_study import gpu_roofs, kernel_points, second_gpu

GPU = "platform.node.gpu"
HEAD = '[platform]\nextends = "summit"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'
KERNEL = """
[application.phases.{name}]
kind = "kernel"
model = "{model}"
dominant_operation = "{dominant_op}"
metrics_per = "rank"
launch_time = "0 s"
operations = "{compute_ops!r} flop"
dram_size = "{dram_bytes!r} B"
l2_size = "{l2_bytes!r} B"
operation_efficiency = {opmix_efficiency!r}
compute_fraction = {mix_compute!r}
load_store_fraction = {mix_ldst!r}
"""


def points_of(scenario: Scenario):
    return {point.name: point for point in kernel_points(scenario.program, evaluate(scenario.program))}


def points(name: str, **sets: str):
    return points_of(Scenario.open(name, overrides=sets))


def roofs(name: str, platform: str | None = None, **sets: str):
    program = Scenario.open(name, platform=platform, overrides=sets).program
    return gpu_roofs(program, evaluate(program))


def as_phases(kernels, model: str = "roofline") -> str:
    """The authors' kernels as the phases k0, k1, ..; their own names are no keys of a file."""
    return "".join(
        KERNEL.format(name=f"k{number}", model=model, **kernel) for number, kernel in enumerate(kernels.values())
    )


def made_up(body: str, **sets: str) -> Scenario:
    return Scenario(parse_document(HEAD + body, "t.toml"), None, sets)


@pytest.mark.parametrize(("kernel_file", "prediction_file", "gpu"), PREDICTIONS, ids=[p[1] for p in PREDICTIONS])
def test_the_points_are_those_of_the_authors(kernel_file, prediction_file, gpu):
    kernels = read_kernels(f"miniFE/{kernel_file}")
    (predictions,) = json.loads((DATA / "predictions" / "miniFE" / prediction_file).read_text()).values()
    units = {key: "B/s" if key.endswith("bandwidth") else "flop/s" for key in COLUMNS.values()}
    sets = {f"{GPU}.{key}": f"{float(gpu[key])!r} {unit}" for key, unit in units.items()}
    found = points_of(made_up(as_phases(kernels), **sets))
    assert len(found) == len(predictions) > 2
    for point, name in zip(found.values(), kernels, strict=True):
        expected = predictions[name]
        assert_allclose(point.intensity, expected["krn_op_ratio"], rtol=1e-14, atol=0)
        assert_allclose(point.time * 1e3, expected["estimated_time"], rtol=1e-14, atol=0)
        assert_allclose(point.achieved_rate / 1e9, expected["throughput"], rtol=1e-14, atol=0)
        assert_allclose(point.attainable_rate / point.dram_bandwidth, expected["dev_op_ratio"], rtol=1e-14, atol=0)
        assert point.limit == {"Memory": "dram", "Compute": "compute"}[expected["type"]]


def test_jacobi2d_by_hand_from_its_file():
    found = points("jacobi2d")
    assert list(found) == ["pack", "unpack", "stencil", "reduce"]
    stencil, pack = found["stencil"], found["pack"]
    # W / Q and Q / BW of one of the 100 profiled launches, on the V100's 779.4108 GB/s.
    assert_allclose(stencil.intensity, 161061273600 / 459335763200, rtol=1e-14, atol=0)
    assert_allclose(stencil.time, 1.0244 * 4593357632 / 779.4108e9 + 2e-6, rtol=1e-14, atol=0)
    assert_allclose(stencil.achieved_rate, 1610612736 / stencil.time, rtol=1e-14, atol=0)
    assert (stencil.limit, stencil.dominant_operation, stencil.l2_bandwidth) == ("dram", "fp_64", None)
    assert stencil.dram_bandwidth == 779.4108e9
    assert (pack.limit, pack.dominant_operation) == ("compute", "integer")
    launches = 1 - 2e-6 / pack.time
    assert 2.4924 * pack.achieved_rate * launches**-1 == pytest.approx(pack.attainable_rate, rel=1e-14)
    # e_mix e_inst R_d: multiply-adds, integer adds (the rest) and shared-memory accesses take turns.
    x, m = 0.4732613596163474, 1.2811957800588971e-05
    slot = (1 - x - m) / 12797.8768e9 + 2 * x / 12172.8398e9 + m / 3909.2885e9
    assert_allclose(pack.attainable_rate, 2 * x * 0.5 / slot, rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
def test_times_and_shares_are_those_of_the_command_line(whatif_main, name):
    _, out, _ = whatif_main("run", name, "--point", "--format", "json")
    (row,) = json.loads(out)["rows"]
    for point in points(name).values():
        assert point.time == row["terms"][point.name]
        assert_allclose(point.share, point.time / row["iteration_time"], rtol=1e-14, atol=0)
    assert_allclose(sum(point.time for point in points(name).values()), row["kernel_time"], rtol=1e-12, atol=0)


def test_the_second_level_cache_is_a_limit_where_the_model_has_it():
    model = {"application.phases.force.model": "roofline"}
    without, force = points("minimd", **model)["force"], points("minimd")["force"]
    assert (without.limit, without.l2_bandwidth) == ("dram", None)
    assert (force.limit, force.l2_bandwidth) == ("l2", 2878.6151e9)
    assert_allclose(force.time, 1.3996 * 6055548864 / 2878.6151e9 + 2e-6, rtol=1e-14, atol=0)
    assert_allclose(force.achieved_rate, 1123807324 / force.time, rtol=1e-14, atol=0)
    assert points("minimd", **{f"{GPU}.l2_bandwidth": "28 TB/s"})["force"].limit == "dram"
    # The stencil's 1525 GB through the cache take 5.3 ms, its 459 GB of memory 5.9 ms.
    stencil = points("jacobi2d", **{"application.phases.stencil.model": "roofline_l2"})["stencil"]
    assert (stencil.limit, stencil.l2_bandwidth) == ("dram", 2878.6151e9)


def test_kernels_without_work_or_without_bytes():
    kernel = {"dominant_op": "fp_64", "compute_ops": 0, "dram_bytes": 0, "l2_bytes": 0}
    mix = {"opmix_efficiency": 1.0, "mix_compute": 0.5, "mix_ldst": 0.1}
    still = as_phases({"still": {**kernel, **mix}, "bytes": {**kernel, **mix, "dram_bytes": 10**9}})
    idle, copying = points_of(made_up(still)).values()
    assert (idle.time, idle.achieved_rate, idle.limit) == (3.3e-6, 0, "launch")
    assert (copying.intensity, copying.achieved_rate, copying.limit) == (0, 0, "dram")
    assert_allclose(idle.share + copying.share, 1, rtol=1e-14, atol=0)
    (computing,) = points_of(made_up(as_phases({"c": {**kernel, **mix, "compute_ops": 10**9}}))).values()
    assert (computing.intensity, computing.limit) == (math.inf, "compute")
    (alone,) = points_of(made_up(as_phases({"still": {**kernel, **mix}}))).values()
    assert (alone.time, alone.share) == (3.3e-6, 1)


def test_the_roofs_are_the_values_of_the_platform_file():
    v100 = roofs("jacobi2d")
    assert (v100.name, v100.dram_bandwidth, v100.l2_bandwidth) == ("Tesla V100-SXM2-16GB", 779.4108e9, 2878.6151e9)
    assert v100.peaks == {"fp_32": 13083.7225e9, "fp_64": 6340.4458e9, "integer": 12172.8398e9}
    assert roofs("jacobi2d", "bridges").peaks == {"fp_32": 9344.3607e9, "fp_64": 4569.3862e9, "integer": 3028.8823e9}


def test_the_roofs_are_those_of_expressions_and_edits():
    assert roofs("minife_devices", **{"parameters.bandwidth_factor": "2"}).dram_bandwidth == 2 * 779.4108e9
    session = Session.start(Scenario.open("jacobi2d")).edit(f"{GPU}.dram_bandwidth", "1 TB/s")
    assert gpu_roofs(session.program, session.at).dram_bandwidth == 1e12
    (stencil,) = (point for point in kernel_points(session.program, session.at) if point.name == "stencil")
    assert_allclose(stencil.time, 1.0244 * 4593357632 / 1e12 + 2e-6, rtol=1e-14, atol=0)


def test_the_same_kernels_on_the_gpu_of_a_machine_that_is_too_small_for_the_ranks():
    # Bridges has 32 nodes, and not the 256 of 1536 ranks; its P100 is asked for, not its nodes.
    found = second_gpu(Scenario.open("jacobi2d"), "bridges")
    assert (found.platform, found.reason) == ("bridges", "")
    assert found.roofs == roofs("jacobi2d", "bridges")
    here, there = points("jacobi2d"), {point.name: point for point in found.kernels}
    assert there.keys() == here.keys()
    assert all(there[name].intensity == here[name].intensity for name in here)
    assert_allclose(there["stencil"].time, 1.0244 * 4593357632 / 546.7274e9 + 2e-6, rtol=1e-14, atol=0)
    x, m = 0.4732613596163474, 1.2811957800588971e-05
    slot = (1 - x - m) / 4610.6293e9 + 2 * x / 3028.8823e9 + m / 2376.4717e9
    kernel = there["pack"].time - 2e-6
    assert_allclose(2.4924 * 2420836608 / kernel, 2 * x * 0.5 / slot, rtol=1e-13, atol=0)
    assert_allclose(there["pack"].time, 2420836608 / there["pack"].achieved_rate, rtol=1e-13, atol=0)


def test_edits_of_the_present_gpu_say_nothing_of_the_second_one_and_those_of_the_application_stay():
    sets = {f"{GPU}.dram_bandwidth": "5 TB/s", "application.phases.stencil.launch_count": "3"}
    found = second_gpu(Scenario.open("jacobi2d", overrides=sets), "lassen")
    (stencil,) = (point for point in found.kernels if point.name == "stencil")
    assert found.roofs == roofs("jacobi2d", "lassen")
    assert stencil.dram_bandwidth == 779.4108e9
    assert_allclose(stencil.time, 3 * (1.0244 * 4593357632 / 779.4108e9 + 2e-6), rtol=1e-14, atol=0)


def test_errors_of_the_second_gpu_are_reported():
    missing = second_gpu(Scenario.open("jacobi2d"), "sumit")
    assert (missing.roofs, missing.kernels) == (None, ())
    assert "`sumit`: platform not found; did you mean `summit`" in missing.reason
    peers = {"application.phases.device_to_host.direction": "peer_to_peer"}
    found = second_gpu(Scenario.open("jacobi2d_strong", overrides=peers), "bridges")
    assert "Bridges does not state `platform.node.peer_link`" in found.reason
    # 16 GB of a P100 and of a V100 alike hold 14 GB, and not 17 GB.
    assert second_gpu(Scenario.open("jacobi2d", overrides={"application.memory_size": "14 GB"}), "bridges").reason == ""
    found = second_gpu(Scenario.open("jacobi2d", overrides={"application.memory_size": "17 GB"}), "bridges")
    assert "application.memory_size does not fit the device" in found.reason


def test_a_point_that_cannot_exist_has_no_kernels():
    with pytest.raises(InfeasiblePointError, match=r"^infeasible: the ranks need more nodes"):
        points("jacobi2d", **{"platform.node_count": "10"})


def test_points_and_roofs_cross_to_another_process():
    scenario = Scenario.open("minimd")
    found = second_gpu(scenario, "bridges")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - what has just been packed
    first = kernel_points(scenario.program, evaluate(scenario.program))
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301


def test_kernels_on_sockets_are_below_the_roofs_of_a_rank():
    scenario = Scenario.open("minife", platform="fugaku", overrides={"application.ranks_per_node": "4"})
    evaluation = evaluate(scenario.program)
    roofs = gpu_roofs(scenario.program, evaluation)
    assert roofs.name == "A64FX, 12 cores"
    assert_allclose(roofs.dram_bandwidth, 803.2e9 / 4, rtol=1e-12, atol=0)
    assert_allclose(roofs.peaks["fp_64"], 3379.2e9 / 4, rtol=1e-12, atol=0)
    points = kernel_points(scenario.program, evaluation)
    assert {point.limit for point in points} == {"dram"}
    assert {point.l2_bandwidth for point in points} == {None}
    for point in points:
        assert_allclose(point.achieved_rate, point.intensity * roofs.dram_bandwidth, rtol=1e-12, atol=0)
    assert second_gpu(scenario, "summit").reason == "kernels run on sockets here; only GPUs are compared"
