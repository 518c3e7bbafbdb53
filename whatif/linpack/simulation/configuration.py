"""Parameters of one run of HPL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from whatif.errors import UsageError


class Broadcast(IntEnum):
    """Algorithm of the broadcast of a panel along a process row, numbered as in HPL.dat."""

    RING = 0
    RING_MODIFIED = 1
    TWO_RING = 2
    TWO_RING_MODIFIED = 3
    LONG = 4
    LONG_MODIFIED = 5


class RowSwap(IntEnum):
    """Algorithm of the row swap along a process column, numbered as in HPL.dat."""

    BINARY_EXCHANGE = 0
    SPREAD_ROLL = 1
    MIX = 2


class Looking(IntEnum):
    """Variant of the panel factorisation, numbered as in HPL.dat."""

    LEFT = 0
    CROUT = 1
    RIGHT = 2


class Mapping(IntEnum):
    """Order of the ranks on the grid of processes (PMAP)."""

    ROW = 0
    COLUMN = 1


@dataclass(frozen=True, slots=True)
class Configuration:
    """The parameters of one run, in HPL's terms; raise `UsageError` for one that HPL would refuse."""

    matrix_size: int
    """N"""
    block_size: int
    """NB"""
    process_rows: int
    """P"""
    process_columns: int
    """Q"""
    broadcast: Broadcast = Broadcast.RING_MODIFIED
    depth: int = 1
    """Panels that are factored ahead of the update."""
    swap: RowSwap = RowSwap.MIX
    swap_threshold: int = 64
    """Columns up to which `RowSwap.MIX` exchanges, above it spreads and rolls."""
    panel_factorisation: Looking = Looking.RIGHT
    """PFACT: of the innermost columns."""
    recursion_minimum: int = 4
    """NBMIN: columns at which the recursion stops."""
    recursion_divisions: int = 2
    """NDIV: parts that a panel is divided into."""
    recursive_factorisation: Looking = Looking.CROUT
    """RFACT: of the levels above."""
    mapping: Mapping = Mapping.ROW

    def __post_init__(self) -> None:
        least = {
            "matrix_size": 1, "block_size": 1, "process_rows": 1, "process_columns": 1, "depth": 0,
            "swap_threshold": 0, "recursion_minimum": 1, "recursion_divisions": 2,
        }  # fmt: skip
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise UsageError(f"{name} is {getattr(self, name)}; HPL needs at least {minimum}")

    @property
    def rank_count(self) -> int:
        """P Q"""
        return self.process_rows * self.process_columns

    @property
    def step_count(self) -> int:
        """Panels, N / NB rounded up."""
        return -(-self.matrix_size // self.block_size)

    @property
    def operations(self) -> float:
        """Floating-point operations that HPL counts for its Gflops: 2/3 N^3 + 3/2 N^2."""
        return self.matrix_size**2 * (2 / 3 * self.matrix_size + 3 / 2)
