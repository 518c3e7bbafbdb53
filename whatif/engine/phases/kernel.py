"""A GPU kernel: its metrics for one iteration, then the quantitative roofline of the platform's device."""

from __future__ import annotations

from whatif.engine.context import Context
from whatif.engine.term import PhaseTerm, Reference
from whatif.models.roofline import DOMINANT_RATES, attainable_rate, roofline_l2_time, roofline_time
from whatif.models.workload import launch_scale, mix_fits, scaled, surface_growth, volume_growth
from whatif.schema.application import KernelPhase
from whatif.units import ONE, Quantity

GPU = "platform.node.gpu"


def wire_kernel(context: Context, name: str, phase: KernelPhase) -> list[PhaseTerm]:
    """The terms of a kernel phase; its time is that of all launches of one iteration."""
    path, wiring = f"application.phases.{name}", context.wiring
    if context.scenario.platform.node.gpu is None:
        wiring.problem(path, f"{context.scenario.platform.name} has no GPU for this kernel (`[platform.node.gpu]`)")
        wiring.raise_problems()
    scale = _scale(context, name, phase)
    names = ["operations", "dram_size", *(["l2_size"] if phase.model == "roofline_l2" else [])]
    metrics: dict[str, Reference] = {
        metric: wiring.add(f"{name}.{metric}", scaled, {"metric": f"{path}.{metric}", "scale_factor": scale})
        for metric in names
    }
    mix: dict[str, Reference] = {key: f"{path}.{key}" for key in ("compute_fraction", "load_store_fraction")}
    reason = f"{path}: compute_fraction and load_store_fraction together exceed 1"
    wiring.require(f"{name}.mix fits", reason, mix_fits, mix)
    rate = wiring.add(
        f"{name}.attainable_rate",
        attainable_rate,
        {
            **mix,
            "operation_mix_fraction": f"{path}.operation_efficiency",
            "peak_rate": f"{GPU}.{DOMINANT_RATES[phase.dominant_operation]}",
            "peak_add_rate": f"{GPU}.peak_add_rate",
            "peak_shared_rate": f"{GPU}.peak_shared_rate",
        },
    )
    limits: dict[str, Reference] = {"attainable_rate": rate, "dram_bandwidth": f"{GPU}.dram_bandwidth"}
    if phase.model == "roofline":
        time = wiring.add(name, roofline_time, metrics | limits)
    else:
        time = wiring.add(name, roofline_l2_time, metrics | limits | {"l2_bandwidth": f"{GPU}.l2_bandwidth"})
    return [PhaseTerm(name, time, "kernel")]


def _scale(context: Context, name: str, phase: KernelPhase) -> Reference:
    """What to multiply the metrics of the file with to get those of one iteration on one rank."""
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
