"""Tables that compare our results with others; `whatif validate` prints them, and tests check their bounds."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.linpack.threads import Share, silent
from whatif.models.patterns import GridPattern
from whatif.models.quantities import FloatArray
from whatif.profiles.copy_times import APPROACHES
from whatif.profiles.profile_data import DEVICE_COLUMNS, OPERATION_COLUMNS, Profile
from whatif.profiles.projection import project
from whatif.schema.load import load_platform
from whatif.schema.shipped import shipped_folder
from whatif.simulation.generate import all_to_all_trace, collective_trace, halo_trace
from whatif.simulation.lower import lower
from whatif.simulation.posted import halo_times, linear_alltoall_times
from whatif.simulation.rank_programs import Kind, RankProgram, Trace
from whatif.simulation.replay import replay
from whatif.simulation.rounds import broadcast_times, dissemination_times
from whatif.simulation.schedule import Costs, Places
from whatif.studies.message_curves import counts
from whatif.table import Column, Table
from whatif.units import BYTE, NANOSECOND, ONE, SECOND, Dimension
from whatif.validation.anchored_kernels import anchored_kernels
from whatif.validation.cpu_programs import cpu_programs
from whatif.validation.gpu_programs import gpu_programs
from whatif.validation.hpcg_runs import hpcg_runs
from whatif.validation.hpl_runs import COLUMNS, compared
from whatif.validation.kernel_sizes import ANCHOR, kernel_sizes
from whatif.validation.library_collectives import library_collectives
from whatif.validation.matrix_products import matrix_products
from whatif.validation.measured_kinds import ErrorTable, error_table, joined_by, mean_error, mean_errors, numbers
from whatif.validation.message_collectives import mpi_collectives
from whatif.validation.power_models import machine_power, power_caps
from whatif.validation.serving_runs import decoding_steps, first_tokens, serving_runs
from whatif.validation.shared_gpus import shared_gpus
from whatif.validation.shared_links import simulated_time
from whatif.validation.training_steps import training_steps
from whatif.validation.whole_machines import whole_machines

_SWEPT: Final = {"titan": "titan", "summit": "summit", "h100": "dgx_h100", "h200": "dgx_h100"}
"""Platforms of the machines with a measured sweep of copies; an H200 has the links of an H100."""
_MEMORIES: Final = ("pinned", "pageable")
_PROJECTED: Final = (
    ("titan", "summit", _MEMORIES), ("summit", "titan", _MEMORIES), ("titan", "h100", ("pinned",)),
    ("h100", "h200", ("pinned",)),
)  # fmt: skip
"""The machine whose latencies are used, the one that is projected, and the kinds of host memory.

The hosts of the H100 and the H200 were virtual machines, whose memory is in no data sheet.
"""
# By the pattern's name in LogGOPSim's generator.
_RECURRENCES: Final[Mapping[str, Callable[..., FloatArray]]] = {
    "binomialtreebcast": broadcast_times,
    "dissemination": dissemination_times,
    "linear_alltoall": linear_alltoall_times,
}


def rows_of(name: str) -> list[dict[str, str]]:
    """Rows of a file of the folder `validation`."""
    with (shipped_folder("validation") / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def loggops_costs(row: Mapping[str, str]) -> Costs:
    """Costs of LogGOPSim with the L, o, g, G, O and S of a row, the same at every distance."""
    keys = ("L_ns", "o_ns", "g_ns", "G_ns_per_B", "O_ns_per_B")
    latency, overhead, gap, per_byte, handling = (float(row[key]) * NANOSECOND for key in keys)
    lines = (
        (overhead, handling),
        (gap, per_byte),
        (overhead + latency, 0.0),
        (overhead, max(handling, per_byte)),
        (gap, per_byte),
    )
    charges = (np.tile(np.array(line), (3, 3, 1)) for line in lines)
    send, send_gap, flight, receive, receive_gap = charges
    limits = np.tile([0.0, float(row["S_B"])], (3, 1))
    return Costs(send, send_gap, flight, receive, receive_gap, limits, free_size=1.0, on_arrival=True)


def one_node(rank_count: int) -> Places:
    """All ranks on one node: at equal costs their places do not matter."""
    nowhere = np.zeros(rank_count, dtype=np.int32)
    return Places(nowhere, nowhere)


def pattern_trace(pattern: str, rank_count: int, message_size: float) -> Trace:
    """Trace of a pattern of LogGOPSim's generator."""
    if pattern == "binomialtreebcast":
        return collective_trace(Kind.BROADCAST, rank_count, message_size)
    if pattern == "linear_alltoall":
        return all_to_all_trace(rank_count, message_size)
    powers = [2**power for power in range((rank_count - 1).bit_length())]
    peers = np.array([sign * power for power in powers for sign in (1, -1)], dtype=np.int32)
    program = RankProgram(
        kind=np.tile(np.array([Kind.ISEND, Kind.RECEIVE], dtype=np.uint8), len(powers)),
        peer=peers,
        size=np.full(len(peers), message_size),
        tag=np.zeros(len(peers), dtype=np.int32),
        wait_start=np.zeros(len(peers) + 1, dtype=np.int64),
        waits=np.empty(0, dtype=np.int32),
        relative=True,
    )
    return Trace((program,), np.zeros(rank_count, dtype=np.int32))


def schedules() -> ErrorTable:
    """End times of LogGOPSim for generated patterns, and ours: array recurrences, and the event loop."""
    rows = [*map(_pattern, rows_of("loggopsim_patterns.csv")), *map(_halo, rows_of("loggopsim_halo.csv"))]
    columns: dict[str, Dimension | None] = {"pattern": None, "rank_count": ONE, "message_size": BYTE}
    columns |= dict.fromkeys(("reference_time", "recurrence_time", "event_time"), SECOND)
    by_array = _errors(rows, 3, 4)
    means = [mean_error("event loop", _errors(rows, 3, 5)), mean_error("recurrences", by_array[np.isfinite(by_array)])]
    return error_table(columns, rows, "end times in LogGOPS, compared with LogGOPSim", means)


def _errors(rows: Sequence[Sequence[Any]], known: int, predicted: int) -> FloatArray:
    """Relative errors of a column; rounding is none."""
    numbers = np.array([(row[known], row[predicted]) for row in rows], dtype=np.float64)
    return np.round(numbers[:, 1] / numbers[:, 0] - 1, 12)


def _pattern(row: Mapping[str, str]) -> tuple[Any, ...]:
    pattern, rank_count, size = row["pattern"], int(row["rank_count"]), float(row["message_size_B"])
    costs, places = loggops_costs(row), one_node(rank_count)
    ends = _RECURRENCES[pattern](rank_count, size, places, costs)
    event = replay(lower(pattern_trace(pattern, rank_count, size)), places, costs).time
    return pattern, rank_count, size, float(row["time_ns"]) * NANOSECOND, float(ends.max()), event


def _halo(row: Mapping[str, str]) -> tuple[Any, ...]:
    pattern = GridPattern((int(row["x"]), int(row["y"])), 1, 1, periodic=row["periodic"] == "1", order="fortran")
    costs, size = loggops_costs(row), float(row["message_size_B"])
    count, work = int(row["iteration_count"]), float(row["compute_ns"]) * NANOSECOND
    # If messages arrive before the simulation of their phase, the recurrence does not hold, which is reported.
    ends = np.array([np.nan])
    with suppress(UsageError):
        ends = halo_times(pattern, size, costs, iteration_count=count, compute_time=work)
    trace = halo_trace(pattern, size, iteration_count=count, compute_time=work)
    event = replay(lower(trace), one_node(pattern.rank_count), costs).time
    name = "halo" if pattern.periodic else "halo, open"
    return name, pattern.rank_count, size, float(row["time_ns"]) * NANOSECOND, float(ends.max()), event


def k_counts() -> ErrorTable:
    """K_inter and K_total of Table 5 of Choi et al. 2020, and those counted from the placement of our scenarios."""
    columns = {
        "application": None,
        "machine": None,
        "rank_count": ONE,
        "K_inter": ONE,
        "K_total": ONE,
        "counted_K_inter": ONE,
        "counted_K_total": ONE,
    }
    rows = list(_counted())
    means = [mean_error(name, _errors(rows, 3 + at, 5 + at)) for at, name in enumerate(("K_inter", "K_total"))]
    return error_table(columns, rows, "messages of a node, Choi et al. 2020, Table 5", means)


def _counted() -> Iterator[tuple[Any, ...]]:
    for row in rows_of("choi_table5.csv"):
        application, machine = row["app"], row["machine"]
        for rank_count in _RANKS[application]:
            sets = {"application.rank_count": str(rank_count), "platform.node_count": "4096"}
            scenario = Scenario.open(application.lower(), platform=machine.lower(), overrides=sets)
            phase = next(name for name, phase in _phases(scenario).items() if phase.kind == "halo")
            found = counts(scenario.program, evaluate(scenario.program), phase)
            printed = (float(row["K_inter"]), float(row["K_total"]))
            yield application, machine, rank_count, *printed, found.inter_node_count, found.total_count


# Process counts of the paper's runs: from one on the counts of most stay.
_RANKS: Final = {"Jacobi2D": (768, 1536), "MiniFE": (256, 512, 1024), "MiniMD": (256, 1024)}


def _phases(scenario: Scenario) -> Mapping[str, Any]:
    return scenario.program.loaded.scenario.application.phases


def links() -> ErrorTable:
    """Times of SimGrid for messages that share the links of one switch, and ours."""
    columns = {"pattern": None, "rank_count": ONE, "message_size": BYTE, "iteration_count": ONE}
    times = {"reference_time": SECOND, "replayed_time": SECOND}
    keys = ("pattern", "P", "bytes", "iters", "sim_total_s")
    rows = [
        (words[0], *map(float, words[1:]), simulated_time(row))
        for row in rows_of("simgrid_flows.csv")
        for words in [[row[key] for key in keys]]
    ]
    means = [mean_error("times", _errors(rows, 4, 5))]
    return error_table(columns | times, rows, "messages that share links, compared with SimGrid 3.32", means)


def hpl(progress: Share = silent) -> ErrorTable:
    """HPL on ideal networks and on Dahu compared with the emulator, real runs, and effects of parts of the machine."""
    emulator, dahu, what_ifs, trees = (rows_of(f"hpl_{name}.csv") for name in ("emulator", "dahu", "what_if", "trees"))
    rows = compared(emulator, dahu, what_ifs, trees, progress)
    runs = [row for row in rows if np.isfinite(row.reference_time) and np.isfinite(row.error)]
    means = mean_errors(np.array([row.reference for row in runs]), np.array([row.error for row in runs]))
    return error_table(COLUMNS, rows, "HPL, compared with the emulator and real runs", means)


def top500(progress: Share = silent) -> ErrorTable:
    """HPL on whole machines compared with the rates on TOP500 lists."""
    return whole_machines(rows_of("top500.csv"), progress)


def transfers() -> ErrorTable:
    """Weighted mean errors of projected copies on measured sweeps, with the latencies of another machine."""
    columns = {
        "source": None,
        "target": None,
        "direction": None,
        "memory": None,
        "projected_error": ONE,
        "peak_error": ONE,
        "envelope_error": ONE,
    }
    machines = {name: load_platform(platform)[0] for name, platform in _SWEPT.items()}
    sweeps = [*rows_of("ahead_memcpy_sweep.csv"), *rows_of("gpu_programs/copies.csv")]
    rows: list[tuple[Any, ...]] = []
    for source, target, memories in _PROJECTED:
        for direction, memory in product(("HtoD", "DtoH"), memories):
            profile = sweep_profile(sweeps, target, direction, memory)
            found = project(profile, machines[source], machines[target], profile)
            errors = (found.error(approach).total for approach in APPROACHES)
            rows.append((source, target, direction, memory, *errors))
    means = joined_by([row[3] for row in rows], [(1, row[4], np.nan) for row in rows])
    return error_table(columns, rows, "sweeps of copies, projected from another machine", means)


def sweep_profile(rows: Sequence[Mapping[str, str]], machine: str, direction: str, memory: str) -> Profile:
    """Profile of the copies of a machine in measured sweeps, each once with its mean time, one after the other."""
    wanted = (machine, direction.lower(), memory)
    chosen = [r for r in rows if (r["machine"].lower(), r["direction"].lower(), r["host_memory"]) == wanted]
    time = numbers(chosen, "mean_time_ns") * NANOSECOND
    start = np.concatenate([[0.0], np.cumsum(time)[:-1]])
    way = {"HtoD": "host_to_device", "DtoH": "device_to_host"}[direction]
    values: dict[str, Any] = {
        "operation": "copy",
        "direction": way,
        "memory": memory,
        "start_time": start,
        "time": time,
    }
    values["message_size"] = numbers(chosen, "message_size_B")
    columns = {
        name: Column(
            np.broadcast_to(
                np.array(values.get(name, "" if unit is None else 0.0), dtype=None if unit else object), len(time)
            ),
            unit,
        )
        for name, unit in OPERATION_COLUMNS.items()
    }
    return Profile(Table(columns), Table.of_rows(DEVICE_COLUMNS, []))


def anchors() -> list[dict[str, str]]:
    """Kernels of the RAJA Performance Suite on three GPUs, those of the V100 at its largest size."""
    sizes = [
        row for row in rows_of("rajaperf_sizes.csv") if (row["block_size"], row["elements"]) == ("256", f"{ANCHOR}")
    ]
    return [*sizes, *rows_of("rajaperf_kernels.csv")]


TABLES: Final[Mapping[str, Callable[..., ErrorTable]]] = {
    "schedules": schedules,
    "links": links,
    "counts": k_counts,
    "transfers": transfers,
    "hpl": hpl,
    "top500": top500,
    "hpcg": lambda: hpcg_runs(rows_of("hpcg.csv")),
    "power": lambda: machine_power(rows_of("top500_power.csv")),
    "power_caps": lambda: power_caps(rows_of("power_caps.csv")),
    "kernels": lambda: anchored_kernels(anchors()),
    "kernel_sizes": lambda: kernel_sizes(rows_of("rajaperf_sizes.csv")),
    "cpu_programs": lambda: cpu_programs(rows_of("cpu_programs.csv")),
    "programs": lambda: gpu_programs(rows_of("gpu_programs/times.csv")),
    "shared_gpus": lambda: shared_gpus(rows_of("gpu_programs/shared.csv")),
    "gemm": lambda: matrix_products(rows_of("gemm.csv")),
    "training": lambda: training_steps(rows_of("training_steps.csv")),
    "serving": lambda: serving_runs(rows_of("serving_runs.csv")),
    "first_tokens": lambda: first_tokens(rows_of("first_tokens.csv")),
    "decoding": lambda: decoding_steps(rows_of("decoding_steps.csv")),
    "collectives": lambda: library_collectives(rows_of("gpu_collectives.csv")),
    "mpi_collectives": lambda: mpi_collectives(rows_of("mpi_collectives.csv")),
}
"""Comparisons by topic; those of `LONG_TOPICS` take a function of the finished share."""
