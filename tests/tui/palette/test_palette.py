"""The palette: usual words find their commands; parameters, phases, results, platforms, files and pages are there."""

import pytest
from textual.binding import Binding
from textual.command import CommandList
from textual.widgets import Input

from tests.driver import GPUS, drive
from whatif.schema import catalogue as catalogue_module
from whatif.schema.catalogue import catalogue
from whatif.tui.page_registry import screens
from whatif.tui.palette.palette_entries import (
    Entry,
    best,
    command,
    commands,
    file_entries,
    model_entries,
    pages,
    system_commands,
)

FIRST = {
    "undo": "Undo",
    "redo": "Redo",
    "save": "Save",
    "save as": "Save as",
    "reset": "Reset",
    "revert": "Reset",
    "discard": "Reset",
    "quit": "Quit",
    "exit": "Quit",
    "copy": "Copy command",
    "export": "Export",
    "svg": "Export",
    "png": "Export",
    "minimise": "Best",
    "minimum": "Best",
    "editor": "Editor",
    "add phase": "Add phase",
    "delete phase": "Delete phase",
    "fork": "Fork",
    "jobs": "Jobs",
    "csv": "Table",
    "speedup": "Scaling",
    "add": "Add axis",
    "platform": "Platform",
    "machine": "Platform",
    "theme": "Theme",
    "help": "Help",
    "journal": "Journal",
    "report": "Report",
    "baseline": "Set baseline",
    "pin": "Set baseline",
    "sweep": "Sweep",
    "band": "Bands",
    "uncertainty": "Bands",
    "seek": "Seek target",
    "target": "Seek target",
    "log scale": "Log scale of y",
    "table": "Table",
    "heat map": "Heat map",
    "gpu count": GPUS,
    "gpu_count": GPUS,
    "frontier": "frontier",
    "minife": "minife",
    "stencil": "stencil",
    "phase": "pack",
    "iteration_time": "iteration_time",
    "energy": "Pareto",
    "osu": "fit",
    "roofline": "roofline",
    "double": "Double",
}


def everything(driver):
    """All entries, as the palette gathers them."""
    screen = driver.main_screen
    groups = (commands(screen), system_commands(screen), pages(screen), model_entries(screen))
    return [*(entry for group in groups for entry in group), *file_entries(screen, catalogue([]))]


def test_usual_words_hit_their_command_first_or_second():
    async def check(driver):
        entries = everything(driver)
        wrong = {
            word: [entry.name for entry in best(entries, word)[:3]]
            for word, name in FIRST.items()
            if name not in [entry.name for entry in best(entries, word)[:2]]
        }
        assert not wrong
        assert best(entries, "qqzzx") == []

    drive(check)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("export", ("export", "csv", "png", "svg")),
        ("best", ("minimise", "minimum", "maximum", "optimum")),
        ("editor", ("editor", "vim")),
        ("add phase", ("phase", "add phase", "builder")),
    ],
)
def test_a_new_command_needs_a_label_and_synonyms(label, words):
    others = [Entry("application.phases.halo.model", "parameter", "csv png svg editor phase", print)]
    new = command(Binding("X", "new", label, tooltip="Do something new", id="app.new"), print, "X")
    assert new.name == label.capitalize()
    for word in words:
        assert best([*others, new], word)[0] is new


def test_commands_have_names_of_their_own_on_every_page():
    async def check(driver):
        for page in screens():
            await driver.go(page.name)
            names = [entry.name for entry in commands(driver.main_screen)]
            assert len(names) == len(set(names)), page.name
            assert all(len(entry.name) <= 48 and entry.words and entry.key for entry in commands(driver.main_screen))
            assert not any(name.startswith("Go to Explore") for name in names)

    drive(check, scenario="minife")


async def choose(driver, text):
    """Type into the palette and take the first hit; the lines that it offered."""
    await driver.pilot.press("ctrl+p")
    await driver.until(lambda: driver.app.screen.query(CommandList))
    driver.app.screen.query_one(Input).value = text
    shown = driver.app.screen.query_one(CommandList)
    await driver.until(
        lambda: shown.option_count and text.split()[0] in str(shown.get_option_at_index(0).prompt).lower()
    )
    lines = driver.screen_text().splitlines()
    await driver.pilot.press("enter")
    await driver.until(lambda: driver.app.screen is driver.main_screen)
    await driver.calm()
    return lines


def test_the_palette_runs_commands_and_goes_to_parameters_results_platforms_files_and_pages():
    async def check(driver):
        lines = await choose(driver, "timeline")
        assert any("Phases of an iteration and their overlaps" in line and " page " in line for line in lines)
        assert driver.main_screen.page.NAME == "timeline"
        await choose(driver, "double")
        assert list(driver.state.unsaved())
        await choose(driver, "undo")
        assert not driver.state.unsaved()
        await choose(driver, "halo.model")
        assert driver.tree.parameter.path == "application.phases.halo.model"
        assert driver.app.focused is driver.tree
        await choose(driver, "stencil")
        assert driver.tree.row.path == "application.phases.stencil"
        await choose(driver, "communication_time")
        assert (driver.state.view.screen, driver.state.view.y) == ("explore", "communication_time")
        await choose(driver, "lassen")
        assert driver.session.scenario.platform == "lassen"
        await choose(driver, "undo")
        await choose(driver, "bottlenecks")
        assert driver.state.view.screen == "decide"
        await choose(driver, "minimd")
        await driver.until(lambda: driver.session.program.loaded.name == "minimd")

    drive(check)


def test_choosing_a_parameter_clears_the_filter_and_shows_a_hidden_tree():
    async def check(driver):
        driver.tree.filter("halo")
        await driver.go("compare")
        assert not driver.tree.parent.display
        await choose(driver, "gpu_count")
        assert driver.tree.parent.display
        assert driver.tree.parameter.path == GPUS

    drive(check)


def test_two_hundred_platforms_and_scenarios_are_read_once(tmp_path, monkeypatch):
    for number in range(200):
        (tmp_path / f"machine{number}.toml").write_text("[node]\ngpu_count = 4\n", encoding="utf-8")
        (tmp_path / f"question{number}.toml").write_text(
            f'# Is {number} odd?\nextends = "jacobi2d"\nplatform = "summit"\n'
        )
    first = catalogue([tmp_path])
    names = {(entry.kind, entry.name) for entry in first}
    assert {("platform", "machine7"), ("scenario", "question199")} <= names

    def never(path):
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(catalogue_module, "read_document", never)
    assert catalogue([tmp_path]) == first
    monkeypatch.undo()
    (tmp_path / "machine7.toml").write_text('description = "changed"\n[node]\ngpu_count = 8\n', encoding="utf-8")
    assert "changed" in [entry.words for entry in catalogue([tmp_path])]
