"""Roofline of a scenario: its kernels under the roofs of their device, and of the GPU of another platform."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from whatif.core.evaluate import Evaluation, Values, evaluate
from whatif.core.iteration_timeline import possible_result
from whatif.core.parameter_paths import GPU
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
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, PlotMark, Scale
from whatif.schema.kernel_phase import KernelPhase
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import (
    BYTE_PER_SECOND,
    FLOP_PER_BYTE,
    FLOP_PER_SECOND,
    ONE,
    SECOND,
    Dimension,
    counted,
    format_quantity,
)

Limit = Literal["compute", "dram", "l2", "launch"]
OPERATIONS: Final = {"fp_64": "fp64", "fp_32": "fp32", "integer": "integer"}
LIMITS: Final = {"compute": "compute", "dram": "DRAM", "l2": "L2 cache", "launch": "launch"}
"""Limit of a kernel, in words."""
ROOF_STYLES: Final = {
    "dram": "series-1", "fp_64": "series-2", "l2": "series-3", "fp_32": "series-4", "integer": "series-5",
    "launch": "series-6",
}  # fmt: skip
"""Colour of each roof; a kernel has that of the roof that limits it, or that of launches."""
ROOF_AXES: Final = PlotDescription(
    "",
    AxisDescription("operational intensity", FLOP_PER_BYTE, Scale.LOG),
    AxisDescription("rate", FLOP_PER_SECOND, Scale.LOG),
)
_COLUMNS: Final[dict[str, Dimension | None]] = {
    "device": None, "name": None, "limit": None, "time": SECOND, "share": ONE, "rate": FLOP_PER_SECOND,
    "own_roof": FLOP_PER_SECOND, "of_roof": ONE, "intensity": FLOP_PER_BYTE, "bandwidth": BYTE_PER_SECOND,
}  # fmt: skip
_DENSE: Final = 64
"""Points of a drawn roof, too dense for markers."""
_LABELLED: Final = 0.68
"""Place of the name of a slope, as a share of its length."""


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


class Roof(NamedTuple):
    """A roof as a line in decimal logarithms, and what it is in words."""

    style: str
    words: str
    x: tuple[float, float]
    y: tuple[float, float]
    ridge: float = math.nan
    """Intensity at which a flat roof meets that of the device memory."""

    @property
    def flat(self) -> bool:
        """Whether it is a rate of operations, not of bytes."""
        return math.isfinite(self.ridge)


class AxisLimits(NamedTuple):
    """The ends of both axes, in decimal logarithms."""

    left: float
    right: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Roofline(StudyResult):
    """Kernels under the roofs of their device, and the same kernels on a second GPU."""

    gpu: Roofs
    kernels: tuple[KernelPoint, ...] = ()
    second: SecondGpu | None = None
    title: str = ""
    optional_columns = (["intensity"], ["own_roof"], ["bandwidth"])

    def operations(self) -> tuple[str, ...]:
        """Kinds of operations whose peaks are roofs: those that dominate some kernel, or all without kernels."""
        used = {kernel.dominant_operation for kernel in self.kernels}
        return tuple(name for name in OPERATIONS if name in self.gpu.peaks and (name in used or not used))

    def cached(self) -> bool:
        """Whether some kernel has the second-level cache as a roof."""
        return any(kernel.l2_bandwidth is not None for kernel in self.kernels)

    def memories(self, gpu: Roofs) -> dict[str, float]:
        """Bandwidths of a device that are roofs, in B/s."""
        return {"dram": gpu.dram_bandwidth} | ({"l2": gpu.l2_bandwidth} if self.cached() else {})

    def devices(self) -> list[tuple[Roofs, tuple[KernelPoint, ...]]]:
        """The device and the second GPU, if any, each with the kernels on it."""
        second = self.second
        others = [(second.roofs, second.kernels)] if second is not None and second.roofs is not None else []
        return [(self.gpu, self.kernels), *others]

    def table(self) -> Table:
        """One row per kernel, then one per roof, of each device: bandwidth, or peak rate and its ridge."""
        rows = [row for gpu, kernels in self.devices() for row in self._rows(gpu, kernels)]
        return Table.of_rows(_COLUMNS, rows, shares=("share", "of_roof"))

    def _rows(self, gpu: Roofs, kernels: Sequence[KernelPoint]) -> Iterator[tuple[Any, ...]]:
        none = math.nan
        for kernel in kernels:
            yield (gpu.name, kernel.name, LIMITS[kernel.limit], kernel.time, kernel.share, kernel.achieved_rate,
                   kernel.attainable_rate, of_roof(kernel), kernel.intensity, none)  # fmt: skip
        for name, bandwidth in self.memories(gpu).items():
            yield gpu.name, f"{LIMITS[name]} roof", "", none, none, none, none, none, none, bandwidth
        for name in self.operations():
            peak = gpu.peaks[name]
            ridge = peak / gpu.dram_bandwidth
            yield gpu.name, f"{OPERATIONS[name]} roof", "", none, none, peak, none, none, ridge, none

    def picture(self) -> PlotDescription:
        """Rate over intensity, both logarithmic: roofs as lines, kernels as filled marks below their own roof, a hollow
        mark; the second GPU dashed, its kernels as crosses."""
        ends = limits(self)
        own = roofs(self.gpu, self, ends)
        lines = [_line(roof, roof.words if roof.flat else "") for roof in own]
        marks = [_named(roof) for roof in own if not roof.flat]
        title = f"{self.title}: kernels ◆ and their own roofs ◇"
        for gpu, kernels in self.devices()[1:]:
            name = self.second.platform if self.second else ""
            others = roofs(gpu, self, ends)
            lines += [_line(roof, f"{name} {roof.words}", "baseline") for roof in others]
            marks += [PlotMark(kernel.intensity, kernel.achieved_rate, "×") for kernel in kernels]
            title += f", × on {name}"
        for kernel in self.kernels:
            marks.append(PlotMark(kernel.intensity, kernel.attainable_rate, "◇"))
            marks.append(PlotMark(kernel.intensity, kernel.achieved_rate, "◆", kernel.name, below=True))
        x, y = ROOF_AXES.x, ROOF_AXES.y
        axes = replace(x, limits=(ends.left, ends.right)), replace(y, limits=(ends.low, ends.high))
        return PlotDescription(title, *axes, tuple(lines), marks=tuple(marks))


def of_roof(kernel: KernelPoint) -> float:
    """Share of its own roof that a kernel reaches; NaN without one."""
    return kernel.achieved_rate / kernel.attainable_rate if kernel.attainable_rate > 0 else math.nan


def roofline(scenario: Scenario, against: str | None = None) -> Roofline:
    """Roofline of a scenario at its point, also on the GPU of another platform.

    Raise `UsageError` without any roof and for a platform without a GPU, `InfeasiblePointError` for an infeasible
    point.
    """
    program = scenario.program
    second = second_gpu(scenario, against) if against is not None else None
    if second is not None and second.reason:
        raise UsageError(second.reason)
    found = roofline_at(program, evaluate(program), second)
    if not found.gpu.peaks:
        raise UsageError(f"{program.loaded.scenario.platform.name}: no roofs to draw: no GPU, and no kernel phase")
    remark = () if found.kernels else ("no kernel phase: the roofs alone",)
    return Roofline(found.gpu, found.kernels, second, found.title, remarks=remark).about(scenario)


def roofline_at(program: Program, evaluation: Evaluation, second: SecondGpu | None) -> Roofline:
    """Roofline at one point; raise `InfeasiblePointError` for an infeasible one."""
    gpu = gpu_roofs(program, evaluation)
    kernels = kernel_points(program, evaluation) if gpu.peaks else ()
    loaded = program.loaded
    return Roofline(gpu, kernels, second, f"{loaded.scenario.application.name} on {loaded.scenario.platform.name}")


def limits(found: Roofline) -> AxisLimits:
    """Ends around every point and ridge; they move by quarters of a decade, so that the picture stays in place."""
    xs, ys = [], []
    for gpu, kernels in found.devices():
        peaks = [gpu.peaks[name] for name in found.operations()]
        slopes = found.memories(gpu).values()
        xs += [peak / slope for peak in peaks for slope in slopes] + [kernel.intensity for kernel in kernels]
        ys += [*peaks, *(rate for kernel in kernels for rate in (kernel.achieved_rate, kernel.attainable_rate))]
    return AxisLimits(*_around(xs, 0.35), *_around(ys, 0.15))


def _around(values: Sequence[float], air: float) -> tuple[float, float]:
    """Quarters of a decade around what is positive and finite, with some air."""
    logs = [math.log10(value) for value in values if 0 < value < math.inf]
    return math.floor(4 * (min(logs) - air)) / 4, math.ceil(4 * (max(logs) + air)) / 4


def roofs(gpu: Roofs, found: Roofline, ends: AxisLimits) -> list[Roof]:
    """The roofs of a GPU: the slopes of its memories, then a flat one for each kind of operations."""
    peaks = {name: math.log10(gpu.peaks[name]) for name in found.operations()}
    slopes, top = found.memories(gpu), max(peaks.values())
    lines = []
    for name, bandwidth in slopes.items():
        rise = math.log10(bandwidth)
        start = max(ends.left, ends.low - rise)
        words = f"{name.upper()} {format_quantity(bandwidth, BYTE_PER_SECOND)}"
        lines.append(Roof(ROOF_STYLES[name], words, (start, top - rise), (start + rise, top)))
    dram, steepest = math.log10(gpu.dram_bandwidth), math.log10(max(slopes.values()))
    for name, peak in peaks.items():
        words = f"{OPERATIONS[name]} {format_quantity(gpu.peaks[name], FLOP_PER_SECOND)}"
        lines.append(Roof(ROOF_STYLES[name], words, (peak - steepest, ends.right), (peak, peak), peak - dram))
    return lines


def _line(roof: Roof, label: str, style: str = "data") -> PlotLine:
    x, y = (10.0 ** np.linspace(*along, _DENSE) for along in (roof.x, roof.y))
    return PlotLine(label, x, y, style)


def _named(roof: Roof) -> PlotMark:
    """Name of a slope, on it."""
    x, y = (10.0 ** (start + _LABELLED * (end - start)) for start, end in (roof.x, roof.y))
    return PlotMark(x, y, "", roof.words)
