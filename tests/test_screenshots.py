"""The pictures in `screenshots/` are what the explorer draws; `make screenshots` draws them anew."""

import asyncio
import importlib.metadata
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.widgets import Input

from tests.test_explorer import GPUS, MEMORY, Driver
from whatif.engine.result import Question
from whatif.tui.app import Explorer

# Another version of Textual draws borders, footers and colours a little differently.
TEXTUAL_VERSION = "8.2.8"
FOLDER = Path(__file__).parent.parent / "screenshots"
WRITE = os.environ.get("WHATIF_WRITE_SCREENSHOTS") == "1"


class Scene(NamedTuple):
    """One picture: how large, in which colours, of which scenario, after what was done."""

    name: str
    size: tuple[int, int]
    theme: str
    story: str


SCENES = [
    Scene("explore-120x36", (120, 36), "textual-dark", "memory"),
    Scene("explore-80x24", (80, 24), "textual-dark", "gpus"),
    Scene("explore-200x50", (200, 50), "textual-dark", "memory"),
    Scene("explore-light", (120, 36), "textual-light", "mistake"),
]


async def memory(driver):
    """More GPUs in a node, with less to do each and memory twice as fast: what would still faster memory bring?"""
    await driver.edit("application.grid.cells.x", "4096")
    await driver.press("home")
    await driver.edit(GPUS, "8")
    driver.tree.select(MEMORY)
    await driver.press("right_square_bracket", "s")


async def gpus(driver):
    """One GPU more than the machine has."""
    await driver.press("right")


async def mistake(driver):
    """A unit forgotten."""
    await driver.edit(MEMORY, "1600")


STORIES = {story.__name__: story for story in (memory, gpus, mistake)}


async def picture(scene):
    app = Explorer(Question.open("jacobi2d"))
    async with app.run_test(size=scene.size) as pilot:
        app.theme = scene.theme
        driver = Driver(app, pilot)
        await driver.until(lambda: len(app.screen_stack) > 1)
        await STORIES[scene.story](driver)
        for _ in range(5):
            await pilot.pause(0.05)
        return re.sub(r"terminal-\d+", "terminal", app.export_screenshot(title="whatif"))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_screenshot(scene, monkeypatch):
    version = importlib.metadata.version("textual")
    if version != TEXTUAL_VERSION:
        pytest.skip(f"the pictures were made with Textual {TEXTUAL_VERSION}, this is {version}")
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)
    drawn = asyncio.run(picture(scene))
    file = FOLDER / f"{scene.name}.svg"
    if WRITE:
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn, f"{file.name} differs; look at `make screenshots`"
