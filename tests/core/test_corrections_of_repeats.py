"""Corrections of phases that run several times in an iteration."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

import whatif

SCENARIO = """
platform = "summit"

[application]
name = "Halo"
rank_count = 48
iteration_count = 1

[application.grid]
scaling = "weak"
cells = { x = 64, y = 64, z = 64 }

[application.phases.halo]
kind = "halo"
model = "max_rate"
neighbours = "faces"
element_size = "8 B"
"""


@pytest.mark.parametrize(
    "correction",
    [
        'application]\nmessage_time = "1 us"',
        "application]\nmessage_factor = 3",
        "application]\n[calibration.platforms.summit]\nsharing_factor = 2",
    ],
)
def test_a_correction_applies_to_each_repetition(tmp_path, correction):
    """Ten exchanges in an iteration take ten times as long as one, whatever the correction."""
    file = tmp_path / "halo.toml"
    calibration = f"\n[calibration.{correction}\n"
    file.write_text(SCENARIO + calibration)
    once = whatif.run(file)["communication_time"]
    file.write_text(f"{SCENARIO}\n[application.repeats.halo]\nrepeat_count = 10\n{calibration}")
    assert_allclose(whatif.run(file)["communication_time"], 10 * once, rtol=1e-12, atol=0)
    file.write_text(SCENARIO)
    assert once > 1.05 * whatif.run(file)["communication_time"]
