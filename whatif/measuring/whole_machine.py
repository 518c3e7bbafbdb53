"""All measurements of the machine that the program runs on, within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from whatif.measuring.blas_calls import time_kernels
from whatif.measuring.gpu_arrays import Arrays, gpu_arrays, gpu_tasks
from whatif.measuring.hardware import Machine, read_machine
from whatif.measuring.loops import (
    OVER_CACHE,
    operation_rates,
    reuse_in_cache,
    reuse_in_memory,
    triads_by_cores,
    triads_by_level,
    warm_up,
)
from whatif.measuring.ping_pongs import Messages, messages_of_ranks
from whatif.measuring.repetition import Clock, Sample, Task, repeat
from whatif.measuring.routines import Blas, blas_name
from whatif.measuring.team import Team, Timer
from whatif.table import Table

FULL: Final = 130.0
"""Seconds of measurements; with start and fits less than three minutes."""
QUICK: Final = 10.0
# Of the time; GPUs take more than that, if there are any.
_SHARES: Final[Mapping[str, float]] = {
    "memory": 0.25,
    "caches": 0.05,
    "operations": 0.1,
    "kernels of HPL": 0.45,
    "messages": 0.15,
    "GPUs": 0.1,
}
Progress = Callable[[str], None]


def _team(machine: Machine, library: str | None) -> AbstractContextManager[Timer]:
    return Team([core.processor for core in machine.spread], library)


@dataclass(frozen=True)
class Instruments:
    """Tools of the measurements; tests replace them."""

    machine: Callable[[], Machine] = read_machine
    team: Callable[[Machine, str | None], AbstractContextManager[Timer]] = _team
    messages: Callable[[str | None, float], tuple[Messages | None, str]] = messages_of_ranks
    arrays: Callable[[], Arrays | None] = gpu_arrays
    clock: Clock = time.monotonic
    today: Callable[[], date] = date.today


@dataclass(frozen=True)
class MeasurementOptions:
    """Measurements to make."""

    seconds: float = FULL
    library: str | None = None
    """Shared library of BLAS; None: that of scipy."""
    launcher: str | None = None
    """Command that starts ranks of MPI."""
    over_cache: float = OVER_CACHE
    """Size of each array in memory over that of the last-level caches."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measurements of a machine."""

    machine: Machine
    date: date
    blas: str
    memory: tuple[Sample, ...]
    """Bandwidth in B/s by number of active cores."""
    core_counts: tuple[int, ...]
    caches: tuple[Sample, ...]
    """Bandwidth in B/s of each level with all cores busy."""
    reuse: Mapping[str, Sample]
    """Loads and stores in B/s of convolutions, by the name of a task."""
    operations: Mapping[str, Sample]
    """Operations per second of all cores, by the name of a task."""
    kernels: Table
    """Calls of HPL's kernels."""
    messages: Messages | None
    gpu_rates: Mapping[str, Sample] = field(default_factory=dict)
    """Rates of a GPU in B/s and flop/s, by the name of a task."""
    no_messages: str = ""
    """Reason why there are no messages."""
    warnings: tuple[str, ...] = field(default=())


def measure_machine(
    options: MeasurementOptions, instruments: Instruments, progress: Progress = lambda text: None
) -> Measurements:
    """Measure everything. Raise `UsageError` if the machine does not describe its cores, or no worker runs."""
    if options.library is not None:
        Blas(options.library)
    name, seconds = blas_name(options.library), {part: share * options.seconds for part, share in _SHARES.items()}
    progress("messages between ranks")
    messages, reason = instruments.messages(options.launcher, seconds["messages"])
    machine = instruments.machine()
    with instruments.team(machine, options.library) as timer:

        def samples(part: str, tasks: list[Task]) -> tuple[Sample, ...]:
            return tuple(repeat(tasks, seconds[part], instruments.clock, _meter(progress, part)))

        progress("start")
        warm_up(timer, machine)
        memory = list(triads_by_cores(timer, machine, options.over_cache))
        reusing = reuse_in_memory(timer, machine, options.over_cache)
        *by_cores, reuse = samples("memory", [*(task for _, task in memory), reusing])
        levels = list(triads_by_level(timer, machine))
        caches = samples("caches", [*levels, *reuse_in_cache(timer, machine)])
        rates = samples("operations", list(operation_rates(timer, machine)))
        part = "kernels of HPL"
        kernels = time_kernels(timer, machine, seconds[part], instruments.clock, _meter(progress, part))
    progress("GPUs")
    rates_of_gpu, no_rates = _gpu_rates(machine, instruments, seconds["GPUs"], _meter(progress, "GPUs"))
    return Measurements(
        machine,
        instruments.today(),
        name,
        tuple(by_cores),
        tuple(count for count, _ in memory),
        caches[: len(levels)],
        {sample.name: sample for sample in (reuse, *caches[len(levels) :])},
        {sample.name: sample for sample in rates},
        kernels,
        messages,
        rates_of_gpu,
        reason,
        (*machine.warnings, *no_rates),
    )


def _gpu_rates(
    machine: Machine, instruments: Instruments, seconds: float, meter: Callable[[float], None]
) -> tuple[dict[str, Sample], tuple[str, ...]]:
    """Rates of a GPU; none without a GPU or a library of arrays, or, with a warning, where the library fails."""
    if machine.gpus is None or (arrays := instruments.arrays()) is None:
        return {}, ()
    try:
        tasks = list(gpu_tasks(arrays, instruments.clock))
        for task in tasks:  # The first calls load kernels.
            task.run()
        return {sample.name: sample for sample in repeat(tasks, seconds, instruments.clock, meter)}, ()
    except (RuntimeError, MemoryError) as error:
        return {}, (f"GPUs were not measured: {str(error).partition(chr(10))[0] or type(error).__name__}",)


def _meter(progress: Progress, part: str) -> Callable[[float], None]:
    return lambda share: progress(f"{part}: {share:.0%}")
