"""Overlaps of phases that do not occur in every iteration, against iterations counted one by one."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

import whatif

SCENARIO = """
platform = "summit"

[application]
name = "Pair"
rank_count = 1
iteration_count = {count}

[application.phases.a]
kind = "overhead"
overhead_time = "100 us"

[application.phases.b]
kind = "overhead"
overhead_time = "30 us"

[application.repeats]
a.interval = {first}
b.interval = {second}

[application.overlaps.pair]
phases = ["a", "b"]
fraction = {fraction}
"""


def counted(count, first, second, fraction):
    """Time of a run: phases occur in every `first`-th, `second`-th iteration."""
    total = 0.0
    for number in range(1, count + 1):
        a, b = 100e-6 * (number % first == 0), 30e-6 * (number % second == 0)
        total += a + b - fraction * min(a, b)
    return total


@pytest.mark.parametrize("fraction", [0.5, 1.0])
@pytest.mark.parametrize(
    ("count", "first", "second"), [(10, 10, 1), (10, 3, 1), (30, 2, 3), (9, 1, 1), (7, 8, 1), (24, 4, 6)]
)
def test_hidden_is_what_the_iterations_with_both_phases_hide(tmp_path, count, first, second, fraction):
    file = tmp_path / "pair.toml"
    file.write_text(SCENARIO.format(count=count, first=first, second=second, fraction=fraction))
    found = whatif.run(file)
    assert_allclose(found.columns["total_time"], counted(count, first, second, fraction), rtol=1e-12, atol=0)


def test_a_sweep_of_the_interval_equals_each_point_alone(tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(SCENARIO.format(count=12, first=1, second=2, fraction=1.0))
    swept = whatif.sweep(file, {"application.repeats.a.interval": "1, 2, 3, 12"})
    times = [counted(12, interval, 2, 1.0) for interval in (1, 2, 3, 12)]
    assert_allclose(swept.columns["total_time"], times, rtol=1e-12, atol=0)
