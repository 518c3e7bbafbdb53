"""Phases in the explorer: keys and windows, journal, undo, saving, changes on disk, recovery, a first scenario."""

import pytest
import tomli

import whatif
from tests.driver import RANKS, drive
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.schema.phase_edits import PhaseEdit
from whatif.tui.commands.explorer_commands import EditPhase, Show, parse_line
from whatif.tui.commands.history import lines_to
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import ChoicePrompt, TextPrompt
from whatif.tui.labels import duration
from whatif.tui.palette.palette_entries import commands
from whatif.tui.widgets.breakdown import Breakdown

HALO = "application.phases.halo"
LINES = (
    "phase add spectrum = transpose after halo",
    "phase copy stencil = second",
    "phase rename halo = border",
    "phase move border = -1",
    "phase kind second = gemm",
    "phase delete pack",
    "set application.phases.spectrum.operation_count = 3",
)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(Scenario.open("jacobi2d").document.text.replace('runs = "jacobi2d_runs.csv"\n', ""))
    return path


def window(driver, kind):
    return lambda: isinstance(driver.app.screen, kind)


async def ask(driver, *lines):
    for line in lines:
        driver.app.runner.ask(parse_line(line))
        await driver.calm()
        assert not driver.app.runner.error, line


async def answer(driver, kind, text):
    """Type into the line of a window, and take what it shows."""
    await driver.until(window(driver, kind))
    driver.app.screen.query_one("Input").value = text
    await driver.pilot.pause()
    await driver.pilot.press("enter")


def phases(driver):
    return list(driver.session.program.loaded.scenario.application.phases)


@pytest.mark.parametrize("line", LINES[:-1])
def test_a_journal_line_of_phases_is_read_as_it_is_written(line):
    assert isinstance(parse_line(line), EditPhase)
    assert parse_line(line).line() == line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("phase", "unknown command"),
        ("phase ad x = gemm", "did you mean `phase add`"),
        ("phase add x", "expected `phase add NAME = MOTIF`"),
        ("phase delete", "expected `phase delete NAME`"),
    ],
)
def test_a_wrong_journal_line_of_phases_is_refused(line, message):
    with pytest.raises(UsageError, match=message):
        parse_line(line)


def test_lines_replay_to_the_same_state_and_undo_takes_each_back():
    async def check(driver):
        await ask(driver, *LINES)
        assert phases(driver) == ["border", "spectrum", "unpack", "stencil", "second", "reduce", "overhead"]
        assert driver.app.runner.history.lines == list(LINES)
        text, lines = driver.session.scenario.document.text, lines_to(driver.state)
        time = float(driver.session.point.columns["iteration_time"])
        await driver.press("R")
        assert driver.state.unsaved() == {}
        assert phases(driver) == ["pack", "halo", "unpack", "stencil", "reduce", "overhead"]
        await driver.app.runner.replay(lines, lambda: None)
        assert driver.session.scenario.document.text == text
        assert float(driver.session.point.columns["iteration_time"]) == time
        await driver.press(*["u"] * len(LINES))
        assert driver.state.unsaved() == {}
        await driver.press("u")
        assert float(driver.session.point.columns["iteration_time"]) == time
        await driver.press(*["u"] * len(LINES))
        assert driver.state.unsaved() == {}

    drive(check)


def test_accuracy_is_that_of_the_phases_which_were_measured():
    async def check(driver):
        assert "of 20 runs" in driver.screen_text()
        await ask(driver, "phase move halo = 1")
        assert "of 20 runs" in driver.screen_text()
        await ask(driver, "phase delete pack")
        assert "of 20 runs" not in driver.screen_text()
        assert "phases edited, never compared with a run" in driver.screen_text()

    drive(check)


def test_sweep_and_drawn_phase_follow_a_new_name():
    async def check(driver):
        await ask(driver, f"sweep {HALO}.halo_width = 1, 2, 4", "show y = terms.halo", "phase rename halo = border")
        assert driver.session.grid.parameters() == ("application.phases.border.halo_width",)
        assert driver.state.view.y == "terms.border"
        await ask(driver, "phase delete border")
        assert driver.session.grid.parameters() == ()

    drive(check)


def test_the_legend_grows_with_the_phases():
    async def check(driver):
        await ask(driver, *(f"phase delete {name}" for name in ("pack", "unpack", "reduce", "stencil", "overhead")))
        below = driver.main_screen.query_one("#below", Breakdown)
        assert below.size.height == 2
        await ask(driver, "phase add work = stencil")
        assert below.size.height == 3
        assert "■ work_update" in driver.screen_text()

    drive(check, size=(80, 24))


def test_phases_are_edited_by_key_in_the_tree():
    async def check(driver):
        driver.tree.select(f"{HALO}.model")
        await driver.press("n")
        await answer(driver, PickList, "transpose")
        await answer(driver, TextPrompt, "fft")
        await driver.until(lambda: "fft" in phases(driver))
        await driver.until(window(driver, FormScreen))
        await driver.pilot.press("escape")
        assert phases(driver)[:3] == ["pack", "halo", "fft"]
        await driver.until(lambda: driver.tree.place == "application.phases.fft")
        await driver.press("ctrl+up")
        await driver.until(lambda: phases(driver)[:3] == ["pack", "fft", "halo"])
        assert driver.tree.place == "application.phases.fft"
        await driver.press("ctrl+down")
        await driver.until(lambda: phases(driver)[:3] == ["pack", "halo", "fft"])
        await driver.press("f2")
        await answer(driver, TextPrompt, "halo")
        await driver.until(lambda: "there is a phase `halo` already" in driver.screen_text())
        await answer(driver, TextPrompt, "spectrum")
        await driver.until(lambda: "spectrum" in phases(driver))
        await driver.press("D")
        await answer(driver, TextPrompt, "again")
        await driver.until(lambda: "again" in phases(driver))
        await driver.press("K")
        await answer(driver, PickList, "overhead")
        kind = "application.phases.again.kind"
        await driver.until(lambda: driver.session.program.parameters[kind].text() == "overhead")
        await driver.press("delete")
        await driver.until(lambda: "again" not in phases(driver))
        assert "spectrum" in phases(driver)

    drive(check)


def test_a_key_without_a_phase_under_the_cursor_asks_which_one():
    async def check(driver):
        driver.tree.select(RANKS)
        await driver.press("delete")
        await answer(driver, PickList, "overhead")
        await driver.until(lambda: "overhead" not in phases(driver))
        await driver.press("insert")
        await driver.until(window(driver, PickList))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        assert list(driver.state.unsaved()) == ["phase delete overhead"]

    drive(check)


def test_a_refused_deletion_names_the_place():
    async def check(driver):
        driver.tree.select("application.phases.exchange.model")
        await driver.press("delete")
        await driver.until(lambda: "is computed from `exchange`" in driver.status.full)
        assert "application.phases.reverse_exchange.message_sizes.x" in driver.status.full
        assert driver.state.unsaved() == {}

    drive(check, scenario="minimd")


def test_the_palette_names_what_can_be_done_with_phases():
    async def check(driver):
        names = {entry.name for entry in commands(driver.main_screen)}
        assert {"Add phase", "Delete phase", "Duplicate phase", "Rename phase"} <= names
        assert {"Move phase up", "Move phase down", "Change kind"} <= names

    drive(check)


def test_the_key_of_a_page_comes_before_that_of_the_tree():
    async def check(driver):
        driver.app.runner.ask(Show("screen", "profile"))
        await driver.until(lambda: driver.main_screen.page.NAME == "profile")
        assert not driver.tree.check_action("add_here", ())

    drive(check)


def test_saved_phases_keep_comments_and_what_undo_cannot_reach_is_gone(mine):
    async def check(driver):
        await ask(driver, *LINES)
        time = driver.tile("iteration").splitlines()[1].split("  ")[0]
        await driver.press("w")
        assert driver.state.unsaved() == {}
        assert time in driver.tile("iteration")
        await driver.press("u")
        # The values of the same phases are taken back, the phases stay.
        assert phases(driver)[0] == "border"
        assert list(driver.state.unsaved()) == ["application.phases.spectrum.operation_count"]
        await driver.press("u")
        assert "nothing to undo" in driver.status.full

    drive(check, scenario=mine)
    text = mine.read_text()
    assert "# Messages of main memory, as in the paper." in text
    assert "# Transfers between host and device and the work of the CPU" in text
    assert list(tomli.loads(text)["application"]["phases"])[:2] == ["border", "spectrum"]
    assert tomli.loads(text)["application"]["phases"]["spectrum"]["operation_count"] == 3


def test_another_change_on_disk_is_merged(mine):
    async def check(driver):
        await ask(driver, LINES[2])
        mine.write_text(mine.read_text().replace("iteration_count = 100", "iteration_count = 7"))
        await driver.until(lambda: driver.session.parameter("application.iteration_count").value == 7)
        assert "border" in phases(driver)
        await driver.press("w")
        assert driver.state.unsaved() == {}

    drive(check, scenario=mine)
    table = tomli.loads(mine.read_text())["application"]
    assert "border" in table["phases"]
    assert table["iteration_count"] == 7


def test_a_change_on_disk_that_leaves_no_room_for_an_edit_is_told_and_not_overwritten(mine):
    theirs = Scenario.open("jacobi2d").with_phase(PhaseEdit("delete", "halo")).document.text
    theirs = theirs.replace('runs = "jacobi2d_runs.csv"\n', "")

    async def check(driver):
        await ask(driver, LINES[2])
        mine.write_text(theirs)
        await driver.until(lambda: "`phase rename halo = border` does not fit" in driver.status.full)
        await driver.press("w")
        assert mine.read_text() == theirs
        await driver.press("R")
        await driver.until(lambda: phases(driver) == ["pack", "unpack", "stencil", "reduce", "overhead"])

    drive(check, scenario=mine)


def test_unsaved_phases_are_asked_about_and_found_after_a_crash(mine, tmp_path):
    kept = tmp_path / "state"

    async def leave(driver):
        await ask(driver, LINES[0])
        driver.app.file_sync.write_down()
        await driver.pilot.press("q")
        await driver.until(window(driver, ChoicePrompt))
        assert "phase add spectrum = transpose after halo" in driver.screen_text()
        await driver.pilot.press("escape")

    drive(leave, scenario=mine, recovery_folder=kept)

    async def come_back(driver):
        await driver.until(window(driver, ChoicePrompt))
        assert "phase add spectrum = transpose after halo" in driver.screen_text()
        await driver.pilot.press("r")
        await driver.until(lambda: "spectrum" in phases(driver))

    drive(come_back, scenario=mine, recovery_folder=kept)


def test_edited_phases_are_not_copied_as_a_command_that_cannot_state_them():
    async def check(driver):
        await ask(driver, LINES[0])
        for key in ("c", "C"):
            await driver.press(key)
            assert "its phases are edited; save them to a file first" in driver.status.full
            await driver.press("escape")

    drive(check)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_a_new_scenario_is_put_together_from_a_machine_and_motifs(tmp_path, monkeypatch, size):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        driver.app.runner.ask(Show("screen", "files"))
        await driver.until(lambda: driver.main_screen.page.NAME == "files" and "generic_cpu" in known(driver))
        driver.main_screen.page.action_new()
        await answer(driver, TextPrompt, "first")
        await answer(driver, PickList, "turin")
        for motif, title in (("stencil", "first phase"), ("gemm", "stencil; next"), ("allreduce", "stencil; next")):
            await driver.until(lambda title=title: title in driver.screen_text())
            await answer(driver, PickList, motif)
        await driver.until(lambda: "stencil, allreduce; next" in driver.screen_text())
        await answer(driver, PickList, "fixed_time")
        await driver.until(lambda: "(done)" in driver.screen_text() and "fixed_time" in driver.screen_text())
        await driver.until(lambda: "stencil, allreduce, fixed_time" in driver.screen_text())
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.program.loaded.name == "first")
        expected = whatif.run(tmp_path / "first.toml")["iteration_time"]
        await driver.until(lambda: duration(float(expected)) in driver.tile("iteration"))

    drive(check, size=size)
    data = tomli.loads((tmp_path / "first.toml").read_text())
    assert data["platform"] == "turin"
    # The product of matrices needs a GPU: it was refused.
    assert list(data["application"]["phases"]) == ["stencil_halo", "stencil_update", "allreduce", "fixed_time"]
    assert whatif.check(tmp_path / "first.toml").files[0].kind == "scenario"


def known(driver):
    return {entry.name for entry in driver.main_screen.page._entries}
