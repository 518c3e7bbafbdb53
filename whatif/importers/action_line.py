"""One line of SimGrid's time-independent traces: an action of a rank with its values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whatif.errors import InvalidFileError
from whatif.importers.operations import LARGEST_TAG
from whatif.importers.text import refuse


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
