"""Table of a phase of matrix products."""

from __future__ import annotations

from typing import Literal

from whatif.schema.fields import Count, CountOrZero, PositiveFraction, Seconds, StrictTable
from whatif.vocabulary import Precision


class GemmPhase(StrictTable):
    """Products of matrices C = A B on a GPU, by its peak of the precision."""

    kind: Literal["gemm"]
    """A product of matrices."""
    m: Count
    """Rows of A and C."""
    n: Count
    """Columns of B and C."""
    k: Count
    """Columns of A and rows of B."""
    batch_count: Count = 1.0
    """Products of one launch."""
    precision: Precision
    """Precision of A and B; C has it too, but at least 2 B an element (4 B for int8)."""
    efficiency: PositiveFraction | None = None
    """Measured share of the peak that this product reaches; by default from the device's `matrix_efficiency`, its tiles
    and its multiprocessors."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    launch_time: Seconds = 5e-6
    """Time of each launch in addition to computing: 5 us, the middle of the 3 to 10 us of measured launches."""
