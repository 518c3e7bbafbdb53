"""Monkey at the explorer: random keys, texts, clicks and resizes from a seed, with what must hold after each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

from textual.widgets import Input

from tests.driver import Driver
from whatif.core.scenario import Scenario
from whatif.schema.phase_edits import PhaseEdit
from whatif.schema.toml import Document
from whatif.tui.app import Explorer
from whatif.tui.commands.explorer_commands import Show
from whatif.tui.commands.history import History
from whatif.tui.commands.performing import INTERNAL
from whatif.tui.keys.all_keys import all_keys
from whatif.tui.page_registry import page_named
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import UndoState
from whatif.tui.widgets.title import Title

MOVES = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab", "space", "backspace")
TEXTS = (
    "x2", "/2", "+10%", "8", "0", "-1", "9e999", "1 TB/s", "900 gb/s", "= 2 * 3", "= 1 / 0", "none", "nan", "", " ",
    "1 .. 64 log 7", "1, 2, 4", "iteration_time <= 5 ms", "halo", "gpu", "lassen", "stencil", "mine", "mine.toml",
    "[bold]", "\u202e", "\x1b[31m", "µ中", "a" * 300, "'", '"', "..", "time ~ ranks", "*.csv", "*.toml",
)  # fmt: skip
SIZES = ((80, 24), (120, 36), (200, 50))
ENDS = frozenset({"q", "ctrl+q", "ctrl+c"})
"""Keys that end the program: pressed rarely, else little else would be seen."""


def _keys() -> tuple[str, ...]:
    """Every key of the program, some that do nothing, and more often those that move."""
    bound = {key for keys in all_keys(Explorer).values() for key in keys.split(",")}
    others = {"ctrl+p", "delete", *"0456789#~"}
    return (*sorted((bound | others) - ENDS), *3 * MOVES, *3 * ("enter", "escape"))


class Monkey:
    """Somebody who presses keys without reading the screen; `done` says what was done, to be read after a failure."""

    def __init__(self, generator: random.Random, driver: Driver) -> None:
        self.random, self.driver, self.keys = generator, driver, _keys()
        self.done: list[str] = []

    async def act(self) -> None:
        """Do one thing."""
        (action,) = self.random.choices((self._press, self._type, self._click, self._resize), (85, 6, 6, 3))
        await action()

    async def _press(self) -> None:
        await self._pressed("q" if self.random.random() < 0.002 else self.random.choice(self.keys))

    async def _pressed(self, key: str) -> None:
        self.done.append(key)
        await self.driver.pilot.press(key)

    async def _type(self) -> None:
        """Type a line where one is asked for, and press enter."""
        text, focused = self.random.choice(TEXTS), self.driver.app.screen.focused
        if isinstance(focused, Input):
            self.done.append(f"type {text!r}")
            focused.value = text
        await self._pressed("enter")

    async def _click(self) -> None:
        width, height = self.driver.app.size
        place, times = (self.random.randrange(width), self.random.randrange(height)), self.random.choice((1, 1, 2))
        self.done.append(f"click {place} {times}")
        await self.driver.pilot.click(offset=place, times=times)

    async def _resize(self) -> None:
        size = self.random.choice((*SIZES, (self.random.randint(1, 200), self.random.randint(1, 60))))
        self.done.append(f"resize {size}")
        await self.driver.pilot.resize_terminal(*size)


def check(driver: Driver) -> None:
    """Fail if something of the explorer is missing, or if it tells of a defect of its own."""
    app = driver.app
    assert app._exception is None, app._exception
    assert isinstance(app.screen_stack[0 if len(app.screen_stack) == 1 else 1], MainScreen)
    assert driver.tree.row_count or driver.tree.words
    assert driver.main_screen.query_one(Title).is_attached
    assert driver.plot.is_attached
    assert page_named(driver.state.view.screen) is not None
    assert driver.session.point.columns
    told = (driver.status.full, *(note.message for note in app._notifications))
    assert not [text for text in told if INTERNAL in text or "Traceback" in text]


async def settled(driver: Driver) -> None:
    """Wait until nothing is computed."""
    await driver.pilot.pause()
    await driver.until(lambda: driver.app._exit or not driver.app.runner.busy, seconds=60)


async def back_to_the_desk(driver: Driver) -> None:
    """Close whatever is open, as a person does who has lost the thread."""
    for _ in range(30):
        if driver.app._exit or (isinstance(driver.app.screen, MainScreen) and not driver.prompt.display):
            return await settled(driver)
        await driver.pilot.press("escape")
        await driver.pilot.pause()
    raise AssertionError(driver.screen_text())


class CutHistory(History):
    """History that knows whether it lost states: undo does not lead back behind phases that were saved."""

    cut = False

    def rebase(self, document: Document, before: Mapping[str, str], saved: tuple[PhaseEdit, ...] = ()) -> None:
        """Go on after the file got another text."""
        count = len(self.past)
        super().rebase(document, before, saved)
        self.cut = self.cut or len(self.past) < count


async def undo_everything(driver: Driver, start: UndoState) -> None:
    """Undo all that was done, and fail unless it leads back to the start, as far as saved phases allow it."""
    history = driver.app.runner.history
    assert isinstance(history, CutHistory)
    while history.past:
        left = len(history.past)
        driver.app.action_undo()
        await settled(driver)
        assert len(history.past) < left, driver.status.full
    if history.cut:
        return
    driver.app.runner.ask(Show("screen", driver.state.view.screen))
    now = driver.state.undo_state
    assert values(now) == values(start)
    assert now.view.with_entry("screen", "explore") == start.view, (now.view, start.view)


def values(state: UndoState) -> dict[str, str]:
    """Text of every value, wherever it stands now: an edit, or the file that took it in."""
    return {path: parameter.text(17) for path, parameter in state.inputs.program.parameters.items()}


async def play(path: Path, generator: random.Random, actions: int) -> int:
    """Number of actions done in one explorer, until the program ends or all are done."""
    app = Explorer(Scenario.open(path))
    async with app.run_test(size=generator.choice(SIZES)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in app.screen_stack))
        start, runner, monkey = driver.state.undo_state, app.runner, Monkey(generator, driver)
        runner.history = CutHistory()
        try:
            while not app._exit and len(monkey.done) < actions:
                await monkey.act()
                if not app._exit:
                    check(driver)
            await back_to_the_desk(driver)
            # Another scenario that was opened began elsewhere.
            if not app._exit and app.runner is runner:
                await undo_everything(driver, start)
        except BaseException:
            print(*monkey.done[-60:], sep="\n")
            raise
    return len(monkey.done)


def play_on(path: Path, seed: int, actions: int) -> None:
    """Play until a number of actions is done, with a new explorer wherever one was ended."""
    generator = random.Random(seed)  # noqa: S311 - no secrets
    while actions > 0:
        actions -= asyncio.run(play(path, generator, actions))
        assert Scenario.open(path).program
