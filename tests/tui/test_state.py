"""Studies, commands and histories, without a terminal: what is asked, undone, written down and read again."""

import asyncio
import os
import time
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.driver import GPUS, MEMORY, MODEL, RANKS, after, jacobi2d_state
from tests.jobs import Slow, dying, refusing, sleepy
from whatif.core.scenario import Scenario
from whatif.core.session import NudgeSize, Session
from whatif.errors import UsageError, WhatifError
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.commands.explorer_commands import (
    JOURNAL_ONLY,
    Adopt,
    Also,
    Choose,
    Edit,
    Nudge,
    Pin,
    Revert,
    Show,
    SwapAxes,
    SweepParameter,
    parse_line,
)
from whatif.tui.commands.history import History, lines_to
from whatif.tui.commands.performing import perform, perform_afresh, queued
from whatif.tui.commands.seek_command import Seek
from whatif.tui.files.recovery import Recovery
from whatif.tui.files.scenario_file import ScenarioFile
from whatif.tui.jobs.worker import Worker, run_once
from whatif.tui.page_registry import screens
from whatif.tui.page_views import ExploreView
from whatif.tui.state import ExplorerState
from whatif.tui.variants.variant_commands import Delete, Fork, Go, Rename
from whatif.tui.variants.variant_set import scenario_key


def totals(state):
    return state.session.result.columns["total_time"]


PATHS = st.from_regex(r"[a-z_]+(\.[a-z_]+){1,4}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1).map(str.strip).filter(bool)
COMMANDS = st.one_of(
    st.builds(Edit, PATHS, TEXTS),
    st.builds(Nudge, PATHS, st.integers(-50, 50), st.sampled_from(NudgeSize)),
    st.builds(SweepParameter, PATHS, st.none() | TEXTS),
    st.builds(Also, PATHS, st.none() | TEXTS),
    st.builds(Revert, st.just("") | PATHS),
    st.builds(Show, st.sampled_from(["y", "why", "sort"]), TEXTS),
    st.builds(Adopt, st.from_regex(r"[a-z]+", fullmatch=True)),
    st.sampled_from([SwapAxes(), Pin(), Fork(), Fork("fat node"), Go("B"), Delete("C"), Rename("B", "slow net")]),
)


@given(COMMANDS)
def test_a_command_is_read_back_from_its_line(command):
    assert parse_line(command.line()) == command


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sett a.b = 1", "did you mean `set`"),
        ("set a.b", "expected `set PATH = VALUE`"),
        ("nudge a.b = one", "expected whole steps and one of fine, coarse, factor"),
        ("nudge a.b = 1 huge", "fine, coarse, factor"),
        ("!!", "unknown command"),
    ],
)
def test_a_wrong_line_says_what_is_expected(line, message):
    with pytest.raises(UsageError, match=message):
        parse_line(line)


@pytest.mark.parametrize("word", JOURNAL_ONLY)
def test_undo_redo_and_save_are_lines_too(word):
    assert parse_line(f" {word} ") == word


def test_queues_keep_only_what_counts():
    nudged = queued(queued((Nudge(GPUS, 1),), Nudge(GPUS, 1)), Nudge(GPUS, -3))
    assert nudged == (Nudge(GPUS, -1),)
    assert queued(nudged, Nudge(GPUS, 1, NudgeSize.FACTOR)) == (*nudged, Nudge(GPUS, 1, NudgeSize.FACTOR))
    assert queued((Edit(GPUS, "1"),), Edit(GPUS, "2")) == (Edit(GPUS, "2"),)
    assert queued((Nudge(GPUS, 1),), Edit(GPUS, "2")) == (Edit(GPUS, "2"),)
    assert queued((Edit(GPUS, "1"),), Edit(MEMORY, "2")) == (Edit(GPUS, "1"), Edit(MEMORY, "2"))
    assert queued((SweepParameter(GPUS),), SweepParameter(MEMORY)) == (SweepParameter(MEMORY),)
    assert queued((Edit(GPUS, "1"),), SweepParameter(MEMORY)) == (Edit(GPUS, "1"), SweepParameter(MEMORY))
    assert queued((Show("y", "a"),), Show("y", "b")) == (Show("y", "b"),)


def test_a_failed_change_keeps_those_around_it(state):
    outcome = perform(state, (Edit(GPUS, "8"), Edit(GPUS, "nonsense"), Edit(MEMORY, "1 TB/s")))
    assert outcome.state.session.scenario.overrides == {GPUS: "8", MEMORY: "1 TB/s"}
    assert "nonsense" in outcome.error
    assert [change for change, _ in outcome.done] == [Edit(GPUS, "8"), Edit(MEMORY, "1 TB/s")]


def test_the_value_of_the_file_is_no_edit(state):
    edited = after(state, Edit(GPUS, "8"), Edit(MODEL, "postal"))
    assert edited.unsaved() == {GPUS: "8", MODEL: "postal"}
    back = after(edited, Edit(GPUS, "6"), Edit(MODEL, "k_model"))
    assert back.unsaved() == {}
    assert back.session.parameter(GPUS).source == state.session.parameter(GPUS).source


def test_steps_of_three_sizes(state):
    def value(*changes):
        return after(state, *changes).session.parameter(GPUS).value, after(state, *changes).session.parameter(
            MEMORY
        ).value

    gpus, memory = 6.0, state.session.parameter(MEMORY).value
    assert value(Nudge(GPUS, 2)) == (gpus + 2, memory)
    assert value(Nudge(GPUS, 1, NudgeSize.COARSE)) == (gpus + 10, memory)
    assert value(Nudge(GPUS, -1, NudgeSize.FACTOR)) == (3, memory)
    assert value(Nudge(MEMORY, 1))[1] == pytest.approx(1.05 * memory, rel=1e-5)
    assert value(Nudge(MEMORY, 1, NudgeSize.COARSE))[1] == pytest.approx(1.25 * memory, rel=1e-5)
    assert value(Nudge(MEMORY, -2, NudgeSize.FACTOR))[1] == pytest.approx(memory / 4, rel=1e-5)


def test_a_second_parameter_is_swept_beside_the_first_and_let_go(state):
    two = after(state, SweepParameter(MEMORY, "200 GB/s, 400 GB/s, 800 GB/s"), Also(GPUS, "2, 4"))
    assert two.session.grid.shape == (3, 2)
    assert after(two, SwapAxes()).session.grid.shape == (2, 3)
    assert after(two, Also(GPUS)).session.grid.shape == (3,)
    assert after(two, Also(MODEL, "postal, k_model")).session.grid.parameters() == (MEMORY, MODEL)
    assert "sweep another parameter first" in perform(two, (Also(MEMORY),)).error
    by_hand = after(state, Edit(GPUS, "4"), SweepParameter(MEMORY, "800 GB/s, 900 GB/s")).session.result
    assert two.session.result.columns["iteration_time"][2, 1] == by_hand.columns["iteration_time"][0]


def test_another_platform_gives_up_the_edits_of_the_old_one(state):
    there = after(state, Edit(GPUS, "8"), Edit(RANKS, "512"), Adopt("lassen"))
    assert there.session.program.loaded.scenario.platform.name == "Lassen"
    assert there.unsaved() == {"platform": "lassen", RANKS: "512"}
    assert after(there, Revert()).unsaved() == {}
    assert "summit" in perform(state, (Adopt("sumit"),)).error


def test_another_platform_says_which_swept_parameter_it_lacks(state):
    swept = after(state, SweepParameter(GPUS, "1, 2, 4"))
    assert after(swept, Adopt("fugaku")).note == f"no longer swept: {GPUS}, which Fugaku does not have"
    assert after(swept, Adopt("lassen")).note == ""


def test_the_baseline_is_drawn_over_the_present_sweep(state):
    edited = after(state, Edit(MEMORY, "1.6 TB/s"), SweepParameter(RANKS, "64, 256, 1024"))
    plain = after(state, SweepParameter(RANKS, "64, 256, 1024"))
    assert_array_equal(edited.curves["A"].result.columns["total_time"], totals(plain))
    pinned = after(edited, Pin())
    assert not pinned.others()
    assert not pinned.changed
    assert after(pinned, Edit(GPUS, "8")).parameter_before(GPUS).value == 6


def test_wrong_view_fields_and_values_are_refused(state):
    assert "not one of" in perform(state, (Show("y_scale", "cubic"),)).error
    assert "did you mean" in perform(state, (Show("y_scal", "log"),)).error


CHANGES = st.one_of(
    st.builds(
        Nudge, st.sampled_from([GPUS, MEMORY, RANKS]), st.integers(-3, 3).filter(bool), st.sampled_from(NudgeSize)
    ),
    st.builds(Edit, st.just(GPUS), st.sampled_from(["4", "8", "nonsense"])),
    st.builds(Edit, st.just(MODEL), st.sampled_from(["postal", "max_rate", "loggp"])),
    st.builds(Seek, st.sampled_from([GPUS, MEMORY]), st.sampled_from(["<= 90 %", "total_time <= 1 ns", "nonsense"])),
    st.builds(SweepParameter, st.sampled_from([GPUS, MEMORY, RANKS, MODEL])),
    st.builds(Show, st.sampled_from(["screen"]), st.sampled_from([page.name for page in screens()])),
    st.builds(Show, st.sampled_from(["y"]), st.sampled_from(["total_time", "terms.halo"])),
    st.sampled_from([Pin(), SwapAxes(), Revert(), Adopt("lassen"), Adopt("nowhere")]),
    st.sampled_from(
        [Fork(), Fork("fat node"), Go("A"), Go("B"), Go("C"), Delete("B"), Delete("C"), Rename("B", "net")]
    ),
)


@settings(max_examples=12)
@given(st.lists(CHANGES, max_size=12))
def test_undo_leads_back_to_the_start_and_redo_to_the_end(changes):
    state = jacobi2d_state()
    history, now = History(), state
    for change in changes:
        outcome = perform(now, (change,))
        history.record(outcome)
        now = outcome.state
    end = now
    for walk, there in ((history.undo, state), (history.redo, end)):
        while history.past if walk == history.undo else history.future:
            outcome = perform(now, (walk(),))
            assert not outcome.error
            history.record(outcome)
            now = outcome.state
        same_screen = perform(there, (Show("screen", now.view.screen),)).state
        assert now.undo_state.same_as(same_screen.undo_state)
        assert_array_equal(totals(now), totals(there))


def test_many_steps_of_a_parameter_are_undone_at_once(state):
    history, now = History(), state
    for change in (Nudge(GPUS, 1), Nudge(GPUS, 1), Nudge(MEMORY, 1), Show("screen", "why"), Nudge(MEMORY, 1)):
        outcome = perform(now, (change,))
        history.record(outcome)
        now = outcome.state
    assert len(history.past) == 2
    assert len(history.lines) == 5
    with pytest.raises(UsageError, match="nothing to redo"):
        history.redo()


@settings(max_examples=10)
@given(st.lists(CHANGES, max_size=8))
def test_a_few_lines_lead_to_any_study(changes):
    state = jacobi2d_state()
    there = perform(state, tuple(changes)).state
    again = perform(state, tuple(parse_line(line) for line in lines_to(there)))
    assert not again.error
    assert again.state.unsaved() == there.unsaved()
    assert_array_equal(totals(again.state), totals(there))
    ours, theirs = (
        [(item.letter, item.name, scenario_key(item.scenario)) for item in state.listed()]
        for state in (again.state, there)
    )
    assert ours == theirs


def test_another_process_computes_the_same(state):
    changes = (Edit(GPUS, "8"), Nudge(MEMORY, 1), Edit(GPUS, "nonsense"))
    here, there = perform(state, changes), perform_afresh(state.undo_state, changes)
    assert there.error == here.error
    assert [change for change, _ in there.done] == [change for change, _ in here.done]
    assert_array_equal(totals(there.state), totals(here.state))
    refused = perform_afresh(state.undo_state, (Edit(GPUS, "nonsense"), Show("y", "total_time")))
    assert refused.state.session.grid.size == state.session.grid.size
    assert_array_equal(totals(refused.state), totals(state))


def test_a_helping_process_answers_refuses_dies_and_is_killed():
    async def main():
        worker = Worker()
        try:
            assert await worker.run(sleepy, 0.0) == 0.0
            with pytest.raises(UsageError, match="not today"):
                await worker.run(refusing)
            with pytest.raises(WhatifError, match="ended by the system"):
                await worker.run(dying)
            began = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(worker.run(sleepy, 60.0), 0.3)
            assert await worker.run(sleepy, 0.01) == 0.01
            assert time.monotonic() - began < 30
        finally:
            worker.stop()

    asyncio.run(main())


class Lingering(Thread):
    """Thread that ends a little after its last action, as on a busy machine."""

    def run(self):
        super().run()
        time.sleep(0.1)


def test_a_process_that_has_answered_is_taken_for_the_next_job(monkeypatch):
    monkeypatch.setattr("whatif.tui.jobs.worker.Thread", Lingering)
    numbers = {asyncio.run(run_once(os.getpid)) for _ in range(3)}
    assert len(numbers) == 1
    assert os.getpid() not in numbers


def test_a_superseded_result_is_never_shown(state):
    async def main():
        shown = []
        runner = CommandRunner(state, lambda error: shown.append(runner.state.session.parameter(GPUS).text()))
        try:
            runner.ask(Slow(GPUS, "10"))
            await asyncio.sleep(0.1)
            assert runner.busy
            runner.ask(Edit(GPUS, "11"))
            runner.ask(Nudge(GPUS, 1))
            await runner.idle()
            assert shown == ["12"]
            assert runner.history.lines == [f"set {GPUS} = 11", f"nudge {GPUS} = +1 fine"]
            runner.ask(Slow(GPUS, "20"))
            runner.ask(Edit(MEMORY, "1 TB/s"))
            runner.undo()
            await runner.idle()
            assert shown[1:] == ["20", "20", "20"]
            assert runner.state.unsaved() == {GPUS: "20"}
            runner.ask(Slow(GPUS, "30"))
            await asyncio.sleep(0.05)
            runner.stop()
            assert not runner.busy
            assert runner.state.unsaved() == {GPUS: "20"}
        finally:
            runner.close()

    asyncio.run(main())


def test_what_is_asked_while_busy_is_done_in_order(state):
    async def main():
        runner = CommandRunner(state, lambda error: None)
        try:
            runner.ask(Slow(GPUS, "10"))
            runner.undo()
            runner.ask(Edit(MEMORY, "1 TB/s"))
            await runner.idle()
            assert runner.state.unsaved() == {MEMORY: "1 TB/s"}
        finally:
            runner.close()

    asyncio.run(main())


def test_choices_count_from_what_is_asked_for_not_from_what_is_shown(state):
    def turn(key):
        return Choose(key, lambda view: view.next_of(key))

    async def main():
        runner = CommandRunner(state, lambda error: None)
        try:
            runner.ask(Slow(GPUS, "10"))
            for key in ("explore.second", "marker", "marker", "x_scale", "x_scale"):
                runner.ask(turn(key))
            assert runner.busy
            assert runner.state is state
            await runner.idle()
            view = runner.state.view
            assert (view.of(ExploreView).second, view.marker, view.x_scale) == ("heat", "ascii", "log")
            assert runner.history.lines[1:] == [
                "show explore.second = heat",
                "show marker = ascii",
                "show x_scale = log",
            ]
        finally:
            runner.close()

    asyncio.run(main())


def test_a_step_beyond_all_numbers_changes_nothing(state):
    outcome = perform(state, (Nudge(MEMORY, 100_000, NudgeSize.FACTOR), Nudge(GPUS, -100_000, NudgeSize.FACTOR)))
    assert not outcome.error
    assert outcome.state.session.parameter(MEMORY).value == state.session.parameter(MEMORY).value


def test_what_changes_nothing_is_nothing_to_undo(state):
    history, edited = History(), after(state, Edit(GPUS, "8"))
    history.record(perform(state, (Edit(GPUS, "8"),)))
    undone = perform(edited, (history.undo(),))
    history.record(undone)
    history.record(perform(undone.state, (Revert(MEMORY), Edit(GPUS, "6"))))
    assert len(history.future) == 1
    assert not history.past


def test_a_journal_is_replayed_line_by_line(state):
    async def main():
        saved = []
        runner = CommandRunner(state, lambda error: None)
        lines = ["# what if", "", f"set {GPUS} = 8", f"nudge {MEMORY} = +2 factor", "undo", "redo", "undo", "save"]
        try:
            await runner.replay(lines, lambda: saved.append(runner.state.unsaved()))
            assert saved == [{GPUS: "8"}]
            with pytest.raises(UsageError, match="line 2: `sett"):
                await runner.replay(["pin", "sett x = 1"], lambda: None)
            with pytest.raises(UsageError, match="line 1: `nowhere"):
                await runner.replay(["set nowhere.parameter = 1", "pin"], lambda: None)
        finally:
            runner.close()

    asyncio.run(main())


def test_small_steps_are_carried_out_at_once_and_slow_ones_beside(state, monkeypatch):
    runner = CommandRunner(state, lambda error: None)
    # On a busy machine any step may have taken long.
    monkeypatch.setattr("whatif.tui.commands.command_runner.QUICK_SECONDS", 3600.0)
    runner.ask(Nudge(MEMORY, 1))
    assert not runner.busy
    assert runner.state.unsaved().keys() == {MEMORY}
    monkeypatch.setattr("whatif.tui.commands.command_runner.QUICK_SECONDS", 0.0)
    ran = []
    monkeypatch.setattr(runner, "_compute", lambda changes: ran.append(changes) or asyncio.sleep(0))

    async def main():
        runner.ask(Nudge(MEMORY, 1))

    asyncio.run(main())
    assert ran == [(Nudge(MEMORY, 1),)]


def test_unsaved_edits_outlive_the_program(tmp_path):
    scenario, folder = tmp_path / "a.toml", tmp_path / "state"
    first = Recovery(scenario, folder)
    first.keep(["set a.b = 1", "set c.d = 2"])
    first.keep(["set a.b = 3"])
    # A program that still runs holds its own edits.
    assert Recovery(scenario, folder).lost() is None
    first._file.close()
    assert Recovery(scenario, folder).lost().lines == ("set a.b = 3",)
    assert Recovery(tmp_path / "b.toml", folder).lost() is None
    second = Recovery(scenario, folder)
    second.keep(["set a.b = 4"])
    second.keep([])
    assert Recovery(scenario, folder).lost().lines == ("set a.b = 3",)


def test_the_question_about_lost_edits_shows_those_that_are_not_saved(tmp_path):
    scenario, folder = tmp_path / "a.toml", tmp_path / "state"
    recovery = Recovery(scenario, folder)
    recovery.keep(["set a.b = 1", "pin", "revert", "set c.d = 2", "sweep a.b = 1, 2"])
    recovery.close()
    lost = Recovery(scenario, folder).lost()
    assert lost.lines[0] == "set a.b = 1"
    assert lost.question.splitlines()[2:] == ["set c.d = 2", "sweep a.b = 1, 2"]


def test_a_disk_that_cannot_be_written_stops_nobody(tmp_path):
    (tmp_path / "file").write_text("")
    Recovery(tmp_path / "a.toml", tmp_path / "file" / "state").keep(["set a.b = 1"])


def test_what_changed_on_disk_is_told_parameter_by_parameter(tmp_path):
    path = tmp_path / "mine.toml"
    text = 'extends = "jacobi2d"\n[application]\nrank_count = 512\n'
    path.write_text(text)
    state = ExplorerState.start(Session.start(Scenario.open(path)))
    file = ScenarioFile(state.session.scenario)
    assert not file.touched()
    edited = after(state, Edit(RANKS, "256"))
    path.write_text(text.replace("512", "1024") + "iteration_count = 7\n")
    assert file.touched()
    assert not file.touched()
    found = file.reread(edited)
    assert found.changes == (f"{RANKS}: 512 → 1024", "application.iteration_count: 100 → 7")
    assert found.conflicts == {RANKS: f"{RANKS}: 512 → 1024"}
    assert edited.over(found.scenario).session.parameter(RANKS).value == 256
    path.write_text("= nonsense")
    with pytest.raises(WhatifError, match=r"mine\.toml:1:1"):
        file.reread(edited)
    path.unlink()
    assert file.touched()
    assert file.gone


def test_a_quick_number_is_set_without_another_process_and_a_choice_is_not(monkeypatch):
    state = ExplorerState.start(Session.start(Scenario.open("jacobi2d")))

    async def main():
        runner = CommandRunner(state, lambda error: None)
        monkeypatch.setattr(runner.worker, "run", None)
        try:
            runner.ask(Edit(MEMORY, "800 GB/s"))
            assert not runner.busy
            assert runner.state.session.program.terms is state.session.program.terms
            assert not runner._is_quick(Edit(MODEL, "max_rate"))
            assert not runner._is_quick(Edit(MEMORY, "= 2 * 400 GB/s"))
            assert not runner._is_quick(Edit(MEMORY, "800 GB"))
        finally:
            runner.close()

    asyncio.run(main())
