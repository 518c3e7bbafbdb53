"""The quantitative roofline: a kernel profiled on one GPU, predicted on another from five of its rates.

A kernel is described by its operations, its bytes and its instruction mix. Its dominant operation (fp_32,
fp_64 or integer) alone determines which rate of the GPU is its `peak_rate` (`DOMINANT_RATES`). Peak rates of
floating point and of integer multiply-add count two operations per instruction; `peak_add_rate` (integer
adds, representing all other instructions) and `peak_shared_rate` (shared-memory accesses) count one.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from whatif import units
from whatif.models.quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    FloatArray,
    Fraction,
    Operations,
    OperationsPerSecond,
    Seconds,
    model,
)

OperationsPerByte = Annotated[FloatArray, units.FLOP_PER_BYTE]

DOMINANT_RATES = {"fp_32": "peak_single_rate", "fp_64": "peak_double_rate", "integer": "peak_integer_rate"}
"""Rate of the GPU used as `peak_rate`, by dominant operation of the kernel."""

_SOURCE = "Konstantinidis and Cotronis 2017; gpuroofperf"


def _issue_time(
    compute_fraction: Fraction,
    load_store_fraction: Fraction,
    peak_rate: OperationsPerSecond,
    peak_add_rate: OperationsPerSecond,
    peak_shared_rate: OperationsPerSecond,
) -> Seconds:
    """Mean time to issue one instruction of the kernel's mix, in s; a multiply-add is two operations."""
    other_fraction = 1 - compute_fraction - load_store_fraction
    return other_fraction / peak_add_rate + 2 * compute_fraction / peak_rate + load_store_fraction / peak_shared_rate


@model("e_inst = f_d x_c / ((1 − x_c − x_m) f_o + x_c f_d + x_m f_m),  f_i = t_i / t_fp32", _SOURCE)
def instruction_efficiency(
    compute_fraction: Fraction,
    load_store_fraction: Fraction,
    peak_rate: OperationsPerSecond,
    peak_add_rate: OperationsPerSecond,
    peak_shared_rate: OperationsPerSecond,
) -> Fraction:
    """Share of the issue time spent on the dominant operation.

    `compute_fraction` (x_c, `mix_compute` in a kernel file) and `load_store_fraction` (x_m, `mix_ldst`) are
    shares of all instructions. The factors f_i of the source are times per instruction relative to single
    precision; that reference cancels, so no single-precision rate is needed: t_d = 2 / `peak_rate`, t_o = 1 /
    `peak_add_rate`, t_m = 1 / `peak_shared_rate`. Elementwise over any broadcastable shapes; valid for
    fractions ≥ 0 with a sum ≤ 1, finite rates > 0; a kernel without the dominant operation has efficiency 0.
    Source: Konstantinidis and Cotronis, JPDC 107, 2017; gpuroofperf-toolkit (MIT), the tool of Choi et al.,
    ICS 2020, Sec. 3.3.
    """
    issue_time = _issue_time(compute_fraction, load_store_fraction, peak_rate, peak_add_rate, peak_shared_rate)
    return 2 * compute_fraction / peak_rate / issue_time


@model("P = R_d e_mix e_inst", _SOURCE)
def attainable_rate(
    compute_fraction: Fraction,
    load_store_fraction: Fraction,
    operation_mix_fraction: Fraction,
    peak_rate: OperationsPerSecond,
    peak_add_rate: OperationsPerSecond,
    peak_shared_rate: OperationsPerSecond,
) -> OperationsPerSecond:
    """Compute roof of a kernel: `peak_rate` · `operation_mix_fraction` · `instruction_efficiency`.

    `operation_mix_fraction` (e_mix, `opmix_efficiency` in a kernel file) is 1 if all dominant instructions are
    multiply-adds and 1/2 if none is. Computed as operations per issue time, so that an infinite `peak_rate`
    leaves the time of the other instructions. Elementwise over any broadcastable shapes; valid as
    `instruction_efficiency`, with `operation_mix_fraction` from 0 to 1. Source: as `instruction_efficiency`.
    """
    issue_time = _issue_time(compute_fraction, load_store_fraction, peak_rate, peak_add_rate, peak_shared_rate)
    return 2 * compute_fraction * operation_mix_fraction / issue_time


@model("P = R_d e_mix", "Williams, Waterman and Patterson 2009: the roofline")
def plain_rate(operation_mix_fraction: Fraction, peak_rate: OperationsPerSecond) -> OperationsPerSecond:
    """Compute roof of a kernel whose mix of instructions is not known.

    It is `attainable_rate` with an `instruction_efficiency` of 1. Elementwise over any broadcastable shapes; valid for
    `operation_mix_fraction` from 0 to 1, `peak_rate` > 0. Source: Williams, Waterman and Patterson,
    CACM 52(4), 2009.
    """
    return operation_mix_fraction * peak_rate


@model("I = W / Q", _SOURCE)
def operational_intensity(operations: Operations, dram_size: Bytes) -> OperationsPerByte:
    """Operations per byte of device memory (`krn_op_ratio` in a prediction file); infinite without bytes.

    Elementwise over any broadcastable shapes; valid for `operations` ≥ 0, `dram_size` ≥ 0. Source: as
    `instruction_efficiency`.
    """
    return np.where(dram_size > 0, operations / np.where(dram_size > 0, dram_size, 1.0), np.inf)


@model("B = P / BW", _SOURCE)
def machine_balance(attainable_rate: OperationsPerSecond, dram_bandwidth: BytesPerSecond) -> OperationsPerByte:
    """Operational intensity at which the two roofs of a kernel meet (`dev_op_ratio` in a prediction file).

    Elementwise over any broadcastable shapes; valid for `attainable_rate` ≥ 0, `dram_bandwidth` > 0. Source:
    as `instruction_efficiency`.
    """
    return attainable_rate / dram_bandwidth


@model("1 if I > B, else 0", _SOURCE)
def is_compute_bound(operational_intensity: OperationsPerByte, machine_balance: OperationsPerByte) -> Fraction:
    """1 for a compute-bound kernel (`type` in a prediction file), 0 for a memory-bound one or a tie.

    Elementwise over any broadcastable shapes. Source: as `instruction_efficiency`.
    """
    return np.where(operational_intensity > machine_balance, 1.0, 0.0)


@model("T = max(W / P, Q / BW)", _SOURCE)
def roofline_time(
    operations: Operations,
    dram_size: Bytes,
    attainable_rate: OperationsPerSecond,
    dram_bandwidth: BytesPerSecond,
) -> Seconds:
    """Time of a kernel that computes and moves data at once: `max(W / P, Q / BW)`.

    `operations` is W and `dram_size` is Q, the bytes from and to device memory; both may count several
    launches. Elementwise over any broadcastable shapes; valid for `operations` ≥ 0, `dram_size` ≥ 0,
    `dram_bandwidth` > 0, and `attainable_rate` > 0 where `operations` > 0 (it is 0 for a kernel without
    operations). No work takes no time; there is no launch overhead. Source: as `instruction_efficiency`.
    """
    compute_time = operations / np.where(operations > 0, attainable_rate, 1.0)
    time: Seconds = np.maximum(compute_time, dram_size / dram_bandwidth)
    return time


@model("T = max(W / P, Q / BW, Q_L2 / BW_L2)", "Konstantinidis and Cotronis 2017, with a third roof")
def roofline_l2_time(
    operations: Operations,
    dram_size: Bytes,
    l2_size: Bytes,
    attainable_rate: OperationsPerSecond,
    dram_bandwidth: BytesPerSecond,
    l2_bandwidth: BytesPerSecond,
) -> Seconds:
    """Time of a kernel by `roofline_time` with the second-level cache as a third limit.

    `l2_size` is Q_L2, the bytes between the cache and the processors, and `l2_bandwidth` the rate of the
    cache. The tool measures both but predicts without them. Elementwise over any broadcastable shapes; valid
    as `roofline_time`, `l2_size` ≥ 0, `l2_bandwidth` > 0. An infinite `l2_bandwidth` gives `roofline_time`.
    """
    two_roofs = roofline_time(operations, dram_size, attainable_rate, dram_bandwidth)
    time: Seconds = np.maximum(two_roofs, l2_size / l2_bandwidth)
    return time


@model("T = ((W / P)^p + (Q / BW)^p + (Q_L2 / BW_L2)^p)^(1/p)", "whatif: roofs that overlap in part")
def joint_roofline_time(
    operations: Operations,
    dram_size: Bytes,
    l2_size: Bytes,
    attainable_rate: OperationsPerSecond,
    dram_bandwidth: BytesPerSecond,
    l2_bandwidth: BytesPerSecond,
    roof_exponent: Count,
) -> Seconds:
    """Time of a kernel whose roofs slow each other down where they are of similar height.

    `roof_exponent` is p: 1 is the sum of the three times, infinity is `roofline_l2_time`. Elementwise over any
    broadcastable shapes; valid as `roofline_l2_time`, `roof_exponent` ≥ 1.
    """
    compute_time = operations / np.where(operations > 0, attainable_rate, 1.0)
    dram_time, l2_time = dram_size / dram_bandwidth, l2_size / l2_bandwidth
    highest = np.maximum(np.maximum(compute_time, dram_time), l2_time)
    unit = np.where(highest > 0, highest, 1.0)
    total = sum((time / unit) ** roof_exponent for time in (compute_time, dram_time, l2_time))
    return np.asarray(highest * total ** (1 / roof_exponent))


@model("BW_r = BW_L2 if S ≤ C, else BW", "definition")
def resident_bandwidth(
    working_set: Bytes, l2_capacity: Bytes, l2_bandwidth: BytesPerSecond, dram_bandwidth: BytesPerSecond
) -> BytesPerSecond:
    """Bandwidth of data that launches use again: that of the second-level cache if it fits, else of device memory.

    `working_set` is S, `l2_capacity` C. Elementwise over any broadcastable shapes; valid for sizes ≥ 0. Data that stay
    in part in a cache that is too small are not modelled.
    """
    return np.where(working_set <= l2_capacity, l2_bandwidth, dram_bandwidth)


@model("L_r = L_L2 if S ≤ C, else L", "definition")
def resident_latency(working_set: Bytes, l2_capacity: Bytes, l2_latency: Seconds, dram_latency: Seconds) -> Seconds:
    """Latency of data that launches use again, as `resident_bandwidth`."""
    return np.where(working_set <= l2_capacity, l2_latency, dram_latency)


@model("W / T", _SOURCE)
def achieved_rate(operations: Operations, roofline_time: Seconds) -> OperationsPerSecond:
    """Operations per second over the predicted time (`throughput` in a prediction file), 0 for no time.

    Elementwise over any broadcastable shapes; valid for `operations` ≥ 0, `roofline_time` ≥ 0.
    """
    return np.where(roofline_time > 0, operations / np.where(roofline_time > 0, roofline_time, 1.0), 0.0)


@model(
    "T = max(f r T_roof + n t_l, n t_h)", "definition: measured time in the ratio of the binding roofs, and launches"
)
def launched_time(
    roofline_time: Seconds,
    ranks_per_gpu: Count,
    measured_factor: Count,
    launch_count: Count,
    launch_time: Seconds,
    launch_interval: Seconds,
) -> Seconds:
    """Time of all launches of a kernel from their roofline, measured / predicted on the profiled device, and launching.

    `roofline_time` is T_roof of all launches on a device of its own, `ranks_per_gpu` r, the ranks that run it at the
    same time on one device and share its rates, `measured_factor` f, `launch_count` n, `launch_time` t_l, the time of a
    launch that does nothing, and `launch_interval` t_h, the least time between launches of one program. Elementwise;
    valid for f > 0, r ≥ 1, n ≥ 0, t_l ≥ 0, t_h ≥ 0. Measured on an H100: docs/devices.md.
    """
    time = roofline_time * ranks_per_gpu * measured_factor + launch_count * launch_time
    return np.maximum(time, launch_count * launch_interval)
