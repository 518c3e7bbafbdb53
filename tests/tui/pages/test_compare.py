"""The comparison of machines as it is read off the screen, against the command line and the engine."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests import page_harness
from tests.driver import GPUS, MODEL, RANKS, drive
from tests.page_harness import few_machines
from tests.scenarios_at_hand import FEW
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep import parse_option
from whatif.studies.platform_comparison import PlatformRow
from whatif.tui.commands.explorer_commands import Adopt
from whatif.tui.files.export import plot_of
from whatif.tui.labels import brief, duration
from whatif.tui.page_views import CompareView
from whatif.tui.pages.compare import ComparePage
from whatif.tui.pages.compared_machines import baseline, chosen_machines, order
from whatif.tui.widgets.data_table import ColumnsView, TableView
from whatif.tui.widgets.plot_view import PlotView

NODES = "the ranks need more nodes than the platform has (platform.node_count)"
SIZES = [(10, 3), (20, 5), (44, 14), (74, 20), (80, 24), (120, 36), (200, 50), (300, 80)]


@pytest.fixture(autouse=True)
def _three_machines(monkeypatch):
    few_machines(monkeypatch)


def watch(check, page, session, size=(200, 40)):
    page_harness.watch(check, page, session, size)


def opened(name="jacobi2d", **options):
    return Session.start(Scenario.open(name, **options))


def answer(name, platform, *options):
    """What the command line says of a scenario on a platform."""
    from click.testing import CliRunner

    from whatif.cli.main import program

    done = CliRunner().invoke(program, ["run", name, "--platform", platform, "--point", "--format", "json", *options])
    (row,) = json.loads(done.stdout)["rows"]
    return row


def row_of(main_screen, label):
    """The words of a machine's row."""
    (line,) = [line for line in main_screen.lines() if line.strip("│━ ").startswith(f"{label}  ")]
    return line.strip("│━ ").removeprefix(label).split()


@pytest.mark.parametrize("name", FEW)
def test_every_machine_has_the_times_of_the_command_line(name):
    async def check(main_screen, pilot):
        for platform in main_screen.state.session.scenario.known_platforms:
            row = answer(name, platform)
            words = " ".join(row_of(main_screen, platform.capitalize()))
            if row.get("infeasible"):
                assert words.partition("; ")[0] == row["infeasible"]
            else:
                # A phase that takes no time on any machine has no column.
                times = [row["iteration_time"], row["total_time"], *filter(None, row["terms"].values())]
                assert all(duration(time) in words for time in times)

    watch(check, ComparePage, opened(name), (400, 30))


def test_ratios_are_those_of_the_times_to_the_chosen_machine():
    async def check(main_screen, pilot):
        summit, lassen = answer("jacobi2d", "summit"), answer("jacobi2d", "lassen")
        halo = summit["terms"]["halo"] / lassen["terms"]["halo"]
        assert f"{halo:.2f}x" == "1.76x"
        assert "1.76x" in row_of(main_screen, "Lassen")
        assert "base" in row_of(main_screen, "Summit")
        assert "speedups over Summit" in main_screen.text()
        await pilot.press("end", "x")
        main_screen.page.action_against()
        await pilot.pause()
        assert main_screen.state.view.against == "lassen"
        assert f"{1 / halo:.3f}x" in row_of(main_screen, "Summit")
        assert "base" in row_of(main_screen, "Lassen")
        assert "speedups over Lassen" in main_screen.text()
        await pilot.press("home")
        main_screen.page.action_against()
        await pilot.pause()
        assert main_screen.state.view.against == ""
        assert "1.76x" in row_of(main_screen, "Lassen")

    watch(check, ComparePage, opened())


def test_a_machine_with_edits_stands_above_itself_without_them():
    async def check(main_screen, pilot):
        main_screen.edit(**{GPUS: "8"})
        await pilot.pause()
        edited = answer("jacobi2d", "summit", "--set", f"{GPUS}=8")["iteration_time"]
        before = answer("jacobi2d", "summit")["iteration_time"]
        assert " ".join(row_of(main_screen, "Summit (edited)")).startswith(duration(edited))
        words = row_of(main_screen, "Summit")
        assert " ".join(words).startswith(duration(before))
        assert f"{edited / before:.2f}x" in words
        assert "assumed" in row_of(main_screen, "Summit (edited)")
        assert "assumed" in words

    watch(check, ComparePage, opened())


def test_machines_are_sorted_by_a_column_and_those_without_a_number_come_last():
    async def check(main_screen, pilot):
        def labels():
            return [line.strip("│━ ").split()[0] for line in main_screen.lines()[2:5]]

        assert labels() == ["Summit", "Bridges", "Lassen"]
        main_screen.page.action_sort(1)
        await pilot.pause()
        assert main_screen.state.view.of(CompareView).sort == "iteration_time"
        assert labels() == ["Lassen", "Summit", "Bridges"]
        assert "iteration ▲" in main_screen.text()
        main_screen.page.action_reverse()
        await pilot.pause()
        assert labels() == ["Summit", "Lassen", "Bridges"]
        assert "iteration ▼" in main_screen.text()
        for _ in range(8):
            main_screen.page.action_sort(1)
            await pilot.pause()
        assert main_screen.state.view.of(CompareView).sort == ""
        assert labels() == ["Summit", "Bridges", "Lassen"]

    watch(check, ComparePage, opened())


def test_sorting_brings_its_column_into_sight():
    async def check(main_screen, pilot):
        assert "overhead" not in main_screen.text()
        for _ in range(8):
            main_screen.page.action_sort(1)
            await pilot.pause()
        assert main_screen.state.view.of(CompareView).sort == "terms.overhead"
        assert "overhead ▲" in main_screen.text()

    watch(check, ComparePage, opened(), (90, 30))


def test_the_cursor_stays_with_its_machine_when_the_order_changes():
    async def check(main_screen, pilot):
        await pilot.press("end")
        main_screen.page.action_sort(1)
        await pilot.pause()
        main_screen.page.action_mark()
        await pilot.pause()
        assert main_screen.state.view.of(CompareView).marked == ("lassen",)

    watch(check, ComparePage, opened())


@pytest.mark.parametrize("name", ["jacobi2d_strong", "minife"])
def test_each_machine_has_the_curve_of_its_own_sweep(name):
    async def check(main_screen, pilot):
        session = main_screen.state.session
        lines = {line.label: line for line in main_screen.page.query_one(PlotView).description.lines}
        assert len(lines) > 1
        for label, line in lines.items():
            scenario = Scenario.open(name, platform=label.lower())
            result = run_whole(scenario, Grid(session.grid.axes[:1]))
            assert_allclose(line.y, result.columns["iteration_time"], rtol=1e-14, atol=0)
            (values,) = session.grid.axes[0].parameters.values()
            assert_allclose(line.x, values, rtol=1e-14, atol=0)
        assert f"{len(lines)} of 3 drawn" in main_screen.text()

    watch(check, ComparePage, opened(name))


def test_only_marked_machines_are_drawn_until_none_is_marked():
    async def check(main_screen, pilot):
        def drawn():
            return [line.label for line in main_screen.page.query_one(PlotView).description.lines]

        assert drawn() == ["Summit", "Bridges", "Lassen"]
        await pilot.press("end")
        main_screen.page.action_mark()
        await pilot.pause()
        assert (main_screen.state.view.of(CompareView).marked, drawn()) == (("lassen",), ["Summit", "Lassen"])
        await pilot.press("home")
        main_screen.page.action_mark()
        await pilot.pause()
        assert (main_screen.state.view.of(CompareView).marked, drawn()) == (("lassen", "present"), ["Summit", "Lassen"])
        main_screen.page.action_mark()
        await pilot.press("end")
        main_screen.page.action_mark()
        await pilot.pause()
        assert (main_screen.state.view.of(CompareView).marked, drawn()) == ((), ["Summit", "Bridges", "Lassen"])

    watch(check, ComparePage, opened("jacobi2d_strong"))


def test_a_marked_machine_without_a_curve_says_why():
    async def check(main_screen, pilot):
        await pilot.press("down")
        main_screen.page.action_mark()
        await pilot.pause()
        assert main_screen.state.view.of(CompareView).marked == ("bridges",)
        assert [line.label for line in main_screen.page.query_one(PlotView).description.lines] == ["Summit"]
        assert f"Bridges: {NODES}"[:40] in main_screen.text()

    watch(check, ComparePage, opened())


def test_without_curves_there_is_no_plot_to_export():
    async def check(main_screen, pilot):
        assert plot_of(main_screen.page) is not None
        state = main_screen.state
        main_screen.show(state.with_session(state.session.over(())))
        await pilot.pause()
        assert "No sweep" in main_screen.text()
        assert plot_of(main_screen.page) is None

    watch(check, ComparePage, opened())


def test_the_table_shows_the_numbers_of_the_curves():
    async def check(main_screen, pilot):
        main_screen.page.action_table()
        await pilot.pause()
        assert main_screen.state.view.picture == "table"
        numbers = main_screen.page.query_one("#curve-numbers", TableView)
        assert numbers.row_count == main_screen.state.session.grid.size
        twelve = answer("jacobi2d_strong", "lassen", "--set", f"{RANKS}=12")["iteration_time"]
        (line,) = [line for line in main_screen.lines() if line.strip("│ ").startswith("12  ")]
        assert duration(twelve) in line
        main_screen.page.action_table()
        await pilot.pause()
        assert main_screen.page.query_one(PlotView).display

    watch(check, ComparePage, opened("jacobi2d_strong"))


def test_enter_goes_to_another_machine_and_moving_the_cursor_does_not():
    async def check(main_screen, pilot):
        await pilot.press("enter", "down", "down", "up", "down")
        await pilot.pause()
        assert main_screen.changes == []
        await pilot.press("enter")
        await pilot.pause()
        assert main_screen.changes == [Adopt("lassen")]
        assert main_screen.state.session.program.loaded.scenario.platform.name == "Lassen"
        assert "base" in row_of(main_screen, "Lassen")

    watch(check, ComparePage, opened())


def test_an_infeasible_point_is_a_reason_in_every_row():
    async def check(main_screen, pilot):
        available = {"Summit": 4608, "Bridges": 32, "Lassen": 792}
        needed = {"Summit": 10000, "Bridges": 30000, "Lassen": 15000}
        for label, count in available.items():
            assert " ".join(row_of(main_screen, label)) == f"{NODES}; {needed[label]} needed, {count} available"

    watch(check, ComparePage, opened(overrides={RANKS: "60000"}))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/far/a b/x.toml:8:1: application.ranks_per_node: missing: no GPU", "ranks_per_node: missing: no GPU"),
        ("x.toml:8:1: not a table", "not a table"),
        ("platform.node.gpu_count: at least 1", "gpu_count: at least 1"),
        ("it is 10:30:1", "it is 10:30:1"),
        ("x.toml:8:1: platform.b: missing\nx.toml:9:1: application.a.c: wrong", "b: missing; c: wrong"),
        ("plot.foo: `.foo` is no known format", "plot.foo: `.foo` is no known format"),
    ],
)
def test_a_message_in_little_room_parameters_its_place_out(message, shown):
    assert brief(message) == shown


def test_a_machine_that_lacks_values_says_which():
    async def check(main_screen, pilot):
        assert "Bridges does not state `platform.node.peer_link`" in " ".join(row_of(main_screen, "bridges"))
        assert "2 of 3 drawn" in main_screen.text()

    session = opened("jacobi2d_strong", overrides={"application.phases.device_to_host.direction": "peer_to_peer"})
    watch(check, ComparePage, session)


def test_a_machine_with_numbers_and_no_curve_says_why_below_the_curves():
    parameter = "platform.node.host_link.link_count"

    async def check(main_screen, pilot):
        expected = answer("jacobi2d_strong", "bridges", "--set", f"{RANKS}=48")["iteration_time"]
        assert " ".join(row_of(main_screen, "Bridges")).startswith(duration(expected))
        assert f"2 of 3 drawn · Bridges: `{parameter}`: no such parameter" in main_screen.text()

    watch(check, ComparePage, opened("jacobi2d_strong", overrides={RANKS: "48"}).sweep(parameter, "1, 2"))


def test_a_sweep_of_platforms_has_no_curves_and_says_so():
    async def check(main_screen, pilot):
        assert "the axis is the platform itself" in main_screen.text()
        assert duration(answer("jacobi2d", "lassen")["iteration_time"]) in main_screen.text()

    session = opened()
    axis = parse_option("platform=summit, lassen", session.program, 10)
    watch(check, ComparePage, session.over((axis,)))


def test_without_a_sweep_the_page_says_how_to_begin_one():
    async def check(main_screen, pilot):
        assert "press s to draw the time over it on every machine" in main_screen.text()
        assert duration(answer("jacobi2d", "lassen")["iteration_time"]) in main_screen.text()
        main_screen.page.action_table()
        main_screen.page.action_sort(1)
        await pilot.pause()
        assert "press s" in main_screen.text()

    watch(check, ComparePage, opened().over(()))


def test_a_choice_is_swept_on_every_machine():
    async def check(main_screen, pilot):
        description = main_screen.page.query_one(PlotView).description
        assert description.x.ticks == ("postal", "max_rate", "k_model")
        lines = {line.label: line.y for line in description.lines}
        for at, model in enumerate(description.x.ticks):
            expected = answer("jacobi2d", "lassen", "--set", f"{MODEL}={model}")["iteration_time"]
            assert_allclose(lines["Lassen"][at], expected, rtol=1e-14, atol=0)

    watch(check, ComparePage, opened().sweep(MODEL, "postal, max_rate, k_model"))


def test_another_column_is_asked_and_drawn_for_every_machine():
    async def check(main_screen, pilot):
        main_screen.page.action_curve(1)
        await pilot.pause()
        assert main_screen.state.view.y == "total_time"
        description = main_screen.page.query_one(PlotView).description
        assert description.y.label == "total"
        lines = {line.label: line.y for line in description.lines}
        counts = description.lines[0].x
        expected = answer("jacobi2d", "lassen", "--set", f"{GPUS}={counts[-1]:g}")["total_time"]
        assert_allclose(lines["Lassen"][-1], expected, rtol=1e-14, atol=0)

    watch(check, ComparePage, opened())


def test_machines_are_asked_again_only_for_another_question():
    async def check(main_screen, pilot):
        assert main_screen.page.job(main_screen.state) is None
        main_screen.page.action_sort(1)
        await pilot.pause()
        assert main_screen.page.job(main_screen.state) is None
        state = main_screen.state.with_session(main_screen.state.session.edit(GPUS, "8"))
        before = main_screen.text()
        main_screen.page.show(state)
        await pilot.pause()
        assert main_screen.text() == before
        assert main_screen.page.job(state) is not None

    watch(check, ComparePage, opened())


@pytest.mark.parametrize(("name", "sizes"), [("minimd", SIZES[::2])])
def test_at_every_size_columns_are_whole(name, sizes):
    async def check(main_screen, pilot):
        for size in sizes:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            head = next(line for line in main_screen.lines() if "mach" in line and "machines" not in line)
            assert "…" not in head or size[0] < 20
            assert "base" in main_screen.text() or size[0] < 44
        for size in sizes:
            await pilot.press("right", "right", "left", "down")
            for key in ("table", "mark", "against", "reverse"):
                getattr(main_screen.page, f"action_{key}")()
                await pilot.pause()
            await pilot.resize_terminal(*size[::-1])
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert len(main_screen.lines()) == size[1]

    watch(check, ComparePage, opened(name), sizes[0])


def test_left_and_right_bring_the_other_columns():
    async def check(main_screen, pilot):
        assert "stencil" not in main_screen.text()
        assert "← → other columns" in main_screen.text()
        await pilot.press("right", "right", "right", "right", "right", "right", "right", "right", "right")
        text = main_screen.text()
        assert "overhead" in text
        assert duration(answer("jacobi2d", "lassen")["terms"]["stencil"]) in text
        assert "iteration  " not in text
        assert "Lassen" in text
        await pilot.press(*["left"] * 9)
        assert "iteration  " in main_screen.text()

    watch(check, ComparePage, opened(), (80, 24))


def test_without_colours_letters_tell_the_curves(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def check(main_screen, pilot):
        text = main_screen.text()
        assert "a  Summit" in text
        assert "b  Bridges" in text
        assert "c  Lassen" in text
        assert "●╌ c Lassen" in text

    watch(check, ComparePage, opened("jacobi2d_strong"))


def made_up(name, time, curve=True):
    columns = {} if time is None else {"iteration_time": time, "total_time": time}
    reason = "it cannot be" if time is None else ""
    return PlatformRow(name, name, columns, {}, "", reason, np.ones(3) if curve else None, "" if curve else "none")


def test_names_of_machines_are_those_of_their_files():
    machines = (made_up("summit", 1.0), made_up("summit", 2.0), made_up("lassen", None))
    assert [baseline(machines, name) for name in ("", "summit", "lassen", "frontier")] == [0, 1, 2, 0]
    assert chosen_machines(machines, (), 0, "iteration_time") == [0, 1, 2]
    assert chosen_machines(machines, ("present",), 0, "iteration_time") == [0]
    assert chosen_machines(machines, ("summit", "lassen"), 0, "iteration_time") == [0, 1, 2]
    many = tuple(made_up(f"m{place}", 20.0 - place) for place in range(12))
    assert chosen_machines(many, (), 0, "iteration_time") == [0, 7, 8, 9, 10, 11]
    assert chosen_machines(machines, ("frontier",), 0, "iteration_time") == [0, 1, 2]
    assert order(machines, "-iteration_time") == [1, 0, 2]
    assert math.isnan(machines[2].columns.get("iteration_time", math.nan))


def test_the_explorer_opens_the_page_and_its_keys_work():
    async def check(driver):
        await driver.press("2")
        await driver.until(lambda: "speedups over Summit" in driver.screen_text())
        assert isinstance(driver.app.focused, ColumnsView)
        await driver.press("o", "O")
        assert driver.state.view.of(CompareView).sort == "-iteration_time"
        await driver.press("home", "m", "x", "v")
        (machine,) = driver.state.view.of(CompareView).marked
        assert machine == driver.state.view.against
        assert machine not in ("", "present", "summit")
        await driver.press("enter")
        assert driver.session.scenario.platform == machine
        await driver.press("u")
        assert driver.session.scenario.platform is None

    drive(check)
