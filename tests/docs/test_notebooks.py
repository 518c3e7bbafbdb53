"""Notebooks run, and their stored output is what they print; pictures differ with the version of matplotlib.

`WHATIF_WRITE_PAGES=1 pytest tests/docs/test_notebooks.py` writes the output.
"""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from docs.site.notebooks import notebook_page
from tests.paths import ROOT

WRITE = os.environ.get("WHATIF_WRITE_PAGES") == "1"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def nbformat():
    """The package; imported here, as it takes longer than to collect half the tests."""
    return import_module("nbformat")


def printed(notebook):
    """Output of each cell; what a cell prints may come in several pieces."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    texts = [[output.get("text") or output.data.get("text/plain") for output in outputs] for outputs in cells]
    return ["".join(text for text in found if not text.startswith("<Figure")) for found in texts]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_it_shows(path, nbformat, tmp_path):
    from nbclient import NotebookClient

    stored, run = nbformat.read(path, 4), nbformat.read(path, 4)
    NotebookClient(run, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    if WRITE:
        for cell in run.cells:
            cell.metadata.clear()
        nbformat.write(run, path)
    assert WRITE or printed(run) == printed(stored) != []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_page_of_a_notebook_has_its_code_and_output(path, nbformat):
    page = notebook_page(path)
    for cell in nbformat.read(path, 4).cells:
        assert cell.source.replace("<details>", '<details markdown="1">') in page
    assert page.count("data:image/png") == path.read_text().count('"image/png"')
