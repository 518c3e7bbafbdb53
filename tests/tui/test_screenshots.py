"""The pictures in `screenshots/` are what the explorer draws; `make screenshots` draws them anew."""

import importlib.metadata
import os

import pytest
from textual.widgets import Input

from tests.paths import ROOT
from tests.pictures import SCENES, film, gallery, pictures, together

# Another version of Textual draws borders, footers and colours a little differently.
TEXTUAL_VERSION = "8.2.8"
FOLDER = ROOT / "screenshots"
DRAWN = (
    "why", "which", "training", "serving",
    "roofline_minife", "messages_minimd", "placement_jacobi2d", "domains_jacobi2d", "timeline_jacobi2d",
    "ranks_tree",
)  # fmt: skip
"""Pictures that commands of the documentation write: tests/docs/test_pages.py."""
WRITE = os.environ.get("WHATIF_WRITE_SCREENSHOTS") == "1"


@pytest.fixture(autouse=True)
def _steady(monkeypatch):
    version = importlib.metadata.version("textual")
    if version != TEXTUAL_VERSION:
        pytest.skip(f"the pictures were made with Textual {TEXTUAL_VERSION}, this is {version}")
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.chdir(FOLDER.parent)


def compare(name, drawn):
    file = FOLDER / f"{name}.svg"
    if WRITE:
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn, f"{file.name} differs; look at `make screenshots`"


@pytest.mark.parametrize("scenes", together(SCENES), ids=lambda scenes: scenes[0].name)
def test_screenshot(scenes):
    for scene, drawn in zip(scenes, pictures(scenes), strict=True):
        compare(scene.name, drawn)


@pytest.mark.parametrize("whole", [gallery, film], ids=lambda whole: whole.__name__)
def test_several_pictures_in_one(whole):
    compare(whole.__name__, whole())


def test_every_picture_is_made_here():
    made = {f"{scene.name}.svg" for scene in SCENES} | {f"{name}.svg" for name in ("gallery", "film", *DRAWN)}
    assert {path.name for path in FOLDER.iterdir()} == made
