"""Topics of the comparisons: which are computed without being asked for, progress and interruption."""

from __future__ import annotations

import pytest

from whatif.limits import LONG_TOPICS, VALIDATION_TOPICS
from whatif.linpack.threads import all_in_threads, in_threads
from whatif.validation.comparisons import Comparisons


def test_topics_that_take_minutes_are_computed_by_name_only():
    assert set(Comparisons.of(()).topics) == set(VALIDATION_TOPICS) - set(LONG_TOPICS)
    assert Comparisons.of(LONG_TOPICS).topics == LONG_TOPICS


def test_topics_that_are_left_out_are_said():
    assert Comparisons.of(()).notes == ("left out, as they take minutes: `whatif validate hpl top500`",)
    assert Comparisons.of(("counts",)).notes == ()


def test_outcomes_come_in_the_order_of_their_tasks_with_the_share_of_all():
    shares = []

    def simulated(task, step_done):
        step_done(1, 2)
        step_done(2, 2)
        return 10 * task

    assert all_in_threads(simulated, range(9), shares.append) == [10 * task for task in range(9)]
    assert 0 < shares[0] < 0.1
    assert max(shares) == pytest.approx(1.0, rel=1e-12)


def test_simulations_end_with_their_iteration():
    begun, ended = [], []

    def simulated(task, step_done):
        begun.append(task)
        try:
            while task:
                step_done(1, 2)
        finally:
            ended.append(task)
        return task

    outcomes = in_threads(simulated, [0, 0, 1, 1])
    assert [next(outcomes), next(outcomes)] == [0, 0]
    outcomes.close()
    assert sorted(begun) == sorted(ended)
