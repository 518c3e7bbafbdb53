"""GPUs: texts of nvidia-smi and rocm-smi, arrays of torch and cupy, and the platform that is written of them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.measured_at_hand import MACHINE, SimulatedArrays, simulated
from tests.paths import DATA
from whatif.files.measured_gpus import part_of
from whatif.files.measured_platform import MeasuredPlatform
from whatif.measuring.gpu_arrays import CupyArrays, TorchArrays
from whatif.measuring.gpus import (
    NVIDIA,
    NVIDIA_LINKS,
    NVIDIA_TOPOLOGY,
    ROCM,
    GPUs,
    amd_gpus,
    links_between,
    nvidia_gpus,
    parse_nvlinks,
    parse_topology,
    read_gpus,
)
from whatif.measuring.whole_machine import MeasurementOptions, measure_machine
from whatif.schema.gpu_parts import gpu_part, same_gpu
from whatif.schema.load import load_platform

FOLDER = DATA / "measuring"
LISTED = {"a100": "NVIDIA A100-SXM4-40GB, 40960, 4, 16\n" * 4, "h100": "NVIDIA H100 80GB HBM3, 81559, 5, 16\n" * 8}


def text(name):
    return (FOLDER / f"{name}.txt").read_text()


A100 = nvidia_gpus(LISTED["a100"], text("topo_4_a100"), text("nvlink_4_a100"))
H100 = nvidia_gpus(LISTED["h100"], text("topo_8_h100"), text("nvlink_8_h100"))
MI300X = amd_gpus(text("rocm_8_mi300x"))


def test_links_of_four_gpus_lead_to_each_other():
    assert (A100.name, A100.count, A100.memory_size) == ("NVIDIA A100-SXM4-40GB", 4, 40960 * 2**20)
    assert (A100.link, A100.link_count, A100.link_rate, A100.switched) == ("nvlink", 4, 25e9, False)
    assert (A100.pcie, A100.source) == ((4, 16), "nvidia-smi")


def test_links_of_eight_gpus_lead_to_switches():
    assert (H100.link, H100.link_count, H100.link_rate, H100.switched) == ("nvlink", 18, 26.562e9, True)


def test_gpus_of_rocm():
    assert (MI300X.name, MI300X.count, MI300X.memory_size) == ("AMD Instinct MI300X OAM", 8, 206141652992)
    assert (MI300X.link, MI300X.link_count, MI300X.link_rate) == ("xgmi", 0, 0.0)


def test_topology_without_adapters():
    found = parse_topology(text("topo_8_h100"))
    assert len(found) == 8 * 7
    assert set(found.values()) == {"NV18"}


def test_one_gpu_has_no_links():
    topology = text("topo_1_h100")
    assert "\x1b[4m" in topology
    assert parse_topology(topology) == {}
    found = nvidia_gpus("NVIDIA H100 80GB HBM3, 81559, 5, 16\n", topology, "")
    assert (found.count, found.link, found.pcie, part_of(found)) == (1, "", (5, 16), "h100-sxm5-80gb")


def test_inactive_links_do_not_count():
    found = parse_nvlinks("GPU 0: X (UUID: a)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\nGPU 1: X (UUID: b)\n")
    assert found == {0: [25.781e9], 1: []}
    assert parse_nvlinks("") == {}


@pytest.mark.parametrize(
    ("connections", "link"),
    [
        ({(0, 1): "PHB", (0, 2): "SYS", (1, 2): "SYS"}, ("pcie", 0, 0)),
        ({(0, 1): "NV1", (0, 2): "NV2", (1, 2): "NV2"}, ("", 0, 0)),
        ({(0, 1): "NV2", (0, 2): "SYS", (1, 2): "SYS"}, ("", 0, 0)),
        ({(0, 1): "NV2", (1, 2): "NV2", (0, 2): "SYS"}, ("", 0, 0)),
        ({(0, 1): "NV4", (2, 3): "NV4", (0, 2): "SYS", (0, 3): "SYS", (1, 2): "SYS", (1, 3): "SYS"}, ("nvlink", 4, 2)),
        ({}, ("", 0, 0)),
    ],
)
def test_domains_need_equal_connections(connections, link):
    both = connections | {(other, one): cell for (one, other), cell in connections.items()}
    assert links_between(both) == link


def test_links_of_eight_gpus_in_two_domains():
    found = amd_gpus(text("rocm_8_mi210"))
    assert (found.name, found.count, found.memory_size) == ("Instinct MI210", 8, 68702699520)
    assert (found.link, found.domain) == ("xgmi", 4)


def test_pairs_of_bridged_gpus_are_domains(tmp_path):
    topology = "GPU0 X NV4 SYS SYS\nGPU1 NV4 X SYS SYS\nGPU2 SYS SYS X NV4\nGPU3 SYS SYS NV4 X\n"
    links = "GPU 0: X (UUID: a)\n" + 4 * "\t Link 0: 25 GB/s\n"
    found = nvidia_gpus(LISTED["a100"], topology, links)
    assert (found.link, found.link_count, found.link_rate, found.domain) == ("nvlink", 4, 25e9, 2)
    assert not found.switched
    node = written(measured(found, nothing), tmp_path)
    assert (node.gpu_count, node.domain_gpu_count, node.peer_link.link_count) == (4, 2, 4)


def test_programs_are_asked_in_turn():
    nvidia = {NVIDIA: LISTED["h100"], NVIDIA_TOPOLOGY: text("topo_8_h100"), NVIDIA_LINKS: text("nvlink_8_h100")}
    assert read_gpus(lambda command: nvidia.get(command, "")) == H100
    assert read_gpus(lambda command: text("rocm_8_mi300x") if command == ROCM else "") == MI300X
    assert read_gpus(lambda command: "") is None
    assert read_gpus(lambda command: "No devices were found\n") is None


def test_different_gpus_are_told():
    found = nvidia_gpus("NVIDIA L40S, 46068, 4, 16\nTesla T4, 15360, 3, 16\n", "", "")
    assert found.warnings == ("GPUs differ: only NVIDIA L40S is described, not Tesla T4",)


@pytest.mark.parametrize(
    ("name", "memory", "part"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm4-40gb"),
        ("NVIDIA A100-PCIE-40GB", 40960, None),
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 81559, None),
        ("NVIDIA H200", 143771, "h200-sxm"),
        ("NVIDIA L40S", 46068, "l40s"),
        ("NVIDIA GH200 480GB", 97871, "gh200-96gb"),
        ("Tesla V100-SXM2-16GB", 16160, "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", 32510, None),
        ("Tesla T4", 15360, None),
    ],
)
def test_shipped_part_by_name_and_memory(name, memory, part):
    assert part_of(GPUs(name, 1, memory * 2.0**20)) == part


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H200", "h200-sxm"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM", None),
        ("NVIDIA H100 64GB", None),
        ("NVIDIA A800-SXM4-80GB", None),
        ("", None),
    ],
)
def test_shipped_part_by_name_alone(name, part):
    assert gpu_part(name) == part


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", True),
        ("NVIDIA H200", "H200-SXM-141GB", True),
        ("NVIDIA H200", "GH200 (Hopper, 96 GB)", False),
        ("NVIDIA H200", "NVIDIA GH200 480GB", False),
        ("NVIDIA H100 PCIe", "H100-SXM5-80GB", False),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-80GB", False),
        ("TITAN Xp", "NVIDIA TITAN Xp", True),
        ("v100 SXM2", "Tesla V100-SXM2-16GB", True),
    ],
)
def test_names_of_one_gpu(one, other, same):
    assert same_gpu(one, other) is same_gpu(other, one) is same


def measured(gpus, arrays=SimulatedArrays):
    machine = replace(MACHINE, gpus=gpus)
    return MeasuredPlatform(measure_machine(MeasurementOptions(20.0), simulated(machine=machine, arrays=arrays)))


def written(found, folder):
    found.write(folder / "mine.toml")
    return load_platform(str(folder / "mine.toml"))[0].node


def nothing(team):
    return None


def test_platform_of_a_known_gpu_has_its_data_sheet_links_and_measured_rates(tmp_path):
    node = written(found := measured(H100), tmp_path)
    assert (node.gpu_count, node.gpu.name, node.domain_topology) == (8, "H100-SXM5-80GB", "switch")
    assert (node.peer_link.link_count, node.peer_link.lane_count * node.peer_link.lane_bandwidth) == (18, 25e9)
    assert (node.host_link.kind, node.host_link.generation) == ("pcie", 5)
    assert_allclose(node.gpu.dram_bandwidth, SimulatedArrays.bandwidth, rtol=0.01, atol=0)
    # The peaks of fp64 and bf16 are those of the data sheet: 67 and 989 Tflop/s.
    assert_allclose(node.gpu.matrix_efficiency, (60 / 67 + 700 / 989) / 2, rtol=0.01, atol=0)
    assert not [line for line in found.notes if "H100" in line]
    rows = found.table().to_pandas().set_index("quantity")
    assert rows.loc["GPUs", "value"] == "8 x NVIDIA H100 80GB HBM3, 85.52 GB"
    assert rows.loc["copy, GPU to GPU", "grade"] == "measured"


def test_platform_of_a_known_gpu_without_a_library_of_arrays(tmp_path):
    node = written(measured(A100, nothing), tmp_path)
    assert (node.gpu.name, node.gpu.dram_bandwidth, node.domain_topology) == ("A100-SXM4-40GB", 1360e9, "mesh")
    assert node.peer_link.link_count == 4
    answer = whatif.run("minife", platform="mine", platform_dirs=[tmp_path], overrides={"application.rank_count": 4})
    assert float(answer["kernel_time"]) > 0


def test_platform_of_an_amd_gpu_has_the_fabric_of_its_part(tmp_path):
    node = written(measured(MI300X, nothing), tmp_path)
    assert (node.gpu.name, node.peer_link.lane_bandwidth) == ("MI300X", 4e9)
    assert node.host_link is None


def test_an_unknown_gpu_has_its_measured_rates(tmp_path):
    unknown = GPUs("NVIDIA X1", 2, 64e9, "nvlink", 2, 80e9, False, (6, 8), "nvidia-smi")
    node = written(measured(unknown), tmp_path)
    assert (node.gpu.name, node.gpu.memory_size) == ("NVIDIA X1", 64e9)
    assert_allclose(node.gpu.peak_double_rate, 60e12, rtol=0.01, atol=0)
    assert_allclose(node.gpu.matrix_rates.bf16, 700e12, rtol=0.01, atol=0)
    assert (node.peer_link.lane_count, node.peer_link.lane_bandwidth) == (1, 80e9)
    assert (node.host_link.generation, node.host_link.lane_count) == (6, 8)


def test_an_unknown_gpu_that_is_not_measured_is_left_out(tmp_path):
    found = measured(GPUs("Tesla T4", 2, 15360 * 2.0**20, source="nvidia-smi"), nothing)
    node = written(found, tmp_path)
    assert node.gpu is None
    assert node.gpu_count is None
    assert any("2 x Tesla T4: no shipped part has this name and memory" in line for line in found.notes)


class FullGPU(SimulatedArrays):
    """A GPU without free memory."""

    def ones(self, shape, precision, device):
        raise MemoryError("CUDA out of memory.\nTried to allocate 256 MiB")


def test_a_library_that_fails_is_told_and_the_data_sheet_remains(tmp_path):
    found = measured(A100, FullGPU)
    assert "warning: GPUs were not measured: CUDA out of memory." in found.notes
    assert written(found, tmp_path).gpu.dram_bandwidth == 1360e9


def test_links_of_several_kinds_are_told(tmp_path):
    found = measured(replace(A100, link="", link_count=0), nothing)
    assert written(found, tmp_path).peer_link is None
    assert any("state [node.peer_link]" in line for line in found.notes)


class Array(np.ndarray):
    """An array with the methods that torch and cupy have and numpy lacks."""

    def pin_memory(self):
        return self

    def copy_(self, source, *, non_blocking):
        self[...] = source

    def set(self, source):
        self[...] = source

    def get(self, out):
        out[...] = self


def ones(shape, dtype, device="cuda:0"):
    assert device.startswith("cuda:")
    return np.ones(shape, dtype).view(Array)


def elementwise(inputs, outputs, operation, name):
    assert (inputs, outputs, operation) == ("T b, T c", "T a", "a = b + 3 * c")
    return lambda b, c, a: a.__setitem__(..., b + 3 * c)


def add(b, c, *, alpha, out):
    out[...] = b + alpha * c


def normal(shape, dtype):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype).view(Array)


class Device(nullcontext):
    """A device of cupy."""

    def synchronize(self):
        DONE.append(self.enter_result)


DONE = []
TORCH = SimpleNamespace(
    cuda=SimpleNamespace(device_count=lambda: 2, synchronize=DONE.append), float64=np.float64, ones=ones, add=add,
    matmul=np.matmul, randn=lambda shape, dtype, device: normal(shape, dtype),
)  # fmt: skip
CUPY = SimpleNamespace(
    cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 2), Device=Device), ndarray=Array, ones=ones,
    ElementwiseKernel=elementwise, matmul=np.matmul, copyto=np.copyto, random=SimpleNamespace(standard_normal=normal),
)  # fmt: skip


@pytest.mark.parametrize("arrays", [TorchArrays(TORCH), CupyArrays(CUPY, np.empty)], ids=["torch", "cupy"])
def test_libraries_of_arrays_compute_what_is_timed(arrays):
    a, b, c = (arrays.ones((2, 2), "fp64", 0) for _ in range(3))
    arrays.triad(a, b, c)
    assert (np.asarray(a) == 4).all()
    arrays.product(a, b, c)
    assert (np.asarray(c) == 8).all()
    host, other = arrays.ones((2, 2), "fp64", None), arrays.ones((2, 2), "fp64", 1)
    arrays.copy(other, c)
    arrays.copy(host, other)
    assert (np.asarray(host) == 8).all()
    arrays.copy(b, host * 2)
    assert (np.asarray(b) == 16).all()
    assert abs(np.asarray(arrays.random((100, 100), "fp64")).std() - 1) < 0.05
    DONE.clear()
    arrays.wait()
    assert DONE == [0, 1]
