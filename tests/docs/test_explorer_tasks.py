"""The tasks of docs/explorer.md can be done with the keys that it states, in terminals of three sizes."""

import asyncio
import shutil

import pytest

from tests.docs.explorer_tasks import SIZES, parts, walk
from tests.paths import DATA

READERS = {
    "osu/mpich_01.txt": "importers/network/cscs/mpich_01.txt",
    "osu/mpich_02.txt": "importers/network/cscs/mpich_02.txt",
    "bert_squad_v100.csv": "runs/zeus/bert_squad_v100.csv",
}
"""What stands for the files of the reader."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """New folder with the files of the reader, at each call."""

    def make(name):
        for there, here in READERS.items():
            (tmp_path / name / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / here, tmp_path / name / there)
        monkeypatch.chdir(tmp_path / name)

    return make


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.title)
def test_tasks_of_the_page(part, folder):
    states = []
    for size in SIZES:
        folder("x".join(map(str, size)))
        states = asyncio.run(walk(part, size, states)) or states
