"""Entries of the palette: commands, pages, parameters, phases, results, platforms and scenario files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from textual.actions import parse
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from whatif.core.sweep_figure import columns_to_plot
from whatif.schema.catalogue import CatalogueEntry
from whatif.tui.commands.explorer_commands import Adopt, Show, study_changes
from whatif.tui.commands.phase_commands import PHASES
from whatif.tui.decisions.titles import DECISIONS
from whatif.tui.events import FileRequested
from whatif.tui.page_registry import FIRST_PAGE, screens
from whatif.tui.palette.command_names import command_name, synonyms
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.widgets.parameter_rows import matters
from whatif.tui.widgets.parameter_tree import ParameterTree

_KINDS: Final = {
    "command": (),
    "page": (),
    "question": (),
    "phase": ("phase",),
    "result": ("result",),
    "parameter": (),
    "platform": ("platform", "machine"),
    "scenario": ("scenario",),
    "study": ("study", "procurement", "bids"),
    "unused": (),
}
"""Kinds of entries with the words for all of a kind; of two that fit as well, the one of the earlier kind is better."""
_ORDER: Final = tuple(_KINDS)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Entry:
    """Something that the palette finds by name, synonyms or explanation, and runs."""

    name: str
    kind: str
    words: str
    run: Callable[[], object]
    key: str = ""
    synonyms: str = ""

    @cached_property
    def _parts(self) -> tuple[str, list[str], list[str], list[str]]:
        others = [word.strip() for word in self.synonyms.lower().split(",") if word.strip()]
        others += _KINDS[self.kind]
        return self.name.lower(), _WORD.findall(self.name.lower()), others, _WORD.findall(self.words.lower())

    def score(self, query: str) -> float:
        """Score of the entry for a query in lower case, 0 without a match."""
        words = query.split()
        whole = self._fit(query)
        fit = max(whole, min(map(self._fit, words)) - 1) if len(words) > 1 else whole
        return fit and fit - _ORDER.index(self.kind) / 10 - min(len(self.name), 99) / 1000

    def _fit(self, text: str) -> float:
        """Score of the entry for a text: the larger its part of a name, the better."""
        name, parts, others, words = self._parts
        if text == name:
            return 100
        if text in others:
            return 90
        ranked = ((80, [name]), (70, parts), (60, others), (40, words))
        begun = (fit for fit, texts in ranked if any(item.startswith(text) for item in texts))
        return next(begun, 30 if text in name else 20 if len(text) > 2 and text in self.synonyms.lower() else 0)


def best(entries: Iterable[Entry], query: str, most: int = 50) -> list[Entry]:
    """Entries that fit a query, the best first."""
    text = " ".join(query.lower().split())
    scored = [(entry.score(text), entry) for entry in entries]
    found = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
    return [entry for _, entry in found[:most]]


def commands(screen: MainScreen) -> Iterator[Entry]:
    """Entries for keys, except those that move a cursor; pages have their own entries."""
    owners: tuple[tuple[App[Any] | Widget, Iterable[BindingType]], ...] = (
        (screen.app, screen.app.BINDINGS),
        (screen, screen.key_list),
        (screen.query_one(ParameterTree), ParameterTree.BINDINGS),
    )
    keys = {active.binding.id: active.binding for active in screen.active_bindings.values()}
    for owner, bindings in owners:
        for binding in bindings:
            if isinstance(binding, Binding) and binding.tooltip and not binding.action.startswith("go_group("):
                _, action, arguments = parse(binding.action)
                if owner is not screen or screen.check_action(action, arguments) is not False:
                    key = screen.app.get_key_display(keys.get(binding.id, _first_key(binding)))
                    yield command(binding, partial(owner.run_action, binding.action), key)


def _first_key(binding: Binding) -> Binding:
    return next(iter(Binding.make_bindings([binding])))


def command(binding: Binding, run: Callable[[], object], key: str = "") -> Entry:
    """Entry of a key binding."""
    name = command_name(binding)
    return Entry(name, "command", binding.tooltip, run, key, synonyms(name))


def system_commands(screen: Screen[Any]) -> Iterator[Entry]:
    """Commands of Textual, but those that the program has under other names."""
    names = {"Maximize": "Full screen", "Minimize": "Leave full screen"}
    for title, words, run, _ in screen.app.get_system_commands(screen):
        if title not in ("Quit", "Keys"):
            name = names.get(title, title)
            yield Entry(name, "command", words, run, synonyms=synonyms(name))


def pages(screen: MainScreen) -> Iterator[Entry]:
    """Pages, and questions of the page `decide`."""
    for page in screens():
        yield Entry(page.name, "page", page.words, partial(screen.action_go, page.name), synonyms=page.synonyms)
    for name, words in DECISIONS.items():
        yield Entry(name.capitalize(), "question", words, partial(screen.action_decide, name), synonyms=synonyms(name))


def model_entries(screen: MainScreen) -> Iterator[Entry]:
    """Phases, results and parameters of the scenario."""
    session = screen.state.session
    program = session.program
    for path in dict.fromkeys(path.split(".")[2] for path in program.parameters if path.startswith(PHASES)):
        yield Entry(path, "phase", "Go to the phase", partial(screen.select_parameter, PHASES + path))
    for column in columns_to_plot(session.result):
        words = "Draw the phase" if "." in column else "Draw the result"
        yield Entry(column.removeprefix("terms."), "result", words, partial(draw, screen, column))
    for path, parameter in program.parameters.items():
        kind, short = "parameter" if matters(program, parameter) else "unused", path.rpartition(".")[2]
        words = " ".join(parameter.description.split())
        yield Entry(path, kind, words, partial(screen.select_parameter, path), synonyms=short)


def draw(screen: MainScreen, column: str) -> None:
    """Draw a result on the first page."""
    screen.change(Show("y", column))
    screen.action_go(FIRST_PAGE)


def file_entries(screen: MainScreen, files: Iterable[CatalogueEntry]) -> Iterator[Entry]:
    """Platforms, scenarios and studies; those that cannot be read are left to the page of files."""
    for item in files:
        if item.kind == "platform":
            yield Entry(item.name, item.kind, item.words, partial(screen.change, Adopt(item.name)))
        elif item.kind == "study":
            yield Entry(item.name, item.kind, item.words, partial(open_study, screen, str(item.path)))
        elif item.kind == "scenario" and not item.problem:
            ask = partial(screen.post_message, FileRequested(str(item.path)))
            yield Entry(item.name, "scenario", item.words, ask)


def open_study(screen: MainScreen, file: str) -> None:
    """Go to the page of a study."""
    for change in study_changes(file):
        screen.change(change)
