"""Performs commands in order, quick ones at once and others in a worker process; keeps the history."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final, cast

from whatif.core.session import Session
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.errors import UsageError, WhatifError
from whatif.tui.commands.explorer_commands import Change, Choose, Edit, Nudge, Restore, Show, parse_line
from whatif.tui.commands.history import History
from whatif.tui.commands.performing import CommandOutcome, is_instant, perform, perform_afresh, queued, supersedes
from whatif.tui.jobs.worker import Worker
from whatif.tui.state import ExplorerState, View
from whatif.tui.variants.variant_commands import Go
from whatif.units import counted

QUICK_SECONDS: Final = 0.010
"""Time above which a command is performed in the worker process."""
_GRACE_SECONDS: Final = 0.3
"""Time that a superseded job may still take: starting a new process takes longer."""
_COUNTING: Final = "whatif.models.placement"
"""Module of the functions whose results a cache keeps."""


class CommandRunner:
    """Holds the state; calls `shown(error)` whenever it has changed or an error is to be reported."""

    def __init__(self, state: ExplorerState, shown: Callable[[str], None]) -> None:
        self.state = state
        self.history = History()
        self.worker = Worker()
        self._shown = shown
        self._counting: dict[tuple[str, bool], float] = {}
        self._note_counting()
        self._running: tuple[Change, ...] = ()
        self._waiting: list[Change | Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._stale = False
        self.error = ""

    @property
    def busy(self) -> bool:
        """Whether something is being computed."""
        return bool(self._running)

    async def idle(self) -> None:
        """Wait until nothing is being computed."""
        while self.busy:
            await asyncio.sleep(0.005)

    @property
    def view(self) -> View:
        """View as it will be after all pending commands."""
        view = self.state.view
        for change in (*self._running, *self._waiting):
            if isinstance(change, Show):
                # A wrong value is reported when its turn comes.
                with suppress(UsageError):
                    view = view.with_entry(change.key, change.value)
        return view

    def ask(self, request: Change | Choose) -> None:
        """Perform a change, now or after the pending ones; a `Choose` is resolved against the pending view."""
        try:
            change = request.on(self.view) if isinstance(request, Choose) else request
        except WhatifError as problem:
            self._failed(problem)
            return
        if not self._running:
            self._begin((change,))
        elif not self._waiting and supersedes(change, self._running[-1]):
            self._waiting = [*self._running[:-1], change]
            self._stale = True
            rest = _GRACE_SECONDS - (time.perf_counter() - self._began)
            asyncio.get_running_loop().call_later(max(rest, 0.0), self._give_up, self._running)
        else:
            last = self._waiting.pop() if self._waiting and not callable(self._waiting[-1]) else None
            self._waiting += queued(() if last is None else (cast("Change", last),), change)

    def later(self, action: Callable[[], None]) -> None:
        """Run an action that requires all pending commands to be done: now, or when its turn comes."""
        if self.busy:
            self._waiting.append(action)
        else:
            action()

    def undo(self) -> None:
        """Undo the last change."""
        self.later(lambda: self._go(self.history.undo))

    def redo(self) -> None:
        """Redo the change that was undone last."""
        self.later(lambda: self._go(self.history.redo))

    def _go(self, where: Callable[[], Restore]) -> None:
        # The state to restore is only known after all pending commands.
        try:
            self.ask(where())
        except UsageError as problem:
            self._failed(problem)

    def _failed(self, problem: WhatifError) -> None:
        self.error = str(problem)
        self._shown(self.error)

    def stop(self) -> None:
        """Cancel the running command and drop the waiting ones."""
        dropped = len(self._running) + len(self._waiting)
        self._waiting = []
        self._end()
        self._shown(f"stopped; {counted(dropped, 'command')} dropped" if dropped else "")

    def close(self) -> None:
        """Cancel all work and release the worker process."""
        self._end()
        self.worker.close()

    async def replay(
        self, lines: Iterable[str], save: Callable[[], None], begun: Callable[[int], None] = lambda number: None
    ) -> None:
        """Perform the lines of a journal in order; raise `UsageError` at the first that fails.

        `begun` is called with the number of each line before it is performed.
        """
        for number, line in enumerate(lines, 1):
            begun(number)
            if line.strip() and not line.lstrip().startswith("#"):
                self.error = ""
                try:
                    self._do(line, save)
                    await self.idle()
                except WhatifError as problem:
                    self.error = str(problem)
                if self.error:
                    raise UsageError(f"line {number}: {self.error}")

    def _do(self, line: str, save: Callable[[], None]) -> None:
        change = parse_line(line)
        if isinstance(change, str):
            {"undo": self.undo, "redo": self.redo, "save": save}[change]()
        else:
            self.ask(change)

    def _begin(self, changes: tuple[Change, ...]) -> None:
        if all(is_instant(change) for change in changes) or (len(changes) == 1 and self._is_quick(changes[0])):
            self._take(perform(self.state, changes))
        else:
            self._running, self._stale, self._began = changes, False, time.perf_counter()
            self._task = asyncio.get_running_loop().create_task(self._compute(changes))

    def _is_quick(self, change: Change) -> bool:
        """Whether a change will be quick, because the terms that it recomputes were quick before."""
        session = self.state.session
        # A subclass may do more than an edit.
        if type(change) is Edit:
            return session.is_number(change.path, change.text) and self._is_quick_at(change.path)
        if isinstance(change, Nudge):
            return change.path in session.program.parameters and self._is_quick_at(change.path)
        if isinstance(change, Restore):
            inputs, terms = change.state.inputs, list(session.program.terms)
            same = inputs.grid is session.grid and inputs.program.terms is session.program.terms
            same = same and self.state.has_curves(change.state.variants)
            return same and self._expected(terms, terms) <= QUICK_SECONDS
        return isinstance(change, Go) and self.state.knows(change.variant)

    def _is_quick_at(self, path: str) -> bool:
        """Whether another number of a parameter will be quick."""
        session = self.state.session
        terms = session.program.downstream(path)
        over = [] if path in session.grid.parameters() else terms
        return not session.parameter(path).structural and self._expected(terms, over) <= QUICK_SECONDS

    def _expected(self, at: list[str], over: list[str]) -> float:
        """Largest measured time of some terms at the point and others over the sweep (s)."""
        session = self.state.session
        if session.evaluation is None:
            return math.inf
        point, sweep = session.at.seconds, session.evaluation.seconds
        return sum(max(point.get(name, 0.0), self._counting.get((name, False), 0.0)) for name in at) + sum(
            max(sweep.get(name, 0.0), self._counting.get((name, True), 0.0)) for name in over
        )

    def _note_counting(self) -> None:
        """Remember the time of message counts, which a cache hides when they are repeated."""
        session = self.state.session
        for swept, evaluation in ((False, session.at), (True, session.evaluation)):
            for name, seconds in evaluation.seconds.items() if evaluation is not None else ():
                term = session.program.terms.get(name)
                if term is not None and term.function.__module__ == _COUNTING:
                    key = name, swept
                    self._counting[key] = max(seconds, self._counting.get(key, 0.0))

    async def _compute(self, changes: tuple[Change, ...]) -> None:
        try:
            outcome = await self._performed(changes)
        except WhatifError as problem:
            outcome = CommandOutcome(self.state, (), str(problem))
        self._task, self._running = None, ()
        if not self._stale:
            self._take(outcome)
        self._next()

    async def _performed(self, changes: tuple[Change, ...]) -> CommandOutcome:
        """Outcome of changes performed in the worker process; what it did not change stays the same object here."""
        state, own = self.state.undo_state, self.state.curves
        curves = self.state.light_curves
        shared = [*((part, part) for part in state.parts), *((curves[letter], own[letter]) for letter in curves)]
        return await self.worker.run(perform_afresh, state, changes, curves, shared=shared)

    def _next(self) -> None:
        """Continue with the waiting commands, in order."""
        while self._waiting and not self._running:
            changes = tuple(itertools.takewhile(lambda item: not callable(item), self._waiting))
            first = self._waiting[0]
            self._waiting = self._waiting[max(len(changes), 1) :]
            if callable(first):
                first()
            else:
                self._begin(cast("tuple[Change, ...]", changes))

    def _give_up(self, superseded: tuple[Change, ...]) -> None:
        if self._running is superseded and self._stale:
            self._end()
            self._next()

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            # At once, not when the event loop gets to it: the next job needs a process that listens.
            self.worker.stop()
        self._task, self._running = None, ()

    def _take(self, outcome: CommandOutcome) -> None:
        """Take over an outcome; after an error the last valid picture stays."""
        reported = outcome.error
        if outcome.done:
            # The states that came back from another process are copies: the first is our own.
            first, *rest = outcome.done
            done = ((first[0], self.state.undo_state), *rest)
            self.history.record(replace(outcome, done=done))
            reported = reported or _no_longer_swept(self.state.session, outcome.state.session)
            self.state = outcome.state
            self._note_counting()
        self.error = outcome.error
        self._shown(reported)


def _no_longer_swept(before: Session, after: Session) -> str:
    """Message about swept parameters that the new platform lacks; empty if there are none."""
    known = {PLATFORM_PARAMETER, *after.program.parameters}
    gone = [path for path in before.grid.parameters() if path not in known]
    return f"{', '.join(gone)} does not exist on this platform; removed from the sweep" if gone else ""
