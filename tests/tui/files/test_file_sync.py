"""Edits and files: what is saved, reloaded, found again, copied and replayed, as a person at the explorer sees it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
import tomli
from click.testing import CliRunner

from tests.driver import GPUS, MEMORY, MODEL, RANKS, drive, predicted
from whatif.cli.main import program
from whatif.cli.open import read_journal
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.tui.commands.explorer_commands import Edit
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import ChoicePrompt, TextDialog, TextPrompt
from whatif.tui.events import FileRequested
from whatif.tui.labels import duration
from whatif.tui.widgets.data_table import ColumnsView

TEXT = """# How fast is my stencil?

extends = "jacobi2d"        # the shipped one

[application]
rank_count = 512            # half a rack
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    return path


def window(driver, kind):
    return lambda: isinstance(driver.app.screen, kind)


def test_save_writes_the_edits_and_nothing_else(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.edit(GPUS, "8")
        assert "2 values edited, not saved" in driver.status.full
        await driver.press("w")
        assert driver.state.unsaved() == {}
        assert "nothing edited" in driver.status.full
        assert duration(predicted(f"{RANKS}=256", f"{GPUS}=8")["iteration_time"]) in driver.tile("iteration")
        # What was opened is still what is compared with.
        assert "was" in driver.tile("iteration")

    drive(check, scenario=mine)
    text = mine.read_text()
    assert "# How fast is my stencil?" in text
    assert "rank_count = 256            # half a rack" in text
    assert tomli.loads(text)["platform"] == {"node": {"gpu_count": 8}}


def test_undo_goes_back_beyond_a_save(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.press("w", "u")
        assert driver.state.unsaved() == {RANKS: "512"}
        assert driver.session.parameter(RANKS).value == 512
        await driver.press("w")
        assert mine.read_text() == TEXT
        await driver.press("U")
        assert driver.session.parameter(RANKS).value == 256

    drive(check, scenario=mine)


def test_a_change_on_disk_is_taken_in_and_told(mine):
    async def check(driver):
        await driver.edit(GPUS, "8")
        mine.write_text(TEXT.replace("512", "1024"))
        await driver.until(lambda: driver.session.parameter(RANKS).value == 1024)
        assert driver.session.parameter(GPUS).value == 8
        assert any("512 → 1024" in note.message for note in driver.app._notifications)
        assert not driver.status.has_message
        await driver.press("u")
        assert driver.session.parameter(GPUS).value == 6
        assert driver.session.parameter(RANKS).value == 1024

    drive(check, scenario=mine)


def test_a_trace_that_changes_on_disk_is_replayed_again(tmp_path):
    scenario, trace = tmp_path / "one.toml", tmp_path / "one.goal"
    trace.write_text("num_ranks 1\nrank 0 {\nl1: calc 1000000\n}\n")
    scenario.write_text(
        'platform = "summit"\n[application]\nname = "one"\nrank_count = 1\niteration_count = 1\n'
        '[application.phases.trace]\nkind = "trace"\nfile = "one.goal"\nmodel = "postal"\n'
    )

    async def check(driver):
        assert "1 ms" in driver.tile("iteration")
        trace.write_text("num_ranks 1\nrank 0 {\nl1: calc 3000000\n}\n")
        await driver.until(lambda: "3 ms" in driver.tile("iteration"))
        assert any("changed on disk: one.goal" in note.message for note in driver.app._notifications)
        trace.write_text("nothing\n")
        await driver.until(lambda: "one.goal: no trace" in driver.status.full)
        trace.write_text("num_ranks 1\nrank 0 {\nl1: calc 2000000\n}\n")
        await driver.until(lambda: "2 ms" in driver.tile("iteration"))

    drive(check, scenario=scenario)


def test_a_conflict_is_shown_and_nothing_is_lost(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        mine.write_text(TEXT.replace("512", "1024"))
        await driver.pilot.press("w")
        await driver.until(window(driver, ChoicePrompt))
        assert "512 → 1024 on disk; yours is 256" in " ".join(driver.screen_text().split())
        assert "1024" in mine.read_text()
        assert driver.session.parameter(RANKS).value == 256
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        assert "1024" in mine.read_text()
        await driver.pilot.press("w")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("m")
        await driver.until(lambda: "rank_count = 256" in mine.read_text())

    drive(check, scenario=mine)


def test_of_a_conflict_theirs_can_be_taken(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.edit(GPUS, "8")
        mine.write_text(TEXT.replace("512", "1024"))
        await driver.until(lambda: "both you and the file changed" in driver.status.full)
        await driver.pilot.press("w")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("t")
        await driver.until(lambda: "gpu_count = 8" in mine.read_text())
        assert driver.session.parameter(RANKS).value == 1024

    drive(check, scenario=mine)
    assert "rank_count = 1024" in mine.read_text()


def test_a_comment_written_by_others_does_not_block_saving(mine):
    async def check(driver):
        mine.write_text(TEXT + "# later\n")
        await driver.edit(RANKS, "256")
        await driver.press("w")
        assert driver.state.unsaved() == {}

    drive(check, scenario=mine)
    assert mine.read_text().endswith("# later\n")
    assert "rank_count = 256" in mine.read_text()


def test_saving_waits_for_what_is_computed(mine):
    async def check(driver):
        driver.app.runner.ask(Edit(MODEL, "postal"))
        assert driver.app.runner.busy
        driver.app.action_save()
        driver.app.runner.ask(Edit(GPUS, "8"))
        await driver.calm()
        assert driver.state.unsaved() == {GPUS: "8"}
        assert 'model = "postal"' in mine.read_text()
        await driver.press("w")
        assert driver.state.unsaved() == {}

    drive(check, scenario=mine)


def test_a_shipped_scenario_is_saved_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.press("w")
        await driver.until(window(driver, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until((tmp_path / "jacobi2d.toml").exists)
        await driver.until(lambda: driver.state.unsaved() == {})
        assert driver.app.file_sync.file.path == (tmp_path / "jacobi2d.toml").resolve()

    drive(check)


def test_save_and_quit_of_a_shipped_scenario_quits_after_the_copy_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.press("q")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("s")
        await driver.until(window(driver, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until(lambda: not driver.app.is_running)

    drive(check)
    assert "rank_count = 256" in (tmp_path / "jacobi2d.toml").read_text()


def test_save_and_open_of_a_shipped_scenario_opens_the_other_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        await driver.edit(RANKS, "256")
        driver.app.post_message(FileRequested("minife"))
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("s")
        await driver.until(window(driver, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.program.loaded.name == "minife")

    drive(check)
    assert "rank_count = 256" in (tmp_path / "jacobi2d.toml").read_text()


def test_leaving_the_copy_of_a_shipped_scenario_does_not_quit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.press("q")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("s")
        await driver.until(window(driver, TextPrompt))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.press("right")
        assert driver.app.is_running
        assert driver.state.unsaved()

    drive(check)


def test_a_name_without_an_ending_overwrites_nothing_unasked(mine):
    async def check(driver):
        await driver.pilot.press("W")
        await driver.until(window(driver, TextPrompt))
        driver.app.screen.query_one("Input").value = str(mine.with_suffix(""))
        await driver.pilot.press("enter")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("escape")

    drive(check, scenario=mine)
    assert mine.read_text() == TEXT


def test_an_invalid_file_keeps_the_last_good_picture(mine):
    async def check(driver):
        drawn = driver.plot.description
        mine.write_text(TEXT + "iteration_count = 'many'\n")
        await driver.until(lambda: driver.status.has_message)
        assert "mine.toml:7:" in driver.status.full
        assert driver.status.full.endswith("(line 7 of mine.toml on disk; the last valid values are kept)")
        assert driver.plot.description is drawn
        await driver.edit(RANKS, "256")
        await driver.press("w")
        assert driver.status.full.startswith("not saved: ")
        assert driver.status.full.endswith("W saves to another file")
        assert "256" not in mine.read_text()
        mine.write_text(TEXT + "iteration_count = 200\n")
        await driver.until(lambda: driver.session.parameter("application.iteration_count").value == 200)
        assert not driver.status.has_message

    drive(check, scenario=mine)


def test_an_emptied_file_is_called_empty(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        mine.write_text("")
        await driver.until(lambda: driver.status.has_message)
        assert "is empty" in driver.status.full
        assert driver.session.parameter(RANKS).value == 256

    drive(check, scenario=mine)


def test_a_conflict_with_a_file_that_is_deleted_then_is_none(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        mine.write_text(TEXT.replace("512", "1024"))
        await driver.until(lambda: "both you and the file changed" in driver.status.full)
        mine.unlink()
        await driver.until(lambda: "mine.toml was deleted" in driver.status.full)
        await driver.press("w")
        assert "rank_count = 256" in mine.read_text()

    drive(check, scenario=mine)


def test_a_deleted_file_is_told_and_written_again(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        mine.unlink()
        await driver.until(lambda: "mine.toml was deleted; w writes it again" in driver.status.full)
        await driver.press("w")
        assert not driver.status.has_message
        assert "rank_count = 256            # half a rack" in mine.read_text()

    drive(check, scenario=mine)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_told(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.press("w")
        assert "cannot be written" in driver.status.full

    mine.parent.chmod(0o500)
    drive(check, scenario=mine)
    assert mine.read_text() == TEXT


def test_a_full_disk_is_an_error(mine, monkeypatch):
    async def check(driver):
        await driver.edit(RANKS, "256")

        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("whatif.atomic.tempfile.mkstemp", full)
        await driver.press("w")
        assert "No space left on device" in driver.status.full
        assert driver.state.unsaved() == {RANKS: "256"}

    drive(check, scenario=mine)
    assert mine.read_text() == TEXT


def test_two_programs_on_one_file_take_in_each_others_edits(mine):
    async def first(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.pause(0.01)
        done = subprocess.run([sys.executable, "-c", OTHER, str(mine)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        await driver.until(lambda: driver.session.parameter(GPUS).value == 8)
        await driver.press("w")

    drive(first, scenario=mine)
    data = tomli.loads(mine.read_text())
    assert data["application"]["rank_count"] == 256
    assert data["platform"]["node"]["gpu_count"] == 8


OTHER = """
import sys
from tests.driver import GPUS, drive

async def check(driver):
    await driver.edit(GPUS, "8")
    await driver.press("w")

drive(check, scenario=sys.argv[1])
"""


def test_save_as_goes_on_with_the_new_file(mine):
    other = mine.with_name("other.toml")

    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.press("W")
        await driver.until(window(driver, TextPrompt))
        driver.app.screen.query_one("Input").value = str(other)
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.edit(RANKS, "128")
        await driver.press("w")

    drive(check, scenario=mine)
    assert mine.read_text() == TEXT
    assert "rank_count = 128            # half a rack" in other.read_text()


def test_quitting_with_unsaved_edits_asks(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.press("q")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("x", "escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.pilot.press("q")
        await driver.until(window(driver, ChoicePrompt))
        await driver.pilot.press("s")
        await driver.until(lambda: driver.app._exit)

    drive(check, scenario=mine)
    assert "rank_count = 256" in mine.read_text()


@pytest.mark.parametrize("size", [(40, 12), (60, 14), (80, 24)])
def test_a_question_shows_its_answers_and_scrolls_on_every_screen(size):
    lines = "\n".join(f"set application.value_{number} = {number}" for number in range(40))
    answers = []

    async def check(driver):
        scenario = ChoicePrompt(f"What was lost:\n\n{lines}", {"r": "restore changes", "d": "discard changes"})
        driver.app.push_screen(scenario, answers.append)
        await driver.until(lambda: "r  restore changes" in driver.screen_text())
        assert "r restore changes d discard changes" in driver.screen_text().splitlines()[-1]
        assert "value_12" not in driver.screen_text() or size[1] > 14
        await driver.pilot.press(*["j"] * 12)
        await driver.until(lambda: "value_12" in driver.screen_text())
        await driver.pilot.press("d")
        await driver.until(lambda: answers == ["d"])

    drive(check, size=size)


@pytest.mark.parametrize(("size", "room"), [((80, 24), 36), ((120, 36), 54)])
def test_what_is_told_in_a_corner_has_three_lines_at_most_that_fit(size, room):
    command = "copied:\n[whatif] run jacobi2d " + " ".join(f"--set platform.network.value={n}" for n in range(25))

    async def check(driver):
        driver.main_screen.page.notify("saved to a.toml")
        driver.main_screen.page.notify(command)
        await driver.until(lambda: len(driver.app._notifications) == 2)
        short, long = (note.message for note in driver.app._notifications)
        assert short == "saved to a.toml"
        lines = long.splitlines()
        assert len(lines) == 3
        assert lines[0] == "copied:"
        assert lines[2].endswith("..")
        assert max(map(len, lines)) <= room
        await driver.until(lambda: lines[1] in driver.screen_text())
        # Textual would wrap a longer line once more.
        assert lines[2] in driver.screen_text()

    drive(check, size=size, notifications=True)


def test_lost_edits_are_offered_at_the_next_start(mine):
    async def losing(driver):
        await driver.edit(RANKS, "256")
        await driver.pilot.pause(0.9)

    async def finding(driver):
        await driver.until(window(driver, ChoicePrompt))
        # Escape keeps them for the next start.
        await driver.until(lambda: "decide later" in driver.screen_text())
        await driver.pilot.press("r")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.calm()
        assert driver.state.unsaved() == {RANKS: "256"}
        await driver.press("w")

    async def nothing(driver):
        await driver.pilot.pause(0.3)
        assert driver.app.screen is driver.main_screen

    drive(losing, scenario=mine)
    drive(finding, scenario=mine)
    drive(nothing, scenario=mine)


ENDED = """
import asyncio, sys
from tests.driver import RANKS, drive

async def check(driver):
    await driver.edit(RANKS, "256")
    print("edited", file=sys.__stdout__, flush=True)
    await asyncio.sleep(60)

drive(check, scenario=sys.argv[1])
"""


@pytest.mark.usefixtures("signals_end_programs")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_edits_survive_a_signal(mine, number):
    with subprocess.Popen([sys.executable, "-c", ENDED, str(mine)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "edited\n"
        if number == signal.SIGKILL:
            time.sleep(1.5)
        process.send_signal(number)
        # Not ended by the signal, it returns 0 after a minute.
        assert process.wait() != 0

    async def finding(driver):
        await driver.until(window(driver, ChoicePrompt))
        assert f"set {RANKS} = 256" in driver.screen_text()
        await driver.pilot.press("d")

    drive(finding, scenario=mine)


def said(driver):
    """What the right-hand side of the screen says."""
    return "\n".join(line[47:] for line in driver.screen_text().splitlines()[1:-6])


def test_a_journal_repeats_everything(mine, tmp_path):
    journal = tmp_path / "what.journal"

    async def acting(driver):
        await driver.edit(RANKS, "256")
        driver.tree.select(MEMORY)
        await driver.press("right", "right", "s", "]", "u", "y", "o", "w", "b", "left")
        acting.said = said(driver)

    async def repeating(driver):
        await driver.until(lambda: len(driver.app.runner.history.lines) == len(lines))
        driver.tree.select(MEMORY)
        await driver.calm()
        assert said(driver) == acting.said

    drive(acting, scenario=mine, journal=journal)
    lines = read_journal(journal)
    assert f"set {RANKS} = 256" in lines
    assert {"undo", "save"} <= set(lines)
    assert "rank_count = 256" in mine.read_text()
    mine.write_text(TEXT)
    drive(repeating, scenario=mine, replay=lines)


def test_a_wrong_journal_says_which_line(mine):
    async def check(driver):
        await driver.until(lambda: driver.status.has_message)
        assert "line 2" in driver.status.full
        assert "did you mean `nudge`" in driver.status.full
        assert driver.session.parameter(GPUS).value == 8

    drive(check, scenario=mine, replay=[f"set {GPUS} = 8", f"nugde {GPUS} = 1"])


def test_a_journal_is_a_text_of_sane_size(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_journal(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_journal(tmp_path / "binary")


def test_what_is_on_the_screen_is_copied_as_a_command_that_gives_it(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        driver.tree.select(GPUS)
        await driver.press("s", "c")
        copied = driver.app.clipboard
        (path,) = driver.app.file_sync.recovery.folder.parent.glob("copied.txt")
        assert path.read_text().strip() == copied.strip()
        words = shlex.split(copied)
        assert words[:2] == ["whatif", "run"]
        done = CliRunner().invoke(program, [*words[1:], "--format", "json"])
        rows = json.loads(done.stdout)["rows"]
        ours = driver.session.result.columns["iteration_time"]
        assert [row["iteration_time"] for row in rows if row["iteration_time"]] == [x for x in ours.tolist() if x == x]  # noqa: PLR0124

    drive(check, scenario=mine)


def test_what_is_on_the_screen_is_copied_as_a_scenario(mine):
    async def check(driver):
        await driver.edit(RANKS, "256")
        await driver.press("C")
        patch = mine.with_name("patch.toml")
        patch.write_text(driver.app.clipboard)
        assert Scenario.open(patch).program.parameters[RANKS].value == 256

    drive(check, scenario=mine)


def test_a_platform_is_taken_and_saved_by_name(mine):
    async def check(driver):
        await driver.pilot.press("P")
        await driver.until(window(driver, PickList))
        driver.app.screen.query_one("Input").value = "lassen"
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.program.loaded.scenario.platform.name == "Lassen")
        await driver.calm()
        await driver.press("w")
        assert driver.state.unsaved() == {}
        await driver.press("u")
        assert driver.session.program.loaded.scenario.platform.name == "Summit"

    drive(check, scenario=mine)
    assert "lassen" in mine.read_text()


def test_files_are_listed_opened_copied_and_begun(mine, monkeypatch):
    monkeypatch.chdir(mine.parent)

    async def check(driver):
        await driver.press("7")
        await driver.until(lambda: "mine" in driver.screen_text())
        assert "How fast is my stencil?" in driver.screen_text()
        await driver.pilot.press("d")
        await driver.until(window(driver, TextDialog))
        assert "nothing differs" in driver.screen_text()
        await driver.pilot.press("escape")
        driver.app.runner.ask(Edit(RANKS, "256"))
        await driver.calm()
        await driver.pilot.press("d")
        await driver.until(window(driver, TextDialog))
        assert "+rank_count = 256" in driver.screen_text()
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.press("u")
        await driver.pilot.press("n")
        await driver.until(window(driver, TextPrompt))
        driver.app.screen.query_one("Input").value = "begun"
        await driver.pilot.press("enter")
        await driver.until(lambda: "your machine" in driver.screen_text())
        await driver.pilot.press(*"summit")
        for title in ("first phase", "next phase"):
            await driver.pilot.press("enter")
            await driver.until(lambda title=title: title in driver.screen_text())
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.program.loaded.name == "begun")
        assert (mine.parent / "begun.toml").exists()
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.calm()
        await driver.press("7")
        await driver.until(lambda: driver.main_screen.page.NAME == "files" and "begun" in driver.screen_text())
        table = driver.main_screen.page.query_one(ColumnsView)
        await driver.press(
            *["up"] * 5, *["down"] * [entry.name for entry in driver.main_screen.page._entries].index("mine")
        )
        assert table.row_count > 5
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.program.loaded.name == "mine")

    drive(check, scenario=mine)
