"""What a person can ask of a study, as plain values: queued, merged, carried out in any process, written as lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from whatif.core.scenario import Scenario
from whatif.core.session import NudgeSize, Session
from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.tui.seek_job import Seek
from whatif.tui.state import ExplorerState, UndoState, View


@dataclass(frozen=True, slots=True)
class Edit:
    """Give a parameter another value."""

    path: str
    text: str

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the value."""
        return study.asking(study.session.edit(self.path, self.text))

    def line(self) -> str:
        """`set PATH = TEXT`."""
        return f"set {self.path} = {self.text}"


@dataclass(frozen=True, slots=True)
class EditAll:
    """Give several parameters other values at once; a table that all of them make need not be there.

    What was said before of a table that takes another part now says nothing of that one.
    """

    texts: tuple[tuple[str, str], ...]

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the values."""
        question = study.session.question
        parts = tuple(path.removesuffix("extends") for path, _ in self.texts if path.endswith(".extends"))
        kept = {path: text for path, text in question.sets.items() if not path.startswith(parts)}
        sets = {**kept, **dict(self.texts)}
        return study.asking(study.session.asking(question.changed(sets, question.platform)))

    def line(self) -> str:
        """`set PATH = TEXT; PATH = TEXT`."""
        return f"set {'; '.join(f'{path} = {text}' for path, text in self.texts)}"


@dataclass(frozen=True, slots=True)
class Nudge:
    """Move a parameter by steps."""

    path: str
    steps: int
    size: NudgeSize = NudgeSize.FINE

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the parameter moved."""
        return study.asking(study.session.nudge(self.path, self.steps, self.size))

    def line(self) -> str:
        """`nudge PATH = +1 fine`."""
        return f"nudge {self.path} = {self.steps:+d} {self.size.name.lower()}"


@dataclass(frozen=True, slots=True)
class SweepParameter:
    """Sweep one parameter, over a range or over the default one."""

    path: str
    text: str | None = None

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the sweep."""
        return study.asking(study.session.sweep(self.path, self.text))

    def line(self) -> str:
        """`sweep PATH = RANGE`."""
        return _optional("sweep", self.path, self.text)


@dataclass(frozen=True, slots=True)
class Also:
    """Sweep a parameter beside the first one; without a range, one that is swept so already is let go."""

    path: str
    text: str | None = None

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the second axis."""
        session = study.session
        if self.text is None and any(self.path in axis.parameters for axis in session.grid.axes[1:]):
            return study.asking(session.over(session.grid.axes[:1]))
        return study.asking(session.sweep_also(self.path, self.text))

    def line(self) -> str:
        """`also PATH = RANGE`."""
        return _optional("also", self.path, self.text)


@dataclass(frozen=True, slots=True)
class SwapAxes:
    """Exchange the first two axes."""

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the second axis along x."""
        axes = study.session.grid.axes
        if len(axes) < 2:
            raise UsageError("there is one axis only; sweep a second parameter first")
        return study.asking(study.session.over((axes[1], axes[0], *axes[2:])))

    def line(self) -> str:
        """`swap`."""
        return "swap"


@dataclass(frozen=True, slots=True)
class Adopt:
    """Go to another platform; `folder` is looked into as well from now on."""

    name: str
    folder: str = ""

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study on the platform."""
        session, question = study.session, study.session.question
        if self.folder and Path(self.folder) not in question.folders:
            question = replace(question, folders=(*question.folders, Path(self.folder)))
            session = replace(session, asked=replace(session.asked, question=question))
        return study.asking(session.on_platform(self.name))

    def line(self) -> str:
        """`platform NAME` or `platform NAME = FOLDER`."""
        return _optional("platform", self.name, self.folder or None)


@dataclass(frozen=True, slots=True)
class Pin:
    """Compare with the present values from now on."""

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with a new baseline."""
        return study.pinned()

    def line(self) -> str:
        """`pin`."""
        return "pin"


@dataclass(frozen=True, slots=True)
class Revert:
    """Take back the edits of one parameter, or of all: the file's own values hold."""

    path: str = ""

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the values of the file."""
        question = study.session.question
        kept = {path: text for path, text in question.sets.items() if self.path not in ("", path)}
        platform = question.platform if self.path else None
        if kept == question.sets and platform == question.platform:
            return study
        return study.asking(study.session.asking(question.changed(kept, platform)))

    def line(self) -> str:
        """`revert` or `revert PATH`."""
        return f"revert {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Show:
    """Look at the study in another way."""

    key: str
    value: str

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with another entry of its view."""
        return replace(study, view=study.view.with_entry(self.key, self.value))

    def line(self) -> str:
        """`show KEY = VALUE`."""
        return f"show {self.key} = {self.value}"


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """Change a field of the view to a value computed from the view requested last: keys may come faster than frames."""

    key: str
    value_in: Callable[[View], object]

    def on(self, view: View) -> Show:
        """The command that results from the view requested last."""
        return Show(self.key, view.text(self.key, self.value_in(view)))

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study with the entry."""
        return self.on(study.view).apply(study)


@dataclass(frozen=True, slots=True, eq=False)
class Reread:
    """Take in another text of the file; the edits stay."""

    question: Scenario

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study on the new text."""
        return study.over(self.question)

    def line(self) -> str:
        """Nothing: what others write is no command."""
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Restore:
    """Go back, or forth, to a state that the study was in."""

    state: UndoState
    word: str

    def apply(self, study: ExplorerState) -> ExplorerState:
        """The study in that state, looked at on the same screen."""
        view = replace(self.state.view, screen=study.view.screen)
        return study.at(replace(self.state, view=view))

    def line(self) -> str:
        """`undo` or `redo`."""
        return self.word


Change = (
    Edit | EditAll | Seek | Nudge | SweepParameter | Also | SwapAxes | Adopt | Pin | Revert | Show | Reread | Restore
)


def _optional(word: str, path: str, text: str | None) -> str:
    return f"{word} {path}" if text is None else f"{word} {path} = {text}"


_LINE: Final = re.compile(r"(?P<word>\w+)(?:\s+(?P<name>[^\s=]+))?(?:\s*=\s?(?P<text>.*))?")


# Where the next parameter begins in a line with several.
_NEXT: Final = re.compile(r"\s*;\s*(?=[\w-]+(?:\.[\w-]+)+\s*=)")


def _edit(path: str, text: str) -> Edit | EditAll:
    first, *others = _NEXT.split(text)
    pairs = ((name.strip(), value.strip()) for name, _, value in (other.partition("=") for other in others))
    return EditAll(((path, first.strip()), *pairs)) if others else Edit(path, text)


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
    "pin": ("", lambda _, __: Pin()),
    "revert": ("", lambda path, _: Revert(path)),
}
JOURNAL_ONLY: Final = ("undo", "redo", "save")
"""Lines that are about the history or the file and so no change of a study by itself."""


def parse_line(line: str) -> Change | str:
    """The change that a line of a journal stands for, or one of `JOURNAL_ONLY`; raise `UsageError`."""
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


def is_instant(change: Change) -> bool:
    """Whether a change needs no number to be computed."""
    return isinstance(change, Show | Pin)


def queued(queue: tuple[Change, ...], change: Change) -> tuple[Change, ...]:
    """The queue with one more change; what it makes pointless is dropped, steps of one parameter are added up."""
    last = queue[-1] if queue else None
    if isinstance(last, Nudge) and isinstance(change, Nudge) and (last.path, last.size) == (change.path, change.size):
        return (*queue[:-1], replace(last, steps=last.steps + change.steps))
    return (*queue[:-1], change) if last is not None and supersedes(change, last) else (*queue, change)


def supersedes(change: Change, last: Change) -> bool:
    """Whether a change makes the one before it pointless."""
    if isinstance(change, SweepParameter):
        return isinstance(last, SweepParameter | Also)
    if isinstance(change, Edit):
        return isinstance(last, Edit | Nudge) and last.path == change.path
    if isinstance(change, Show):
        return isinstance(last, Show) and last.key == change.key
    return isinstance(change, Adopt) and isinstance(last, Adopt)


@dataclass(frozen=True, slots=True, eq=False)
class CommandOutcome:
    """A study after some changes; those that were carried out with the state before each; what was wrong."""

    study: ExplorerState
    done: tuple[tuple[Change, UndoState], ...]
    error: str
    seconds: float


INTERNAL: Final = "internal error"
"""How a message begins that no user can do anything about."""
# How a message names an edit: right for a command line, no help where the parameter is in sight.
_SET: Final = re.compile(r"^--set [\w.]+=.*?: ", re.MULTILINE)


def perform(study: ExplorerState, changes: tuple[Change, ...]) -> CommandOutcome:
    """Carry out changes in order; one that fails leaves the study as it was."""
    error, done = "", []
    began = time.perf_counter()
    for change in changes:
        before = study.state
        try:
            study = change.apply(study)
        except (WhatifError, OSError) as problem:
            error = _SET.sub("", str(problem))
        except MemoryError:
            error = f"`{change.line()}` needs more memory than there is"
        except Exception as problem:
            # A mistake of ours must not end what a person is doing.
            error = f"{INTERNAL}: {type(problem).__name__}: {problem}"
        else:
            done.append((change, before))
    return CommandOutcome(study, tuple(done), error, time.perf_counter() - began)


def perform_afresh(state: UndoState, changes: tuple[Change, ...]) -> CommandOutcome:
    """`perform` in another process, which has no numbers yet; of its answer the largest stay there."""
    draft = Session.unswept(state.asked)
    outcome = perform(ExplorerState(draft, state.baseline, state.view), changes)
    study = outcome.study
    if outcome.done and study.session is draft:
        study = study.asking(Session.of(state.asked))
    return replace(outcome, study=_light(study))


# What crosses from one process to another: more than this costs more than it saves.
_MOST_KEPT_POINTS: Final = 100_000


def _light(study: ExplorerState) -> ExplorerState:
    if study.session.grid.size <= _MOST_KEPT_POINTS:
        return study
    behind = study.behind and replace(study.behind, evaluation=None)
    return replace(study, session=replace(study.session, evaluation=None), behind=behind)
