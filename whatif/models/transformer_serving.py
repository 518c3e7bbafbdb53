"""Serving of transformers: the key-value cache, requests in flight, steps of decoding, waiting times.

Symbols: n requests in flight on a replica, i and o tokens of a prompt and of an output, T tokens of a pass, λ requests
per second on a replica, t tensor ranks, p stages, x ranks that share experts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, Count, FloatArray, Fraction, PerSecond, Seconds, model
from whatif.models.serving_waits import SHARING

_DEFINITION: Final = "definition"
_APART: Final = 1e-6
"""Difference of requests in flight below which no slope is taken."""
_SHORTEST: Final = 1e-12
_LEAST: Final = 1e-300
"""Number whose powers are 0."""
_SPECULATIVE: Final = "Leviathan et al. 2023, arXiv 2211.17192, Eq. 1"


@model("l_c = (1 - ω) l + ω min(w, l)", _DEFINITION)
def cached_length(length: Count, window: Count, windowed_fraction: Fraction) -> Count:
    """Tokens of a sequence whose keys and values a layer keeps, the mean of the layers.

    A share ω of the layers has a sliding window of w tokens. Elementwise.
    """
    return length + windowed_fraction * (np.minimum(window, length) - length)


@model("l = i + o / 2", "requests in flight are evenly spread over their outputs")
def mean_length(input_length: Count, output_length: Count) -> Count:
    """Mean tokens of a request in flight. Elementwise."""
    return input_length + output_length / 2


@model("l = i + o", _DEFINITION)
def full_length(input_length: Count, output_length: Count) -> Count:
    """Tokens of a request at its end. Elementwise."""
    return input_length + output_length


@model("w = r + d_r", "DeepSeek-AI 2024, arXiv 2405.04434, sec. 2.1")
def latent_width(kv_rank: Count, rotary_size: Count) -> Count:
    """Elements of the latent vector of a token that the cache keeps; every tensor rank keeps all. Elementwise."""
    return kv_rank + rotary_size


@model("c if p = 1, else 1", "the first stage has the input embedding, the last one that of the output")
def stage_embeddings(embedding_count: Count, pipeline_size: Count) -> Count:
    """Embeddings of a stage that has one, of c of the model. Elementwise; valid for c ≥ 1."""
    return np.where(pipeline_size > 1, 1.0, embedding_count)


@model("M = w L s / p'", _DEFINITION)
def token_cache(kv_width: Count, layer_count: Count, element_size: Bytes, stage_shares: Count) -> Bytes:
    """Bytes of the cache of one token on a rank of the fullest stage. Elementwise; valid for p' ≥ 1."""
    return kv_width * layer_count * element_size / stage_shares


@model("M = l m", _DEFINITION)
def request_cache(length: Count, token_size: Bytes) -> Bytes:
    """Bytes of the cache of requests with l tokens. Elementwise."""
    return length * token_size


@model("n = min(n_max, ⌊max(φ (M_0 - M_w - M_b), 0) / M⌋)", _DEFINITION)
def batch_limit(
    largest_batch: Count,
    cache_fraction: Fraction,
    memory_size: Bytes,
    weight_size: Bytes,
    buffer_size: Bytes,
    request_size: Bytes,
) -> Count:
    """Requests that may be in flight on a replica.

    The cache takes a share φ of the memory M_0 of a device that weights M_w and buffers M_b leave; `request_size` M is
    that of a whole request. Elementwise; valid for M > 0.
    """
    room = np.maximum(cache_fraction * (memory_size - weight_size - buffer_size), 0.0)
    return np.minimum(largest_batch, np.floor(room / request_size))


@model("M_w + M_b + M / φ", _DEFINITION)
def least_memory(weight_size: Bytes, buffer_size: Bytes, request_size: Bytes, cache_fraction: Fraction) -> Bytes:
    """Memory of a device that one request needs; the cache takes a share φ > 0 of the rest. Elementwise."""
    return weight_size + buffer_size + request_size / np.maximum(cache_fraction, 1e-12)


@model("D = (P - P_p) / (t p)", _DEFINITION)
def decoding_replicas(rank_count: Count, prefill_rank_count: Count, tensor_size: Count, pipeline_size: Count) -> Count:
    """Replicas that decode, on the ranks that are not reserved for prefill. Elementwise; valid for t, p ≥ 1."""
    return (rank_count - prefill_rank_count) / (tensor_size * pipeline_size)


@model("E = (1 - a^(k + 1)) / (1 - a)", _SPECULATIVE)
def step_tokens(draft_length: Count, acceptance: Fraction) -> Count:
    """Mean tokens that a request gains in a step, of k proposed ones that are accepted with probability a.

    k + 1 for a = 1, and 1 without a draft. Elementwise.
    """
    certain = acceptance >= 1
    a = np.where(certain, 0.0, acceptance)
    return np.where(certain, draft_length + 1, (1 - _power(a, draft_length + 1)) / (1 - a))


def _power(base: FloatArray, exponent: FloatArray) -> FloatArray:
    """Power of numbers from 0 to 1.

    By logarithms, which are rounded for a single value as in an array, so that a sweep equals its points.
    """
    return np.asarray(np.exp(exponent * np.log(np.maximum(base, _LEAST))))


@model("n_p = max(n / p, 1)", "a request is in one pass; with fewer of them than stages some stages have none")
def pass_requests(batch: Count, pipeline_size: Count) -> Count:
    """Requests of one of the p passes of a step. Elementwise."""
    return np.maximum(batch / pipeline_size, 1.0)


@model("T = n_p (k + 1)", _DEFINITION)
def pass_tokens(request_count: Count, draft_length: Count) -> Count:
    """Tokens of a pass of n_p requests: one of each, and those of its draft. Elementwise."""
    return request_count * (draft_length + 1)


@model("c = ⌈L / p⌉ p / L", _DEFINITION)
def stage_imbalance(layer_count: Count, pipeline_size: Count) -> Count:
    """Layers of the fullest stage over the mean. Elementwise; valid for p ≥ 1."""
    return np.ceil(layer_count / pipeline_size) * pipeline_size / layer_count


@model("T = max(i, T_c)", _DEFINITION)
def chunk_tokens(input_length: Count, chunk_length: Count) -> Count:
    """Tokens of a pass of prefill: those of one prompt, or of several that fill a chunk. Elementwise."""
    return np.maximum(input_length, chunk_length)


@model("c = i / T", _DEFINITION)
def prompt_passes(input_length: Count, chunk_tokens: Count) -> Count:
    """Passes of T tokens that one prompt takes. Elementwise."""
    return input_length / chunk_tokens


@model("c_L = c C / p", _DEFINITION)
def layer_share(pass_count: Count, stage_imbalance: Count, pipeline_size: Count) -> Count:
    """Passes through every layer on the fullest of p stages, whose layers are C times the mean. Elementwise."""
    return pass_count * stage_imbalance / pipeline_size


@model("ω = o / (E n D)", _DEFINITION)
def step_share(batch: Count, step_tokens: Count, replica_count: Count, output_length: Count) -> Count:
    """Steps of decoding of a request over the requests that D replicas serve at once. Elementwise."""
    return output_length / (step_tokens * batch * replica_count)


@model("T_x = T max(x / t, 1)", _DEFINITION)
def routed_tokens(token_count: Count, expert_size: Count, tensor_size: Count) -> Count:
    """Tokens that the ranks which share experts send to them: those of x / t replicas. Elementwise; valid for t ≥ 1."""
    return token_count * np.maximum(expert_size / tensor_size, 1.0)


@model("E_h = E (1 - (1 - k / E)^T)", "each token is sent to k of E experts at random")
def hit_experts(expert_count: Count, active_expert_count: Count, token_count: Count) -> Count:
    """Experts of a layer that T tokens are sent to, in the mean. Elementwise; valid for k ≤ E."""
    passed_by = np.maximum(1 - active_expert_count / expert_count, 0.0)
    return expert_count * (1 - _power(passed_by, token_count))


@model("T = T_x k / E_h", _DEFINITION)
def tokens_of_hit(token_count: Count, active_expert_count: Count, hit_count: Count) -> Count:
    """Tokens of one of the experts that are hit. Elementwise; valid for E_h > 0."""
    return token_count * active_expert_count / hit_count


@model("N = N_x E_h / x", _DEFINITION)
def read_parameters(expert_parameters: Count, hit_count: Count, expert_size: Count) -> Count:
    """Parameters of the experts of a rank that are read. Elementwise; valid for x ≥ 1."""
    return expert_parameters * hit_count / expert_size


@model("T_r = T_x / x", _DEFINITION)
def rank_routed_tokens(token_count: Count, expert_size: Count) -> Count:
    """Tokens whose experts one rank computes, evenly spread. Elementwise; valid for x ≥ 1."""
    return token_count / expert_size


@model("c if x > t, else 0", "within a replica every rank has all tokens")
def exchange_count(pass_count: Count, expert_size: Count, tensor_size: Count) -> Count:
    """Exchanges of tokens between replicas that share experts. Elementwise."""
    return np.where(expert_size > tensor_size, pass_count, 0.0)


@model("c if p > 1, else 0", _DEFINITION)
def pipeline_count(pass_count: Count, pipeline_size: Count) -> Count:
    """Passes through a pipeline. Elementwise."""
    return np.where(pipeline_size > 1, pass_count, 0.0)


@model("T = k c K", _SPECULATIVE)
def draft_time(draft_length: Count, draft_fraction: Fraction, decoding_time: Seconds) -> Seconds:
    """Time of the draft model in a step: c of that of decoding for each of k tokens. Elementwise."""
    return draft_length * draft_fraction * decoding_time


@model("T = max(q / D_p - K, 0)", "ranks that prefill and those that decode work at the same time")
def prefill_wait(prompt_time: Seconds, decoding_time: Seconds, prefill_replica_count: Count) -> Seconds:
    """Time for a request in which decoding waits for prompts; each of D_p other replicas computes one at a time.

    `decoding_time` K is that of a request, as all replicas share it. Elementwise; valid for D_p > 0.
    """
    return np.maximum(prompt_time / prefill_replica_count - decoding_time, 0.0)


@model("T = max(1 / Λ - K, 0)", _DEFINITION)
def idle_time(request_rate: PerSecond, busy_time: Seconds) -> Seconds:
    """Time from one request to the next in which no replica works, K being the time of a request. Elementwise."""
    return np.maximum(1 / request_rate - busy_time, 0.0)


@model("b = o (K_h - K_l) / (E (n_h - n_l)) + q", "time of a step linear between two numbers of requests in flight")
def added_time(
    output_length: Count,
    step_tokens: Count,
    low_batch: Count,
    low_time: Seconds,
    high_batch: Count,
    high_time: Seconds,
    prompt_time: Seconds,
) -> Seconds:
    """Time that one more request in flight adds to those in which a request is served.

    A step takes `low_time` K_l with n_l requests in flight and `high_time` K_h with n_h; `prompt_time` q is that of the
    prompt of the request. Elementwise.
    """
    apart = high_batch - low_batch
    slope = np.where(apart > _APART, (high_time - low_time) / np.maximum(apart, _APART), 0.0)
    return output_length / step_tokens * slope + prompt_time


@model("a = o / E K_l - (b - q) n_l", "time of a step linear between two numbers of requests in flight")
def alone_time(
    output_length: Count,
    step_tokens: Count,
    low_batch: Count,
    low_time: Seconds,
    prompt_time: Seconds,
    added_time: Seconds,
) -> Seconds:
    """Time in which a request would be served if no request in flight added any, by the same line. Elementwise."""
    return output_length / step_tokens * low_time - (added_time - prompt_time) * low_batch


@model("Λ = D c / (a + b c)", "Little's law with c requests in flight")
def largest_rate(replica_count: Count, alone_time: Seconds, added_time: Seconds, batch_limit: Count) -> PerSecond:
    """Rate of requests that D replicas serve with as many in flight as may be. Elementwise; valid for a + b c > 0."""
    return replica_count * batch_limit / np.maximum(alone_time + added_time * batch_limit, _SHORTEST)


@model("needed ≤ available", _DEFINITION)
def rate_fits(needed_rate: PerSecond, available_rate: PerSecond) -> Count:
    """1 where a rate can be served, else 0. Elementwise."""
    return np.asarray(needed_rate <= available_rate, dtype=np.float64)


@model("n = min(λ (a + b) / (1 - λ b), c)", SHARING)
def steady_batch(
    request_rate: PerSecond, replica_count: Count, alone_time: Seconds, added_time: Seconds, batch_limit: Count
) -> Count:
    """Mean requests in flight on a replica at a rate of random arrivals; c, the limit, where it cannot serve them.

    A request takes a + b n while n are in flight. Without a limit the number in flight then has a negative binomial
    distribution, whatever the distribution of the lengths. Elementwise.
    """
    arriving = request_rate / replica_count
    rest = 1 - arriving * added_time
    flying = arriving * np.maximum(alone_time + added_time, 0.0) / np.where(rest > 0, rest, 1.0)
    return np.where(rest > 0, np.minimum(flying, batch_limit), batch_limit)


@model("n' < λ (o / E K' + q n')", "Little's law")
def is_below(
    batch: Count,
    step_time: Seconds,
    request_rate: PerSecond,
    replica_count: Count,
    output_length: Count,
    step_tokens: Count,
    prompt_time: Seconds,
) -> Count:
    """1 where a number of requests in flight is less than Little's law gives with its step time, else 0.

    K' is the time of a step with n' requests in flight, q that of the prompt of a request. Elementwise.
    """
    residence = output_length / step_tokens * step_time + prompt_time * batch
    return np.asarray(request_rate / replica_count * residence > batch, dtype=np.float64)


@model("x if c = 1, else y", _DEFINITION)
def chosen(condition: Count, first_value: FloatArray, second_value: FloatArray) -> FloatArray:
    """First value where a condition c is 1, else the second; their unit is that of the result. Elementwise."""
    return np.where(condition > 0, first_value, second_value)


@model("n' = min(max(n, 1), n_max)", "a step has at least one request")
def step_batch(batch: Count, batch_limit: Count) -> Count:
    """Requests of a step. Elementwise."""
    return np.minimum(np.maximum(batch, 1.0), np.maximum(batch_limit, 1.0))


@model("λ S ≤ 1", _DEFINITION)
def prompts_fit(request_rate: PerSecond, replica_count: Count, prompt_time: Seconds) -> Count:
    """1 where D replicas prefill as many prompts as arrive, else 0. Elementwise; valid for D > 0."""
    return np.asarray(request_rate * prompt_time <= replica_count, dtype=np.float64)


@model("t = K n D / o", "n D requests are served in the time of one")
def token_time(busy_time: Seconds, batch: Count, replica_count: Count, output_length: Count) -> Seconds:
    """Time from one token of a request to the next. `busy_time` K is that of a request. Elementwise."""
    return busy_time * batch * replica_count / output_length


@model("R = o / T", _DEFINITION)
def served_tokens(output_length: Count, iteration_time: Seconds) -> PerSecond:
    """Tokens that all replicas generate per second. Elementwise; valid for times > 0."""
    return output_length / iteration_time


@model("R / P", _DEFINITION)
def rank_rate(token_rate: PerSecond, rank_count: Count) -> PerSecond:
    """Tokens per second of one rank. Elementwise."""
    return token_rate / rank_count


@model("T = W + max(o t - S, 0)", "definition; the pass of the prompt is a part of o t")
def request_time(first_token_time: Seconds, output_length: Count, token_time: Seconds, prompt_time: Seconds) -> Seconds:
    """Time from the arrival of a request to its last token. Elementwise.

    `prompt_time` S is that of the pass of its prompt, and of others that it waits for in its first step, on the ranks
    that decode; 0 where others prefill.
    """
    return first_token_time + np.maximum(output_length * token_time - prompt_time, 0.0)


@model("1 / T", _DEFINITION)
def served_requests(iteration_time: Seconds) -> PerSecond:
    """Requests served per second. Elementwise; valid for times > 0."""
    return 1 / iteration_time


@model("10^6 C / (m o)", _DEFINITION)
def million_tokens_cost(total_cost: FloatArray, iteration_count: Count, output_length: Count) -> FloatArray:
    """Cost of a million tokens of m requests, in the currency of `total_cost`. Elementwise."""
    return total_cost / (iteration_count * output_length) * 1e6
