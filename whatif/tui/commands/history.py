"""History: states for undo and redo, and the journal of commands, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from whatif.core.scenario import Scenario
from whatif.core.session import SessionInputs
from whatif.errors import UsageError, WhatifError
from whatif.paths import is_file
from whatif.schema.phase_edits import PhaseEdit, edited, edits_of, on_disk
from whatif.schema.toml import Document
from whatif.tui.commands.explorer_commands import Adopt, Change, EditAll, Nudge, Reread, Restore, Show
from whatif.tui.commands.performing import CommandOutcome
from whatif.tui.state import ExplorerState, UndoState
from whatif.tui.variants.variant_commands import Delete, Fork, Go
from whatif.tui.variants.variant_set import BASELINE, LETTERS, on_text
from whatif.tui.view_entries import stated_entries

_DISTANCE: Final = re.compile(r"platform\.network\.\w+\.")
_COMPILED: Final = 16
"""Latest states whose compiled programs are kept: some 1 MB each."""


@dataclass(slots=True)
class History:
    """States before and after the current one, and the journal so far."""

    past: list[UndoState] = field(default_factory=list)
    future: list[UndoState] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _last: Change | None = None

    def record(self, outcome: CommandOutcome) -> None:
        """Record the changes of an outcome."""
        afters = [*(before for _, before in outcome.done[1:]), outcome.state.undo_state]
        for (change, before), after in zip(outcome.done, afters, strict=False):
            if isinstance(change, Reread):
                self.rebase(on_disk(change.scenario.document), {})
                continue
            self.lines.append(change.line())
            if isinstance(change, Restore):
                self._moved(change, before)
            elif not _is_navigation(change) and not before.same_as(after):
                self._changed(change, before)

    def _changed(self, change: Change, before: UndoState) -> None:
        # Many small steps of one parameter are one thing to take back.
        if not (isinstance(change, Nudge) and change.continues(self._last) and self.past):
            self.past.append(before)
            old = slice(-_COMPILED - 1, -_COMPILED)
            self.past[old] = [state.uncompiled() for state in self.past[old]]
        self.future.clear()
        self._last = change

    def _moved(self, change: Restore, before: UndoState) -> None:
        source, target = (self.past, self.future) if change.word == "undo" else (self.future, self.past)
        source.pop()
        target.append(before)
        self._last = None

    def undo(self) -> Restore:
        """Change that undoes the last one; raise `UsageError` without one."""
        if not self.past:
            raise UsageError("there is nothing to undo")
        return Restore(self.past[-1], "undo")

    def redo(self) -> Restore:
        """Change that redoes the one undone last; raise `UsageError` without one."""
        if not self.future:
            raise UsageError("there is nothing to redo")
        return Restore(self.future[-1], "redo")

    def rebase(self, document: Document, before: Mapping[str, str], saved: tuple[PhaseEdit, ...] = ()) -> None:
        """Continue after the file got another text.

        Where the text took in edits, `before` are the values that it had, and `saved` the edits of phases. States that
        lack one of these cannot be brought back.
        """
        for states in (self.past, self.future):
            states[:] = _all_on(states, document, before, saved)
        self._last = None


def _all_on(
    states: list[UndoState], document: Document, before: Mapping[str, str], saved: tuple[PhaseEdit, ...]
) -> list[UndoState]:
    """The latest states, as far as they can be brought back on another text of the file."""
    kept: list[UndoState] = []
    with suppress(WhatifError):
        for state in reversed(states):
            kept.insert(0, _on(state, document, before, saved))
    return kept


def _on(state: UndoState, document: Document, before: Mapping[str, str], saved: tuple[PhaseEdit, ...]) -> UndoState:
    scenario = state.inputs.scenario
    edits = edits_of(scenario.document)
    if edits[: len(saved)] != saved:
        raise UsageError("the phases are saved")
    for edit in edits[len(saved) :]:
        document = edited(document, edit, scenario.folders)
    inputs = SessionInputs(on_text(scenario, document, before), state.inputs.grid)
    variants = state.variants.rebased(scenario, document, before) if before else state.variants
    return replace(state, inputs=inputs, variants=variants)


def _is_navigation(change: Change) -> bool:
    """Whether a change only goes to another page, which undo skips."""
    return isinstance(change, Show) and change.key == "screen"


def _folder_of(scenario: Scenario) -> str:
    """Extra folder that holds the platform of a scenario; empty if it is in a usual one."""
    holding = (str(folder) for folder in scenario.folders if is_file(folder / f"{scenario.platform}.toml"))
    return next(holding, "")


def _together(sets: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Edits one by one, but those of one distance of the network together: they may make its table."""
    for _, group in groupby(sets.items(), lambda item: _table_of(item[0])):
        yield tuple(group)


def _table_of(path: str) -> str:
    distance = _DISTANCE.match(path)
    return path if distance is None else distance[0]


def lines_to(state: ExplorerState) -> list[str]:
    """Shortest commands that lead from the file to the state."""
    axes = state.session.grid.axes
    lines = _lines_of_variants(state)
    if all(len(axis.parameters) == 1 for axis in axes):
        texts = [next(iter(axis.texts.items())) for axis in axes]
        lines += [f"{word} {path} = {text}" for word, (path, text) in zip(("sweep", "also"), texts, strict=False)]
    shown = ((view.PAGE, stated_entries(view)) for view in state.unsaved_views())
    return lines + [Show(f"{page}.{name}", text).line() for page, texts in shown for name, text in texts.items()]


def _lines_of_variants(state: ExplorerState) -> list[str]:
    """Commands that make each variant in turn, those of the letters between them too, and go to the present one."""
    items, present = {item.letter: item for item in state.listed()}, state.variants.current
    if state.changed and set(items) == {BASELINE, present} and not items[present].name:
        baseline = _lines_of(items[BASELINE].scenario)
        return [*baseline, *(["pin", "revert"] if baseline else []), *_lines_of(state.session.scenario)]
    lines = _lines_of(items[BASELINE].scenario)
    lines += ["pin"] if lines else []
    between = LETTERS[1 : LETTERS.index(max(items)) + 1]
    for letter in between:
        name, scenario = (items[letter].name, items[letter].scenario) if letter in items else ("", None)
        lines.append(Fork(name).line())
        lines += ["revert", *_lines_of(scenario)] if scenario is not None else []
    lines += [Delete(letter).line() for letter in between if letter not in items]
    if not between:
        return lines
    # Deleting the present variant leaves a draft that equals the baseline.
    free = state.variants.free_letter() if present not in items else ""
    lines += [Go(BASELINE).line(), Fork().line(), Delete(free).line()] if free else [Go(present).line()]
    return lines


def _lines_of(scenario: Scenario) -> list[str]:
    lines = [Adopt(scenario.platform, _folder_of(scenario)).line()] if scenario.platform is not None else []
    lines += [edit.line() for edit in edits_of(scenario.document)]
    return lines + [EditAll(texts).line() for texts in _together(scenario.overrides)]
