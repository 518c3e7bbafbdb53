"""Shipped scenarios give the stored numbers: a change of code must not move a result unnoticed."""

from __future__ import annotations

import json

import pytest

from tests.shipped.stored_results import FILE, results_of
from whatif.schema.shipped import shipped_names

STORED = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_shipped_scenario_has_stored_results():
    assert sorted(STORED) == sorted(shipped_names("scenarios"))


@pytest.mark.parametrize("name", sorted(STORED))
def test_results_equal_the_stored_ones(name):
    found = results_of(name)
    for part, columns in STORED[name].items():
        assert list(found[part]) == list(columns), part
        for column, cells in columns.items():
            expected = cells if isinstance(cells[0], str) else pytest.approx(cells, rel=1e-12, abs=0)
            assert found[part][column] == expected, f"{part}, {column}"
