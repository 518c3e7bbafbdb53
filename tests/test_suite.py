"""The test suite itself: what is left out of `make check` exists, and no test waits for data of others."""

from __future__ import annotations

import re

import pytest

from tests.conftest import SLOW
from tests.paths import ROOT


@pytest.mark.parametrize("name", SLOW)
def test_slow_file_or_folder_exists(name):
    assert (ROOT / name).exists()


def test_slow_files_are_listed_once_in_order():
    assert sorted(set(SLOW)) == SLOW


def test_only_tests_marked_shared_data_read_shared_data():
    """A skip for missing data would hide a test from everybody who has only this repository."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        reads = re.search(r"^from tests\.paths import .*\bSHARED\b", text, re.MULTILINE)
        assert not reads or "pytest.mark.shared_data" in text, path
        assert not re.search(r"skip\(.*(?:data|not there)", text), path
