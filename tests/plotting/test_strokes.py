"""Lines on the screen and in pictures: points, error bars, dashes, names at ends; and lines kept for a crosshair."""

import numpy as np
import pytest

from whatif import units
from whatif.plotting.description import AxisDescription, HeatMap, PlotDescription, PlotLine, Scale
from whatif.plotting.picture import draw
from whatif.plotting.terminal import render, render_runs

COUNTS = np.arange(1.0, 17.0)


def over(x, *lines, whole=False, y_scale=Scale.LINEAR, close_up=False):
    axes = AxisDescription("count", whole=whole), AxisDescription("time", units.SECOND, y_scale, close_up=close_up)
    return PlotDescription("", *axes, tuple(PlotLine(name, x, y, style) for name, y, style in lines))


def body(description, height=24, style="", **options):
    """Lines of the data alone; of one style, if it is named."""
    lines = render_runs(description, 100, height, **options)
    texts = ["".join(run.text if style in ("", run.style) else " " * len(run.text) for run in line) for line in lines]
    return texts[1:-3]


def cells(lines, first="⠁", last="⣿"):
    return [char for line in lines for char in line if first <= char <= last]


@pytest.mark.parametrize(("marker", "sign"), [("braille", "●"), ("block", "●"), ("ascii", "*")])
def test_curve_over_whole_numbers_has_a_sign_at_each_and_no_line(marker, sign):
    whole = body(over(COUNTS, ("a", COUNTS, "data"), whole=True), style="series-1", marker=marker)
    assert sum(line.count(sign) for line in whole) == COUNTS.size
    joined = body(over(COUNTS, ("a", COUNTS, "data")), style="series-1", marker=marker)
    dense = sum(char != " " for line in joined for char in line)
    assert sum(char != " " for line in whole for char in line) < 0.8 * dense


def test_baseline_over_whole_numbers_has_hollow_points():
    lines = body(over(COUNTS, ("a", COUNTS, "data"), ("old", 2 * COUNTS, "baseline"), whole=True))
    assert "".join(lines).count("○") == COUNTS.size


def test_whole_numbers_closer_than_three_columns_are_a_line():
    x = np.arange(1.0, 200.0)
    assert "●" not in "".join(body(over(x, ("a", x, "data"), whole=True)))


def test_measured_points_have_half_cells_and_keep_the_dots_of_the_curve():
    x = np.linspace(0, 1, 300)
    high = over(x, ("", x, "baseline"), ("m", np.where(x > 0, np.nan, 0.99), "points"))
    low = over(x, ("", x, "baseline"), ("m", np.where(x > 0, np.nan, 0.97), "points"))
    places = [cells(body(plot, style="series-1")) for plot in (high, low)]
    assert [len(place) for place in places] == [1, 1]
    assert places[0] != places[1]
    flat = over(x, ("", np.full(300, 0.5), "data"), ("m", np.where(x > 0, np.nan, 0.5), "points"))
    [shared] = [run.text for line in render_runs(flat, 100, 24)[1:-3] for run in line if run.style == "series-2"]
    [curve] = [run.text for line in render_runs(flat, 100, 24)[1:-3] for run in line if run.style == "series-1"]
    assert (ord(shared) - 0x2800) & (ord(curve[5]) - 0x2800) == ord(curve[5]) - 0x2800
    assert shared != curve[5]


@pytest.mark.parametrize("scale", Scale)
def test_error_bar_spans_its_error_on_both_scales(scale):
    line = PlotLine("m", [1.0, 2.0], [1.0, 2.0], "points", [0.5, np.nan])
    axes = AxisDescription("x"), AxisDescription("time", units.SECOND, scale)
    description = PlotDescription("", *axes, (line,))
    (axes,) = draw(description).axes
    [segment] = [part for part in axes.collections[0].get_segments() if np.isfinite(part).all() and len(part)]
    expected = [0.5, 1.5] if scale is Scale.LINEAR else np.log10([0.5, 1.5])
    np.testing.assert_allclose(segment[:, 1], expected, rtol=1e-12, atol=0)
    lines = body(description, style="series-1")
    first = [line[5:9].strip() != "" for line in lines]
    assert sum(first) >= 5
    assert sum("⠁" <= line[-1] <= "⣿" for line in lines) == 1


def test_curves_have_different_dashes_and_samples():
    x = np.linspace(0, 1, 300)
    lines = [(name, np.full(300, float(level)), "data") for level, name in enumerate("abc")]
    drawn = [body(over(x, *lines), style=f"series-{number}") for number in (1, 2, 3)]
    assert len({len(cells(part)) for part in drawn}) >= 2
    legend = render(over(x, *lines), 100, 24, colour=False).splitlines()[0]
    samples = [legend[legend.index(f" {key} {key} ") - 2 :][:2] for key in "ab"]
    assert samples == ["━━", "━╸"]


def test_measured_points_leave_the_first_dashes_to_the_first_curve():
    x = np.linspace(0, 1, 30)
    legend = render(over(x, ("m", x, "points"), ("fit", x, "data")), 100, 24, colour=False).splitlines()[0]
    assert "⠶ a m" in legend
    assert "━━ b fit" in legend


def test_names_at_ends_of_curves_do_not_overlap():
    x = np.linspace(0, 1, 300)
    lines = [(f"curve-{number}", x + 0.001 * number, "data") for number in range(4)]
    text = "\n".join(body(over(x, *lines)))
    found = [f"curve-{number}" for number in range(4) if f"curve-{number}" in text]
    assert len(found) >= 2
    assert all(text.count(name) == 1 for name in found)


def test_single_curve_has_no_name_at_its_end():
    assert "alone" not in "\n".join(body(over(COUNTS, ("alone", COUNTS, "data"))))


def test_parts_far_below_a_steady_total_are_left_out_and_named_with_an_arrow():
    total = 5e-3 * (1 + 0.07 * np.linspace(0, 1, 16))
    lines = ("total", total, "data"), ("part", np.full(16, 1e-4), "data"), ("half", 0.9 * total, "data")
    close, whole = (render(over(COUNTS, *lines, close_up=close), 100, 24, colour=False) for close in (True, False))
    assert "part ↓" in close
    assert "↓" not in whole
    assert "\n  0 ┤" not in close
    assert "0 ┤" in whole
    steep = ("total", 5e-3 * COUNTS, "data"), lines[1]
    assert "↓" not in render(over(COUNTS, *steep, close_up=True), 100, 24, colour=False)


def test_left_out_part_is_named_in_the_picture_and_not_drawn():
    total = 5e-3 * (1 + 0.07 * np.linspace(0, 1, 16))
    (axes,) = draw(over(COUNTS, ("total", total, "data"), ("part", total / 50, "data"), close_up=True)).axes
    assert "part ↓" in [text.get_text() for text in axes.texts]
    assert axes.get_ylim()[0] > 4.5e-3


def test_baseline_below_a_close_up_is_still_drawn():
    total = 5e-3 * (1 + 0.07 * np.linspace(0, 1, 16))
    text = render(over(COUNTS, ("now", total, "data"), ("before", total / 9, "baseline"), close_up=True), 100, 24)
    assert "↓" not in text


def floor_of(lines):
    return [(row, line.index("└")) for row, line in enumerate(lines) if "└" in line]


@pytest.mark.parametrize("size", [(120, 36), (72, 20), (60, 16), (200, 50)])
def test_plot_with_kept_lines_does_not_move_when_the_crosshair_comes(size):
    x = np.linspace(1, 16, 200)
    lines = [(name, x * level, "data") for level, name in enumerate(("iteration", "kernel", "communication"), 1)]
    grid = HeatMap("t", AxisDescription("a"), AxisDescription("b"), AxisDescription("c"), x, x, np.outer(x, x))
    for description in (over(x, *lines), grid):
        pictures = [
            ["".join(run.text for run in line) for line in render_runs(description, *size, reserve=True, cross=cross)]
            for cross in (None, (3.0, 3.0), (16.0, 16.0))
        ]
        assert floor_of(pictures[0])
        assert floor_of(pictures[0]) == floor_of(pictures[1]) == floor_of(pictures[2])
        tops = [next(row for row, line in enumerate(lines) if "│" in line or "┤" in line) for lines in pictures]
        assert len(set(tops)) == 1


def test_whole_numbers_are_points_in_the_picture_with_a_faint_line():
    (axes,) = draw(over(COUNTS, ("a", COUNTS, "data"), whole=True)).axes
    join, points = axes.lines
    assert (join.get_marker(), join.get_alpha()) == ("None", 0.6) or join.get_marker() == ""
    assert (points.get_linestyle(), points.get_marker()) == ("None", "o")


def test_first_curve_is_on_top_and_points_above_it_in_the_picture():
    x = np.linspace(0, 1, 50)
    (axes,) = draw(over(x, ("a", x, "data"), ("b", x, "data"), ("m", x, "points"))).axes
    first, second, points = (line.get_zorder() for line in axes.lines)
    assert second < first < points
