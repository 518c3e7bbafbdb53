"""Documents: texts that are parsed once, and files found by name."""

from __future__ import annotations

import pytest
import tomli

from whatif.core.scenario import Scenario
from whatif.schema import shipped
from whatif.schema.toml import read_document


def test_an_unchanged_file_is_parsed_once_and_a_changed_one_again(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("node_count = 2\n")
    first = read_document(path)
    assert read_document(path) is first
    path.write_text("node_count = 3\n")
    assert read_document(path).data == {"node_count": 3}
    assert first.data == {"node_count": 2}


def test_equal_files_keep_their_own_names(tmp_path):
    names = [tmp_path / name for name in ("a.toml", "b.toml")]
    for path in names:
        path.write_text("node_count = 2\n")
    assert [read_document(path).name for path in names] == [str(path) for path in names]


@pytest.mark.parametrize("kind", ["platforms", "parts"])
def test_a_file_found_in_two_ways_is_not_read_to_tell_its_kind(kind, monkeypatch):
    monkeypatch.setattr(shipped, "read_document", None)
    folder = shipped.shipped_folder(kind)
    name = shipped.shipped_names(kind)[0]
    assert shipped.find(name, kind, [folder, folder.parent]) == folder / f"{name}.toml"


def test_loading_and_editing_leave_documents_as_their_texts_are():
    edits = {"platform.node.gpu.extends": "h100-sxm5-80gb", "application.grid.cells.x": "4096"}
    scenario = Scenario.open("jacobi2d", platform="frontier").changed(edits, "frontier")
    assert scenario.program
    assert scenario.to_toml()
    kinds = ("scenarios", "platforms", "parts")
    documents = [read_document(path) for kind in kinds for path in shipped.shipped_folder(kind).glob("*.toml")]
    assert documents
    for document in documents:
        assert {"format": 1, **document.data} == {"format": 1, **tomli.loads(document.text)}
