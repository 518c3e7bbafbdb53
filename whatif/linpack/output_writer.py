"""Runs of HPL as HPL prints them: `T/V N NB P Q Time Gflops`, in its columns and widths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from whatif.linpack.output_reader import variant_code
from whatif.linpack.simulation.configuration import Configuration

HEADING: Final = "T/V                N    NB     P     Q               Time                 Gflops"
WIDTH: Final = 80
"""Columns of HPL's rules and of its heading."""
_INTERVAL_WIDTH: Final = 27


@dataclass(frozen=True, slots=True)
class HPLRow:
    """Predicted run: its time in seconds and, with noise, the interval of the time."""

    configuration: Configuration
    time: float
    interval: tuple[float, float] | None = None

    @property
    def rate(self) -> float:
        """flop/s, by HPL's own count of operations; NaN where the time is 0."""
        return self.configuration.operations / self.time if self.time else math.nan


def hpl_table(rows: Iterable[HPLRow], interval: str = "") -> Iterator[str]:
    """Lines, without their ends, of the table that HPL prints; each row as soon as it is known.

    `interval` is the heading of one more column with the interval of each time, such as `95 % of times`; without it
    the lines are HPL's to the letter (version 2.3: time with two decimals, Gflops with five digits).
    """
    width = WIDTH + (_INTERVAL_WIDTH if interval else 0)
    yield "=" * width
    yield HEADING + (f"{interval[: _INTERVAL_WIDTH - 2]:>{_INTERVAL_WIDTH}}" if interval else "")
    yield "-" * width
    for row in rows:
        yield _line(row) + (_interval(row) if interval else "")
    yield "=" * width


def _line(row: HPLRow) -> str:
    run = row.configuration
    sizes = f"{run.matrix_size:12d} {run.block_size:5d} {run.process_rows:5d} {run.process_columns:5d}"
    return f"{variant_code(run)}{sizes} {row.time:18.2f}    {row.rate / 1e9:19.4e}"


def _interval(row: HPLRow) -> str:
    shown = "-" if row.interval is None else "{:.2f} .. {:.2f}".format(*row.interval)
    return f"{shown:>{_INTERVAL_WIDTH}}"
