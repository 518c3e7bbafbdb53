"""The kernels of an application on the roofline of their device, or of the GPU of another platform."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from whatif.core.energy import GPU
from whatif.core.evaluate import Evaluation, Values, evaluate
from whatif.core.iteration_timeline import possible_result
from whatif.core.scenario import Scenario
from whatif.core.socket_share import PRECISIONS, RANK_BANDWIDTH, core_rate_term, cores_term
from whatif.core.term import Program
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.models.roofline import (
    DOMINANT_RATES,
    achieved_rate,
    is_compute_bound,
    machine_balance,
    operational_intensity,
    roofline_time,
)
from whatif.schema.kernel_phase import KernelPhase
from whatif.units import counted

Limit = Literal["compute", "dram", "l2", "launch"]


@dataclass(frozen=True, slots=True)
class KernelPoint:
    """A kernel phase under its roofs: all launches of one iteration on one rank."""

    name: str
    dominant_operation: str
    """`fp_64`, `fp_32` or `integer`: the peak that limits its compute roof."""
    intensity: float
    """Operations per byte of device memory, in flop/B; infinite without bytes."""
    achieved_rate: float
    """In flop/s; 0 for a kernel without work."""
    attainable_rate: float
    """Its own compute roof in flop/s, as its instruction mix allows."""
    dram_bandwidth: float
    """In B/s."""
    l2_bandwidth: float | None
    """In B/s; None if the kernel's model has no such roof."""
    limit: Limit
    """Limit that decides the time: launches if they take most of it; device memory in a tie with the operations."""
    time: float
    """In s of one iteration."""
    share: float
    """Share of the iteration's time; 0 if that is 0."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """Limits of a GPU, or of one rank's cores: bandwidths in B/s, peak rates by dominant operation in flop/s."""

    name: str
    dram_bandwidth: float
    l2_bandwidth: float
    peaks: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SecondGpu:
    """GPU of another platform with the kernels on it, or the `reason` why it is missing."""

    platform: str
    roofs: Roofs | None
    kernels: tuple[KernelPoint, ...]
    reason: str


def kernel_points(program: Program, evaluation: Evaluation) -> tuple[KernelPoint, ...]:
    """Every kernel phase at one point, in the order of the file; raise `InfeasiblePointError` if it has no answer.

    Source: the quantitative roofline of `models.roofline`.
    """
    iteration = float(possible_result(evaluation).columns["iteration_time"])
    phases = program.loaded.scenario.application.phases.items()
    times = {phase.phase: evaluation.values[phase.term] for phase in program.phases}
    return tuple(
        _kernel_point(program, evaluation.values, name, phase, times[name], iteration)
        for name, phase in phases
        if isinstance(phase, KernelPhase)
    )


def _kernel_point(
    program: Program, values: Values, name: str, phase: KernelPhase, time: FloatArray, iteration: float
) -> KernelPoint:
    term = f"{name}.roofline" if f"{name}.roofline" in program.terms else name
    inputs = program.terms[term].inputs
    operations, dram_size, rate, bandwidth = (
        values[str(inputs[key])] for key in ("operations", "dram_size", "attainable_rate", "dram_bandwidth")
    )
    has_l2 = phase.model == "roofline_l2" and "l2_bandwidth" in inputs
    intensity = operational_intensity(operations, dram_size)
    compute_bound = is_compute_bound(intensity, machine_balance(rate, bandwidth)) > 0
    # Longer than compute and device memory together allow: only a third roof does that.
    cached = values[str(inputs["l2_size"])] / values[str(inputs["l2_bandwidth"])] if has_l2 else 0.0
    third = cached > roofline_time(operations, dram_size, rate, bandwidth)
    roofline = values[term] * values.get(f"application.phases.{name}.measured_factor", 1.0)
    launches = term != name and float(time) > 2 * float(roofline)
    return KernelPoint(
        name=name,
        dominant_operation=phase.dominant_operation,
        intensity=float(intensity),
        achieved_rate=float(achieved_rate(operations, time)),
        attainable_rate=float(rate),
        dram_bandwidth=float(bandwidth),
        l2_bandwidth=float(values[f"{GPU}.l2_bandwidth"]) if has_l2 else None,
        limit="launch" if launches else "l2" if third else "compute" if compute_bound else "dram",
        time=float(time),
        share=float(time) / iteration if iteration > 0 else 0.0,
    )


def gpu_roofs(program: Program, evaluation: Evaluation) -> Roofs:
    """Roofs of the GPU, or of one rank's cores, with the values at the point; none without a GPU or kernels."""
    values, scenario = evaluation.values, program.loaded.scenario
    gpu = scenario.platform.node.gpu
    if gpu is None or not scenario.on_gpus:
        return _socket_roofs(program, values)
    return Roofs(
        name=gpu.name,
        dram_bandwidth=float(values[f"{GPU}.dram_bandwidth"]),
        l2_bandwidth=float(values[f"{GPU}.l2_bandwidth"]),
        peaks={operation: float(values[f"{GPU}.{key}"]) for operation, key in DOMINANT_RATES.items()},
    )


def _socket_roofs(program: Program, values: Values) -> Roofs:
    """Roofs of the cores of one rank, as far as kernels need them."""
    cpu = program.loaded.scenario.platform.node.cpu
    if cpu is None or RANK_BANDWIDTH not in values:
        return Roofs("no GPU", math.nan, math.nan, {})
    rates = {operation: core_rate_term(precision) for operation, precision in PRECISIONS.items()}
    cores = values[cores_term(program.parameters)]
    peaks = {operation: float(values[term] * cores) for operation, term in rates.items() if term in values}
    return Roofs(f"{cpu.name}, {counted(round(float(cores)), 'core')}", float(values[RANK_BANDWIDTH]), math.nan, peaks)


def second_gpu(scenario: Scenario, platform: str) -> SecondGpu:
    """Rooflines of the scenario's kernels on the GPU of another platform.

    Ranks, nodes and network stay, so that the kernels do the same work; `share` is of the iteration of that machine.
    Edits of the present GPU are discarded; its values in the scenario's file stay, as with `--platform`.
    An error becomes the `reason` and is never raised.
    """
    try:
        other = scenario.on_platform(platform).program
        if other.loaded.scenario.platform.node.gpu is None:
            raise UsageError(f"{platform} has no GPU")
        if not scenario.program.loaded.scenario.on_gpus:
            raise UsageError("kernels run on sockets here; only GPUs are compared")
        there = evaluate(other)
        gpu = {path: array for path, array in there.values.items() if path.startswith(f"{GPU}.")}
        here = evaluate(scenario.program, gpu)
        return SecondGpu(platform, gpu_roofs(other, there), kernel_points(scenario.program, here), "")
    except WhatifError as error:
        return SecondGpu(platform, None, (), str(error))
