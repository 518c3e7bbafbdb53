"""Zoom, pan, limits of axes, and curves clipped to a rectangle."""

from __future__ import annotations

import numpy as np
import pytest

from whatif import units
from whatif.plotting.description import AxisDescription, HeatMap, PlotDescription, PlotLine, Scale
from whatif.plotting.raster import walk
from whatif.plotting.terminal import point_at, render
from whatif.plotting.window import PlotWindow, clipped

NAN = np.nan


def plot(scale=Scale.LINEAR, x=None, y=None):
    x = np.arange(1.0, 9) if x is None else x
    y = x**2 if y is None else y
    axes = AxisDescription("a.count", scale=scale), AxisDescription("time", units.SECOND)
    return PlotDescription("", *axes, (PlotLine("curve", x, y),))


def test_zoom_halves_the_axis_around_its_middle_or_a_position():
    assert PlotWindow().zoomed(plot(), "x", 0.5).x == (2.75, 6.25)
    assert PlotWindow().zoomed(plot(), "x", 0.5, 1.0).x == (1.0, 4.5)
    assert PlotWindow((2.75, 6.25)).zoomed(plot(), "x", 2).x is None
    assert PlotWindow().zoomed(plot(), "x", 1e-12).x is None


def test_zoom_of_a_logarithmic_axis_is_in_decades():
    found = PlotWindow().zoomed(plot(Scale.LOG, x=np.array([1.0, 10, 100, 1000, 10000])), "x", 0.5)
    assert found.x == (1.0, 3.0)


def test_pan_stops_at_the_ends_and_leaves_a_whole_axis():
    window = PlotWindow((2.0, 4.0))
    assert window.panned(plot(), "x", 1.0).x == (3.0, 5.0)
    assert window.panned(plot(), "x", 100.0).x == (6.0, 8.0)
    assert window.panned(plot(), "x", -100.0).x == (1.0, 3.0)
    assert PlotWindow().panned(plot(), "x", 1.0) == PlotWindow()


def test_window_follows_a_position():
    assert PlotWindow((2.0, 4.0)).around(plot(), "x", 5.0).x == (3.0, 5.0)
    assert PlotWindow((2.0, 4.0)).around(plot(), "x", 3.0).x == (2.0, 4.0)
    assert PlotWindow((2.0, 4.0)).around(plot(), "x", NAN).x == (2.0, 4.0)


def test_limits_of_y_follow_from_the_visible_part_of_x():
    seen = PlotWindow((6.0, 8.0)).of(plot())
    text = render(seen, 60, 16, colour=False)
    assert "64" not in text.replace("60", "")
    assert "40" in text
    low = point_at(seen, 60, 16, (5, 12))
    assert low is not None
    assert low[0] > 5.9


def test_zoomed_plots_draw_within_their_frame():
    for window in (PlotWindow((3.1, 3.4)), PlotWindow((2.0, 4.0), (5.0, 6.0)), PlotWindow(None, (10.0, 20.0))):
        for description in (plot(), plot(y=np.array([1, NAN, 3, 9, NAN, 2, 1e9, 4.0]))):
            lines = render(window.of(description), 50, 14, colour=False).splitlines()
            assert len(lines) == 14
            assert max(map(len, lines)) <= 50


def test_categories_and_heat_maps_can_be_zoomed():
    x = AxisDescription("platform", ticks=("one", "two", "three", "four"))
    named = PlotDescription("", x, AxisDescription("t", units.SECOND), (PlotLine("c", np.arange(4.0), np.ones(4)),))
    text = render(PlotWindow((0.5, 2.5)).of(named), 60, 14, colour=False)
    assert ("two" in text, "one" in text, "four" in text) == (True, False, False)
    axes = AxisDescription("a.x"), AxisDescription("a.y"), AxisDescription("t", units.SECOND)
    heat = HeatMap("", *axes, np.arange(8.0), np.arange(4.0), np.arange(32.0).reshape(8, 4))
    zoomed = PlotWindow().zoomed(heat, "x", 0.5)
    assert zoomed.x == (1.5, 5.5)
    assert len(render(zoomed.of(heat), 60, 14, colour=False).splitlines()) == 14


def inside(dots, width, height):
    return {(x, y) for x, y in dots.T.tolist() if 0 <= x <= width and 0 <= y <= height}


@pytest.mark.parametrize("seed", range(30))
def test_clipped_lines_have_the_dots_of_whole_lines_inside(seed):
    random = np.random.default_rng(seed)
    points = np.sort(random.uniform(-40, 80, (2, 12)), axis=1)
    points[1] = random.uniform(-60, 90, 12)
    points = np.rint(points)
    points[:, random.integers(0, 12, 2)] = NAN
    found = inside(walk(clipped(points, 40, 30)), 40, 30)
    whole = inside(walk(points), 40, 30)
    # Both walks round differently: each dot has a neighbour in the other.
    for these, those in ((found, whole), (whole, found)):
        for x, y in these:
            assert any((x + i, y + j) in those for i in (-1, 0, 1) for j in (-1, 0, 1)), (x, y)


def test_single_points_and_lines_inside_are_kept():
    points = np.array([[1.0, NAN, 5.0, 99.0], [1.0, NAN, 5.0, 5.0]])
    assert inside(walk(clipped(points, 10, 10)), 10, 10) == {(1, 1), *((x, 5) for x in range(5, 11))}
    within = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert clipped(within, 10, 10) is within
