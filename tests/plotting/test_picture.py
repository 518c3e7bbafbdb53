"""Plots as SVG, PNG and PDF: positions, texts and colours, and errors."""

from __future__ import annotations

import itertools
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal

from tests.core.test_sweep_figure import swept
from tests.studies.test_attribution import program
from tests.tui.test_themes import SIGHTS, contrast, nearest
from whatif.core.evaluate import evaluate
from whatif.core.iteration_timeline import timeline
from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import breakdown, figure, with_distinct_positions
from whatif.extras import install_command
from whatif.plotting.bars import LESS, MORE, BarChart, BarRow
from whatif.plotting.description import (
    SERIES_STYLES,
    AxisDescription,
    HeatMap,
    Marker,
    PlotDescription,
    PlotLine,
    Scale,
)
from whatif.plotting.picture import draw, inline_svg, write_picture
from whatif.plotting.picture_style import DARK, HATCHES, LIGHT, LINES, POINTS, typographic
from whatif.studies import bar_charts as bars
from whatif.studies.attribution import attribute
from whatif.studies.bottlenecks import Bottleneck, Bottlenecks
from whatif.studies.elasticity import Elasticity
from whatif.units import BYTE_PER_SECOND, ONE, SECOND

ODD = "<b>&\"'--> $x_1^{2$ 漢字\x00 ]]>"


def curves(title="t"):
    """Curves over two decades of bandwidth, with a gap, a baseline and a marker."""
    x = np.array([1e9, 1e10, 1e11])
    lines = (
        PlotLine("iteration", x, np.array([2e-3, np.nan, 8e-3])),
        PlotLine(ODD, x, np.array([1e-3, 1e-3, 1e-3]), "baseline"),
    )
    axes = AxisDescription("a.bandwidth", BYTE_PER_SECOND, Scale.LOG), AxisDescription("time", SECOND)
    return PlotDescription(title, *axes, lines, (Marker(1e10, "now"),))


def heat(title="t", values=((1.0, 2.0, np.nan), (3.0, 4.0, 5.0))):
    x, y = AxisDescription("machine", ONE, ticks=("one", "two")), AxisDescription("n")
    return HeatMap(
        title, x, y, AxisDescription("time", SECOND), np.arange(2), np.arange(3), np.array(values), (1.0, 2.0)
    )


def every_kind():
    program = Scenario.open("jacobi2d").program
    phases = bars.phase_bars(program, timeline(program, evaluate(program)))
    return curves(ODD), heat(ODD), phases, breakdown(swept("jacobi2d"))


def parsed(svg):
    return ElementTree.fromstring(svg)  # noqa: S314 - drawn here


def texts(svg):
    return [node.text for node in parsed(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_pictures_of_all_file_types_and_reproducible_svg(tmp_path):
    for name, start in {"a.svg": b"<?xml", "a.png": b"\x89PNG", "a.PDF": b"%PDF", "b.svg": b"<?xml"}.items():
        write_picture(curves(ODD), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "matplotlib.pyplot" not in sys.modules


def test_curves_have_positions_units_names_and_gaps_of_the_terminal_plot():
    (axes,) = draw(curves()).axes
    first, second, mark = axes.lines
    assert_allclose(first.get_xdata(), [9, 10, 11], rtol=1e-12, atol=0)
    assert_allclose(first.get_ydata(), [2e-3, np.nan, 8e-3], rtol=1e-12, atol=0)
    assert_allclose(mark.get_xdata(), [10, 10], rtol=1e-12, atol=0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("a.bandwidth (GB/s)", "time (ms)")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "5", "10", "20", "50", "100"]
    assert_allclose(axes.get_xticks()[::3], [9, 10, 11], rtol=1e-12, atol=0)
    minor = np.log10([factor * decade for decade in (1e9, 1e10) for factor in range(1, 10)])
    assert_allclose(sorted({*axes.get_xticks(minor=True), *axes.get_xticks()}), [*minor, 11], rtol=1e-12, atol=0)
    named = {text.get_text(): text for text in axes.texts}
    # The name of a curve is at its end, in its colour: 8 of 8 ms, and 1 of 8.
    assert_allclose([named["iteration"].get_position()[1]], [1.0], rtol=1e-12, atol=0)
    assert (named["iteration"].get_color(), first.get_color()) == (LIGHT["series-1"],) * 2
    assert second.get_color() == LIGHT["baseline"]
    assert "now" in named


def test_curve_names_do_not_overlap():
    x = np.arange(3.0)
    lines = tuple(PlotLine(f"curve {n}", x, np.full(3, 1.0 + 1e-6 * n)) for n in range(6))
    (axes,) = draw(PlotDescription("t", AxisDescription("x"), AxisDescription("y"), lines)).axes
    places = sorted(text.get_position()[1] for text in axes.texts)
    assert max(places) <= 1
    assert min(np.diff(places)) > 0.05


def test_curve_is_drawn_from_left_to_right_for_any_order_of_points():
    axis, y = AxisDescription("x"), AxisDescription("y")
    (axes,) = draw(
        PlotDescription("t", axis, y, (PlotLine("c", np.array([4.0, 1.0, 2.0]), np.array([9.0, 3.0, 5.0])),))
    ).axes
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[1, 3], [2, 5], [4, 9]]
    assert line.get_linestyle() == "-"


def test_categorical_axis_has_points_without_lines():
    (axes,) = draw(figure(swept("jacobi2d", "platform=summit, lassen"))).axes
    assert {(line.get_linestyle(), line.get_marker() != "") for line in axes.lines} == {("None", True)}


def test_repeated_values_of_tied_parameters_are_drawn_as_points():
    result = swept("minife_devices", "parameters.flop_rate_factor=1, 2, 1; parameters.bandwidth_factor=1, 1, 0.5")
    plot = with_distinct_positions(figure(result), result)
    assert plot.x.ticks == ("1, 1", "2, 1", "1, 0.5")
    assert plot.x.label == "flop_rate_factor, bandwidth_factor"
    assert_array_equal(plot.lines[0].x, [0, 1, 2])
    steady = swept("jacobi2d", "platform.node.gpu_count=1, 2, 4")
    assert with_distinct_positions(figure(steady), steady).x.ticks == ()


def test_heat_map_has_values_in_place_and_gaps():
    axes, scale = draw(heat()).axes
    (mesh,) = axes.collections
    assert_array_equal(np.ma.filled(mesh.get_array(), -1).ravel(), [1, 3, 2, 4, -1, 5])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]
    assert scale.get_ylabel() == "time (s)"
    assert draw(heat(values=np.full((2, 3), np.nan))).axes[0].collections[:] == []


def test_waterfall_connects_both_results():
    chart = bars.waterfall_bars(attribute(program(), program(a=4.0, b=5.0, c=0.5)), ("here", "there"))
    # 2 * 3 + 1 = 7; a explains 8, b 6, c takes 0.5.
    spans = [(row.label.removeprefix("parameters."), row.start, row.end, row.style) for row in chart.rows]
    assert spans == [
        ("here", 0.0, 7.0, "faint"),
        ("a", 7.0, 15.0, bars.MORE),
        ("b", 15.0, 21.0, bars.MORE),
        ("c", 21.0, 20.5, bars.LESS),
        ("there", 0.0, 20.5, "faint"),
    ]
    assert [row.text for row in chart.rows[1:4]] == ["+8 s", "+6 s", "-500 ms"]
    (axes,) = draw(chart).axes
    drawn = [(bar.get_x(), bar.get_width()) for bar in axes.patches if not bar.get_hatch()]
    assert_allclose(drawn, [(0, 7), (7, 8), (15, 6), (21, -0.5), (0, 20.5)], rtol=1e-12, atol=0)
    # What becomes longer is hatched, as in the legend, and so not known by its colour alone.
    hatched = [(bar.get_x(), bar.get_width()) for bar in axes.patches if bar.get_hatch()]
    assert_allclose(hatched, [(7, 8), (15, 6)], rtol=1e-12, atol=0)
    assert [bool(handle.get_hatch()) for handle in axes.get_legend().legend_handles] == [False, True]
    assert "−500 ms" in [text.get_text() for text in axes.texts]


def test_tornado_shows_direction_and_grade_and_ladder_shows_remaining_time():
    machine = Scenario.open("jacobi2d", overrides={"platform.node.gpu.dram_bandwidth": "1 TB/s"}).program
    found = [
        Elasticity("platform.node.gpu.dram_bandwidth", "1 TB/s", -0.75, "±1 %"),
        Elasticity("application.iteration_count", "1", 0.5, "x2"),
        Elasticity("platform.node.gpu_count", "1", float("nan"), "", "it must be one"),
    ]
    tornado = bars.tornado_bars(machine, "iteration_time", found)
    assert [(row.end, row.style, row.text) for row in tornado.rows] == [
        (-0.75, bars.LESS, "-0.75  assumed"),
        (0.5, bars.MORE, "+0.5"),
    ]
    ladder = Bottlenecks("iteration_time", 4e-3, (Bottleneck("platform.node.gpu.dram_bandwidth", 3e-3, 1e-3),))
    rows = ladder.picture().rows
    assert [(row.end, row.text) for row in rows] == [(4e-3, "4 ms  100%"), (1e-3, "1 ms  25%")]


def test_names_with_special_characters_are_plain_text(tmp_path):
    write_picture(curves(ODD), tmp_path / "odd.svg")
    found = texts((tmp_path / "odd.svg").read_bytes())
    assert ODD.replace("\x00", "\\x00") in found
    inline = inline_svg(curves(ODD), ODD)
    assert parsed(inline).get("aria-label") == ODD.replace("\x00", "\\x00")
    assert "<b>" not in inline


def test_inline_svg_uses_colours_of_the_page_and_unique_identifiers():
    pictures = [inline_svg(description, f"picture {n}") for n, description in enumerate(every_kind())]
    assert not re.findall("|".join(LIGHT.values()), "".join(pictures))
    names = re.findall(r' id="([^"]+)"', "".join(pictures))
    assert len(names) == len(set(names))
    assert "<style" not in "".join(pictures)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_contrast_and_differ_with_any_colour_vision(palette):
    series = [palette[style] for style in SERIES_STYLES]
    for colour in (*series, palette["ink"], palette["muted"]):
        assert contrast(colour, palette["ground"]) >= 4.5
    assert {sight for sight in SIGHTS if nearest(series, sight) < 0.075} == set()
    assert all(one != other for one, other in itertools.combinations(palette.values(), 2))


def test_series_differ_without_colour():
    assert len(set(LINES)) == len(set(POINTS)) == len(set(HATCHES.values())) == len(SERIES_STYLES)
    assert list(HATCHES) == list(SERIES_STYLES)
    (axes,) = draw(breakdown(swept("jacobi2d"))).axes
    assert len({bar.get_hatch() for bar in axes.patches}) == min(len(axes.patches), len(SERIES_STYLES))


def test_printed_quantities_have_typographic_signs():
    assert typographic("-3 us ± 0.5 us, time (us)") == "−3 µs ± 0.5 µs, time (µs)"
    assert typographic("a-1 at us-east 2e-5 uB") == "a-1 at us-east 2e-5 uB"


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (
            ("run", "minife_gpus_per_node"),
            ["iteration_time · rests on assumed values", "platform.node.gpu_count", "kernel"],
        ),
        (("run", "jacobi2d"), ["one iteration", "stencil", "time (ms)"]),
        (("sensitivity", "jacobi2d"), ["elasticity of iteration_time", "platform.node.gpu.dram_bandwidth"]),
        (("sensitivity", "jacobi2d", "--show", "ladder"), ["present", "platform.network.inter_node"]),
        (("diff", "minimd", "--platform", "summit"), ["from Lassen to Summit", "platform.node.gpu_count"]),
    ],
)
def test_verbs_write_pictures(whatif_main, tmp_path, words, seen):
    code, out, _ = whatif_main(*words, "-o", "x.svg")
    assert (code, out) == (0, "")
    assert set(seen) <= set(texts((tmp_path / "x.svg").read_bytes()))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "jacobi2d", "--plot", "-o", "x.svg"), 2, "-o FILE.svg alone draws"),
        (("sensitivity", "jacobi2d", "-o", "x.svg", "--format", "csv"), 2, "no effect on the picture x.svg"),
        (("run", "jacobi2d", "-o", "x.svg", "--format", "csv"), 2, "no effect on the picture x.svg"),
        (("budget", "jacobi2d", "--platform", "summit", "--power", "1 MW", "-o", "x.svg"), 2, "has no picture"),
        (("diff", "minimd", "--platform", "summit", "-o", "x"), 2, "x: the name has no ending: use "),
        (("run", "jacobi2d", "-o", "no/x.svg"), 2, "no/x.svg: no folder no"),
        (("run", "jacobi2d", "--set", "application.rank_count=10000000", "-o", "x.svg"), 4, "more nodes"),
    ],
)
def test_invalid_picture_is_an_error_and_leaves_no_file(whatif_main, tmp_path, words, code, message):
    found, out, err = whatif_main(*words)
    assert (found, out) == (code, "")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_error_without_matplotlib_names_the_extra(whatif_main, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = whatif_main("run", "jacobi2d", "-o", "x.png")
    assert code == 2
    assert err.endswith(f"whatif: pictures need matplotlib (extra `report`): {install_command('report')}\n")


RANKS = "application.rank_count"


@pytest.mark.parametrize(
    "words",
    [
        ("scale", "minife", "--nodes", "1, 2, 4"),
        ("seek", "jacobi2d", "--vary", "platform.node.gpu.dram_bandwidth", "--equal-to", "frontier"),
        ("seek", "minife", "--vary", f"{RANKS}=8, 16, 32", "--pareto", f"iteration_time,{RANKS}"),
        ("compare", "minife", "--platform", "summit", "--platform", "frontier"),
    ],
)  # fmt: skip
def test_decisions_are_drawn(whatif_main, tmp_path, words):
    code, _, err = whatif_main(*words, "-o", "picture.svg")
    assert code == 0, err
    assert len(re.findall(r"<path", (tmp_path / "picture.svg").read_text(encoding="utf-8"))) > 5
    assert whatif_main(*words, "-o", "picture.doc")[0] == 2


def test_parts_of_a_line_with_gaps_are_not_joined_and_have_no_markers():
    x = np.concatenate([np.arange(1.0, 30), [np.nan], np.arange(1.0, 30)])
    figure = draw(
        PlotDescription("", AxisDescription("n"), AxisDescription("t"), (PlotLine("band", x, x, "baseline"),))
    )
    [line] = figure.axes[0].lines
    assert np.array_equal(line.get_xdata(), x, equal_nan=True)
    assert (line.get_linestyle(), line.get_marker()) == ("--", "")


def test_points_of_a_curve_are_hollow_in_its_colour_and_others_have_a_colour_of_their_own():
    x = np.array([1.0, 2.0, 3.0])
    lines = (
        PlotLine("a", x, x),
        PlotLine("b", x, 2 * x),
        PlotLine("m", x, x, "points", of="b"),
        PlotLine("n", x, x, "points"),
    )
    figure = draw(PlotDescription("", AxisDescription("n"), AxisDescription("t"), lines))
    styles = [(line.get_color(), line.get_markerfacecolor()) for line in figure.axes[0].lines if line.get_zorder() == 4]
    assert styles == [(LIGHT["series-2"], LIGHT["ground"]), (LIGHT["series-3"], LIGHT["series-3"])]


def test_bars_have_whiskers_and_a_line_at_the_reference():
    rows = (BarRow("one", 0.0, 2.0, MORE, "2", (1.5, 3.5)), BarRow("none", 0.0, 0.0, LESS, "cannot run"))
    (axes,) = draw(BarChart("", AxisDescription("throughput"), rows, reference=1.0)).axes
    (whisker,) = (item for item in axes.collections if isinstance(item, LineCollection))
    assert whisker.get_segments()[0].tolist() == [[1.5, 0.0], [3.5, 0.0]]
    lines = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in lines] == [[1.0, 1.0]]
    assert axes.get_xlim()[1] >= 3.5
    (place,) = (text.xy for text in axes.texts if text.get_text() == "2")
    assert place == (3.5, 0)
    (plain,) = draw(BarChart("", AxisDescription("throughput"), (BarRow("one", 0.0, 2.0, MORE),))).axes
    assert not [item for item in plain.collections if isinstance(item, LineCollection)]
    assert not [line for line in plain.lines if line.get_linestyle() == "--"]
