"""What a person can ask of a session, as plain values: queued, merged and carried out in order, in any thread."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from whatif.engine.session import Session
from whatif.errors import WhatifError


@dataclass(frozen=True, slots=True)
class Edit:
    """Give a leaf another value."""

    path: str
    text: str
    # A typed value may ask for any amount of work.
    small: ClassVar[bool] = False

    def apply(self, session: Session) -> Session:
        """The session with the value."""
        return session.edit(self.path, self.text)


@dataclass(frozen=True, slots=True)
class Nudge:
    """Move a leaf by steps."""

    path: str
    steps: int
    coarse: bool = False
    # A step away from a point that was quick to compute is quick to compute.
    small: ClassVar[bool] = True

    def apply(self, session: Session) -> Session:
        """The session with the leaf moved."""
        return session.nudge(self.path, self.steps, coarse=self.coarse)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sweep a leaf, over a range or over the default one."""

    path: str
    text: str | None = None
    small: ClassVar[bool] = False

    def apply(self, session: Session) -> Session:
        """The session with the sweep."""
        return session.sweep(self.path, self.text)


Change = Edit | Nudge | Sweep
# How a message names an edit: right for a command line, no help where the leaf is in sight.
_SET = re.compile(r"^--set [\w.]+=.*?: ", re.MULTILINE)


def queued(queue: tuple[Change, ...], change: Change) -> tuple[Change, ...]:
    """The queue with one more change; what it makes pointless is dropped, steps of one leaf are added up."""
    last = queue[-1] if queue else None
    if type(last) is not type(change) or last is None:
        return (*queue, change)
    if isinstance(last, Nudge) and isinstance(change, Nudge):
        same = (last.path, last.coarse) == (change.path, change.coarse)
        return (*queue[:-1], replace(last, steps=last.steps + change.steps)) if same else (*queue, change)
    if isinstance(change, Sweep) or last.path == change.path:
        return (*queue[:-1], change)
    return (*queue, change)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What the explorer shows: the session, and the values as opened over the same sweep to compare with."""

    session: Session
    opened: Session

    @classmethod
    def start(cls, session: Session) -> Study:
        """A study at its beginning, where nothing is changed yet."""
        return cls(session, session)

    @property
    def changed(self) -> bool:
        """Whether any value differs from those opened."""
        return self.session.question.sets != self.opened.question.sets

    def after(self, change: Change) -> Study:
        """The study with a change; raise `WhatifError` where it is not allowed."""
        study = Study(change.apply(self.session), self.opened)
        return study._compared() if study.changed else study

    def _compared(self) -> Study:
        """The study with the values as opened over the present sweep, where they have such a one."""
        grid, opened = self.session.grid, self.opened
        if grid is not opened.grid:
            with suppress(WhatifError):
                return Study(self.session, replace(opened.over(grid.axes), grid=grid))
        return self

    @property
    def before(self) -> Session | None:
        """The values as opened over the present sweep; None where nothing is changed or nothing compares."""
        return self.opened if self.changed and self.opened.grid is self.session.grid else None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A study after some changes, what was wrong with the last one that failed, and how long they took."""

    study: Study
    error: str
    seconds: float


def perform(study: Study, changes: tuple[Change, ...], stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Carry out changes in order; one that fails leaves the study as it was."""
    error = ""
    began = time.perf_counter()
    for change in changes:
        if stop():
            break
        try:
            study = study.after(change)
        except WhatifError as problem:
            error = _SET.sub("", str(problem))
        except MemoryError:
            error = f"{change.path}: this needs more memory than there is"
    return Outcome(study, error, time.perf_counter() - began)
