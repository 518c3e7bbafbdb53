"""GOAL schedules: operations of each rank and their dependencies, as text or binary.

    num_ranks 2
    rank 0 {
    l1: calc 1000                             ns
    l2: send 8b to 1 tag 4 cpu 0 nic 0        peers and tags of a receive may be -1: any
    l2 requires l1                            after its end; `irequires`: after its start
    }

Source: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language" (ICPP 2009); LogGOPSim, `txt2bin.re`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InvalidFileError, did_you_mean
from whatif.importers.goal_binary import MAGIC, read_goal_binary
from whatif.importers.goal_ranks import RankLines, read_ranks
from whatif.importers.graphs import Batch, programs
from whatif.importers.operations import LARGEST_SIZE, LARGEST_TAG, MOST_RANKS, refuse_missing_ranks, rows
from whatif.importers.text import CUT_OFF, pieces_of, readable, refuse
from whatif.simulation.rank_programs import ANY, Kind, RankProgram, Trace
from whatif.table import noted
from whatif.units import NANOSECOND

_BATCH: Final = 1_000_000
_LONGEST_RANK: Final = 2**24
"""Characters of ranks that are read at once."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"\s*num_ranks\s+\d+")
_OPERATION = re.compile(
    r"(?:(?P<label>[A-Za-z]\w*)\s*:\s*)?"
    r"(?:(?P<verb>send|recv)\s+(?P<size>\d+)\s*b\s+(?P<preposition>to|from)\s+(?P<peer>-1|\d{1,9})"
    r"(?:\s+tag\s+(?P<tag>-1|\d{1,18}))?|calc\s+(?P<time>\d+))"
    r"(?:\s+cpu\s+(?P<processor>\d{1,9}))?(?:\s+nic\s+(?P<adapter>\d{1,9}))?",
    re.ASCII,
)
_DEPENDENCY = re.compile(r"([A-Za-z]\w*)\s+(i?requires)\s+([A-Za-z]\w*)", re.ASCII)
_RANK = re.compile(r"rank\s+(\d{1,9})\s*\{")
_RANKS = re.compile(r"num_ranks\s+(\d{1,9})\b")
_WORDS = ("send", "recv", "calc", "requires", "irequires", "rank", "num_ranks", "tag", "cpu", "nic", "to", "from")


def is_goal(head: str) -> bool:
    """Whether a text starts as a GOAL schedule does."""
    return _HEAD.match(_COMMENT.sub(" ", head)) is not None


def read_goal(source: str | Path, file: str = "<text>") -> Trace:
    """The schedule of a file, text or binary, or of a text, as graphs; computations in ns become s.

    Of a text that is cut off within its last rank the rest is kept, with a warning. Raise `InvalidFileError` for
    another format, a missing rank, a label that is defined twice or not at all, or a circle of dependencies.
    """
    if isinstance(source, Path):
        with readable(source), source.open("rb") as opened:
            if opened.read(len(MAGIC)) == MAGIC:
                return read_goal_binary(source)
    texts, file = pieces_of(source, file)
    return _Text(file).trace(texts)


def _ended_by_ranks(texts: Iterable[str]) -> Iterator[str]:
    """A text in other pieces, which end where a rank does if it is not too long."""
    rest = ""
    for text in texts:
        end = text.find("\n", text.rfind("\n}") + 1) + 1 if "\n}" in text else 0
        if end or len(rest) > _LONGEST_RANK:
            yield rest + text[:end]
            rest = text[end:]
        else:
            rest += text
    yield rest


def _extend(column: array[Any], values: NDArray[Any]) -> None:
    column.frombytes(values.astype(column.typecode, copy=False).tobytes())


class _Text:
    """A schedule in text form: whole ranks at once where that is possible, else line by line."""

    def __init__(self, file: str) -> None:
        self.file, self.line = file, 0
        self.rank_count = 0
        self.rank: int | None = None
        self.in_comment = False
        self.warnings: list[str] = []
        self.adapter = 0
        self.programs: dict[int, RankProgram | None] = {}
        self._clear()

    def _clear(self) -> None:
        self.ranks: list[int] = []
        self.start = array("q", [0])
        self.kind, self.processor = array("B"), array("B")
        self.peer, self.tag, self.size = array("i"), array("i"), array("d")
        self.after, self.after_started = (array("q"), array("q")), (array("q"), array("q"))

    def trace(self, texts: Iterable[str]) -> Trace:
        """Trace of a text in pieces; programs are built for some ranks at a time."""
        for text in _ended_by_ranks(texts):
            ranks = self._after_head(text)
            if not self._whole_ranks(ranks):
                self._single_lines(ranks)
        self._finish()
        if self.adapter:
            self.warnings.append(f"{self.file}: {self.adapter + 1} network adapters of a rank are taken as one")
        notes = noted({"tool": "GOAL", "version": "text", "file": self.file}, self.warnings)
        found = tuple(program for _, program in sorted(self.programs.items()) if program is not None)
        numbers = np.arange(self.rank_count, dtype=np.int32)
        return Trace(found, numbers, notes=notes)

    def _after_head(self, text: str) -> str:
        """Text from the first rank on, after reading the lines before it."""
        at = 0 if self.rank_count else text.find("\nrank") + 1
        self._single_lines(text[:at])
        return text[at:]

    def _whole_ranks(self, text: str) -> bool:
        """Read all lines at once where they hold whole ranks in plain form; say whether they do."""
        if self.rank is not None or self.in_comment or not self.rank_count:
            return False
        found = read_ranks(text, self.rank_count)
        if found is None or len({*found.ranks}) < len(found.ranks) or not self.programs.keys().isdisjoint(found.ranks):
            return False
        self._take(found)
        return True

    def _take(self, found: RankLines) -> None:
        batch, base = found.batch, len(self.kind)
        self.line += found.line_count
        self.ranks += found.ranks
        self.programs.update(dict.fromkeys(found.ranks))
        self.adapter = max(self.adapter, found.adapter)
        _extend(self.start, batch.start[1:] + base)
        for name in ("kind", "peer", "size", "tag", "processor"):
            _extend(getattr(self, name), getattr(batch, name))
        for edges, pairs in ((self.after, batch.after), (self.after_started, batch.after_started)):
            _extend(edges[0], pairs[0] + base)
            _extend(edges[1], pairs[1] + base)
        if len(self.kind) >= _BATCH:
            self._make_programs()

    def _single_lines(self, text: str) -> None:
        for row, is_whole in rows(text):
            self.line += 1
            self._row(row, is_whole)

    def _row(self, row: str, is_whole: bool) -> None:
        text = self._without_comments(row).strip() if self.in_comment or "/" in row else row.strip()
        if not text:
            return
        if not is_whole and text != "}":
            self.warnings.append(f"{self.file}:{self.line}: {CUT_OFF}")
        else:
            self._statement(text)

    def _without_comments(self, row: str) -> str:
        if self.in_comment:
            _, self.in_comment, row = ("", True, "") if "*/" not in row else ("", False, row.partition("*/")[2])
        row = _COMMENT.sub(" ", row)
        if "/*" in row:
            self.in_comment, row = True, row.partition("/*")[0]
        return row

    def _refuse(self, message: str) -> InvalidFileError:
        return refuse(self.file, message, self.line)

    def _statement(self, text: str) -> None:
        if match := _OPERATION.fullmatch(text):
            self._operation(match)
        elif match := _DEPENDENCY.fullmatch(text):
            self._depend(match[1], match[2] == "irequires", match[3])
        elif match := _RANKS.match(text):
            self._count(int(match[1]))
            self._rest(text[match.end() :])
        elif match := _RANK.match(text):
            self._open(int(match[1]))
            self._rest(text[match.end() :])
        elif text.startswith("}"):
            self._close()
            self._rest(text[1:])
        else:
            words = re.findall(r"[a-z_]+", text[:200])
            near = next((hint for word in words if word not in _WORDS and (hint := did_you_mean(word, _WORDS))), "")
            raise self._refuse(f"`{text[:60]}` is not a statement of GOAL{near}")

    def _rest(self, text: str) -> None:
        if text.strip():
            self._statement(text.strip())

    def _count(self, count: int) -> None:
        if self.rank_count or not 0 < count <= MOST_RANKS:
            raise self._refuse(f"num_ranks {count}: stated once, as 1 to {MOST_RANKS:,}")
        self.rank_count = count

    def _open(self, rank: int) -> None:
        if self.rank is not None:
            raise self._refuse(f"rank {rank} starts within rank {self.rank}: `}}` is missing")
        if rank >= self.rank_count:
            raise self._refuse(f"rank {rank}, where num_ranks is {self.rank_count}")
        if rank in self.programs:
            raise self._refuse(f"rank {rank} is stated twice")
        self.rank, self.programs[rank] = rank, None
        self.ranks.append(rank)
        self.labels: dict[str, int] = {}
        self.later: list[tuple[str, bool, str, int]] = []

    def _close(self) -> None:
        if self.rank is None:
            raise self._refuse("`}` without a rank")
        for label, is_start, required, line in self.later:
            missing = next((name for name in (label, required) if name not in self.labels), None)
            if missing:
                message = f"rank {self.rank} has no label `{missing}`{did_you_mean(missing, self.labels)}"
                raise refuse(self.file, message, line)
            self._depend(label, is_start, required)
        self.start.append(len(self.kind))
        self.rank = None
        if len(self.kind) >= _BATCH:
            self._make_programs()

    def _operation(self, match: re.Match[str]) -> None:
        if self.rank is None:
            raise self._refuse("an operation outside of a rank")
        label, stated = match["label"], match["size"] or match["time"]
        if label is not None and self.labels.setdefault(label, len(self.kind)) != len(self.kind):
            raise self._refuse(f"the label `{label}` is defined twice in rank {self.rank}")
        amount = int(stated) if len(stated) < 20 else LARGEST_SIZE * 2
        number = int(match["processor"] or 0)
        if amount > LARGEST_SIZE or number > 255:
            raise self._refuse("a size or time beyond 2^60" if amount > LARGEST_SIZE else f"processor {number}")
        self.adapter = max(self.adapter, int(match["adapter"] or 0))
        self.processor.append(number)
        if match["time"]:
            self._append(Kind.COMPUTE, 0, amount * NANOSECOND, 0)
        else:
            self._message(match, float(amount))

    def _message(self, match: re.Match[str], size: float) -> None:
        verb, word, peer, tag = match["verb"], match["preposition"], int(match["peer"]), int(match["tag"] or 0)
        is_send = verb == "send"
        if is_send != (word == "to"):
            raise self._refuse(f"`{verb} {size:.0f}b {word}`: write `{'to' if is_send else 'from'}`")
        if not (0 if is_send else ANY) <= peer < self.rank_count:
            raise self._refuse(f"rank {self.rank} names rank {peer}, where num_ranks is {self.rank_count}")
        if not (0 if is_send else ANY) <= tag <= LARGEST_TAG:
            raise self._refuse(f"the tag {tag} is not possible")
        self._append(Kind.SEND if is_send else Kind.RECEIVE, peer, size, tag)

    def _append(self, kind: Kind, peer: int, size: float, tag: int) -> None:
        self.kind.append(kind)
        self.peer.append(peer)
        self.size.append(size)
        self.tag.append(tag)

    def _depend(self, label: str, is_start: bool, required: str) -> None:
        """Let an operation wait for the end, or the start, of another; labels may be defined later."""
        if self.rank is None:
            raise self._refuse("a dependency outside of a rank")
        then, first = self.labels.get(label), self.labels.get(required)
        if then is None or first is None:
            self.later.append((label, is_start, required, self.line))
            return
        edges = self.after_started if is_start else self.after
        edges[0].append(first)
        edges[1].append(then)

    def _make_programs(self) -> None:
        after, after_started = (
            (np.asarray(first, dtype=np.int64), np.asarray(then, dtype=np.int64))
            for first, then in (self.after, self.after_started)
        )
        batch = Batch(
            start=np.asarray(self.start, dtype=np.int64),
            kind=np.asarray(self.kind),
            peer=np.asarray(self.peer),
            size=np.asarray(self.size),
            tag=np.asarray(self.tag),
            processor=np.asarray(self.processor),
            after=after,
            after_started=after_started,
        )
        self.programs.update(zip(self.ranks, programs(self.file, batch, self.ranks), strict=True))
        self._clear()

    def _finish(self) -> None:
        if not self.rank_count:
            raise refuse(self.file, "not a GOAL schedule: `num_ranks` is missing", 1)
        if self.rank is not None:
            self.warnings.append(f"{self.file}:{self.line}: cut off within rank {self.rank}, which is kept up to there")
            self.later = [later for later in self.later if later[0] in self.labels and later[2] in self.labels]
            self._close()
        refuse_missing_ranks(self.file, self.programs, self.rank_count, "num_ranks")
        if self.ranks:
            self._make_programs()
