"""Errors that docs/domains.md states are those of the comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "domains.md").read_text(encoding="utf-8")
OTHER_NETWORKS = ("Polaris", "Alps", "AWS p4de", "AWS p5")


def test_errors_are_those_of_the_comparison(compared):
    rows = compared("collectives").to_pandas()
    assert rows[["from 1 MiB", "below"]].to_numpy().sum() == 533
    other = rows["machine"].isin(OTHER_NETWORKS)
    usual, others = r"error is ([\d.]+) % and the bias (-[\d.]+) %", r"it is ([\d.]+) % and (-[\d.]+) %"
    for part, words in ((~other, usual), (other, others)):
        stated = re.search(words, PAGE)
        for place, name in ((1, "error"), (2, "bias")):
            assert float(stated[place]) == pytest.approx(100 * np.mean(rows.loc[part, name]), abs=0.5)
    below = re.search(r"Below 1 MiB the mean error is (\d+) %, over Slingshot and EFA (\d+) %", " ".join(PAGE.split()))
    for place, part in ((1, ~other), (2, other)):
        assert float(below[place]) == pytest.approx(100 * np.mean(rows.loc[part, "error below"]), abs=0.5)
