"""A person at the explorer, for tests: presses keys, reads the screen, waits until nothing is being computed."""

import asyncio
import itertools
import json
import time
from functools import cache

from click.testing import CliRunner

from whatif.cli.main import program
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.tui.app import Explorer
from whatif.tui.commands.performing import perform
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.headline import Tile
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.plot_view import PlotView
from whatif.tui.widgets.prompt import Prompt, PromptInput
from whatif.tui.widgets.status import Status

GPUS = "platform.node.gpu_count"
MEMORY = "platform.node.gpu.dram_bandwidth"
MODEL = "application.phases.halo.model"
RANKS = "application.rank_count"
MOST_TURNS = 30_000
"""Turns of a wait, each of 10 ms or more."""


class Driver:
    """A person at the explorer."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    @property
    def main_screen(self) -> MainScreen:
        return self.app.main_screen

    @property
    def state(self):
        return self.app.state

    @property
    def session(self):
        return self.state.session

    def __getattr__(self, name):
        kind = {"tree": ParameterTree, "plot": PlotView, "prompt": Prompt, "status": Status}[name]
        return self.main_screen.query_one(kind)

    def tile(self, name):
        return str(self.main_screen.query_one(f"#{name}", Tile).content)

    def screen_text(self):
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    async def until(self, condition, seconds=20.0):
        """Wait for a condition, for seconds of CPU time: they pass at the same pace on a busy machine.

        A program that only waits hardly uses any: it ends after `MOST_TURNS`, five minutes or more.
        """
        end, turns = time.process_time() + seconds, itertools.count()
        while not condition():
            assert time.process_time() < end, self.screen_text()
            assert next(turns) < MOST_TURNS, self.screen_text()
            await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def calm(self):
        """Wait until what was asked is done and shown."""
        await self.pilot.pause()
        await self.until(lambda: not self.app.runner.busy and not self.main_screen.latest.busy)

    async def press(self, *keys):
        for key in keys:
            await self.pilot.press(key)
            await self.calm()

    async def go(self, page):
        """Go to a page by command."""
        self.main_screen.action_go(page)
        await self.until(lambda: self.state.view.screen == page and self.state.page == self.main_screen.page.NAME)
        await self.calm()

    async def type(self, text):
        self.prompt.query_one("PromptInput").value = text
        await self.press("enter")

    async def edit(self, path, text):
        self.tree.select(path)
        await self.press("enter")
        if isinstance(self.app.screen, PickList):
            await self.pick(text)
        else:
            await self.type(text)

    async def pick(self, text):
        """Type into a list to pick from, and take the row below the cursor."""
        self.app.screen.query_one(PromptInput).value = text
        await self.press("enter")


def drive(check, size=(120, 36), scenario="jacobi2d", notifications=False, **options):
    """Open the explorer and let `check(driver)` work with it."""

    async def main():
        app = Explorer(scenario if isinstance(scenario, Scenario) else Scenario.open(scenario), **options)
        async with app.run_test(size=size, notifications=notifications) as pilot:
            driver = Driver(app, pilot)
            await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in app.screen_stack))
            await check(driver)

    asyncio.run(main())


@cache
def jacobi2d_state():
    """State of the explorer at its start."""
    return ExplorerState.start(Session.start(Scenario.open("jacobi2d")))


def after(state, *changes):
    """State after some commands, all of which must succeed."""
    outcome = perform(state, changes)
    assert not outcome.error
    return outcome.state


def predicted(*sets, scenario="jacobi2d"):
    """The results that the command line gives for some edits."""
    options = [word for text in sets for word in ("--set", text)]
    done = CliRunner().invoke(program, ["run", scenario, "--point", "--format", "json", *options])
    assert done.exit_code == 0
    return json.loads(done.stdout)["rows"][0]
