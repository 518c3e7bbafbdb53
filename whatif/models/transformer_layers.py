"""Layers of a transformer: parameters, operations and memory traffic of one token.

Symbols: h hidden size, a heads, g heads of keys and values, d head size, f feed-forward size, V vocabulary, s sequence
length, T tokens of a micro batch on one rank.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, Count, Fraction, Operations, model

_DEFINITION: Final = "definition"
_LATENT: Final = "DeepSeek-AI 2024, arXiv 2405.04434, sec. 2.1"
PASSES: Final = 3.0
"""Products of one matrix in a step: the output, and the gradients of the input and of the matrix."""
BACKWARD_ATTENTION: Final = 2.5
"""Products of attention backward over those forward: five with the recomputed scores, over two (FlashAttention)."""


@model("N_a = h d (2 a + 2 g)", _DEFINITION)
def attention_parameters(hidden_size: Count, head_count: Count, kv_head_count: Count, head_size: Count) -> Count:
    """Parameters of the projections to queries, keys and values, and of their output, of one layer. Elementwise."""
    return hidden_size * head_size * 2 * (head_count + kv_head_count)


@model("N_a = h r_q + r_q a d + h (r + d_r) + r a (d - d_r + d_v) + a d_v h", _LATENT)
def latent_parameters(
    hidden_size: Count,
    head_count: Count,
    head_size: Count,
    query_rank: Count,
    kv_rank: Count,
    rotary_size: Count,
    value_size: Count,
) -> Count:
    """Parameters of the projections of latent attention of one layer.

    `head_size` d of queries and keys includes `rotary_size` d_r, the part with positions; `kv_rank` r is the size of
    the latent vector, `query_rank` r_q that of queries, `value_size` d_v. Elementwise.
    """
    queries = query_rank * (hidden_size + head_count * head_size)
    latent = hidden_size * (kv_rank + rotary_size)
    return (
        queries
        + latent
        + kv_rank * head_count * (head_size - rotary_size + value_size)
        + (head_count * value_size * hidden_size)
    )


@model("N_f = n h f, n = 3 if gated, else 2", _DEFINITION)
def feed_forward_parameters(hidden_size: Count, feed_forward_size: Count, *, gated: bool) -> Count:
    """Parameters of a feed-forward block, or of one expert. Elementwise."""
    return (3.0 if gated else 2.0) * hidden_size * feed_forward_size


@model("L_e = ⌊(L - L_0) / i⌋", _DEFINITION)
def expert_layers(layer_count: Count, leading_dense_count: Count, expert_interval: Count) -> Count:
    """Layers with experts: every i-th one after the leading dense ones. Elementwise."""
    return np.floor((layer_count - leading_dense_count) / expert_interval)


@model("N = L N_a + (L - L_e) N_f + L_e (n N_x + h E) + e V h", _DEFINITION)
def model_parameters(
    layer_count: Count,
    expert_layer_count: Count,
    attention_parameters: Count,
    dense_parameters: Count,
    expert_parameters: Count,
    used_expert_count: Count,
    router_parameters: Count,
    embedding_parameters: Count,
) -> Count:
    """Parameters of a model, without norms and biases.

    `used_expert_count` n counts experts of a layer: all of them, or those that a token uses; `router_parameters` are
    those of one layer, `embedding_parameters` those of all embeddings that count. Elementwise.
    """
    experts = expert_layer_count * (used_expert_count * expert_parameters + router_parameters)
    dense = (layer_count - expert_layer_count) * dense_parameters
    return layer_count * attention_parameters + dense + experts + embedding_parameters


@model("l = s, or w (2 - w / s) with a window w < s", "definition, causal masks")
def attended_length(sequence_length: Count, window: Count, windowed_fraction: Fraction) -> Count:
    """Twice the mean number of tokens that a token attends to: s under a causal mask.

    `windowed_fraction` of the layers have a sliding window of w tokens. Elementwise; valid for s ≥ 1, w ≥ 1.
    """
    width = np.minimum(window, sequence_length)
    windowed = width * (2 - width / sequence_length)
    return sequence_length + windowed_fraction * (windowed - sequence_length)


@model("F = 6 N_t + 3 L a (d + d_v) l", "Narayanan et al. 2021, arXiv 2104.04473, with half of the scores masked")
def training_operations(
    token_parameters: Count,
    layer_count: Count,
    head_count: Count,
    head_size: Count,
    value_size: Count,
    attended_length: Count,
) -> Operations:
    """Operations of the model for one token of training: forward, and twice as many backward.

    `token_parameters` N_t are those that a token is multiplied by, the output embedding included. Elementwise.
    """
    return 6 * token_parameters + 3 * layer_count * head_count * (head_size + value_size) * attended_length


@model("W = 2 x T N / t", _DEFINITION)
def product_operations(token_count: Count, parameter_count: Count, tensor_size: Count, passes: Count) -> Operations:
    """Operations of products of T tokens and N parameters on one of t ranks, in `passes` x. Elementwise."""
    return 2 * passes * token_count * parameter_count / tensor_size


@model("W = x T a (d + d_v) l / t", "Dao 2023, arXiv 2307.08691: 2 products forward, 5 backward")
def attention_operations(
    token_count: Count,
    head_count: Count,
    head_size: Count,
    value_size: Count,
    attended_length: Count,
    tensor_size: Count,
    passes: Count,
) -> Operations:
    """Operations of the scores and their products with values in one layer, without those that are masked.

    `passes` x is 1 forward and 2.5 backward, where scores are computed again. Elementwise.
    """
    products = token_count * head_count * (head_size + value_size) * attended_length
    return passes * products / tensor_size


@model("Q = x (T (h + w) + N) s / t", "every matrix is moved once in each pass")
def product_size(
    token_count: Count,
    hidden_size: Count,
    width: Count,
    parameter_count: Count,
    tensor_size: Count,
    element_size: Bytes,
    passes: Count,
) -> Bytes:
    """Bytes that products of T tokens move: tokens of h and of w elements, and N parameters on t ranks. Elementwise."""
    return passes * (token_count * (hidden_size * tensor_size + width) + parameter_count) * element_size / tensor_size


@model("Q = (c_h h + c_f f) T s / t", "elements that fused kernels read and write")
def pointwise_size(
    token_count: Count,
    hidden_size: Count,
    feed_forward_size: Count,
    tensor_size: Count,
    hidden_passes: Count,
    feed_forward_passes: Count,
    element_size: Bytes,
) -> Bytes:
    """Bytes of norms, residuals, rotations, activations and their gradients in one layer.

    `hidden_passes` c_h and `feed_forward_passes` c_f count elements read or written. Elementwise.
    """
    elements = hidden_passes * hidden_size + feed_forward_passes * feed_forward_size
    return token_count * elements * element_size / tensor_size
