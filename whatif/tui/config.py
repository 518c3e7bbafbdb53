"""Preferences of the user: theme, marker, plain text and keys, from a small TOML file."""

from __future__ import annotations

import os
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

from textual.binding import Binding
from textual.dom import DOMNode
from textual.theme import BUILTIN_THEMES

from whatif.errors import InvalidFileError, Problem, did_you_mean
from whatif.paths import is_file
from whatif.plotting.raster import MarkerName
from whatif.schema.fields import StrictTable
from whatif.schema.toml import Document, Layer, Layers, dotted, read_document, walk
from whatif.schema.validated import validate
from whatif.tui import page_registry
from whatif.tui.themes import THEMES

_TAKEN: Final = {
    "ctrl+b": "begins the commands of tmux",
    "ctrl+h": "arrives as backspace",
    "ctrl+i": "arrives as tab",
    "ctrl+j": "arrives as enter",
    "ctrl+m": "arrives as enter",
    "ctrl+q": "resumes a halted terminal",
    "ctrl+s": "halts the terminal",
}
# Keys that never arrive at a program, or not from every terminal.
FORBIDDEN_KEYS: Final = frozenset(_TAKEN)


@dataclass(frozen=True)
class Config:
    """The preferences; `theme` is None if not chosen, `keys` holds the keys of some binding ids."""

    theme: str | None = None
    marker: MarkerName | None = None
    """None for pixels where the terminal has graphics, else braille."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plain: bool = False
    """Whether the explorer is plain text, as with `WHATIF_PLAIN`."""
    document: Document = field(default=Document("config.toml", "", {}), repr=False, compare=False)

    def problem(self, binding: str, message: str) -> Problem:
        """A `Problem` where the keys of a binding are written, as `"a.b" = ".."` or in a table `a`."""
        quoted = binding in self.document.data.get("keys", {})
        return self.document.problem(("keys", binding) if quoted else ("keys", *binding.split(".")), message)


class _Settings(StrictTable):
    """The file as people write it."""

    theme: str | None = None
    marker: MarkerName | None = None
    plain: bool = False
    keys: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies mutable defaults


def read_config(path: Path | None = None) -> Config:
    """Read the preferences: from `path`, else the file that WHATIF_CONFIG names, else the usual one, if there.

    A theme that TEXTUAL_THEME names goes before that of the file. Raise `InvalidFileError` with every problem.
    """
    named = path or os.environ.get("WHATIF_CONFIG")
    file = Path(named) if named else _usual_file()
    document = read_document(file) if named or is_file(file) else Document(str(file), "", {})
    problems = list(_problems(document))
    try:
        settings = validate(_Settings, Layers.of([Layer(document)]))
    except InvalidFileError as error:
        problems.extend(error.problems)
    if problems:
        raise InvalidFileError(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    keys = {dotted(place): tuple(map(_name, text.split(","))) for place, text in walk(settings.keys)}
    return Config(_theme_asked() or settings.theme, settings.marker, keys, settings.plain, document)


def _usual_file() -> Path:
    from platformdirs import user_config_path  # noqa: PLC0415 - not needed where a file is named

    return user_config_path("whatif") / "config.toml"


def _problems(document: Document) -> Iterator[Problem]:
    """Errors in the theme and the keys that `_Settings` does not detect."""
    theme, known = document.data.get("theme"), _theme_names()
    if isinstance(theme, str) and theme not in known:
        near = did_you_mean(theme, known) or f"; known themes: {', '.join(known)}"
        yield document.problem(("theme",), f"`{theme}`: no such theme{near}")
    keys = document.data.get("keys")
    for place, text in walk(keys if isinstance(keys, dict) else {}):
        if not isinstance(text, str):
            yield document.problem(("keys", *place), f"`{text}` must be a text in quotes, keys separated by commas")
            continue
        for key in text.split(","):
            if reason := _refusal(key.strip()):
                yield document.problem(("keys", *place), reason)


def _theme_names() -> list[str]:
    return [*(theme.name for theme in THEMES), *BUILTIN_THEMES]


def _theme_asked() -> str | None:
    """The first theme we know of those in TEXTUAL_THEME, which may be meant for other programs."""
    names = (name.strip() for name in os.environ.get("TEXTUAL_THEME", "").split(","))
    return next((name for name in names if name in _theme_names()), None)


def default_keys(classes: Iterable[type[DOMNode]], others: Iterable[Binding] = ()) -> dict[str, str]:
    """Default keys of every binding with an id, of some classes and others."""
    bindings = (*(binding for node in classes for binding in node.BINDINGS), *others)
    return {item.id: item.key for item in bindings if isinstance(item, Binding) and item.id}


def _renamed(binding: str) -> str:
    """Id of a binding whose area had another name in version 0.1."""
    area, point, name = binding.partition(".")
    return f"{_RENAMED.get(area, area)}{point}{name}"


def keymap(config: Config, defaults: Mapping[str, str]) -> dict[str, str]:
    """The user's keys for `App.set_keymap`; `defaults` are the keys of every binding id (`default_keys`).

    Raise `InvalidFileError` for an id that does not exist, and for a key that two bindings would share that can be
    meant at the same time.
    """
    moved, missing = page_registry.moved_bindings(), "no such key binding"
    unknown = [
        config.problem(
            binding, f"`{binding}`: {moved.get(binding) or missing + did_you_mean(_renamed(binding), defaults)}"
        )
        for binding in config.keys
        if binding not in defaults
    ]
    problems = [*unknown, *_shared(config, defaults)]
    if problems:
        raise InvalidFileError(problems)
    return {binding: ",".join(keys) for binding, keys in config.keys.items()}


def _shared(config: Config, defaults: Mapping[str, str]) -> Iterator[Problem]:
    """Errors for keys of the user that another binding of the same area has."""
    keys = {binding: tuple(map(_name, text.split(","))) for binding, text in defaults.items()} | dict(config.keys)
    for binding, mine in config.keys.items():
        for other, theirs in keys.items():
            if other != binding and _together(binding.partition(".")[0], other.partition(".")[0]):
                for key in sorted({*mine} & {*theirs}):
                    yield config.problem(binding, f"`{key}` is also a key of `{other}`; give that one another key")


# At most one widget has the focus, and a window or an input line is above all.
_RENAMED: Final = {"leaf": "parameter", "desk": "screen"}
"""Areas of keys by their names in version 0.1."""
_FOCUSED: Final = frozenset({"parameter", "table", "plot", "list", "why"})
_ALONE: Final = frozenset({"line", "reading", "deciding", "asking", "picking", "jobs", "form"})


def _together(area: str, other: str) -> bool:
    """Whether the keys of two areas can be meant at the same time."""
    if area == other:
        return True
    pages = frozenset(page.name for page in page_registry.PAGES)
    return _ALONE.isdisjoint((area, other)) and not any({area, other} <= areas for areas in (pages, _FOCUSED))


def _name(key: str) -> str:
    """A key as Textual calls it: `?` is `question_mark`."""
    (binding,) = Binding.make_bindings([Binding(key, "")])
    return binding.key


_MODIFIERS: Final = {"alt", "ctrl", "hyper", "meta", "shift", "super"}
_MOVES: Final = {"up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete"}
_NAMED: Final = _MOVES | {"escape", "enter", "tab", "space", "backspace"} | {f"f{number}" for number in range(1, 25)}
# What ctrl+space sends arrives as `ctrl+@`, where any other sign has a name.
_SIGNS: Final = {"comma", "@", *map(_name, string.punctuation.replace(",", ""))}
_USUAL: Final = (
    _NAMED
    | _SIGNS
    | {f"{modifier}+{key}" for modifier, key in product(("alt", "ctrl"), string.ascii_lowercase)} - FORBIDDEN_KEYS
    | {f"{modifier}+{key}" for modifier, key in product(("alt", "ctrl", "shift", "ctrl+shift"), (*_MOVES, "tab"))}
)


def _refusal(key: str) -> str:
    """Why a key cannot be used, or nothing."""
    if not key:
        return "an empty key; the comma itself is called `comma`"
    if key in _TAKEN:
        return f"`{key}` {_TAKEN[key]}; choose another key"
    if (len(key) == 1 and key.isprintable()) or _is_sent(key):
        return ""
    *modifiers, base = key.lower().split("+")
    if modifiers == ["shift"] and _is_character(base):
        return f"`{key}`: terminals send the character that shift makes, such as `A` or `?`; write that"
    tidy = "+".join([*sorted(modifiers), base])
    return f"`{key}`: no terminal sends such a key{did_you_mean(tidy, [tidy] if _is_sent(tidy) else sorted(_USUAL))}"


def _is_sent(key: str) -> bool:
    """Whether some terminal sends a key of this name: modifiers in order, and no shift where it makes a character."""
    *modifiers, base = key.split("+")
    if modifiers != sorted(_MODIFIERS.intersection(modifiers)):
        return False
    if not _is_character(base):
        return base in _NAMED
    return not modifiers or (modifiers != ["shift"] and base == base.lower())


def _is_character(key: str) -> bool:
    return key in _SIGNS or (len(key) == 1 and key.isalnum())
