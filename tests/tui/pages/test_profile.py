"""The profile page: its numbers are those of the engine, it follows the machine, and nothing is too small for it."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.driver import drive
from tests.page_harness import SIZES, on_page
from tests.paths import DATA as TEST_DATA
from tests.text_runs import text_of
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.profiles.formats import read_profile
from whatif.profiles.operation_replay import total_time
from whatif.profiles.profile_study import profile_inputs
from whatif.profiles.projection import project
from whatif.profiles.stream_lanes import BIN_COUNT, Interval, Lane, Streams, TimelineSpan
from whatif.schema.load import load_platform
from whatif.table import Column, Table
from whatif.table_writers import short_kernel
from whatif.tui.commands.explorer_commands import Adopt, Edit, Show
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.jobs.profile_job import profile_of_inputs
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.labels import duration, percent
from whatif.tui.page_views import ProfileView
from whatif.tui.pages.profile import ProfilePage
from whatif.tui.state import ExplorerState, View
from whatif.tui.widgets.data_table import ColumnsView
from whatif.tui.widgets.profile_bars import kernel_lines, length, size_classes, size_lines, time_lines
from whatif.tui.widgets.profile_streams import stream_lines

DATA = TEST_DATA / "profiles"
SAXPY, LAMMPS, VCOPY = (
    DATA / "nsys/saxpy_a100.sqlite",
    DATA / "ahead/lammps_summit.nvvp",
    DATA / "rocprof/timestamps.csv",
)
LANES = "platform.node.host_link.lane_count"
"""The links of Perlmutter's hosts are PCIe."""


def shown(path):
    return Show("profile.file", str(path))


def answer(*changes):
    """What the page has computed beside."""
    state = ExplorerState.start(Session.start(Scenario.open("jacobi2d")))
    for change in changes:
        state = change.apply(state)
    view = state.view.of(ProfileView)
    return profile_of_inputs(profile_inputs(state.session, view.file, view.source))


def last(table):
    *_, row = table.rows()
    return dict(zip(table.columns, row, strict=True))


def test_without_a_profile_the_page_says_what_to_do_and_with_one_every_side_fits_the_screen():
    sides = [(side, picture) for side in View().choices("profile.side") for picture in View().choices("picture")]

    async def check(page):
        assert " ".join(ProfilePage.NOTHING.split()) in page.text
        await page.change(shown(LAMMPS))
        for size, (side, picture) in zip((*SIZES, *SIZES), (*sides, *sides), strict=False):
            await page.pilot.resize_terminal(*size)
            await page.change(Show("profile.side", side), Show("picture", picture))
            assert {len(line) for line in page.lines} == {size[0]}
            assert page.text

    on_page(ProfilePage, check)


@pytest.mark.parametrize("colours", [True, False])
def test_no_picture_is_wider_or_higher_than_its_place(colours):
    found = answer(shown(LAMMPS), Adopt("titan"))
    classes, kernels = size_classes(found.tables["sizes"]), found.tables["kernels"]
    for width, height in product((24, 30, 38, 55, 89, 144), (1, 2, 3, 5, 8, 13, 40)):
        for lines in (
            stream_lines(found.streams, width, height, colours=colours),
            size_lines(classes, width, height, colours=colours),
            time_lines(found.projected.classes, width, height),
            kernel_lines(kernels, width, height),
        ):
            assert 0 < len(lines) <= height
            assert max(map(len, text_of(lines))) <= width


def test_totals_projection_and_time_lines_are_those_of_the_engine():
    profile, (perlmutter, _) = read_profile(SAXPY), load_platform("perlmutter")
    found = project(profile, perlmutter, perlmutter, profile)
    sums = last(found.summary())
    kind, time = (profile.operations.columns[name].values for name in ("operation", "time"))
    spent = {name: time[kind == name].sum() for name in ("kernel", "copy")}

    async def check(page):
        share = percent(spent["copy"] / sum(spent.values()))
        assert f"5 kernels {duration(spent['kernel'])} 15 copies {duration(spent['copy'])}" in page.text
        assert f"copies are {share} of GPU time" in page.text
        whole = page.line("all ", duration(sums["time"]))
        for way in ("projected", "peak", "envelope"):
            assert duration(sums[f"{way}_time"]) in whole
            assert percent(sums[f"{way}_error"]) in whole
        after = found.timeline.replay(found.times(1.0))
        before = total_time(found.timeline.start_time, found.timeline.time)
        assert f"{duration(before)} → {duration(total_time(after, found.times(1.0)))}" in page.text
        # On a machine that is not its own there are no errors, but how many times as long it takes.
        await page.change(Adopt("titan"), Show("profile.source", "perlmutter"))
        assert "error" not in page.text
        titan, _ = load_platform("titan")
        other = project(profile, perlmutter, titan)
        low, high = other.kernel_range
        assert duration(last(other.summary())["projected_time"]) in page.line("all ")
        assert f"Kernels {low:.3g} to {high:.3g} times as long" in page.text
        assert "Latencies of Perlmutter, data sheet of Titan" in page.text

    on_page(ProfilePage, check, size=(140, 42), changes=(Adopt("perlmutter"), shown(SAXPY)))


def test_an_edited_machine_is_followed_and_judged_by_the_rates_of_before():
    assert answer(Adopt("perlmutter"), shown(SAXPY), Edit("platform.node.gpu_count", "2")).projected.own
    halved = answer(Adopt("perlmutter"), shown(SAXPY), Edit(LANES, "8"))
    whole = answer(Adopt("perlmutter"), shown(SAXPY))
    assert (halved.projected.own, halved.projected.edited) == (False, True)
    rows = [last(found.projected.classes)["envelope_time"] for found in (whole, halved)]
    assert_allclose(rows[1], 2 * rows[0], rtol=1e-12, atol=0)
    # Memory twice as fast makes kernels up to twice as fast: what was measured, was so before the edit.
    doubled = f"{2 * load_platform('perlmutter')[0].node.gpu.dram_bandwidth!r} B/s"
    faster = answer(Adopt("perlmutter"), shown(SAXPY), Edit("platform.node.gpu.dram_bandwidth", doubled))
    assert_allclose(faster.projected.kernel_range, (0.5, 1.0), rtol=1e-12, atol=0)
    assert [band.name for band in faster.streams.bands] == ["measured", "kernels at best", "kernels at worst"]


def test_a_profile_without_copies_has_no_projection_but_its_kernels_and_streams():
    async def check(page):
        assert "the profile holds no copies and no fills" in page.text
        await page.change(Show("profile.side", "kernels"))
        assert "vecCopy" in page.line("100.0%")
        await page.change(Show("profile.side", "sizes"))
        assert "There are no copies" in page.text

    on_page(ProfilePage, check, size=(100, 30), changes=(shown(VCOPY),))


WRONG = {
    "nothing.nvvp": (b"", "empty"),
    "page.nvvp": (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
    "binary.nvvp": (bytes(range(256)), "not a profile"),
    "cut.sqlite": (SAXPY.read_bytes()[:20000], "cut.sqlite"),
    "not_there.nvvp": (None, "No such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_told_in_words(tmp_path, name):
    content, words = WRONG[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    found = answer(shown(tmp_path / name))
    assert isinstance(found, JobRefusal)
    assert words in found.reason


def test_a_file_is_asked_for_and_a_bad_one_parameters_the_good_one_and_the_time_line_is_zoomed_by_key(tmp_path):
    (tmp_path / "page.nvvp").write_bytes(WRONG["page.nvvp"][0])

    async def typed(driver, text):
        await driver.pilot.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        driver.app.screen.query_one("Input").value = str(text)
        await driver.pilot.press("enter")
        await driver.until(lambda: not isinstance(driver.app.screen, TextPrompt))
        await driver.calm()

    async def check(driver):
        await driver.go("profile")
        await typed(driver, SAXPY)
        await driver.until(lambda: "15 copies" in driver.screen_text())
        assert isinstance(driver.main_screen.focused, ColumnsView)
        await driver.press("right")
        assert driver.state.unsaved() == {}
        await typed(driver, tmp_path / "page.nvvp")
        await driver.until(lambda: "web page" in driver.status.full)
        assert driver.state.view.of(ProfileView).file == str(SAXPY)
        await driver.press("x")
        assert driver.state.view.of(ProfileView).source == "titan"
        await driver.press("m", "m")
        await driver.until(lambda: "measured 1.0973 s" in driver.screen_text())
        whole = driver.main_screen.page._found.streams
        await driver.press("z", "l")
        await driver.until(lambda: driver.main_screen.page._found.streams.window != whole.window)
        low, high = driver.main_screen.page._found.streams.window
        assert_allclose((low, high), (whole.whole * 0.375, whole.whole * 0.875), rtol=1e-12, atol=0)
        await driver.press("home")
        await driver.until(lambda: driver.main_screen.page._found.streams.window == whole.window)

    drive(check, size=(80, 24))


def test_lanes_are_busy_where_the_operations_are():
    found = answer(Adopt("perlmutter"), shown(LAMMPS))
    columns = {name: column.values for name, column in read_profile(LAMMPS).operations.columns.items()}
    measured, low, high = found.streams.bands[0], *found.streams.window
    for at, kind in enumerate(found.streams.kinds):
        chosen = (columns["operation"] == kind) | (columns["direction"] == kind)
        busy = sum(lane.busy[at].astype(float).sum() for lane in measured.lanes) * (high - low) / BIN_COUNT
        assert_allclose(busy, columns["time"][chosen].sum(), rtol=1e-5, atol=0)


def lane(name, *operations, kinds=2, named=()):
    """A stream whose operations (kind, first part, end) fill whole parts of the time."""
    busy = np.zeros((kinds, BIN_COUNT), dtype=np.float32)
    for kind, first, end in operations:
        busy[kind, first:end] = 1.0
    return Lane(name, busy, named)


@pytest.mark.parametrize("colours", [True, False])
def test_bars_begin_and_end_where_the_times_say_and_streams_without_a_line_are_counted(colours):
    quarter = BIN_COUNT // 4
    busy = lane("stream 7", (0, 0, quarter), (1, 2 * quarter, 3 * quarter), named=(Interval(0.0, 1.0, "ns::axpy"),))
    lanes = (busy, *(lane(f"stream {at}") for at in range(8, 12)))
    bands = tuple(TimelineSpan(name, 4.0, 0.0, lanes) for name in ("measured", "projected"))
    lines = stream_lines(Streams((0.0, 4.0), 4.0, ("kernel", "fill"), bands), 94, 9, colours=colours)
    text = text_of(lines)
    assert text[0].rstrip() == "measured 4 s, 3 more streams"
    row = next(line for line in lines if "stream 7" in "".join(run.text for run in line))
    cells = [(letter, run.fill) for run in row for letter in run.text][-(94 - 11) :]
    if colours:
        filled = [fill for _, fill in cells]
        assert "axpy 1 s" in text[1]
    else:
        filled = [{"K": "series-1", "F": "series-6"}.get(letter, "") for letter, _ in cells]
    for style, start, end in (("series-1", 0.0, 0.25), ("series-6", 0.5, 0.75)):
        places = [place for place, fill in enumerate(filled) if fill == style]
        assert abs(places[0] - start * len(cells)) <= 1
        assert abs(places[-1] + 1 - end * len(cells)) <= 1
        assert len(places) == places[-1] - places[0] + 1


def test_sizes_of_copies_are_two_bars_for_each_direction():
    rows = [("", "", "< 10 B", 3.0, 0.75, 1.0, 0.25), ("", "", ">= 1 GB", 1.0, 0.25, 3.0, 0.75)]
    rows += [("host_to_device", "pinned", *row[2:]) for row in rows]
    names = ("direction", "memory", "message_size", "count", "count_fraction", "time", "time_fraction")
    columns = {name: Column(np.array(values)) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    lines = text_of(size_lines(size_classes(Table(columns)), 60, 6, colours=False))
    by_number, by_time = (line.removeprefix("host to device ").removeprefix("pinned         ") for line in lines[:2])
    assert by_number.count("A") == pytest.approx(3 * by_number.count("B"), abs=2)
    assert by_time.count("B") == pytest.approx(3 * by_time.count("A"), abs=2)
    assert by_number.endswith("4 copies")
    assert "A < 10 B" in lines[3]


def test_bars_are_drawn_to_the_eighth_and_never_vanish():
    assert [length(value, 8.0, 4) for value in (8.0, 4.0, 0.25, 1e-9, 0.0, np.nan)] == ["████", "██", "▏", "▏", "", ""]


@pytest.mark.parametrize(
    ("kernel", "short"),
    [
        ("void at::native::(anonymous namespace)::fill<float, at::Tensor>(int)", "fill<float, Tensor>(int)"),
        ("_Z11reorderDataILj8ELb0EEvPjS0_", "reorderData"),
        ("_ZN2at6nativeE", "_ZN2at6nativeE"),
        ("k_lj_fast", "k_lj_fast"),
    ],
)
def test_kernels_are_called_by_their_own_names(kernel, short):
    assert short_kernel(kernel) == short


def test_the_page_itself_loads_no_importer():
    code = (
        "import sys, whatif.tui.app, whatif.tui.pages.profile;"
        "print([name for name in sys.modules if name.split('.')[0] in ('scipy', 'pandas', 'numba')"
        " or name.startswith('whatif.importers.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
