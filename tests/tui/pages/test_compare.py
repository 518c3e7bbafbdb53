"""The comparison of machines as it is read off the screen, against the command line and the engine."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.driver import GPUS, MODEL, RANKS, drive
from tests.page_harness import few_machines, on_page
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


def opened(name="jacobi2d", **options):
    return Session.start(Scenario.open(name, **options))


def answer(name, platform, *options):
    """What the command line says of a scenario on a platform."""
    from click.testing import CliRunner

    from whatif.cli.main import program

    done = CliRunner().invoke(program, ["run", name, "--platform", platform, "--point", "--format", "json", *options])
    (row,) = json.loads(done.stdout)["rows"]
    return row


def row_of(one, label):
    """The words of a machine's row."""
    (line,) = [line for line in one.lines if line.strip("│━ ").startswith(f"{label}  ")]
    return line.strip("│━ ").removeprefix(label).split()


@pytest.mark.parametrize("name", FEW)
def test_every_machine_has_the_times_of_the_command_line(name):
    async def check(one):
        for platform in one.state.session.scenario.known_platforms:
            row = answer(name, platform)
            words = " ".join(row_of(one, platform.capitalize()))
            if row.get("infeasible"):
                assert words.partition("; ")[0] == row["infeasible"]
            else:
                # A phase that takes no time on any machine has no column.
                times = [row["iteration_time"], row["total_time"], *filter(None, row["terms"].values())]
                assert all(duration(time) in words for time in times)

    on_page(ComparePage, check, opened(name), (400, 30))


def test_ratios_are_those_of_the_times_to_the_chosen_machine():
    async def check(one):
        summit, lassen = answer("jacobi2d", "summit"), answer("jacobi2d", "lassen")
        halo = summit["terms"]["halo"] / lassen["terms"]["halo"]
        assert f"{halo:.2f}x" == "1.76x"
        assert "1.76x" in row_of(one, "Lassen")
        assert "base" in row_of(one, "Summit")
        assert "speedups over Summit" in one.screen
        await one.press("end", "x")
        one.page.action_against()
        await one.settle()
        assert one.state.view.against == "lassen"
        assert f"{1 / halo:.3f}x" in row_of(one, "Summit")
        assert "base" in row_of(one, "Lassen")
        assert "speedups over Lassen" in one.screen
        await one.press("home")
        one.page.action_against()
        await one.settle()
        assert one.state.view.against == ""
        assert "1.76x" in row_of(one, "Lassen")

    on_page(ComparePage, check, opened(), (200, 40))


def test_a_machine_with_edits_stands_above_itself_without_them():
    async def check(one):
        one.app.show(one.state.with_session(one.state.session.edit(GPUS, "8")))
        await one.settle()
        edited = answer("jacobi2d", "summit", "--set", f"{GPUS}=8")["iteration_time"]
        before = answer("jacobi2d", "summit")["iteration_time"]
        assert " ".join(row_of(one, "Summit (edited)")).startswith(duration(edited))
        words = row_of(one, "Summit")
        assert " ".join(words).startswith(duration(before))
        assert f"{edited / before:.2f}x" in words
        assert "assumed" in row_of(one, "Summit (edited)")
        assert "assumed" in words

    on_page(ComparePage, check, opened(), (200, 40))


def test_machines_are_sorted_by_a_column_and_those_without_a_number_come_last():
    async def check(one):
        def labels():
            return [line.strip("│━ ").split()[0] for line in one.lines[2:5]]

        assert labels() == ["Summit", "Bridges", "Lassen"]
        one.page.action_sort(1)
        await one.settle()
        assert one.state.view.of(CompareView).sort == "iteration_time"
        assert labels() == ["Lassen", "Summit", "Bridges"]
        assert "iteration ▲" in one.screen
        one.page.action_reverse()
        await one.settle()
        assert labels() == ["Summit", "Lassen", "Bridges"]
        assert "iteration ▼" in one.screen
        for _ in range(8):
            one.page.action_sort(1)
            await one.settle()
        assert one.state.view.of(CompareView).sort == ""
        assert labels() == ["Summit", "Bridges", "Lassen"]

    on_page(ComparePage, check, opened(), (200, 40))


def test_sorting_brings_its_column_into_sight():
    async def check(one):
        assert "overhead" not in one.screen
        for _ in range(8):
            one.page.action_sort(1)
            await one.settle()
        assert one.state.view.of(CompareView).sort == "terms.overhead"
        assert "overhead ▲" in one.screen

    on_page(ComparePage, check, opened(), (90, 30))


def test_the_cursor_stays_with_its_machine_when_the_order_changes():
    async def check(one):
        await one.press("end")
        one.page.action_sort(1)
        await one.settle()
        one.page.action_mark()
        await one.settle()
        assert one.state.view.of(CompareView).marked == ("lassen",)

    on_page(ComparePage, check, opened(), (200, 40))


@pytest.mark.parametrize("name", ["jacobi2d_strong", "minife"])
def test_each_machine_has_the_curve_of_its_own_sweep(name):
    async def check(one):
        session = one.state.session
        lines = {line.label: line for line in one.page.query_one(PlotView).description.lines}
        assert len(lines) > 1
        for label, line in lines.items():
            scenario = Scenario.open(name, platform=label.lower())
            result = run_whole(scenario, Grid(session.grid.axes[:1]))
            assert_allclose(line.y, result.columns["iteration_time"], rtol=1e-14, atol=0)
            (values,) = session.grid.axes[0].parameters.values()
            assert_allclose(line.x, values, rtol=1e-14, atol=0)
        assert f"{len(lines)} of 3 drawn" in one.screen

    on_page(ComparePage, check, opened(name), (200, 40))


def test_only_marked_machines_are_drawn_until_none_is_marked():
    async def check(one):
        def drawn():
            return [line.label for line in one.page.query_one(PlotView).description.lines]

        assert drawn() == ["Summit", "Bridges", "Lassen"]
        await one.press("end")
        one.page.action_mark()
        await one.settle()
        assert (one.state.view.of(CompareView).marked, drawn()) == (("lassen",), ["Summit", "Lassen"])
        await one.press("home")
        one.page.action_mark()
        await one.settle()
        assert (one.state.view.of(CompareView).marked, drawn()) == (("lassen", "present"), ["Summit", "Lassen"])
        one.page.action_mark()
        await one.press("end")
        one.page.action_mark()
        await one.settle()
        assert (one.state.view.of(CompareView).marked, drawn()) == ((), ["Summit", "Bridges", "Lassen"])

    on_page(ComparePage, check, opened("jacobi2d_strong"), (200, 40))


def test_a_marked_machine_without_a_curve_says_why():
    async def check(one):
        await one.press("down")
        one.page.action_mark()
        await one.settle()
        assert one.state.view.of(CompareView).marked == ("bridges",)
        assert [line.label for line in one.page.query_one(PlotView).description.lines] == ["Summit"]
        assert f"Bridges: {NODES}"[:40] in one.screen

    on_page(ComparePage, check, opened(), (200, 40))


def test_without_curves_there_is_no_plot_to_export():
    async def check(one):
        assert plot_of(one.page) is not None
        state = one.state
        one.app.show(state.with_session(state.session.over(())))
        await one.settle()
        assert "No sweep" in one.screen
        assert plot_of(one.page) is None

    on_page(ComparePage, check, opened(), (200, 40))


def test_the_table_shows_the_numbers_of_the_curves():
    async def check(one):
        one.page.action_table()
        await one.settle()
        assert one.state.view.picture == "table"
        numbers = one.page.query_one("#curve-numbers", TableView)
        assert numbers.row_count == one.state.session.grid.size
        twelve = answer("jacobi2d_strong", "lassen", "--set", f"{RANKS}=12")["iteration_time"]
        (line,) = [line for line in one.lines if line.strip("│ ").startswith("12  ")]
        assert duration(twelve) in line
        one.page.action_table()
        await one.settle()
        assert one.page.query_one(PlotView).display

    on_page(ComparePage, check, opened("jacobi2d_strong"), (200, 40))


def test_enter_goes_to_another_machine_and_moving_the_cursor_does_not():
    async def check(one):
        await one.press("enter", "down", "down", "up", "down")
        await one.settle()
        assert one.app.changes == []
        await one.press("enter")
        await one.settle()
        assert one.app.changes == [Adopt("lassen")]
        assert one.state.session.program.loaded.scenario.platform.name == "Lassen"
        assert "base" in row_of(one, "Lassen")

    on_page(ComparePage, check, opened(), (200, 40))


def test_an_infeasible_point_is_a_reason_in_every_row():
    async def check(one):
        available = {"Summit": 4608, "Bridges": 32, "Lassen": 792}
        needed = {"Summit": 10000, "Bridges": 30000, "Lassen": 15000}
        for label, count in available.items():
            assert " ".join(row_of(one, label)) == f"{NODES}; {needed[label]} needed, {count} available"

    on_page(ComparePage, check, opened(overrides={RANKS: "60000"}), (200, 40))


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
    async def check(one):
        assert "Bridges does not state `platform.node.peer_link`" in " ".join(row_of(one, "bridges"))
        assert "2 of 3 drawn" in one.screen

    session = opened("jacobi2d_strong", overrides={"application.phases.device_to_host.direction": "peer_to_peer"})
    on_page(ComparePage, check, session, (200, 40))


def test_a_machine_with_numbers_and_no_curve_says_why_below_the_curves():
    parameter = "platform.node.host_link.link_count"

    async def check(one):
        expected = answer("jacobi2d_strong", "bridges", "--set", f"{RANKS}=48")["iteration_time"]
        assert " ".join(row_of(one, "Bridges")).startswith(duration(expected))
        assert f"2 of 3 drawn · Bridges: `{parameter}`: no such parameter" in one.screen

    on_page(ComparePage, check, opened("jacobi2d_strong", overrides={RANKS: "48"}).sweep(parameter, "1, 2"), (200, 40))


def test_a_sweep_of_platforms_has_no_curves_and_says_so():
    async def check(one):
        assert "the axis is the platform itself" in one.screen
        assert duration(answer("jacobi2d", "lassen")["iteration_time"]) in one.screen

    session = opened()
    axis = parse_option("platform=summit, lassen", session.program, 10)
    on_page(ComparePage, check, session.over((axis,)), (200, 40))


def test_without_a_sweep_the_page_says_how_to_begin_one():
    async def check(one):
        assert "press s to draw the time over it on every machine" in one.screen
        assert duration(answer("jacobi2d", "lassen")["iteration_time"]) in one.screen
        one.page.action_table()
        one.page.action_sort(1)
        await one.settle()
        assert "press s" in one.screen

    on_page(ComparePage, check, opened().over(()), (200, 40))


def test_a_choice_is_swept_on_every_machine():
    async def check(one):
        description = one.page.query_one(PlotView).description
        assert description.x.ticks == ("postal", "max_rate", "k_model")
        lines = {line.label: line.y for line in description.lines}
        for at, model in enumerate(description.x.ticks):
            expected = answer("jacobi2d", "lassen", "--set", f"{MODEL}={model}")["iteration_time"]
            assert_allclose(lines["Lassen"][at], expected, rtol=1e-14, atol=0)

    on_page(ComparePage, check, opened().sweep(MODEL, "postal, max_rate, k_model"), (200, 40))


def test_another_column_is_asked_and_drawn_for_every_machine():
    async def check(one):
        one.page.action_curve(1)
        await one.settle()
        assert one.state.view.y == "total_time"
        description = one.page.query_one(PlotView).description
        assert description.y.label == "total"
        lines = {line.label: line.y for line in description.lines}
        counts = description.lines[0].x
        expected = answer("jacobi2d", "lassen", "--set", f"{GPUS}={counts[-1]:g}")["total_time"]
        assert_allclose(lines["Lassen"][-1], expected, rtol=1e-14, atol=0)

    on_page(ComparePage, check, opened(), (200, 40))


def test_machines_are_asked_again_only_for_another_question():
    async def check(one):
        assert one.page.job(one.state) is None
        one.page.action_sort(1)
        await one.settle()
        assert one.page.job(one.state) is None
        state = one.state.with_session(one.state.session.edit(GPUS, "8"))
        before = one.screen
        one.page.show(state)
        await one.settle()
        assert one.screen == before
        assert one.page.job(state) is not None

    on_page(ComparePage, check, opened(), (200, 40))


@pytest.mark.parametrize(("name", "sizes"), [("minimd", SIZES[::2])])
def test_at_every_size_columns_are_whole(name, sizes):
    async def check(one):
        for size in sizes:
            await one.pilot.resize_terminal(*size)
            await one.settle()
            head = next(line for line in one.lines if "mach" in line and "machines" not in line)
            assert "…" not in head or size[0] < 20
            assert "base" in one.screen or size[0] < 44
        for size in sizes:
            await one.press("right", "right", "left", "down")
            for key in ("table", "mark", "against", "reverse"):
                getattr(one.page, f"action_{key}")()
                await one.settle()
            await one.pilot.resize_terminal(*size[::-1])
            await one.pilot.resize_terminal(*size)
            await one.settle()
            assert len(one.lines) == size[1]

    on_page(ComparePage, check, opened(name), sizes[0])


def test_left_and_right_bring_the_other_columns():
    async def check(one):
        assert "stencil" not in one.screen
        assert "← → other columns" in one.screen
        await one.press("right", "right", "right", "right", "right", "right", "right", "right", "right")
        text = one.screen
        assert "overhead" in text
        assert duration(answer("jacobi2d", "lassen")["terms"]["stencil"]) in text
        assert "iteration  " not in text
        assert "Lassen" in text
        await one.press(*["left"] * 9)
        assert "iteration  " in one.screen

    on_page(ComparePage, check, opened(), (80, 24))


def test_without_colours_letters_tell_the_curves(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def check(one):
        text = one.screen
        assert "a  Summit" in text
        assert "b  Bridges" in text
        assert "c  Lassen" in text
        assert "●╌ c Lassen" in text

    on_page(ComparePage, check, opened("jacobi2d_strong"), (200, 40))


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
