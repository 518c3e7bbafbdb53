"""Jobs in the background: started, followed, stopped and listed; their answers stay with the question."""

import asyncio
import pickle
import signal
from dataclasses import replace
from typing import ClassVar

import pytest

from tests.driver import GPUS, drive
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError
from whatif.tui.commands.explorer_commands import Edit, Show
from whatif.tui.commands.performing import perform
from whatif.tui.commands.seek_command import Seek
from whatif.tui.decisions.answers import Decision
from whatif.tui.decisions.background_decision import of_earlier_values
from whatif.tui.dialogs.job_list import JobsDialog
from whatif.tui.dialogs.windows import ChoicePrompt
from whatif.tui.events import BackgroundRequested, FileRequested
from whatif.tui.jobs.background import MOST_JOBS, BackgroundJob, BackgroundJobs, JobStage, counting
from whatif.tui.jobs.background_seek import background_seek, sought_edit
from whatif.tui.state import ExplorerState
from whatif.tui.terminal.signals import on_end
from whatif.tui.widgets.data_table import TableView

SIMULATED = Edit("application.communication", "simulated")


class FakeWorker:
    """A helping process that does what a test says: reports, answers, fails, and notes that it was stopped."""

    made: ClassVar[list] = []

    def __init__(self):
        self.job = self.report = self.future = None
        self.stopped = self.closed = False
        FakeWorker.made.append(self)

    async def run(self, function, *arguments, report=None):
        self.job, self.report = (function, *arguments), report
        self.future = asyncio.get_running_loop().create_future()
        return await self.future

    def stop(self):
        self.stopped = True

    def close(self):
        self.closed = True


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(FakeWorker, "made", [])
    return FakeWorker.made


def job(title="ladder", key=None, seconds=120.0):
    return BackgroundJob(title, Scenario.open("jacobi2d"), print, (), key or (title,), seconds)


def with_jobs(check):
    async def main():
        seen = []
        jobs = BackgroundJobs(lambda item: seen.append((item.title, item.words)), FakeWorker)
        await check(jobs, seen)
        jobs.close()

    asyncio.run(main())


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_job_reports_ends_and_keeps_its_answer(workers):
    async def check(jobs, seen):
        assert "is computed in the background" in jobs.start(job())
        await settle()
        (worker,) = workers
        worker.report("7 simulations")
        assert jobs.line == "in the background: ladder, running, 7 simulations, about 2 min"
        assert jobs.answer(("ladder",)) is None
        worker.future.set_result("found")
        await settle()
        assert jobs.items[0].stage is JobStage.DONE
        assert jobs.answer(("ladder",)) == "found"
        assert jobs.answer(("other",)) is None
        assert jobs.line == ""
        assert worker.closed
        assert [words for _, words in seen] == [
            "running, about 2 min",
            "running, 7 simulations, about 2 min",
            "done",
        ]

    with_jobs(check)


def test_jobs_run_one_after_another_in_the_order_they_were_asked_for(workers):
    async def check(jobs, seen):
        for title in ("first", "second", "third"):
            jobs.start(job(title))
        assert "already" in jobs.start(job("third"))
        await settle()
        assert [item.stage.value for item in jobs.items] == ["waiting", "waiting", "running"]
        assert "(+2)" in jobs.line
        workers[0].future.set_exception(UsageError("not today"))
        await settle()
        assert (jobs.items[2].stage, jobs.items[2].words) == (JobStage.FAILED, "not today")
        assert [item.title for item in jobs.items if item.stage is JobStage.RUNNING] == ["second"]
        assert len(workers) == 2

    with_jobs(check)


def test_a_stopped_job_ends_its_process_and_the_next_one_begins(workers):
    async def check(jobs, seen):
        jobs.start(job("first"))
        jobs.start(job("second"))
        jobs.start(job("third"))
        await settle()
        third, second, first = jobs.items
        jobs.stop(second)
        jobs.stop(first)
        await settle()
        assert workers[0].stopped
        assert [item.stage for item in (first, second, third)] == [
            JobStage.STOPPED,
            JobStage.STOPPED,
            JobStage.RUNNING,
        ]
        jobs.stop(first)
        assert first not in jobs.items
        jobs.close()
        assert workers[1].stopped

    with_jobs(check)


def test_the_list_is_bounded(workers):
    async def check(jobs, seen):
        jobs.start(job("old"))
        await settle()
        workers[0].future.set_result(1)
        await settle()
        for number in range(MOST_JOBS):
            jobs.start(job(f"job {number}"))
        assert len(jobs.items) == MOST_JOBS
        assert all(item.title != "old" for item in jobs.items)
        assert "stop one of them first" in jobs.start(job("one too many"))

    with_jobs(check)


def test_simulations_are_counted_for_the_person_who_waits():
    state = perform(ExplorerState.start(Session.start(Scenario.open("jacobi2d"))), (SIMULATED,)).state
    told = []
    found = counting(Session.of, (state.session.inputs,), told.append)
    assert told[0] == "1 simulation"
    assert found.result.columns["iteration_time"].size == state.session.grid.size


def test_a_seek_of_a_simulated_scenario_finds_the_edit_that_meets_the_target():
    state = perform(ExplorerState.start(Session.start(Scenario.open("jacobi2d"))), (SIMULATED,)).state
    seek = Seek("platform.node.gpu.dram_bandwidth", "iteration_time <= 11 ms")
    assert "every point is simulated" in perform(state, (seek,)).error
    asked = background_seek(state, seek)
    function, arguments = pickle.loads(pickle.dumps((asked.function, asked.arguments)))  # noqa: S301 - as to a process
    assert function is sought_edit
    found = perform(state, (function(*arguments),)).state
    assert float(found.session.point.columns["iteration_time"]) <= 11e-3
    assert float(state.session.point.columns["iteration_time"]) > 11e-3


def test_an_answer_of_earlier_values_says_so_and_proposes_nothing():
    earlier = Decision("ladder", ("half",), changes=(Edit(GPUS, "8"),), command="whatif sensitivity")
    shown = of_earlier_values(Decision("", (), seconds=90.0), earlier)
    assert shown.title == "of earlier values: ladder"
    assert shown.sentences[1:] == ("half",)
    assert (shown.changes, shown.command, shown.seconds) == ((), "", 90.0)


def test_a_refused_question_is_answered_in_the_background_on_any_page(workers):
    async def check(driver):
        screen = driver.main_screen
        screen.jobs._new_worker = FakeWorker
        # The scenario itself is quick: what its job says of a slow one is handed to the page.
        refused = Decision("title", ("It takes about 2 min.",), seconds=120.0)
        driver.app.runner.ask(Show("screen", "decide"))
        await driver.until(lambda: screen.page.NAME == "decide")
        await driver.calm()
        screen.page.take(refused)
        assert screen.page.offers("start")
        await driver.press("&")
        (worker,) = workers
        request = worker.job[2][0]
        assert request.patient
        assert request.decision == "bottlenecks"
        worker.report("3 simulations")
        words = "bottlenecks of iteration_time, running, 3 simulations, about 2 min"
        await driver.until(lambda: words in driver.screen_text())
        driver.app.runner.ask(Show("screen", "explore"))
        await driver.until(lambda: screen.page.NAME == "explore")
        worker.future.set_result(Decision("the ladder", ("All of it is memory.",)))
        await driver.until(lambda: screen.jobs.items[0].stage is JobStage.DONE)
        driver.app.runner.ask(Show("screen", "decide"))
        await driver.until(lambda: "All of it is memory." in driver.screen_text())
        assert not screen.page.offers("start")
        await driver.edit(GPUS, "8")
        screen.page.take(screen.page.answer_to_show(replace(refused), screen.jobs))
        await driver.until(lambda: "of earlier values: the ladder" in driver.screen_text())
        await driver.pilot.press("L")
        await driver.until(lambda: isinstance(driver.app.screen, JobsDialog))
        words = "earlier", "done", "asked for the values of the file"
        await driver.until(lambda: all(word in driver.screen_text() for word in words))
        await driver.pilot.press("x", "escape")
        await driver.until(lambda: driver.app.screen is screen)
        assert screen.jobs.items == []

    drive(check, size=(160, 40))


def test_a_target_of_simulated_points_is_sought_in_the_background_and_taken_from_the_list(workers):
    async def check(driver):
        driver.main_screen.jobs._new_worker = FakeWorker
        await driver.edit(SIMULATED.path, SIMULATED.text)
        driver.tree.select(GPUS)
        await driver.press("T")
        await driver.type("iteration_time <= 5 ms")
        assert not driver.prompt.display
        (worker,) = workers
        assert worker.job[1] is sought_edit
        await driver.pilot.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        assert "Quitting stops these jobs:" in driver.screen_text()
        assert "seek gpu_count: iteration_time <= 5 ms, running" in driver.screen_text()
        await driver.pilot.press("x")
        await driver.until(lambda: "Not saved; s asks for the name of your copy:" in driver.screen_text())
        assert "Quitting stops" not in driver.screen_text()
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        assert worker.job
        worker.future.set_result(Edit(GPUS, "9"))
        await driver.until(lambda: driver.main_screen.jobs.items[0].stage is JobStage.DONE)
        await driver.pilot.press("L")
        await driver.until(lambda: isinstance(driver.app.screen, JobsDialog))
        assert driver.app.screen.query_one(TableView).row_count == 1
        await driver.until(lambda: "done seek gpu_count" in " ".join(driver.screen_text().split()))
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.parameter(GPUS).text() == "9")

    drive(check, size=(80, 24))


def test_a_job_goes_on_where_another_scenario_is_opened_and_its_answer_leads_back(workers, tmp_path):
    async def check(driver):
        jobs = driver.app.jobs
        jobs._new_worker = FakeWorker
        other = Scenario.open("minife")
        asked = BackgroundJob("ladder of minife", other, print, (), ("ladder",), opens=(Show("screen", "decide"),))
        driver.main_screen.post_message(BackgroundRequested(asked))
        await driver.until(lambda: workers)
        first = driver.main_screen
        driver.app.post_message(FileRequested("minimd"))
        await driver.until(lambda: driver.main_screen is not first and driver.main_screen.is_attached)
        assert "ladder of minife, running" in driver.screen_text()
        workers[0].future.set_result("found")
        await driver.until(lambda: asked.stage is JobStage.DONE)
        await driver.pilot.press("L")
        await driver.until(lambda: isinstance(driver.app.screen, JobsDialog))
        assert "minife" in driver.screen_text()
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.scenario.document.name == other.document.name)
        await driver.until(lambda: driver.main_screen.page.NAME == "decide")

    drive(check, recovery_folder=tmp_path)


def test_the_status_line_counts_the_lines_of_a_replay():
    told = []

    async def check(driver):
        screen = driver.main_screen
        tell = screen.tell_activity
        screen.tell_activity = lambda words: (told.append(words), tell(words))
        assert await driver.app._repeat((f"set {GPUS} = 8", "pin"))
        assert told == ["replaying line 1 of 2", "replaying line 2 of 2", ""]
        tell("replaying line 1 of 2")
        await driver.pilot.pause()
        assert "replaying line 1 of 2" in driver.screen_text()

    drive(check)


def test_a_signal_that_is_ignored_stays_so():
    async def handled():
        on_end(lambda number: None)
        return [signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGHUP, signal.SIGTERM)]

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert asyncio.run(handled()) == [True, False]
    finally:
        signal.signal(signal.SIGHUP, before)
