"""Repetition until the scatter is known, with a clock that the test moves."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from whatif.measuring.repetition import FEWEST, Sample, Task, repeat


class Clock:
    """Seconds that pass when a task runs."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def task(self, name, values, seconds=1.0):
        stream = iter(values)

        def run():
            self.now += seconds
            return next(stream)

        return Task(name, run)


def test_equal_values_end_after_the_fewest_repetitions():
    clock = Clock()
    (sample,) = repeat([clock.task("triad", [5.0] * 100)], 50.0, clock)
    assert len(sample.values) == FEWEST
    assert (sample.median, sample.scatter, sample.standard_error) == (5.0, 0.0, 0.0)


def test_scatter_is_repeated_until_the_time_is_over():
    clock = Clock()
    values = np.tile([1.0, 2.0, 3.0], 100)
    (sample,) = repeat([clock.task("triad", values)], 30.0, clock)
    assert len(sample.values) == 30
    assert sample.median == 2.0


def test_repetition_ends_when_the_standard_error_is_small_enough():
    clock = Clock()
    values = 100.0 + np.tile([0.0, 4.0, -4.0], 1000)
    (sample,) = repeat([clock.task("triad", values)], 1e6, clock)
    assert sample.standard_error <= 0.01 * sample.median
    before = Sample("triad", sample.values[:-1])
    assert before.standard_error > 0.01 * before.median


def test_tasks_take_turns_and_a_known_one_rests():
    clock = Clock()
    order = []

    def task(name, values):
        inner = clock.task(name, values)
        return Task(name, lambda: (order.append(name), inner.run())[1])

    steady, noisy = repeat([task("steady", [1.0] * 99), task("noisy", np.tile([1.0, 2.0, 3.0], 99))], 20.0, clock)
    assert order[: 2 * FEWEST] == ["steady", "noisy"] * FEWEST
    assert set(order[2 * FEWEST :]) == {"noisy"}
    assert (len(steady.values), len(noisy.values)) == (FEWEST, 20 - FEWEST)


def test_every_task_runs_once_even_without_time():
    clock = Clock()
    samples = repeat([clock.task("a", [1.0]), clock.task("b", [2.0])], 0.5, clock)
    assert [sample.values.tolist() for sample in samples] == [[1.0], [2.0]]
    assert np.isnan(samples[0].scatter)
    assert np.isnan(samples[0].standard_error)


def test_scatter_of_normal_values_is_their_deviation():
    values = np.random.default_rng(0).normal(10.0, 0.5, 100_000)
    sample = Sample("triad", values)
    assert_allclose(sample.scatter, 0.05, rtol=0.02, atol=0)
    assert_allclose(sample.standard_error, np.sqrt(np.pi / 2) * 0.5 / np.sqrt(100_000), rtol=0.02, atol=0)


def test_progress_is_the_share_of_the_time():
    clock, shares = Clock(), []
    repeat([clock.task("triad", np.tile([1.0, 2.0, 3.0], 9))], 4.0, clock, shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
