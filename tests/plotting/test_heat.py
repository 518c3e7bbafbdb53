from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from whatif import units
from whatif.plotting.crosshair import move_crosshair, readout
from whatif.plotting.description import AxisDescription, HeatMap, Scale
from whatif.plotting.terminal import point_at, render, render_runs

NUMBER = st.one_of(st.floats(width=64), st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-6, 1.0]))
AXIS = st.builds(AxisDescription, st.text(max_size=12), st.just(units.BYTE), st.sampled_from(Scale))


def heat(values, xs=None, ys=None, here=None, scale=Scale.LINEAR, x_scale=Scale.LINEAR):
    values = np.asarray(values, dtype=float)
    return HeatMap(
        "",
        AxisDescription("node.across", scale=x_scale),
        AxisDescription("node.up"),
        AxisDescription("time", units.SECOND, scale),
        np.arange(values.shape[0]) if xs is None else xs,
        np.arange(values.shape[1]) if ys is None else ys,
        values,
        here,
    )


def area(lines, marker="▀"):
    """Runs of the data by line, without the axis."""
    rows = []
    for runs in lines:
        at = next((i for i, run in enumerate(runs) if run.text[-1] in "│┤|" and run.style == "axis"), None)
        if at is not None:
            rows.append(runs[at + 1 :])
    return rows


@st.composite
def heat_maps(draw):
    columns, rows = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    xs, ys = (draw(st.lists(NUMBER, min_size=n, max_size=n)) for n in (columns, rows))
    values = np.array(draw(st.lists(NUMBER, min_size=columns * rows, max_size=columns * rows)))
    here = draw(st.none() | st.tuples(NUMBER, NUMBER))
    axes = [draw(AXIS) for _ in range(3)]
    return HeatMap(draw(st.text(max_size=9)), *axes, xs, ys, values.reshape(columns, rows), here)


@settings(deadline=None)
@given(
    heat_maps(),
    st.integers(1, 90),
    st.integers(1, 30),
    st.sampled_from(["braille", "block", "ascii"]),
    st.booleans(),
    st.none() | st.tuples(NUMBER, NUMBER),
)
def test_heat_map_of_any_size_has_exact_dimensions(description, width, height, marker, colours, cross):
    lines = render_runs(description, width, height, marker=marker, colours=colours, cross=cross)
    assert len(lines) == height
    assert {sum(cell_len(run.text) for run in line) for line in lines} == {width}


def test_each_cell_shows_the_nearest_value_on_its_axis():
    # On a logarithmic axis the borders of 1, 10 and 1000 are at 10^0.5 and 10^2; the axis spans 10^-0.5 to 10^4.
    description = heat([[0.0], [6.0], [12.0]], xs=[1, 10, 1000], x_scale=Scale.LOG)
    rows = area(render_runs(description, 96, 20))
    assert {sum(len(run.text) for run in row) for row in rows} == {90}
    for row in rows:
        assert [(len(run.text), run.style) for run in row] == [(20, "heat-0"), (30, "heat-6"), (40, "heat-11")]


def test_cell_shows_two_values_with_the_upper_in_the_foreground():
    rows = area(render_runs(heat([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]], xs=[0]), 40, 6))
    assert [[(run.style, run.fill) for run in row] for row in rows] == [
        [("heat-11", "heat-9")],
        [("heat-7", "heat-4")],
        [("heat-2", "heat-0")],
    ]


def test_logarithmic_colour_scale_covers_the_decades():
    values = [[1.0], [10.0], [100.0], [1000.0], [0.0]]
    [row, *_] = area(render_runs(heat(values, scale=Scale.LOG), 80, 20))
    assert [run.style for run in row] == ["heat-0", "heat-4", "heat-8", "heat-11", "heat-0"]
    [row, *_] = area(render_runs(heat(values), 80, 20))
    assert [run.style for run in row] == ["heat-0", "heat-1", "heat-11", "heat-0"]


def test_equal_values_have_the_middle_colour():
    assert {run.style for row in area(render_runs(heat([[7.0] * 3] * 2), 60, 12)) for run in row} == {"heat-6"}


def test_infeasible_points_have_no_colour():
    description = heat([[1.0, 1.0], [np.nan, np.nan], [np.nan, 2.0]])
    text = render(description, 80, 23, colour=False)
    assert "/ infeasible" in text
    coloured = render_runs(description, 80, 23)
    assert "· infeasible" in "".join(run.text for run in coloured[0])
    lowest = area(coloured)[-1]
    assert [(run.text[0], run.style) for run in lowest] == [("▀", "heat-0"), ("·", "label")]
    last = "".join(run.text for run in area(render_runs(description, 80, 23, colours=False))[-1])
    assert set(last) == {" ", "/"}
    assert "infeasible" not in render(heat([[1.0, 2.0]]), 80, 23)


def test_half_cell_without_a_value_is_empty():
    rows = area(render_runs(heat([[np.nan, 1.0, np.nan, 3.0, 1.0, np.nan]], xs=[0]), 40, 6))
    assert [[(run.text[0], run.style, run.fill) for run in row] for row in rows] == [
        [("▄", "heat-0", "")],
        [("▀", "heat-11", "")],
        [("▀", "heat-0", "")],
    ]


def test_colour_scale_shows_the_smallest_and_the_largest_value():
    header = "".join(run.text for run in render_runs(heat([[2e-3, np.nan], [31e-6, 4e-4]]), 80, 20)[0])
    assert "time 31 us ████████████ 2 ms" in header
    logarithmic = heat([[2e-3], [31e-6]], scale=Scale.LOG)
    assert "2 ms (log)" in "".join(run.text for run in render_runs(logarithmic, 80, 20)[0])
    assert "time: no values" in render(heat([[np.nan]]), 80, 20, colour=False)


def test_large_values_have_dense_characters_without_colours():
    row = "".join(run.text for run in area(render_runs(heat(np.arange(10.0)[:, None]), 94, 20, marker="ascii"))[0])
    assert "".join(dict.fromkeys(row)) == " .:-=+*#%@"
    assert "█" not in render(heat([[1.0, 2.0]]), 80, 20, colour=False)
    assert render(heat([[1.0, 2.0]], here=(0, 1)), 80, 20, marker="ascii").isascii()


def test_present_point_is_marked():
    description = heat(np.arange(12.0).reshape(3, 4), here=(2.0, 0.0))
    lines = ["".join(run.text for run in line) for line in render_runs(description, 60, 20)]
    marks = [(row, line.index("●")) for row, line in enumerate(lines) if "●" in line]
    assert lines[0].index("●") == marks[0][1]
    [(row, column)] = marks[1:]
    assert move_crosshair(description, point_at(description, 60, 20, (column, row))) == (2.0, 0.0)
    outside = heat(np.arange(12.0).reshape(3, 4), here=(99.0, 0.0))
    assert sum(line.count("●") for line in render(outside, 60, 20).split("\n")[1:]) == 0


@pytest.mark.parametrize("x_scale", Scale)
def test_crosshair_position_equals_point_at_the_mouse(x_scale):
    description = heat(np.arange(20.0).reshape(5, 4), xs=[1.0, 2, 4, 8, 16], x_scale=x_scale)
    for x in description.xs:
        for y in description.ys:
            cross = (float(x), float(y))
            lines = ["".join(run.text for run in line) for line in render_runs(description, 70, 24, cross=cross)]
            [(row, column)] = [(row, line.index("┼")) for row, line in enumerate(lines) if "┼" in line]
            assert move_crosshair(description, point_at(description, 70, 24, (column, row), cross=cross)) == cross
            assert f"{description.values[int(np.log2(x)), int(y)]:g} s " in " ".join(lines[:2])
    assert point_at(description, 70, 24, (0, 0)) is None


def test_crosshair_keeps_background_colours():
    lines = render_runs(heat([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]), 110, 20, cross=None)
    crossed = render_runs(heat([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]), 110, 20, cross=(0.0, 1.0))

    def fills(lines):
        return [run.fill for row in area(lines)[-12:] for run in row for _ in run.text]

    assert fills(lines) == fills(crossed)
    styles = {(run.style, run.fill) for row in area(crossed) for run in row if set(run.text) & set("│─┼")}
    assert ("over-dark", "heat-0") in styles
    assert ("over-light", "heat-11") in styles
    assert not {style for style in styles if style[0] == "over-light" and style[1] == "heat-0"}


def test_readout_of_a_heat_map_has_both_positions_and_the_value():
    description = heat([[1e-3, np.nan], [3e-3, 4e-3]])
    assert [tuple(reading)[:2] for reading in readout(description, 0.9, 0.2)] == [
        ("across", "1"),
        ("up", "0"),
        ("time", "3 ms"),
    ]
    assert readout(description, 0, 1)[-1].value == "–"
    assert [reading.value for reading in readout(heat(np.zeros((0, 2))), 0, 1)] == ["–", "–", "–"]


def test_crosshair_stays_inside_the_heat_map():
    description = heat(np.zeros((5, 4)))
    assert move_crosshair(description, (0.0, 0.0), 2, 3) == (2, 3)
    assert move_crosshair(description, (3.0, 2.0), 10, -10) == (4, 0)
    assert move_crosshair(description, (np.nan, np.nan), 1, 0) == (1, 0)


@pytest.mark.parametrize("width", [30, 42, 80])
def test_the_value_under_the_crosshair_is_shown_where_there_is_little_room(width):
    axes = {"x": AxisDescription("network.between_nodes.bandwidth"), "y": AxisDescription("node.gpu.dram_bandwidth")}
    description = replace(heat([[1.0, 2.0], [3.0, 4.25]]), **axes)
    lines = render_runs(description, width, 12, cross=(1.0, 1.0))
    assert any("time 4.25 s" in "".join(run.text for run in line) for line in lines)
