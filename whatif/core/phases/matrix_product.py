"""Products of matrices on the platform's GPU: its peak of the precision, tiles and memory."""

from __future__ import annotations

from typing import Final

from whatif.core.context import Context
from whatif.core.energy import gpu_rate
from whatif.core.parameter_paths import GPU
from whatif.core.phases.gpu_sharing import launch_time_of_ranks
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.models.gemm import gemm_efficiency, gemm_operations, gemm_size, gemm_time, tile_efficiency
from whatif.models.gpu_sharing import of_all_ranks
from whatif.schema.kernel_phase import GemmPhase
from whatif.units import BYTE, Quantity
from whatif.vocabulary import PRECISIONS, Precision

_SIZES: Final = {"fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5, "int8": 1.0}
"""Bytes of an element of A and B."""
_RESULT_SIZES: Final = {**{key: max(size, 2.0) for key, size in _SIZES.items()}, "int8": 4.0}
"""Bytes of an element of C."""
_VECTOR_PEAKS: Final = {"fp64": "peak_double_rate", "fp32": "peak_single_rate"}


def wire_gemm(context: Context, name: str, phase: GemmPhase) -> list[PhaseTerm]:
    """Phase of matrix products; its time is that of all launches of one iteration."""
    path, wiring = f"application.phases.{name}", context.wiring
    _need_gpu(context, path)
    key, note = _peak(context, path, phase.precision)
    shape = parameters_in(path, "m", "n", "k", "batch_count")
    sizes: dict[str, Reference] = {
        "element_size": Quantity(_SIZES[phase.precision], BYTE),
        "result_element_size": Quantity(_RESULT_SIZES[phase.precision], BYTE),
    }
    inputs: dict[str, Reference] = {
        "operations": wiring.add(f"{name}.operations", gemm_operations, shape),
        "operand_size": wiring.add(f"{name}.operand_size", gemm_size, shape | sizes),
        "peak_rate": gpu_rate(context, key),
        "efficiency": _efficiency(context, name, phase, key),
        "dram_bandwidth": f"{GPU}.dram_bandwidth",
        "ranks_per_gpu": context.ranks_on_gpu,
        "launch_count": f"{path}.launch_count",
        "launch_time": launch_time_of_ranks(context, name, f"{path}.launch_time"),
    }
    return [PhaseTerm(name, wiring.add(name, gemm_time, inputs, note=note), "kernel")]


def _need_gpu(context: Context, path: str) -> None:
    """Raise `InvalidFileError` for products on a platform without GPUs, or that run on its sockets."""
    if not context.on_gpus or context.scenario.platform.node.gpu is None:
        reason = f"{context.scenario.platform.name} has no GPU for these products (`[platform.node.gpu]`)"
        context.wiring.refuse(path, reason)


def _peak(context: Context, path: str, precision: Precision) -> tuple[str, str]:
    """Key of the peak rate of a precision, and a note where it is not that of matrix units."""
    peaks = {item: found for item in PRECISIONS if (found := _stated(context, item)) is not None}
    if precision not in peaks:
        gpu = context.scenario.platform.node.gpu
        message = f"{gpu.name if gpu else 'no GPU'} states no peak rate of {precision}; it has {', '.join(peaks)}"
        context.wiring.refuse(f"{path}.precision", f"{message} (`[platform.node.gpu.matrix_rates]`)")
    by_matrix_units = _by_matrix_units(peaks[precision])
    note = "" if by_matrix_units else f"no matrix units for {precision}: the peak of the vector units"
    return peaks[precision], note


def _by_matrix_units(key: str) -> bool:
    """Whether a peak rate is that of matrix units."""
    return key.startswith("matrix_rates")


def _stated(context: Context, precision: Precision) -> str | None:
    """Key of the peak rate that the GPU states for a precision: of its matrix units, else of its vector units."""
    keys = (f"matrix_rates.{precision}", _VECTOR_PEAKS.get(precision, f"vector_rates.{precision}"))
    return next((key for key in keys if f"{GPU}.{key}" in context.wiring.parameters), None)


def _efficiency(context: Context, name: str, phase: GemmPhase, key: str) -> Reference:
    """Share of the peak at a key: as measured, or that of large products on these units times that of the tiles."""
    path, wiring = f"application.phases.{name}", context.wiring
    if phase.efficiency is not None:
        return f"{path}.efficiency"
    batch: dict[str, Reference] = {"quantity": f"{path}.batch_count", "rank_count": context.ranks_at_once}
    inputs = parameters_in(path, "m", "n")
    inputs["batch_count"] = wiring.add(f"{name}.joint_batch", of_all_ranks, batch)
    inputs |= parameters_in(GPU, "tile_extent", "multiprocessor_count")
    shares: dict[str, Reference] = {
        "large_efficiency": f"{GPU}.{'matrix' if _by_matrix_units(key) else 'vector'}_efficiency",
        "tile_efficiency": wiring.add(f"{name}.tile_efficiency", tile_efficiency, inputs),
    }
    return wiring.add(f"{name}.efficiency", gemm_efficiency, shares)
