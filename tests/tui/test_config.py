"""The preferences of a person: what a file may say, where it stands, and what the keys then do."""

from __future__ import annotations

import asyncio
import string
from importlib import import_module
from pkgutil import iter_modules

import platformdirs
import pytest
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.events import Key
from textual.widget import Widget

from whatif.errors import InvalidFileError
from whatif.tui import dialogs, screens, widgets
from whatif.tui.app import Explorer
from whatif.tui.config import FORBIDDEN_KEYS, Config, default_keys, keymap, read_config
from whatif.tui.keys.all_keys import all_keys

DEFAULTS = {"parameter.more": "right,plus,l", "parameter.sweep": "s", "parameter.find": "slash", "plot.left": "left,h"}
WHOLE = """
theme = "whatif-colour-blind"
marker = "block"
plain = true

[keys]
"parameter.more" = "x, +"
parameter.find = "?"
"""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("WHATIF_CONFIG", raising=False)
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)


@pytest.fixture
def config_file(tmp_path):
    """Write a configuration file."""

    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def problems(config_file):
    """Every problem of a file that must be refused, its keys included: (line, column, key, message)."""

    def refused(text):
        with pytest.raises(InvalidFileError) as caught:
            keymap(read_config(config_file(text)), DEFAULTS)
        assert all(problem.file.endswith("config.toml") for problem in caught.value.problems)
        return [(item.line, item.column, item.key, item.message) for item in caught.value.problems]

    return refused


def test_without_a_file_nothing_is_chosen(monkeypatch, tmp_path):
    monkeypatch.setattr(platformdirs, "user_config_path", lambda name: tmp_path / name)
    assert read_config() == Config(theme=None, marker=None, keys={})
    assert keymap(read_config(), DEFAULTS) == {}


def test_the_usual_file_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(platformdirs, "user_config_path", lambda name: tmp_path / name)
    (tmp_path / "whatif").mkdir()
    (tmp_path / "whatif" / "config.toml").write_text('marker = "ascii"')
    assert read_config().marker == "ascii"


def test_the_usual_file_lies_where_the_platform_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if platformdirs.user_config_path("whatif") != tmp_path / "whatif":
        pytest.skip("not a platform of XDG")
    (tmp_path / "whatif").mkdir()
    (tmp_path / "whatif" / "config.toml").write_text('theme = "nord"')
    assert read_config().theme == "nord"


def test_a_whole_file(config_file):
    config = read_config(config_file(WHOLE))
    assert (config.theme, config.marker, config.plain) == ("whatif-colour-blind", "block", True)
    assert config.keys == {"parameter.more": ("x", "plus"), "parameter.find": ("question_mark",)}
    assert keymap(config, DEFAULTS) == {"parameter.more": "x,plus", "parameter.find": "question_mark"}


def test_an_empty_file_says_nothing(config_file):
    assert read_config(config_file("")) == Config()


def test_the_environment_names_another_file(config_file, monkeypatch):
    monkeypatch.setenv("WHATIF_CONFIG", str(config_file(WHOLE)))
    assert read_config().marker == "block"
    monkeypatch.setenv("WHATIF_CONFIG", "/dev/null")
    assert read_config() == Config()


def test_a_named_file_must_be_there(monkeypatch, tmp_path):
    monkeypatch.setenv("WHATIF_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(InvalidFileError, match=r"none\.toml: cannot be read: No such file"):
        read_config()


@pytest.mark.parametrize(
    ("inputs", "theme"),
    [("dracula", "dracula"), ("of-another-program, nord", "nord"), ("of-another-program", "gruvbox"), ("", "gruvbox")],
)
def test_the_theme_of_the_environment_goes_first_where_we_know_it(config_file, monkeypatch, inputs, theme):
    monkeypatch.setenv("TEXTUAL_THEME", inputs)
    assert read_config(config_file('theme = "gruvbox"')).theme == theme


def test_everything_wrong_is_told_at_once_with_its_place(problems):
    keys = '[keys]\n  "parameter.more" = "ctrl+s"\nparameter.sweep = 3\n'
    text = f'theme = "whatif-color-blind"\nmarker = "dots"\nthem = 1\n{keys}'
    assert problems(text) == [
        (
            1, 1, "theme",
            "`whatif-color-blind`: no such theme; did you mean `whatif-colour-blind` or `whatif-colour-blind-light`?",
        ),
        (2, 1, "marker", "`dots` is not one of braille, block, ascii, pixels"),
        (3, 1, "them", "`them`: unknown key; did you mean `theme`?"),
        (5, 3, "keys.parameter.more", "`ctrl+s` halts the terminal; choose another key"),
        (6, 1, "keys.parameter.sweep", "`3` must be a text in quotes, keys separated by commas"),
    ]  # fmt: skip


def test_a_theme_like_no_other_is_answered_with_all(problems):
    ((_, _, _, message),) = problems('theme = "zzz"')
    assert "known themes: whatif-dark, " in message
    assert "textual-light" in message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[keys", (1, 1), "not TOML: Expected ']'"),
        ("theme = 3", (1, 1), "`3` must be a text in quotes"),
        ("marker = true", (1, 1), "`True` is not one of braille, block, ascii, pixels"),
        ('\nkeys = "l"', (2, 1), "`l` must be a table"),
        (
            '[keys]\n"leaf.more" = "x"',
            (2, 1),
            "`leaf.more`: no such key binding; did you mean `parameter.more`?",
        ),
        (
            '[keys]\n"parameter.mor" = "x"',
            (2, 1),
            "`parameter.mor`: no such key binding; did you mean `parameter.more`?",
        ),
        ('[keys]\n"go.timeline" = "5"', (2, 1), "`go.timeline`: pages are in groups now; use `go.explain`"),
        ('[keys]\n"go.runs" = "@"', (2, 1), "`go.runs`: pages are in groups now; use `go.data`"),
        ('[keys.parameter]\nmor = "x"', (2, 1), "`parameter.mor`: no such key binding; did you mean `parameter.more`?"),
        ('[keys]\n"parameter.find" = "s"', (2, 1), "`s` is also a key of `parameter.sweep`; give that one another key"),
        (
            '[keys]\n"parameter.find" = "+"',
            (2, 1),
            "`plus` is also a key of `parameter.more`; give that one another key",
        ),
        ('[keys]\n"parameter.more" = ""', (2, 1), "an empty key; the comma itself is called `comma`"),
        ('[keys]\n"parameter.more" = "x,,y"', (2, 1), "an empty key; the comma itself is called `comma`"),
        ('[keys]\n"parameter.more" = "pgup"', (2, 1), "no terminal sends such a key; did you mean `pageup`"),
        ('[keys]\n"parameter.more" = "Ctrl+X"', (2, 1), "no terminal sends such a key; did you mean `ctrl+x`?"),
        ('[keys]\n"parameter.more" = "shift+ctrl+left"', (2, 1), "did you mean `ctrl+shift+left`?"),
        ('[keys]\n"parameter.more" = "shift+a"', (2, 1), "`shift+a`: terminals send the character that shift makes"),
        ('[keys]\n"parameter.more" = "hyperspace"', (2, 1), "`hyperspace`: no terminal sends such a key"),
        ('[keys]\n"parameter.more" = "\\u0001"', (2, 1), "no terminal sends such a key"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(problems, text, place, words):
    ((line, column, _, message),) = problems(text)
    assert (line, column) == place
    assert words in message


def test_two_bindings_of_one_area_may_swap_their_keys_but_not_share_one(config_file, problems):
    swapped = read_config(config_file('[keys]\n"parameter.find" = "s"\n"parameter.sweep" = "slash"'))
    assert keymap(swapped, DEFAULTS) == {"parameter.find": "s", "parameter.sweep": "slash"}
    shared = problems('[keys]\n"parameter.find" = "x"\n"parameter.sweep" = "y,x"')
    assert [(line, key) for line, _, key, _ in shared] == [(2, "keys.parameter.find"), (3, "keys.parameter.sweep")]


def test_areas_do_not_disturb_each_other(config_file):
    config = read_config(config_file('[keys]\n"parameter.find" = "h"'))
    assert keymap(config, DEFAULTS) == {"parameter.find": "h"}


@pytest.mark.parametrize("key", sorted(FORBIDDEN_KEYS))
def test_keys_of_the_terminal_are_refused(problems, key):
    ((_, _, _, message),) = problems(f'[keys]\n"parameter.more" = "x, {key}"')
    assert message.startswith(f"`{key}` ")
    assert message.endswith("; choose another key")


def received(text):
    """The names of the keys that a terminal's characters arrive as."""
    parser = XTermParser()
    return [event.key for part in (text, "") for event in parser.feed(part) if isinstance(event, Key)]


def test_those_that_arrive_as_other_keys_do():
    assert received("\x08") == ["backspace"]
    assert received("\x09") == ["tab"]
    assert received("\x0d") == ["enter"]
    assert {"ctrl+h", "ctrl+i", "ctrl+m"} <= FORBIDDEN_KEYS


SENT = [
    *string.ascii_letters, *string.digits, *string.punctuation, "é", "ß", "§",
    *(chr(code) for code in range(1, 27) if f"ctrl+{chr(code + 96)}" not in FORBIDDEN_KEYS),
    "\x1b[A", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[2~", "\x1b[3~", "\x1b[Z", "\x7f", "\r", "\t", " ",
    "\x1bOP", "\x1b[24~", "\x1b[1;2D", "\x1b[1;5C", "\x1b[1;6A", "\x1b[1;3B", "\x1bx", "\x1bX", "\x1b[97;6u",
    "\x1b[13;2u", "\x1b[32;2u", "\x1b[47;5u", "\x1c", "\x1d", "\x1f", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("sequence", SENT, ids=ascii)
def test_every_key_that_a_terminal_sends_may_be_bound(config_file, sequence):
    (key,) = received(sequence)
    # A sign beyond those of ASCII is known by itself, not by its name.
    key = sequence if key == "section_sign" else key
    config = read_config(config_file(f'[keys]\n"plot.left" = "{key}"'))
    assert list(keymap(config, DEFAULTS)) == ["plot.left"]


class Area(Widget, can_focus=True):
    """Something with keys."""

    BINDINGS = [  # noqa: RUF012
        Binding("right,plus,l", "note('more')", "more", id="parameter.more"),
        Binding("s", "note('sweep')", "sweep", id="parameter.sweep"),
        Binding("z", "note('fixed')", "fixed"),
        ("w", "note('short')", "short"),
    ]

    def action_note(self, name):
        self.app.noted.append(name)


class Keyed(App[None]):
    """Runs with the keys of a person."""

    def __init__(self, config):
        super().__init__()
        self.noted = []
        self.set_keymap(keymap(config, default_keys([Area])))

    def compose(self):
        yield Area()


def test_the_keys_of_the_person_do_what_they_say(config_file):
    config = read_config(config_file('[keys]\n"parameter.more" = "x, ?"'))

    async def noted():
        app = Keyed(config)
        async with app.run_test() as pilot:
            app.query_one(Area).focus()
            await pilot.press("x", "question_mark", "right", "l", "plus", "s", "z", "w")
        return app.noted

    assert asyncio.run(noted()) == ["more", "more", "sweep", "fixed", "short"]


def test_the_keys_of_the_program_are_those_of_its_bindings_with_an_id():
    assert default_keys([Area]) == {"parameter.more": "right,plus,l", "parameter.sweep": "s"}


def test_every_key_of_the_program_can_be_changed_and_none_is_one_of_the_terminal():
    defaults = all_keys(Explorer)
    modules = (import_module(f"{package.__name__}.{item.name}") for package in (dialogs, screens, widgets) for item in
               iter_modules(package.__path__))  # fmt: skip
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    bound = default_keys(kind for kind in kinds if issubclass(kind, DOMNode) and kind.__module__.startswith("whatif."))
    assert bound.keys() <= defaults.keys()
    assert {key for keys in defaults.values() for key in keys.split(",")}.isdisjoint(FORBIDDEN_KEYS)


def test_windows_have_their_keys_for_themselves(config_file):
    defaults = all_keys(Explorer)
    for line in ('"form.accept" = "f1"', '"jobs.stop" = "s"'):
        assert keymap(read_config(config_file(f"[keys]\n{line}")), defaults)


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(InvalidFileError, match="cannot be read: Is a directory"):
        read_config(tmp_path / "config.toml")
