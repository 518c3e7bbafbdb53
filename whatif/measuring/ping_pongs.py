"""Messages between ranks of MPI: measured by starting `mpi_ranks` with a launcher, and as tables."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.importers.message_tables import measurements
from whatif.importers.rows import row_table
from whatif.table import Table
from whatif.units import BYTE, SECOND

LAUNCHER: Final = "mpirun -n 2"
_RESULT: Final = '{"library"'
"""Start of the line that the first rank prints."""
RANK_COUNTS: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Environment variables in which MPI launchers pass each rank the number of ranks."""
_CALIBRATION: Final = {"test": None, "message_size": BYTE, "time": SECOND}
_PATIENCE: Final = 60.0
"""Seconds that a launcher may take beyond the time of the messages."""


@dataclass(frozen=True)
class Messages:
    """Times of messages between ranks of MPI by distance, and of collectives of all ranks."""

    library: str
    rank_count: int
    rows: Mapping[str, Sequence[tuple[int, float]]]
    """By distance: size in B and time of one way in s."""
    collectives: Sequence[tuple[str, int, float]] = ()
    """Operation, size of a buffer in B and time in s."""
    ranks_per_node: int | None = None
    """None if nodes have different numbers of ranks."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Messages:
        """Messages of the result of `mpi_ranks.measure`."""
        rows: dict[str, list[tuple[int, float]]] = {}
        for distance, size, taken in found["rows"]:
            rows.setdefault(distance, []).append((int(size), float(taken)))
        collectives = [(str(name), int(size), float(taken)) for name, size, taken in found.get("collectives", ())]
        return cls(str(found["library"]), int(found["rank_count"]), rows, collectives, found.get("ranks_per_node"))

    def calibration(self, distance: str) -> Table:
        """Single messages, as `fit kernel` takes them."""
        rows = [{"test": "pingpong", "message_size": size, "time": taken} for size, taken in self.rows[distance]]
        return row_table(rows, _CALIBRATION, {"kind": "messages"})

    def medians(self, distance: str) -> Table:
        """Median time of each size, as `fit network` takes it."""
        times: dict[int, list[float]] = {}
        for size, taken in self.rows[distance]:
            times.setdefault(size, []).append(taken)
        sizes = sorted(times)
        columns = {
            "test": "ping_pong",
            "message_size": sizes,
            "pair_count": 1.0,
            "process_count": 2.0,
            "time": [float(np.median(times[size])) for size in sizes],
            "repetition_count": [len(times[size]) for size in sizes],
        }
        return measurements(columns, {"tool": "whatif measure"})


def _no_mpi4py() -> str:
    return f"mpi4py is not installed (`{install_command('mpi')}`)"


def rank_count(environment: Mapping[str, str]) -> int:
    """Ranks that a launcher of MPI has started this program with; 1 without a launcher."""
    return max(
        (int(environment.get(name, "")) for name in RANK_COUNTS if environment.get(name, "").isdigit()), default=1
    )


def messages_of_ranks(launcher: str | None, seconds: float) -> tuple[Messages | None, str]:
    """Messages of ranks that a launcher starts, or None and the reason why they are missing.

    Where the program itself was started by a launcher, its ranks are measured, and all but the first end here.
    Raise `UsageError` if a launcher is stated, or has started the program, and cannot be used.
    """
    if (count := rank_count(os.environ)) == 1:
        return _launched(launcher, seconds)
    if launcher is not None:
        raise UsageError(f"--launcher {launcher}: the program runs in {count} ranks of MPI already")
    if importlib.util.find_spec("mpi4py") is None:
        raise UsageError(f"started in {count} ranks of MPI, but {_no_mpi4py()}; start it without the launcher")
    from whatif.measuring.mpi_ranks import measure, unbind

    found = measure(seconds)
    if found is None:
        sys.exit(0)
    unbind()
    return Messages.of(found), ""


def _launched(launcher: str | None, seconds: float) -> tuple[Messages | None, str]:
    try:
        words = shlex.split(launcher or LAUNCHER)
    except ValueError as error:
        raise UsageError(f"--launcher {launcher}: {str(error).lower()}") from None
    reason = _missing(words)
    found = None
    if not reason:
        found, reason = _run([*words, sys.executable, "-m", "whatif.measuring.mpi_ranks", f"{seconds:g}"], seconds)
    if reason and launcher is not None:
        raise UsageError(f"--launcher {launcher}: {reason}")
    return found, reason


def _missing(words: Sequence[str]) -> str:
    if importlib.util.find_spec("mpi4py") is None:
        return _no_mpi4py()
    return "" if words and shutil.which(words[0]) else f"`{words[0] if words else ''}` is not installed"


def _run(command: Sequence[str], seconds: float) -> tuple[Messages | None, str]:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=2 * seconds + _PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"{command[0]} did not end"
    # Open MPI may write an escape sequence before the first line.
    lines = [line[line.index(_RESULT) :] for line in done.stdout.splitlines() if _RESULT in line]
    if done.returncode or not lines:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip(" -\t")]
        return None, f"{command[0]} failed: {said[0] if said else f'exit code {done.returncode}'}"
    found = Messages.of(json.loads(lines[-1]))
    if not found.rows:
        return None, f"{command[0]} started {found.rank_count} rank: messages need two"
    return found, ""
