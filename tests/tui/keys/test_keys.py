"""Keys in the footer and in the help: by area, as many as there is room for, never cut."""

import pytest

from tests.driver import GPUS, drive
from whatif.tui.keys.key_areas import KeyArea, active_keys
from whatif.tui.page_registry import PAGES, screens
from whatif.tui.widgets.key_bar import KeyBar


def entries(driver):
    """Key, label and right edge of every entry of the footer, from left to right, the palette left out."""
    keys = [place for place in driver.main_screen.query_one(KeyBar).keys if place.key.area is not KeyArea.PALETTE]
    return [(place.key.display, place.key.binding.description, place.end) for place in keys]


def labels(driver):
    return [label for _, label, _ in entries(driver)]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_footer_shows_whole_keys_with_those_of_the_page_first(size):
    async def check(driver):
        for screen in screens():
            await driver.go(screen.name)
            palette = driver.main_screen.query_one(KeyBar).keys[-1]
            assert palette.end == size[0] - 2
            shown = entries(driver)
            assert max(right for _, _, right in shown) <= palette.start
            line = driver.screen_text().splitlines()[-1]
            assert " ".join(f"{key} {label}" for key, label, _ in shown) == line.partition("▏")[0].strip()
            assert line.index("▏") == palette.start
            assert line.rstrip().endswith("▏^p palette")
            areas = {key.binding.description: key.area for key in reversed(active_keys(driver.main_screen))}
            order = [areas[label] for _, label, _ in shown]
            assert order == sorted(order)
            assert "help" in labels(driver)
            active = [key for key in active_keys(driver.main_screen) if key.area == KeyArea.PAGE]
            own = {key.binding.description for key in active if key.binding.show}
            if size[0] >= 120:
                assert own <= set(labels(driver))

    drive(check, size, "minife")


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_the_way_out_and_back_and_the_whole_answer_are_in_a_small_footer(size):
    async def check(driver):
        assert "…" in driver.screen_text()
        assert {"help", "quit", "undo", "more"} <= set(labels(driver))
        if size[0] == 80:
            assert labels(driver)[:5] == ["table", "nudge", "edit", "sweep", "find"]
        await driver.pilot.resize_terminal(60, 9)
        await driver.until(lambda: not driver.main_screen.query_one(KeyBar).display)

    drive(check, size)


def test_rare_keys_are_in_the_footer_where_there_is_room():
    async def check(driver):
        rare = {"heat map", "swap axes", "y scale", "spread", "breakdown", "target", "range", "axis range"}
        assert not rare & set(labels(driver))
        assert {"result", "table", "edit", "nudge", "sweep", "add axis", "find", "undo", "save", "quit"} <= {
            *labels(driver)
        }
        await driver.pilot.resize_terminal(700, 50)
        await driver.until(lambda: rare <= set(labels(driver)))
        assert {"redo", "save as", "platform", "report", "journal", "reset", "parameters"} <= set(labels(driver))

    drive(check)


def test_a_click_on_a_key_presses_it_and_the_mouse_over_it_explains_it():
    async def check(driver):
        bar = driver.main_screen.query_one(KeyBar)
        places = {place.key.binding.description: place for place in bar.keys}
        for label in ("help", "palette"):
            await driver.pilot.hover(KeyBar, offset=(places[label].start, 0))
            assert bar.tooltip == places[label].key.binding.tooltip != ""
            bare = bar.content.spans
            await driver.pilot.click(KeyBar, offset=(places[label].start, 0))
            await driver.until(lambda: driver.app.screen is not driver.main_screen)
            await driver.press("escape")
            assert driver.app.screen is driver.main_screen
            await driver.pilot.hover("#title")
            assert bar.tooltip is None
            assert bar.content.spans != bare
        # Between the last key and the palette's.
        await driver.pilot.click(KeyBar, offset=(places["palette"].start - 1, 0))
        assert driver.app.screen is driver.main_screen

    drive(check)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_labelled_keys_of_a_page_explain_themselves_with_a_verb(page):
    for binding in page.load().bindings():
        assert binding.tooltip.split()[0] not in ("The", "A", "Samples", "What", "Bring", "Take"), binding
        assert binding.tooltip[0].isupper()
        assert len(binding.description) <= 14


def test_help_begins_with_the_keys_of_the_page_and_names_the_groups_in_one_line():
    async def check(driver):
        driver.tree.select(GPUS)
        await driver.press("f1")
        text = driver.app.screen.query_one("#window Static").content.plain
        words = (
            "Draw the next result",
            GPUS,
            "used by",
            "Type another value",
            "general",
            "Go to Explore, Compare",
            "Undo",
        )
        places = [text.index(word) for word in words]
        assert places == sorted(places)
        assert text.count("Go to ") == 1
        assert "1 2 3 4 5 6 7  Go to Explore" in text
        assert "PageUp" not in text
        (moves,) = (line for line in text.splitlines() if line.endswith("Move the cursor"))
        assert {"j", "k", "pgup"} <= set(moves.split())

    drive(check)


def test_wrapped_lines_of_the_help_begin_next_to_their_keys():
    async def check(driver):
        await driver.press("f1")
        text = driver.app.screen.query_one("#window Static").content.plain.splitlines()
        scale = next(at for at, line in enumerate(text) if "Scale the y axis" in line)
        assert text[scale].index("Scale") == text[scale + 1].index("logarithmic") == 13
        await driver.pilot.resize_terminal(120, 36)
        text = driver.app.screen.query_one("#window Static").content.plain
        assert "Scale the y axis: automatic, linear, logarithmic\n" in text

    drive(check, (80, 24))


@pytest.mark.parametrize(
    ("scenario", "curves", "ranks"),
    [
        ("llama_training", set(), set()),
        ("jacobi2d", {"placement"}, {"curves"}),
        ("minimd", {"phase", "placement"}, {"phase", "curves", "plane"}),
    ],
)
def test_the_messages_offer_only_what_there_is_another_one_of(scenario, curves, ranks):
    async def check(driver):
        await driver.go("messages")
        for offered in (curves, ranks):
            assert {"phase", "plane", "placement", "curves"} & set(labels(driver)) == offered
            await driver.press("m")

    drive(check, (80, 24), scenario)


def test_the_footer_names_the_next_page_of_the_group():
    async def check(driver):
        await driver.press("3")
        assert ("3", "roofline") in [entry[:2] for entry in entries(driver)]
        await driver.press("3")
        assert ("3", "timeline") in [entry[:2] for entry in entries(driver)]
        await driver.press("1")
        assert not {"why", "roofline", "timeline"} & set(labels(driver))

    drive(check)


@pytest.mark.parametrize(
    ("name", "offered"), [("fit", {"open", "columns"}), ("runs", {"open", "columns"}), ("profile", {"open"})]
)
def test_a_page_without_contents_offers_only_to_read_some(name, offered):
    async def check(driver):
        await driver.go(name)
        page = driver.main_screen.page
        assert {key.name for key in page.KEYS if page.offers(key.action.partition("(")[0])} == offered
        assert "table" not in labels(driver)

    drive(check, size=(200, 40))


def test_the_ranks_offer_their_keys_once_they_are_simulated():
    async def check(driver):
        driver.main_screen.latest.close()
        driver.main_screen.action_go("ranks")
        await driver.until(lambda: driver.main_screen.page.NAME == "ranks")
        page = driver.main_screen.page
        assert [key.name for key in page.KEYS if page.offers(key.action.partition("(")[0])] == ["iterations"]
        function, arguments, _ = page.job(driver.state)
        page.take(function(*arguments))
        assert page.offers("table")

    drive(check)
