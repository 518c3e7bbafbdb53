"""The page of decisions: its tables are those of the verbs it names, its bars as long as the numbers say."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from tests.driver import GPUS, MEMORY, RANKS, drive, predicted
from tests.page_harness import SIZES, few_machines, on_page
from whatif.cli.main import program
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import InfeasiblePointError, UsageError
from whatif.files.run_machine import machine_text
from whatif.plotting.bars import LESS, MORE, BarRow
from whatif.tui.commands.explorer_commands import Adopt, Edit, EditAll, Show, parse_line
from whatif.tui.commands.performing import perform
from whatif.tui.commands.seek_command import Seek
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.decisions.decision_job import decide
from whatif.tui.files.export import plot_of
from whatif.tui.pages.decide import DecidePage
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.chart_bars import ChartBars, axis_of
from whatif.tui.widgets.data_table import TableView
from whatif.units import SECOND, format_quantity

COUNT = "application.iteration_count"
FASTER = Edit(MEMORY, "1.6 TB/s")
TWICE = Edit("application.grid.cells.x", "32768")


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    few_machines(monkeypatch)


def study_of(*changes, scenario="jacobi2d"):
    state = ExplorerState.start(Session.start(Scenario.open(scenario)))
    for change in changes:
        state = change.apply(state)
    return state


def answer(name, *changes, scenario="jacobi2d", result="iteration_time", seconds=0.0, **view) -> Decision:
    state = study_of(*changes, scenario=scenario)
    front_over, patient = view.pop("front_over", ""), view.pop("patient", False)
    inputs = state.session.inputs, state.baseline.inputs, state.changed
    looks = replace(state.view, **view)
    return decide(DecisionRequest(*inputs, name, front_over, looks, result, seconds, patient=patient))


def printed(command):
    """The rows that a command line prints."""
    done = CliRunner().invoke(program, [*shlex.split(command)[1:], "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["rows"]


@pytest.mark.parametrize(
    ("name", "looks"),
    [
        ("bottlenecks", {"result": "total_energy"}),
        ("why", {"against": "lassen"}),
        ("uncertain", {"result": "total_energy", "samples": 256, "spread": "datasheet"}),
        ("machines", {"result": "total_energy"}),
        ("scaling", {}),
        ("layout", {"scenario": "jacobi2d_strong"}),
        ("pareto", {}),
        ("pareto", {"front_over": MEMORY}),
        ("budget", {}),
    ],
)
def test_the_command_that_is_copied_prints_the_table_in_sight(name, looks):
    found = answer(name, **looks)
    there = printed(found.command)
    here = [dict(zip(found.table.columns, row, strict=True)) for row in found.table.rows()]
    if name == "budget":
        # On the page those that state nothing are left out.
        there = [row for row in there if "not stated" not in (row.get("reason") or "")]
    assert len(here) == len(there) > 0
    common = here[0].keys() & there[0].keys()
    assert len(common) >= len(there[0]) - 2
    for mine, theirs in zip(here, there, strict=True):
        for key in common:
            if isinstance(theirs[key], float):
                assert_allclose(mine[key], theirs[key], rtol=1e-9, atol=0)
            else:
                assert mine[key] == (theirs[key] and theirs[key].removeprefix("jacobi2d: "))


def test_a_front_of_points_that_come_to_the_same_says_so():
    # Beyond some bandwidth the arithmetic of the kernels is all that is left.
    faster = answer("pareto", Edit(MEMORY, "800 TB/s"), front_over=MEMORY)
    assert "All of them have the same results: there is no trade-off." in faster.sentences
    assert not any("have the same results" in sentence for sentence in answer("pareto").sentences)


def test_the_waterfall_goes_from_the_pinned_time_to_the_present_one():
    found = answer("why", FASTER, TWICE)
    first, *steps, last = found.picture.rows
    now = predicted(f"{FASTER.path}={FASTER.text}", f"{TWICE.path}={TWICE.text}")["iteration_time"]
    assert_allclose([first.end, last.end], [predicted()["iteration_time"], now], rtol=1e-12, atol=0)
    assert {step.label: step.style for step in steps} == {MEMORY: LESS, TWICE.path: MORE}
    assert_allclose([steps[0].start, steps[1].start, steps[1].end], [first.end, steps[0].end, now], rtol=1e-12, atol=0)
    assert found.command == ""


def test_machines_are_ranked_by_their_speedup_over_the_values_as_they_stand():
    found = answer("machines", Edit(GPUS, "3"))
    now = predicted(f"{GPUS}=3")["iteration_time"]
    summit = predicted()["iteration_time"]
    merits = dict(zip(found.table.columns["platform"].values, found.table.columns["merit"].values, strict=True))
    assert_allclose(merits["summit"], now / summit, rtol=1e-12, atol=0)
    assert found.table.columns["platform"].values[-1] == "bridges"
    assert np.isnan(merits["bridges"])
    assert "the ranks need more nodes" in found.picture.rows[-1].text
    titles = "platform", "merit", "iteration_time", "speedup", "total_energy", "infeasible"
    assert tuple(found.table.columns) == titles
    changes = dict(zip(found.table.columns["platform"].values, found.changes, strict=True))
    assert changes == {"lassen": Adopt("lassen"), "summit": None, "bridges": None}


@pytest.mark.parametrize("name", ["machines", "budget"])
def test_edits_of_the_present_machine_are_laid_on_none_of_those_in_a_decision(name):
    found, unedited = answer(name, FASTER), answer(name)
    assert "--set" not in found.command
    assert any("Edits of the present machine count in" in sentence for sentence in found.sentences)
    labels = [sorted(row.label for row in its.picture.rows) for its in (found, unedited)]
    assert ("summit" in labels[0], "summit (now)" in labels[1]) == (True, True)
    if name == "budget":
        assert_allclose(*(its.table.columns["jobs per day"].values for its in (found, unedited)), rtol=1e-12, atol=0)


def test_samples_say_how_likely_a_machine_is_the_best():
    found = answer("machines", samples=64, spread="assumed")
    best = dict(zip(found.table.columns["platform"].values, found.table.columns["best"].values, strict=True))
    assert_allclose(best["lassen"] + best["summit"], 1.0, rtol=1e-12, atol=0)
    assert f"lassen is the best with a probability of {best['lassen']:.0%}." in found.sentences
    alike = answer("machines", samples=64)
    assert any("with a probability of" in sentence for sentence in alike.sentences)


def test_only_the_plot_in_sight_is_exported_and_only_rows_in_sight_are_adopted():
    async def check(one):
        for name, export, adopt in (("scaling", 1, 0), ("layout", 0, 1), ("pareto", 1, 0), ("bottlenecks", 0, 0)):
            await one.change(Show("decide.decision", name))
            assert (plot_of(one.page) is not None, one.page.offers("take_row")) == (export, adopt)
        await one.change(Show("decide.decision", "pareto"), Show("picture", "table"))
        assert one.page.offers("take_row")

    on_page(DecidePage, check, scenario="jacobi2d_strong")


@pytest.mark.parametrize("name", ["layout", "pareto"])
def test_what_is_taken_gives_the_time_that_was_told(name):
    found = answer(name, scenario="jacobi2d_strong")
    column = {"layout": "iteration_time", "pareto": "total_time"}[name]
    row, change = next((row, change) for row, change in enumerate(found.changes) if change is not None)
    state = study_of(change, scenario="jacobi2d_strong")
    assert_allclose(state.session.point.columns[column], found.table.columns[column].values[row], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("name", "looks", "words"),
    [
        ("why", {}, "press x for another platform"),
        ("uncertain", {}, "press B to sample"),
        ("uncertain", {"samples": 256, "result": "overhead_time"}, "press % to vary assumed values"),
        ("bottlenecks", {"result": "total_cost"}, "does not state platform.price.node_price"),
        ("budget", {"result": "total_cost"}, "platform.price.node_price"),
        ("pareto", {"front_over": "platform.no.such"}, "There is no answer"),
    ],
)
def test_where_there_is_no_answer_words_say_how_to_get_one(name, looks, words):
    found = answer(name, **looks)
    assert found.table is found.picture is None
    assert any(words in sentence for sentence in found.sentences)


TRACE = "num_ranks 2\n\nrank 0 {\nl1: send 8b to 1 tag 0\n}\n\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"


def test_what_would_take_minutes_where_points_are_played_is_not_started(tmp_path, monkeypatch):
    (tmp_path / "two.goal").write_text(TRACE)
    path = tmp_path / "two.toml"
    path.write_text(
        'platform = "summit"\n[application]\nname = "two"\nrank_count = 2\niteration_count = 1\n'
        "[application.phases.trace]\n"
        'kind = "trace"\nfile = "two.goal"\nmodel = "max_rate"\n'
    )
    # What the first point took has compiling in it: another one is timed before it is believed.
    assert answer("bottlenecks", scenario=path, seconds=100.0).table is not None
    monkeypatch.setattr("whatif.tui.decisions.decision_job._PATIENCE", 0.0)
    found = answer("bottlenecks", scenario=path, seconds=100.0)
    assert found.table is None
    assert "Every point of this scenario is simulated" in found.sentences[0]
    assert "`whatif sensitivity --show ladder` does the same" in found.sentences[1]
    assert found.seconds > 0
    assert answer("bottlenecks", scenario=path, seconds=100.0, patient=True).table is not None


def test_in_the_explorer_answers_are_copied_taken_and_taken_back_and_targets_typed():
    async def check(driver):
        await driver.press("6")
        assert driver.main_screen.page.NAME == "decide"
        assert "present" in driver.screen_text()
        assert not {"adopt", "other"} & set(driver.screen_text().splitlines()[-1].split())
        await driver.press("c")
        copied = driver.app.file_sync.recovery.folder.parent / "copied.txt"
        assert copied.read_text() == "whatif sensitivity jacobi2d --result iteration_time --show ladder\n"
        driver.main_screen.action_decide("layout")
        await driver.calm()
        assert "adopt" in driver.screen_text().splitlines()[-1].split()
        was = driver.session.point.columns["iteration_time"]
        await driver.press("g", "enter")
        assert driver.session.point.columns["iteration_time"] < was
        assert driver.state.unsaved()["application.grid.decomposition"] == "given"
        await driver.press("u")
        assert not driver.state.unsaved()
        assert driver.app.runner.history.lines[-1] == "undo"
        await driver.press("1")
        driver.tree.select(MEMORY)
        await driver.press("T")
        await driver.type("<= 1 ns")
        assert "no value of" in driver.status.full
        await driver.type("<= 5 ms")
        assert driver.app.runner.history.lines[-1] == f"seek {MEMORY} = <= 5 ms"
        assert driver.session.point.columns["iteration_time"] <= 5e-3
        await driver.press("u")
        assert not driver.state.unsaved()

    drive(check)


def test_every_question_fills_every_size():
    sizes = SIZES[1:9]

    async def check(page):
        for size in sizes:
            await page.resize(size)
            await page.change(Show("decide.decision", page.app.state.view.next_of("decide.decision")))
            assert page.fills(size)

    on_page(DecidePage, check, size=sizes[0], changes=(FASTER,))


def test_bars_begin_and_end_where_the_axis_says():
    rows = (BarRow("one", 0.0, 10.0, "faint"), BarRow("two", 10.0, 2.5, LESS), BarRow("none", np.nan, np.nan, "faint"))
    assert axis_of(rows) == (0.0, 10.0)
    bars = ChartBars()
    bars._range, bars._rows = axis_of(rows), rows
    assert bars._bar(rows[0], 8) == ("", "████████")
    assert bars._bar(rows[1], 8) == ("  ", "██████")
    assert bars._bar(BarRow("short", 4.0, 4.01, MORE), 8) == ("   ", "▏")
    assert bars._bar(BarRow("halves", 0.625, 1.875, MORE), 8) == ("", "▐▌")


def test_steps_that_are_far_from_nothing_are_drawn_without_what_is_before_them():
    rows = (BarRow("before", 0.0, 10.0, "faint"), BarRow("step", 10.0, 9.0, LESS), BarRow("now", 0.0, 9.0, "faint"))
    low, high = axis_of(rows)
    assert high == 10.0
    assert 8.5 < low < 9.0


def test_the_page_says_where_bars_begin_and_turns_to_the_table():
    async def check(page):
        await page.change(Show("decide.decision", "why"))
        assert "bars begin at" in page.text
        assert page.app.focused is page.app.query_one(ChartBars)
        assert "11.84 ms · before" not in page.text
        await page.resize((30, 20))
        assert "11.84 ms · before" in page.text
        await page.resize((140, 42))
        await page.change(Show("picture", "table"))
        assert "bars begin at" not in page.text
        assert page.app.focused is page.app.query_one(TableView)
        assert MEMORY in page.line("GB/s")

    on_page(DecidePage, check, changes=(Edit(MEMORY, "800 GB/s"),))


def test_an_answer_is_asked_for_once_and_not_again_for_another_picture():
    async def check(page):
        assert page.page.job(page.app.state) is None
        await page.change(Show("picture", "table"), work=False)
        assert page.page.job(page.app.state) is None
        await page.change(FASTER, work=False)
        job = page.page.job(page.app.state)
        await page.change(Show("picture", "plot"), work=False)
        assert page.page.job(page.app.state) is job is not None
        assert page.page.command == ""

    on_page(DecidePage, check)


def test_x_compares_with_one_machine_after_the_other_and_a_click_asks_another_question():
    async def check(page):
        for name in ("Bridges", "Lassen"):
            await page.act("other")
            assert page.app.state.view.against == name.lower()
        assert "from Summit to Lassen" in page.text
        await page.pilot.click(offset=(page.lines[0].index("scaling") + 1, 0))
        await page.settle()
        assert "parallel efficiency" in page.text

    on_page(DecidePage, check, changes=(Show("decide.decision", "why"),))


@pytest.mark.parametrize(
    ("path", "target", "bound"),
    [(MEMORY, "iteration_time <= 5 ms", 5e-3), (MEMORY, "<= 80 %", None), (COUNT, "total_time <= 12.3 %", None)],
)
def test_seeking_sets_a_parameter_to_a_value_that_meets_the_target(path, target, bound):
    state = study_of()
    change = parse_line(f"seek {path} = {target}")
    assert change == Seek(path, target)
    assert change.line() == f"seek {path} = {target}"
    after = change.apply(state)
    text = after.session.scenario.overrides[path]
    row = predicted(f"{path}={text}")
    name = "total_time" if path == COUNT else "iteration_time"
    before, now = predicted()[name], row[name]
    bound = bound or float(target.split()[-2]) / 100 * before
    assert now <= bound
    assert len(text.split()[0]) <= 10
    # 12 of 100 iterations, and for numbers that need not be whole all but the last digits.
    assert text == "12" if path == COUNT else now > 0.99999 * bound


def test_a_target_that_nothing_meets_says_how_close_it_comes():
    best = predicted(f"{MEMORY}=779.411 TB/s")["iteration_time"]
    with pytest.raises(InfeasiblePointError, match=f"at best it is {best * 1e3:.4g}.* ms.*longest phases: pack"):
        Seek(MEMORY, "<= 1 ns").apply(study_of())
    with pytest.raises(UsageError, match="no such parameter"):
        Seek("platform.node.gpu.dram", "<= 1 s").apply(study_of())
    with pytest.raises(UsageError, match="only an independent number"):
        Seek("application.grid.decomposition", "<= 1 ms").apply(study_of())


def test_target_that_is_met_already_is_good_news_and_changes_nothing():
    state = study_of()
    after = Seek(MEMORY, "<= 1 s").apply(state)
    present = format_quantity(predicted()["iteration_time"], SECOND)
    assert after.note == f"iteration_time <= 1 s is already met: iteration_time = {present}"
    assert after.session is state.session
    outcome = perform(state, (Seek(MEMORY, "<= 1 s"),))
    assert outcome.error == ""
    assert perform(outcome.state, (Show("y", "total_time"),)).state.note == ""


def test_sought_value_is_said_in_words():
    bound = format_quantity(0.9 * predicted()["iteration_time"], SECOND)
    after = Seek(MEMORY, "<= 90 %").apply(study_of())
    value = after.session.parameter(MEMORY).text()
    words = f"iteration_time <= {bound} is met by dram_bandwidth = {value}: iteration_time = {bound}"
    assert after.note == words

    async def check(driver):
        driver.app.runner.ask(Seek(MEMORY, "<= 80 %"))
        await driver.calm()
        assert driver.status.full.startswith("iteration_time <= ")
        assert " is met by dram_bandwidth = " in driver.status.full
        assert "✓" in driver.screen_text()
        await driver.press("u")
        assert "is met" not in driver.status.full

    drive(check)


def test_a_front_over_the_ranks_of_a_weak_scaling_keeps_the_whole_grid():
    change = answer("pareto").changes[0]
    assert isinstance(change, EditAll)
    cells = [
        float(study_of(*changes).session.parameter("application.grid.cells.x").value) for changes in ((), (change,))
    ]
    # 1536 ranks are 48 along x: a weak scaling states the cells of one of them.
    assert cells[1] == 48 * cells[0]
    assert dict(change.texts)[RANKS] == str(2**12 * 6)


def test_a_machine_without_price_and_power_has_nothing_to_spend(tmp_path):
    (tmp_path / "bare.toml").write_text(machine_text("runs.csv"))
    phases = '[application.phases.pause]\nkind = "overhead"\noverhead_time = "2 ms"\n'
    head = 'platform = "bare"\n[application]\nname = "nap"\nrank_count = 1\nranks_per_node = 1\niteration_count = 1\n'
    (tmp_path / "nap.toml").write_text(head + phases)
    found = answer("budget", scenario=str(tmp_path / "nap.toml"))
    expected = r"Nothing to spend: neither platform\.price\.\w+ nor platform\.node\.host\.power is stated here\."
    assert re.fullmatch(expected, found.sentences[0])
