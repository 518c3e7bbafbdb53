"""Positions of keys in a TOML text. Used only to report errors, so it is simple rather than fast."""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str, ...]

_DEEPEST = 20
"""Parts of a path up to which tables without a header are located."""
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEYS = re.compile(rf"{_KEY}(?:\s*\.\s*{_KEY})*")
_STRING = re.compile(r'"{3}.*?(?:"{3,5}|$)|\'{3}.*?(?:\'{3,5}|$)|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?', re.DOTALL)


def positions(text: str) -> dict[Path, tuple[int, int]]:
    """Line and column (1-based) of every table header and key of a TOML text; tolerates invalid TOML.

    A table without a header of its own is at the first key or table within it.
    """
    found: dict[Path, tuple[int, int]] = {}
    for path, offset in _Scanner(text).entries():
        found.setdefault(path, line_and_column(text, offset))
    for path in list(found):
        for length in range(1, min(len(path), _DEEPEST)):
            found.setdefault(path[:length], found[path])
    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def split_key(text: str) -> Path:
    """Parts of a dotted key such as `network."inter node".x`, without quotes."""
    return tuple(part.strip("\"'") for part in re.findall(_KEY, text))


class _Scanner:
    """Scanner of headers, keys and inline tables; values are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0

    def entries(self) -> Iterator[tuple[Path, int]]:
        table: Path = ()
        while self._skip_blank():
            if self.text[self.offset] == "[":
                start = self.offset
                end = self.text.find("]", start)
                table = split_key(self.text[start : end if end > 0 else len(self.text)])
                yield table, start
                self._to_line_end()
            else:
                yield from self._pair(table)

    def _pair(self, table: Path) -> Iterator[tuple[Path, int]]:
        match = _KEYS.match(self.text, self.offset)
        if match is None:
            self._to_line_end()
            return
        path = table + split_key(match[0])
        yield path, match.start()
        self.offset = match.end()
        equals = re.compile(r"[ \t]*=[ \t]*").match(self.text, self.offset)
        if equals is None:
            self._to_line_end()
            return
        self.offset = equals.end()
        yield from self._value(path)

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        """Skip a value up to the next comma, bracket or end of line; yield the keys of inline tables."""
        depth = 0
        while self.offset < len(self.text):
            character = self.text[self.offset]
            string = _STRING.match(self.text, self.offset)
            if string is not None:
                self.offset = string.end()
            elif character == "#" and depth:
                self._to_line_end()
            elif character == "{":
                yield from self._inline_table(path)
            elif character == "[" or (character == "]" and depth):
                depth += 1 if character == "[" else -1
                self.offset += 1
            elif depth == 0 and character in ",}\n]#":
                return
            else:
                self.offset += 1

    def _inline_table(self, path: Path) -> Iterator[tuple[Path, int]]:
        self.offset += 1
        while self._skip_blank(","):
            if self.text[self.offset] == "}":
                self.offset += 1
                return
            before = self.offset
            yield from self._pair(path)
            if self.offset == before:
                self.offset += 1

    def _skip_blank(self, also: str = "") -> bool:
        """Skip white space and comments; return whether text is left."""
        while self.offset < len(self.text):
            character = self.text[self.offset]
            if character == "#":
                self._to_line_end()
            elif character.isspace() or character in also:
                self.offset += 1
            else:
                return True
        return False

    def _to_line_end(self) -> None:
        end = self.text.find("\n", self.offset)
        self.offset = len(self.text) if end < 0 else end + 1
