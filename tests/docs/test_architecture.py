"""The table of docs/architecture.md is that of the program, and the graph of imports is read as Python reads it."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

from tests.paths import ROOT

SPEC = importlib.util.spec_from_file_location("architecture_table", ROOT / "docs" / "architecture_table.py")
measure = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = measure
SPEC.loader.exec_module(measure)
DOCUMENT = measure.DOCUMENT.read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (.*) \| (.*) \|$", DOCUMENT.split(measure.BEGIN)[1], re.MULTILINE))


def test_structure_in_the_document_is_up_to_date():
    found = measure.structure()
    assert {name: ROWS[name] for name in found} == found, "run `make architecture`"


def test_lines_in_the_document_are_within_ten_per_cent():
    for name, lines in measure.sizes().items():
        stated = int(ROWS[name].replace(",", ""))
        assert stated == pytest.approx(lines, rel=0.1, abs=100), f"{name}: run `make architecture`"


def test_durations_are_kept_when_the_table_is_written():
    written = measure.table({"check": "99 s"})
    assert measure.durations(written) == {"check": "99 s", "test": "not recorded"}


def test_import_graph_leaves_out_functions_and_type_checking(tmp_path):
    path = tmp_path / "module.py"
    lines = ["import a", "if TYPE_CHECKING:", "    import b", "try:", "    from c import d", "finally:", "    x = 1"]
    text = "\n".join([*lines, "def f():", "    import e", ""])
    path.write_text(text)
    assert set(measure._imported(path, "module", dict.fromkeys("abce", path))) == {"a", "c"}


def test_packages_in_the_diagram_are_those_of_the_program():
    packages = {path.parent.name for path in (ROOT / "whatif").glob("*/__init__.py")}
    assert all(re.search(rf"\b{package}\b", DOCUMENT) for package in packages)
