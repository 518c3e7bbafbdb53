"""Random keys, thousands of them: nothing raises, the file stays valid, and undo leads back to the start."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.driver import GPUS, MEMORY, MODEL, Driver
from whatif.core.scenario import Scenario
from whatif.schema.shipped import shipped_folder
from whatif.tui.app import Explorer
from whatif.tui.commands import Show
from whatif.tui.performing import INTERNAL
from whatif.tui.screens.main_screen import MainScreen

MOVES = ["up", "down", "pageup", "pagedown", "home", "end", "tab", "shift+tab", "j", "k", "g", "G", "space"]
STEPS = ["left", "right", "h", "l", "[", "]", "<", ">", "minus", "plus", "shift+left", "backspace"]
WORDS = ["enter", "escape", "slash", "S", "A", "i", "f1", "question_mark", "e", "1", "5", ".", "B", "comma"]
LOOKS = ["s", "a", "y", "Y", "o", "O", "m", "x", "v", "p", "t", "b", "d", "n", *"1234567"]
VARIANTS = ["f", "F", "V", "L", "ampersand", "z", "Z", "X", "="]
FILES = ["u", "U", "ctrl+r", "w", "c", "C", "R", "W", "J", "P", "D", "M", "r", "ctrl+p"]
KEYS = st.lists(st.sampled_from(MOVES + 2 * STEPS + WORDS + LOOKS + VARIANTS + FILES), min_size=8, max_size=24)


SCENARIOS = ["jacobi2d", "minimd", "minife_devices"]


class Person(RuleBasedStateMachine):
    """Somebody who presses keys without reading the screen."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.home = os.getcwd()  # noqa: PTH109
        os.chdir(self.folder)
        self.loop = asyncio.new_event_loop()
        self.jobs = asyncio.Queue()
        self.work = None

    @initialize(name=st.sampled_from(SCENARIOS), parameter=st.sampled_from([GPUS, MEMORY, MODEL]))
    def begin(self, name, parameter):
        self.path = self.folder / "given.toml"
        shutil.copy(shipped_folder("scenarios") / f"{name}.toml", self.path)
        self.work = self.loop.create_task(self.live())

        async def first(driver):
            await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in driver.app.screen_stack))
            driver.tree.select(parameter)
            self.start, self.runner = driver.state.state, driver.app.runner

        self.do(first)

    async def live(self):
        """The life of the program: what a person does comes one by one."""
        app = Explorer(Scenario.open(self.path))
        async with app.run_test(size=(120, 36)) as pilot:
            while not app._exit and (job := await self.jobs.get()) is not None:
                action, done = job
                try:
                    done.set_result(await action(Driver(app, pilot)))
                except BaseException as problem:
                    done.set_exception(problem)

    def do(self, action):
        async def main():
            done = self.loop.create_future()
            self.jobs.put_nowait((action, done))
            await asyncio.wait([done, self.work], return_when=asyncio.FIRST_COMPLETED)
            return await (done if done.done() else self.work)

        # Some keys end the program; then there is nothing more to do.
        if not self.work.done():
            self.loop.run_until_complete(main())

    @rule(keys=KEYS)
    def press(self, keys):
        self.do(lambda driver: driver.pilot.press(*keys))

    @rule(keys=KEYS)
    def press_more(self, keys):
        """Twice as often as anything else."""
        self.press(keys)

    @rule(width=st.integers(1, 200), height=st.integers(1, 60))
    def resize(self, width, height):
        self.do(lambda driver: driver.pilot.resize_terminal(width, height))

    @rule()
    def rest(self):
        self.do(back_to_the_desk)

    @rule()
    def undo_everything(self):
        async def undo(driver):
            await back_to_the_desk(driver)
            if driver.app._exit or driver.app.runner is not self.runner:
                return  # nothing is left of it, or another scenario was opened, which began elsewhere
            history = driver.app.runner.history
            while history.past:
                left = len(history.past)
                driver.app.action_undo()
                await settled(driver)
                assert len(history.past) < left, driver.status.full
            driver.app.runner.ask(Show("screen", driver.state.view.screen))
            now = driver.state.state
            assert values(now) == values(self.start)
            assert now.view.with_entry("screen", "explore") == self.start.view

        self.do(undo)

    @invariant()
    def the_file_is_valid(self):
        if self.work is not None:
            assert Scenario.open(self.path).program

    def teardown(self):
        try:
            if self.work is not None:
                self.undo_everything()
                self.jobs.put_nowait(None)
                self.loop.run_until_complete(self.work)
        finally:
            self.loop.close()
            os.chdir(self.home)
            shutil.rmtree(self.folder)


async def settled(driver):
    await driver.pilot.pause()
    await driver.until(lambda: not driver.app.runner.busy, seconds=60)
    assert INTERNAL not in driver.status.full


async def back_to_the_desk(driver):
    """Close whatever is open, as a person does who has lost the thread."""
    for _ in range(30):
        if driver.app._exit:
            return
        if isinstance(driver.app.screen, MainScreen) and not driver.prompt.display:
            await settled(driver)
            return
        await driver.pilot.press("escape")
        await driver.pilot.pause()
    raise AssertionError(driver.screen_text())


def values(state):
    """Every value, wherever it stands now: an edit, or the file that took it in."""
    return {path: parameter.text(17) for path, parameter in state.inputs.program.parameters.items()}


TestRandomKeys = Person.TestCase
TestRandomKeys.settings = settings(
    max_examples=1,
    # Few steps, but many keys in those that press some: the others cost as much and find less.
    stateful_step_count=9,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    # A person reads the keys up to the failure; to make them fewer would take hours.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
