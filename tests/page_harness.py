"""One page of the explorer by itself, for tests: its jobs are done at once, its changes carried out."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from textual.app import App, ComposeResult

from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.schema.shipped import shipped_names
from whatif.tui.commands.explorer_commands import Change, Choose
from whatif.tui.events import ChangeRequested
from whatif.tui.jobs.job import Job
from whatif.tui.pages.page import Page
from whatif.tui.state import ExplorerState
from whatif.tui.themes import series_variables

SIZES = ((10, 3), (12, 5), (20, 6), (30, 9), (44, 14), (58, 26), (74, 20), (70, 28), (110, 12), (140, 42), (300, 80))


# From the smallest to larger ones, and from the largest to smaller ones: a page begins at either end.
GROWING, SHRINKING = SIZES[:6], SIZES[:5:-1]


MACHINES = ("bridges", "lassen", "summit")


def few_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library hold three machines, whatever is added to it."""

    def few(kind: str) -> tuple[str, ...]:
        return MACHINES if kind == "platforms" else shipped_names(kind)

    monkeypatch.setattr("whatif.schema.shipped.shipped_names", few)


def _sent(value: Any) -> Any:
    """What arrives in another process, which need not import pages or widgets for it."""
    data = pickle.dumps(value)
    assert b"whatif.tui.pages" not in data
    assert b"whatif.tui.widgets" not in data
    return pickle.loads(data)  # noqa: S301


class PageApp(App[None]):
    """Shows a study on one page."""

    def __init__(self, kind: type[Page], state: ExplorerState) -> None:
        super().__init__()
        self.kind, self.state = kind, state
        self.failure = ""
        self.changes: list[Change] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return series_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.kind(self.state)

    @property
    def page(self) -> Page:
        return self.query_one(self.kind)

    def show(self, state: ExplorerState, *, work: bool = True) -> None:
        """Show a study; without `work` the answer of its job is still on its way."""
        self.state = state
        self.page.show(state)
        job = self.page.job(state)
        if work:
            self.do(job)

    def do(self, job: Job | None) -> None:
        """Do a job of the page, and give it the answer."""
        if job is not None:
            function, arguments, tells = _sent(job)
            self._take(function(*arguments, *([self._take] if tells else [])))

    def _take(self, value: object) -> None:
        self.page.take(_sent(value))

    def on_change_requested(self, event: ChangeRequested) -> None:
        wish = event.change
        try:
            change = wish.on(self.state.view) if isinstance(wish, Choose) else wish
            self.changes.append(change)
            self.show(change.apply(self.state))
        except WhatifError as problem:
            self.failure = str(problem)


class OnePage:
    """A person at the page."""

    def __init__(self, app: PageApp, pilot) -> None:
        self.app, self.pilot = app, pilot

    @property
    def page(self) -> Page:
        return self.app.page

    @property
    def state(self) -> ExplorerState:
        return self.app.state

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)

    @property
    def text(self) -> str:
        """The screen in one line, without borders and line ends."""
        return " ".join(" ".join(line.strip("│╭╮╰╯ ") for line in self.lines).split())

    def line(self, *words: str) -> str:
        """The first line of the screen that has all the words."""
        return next(line for line in self.lines if all(word in line for word in words))

    async def settle(self) -> None:
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def act(self, action: str, *arguments: object) -> None:
        """What a key of the page asks for: the desk, which hands it on, is not there."""
        getattr(self.page, f"action_{action}")(*arguments)
        await self.settle()

    async def resize(self, size: tuple[int, int]) -> None:
        await self.pilot.resize_terminal(*size)
        await self.settle()

    def fills(self, size: tuple[int, int]) -> bool:
        """Whether something is shown, and to the edges of a screen of some size."""
        return {len(line) for line in self.lines} == {size[0]} and len(self.lines) == size[1] and bool(self.text)

    async def change(self, *changes: Change, work: bool = True) -> None:
        state = self.app.state
        for change in changes:
            state = change.apply(state)
        self.app.show(state, work=work)
        await self.settle()


def on_page(
    kind: type[Page],
    check,
    scenario: str | Session = "jacobi2d",
    size=(140, 42),
    changes: tuple[Change, ...] = (),
) -> None:
    """Show a scenario or a session on a page, after some changes, and let `check(OnePage)` work with it."""

    async def main() -> None:
        session = scenario if isinstance(scenario, Session) else Session.start(Scenario.open(scenario))
        state = ExplorerState.start(session)
        for change in changes:
            state = change.apply(state)
        app = PageApp(kind, state)
        async with app.run_test(size=size) as pilot:
            app.show(state)
            app.page.enter()
            driver = OnePage(app, pilot)
            await driver.settle()
            await check(driver)

    asyncio.run(main())
