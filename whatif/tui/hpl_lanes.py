"""What processes of HPL do during its first panels, as lanes that can be drawn."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.linpack.simulation.simulator import HPLOutcome
from whatif.models.quantities import FloatArray, IntArray
from whatif.studies.rank_lanes import PARTS, Lanes, MessageLines, Window, main_groups

WORK: Final = ("factorisation", "broadcast", "waiting", "update")
"""What a process may be doing; `Lanes.group` is 1 + a place here."""


class GridLine(NamedTuple):
    """A process row, or a process column."""

    kind: Literal["row", "column"]
    number: int

    @classmethod
    def of(cls, text: str, rows: int, columns: int) -> GridLine:
        """The line that a view asks for, or the last one before it on a smaller grid; else the first row."""
        kind, _, number = text.partition(" ")
        place = int(number) if number.isdecimal() and len(number) < 10 else 0
        return cls("column", min(place, columns - 1)) if kind == "column" else cls("row", min(place, rows - 1))

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    def of_grid(self, values: NDArray[Any], first: int = 0) -> NDArray[Any]:
        """The processes of the line, of values whose axes `first` and the next one are those of the grid."""
        found: NDArray[Any] = np.take(values, self.number, axis=first + (self.kind == "column"))
        return found


def panel_lanes(outcome: HPLOutcome, nodes: IntArray, line: GridLine, panel_count: int) -> Lanes:
    """The processes of a line from the begin of the run to the end of the updates with its first panels.

    A process without a panel waits until that is factored; from then on it is broadcast. All other time is that of
    updates, with their row swaps and what these wait for.
    """
    seen, count = outcome.seen, len(outcome.seen)
    owner = np.arange(count) % outcome.configuration.process_columns
    ready = line.of_grid(np.broadcast_to(seen[np.arange(count), :, owner, 1][:, :, None], seen.shape[:3]), 1)
    mine = line.of_grid(seen, 1)
    starts, factored, begun, ended, _ = np.moveaxis(mine, -1, 0)
    spans = [(starts, factored), (np.maximum(begun, ready), ended), (begun, np.minimum(ended, ready))]
    known = np.nan_to_num(mine, nan=0.0)
    window = 0.0, float(known[:panel_count].max(initial=0.0))
    group = _groups(spans, window, known.max(axis=(0, 2), initial=0.0))
    nobody = np.empty(0, dtype=np.int32)
    messages = MessageLines(nobody, nobody, np.empty(0), np.empty(0), np.empty(0))
    return Lanes(window, 0, line.of_grid(nodes).astype(np.int32), group, np.full(PARTS, -1, np.int32), messages, 0)


def _groups(spans: list[tuple[FloatArray, FloatArray]], window: Window, last: FloatArray) -> NDArray[np.uint8]:
    """[lane, part], from when each of the first three kinds of work began and ended, [panel, lane], and when the last
    that is known of each lane ended."""
    start, end = (np.stack(times).ravel() for times in zip(*spans, strict=True))
    kind, _, lane = np.indices((len(spans), *spans[0][0].shape)).reshape(3, -1)
    there = end > start
    group = main_groups(
        lane[there].astype(np.int32), kind[there].astype(np.uint8), start[there], end[there], window, len(last)
    )
    middle = window[0] + (np.arange(PARTS) + 0.5) / PARTS * (window[1] - window[0])
    group[(group == 0) & (middle < last[:, None])] = len(WORK)
    return group
