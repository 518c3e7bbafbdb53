"""SimGrid's time-independent traces: computations (flop) and messages (elements of a datatype) of each rank.

    0 init                          bare: sizes are in bytes; with any value, as in `init 1`: in elements of MPI_DOUBLE
    0 compute 1e9                   flop
    0 isend 1 7 1000 6              peer, tag, count, and a datatype where it is not the default
    0 wait 0 1 7                    source, destination, tag

One file holds all ranks, or an index file lists one for each rank, or a folder holds those. Counts of an operation are
multiplied with the size of the datatype. Source: SimGrid, `smpi_replay.cpp` and `smpi_datatype.cpp`.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError, did_you_mean
from whatif.importers.operations import (
    LARGEST_TAG,
    MOST_OPERATIONS,
    Operations,
    refuse_missing_ranks,
    rows,
    sequential_trace,
    valid_size,
)
from whatif.importers.text import CUT_OFF, chunks, refuse
from whatif.schema.toml import shown_path
from whatif.simulation.rank_programs import ANY, Kind, Trace
from whatif.units import counted

FLOP_RATE: Final = 1e9
"""flop/s of a rank: traces do not state a machine."""
# fmt: off
DATATYPE_SIZES: Final = (
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8,  # .. MPI_OFFSET
    8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16, 32, 1, 2, 4, 8, 16, 32, 0, 0, 1, 8,  # MPI_FLOAT_INT .. MPI_PTR
)
# fmt: on
"""B of the datatypes by the number that the traces use: 0 MPI_DOUBLE, 1 MPI_INT, 2 MPI_CHAR, .., 6 MPI_BYTE, .."""

_DOUBLE, _BYTE = 0, 6
_MESSAGES: Final = {"send": Kind.SEND, "isend": Kind.ISEND, "recv": Kind.RECEIVE, "irecv": Kind.IRECEIVE}
_RANK = re.compile(r"^[ \t]*(\d{1,9})[ \t]", re.MULTILINE | re.ASCII)


def is_actions(head: str) -> bool:
    """Whether a text starts with a known action of a time-independent trace."""
    for line in head.splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            return len(words) > 1 and words[0].isdecimal() and _verb(words[1]) in _ACTIONS
    return False


def read_actions(path: Path) -> Trace:
    """The trace of a file, of an index file that lists one file for each rank, or of a folder of those.

    A computation of n flop takes n / `FLOP_RATE` s, with a warning.
    Raise `InvalidFileError` for an action that is not known or lacks values, a size that is negative or beyond 2^60 B,
    a rank or a file that is missing. A last line that was cut off is left out, with a warning.
    """
    files = _files(path)
    actions = _Actions(_rank_count(files))
    for file in files:
        actions.take(chunks(file), shown_path(file))
    return actions.trace(shown_path(path))


def index_files(path: Path, head: str) -> list[Path]:
    """The files that an index file lists, none for a text of another kind."""
    names = [line.strip() for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not names or any(len(name) > 1000 or "\0" in name for name in names):
        return []
    try:
        return [path.parent / name for name in names] if (path.parent / names[0]).is_file() else []
    except OSError:
        return []


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = [file for file in path.iterdir() if _starts_as_one(file)]
        if not found:
            raise refuse(shown_path(path), "no file of SimGrid's time-independent traces is in this folder")
        return sorted(found)
    listed = index_files(path, "".join(chunks(path)) if not is_actions(next(chunks(path), "")) else "")
    if missing := [file for file in listed if not file.is_file()]:
        raise refuse(shown_path(path), f"{len(missing)} of the {len(listed)} files are missing: {missing[0].name}, ..")
    return listed or [path]


def _starts_as_one(file: Path) -> bool:
    try:
        return file.is_file() and is_actions(next(chunks(file), ""))
    except InvalidFileError:
        return False


def _rank_count(files: Sequence[Path]) -> int:
    ranks: set[int] = set()
    for path in files:
        own = {int(rank) for piece in chunks(path) for rank in set(_RANK.findall(piece))}
        if ranks & own:
            raise refuse(shown_path(path), f"rank {min(ranks & own)} has actions in another file too: several traces?")
        ranks |= own
    file = shown_path(files[0])
    if not ranks:
        raise refuse(file, "no action `rank verb values ..` in it")
    refuse_missing_ranks(
        file, ranks, max(ranks) + 1, "the largest with actions; read an index file or a folder for all files"
    )
    return max(ranks) + 1


def _verb(word: str) -> str:
    return "finalize" if word.startswith("finalize") else word


class ActionLine:
    """Values of one action, by their place from 0; each method raises `InvalidFileError` for an invalid one."""

    __slots__ = ("file", "line", "verb", "words")

    def __init__(self, file: str, line: int, verb: str, words: Sequence[str]) -> None:
        self.file, self.line, self.verb, self.words = file, line, verb, words

    def refuse(self, message: str) -> InvalidFileError:
        """The error to raise for this action."""
        return refuse(self.file, f"`{self.verb}`: {message}", self.line)

    def number(self, place: int, default: float | None = None) -> float:
        """A finite number."""
        if place >= len(self.words):
            if default is None:
                raise self.refuse(f"value {place + 1} is missing")
            return default
        try:
            value = float(self.words[place])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.refuse(f"`{self.words[place][:40]}` is not a number")
        return value

    def whole(self, place: int, default: int | None = None) -> int:
        """A whole number of 32 bits."""
        value = self.number(place, default)
        if value != int(value) or abs(value) > LARGEST_TAG:
            raise self.refuse(f"`{self.words[place]}` is not a whole number that is possible here")
        return int(value)

    def total(self, first: int, count: int) -> float:
        """The sum of some numbers."""
        return sum(self.number(place) for place in range(first, first + count))


class _Rank:
    """Operations of a rank, and those it did not wait for yet, by source, destination and tag."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.operations = Operations()
        self.default = _BYTE
        self.started = False
        self.pending: dict[tuple[int, int, int], list[int]] = defaultdict(list)


class _Actions:
    """The ranks of a trace, filled action by action."""

    def __init__(self, count: int) -> None:
        self.ranks = [_Rank(number) for number in range(count)]
        self._by_word = {str(rank.number): rank for rank in self.ranks}
        self._known: dict[tuple[str | int, ...], tuple[int, float, int]] = {}
        self.calls = Counter[str]()
        self.warnings: list[str] = []

    def take(self, texts: Iterable[str], file: str) -> None:
        line = 0
        for text in texts:
            for row, is_whole in rows(text):
                line += 1
                self._row(file, line, row, is_whole)
            if self.calls.total() > MOST_OPERATIONS:
                raise refuse(file, f"more than {MOST_OPERATIONS:,} actions", line)

    def _row(self, file: str, line: int, row: str, is_whole: bool) -> None:
        words = row.split()
        if not words or words[0].startswith("#"):
            return
        verb = _verb(words[1]) if len(words) > 1 else ""
        if not is_whole and verb not in ("finalize", "barrier"):
            self.warnings.append(f"{file}:{line}: {CUT_OFF}")
            return
        action = _ACTIONS.get(verb)
        if action is None:
            message = f"`{verb[:40]}` is not an action{did_you_mean(verb[:40], _ACTIONS)}"
            raise refuse(file, f"{message}: a line is `rank verb values ..`", line)
        rank = self._by_word.get(words[0])
        if rank is None:
            raise refuse(file, f"`{words[0][:40]}` is not one of the ranks 0 to {len(self.ranks) - 1}", line)
        self.calls[verb] += 1
        action(self, rank, ActionLine(file, line, verb, words[2:]))

    def trace(self, file: str) -> Trace:
        warnings = list(self.warnings)
        if self.calls["compute"]:
            warnings.append(f"computations are stated in flop: taken at {FLOP_RATE:.3g} flop/s for each rank")
        if silent := sum(not rank.started for rank in self.ranks):
            warnings.append(f"{silent} ranks have no `init`: their sizes are taken as bytes")
        notes = {"tool": "SimGrid", "file": file, "flop_rate": f"{FLOP_RATE:.6g} flop/s"}
        return sequential_trace([rank.operations for rank in self.ranks], [()], notes, warnings)

    # Actions, each of one rank.

    def _initialise(self, rank: _Rank, line: ActionLine) -> None:
        rank.default, rank.started = _DOUBLE if line.words else _BYTE, True

    def _nothing(self, rank: _Rank, line: ActionLine) -> None:
        """Ignore an action that takes no time."""

    def _count_members(self, rank: _Rank, line: ActionLine) -> None:
        if line.whole(0, 0) > len(self.ranks):
            raise line.refuse(f"{line.whole(0)} ranks, but only {len(self.ranks)} have actions: are files missing?")

    def _compute(self, rank: _Rank, line: ActionLine) -> None:
        self._work(rank, line, 0, FLOP_RATE if line.verb == "compute" else 1.0)

    def _work(self, rank: _Rank, line: ActionLine, place: int, rate: float) -> None:
        amount = line.number(place)
        if not 0 <= amount <= 1e30:
            raise line.refuse(f"{amount:.6g} is not an amount of work")
        rank.operations.compute(amount / rate)

    def _transfer(self, rank: _Rank, line: ActionLine) -> None:
        peer, size, tag = self._message(rank, line)
        index = rank.operations.add(_MESSAGES[line.verb], peer, size, tag)
        if line.verb == "isend":
            rank.pending[rank.number, peer, tag].append(index)
        elif line.verb == "irecv":
            rank.pending[peer, rank.number, tag].append(index)

    def _message(self, rank: _Rank, line: ActionLine) -> tuple[int, float, int]:
        """Peer, size and tag; repeated messages are looked up."""
        key: tuple[str | int, ...] = (line.verb, rank.default, *line.words)
        known = self._known.get(key)
        if known is None:
            known = self._described(rank, line)
            if len(self._known) < 100_000:
                self._known[key] = known
        return known

    def _described(self, rank: _Rank, line: ActionLine) -> tuple[int, float, int]:
        peer, tag, count = self._peer(line, 0), line.whole(1), line.number(2)
        if line.verb in ("recv", "irecv"):  # an unknown size is 0 or less
            peer, tag, count = max(peer, ANY), max(tag, ANY), max(count, 0.0)
        elif peer < 0 or tag < 0:
            raise line.refuse("the destination and the tag of a send cannot be negative")
        return peer, self._size(rank, line, count, 3), tag

    def _exchange(self, rank: _Rank, line: ActionLine) -> None:
        """Send count, destination, receive count, source, and the two datatypes."""
        destination, source = self._peer(line, 1), self._peer(line, 3)
        sent = self._size(rank, line, line.number(0), 4)
        received = self._size(rank, line, line.number(2), 5)
        add = rank.operations.add
        rank.operations.wait([add(Kind.IRECEIVE, source, received), add(Kind.ISEND, destination, sent)])

    def _peer(self, line: ActionLine, place: int) -> int:
        peer = line.whole(place)
        if peer >= len(self.ranks):
            raise line.refuse(f"rank {peer} is not one of the {counted(len(self.ranks), 'rank')}")
        return peer

    def _size(self, rank: _Rank, line: ActionLine, count: float, place: int) -> float:
        datatype = line.whole(place, rank.default)
        if not 0 <= datatype < len(DATATYPE_SIZES):
            raise line.refuse(f"the datatype {datatype} is not known")
        return valid_size(line.file, line.line, f"`{line.verb}`", count * DATATYPE_SIZES[datatype])

    def _wait(self, rank: _Rank, line: ActionLine) -> None:
        """Wait for the first that is pending with source, destination and tag; without values, for the last at all."""
        pending = rank.pending
        last = max(pending, key=lambda one: pending[one][-1], default=None)
        key = (line.whole(0), line.whole(1), line.whole(2)) if line.words else last
        if key not in pending:
            return  # a test may have completed it, as the traces are recorded
        rank.operations.wait([pending[key].pop(0 if line.words else -1)])
        if not rank.pending[key]:
            del rank.pending[key]

    def _wait_all(self, rank: _Rank, line: ActionLine) -> None:
        rank.operations.wait(sorted(index for indices in rank.pending.values() for index in indices))
        rank.pending.clear()

    def _barrier(self, rank: _Rank, line: ActionLine) -> None:
        rank.operations.add(Kind.BARRIER)

    def _rooted(self, rank: _Rank, line: ActionLine) -> None:
        """Broadcast: count, root, datatype. Reduce: count, flop, root, datatype."""
        place = 1 if line.verb == "bcast" else 2
        size = self._size(rank, line, line.number(0), place + 1)
        self._collective(rank, line, size, self._root(line, place))
        if line.verb == "reduce":
            self._work(rank, line, 1, FLOP_RATE)

    def _allreduce(self, rank: _Rank, line: ActionLine) -> None:
        self._collective(rank, line, self._size(rank, line, line.number(0), 2))
        self._work(rank, line, 1, FLOP_RATE)

    def _blocks(self, rank: _Rank, line: ActionLine) -> None:
        """Send count, receive count, the root of a gather or scatter, two datatypes; a scatter receives its block."""
        place = 3 if line.verb in ("gather", "scatter") else 2
        root = self._root(line, 2) if place == 3 else 0
        own = 1 if line.verb == "scatter" else 0
        self._collective(rank, line, self._size(rank, line, line.number(own), place + own), root)

    def _gather_blocks(self, rank: _Rank, line: ActionLine) -> None:
        """Send count, a receive count for each rank, the root of a gatherv, datatypes."""
        count = len(self.ranks)
        line.total(1, count)
        has_root = line.verb == "gatherv"
        place = count + (2 if has_root else 1)
        # An allgatherv may state displacements, a datatype before them, or one alone.
        if not has_root and len(line.words) - place not in (1, 2, count + 1):
            place = len(line.words)
        root = self._root(line, count + 1) if has_root else 0
        self._collective(rank, line, self._size(rank, line, line.number(0), place), root)

    def _scatter_blocks(self, rank: _Rank, line: ActionLine) -> None:
        """A send count for each rank, receive count, root, the two datatypes."""
        count = len(self.ranks)
        line.total(0, count)
        size = self._size(rank, line, line.number(count), count + 3)
        self._collective(rank, line, size, self._root(line, count + 1))

    def _exchange_blocks(self, rank: _Rank, line: ActionLine) -> None:
        """Buffer, a send count for each rank, buffer, a receive count for each, two datatypes; the mean counts."""
        count = len(self.ranks)
        line.total(count + 2, count)
        self._collective(rank, line, self._size(rank, line, line.total(1, count) / count, 2 * count + 2))

    def _reduce_scatter(self, rank: _Rank, line: ActionLine) -> None:
        """A receive count for each rank, flop, datatype; the mean counts."""
        count = len(self.ranks)
        self._collective(rank, line, self._size(rank, line, line.total(0, count) / count, count + 1))
        self._work(rank, line, count, FLOP_RATE)

    def _root(self, line: ActionLine, place: int) -> int:
        root = line.whole(place, 0)
        if not 0 <= root < len(self.ranks):
            raise line.refuse(f"the root {root} is not one of the {counted(len(self.ranks), 'rank')}")
        return root

    def _collective(self, rank: _Rank, line: ActionLine, size: float, root: int = 0) -> None:
        rank.operations.add(_COLLECTIVES[line.verb], root, size)


_COLLECTIVES: Final = {
    "bcast": Kind.BROADCAST,
    "reduce": Kind.REDUCE,
    "allreduce": Kind.ALLREDUCE,
    "gather": Kind.GATHER,
    "gatherv": Kind.GATHER,
    "scatter": Kind.SCATTER,
    "scatterv": Kind.SCATTER,
    "allgather": Kind.ALLGATHER,
    "allgatherv": Kind.ALLGATHER,
    "alltoall": Kind.ALLTOALL,
    "alltoallv": Kind.ALLTOALL,
    "reducescatter": Kind.REDUCE_SCATTER,
    "scan": Kind.SCAN,
    "exscan": Kind.SCAN,
}
_ACTIONS: Final[dict[str, Callable[[_Actions, _Rank, ActionLine], None]]] = {
    "init": _Actions._initialise,
    "finalize": _Actions._nothing,
    "comm_size": _Actions._count_members,
    **dict.fromkeys(("comm_dup", "comm_split", "location", "test"), _Actions._nothing),
    **dict.fromkeys(("compute", "sleep"), _Actions._compute),
    **dict.fromkeys(_MESSAGES, _Actions._transfer),
    "sendRecv": _Actions._exchange,
    "wait": _Actions._wait,
    "waitall": _Actions._wait_all,
    "barrier": _Actions._barrier,
    **dict.fromkeys(("bcast", "reduce"), _Actions._rooted),
    **dict.fromkeys(("allreduce", "scan", "exscan"), _Actions._allreduce),
    **dict.fromkeys(("gather", "allgather", "scatter", "alltoall"), _Actions._blocks),
    **dict.fromkeys(("gatherv", "allgatherv"), _Actions._gather_blocks),
    "scatterv": _Actions._scatter_blocks,
    "alltoallv": _Actions._exchange_blocks,
    "reducescatter": _Actions._reduce_scatter,
}
