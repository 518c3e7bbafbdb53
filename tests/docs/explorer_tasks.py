"""Tasks of docs/explorer.md, as the page states them: keys as pressed, and what is on the screen afterwards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from tests.driver import Driver
from tests.paths import ROOT
from whatif.cli.open import opened_source
from whatif.core.scenario import Scenario
from whatif.tui.app import Explorer
from whatif.tui.screens.main_screen import MainScreen

Size = tuple[int, int]
PAGE: Final = (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8")
SIZES: Final[tuple[Size, ...]] = ((120, 36), (80, 24), (200, 50))
"""Sizes at which the keys must work; the page quotes the screen of the first one."""
_NAMES: Final = {"esc": "escape", "↑": "up", "↓": "down", "←": "left", "→": "right", " ": "space"}
_NAMED: Final = re.compile(r"(?:ctrl|shift)\+\w+|f\d+|enter|esc|tab|space|insert|delete|backspace|[↑↓←→]")


class Step(NamedTuple):
    """One row of a table: what is pressed or typed, and what is quoted from the screen."""

    words: tuple[str, ...]
    quoted: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys one by one, of text its letters."""
        parts = ((word,) if _NAMED.fullmatch(word) else tuple(word) for word in self.words)
        return tuple(_NAMES.get(key, key) for part in parts for key in part)


class Part(NamedTuple):
    """Tasks that follow each other in one explorer."""

    title: str
    scenario: str
    steps: tuple[Step, ...]


def parts() -> tuple[Part, ...]:
    """Every part of the page."""
    return tuple(_part(section) for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])


def _part(section: str) -> Part:
    (scenario,) = re.findall(r"whatif open (\S+)$", section, re.MULTILINE)
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", section, re.MULTILINE)
    steps = (
        Step(tuple(re.findall(r"`([^`]+)`", keys)), tuple(re.findall(r"\*\*(.+?)\*\*", seen))) for keys, seen in rows
    )
    return Part(section.partition("\n")[0], scenario, tuple(steps))


def state_of(driver: Driver) -> tuple[object, ...]:
    """State of the program that does not depend on the size of the screen."""
    session, view = driver.session, driver.state.view
    window = type(driver.app.screen).__name__
    axes = tuple((*axis.parameters, len(axis)) for axis in session.grid.axes)
    return (
        window,
        view,
        axes,
        session.scenario.overrides,
        driver.state.unsaved(),
        float(session.point.columns["iteration_time"]),
    )


def shown(driver: Driver) -> str:
    """Screen and notifications in one line, without borders and line ends."""
    lines = (driver.screen_text(), *(note.message for note in driver.app._notifications))
    return " ".join(re.sub(r"[│╭╮╰╯─]+", " ", " ".join(lines)).split())


async def walk(part: Part, size: Size, expected: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """States after each step at some size; each is waited for where it is known from another size."""
    scenario, opening = opened_source(part.scenario)
    app, found = Explorer(scenario, opening=opening, recovery_folder=Path(".recovery")), []
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in app.screen_stack))
        await driver.until(lambda: app.runner.history.lines == opening)
        for number, step in enumerate(part.steps):
            if step.keys == ("q",):
                # At other sizes than the first, what is being written was not waited for.
                await app.workers.wait_for_complete()
            for key in step.keys:
                await pilot.press(key)
            if step.keys == ("q",):
                await driver.until(lambda: app._exit)
                break
            wanted = expected[number] if expected else None
            try:
                await driver.until(lambda: _answered(driver, step, wanted))  # noqa: B023
            except AssertionError as problem:
                now = "" if wanted is None else f"\n{wanted}\n{state_of(driver)}"
                raise AssertionError(f"{size}: {step}{now}\n{problem}") from None
            found.append(state_of(driver))
    return found


async def replay(part: Part, journal: Path, expected: tuple[object, ...]) -> None:
    """Repeat a journal on the scenario of a part, and wait for a state; fail if it is not reached."""
    lines = journal.read_text(encoding="utf-8").splitlines()
    app = Explorer(Scenario.open(part.scenario), replay=lines, recovery_folder=Path(".recovery"))
    async with app.run_test(size=SIZES[0]) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in app.screen_stack))
        assert state_of(driver) != expected
        await driver.until(lambda: _answered(driver, Step((), ()), expected))


def _answered(driver: Driver, step: Step, wanted: tuple[object, ...] | None) -> bool:
    """Whether all is computed and looks as it should."""
    screens = driver.app.screen_stack
    if driver.app.runner.busy or any(isinstance(screen, MainScreen) and screen.latest.busy for screen in screens):
        return False
    if wanted is not None:
        return state_of(driver) == wanted
    text = shown(driver)
    return all(words in text for words in step.quoted)
