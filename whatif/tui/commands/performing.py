"""Performance of commands: which need no evaluation, which supersede others, and what they lead to in any process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.schema.relative import is_relative
from whatif.tui.commands.explorer_commands import Adopt, Also, Change, Edit, Nudge, Pin, Show, SweepParameter
from whatif.tui.state import ExplorerState, UndoState
from whatif.tui.variants.variant_commands import Fork, Rename
from whatif.tui.variants.variant_set import VariantCurve


def is_instant(change: Change) -> bool:
    """Whether a change requires no evaluation."""
    return isinstance(change, Show | Pin | Fork | Rename)


def queued(queue: tuple[Change, ...], change: Change) -> tuple[Change, ...]:
    """Queue with one more change: superseded changes are dropped, nudges of one parameter are added up."""
    last = queue[-1] if queue else None
    if isinstance(last, Nudge) and isinstance(change, Nudge) and change.continues(last):
        return (*queue[:-1], replace(last, steps=last.steps + change.steps))
    return (*queue[:-1], change) if last is not None and supersedes(change, last) else (*queue, change)


def supersedes(change: Change, last: Change) -> bool:
    """Whether a change supersedes the one before it."""
    if isinstance(change, SweepParameter):
        return isinstance(last, SweepParameter | Also)
    if isinstance(change, Edit):
        return isinstance(last, Edit | Nudge) and last.path == change.path and not is_relative(change.text)
    if isinstance(change, Show):
        return isinstance(last, Show) and last.key == change.key
    return isinstance(change, Adopt) and isinstance(last, Adopt)


@dataclass(frozen=True, slots=True, eq=False)
class CommandOutcome:
    """State after some changes, the changes performed with the state before each, and the error if there was one."""

    state: ExplorerState
    done: tuple[tuple[Change, UndoState], ...]
    error: str


INTERNAL: Final = "internal error"
"""Prefix of messages about defects of the program."""
# How a message names an edit: right for a command line, no help where the parameter is visible.
_OPTION: Final = re.compile(r"^(?:--set [\w.]+=.*?|--platform): ", re.MULTILINE)


def perform(state: ExplorerState, changes: tuple[Change, ...]) -> CommandOutcome:
    """Outcome of changes performed in order; a change that fails has no effect."""
    error, done = "", []
    for change in changes:
        before = state.undo_state
        try:
            state = change.apply(replace(state, note="") if state.note else state)
        except (WhatifError, OSError) as problem:
            error = _OPTION.sub("", str(problem))
        except MemoryError:
            error = f"`{change.line()}` needs more memory than is available"
        except Exception as problem:
            # A defect of the program must not end the session.
            error = f"{INTERNAL}: {type(problem).__name__}: {problem}"
        else:
            done.append((change, before))
    return CommandOutcome(state, tuple(done), error)


def perform_afresh(
    before: UndoState, changes: tuple[Change, ...], curves: Mapping[str, VariantCurve] | None = None
) -> CommandOutcome:
    """`perform` in a worker process, which has no results yet; the largest results are not sent back.

    `curves` of variants that are known are not computed again.
    """
    draft = Session.unswept(before.inputs)
    outcome = perform(ExplorerState(draft, before.variants, before.view, curves or {}), changes)
    state = outcome.state
    if outcome.done and state.session is draft:
        state = state.with_session(Session.of(before.inputs))
    return replace(outcome, state=_light(state))


# What crosses from one process to another: more than this costs more than it saves.
_MOST_KEPT_POINTS: Final = 100_000


def _light(state: ExplorerState) -> ExplorerState:
    if state.session.grid.size <= _MOST_KEPT_POINTS:
        return state
    return replace(state, session=replace(state.session, evaluation=None))
