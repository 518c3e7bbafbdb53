"""The explorer, driven by keys: what is pressed, and what the screen then says."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.driver import GPUS, MEMORY, MODEL, RANKS, drive, predicted
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError
from whatif.tui.commands.explorer_commands import Adopt, Edit, SweepParameter
from whatif.tui.dialogs.windows import ChoicePrompt, TextDialog
from whatif.tui.labels import duration
from whatif.tui.page_registry import screens
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.parameter_help import ParameterHelp
from whatif.tui.widgets.parameter_rows import outline
from whatif.tui.widgets.parameter_tree import ParameterTree


def test_an_edited_value_gives_the_number_of_the_command_line():
    async def check(driver):
        assert duration(predicted()["iteration_time"]) in driver.tile("iteration")
        await driver.edit(GPUS, "8")
        expected = predicted(f"{GPUS}=8")
        assert duration(expected["iteration_time"]) in driver.tile("iteration")
        assert duration(expected["total_time"]) in driver.tile("total")
        assert duration(expected["communication_time"]) in driver.tile("communication")
        await driver.edit(MEMORY, "1.6 TB/s")
        expected = predicted(f"{GPUS}=8", f"{MEMORY}=1.6 TB/s")
        assert duration(expected["iteration_time"]) in driver.tile("iteration")
        assert f"was {duration(predicted()['iteration_time'])}" in driver.tile("iteration")
        assert not driver.prompt.display
        assert driver.app.focused is driver.tree

    drive(check)


def test_an_invalid_value_shows_what_is_allowed_and_keeps_everything():
    async def check(driver):
        before, drawn = driver.state, driver.plot.description
        for text, expected in (("-3", "at least 1"), ("8 GB/s", "B/s"), ("many", "not a number"), ("", "no value")):
            await driver.edit(GPUS, text)
            assert expected in driver.status.full
            assert driver.status.full.startswith(GPUS)
            assert driver.prompt.display
            assert driver.prompt.query_one("PromptInput").value == text
            assert driver.state is before
            assert driver.plot.description is drawn
        await driver.press("escape")
        assert not driver.prompt.display
        assert driver.status.has_message
        await driver.press("escape")
        assert not driver.status.has_message
        assert driver.session.parameter(GPUS).text() == "6"

    drive(check)


def test_the_error_of_a_value_goes_when_another_parameter_is_selected():
    async def check(driver):
        await driver.edit(GPUS, "8 GB/s")
        await driver.press("escape")
        assert driver.status.full.startswith(GPUS)
        await driver.press("down")
        assert not driver.status.has_message

    drive(check)


@pytest.mark.parametrize(
    ("scenario", "path", "value", "numbers"),
    [
        ("jacobi2d", "application.memory_size", "40 GB", "40 GB needed, 16 GB available"),
        ("llama_training", "application.plan.micro_batch", "8", "383.7 GB needed, 80 GB available"),
    ],
)
def test_the_numbers_of_an_infeasible_point_are_not_cut(scenario, path, value, numbers):
    async def check(driver):
        assert f"▲ infeasible point: {numbers}: " in driver.screen_text()

    drive(check, (80, 24), Scenario.open(scenario, overrides={path: value}))


def test_a_long_message_can_be_read_in_full():
    async def check(driver):
        await driver.edit("application.phases.halo.kind", "kernel")
        await driver.press("escape")
        message = driver.status.full
        assert message.startswith("application.phases.halo.")
        assert len(message.splitlines()) > 1
        await driver.pilot.press("e")
        await driver.until(lambda: isinstance(driver.app.screen, TextDialog))
        assert all(word in driver.screen_text() for word in message.split())
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.press("escape")
        assert not driver.status.has_message

    drive(check)


def test_taking_a_rounded_value_back_changes_nothing():
    async def check(driver):
        driver.tree.select("platform.node.gpu.peak_double_rate")
        await driver.press("enter", "enter")
        assert not driver.prompt.display
        assert not driver.session.scenario.overrides

    drive(check)


def test_nudges_move_counts_by_one_and_rates_by_a_share():
    async def check(driver):
        driver.tree.select(GPUS)
        await driver.press("right", "right", "left")
        assert driver.session.parameter(GPUS).text() == "7"
        await driver.press("]")
        assert driver.session.parameter(GPUS).text() == "14"
        await driver.press("[", "minus", "plus")
        assert driver.session.parameter(GPUS).text() == "7"
        driver.tree.select(MEMORY)
        before = driver.session.parameter(MEMORY).value
        await driver.press("right")
        assert driver.session.parameter(MEMORY).value == pytest.approx(1.05 * before, rel=1e-5)
        await driver.edit(MEMORY, "uniform(1 TB/s, 2 TB/s)")
        await driver.press("right")
        assert "a step would drop the distribution of uniform(1 TB/s, 2 TB/s)" in driver.status.full
        await driver.press("escape", "%")
        assert driver.status.full.endswith("samples off, spread assumed")

    drive(check)


def test_sweeping_another_parameter_draws_it_and_marks_the_present_value():
    async def check(driver):
        driver.tree.select(MEMORY)
        await driver.press("s")
        assert driver.session.grid.parameters() == (MEMORY,)
        assert driver.plot.description.x.label == MEMORY
        assert driver.plot.description.markers[0].x == driver.session.parameter(MEMORY).value
        await driver.press("S")
        await driver.type("100 GB/s .. 1 TB/s linear 7")
        assert driver.session.grid.size == 7
        await driver.press("S")
        await driver.type("1 TB .. 2 TB linear 7")
        assert "is in B" in driver.status.full
        assert driver.session.grid.size == 7

    drive(check)


def test_the_values_as_opened_are_drawn_beside_the_edited_ones():
    async def check(driver):
        assert "before" not in [line.label for line in driver.plot.description.lines]
        await driver.edit(MEMORY, "1.6 TB/s")
        await driver.press("s")
        lines = {line.label: line for line in driver.plot.description.lines}
        untouched = Session.start(Scenario.open("jacobi2d")).sweep(MEMORY, "200 GB/s .. 12.8 TB/s log 200")
        assert lines["before"].y == pytest.approx(untouched.result.columns["iteration_time"].ravel(), rel=1e-12)
        assert lines["before"].x == pytest.approx(lines["iteration"].x, rel=1e-12)

    drive(check)


def test_a_structural_edit_compiles_anew():
    async def check(driver):
        terms = driver.session.program.terms
        await driver.edit(MODEL, "postal")
        assert driver.session.program.terms is not terms
        assert duration(predicted(f"{MODEL}=postal")["iteration_time"]) in driver.tile("iteration")
        driver.tree.select(MODEL)
        await driver.press("right")
        assert driver.session.parameter(MODEL).text() == "max_rate"
        # Summit states nothing for some models: those are passed over, by nudges as by sweeps.
        await driver.press("left", "left")
        assert driver.session.parameter(MODEL).text() not in ("max_rate", "postal")
        await driver.press("s")
        assert {"postal", "max_rate", "k_model"} <= set(driver.plot.description.x.ticks)
        assert not driver.status.has_message

    drive(check)


def test_an_infeasible_point_says_why_and_parameters_a_gap():
    async def check(driver):
        await driver.edit(RANKS, "60000")
        assert "the ranks need more nodes than the platform has" in driver.status.full
        assert "–" in driver.tile("iteration")
        await driver.edit(RANKS, "1536")
        driver.tree.select("platform.node_count")
        await driver.press("S")
        await driver.type("100, 200, 256, 300, 4608")
        assert driver.status.full.startswith("2 of 5 points infeasible")
        assert np.isnan(driver.plot.description.lines[0].y).tolist() == [True, True, False, False, False]

    drive(check)


def test_a_filter_shows_some_parameters_and_escape_shows_all():
    async def check(driver):
        count = len(driver.tree._rows)
        await driver.press("/")
        await driver.type("inter_node base")
        assert " esc clears /inter_node base " in driver.screen_text()
        assert all("inter_node" in row.path for row in driver.tree._rows)
        assert driver.tree.parameter.path.endswith("base_bandwidth")
        assert driver.main_screen.query_one(ParameterHelp).border_title == driver.tree.parameter.path
        await driver.press("escape")
        assert driver.tree.words == ""
        assert len(driver.tree._rows) >= count

    drive(check)


def test_values_are_edited_in_full_screen_and_another_page_ends_it():
    async def check(driver):
        driver.tree.select(GPUS)
        driver.main_screen.action_maximize()
        await driver.press("enter")
        assert "gpu_count =" in driver.screen_text()
        assert any("esc exits" in note.message for note in driver.app._notifications)
        assert driver.screen_text().splitlines()[0].endswith("──╮")
        await driver.press("escape", "escape")
        driver.main_screen.action_maximize()
        await driver.press("3")
        assert "why the iteration time" in driver.screen_text()

    drive(check, (80, 24))


def test_tables_fold_and_the_cursor_stays_near():
    async def check(driver):
        driver.tree.select("platform.node.gpu.memory_size")
        await driver.press("home", "left")
        assert driver.tree.row.folded
        assert not any(row.path.startswith("platform.") for row in driver.tree._rows)
        await driver.press("enter", "end", "pageup", "pagedown", "down")
        assert driver.tree.row == driver.tree._rows[-1]
        driver.tree.select(MEMORY)
        assert driver.tree.row.path == MEMORY

    drive(check)


def test_other_columns_and_phases_can_be_drawn():
    async def check(driver):
        seen = []
        for _ in range(30):
            seen.append(driver.plot.description.lines[0].label)
            await driver.press("y")
        assert {"iteration", "total", "communication", "halo", "stencil"} <= set(seen)
        await driver.press("Y")
        assert driver.plot.description.lines[0].label == seen[-1]

    drive(check)


def test_a_click_selects_and_a_second_one_edits():
    async def check(driver):
        driver.tree.scroll_to(y=0, animate=False, immediate=True)
        await driver.pilot.pause()
        index = next(i for i, row in enumerate(driver.tree._rows) if row.path == GPUS)
        await driver.pilot.click(ParameterTree, offset=(5, index))
        await driver.until(lambda: driver.tree.parameter.path == GPUS)
        await driver.pilot.click(ParameterTree, offset=(5, index), times=2)
        await driver.until(lambda: driver.prompt.display)
        await driver.press("escape")

    drive(check)


@pytest.mark.parametrize("sizes", [((1, 1), (20, 5), (200, 50), (60, 30))])
def test_every_size_shows_the_answer(sizes):
    async def check(driver):
        for count, size in enumerate(sizes, 7):
            await driver.pilot.resize_terminal(*size)
            driver.tree.select(GPUS)
            await driver.press("right")
            text = driver.screen_text()
            if size >= (20, 5):
                assert duration(predicted(f"{GPUS}={count}")["iteration_time"]) in text
            await driver.press("enter", "escape", "/", "x", "escape")

    drive(check, sizes[0])


def test_every_theme_shows_the_answer():
    async def check(driver):
        for theme in ("textual-light", "ansi-dark", "ansi-light", "nord"):
            driver.app.theme = theme
            await driver.press("right")
            assert "iteration" in driver.screen_text()
            assert driver.main_screen.query(Breakdown).first().size.height > 0

    drive(check)


@pytest.mark.parametrize("scenario", ["minife", "minimd", "minife_devices"])
def test_every_scenario_opens(scenario):
    async def check(driver):
        assert driver.tile("total")
        driver.tree.select(GPUS)
        await driver.press("s", "right")
        assert driver.plot.description is not None

    drive(check, scenario=scenario)


def test_an_outline_shortens_lonely_tables():
    rows = outline(["a.b.c.x", "a.b.c.y", "d.z"], folded={"d"})
    assert [(row.name, row.depth, row.table) for row in rows] == [
        ("a.b.c", 0, True),
        ("x", 1, False),
        ("y", 1, False),
        ("d", 0, True),
    ]
    assert [row.path for row in outline(["a.b.c.x", "a.b.c.y", "d.z"], {"d"}, "Z")] == ["d", "d.z"]


def test_a_text_without_choices_has_nothing_to_sweep():
    with pytest.raises(UsageError, match="no result depends on"):
        Session.start(Scenario.open("jacobi2d")).sweep("platform.name")


def test_the_first_frame_needs_no_slow_library():
    code = """
import asyncio, sys
from whatif.core.scenario import Scenario
from whatif.tui.app import Explorer

async def main():
    async with Explorer(Scenario.open("jacobi2d")).run_test(size=(120, 36)) as pilot:
        await pilot.pause(0.2)

asyncio.run(main())
print(sorted({"scipy", "pandas", "numba", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_with_square_brackets_are_no_markup(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('# Is [b]it[/] read?\nextends = "jacobi2d"\n')
    named = {"platform.name": "Sum[/]mit", "platform.node.gpu.name": "[red]V100", "application.name": "J[b]2[/b]D"}

    async def check(driver):
        for parameter, name in named.items():
            driver.app.runner.ask(Edit(parameter, name))
            await driver.calm()
        for page in screens():
            await driver.go(page.name)
            # The title of the study page is that of the study.
            assert "Is [b]it[/] read?" in driver.screen_text() or page.name == "study"
            assert "Sum[/]mit" in driver.screen_text()

    drive(check, (160, 50), path)


def test_a_window_shows_its_own_keys_in_place_of_those_of_the_desk():
    async def check(driver):
        for key, words in (("f1", "esc close"), ("W", "⏎ accept esc leave"), ("J", "⏎ accept esc leave")):
            await driver.pilot.press(key)
            await driver.until(lambda: driver.app.screen is not driver.main_screen)
            await driver.pilot.pause()
            assert " ".join(driver.screen_text().splitlines()[-1].split()).startswith(words)
            await driver.pilot.press("escape")
            await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.edit(GPUS, "8")
        await driver.pilot.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.pause()
        words = "s save and quit d discard changes and quit esc go back"
        assert driver.screen_text().splitlines()[-1].split() == words.split()
        assert "discard changes and quit" in driver.screen_text()
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check)


def test_a_question_that_is_too_long_for_the_screen_still_shows_its_answers():
    async def check(driver):
        driver.app.push_screen(ChoicePrompt("a line\n" * 80, {"y": "yes, do it"}))
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.pause()
        assert "yes, do it" in driver.screen_text()
        await driver.pilot.press("y")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check, (80, 24))


def test_a_parameter_that_is_not_there_any_more_is_told_to_be_no_longer_swept():
    parameter = "platform.network.intra_socket.postal.eager.latency"

    async def check(driver):
        driver.app.runner.ask(Edit("application.phases.halo.model", "postal"))
        driver.app.runner.ask(SweepParameter(parameter))
        await driver.calm()
        assert parameter in driver.session.grid.parameters()
        driver.app.runner.ask(Adopt("frontier"))
        await driver.calm()
        assert driver.session.grid.axes == ()
        assert driver.status.full == f"{parameter} does not exist on this platform; removed from the sweep"

    drive(check)


@pytest.mark.parametrize("size", [(120, 36), (30, 12)])
def test_the_widgets_are_styled_once_at_the_start(monkeypatch, size):
    styled, style = [], MainScreen.update_node_styles

    def update(screen, animate=True):
        if screen.is_mounted:
            styled.append(screen)
        style(screen, animate)

    monkeypatch.setattr(MainScreen, "update_node_styles", update)

    async def check(driver):
        await driver.calm()
        assert styled == [driver.main_screen]
        await driver.pilot.resize_terminal(70, 20)
        assert styled == [driver.main_screen] * 2

    drive(check, size=size)


def test_the_keys_below_are_made_anew_only_where_they_change():
    async def check(driver):
        # The first page always has answers to show whole.
        driver.main_screen.action_go("timeline")
        await driver.calm()
        bar, drawn = driver.main_screen.query_one(KeyBar), []
        draw = bar.update
        bar.update = lambda content, **options: drawn.append(content.plain) or draw(content, **options)
        driver.main_screen.refresh_bindings()
        await driver.calm()
        assert drawn == []
        assert "more" not in bar.content.plain
        await driver.edit(GPUS, "many")
        await driver.press("escape")
        assert "more" in drawn[-1]

    drive(check)


def test_an_edit_without_effect_is_neither_better_nor_worse():
    async def check(driver):
        await driver.edit("application.iteration_count", "7")
        assert "±0%" in driver.tile("iteration")
        await driver.edit(GPUS, "8")
        assert "±0%" not in driver.tile("iteration")

    drive(check)


def test_a_table_has_no_value_to_sweep_or_type():
    async def check(driver):
        await driver.press("home")
        assert driver.tree.row.table
        for key in ("s", "a", "T"):
            await driver.press(key)
            assert "this row has no value of its own" in driver.screen_text()
            assert driver.state.edit_count == 0
            await driver.press("escape")
            assert "no value of its own" not in driver.screen_text()

    drive(check)


@pytest.mark.parametrize(("size", "rows"), [((60, 15), 7), ((100, 14), 8), ((60, 6), 2)])
def test_a_low_terminal_is_filled_with_parameters_and_the_answer(size, rows):
    async def check(driver):
        lines = driver.screen_text().splitlines()
        assert all(line.strip() for line in lines)
        assert sum(line.startswith("│") for line in lines) == rows
        await driver.press("2")
        assert "Aurora" in driver.screen_text()

    drive(check, size=size)


def test_ctrl_z_returns_to_the_shell(monkeypatch):
    sent = []
    monkeypatch.setattr("textual.app.os.kill", lambda process, number: sent.append((process, number)))

    async def check(driver):
        monkeypatch.setattr(type(driver.app._driver), "can_suspend", True)
        await driver.press("ctrl+z")
        assert sent == [(os.getpid(), signal.SIGTSTP)]

    drive(check)
