"""Files written by the program: TOML with its comments kept, tables, data sets, reports."""

from __future__ import annotations

from typing import Final

from whatif.plugins import PhaseFile, Plugin

PLUGIN: Final = Plugin(
    phases={
        "trace": PhaseFile(
            "whatif.importers.trace_formats:is_trace", "whatif.files.trace_scenario:trace_phases", "trace of MPI calls"
        ),
        "kernels": PhaseFile(
            "whatif.importers.gpu_benchmarks:is_kernels",
            "whatif.files.kernel_file:kernel_phases",
            "profiled kernels of Nsight Compute or gpuroofperf",
        ),
    }
)
