"""Speedup, parallel efficiency and ratio of curves, by hand and against the numbers of a sweep."""

from __future__ import annotations

import numpy as np
import pytest

import whatif
from whatif.core.relative_scales import relations, relative
from whatif.core.sweep_figure import Y_COLUMN
from whatif.errors import UsageError
from whatif.plotting.description import PlotLine

RANKS = "application.rank_count"


def drawn(scenario, relation, *axes):
    swept, point = whatif.sweep(scenario, *axes), whatif.run(scenario)
    return swept, point, relative(swept.picture(), swept, Y_COLUMN, relation, point)


def test_strong_efficiency_counts_ranks_and_weak_efficiency_does_not():
    for scenario, ranks in (
        ("jacobi2d_strong", np.array([6, 12, 48])),
        ("minife", np.ones(3)),
        ("llama_training", np.array([64, 128, 512])),
    ):
        counts = (64, 128, 512) if scenario == "llama_training" else (6, 12, 48)
        swept, _, plot = drawn(scenario, "efficiency", f"{RANKS}={', '.join(map(str, counts))}")
        times = swept["iteration_time"]
        np.testing.assert_allclose(plot.lines[0].y, times[0] * ranks[0] / (times * ranks), rtol=1e-12, atol=0)
        assert len(plot.lines) == 1


def test_speedup_is_the_inverse_of_the_ratio_and_larger_is_better():
    swept, point, plot = drawn("jacobi2d_strong", "speedup", f"{RANKS}=6, 12, 48")
    expected = float(point["iteration_time"]) / swept["iteration_time"]
    np.testing.assert_allclose(plot.lines[0].y, expected, rtol=1e-12, atol=0)
    ratio = relative(swept.picture(), swept, Y_COLUMN, "ratio", point).lines[0].y
    np.testing.assert_allclose(plot.lines[0].y * ratio, 1, rtol=1e-12, atol=0)


def test_mark_of_a_family_stays_on_its_curve():
    swept, _, plot = drawn("jacobi2d_strong", "efficiency", f"{RANKS}=6, 12", "platform.node.gpu_count=2, 6")
    [mark] = [mark for mark in plot.marks if mark.word == "fastest"]
    assert any(np.isclose(line.y[line.x == mark.x], mark.y, rtol=1e-12, atol=0).any() for line in plot.lines)
    assert len(plot.lines) == swept["iteration_time"].shape[1]


def test_scales_that_a_result_has():
    swept = whatif.sweep("minife", "platform.node.gpu_count=1, 2")
    assert relations(swept, Y_COLUMN) == ("value", "speedup", "ratio")
    assert relations(swept, "iteration_energy") == ("value", "ratio")
    with pytest.raises(UsageError, match=r"needs a time over `application\.rank_count`"):
        relative(swept.picture(), swept, Y_COLUMN, "efficiency", whatif.run("minife"))


def test_baseline_without_a_value_is_refused():
    swept = whatif.sweep("minife", "platform.node.gpu_count=1, 2")
    infeasible = whatif.run("minife", overrides={"platform.node_count": 1})
    assert np.isnan(infeasible["iteration_time"])
    with pytest.raises(UsageError, match="the baseline has no `iteration_time`"):
        relative(swept.picture(), swept, Y_COLUMN, "ratio", infeasible)


def test_speedup_over_another_curve_has_its_values_at_the_same_points_in_any_order():
    swept = whatif.sweep("minife", "platform.node.gpu_count=4, 1, 2")
    plot = swept.picture()
    base = PlotLine("other", plot.lines[0].x, np.array([8.0, 2.0, np.nan]))
    line = relative(plot, swept, Y_COLUMN, "speedup", base).lines[0]
    np.testing.assert_allclose(line.y, base.y / swept["iteration_time"], rtol=1e-12, atol=0)
    assert relative(plot, swept, Y_COLUMN, "ratio", base).y.label == "ratio to other"
