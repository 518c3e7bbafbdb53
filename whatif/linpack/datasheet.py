"""Costs of kernels and copies from data sheets, for processors and accelerators without a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.core.parameter_paths import NODE
from whatif.core.phases.host_transfer import LINK_BANDWIDTHS, LINK_SIZES
from whatif.errors import UsageError
from whatif.linpack.simulation.costs import (
    DGEMM,
    DGEMM_LIMITS,
    DTRSM,
    KERNEL_COLUMNS,
    KERNELS,
    MULTIPROCESSORS,
    PER_MNK,
    SIZE_SLOPE,
    TILE_EXTENT,
)
from whatif.linpack.simulation.simulator import HostProcessors
from whatif.models.quantities import FloatArray
from whatif.models.transfer import effective_bandwidth

_LINK: Final = f"{NODE}.host_link"
_SPLIT_FRACTION: Final = "application.split_fraction"
_WAYS: Final = ("write", "read")
"""Operation of the device in a copy to the host, and in one back."""
_LARGE_SIZE: Final = 2.0**30
"""Bytes of a copy that makes the time of requests and of the last packet negligible, as for a panel."""


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """Parameters of copies of pinned memory over a link of a node; hashable, as the `Plan` that it is part of."""

    link: str
    """Path of the link."""
    kind: str

    @property
    def parameters(self) -> list[str]:
        """Paths of all parameters."""
        named = [*LINK_BANDWIDTHS[self.kind][1], *(f"pinned_{way}_latency" for way in _WAYS)]
        named += [parameter for way in _WAYS for parameter in LINK_SIZES[self.kind, way][1].values()]
        return [f"{self.link}.{name}" for name in named]

    def copies(self, values: Mapping[str, float]) -> list[list[float]]:
        """[write or read by the device, 2]: latency and time per byte of large copies.

        t = L + n / BW_eff, with BW_eff that of large copies (Abdelhafez et al., Eq. 2 and 10).
        """
        return [[values[f"{self.link}.pinned_{way}_latency"], 1 / self._bandwidth(values, way)] for way in _WAYS]

    def _bandwidth(self, values: Mapping[str, float], way: str) -> float:
        bandwidth, names = LINK_BANDWIDTHS[self.kind]
        size, parts = LINK_SIZES[self.kind, way]
        raw = bandwidth(**{name: values[f"{self.link}.{name}"] for name in names})
        sent = size(
            message_size=_LARGE_SIZE, **{name: values[f"{self.link}.{parameter}"] for name, parameter in parts.items()}
        )
        return float(effective_bandwidth(np.asarray(_LARGE_SIZE), sent, raw))


def link_plan_of(link: str, parameters: Mapping[str, Any]) -> LinkPlan:
    """Plan of a link of a node, which the platform states."""
    return LinkPlan(link, "pcie" if f"{link}.generation" in parameters else "nvlink")


@dataclass(frozen=True, slots=True)
class PanelPlan:
    """Parameters of the cost of panels during updates on GPUs; hashable, as the `Plan` that it is part of."""

    processors: tuple[str, ...]
    """Parameters: number of processors of a node, and the peak rate and bandwidth of one. GPUs factor at their vector
    peak and memory's bandwidth. Sockets at that of their caches where it is stated, for the columns that are factored
    stay there while each core keeps its rows, or else at their memory's."""
    host_link: LinkPlan | None
    """Link between the host and one device; None: panels stay on the devices."""

    @property
    def parameters(self) -> list[str]:
        """Paths of all parameters."""
        return [*self.processors, *([] if self.host_link is None else self.host_link.parameters), _SPLIT_FRACTION]

    def host(self, values: Mapping[str, float], ranks_per_node: int) -> HostProcessors:
        """Costs of panels at one point: on a rank's share of the GPUs, or at the rates of all sockets, with copies."""
        table = np.zeros((len(KERNELS), KERNEL_COLUMNS))
        table[DGEMM_LIMITS] = np.inf
        on_device = self.host_link is None
        count_path, *rates = self.processors
        count = values[count_path] / (ranks_per_node if on_device else 1)
        rate, bandwidth = (values[path] * count for path in rates)
        fill_from_datasheet(table, rate, bandwidth, on_device=on_device)
        copies = np.zeros((len(_WAYS), 2)) if self.host_link is None else np.array(self.host_link.copies(values))
        return HostProcessors(table, copies, values[_SPLIT_FRACTION], is_shared=not on_device)


def panel_plan_of(parameters: Mapping[str, Any], place: str) -> PanelPlan | None:
    """Plan of panels on the host or the device; None on a platform without GPUs.

    Raise `UsageError` if parameters of panels on the host are missing.
    """
    device = (f"{NODE}.gpu_count", f"{NODE}.gpu.peak_double_rate", f"{NODE}.gpu.dram_bandwidth")
    if place == "device":
        return PanelPlan(device, None) if set(device) <= set(parameters) else None
    cache = f"{NODE}.cpu.cache_bandwidth"
    bandwidth = cache if cache in parameters else f"{NODE}.host.memory_bandwidth"
    processors = (f"{NODE}.socket_count", f"{NODE}.cpu.peak_double_rate", bandwidth)
    latency = f"{_LINK}.pinned_read_latency"
    missing = [path for path in (f"{NODE}.gpu_count", *processors, latency) if path not in parameters]
    if missing:
        wanted = ", ".join(f"`{path}`" for path in missing)
        raise UsageError(f'`application.panel_on = "host"` needs {wanted}')
    return PanelPlan(processors, link_plan_of(_LINK, parameters))


class DataSheet(NamedTuple):
    """Parameters of a node's devices, or of its sockets; empty if the platform does not state one."""

    device_count: str
    rates: tuple[str, ...]
    """Parameters whose product is the rate of products of one: its peak, or that of matrix units and their share."""
    bandwidth: str
    """Memory bandwidth of one."""
    tiles: tuple[str, ...] = ()
    """Parameters of the tiles of products: their extent, and the multiprocessors of one."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Paths of the stated parameters."""
        return tuple(path for path in (self.device_count, *self.rates, self.bandwidth, *self.tiles) if path)

    def charge(
        self, table: FloatArray, kernels: Sequence[str], values: Mapping[str, float], ranks_per_node: int
    ) -> None:
        """Charge kernels with a rank's share of its node: see `fill_from_datasheet`."""
        share = values[self.device_count] / ranks_per_node if self.device_count else 0.0
        rate = prod(values[path] for path in self.rates) * share if self.rates else np.inf
        bandwidth = values[self.bandwidth] * share if self.bandwidth else np.inf
        fill_from_datasheet(table, rate, bandwidth, kernels, on_device=".gpu" in self.device_count)
        if self.tiles and "dgemm" in kernels:
            extent, count = (values[path] for path in self.tiles)
            table[DGEMM_LIMITS, [TILE_EXTENT, MULTIPROCESSORS]] = extent, count * share

    def in_words(self, kernels: Sequence[str]) -> tuple[str, ...]:
        """Cost models of kernels without a calibration, one sentence each."""
        products = [name for name in kernels if name in ("dgemm", "dtrsm")]
        moving = [name for name in kernels if name in _BYTES]
        ways = {
            self._rate_in_words if "dgemm" in kernels else "an operation as long as one of dgemm": products,
            "by the memory bandwidth" if self.bandwidth else "free, as no memory bandwidth is stated": moving,
            "free, as the vectors stay in caches": [name for name in kernels if name not in (*products, *moving)],
        }
        return tuple(f"not calibrated, {way}: {', '.join(names)}" for way, names in ways.items() if names)

    @property
    def _rate_in_words(self) -> str:
        if len(self.rates) < 2:
            return "at the peak rate"
        efficiency = self.rates[1].rpartition(".")[2]
        return f"at the rate of {efficiency.partition('_')[0]} units ({efficiency})"


def fill_from_datasheet(
    table: FloatArray,
    rate: float,
    bandwidth: float = np.inf,
    kernels: Sequence[str] = KERNELS,
    *,
    on_device: bool = False,
) -> None:
    """Kernels at the peak: dgemm 2 M N K and dtrsm S operations at `rate`, the others bound by memory's `bandwidth`, or
    free where that is not known.

    Bytes of an element on a processor: 8 to read it, 16 to write it, whose cache line is read before. Elements of a row
    are a column apart: each costs a cache line, 64 bytes to read and 128 to replace. A GPU reads and writes sectors of
    32 bytes, and reads none before it is written.
    """
    bytes_of = _BYTES | (_DEVICE_BYTES if on_device else {})
    for name in kernels:
        if name == "dgemm":
            table[DGEMM, PER_MNK] = 2 / rate
        elif name == "dtrsm":
            table[DTRSM, SIZE_SLOPE] = 1 / rate
        elif name in bytes_of:
            table[KERNELS.index(name), SIZE_SLOPE] = bytes_of[name] / bandwidth


_BYTES: Final = {
    "dgemv": 8, "dger": 16, "daxpy": 24, "dscal": 16, "idamax": 8, "dlacpy": 24, "dlatcpy": 24, "dlaswp00n": 16 + 128,
    "dlaswp01t": 64 + 16, "dlaswp02n": 64 + 16, "dlaswp03t": 8 + 16, "dlaswp04t": 8 + 128,
}  # fmt: skip
"""Bytes of each element of S that cross the bus of a processor's memory; a solve of a vector stays in its caches."""
_DEVICE_BYTES: Final = {
    "dlacpy": 16, "dlatcpy": 16, "dlaswp00n": 16 + 64, "dlaswp01t": 32 + 8, "dlaswp02n": 32 + 8, "dlaswp03t": 8 + 8,
    "dlaswp04t": 8 + 32,
}  # fmt: skip
"""Bytes on a GPU."""


def datasheet_of(parameters: Mapping[str, Any]) -> DataSheet:
    """Data sheet of a node's devices, with their matrix units if they have any for FP64, or of its sockets."""
    gpu, matrix = f"{NODE}.gpu", (f"{NODE}.gpu.matrix_rates.fp64", f"{NODE}.gpu.matrix_efficiency")
    vectors = (f"{gpu}.peak_double_rate", f"{gpu}.vector_efficiency")
    products = matrix if matrix[0] in parameters else vectors
    tiles = (f"{gpu}.tile_extent", f"{gpu}.multiprocessor_count")
    for count, rates, bandwidth, parts in (
        (f"{NODE}.gpu_count", products, f"{gpu}.dram_bandwidth", tiles),
        (f"{NODE}.socket_count", (f"{NODE}.cpu.peak_double_rate",), f"{NODE}.host.memory_bandwidth", ()),
    ):
        if rates[0] in parameters or bandwidth in parameters:
            stated = [path if path in parameters else "" for path in (count, bandwidth)]
            return DataSheet(stated[0], rates if rates[0] in parameters else (), stated[1], parts)
    return NO_DATASHEET


NO_DATASHEET: Final = DataSheet("", (), "")
"""Data sheet without a device."""
