"""Documents: texts that are parsed once, and files found by name."""

from __future__ import annotations

import pytest
import tomli

from whatif.core.scenario import Scenario
from whatif.schema import shipped
from whatif.schema.toml import read_document


def test_an_unchanged_file_is_parsed_once_and_a_changed_one_again(tmp_path, monkeypatch):
    parsed = []
    loads = tomli.loads
    monkeypatch.setattr(tomli, "loads", lambda text: parsed.append(text) or loads(text))
    path = tmp_path / "mine.toml"
    for text in ("node_count = 2\n", "node_count = 2\n", "node_count = 3\n"):
        path.write_text(text)
        assert read_document(path).data == loads(text)
    assert parsed == ["node_count = 2\n", "node_count = 3\n"]


def test_data_of_a_document_may_be_changed_without_effect_on_the_next_reading(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[application.phases.halo]\nkind = 'halo'\n[[sources]]\nyears = [2020]\n")
    data = read_document(path).data
    data["sources"][0]["years"].append(2021)
    data["application"]["phases"].clear()
    expected = {"application": {"phases": {"halo": {"kind": "halo"}}}, "sources": [{"years": [2020]}]}
    assert read_document(path).data == expected


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


def test_loading_and_editing_leave_the_data_of_a_document_as_its_text_is():
    edits = {"platform.node.gpu.extends": "h100-sxm5-80gb", "application.grid.cells.x": "4096"}
    scenario = Scenario.open("jacobi2d").changed(edits).moved("frontier")
    assert scenario.program
    assert scenario.to_toml()
    for document in (Scenario.open("jacobi2d").document, scenario.document):
        assert {"format": 1, **document.data} == {"format": 1, **tomli.loads(document.text)}
