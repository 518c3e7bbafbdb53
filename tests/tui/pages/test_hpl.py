"""The page of HPL: its numbers are those of `simulate`, its lanes where the times say, and what is edited moves it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.driver import drive
from tests.page_harness import on_page
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.linpack.grid_lines import WORK, GridLine
from whatif.linpack.hpl_terms import outcome_at
from whatif.linpack.process_grids import MOST_PANELS, GridRate, HPLRunView, Share, grids
from whatif.linpack.simulation.configuration import Broadcast
from whatif.plotting.lanes import PARTS
from whatif.tui.commands.explorer_commands import Edit, Revert, Show
from whatif.tui.labels import duration
from whatif.tui.page_views import HPL_PANELS, HPL_PARTS, HPLView
from whatif.tui.pages.hpl import HPLPage
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.hpl_labels import component_rows, grid_rows, panel_lanes, rate_plot, rate_words, share_words
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.rank_bars import RankBars
from whatif.units import FLOP_PER_SECOND, format_quantity

N, NB, ROWS, COLUMNS = (
    f"application.{name}" for name in ("matrix_size", "block_size", "process_rows", "process_columns")
)
SCENARIO = """# How fast is HPL here?
platform = "dahu"
[application]
kind = "hpl"
matrix_size = 2000
block_size = 100
process_rows = 2
process_columns = 4
ranks_per_node = 4
[sweep.size]
"application.matrix_size" = "2000"
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "hpl.toml"
    path.write_text(SCENARIO)
    return str(path)


def outcome(scenario, **sets):
    """The run that `simulate` plays for some parameters of the application."""
    scenario = Scenario.open(scenario, overrides={f"application.{name}": str(value) for name, value in sets.items()})
    values, term = evaluate(scenario.program).values, scenario.program.terms["hpl.times"]
    plan = term.options["plan"]
    numbers = (float(values[str(term.inputs[name])]) for name in ("rank_count", "ranks_per_node", "socket_count"))
    return outcome_at(plan, tuple(float(values[parameter]) for parameter in plan.parameters), *numbers, panels_seen=4)


def said(run):
    return f"{rate_words(run.rate)} in {duration(run.time)}"


def test_panels_can_be_as_many_as_are_simulated():
    assert HPL_PANELS[-1] == MOST_PANELS


def test_the_numbers_are_those_of_the_run(scenario):
    run = outcome(scenario)

    async def check(page):
        assert said(run) in page.text
        assert "Dahu, N = 2,000, NB = 100, P x Q = 2 x 4" in page.text
        assert "noise none; pivots lie as drawn with seed 0" in page.text
        swapped = run.components["row_swap"]
        shown = (swapped.mean(), swapped.min(), swapped.max())
        assert page.line("+ laswp", f"{swapped.mean() / run.time:.1%}", *map(duration, shown))
        rates = {grid: outcome(scenario, process_rows=grid[0], process_columns=grid[1]).rate for grid in grids(8)}
        assert list(rates) == [(1, 8), (2, 4), (4, 2), (8, 1)]
        best = max(rates.values())
        for (rows, columns), rate in rates.items():
            words = "best" if rate == best else f"{rate / best:.1%}"
            assert words in page.line(
                f"{'▸' if (rows, columns) == (2, 4) else ' '} {rows} x {columns} ", rate_words(rate)
            )
        assert page.page.job(page.app.state) is None
        await page.change(Show("picture", "table"))
        # The first rates mean nothing.
        assert page.line(" 0.15 ", format_quantity(run.progress()[1][2], FLOP_PER_SECOND, 5))
        assert " 0.1 " not in page.text

    on_page(HPLPage, check, scenario)


def test_a_parameter_that_is_edited_moves_the_page(scenario):
    async def check(page):
        await page.change(Edit(N, "3000"), Edit(NB, "60"))
        assert said(outcome(scenario, matrix_size=3000, block_size=60)) in page.text
        await page.change(Edit("application.noise", "kernels"), Edit("application.seed", "7"))
        noisy = outcome(scenario, matrix_size=3000, block_size=60, noise="kernels", seed=7)
        assert said(noisy) in page.text
        assert "noise of the kernels; pivots lie as drawn with seed 7" in page.text
        await page.change(Edit(N, "2500"), work=False)
        assert "simulating …" in page.text
        assert f"before: {said(noisy)}" in page.text
        page.page.take(Share(False, 0.34))
        await page.settle()
        assert "simulating: 34%" in page.text

    on_page(HPLPage, check, scenario)


def test_why_hpl_cannot_be_played_is_told(scenario):
    wrong = {
        "application.rank_count": ("7", "P x Q = 8 processes, but application.rank_count is 7."),
        ROWS: ("65", "65 x 4 = 260 ranks need 65 nodes with 4 ranks each; Dahu has 32, for 128 ranks."),
        N: ("900000", "N = 900,000 needs 6.48 TB on 2 nodes of 192 GiB (412 GB): 6.07 TB too much"),
    }

    async def check(page):
        for parameter, (value, reason) in wrong.items():
            await page.change(Edit(parameter, value), Show("hpl.part", "panels"))
            assert f"HPL cannot be simulated: {reason}" in page.text
            assert "process row" not in page.text
            await page.change(Revert(parameter))
            assert "process row 0, the first 5 panels" in page.text
        page.app.no_color = True
        page.app.query_one(RankBars).redraw()
        await page.settle()
        assert "F factorisation B broadcast w waiting - update" in page.text
        assert set(page.line("│ 1 ").split("│ 1 ")[1]) >= set("Fw-")

    on_page(HPLPage, check, scenario)


def test_what_there_is_room_for_is_shown_and_a_key_brings_the_rest(scenario):
    titles = ("rate over the run", "HPL's timers", "process row 0", "P x Q of 8")

    async def check(page):
        assert all(title in page.text for title in titles)
        await page.resize((80, 20))
        for title in (*titles, titles[0]):
            assert [each for each in titles if each in page.text] == [title]
            corners = [line[0] + line[-1] for line in page.lines if line[0] in "╭╰"]
            assert corners == ["╭╮", "╰╯"]
            # The part in sight has the keys.
            assert all(node.display for node in page.app.focused.ancestors_with_self)
            await page.act("part")
        for part, size in zip(("all", *HPL_PARTS), ((10, 3), (20, 6), (40, 8), (110, 12), (300, 80)), strict=True):
            await page.resize(size)
            await page.change(Show("hpl.part", part))
            assert page.fills(size), (size, part)

    on_page(HPLPage, check, scenario, size=(120, 30))


def runs_of(scenario, **sets):
    """Runs whose processes have the numbers of their columns as nodes."""
    found = outcome(scenario, **sets)
    shape = found.configuration.process_rows, found.configuration.process_columns
    return found, np.broadcast_to(np.arange(shape[1]), shape)


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("broadcast", [Broadcast.RING_MODIFIED, Broadcast.LONG])
def test_what_is_seen_of_panels_is_in_order(scenario, depth, broadcast):
    found, _ = runs_of(scenario, look_ahead_depth=depth, broadcast=broadcast.name.lower())
    begun, factored, waiting, taken, updated = np.moveaxis(found.seen, -1, 0)
    # Only the process column that owns a panel factors it, one after the other.
    assert [np.flatnonzero(~np.isnan(factored[panel, 0])).tolist() for panel in range(4)] == [[0], [1], [2], [3]]
    owner = np.arange(4)
    assert (begun[owner, :, owner] < factored[owner, :, owner]).all()
    others = ~np.isnan(taken) & np.isnan(factored)
    assert others.sum() == 4 * 2 * 3
    assert (waiting <= taken)[others].all()
    # Nobody has a panel before it is factored, or is done with it before having it.
    assert (taken >= np.nanmax(factored, axis=2, keepdims=True))[others].all()
    assert (updated > np.where(others, taken, factored)).all()
    assert (np.diff(updated, axis=0) > 0).all()


def test_lanes_are_where_the_times_say(scenario):
    found, nodes = runs_of(scenario, look_ahead_depth=0)
    lanes = panel_lanes(found, nodes, GridLine("row", 1), 2)
    assert lanes.node.tolist() == [0, 1, 2, 3]
    assert lanes.window == (0.0, found.seen[:2, 1, :, 4].max())
    middle = (np.arange(PARTS) + 0.5) / PARTS * lanes.window[1]
    for column, kinds in enumerate(lanes.group):
        begun, factored, waiting, taken, _ = np.moveaxis(found.seen[:, 1, column], -1, 0)
        expected = np.full(PARTS, "update", dtype="U13")
        for panel, ready in enumerate(found.seen[np.arange(4), 1, np.arange(4), 1]):
            for name, start, end in (
                ("factorisation", begun[panel], factored[panel]),
                ("waiting", waiting[panel], min(taken[panel], ready)),
                ("broadcast", max(waiting[panel], ready), taken[panel]),
            ):
                expected = np.where((middle > start) & (middle < end), name, expected)
        # A part may be cut where one thing ends and another one begins.
        assert np.mean(np.array(WORK)[kinds - 1] == expected) > 0.98
    column = panel_lanes(found, nodes, GridLine("column", 3), 1)
    assert column.node.tolist() == [3, 3]
    assert WORK[column.group[0, 0] - 1] == "waiting"


def test_a_line_beyond_the_grid_is_the_last_one():
    assert GridLine.of("column 9", 2, 4) == ("column", 3)
    assert GridLine.of("row 1", 2, 4) == ("row", 1)
    assert GridLine.of("nonsense -3", 2, 4) == ("row", 0)


def test_the_rate_of_the_last_columns_adds_up_to_that_since_the_start(scenario):
    run = outcome(scenario, look_ahead_depth=0)
    since, lately = rate_plot(run).lines
    assert_allclose(since.y, run.progress()[1], rtol=1e-12, atol=0)
    # Twenty panels: the last five per cent are one panel.
    operations = np.cumsum(lately.y[1:] * np.diff(run.ends)) + since.y[0] * run.ends[0]
    assert_allclose(operations[-1], run.configuration.operations, rtol=2e-3, atol=0)
    assert_allclose(operations / run.ends[1:], since.y[1:], rtol=1e-12, atol=0)


def test_the_smallest_runs_have_a_picture(scenario):
    for size, block in ((1, 1), (3, 100)):
        run = outcome(scenario, matrix_size=size, block_size=block, look_ahead_depth=1)
        lanes = panel_lanes(run, np.zeros((2, 4), dtype=int), GridLine("row", 0), 5)
        assert lanes.window[1] >= 0
        assert len(rate_plot(run).lines) == 2
        assert len(component_rows(run).cells) == 6


def test_grids_that_are_not_played_yet_have_no_rate():
    rows = grid_rows([(1, 4), (2, 2), (4, 1)], {(2, 2): 2e9, (4, 1): 1e9}, (2, 2))
    assert [cells[2].text for cells in rows.cells] == ["–", "best", "50.0%"]
    assert len(rows.cells[1][3].text) == 2 * len(rows.cells[2][3].text)
    assert grids(12) == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert share_words(Share(True, 0.5)) == "simulating other grids: 50%"


def test_a_person_looks_at_panels_and_takes_a_grid(scenario):
    async def check(driver):
        await driver.go("ranks")
        assert driver.main_screen.page.NAME == "hpl"
        assert "▸ 2 x 4" in driver.screen_text()
        await driver.press("plus", "plus", "y", "x")
        assert "process column 1, the first 12 panels" in driver.screen_text()
        await driver.press("up", "enter")
        assert "▸ 1 x 8" in driver.screen_text()
        line = f"set {ROWS} = 1; {COLUMNS} = 8"
        assert driver.app.runner.history.lines[-1] == line

    drive(check, (120, 36), scenario)


@pytest.mark.parametrize(
    ("part", "offered"),
    [("rates", {"table"}), ("components", set()), ("panels", {"panels", "next row", "columns"}), ("geometries", set())],
)
def test_only_keys_of_the_visible_part_are_offered(scenario, part, offered):
    async def check(driver):
        await driver.go("ranks")
        while driver.state.view.of(HPLView).part != part:
            await driver.press("m")
        await driver.pilot.pause()
        shown = {place.key.binding.description for place in driver.main_screen.query_one(KeyBar).keys}
        assert shown & {"table", "panels", "next row", "columns"} == offered
        if part == "rates":
            assert "v shows the numbers" in driver.screen_text()
            await driver.press("v")
            assert "v shows the curves" in driver.screen_text()

    drive(check, (80, 24), scenario)


def test_other_applications_keep_the_page_of_the_ranks(scenario):
    for name, page in (("jacobi2d", "ranks"), (scenario, "hpl")):
        state = Show("screen", "ranks").apply(ExplorerState.start(Session.start(Scenario.open(name))))
        assert (state.page, Show("screen", "why").apply(state).page) == (page, "why")


def told_by(job):
    """What a job tells, but for how far it is."""
    told = []
    assert job.reports
    assert job.function(*job.arguments, told.append) is None
    return [value for value in told if not isinstance(value, Share)]


def test_what_another_page_interrupted_goes_on(scenario):
    async def check(page):
        await page.change(Edit(N, "1000"), work=False)
        job = page.page.job(page.app.state)
        assert page.page.job(page.app.state) is job
        told = told_by(job)
        assert [type(value) for value in told] == [HPLRunView, GridRate, GridRate, GridRate]
        for value in told[:2]:
            page.page.take(value)
        page.page.display = False
        await page.settle()
        page.page.display = True
        again = page.page.job(page.app.state)
        assert again is not job
        assert [value.grid for value in told_by(again)] == [value.grid for value in told[2:]]

    on_page(HPLPage, check, scenario)
