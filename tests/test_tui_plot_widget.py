import asyncio
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from whatif import units
from whatif.export.plot import AxisDescription, BarSegment, Line, PlotDescription, Scale, StackedBar
from whatif.tui.widgets.breakdown import Breakdown, bar_legend, bar_runs, legend_runs, percent
from whatif.tui.widgets.plot import PlotView

SIZES = np.logspace(0, 7, 200)
BAR = StackedBar((BarSegment("compute", 8.1e-3), BarSegment("halo", 3.3e-3), BarSegment("[launch]", 5e-5)))


def described(y, label="postal"):
    x_axis = AxisDescription("message size", units.BYTE, Scale.LOG)
    return PlotDescription("", x_axis, AxisDescription("time", units.SECOND, Scale.LOG), (Line(label, SIZES, y),))


class Pictures(App[None]):
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
    assert len(legend_runs(entries, 100, 3)) == 2
    assert legend_runs(entries, 20, 0) == legend_runs((), 20, 3) == []


def test_percent_never_calls_something_nothing():
    assert [percent(share) for share in (0.0, 0.001, 0.006, 1.0)] == ["0%", "<1%", "1%", "100%"]


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
