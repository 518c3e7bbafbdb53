"""Tables of measured collectives: gaps between the messages of a library of GPUs, and times by size."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from whatif.schema.fields import Bytes, BytesPerSecond, Measured, PositiveFactor, Seconds, StrictTable
from whatif.units import BYTE, SECOND
from whatif.vocabulary import CollectiveOperation, Library

Key = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
_Whole = Annotated[int, Field(ge=1, le=2**53)]
MOST_SIZES = 10_000


class StepParameters(StrictTable):
    """Messages of one protocol that a rank sends in turn."""

    start: Seconds
    """Time of the operation besides its messages."""
    gap: Seconds
    """Least time between two messages of a rank."""


class Steps(StrictTable):
    """Collectives by one algorithm: a ring, pairs, or switches that reduce."""

    short_limit: Bytes
    """Largest message of the short protocol; a message of a ring is the buffer divided by its ranks."""
    eager_limit: Bytes
    """Largest message of the eager protocol; longer ones use rendezvous."""
    short: StepParameters
    eager: StepParameters
    rendezvous: StepParameters
    bandwidth_share: PositiveFactor
    """Bandwidth that long messages reach, as a share of that of the links or the ports, whichever are slower."""


class Tree(StrictTable):
    """Allreduce of short buffers along trees; long ones take the gaps of `ring`."""

    start: Seconds
    """Time of the operation besides its messages."""
    gap: Seconds
    """Time from one vertex to the next, of an empty message."""
    bandwidth: BytesPerSecond
    """Bandwidth from one vertex to the next."""


class LibraryParameters(StrictTable):
    """Algorithms of a library of GPUs at one scale; one that is not stated follows from data sheets."""

    ring: Steps | None = None
    pairwise: Steps | None = None
    switch: Steps | None = None
    """Allreduce by the switches of a link domain."""
    tree: Tree | None = None


class MeasuredTimes(StrictTable):
    """Times of one operation by size, on one number of ranks."""

    operation: CollectiveOperation
    """Operation."""
    library: Library
    """mpi, or nccl for a library of GPUs."""
    rank_count: _Whole
    """Ranks that took part."""
    ranks_per_node: _Whole | None = None
    """Ranks of a node, if known; ranks placed in another way are refused."""
    sizes: list[Measured] = Field(min_length=1, max_length=MOST_SIZES)
    """Sizes of the buffer, ascending."""
    times: list[Measured] = Field(min_length=1, max_length=MOST_SIZES)
    """Time at each size."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        sizes, times = ([item.value for item in items] for items in (self.sizes, self.times))
        if len(sizes) != len(times):
            raise _error(f"`sizes` has {len(sizes)} entries, `times` {len(times)}")
        if any(item.dimension != BYTE for item in self.sizes) or any(item.dimension != SECOND for item in self.times):
            raise _error("`sizes` must be sizes such as `8 B`, `times` such as `12 us`")
        if sizes[0] < 0 or any(low >= high for low, high in pairwise(sizes)) or min(times) <= 0:
            raise _error("`sizes` must ascend, and `times` must be greater than 0")
        return self


class Collectives(StrictTable):
    """Measured collectives."""

    in_domain: LibraryParameters | None = None
    """Messages of a library of GPUs in a link domain."""
    between_domains: LibraryParameters | None = None
    """Messages of a library of GPUs over several link domains."""
    measured: dict[Key, MeasuredTimes] = {}
    """Tables of times, by name, for `algorithm = "measured"`."""


def _error(message: str) -> PydanticCustomError:
    return PydanticCustomError("collectives", "{message}", {"message": message})
