"""Rule *sustained share* of docs/machines.md: memory bandwidths of GPUs without a published triad."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import ROOT
from whatif.schema.load import load_part
from whatif.schema.shipped import shipped_folder, shipped_names

RULE = re.compile(
    r"rule sustained share: ([\d.]+) of the peak, the mean of the triads of (\w+),.* \(([\d.]+) to ([\d.]+)\)"
)
# The dies of MI250X are those of MI210, whose peak is 1,638.4 GB/s.
MI210_TRIAD, MI210_PEAK = 1248e9, 1638.4e9


def follows_rule(name):
    return "rule sustained share" in (shipped_folder("parts") / f"{name}.toml").read_text(encoding="utf-8")


def share(name):
    part = load_part(name)
    assert part.sources["dram_bandwidth"].grade == "measured"
    return part.dram_bandwidth / part.dram_peak_bandwidth


def shares(first):
    """Measured shares by the first device that a source names."""
    if first == "MI210":
        return [MI210_TRIAD / MI210_PEAK, *map(share, ("mi300a", "mi300x"))]
    assert first == "A100"
    return [*map(share, ("a100-sxm4-40gb", "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm", "gh200-96gb"))]


def test_dies_of_mi250x_have_the_measured_triad_of_mi210():
    rows = (ROOT / "validation" / "gpu_streams.csv").read_text().splitlines()
    assert (
        max(float(row.rpartition(",")[2]) for row in rows if row.startswith("mi210,104,triad,3")) == MI210_TRIAD / 1e9
    )
    assert load_part("mi250x-gcd").dram_bandwidth == MI210_TRIAD


@pytest.mark.parametrize("name", [name for name in shipped_names("parts") if follows_rule(name)])
def test_bandwidth_is_the_mean_share_of_measured_triads(name):
    part = load_part(name)
    stated, first, least, most = RULE.match(part.sources["dram_bandwidth"].source).groups()
    found = shares(first)
    limits = [np.mean(found), min(found), max(found)]
    assert [f"{value:.2f}" for value in limits] == [stated, least, most]
    assert_allclose(part.dram_bandwidth, float(stated) * part.dram_peak_bandwidth, rtol=1e-12, atol=0)
