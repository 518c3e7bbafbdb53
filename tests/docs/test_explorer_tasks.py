"""The tasks of docs/explorer.md can be done with the keys that it states, in terminals of three sizes."""

import asyncio
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.docs.explorer_tasks import PAGE, SIZES, parts, replay, walk
from tests.paths import DATA
from tests.tui.conftest import _lines_are_not_put_together, _pauses_until_quiet  # noqa: F401 - for all tests here
from whatif.tui.app import Explorer
from whatif.tui.page_registry import GROUPS

READERS = {
    "saxpy_a100.sqlite": "profiles/nsys/saxpy_a100.sqlite",
    "osu/mpich_01.txt": "importers/network/cscs/mpich_01.txt",
    "osu/mpich_02.txt": "importers/network/cscs/mpich_02.txt",
    "bert_squad_v100.csv": "runs/zeus/bert_squad_v100.csv",
}
"""What stands for the files of the reader."""
ALL = "WHATIF_MONKEY" in os.environ
"""Whether each part is walked at every size, as `make monkey` does, or at the one that the page quotes."""
WRITTEN = {"Your own scenario": ("mine.toml", "mine_machine.toml", "explore.svg", "whatif.journal")}
"""What the tasks of a part leave in the folder."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """New folder with the files of the reader, at each call; an editor that changes nothing."""
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setattr(Explorer, "suspend", lambda _: nullcontext())

    def make(name):
        for there, here in READERS.items():
            (tmp_path / name / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / here, tmp_path / name / there)
        monkeypatch.chdir(tmp_path / name)

    return make


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.title)
def test_tasks_of_the_page(part, folder):
    """They can be done, and the journal that the last ones write leads to the same state."""
    states = []
    for size in SIZES if ALL else SIZES[:1]:
        folder("x".join(map(str, size)))
        states = asyncio.run(walk(part, size, states)) or states
        assert all(Path(name).is_file() for name in WRITTEN.get(part.title, ()))
    if "mine.toml" in WRITTEN.get(part.title, ()):
        text = Path("mine.toml").read_text(encoding="utf-8")
        assert "[application.phases.allreduce]" in text
        assert text.startswith("#")
    if part == parts()[-1]:
        asyncio.run(replay(part, Path("whatif.journal"), states[-1]))


def test_the_page_has_all_tasks_and_all_groups_of_pages():
    assert re.findall(r"^### (\d+)\. .*\?$", PAGE, re.MULTILINE) == [str(number) for number in range(1, 26)]
    pressed = {key for part in parts() for step in part.steps for key in step.keys}
    assert {group.key for group in GROUPS} <= pressed
