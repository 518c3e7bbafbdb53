"""High Performance Linpack as an application: its parameters are those of HPL.dat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from whatif.schema.application import Application, Overlap, Phase
from whatif.schema.expressions import parse_expression
from whatif.schema.fields import Count, CountOrZero, Domain, Fraction, Key, QuantityField, Value
from whatif.units import ONE

Broadcast = Literal["ring", "ring_modified", "two_ring", "two_ring_modified", "long", "long_modified"]
Looking = Literal["left", "crout", "right"]
_RANKS: Final = parse_expression("application.process_rows * application.process_columns")


class HPLApplication(Application):
    """High Performance Linpack: solves a dense system of equations on P x Q processes."""

    costly_points: ClassVar[bool] = True
    refused_studies: ClassVar[Mapping[str, str]] = {
        "layout": "the grid of HPL is P x Q: search it with `whatif tune hpl`",
        "scaling": "HPL is simulated run by run: sweep P x Q with `whatif run`, or use `whatif tune hpl`",
    }

    kind: Literal["hpl"]
    """High Performance Linpack."""
    name: str = "HPL"
    """The program, as people call it."""
    matrix_size: Count
    """N: order of the matrix."""
    block_size: Count
    """NB: columns of a panel, and rows and columns of a block."""
    process_rows: Count
    """P: rows of the grid of processes."""
    process_columns: Count
    """Q: columns of the grid of processes."""
    broadcast: Broadcast = "ring_modified"
    """BCAST: algorithm of the broadcast of a panel along a process row."""
    look_ahead_depth: CountOrZero = 1.0
    """DEPTH: panels that are factored ahead of the update."""
    swap: Literal["binary_exchange", "spread_roll", "mix"] = "mix"
    """SWAP: how rows are swapped along a process column; mix: spread_roll above `swap_threshold` columns."""
    swap_threshold: CountOrZero = 64.0
    """Columns up to which `mix` is a binary exchange."""
    panel_factorisation: Looking = "right"
    """PFACT: variant for the innermost columns of a panel."""
    recursion_minimum: Count = 4.0
    """NBMIN: columns at which the recursion of the panel's factorisation ends."""
    recursion_divisions: Annotated[Value, QuantityField(ONE, Domain(minimum=2, whole=True))] = 2.0
    """NDIV: parts into which the recursion divides a panel."""
    recursive_factorisation: Looking = "crout"
    """RFACT: variant for the levels above."""
    process_mapping: Literal["row", "column"] = "row"
    """PMAP: whether ranks are numbered along the rows of the grid or along its columns."""
    binding: Literal["by_core", "by_socket"] = "by_core"
    """Whether the consecutive ranks of a node fill one socket after the other, or take the sockets in turn."""
    panel_on: Literal["device", "host"] = "device"
    """device: panels are factored on the GPUs while they update; host: on the cores of their node (rocHPL)."""
    split_fraction: Fraction = 0.3
    """On GPUs: share of a process's columns whose rows are swapped a step ahead (rocHPL's -f)."""
    matrix_on: Literal["device", "host"] = "device"
    """Memory that must hold the matrix on a machine with GPUs: theirs, or that of the hosts. Copies of a matrix on the
    hosts are taken to hide behind the updates."""
    steps: Literal["auto", "all", "sampled"] = "auto"
    """Whether all steps are simulated, or windows of them; auto: windows from 3e7 steps times processes on, where
    processors are identical, without noise, and on GPUs or without look-ahead."""
    noise: Literal["none", "kernels", "network", "both"] = "none"
    """kernels: every call deviates as `platform.kernels` states; network: every message takes the time of one of the
    modes of its piece; drawn from `seed`."""
    seed: CountOrZero = 0.0
    """Random seed of the pivots and of the noise."""
    rank_count: Count = _RANKS
    """Processes: P Q."""
    iteration_count: Count = 1.0
    """Runs."""
    phases: dict[Key, Phase] = Field(default={}, max_length=0)
    """Must be empty: HPL is one phase."""
    overlaps: dict[Key, Overlap] = Field(default={}, max_length=0)
    """Must be empty: the look-ahead is simulated."""
