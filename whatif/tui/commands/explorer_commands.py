"""Commands of the explorer as plain values, and their lines in the journal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from whatif.core.parts_in_use import EXTENDS
from whatif.core.scenario import Scenario
from whatif.core.session import NudgeSize
from whatif.errors import UsageError, did_you_mean
from whatif.tui.commands.phase_commands import PHASE_LINES, EditPhase
from whatif.tui.commands.seek_command import Seek
from whatif.tui.state import ExplorerState, UndoState, View
from whatif.tui.variants.variant_commands import VariantChange, parse_variant


@dataclass(frozen=True, slots=True)
class Edit:
    """Set a parameter."""

    path: str
    text: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the value."""
        return state.with_session(state.session.edit(self.path, self.text))

    def line(self) -> str:
        """`set PATH = TEXT`."""
        return f"set {self.path} = {self.text}"


@dataclass(frozen=True, slots=True)
class EditAll:
    """Set several parameters at once, creating their table if needed.

    Overrides below a table whose `extends` changes are dropped.
    """

    texts: tuple[tuple[str, str], ...]

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the values."""
        session, scenario = state.session, state.session.scenario
        texts = {path: session.absolute(path, text) for path, text in self.texts}
        parts = tuple(path.removesuffix("extends") for path in texts if path.endswith(EXTENDS))
        kept = {path: text for path, text in scenario.overrides.items() if not path.startswith(parts)}
        fresh = scenario.changed(kept).with_overrides(texts)
        return state.with_session(session.with_scenario(fresh))

    def line(self) -> str:
        """`set PATH = TEXT; PATH = TEXT`."""
        return f"set {'; '.join(f'{path} = {text}' for path, text in self.texts)}"


@dataclass(frozen=True, slots=True)
class Nudge:
    """Nudge a parameter by some steps."""

    path: str
    steps: int
    size: NudgeSize = NudgeSize.FINE

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the parameter moved."""
        return state.with_session(state.session.nudge(self.path, self.steps, self.size))

    def line(self) -> str:
        """`nudge PATH = +1 fine`."""
        return f"nudge {self.path} = {self.steps:+d} {self.size.name.lower()}"

    def continues(self, last: object) -> bool:
        """Whether the last command moved the same parameter by steps of the same size."""
        return isinstance(last, Nudge) and (self.path, self.size) == (last.path, last.size)


@dataclass(frozen=True, slots=True)
class SweepParameter:
    """Sweep one parameter, over a range or over its default range."""

    path: str
    text: str | None = None

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the sweep."""
        return state.with_session(state.session.sweep(self.path, self.text))

    def line(self) -> str:
        """`sweep PATH = RANGE`."""
        return _optional("sweep", self.path, self.text)


@dataclass(frozen=True, slots=True)
class Also:
    """Sweep a second parameter; without a range, stop sweeping it if it is the second one."""

    path: str
    text: str | None = None

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the second axis."""
        session = state.session
        if self.text is None and any(self.path in axis.parameters for axis in session.grid.axes[1:]):
            return state.with_session(session.over(session.grid.axes[:1]))
        return state.with_session(session.sweep_also(self.path, self.text))

    def line(self) -> str:
        """`also PATH = RANGE`."""
        return _optional("also", self.path, self.text)


@dataclass(frozen=True, slots=True)
class SwapAxes:
    """Exchange the first two axes."""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the second axis along x."""
        axes = state.session.grid.axes
        if len(axes) < 2:
            raise UsageError("there is one axis only; sweep a second parameter first")
        return state.with_session(state.session.over((axes[1], axes[0], *axes[2:])))

    def line(self) -> str:
        """`swap`."""
        return "swap"


@dataclass(frozen=True, slots=True)
class Adopt:
    """Change the platform; `folder` joins the folders that are searched for platforms."""

    name: str
    folder: str = ""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State on the platform, with a note of the swept parameters that it lacks."""
        session, scenario = state.session, state.session.scenario
        if self.folder and Path(self.folder) not in scenario.folders:
            scenario = replace(scenario, folders=(*scenario.folders, Path(self.folder)))
            session = replace(session, inputs=replace(session.inputs, scenario=scenario))
        adopted = session.on_platform(self.name)
        kept = {axis.name for axis in adopted.grid.axes}
        lost = ", ".join(axis.name for axis in session.grid.axes if axis.name not in kept)
        name = adopted.program.loaded.scenario.platform.name
        note = f"no longer swept: {lost}, which {name} does not have" if lost else ""
        return replace(state.with_session(adopted), note=note)

    def line(self) -> str:
        """`platform NAME` or `platform NAME = FOLDER`."""
        return _optional("platform", self.name, self.folder or None)


@dataclass(frozen=True, slots=True)
class Pin:
    """Make the current values the baseline."""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with a new baseline."""
        return state.pinned()

    def line(self) -> str:
        """`pin`."""
        return "pin"


@dataclass(frozen=True, slots=True)
class Revert:
    """Revert one parameter, or all, to the values of the file."""

    path: str = ""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the values of the file."""
        scenario = state.session.scenario
        kept = {path: text for path, text in scenario.overrides.items() if path != self.path}
        if not state.unsaved() if not self.path else kept == scenario.overrides:
            return state
        fresh = scenario.changed(kept) if self.path else scenario.unedited()
        return state.with_session(state.session.with_scenario(fresh))

    def line(self) -> str:
        """`revert` or `revert PATH`."""
        return f"revert {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Show:
    """Set a field of the view."""

    key: str
    value: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with another entry of its view."""
        return replace(state, view=state.view.with_entry(self.key, self.value))

    def line(self) -> str:
        """`show KEY = VALUE`."""
        return f"show {self.key} = {self.value}"


def study_changes(file: str) -> tuple[Show, ...]:
    """Commands that show the page of a study as its file states it."""
    return Show("study.values", ""), Show("study.file", file), Show("screen", "study")


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """Change a field of the view to a value computed from the view requested last: keys may come faster than frames."""

    key: str
    value_in: Callable[[View], object]

    def on(self, view: View) -> Show:
        """The command that results from the view requested last."""
        return Show(self.key, view.text(self.key, self.value_in(view)))

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the entry."""
        return self.on(state.view).apply(state)


@dataclass(frozen=True, slots=True, eq=False)
class Reread:
    """Take over a changed file; the edits stay."""

    scenario: Scenario

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State on the new text."""
        return state.over(self.scenario)

    def line(self) -> str:
        """Empty: changes made by others are not journalled."""
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Restore:
    """Restore an earlier or later state of the history."""

    state: UndoState
    word: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """Kept state, on the screen that is visible now."""
        view = replace(self.state.view, screen=state.view.screen)
        return state.at(replace(self.state, view=view))

    def line(self) -> str:
        """`undo` or `redo`."""
        return self.word


Change = (
    Edit | EditAll | EditPhase | Seek | Nudge | SweepParameter | Also | SwapAxes | Adopt | Pin | Revert | Show | Reread
    | Restore | VariantChange
)  # fmt: skip


def _optional(word: str, path: str, text: str | None) -> str:
    return f"{word} {path}" if text is None else f"{word} {path} = {text}"


_LINE: Final = re.compile(r"(?P<word>(?:phase\s+)?\w+)(?:\s+(?P<name>[^\s=]+))?(?:\s*=\s?(?P<text>.*))?")


# Where the next parameter begins in a line with several.
_NEXT: Final = re.compile(r"\s*;\s*(?=[\w-]+(?:\.[\w-]+)+\s*=)")


def _edit(path: str, text: str) -> Edit | EditAll:
    first, *others = _NEXT.split(text)
    pairs = ((name.strip(), value.strip()) for name, _, value in (other.partition("=") for other in others))
    if others or path.endswith(EXTENDS):
        return EditAll(((path, first.strip()), *pairs))
    return Edit(path, text)


def _nudge(path: str, text: str) -> Nudge:
    steps, _, size = text.partition(" ")
    sizes = [step.name.lower() for step in NudgeSize]
    try:
        return Nudge(path, int(steps), NudgeSize[(size.strip() or "fine").upper()])
    except (ValueError, KeyError):
        raise UsageError(f"nudge {path} = {text}: expected whole steps and one of {', '.join(sizes)}") from None


# A line of a journal by its word: what it needs besides, and the change it stands for.
_WORDS: Final[dict[str, tuple[str, Callable[[str, str], Change]]]] = {
    "set": ("PATH = VALUE", _edit),
    "seek": ("PATH = TARGET", Seek),
    "nudge": ("PATH = STEPS SIZE", _nudge),
    "sweep": ("PATH", lambda path, text: SweepParameter(path, text or None)),
    "also": ("PATH", lambda path, text: Also(path, text or None)),
    "platform": ("NAME", Adopt),
    "show": ("KEY = VALUE", Show),
    "swap": ("", lambda _, __: SwapAxes()),
    "variant": ("fork, go, delete or rename", parse_variant),
    "pin": ("", lambda _, __: Pin()),
    "revert": ("", lambda path, _: Revert(path)),
    **PHASE_LINES,
}
JOURNAL_ONLY: Final = ("undo", "redo", "save")
"""Commands on the history or the file, which are not changes of the state."""


def parse_line(line: str) -> Change | str:
    """Change of a journal line, or one of `JOURNAL_ONLY`; raise `UsageError` for any other line."""
    words = (*_WORDS, *JOURNAL_ONLY)
    found = _LINE.fullmatch(line.strip())
    word = found["word"] if found else line.split(maxsplit=1)[0]
    if found is None or word not in words:
        raise UsageError(f"`{line.strip()}`: unknown command{did_you_mean(word, words)}; known: {', '.join(words)}")
    if word in JOURNAL_ONLY:
        return word
    needs, make = _WORDS[word]
    name, text = found["name"] or "", (found["text"] or "").strip()
    if (needs and not name) or ("=" in needs and found["text"] is None):
        raise UsageError(f"`{line.strip()}`: expected `{word} {needs}`")
    return make(name, text)
