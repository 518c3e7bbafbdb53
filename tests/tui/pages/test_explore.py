"""The explore page: measured runs on the curves of a sweep, with the errors of the predictions below."""

from __future__ import annotations

import numpy as np

from tests.page_harness import on_page
from whatif.tui.commands import Edit, Show, SweepParameter
from whatif.tui.pages.explore import ExplorePage
from whatif.tui.widgets.stacked_plots import StackedPlots

RANKS = "application.rank_count"


def drawn(page):
    """Lines of the upper and of the lower plot by label."""
    plots = page.app.query_one(StackedPlots)
    above, below = plots._description, plots._below
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
