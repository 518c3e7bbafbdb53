"""Measurement of the machine that the program runs on."""

from __future__ import annotations

from pathlib import Path

from whatif.files.measured_platform import MeasuredPlatform, check_target
from whatif.measuring.loops import OVER_CACHE, OVER_CACHE_QUICK
from whatif.measuring.whole_machine import FULL, QUICK, Instruments, MeasurementOptions, Progress, measure_machine


def measure(
    output: str | Path | None = None,
    *,
    quick: bool = False,
    blas: str | Path | None = None,
    launcher: str | None = None,
    progress: Progress = lambda text: None,
) -> MeasuredPlatform:
    """Platform of the machine that the program runs on, measured in about two minutes, or in 20 s if `quick`.

    `output` is the platform file to write; it is checked before anything is measured. `blas` is a shared library of
    BLAS (default: that of scipy), `launcher` the command that starts ranks of MPI (default: `mpirun -n 2`, if mpi4py
    is installed). In ranks of MPI that a launcher has started, their messages and collectives are measured, and all but
    the first end with exit code 0. GPUs are measured by torch or cupy, if one is installed. `progress` receives
    a line on what is measured. Raise `UsageError` if nothing can be measured, and for a file that `whatif measure`
    did not write.

    >>> import whatif
    >>> whatif.measure("mine.txt")
    Traceback (most recent call last):
    whatif.errors.UsageError: mine.txt: platforms are found by their name: call the file NAME.toml
    """
    if output is not None:
        check_target(Path(output))
    seconds, over_cache = (QUICK, OVER_CACHE_QUICK) if quick else (FULL, OVER_CACHE)
    options = MeasurementOptions(seconds, None if blas is None else str(blas), launcher, over_cache)
    found = MeasuredPlatform(measure_machine(options, Instruments(), progress))
    progress("fits")
    if output is not None:
        found.write(output)
    return found
