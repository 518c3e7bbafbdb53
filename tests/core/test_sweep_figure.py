import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.core.sweep_figure import (
    Y_COLUMN,
    alone,
    breakdown,
    columns_to_plot,
    figure,
    heat_map,
    plot_table,
)
from whatif.plotting.axis_view import axes_of, points_of
from whatif.plotting.crosshair import move_crosshair, nearest, present_point, readout
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.plotting.terminal import terminal_picture
from whatif.units import SECOND, format_quantity

MEMORY = "platform.node.gpu.dram_bandwidth"
GPUS = "platform.node.gpu_count"
RANKS = "application.rank_count"
SWEEP = f"{MEMORY}=0.5 TB/s .. 4 TB/s log 7"


def swept(scenario, *sweeps, **sets):
    scenario = Scenario.open(scenario, overrides={path.replace("__", "."): value for path, value in sets.items()})
    axes = [parse_option(text, scenario.program, 10**6) for text in sweeps]
    return run_whole(scenario, grid_of(axes, 10**6))


def predicted(scenario, column=Y_COLUMN, **sets):
    """One point, evaluated alone."""
    return float(swept(scenario, **sets).columns[column])


def test_a_heat_map_has_the_value_of_every_point_alone():
    drawn = heat_map(swept("jacobi2d", SWEEP, f"{GPUS}=2, 4, 6"), "communication_time", (0.9e12, 6.0))
    assert drawn.values.shape == (7, 3)
    assert_array_equal(drawn.ys, [2, 4, 6])
    for column, memory in enumerate(drawn.xs):
        for row, gpus in enumerate(("2", "4", "6")):
            sets = {MEMORY.replace(".", "__"): f"{float(memory)!r} B/s", GPUS.replace(".", "__"): gpus}
            assert_allclose(
                drawn.values[column, row], predicted("jacobi2d", "communication_time", **sets), rtol=1e-12, atol=0
            )
    assert (drawn.x.label, drawn.y.label, drawn.z.label) == (MEMORY, GPUS, "communication")
    assert (drawn.x.scale, drawn.y.scale) == (Scale.LOG, Scale.LINEAR)
    assert drawn.here == (0.9e12, 6.0)


def test_a_heat_map_of_choices_names_them_and_has_no_present_point_without_both_places():
    drawn = heat_map(swept("jacobi2d", "platform=summit, lassen", f"{RANKS}=64, 256"), here=(None, 64.0))
    assert drawn.x.ticks == ("summit", "lassen")
    assert_array_equal(drawn.xs, [0, 1])
    assert drawn.here is None
    assert heat_map(swept("jacobi2d", SWEEP, f"{GPUS}=2, 4")).here is None


def test_points_that_cannot_exist_are_gaps_of_a_heat_map():
    result = swept("minife", f"{RANKS}=2, 1024", f"{GPUS}=1, 4")
    drawn = heat_map(result)
    assert_array_equal(np.isnan(drawn.values), result.reason != "")
    assert 0 < result.infeasible < result.grid.size


def test_a_third_axis_stays_at_its_first_place():
    path = "application.phases.overhead.overhead_time"
    three = swept("jacobi2d", SWEEP, f"{GPUS}=2, 4", f"{path}=900 us, 100 us")
    two = swept("jacobi2d", SWEEP, f"{GPUS}=2, 4", **{path.replace(".", "__"): "900 us"})
    assert_array_equal(heat_map(three).values, heat_map(two).values)
    for line, other in zip(figure(three).lines, figure(two).lines, strict=True):
        assert_array_equal(line.y, other.y)


def test_scales_suit_the_values_unless_one_is_selected():
    result = swept("jacobi2d", SWEEP)
    suiting = figure(result)
    assert (suiting.x.scale, suiting.y.scale) == (Scale.LOG, Scale.LOG)
    inputs = figure(result, x_scale=Scale.LINEAR, y_scale=Scale.LOG)
    assert (inputs.x.scale, inputs.y.scale) == (Scale.LINEAR, Scale.LOG)
    wide = figure(swept("jacobi2d", f"{MEMORY}=1 GB/s .. 1 TB/s log 9"))
    assert wide.y.scale is Scale.LOG
    turned = heat_map(swept("jacobi2d", SWEEP, f"{GPUS}=2, 4"), x_scale=Scale.LINEAR, y_scale=Scale.LOG)
    assert (turned.x.scale, turned.y.scale) == (Scale.LINEAR, Scale.LOG)


def test_the_colours_of_a_heat_map_are_logarithmic_beyond_two_decades():
    assert heat_map(swept("jacobi2d", f"{MEMORY}=1 GB/s .. 1 TB/s log 9", f"{GPUS}=2, 4")).z.scale is Scale.LOG
    assert heat_map(swept("jacobi2d", SWEEP, f"{GPUS}=2, 4")).z.scale is Scale.LINEAR


def test_choices_have_no_logarithm():
    drawn = figure(swept("jacobi2d", "platform=summit, lassen"), x_scale=Scale.LOG)
    assert drawn.x.scale is Scale.LINEAR
    [(x, _), *_] = points_of(drawn)
    assert_array_equal(x, [0, 1])


def test_values_that_are_not_positive_are_gaps_on_a_logarithmic_axis():
    path = "application.phases.overhead.overhead_time"
    drawn = figure(swept("jacobi2d", f"{path}=0 us, 1 us, 10 us"), x_scale=Scale.LOG, y_scale=Scale.LOG)
    points = points_of(drawn)
    assert_allclose(points[0][0], [np.nan, -6, -5], rtol=1e-12)
    assert [line.label for line in drawn.lines][-1] == "overhead"
    assert np.isnan(points[-1][1][0])
    view = axes_of(drawn, points).x
    assert (view.low, view.high) == (-6, -5)


def test_the_curve_before_has_the_values_of_the_other_question():
    before = swept("jacobi2d", SWEEP, **{GPUS.replace(".", "__"): "4"})
    drawn = figure(swept("jacobi2d", SWEEP), before=before)
    assert drawn.lines[-1].style == "baseline"
    assert_array_equal(drawn.lines[-1].y, before.columns[Y_COLUMN])


def test_a_reading_equals_the_output_of_the_command_line(whatif_main):
    result = swept("jacobi2d", SWEEP)
    x = float(next(iter(result.grid.axes[0].parameters.values()))[3])
    place, *curves = readout(figure(result), x * 1.1)
    assert place == ("dram_bandwidth", "1.414 TB/s")
    _, out, _ = whatif_main("run", "jacobi2d", "--set", f"{MEMORY}={x!r} B/s", "--point", "--format", "json")
    row = json.loads(out)["rows"][0]
    for reading in curves:
        assert reading.value == format_quantity(row[f"{reading.label}_time"], SECOND)


def test_a_reading_shows_the_difference_to_earlier_values():
    change = {GPUS.replace(".", "__"): "2"}
    drawn = figure(swept("jacobi2d", SWEEP), before=swept("jacobi2d", SWEEP, **change))
    now, before = (predicted("jacobi2d", **sets, **{MEMORY.replace(".", "__"): "4 TB/s"}) for sets in ({}, change))
    _, iteration, *_, old = readout(drawn, 4e12)
    assert iteration.value == f"{now * 1e3:.4g} ms ({100 * (now - before) / before:+.1f}%)"
    assert old.value == f"{before * 1e3:.4g} ms"


def described(*lines, x=None, markers=()):
    return PlotDescription("", x or AxisDescription("a.size"), AxisDescription("time", SECOND), lines, markers)


def test_a_gap_reads_as_a_dash():
    plot = described(PlotLine("a", [1, 2, 3], [1, np.nan, 3]), PlotLine("old", [1, 2, 3], [2, 2, 0], "baseline"))
    assert [reading.value for reading in readout(plot, 2)] == ["2", "–", "2 s"]
    assert [reading.value for reading in readout(plot, 1)] == ["1", "1 s (-50.0%)", "2 s"]
    assert [reading.value for reading in readout(plot, 3)] == ["3", "3 s", "0 s"]
    assert readout(described(), 1) == (("size", "–"),)


def test_a_category_is_read_by_its_name():
    plot = described(PlotLine("a", [0, 1], [1, 2]), x=AxisDescription("platform", ticks=("summit", "lassen")))
    assert [reading.value for reading in readout(plot, 1.2)] == ["lassen", "2 s"]


def test_the_nearest_point_is_the_nearest_one_on_the_screen():
    values = np.array([1.0, 10.0, np.nan, 0.0])
    assert nearest(values, 4.0, AxisDescription("")) == 0
    assert nearest(values, 4.0, AxisDescription("", scale=Scale.LOG)) == 1
    assert nearest(values, -5.0, AxisDescription("")) == 3
    assert nearest(values, -5.0, AxisDescription("", scale=Scale.LOG)) is None


def test_a_crosshair_visits_the_points_of_all_curves_in_order():
    plot = described(PlotLine("a", [4, 1, 2], [0, 0, 0]), PlotLine("b", [3, np.nan], [0, 0]))
    places = [move_crosshair(plot, (1.0, np.nan), steps)[0] for steps in range(-1, 5)]
    assert places == [1, 1, 2, 3, 4, 4]
    assert move_crosshair(plot, (np.nan, np.nan), 2)[0] == 3
    assert np.isnan(move_crosshair(described(), (1.0, np.nan), 1)[0])


def test_the_present_point_is_the_marked_one():
    assert present_point(described(markers=(Marker(3.0, "now"),)))[0] == 3
    assert np.isnan(present_point(described())[0])


def test_the_table_of_curves_has_the_numbers_of_the_sweep():
    result = swept("jacobi2d", SWEEP)
    table, whole = plot_table(figure(result)), result.table()
    assert list(table.columns) == [MEMORY, "iteration", "kernel", "communication", "overhead"]
    assert_array_equal(table.columns[MEMORY].values, whole.columns[MEMORY].values)
    assert table.columns[MEMORY].unit == "B/s"
    for name in list(table.columns)[1:]:
        assert_array_equal(table.columns[name].values, whole.columns[f"{name}_time"].values)
        assert table.columns[name].unit == "s"


def test_the_table_of_a_family_has_a_column_for_each_curve():
    result = swept("jacobi2d", SWEEP, f"{GPUS}=2, 4, 6")
    table = plot_table(figure(result))
    assert list(table.columns) == [MEMORY, "gpu_count 2", "gpu_count 4", "gpu_count 6"]
    assert_array_equal(table.columns["gpu_count 4"].values, result.columns[Y_COLUMN][:, 1])


def test_the_table_of_a_heat_map_has_a_column_for_each_value_of_y():
    result = swept("minife", f"{RANKS}=2, 1024", "platform.node.gpu_count=1, 4")
    table = plot_table(heat_map(result))
    assert list(table.columns) == [RANKS, "gpu_count 1", "gpu_count 4"]
    rows = list(table.rows())
    assert [row[0] for row in rows] == [2.0, 1024.0]
    expected = [
        [None if reason else value for value, reason in zip(values, reasons, strict=True)]
        for values, reasons in zip(
            result.grid.spread(result.columns[Y_COLUMN]).tolist(), result.reason.tolist(), strict=True
        )
    ]
    assert [list(row[1:]) for row in rows] == expected


def test_the_table_of_choices_names_them():
    table = plot_table(figure(swept("jacobi2d", "platform=summit, lassen")))
    assert table.columns["platform"].values.tolist() == ["summit", "lassen"]
    assert table.columns["platform"].dimension is None


def test_curves_with_other_points_share_a_table():
    table = plot_table(described(PlotLine("a", [1, 3], [10, 30]), PlotLine("a", [2, 3, np.nan], [21, 31, 41])))
    assert list(table.columns) == ["a.size", "a", "a #2"]
    assert list(table.rows()) == [(1.0, 10.0, None), (2.0, None, 21.0), (3.0, 30.0, 31.0)]
    assert list(plot_table(described()).columns) == ["a.size"]


@pytest.mark.parametrize("scenario", ["jacobi2d", "minife", "minimd"])
def test_a_breakdown_by_category_adds_up_its_phases(scenario):
    point = swept(scenario)
    parts = {segment.label: segment.value for segment in breakdown(point, "category").segments}
    for category, time in parts.items():
        names = [phase.phase for phase in point.program.phases if phase.category == category]
        assert_allclose(time, sum(float(point.terms[name]) for name in names), rtol=1e-12, atol=0)
    assert set(parts) == {phase.category for phase in point.program.phases}
    assert_allclose(sum(parts.values()), sum(part.value for part in breakdown(point).segments), rtol=1e-12, atol=0)


def test_only_columns_that_take_time_are_offered():
    result = swept("jacobi2d", SWEEP)
    names = columns_to_plot(result)
    assert names[0] == Y_COLUMN
    assert "transfer_time" not in names
    assert float(np.nansum(result.columns["transfer_time"])) == 0
    assert "terms.halo" in names


def test_the_terminal_has_a_picture_of_its_size(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("LINES", "24")
    lines = terminal_picture(alone(swept("jacobi2d", SWEEP))).split("\n")
    assert len(lines) == 20
    assert f"{MEMORY} (TB/s)" in lines[-1]


def test_the_title_of_a_single_picture_states_the_grade():
    scenario = Scenario.open("jacobi2d", platform="frontier")
    grid = grid_of([parse_option("platform.node.gpu_count = 2, 4, 8", scenario.program, 10)], 10)
    result = run_whole(scenario, grid)
    assert alone(result).title == "iteration_time · rests on assumed values"
    beyond = replace(result, extrapolated={"halo: sizes of 1 B lie outside": np.True_})
    assert alone(beyond).title.endswith(" · halo: beyond the fitted range")
    published = {f"application.phases.{kernel}": "none" for kernel in ("pack", "unpack", "stencil", "reduce")}
    published["application.congestion"] = "none"
    assert alone(run_whole(Scenario.open("jacobi2d", overrides=published), grid)).title == "iteration_time"
