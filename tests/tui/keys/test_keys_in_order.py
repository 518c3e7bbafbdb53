"""Keys that come together go where a person who types fast wants them: to the window that the first of them opens."""

import asyncio

import pytest
from textual import events
from textual.command import CommandPalette
from textual.keys import _character_to_key
from textual.widgets import Input

from tests.driver import GPUS, drive
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.keys.keys_in_order import _Passed
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.widgets.prompt import PromptInput


def burst(driver, *keys):
    """Press keys with no time between them."""
    for key in keys:
        name, character = (_character_to_key(key), key) if len(key) == 1 else (key, None)
        event = events.Key(name, character)
        event.set_sender(driver.app)
        driver.app._driver.send_message(event)


@pytest.mark.parametrize(
    ("keys", "window"),
    [
        (("ctrl+p",), CommandPalette),
        (("P",), PickList),
        (("n",), PickList),
        (("K",), PickList),
        (("W",), TextPrompt),
        (("H",), TextPrompt),
        (("ctrl+n",), TextPrompt),
        (("ctrl+n", "enter"), PickList),
        (("X",), TextPrompt),
    ],
)
def test_text_behind_the_key_is_typed_into_the_window(keys, window, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        before = driver.state
        driver.tree.select("application.phases.halo.kind")
        burst(driver, *keys, *"quRv")
        await driver.until(lambda: isinstance(driver.app.screen, window))
        line = driver.app.screen.query_one(Input)
        await driver.until(lambda: line.value.endswith("quRv"))
        assert driver.state is before

    drive(check)


def test_the_palette_runs_what_was_typed():
    async def check(driver):
        await driver.edit(GPUS, "8")
        burst(driver, "ctrl+p", *"undo", "enter")
        await driver.until(lambda: not driver.state.unsaved())
        assert isinstance(driver.app.screen, MainScreen)

    drive(check)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("key", ["down", "v"])
def test_a_value_is_edited_in_one_burst(key, quick, monkeypatch):
    monkeypatch.setattr(CommandRunner, "_is_quick", lambda runner, change: quick)

    async def check(driver):
        driver.tree.select(GPUS)
        burst(driver, "enter", *6 * ("backspace",), "8", "enter", key)
        await driver.until(lambda: driver.state.unsaved().get(GPUS) == "8")
        await driver.until(lambda: driver.tree.path != GPUS or driver.state.view.picture == "table")

    drive(check)


def test_escape_leaves_a_line_that_is_being_answered(monkeypatch):
    async def never(runner, changes):
        await asyncio.Event().wait()

    monkeypatch.setattr(CommandRunner, "_is_quick", lambda runner, change: False)
    monkeypatch.setattr(CommandRunner, "_performed", never)

    async def check(driver):
        driver.tree.select(GPUS)
        burst(driver, "enter", *6 * ("backspace",), "8", "enter", "v")
        await driver.until(lambda: driver.app.runner.busy)
        assert driver.prompt.display
        burst(driver, "escape")
        await driver.until(lambda: not driver.prompt.display)
        assert not driver.app.runner.busy
        assert driver.tree.has_focus

    drive(check)


def test_the_first_run_can_be_typed_ahead(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        burst(driver, "ctrl+n", "enter", "enter", "down", *"h100")
        await driver.until(lambda: isinstance(driver.app.screen, FormScreen))
        await driver.until(lambda: driver.app.screen.lines[1].input.value == "h100")

    drive(check)


def test_a_removed_widget_that_drops_its_messages_does_not_hold_keys_back():
    async def check(driver):
        burst(driver, "P")
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        line = driver.app.focused
        post = line.post_message
        line.post_message = lambda message: isinstance(message, _Passed) or post(message)
        burst(driver, "escape", "ctrl+p")
        await driver.until(lambda: isinstance(driver.app.screen, CommandPalette))

    drive(check)


def test_a_key_waits_for_a_slow_one(monkeypatch):
    submit, dismiss, picked = PromptInput.action_submit, PickList.dismiss, []

    async def slow_submit(line):
        await asyncio.sleep(0.1)
        await submit(line)

    def note(window, result=None):
        picked.append(window.list.cursor)
        return dismiss(window, result)

    monkeypatch.setattr(PromptInput, "action_submit", slow_submit)
    monkeypatch.setattr(PickList, "dismiss", note)

    async def check(driver):
        burst(driver, "P", *"a", "enter", "down")
        await driver.until(lambda: picked)
        assert picked == [0]

    drive(check)
