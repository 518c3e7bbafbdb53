"""Answers in the plots of the explorer: marks, sentences, optimum by key, adoption, zoom, scales and export."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from textual import events
from textual.geometry import Offset
from textual.widgets import Input

from tests import page_harness
from tests.driver import drive
from tests.page_harness import few_machines, on_page
from whatif.tui.commands.explorer_commands import Also, Edit, Show, SweepParameter, parse_line
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.pages.compare import ComparePage
from whatif.tui.pages.explore import ExplorePage
from whatif.tui.widgets.answer_line import AnswerLine, whole_clauses
from whatif.tui.widgets.data_table import ColumnsView
from whatif.tui.widgets.plot_view import PlotView
from whatif.tui.widgets.stacked_plots import StackedPlots
from whatif.units import JOULE

GPUS, RANKS = "platform.node.gpu_count", "application.rank_count"
BANDWIDTH, CELLS = "platform.node.gpu.dram_bandwidth", "application.grid.cells.x"
FEW_GPUS = SweepParameter(GPUS, "1 .. 8 step 1")


def plot_on(page):
    return page.app.query_one(StackedPlots)


def value_of(page, path):
    return page.app.state.session.program.parameters[path].text()


def test_sentence_below_the_plot_and_mark_on_the_curve():
    async def look(page):
        times = page.app.state.session.result["iteration_time"]
        [mark] = plot_on(page).description.marks
        assert (mark.x, mark.y) == (1 + times.argmin(), times.min())
        assert "fastest at 1 GPU a node: 5.084 ms, 1.6 % ahead of 2" in page.text
        assert page.page.message == page.app.query_one(AnswerLine).full

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "fastest at 1 GPU a node: 5.08 ms, 0.086 % ahead of 2"),
        (43, "fastest at 1 GPU a node: 5.08 ms …"),
        (30, "fastest at 1 GPU a node …"),
        (8, "fastest at 1 GPU a node: 5.08 ms, 0.086 % ahead of 2"),
    ],
)
def test_a_number_of_the_sentence_keeps_its_unit(width, line):
    assert whole_clauses("fastest at 1 GPU a node: 5.08 ms, 0.086 % ahead of 2", width) == line


def test_the_sentence_follows_the_width_of_the_screen():
    async def look(page):
        assert "fastest at 1 GPU a node: 5.084 ms …" in page.text
        await page.resize((120, 24))
        assert "1.6 % ahead of 2" in page.text

    on_page(ExplorePage, look, "minife", size=(44, 24), changes=(FEW_GPUS,))


def test_sentence_follows_the_drawn_result():
    async def look(page):
        assert "least iteration energy at 8 GPUs a node" in page.text

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS, Show("y", "iteration_energy")))


def test_optimum_by_key_and_enter_adopts_it():
    async def look(page):
        await page.act("optimum")
        assert plot_on(page).cross[0] == 1
        await page.press("enter")
        assert value_of(page, GPUS) == "1"
        await page.act("optimum", True)
        assert plot_on(page).cross[0] == 7
        await page.press("enter")
        assert value_of(page, GPUS) == "7"

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


@pytest.mark.parametrize("second", ["heat", "curves"])
def test_optimum_over_two_parameters_is_adopted_in_both(second):
    async def look(page):
        times = page.app.state.session.result["iteration_time"]
        first, other = np.unravel_index(np.nanargmin(times), times.shape)
        await page.act("optimum")
        await page.press("enter")
        assert value_of(page, GPUS) == str(1 + first)
        assert value_of(page, RANKS) == ("6", "12", "24")[other]

    changes = (SweepParameter(GPUS, "1 .. 4 step 1"), Also(RANKS, "6, 12, 24"), Show("explore.second", second))
    on_page(ExplorePage, look, "minife", changes=changes)


def test_adopted_values_are_rounded_to_six_digits_and_choices_are_platforms():
    async def numbers(page):
        await page.press("right", "enter")
        assert value_of(page, BANDWIDTH) == "1.33333 TB/s"

    async def choices(page):
        await page.act("optimum")
        await page.press("enter")
        assert page.app.state.session.scenario.platform == "frontier"

    on_page(ExplorePage, numbers, "minife", changes=(SweepParameter(BANDWIDTH, "1 TB/s .. 2 TB/s linear 4"),))
    on_page(ExplorePage, choices, "jacobi2d", changes=(SweepParameter("platform", "lassen, summit, frontier"),))


def test_no_optimum_of_a_flat_curve_is_told():
    async def look(page):
        await page.act("optimum")
        assert plot_on(page).cross is None
        assert "iteration_time is the same at all 3 feasible points" in page.text

    on_page(ExplorePage, look, "minife", changes=(SweepParameter("platform.node.gpu.idle_power", "1 W, 2 W, 3 W"),))


def test_zoom_pan_and_reset_by_keys():
    async def look(page):
        plot = plot_on(page)
        plot.focus()
        await page.press("plus")
        assert plot.seen.x.limits == (2.75, 6.25)
        await page.press("shift+right")
        assert plot.seen.x.limits == (3.625, 7.125)
        await page.press("shift+right", "shift+right", "shift+right")
        assert plot.seen.x.limits == (4.5, 8.0)
        await page.press("right_curly_bracket")
        low, high = plot.seen.y.limits
        assert 0 < low < page.app.state.session.result["iteration_time"].min() < high
        await page.press("home")
        assert plot.seen.x.limits == (1.0, 4.5)
        await page.press("minus")
        assert plot.seen.x.limits is None
        await page.press("equals_sign")
        assert plot.seen is plot.description

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


def test_visible_part_is_swept_anew():
    async def look(page):
        plot = plot_on(page)
        plot.focus()
        await page.press("plus", "full_stop")
        axis = page.app.state.session.grid.axes[0]
        np.testing.assert_allclose(axis.parameters[BANDWIDTH][[0, -1]], [1.25e12, 1.75e12], rtol=1e-5, atol=0)
        assert len(axis) == 200
        assert plot.seen.x.limits is None

    on_page(ExplorePage, look, "minife", changes=(SweepParameter(BANDWIDTH, "1 TB/s .. 2 TB/s linear 5"),))


def test_visible_part_of_two_axes_keeps_both_and_their_points():
    async def look(page):
        plot = plot_on(page)
        plot.focus()
        await page.press("plus", "full_stop")
        first, second = page.app.state.session.grid.axes
        np.testing.assert_allclose(first.parameters[BANDWIDTH][[0, -1]], [1.25e12, 1.75e12], rtol=1e-5, atol=0)
        assert (len(first), second.parameters[GPUS].tolist()) == (5, [2, 4])
        await page.change(Show("explore.second", "heat"), Also(CELLS, "100 .. 196 linear 5"))
        await page.press("right_curly_bracket", "full_stop")
        first, second = page.app.state.session.grid.axes
        np.testing.assert_allclose(first.parameters[BANDWIDTH][[0, -1]], [1.25e12, 1.75e12], rtol=1e-5, atol=0)
        assert (second.parameters[CELLS].min(), second.parameters[CELLS].max()) == (118, 178)

    changes = SweepParameter(BANDWIDTH, "1 TB/s .. 2 TB/s linear 5"), Also(GPUS, "2, 4")
    on_page(ExplorePage, look, "minife", changes=changes)


def test_visible_whole_numbers_are_swept_one_by_one():
    async def look(page):
        plot_on(page).focus()
        await page.press("plus", "full_stop")
        [swept] = page.app.state.session.grid.axes
        assert swept.parameters[CELLS].tolist() == list(range(124, 173))

    on_page(ExplorePage, look, "minife", changes=(SweepParameter(CELLS, "100 .. 196 linear 9"),))


def test_window_stays_with_the_axes_and_leaves_with_them():
    async def look(page):
        plot = plot_on(page)
        plot.focus()
        await page.press("plus")
        await page.change(Edit("application.iteration_count", "100"))
        assert plot.seen.x.limits == (2.75, 6.25)
        await page.change(SweepParameter(RANKS, "6, 12, 24"))
        assert plot.seen.x.limits is None

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


def test_wheel_zooms_at_the_mouse_and_drag_pans():
    async def look(page):
        plot, pilot = plot_on(page), page.pilot
        place = (plot.size.width // 2, plot.size.height // 2)
        before = plot.value_under(FakeMouse(plot, place))
        region = plot.content_region
        for _ in range(3):
            plot.post_message(
                events.MouseScrollUp(
                    plot, *place, 0, 0, 0, False, False, False, region.x + place[0], region.y + place[1]
                )
            )
        await page.settle()
        low, high = plot.seen.x.limits
        np.testing.assert_allclose(high - low, 7 * 0.8**3, rtol=1e-9, atol=0)
        after = plot.value_under(FakeMouse(plot, place))
        np.testing.assert_allclose(after[0], before[0], rtol=1e-9, atol=0)
        await pilot.mouse_down(plot, offset=place)
        await pilot.hover(plot, offset=(place[0] - 10, place[1]))
        await pilot.mouse_up(plot, offset=(place[0] - 10, place[1]))
        await page.settle()
        assert plot.seen.x.limits[0] > low
        assert not plot._stays

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


class FakeMouse:
    """A mouse event at a place of a widget."""

    def __init__(self, widget, place):
        self.place = place

    def get_content_offset(self, _):
        return Offset(*self.place)


def test_speedup_efficiency_and_ratio_as_scales_of_y():
    async def look(page):
        plot, state = plot_on(page), page.app.state
        times, base = state.session.result["iteration_time"], float(state.baseline.point["iteration_time"])
        for relation, expected in (
            ("speedup", base / times),
            ("efficiency", times[0] * 6 / (times * np.array([6, 12, 24, 48]))),
            ("ratio", times / base),
            ("value", times),
        ):
            await page.act("relation")
            assert page.page.view_in(page.app.state.view).relation == relation
            title = str(page.page.query_one("#sweep").border_title)
            assert title == f"{'' if relation == 'value' else f'{relation} of '}iteration over application.rank_count"
            np.testing.assert_allclose(plot.description.lines[0].y, expected, rtol=1e-12, atol=0)
            mark = next(mark for mark in plot.description.marks if mark.word == "fastest")
            np.testing.assert_allclose(mark.y, expected[-1], rtol=1e-12, atol=0)

    on_page(ExplorePage, look, "jacobi2d_strong", changes=(SweepParameter(RANKS, "6, 12, 24, 48"),))


def test_efficiency_is_for_times_over_ranks_only():
    async def look(page):
        for _ in range(3):
            await page.act("relation")
        assert page.page.view_in(page.app.state.view).relation == "value"

    on_page(ExplorePage, look, "minife", changes=(FEW_GPUS,))


def test_scale_of_y_is_a_journal_line():
    command = parse_line("show explore.relation = speedup")
    assert command.line() == "show explore.relation = speedup"


def test_compare_page_says_which_machine_is_the_best_of_those_drawn(monkeypatch):
    monkeypatch.setattr(page_harness, "MACHINES", ("lassen", "summit", "frontier"))
    few_machines(monkeypatch)

    async def look(page):
        plot = page.app.query_one(PlotView)
        assert page.app.query_one(AnswerLine).full.startswith("fastest on ")
        best = min(float(np.nanmin(line.y)) for line in plot.description.lines)
        assert best in [mark.y for mark in plot.description.marks]
        await page.change(Show("compare.marked", "lassen"))
        assert page.app.query_one(AnswerLine).full.startswith("of those drawn: fastest on ")

    on_page(ComparePage, look, "jacobi2d", changes=(FEW_GPUS,))


def test_compare_page_goes_to_the_best_machine_and_adopts_the_value_there(monkeypatch):
    monkeypatch.setattr(page_harness, "MACHINES", ("lassen", "summit", "frontier"))
    few_machines(monkeypatch)

    async def look(page):
        plot = page.app.query_one(PlotView)
        best = min(plot.description.lines, key=lambda line: np.nanmin(line.y))
        await page.act("optimum")
        table = page.app.query_one(ColumnsView)
        assert best.label in [cell.text for cell in table._rows.cells[table.cursor]]
        assert plot.cross[0] == best.x[np.nanargmin(best.y)]
        plot.action_adopt()
        await page.settle()
        assert page.app.state.session.parameter(GPUS).text() == f"{plot.cross[0]:g}"

    on_page(ComparePage, look, "jacobi2d", changes=(FEW_GPUS,))


def test_compare_page_draws_speedups_over_the_machine_that_others_are_compared_with(monkeypatch):
    monkeypatch.setattr(page_harness, "MACHINES", ("lassen", "summit", "frontier"))
    few_machines(monkeypatch)

    async def look(page):
        plot = page.app.query_one(PlotView)
        times = {line.label: line.y for line in plot.description.lines}
        await page.change(Show("against", "lassen"))
        await page.act("relation")
        speedups = {line.label: line.y for line in plot.description.lines}
        assert plot.description.y.label == "speedup over Lassen"
        for name, values in speedups.items():
            np.testing.assert_allclose(values, times["Lassen"] / times[name], rtol=1e-12, atol=0)
        (fastest,) = (mark for mark in plot.description.marks if mark.word == "fastest")
        at = list(plot.description.lines[0].x).index(fastest.x)
        assert fastest.y == max(values[at] for values in speedups.values()) > 1

    on_page(ComparePage, look, "jacobi2d", changes=(SweepParameter(GPUS, "4 .. 8 step 1"),))


def test_compare_page_tells_machines_of_one_name_apart(monkeypatch):
    monkeypatch.setattr(page_harness, "MACHINES", ("lassen", "summit", "frontier"))
    few_machines(monkeypatch)

    async def look(page):
        page.page.take(tuple(replace(row, label="Twin") for row in page.page._machines))
        await page.change(Show("against", "frontier"), Show("compare.relation", "speedup"))
        lines = page.app.query_one(PlotView).description.lines
        ones = [bool(np.all(line.y[np.isfinite(line.y)] == 1)) for line in lines]
        names = [page.page._machines[at].name for at in page.page._drawn]
        assert [name for name, one in zip(names, ones, strict=True) if one] == ["frontier"]

    on_page(ComparePage, look, "jacobi2d", changes=(SweepParameter(GPUS, "4 .. 8 step 1"),))


def test_compare_page_draws_energy_in_its_unit(monkeypatch):
    few_machines(monkeypatch)

    async def look(page):
        await page.change(Show("y", "iteration_energy"))
        axis = page.app.query_one(PlotView).description.y
        assert (axis.label, axis.dimension) == ("iteration_energy", JOULE)
        assert re.search(r": [\d.]+ [kM]?J\b", page.app.query_one(AnswerLine).full)

    on_page(ComparePage, look, "jacobi2d", changes=(SweepParameter(GPUS, "4 .. 8 step 1"),))


def test_whole_sentence_by_key_and_export_to_a_file(tmp_path):
    async def check(driver):
        await driver.press("e")
        assert "fastest at 1 GPU a node: 5.084 ms, 1.6 % ahead of 2" in driver.screen_text()
        await driver.press("escape", "tab", "plus", "X")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        driver.app.screen.query_one(Input).value = str(tmp_path / "part.csv")
        await driver.press("enter")
        await driver.until((tmp_path / "part.csv").exists)
        heading, *rows = (tmp_path / "part.csv").read_text().splitlines()
        assert heading.startswith(f"{GPUS},iteration [s],")
        assert len(rows) == len(driver.session.grid.axes[0]) // 2

    drive(check, scenario="minife")


def test_a_plot_of_edited_phases_is_exported_but_not_its_command_line(tmp_path):
    async def check(driver):
        driver.app.runner.ask(parse_line("phase delete pack"))
        await driver.calm()
        driver.plot.focus()
        for name, told in (("plot.sh", "its phases are edited"), ("plot.csv", "written to")):
            await driver.press("X")
            await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
            driver.app.screen.query_one(Input).value = str(tmp_path / name)
            await driver.press("enter")
            await driver.until(lambda told=told: told in driver.status.full or told in notes(driver))
        # The error before is mended.
        await driver.until(lambda: "its phases are edited" not in driver.status.full)
        assert [path.name for path in tmp_path.iterdir()] == ["plot.csv"]

    def notes(driver):
        return " ".join(note.message for note in driver.app._notifications)

    drive(check, notifications=True)


def test_an_error_that_a_dialog_does_not_catch_is_told(monkeypatch):
    async def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("whatif.tui.files.export.export_plot", fails)

    async def check(driver):
        driver.plot.focus()
        await driver.press("X")
        await driver.until(lambda: "No space left on device" in driver.status.full)

    drive(check)
