"""Screen of character cells with named styles for text and background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.plotting.description import shorten, text_cells

Characters = NDArray[np.str_]
Numbers = NDArray[np.intp]


class TextRun(NamedTuple):
    """Part of a screen line: text, the name of its style and, on filled cells, of the background style."""

    text: str
    style: str = ""
    fill: str = ""


Line = list[TextRun]
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
"""Characters that fill a cell from the left, by eighths."""
_GAP: Final = 3
"""Cells between words side by side."""


class Cells:
    """Screen of cells to write on; text that does not fit is cut off."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(0, width), max(0, height)
        self._text: Characters = np.full((self.height, self.width), " ", dtype="U1")
        self._styles: Numbers = np.zeros((self.height, self.width), dtype=np.intp)
        self._fills: Numbers = np.zeros((self.height, self.width), dtype=np.intp)
        self._numbers = {"": 0}

    def number(self, style: str) -> int:
        """Number of a style, for `paint`."""
        return self._numbers.setdefault(style, len(self._numbers))

    def put(self, row: int, column: int, text: str, style: str) -> None:
        """Write a text; the background of the cells is kept."""
        column = max(0, column)
        if 0 <= row < self.height and column < self.width:
            letters = text_cells(shorten(text, self.width - column))
            self._text[row, column : column + len(letters)] = letters
            self._styles[row, column : column + len(letters)] = self.number(style)

    def put_runs(self, row: int, column: int, runs: tuple[TextRun, ...]) -> None:
        """Write a sequence of runs."""
        for run in runs:
            self.put(row, column, run.text, run.style)
            column += len(text_cells(run.text))

    def paint(self, row: int, column: int, text: Characters, styles: Numbers, fills: Numbers | None = None) -> None:
        """Write a rectangle of characters with numbered styles; it must be inside the screen."""
        place = np.s_[row : row + text.shape[0], column : column + text.shape[1]]
        self._text[place], self._styles[place] = text, styles
        if fills is not None:
            self._fills[place] = fills

    def fill(self, row: int, column: int) -> str:
        """Background style of a cell."""
        return list(self._numbers)[int(self._fills[row, column])]

    def blank(self, row: int, start: int, stop: int) -> bool:
        """Whether some cells of a line are on the screen and empty."""
        inside = 0 <= start <= stop <= self.width and 0 <= row < self.height
        return inside and bool((self._text[row, start:stop] == " ").all())

    def runs(self) -> list[list[TextRun]]:
        """Lines of the screen, each a list of runs."""
        names = list(self._numbers)
        both = self._styles * len(names) + self._fills
        return [self._line(letters.tolist(), numbers, names) for letters, numbers in zip(self._text, both, strict=True)]

    def _line(self, letters: list[str], numbers: Numbers, names: list[str]) -> list[TextRun]:
        if not letters:
            return []
        starts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()]
        styles = [divmod(number, len(names)) for number in numbers[starts].tolist()]
        return [
            TextRun("".join(letters[start:stop]), names[style], names[fill])
            for start, stop, (style, fill) in zip(starts, [*starts[1:], len(letters)], styles, strict=True)
        ]


def flowing(words: Sequence[Sequence[TextRun]], width: int) -> list[Line]:
    """Set words side by side; one that does not fit begins another line, a longer one is shortened."""
    lines: list[Line] = []
    used = width
    for word in words:
        size = sum(len(text_cells(run.text)) for run in word)
        if used + _GAP + size > width:
            lines.append(_shortened(word, width))
            used = size
        else:
            lines[-1] += [TextRun(" " * _GAP), *word]
            used += _GAP + size
    return lines


def _shortened(word: Sequence[TextRun], width: int) -> Line:
    line = []
    for run in word:
        line.append(run._replace(text=shorten(run.text, width)))
        width -= len(text_cells(line[-1].text))
    return line
