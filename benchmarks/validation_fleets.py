"""`python -m benchmarks.validation_fleets`: effects of fleets on HPL, beside the emulator's, as in docs/validation.md.

256 nodes with one rank each, drawn three times: about two minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import whatif
from whatif.linpack.input_writer import hpl_input_text
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.schema.shipped import shipped_folder
from whatif.validation.tables import rows_of

SIZES = (100_000, 300_000, 500_000)
_DRAWS = range(3)
Effects = dict[str, list[tuple[float, float]]]
"""By change: ours and the emulator's relative change of the time, for each N."""


def fleet_effects(sizes: Sequence[int] = SIZES) -> Effects:
    """Effects of the changes of `hpl_fleet.csv` on the time of matrices of some sizes."""
    found: Effects = {}
    base: dict[str, tuple[float, float]] = {}
    for row in rows_of("hpl_fleet.csv"):
        if int(row["matrix_size"]) not in sizes:
            continue
        times = _time(row), float(row["time_s"])
        if row["change"] == "none":
            base[row["matrix_size"]] = times
        else:
            ours, emulated = (time / before - 1 for time, before in zip(times, base[row["matrix_size"]], strict=True))
            found.setdefault(row["change"], []).append((ours, emulated))
    return found


def _time(row: dict[str, str]) -> float:
    """Mean time over drawn clusters."""
    size, p, q = (int(row[name]) for name in ("matrix_size", "process_rows", "process_columns"))
    run = Configuration(size, 512, p, q, Broadcast.TWO_RING, 1, RowSwap.BINARY_EXCHANGE, 60, Looking.CROUT, 2, 2,
                        Looking.RIGHT)  # fmt: skip
    with TemporaryDirectory() as folder:
        file = Path(folder) / "HPL.dat"
        file.write_text(hpl_input_text(run), encoding="utf-8")
        drawn = (
            whatif.hpl(
                file, platform=shipped_folder("validation") / "hpl_fleet.toml", ranks_per_node=1, cluster=256,
                cluster_seed=seed, spread=row["spread"], noise=bool(row["spread"]),
                without_uplinks=int(row["without_uplinks"]), replicates=1,
            )
            for seed in _DRAWS
        )  # fmt: skip
        return float(np.mean([item.row.time for result in drawn for item in result]))


def fleet_table(effects: Effects) -> Iterator[str]:
    """Table with a row for each change, and ours with the emulator's in brackets for each N."""
    for change, pairs in effects.items():
        yield f"| {change} | {' | '.join(f'{ours:+.1%} ({emulated:+.1%})' for ours, emulated in pairs)} |"


if __name__ == "__main__":
    print("\n".join(fleet_table(fleet_effects())))
