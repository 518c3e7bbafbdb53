"""Text of the phases of a scenario file: blocks that are cut out, inserted, moved and renamed.

A block is all tables of one phase, and of its repetitions, with the comments above them. Nothing else in the file
changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from whatif.schema.toml import KeyPath
from whatif.schema.toml_sections import TextSection, gap_after, newline_of, place_of, sections_of

PHASES: Final[KeyPath] = ("application", "phases")
REPEATS: Final[KeyPath] = ("application", "repeats")


def block_of(text: str, name: str) -> str:
    """Block of a phase; empty if the phase has no table of its own in the text."""
    return "".join(section.text for section in sections_of(text) if _is_of(section, name))


def without_block(text: str, name: str) -> str:
    """Text without the block of a phase."""
    return "".join(section.text for section in sections_of(text) if not _is_of(section, name))


def with_block(text: str, block: str, after: str = "") -> str:
    """Text with one more block, behind that of a phase, by default behind all phases."""
    sections = sections_of(text)
    places = [at for at, section in enumerate(sections) if _is_of(section, after)]
    return _inserted(sections, places[-1] + 1 if places else place_of(sections, (*PHASES, "")), block)


def with_grid(text: str, block: str) -> str:
    """Text with the table of a grid behind the values of the application."""
    sections = sections_of(text)
    places = [at for at, section in enumerate(sections) if section.path == ("application",)]
    return _inserted(sections, places[-1] + 1 if places else place_of(sections, ("application", "grid")), block)


def moved_block(text: str, name: str, order: Sequence[str]) -> str:
    """Text with the block of a phase at its place in an order of all phases."""
    block, rest = block_of(text, name), without_block(text, name)
    at = order.index(name)
    if at:
        return with_block(rest, block, order[at - 1])
    sections = sections_of(rest)
    first = next(place for place, section in enumerate(sections) if _is_of(section, order[1]))
    return _inserted(sections, first, block)


def renamed(text: str, old: str, new: str) -> str:
    """Text with another name in every path of a phase: headers, keys, expressions and comments."""
    return re.sub(rf"(?<![\w.-])(application\.(?:phases|repeats)\.){re.escape(old)}(?![\w-])", rf"\g<1>{new}", text)


def grid_block(text: str) -> str:
    """Table of the grid; empty without one."""
    return "".join(section.text for section in sections_of(text) if section.path[:2] == ("application", "grid"))


def mentions(value: Any, name: str) -> bool:
    """Whether a value is an expression of a parameter of a phase."""
    return isinstance(value, str) and value.lstrip().startswith("=") and renamed(value, name, f"{name}_") != value


def _is_of(section: TextSection, name: str) -> bool:
    return section.path[:3] in ((*PHASES, name), (*REPEATS, name))


def _inserted(sections: Sequence[TextSection], at: int, block: str) -> str:
    """Text of sections with a block before one of them, between empty lines."""
    head, tail = ("".join(section.text for section in part) for part in (sections[:at], sections[at:]))
    newline = newline_of(head + tail)
    lines = block.strip("\r\n").splitlines()
    middle = "".join(f"{line}{newline}" for line in lines)
    return f"{head}{gap_after(head, newline)}{middle}{newline if tail else ''}{tail}"
