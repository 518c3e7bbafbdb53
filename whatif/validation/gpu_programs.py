"""Programs on one GPU: profiled on an H100 at one size, predicted at other sizes and on an H200.

The programs are `benchmarks/gpu_programs.cu`; their times and the outputs of Nsight Compute were recorded for this
project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.importers.gpu_benchmarks import read_kernels
from whatif.importers.kernel_anchors import with_anchors
from whatif.importers.kernel_phases import kernels_toml
from whatif.models.quantities import FloatArray
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import parse_document
from whatif.units import ONE, SECOND, Dimension
from whatif.validation.measured_kinds import ErrorTable, Kinds, Rows, mean_errors, numbers, summarised_table

PROFILED: Final = "h100-sxm5-80gb"
_PLATFORM: Final = "dgx_h100"
"""Machine whose GPU is replaced by the measured one."""
_MULTIPROCESSORS: Final = 132
_SHORT: Final = 20e-6
"""Predicted time of an iteration in s, below which the start of a kernel matters."""
BOUNDS: Final = {"H100": 0.05, "H200": 0.05, "short": 0.15, "partly filled": 0.15}
"""Largest mean absolute error of each kind of runs."""


@dataclass(frozen=True)
class _Program:
    """A profiled program."""

    size: int
    """Size of the profiled run."""
    axes: str
    """Axes of the work of its kernels; that of all pairs of bodies has two."""
    launches: Mapping[str, int]
    """Launches of each kernel in an iteration."""
    blocks: Callable[[float], float]
    """Blocks of its main kernel, by size."""
    cell_size: int = 0
    """Bytes of a cell that each iteration reads or writes; 0 for data that no launch uses again."""
    stated: Mapping[str, str] = field(default_factory=dict)
    """`block_count` of kernels whose blocks do not grow with their work."""
    more: str = ""
    """Phases that are in no profile."""


_READS: Final = """
[application.phases.clear_sum]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "rank"
operations = "0 flop"
dram_size = "8 B"
launch_count = 2
[application.phases.read_sum]
kind = "transfer"
direction = "device_to_host"
transfer_size = "8 B"
transfer_count = 2
blocking = true
"""
"""Sums of dot products, cleared on the device and read by the host."""
_TILES: Final = "= ceil(application.grid.cells.x / 32) ** 2"
_PER_BODY: Final = "= ceil(application.grid.cells.x / 256)"
_PROGRAMS: Final[Mapping[str, _Program]] = {
    "cg": _Program(
        256,
        "xyz",
        {"product": 1, "dot": 2, "update": 3},
        lambda n: n**3 / 256,
        cell_size=27 * 12 + 16,
        stated={"dot": "1056"},
        more=_READS,
    ),
    "jacobi": _Program(8192, "xy", {"jacobi": 1}, lambda n: n**2 / 256, cell_size=16),
    "heat": _Program(512, "xyz", {"heat": 1}, lambda n: n**3 / 256, cell_size=8),
    "bodies": _Program(
        65536, "xy", {"forces": 1, "step": 1}, lambda n: n / 256, stated={"forces": _PER_BODY, "step": _PER_BODY}
    ),
    "life": _Program(8192, "xy", {"life": 1}, lambda n: n**2 / 256, cell_size=2),
    "polynomial": _Program(4194304, "x", {"polynomial": 1}, lambda n: n / 256),
    "sums": _Program(2112, "x", {"sums": 1}, lambda n: n),
    "stencil27": _Program(512, "xyz", {"stencil27": 1}, lambda n: n**3 / 256, cell_size=16),
    "lattice": _Program(256, "xyz", {"lattice": 1}, lambda n: n**3 / 256, cell_size=152),
    "convolve": _Program(16384, "xy", {"convolve": 1}, lambda n: n**2 / 256, cell_size=8),
    "transpose": _Program(16384, "xy", {"transpose": 1}, lambda n: n**2 / 1024, cell_size=16),
    **{f"fused{count}": _Program(2**27, "x", {"fused": 1}, lambda n: n / 256) for count in (16, 64, 128, 256)},
    "matmul": _Program(2048, "xyz", {"matmul": 1}, lambda n: n**2 / 1024, stated={"matmul": _TILES}),
}


def gpu_programs(rows: Rows) -> ErrorTable:
    """One row per program, GPU and size: measured time of an iteration, and predictions without and with its profile.

    `roofline` is the work that was counted on the H100 and the GPU's data sheet alone; `predicted` is anchored to the
    kernel times in the profile.
    """
    columns: dict[str, Dimension | None] = {"program": None, "gpu": None, "size": ONE, "kind": None}
    columns |= {"measured": SECOND, "roofline": SECOND, "predicted": SECOND, "error": ONE}
    measured = numbers(rows, "time_us") * 1e-6
    plain, anchored = predictions(rows, anchored=False), predictions(rows)
    errors = anchored / measured - 1
    named = kinds(rows, anchored)
    cells = [
        (row["program"], row["gpu"], float(row["size"]), kind, *times)
        for row, kind, *times in zip(rows, named.tolist(), measured, plain, anchored, errors, strict=True)
    ]
    title = "programs on one GPU, profiled on an H100 at one size"
    return summarised_table(columns, cells, title, mean_errors(named, errors, BOUNDS))


def kinds(rows: Rows, predicted: FloatArray) -> Kinds:
    """Kind of each run: fewer blocks than multiprocessors, short kernels, or its GPU."""
    blocks = np.array([_PROGRAMS[row["program"]].blocks(float(row["size"])) for row in rows])
    launches = np.array([sum(_PROGRAMS[row["program"]].launches.values()) for row in rows])
    gpus = np.array(["H100" if row["gpu"] == PROFILED else "H200" for row in rows])
    short = predicted < _SHORT * launches
    return np.select([blocks < _MULTIPROCESSORS, short], ["partly filled", "short"], gpus)


def predictions(rows: Rows, anchored: bool = True) -> FloatArray:
    """Predicted times of an iteration in s; `anchored` to the kernel times in the profiles."""
    found = np.empty(len(rows))
    for program, gpu in dict.fromkeys((row["program"], row["gpu"]) for row in rows):
        chosen = [index for index, row in enumerate(rows) if (row["program"], row["gpu"]) == (program, gpu)]
        sizes = numbers([rows[index] for index in chosen], "size")
        scenario = program_scenario(program, gpu, anchored)
        found[chosen] = evaluate(scenario.program, work_of(program, sizes)).values["iteration.time"]
    return found


def work_of(program: str, sizes: FloatArray) -> dict[str, FloatArray]:
    """Parameters of the work of a program at its sizes."""
    return {f"application.grid.cells.{axis}": sizes for axis in _PROGRAMS[program].axes}


def program_scenario(name: str, gpu: str, anchored: bool = True, more: str = "") -> Scenario:
    """Scenario of a program on a GPU, with the kernels of its profile; `more` are further phases."""
    program = _PROGRAMS[name]
    table = read_kernels(shipped_folder("validation") / "gpu_programs" / f"{name}.csv.gz")
    cells = f"{{ {', '.join(f'{axis} = {program.size}' for axis in program.axes)} }}"
    text = f"""
[application]
name = "{name}"
rank_count = 1
iteration_count = 1
[application.grid]
scaling = "weak"
cells = {cells}
{kernels_toml(with_anchors(table) if anchored else table)}
{program.more}
{more}
"""
    overrides: dict[str, Any] = {"platform.node.gpu.extends": gpu}
    for kernel, count in program.launches.items():
        phase = f"application.phases.{kernel}"
        overrides |= {f"{phase}.launch_count": count, f"{phase}.model": "roofline_l2", f"{phase}.follows": "cells"}
        overrides |= {f"{phase}.profiled_cells.{axis}": program.size for axis in program.axes}
        if program.cell_size:
            cells = " * ".join(f"application.grid.cells.{axis}" for axis in program.axes)
            overrides[f"{phase}.working_set"] = f"= {cells} * {program.cell_size} B"
        if name == "sums":
            overrides[f"{phase}.in_flight_size"] = "8 B"
        if kernel in program.stated:
            overrides |= {f"{phase}.block_count": program.stated[kernel], f"{phase}.blocks_follow": "nothing"}
    return Scenario(parse_document(text, f"{name} on {gpu}"), _PLATFORM, overrides)
