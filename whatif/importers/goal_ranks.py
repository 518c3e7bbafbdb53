"""Whole ranks of a GOAL schedule in text form, all lines at once.

Only the plain form that programs write is read: one statement on a line, names and numbers of moderate length, no
comments. Of anything else, and of anything wrong, nothing is read: the reader of single lines takes it. Words are
numbers of eight bytes, which are compared and read as decimal numbers all at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.graphs import Batch
from whatif.importers.operations import LARGEST_SIZE, LARGEST_TAG
from whatif.models.quantities import IntArray
from whatif.simulation.rank_programs import ANY, Kind
from whatif.units import NANOSECOND

_ALLOWED: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:{}- \t\n"
_BEYOND: Final = 16
"""More words than the longest statement has."""
_VERBS: Final = ((Kind.COMPUTE, b"calc"), (Kind.SEND, b"send"), (Kind.RECEIVE, b"recv"))
Mask = NDArray[np.bool_]
Codes = NDArray[np.uint64]

LONGEST: Final = 8
"""Bytes in a code."""
_BLANKS: Final = bytes(character in b" \t\n" for character in range(256))
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(LONGEST + 1)], dtype=np.uint64)
_POWERS: Final = 10 ** np.arange(LONGEST + 1, dtype=np.int64)
_EIGHT_ZEROS: Final = np.uint64(0x3030303030303030)
# A byte above 9 sets the highest bit of its sum with 0x76.
_BEYOND_9: Final = np.uint64(0x7676767676767676)
_HIGHEST_BITS: Final = np.uint64(0x8080808080808080)


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


class UnusualTextError(Exception):
    """A text that cannot be read all at once."""


def require(condition: bool | np.bool_) -> None:
    """Raise `UnusualTextError` unless a condition is true."""
    if not condition:
        raise UnusualTextError


class PackedWords:
    """Words between blanks of a text that ends with a line, followed by `beyond` empty ones."""

    def __init__(self, data: bytes, beyond: int) -> None:
        self.characters = np.frombuffer(data + bytes(2 * LONGEST), dtype=np.uint8)
        shape = (len(self.characters) - LONGEST + 1,)
        self._codes: Codes = np.ndarray(shape, dtype="<u8", buffer=self.characters, strides=(1,))
        blank = np.frombuffer(data.translate(_BLANKS), dtype=np.bool_)
        edges = np.flatnonzero(np.diff(blank, prepend=True))
        starts, ends = edges[0::2], edges[1::2]
        line_ends = np.flatnonzero(self.characters == ord("\n"))
        first = np.searchsorted(starts, np.append(0, line_ends + 1))
        self.line_count = len(line_ends)
        filled = first[1:] > first[:-1]
        self.first, self.counts = first[:-1][filled], np.diff(first)[filled]
        self.starts = np.append(starts, np.full(beyond, len(data)))
        self.widths = np.append(ends - starts, np.zeros(beyond, dtype=np.int64))
        self.codes = self._codes[self.starts] & _MASKS[np.minimum(self.widths, LONGEST)]

    def last_characters(self, words: IntArray) -> NDArray[np.uint8]:
        """Last character of some words."""
        found: NDArray[np.uint8] = self.characters[self.starts[words] + self.widths[words] - 1]
        return found

    def is_word(self, words: IntArray, text: bytes) -> NDArray[np.bool_]:
        """Which words are a given one."""
        found: NDArray[np.bool_] = self.widths[words] == len(text)
        found &= self.codes[words] == np.uint64(int.from_bytes(text[:LONGEST], "little"))
        for place in range(LONGEST, len(text)):
            found &= self.characters.take(self.starts[words] + place, mode="clip") == text[place]
        return found

    def names(self, words: IntArray, behind: int = 0) -> Codes:
        """Codes of names that begin with a letter; `behind` characters of a word are not part of it."""
        widths = self.widths[words] - behind
        require(bool(((widths > 0) & (widths <= LONGEST)).all()))
        first = self.characters[self.starts[words]] | 0x20
        require(bool(((first >= ord("a")) & (first <= ord("z"))).all()))
        found: Codes = self.codes[words] & _MASKS[widths]
        return found

    def numbers(self, words: IntArray, most: float, behind: int = 0) -> IntArray:
        """Numbers of at most 16 digits and at most `most`; `behind` characters of a word are not part of it."""
        widths = self.widths[words] - behind
        require(bool(((widths > 0) & (widths <= 2 * LONGEST)).all()))
        value = _digits(self.codes[words], np.minimum(widths, LONGEST))
        long = np.flatnonzero(widths > LONGEST)
        rest = widths[long] - LONGEST
        value[long] = value[long] * _POWERS[rest] + _digits(self._codes[self.starts[words[long]] + LONGEST], rest)
        require(bool((value <= most).all()))
        return value


def _digits(codes: Codes, widths: IntArray) -> IntArray:
    """Numbers of 1 to 8 digits, the first one in the lowest byte: digits become pairs, fours and eights."""
    value = (codes ^ _EIGHT_ZEROS) & _MASKS[widths]
    value <<= (8 * (LONGEST - widths)).astype(np.uint64)
    require(not (((value + _BEYOND_9) | value) & _HIGHEST_BITS).any())
    value = (value * np.uint64(10 << 8 | 1)) >> np.uint64(8)
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 << 16 | 1)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10_000 << 32 | 1)) >> np.uint64(32)
    return value.astype(np.int64)
