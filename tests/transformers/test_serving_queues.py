"""Requests in flight and waiting times against an independent simulation of an engine, and exact queues."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.transformers.steps_at_hand import served, served_terms
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.models.serving_waits import prompt_wait, slot_wait
from whatif.models.transformer_serving import steady_batch

SHAPE = {"input_length": 500, "output_length": 200}


def simulated(rate, limit, prompt_time, step_time, count=6000, seed=5):
    """Mean requests in flight, and mean time to the first token, of an engine with random arrivals.

    In every step it takes the waiting requests that may be in flight, computes their prompts one after the other, and
    then one token of every request.
    """
    arrivals = deque(np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count)).tolist())
    left, now, flying, first = [], 0.0, 0.0, []
    begin = None
    while arrivals or left:
        if not left and arrivals[0] > now:
            now = arrivals[0]
        start = now
        while arrivals and arrivals[0] <= start and len(left) < limit:
            now += prompt_time
            first.append(now - arrivals.popleft())
            left.append(SHAPE["output_length"])
        now += step_time(len(left))
        if len(first) > count // 5 and arrivals:
            begin = start if begin is None else begin
            flying += len(left) * (now - start)
            end = now
        left = [tokens - 1 for tokens in left if tokens > 1]
    return flying / (end - begin), np.mean(first[count // 5 :])


def replaced_at_once(places, output, prompt_time, step_time, steps=4000):
    """Mean times to the first token and of a request in an engine whose requests are replaced when they end.

    Places are as far with their outputs as evenly spread random numbers say.
    """
    left = np.random.default_rng(1).integers(1, output + 1, places)
    now, begun, first, whole = 0.0, np.full(places, np.nan), [], []
    for step in range(steps):
        for place in np.flatnonzero(left == 0):
            now += prompt_time
            left[place] = output
            if step > steps // 2:
                first.append(now - begun[place])
        now += step_time
        left -= 1
        ended = left == 0
        if step > steps // 2:
            whole += (now - begun[ended]).tolist()
        begun[ended] = now
    return np.nanmean(first), np.nanmean(whole)


@pytest.mark.parametrize("output", [8, 20, 50, 400])
def test_prompts_of_one_step_wait_for_each_other(output):
    found = served_terms(input_length=500, output_length=output, largest_batch=128)
    prompt, step = (float(found[name]) for name in ("serving.prompt_time", "step.decoding_time"))
    first, whole = replaced_at_once(128, output, prompt, step)
    waited = (
        float(found["serving.first_token_time"]) - float(found["first.step_wait"]) - float(found["first.pass_time"])
    )
    assert_allclose(waited + prompt, first, rtol=0.25, atol=0)
    assert_allclose(float(found["serving.request_time"]), whole, rtol=0.1, atol=0)


def test_the_only_token_of_a_request_is_its_first():
    """Without steps of decoding every prompt waits for all others, as long as a request takes by Little's law."""
    found = served_terms(input_length=500, output_length=1, largest_batch=128)
    assert_allclose(found["serving.first_token_time"], found["serving.request_time"], rtol=0.02, atol=0)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.85])
def test_requests_in_flight_and_first_tokens_agree_with_a_simulated_engine(share):
    offline = served_terms(**SHAPE, largest_batch=64)
    rate = share * float(offline["serving.served_rate"])
    found = served_terms(**SHAPE, largest_batch=64, request_rate=f"{rate} 1/s")
    times = {n: float(served_terms(**SHAPE, largest_batch=n)["step.decoding_time"]) for n in (1, 16, 32, 48, 64)}

    def step_time(batch):
        return np.interp(batch, list(times), list(times.values()))

    prompt = float(found["serving.prompt_time"])
    runs = np.array([simulated(rate, 64, prompt, step_time, seed=seed) for seed in range(4)])
    batch, first = runs.mean(axis=0)
    assert_allclose(found["serving.flying_count"], batch, rtol=0.04)
    # The prompt of the simulated engine takes as long as in a full pass.
    alone = float(found["first.pass_time"]) - prompt
    assert_allclose(float(found["serving.first_token_time"]) - alone, first, rtol=0.35)


@pytest.mark.parametrize("draft_length", [0, 3])
def test_the_largest_rate_is_that_of_as_many_requests_as_fit(draft_length):
    shape = SHAPE | {"largest_batch": 64, "draft_length": draft_length}
    most = float(served_terms(**shape)["serving.served_rate"])
    for share, able in ((0.999, True), (1.001, False)):
        found = run_whole(served(**shape, request_rate=f"{share * most} 1/s"), Grid())
        assert np.isfinite(found.columns["token_rate"]) == able
        if able:
            assert_allclose(found.columns["batch"], 64, rtol=0.02)
            assert_allclose(found.columns["token_rate"], share * most * 200, rtol=0.01)


def test_the_mean_in_flight_is_that_of_the_chain_of_births_and_deaths():
    rate, alone, added = 3.0, 2.0, 0.05
    weights = [1.0]
    for count in range(1, 4000):
        # As many requests are in flight longer; each ends at 1 / (a + b n) of a second.
        weights.append(weights[-1] * rate * (alone + added * count) / count)
    chain = np.array(weights) / sum(weights)
    found = steady_batch(*map(np.asarray, (rate, 1.0, alone, added, 1e4)))
    assert_allclose(found, chain @ np.arange(4000), rtol=1e-9)


def erlang_wait(count, load, service):
    """Mean wait in the queue M/M/c (Erlang C)."""
    offered = count * load
    terms = [offered**k / math.factorial(k) for k in range(count)]
    last = offered**count / math.factorial(count) / (1 - load)
    return last / (sum(terms) + last) * service / (count * (1 - load))


@pytest.mark.parametrize("count", [1, 4, 32, 128])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_waits_for_a_slot_are_those_of_erlang_if_requests_do_not_slow_each_other(count, load):
    # Variation 1 is that of exponential lengths.
    found = float(slot_wait(*map(np.asarray, (count * load / 10.0, 1.0, 10.0, 0.0, float(count), 1.0))))
    assert_allclose(found, erlang_wait(count, load, 10.0), rtol=1e-3)


def test_waits_grow_without_bound_at_the_limit():
    assert float(slot_wait(*map(np.asarray, (0.8, 1.0, 10.0, 0.0, 8.0, 0.0)))) == math.inf
    assert float(prompt_wait(*map(np.asarray, (10.0, 1.0, 0.1, 0.0)))) == math.inf


def test_waits_for_prompts_are_those_of_one_server():
    # M/M/1 at half load: the mean wait is the time of a prompt.
    assert_allclose(prompt_wait(*map(np.asarray, (5.0, 1.0, 0.1, 1.0))), 0.1, rtol=1e-12)


def test_latencies_of_a_front_rise_with_throughput():
    found = whatif.sweep("llama_serving", {"application.plan.largest_batch": "1, 4, 16, 64, 200"})
    assert np.all(np.diff(found["token_rate"]) > 0)
    assert np.all(np.diff(found["token_time"]) > 0)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_one_request_follows_the_other_at_the_rate_of_requests(share):
    rate = share * float(served_terms(**SHAPE, largest_batch=64)["serving.served_rate"])
    found = served_terms(**SHAPE, largest_batch=64, request_rate=f"{rate} 1/s")
    assert_allclose(found["iteration.time"], 1 / rate, rtol=0.02)
    assert (found["idle"] > 0.5 / rate) == (share < 0.01)


@pytest.mark.parametrize("share", [0.02, 0.15, 0.5, 0.9])
def test_all_requests_are_served_though_steps_with_experts_are_not_linear(share):
    shape = {"input_length": 2000, "output_length": 300, "expert_size": 4}
    rate = share * float(served_terms("qwen3-30b-a3b", ranks=4, **shape)["serving.served_rate"])
    found = served_terms("qwen3-30b-a3b", ranks=4, request_rate=f"{rate} 1/s", **shape)
    assert_allclose(found["serving.served_rate"], rate, rtol=2e-3)
    # Little's law, but for the variation of the number in flight.
    residence = 300 * float(found["serving.token_time"])
    assert_allclose(found["serving.flying_count"], rate / 4 * residence, rtol=0.06)


def test_the_largest_rate_is_stated():
    most = float(served_terms(**SHAPE, largest_batch=64)["serving.served_rate"])
    found = run_whole(served(**SHAPE, largest_batch=64, request_rate=f"{1.01 * most} 1/s"), Grid())
    assert f"{most:.4g} 1/s available" in found.notes[0]
