"""First run: a machine of parts, phases from motifs and files, measured runs, by keys alone, until the first answer."""

import shutil

import pytest
import tomli
from textual.widgets import Input

import whatif
from tests.driver import drive
from tests.paths import DATA
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import ChoicePrompt, TextPrompt
from whatif.tui.files.file_paths import missing_paths
from whatif.tui.labels import duration

PROFILE = DATA / "profiles" / "nsys" / "saxpy_a100.sqlite"


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def titled(driver, kind, words):
    return lambda: isinstance(driver.app.screen, kind) and words in driver.screen_text()


def told(driver, words):
    return any(words in " ".join(note.message.split()) for note in driver.app._notifications)


async def name_scenario(driver, text):
    """Begin a scenario with a name."""
    await keys(driver, "ctrl+n")
    await driver.until(titled(driver, TextPrompt, "1 of 3"))
    driver.app.screen.query_one(Input).value = text
    await keys(driver, "enter")


async def keys(driver, *pressed):
    for key in pressed:
        await driver.pilot.press(key)
    await driver.pilot.pause()


async def pick(driver, words, text):
    """Wait for a list whose title has some words, filter it and take the row below the cursor."""
    await driver.until(titled(driver, PickList, words))
    await keys(driver, *text, "enter")


@pytest.mark.parametrize("size", [(80, 24)])
def test_own_machine_and_three_phases_are_on_the_screen_after_sixty_keys(tmp_path, size):
    pressed = 0

    async def check(driver):
        nonlocal pressed
        press = driver.pilot.press

        async def counted(*names):
            nonlocal pressed
            pressed += len(names)
            await press(*names)

        driver.pilot.press = counted
        await driver.until(lambda: told(driver, "ctrl+n: a scenario of your own"))
        await keys(driver, "ctrl+n")
        await driver.until(titled(driver, TextPrompt, "1 of 3"))
        await keys(driver, "enter")
        await driver.until(titled(driver, PickList, "2 of 3"))
        await keys(driver, "enter")
        await driver.until(titled(driver, FormScreen, "2 of 3"))
        for moves, part in ((("down",), "h100"), (("down", "4", "down"), "9755"), (("down", "2", "down"), "sling")):
            await keys(driver, *moves, "f4")
            await pick(driver, part[:0], part)
            await driver.until(lambda: isinstance(driver.app.screen, FormScreen))
        await keys(driver, "down", "4", "down", "8", "enter")
        for motif, title in (("stenc", "first phase"), ("allr", "stencil; next"), ("fixed", "allreduce; next")):
            await pick(driver, title, motif)
        await driver.until(titled(driver, PickList, "fixed_time; next"))
        await keys(driver, "enter")
        await driver.until(lambda: driver.session.program.loaded.name == "mine")
        expected = whatif.run(tmp_path / "mine.toml")["iteration_time"]
        await driver.until(lambda: duration(float(expected)) in driver.tile("iteration"))

    drive(check, size=size)
    assert pressed <= 60
    machine = tomli.loads((tmp_path / "mine_machine.toml").read_text())
    assert machine["node"]["gpu"] == {"extends": "h100-sxm5-80gb"}
    assert machine["node"]["cpu"] == {"extends": "epyc-9755"}
    assert (machine["node"]["gpu_count"], machine["node"]["socket_count"], machine["node_count"]) == (4, 2, 8)
    assert machine["network"]["port_count"] == 4
    assert machine["network"]["inter_node"]["extends"].startswith("slingshot")
    assert tomli.loads((tmp_path / "mine.toml").read_text())["platform"] == "mine_machine"


def test_phases_of_a_profile_and_measured_runs_in_the_folder_are_offered(tmp_path):
    shutil.copy(PROFILE, tmp_path)
    (tmp_path / "scaling.csv").write_text("ranks,time [s]\n1,1.2\n2,1.4\n3,1.5\n")

    async def check(driver):
        await keys(driver, "ctrl+n")
        await driver.until(titled(driver, TextPrompt, "1 of 3"))
        await keys(driver, "enter")
        await pick(driver, "2 of 3", "perlmutter")
        await pick(driver, "first phase", "(file)")
        await driver.until(titled(driver, PickList, "saxpy_a100.sqlite"))
        await keys(driver, "enter")
        await pick(driver, "saxpy_a100; next", "(runs)")
        await driver.until(titled(driver, PickList, "scaling.csv"))
        await keys(driver, "enter")
        await driver.until(titled(driver, PickList, "and scaling.csv"))
        await keys(driver, "enter")
        await driver.until(lambda: driver.session.program.loaded.name == "mine")

    drive(check)
    data = tomli.loads((tmp_path / "mine.toml").read_text())
    assert data["runs"] == "mine_runs.csv"
    assert (tmp_path / "mine_runs.csv").is_file()
    assert len(whatif.validate("mine.toml").table()) == 3
    assert all(name.startswith("saxpy_a100_") for name in data["application"]["phases"])


def test_what_does_not_fit_is_told_and_asked_again(tmp_path):
    async def check(driver):
        await keys(driver, "ctrl+n")
        await driver.until(titled(driver, TextPrompt, "1 of 3"))
        await keys(driver, "enter")
        await pick(driver, "2 of 3", "turin")
        await pick(driver, "first phase", "(file)")
        await driver.until(titled(driver, PickList, "pick or type"))
        await keys(driver, *"none.sqlite", "enter")
        await driver.until(titled(driver, PickList, "no such motif, scenario or file"))
        await driver.until(titled(driver, PickList, "first phase"))
        await keys(driver, "escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check)
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_way_is_asked_about(tmp_path):
    (tmp_path / "mine.toml").write_text("# kept\n")

    async def check(driver):
        await keys(driver, "ctrl+n")
        await driver.until(titled(driver, TextPrompt, "mine_2.toml"))
        assert not told(driver, "ctrl+n: a scenario of your own")
        driver.app.screen.query_one("Input").value = "mine"
        await keys(driver, "enter")
        # Asked at once: after all other questions their answers would be lost with it.
        await driver.until(titled(driver, ChoicePrompt, "exists"))
        await keys(driver, "escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        assert (tmp_path / "mine.toml").read_text() == "# kept\n"
        await keys(driver, "ctrl+n")
        await driver.until(titled(driver, TextPrompt, "mine_2.toml"))
        driver.app.screen.query_one("Input").value = "mine"
        await keys(driver, "enter")
        await driver.until(titled(driver, ChoicePrompt, "exists"))
        await keys(driver, "o")
        await pick(driver, "2 of 3", "turin")
        await pick(driver, "first phase", "fixed")
        await driver.until(titled(driver, PickList, "fixed_time; next"))
        await keys(driver, "enter")
        await driver.until(lambda: driver.state.session.scenario.document.name.endswith("mine.toml"))

    drive(check)
    assert "fixed_time" in (tmp_path / "mine.toml").read_text()


def test_a_profile_is_added_to_an_open_scenario_and_taken_back(tmp_path):
    shutil.copy(PROFILE, tmp_path)

    async def check(driver):
        driver.tree.select("application.phases.halo.model")
        await driver.press("n")
        await pick(driver, "Add a phase", "(file)")
        await driver.until(titled(driver, PickList, "saxpy_a100.sqlite"))
        await keys(driver, "enter")
        await driver.until(titled(driver, TextPrompt, "Name of the phase"))
        await keys(driver, "enter")
        await driver.until(titled(driver, FormScreen, "1 of"))
        await keys(driver, "escape")
        assert driver.app.runner.history.lines == ["phase add saxpy_a100 = saxpy_a100.sqlite after halo"]
        phases = driver.session.program.loaded.scenario.application.phases
        assert sum(name.startswith("saxpy_a100_") for name in phases) > 1
        await driver.press("u")
        assert driver.state.unsaved() == {}

    drive(check)


def test_file_name_that_is_too_long_is_told(tmp_path):
    async def check(driver):
        await keys(driver, "J")
        await driver.until(titled(driver, TextPrompt, "Save the journal to"))
        driver.app.screen.query_one(Input).value = 300 * "a"
        await keys(driver, "enter")
        await driver.until(lambda: "cannot be written: File name too long" in driver.status.full, seconds=4)

    drive(check)
    assert not list(tmp_path.iterdir())
    assert missing_paths(300 * "a").startswith("no such file")


def test_name_of_a_scenario_that_is_too_long_is_told(tmp_path):
    async def check(driver):
        await name_scenario(driver, 250 * "a")
        await pick(driver, "2 of 3", "(from parts)")
        await driver.until(titled(driver, FormScreen, "2 of 3"))
        await keys(driver, "escape")
        await name_scenario(driver, 300 * "a")
        await pick(driver, "2 of 3", "turin")
        await pick(driver, "first phase", "fixed")
        await driver.until(titled(driver, PickList, "fixed_time; next"))
        await keys(driver, "enter")
        await driver.until(lambda: "cannot be written: File name too long" in driver.status.full)

    drive(check)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [(80, 24), (60, 14)])
def test_the_whole_reason_why_a_phase_does_not_fit_stays_above_the_list(size):
    async def check(driver):
        await name_scenario(driver, "mine")
        await pick(driver, "2 of 3", "fugaku")
        await pick(driver, "first phase", "gemm")
        await driver.until(titled(driver, PickList, "gemm does not fit"))
        await keys(driver, *"all")
        words = " ".join(driver.screen_text().replace("│", " ").split())
        assert "Fugaku has no" in words
        assert "(`[platform.node.gpu]`)" in words
        await keys(driver, "enter")
        await driver.until(titled(driver, PickList, "allreduce; next"))
        assert "does not fit" not in driver.screen_text()

    drive(check, size)
