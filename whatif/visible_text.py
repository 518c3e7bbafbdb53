"""Text of other people's files, made safe to show: no character of it acts on a terminal, a page or a spreadsheet."""

from __future__ import annotations

import re
from typing import Final

# Unicode categories Cc, Cf, Cs, Zl and Zp: controls, marks without a shape such as those of direction, surrogates,
# separators of lines. As one pattern, which is many times as fast as a look at each character.
_RANGES: Final = (
    "\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_HIDDEN: Final = re.compile(f"[\0-\n{_RANGES}]")
_HIDDEN_IN_LINE: Final = re.compile(f"[\0-\t{_RANGES}]")
_COMPUTED: Final = re.compile(r"\s*[=+\-@＝＋－＠](?!\Z)")
"""Beginning of a cell that a spreadsheet computes."""
_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?\s*+")


def visible(text: str, kept: str = "\n\t") -> str:
    r"""Text whose control, escape and direction characters are written as `\x1b`, `\u202e`; those `kept` stay."""
    return _HIDDEN.sub(lambda found: found[0] if found[0] in kept else _escape(found[0]), text)


def is_visible(text: str) -> bool:
    """Whether a text has no such character."""
    return text.isprintable() or not _HIDDEN.search(text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def visible_json(text: str) -> str:
    r"""JSON whose strings hold such characters as `\u202e`: the same document, safe to print."""
    return _HIDDEN_IN_LINE.sub(lambda found: _json_escape(found[0]), text)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def visible_toml(text: str) -> str:
    r"""TOML whose strings hold such characters as `\u202e`; surrogates, which TOML cannot hold, stay."""
    return _HIDDEN.sub(lambda found: _toml_escape(found[0]), text)


def _toml_escape(char: str) -> str:
    if "\ud800" <= char <= "\udfff":
        return char
    return f"\\u{ord(char):04x}" if char <= "\uffff" else _escape(char)


def spreadsheet_cell(text: str) -> str:
    """Text of a cell of CSV: visible, and with a leading `'` where a spreadsheet would compute it."""
    computed = _COMPUTED.match(text) and not _NUMBER.fullmatch(text)
    return ("'" if computed else "") + visible(text, "\n")
