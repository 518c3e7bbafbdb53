"""Serving of transformers: times that requests wait for a place among those in flight, and prompts for each other.

Symbols: n requests in flight on a replica, o tokens of an output, λ requests per second on a replica.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Count, Fraction, PerSecond, Seconds, model

SHARING: Final = "processor sharing with a state-dependent rate: Kelly 1979, Reversibility and Stochastic Networks"
"""Source of the waits and of the requests in flight."""


@model("W = P(n ≥ c) S_c (1 + v²) / (2 (c - λ S_c)),  S_c = a + b c", SHARING)
def slot_wait(
    request_rate: PerSecond,
    replica_count: Count,
    alone_time: Seconds,
    added_time: Seconds,
    batch_limit: Count,
    length_variation: Fraction,
) -> Seconds:
    """Mean time that a request waits until one of c requests in flight has ended, with random arrivals.

    P is the probability that c are in flight: their number is negative binomial below c, and falls by λ S_c / c for
    each request that waits; v is the variation of the lengths. With b = 0 it is the queue M/M/c (Erlang C). Infinite
    where the requests cannot be served. Elementwise; valid for c ≥ 1, a > 0.
    """
    from scipy.special import betainc, gammaln  # noqa: PLC0415 - slow to import, for rates of requests only

    arriving, c = request_rate / replica_count, batch_limit
    # Times of 0 are the limit of short ones.
    alone = np.maximum(alone_time, 1e-12)
    slope = np.maximum(added_time, 1e-7 * alone)
    full_time = alone + slope * c
    able = arriving * full_time < c
    load = np.where(able, arriving, 0.5 * c / full_time)
    growth, shape = load * slope, alone / slope + 1
    log_full = gammaln(c + shape) - gammaln(c + 1) - gammaln(shape) + c * np.log(growth) + shape * np.log1p(-growth)
    full = np.exp(log_full) / (1 - load * full_time / c)
    taken = full / (full + betainc(shape, c, 1 - growth))
    wait = taken * full_time / (c - load * full_time) * (1 + length_variation**2) / 2
    return np.where(able, wait, np.inf)


@model("W = ρ S (1 + v²) / (2 (1 - ρ)),  ρ = λ S", "Pollaczek 1930, Khinchine 1932: M/G/1")
def prompt_wait(
    request_rate: PerSecond, replica_count: Count, prompt_time: Seconds, length_variation: Fraction
) -> Seconds:
    """Mean time that a prompt waits for those before it, of D replicas that prefill one after the other.

    Infinite where they arrive faster than they are prefilled. Elementwise; valid for D > 0.
    """
    load = request_rate / replica_count * prompt_time
    able = load < 1
    rest = np.where(able, 1 - load, 1.0)
    return np.where(able, load * prompt_time * (1 + length_variation**2) / (2 * rest), np.inf)


@model("W = S max(n E / o - 1, 0) / 2; for o = 1 twice that", "requests are evenly spread over their outputs")
def step_prompts_wait(batch: Count, step_tokens: Count, output_length: Count, prompt_time: Seconds) -> Seconds:
    """Mean time that a prompt waits for others of the same step, where each request that ends is replaced at once.

    In a step n E / o requests end (`batch` n, `step_tokens` E, `output_length` o), whose places are taken by as many
    prompts of `prompt_time` S. Without steps of decoding, o = 1, each place is taken as soon as a prompt ends, behind
    all others. Elementwise; valid for o ≥ 1.
    """
    before = np.maximum(batch * step_tokens / output_length - 1, 0.0)
    return prompt_time * before * np.where(output_length > 1, 0.5, 1.0)
