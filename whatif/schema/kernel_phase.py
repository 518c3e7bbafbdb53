"""Kernel phases: metrics of a profile on the roofline, a measured time, or the sizes of a product of matrices."""

from __future__ import annotations

from typing import Literal

from whatif.schema.fields import (
    Bytes,
    BytesPerSecond,
    Count,
    CountOrZero,
    Fraction,
    Key,
    Operations,
    OperationsPerSecond,
    PositiveBytes,
    PositiveFactor,
    PositiveFraction,
    Seconds,
    StrictTable,
)
from whatif.vocabulary import Precision


class KernelPhase(StrictTable):
    """A kernel on the quantitative roofline of a GPU or of sockets, from its profiled metrics."""

    kind: Literal["kernel"]
    """A kernel, profiled on a GPU."""
    model: Literal["roofline", "roofline_l2"]
    """roofline: compute or DRAM bound (gpuroofperf); roofline_l2: also limited by L2 bandwidth."""
    dominant_operation: Literal["fp_32", "fp_64", "integer"]
    """Type of most operations; it selects the peak rate of the device."""
    metrics_per: Literal["profile", "launch", "cell", "rank"]
    """Scope of `operations`, `dram_size` and `l2_size`: the whole profile of `profiled_launch_count` launches, one
    launch, one cell of the rank's grid, or all launches of one rank in an iteration."""
    profiled_launch_count: Count = 1.0
    """Launches in the profiled run, for `metrics_per = "profile"`."""
    operations: Operations
    """Dominant operations; a fused multiply-add counts as two."""
    dram_size: Bytes
    """Bytes read from and written to device memory."""
    l2_size: Bytes = 0.0
    """Bytes between the processors and the second-level cache."""
    working_set: Bytes | None = None
    """Data of one rank that its launches reuse. If it fits in the second-level cache of a GPU that states it
    (`l2_capacity`), or on sockets in the rank's share of the last-level cache, the bandwidth of the cache applies
    instead of that of memory."""
    load_store_size: Bytes | None = None
    """Bytes that the cores load and store in all, in the scope of `dram_size`. On sockets that state how fast data is
    loaded again (`core_reuse_bandwidth`), what exceeds `dram_size` takes time in the first cache; default: none."""
    operation_efficiency: PositiveFraction = 1.0
    """Share of the peak rate attainable with the mix of operations (fused multiply-adds or not)."""
    compute_fraction: Fraction | None = None
    """Share of compute instructions in all instructions; without it and `load_store_fraction`, the mix of instructions
    does not lower the peak rate."""
    load_store_fraction: Fraction | None = None
    """Share of load and store instructions in all instructions."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    roof_exponent: Count | None = None
    """Exponent p with which the times of the roofs add up, (Σ T^p)^(1/p): roofs of similar height slow each other down.
    By default the highest roof alone is the time."""
    measured_factor: PositiveFactor | None = None
    """Time measured on the profiled device without its launches, divided by the time of its roofs there; on other
    devices the time of the roofs is multiplied by it."""
    launch_time: Seconds | None = None
    """Time of each launch in addition to the roofs; by default the device's `empty_kernel_time`."""
    block_count: Count | None = None
    """Thread blocks (workgroups) of a launch; those that do not fill the device do not reach its rates. By default the
    device is full."""
    block_size: Count = 256.0
    """Threads of a block."""
    in_flight_size: PositiveBytes = 16.0
    """Bytes that one thread has in flight: its independent loads and stores, by default two of 8 B."""
    blocks_follow: Literal["work", "nothing"] = "work"
    """work: `block_count` is that of the profiled run, and grows with the work (`follows`); nothing: as stated."""
    follows: Literal["cells", "surface", "nothing"] = "nothing"
    """Scaling of the work of a launch if the rank's grid differs from `profiled_cells`."""
    profiled_cells: dict[Key, Count] = {}
    """The rank's grid in the profiled run."""


class MeasuredKernelPhase(StrictTable):
    """Kernels timed on another device, rescaled by one rate of the devices."""

    kind: Literal["measured_kernel"]
    """Kernels with a measured time only."""
    kernel_time: Seconds
    """Time of one launch on the profiled device."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    bound: Literal["nothing", "dram_bandwidth", "peak_single_rate", "peak_double_rate"] = "nothing"
    """Limiting rate: the measured time, without that of an empty kernel, is multiplied by this rate of the profiled
    device and divided by that of this device. nothing: the time is used as measured."""
    profiled_bandwidth: BytesPerSecond | None = None
    """Sustained memory bandwidth of the profiled device, for `bound = "dram_bandwidth"`."""
    profiled_rate: OperationsPerSecond | None = None
    """Peak rate of the profiled device, for `bound = "peak_single_rate"` or `"peak_double_rate"`."""

    @property
    def profiled_key(self) -> str:
        """Key of the rate of the profiled device that bounds the kernels."""
        return "profiled_bandwidth" if self.bound == "dram_bandwidth" else "profiled_rate"


class GemmPhase(StrictTable):
    """Products of matrices C = A B on a GPU, by its peak of the precision."""

    kind: Literal["gemm"]
    """A product of matrices."""
    m: Count
    """Rows of A and C."""
    n: Count
    """Columns of B and C."""
    k: Count
    """Columns of A and rows of B."""
    batch_count: Count = 1.0
    """Products of one launch."""
    precision: Precision
    """Precision of A and B; C has it too, but at least 2 B an element (4 B for int8)."""
    efficiency: PositiveFraction | None = None
    """Measured share of the peak that this product reaches; by default from the device's `matrix_efficiency`, its tiles
    and its multiprocessors."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    launch_time: Seconds = 5e-6
    """Time of each launch in addition to computing: 5 us, the middle of the 3 to 10 us of measured launches."""
