"""GPU kernels: metrics of one iteration, and the quantitative roofline of the platform's device."""

from __future__ import annotations

from whatif.core.context import Context
from whatif.core.energy import GPU, gpu_rate
from whatif.core.term import PhaseTerm, Reference
from whatif.models.roofline import (
    DOMINANT_RATES,
    anchored_time,
    attainable_rate,
    plain_rate,
    roofline_l2_time,
    roofline_time,
)
from whatif.models.workload import (
    launch_scale,
    mix_fits,
    repeated,
    rescaled_time,
    scaled,
    surface_growth,
    volume_growth,
)
from whatif.schema.application import KernelPhase, MeasuredKernelPhase
from whatif.units import ONE, SECOND, Quantity


def wire_kernel(context: Context, name: str, phase: KernelPhase) -> list[PhaseTerm]:
    """Kernel phase; its time is that of all launches of one iteration."""
    path, wiring = f"application.phases.{name}", context.wiring
    need_gpu(context, path)
    scale = _scale(context, name, phase)
    names = ["operations", "dram_size", *(["l2_size"] if phase.model == "roofline_l2" else [])]
    metrics: dict[str, Reference] = {
        metric: wiring.add(f"{name}.{metric}", scaled, {"metric": f"{path}.{metric}", "scale_factor": scale})
        for metric in names
    }
    rate = _attainable_rate(context, name, phase)
    limits: dict[str, Reference] = {"attainable_rate": rate, "dram_bandwidth": f"{GPU}.dram_bandwidth"}
    anchored = phase.measured_factor is not None or phase.launch_time is not None
    term = f"{name}.roofline" if anchored else name
    if phase.model == "roofline":
        time = wiring.add(term, roofline_time, metrics | limits)
    else:
        time = wiring.add(term, roofline_l2_time, metrics | limits | {"l2_bandwidth": f"{GPU}.l2_bandwidth"})
    return [PhaseTerm(name, _anchored(context, name, phase, time) if anchored else time, "kernel")]


def _attainable_rate(context: Context, name: str, phase: KernelPhase) -> str:
    """Compute roof of a kernel: that of its mix of instructions, if the phase states one."""
    path, wiring, term = f"application.phases.{name}", context.wiring, f"{name}.attainable_rate"
    peak: dict[str, Reference] = {
        "operation_mix_fraction": f"{path}.operation_efficiency",
        "peak_rate": gpu_rate(context, DOMINANT_RATES[phase.dominant_operation]),
    }
    if phase.compute_fraction is None:
        return wiring.add(term, plain_rate, peak)
    mix: dict[str, Reference] = {key: f"{path}.{key}" for key in ("compute_fraction", "load_store_fraction")}
    reason = f"{path}: compute_fraction and load_store_fraction together exceed 1"
    wiring.require(f"{name}.mix fits", reason, mix_fits, mix)
    others: dict[str, Reference] = {key: gpu_rate(context, key) for key in ("peak_add_rate", "peak_shared_rate")}
    return wiring.add(term, attainable_rate, {**mix, **peak, **others})


def _anchored(context: Context, name: str, phase: KernelPhase, roofline: str) -> str:
    """Time of a kernel from its roofline, by the factor and the time of a launch that its phase states."""
    path = f"application.phases.{name}"
    inputs: dict[str, Reference] = {
        "roofline_time": roofline,
        "measured_factor": Quantity(1.0, ONE) if phase.measured_factor is None else f"{path}.measured_factor",
        "launch_count": f"{path}.launch_count",
        "launch_time": Quantity(0.0, SECOND) if phase.launch_time is None else f"{path}.launch_time",
    }
    return context.wiring.add(name, anchored_time, inputs)


def wire_measured_kernel(context: Context, name: str, phase: MeasuredKernelPhase) -> list[PhaseTerm]:
    """Phase of kernels timed on another device; their time scales with the rate that bounds them, if any."""
    path, wiring = f"application.phases.{name}", context.wiring
    once = f"{path}.kernel_time"
    if phase.bound != "nothing":
        need_gpu(context, path)
        profiled = "profiled_bandwidth" if phase.bound == "dram_bandwidth" else "profiled_rate"
        rates: dict[str, Reference] = {
            "profiled_metric": f"{path}.{profiled}",
            "present_metric": gpu_rate(context, phase.bound),
        }
        once = wiring.add(f"{name}.launch_time", rescaled_time, {"kernel_time": once} | rates)
    inputs: dict[str, Reference] = {"once_time": once, "repeat_count": f"{path}.launch_count"}
    return [PhaseTerm(name, wiring.add(name, repeated, inputs), "kernel")]


def need_gpu(context: Context, path: str) -> None:
    """Raise `InvalidFileError` for a phase of a GPU on a platform without one."""
    if context.scenario.platform.node.gpu is None:
        name = context.scenario.platform.name
        context.wiring.problem(path, f"{name} has no GPU for this kernel (`[platform.node.gpu]`)")
        context.wiring.raise_problems()


def _scale(context: Context, name: str, phase: KernelPhase) -> Reference:
    """Factor from the metrics of the file to those of one iteration on one rank."""
    path = f"application.phases.{name}"
    one = Quantity(1.0, ONE)
    if phase.metrics_per == "rank":
        return one
    launched: Reference = f"{path}.profiled_launch_count" if phase.metrics_per == "profile" else one
    growth: Reference = context.rank_cell_count if phase.metrics_per == "cell" else _growth(context, name, phase)
    inputs = {"launch_count": f"{path}.launch_count", "profiled_launch_count": launched, "growth_factor": growth}
    return context.wiring.add(f"{name}.scale", launch_scale, inputs)


def _growth(context: Context, name: str, phase: KernelPhase) -> Reference:
    if phase.follows == "nothing":
        return Quantity(1.0, ONE)
    profiled = context.profiled_cells(name, list(phase.profiled_cells))
    function = volume_growth if phase.follows == "cells" else surface_growth
    inputs: dict[str, Reference] = {"cells": context.rank_cells, "profiled_cells": profiled}
    return context.wiring.add(f"{name}.growth", function, inputs)
