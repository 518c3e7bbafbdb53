"""Lines of a text, and the numbers in lines that hold nothing else, all read at once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray, IntArray

# Class of each character; `bytes.translate` is the fastest way to find it.
_BLANK, _DIGIT, _POINT, _LETTER, _OTHER = range(5)
_KINDS = bytearray([_OTHER] * 256)
for _kind, _characters in ((_BLANK, b" \t\n"), (_DIGIT, b"0123456789"), (_POINT, b"."), (_LETTER, b"+-eEnNaAiIfF")):
    for _character in _characters:
        _KINDS[_character] = _kind

_MOST_DIGITS: Final = 15
_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)


class Lines:
    """Lines of a text that ends with a line end: their ends, and their numbers of words.

    Rows are lines that begin with a digit and hold only characters of numbers.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        plain = text.encode("ascii", "replace")
        self._characters = np.frombuffer(plain, dtype=np.uint8)
        kinds = np.frombuffer(plain.translate(_KINDS), dtype=np.uint8)
        edges = np.flatnonzero(np.diff(kinds != _BLANK, prepend=False))
        self._starts, self._ends = edges[0::2], edges[1::2]
        self.ends = np.flatnonzero(self._characters == ord("\n")) + 1
        starts = np.concatenate([[0], self.ends[:-1]])
        first_word = np.searchsorted(self._starts, starts)
        self.counts = np.diff(first_word, append=len(self._starts))
        first_kind = kinds[np.append(self._starts, len(plain) - 1)[first_word]]
        self.is_row = (self.counts > 0) & (first_kind == _DIGIT) & (np.maximum.reduceat(kinds, starts) < _OTHER)

    @property
    def gaps(self) -> tuple[IntArray, IntArray]:
        """First lines of the blocks between rows, and the lines after."""
        edges = np.flatnonzero(np.diff(self.is_row, prepend=True, append=True))
        return edges[0::2], edges[1::2]

    def texts(self, first: IntArray, last: IntArray) -> list[str]:
        """The text from each first line to the line before its last."""
        ends = np.insert(self.ends, 0, 0)
        return [self.text[start:end] for start, end in zip(ends[first].tolist(), ends[last].tolist(), strict=True)]

    def numbers(self, rows: IntArray) -> FloatArray:
        """The numbers of some rows, one after the other; raise `ValueError` for another word."""
        is_wanted = np.zeros(len(self.counts), dtype=bool)
        is_wanted[rows] = True
        words = np.repeat(is_wanted, self.counts)
        starts, ends = self._starts[words], self._ends[words]
        values, is_plain = _plain_numbers(self._characters, starts, ends - starts)
        if not is_plain.all():
            spans = zip(starts[~is_plain].tolist(), ends[~is_plain].tolist(), strict=True)
            values[~is_plain] = np.array([self.text[start:end] for start, end in spans], dtype=float)
        return values


def _plain_numbers(
    characters: NDArray[np.uint8], starts: IntArray, widths: IntArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The numbers that are digits with at most one point, and which words are such numbers.

    A number of at most 15 digits is an integer below 2^53 over a power of ten that is exact too: the quotient is the
    correctly rounded value, and all of them can be computed at once, digit by digit.
    """
    value = np.zeros(len(starts))
    width = np.minimum(widths, 255).astype(np.uint8)
    digits, points, decimals = (np.zeros_like(width) for _ in range(3))
    for position in range(min(int(width.max(initial=0)), _MOST_DIGITS + 1)):
        character = characters.take(starts + position, mode="clip")
        digit = character - ord("0")  # of unsigned bytes: those below "0" become large
        is_inside = position < width
        is_digit = is_inside & (digit < 10)
        value = np.where(is_digit, value * 10 + digit, value)
        digits += is_digit
        decimals += is_digit & (points > 0)
        points += is_inside & (character == ord("."))
    is_plain = (digits + points == width) & (points < 2) & (digits > 0) & (digits <= _MOST_DIGITS)
    return value / _POWERS[np.minimum(decimals, _MOST_DIGITS)], is_plain
