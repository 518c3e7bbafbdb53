"""Words of a text as numbers of eight bytes, which are compared and read as decimal numbers all at once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import IntArray

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
