"""Sentences about hand-made curves, and answers of shipped scenarios against the numbers of their sweeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whatif
from whatif import units
from whatif.core.answer_words import percent, superlative
from whatif.core.curve_answers import ResultSpace, break_even, first_infeasible, knee_of, optimum
from whatif.core.sweep_answers import curve_family_answers
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.plotting.terminal import render

NAN = np.nan
GPUS = AxisDescription("platform.node.gpu_count")
BANDWIDTH = AxisDescription("platform.node.gpu.dram_bandwidth", units.BYTE_PER_SECOND)
TIME = AxisDescription("time", units.SECOND)
MACHINES = AxisDescription("platform", ticks=("summit", "lassen", "frontier"))


def space(axis, x, y, reasons=(), *, most=False, name="iteration_time", time=TIME):
    return ResultSpace((axis,), (np.array(x, float),), np.array(y, float), time, name, most, reasons)


def text(answers):
    return "; ".join(answer.text for answer in answers)


def test_optimum_of_counts_names_the_runner_up():
    assert text(optimum(space(GPUS, [1, 2, 4], [5.14e-3, 5.25e-3, 6e-3]))) == (
        "fastest at 1 GPU a node: 5.14 ms, 2.1 % ahead of 2"
    )
    assert text(optimum(space(GPUS, [1, 2, 4], [5e-3, 5.1e-3, 6e-3], most=True))) == (
        "slowest at 4 GPUs a node: 6 ms, 18 % ahead of 2"
    )


def test_optimum_of_a_rate_is_the_highest():
    rate = AxisDescription("rate", units.FLOP_PER_SECOND)
    found = text(optimum(space(GPUS, [1, 2], [1e12, 2e12], most=True, name="flop_rate", time=rate)))
    assert found == "highest flop rate at 2 GPUs a node: 2 Tflop/s, 100 % ahead of 1"


def test_a_lead_of_more_than_twice_is_a_factor():
    far = "fastest at 1 GPU a node: 1 s, a factor of 4.5 ahead of 2"
    assert text(optimum(space(GPUS, [1, 2], [1, 4.5]))) == far


def test_optimum_of_a_continuous_axis_says_where_the_curve_is_level():
    x = np.array([1, 2, 3, 4, 5]) * 1e11 + 0.5
    assert text(optimum(space(BANDWIDTH, x, [2, 1.005, 1, 1.005, 2]))) == (
        "fastest at dram_bandwidth 300 GB/s: 1 s, within 1 % from 200 GB/s to 400 GB/s"
    )
    assert text(optimum(space(BANDWIDTH, x, [5, 4, 3, 2, 1]))) == (
        "fastest at dram_bandwidth 500 GB/s, the largest value: 1 s"
    )


def test_optimum_of_choices_names_the_choice():
    found = text(optimum(space(MACHINES, [0, 1, 2], [3, 2, NAN])))
    assert found == "fastest on lassen: 2 s, 50 % ahead of summit"


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1, 1, 2, 2], "fastest at 1 and 2 GPUs a node: 1 s, 100 % ahead of 3"),
        ([2, 1, 1, 1], "fastest from 2 to 4 GPUs a node: 1 s, 100 % ahead of 1"),
        ([1, 2, 1, 2], "fastest at 1 and 3 GPUs a node: 1 s, 100 % ahead of 2"),
        ([1, 1, 1, 1], "iteration_time is the same at all 4 feasible points: 1 s"),
        ([NAN, 1, NAN, 1], "iteration_time is the same at all 2 feasible points: 1 s"),
        ([NAN, NAN, 1, NAN], "feasible only at 3 GPUs a node: 1 s"),
        ([NAN, NAN, NAN, NAN], "infeasible at all 4 points: too few ranks"),
        ([0, 1, 2, 3], "fastest at 1 GPU a node: 0 s"),
    ],
)
def test_optimum_of_ties_flat_and_infeasible_curves(y, words):
    assert text(optimum(space(GPUS, [1, 2, 3, 4], y, ["too few ranks"] * 4))) == words


def test_single_point_has_no_answer():
    assert not list(optimum(space(GPUS, [1], [1])))
    assert whatif.run("minife").answers().sentence == ""


def test_optimum_over_two_axes_against_brute_force():
    values = np.random.default_rng(1).uniform(1, 2, (3, 2))
    found = ResultSpace(
        (GPUS, MACHINES), (np.array([1.0, 2, 3]), np.array([0.0, 1])), values, TIME, "iteration_time", False
    )
    [answer] = optimum(found)
    assert answer.value == values.min()
    assert values[answer.index] == values.min()
    assert answer.at == {GPUS.label: float(answer.index[0] + 1), "platform": MACHINES.ticks[answer.index[1]]}
    assert f"{sorted(values.ravel())[1] / values.min() - 1:.0%}".rstrip("%") in answer.text


def test_the_runner_up_of_several_axes_is_named_with_its_axis():
    """A bare number could be of any axis; a machine is its own name."""
    width = AxisDescription("parameters.width")
    ranks = AxisDescription("application.rank_count")
    axes = np.array([24.0, 48]), np.array([1.0, 2])
    for values, words in (
        ([[3, 4], [1, 2]], "at 48 ranks and width 1: 1 s, 100 % ahead of width 2"),
        ([[2, 4], [1, 3]], "at 48 ranks and width 1: 1 s, 100 % ahead of 24 ranks"),
        ([[3, 2], [1, 4]], "at 48 ranks and width 1: 1 s, 100 % ahead of 24 ranks and width 2"),
    ):
        found = ResultSpace((ranks, width), axes, np.array(values, float), TIME, "iteration_time", False)
        assert text(optimum(found)) == f"fastest {words}"
    machines = ResultSpace(
        (MACHINES, width), (np.array([0.0, 1]), axes[1]), np.array([[3.0, 2], [4, 1]]), TIME, "iteration_time", False
    )
    assert text(optimum(machines)) == "fastest on lassen, at width 2: 1 s, 100 % ahead of summit"


def test_first_infeasible_value_and_its_reason():
    x, why = [1, 2, 3, 4], ["low", "", "", "high"]
    assert text(first_infeasible(space(GPUS, x, [1, 1, NAN, NAN], ["", "", "a", "b"]))) == (
        "infeasible from 3 GPUs a node on: a"
    )
    assert text(first_infeasible(space(GPUS, x, [NAN, NAN, 1, 1], ["a", "b", "", ""]))) == (
        "infeasible up to 2 GPUs a node: b"
    )
    assert text(first_infeasible(space(GPUS, x, [NAN, 1, 1, NAN], why))) == "infeasible at 1 GPU a node and 1 more: low"
    assert text(first_infeasible(space(MACHINES, [0, 1, 2], [1, NAN, NAN], ["", "a", "b"]))) == (
        "infeasible on lassen and 1 more: a"
    )
    for nothing in ([1, 1, 1, 1], [NAN] * 4):
        assert not list(first_infeasible(space(GPUS, x, nothing, why)))


def test_knee_states_the_share_of_the_gain():
    y = np.maximum(10.0 - 3 * np.arange(11), 1 - 0.01 * np.arange(11))
    assert text(knee_of(space(GPUS, np.arange(11), y))) == "knee at 3 GPUs a node: 99 % of the gain from 0 to 10"


def test_knee_of_a_curve_that_only_gets_worse_says_that_it_does():
    y = np.maximum(1 + 0.01 * np.arange(11), 3 * np.arange(11) - 20.0)
    expected = "knee at 7 GPUs a node: 0.78 % of the loss from 0 to 10, which grows faster beyond"
    assert text(knee_of(space(GPUS, np.arange(11), y))) == expected


def crossing(x, axis, *curves, scale=Scale.LINEAR):
    lines = tuple(PlotLine(name, x, y) for name, y in zip(("slow", "fast"), curves, strict=True))
    return curve_family_answers(
        PlotDescription("", axis, AxisDescription("time", units.SECOND, scale), lines), "t", "on"
    )


def crossover_of(answers):
    return next(answer for answer in answers.answers if answer.kind == "crossover")


def test_crossover_of_counts_names_the_values_around_it():
    found = crossover_of(crossing([8, 16], GPUS, [1, 3], [2, 2]))
    assert found.text == "fast ahead of slow between 8 and 16 GPUs a node"
    assert (found.between, found.at) == ((8.0, 16.0), {GPUS.label: 12.0})
    assert crossover_of(crossing([8, 9], GPUS, [1, 3], [2, 2])).text == "fast ahead of slow from 9 GPUs a node on"
    assert crossover_of(crossing([8, 9, 10], GPUS, [1, 2, 3], [2, 2, 2])).text == "fast ahead of slow at 9 GPUs a node"


def test_crossover_is_interpolated_on_the_drawn_scale():
    axis = AxisDescription(BANDWIDTH.label, units.BYTE_PER_SECOND, Scale.LOG)
    found = crossover_of(crossing([1.5e9, 1.5e11], axis, [100, 1], [10, 10], scale=Scale.LOG))
    np.testing.assert_allclose(found.at[BANDWIDTH.label], 1.5e10, rtol=1e-12, atol=0)
    assert found.text == "slow ahead of fast at dram_bandwidth 15 GB/s"


def test_break_even_with_the_baseline():
    now, before = PlotLine("now", [1, 2, 4], [3, 2, 1]), PlotLine("before", [1, 2, 4], [1.5, 1.5, 1.5], "baseline")
    plot = PlotDescription("", GPUS, TIME, (now, before))
    [found] = break_even(plot, now, before, most=False)
    assert (found.kind, found.text) == ("break-even", "ahead of the baseline between 2 and 4 GPUs a node")
    assert (found.mark.x, found.mark.y, found.mark.word) == (3.0, 1.5, "break-even")
    [worse] = break_even(plot, now, before, most=True)
    assert worse.text == "behind the baseline between 2 and 4 GPUs a node"


def test_answers_of_a_sweep_are_those_of_its_numbers():
    swept = whatif.sweep("minimd", "platform.node.gpu_count=1 .. 8 step 1")
    answers, times = swept.answers(), swept["iteration_time"]
    best = int(np.nanargmin(times))
    assert answers.optimum.value == times[best]
    assert answers.optimum.at == {"platform.node.gpu_count": best + 1}
    kinds = [answer["kind"] for answer in json.loads(json.dumps(answers.to_dict()))["answers"]]
    assert kinds == ["optimum", "infeasible"]
    assert swept.reasons[0] in answers.sentence
    assert list(answers.table().columns) == ["kind", "platform.node.gpu_count", "value", "text"]


def test_marks_are_on_the_picture_and_a_map_marks_its_optimum():
    swept = whatif.sweep("minife", "platform.node.gpu_count=1 .. 4 step 1", "application.rank_count=6, 12, 24")
    picture = swept.picture()
    assert [(mark.x, mark.y) for mark in picture.marks if mark.word == "fastest"] == [
        (swept.answers().optimum.at["platform.node.gpu_count"], np.nanmin(swept["iteration_time"]))
    ]
    assert "◆" in render(picture, 80, 20, colour=False)
    alone = whatif.sweep("minife", "platform.node.gpu_count=1 .. 4 step 1").picture()
    assert "fastest" in render(alone, 80, 20, colour=False)
    assert "X" in render(picture, 80, 20, colour=False, marker="ascii")
    from whatif.core.sweep_figure import heat_map

    heat = swept.answers().marked(heat_map(swept))
    assert {(m.x, m.y) for m in heat.marks} == {tuple(swept.answers().optimum.at.values())}
    assert "◆ fastest" in render(heat, 80, 20, colour=False)


def test_words_of_results():
    assert superlative(units.SECOND, "terms.halo", most=False) == "fastest halo"
    assert superlative(units.JOULE, "total_energy", most=False) == "least total energy"
    assert superlative(units.SECOND, "total_time", most=True) == "slowest"
    assert [percent(share) for share in (0.016, 0.00001, 0.123, 1.5, 0)] == [
        "1.6 %", "less than 0.01 %", "12 %", "150 %", "0 %",
    ]  # fmt: skip
