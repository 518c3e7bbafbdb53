import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from whatif import units
from whatif.plotting.crosshair import move_crosshair
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.plotting.terminal import point_at, render, render_runs

NUMBER = st.one_of(st.floats(width=64), st.sampled_from([0.0, -1.0, math.nan, math.inf, 1e-6, 1.0, 1e308, 5e-324]))
DIMENSION = st.sampled_from([units.ONE, units.SECOND, units.BYTE, units.FLOP_PER_SECOND])
AXIS = st.builds(
    AxisDescription,
    st.text(max_size=12),
    DIMENSION,
    st.sampled_from(Scale),
    st.just(()) | st.just(("a", "日本", "c")),
)
POINTS = st.lists(st.tuples(NUMBER, NUMBER), max_size=8).map(lambda p: np.array(p, float).reshape(-1, 2).T)
MARKER = st.sampled_from(["braille", "block", "ascii"])
CROSS = st.none() | st.tuples(NUMBER, NUMBER)
LINE = st.builds(
    lambda label, points, style: PlotLine(label, points[0], points[1], style),
    st.text(max_size=12),
    POINTS,
    st.sampled_from(["data", "baseline"]),
)
DESCRIPTION = st.builds(
    PlotDescription,
    st.text(max_size=20),
    AXIS,
    AXIS,
    st.lists(LINE, max_size=4).map(tuple),
    st.lists(st.builds(Marker, NUMBER, st.text(max_size=6)), max_size=2).map(tuple),
)


def log_log(*lines, markers=()):
    x = AxisDescription("message size", units.BYTE, Scale.LOG)
    y = AxisDescription("time", units.SECOND, Scale.LOG)
    return PlotDescription("ping pong", x, y, lines, markers)


def postal(label="postal", latency=1e-6, style="data"):
    n = np.logspace(0, 7, 400)
    return PlotLine(label, n, latency + n / 1e10, style)


@settings(deadline=None)
@given(
    DESCRIPTION,
    st.integers(1, 100),
    st.integers(1, 40),
    MARKER,
    st.booleans(),
    CROSS,
)
def test_plot_of_any_size_has_exact_dimensions(description, width, height, marker, colours, cross):
    lines = render_runs(description, width, height, marker=marker, colours=colours, cross=cross)
    assert len(lines) == height
    assert {sum(cell_len(run.text) for run in line) for line in lines} == {width}


@pytest.mark.parametrize("size", [(1, 1), (16, 6), (80, 24), (300, 100)])
@pytest.mark.parametrize(
    "y",
    [[], [1e-6], [1e-6] * 4, [math.nan] * 4, [0.0, -1.0, 0.0], [math.inf, 1.0], [1e-6, math.nan, 1e-3]],
    ids=["empty", "one", "constant", "nan", "not positive", "inf", "gap"],
)
def test_extreme_data_is_drawn_at_every_size(size, y):
    text = render(
        log_log(PlotLine("a", np.arange(1.0, len(y) + 1), y), markers=(Marker(2.0, "now"),)), *size, colour=False
    )
    lines = text.split("\n")
    assert len(lines) == size[1]
    assert max(map(cell_len, lines)) <= size[0]


def test_plot_of_a_million_points():
    x = np.linspace(1, 1e7, 10**6)
    lines = render(log_log(PlotLine("a", x, x / 1e9)), 120, 36, colour=False).split("\n")
    assert len(lines) == 36


def test_plot_of_size_zero_is_empty():
    assert render_runs(log_log(postal()), 0, 5) == [[]] * 5
    assert render(log_log(postal()), 10, 0) == ""


def test_plot_has_title_units_legend_and_decades():
    picture = render(log_log(postal(), markers=(Marker(65536.0, "now"),)), 80, 24, colour=False)
    for words in ("ping pong", "time (us)", "━━ a postal", "message size (B)", "┊ now", "10k"):
        assert words in picture
    assert picture.split("\n")[-2].split() == ["1", "10", "100", "1k", "10k", "100k", "1M", "10M"]


def test_colours_are_the_sixteen_ansi_colours():
    coloured = render(log_log(postal(), postal("b", 2e-6), postal("old", 5e-6, "baseline")), 80, 24)
    assert "\x1b[36m" in coloured
    assert "\x1b[33m" in coloured
    assert "\x1b[2m" in coloured
    assert "38;5" not in coloured


def test_ascii_plot_has_only_ascii_characters():
    description = log_log(postal(), postal("old", 5e-6, "baseline"), markers=(Marker(1e3, "now"),))
    assert render(description, 60, 20, marker="ascii", colour=False).isascii()


def curve_columns(line):
    """Columns of the drawing area, between the axis and the right edge, with a part of the curve."""
    lines = render_runs(log_log(line), 100, 24)
    columns = set()
    for runs in lines[2:]:
        cells = "".join(run.text if run.style == "series-1" else " " * len(run.text) for run in runs)
        columns |= {column for column, cell in enumerate(cells) if cell != " "}
    return columns


def test_nan_is_drawn_as_a_gap():
    x = np.logspace(0, 7, 200)
    y = 1e-6 + x / 1e10
    whole = curve_columns(PlotLine("", x, y))
    assert whole == set(range(min(whole), max(whole) + 1))
    y[80:120] = np.nan
    missing = whole - curve_columns(PlotLine("", x, y))
    assert missing == set(range(min(missing), max(missing) + 1))
    assert 0.15 * len(whole) < len(missing) < 0.25 * len(whole)


def test_isolated_point_is_highlighted():
    assert "●" in render(log_log(PlotLine("a", [1, 10, 100, 1e3], [1, np.nan, 1, np.nan])), 60, 20)


def test_x_labels_do_not_touch():
    for width in range(16, 140):
        picture = render(log_log(postal()), width, 24, colour=False)
        row = picture.split("\n")[-2]
        shown = row.split()
        assert shown
        assert set(shown) <= {"1", "10", "100", "1k", "10k", "100k", "1M", "10M"}


def test_marker_keeps_the_curve_and_points_outside():
    with_mark = render(log_log(postal(), markers=(Marker(1e3, ""),)), 80, 24, colour=False)
    without = render(log_log(postal()), 80, 24, colour=False)
    assert all(
        a == b or (a, b) == ("┊", " ")
        for old, new in zip(without.split("\n"), with_mark.split("\n"), strict=True)
        for b, a in zip(old.ljust(80), new.ljust(80), strict=True)
    )
    outside = render(log_log(postal(), markers=(Marker(1e9, "now"),)), 80, 24, colour=False)
    assert "now >" in outside
    assert "┊" not in outside


def test_plots_in_threads_are_independent():
    plots = [log_log(postal(str(i), 10.0**-i)) for i in range(3, 7)]
    alone = [render(plot, 60, 20) for plot in plots]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda i: render(plots[i % 4], 60, 20), range(40))) == alone * 10


def test_plotting_does_not_import_textual():
    code = "import sys, whatif.plotting.terminal; print({'plotext', 'textual', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_point_far_outside_the_categories_does_not_overflow():
    description = PlotDescription(
        "",
        AxisDescription("x"),
        AxisDescription("y", ticks=("a", "b", "c")),
        (PlotLine("", np.array([1e146, 2.8e-162]), np.array([3.0, 0.0])),),
    )
    assert [len(line) for line in render(description, 30, 8, colour=False).splitlines()]
    for size in ((1, 1), (30, 8), (200, 50)):
        assert len(render_runs(description, *size)) == size[1]


def crossed(x, width=80, marker="braille"):
    description = log_log(postal(), postal("twice", 2e-6), postal("old", 5e-6, "baseline"))
    runs = render_runs(description, width, 24, marker=marker, cross=(x, math.nan))
    return description, ["".join(run.text for run in line) for line in runs]


def test_legend_shows_the_values_at_the_crosshair():
    _, lines = crossed(1e7)
    words = " ".join(" ".join(lines[:3]).split())
    assert "message size 1e+07 B" not in words
    assert "message size 10 MB ━━ postal 1.001 ms (-0.4%) ━╸ twice 1.002 ms ╍╍ old 1.005 ms" in words


def test_crosshair_is_at_its_point_and_highlights_the_curves():
    description, lines = crossed(1.0)
    left = lines[-3].index("└") + 1
    assert {line.index("●") for line in lines if "●" in line} == {left}
    assert sum(line[left] == "│" for line in lines) > 10
    _, lines = crossed(1e7)
    assert {line.index("●") for line in lines if "●" in line} == {79}
    for marker, upright, point in (("block", "│", "●"), ("ascii", "|", "#")):
        _, lines = crossed(1e4, marker=marker)
        [column] = {line.index(point) for line in lines if point in line}
        assert sum(line[column] == upright for line in lines) > 10
        place = point_at(description, 80, 24, (column, 10), marker=marker, cross=(1e4, math.nan))
        assert move_crosshair(description, place)[0] == pytest.approx(1e4, rel=0.1)


def test_plot_does_not_shift_while_the_crosshair_moves():
    for width in range(40, 140, 3):
        pictures = [crossed(x, width)[1] for x in np.geomspace(1, 1e7, 9)]
        floors = {(row, line.index("└")) for lines in pictures for row, line in enumerate(lines) if "└" in line}
        assert len(floors) == 1
        ticks = {tuple(row for row, line in enumerate(lines) if "┤" in line) for lines in pictures}
        assert len(ticks) == 1


def test_point_at_a_screen_position_has_values_of_both_axes():
    description = log_log(postal())
    lines = render(description, 80, 24, colour=False).split("\n")
    left, ten = lines[-3].index("└") + 1, lines[-3].index("┬", lines[-3].index("┬") + 1)
    x, _ = point_at(description, 80, 24, (ten, 10), colours=False)
    assert x == pytest.approx(10, rel=0.15)
    row = next(row for row, line in enumerate(lines) if line.lstrip().startswith("100 ┤"))
    _, y = point_at(description, 80, 24, (ten, row), colours=False)
    assert y == pytest.approx(1e-4, rel=0.3)
    assert point_at(description, 80, 24, (left - 1, 10), colours=False) is None
    assert point_at(description, 80, 24, (left, 0), colours=False) is None
    assert point_at(description, 80, 24, (80, 10), colours=False) is None


def test_crosshair_moves_to_the_nearest_point():
    description = log_log(postal())
    assert render_runs(description, 80, 24, cross=(1e9, math.nan)) == render_runs(description, 80, 24, cross=(1e7, 0.0))
    assert "message size 10 MB" in "".join(run.text for run in render_runs(description, 80, 24, cross=(1e9, 0.0))[0])


def test_crosshair_at_a_gap_is_read_but_not_drawn():
    lines = render_runs(log_log(PlotLine("a", [1, 10, 100], [1, 2, np.nan])), 80, 24, cross=(100.0, math.nan))
    words = ["".join(run.text for run in line) for line in lines]
    assert "message size 100 B" in " ".join(words[:2])
    assert "a –" in " ".join(words[:2])
    assert sum(line.count("│") for line in words) <= 20


def test_block_curves_use_quadrant_characters():
    picture = render(log_log(postal(), postal("old", 5e-6, "baseline")), 60, 20, marker="block", colour=False)
    assert "▀▀ a postal" in picture
    body = "".join(picture.split("\n")[3:-3])
    assert set("▗▄▖▝▀▘") & set(body)
    assert not any("⠀" <= character <= "⣿" for character in body)
