"""Operations of ranks in the order an importer reads them, in growing columns, and the trace made of them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import abridged
from whatif.importers.text import refuse
from whatif.simulation.rank_programs import ANY, COLLECTIVES, Kind, RankProgram, Trace
from whatif.table import noted

MOST_OPERATIONS: Final = 200_000_000
"""Operations of a trace that are read."""
MOST_RANKS: Final = 4_000_000
"""Ranks of a trace that are read."""
LARGEST_SIZE: Final = 2.0**60
"""B of a message, or of the buffer of a collective."""
LARGEST_TAG: Final = 2**31 - 1
"""The largest tag of a message."""

MESSAGES: Final = (Kind.SEND, Kind.RECEIVE, Kind.ISEND, Kind.IRECEIVE)
"""Kinds that have a peer and a tag."""


class Operations:
    """The operations of one rank in columns that grow; see `whatif.simulation.rank_programs.Program`.

    The tag of a collective is set at the end, from its communicator.
    """

    def __init__(self) -> None:
        self.kind = array("B")
        self.peer = array("i")
        self.size = array("d")
        self.tag = array("i")
        self.communicator = array("i")
        self.wait_end = array("q")
        self.waits = array("i")

    def __len__(self) -> int:
        return len(self.kind)

    def add(self, kind: Kind, peer: int = 0, size: float = 0.0, tag: int = 0, communicator: int = 0) -> int:
        """Add an operation and return its index."""
        self.kind.append(kind)
        self.peer.append(peer)
        self.size.append(size)
        self.tag.append(tag)
        self.communicator.append(communicator)
        self.wait_end.append(len(self.waits))
        return len(self.kind) - 1

    def compute(self, time: float) -> None:
        """Add a computation, which joins one that it follows."""
        if self.kind and self.kind[-1] == Kind.COMPUTE:
            self.size[-1] += time
        elif time > 0:
            self.add(Kind.COMPUTE, size=time)

    def wait(self, operations: Iterable[int]) -> None:
        """Add a wait for operations given by their index, if there are any."""
        here = len(self.kind)
        distances = [here - index for index in operations]
        if distances:
            self.waits.extend(distances)
            self.add(Kind.WAIT)

    def cancel(self, index: int) -> None:
        """Replace an operation by one that does nothing."""
        self.kind[index], self.peer[index], self.size[index], self.tag[index] = Kind.COMPUTE, 0, 0.0, 0

    def is_kind(self, kinds: Iterable[Kind]) -> NDArray[np.bool_]:
        """Mask of the operations of some kinds."""
        wanted = np.zeros(256, dtype=bool)
        wanted[[int(kind) for kind in kinds]] = True
        result: NDArray[np.bool_] = wanted[np.asarray(self.kind)]
        return result

    def program(self, tag: NDArray[np.int32]) -> RankProgram:
        """The columns as a program with other tags; the operations must not grow afterwards."""
        return RankProgram(
            kind=np.asarray(self.kind),
            peer=np.asarray(self.peer),
            size=np.asarray(self.size),
            tag=tag,
            wait_start=np.concatenate([[0], np.asarray(self.wait_end)], dtype=np.int64),
            waits=np.asarray(self.waits),
        )


def rows(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a piece of a file, and whether each has an end."""
    *whole, rest = text.split("\n")
    for row in whole:
        yield row, True
    if rest:
        yield rest, False


def valid_size(file: str, line: int, what: str, size: float) -> float:
    """A size in B; raise `InvalidFileError` if it is negative, no number, or beyond `LARGEST_SIZE`."""
    if not 0 <= size <= LARGEST_SIZE:
        problem = "is negative" if size < 0 else "is not a number" if math.isnan(size) else "is larger than 2^60 B"
        raise refuse(file, f"{what}: a size of {size:.6g} B {problem}", line)
    return size


def refuse_missing_ranks(file: str, found: Iterable[int], count: int, source: str) -> None:
    """Raise `InvalidFileError` if ranks of 0 to count - 1 are missing; `source` is that of the count."""
    if count > MOST_RANKS:
        raise refuse(file, f"{count:,} ranks ({source}), where {MOST_RANKS:,} can be read")
    missing = np.flatnonzero(~np.isin(np.arange(count), np.fromiter(found, dtype=np.int64)))
    if len(missing):
        word = "rank" if len(missing) == 1 else "ranks"
        raise refuse(file, f"{word} {abridged(missing.tolist(), 8)} of {count} ({source}) missing")


def sequential_trace(
    ranks: Sequence[Operations],
    communicators: Sequence[Sequence[int]],
    notes: Mapping[str, str],
    warnings: Sequence[str],
) -> Trace:
    """Trace of ranks whose peers are ranks of the world and whose communicators are numbered as in the trace.

    Raise `InvalidFileError` if a message or a root is outside of the ranks.
    """
    for rank, operations in enumerate(ranks):
        _refuse_unknown_peers(notes["file"], rank, operations, len(ranks))
    spacing, tag_warnings = _tag_spacing(ranks)
    programs = [operations.program(_tags(operations, spacing)) for operations in ranks]
    return Trace(
        programs=tuple(programs),
        program_of=np.arange(len(ranks), dtype=np.int32),
        communicators=tuple(np.array(members, dtype=np.int32) for members in communicators),
        notes=noted(notes, [*warnings, *tag_warnings]),
    )


def _refuse_unknown_peers(file: str, rank: int, operations: Operations, count: int) -> None:
    peer = np.asarray(operations.peer)
    beyond = operations.is_kind([*MESSAGES, *COLLECTIVES]) & ((peer >= count) | (peer < ANY))
    if beyond.any():
        raise refuse(file, f"rank {rank} communicates with rank {int(peer[beyond][0])}, but there are {count} ranks")


def _tag_spacing(ranks: Sequence[Operations]) -> tuple[int, list[str]]:
    """Distance between the tags of two communicators: messages of different ones never match."""
    used, largest, has_any = set[int](), 0, False
    for operations in ranks:
        is_message = operations.is_kind(MESSAGES)
        tag = np.asarray(operations.tag)[is_message]
        used |= set(np.unique(np.asarray(operations.communicator)[is_message]).tolist())
        largest, has_any = max(largest, int(tag.max(initial=0))), has_any or bool((tag == ANY).any())
    if len(used) < 2:
        return 0, []
    if (largest + 1) * (max(used) + 1) > LARGEST_TAG:
        return 0, [
            "tags too large to separate messages of different communicators: they are matched as in one communicator"
        ]
    message = "a receive of any tag takes messages of any communicator, as several are used"
    return largest + 1, [message] if has_any else []


def _tags(operations: Operations, spacing: int) -> NDArray[np.int32]:
    tag, communicator = np.asarray(operations.tag).copy(), np.asarray(operations.communicator)
    is_collective = operations.is_kind(COLLECTIVES)
    tag[is_collective] = communicator[is_collective]
    if spacing:
        is_message = operations.is_kind(MESSAGES) & (tag != ANY)
        tag[is_message] += np.int32(spacing) * communicator[is_message]
    return tag
