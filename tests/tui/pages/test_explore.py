"""The explore page: measured runs on the curves of a sweep, with the errors of the predictions below."""

from __future__ import annotations

import numpy as np

import whatif
from tests.driver import drive
from tests.page_harness import on_page
from whatif.tui.commands.explorer_commands import Adopt, Edit, Show, SweepParameter
from whatif.tui.pages.explore import ExplorePage
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.headline import HeadlineView
from whatif.tui.widgets.stacked_plots import StackedPlots
from whatif.units import SECOND, format_quantity

RANKS = "application.rank_count"


def drawn(page):
    """Lines of the upper and of the lower plot by label."""
    plots = page.app.query_one(StackedPlots)
    above, below = plots.description, plots._below
    return tuple({line.label: line for line in (plot.lines if plot is not None else ())} for plot in (above, below))


def test_measured_runs_are_points_with_their_errors_below():
    async def look(page):
        above, below = drawn(page)
        points = above["measured, halo"]
        np.testing.assert_allclose(points.y, [90.7e-6, 142.2e-6, 296e-6, 451.7e-6, 544.1e-6], rtol=1e-12, atol=0)
        assert points.style == "points"
        errors = below["error in %, halo"].y
        curve = dict(zip(above["halo"].x, above["halo"].y, strict=True))
        expected = [100 * (curve[x] / y - 1) for x, y in zip(points.x, points.y, strict=True)]
        np.testing.assert_allclose(errors, expected, rtol=1e-9, atol=0)

    changes = SweepParameter(RANKS, "2, 4, 8, 16, 32, 64"), Show("y", "terms.halo")
    on_page(ExplorePage, look, "minife", changes=changes)


def test_runs_are_not_drawn_over_a_parameter_that_they_do_not_state():
    async def look(page):
        above, below = drawn(page)
        assert not [label for label in above if label.startswith("measured")]
        assert below == {}

    on_page(ExplorePage, look, "minife", changes=(SweepParameter("platform.node.gpu_count", "1, 2, 4"),))


def test_remark_on_runs_of_an_edited_scenario():
    async def look(page):
        subtitle = page.app.query_one("#sweep").border_subtitle
        assert "measured with the values of the file" in str(subtitle)

    changes = SweepParameter(RANKS, "2, 4, 8"), Edit("application.grid.cells.x", "100")
    on_page(ExplorePage, look, "minife", changes=changes)


def test_the_columns_of_a_table_are_named_by_the_relation_that_they_show():
    async def check(driver):
        await driver.press("v", "r")
        table = driver.main_screen.query_one(TableView)
        assert "speedup of iteration" in driver.screen_text()
        assert "speedup of iteration over node.gpu_count" in driver.screen_text()
        assert table.display
        await driver.press("r")
        lines = [line for line in driver.screen_text().splitlines() if "platform.node.gpu_count" in line]
        assert any("ratio of iteration" in line and "over" not in line for line in lines), driver.screen_text()

    drive(check)


def test_the_plot_names_the_key_that_leads_back_and_tab_wraps_to_the_parameters():
    async def check(driver):
        driver.plot.focus()
        await driver.pilot.pause()
        assert "⇧tab back" in driver.screen_text().splitlines()[-1]
        await driver.press("f1")
        assert "Go back to the parameters" in driver.app.screen.query_one("#window Static").content.plain
        await driver.press("escape", "shift+tab")
        assert driver.tree.has_focus
        assert "⇧tab" not in driver.screen_text().splitlines()[-1]
        await driver.press("tab")
        assert driver.plot.has_focus
        await driver.press("tab")
        assert driver.tree.has_focus

    drive(check, size=(80, 24))


def test_the_headline_states_ranks_and_nodes_of_the_present_values():
    async def look(page):
        assert page.app.query_one(HeadlineView).border_title == "MiniFE on Lassen: 256 ranks on 32 nodes"

    on_page(ExplorePage, look, "minife", changes=(Edit("platform.node.gpu_count", "8"),))


def test_a_time_many_times_the_baseline_is_shown_as_a_factor():
    async def look(page):
        iteration = page.app.query_one("#iteration").content.plain.split()
        assert iteration[-4].startswith("x"), iteration
        before = format_quantity(float(whatif.run("minife")["iteration_time"]), SECOND, 5)
        assert iteration[-3:] == ["was", *before.split()]

    on_page(ExplorePage, look, "minife", changes=(Adopt("fugaku"),))
