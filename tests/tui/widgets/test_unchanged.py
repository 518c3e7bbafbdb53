"""What an edit does not change is not drawn again."""

import asyncio

from textual.content import Content
from textual.geometry import Region

from tests.driver import GPUS, drive
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.latest_only import LatestOnly
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.status import Status


def line_at_cursor(tree):
    return tree.render_lines(Region(0, 0, *tree.size))[tree.cursor_line].text


def test_an_edit_draws_only_the_rows_of_the_tree_that_it_changes(monkeypatch):
    drawn = []
    original = ParameterTree.row_segments

    def noted(tree, index, width):
        drawn.append(index)
        return original(tree, index, width)

    async def check(driver):
        driver.tree.select(GPUS)
        await driver.press("plus")
        at, height = driver.tree.cursor, driver.tree.size.height
        drawn.clear()
        await driver.press("plus")
        assert at in drawn
        assert len(set(drawn)) < height / 4
        assert " 8 " in line_at_cursor(driver.tree)

    monkeypatch.setattr(ParameterTree, "row_segments", noted)
    drive(check)


def test_rows_that_are_scrolled_to_have_the_present_values():
    async def check(driver):
        driver.tree.select(GPUS)
        top = driver.tree.cursor
        driver.tree.action_move(200)
        await driver.edit(GPUS, "8")
        driver.tree.move_to(top)
        await driver.calm()
        assert " 8 " in line_at_cursor(driver.tree)

    drive(check)


def test_the_same_words_in_another_colour_are_drawn():
    async def check(driver):
        line = driver.app.screen.query_one(Status)
        for colour in ("$text-error", "$text-success"):
            line.update(Content.assemble(("words", colour)))
            await driver.pilot.pause()
            styles = [
                segment.style.color
                for segment in line.render_lines(Region(0, 0, *line.size))[0]
                if segment.text.strip()
            ]
            seen.append(styles[0])

    seen = []
    drive(check)
    assert seen[0] != seen[1]


def test_a_job_replaced_before_the_frame_is_drawn_is_not_begun():
    async def run(function, *arguments, report):
        begun.append(arguments)
        return function(*arguments)

    async def check():
        latest = LatestOnly(taken.append, failed.append)
        latest._worker.run = run
        latest.ask(Job(divmod, (7, 2)))
        for _ in range(5):
            await asyncio.sleep(0)
        latest.ask(Job(divmod, (9, 2)))
        while latest.busy:
            await asyncio.sleep(0.01)
        latest.close()

    begun, taken, failed = [], [], []
    asyncio.run(check())
    assert (begun, taken, failed) == ([(9, 2)], [(4, 1)], [])
