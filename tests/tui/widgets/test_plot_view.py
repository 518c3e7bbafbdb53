import asyncio
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.binding import Binding

from whatif import units
from whatif.plotting.description import (
    HEAT_STYLES,
    AxisDescription,
    BarSegment,
    HeatMap,
    Marker,
    PlotDescription,
    PlotLine,
    Scale,
    StackedBar,
)
from whatif.tui.themes import series_variables
from whatif.tui.widgets.breakdown import Breakdown, bar_legend, bar_runs, legend_runs, whole_percent
from whatif.tui.widgets.plot_view import PlotView

SIZES = np.logspace(0, 7, 200)
BAR = StackedBar((BarSegment("compute", 8.1e-3), BarSegment("halo", 3.3e-3), BarSegment("[launch]", 5e-5)))


def described(y, label="postal"):
    x_axis = AxisDescription("message size", units.BYTE, Scale.LOG)
    return PlotDescription("", x_axis, AxisDescription("time", units.SECOND, Scale.LOG), (PlotLine(label, SIZES, y),))


def straight(label="size", slope=1.0, here=None):
    """Eleven points on a line, on linear axes."""
    x = np.arange(11.0)
    markers = () if here is None else (Marker(here, "now"),)
    axes = AxisDescription(f"some.{label}"), AxisDescription("time", units.SECOND)
    return PlotDescription("", *axes, (PlotLine("curve", x, slope * x),), markers)


def heat(values=None, here=(1.0, 2.0)):
    """Three by four points whose value is 10 x + y seconds."""
    xs, ys = np.arange(3.0), np.arange(4.0)
    axes = AxisDescription("a.across"), AxisDescription("a.up"), AxisDescription("time", units.SECOND)
    return HeatMap("", *axes, xs, ys, 10 * xs[:, None] + ys if values is None else values, here)


class Pictures(App[None]):
    BINDINGS = [Binding(key, f"note('{key}')") for key in ("escape", "up", "left")]  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.noted = []

    def get_theme_variable_defaults(self):
        return series_variables(self.current_theme)

    def action_note(self, key):
        self.noted.append(key)

    def compose(self) -> ComposeResult:
        yield PlotView()
        yield Breakdown()


def picture_lines(widget):
    return [widget.render_line(y).text for y in range(widget.size.height)]


def drive(check, size=(80, 24)):
    async def main():
        app = Pictures()
        async with app.run_test(size=size) as pilot:
            await check(app, pilot)

    asyncio.run(main())


def test_plot_shows_decades_and_follows_a_resize():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(described(1e-6 + SIZES / 1e10, "max-rate [us]"))
        await pilot.pause()
        lines = picture_lines(view)
        assert lines[-2].split() == ["1", "10", "100", "1k", "10k", "100k", "1M", "10M"]
        assert "max-rate [us]" in lines[0]
        await pilot.resize_terminal(40, 16)
        await pilot.pause()
        lines = picture_lines(view)
        assert {len(line) for line in lines} == {40}
        assert lines[-2].split() == ["1", "100", "10k", "1M"]

    drive(check)


def test_gap_is_visible_and_empty_shows_nothing():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        y = 1e-6 + SIZES / 1e10
        y[50:100] = math.nan
        view.show(described(y))
        await pilot.pause()
        drawn = {column for line in picture_lines(view)[1:-3] for column, c in enumerate(line) if c >= "⠀"}
        assert max(b - a for a, b in zip(sorted(drawn), sorted(drawn)[1:], strict=False)) > 10
        view.show(None)
        await pilot.pause()
        assert not "".join(picture_lines(view)).strip()

    drive(check)


def test_picture_is_kept_until_theme_or_data_change(monkeypatch):
    async def check(app, pilot):
        view = app.query_one(PlotView)
        drawn = []
        draw = view.draw
        monkeypatch.setattr(view, "draw", lambda *size: drawn.append(size) or draw(*size))
        description = described(SIZES)
        view.show(description)
        await pilot.pause()
        view.show(description)
        view.refresh()
        await pilot.pause()
        assert len(drawn) == 1
        dark = view.render_line(0)._segments[-2].style
        app.theme = "textual-light"
        await pilot.pause()
        assert len(drawn) == 2
        assert view.render_line(0)._segments[-2].style != dark
        view.marker = "ascii"
        await pilot.pause()
        assert "**" in view.render_line(0).text

    drive(check)


def test_breakdown_shows_shares_and_times():
    async def check(app, pilot):
        breakdown = app.query_one(Breakdown)
        breakdown.show(BAR)
        await pilot.pause()
        lines = picture_lines(breakdown)
        assert "compute 71%" in lines[0]
        text = " ".join(" ".join(lines).split())
        assert "■ compute 8.1 ms 71%" in text
        assert "■ [launch] 50 us <1%" in text
        assert breakdown.size.height == 2
        breakdown.show(None)
        await pilot.pause()
        assert breakdown.size.height == 0

    drive(check)


def test_legend_counts_what_finds_no_room():
    entries = bar_legend(StackedBar(tuple(BarSegment(str(i), 1.0) for i in range(9))))
    assert legend_runs(entries, 20, 3)[-1][0].text == "and 7 more"
    last = legend_runs(entries, 40, 2)[-1]
    assert [run.text.strip() for run in last] == ["■", "2 1 s  11%", "and 6 more"]
    assert len(legend_runs(entries, 100, 3)) == 2
    assert legend_runs(entries, 20, 0) == legend_runs((), 20, 3) == []


def test_percent_never_calls_something_nothing():
    assert [whole_percent(share) for share in (0.0, 0.001, 0.006, 1.0)] == ["0%", "<1%", "1%", "100%"]


VALUE = st.one_of(st.floats(width=64), st.floats(0, 1))


@given(st.lists(st.builds(BarSegment, st.text(max_size=8), VALUE), max_size=12), st.integers(0, 60))
def test_bar_has_its_width_whatever_it_shows(segments, width):
    runs = bar_runs(StackedBar(tuple(segments)), width)
    assert sum(len(run.text) + sum(map(wide, run.text)) for run in runs) == width


def wide(char):
    from rich.cells import cell_len

    return cell_len(char) - 1


def test_seam_is_cut_in_eighths():
    runs = bar_runs(StackedBar((BarSegment("a", 3.0), BarSegment("b", 5.0))), 1)
    assert [tuple(run) for run in runs] == [("▍", "series-1", "series-2")]


def header(view):
    """The words above the picture."""
    return " ".join(" ".join(picture_lines(view)[:3]).split())


def test_arrow_keys_move_the_crosshair_from_point_to_point():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(straight(here=4.2))
        view.focus()
        await pilot.press("right")
        assert view.cross[0] == 5
        assert "size 5" in header(view)
        assert "curve 5 s" in header(view)
        for keys, x in (("left", 4), ("l", 5), ("h", 4), ("end", 10), ("right", 10), ("home", 0), ("left", 0)):
            await pilot.press(keys)
            assert view.cross[0] == x
        await pilot.press("shift+right", "left")
        assert view.cross[0] == 9

    drive(check)


def test_up_and_down_move_the_crosshair_of_a_heat_map_alone():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(heat())
        view.focus()
        await pilot.press("up")
        assert view.cross == (1, 3)
        assert "time 13 s across 1 up 3" in header(view)
        await pilot.press("j", "shift+down", "shift+right")
        assert view.cross == (2, 0)
        assert app.noted == []
        view.show(straight())
        assert view.cross is None
        await pilot.press("up")
        assert view.cross is None
        assert app.noted == ["up"]

    drive(check)


def test_escape_takes_the_crosshair_away_and_then_means_what_it_means_elsewhere():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(straight())
        view.focus()
        await pilot.press("right", "escape")
        assert view.cross is None
        assert app.noted == []
        await pilot.press("escape")
        assert app.noted == ["escape"]
        view.show(None)
        await pilot.press("left")
        assert app.noted == ["escape", "left"]

    drive(check)


def test_the_crosshair_stays_at_its_place_while_the_values_change():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(straight())
        view.focus()
        await pilot.press("home", "right", "right", "right")
        view.show(straight(slope=2.0))
        await pilot.pause()
        assert "curve 6 s" in header(view)
        view.show(straight("other"))
        await pilot.pause()
        assert view.cross is None
        assert "curve" in header(view)
        assert "6 s" not in header(view)

    drive(check)


def column_of(view, x):
    """The screen column of the point, found by the values that the picture gives its own columns."""
    lines = picture_lines(view)
    floor = next(line for line in lines if "└" in line)
    left = floor.index("└") + 1
    return left + round(x / 10 * (len(floor.rstrip()) - left - 1))


def test_the_mouse_carries_a_crosshair_and_a_click_parameters_it_there():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        app.query_one(Breakdown).show(BAR)
        view.show(straight())
        await pilot.pause()
        await pilot.hover(PlotView, offset=(column_of(view, 3), 8))
        assert view.cross[0] == 3
        assert "curve 3 s" in header(view)
        await pilot.hover(PlotView, offset=(0, view.size.height - 1))
        assert view.cross is None
        await pilot.hover(PlotView, offset=(column_of(view, 3), 8))
        await pilot.hover(Breakdown)
        assert view.cross is None
        await pilot.click(PlotView, offset=(column_of(view, 7), 8))
        assert app.focused is view
        await pilot.hover(PlotView, offset=(column_of(view, 3), 8))
        assert view.cross[0] == 7

    drive(check)


def test_the_cells_of_a_heat_map_have_the_colours_of_their_values(monkeypatch):
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(heat(np.array([[0.0, 0, 0, 0], [5, 5, 5, 5], [11, 11, 11, 11]]), here=None))
        await pilot.pause()
        strip = view.render_line(8)
        segments = [segment for segment in strip if set(segment.text) == {"▀"}]
        colours = [(segment.style.color.name, segment.style.bgcolor.name) for segment in segments]
        expected = [view.shade(f"heat-{level}").color.name for level in (0, 5, 11)]
        assert colours == [(colour, colour) for colour in expected]
        assert len({len(segment.text) for segment in segments}) <= 2

    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    drive(check)


def test_every_heat_style_has_a_colour_of_its_own():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        colours = [view.shade(style).color for style in HEAT_STYLES]
        assert len(set(colours)) == 12

    drive(check)


def test_without_colours_a_heat_map_is_made_of_characters_and_curves_have_letters(monkeypatch):
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(heat(here=None))
        await pilot.pause()
        assert "[ .:-=+*#%@]" in header(view)
        assert "@@@" in "".join(picture_lines(view))
        assert "▀" not in "".join(picture_lines(view))
        view.show(straight())
        await pilot.pause()
        assert "a curve" in header(view)

    monkeypatch.setenv("NO_COLOR", "1")
    drive(check)


def test_sixteen_colours_are_too_few_for_a_heat_map(monkeypatch):
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(heat(here=None))
        await pilot.pause()
        assert "[ .:-=+*#%@]" in header(view)

    monkeypatch.setenv("TERM", "linux")
    monkeypatch.delenv("COLORTERM", raising=False)
    drive(check)


def test_another_marker_draws_the_same_curve_of_other_characters():
    async def check(app, pilot):
        view = app.query_one(PlotView)
        view.show(straight())
        for marker, characters in (("block", "▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"), ("ascii", "*")):
            view.marker = marker
            await pilot.pause()
            drawn = "".join(picture_lines(view)[1:-3])
            assert any(character in drawn for character in characters)
            assert not any("⠀" < character <= "⣿" for character in drawn)

    drive(check)
