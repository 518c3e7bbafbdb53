"""Kernels: metrics of one iteration, and the quantitative roofline of the platform's GPU or of a rank's cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whatif.core.context import Context
from whatif.core.energy import gpu_rate
from whatif.core.parameter_paths import GPU
from whatif.core.phases.gpu_sharing import launch_time_of_ranks
from whatif.core.socket_share import PRECISIONS, bandwidth_of_kernel, bandwidth_of_rank, cores_of_rank, rate_of_core
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.models.gpu_sharing import of_all_ranks
from whatif.models.occupancy import filled_bandwidth, filled_rate, grown_blocks
from whatif.models.roofline import (
    DOMINANT_RATES,
    attainable_rate,
    joint_roofline_time,
    launched_time,
    plain_rate,
    resident_bandwidth,
    resident_latency,
    roofline_l2_time,
    roofline_time,
)
from whatif.models.sockets import rank_rate
from whatif.models.workload import (
    launch_scale,
    mix_fits,
    rescaled_time,
    scaled,
    surface_growth,
    volume_growth,
)
from whatif.schema.kernel_phase import KernelPhase, MeasuredKernelPhase
from whatif.units import BYTE, ONE, SECOND, Quantity


def wire_kernel(context: Context, name: str, phase: KernelPhase) -> list[PhaseTerm]:
    """Kernel phase; its time is that of all launches of one iteration."""
    _need_device(context, name)
    time = _on_gpu(context, name, phase) if context.on_gpus else _on_sockets(context, name, phase)
    return [PhaseTerm(name, time, "kernel")]


def _on_gpu(context: Context, name: str, phase: KernelPhase) -> str:
    keys = ["operations", "dram_size", *(["l2_size"] if phase.model == "roofline_l2" else [])]
    metrics = _metrics(context, name, phase, keys)
    rate = _attainable_rate(context, name, phase)
    limits: dict[str, Reference] = {
        "attainable_rate": rate,
        "dram_bandwidth": _of_data(context, name, phase, "bandwidth"),
    }
    limits |= {"l2_bandwidth": f"{GPU}.l2_bandwidth"} if phase.model == "roofline_l2" else {}
    if phase.block_count is not None:
        limits = _filled(context, name, phase, limits)
    return _launched(context, name, phase, _roofs(context, name, phase, metrics | limits))


def _roofs(context: Context, name: str, phase: KernelPhase, inputs: dict[str, Reference]) -> str:
    """Time of all launches by the roofs of their model."""
    term = f"{name}.roofline"
    if phase.roof_exponent is None:
        function = roofline_time if phase.model == "roofline" else roofline_l2_time
        return context.wiring.add(term, function, inputs)
    without: dict[str, Reference] = {"l2_size": Quantity(0.0, BYTE), "l2_bandwidth": f"{GPU}.l2_bandwidth"}
    exponent: dict[str, Reference] = {"roof_exponent": f"application.phases.{name}.roof_exponent"}
    return context.wiring.add(term, joint_roofline_time, without | inputs | exponent)


def _on_sockets(context: Context, name: str, phase: KernelPhase) -> str:
    """Time on the cores of one rank; the instruction mix and measured factors of a GPU do not apply."""
    wiring = context.wiring
    inputs: dict[str, Reference] = {
        "rank_core_count": cores_of_rank(context),
        "core_rate": rate_of_core(context, PRECISIONS[phase.dominant_operation]),
        "operation_mix_fraction": f"application.phases.{name}.operation_efficiency",
    }
    limits: dict[str, Reference] = {
        "attainable_rate": wiring.add(f"{name}.attainable_rate", rank_rate, inputs),
        "dram_bandwidth": bandwidth_of_kernel(context, name, phase),
    }
    return wiring.add(name, roofline_time, _metrics(context, name, phase, ["operations", "dram_size"]) | limits)


def _metrics(context: Context, name: str, phase: KernelPhase, keys: Sequence[str]) -> dict[str, Reference]:
    """Metrics of one iteration on one rank."""
    path, scale = f"application.phases.{name}", _scale(context, name, phase)
    return {
        key: context.wiring.add(f"{name}.{key}", scaled, {"metric": f"{path}.{key}", "scale_factor": scale})
        for key in keys
    }


def _attainable_rate(context: Context, name: str, phase: KernelPhase) -> str:
    """Compute roof of a kernel: that of its mix of instructions, if the phase states one."""
    path, wiring, term = f"application.phases.{name}", context.wiring, f"{name}.attainable_rate"
    peak: dict[str, Reference] = {
        "operation_mix_fraction": f"{path}.operation_efficiency",
        "peak_rate": gpu_rate(context, DOMINANT_RATES[phase.dominant_operation]),
    }
    if phase.compute_fraction is None:
        return wiring.add(term, plain_rate, peak)
    mix = parameters_in(path, "compute_fraction", "load_store_fraction")
    reason = f"{path}: compute_fraction and load_store_fraction together exceed 1"
    wiring.require(f"{name}.mix fits", reason, mix_fits, mix)
    others: dict[str, Reference] = {key: gpu_rate(context, key) for key in ("peak_add_rate", "peak_shared_rate")}
    return wiring.add(term, attainable_rate, {**mix, **peak, **others})


def _of_data(context: Context, name: str, phase: KernelPhase, what: str) -> str:
    """Bandwidth or latency (`what`) of device memory, or of the second-level cache if the stated working set fits."""
    memory, capacity = f"{GPU}.dram_{what}", f"{GPU}.l2_capacity"
    if phase.working_set is None or capacity not in context.wiring.parameters:
        return memory
    function = resident_bandwidth if what == "bandwidth" else resident_latency
    own: dict[str, Reference] = {"quantity": f"application.phases.{name}.working_set"}
    own["rank_count"] = context.ranks_at_once
    data: dict[str, Reference] = {"working_set": context.once(f"{name}.working_set", of_all_ranks, **own)}
    levels: dict[str, Reference] = {f"l2_{what}": f"{GPU}.l2_{what}", f"dram_{what}": memory}
    return context.wiring.add(f"{name}.{what}", function, {**data, "l2_capacity": capacity, **levels})


def _filled(context: Context, name: str, phase: KernelPhase, limits: Mapping[str, Reference]) -> dict[str, Reference]:
    """Rates that the blocks of a launch reach on the multiprocessors of the device."""
    path, wiring = f"application.phases.{name}", context.wiring
    blocks: Reference = f"{path}.block_count"
    if phase.blocks_follow == "work" and phase.metrics_per in ("profile", "launch"):
        inputs = {"block_count": blocks, "growth_factor": _growth(context, name, phase)}
        blocks = wiring.add(f"{name}.block_count", grown_blocks, inputs)
    together: dict[str, Reference] = {"quantity": blocks, "rank_count": context.ranks_at_once}
    blocks = wiring.add(f"{name}.joint_blocks", of_all_ranks, together)
    shape: dict[str, Reference] = {"block_count": blocks, "block_size": f"{path}.block_size"}
    device = parameters_in(GPU, "multiprocessor_count", "full_threads")
    rate: dict[str, Reference] = {"rate": limits["attainable_rate"]}
    filled = {"attainable_rate": wiring.add(f"{name}.filled_rate", filled_rate, rate | shape | device)}
    latencies = {"dram_bandwidth": _of_data(context, name, phase, "latency"), "l2_bandwidth": f"{GPU}.l2_latency"}
    for key, latency in latencies.items():
        if key not in limits:
            continue
        flow: dict[str, Reference] = {"in_flight_size": f"{path}.in_flight_size", "latency": latency}
        inputs = {"bandwidth": limits[key], **flow, **shape}
        filled[key] = wiring.add(f"{name}.filled_{key}", filled_bandwidth, inputs)
    return {**filled}


def _launched(context: Context, name: str, phase: KernelPhase, roofline: str) -> str:
    """Time of all launches of a phase from its roofline, the measured factor and the time of a launch."""
    path = f"application.phases.{name}"
    launch = f"{GPU}.empty_kernel_time" if phase.launch_time is None else f"{path}.launch_time"
    inputs: dict[str, Reference] = {
        "roofline_time": roofline,
        "ranks_per_gpu": context.ranks_on_gpu,
        "measured_factor": Quantity(1.0, ONE) if phase.measured_factor is None else f"{path}.measured_factor",
        "launch_count": f"{path}.launch_count",
        "launch_time": launch_time_of_ranks(context, name, launch),
        "launch_interval": f"{GPU}.launch_interval",
    }
    return context.wiring.add(name, launched_time, inputs)


def wire_measured_kernel(context: Context, name: str, phase: MeasuredKernelPhase) -> list[PhaseTerm]:
    """Phase of kernels timed on another device; their time scales with the rate that bounds them, if any."""
    path, wiring = f"application.phases.{name}", context.wiring
    once = f"{path}.kernel_time"
    if phase.bound != "nothing" or context.in_time_slices:
        _need_device(context, name)
    if phase.bound != "nothing":
        rates: dict[str, Reference] = {
            "profiled_metric": f"{path}.{phase.profiled_key}",
            "present_metric": _present_rate(context, phase.bound),
            "ranks_per_gpu": context.ranks_on_gpu if context.on_gpus else Quantity(1.0, ONE),
        }
        fixed: Reference = f"{GPU}.empty_kernel_time" if context.on_gpus else Quantity(0.0, SECOND)
        once = wiring.add(f"{name}.launch_time", rescaled_time, {"kernel_time": once, "launch_time": fixed, **rates})
    return [PhaseTerm(name, wiring.repeat(name, once, f"{path}.launch_count"), "kernel")]


def _present_rate(context: Context, bound: str) -> str:
    """Rate of the device, or of one rank's cores, that bounds a measured kernel."""
    if context.on_gpus:
        return gpu_rate(context, bound)
    if bound == "dram_bandwidth":
        return bandwidth_of_rank(context)
    precision = bound.split("_")[1]
    inputs: dict[str, Reference] = {
        "rank_core_count": cores_of_rank(context),
        "core_rate": rate_of_core(context, precision),
        "operation_mix_fraction": Quantity(1.0, ONE),
    }
    return context.once(f"node.rank_{precision}_rate", rank_rate, **inputs)


def _need_device(context: Context, phase: str) -> None:
    """Check that the platform describes the device that kernels run on."""
    if context.scenario.kernel_device is None:
        kind, table = ("GPU", "gpu") if context.on_gpus else ("processor", "cpu")
        message = f"{context.scenario.platform.name} has no {kind} for this kernel (`[platform.node.{table}]`)"
        if context.on_gpus:
            message += ', but application.runs_on = "gpu"'
        context.wiring.refuse(f"application.phases.{phase}", message)


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
