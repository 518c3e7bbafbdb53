"""Comparison of HPL on Dahu with real runs over geometries and settings, and with the emulator's predictions of them.

Measured by the authors of the emulator in January and June 2020, N = 250,000 (Ezibenroc/thesis, `hpl_geometry.csv` and
`hpl_factorial.csv`, one run of each). The platform is `dahu_2020`, with noise, seed 0. No number was chosen or changed
by a look at these times; they were known when the means of the crowds were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.validation.hpl_runs import Play, Rows, RunComparison, dahu_machine, summaries, times

_SIZE = 250_000
_MODEL = "2020_het"


def geometry_runs(rows: Rows) -> list[RunComparison]:
    """Comparisons over P x Q = 960 on 30 nodes, two-ring broadcast, DEPTH 1, binary exchange, NB 128."""
    grids = [(int(row["process_rows"]), int(row["process_columns"])) for row in rows]
    runs = [_configuration(128, *grid, Broadcast.TWO_RING, 1, RowSwap.BINARY_EXCHANGE) for grid in grids]
    return _compared("Dahu, geometry", rows, [f"{p} x {q}" for p, q in grids], runs)


def settings_runs(rows: Rows) -> list[RunComparison]:
    """Comparisons over broadcast, NB, DEPTH and swap on 32 x 32 processes of 32 nodes."""
    runs = [
        _configuration(
            int(row["block_size"]),
            32,
            32,
            Broadcast(int(row["broadcast"])),
            int(row["depth"]),
            RowSwap(int(row["swap"])),
        )
        for row in rows
    ]
    names = [f"NB {run.block_size} depth {run.depth} {run.broadcast.name} {run.swap.name}".lower() for run in runs]
    return _compared("Dahu, settings", rows, [name.replace("_", " ") for name in names], runs)


def _configuration(nb: int, p: int, q: int, broadcast: Broadcast, depth: int, swap: RowSwap) -> Configuration:
    return Configuration(_SIZE, nb, p, q, broadcast, depth, swap, 64, Looking.CROUT, 2, 2, Looking.RIGHT)


def _compared(reference: str, rows: Rows, names: Sequence[str], runs: Sequence[Configuration]) -> list[RunComparison]:
    ours = times([Play(run, dahu_machine(_MODEL, run.rank_count), noisy=True) for run in runs])
    measured = [float(row["time_s"]) for row in rows]
    emulated = [float(row["emulator_time_s"]) for row in rows]
    found = [
        RunComparison(reference, name, real, time, time / real - 1, theirs / real - 1)
        for name, real, time, theirs in zip(names, measured, ours, emulated, strict=True)
    ]
    return [*found, *summaries(found)]
