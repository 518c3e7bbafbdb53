"""Form of a phase in the explorer: keys, errors as typed, one step of undo, several forms after a motif, sizes."""

import asyncio
from pathlib import Path

import pytest
from textual.app import App

from tests.driver import drive
from whatif.core.scenario import Scenario
from whatif.studies.phase_form import phase_form
from whatif.tui import app as explorer
from whatif.tui.commands.explorer_commands import parse_line
from whatif.tui.commands.history import lines_to
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.palette.palette_entries import commands
from whatif.tui.themes import series_variables

HALO = "application.phases.halo"


def form_open(driver):
    return isinstance(driver.app.screen, FormScreen)


async def open_form(driver, path=HALO):
    driver.tree.select(path)
    await driver.pilot.press("f4")
    await driver.until(lambda: form_open(driver))


def line_of(driver, label):
    return next(line for line in driver.app.screen.lines if line.field.label == label)


async def write(driver, label, text):
    """Go to a field with the arrow keys, and type a text in place of its own."""
    wanted = line_of(driver, label)
    while not wanted.input.has_focus:
        await driver.pilot.press("down")
    # A field that gets the cursor is selected: what is typed takes its place.
    await driver.pilot.press(*("space" if letter == " " else letter for letter in text))
    await driver.pilot.pause()


def test_all_changes_of_a_form_are_one_step_and_one_line():
    async def check(driver):
        await open_form(driver)
        await write(driver, "halo_width", "2")
        await write(driver, "message_size", "4 KiB")
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.scenario.overrides)
        assert driver.session.scenario.overrides == {f"{HALO}.halo_width": "2", f"{HALO}.message_size": "4 KiB"}
        line = f"set {HALO}.halo_width = 2; {HALO}.message_size = 4 KiB"
        assert driver.app.runner.history.lines == [line]
        kept = lines_to(driver.state)
        await driver.press("u")
        assert driver.state.unsaved() == {}
        await driver.app.runner.replay(kept, lambda: None)
        assert driver.session.parameter(f"{HALO}.message_size").text() == "4 KiB"

    drive(check)


def test_a_choice_is_turned_by_arrows_or_picked_from_a_list():
    async def check(driver):
        await open_form(driver)
        model = line_of(driver, "model")
        before = model.input.value
        await driver.pilot.press("right")
        assert model.input.value != before
        await driver.pilot.press("left")
        assert model.input.value == before
        await driver.pilot.press("f4")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        await driver.pick("max_rate")
        await driver.until(lambda: form_open(driver))
        assert model.input.value == "max_rate"
        await driver.pilot.press("down")
        assert driver.app.screen.focused is line_of(driver, "neighbours").input
        await driver.pilot.press("down")
        assert driver.app.screen.focused is line_of(driver, "concurrency").input
        await driver.pilot.press("f10")
        await driver.until(lambda: driver.session.parameter(f"{HALO}.model").text() == "max_rate")

    drive(check)


def test_arrows_move_the_cursor_where_there_are_no_choices():
    async def check(driver):
        await open_form(driver)
        await write(driver, "halo_width", "13")
        await driver.pilot.press("left", "2")
        await driver.pilot.pause()
        assert line_of(driver, "halo_width").input.value == "123"
        assert "change" not in driver.screen_text().splitlines()[-1]

    drive(check)


def test_a_wrong_text_is_told_at_its_field_and_nothing_is_taken():
    async def check(driver):
        await open_form(driver)
        await write(driver, "element_size", "8")
        wrong = line_of(driver, "element_size")
        assert "has no unit" in wrong.problem
        assert "has no unit" in driver.screen_text()
        await driver.pilot.press("up", "up", "enter")
        await driver.pilot.pause()
        assert form_open(driver)
        assert wrong.input.has_focus
        await write(driver, "element_size", "4 B")
        assert not wrong.problem
        await driver.pilot.press("escape")
        await driver.until(lambda: not form_open(driver))
        assert driver.state.unsaved() == {}

    drive(check, size=(80, 24))


def test_values_that_belong_together_are_checked_together():
    async def check(driver):
        await open_form(driver)
        await write(driver, "inter_node_count", "1")
        await driver.pilot.press("enter")
        await driver.pilot.pause()
        assert "state both" in driver.screen_text()
        await write(driver, "total_count", "3")
        await driver.pilot.press("enter")
        await driver.until(lambda: f"{HALO}.total_count" in driver.session.scenario.overrides)

    drive(check)


def test_an_added_motif_shows_the_forms_of_its_phases_in_turn():
    async def check(driver):
        driver.tree.select(f"{HALO}.model")
        await driver.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        await driver.pick("stencil")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until(lambda: "stencil_2_halo: halo, 1 of 2" in driver.screen_text())
        await driver.pilot.press("enter")
        await driver.until(lambda: "stencil_2_update: kernel, 2 of 2" in driver.screen_text())
        await driver.pilot.press("escape")
        await driver.until(lambda: not form_open(driver))
        # Forms that were left as they were are no edit.
        assert driver.app.runner.history.lines == ["phase add stencil_2 = stencil after halo"]

    drive(check)


def test_a_form_without_a_phase_under_the_cursor_asks_which_one():
    async def check(driver):
        driver.tree.select("application.rank_count")
        await driver.pilot.press("f4")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        await driver.pick("overhead")
        await driver.until(lambda: "overhead: overhead" in driver.screen_text())

    drive(check)


def test_the_palette_knows_the_form():
    async def check(driver):
        assert "Edit the phase as a form" in {entry.name for entry in commands(driver.main_screen)}

    drive(check)


def test_a_line_of_a_value_that_nothing_states_is_repeated_and_another_key_refused():
    async def check(driver):
        driver.app.runner.ask(parse_line(f"set {HALO}.message_size = 4 KiB"))
        await driver.until(lambda: f"{HALO}.message_size" in driver.session.program.parameters)
        driver.app.runner.ask(parse_line(f"set {HALO}.mesage_size = 4 KiB"))
        await driver.until(lambda: "did you mean" in driver.status.full)
        driver.app.runner.ask(parse_line(f"set {HALO}.message_size = none"))
        await driver.until(lambda: f"{HALO}.message_size" not in driver.session.program.parameters)
        assert driver.state.unsaved() == {}

    drive(check)


class Window(App[None]):
    """An application with the styles of the explorer."""

    CSS_PATH = Path(explorer.__file__).with_name("explorer.tcss")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return series_variables(self.current_theme)


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (80, 24), (120, 36), (300, 80)])
def test_the_field_with_the_cursor_is_in_sight_at_any_size(size):
    fields = phase_form(Scenario.open("jacobi2d").program, "stencil")

    async def main():
        app = Window()
        async with app.run_test(size=size) as pilot:
            app.push_screen(FormScreen("stencil", fields, lambda texts: {}))
            await pilot.pause()
            for keys in (["pagedown"] * 9, ["up"] * 4):
                await pilot.press(*keys)
                await pilot.pause()
                focused = app.screen.focused
                assert app.screen.find_widget(focused).visible_region
                assert focused.region.bottom < size[1]

    asyncio.run(main())


def test_fast_keys_go_to_the_field_that_the_arrows_reached():
    async def check(driver):
        await open_form(driver)
        screen = driver.app.screen
        for _ in range(3):
            screen.action_move(1)
        assert screen.focused is screen.lines[3].input

    drive(check)
