"""What profiles of GPU programs say, whichever tool wrote them: operations on a time line, and the devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, ONE, PER_SECOND, SECOND, Dimension

OPERATION_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "operation": None,
    "name": None,
    "direction": None,
    "memory": None,
    "is_symbol": ONE,
    "is_asynchronous": ONE,
    "message_size": BYTE,
    "start_time": SECOND,
    "time": SECOND,
    "stream": ONE,
    "device": ONE,
}
"""Columns of the operations of a profile, in the order in which they started.

`operation` is `kernel`, `copy` or `fill`; `name` that of a kernel. Of copies, `direction` and `memory` are as in
`whatif.importers.nvprof.COPY_COLUMNS`; of fills, `memory` is what is filled; both are empty for kernels. `is_symbol` is
1 where a copy or fill touches a variable of the program on the device (static device memory). `is_asynchronous` is NaN
where the tool does not say. `message_size` is NaN for kernels; `start_time` counts from the first operation."""
DEVICE_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "device": ONE,
    "name": None,
    "dram_bandwidth": BYTE_PER_SECOND,
    "peak_single_rate": FLOP_PER_SECOND,
    "peak_double_rate": FLOP_PER_SECOND,
    "processor_count": ONE,
    "clock_rate": PER_SECOND,
    "memory_size": BYTE,
    "l2_size": BYTE,
}
"""Columns of the devices of a profile; what the tool does not say is NaN. The peaks follow from multiprocessors, clock
and compute capability (a fused multiply-add counts two)."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A profile: its operations with `OPERATION_COLUMNS` and the notes, its devices with `DEVICE_COLUMNS`."""

    operations: Table
    devices: Table
