import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from whatif import units
from whatif.plotting.axis_view import axes_of, axis_space, axis_unit, points_of, ticks
from whatif.plotting.crosshair import readout
from whatif.plotting.description import (
    AxisDescription,
    BarSegment,
    HeatMap,
    PlotDescription,
    PlotLine,
    Scale,
    StackedBar,
    shorten,
    text_cells,
)
from whatif.plotting.raster import thin

ANY_FLOAT = st.floats(width=64)


def described(x, y, x_scale=Scale.LINEAR, y_scale=Scale.LINEAR, x_dimension=units.ONE):
    return PlotDescription(
        "title",
        AxisDescription("size", x_dimension, x_scale),
        AxisDescription("time", units.SECOND, y_scale),
        (PlotLine("line", x, y),),
    )


def plot_axes(description):
    return axes_of(description, points_of(description))


def curve(line, description, limit=400):
    [points] = points_of(PlotDescription("", description.x, description.y, (line,)))
    return thin(*points, limit)


def labels(view, most=100):
    return [tick.label for tick in ticks(view, lambda candidate: len(candidate) <= most)]


def test_line_of_unequal_lengths_raises():
    with pytest.raises(ValueError, match="2 x values but 1 y"):
        PlotLine("a", [1, 2], [1])


def test_heat_map_with_values_of_wrong_shape_raises():
    axis = AxisDescription("x")
    with pytest.raises(ValueError, match=r"`a` has 2 x 3 points but \(3, 2\) values"):
        HeatMap("a", axis, axis, axis, [1, 2], [1, 2, 3], np.zeros((3, 2)))


def test_wide_axis_label_is_reduced_to_its_last_part_and_unit():
    view = plot_axes(
        PlotDescription(
            "",
            AxisDescription("platform.node.gpu.dram_bandwidth", units.BYTE_PER_SECOND),
            AxisDescription("time"),
            (PlotLine("", [1e9, 9e9], [1, 2]),),
        )
    ).x
    assert view.label(39) == "platform.node.gpu.dram_bandwidth (GB/s)"
    assert view.label(38) == "dram_bandwidth (GB/s)"


def test_axis_space_is_nan_for_values_that_cannot_be_drawn():
    values = np.array([1.0, 0.0, -1.0, np.nan, np.inf, 100.0])
    np.testing.assert_array_equal(
        axis_space(values, AxisDescription("", scale=Scale.LOG)), [0, np.nan, np.nan, np.nan, np.nan, 2]
    )
    np.testing.assert_array_equal(axis_space(values, AxisDescription("")), [1, 0, -1, np.nan, np.nan, 100])


def test_log_axis_shows_decades_in_one_unit():
    x = np.logspace(0, 7, 50)
    axes = plot_axes(described(x, 1e-6 + x / 1e10, Scale.LOG, Scale.LOG, units.BYTE))
    assert axes.x.label(80) == "size (B)"
    assert labels(axes.x) == ["1", "10", "100", "1k", "10k", "100k", "1M", "10M"]
    assert axes.y.label(80) == "time (us)"
    assert labels(axes.y) == ["1", "10", "100", "1k"]
    assert labels(axes.x, most=5) == ["1", "100", "10k", "1M"]


def test_short_log_axis_shows_two_and_five():
    y = np.array([0.9e-6, 30e-6])
    assert labels(plot_axes(described([1, 2], y, y_scale=Scale.LOG)).y) == ["1", "2", "5", "10", "20"]


def test_log_axis_within_one_decade_has_linear_ticks():
    y = np.array([201e-6, 799e-6])
    view = plot_axes(described([1, 2], y, y_scale=Scale.LOG)).y
    assert view.unit.name == "us"
    assert labels(view) == ["200", "300", "400", "500", "600", "700", "800"]


def test_linear_axis_has_round_numbers_and_starts_at_zero():
    view = plot_axes(described([1, 2], [0.001, 0.093])).y
    assert (view.low, view.unit.name) == (0.0, "ms")
    assert labels(view) == ["0", "20", "40", "60", "80", "100"]


def test_linear_labels_share_decimals_and_suffix():
    assert labels(plot_axes(described([0.0, 1.0], [0, 1])).x)[:3] == ["0", "0.2", "0.4"]
    assert labels(plot_axes(described([0, 50_000], [0, 1])).x)[:3] == ["0", "10k", "20k"]
    assert "0" in labels(plot_axes(described([-1.0, 1.0], [0, 1])).x)


def test_axis_units_are_in_the_unit_table():
    assert axis_unit(2e-6, units.SECOND).name == "us"
    assert axis_unit(3e4, units.SECOND).name == "s"
    assert axis_unit(1e10, units.BYTE_PER_SECOND).name == "GB/s"
    assert axis_unit(1e10, units.PER_SECOND).name == "1/s"
    assert axis_unit(1e-15, units.SECOND).name == "ns"
    assert axis_unit(0.5, units.ONE).name == ""


@given(ANY_FLOAT, st.sampled_from([units.ONE, units.BYTE, units.WATT, units.SECOND / units.BYTE]))
def test_axis_unit_size_matches_its_name(reference, dimension):
    unit = axis_unit(reference, dimension)
    assert unit.size == (units.parse_unit(unit.name)[1] if unit.name else 1.0)


@given(st.lists(ANY_FLOAT, max_size=20), st.sampled_from(Scale), st.booleans())
def test_ticks_are_distinct_and_inside_finite_limits(values, scale, narrow):
    axes = plot_axes(described(values, values, scale, scale))
    for view in axes:
        assert math.isfinite(view.low)
        assert math.isfinite(view.high)
        assert view.low < view.high
        shown = ticks(view, lambda candidate: len(candidate) <= (3 if narrow else 12))
        slack = 1e-6 * (view.high - view.low)
        assert all(view.low - slack <= tick.position <= view.high + slack for tick in shown)
        assert len({tick.label for tick in shown}) == len(shown)


def test_categories_keep_their_names_and_positions():
    axis = AxisDescription("platform", ticks=("summit", "lassen", "summit"))
    view = plot_axes(PlotDescription("", axis, AxisDescription("time"), ())).x
    assert [(t.position, t.label) for t in ticks(view, lambda _: True)] == [
        (0.0, "summit"),
        (1.0, "lassen"),
        (2.0, "summit #3"),
    ]


def test_gaps_are_kept():
    x, y = curve(PlotLine("a", [1, 2, 3, 4], [1, 0, 3, np.nan]), described([], [], y_scale=Scale.LOG))
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    np.testing.assert_array_equal(np.isnan(y), [False, True, False, True])


def test_thinning_keeps_extremes_ends_and_gaps():
    y = np.sin(np.arange(1e6) / 1e5)
    y[123_456], y[654_321], y[400_000:400_003] = 7.0, -7.0, np.nan
    x, thinned = thin(np.arange(1e6), y, 400)
    assert thinned.size <= 400
    assert (np.nanmax(thinned), np.nanmin(thinned)) == (7.0, -7.0)
    assert (x[0], x[-1]) == (0.0, 999_999.0)
    assert np.isnan(thinned).sum() == 1
    assert 400_000 <= x[np.isnan(thinned)][0] < 400_003


def test_thinning_keeps_every_decade_of_a_linear_sweep_on_a_log_axis():
    x = np.linspace(1, 1e6, 100_000)
    thinned_x, _ = curve(PlotLine("a", x, x), described([], [], Scale.LOG, Scale.LOG))
    assert np.max(np.diff(thinned_x)) < 1.1  # the sweep itself jumps from 1 to 11


@given(st.lists(st.tuples(ANY_FLOAT, ANY_FLOAT), max_size=60), st.integers(5, 30))
def test_thinning_respects_its_limit_and_keeps_only_given_points(points, limit):
    pairs = np.array(points, dtype=np.float64).reshape(-1, 2)
    x, y = (axis_space(column, AxisDescription("")) for column in pairs.T)
    thinned_x, thinned_y = thin(x, y, limit)
    assert thinned_x.size <= max(limit, 0)
    known = set(zip(x.tolist(), y.tolist(), strict=True))
    for pair in zip(thinned_x.tolist(), thinned_y.tolist(), strict=True):
        assert pair in known or any(math.isnan(value) for value in pair)


def test_shares_sum_to_one_and_ignore_invalid_values():
    parts = (BarSegment("a", 3.0), BarSegment("b", 1.0), BarSegment("c", math.nan), BarSegment("d", -5.0))
    assert StackedBar(parts).shares() == (0.75, 0.25, 0.0, 0.0)
    assert StackedBar((BarSegment("a", math.inf),)).shares() == (0.0,)
    assert StackedBar(()).shares() == ()


def test_data_styles_repeat_and_skip_baselines():
    lines = tuple(PlotLine(str(i), [], [], "baseline" if i == 1 else "data") for i in range(8))
    styles = PlotDescription("", AxisDescription(""), AxisDescription(""), lines).line_styles()
    assert styles[:3] == ("series-1", "baseline", "series-2")
    assert styles[-1] == "series-1"
    assert StackedBar((BarSegment("a", 1), BarSegment("b", 1, "axis"))).styles() == ("series-1", "axis")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("ab", 0, "")],
)
def test_shorten_counts_cells(text, width, expected):
    assert shorten(text, width) == expected


def test_control_characters_are_written_out_and_combining_ones_are_one_cell_wide():
    assert text_cells("a\x1b\u0301日") == ["a", *"\\x1b", "?", "日", ""]


def test_width_of_any_character_equals_its_width_in_a_terminal():
    for char in (chr(code) for code in range(0x20, 0xFFDD) if not 0xD800 <= code < 0xE000):
        cells = text_cells(char)
        assert len(cells) == cell_len("".join(cells)), hex(ord(char))


def test_readout_of_curves_without_names_is_the_position_alone():
    axis = AxisDescription("", units.ONE, Scale.LINEAR)
    lines = (PlotLine("", np.zeros(1), np.zeros(1)), PlotLine("", np.zeros(1), np.ones(1), "baseline"))
    (place,) = readout(PlotDescription("", axis, axis, lines), 0.0)
    assert place.value == "0"
