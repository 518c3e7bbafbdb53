"""A list to pick from: what is filtered, what is picked, and that it fits."""

import asyncio
from pathlib import Path

import pytest
from textual.app import App

from tests.driver import MODEL, drive, predicted
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.tui import app as explorer
from whatif.tui.commands.explorer_commands import Adopt, EditAll, parse_line
from whatif.tui.commands.performing import perform
from whatif.tui.dialogs.pick_list import PickList, PickRows, matching
from whatif.tui.labels import duration
from whatif.tui.state import ExplorerState
from whatif.tui.themes import series_variables

GPU = "platform.node.gpu.extends"
BUFFERS = "application.buffers"
ROWS = (
    ("summit", "4608 nodes, V100"),
    ("summit-2d", "as measured by others"),
    ("frontier", "9408 nodes, MI250X"),
    ("el-capitan", "11136 nodes, MI300A, as measured on the front page"),
    ("blue-waters", "26868 nodes"),
)


class Window(App[None]):
    """An application with the styles of the explorer."""

    CSS_PATH = Path(explorer.__file__).with_name("explorer.tcss")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return series_variables(self.current_theme)


def picked(*keys, size=(80, 24), rows=ROWS, check=None, **options):
    """What a list gives after some keys; a list that is still open gives `open`."""
    results = []

    async def main():
        app = Window()
        async with app.run_test(size=size) as pilot:
            app.push_screen(PickList("Which platform?", rows, **options), results.append)
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
            if check is not None:
                await check(pilot)

    asyncio.run(main())
    return results[0] if results else "open"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("front", ["frontier", "el-capitan"]),
        ("NODES mi2", ["frontier"]),
        ("measured", ["summit-2d", "el-capitan"]),
        ("2d", ["summit-2d"]),
        ("waters", ["blue-waters"]),
        ("", [name for name, _ in ROWS]),
        ("xyz", []),
    ],
)
def test_filter_finds_rows_with_all_words_best_matches_first(text, names):
    assert [name for name, _ in matching(ROWS, text)] == names


def test_whole_name_precedes_names_that_begin_with_it():
    assert [name for name, _ in matching(ROWS[1::-1], "summit")] == ["summit", "summit-2d"]


def test_enter_picks_the_row_below_the_cursor():
    assert picked("enter") == "summit"
    assert picked("down", "down", "up", "enter") == "summit-2d"
    assert picked("f", "r", "o", "enter") == "frontier"
    assert picked("pagedown", "enter") == "blue-waters"
    assert picked("enter", current="frontier") == "frontier"


def test_escape_picks_nothing():
    assert picked("down", "escape") is None


def test_text_without_a_row_is_refused_with_a_suggestion():
    async def check(pilot):
        text = "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())
        assert "no row with `fronteir`; did you mean `frontier`?" in text

    assert picked(*"fronteir", "enter", check=check) == "open"


def test_a_list_without_rows_says_so():
    async def check(pilot):
        assert "nothing to pick from yet" in "\n".join(
            strip.text for strip in pilot.app.screen._compositor.render_strips()
        )

    assert picked(rows=(), free=True, check=check) == "open"


def test_free_text_is_accepted_as_typed_where_no_row_has_it():
    assert picked(*"mine", "enter", free=True) == "mine"
    assert picked(*"summit", "enter", free=True) == "summit"
    assert picked(*"sum", "down", "down", "enter", free=True) == "sum"


def test_click_picks_a_row():
    async def check(pilot):
        await pilot.click(PickRows, offset=(4, 2))
        await pilot.pause()

    assert picked(check=check) == "frontier"


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (40, 10), (20, 6), (12, 4)])
def test_current_row_is_in_sight_at_every_size(size):
    rows = [(f"name-{index}", f"row {index} of many, with a description that is long" * 3) for index in range(200)]

    async def check(pilot):
        lines = [strip.text for strip in pilot.app.screen._compositor.render_strips()]
        assert len(lines) == size[1]
        assert {len(line) for line in lines} == {size[0]}
        assert any("●" in line for line in lines)

    assert picked(size=size, rows=rows, current="name-150", check=check) == "open"


def test_platform_is_picked_by_words_of_its_description():
    async def check(driver):
        await driver.press("P")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        assert "4,608 nodes, 6 x Tesla V100-SXM2-16GB of 300 W" in driver.screen_text()
        await driver.pick("oak mi250x")
        assert driver.session.scenario.platform == "frontier"
        assert driver.app.runner.history.lines[-1] == "platform frontier"

    drive(check)


def test_gpu_is_picked_in_the_tree_and_the_journal_replays_it():
    async def check(driver):
        await driver.edit(GPU, "h200")
        assert driver.session.scenario.overrides == {GPU: "h200-sxm"}
        assert duration(predicted(f"{GPU}=h200-sxm")["iteration_time"]) in driver.tile("iteration")
        line = driver.app.runner.history.lines[-1]
        assert line == f"set {GPU} = h200-sxm"
        assert parse_line(line).apply(driver.state).session.scenario.overrides == {GPU: "h200-sxm"}
        driver.tree.select(GPU)
        await driver.press("backspace")
        assert not driver.session.scenario.overrides

    drive(check)


def test_enter_on_a_fixed_choice_opens_a_list_and_arrows_cycle():
    async def check(driver):
        driver.tree.select(MODEL)
        await driver.press("enter")
        assert "Gropp's form of it" in driver.screen_text()
        await driver.press("escape", "right")
        assert driver.session.parameter(MODEL).text() == "node_aware"
        await driver.edit(BUFFERS, "dev")
        assert driver.session.parameter(BUFFERS).text() == "device"

    drive(check)


def test_wrong_platform_is_refused_without_the_name_of_an_option():
    state = ExplorerState.start(Session.start(Scenario.open("jacobi2d")))
    error = perform(state, (Adopt("front"),)).error
    assert error == "platform: `front`: platform not found; did you mean `frontier`?"
    error = perform(state, (EditAll(((GPU, "v100-sxm2"),)),)).error
    assert "--" not in error
    assert "part not found; did you mean" in error


def test_a_name_that_is_cut_is_whole_below_the_rows():
    long = "bids.accelerators.node_price.of_the_first_hundred_nodes"

    async def check(pilot):
        said = pilot.app.screen.query_one("#description").content
        assert said == f"{long}: 260 kUSD"
        await pilot.press("down")
        assert pilot.app.screen.query_one("#description").content == "250 kUSD"

    picked(rows=((long, "260 kUSD"), ("bids.node_price", "250 kUSD")), check=check)
