"""Serving of transformers: the key-value cache, requests in flight, steps of decoding, waiting times.

Symbols: n requests in flight on a replica, i and o tokens of a prompt and of an output, T tokens of a pass, λ requests
a second on a replica, t tensor ranks, p stages, x ranks that share experts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, Count, FloatArray, Fraction, PerSecond, Seconds, model

_DEFINITION: Final = "definition"
_SPECULATIVE: Final = "Leviathan et al. 2023, arXiv 2211.17192, Eq. 1"
_QUEUE: Final = "Sakasegawa 1977, Ann. Inst. Stat. Math. 29, 67, with the variation of Allen and Cunneen"


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


@model("M = w L s / p", _DEFINITION)
def token_cache(kv_width: Count, layer_count: Count, element_size: Bytes, pipeline_size: Count) -> Bytes:
    """Bytes of the cache of one token on a rank. Elementwise; valid for p ≥ 1."""
    return kv_width * layer_count * element_size / pipeline_size


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


@model("D = (P - P_p) / (t p)", _DEFINITION)
def decoding_replicas(
    rank_count: Count, prefill_rank_count: Count, tensor_size: Count, pipeline_size: Count
) -> Count:
    """Replicas that decode: ranks that do not only prefill, over those of a replica. Elementwise."""
    return (rank_count - prefill_rank_count) / (tensor_size * pipeline_size)


@model("E = (1 - a^(k + 1)) / (1 - a)", _SPECULATIVE)
def step_tokens(draft_length: Count, acceptance: Fraction) -> Count:
    """Mean tokens that a request gains in a step, of k proposed ones that are accepted with probability a.

    k + 1 for a = 1, and 1 without a draft. Elementwise.
    """
    certain = acceptance >= 1
    a = np.where(certain, 0.0, acceptance)
    return np.where(certain, draft_length + 1, (1 - a ** (draft_length + 1)) / (1 - a))


@model("T = n (k + 1) / p", _DEFINITION)
def pass_tokens(batch: Count, draft_length: Count, pipeline_size: Count) -> Count:
    """Tokens of one of the p passes of a step: one of every request, and those of its draft. Elementwise."""
    return batch * (draft_length + 1) / pipeline_size


@model("c = ⌈L / p⌉ p / L", _DEFINITION)
def stage_imbalance(layer_count: Count, pipeline_size: Count) -> Count:
    """Layers of the fullest stage over the mean. Elementwise; valid for p ≥ 1."""
    return np.ceil(layer_count / pipeline_size) * pipeline_size / layer_count


@model("T = max(i, T_c)", _DEFINITION)
def chunk_tokens(input_length: Count, chunk_size: Count) -> Count:
    """Tokens of a pass of prefill: those of one prompt, or of several that fill a chunk. Elementwise."""
    return np.maximum(input_length, chunk_size)


@model("c = i / (T p)", _DEFINITION)
def prompt_passes(input_length: Count, chunk_tokens: Count, pipeline_size: Count) -> Count:
    """Passes of T tokens that one prompt takes, as far as they occupy one of p stages. Elementwise."""
    return input_length / (chunk_tokens * pipeline_size)


@model("n E / o", "every request that ends makes room for a prompt")
def ended_requests(batch: Count, step_tokens: Count, output_length: Count) -> Count:
    """Requests of a replica that end in a step. Elementwise."""
    return batch * step_tokens / output_length


@model("T_x = T max(x / t, 1)", _DEFINITION)
def routed_tokens(token_count: Count, expert_size: Count, tensor_size: Count) -> Count:
    """Tokens that the ranks which share experts send to them: those of x / t replicas. Elementwise; valid for t ≥ 1."""
    return token_count * np.maximum(expert_size / tensor_size, 1.0)


@model("E_h = E (1 - (1 - k / E)^T)", "each token is sent to k of E experts at random")
def hit_experts(expert_count: Count, active_expert_count: Count, token_count: Count) -> Count:
    """Experts of a layer that T tokens are sent to, in the mean. Elementwise; valid for k ≤ E."""
    return expert_count * (1 - (1 - active_expert_count / expert_count) ** token_count)


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


@model("T = max(c D K_p / D_p - K_d, 0)", "ranks that prefill and those that decode work at the same time")
def prefill_wait(
    prefill_time: Seconds, decoding_time: Seconds, replica_count: Count, prefill_replica_count: Count
) -> Seconds:
    """Time in which decoding waits for prompts, where other ranks prefill them.

    `prefill_time` c K_p is that of the prompts of one replica in a step. Elementwise; valid for D_p > 0.
    """
    return np.maximum(prefill_time * replica_count / prefill_replica_count - decoding_time, 0.0)


@model("n = λ' (K_1 - s) / (1 - λ' s - λ q), λ' = λ o / E, s = (K_n - K_1) / (n_max - 1)", "Little's law")
def steady_batch(
    request_rate: PerSecond,
    replica_count: Count,
    output_length: Count,
    step_tokens: Count,
    single_time: Seconds,
    largest_time: Seconds,
    batch_limit: Count,
    prompt_time: Seconds,
) -> Count:
    """Requests in flight on a replica at a rate of requests; infinite where the replica cannot serve them.

    The time of a step is taken to grow linearly from `single_time` K_1 with one request to `largest_time` K_n with as
    many as may be in flight; every request adds the `prompt_time` q of its prompt once. Elementwise; valid for
    n_max ≥ 1.
    """
    arriving = request_rate / replica_count
    stepping = arriving * output_length / step_tokens
    slope = (largest_time - single_time) / np.maximum(batch_limit - 1, 1.0)
    rest = 1 - stepping * slope - arriving * prompt_time
    return np.where(rest > 0, stepping * (single_time - slope) / np.where(rest > 0, rest, 1.0), np.inf)


@model("n' = min(max(n, 1), n_max)", "a step has at least one request")
def step_batch(batch: Count, batch_limit: Count) -> Count:
    """Requests of a step. Elementwise."""
    return np.minimum(np.maximum(batch, 1.0), np.maximum(batch_limit, 1.0))


@model("W = S ρ^(√(2 (c + 1)) - 1) / (c (1 - ρ)) (1 + v²) / 2, ρ = n / c", _QUEUE)
def slot_wait(batch: Count, batch_limit: Count, service_time: Seconds, length_variation: Fraction) -> Seconds:
    """Mean time that a request waits until one of c requests in flight has ended, with random arrivals.

    `service_time` S is that of a request, v its variation. Infinite for n ≥ c. Elementwise; valid for c ≥ 1.
    """
    share = batch / batch_limit
    able = share < 1
    rest = np.where(able, 1 - share, 1.0)
    wait = service_time * share ** (np.sqrt(2 * (batch_limit + 1)) - 1) / (batch_limit * rest)
    return np.where(able, wait * (1 + length_variation**2) / 2, np.inf)


@model("W = ρ S (1 + v²) / (2 (1 - ρ)), ρ = λ S", "Pollaczek 1930, Khinchine 1932: M/G/1")
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


@model("T / E", _DEFINITION)
def token_time(iteration_time: Seconds, step_tokens: Count) -> Seconds:
    """Time from one token of a request to the next. Elementwise."""
    return iteration_time / step_tokens


@model("T = o t", _DEFINITION)
def output_time(output_length: Count, token_time: Seconds) -> Seconds:
    """Time in which a request generates its tokens. Elementwise."""
    return output_length * token_time


@model("R = n D E / T", _DEFINITION)
def served_tokens(batch: Count, replica_count: Count, step_tokens: Count, iteration_time: Seconds) -> PerSecond:
    """Tokens that all replicas generate in a second. Elementwise; valid for times > 0."""
    return batch * replica_count * step_tokens / iteration_time


@model("R = Λ o", _DEFINITION)
def requested_tokens(request_rate: PerSecond, output_length: Count) -> PerSecond:
    """Tokens a second at a rate of requests that the replicas serve. Elementwise."""
    return request_rate * output_length


@model("R / P", _DEFINITION)
def rank_rate(token_rate: PerSecond, rank_count: Count) -> PerSecond:
    """Tokens a second of one rank. Elementwise."""
    return token_rate / rank_count


@model("R / o", _DEFINITION)
def served_requests(token_rate: PerSecond, output_length: Count) -> PerSecond:
    """Requests a second that are served. Elementwise."""
    return token_rate / output_length


@model("T = W + o t", _DEFINITION)
def request_time(first_token_time: Seconds, output_length: Count, token_time: Seconds) -> Seconds:
    """Time from the arrival of a request to its last token. Elementwise."""
    return first_token_time + output_length * token_time


@model("10^6 C / (R T)", _DEFINITION)
def million_tokens_cost(total_cost: FloatArray, token_rate: PerSecond, total_time: Seconds) -> FloatArray:
    """Cost of a million tokens, in the currency of `total_cost`. Elementwise; valid for rates and times > 0."""
    return total_cost / (token_rate * total_time) * 1e6
