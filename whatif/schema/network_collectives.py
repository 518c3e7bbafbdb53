"""Tables of measured collectives: gaps between the messages of a library of GPUs, and times by size."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from whatif.schema.fields import Bytes, BytesPerSecond, Key, PositiveFactor, Seconds, StrictTable, invalid
from whatif.units import BYTE, SECOND, Dimension, UnitError, parse_quantity
from whatif.vocabulary import CollectiveOperation, Library

_Whole = Annotated[int, Field(ge=1, le=2**53)]
MOST_SIZES: Final = 10_000


def _number(text: str, dimension: Dimension, example: str) -> float:
    """Number of a text in base units. Raise an error for another unit."""
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise invalid(str(error)) from None
    if quantity.dimension != dimension:
        raise invalid(f"`{text}` is not allowed; state it as `{example}`")
    return quantity.value


def _size(text: str) -> str:
    _number(text, BYTE, "64 KiB")
    return text


def _time(text: str) -> str:
    _number(text, SECOND, "12 us")
    return text


_Texts = Field(min_length=1, max_length=MOST_SIZES)


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
    sizes: Annotated[list[Annotated[str, AfterValidator(_size)]], _Texts]
    """Sizes of the buffer, ascending."""
    times: Annotated[list[Annotated[str, AfterValidator(_time)]], _Texts]
    """Time at each size."""

    def numbers(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Sizes in B and times in s."""
        sizes, times = (tuple(parse_quantity(text).value for text in texts) for texts in (self.sizes, self.times))
        return sizes, times

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.sizes) != len(self.times):
            raise invalid(f"`sizes` has {len(self.sizes)} entries, `times` {len(self.times)}")
        sizes, times = self.numbers()
        if sizes[0] < 0 or any(low >= high for low, high in pairwise(sizes)) or min(times) <= 0:
            raise invalid("`sizes` must ascend, and `times` must be greater than 0")
        return self


class Collectives(StrictTable):
    """Measured collectives."""

    in_domain: LibraryParameters | None = None
    """Messages of a library of GPUs in a link domain."""
    between_domains: LibraryParameters | None = None
    """Messages of a library of GPUs over several link domains."""
    measured: dict[Key, MeasuredTimes] = {}
    """Tables of times, by name, for `algorithm = "measured"`."""
