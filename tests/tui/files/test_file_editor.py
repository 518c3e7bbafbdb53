"""The editor opened from the explorer: what it gets, and what is read back."""

import sys
from contextlib import nullcontext

import pytest

from tests.driver import GPUS, RANKS, drive
from whatif.tui.app import Explorer
from whatif.tui.dialogs.windows import TextPrompt

EDITOR = """
import sys
from pathlib import Path
line, file = int(sys.argv[1].removeprefix("+")), Path(sys.argv[2])
lines = file.read_text().splitlines()
Path(__file__).with_name("asked").write_text(f"{file.name}:{line}: {lines[line - 1]}")
if "rank_count" in lines[line - 1]:
    lines[line - 1] = "rank_count = 48"
file.write_text("\\n".join(lines) + "\\n")
"""


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """An editor that notes the line that it is opened at, and writes another number of ranks there."""
    script = tmp_path / "editor.py"
    script.write_text(EDITOR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    monkeypatch.setattr(Explorer, "suspend", lambda _: nullcontext())
    monkeypatch.chdir(tmp_path)
    return tmp_path / "asked"


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "jacobi2d"\n\n[application]\nrank_count = 24\n')
    return file


def test_editor_opens_at_the_parameter_and_the_file_is_read_again(editor, mine):
    async def check(driver):
        driver.tree.select(RANKS)
        await driver.press("E")
        await driver.until(lambda: driver.session.parameter(RANKS).text() == "48")
        assert editor.read_text() == "mine.toml:4: rank_count = 24"
        assert driver.state.unsaved() == {}

    drive(check, scenario=mine)


def test_copy_of_a_shipped_scenario_is_offered_and_opened(editor, tmp_path):
    async def check(driver):
        driver.tree.select(RANKS)
        await driver.pilot.press("E")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.session.parameter(RANKS).text() == "48")
        assert editor.read_text().startswith("jacobi2d.toml:")
        assert driver.app.file_sync.file.path == (tmp_path / "jacobi2d.toml").resolve()

    drive(check)


def test_unset_editor_is_explained_before_a_copy_is_offered(editor, monkeypatch):
    monkeypatch.delenv("EDITOR")

    async def check(driver):
        driver.tree.select(GPUS)
        await driver.press("E")
        await driver.until(lambda: driver.status.has_message)
        assert driver.status.full == "no editor is set; name one before the start, such as `export EDITOR=nano`"
        assert driver.app.screen is driver.main_screen

    drive(check)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nanoo", "`nanoo`: cannot be started: No such file or directory; $EDITOR names it"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", f"`{sys.executable}` ended with code 3"),
    ],
)
def test_editor_that_fails_is_reported(editor, mine, monkeypatch, command, message):
    monkeypatch.setenv("EDITOR", command)

    async def check(driver):
        driver.tree.select(RANKS)
        await driver.press("E")
        await driver.until(lambda: driver.status.has_message)
        assert driver.status.full == message

    drive(check, scenario=mine)


def test_editor_without_a_terminal_is_refused(editor, mine, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("EDITOR", "nano")

    async def check(driver):
        driver.tree.select(RANKS)
        await driver.press("E")
        await driver.until(lambda: driver.status.has_message)
        assert driver.status.full.startswith("an editor needs a terminal")

    drive(check, scenario=mine)
