"""Measured kernels and the roofs of the GPU that they ran on: which one binds, and the factor that is left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.importers.kernel_names import phase_names
from whatif.models.occupancy import filled_bandwidth, filled_rate
from whatif.models.roofline import DOMINANT_RATES, attainable_rate, plain_rate
from whatif.paths import is_file
from whatif.schema.gpu import GPU
from whatif.schema.gpu_parts import gpu_part
from whatif.schema.kernel_phase import KernelPhase
from whatif.schema.load import load_part
from whatif.schema.shipped import names_in
from whatif.table import Column, Table, text_column
from whatif.units import ONE, SECOND, format_quantity, parse_quantity

COMPARED: Final = "compared"
"""Note with a line for each kernel that was compared."""
_SMALL: Final = 20e-6
"""Largest time of a launch that can be due to launching, s: no data sheet states it; launches take 3 to 10 us."""
_ABOVE: Final = 1.5
"""Least ratio of the time to every roof at which a small kernel counts as bound by its launch."""
_EXPONENT: Final = 4.0
"""`roof_exponent` of measured kernels whose three roofs are known (docs/calibration.md)."""
_FAR: Final = 2.0
"""Least ratio of the time to every roof at which latency or occupancy limits a kernel."""


@dataclass(frozen=True, slots=True)
class KernelAnchor:
    """One measured kernel: its time and the times of the roofs of its device, for all of its launches, in s."""

    measured: float
    roofs: Mapping[str, float]
    launch_count: float
    empty_time: float = 0.0
    """Time of a kernel that does nothing on the device, s."""
    exponent: float = math.nan
    """`roof_exponent`; NaN where a roof is not known: the highest roof counts."""

    @property
    def highest(self) -> str:
        """The roof with the longest time: `compute`, `dram` or `l2`."""
        return max(self.roofs, key=lambda name: self.roofs[name])

    @property
    def is_short(self) -> bool:
        """Whether launching can take much of the time."""
        return self.measured / self.launch_count <= _SMALL

    @property
    def is_small(self) -> bool:
        """Whether launching takes most of the time."""
        return self.is_short and self.factor > _ABOVE

    @property
    def factor(self) -> float:
        """Measured time over that of the highest roof."""
        roof = self.roofs[self.highest]
        return self.measured / roof if roof > 0 else math.inf

    @property
    def roof_exponent(self) -> float:
        """Exponent of a phase; NaN for a small kernel, too."""
        return math.nan if self.is_small else self.exponent

    @property
    def measured_factor(self) -> float:
        """Factor of a phase: without the time of its launches, NaN for a small kernel."""
        if self.is_small:
            return math.nan
        launches = 0.0 if self.is_short else self.launch_count * self.empty_time
        shares = [roof / self.roofs[self.highest] for roof in self.roofs.values()]
        joint = 1.0 if math.isnan(self.exponent) else sum(s**self.exponent for s in shares) ** (1 / self.exponent)
        return self.factor * (1 - launches / self.measured) / joint

    @property
    def launch_time(self) -> float:
        """Time of a launch that its roof does not explain; NaN for that of an empty kernel on the device."""
        if self.is_small:
            return (self.measured - self.roofs[self.highest]) / self.launch_count
        return 0.0 if self.is_short else math.nan

    @property
    def binding(self) -> str:
        """Limit of the kernel: a roof, its launch, or latency and occupancy."""
        if self.is_small:
            return "launch"
        return "latency or occupancy" if self.factor > _FAR else self.highest

    @property
    def text(self) -> str:
        """Comparison of the times of a launch, in words."""
        measured, roofline, highest = (
            format_quantity(time / self.launch_count, SECOND, 3)
            for time in (self.measured, max(self.roofs["compute"], self.roofs["dram"]), self.roofs[self.highest])
        )
        return (
            f"measured {measured}, roofline {roofline}; highest roof {self.highest}, {highest}; "
            f"limited by {self.binding}; measured / roof = {self.factor:.3g}"
        )


def part_of_device(device: str, memory_size: float = 0.0, stated: str = "") -> tuple[str, GPU] | None:
    """Part of a GPU: the stated one, else that of the device of a profile and its memory in B; None if none fits.

    Raise `UsageError` for a part that is no GPU.
    """
    name = stated or gpu_part(device, memory_size)
    return None if name is None else (name, _gpu(name))


def _gpu(name: str) -> GPU:
    part = load_part(name) if is_file(Path(name)) or name in names_in((), "parts") else None
    if not isinstance(part, GPU):
        known = [item for item in names_in((), "parts") if isinstance(load_part(item), GPU)]
        raise UsageError(f"--gpu {name}: no GPU{did_you_mean(name, known)}; known: {', '.join(known)}")
    return part


def anchors_of(table: Table, gpu: GPU) -> tuple[KernelAnchor | None, ...]:
    """Comparison of each kernel of a table; None for one without a measured time or a roof of compute or DRAM."""
    return tuple(_anchor(row, gpu) for row in table.records())


def _anchor(row: Mapping[str, Any], gpu: GPU) -> KernelAnchor | None:
    if not row["reference_time"] or row["operations"] is None or row["dram_size"] is None:
        return None
    rate, bandwidths = _reached(row, gpu)
    roofs = {
        "compute": row["operations"] / rate if rate > 0 else 0.0,
        "dram": row["dram_size"] / bandwidths["dram"],
        "l2": (row["l2_size"] or 0.0) / bandwidths["l2"],
    }
    count = row["profiled_launch_count"] if row["metrics_per"] == "profile" else 1.0
    exponent = _EXPONENT if row["l2_size"] else math.nan
    return KernelAnchor(row["reference_time"], roofs, count, gpu.number("empty_kernel_time"), exponent)


def _reached(row: Mapping[str, Any], gpu: GPU) -> tuple[float, dict[str, float]]:
    """Compute rate and bandwidths that the blocks of a launch reach; those of the device where they are not known."""
    rate = _compute_roof(row, gpu)
    bandwidths = {level: gpu.number(f"{level}_bandwidth") for level in ("dram", "l2")}
    if row["block_count"] is None or row["block_size"] is None:
        return rate, bandwidths
    blocks, size = (np.asarray(row[name]) for name in ("block_count", "block_size"))
    device = [np.asarray(gpu.number(key)) for key in ("multiprocessor_count", "full_threads")]
    flight = np.asarray(KernelPhase.model_fields["in_flight_size"].default)
    latencies = {level: np.asarray(gpu.number(f"{level}_latency")) for level in bandwidths}
    reached = {
        level: float(filled_bandwidth(np.asarray(bandwidth), latencies[level], flight, blocks, size))
        for level, bandwidth in bandwidths.items()
    }
    return float(filled_rate(np.asarray(rate), blocks, size, *device)), reached


def _compute_roof(row: Mapping[str, Any], gpu: GPU) -> float:
    """Operations per second of a kernel that its mix of instructions allows, or its peak where the mix is not known."""
    efficiency, peak = (
        np.asarray(row["operation_efficiency"]),
        np.asarray(gpu.number(DOMINANT_RATES[row["dominant_operation"]])),
    )
    if row["compute_fraction"] is None:
        return float(plain_rate(efficiency, peak))
    compute, memory = (np.asarray(row[name]) for name in ("compute_fraction", "load_store_fraction"))
    add, shared = (np.asarray(gpu.number(name)) for name in ("peak_add_rate", "peak_shared_rate"))
    return float(attainable_rate(compute, memory, efficiency, peak, add, shared))


def with_anchors(table: Table, stated: str = "") -> Table:
    """Table of kernels with what binds them on the GPU that they ran on; as it is without measured times.

    Columns: `binding`; `highest_roof`; `roof_exponent`, NaN without the traffic of the second-level cache;
    `measured_factor`, the measured time without that of launching over that of the roofs, NaN for a kernel bound by its
    launch; `launch_time`, s: what no roof explains for a kernel bound by its launch, 0 for others of up to 20 us, else
    NaN (the device's `empty_kernel_time`). The notes compare the times of each kernel, or name a
    GPU that no part has. Raise `UsageError` for a stated GPU that does not exist, or without measured times.
    """
    if not (table.columns["reference_time"].values > 0).any():
        if stated:
            raise UsageError(f"--gpu {stated}: no effect, as no kernel has a measured time")
        return table
    device = table.notes.get("device", "")
    memory = parse_quantity(table.notes.get("device_memory", "0 B")).value
    found = part_of_device(device, memory, stated)
    if found is None:
        reason = f"no part is the GPU `{device}`" if device else "the file does not name its GPU"
        line = f"measured times are not used: {reason}; state the nearest one by --gpu PART"
        return Table(table.columns, {**table.notes, COMPARED: line})
    name, gpu = found
    anchors = anchors_of(table, gpu)
    phases = phase_names(table.columns["kernel"].values.tolist())
    lines = [f"{phase} on {name}: {anchor.text}" for phase, anchor in zip(phases, anchors, strict=True) if anchor]
    pairs = zip(table.records(), anchors, strict=True)
    if unused := sum(1 for row, anchor in pairs if row["reference_time"] and not anchor):
        lines.append(f"measured times of {unused} kernels are not used: a roof of compute or DRAM is missing")
    if stated and device and stated != gpu_part(device, memory):
        lines.insert(0, f"warning: the times were measured on `{device}`, the roofs are those of {gpu.name}")
    return Table({**table.columns, **_columns(anchors)}, {**table.notes, COMPARED: "\n".join(lines)})


def _columns(anchors: Sequence[KernelAnchor | None]) -> dict[str, Column]:
    """Columns that `with_anchors` adds."""
    factors = [anchor.measured_factor if anchor else np.nan for anchor in anchors]
    times = [anchor.launch_time if anchor else np.nan for anchor in anchors]
    return {
        "binding": text_column(anchor.binding if anchor else "" for anchor in anchors),
        "highest_roof": text_column(anchor.highest if anchor else "" for anchor in anchors),
        "roof_exponent": Column(np.array([anchor.roof_exponent if anchor else np.nan for anchor in anchors]), ONE),
        "measured_factor": Column(np.array(factors), ONE),
        "launch_time": Column(np.array(times), SECOND),
    }
