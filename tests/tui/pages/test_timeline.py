"""The timeline page: its numbers are those of the command line, its bars are where the times say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.driver import MEMORY, drive, predicted
from tests.page_harness import GROWING, SHRINKING, on_page
from tests.scenarios_at_hand import FEW
from tests.text_runs import columns_with, text_of
from whatif.core.iteration_timeline import Bar, timeline
from whatif.core.iteration_timeline import Timeline as Schedule
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep_figure import breakdown
from whatif.tui.commands.explorer_commands import Edit, Pin, Show
from whatif.tui.labels import duration, percent
from whatif.tui.pages.timeline import TimelinePage
from whatif.tui.widgets.breakdown import bar_legend
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.time_bars import TimeBars, time_bars

FASTER = Edit(MEMORY, "1.2 TB/s")
TOO_FEW = Edit("platform.node_count", "20")


@pytest.fixture
def overlapped(tmp_path):
    """Three quarters of the halo hidden behind the stencil."""
    path = tmp_path / "overlapped.toml"
    path.write_text('extends = "jacobi2d"\n[application.overlaps.o]\nphases = ["halo", "stencil"]\nfraction = 0.75\n')
    return path


def drawn(now, before=None, width=100, height=20, **manner):
    return time_bars(now, before, width, height, **manner)


def schedule(*durations, lanes=None):
    """Phases a, b, c .. one after the other."""
    starts = np.cumsum([0.0, *durations])
    lanes = lanes or [0] * len(durations)
    bars = tuple(
        Bar(chr(ord("a") + i), "kernel", float(starts[i]), time, lane)
        for i, (time, lane) in enumerate(zip(durations, lanes, strict=True))
    )
    return Schedule(bars, float(starts[-1]), 1 + max(lanes))


@pytest.mark.parametrize("scenario", FEW)
def test_every_phase_has_the_time_and_share_of_the_command_line(scenario):
    row = predicted(scenario=scenario)

    async def check(page):
        for phase, time in row["terms"].items():
            line = page.line(f"■ {phase} ", duration(time))
            assert percent(time / row["iteration_time"]) in line
        assert f"one iteration: {duration(row['iteration_time'])}" in page.lines[0]
        total, setup = duration(row["total_time"]), duration(row["setup_time"])
        assert f" iterations: {total}, including {setup} of setup." in page.text
        for kind in ("kernel", "communication", "transfer", "overhead"):
            time = row[f"{kind}_time"]
            words = page.line(f"ernel {duration(row['kernel_time'])}").replace("Kernel", "kernel")
            assert (f"{kind} {duration(time)}" in words) == (time > 0)

    on_page(TimelinePage, check, scenario)


def test_the_iterations_of_the_run_are_counted():
    async def check(page):
        assert "100 iterations: 1.1838 s, including 0 s of setup." in page.text
        await page.change(Edit("application.iteration_count", "1"))
        assert "1 iteration: 11.838 ms, including 0 s of setup." in page.text

    on_page(TimelinePage, check)


def test_bars_begin_and_end_where_the_times_say():
    # 10 + 30 + 60 us on 48 cells or more: each edge within a cell.
    now = schedule(10e-6, 30e-6, 60e-6)
    lines = drawn(now, width=100, height=12)
    left = min(min(columns_with(line, "series-1") - {0}, default=100) for line in lines[:1])
    width = 100 - left
    for number, (start, end) in enumerate(((0, 0.1), (0.1, 0.4), (0.4, 1)), 1):
        found = columns_with(lines[0], f"series-{number}")
        assert abs(min(found) - left - start * width) <= 1
        assert abs(max(found) + 1 - left - end * width) <= 1
        below = [columns_with(line, f"series-{number}") - {0} for line in lines[4:]]
        assert found in below or found == set().union(*below)


def test_the_axis_has_round_numbers_under_their_places():
    text = text_of(drawn(schedule(10e-6, 30e-6, 60e-6), width=100, height=12))
    rule = next(number for number, line in enumerate(text) if "┴" in line)
    left = text[rule].index("─") if text[rule].index("─") < text[rule].index("┴") else text[rule].index("┴")
    numbers = text[rule + 1].split()
    assert numbers[0] == "us"
    places = [column for column, letter in enumerate(text[rule]) if letter == "┴"]
    for number, place in zip(numbers[1:], places, strict=True):
        expected = left + float(number) / 100 * (100 - left)
        assert abs(place - expected) <= 1
    assert len(places) >= 3


def test_a_very_short_phase_is_a_thin_mark_with_its_name():
    # A thousandth: a twentieth of a cell.
    lines = drawn(schedule(0.5e-3, 1e-6, 0.499e-3), width=70, height=12)
    thin = columns_with(lines[0], "series-2")
    assert len(thin) == 1
    (column,) = thin
    letters = "".join(run.text for run in lines[0])
    assert letters[column] == "▏"
    own = next(line for line in lines if "■ b " in "".join(run.text for run in line))
    assert "1 us" in "".join(run.text for run in own)
    assert thin == columns_with(own, "series-2") - {0}


def test_a_phase_without_time_is_listed_without_a_bar():
    lines = drawn(schedule(1e-3, 0.0, 1e-3), width=70, height=12)
    own = next(line for line in lines if "■ b " in "".join(run.text for run in line))
    assert "0 s" in "".join(run.text for run in own)
    assert columns_with(own, "series-2") == {0}
    assert not columns_with(lines[0], "series-2")


def test_phases_that_find_no_line_are_named_or_counted():
    async def check(page):
        names = list(predicted(scenario="minimd")["terms"])
        shown = [name for name in names if any(f"■ {name} " in line for line in page.lines)]
        last = next(line for line in page.lines if "│ and " in line)
        named = [word.strip(" │") for word in last.partition("and ")[2].split(",")]
        more = int(named.pop().removesuffix(" more"))
        assert 0 < len(shown) == len(names) - len(named) - more
        assert set(named) <= set(names) - set(shown)
        times = predicted(scenario="minimd")["terms"]
        assert min(times[name] for name in shown) >= max(times[name] for name in names if name not in shown)

    on_page(TimelinePage, check, "minimd", (44, 14))


def test_an_overlap_has_a_lane_of_its_own_and_is_said_in_words(overlapped):
    row = predicted(scenario=str(overlapped))

    async def check(page):
        hidden = duration(0.75 * row["terms"]["halo"])
        assert f"The overlap hides {hidden} of halo behind stencil." in page.text
        assert duration(row["overlap_time"]) == hidden
        bars = page.app.query_one(TimeBars)
        lines = bars.draw(*bars.size)
        whole = [number for number, line in enumerate(lines) if "stencil 6.0392 ms" in "".join(r.text for r in line)]
        first = columns_with(lines[0], "series-1") - {0}
        lane = columns_with(lines[whole[0]], "series-4")
        assert whole[0] > 0
        assert first
        assert not columns_with(lines[0], "series-4")
        # The stencil begins before the halo ends.
        assert min(lane) <= max(columns_with(lines[0], "series-2"))

    on_page(TimelinePage, check, str(overlapped))


def test_the_iteration_before_is_drawn_below_on_the_same_axis_with_the_difference():
    before, now = predicted(), predicted(f"{MEMORY}=1.2 TB/s")

    async def check(page):
        difference = before["iteration_time"] - now["iteration_time"]
        share = percent(difference / before["iteration_time"])
        expected = f"{duration(difference)} ({share}) shorter than before: {duration(before['iteration_time'])}."
        assert expected in page.text
        assert duration(now["iteration_time"]) in page.line(" now ")
        assert duration(before["iteration_time"]) in page.line(" before ", " ms")
        for phase, time in before["terms"].items():
            assert duration(time) in page.line(f"■ {phase} ")
        bars = page.app.query_one(TimeBars)
        lines = bars.draw(*bars.size)
        ours = max(max(columns_with(line, "series-6") | {0}) for line in lines[:4])
        theirs = max(max(columns_with(line, "baseline") | columns_with(line, "axis") | {0}) for line in lines[3:8])
        left = min(columns_with(lines[0], "series-1") - {0})
        scale = now["iteration_time"] / before["iteration_time"]
        assert abs((ours + 1 - left) / (theirs + 1 - left) - scale) < 0.02
        await page.change(Pin())
        assert "before" not in page.text

    on_page(TimelinePage, check, changes=(FASTER,))


def test_a_change_that_makes_no_difference_draws_no_second_iteration():
    async def check(page):
        assert "The iteration takes as long as before: 11.838 ms." in page.text
        assert not any(" before " in line and "shorter" not in line and "as long" not in line for line in page.lines)

    on_page(TimelinePage, check, changes=(Edit("platform.node.gpu.l2_bandwidth", "9 TB/s"),))


def test_a_longer_iteration_is_said_to_be_longer():
    async def check(page):
        assert " longer than before: 11.838 ms." in page.text

    on_page(TimelinePage, check, changes=(Edit(MEMORY, "600 GB/s"),))


def test_an_infeasible_point_says_why_and_which_key_helps():
    async def check(page):
        assert "infeasible: the ranks need more nodes than the platform has" in page.text
        assert "u undoes the last change" in page.text
        assert not page.app.query_one(TimeBars).display
        await page.change(Edit("platform.node_count", "4608"))
        assert page.app.query_one(TimeBars).display
        assert "■ stencil" in page.text

    on_page(TimelinePage, check, changes=(TOO_FEW,))


def test_an_infeasible_baseline_is_told_beside_the_present_iteration():
    async def check(page):
        assert "The baseline is infeasible: the ranks need more nodes" in page.text
        assert "■ stencil" in page.text

    on_page(TimelinePage, check, changes=(TOO_FEW, Pin(), Edit("platform.node_count", "4608")))


@pytest.mark.parametrize("scenario", FEW)
def test_the_table_has_the_same_numbers(scenario):
    row = predicted(scenario=scenario)

    async def check(page):
        start = 0.0
        for phase, time in row["terms"].items():
            words = page.line(f" {phase} ").split()
            numbers = "  ".join(words)
            for text in (duration(start), duration(start + time), duration(time)):
                assert "  ".join(text.split()) in numbers
            assert percent(time / row["iteration_time"]) in words
            start += time
        assert not page.app.query_one(TimeBars).display
        await page.act("table")
        assert page.app.query_one(TimeBars).display
        assert not page.app.query_one(TableView).display

    on_page(TimelinePage, check, scenario, changes=(Show("picture", "table"),))


def test_the_table_takes_the_keys_where_nothing_else_has_them():
    async def check(page):
        await page.act("table")
        assert page.app.focused is page.app.query_one(TableView)
        await page.press("down", "down")
        assert page.app.query_one(TableView).cursor == 2

    on_page(TimelinePage, check)


def test_the_table_compares_too():
    before = predicted()["terms"]

    async def check(page):
        for phase, time in before.items():
            assert page.line(f" {phase} ").rstrip(" │").endswith(duration(time))

    on_page(TimelinePage, check, changes=(FASTER, Show("picture", "table")))


@pytest.mark.parametrize(("scenario", "sizes"), [("minimd", (SHRINKING + GROWING)[::2])])
def test_no_size_is_too_small_or_too_large(scenario, sizes):
    async def check(page):
        for scenario_changes in ((), (FASTER,), (Show("picture", "table"),), (TOO_FEW,)):
            await page.change(*scenario_changes)
            for size in sizes:
                await page.resize(size)
                assert page.fills(size), size

    on_page(TimelinePage, check, scenario, sizes[0])


@pytest.mark.parametrize("size", [(1, 1), (5, 1), (16, 2), (40, 5), (200, 60)])
def test_every_line_fills_its_width(size):
    width, height = size
    for now in (
        schedule(1e-3, 2e-3),
        schedule(1e-3, 1e-9, 5.0),
        schedule(0.0, 3e-9),
        schedule(1e-3, 1e-3, lanes=[0, 1]),
    ):
        for before in (None, schedule(2e-3, 2e-3)):
            lines = drawn(now, before, width, height)
            assert len(lines) == height
            assert all(sum(len(run.text) for run in line) == width for line in lines)


def test_an_iteration_without_any_time_says_so():
    assert "No phase takes any time." in "".join(run.text for run in drawn(schedule(0.0, 0.0))[0])


def test_a_scenario_that_takes_no_time_has_a_page_all_the_same(tmp_path):
    path = tmp_path / "nothing.toml"
    phase = '[application.phases.a]\nkind = "overhead"\noverhead_time = "0 s"\n'
    path.write_text(f'platform = "summit"\n[application]\nname = "x"\nrank_count = 1\niteration_count = 1\n{phase}')

    async def check(page):
        assert "No phase takes any time." in page.text
        assert "1 iteration: 0 s, including 0 s of setup." in page.text

    on_page(TimelinePage, check, str(path))


def test_without_colours_letters_tell_the_phases_apart():
    lines = drawn(schedule(20e-6, 30e-6, 50e-6), width=100, height=12, colours=False)
    text = text_of(lines)
    assert not any(run.fill for line in lines for run in line)
    assert [text[0].count(letter) > 2 for letter in "ABCD"] == [True, True, True, False]
    assert text[0].rindex("A") < text[0].index("B") < text[0].rindex("B") < text[0].index("C")
    own = [next(line for line in text if line.startswith(f"{letter} ")) for letter in "ABC"]
    assert [line.split()[1] for line in own] == ["a", "b", "c"]
    assert "┊" in own[1]


@pytest.mark.parametrize("width", range(60, 140, 7))
def test_no_line_of_the_axis_goes_through_a_name(width):
    lines = drawn(schedule(20e-6, 30e-6, 50e-6), width=width, height=12, colours=False)
    assert "┊" not in "".join(run.text for run in lines[0])


def test_the_page_draws_letters_where_the_person_wants_no_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def check(page):
        assert "DDD" in page.text
        assert "■" not in page.text

    on_page(TimelinePage, check)


def test_the_bars_have_the_colours_of_the_breakdown():
    session = Session.start(Scenario.open("minimd"))
    lines = drawn(timeline(session.program, session.at), width=140, height=30)
    for entry in bar_legend(breakdown(session.point)):
        own = next(line for line in lines if f"■ {entry.label} " in "".join(run.text for run in line))
        assert own[0].style == entry.style
        assert len(columns_with(own, entry.style)) > 1


def test_an_infeasible_point_has_no_legend():
    session = Session.start(Scenario.open("minimd")).edit(TOO_FEW.path, TOO_FEW.text)
    assert breakdown(session.point).segments
    assert bar_legend(breakdown(session.point)) == ()


def test_key_3_pressed_three_times_opens_the_page_and_v_its_table():
    async def check(driver):
        await driver.press("3", "3", "3")
        assert "■ stencil" in driver.screen_text()
        assert "100 iterations: 1.1838 s, including 0 s of setup." in driver.screen_text()
        await driver.press("v")
        assert driver.state.view.picture == "table"
        assert "category" in driver.screen_text()
        await driver.press("u")
        assert driver.state.view.picture == "plot"

    drive(check)


def test_a_point_that_the_file_makes_infeasible_names_no_key_that_undoes_nothing(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text('extends = "jacobi2d"\n[application]\nrank_count = 60000\n')

    async def check(page):
        assert "infeasible: the ranks need more nodes than the platform has" in page.text
        assert "undoes" not in page.text

    on_page(TimelinePage, check, scenario=path)
