"""The fit page: what it shows of measurements, limits that move, and the way into the platform."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from textual.events import Key

from tests.driver import GPUS, drive
from tests.page_harness import SIZES, on_page
from tests.paths import DATA as TEST_DATA
from tests.paths import ROOT
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError, WhatifError
from whatif.plotting.description import PlotStack
from whatif.plotting.picture import draw
from whatif.schema.load import load_platform
from whatif.tui.commands.explorer_commands import Edit, EditAll, Show, parse_line
from whatif.tui.commands.history import lines_to
from whatif.tui.dialogs.windows import ChoicePrompt, TextPrompt
from whatif.tui.jobs.fit_job import fit_of_view
from whatif.tui.jobs.regression_job import regression_of_view
from whatif.tui.labels import with_error
from whatif.tui.page_views import FitView, RunsView
from whatif.tui.pages.fit import FitPage
from whatif.tui.pages.messages import MessagesPage
from whatif.tui.state import ExplorerState, View
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.fit_plot import FitPlot
from whatif.tui.widgets.message_costs import distinct
from whatif.tui.widgets.plot_view import PlotView
from whatif.units import BYTE_PER_SECOND, SECOND

DATA = TEST_DATA / "importers" / "network"
INTER_NODE = "platform.network.inter_node"
# Latency and bandwidth of each protocol, and the largest size of the first two.
PARAMETERS = {"short": (1e-6, 1e9), "eager": (2e-6, 2.5e9), "rendezvous": (5e-6, 1e10)}
SHORT, EAGER = 128, 8192
MEASURED_SIZES = [2**power for power in range(23)]


def protocol_of(size):
    return "short" if size <= SHORT else "eager" if size <= EAGER else "rendezvous"


def exact_time(size):
    latency, bandwidth = PARAMETERS[protocol_of(size)]
    return latency + size / bandwidth


@pytest.fixture
def osu(tmp_path, monkeypatch):
    """A latency test of a machine whose parameters are known, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{size:<12}{1e6 * exact_time(size):.6f}\n" for size in MEASURED_SIZES)
    Path("osu.txt").write_text(f"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n{rows}")
    return "osu.txt"


@pytest.fixture
def several():
    """A file with several pair counts."""
    return str(DATA / "blue_waters" / "ppn2_max_rate1.txt")


def opening(file):
    return {"opening": [Show("fit.files", file).line(), Show("screen", "fit").line()]}


def found(driver):
    return driver.main_screen.page._found


async def fit_shown(driver):
    await driver.until(lambda: driver.state.view.screen == "fit" and driver.main_screen.page.NAME == "fit")
    await driver.until(lambda: found(driver) is not None)
    await driver.calm()


async def typed(driver, key, text=None):
    """Press a key that asks for a line, and type it; without a text, accept what is proposed."""
    await driver.pilot.press(key)
    await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
    if text is not None:
        driver.app.screen.query_one("Input").value = text
    await driver.pilot.press("enter")
    await driver.until(lambda: not isinstance(driver.app.screen, TextPrompt))
    await driver.calm()


def test_without_measurements_the_page_says_what_to_do():
    async def check(page):
        assert " ".join(FitPage.NOTHING.split()) in page.text
        await page.act("accept")

    on_page(FitPage, check)


def test_points_curve_residuals_and_parameters_are_shown(osu):
    async def check(page):
        assert "measured" in page.text
        assert "fitted" in page.text
        assert "residual in %" in page.text
        assert "short to 128 B" in page.text
        assert "eager to 8 KiB" in page.text
        plot = page.page.query_one(FitPlot)
        lines = {line.label: line for line in plot.description.lines}
        assert_allclose(lines["measured"].x, MEASURED_SIZES, rtol=0, atol=0)
        curve = lines["fitted"]
        assert_allclose(curve.y, [exact_time(size) for size in curve.x], rtol=1e-5, atol=0)
        assert re.search(r"short +to 128 B +1(\.0+)?( ± \S+)? us +1(\.0+)?( ± \S+)? GB/s +8 +0.0%", page.text)
        assert re.search(r"rendezvous +beyond 8 KiB +5(\.0+)?( ± \S+)? us +10(\.0+)?( ± \S+)? GB/s +9 +0.0%", page.text)
        assert "only the postal model" in page.text

    on_page(FitPage, check, changes=(Show("fit.files", osu),))


def test_the_axes_of_both_plots_stand_in_one_column_and_the_mouse_reads_both(several):
    async def check(page):
        plot = page.page.query_one(FitPlot)
        rows = ["".join(run.text for run in line) for line in plot.draw(*plot.size)]
        corners = [row.index("└") for row in rows if "└" in row]
        assert len(corners) == 2
        assert corners[0] == corners[1]
        for down in (5, plot.size.height - 5):
            await page.pilot.hover(FitPlot, offset=(60, down))
            await page.settle()
            assert plot.cross is not None, down

    on_page(FitPage, check, changes=(Show("fit.files", several),))


@pytest.mark.parametrize(
    ("job", "view", "name", "reader"),
    [
        (fit_of_view, FitView, "HPL.out", "`whatif import logs {}` reads it"),
        (fit_of_view, FitView, "tree.goal", "`whatif import trace {}` reads it"),
        (fit_of_view, FitView, "lammps.nvvp", "`whatif import profile {}` reads it"),
        (regression_of_view, RunsView, "minife_profile.json", "`whatif import kernels {}` reads it"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_verb_that_reads_it(job, view, name, reader):
    path = ROOT / "docs" / "examples" / name
    assert job(view(files=(str(path),))).reason.endswith(f"; {reader.format(path)}")


def test_several_pair_counts_make_a_curve_each_and_a_recommendation(several):
    async def check(page):
        view = FitView(files=tuple(several.split(", ")))
        fit = fit_of_view(view)
        labels = [line.label for line in page.page.query_one(FitPlot).description.lines]
        assert [label for label in labels if "pair" in label] == ["1 pair", "2 pairs"]
        assert f"{fit.recommended.replace('_', '-')} is recommended" in page.text
        assert set(fit.held_out) == {"max_rate", "injection"}
        await page.act("model")
        assert fit_of_view(replace(view, model=page.app.state.view.of(FitView).model)).model != fit.model
        assert "process bandwidth" not in page.text or fit.model != "injection"

    on_page(FitPage, check, changes=(Show("fit.files", several),))


def test_the_table_has_every_point_with_its_residual(osu):
    async def check(page):
        await page.act("table")
        table = page.page.query_one("#points", TableView)
        assert table.row_count == len(MEASURED_SIZES)
        assert "0.0%" in page.line("8 KiB", "us")

    on_page(FitPage, check, changes=(Show("fit.files", osu),))


@pytest.mark.parametrize("colours", [True, False])
def test_every_size_of_screen_can_be_drawn(several, monkeypatch, colours):
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")

    async def check(page):
        for size in SIZES:
            await page.pilot.resize_terminal(*size)
            await page.settle()
            assert all(len(line) == size[0] for line in page.lines)
            assert any("⠁" <= char <= "⣿" for char in page.text) or size[1] < 9
            # Without colours a letter stands for each curve.
            assert ("b measured" in page.text) is (not colours and size[0] > 50 and size[1] > 9)
        await page.act("table")
        assert "fitted" in page.line("message size", "pairs", "measured")

    on_page(FitPage, check, changes=(Show("fit.files", several),))


WRONG = {
    "nothing.txt": (b"", "empty"),
    "binary.txt": (bytes(range(256)), "binary"),
    "page.txt": (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
    "cut.txt": (b"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n1   1.2\n2", "message size"),
    "not_there.txt": (None, "cannot be read"),
    "columns.csv": (b"size,elapsed\n1,2\n2,3\n", "N names the columns of CSV files"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_told_on_the_page(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    content, words = WRONG[name]
    if content is not None:
        Path(name).write_bytes(content)

    async def check(page):
        assert words in page.text
        assert not page.page.query_one("#fitted").display

    on_page(FitPage, check, changes=(Show("fit.files", name),))


def test_a_limit_moves_by_key_with_the_fit_until_other_measurements_are_read(osu, several):
    async def check(driver):
        await fit_shown(driver)
        assert found(driver).limits == (SHORT, EAGER)
        assert isinstance(driver.main_screen.focused, FitPlot)
        good = found(driver).error
        await driver.press("full_stop")
        assert driver.state.view.of(FitView).limits == (128, 16 * 1024)
        await driver.until(lambda: found(driver).limits == (SHORT, 2 * EAGER))
        assert found(driver).error > 10 * good
        await driver.press("x", "comma", "comma")
        await driver.until(lambda: found(driver).limits == (SHORT / 4, 2 * EAGER))
        assert "▸ short to 32 B" in driver.screen_text()
        await driver.press("u")
        assert driver.state.view.of(FitView).limits == (64, 16 * 1024)
        await driver.press("r")
        await driver.until(lambda: found(driver).limits == (SHORT, EAGER))
        await driver.press("full_stop")
        await typed(driver, "n", several)
        await driver.until(lambda: len(found(driver).models) == 3)
        assert (", ".join(driver.state.view.of(FitView).files), driver.state.view.of(FitView).limits) == (several, None)

    drive(check, **opening(osu))


def test_keys_pressed_quickly_all_count_and_the_way_back_finds_the_limits(osu):
    async def quickly(driver, key, character):
        for _ in range(3):
            driver.app.post_message(Key(key, character))
        await driver.pilot.pause()
        await driver.calm()

    async def check(driver):
        await fit_shown(driver)
        await quickly(driver, "comma", ",")
        assert driver.state.view.of(FitView).limits == (SHORT, EAGER // 8)
        await driver.until(lambda: "limits moved" in driver.screen_text())
        await quickly(driver, "full_stop", ".")
        assert driver.state.view.of(FitView).limits is None
        await driver.until(lambda: "limits found" in driver.screen_text())

    drive(check, **opening(osu))


def test_a_path_that_is_not_there_keeps_the_window_with_what_was_typed(osu):
    async def check(driver):
        await fit_shown(driver)
        await driver.pilot.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        driver.app.screen.query_one("Input").value = "nowhere.txt"
        await driver.pilot.press("enter")
        await driver.until(lambda: "no such file or folder: nowhere.txt" in driver.screen_text())
        await driver.pilot.press("end", "backspace")
        assert driver.app.screen.query_one("Input").value == "nowhere.tx"
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check, **opening(osu))


def test_a_good_fit_stays_when_other_measurements_cannot_be_read(osu):
    Path("page.txt").write_bytes(WRONG["page.txt"][0])

    async def check(driver):
        await fit_shown(driver)
        good = found(driver)
        await typed(driver, "n", "page.txt")
        await driver.until(lambda: "web page" in driver.status.full)
        assert found(driver) is good
        assert driver.state.view.of(FitView).files == (osu,)
        assert "limits found" in driver.screen_text()

    drive(check, **opening(osu))


def test_on_a_small_screen_columns_out_of_sight_and_the_keys_of_limits_are_told(several):
    async def check(driver):
        await fit_shown(driver)
        await driver.until(lambda: "more columns" in driver.screen_text())
        assert "residual  " not in driver.screen_text()
        footer = driver.screen_text().splitlines()[-1]
        assert ", lower . high" in footer

    drive(check, size=(80, 24), **opening(several))


def test_warnings_of_other_models_are_not_shown(osu):
    async def check(page):
        words = ("network.inter_node.max_rate.eager.latency: far", "network.inter_node.postal.eager.latency: near")
        found = replace(page.page._found, warnings=(*words, "network.inter_node.eager_limit: both"))
        told = page.page.summary(found).plain
        assert ["far" in told, "near" in told, "both" in told] == [False, True, True]

    on_page(FitPage, check, changes=(Show("fit.files", osu),))


@pytest.mark.parametrize(
    ("start", "other", "steps", "end"),
    [
        ("64 B, 256 B", False, -1, "64 B, 64 B"),
        ("2 B, 64 B", True, -1, "0 B, 64 B"),
        ("64 B, 2 MiB", False, 1, "64 B, 4 MiB"),
        ("60 B, 70 B", True, 1, "64 B, 70 B"),
    ],
)
def test_limits_never_pass_each_other_nor_leave_the_measured_sizes(osu, start, other, steps, end):
    async def check(page):
        if other:
            await page.act("limit")
        for _ in range(4):
            await page.act("move", steps)
        assert page.app.state.view.text("fit.limits", page.app.state.view.value("fit.limits")) == end

    on_page(FitPage, check, size=(80, 24), changes=(Show("fit.files", osu), Show("fit.limits", start)))


def test_limits_are_read_as_they_are_written():
    text = View().text("fit.limits", (12288.0, 70001.0))
    assert View().with_entry("fit.limits", text).of(FitView).limits == (12288.0, 70001.0)
    for text in ("128 B", "128 B, 1 s", "128 B, many", "1 B, 2 B, 3 B"):
        with pytest.raises(UsageError, match="such as `128 B, 64 KiB`"):
            View().with_entry("fit.limits", text)


def test_the_fit_is_accepted_as_one_change(osu):
    async def check(driver):
        await fit_shown(driver)
        before = driver.session.parameter(f"{INTER_NODE}.eager_limit").value
        await driver.press("a")
        assert driver.session.parameter(f"{INTER_NODE}.eager_limit").value == EAGER
        for protocol, (latency, bandwidth) in PARAMETERS.items():
            at = f"{INTER_NODE}.postal.{protocol}"
            assert_allclose(driver.session.parameter(f"{at}.latency").value, latency, rtol=1e-4, atol=0)
            assert_allclose(driver.session.parameter(f"{at}.bandwidth").value, bandwidth, rtol=1e-3, atol=0)
        line = driver.app.runner.history.lines[-1]
        assert line.startswith(f"set {INTER_NODE}.short_limit = 128 B; {INTER_NODE}.eager_limit = 8 KiB; ")
        assert parse_line(line).line() == line
        await driver.press("u")
        assert driver.session.parameter(f"{INTER_NODE}.eager_limit").value == before
        assert not driver.state.unsaved()

    drive(check, **opening(osu))


def test_a_platform_is_written_and_taken_or_it_is_told_why_not(osu, tmp_path):
    async def check(driver):
        await fit_shown(driver)
        for name, words in (("two words.toml", "letters, digits"), ("far/away.toml", "away.toml")):
            await typed(driver, "A", name)
            await driver.until(lambda words=words: words in driver.status.full)
        assert driver.state.platform_name == "summit"
        assert [path.name for path in Path().iterdir()] == ["osu.txt"]
        await typed(driver, "A")
        await driver.until(lambda: driver.state.platform_name == "summit_measured")
        await driver.calm()
        parameter = driver.session.parameter(f"{INTER_NODE}.postal.rendezvous.latency")
        assert_allclose(parameter.value, PARAMETERS["rendezvous"][0], rtol=1e-4, atol=0)
        assert (parameter.grade, parameter.source) == ("measured", "fitted to osu.txt (OSU micro-benchmarks 5.9)")
        # What is kept aside for the worst finds it again.
        again = [parse_line(line) for line in lines_to(driver.state) if line.startswith("platform")]
        state = ExplorerState.start(Session.start(Scenario.open("jacobi2d")))
        assert again[0].apply(state).platform_name == "summit_measured"
        await typed(driver, "A", "summit_measured")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check, **opening(osu))
    platform, _ = load_platform(tmp_path / "summit_measured.toml")
    assert platform.network.inter_node.eager_limit == EAGER


def test_measured_points_lie_over_the_curves_of_the_messages_page(osu):
    async def check(page):
        lines = {line.label: line for line in page.page.query_one(PlotView).description.lines}
        points = lines["measured"]
        assert_allclose(points.x, MEASURED_SIZES, rtol=0, atol=0)
        assert_allclose(points.y, [exact_time(size) for size in MEASURED_SIZES], rtol=1e-5, atol=0)
        assert points.style == "points"
        assert "measured" in page.text
        assert "⠶ measured" in page.text
        await page.change(Show("fit.files", ""))
        assert "measured" not in page.text

    on_page(MessagesPage, check, changes=(Show("fit.files", osu),))


def test_points_that_fall_together_are_drawn_once():
    x, y = np.repeat(np.log(MEASURED_SIZES), 1000), np.tile(np.linspace(0, 1, 1000), len(MEASURED_SIZES))
    chosen = distinct(x, y)
    assert len(MEASURED_SIZES) < len(chosen) <= 300
    assert set(x[chosen]) == set(x)
    few = np.arange(10.0)
    assert distinct(few, few).tolist() == list(range(10))


def test_several_values_at_once_make_a_table_that_is_missing():
    state = ExplorerState.start(Session.start(Scenario.open("jacobi2d", platform="frontier")))
    at = "platform.network.intra_socket"
    assert f"{at}.short_limit" not in state.session.program.parameters
    with pytest.raises(WhatifError):
        Edit(f"{at}.short_limit", "64 B").apply(state)
    postal = [(f"{at}.postal.{protocol}", word) for protocol in PARAMETERS for word in ("latency", "bandwidth")]
    texts = [(f"{at}.short_limit", "64 B"), (f"{at}.eager_limit", "8 KiB")]
    texts += [(f"{path}.{word}", "1 us" if word == "latency" else "5 GB/s") for path, word in postal]
    changed = EditAll(tuple(texts)).apply(state)
    assert changed.session.parameter(f"{at}.postal.eager.latency").value == 1e-6
    with pytest.raises(WhatifError):
        EditAll(tuple(texts[:3])).apply(state)
    # What is kept aside leads there as well.
    again = state
    for line in lines_to(Edit(GPUS, "6").apply(changed)):
        again = parse_line(line).apply(again) if line.startswith("set") else again
    assert again.unsaved() == Edit(GPUS, "6").apply(changed).unsaved()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1; 2", "set a.b = 1; 2"),
        ("x ; c.d-e.f= 3 GB/s;g.h =y", "set a.b = x; c.d-e.f = 3 GB/s; g.h = y"),
    ],
)
def test_a_line_with_several_values_is_read_back(text, line):
    change = parse_line(f"set a.b = {text}")
    assert change.line() == line
    assert isinstance(change, EditAll if "c.d-e" in line else Edit)


def test_values_are_told_to_the_digits_that_their_errors_leave():
    assert with_error(1.2404e-6, 1.23e-8, SECOND) == "1.240 ± 0.012 us"
    assert with_error(1.2404e10, 3.4e9, BYTE_PER_SECOND) == "12.4 ± 3.4 GB/s"
    assert with_error(1.2404e10, np.nan, BYTE_PER_SECOND) == "12.4 GB/s"


def test_measurements_are_named_on_the_command_line(tmp_path, whatif_main, monkeypatch):
    from whatif.cli.open import measured_lines

    assert list(measured_lines((Path("a.txt"), Path("b c")), "time=t [s]", "machine=lassen")) == [
        "show fit.columns = time=t [s]",
        "show fit.rows = machine=lassen",
        "show fit.files = a.txt, b c",
        "show screen = fit",
    ]
    for line in measured_lines((Path("a.txt"),), "time=t [s]", None):
        assert parse_line(line).line() == line
    monkeypatch.setenv("TEXTUAL_DRIVER", "none")
    (tmp_path / "a,b").touch()
    for words in (("--columns", "time=t"), ("--measured", "a,b"), ("--measured", "none.txt")):
        assert whatif_main("open", "jacobi2d", *words)[0] == 2


def test_the_explorer_itself_loads_no_importer_and_no_fit():
    code = (
        "import sys, whatif.tui.app, whatif.tui.pages.fit, whatif.tui.pages.messages;"
        "print([name for name in sys.modules if name.split('.')[0] in ('scipy', 'pandas')"
        " or name.startswith(('whatif.importers.', 'whatif.fitting.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("size", [(140, 42), (80, 24)])
def test_export_has_times_and_residuals_also_where_the_screen_has_room_for_one(osu, size):
    async def check(driver):
        stack = driver.page.query_one(FitPlot).exported
        assert isinstance(stack, PlotStack)
        upper, lower = draw(stack).axes
        assert upper.get_ylabel() == "time (µs)"
        assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "message size (B)")
        assert "residual in %" in [text.get_text() for text in lower.texts]

    on_page(FitPage, check, size=size, changes=(Show("fit.files", osu),))


def test_the_page_without_measurements_names_both_ways_to_read_some():
    async def check(driver):
        await driver.go("fit")
        assert "--measured FILE" in " ".join(driver.screen_text().split())
        assert driver.main_screen.focused is None
        assert "⇧tab back" not in driver.screen_text()

    drive(check, size=(80, 24))
