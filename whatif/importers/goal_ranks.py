"""Whole ranks of a GOAL schedule in text form, all lines at once.

Only the plain form that programs write is read: one statement on a line, names and numbers of moderate length, no
comments. Of anything else, and of anything wrong, nothing is read: the reader of single lines takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.graphs import Batch
from whatif.importers.operations import LARGEST_SIZE, LARGEST_TAG
from whatif.importers.packed_words import Codes, PackedWords, UnusualTextError, require
from whatif.models.quantities import IntArray
from whatif.simulation.rank_programs import ANY, Kind
from whatif.units import NANOSECOND

_ALLOWED: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:{}- \t\n"
_BEYOND: Final = 16
"""More words than the longest statement has."""
_VERBS: Final = ((Kind.COMPUTE, b"calc"), (Kind.SEND, b"send"), (Kind.RECEIVE, b"recv"))
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RankLines:
    """Operations of whole ranks."""

    ranks: list[int]
    batch: Batch
    adapter: int
    """The largest number of a network adapter."""
    line_count: int


def read_ranks(text: str, rank_count: int) -> RankLines | None:
    """The ranks of a text; None unless it holds whole ranks in plain form without errors."""
    data = text.encode("ascii", "replace")
    if not data.endswith(b"\n") or data.translate(None, _ALLOWED):
        return None
    try:
        return _read(data, rank_count)
    except UnusualTextError:
        return None


def _read(data: bytes, rank_count: int) -> RankLines:
    words = PackedWords(data, _BEYOND)
    first, counts = words.first, words.counts
    opening = words.is_word(first, b"rank") & (counts == 3) & words.is_word(first + 2, b"{")
    closing = words.is_word(first, b"}") & (counts == 1)
    labelled = words.last_characters(first) == ord(":")
    by_start = words.is_word(first + 1, b"irequires")
    depending = ~labelled & (counts == 3) & (by_start | words.is_word(first + 1, b"requires"))
    # Each of these characters is at its place, and so in no other word.
    for character, where in ((b":", labelled), (b"{", opening), (b"}", closing)):
        require(data.count(character) == np.count_nonzero(where))
    opened, row = np.flatnonzero(opening), np.cumsum(opening) - 1
    _require_whole_ranks(opened, np.flatnonzero(closing), len(row))
    lines = np.flatnonzero(~(opening | closing | depending))
    operations = _Operations(words, lines, labelled[lines], rank_count)
    pairs, is_later = _dependencies(operations, row, np.flatnonzero(depending))
    require(data.count(b"-") == operations.any_count)
    # Dependencies on what comes later stand behind those of their rank.
    order = np.lexsort((is_later, row[depending]))
    started = by_start[depending][order]
    batch = Batch(
        start=np.searchsorted(row[lines], np.arange(len(opened) + 1)),
        kind=operations.kind,
        peer=operations.peer,
        size=operations.size,
        tag=operations.tag,
        processor=operations.processor,
        after=(pairs[0][order][~started], pairs[1][order][~started]),
        after_started=(pairs[0][order][started], pairs[1][order][started]),
    )
    ranks = words.numbers(first[opened] + 1, rank_count - 1).tolist()
    return RankLines(ranks, batch, operations.adapter, words.line_count)


def _require_whole_ranks(opened: IntArray, closed: IntArray, line_count: int) -> None:
    """One rank begins where the one before ends."""
    require(len(closed) == len(opened) > 0 and opened[0] == 0 and closed[-1] == line_count - 1)
    require(bool((opened[1:] == closed[:-1] + 1).all()))


class _Operations:
    """Columns of the lines that state operations."""

    def __init__(self, words: PackedWords, lines: IntArray, labelled: Mask, rank_count: int) -> None:
        self.words, self.lines, self.labelled, self.rank_count = words, lines, labelled, rank_count
        self.any_count = 0
        at = words.first[lines] + labelled
        self.kind = self._kinds(at)
        self.size, self.peer = np.zeros(len(at)), np.zeros(len(at), dtype=np.int32)
        computed = np.flatnonzero(self.kind == Kind.COMPUTE)
        self.size[computed] = words.numbers(at[computed] + 1, LARGEST_SIZE) * NANOSECOND
        self._messages(at, Kind.SEND, b"to")
        self._messages(at, Kind.RECEIVE, b"from")
        self._options(at + np.where(self.kind == Kind.COMPUTE, 2, 4))

    def _kinds(self, at: IntArray) -> NDArray[np.uint8]:
        kind = np.full(len(at), len(Kind), dtype=np.uint8)
        for number, verb in _VERBS:
            kind[self.words.is_word(at, verb)] = number
        require(bool((kind < len(Kind)).all()))
        return kind

    def _messages(self, at: IntArray, kind: Kind, preposition: bytes) -> None:
        chosen = np.flatnonzero(self.kind == kind)
        at = at[chosen]
        require(bool((self.words.last_characters(at + 1) == ord("b")).all()))
        require(bool(self.words.is_word(at + 2, preposition).all()))
        self.size[chosen] = self.words.numbers(at + 1, LARGEST_SIZE, behind=1)
        self.peer[chosen] = self._numbers(at + 3, self.rank_count - 1, kind == Kind.RECEIVE)

    def _numbers(self, words: IntArray, most: int, may_be_any: bool) -> IntArray:
        """Numbers; those of receives may be any."""
        is_any = self.words.is_word(words, b"-1") & may_be_any
        found = np.full(len(words), ANY, dtype=np.int64)
        found[~is_any] = self.words.numbers(words[~is_any], most)
        self.any_count += int(np.count_nonzero(is_any))
        return found

    def _options(self, at: IntArray) -> None:
        """Tag, processor and adapter, from the words at `at` on."""
        end = self.words.first[self.lines] + self.words.counts[self.lines]
        self.tag, self.processor = np.zeros(len(at), dtype=np.int32), np.zeros(len(at), dtype=np.uint8)
        for receives, kind in ((False, Kind.SEND), (True, Kind.RECEIVE)):
            chosen = self.words.is_word(at, b"tag") & (self.kind == kind)
            self.tag[chosen] = self._numbers(at[chosen] + 1, LARGEST_TAG, receives)
            at = at + 2 * chosen
        chosen = self.words.is_word(at, b"cpu")
        self.processor[chosen] = self.words.numbers(at[chosen] + 1, 255)
        at = at + 2 * chosen
        chosen = self.words.is_word(at, b"nic")
        self.adapter = int(self.words.numbers(at[chosen] + 1, np.inf).max(initial=0))
        require(np.array_equal(at + 2 * chosen, end))

    def labels(self) -> tuple[IntArray, Codes]:
        """Operations that have a label, and the labels."""
        chosen = np.flatnonzero(self.labelled)
        return chosen, self.words.names(self.words.first[self.lines[chosen]], behind=1)


def _dependencies(operations: _Operations, row: IntArray, lines: IntArray) -> tuple[tuple[IntArray, IntArray], Mask]:
    """Pairs (first, then) of operations that lines name, and whether one of a pair is defined later."""
    words, (chosen, labels) = operations.words, operations.labels()
    at = words.first[lines]
    names, used = words.names(at + 2), words.names(at)
    known, number = np.unique(np.concatenate([labels, names, used]), return_inverse=True)
    rank = np.concatenate([row[operations.lines[chosen]], row[lines], row[lines]])
    keys = rank * len(known) + number.ravel()
    defined, firsts, thens = np.split(keys, [len(chosen), len(chosen) + len(lines)])
    order = np.argsort(defined, kind="stable")
    defined = defined[order]
    require(bool((defined[1:] > defined[:-1]).all()))
    pair = []
    for wanted in (firsts, thens):
        place = np.searchsorted(defined, wanted)
        require(bool((np.append(defined, -1)[place] == wanted).all()))
        pair.append(chosen[order[place]])
    is_later = np.maximum(operations.lines[pair[0]], operations.lines[pair[1]]) > lines
    return (pair[0], pair[1]), is_later
