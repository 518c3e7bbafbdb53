"""Values inserted into the text of a TOML file, which otherwise stays the same to the byte.

A file is cut into sections at its headers. No section holds a table twice, so a value can be replaced, or a line
inserted, independently of the order of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import tomli

from whatif.schema.toml import KeyPath
from whatif.schema.toml_text import toml_key

# Where a reader looks for a table that a file has not: before those that come later here.
_ORDER: Final = (
    "platform", "node", "network", "kernels", "parameters", "application", "sweep", "calibration", "accuracy",
    "sources", "fits",
)  # fmt: skip
_NAMED: Final = re.compile(r"""([ \t]*)(["']?)platform\2(?=[ \t]*=)""")


def with_values(text: str, values: Mapping[KeyPath, str | None]) -> str:
    """Text with values (key path: TOML) where the file states them, else in their tables, else in new ones.

    None removes a value. Raise ValueError for a text that only an editor can change.
    """
    sections = sections_of(text)
    for path, literal in values.items():
        # A value that stands under a header of its own becomes a line of the table around it.
        sections = [section for section in sections if section.path[: len(path)] != path]
        if literal is None:
            sections = [_without(section, path) for section in sections]
        else:
            _put(sections, path, literal, newline_of(text))
    return "".join(section.text for section in sections)


def _address(path: KeyPath) -> str:
    return ".".join(map(toml_key, path))


@dataclass(frozen=True)
class TextSection:
    """A header with the comments above it and the values below it; the first section of a file has no header."""

    path: KeyPath
    text: str

    def depth(self, path: KeyPath) -> int:
        """Number of keys of a path that exist in this section; 0 if the path is not below its header."""
        value: Any = tomli.loads(self.text) if path[: len(self.path)] == self.path else None
        for depth, key in enumerate(path):
            if not isinstance(value, dict) or key not in value:
                return depth
            value = value[key]
        return len(path)


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; TOML knows no other end than the line feed."""
    return re.split(r"(?<=\n)", text)


def newline_of(text: str) -> str:
    """End of the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _is_comment(line: str) -> bool:
    """Whether a line before a header, or at the end of a section, is a comment and not the end of a long text."""
    return line.lstrip().startswith("#") and '"""' not in line and "'''" not in line


def sections_of(text: str) -> list[TextSection]:
    """A file cut at its headers."""
    lines = _lines(text)
    headers: list[int] = []
    for row, line in enumerate(lines):
        # Within an array or a text of several lines, what stands before the line is no TOML by itself.
        if line.lstrip().startswith("[") and _is_toml(lines[headers[-1] if headers else 0 : row]):
            headers.append(row)
    starts = [0, *(_first_comment(lines, row) for row in headers)]
    ends = [*starts[1:], len(lines)]
    paths = [(), *(_path(lines[row]) for row in headers)]
    return [TextSection(path, "".join(lines[start:end])) for path, start, end in zip(paths, starts, ends, strict=True)]


def _is_toml(lines: list[str]) -> bool:
    try:
        tomli.loads("".join(lines))
    except tomli.TOMLDecodeError:
        return False
    return True


def _path(header: str) -> KeyPath:
    """The table that a header opens."""
    path: KeyPath = ()
    value: Any = tomli.loads(header)
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        path = (*path, key)
    return path


def _first_comment(lines: list[str], header: int) -> int:
    """The first line of the comment right above a header; what a file begins with is about the file."""
    first = header
    while first > 0 and _is_comment(lines[first - 1]):
        first -= 1
    return first or header


def with_platform_table(text: str) -> str:
    """The text with `platform = "NAME"` as a table, so that values can be added to it.

    Keys that follow it on its level would fall into a `[platform]`; before such it becomes `platform.extends`.
    """
    newline, (top, *tables) = newline_of(text), sections_of(text)
    lines = _lines(top.text)
    found = ((row, _NAMED.match(line)) for row, line in enumerate(lines) if _is_toml(lines[:row]))
    row, named = next((row, match) for row, match in found if match)
    indent, value = named[1], lines[row][named.end() :]
    if any(line.strip() and not _is_comment(line) for line in lines[row + 1 :]):
        lines[row] = f"{indent}platform.extends{value}"
    else:
        gap = newline if row and lines[row - 1].strip() and not _is_comment(lines[row - 1]) else ""
        lines[row] = f"{gap}{indent}[platform]{newline}{indent}extends{value}"
    return "".join([*lines, *(table.text for table in tables)])


def _without(section: TextSection, path: KeyPath) -> TextSection:
    import tomlkit

    if section.depth(path) < len(path):
        return section
    document: Any = tomlkit.parse(section.text)
    table = document
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    return TextSection(section.path, tomlkit.dumps(document))


def _put(sections: list[TextSection], path: KeyPath, literal: str, newline: str) -> None:
    """Put a value where the file states it, else into its table, else into a new table."""
    depths = [section.depth(path) for section in sections]
    depth = max(depths)
    at = depths.index(depth)
    section = sections[at]
    # A table that is deeper than its section's header is an inline one, or one of dotted keys.
    if depth >= len(path) - 1 or depth > len(section.path):
        sections[at] = TextSection(section.path, _edited(section, path, depth, literal, newline))
        return
    at = place_of(sections, path[:-1])
    header = f"[{_address(path[:-1])}]"
    above = gap_after("".join(item.text for item in sections[:at]), newline)
    below = newline if at < len(sections) else ""
    sections.insert(
        at, TextSection(path[:-1], f"{above}{header}{newline}{_address(path[-1:])} = {literal}{newline}{below}")
    )


def _edited(section: TextSection, path: KeyPath, depth: int, literal: str, newline: str) -> str:
    """The text of a section with a value in a table that it has; `depth` keys of the path exist."""
    line = f"{_address(path[len(section.path) :])} = {literal}{newline}"
    if len(section.path) == depth < len(path):
        return _with_line(section.text, line, newline)
    import tomlkit
    from tomlkit.items import InlineTable

    document: Any = tomlkit.parse(section.text)
    tables = [document]
    for key in path[: min(depth, len(path) - 1)]:
        tables.append(tables[-1][key])
    table = tables[-1]
    if depth == len(path):
        table[path[-1]] = tomlkit.value(literal)
    elif any(isinstance(item, InlineTable) for item in tables):
        for key in reversed(path[depth + 1 :]):
            literal = f"{{ {_address((key,))} = {literal} }}"
        _fill(table, path[depth], tomlkit.value(literal))
    else:
        return _with_line(section.text, line, newline)
    return tomlkit.dumps(document)


def _fill(table: Any, key: str, value: Any) -> None:
    """Add to an inline table, with the space before its brace behind the new value."""
    padded = table.as_string().endswith(" }")
    value.trivia.trail = " " if padded else ""
    # Each way of adding puts the space before the value right where the other one does not.
    if padded or not table:
        table[key] = value
    else:
        table.append(key, value)


def _with_line(text: str, line: str, newline: str) -> str:
    """A section with one more line behind its last value, indented like that."""
    lines = _lines(text)
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or _is_comment(lines[end - 1])):
        end -= 1
    last = lines[end - 1]
    indent = last[: len(last) - len(last.lstrip())]
    gap = "" if last.endswith("\n") else newline
    return f"{''.join(lines[:end])}{gap}{indent}{line}{''.join(lines[end:])}"


def place_of(sections: list[TextSection], table: KeyPath) -> int:
    """Place of a new table: before the tables in it, else after its siblings, else in the usual order."""
    inside = [at for at, section in enumerate(sections) if section.path[: len(table)] == table]
    if inside:
        return inside[0]
    for length in range(len(table) - 1, 0, -1):
        beside = [at for at, section in enumerate(sections) if section.path[:length] == table[:length]]
        if beside:
            return beside[-1] + 1
    later = {(key,) for key in _ORDER[_ORDER.index(table[0]) + 1 :]}
    return next((at for at, section in enumerate(sections) if section.path[:1] in later), len(sections))


def gap_after(text: str, newline: str) -> str:
    """Line ends after which a text ends with an empty line."""
    if not text or re.search(r"(?:\A|\n)[ \t]*\r?\n\Z", text):
        return ""
    return newline if text.endswith("\n") else newline * 2
