"""Tables of message measurements: one name for each quantity in all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.table import Column, Table, noted
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, PER_SECOND, SECOND, Dimension

COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "test": None,
    "message_size": BYTE,
    "pair_count": ONE,
    "process_count": ONE,
    "window_size": ONE,
    "time": SECOND,
    "minimum_time": SECOND,
    "maximum_time": SECOND,
    "p50_time": SECOND,
    "p90_time": SECOND,
    "p99_time": SECOND,
    "bandwidth": BYTE_PER_SECOND,
    "message_rate": PER_SECOND,
    "repetition_count": ONE,
    "buffers": None,
    "file": None,
}
"""Columns of a table of message measurements, in this order; every table has all of them.

`test` is `ping_pong`, `bandwidth`, `bidirectional_bandwidth`, `ping_ping`, `sendrecv`, `exchange` or the name of a
collective in lower case (`allreduce`). `time` is the one-way time of a ping-pong, the time for each message of a
windowed test (`window_size` messages in flight; 1 for all others), the duration of a collective. `pair_count` is
the number of pairs that communicate at the same time. `p90_time` is the one that 90 % of the messages do not exceed.
`bandwidth` is that of all pairs together. Missing
values are NaN, or an empty text. `buffers` is `host`, `device`, `host to device` or `device to host`.
"""


def measurements(columns: Mapping[str, Any], notes: Mapping[str, str], warnings: Sequence[str] = ()) -> Table:
    """Table of message measurements; missing columns are filled, scalars spread to the length of the others."""
    length = max((len(value) for value in columns.values() if np.ndim(value)), default=1)
    filled = {name: _column(columns.get(name), dimension, length) for name, dimension in COLUMNS.items()}
    return Table(filled, noted(notes, warnings))


def _column(values: Any, dimension: Dimension | None, length: int) -> Column:
    kind: type = object if dimension is None else float
    missing = "" if dimension is None else np.nan
    array: NDArray[Any] = np.asarray(missing if values is None else values, dtype=kind)
    return Column(np.broadcast_to(array, (length,)), dimension)
