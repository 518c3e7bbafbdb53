"""Table of a GPU: peaks and bandwidths of its data sheet, and the rules for rates that no data sheet has."""

from __future__ import annotations

from typing import Any, Final

from whatif.errors import UsageError
from whatif.schema.expressions import Expression, value_of
from whatif.schema.fields import (
    BytesPerSecond,
    Count,
    Fraction,
    OperationsPerSecond,
    PositiveBytes,
    PositiveFactor,
    PositiveFraction,
    PositiveSeconds,
    Seconds,
    StrictTable,
    Watts,
    computed_default,
)
from whatif.units import FLOP_PER_SECOND, format_quantity

_GPU: Final = "platform.node.gpu"
_LEAST_PEAK: Final = 0.98
"""Least share of the peak at which a memory bandwidth counts as a peak."""
RATE_RULES: Final = {
    "peak_integer_rate": (0.465, "peak_single_rate"),
    "peak_add_rate": (0.489, "peak_single_rate"),
    "peak_shared_rate": (0.125, "peak_single_rate"),
    "l2_bandwidth": (3.3, "dram_bandwidth"),
}
"""Rates that data sheets lack, as a factor of another one; factors and spreads are derived in docs/devices.md."""
_LANES_RATE: Final = 480e9
"""Single-precision rate of 128 lanes at 1.875 GHz."""


def _by_rule(key: str) -> Any:
    factor, base = RATE_RULES[key]
    return computed_default(f"= {factor} * {_GPU}.{base}")


class TransformerShares(StrictTable):
    """Shares of the peak that transformers sustain in training, without tiles that are not full."""

    bf16: PositiveFraction = 0.65
    """Products of layers in bf16, of the peak of bf16."""
    fp8: PositiveFraction = 0.6
    """Products with operands in fp8, a scale for each tensor, of the peak of fp8."""
    mxfp8: PositiveFraction = computed_default(f"= {_GPU}.transformer.fp8")
    """Products with operands in fp8, a scale for each block, of the peak of fp8; by default as with a scale for each
    tensor."""
    nvfp4: PositiveFraction = 0.55
    """Products with operands in fp4, of the peak of fp4."""
    attention: PositiveFraction = 0.4
    """Attention in bf16 by the vendor's kernel, without masked scores, of the peak of bf16."""
    flash2_attention: PositiveFraction = 0.2
    """The same by FlashAttention 2, the kernel of PyTorch."""


class VectorRates(StrictTable):
    """Peak rates of the vector units by precision; those of fp32 and fp64 are `peak_single_rate` and
    `peak_double_rate`."""

    bf16: OperationsPerSecond | None = None
    fp16: OperationsPerSecond | None = None
    int8: OperationsPerSecond | None = None


class MatrixRates(StrictTable):
    """Peak rates of the matrix units by precision, for dense matrices."""

    fp64: OperationsPerSecond | None = None
    fp32: OperationsPerSecond | None = None
    tf32: OperationsPerSecond | None = None
    bf16: OperationsPerSecond | None = None
    fp16: OperationsPerSecond | None = None
    fp8: OperationsPerSecond | None = None
    fp4: OperationsPerSecond | None = None
    int8: OperationsPerSecond | None = None


class GPU(StrictTable):
    """One device, with measured or data-sheet peaks, as in the GPU files of gpuroofperf."""

    name: str
    """Vendor's name of the device."""
    peak_single_rate: OperationsPerSecond
    """Single-precision operations per second (a fused multiply-add counts as two)."""
    peak_double_rate: OperationsPerSecond
    """Double-precision operations per second."""
    peak_integer_rate: OperationsPerSecond = _by_rule("peak_integer_rate")
    """Integer multiply-add operations per second; by default 0.465 of the single-precision rate (measured: 0.32 to
    0.93)."""
    peak_add_rate: OperationsPerSecond = _by_rule("peak_add_rate")
    """Integer additions per second; by default 0.489 of the single-precision rate (measured: 0.49 to 0.98)."""
    peak_shared_rate: OperationsPerSecond = _by_rule("peak_shared_rate")
    """Shared-memory operations per second; by default 1/8 of the single-precision rate (measured: 0.25 to 0.30 with
    half as many lanes)."""
    dram_bandwidth: BytesPerSecond
    """Sustained bandwidth between the processors and device memory, as a triad reaches it."""
    dram_peak_bandwidth: BytesPerSecond | None = None
    """Peak bandwidth of device memory, by the data sheet."""
    l2_bandwidth: BytesPerSecond = _by_rule("l2_bandwidth")
    """Measured bandwidth between the processors and the second-level cache; by default 3.3 times that of device memory
    (measured: 2.8 to 4.0)."""
    l2_capacity: PositiveBytes | None = None
    """Size of the second-level cache: a kernel whose `working_set` fits it has its bandwidth instead of that of device
    memory."""
    memory_size: PositiveBytes | None = None
    """Memory of one device; checked against `application.memory_size` if both are stated."""
    copy_latency: Seconds | None = None
    """Latency and overhead of a copy inside the device: the time of a 1 B copy."""
    idle_power: Watts | None = None
    """Power of one device when no kernel runs."""
    dynamic_power: Watts | None = None
    """Additional power of one device while a kernel runs."""
    power_cap: Watts | None = None
    """Power limit of the device; kernels compute at a lower clock to stay within it."""
    power_exponent: PositiveFactor = 3.0
    """Exponent of the clock in the dynamic power, for `power_cap`: 3 if the voltage scales with the clock."""
    voltage_floor: Fraction = 0.87
    """Share of the full clock below which the voltage stays at its minimum, for `power_cap`: 0.87 as fitted to
    trainings on V100, A40, P100 and RTX 6000 (0.86 to 0.97); 0 for none."""
    vector_rates: VectorRates = VectorRates()
    matrix_rates: MatrixRates = MatrixRates()
    matrix_efficiency: PositiveFraction = 0.72
    """Share of the peak of matrix units that large products of matrices sustain: 0.72 as on an A100; AMD's MI300X 0.40,
    a tile of Intel's Max 1550 0.62."""
    vector_efficiency: PositiveFraction = 0.91
    """Share of the vector peak that large products of matrices sustain on a device without matrix units for their
    precision: 10 of 11 Tflop/s of FP64 as measured on a tile of Aurora's GPUs."""
    transformer: TransformerShares = TransformerShares()
    multiprocessor_count: Count = computed_default(
        f"= ceil({_GPU}.peak_single_rate / {format_quantity(_LANES_RATE, FLOP_PER_SECOND)})"
    )
    """Multiprocessors or compute units; by default from the single-precision rate, 128 lanes at 1.875 GHz each."""
    full_threads: Count = 384.0
    """Threads of a multiprocessor that reach its compute rates; by default as measured on an H100 (docs/devices.md)."""
    dram_latency: PositiveSeconds = 360e-9
    """Latency of loads from device memory, where few threads run; by default as measured on seven GPUs
    (docs/devices.md)."""
    l2_latency: PositiveSeconds = 154e-9
    """Latency of loads from the second-level cache; by default as measured on an H100."""
    empty_kernel_time: Seconds = 2e-6
    """Time of a kernel that does nothing, from its start to the start of the next one; by default as measured on an
    H100."""
    launch_interval: Seconds = 3.3e-6
    """Least time from one launch to the next of a program that starts its kernels one by one; by default as measured on
    an H100. 0 where a graph is replayed."""
    synchronisation_time: Seconds = 10e-6
    """Time lost where the host waits for the device: until it knows, and until the next kernel starts; by default as
    measured on an H100."""
    switch_time: Seconds = 135e-6
    """Time of a switch from one rank to another of `gpu_sharing = "time_slices"`; by default as measured on an H200."""
    time_slice: PositiveSeconds = 1.2e-3
    """Time after which the device switches although the rank that has it does not wait; by default as measured on an
    H200."""
    tile_extent: Count = 128.0
    """Rows and columns of the largest part of a product of matrices that one multiprocessor computes at a time."""

    @property
    def sustained_share(self) -> float:
        """Share of the peak memory bandwidth that is sustained; 1 where the peak is not known."""
        known, peak = self.dram_bandwidth, self.dram_peak_bandwidth
        return known / peak if isinstance(known, float) and isinstance(peak, float) else 1.0

    @property
    def is_sustained(self) -> bool:
        """Whether `dram_bandwidth` is known to be less than the peak."""
        return self.sustained_share < _LEAST_PEAK

    def number(self, key: str, asking: tuple[str, ...] = ()) -> float:
        """Number of a key such as `peak_add_rate`: as stated, or the value of its expression.

        `asking` are the keys whose expressions need it. Raise `UsageError` if an expression needs itself, or
        anything but numbers of this GPU.
        """
        path = key.removeprefix(f"{_GPU}.")
        stated = getattr(self, path, None)
        if isinstance(stated, float):
            return stated
        if not isinstance(stated, Expression) or path in asking:
            reason = "needs itself" if path in asking else f"needs `{key}`, which is not a number of the GPU"
            raise UsageError(f"{self.name}: the expression of `{asking[-1] if asking else path}` {reason}")
        return float(value_of(stated.tree, lambda name: self.number(name, (*asking, path))))
