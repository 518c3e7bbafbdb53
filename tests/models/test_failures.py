"""Checkpoints and failures against drawn failures, a numerical optimum, and Young's first-order interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import whatif
from whatif.models.failures import best_checkpoint_interval, goodput

DAY = 86400.0


def drawn_share(interval, mean, write, restart, segments, seed):
    """Share of useful time of a run with failures that are drawn at random."""
    draws = np.random.default_rng(seed)
    clock, ready = 0.0, 0.0
    failure = draws.exponential(mean)
    for _ in range(segments):
        end = max(clock, ready) + interval + write
        while failure < end:
            # The segment begins anew; failures also hit restarts.
            clock = failure
            failure = clock + draws.exponential(mean)
            while failure < clock + restart:
                clock = failure
                failure = clock + draws.exponential(mean)
            clock += restart
            end = clock + interval + write
        clock = ready = end
    return segments * interval / clock


@pytest.mark.parametrize(("interval", "mean"), [(600.0, 3 * 3600.0), (3600.0, 3 * 3600.0), (1800.0, 2 * DAY)])
def test_useful_time_is_that_of_drawn_failures(interval, mean):
    expected = float(goodput(*map(np.asarray, (interval, mean, 60.0, 300.0))))
    shares = [drawn_share(interval, mean, 60.0, 300.0, 3000, seed) for seed in range(8)]
    assert_allclose(np.mean(shares), expected, rtol=0.01)


@pytest.mark.parametrize("mean", [1800.0, 3 * 3600.0, 10 * DAY])
@pytest.mark.parametrize("write", [1.0, 60.0, 600.0])
def test_the_best_interval_is_the_numerical_optimum(mean, write):
    found = float(best_checkpoint_interval(*map(np.asarray, (mean, write))))

    def loss(interval):
        return -float(goodput(*map(np.asarray, (interval, mean, write, 300.0))))

    best = minimize_scalar(loss, bounds=(1e-3 * found, 100 * found), method="bounded", options={"xatol": 1e-6 * found})
    assert_allclose(loss(found), best.fun, rtol=1e-9)
    assert_allclose(found, best.x, rtol=0.01)


def test_for_short_checkpoints_the_best_interval_is_youngs():
    found = float(best_checkpoint_interval(*map(np.asarray, (30 * DAY, 10.0))))
    assert_allclose(found, math.sqrt(2 * 10.0 * 30 * DAY), rtol=0.01)


@pytest.mark.parametrize(
    "stated", [{"platform.node.failure_interval": "1 s"}, {"application.plan.checkpoint_time": "1e9 s"}]
)
def test_a_training_without_progress_is_infeasible_with_the_cause(stated):
    interval = {"platform.node.failure_interval": "30 days", "application.plan.token_count": "1e12"}
    found = whatif.run("llama_training", overrides={**interval, **stated})
    assert found.infeasible == 1
    assert "goodput is 0: nodes fail before the job has restarted and written a checkpoint (" in "".join(found.notes)


def test_the_whole_training_takes_longer_by_what_failures_cost():
    stated = {"application.plan.token_count": "1e12", "platform.price.node_rate": "25 USD/h"}
    alone = whatif.run("llama_training", overrides=stated)
    assert_allclose(alone["training_time"], 1e12 / float(alone["token_rate"]), rtol=1e-12, atol=0)
    # Eight nodes of eight GPUs.
    assert_allclose(alone["training_cost"], 8 * 25 / 3600 * float(alone["training_time"]), rtol=1e-9, atol=0)
    failing = whatif.run("llama_training", overrides={**stated, "platform.node.failure_interval": "200 days"})
    share = float(failing["goodput"])
    assert 0.98 < share < 1
    assert_allclose(failing["training_time"], float(alone["training_time"]) / share, rtol=1e-12, atol=0)
    assert_allclose(failing["training_energy"], float(alone["training_energy"]) / share, rtol=1e-12, atol=0)
    own = {"platform.node.failure_interval": "200 days", "application.plan.checkpoint_interval": "1 h"}
    assert float(whatif.run("llama_training", overrides={**stated, **own})["goodput"]) < share
