"""GOAL schedules in the binary form of LogGOPSim (`txt2bin`), mapped into memory.

    u64 4223, u32 ranks, u8 processors, u8 adapters; for each rank u64 start, u64 end, counted from byte 8
    a rank: u32 operations, u32 roots, u32 root[], operation[], u32 appendix[]
    an operation, 39 bytes: u32 dependencies, u8 type (1 send, 2 receive, 3 computation), u32 peer, u64 size (B or ns),
        u32 tag, u8 processor, u8 adapter, and twice u32 count, u32 place in the appendix:
        operations that wait for its end, and for its start

All numbers are little-endian; a peer or tag of 2^32 - 1 is any. Source: LogGOPSim, `Parser.hpp`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.graphs import Batch, Dependencies, Indices, programs
from whatif.importers.operations import LARGEST_SIZE, LARGEST_TAG, MOST_OPERATIONS, MOST_RANKS
from whatif.importers.text import refuse
from whatif.schema.toml import shown_path
from whatif.simulation.flat_lists import list_items, list_starts
from whatif.simulation.rank_programs import Kind, RankProgram, Trace
from whatif.units import NANOSECOND

MAGIC: Final = (4223).to_bytes(8, "little")
"""First bytes of the file."""

_HEADER: Final = 14
_ORIGIN: Final = 8
_BATCH: Final = 1_000_000
_ANY: Final = 2**32 - 1
_KINDS: Final = np.array([255, Kind.SEND, Kind.RECEIVE, Kind.COMPUTE], dtype=np.uint8)
_OPERATION: Final = np.dtype(
    [
        ("need_count", "<u4"),
        ("type", "u1"),
        ("peer", "<u4"),
        ("size", "<u8"),
        ("tag", "<u4"),
        ("processor", "u1"),
        ("adapter", "u1"),
        ("then_count", "<u4"),
        ("then", "<u4"),
        ("then_started_count", "<u4"),
        ("then_started", "<u4"),
    ]
)
Bytes = NDArray[np.uint8]
Records = NDArray[Any]


def read_goal_binary(path: Path) -> Trace:
    """The schedule of a file; computations in ns become s.

    Every offset and count is held against the size of the file before it is used. Raise `InvalidFileError` for a file
    that is cut off or contradicts itself, sizes beyond 2^60 B, or operations that wait for one another in a circle.
    """
    name = shown_path(path)
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (OSError, ValueError) as error:
        raise refuse(name, f"cannot be read: {error}") from None
    return _Schedule(name, data).trace()


class _Schedule:
    """The bytes of a schedule, and where its ranks are."""

    def __init__(self, file: str, data: Bytes) -> None:
        self.file, self.data = file, data
        if len(data) < _HEADER or data[:8].tobytes() != MAGIC:
            raise refuse(file, "not a binary GOAL schedule: it does not start with 4223")
        self.rank_count = int(data[8:12].view("<u4")[0])
        if not 0 < self.rank_count <= MOST_RANKS or _HEADER + 16 * self.rank_count > len(data):
            raise refuse(
                file, f"{self.rank_count:,} ranks, but {len(data):,} B are too few for their offsets: cut off?"
            )
        table = data[_HEADER : _HEADER + 16 * self.rank_count].view("<u8").reshape(-1, 2)
        self._place(table)
        self.adapters = 0

    def _place(self, table: NDArray[np.uint64]) -> None:
        """Set the ranges of the ranks; raise `InvalidFileError` if they overlap or leave the file."""
        outside = (table[:, 0] > table[:, 1]) | (table[:, 1] > len(self.data) - _ORIGIN)
        outside |= table[:, 0] < _HEADER - _ORIGIN + 16 * self.rank_count
        if outside.any():
            rank = int(np.flatnonzero(outside)[0])
            start, end = table[rank].tolist()
            raise refuse(
                self.file, f"rank {rank} should be at bytes {start:,} to {end:,}, outside of the file: cut off?"
            )
        self.start, self.end = (table + np.uint64(_ORIGIN)).astype(np.int64).T
        order = np.argsort(self.start, kind="stable")
        overlap = np.flatnonzero(self.end[order][:-1] > self.start[order][1:])
        if len(overlap):
            first, second = order[overlap[0]], order[overlap[0] + 1]
            raise refuse(self.file, f"ranks {first} and {second} overlap in the file")
        self._count_operations()

    def _count_operations(self) -> None:
        if (self.end - self.start < 8).any():
            rank = int(np.flatnonzero(self.end - self.start < 8)[0])
            raise refuse(self.file, f"rank {rank} has no room for its numbers of operations")
        words = self.data[self.start[:, None] + np.arange(8)].view("<u4").astype(np.int64)
        self.count, roots = words.T
        self.first = self.start + 8 + 4 * roots
        self.appendix = self.first + _OPERATION.itemsize * self.count
        wrong = (self.appendix > self.end) | ((self.end - self.appendix) % 4 != 0) | (roots > self.count)
        if wrong.any():
            rank = int(np.flatnonzero(wrong)[0])
            counts = f"{self.count[rank]:,} operations and {roots[rank]:,} roots"
            raise refuse(
                self.file, f"rank {rank}: {counts} do not fit into its {self.end[rank] - self.start[rank]:,} B"
            )
        if self.count.sum() > MOST_OPERATIONS:
            raise refuse(self.file, f"more than {MOST_OPERATIONS:,} operations")

    def trace(self) -> Trace:
        """Read some ranks at a time."""
        found: list[RankProgram] = []
        group = np.cumsum(self.count) // _BATCH
        bounds = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), self.rank_count]
        for first, last in pairwise(bounds):
            found += programs(self.file, self._batch(first, last), range(first, last))
        notes = {"tool": "GOAL", "version": "binary", "file": self.file}
        if self.adapters:
            notes["warnings"] = f"{self.file}: {self.adapters + 1} network adapters of a rank are taken as one"
        return Trace(tuple(found), np.arange(self.rank_count, dtype=np.int32), notes=notes)

    def _batch(self, first: int, last: int) -> Batch:
        ranks = range(first, last)
        operations: Records = self._joined(self.first, self.appendix, ranks).view(_OPERATION)
        start = list_starts(self.count[first:last])
        appendix = self._joined(self.appendix, self.end, ranks).view("<u4")
        room = (self.end - self.appendix)[first:last] // 4
        self._check(operations, start, first)
        owner = np.repeat(np.arange(last - first), self.count[first:last])
        places = (list_starts(room)[:-1], room, start, owner)
        after = self._dependencies(operations["then_count"], operations["then"], appendix, places, first)
        started = operations["then_started_count"], operations["then_started"]
        after_started = self._dependencies(*started, appendix, places, first)
        self._check_needs(operations, after, after_started, start, first)
        self.adapters = max(self.adapters, int(operations["adapter"].max(initial=0)))
        kind = _KINDS[operations["type"]]
        size = operations["size"].astype(np.float64)
        size[kind == Kind.COMPUTE] *= NANOSECOND
        peer, tag = (operations[name].astype(np.int32) for name in ("peer", "tag"))
        is_message = kind != Kind.COMPUTE
        return Batch(
            start, kind, peer * is_message, size, tag * is_message, operations["processor"].copy(), after, after_started
        )

    def _joined(self, starts: Indices, ends: Indices, ranks: range) -> Bytes:
        spans = zip(starts[ranks.start : ranks.stop].tolist(), ends[ranks.start : ranks.stop].tolist(), strict=True)
        return np.concatenate([self.data[start:end] for start, end in spans])

    def _check(self, operations: Records, start: Indices, first: int) -> None:
        """Check the fields of the operations."""
        kind, peer, tag, size = (operations[name] for name in ("type", "peer", "tag", "size"))
        is_message = (kind == 1) | (kind == 2)
        is_any = kind == 2
        wrong = {
            "an unknown type": (kind < 1) | (kind > 3),
            "a peer that is not a rank": is_message & (peer >= self.rank_count) & ~(is_any & (peer == _ANY)),
            "a tag beyond 2^31": is_message & (tag > LARGEST_TAG) & ~(is_any & (tag == _ANY)),
            "a size beyond 2^60": size > LARGEST_SIZE,
        }
        for message, where in wrong.items():
            self._refuse_at(where, start, first, message)

    def _refuse_at(self, where: NDArray[np.bool_], start: Indices, first: int, message: str) -> None:
        if where.any():
            first_wrong = int(np.argmax(where))
            rank = int(np.searchsorted(start, first_wrong, side="right")) - 1
            number = first_wrong - int(start[rank]) + 1
            raise refuse(self.file, f"rank {first + rank}, operation {number}: {message}")

    def _dependencies(
        self,
        count: NDArray[np.uint32],
        place: NDArray[np.uint32],
        appendix: NDArray[np.uint32],
        places: tuple[Indices, Indices, Indices, Indices],
        first: int,
    ) -> Dependencies:
        """Dependencies between operations, from the lists in the appendices."""
        offset, room, start, owner = places
        number = count.astype(np.int64)
        beyond = (number > 0) & (place.astype(np.int64) + number > room[owner])
        self._refuse_at(beyond, start, first, "its list of those that wait for it is outside of the rank")
        if number.sum() > len(appendix):
            raise refuse(self.file, f"rank {first} or a later one: lists of those that wait overlap")
        source = np.repeat(np.arange(len(number)), number)
        own = appendix[list_items(offset[owner] + place, number)].astype(np.int64)
        count_of = np.diff(start)[owner[source]]
        if (own >= count_of).any():
            wrong = np.zeros(len(number), dtype=bool)
            wrong[source[own >= count_of]] = True
            self._refuse_at(wrong, start, first, "one that waits for it does not exist")
        return source, own + start[:-1][owner[source]]

    def _check_needs(
        self, operations: Records, after: Dependencies, started: Dependencies, start: Indices, first: int
    ) -> None:
        total = len(operations)
        need = np.bincount(after[1], minlength=total) + np.bincount(started[1], minlength=total)
        self._refuse_at(need != operations["need_count"], start, first, "its number of dependencies is wrong")
