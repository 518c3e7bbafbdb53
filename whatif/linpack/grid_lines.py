"""Work of the processes in one row or column of the grid during the first panels of a run."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.linpack.simulation.layout import SEEN_FACTOR_END
from whatif.linpack.simulation.simulator import HPLOutcome
from whatif.models.quantities import FloatArray

WORK: Final = ("factorisation", "broadcast", "waiting", "update")
"""Kinds of work of a process; all time but that of the first three is that of updates."""


class GridLine(NamedTuple):
    """A process row, or a process column."""

    kind: Literal["row", "column"]
    number: int

    @classmethod
    def of(cls, text: str, rows: int, columns: int) -> GridLine:
        """Line of a text such as `column 3`, or the nearest one on a smaller grid; the first row for other texts."""
        kind, _, number = text.partition(" ")
        place = int(number) if number.isdecimal() and len(number) < 10 else 0
        return cls("column", min(place, columns - 1)) if kind == "column" else cls("row", min(place, rows - 1))

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    def of_grid(self, values: NDArray[Any], first: int = 0) -> NDArray[Any]:
        """Values of the processes of the line; axes `first` and `first` + 1 of `values` are those of the grid."""
        found: NDArray[Any] = np.take(values, self.number, axis=first + (self.kind == "column"))
        return found


class LineSpans(NamedTuple):
    """Intervals of work on a line, and the end of the update with the last of the panels."""

    lane: NDArray[np.int32]
    """[interval]: the process of the line."""
    kind: NDArray[np.uint8]
    """[interval]: place in `WORK`."""
    start: FloatArray
    end: FloatArray
    last: FloatArray
    """[process]: end of the last recorded work."""
    duration: float


def line_spans(outcome: HPLOutcome, line: GridLine, panel_count: int) -> LineSpans:
    """Factorisations, broadcasts and waits on a line, and the end of the updates with its first panels, in s.

    A process without a panel waits until that is factored; from then on it is broadcast.
    """
    seen, count = outcome.seen, len(outcome.seen)
    owner = np.arange(count) % outcome.configuration.process_columns
    factored = seen[np.arange(count), :, owner, SEEN_FACTOR_END]
    ready = line.of_grid(np.broadcast_to(factored[:, :, None], seen.shape[:3]), 1)
    mine = line.of_grid(seen, 1)
    starts, factored, begun, ended, _ = np.moveaxis(mine, -1, 0)
    spans = [(starts, factored), (np.maximum(begun, ready), ended), (begun, np.minimum(ended, ready))]
    known = np.nan_to_num(mine, nan=0.0)
    start, end = (np.stack(times).ravel() for times in zip(*spans, strict=True))
    kind, _, lane = np.indices((len(spans), *starts.shape)).reshape(3, -1)
    lasting = end > start
    return LineSpans(
        lane[lasting].astype(np.int32), kind[lasting].astype(np.uint8), start[lasting], end[lasting],
        known.max(axis=(0, 2), initial=0.0), float(known[:panel_count].max(initial=0.0)),
    )  # fmt: skip
