"""Layers of a transformer: parameters, operations and memory traffic of tokens.

Symbols: h hidden size, a heads, g heads of keys and values, d head size, f feed-forward size, V vocabulary, s sequence
length, T tokens of a micro batch on one rank, t tensor ranks.
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


@model("a b", _DEFINITION)
def product_count(first_count: Count, second_count: Count) -> Count:
    """Product of two counts. Elementwise."""
    return first_count * second_count


@model("N_a = 2 h d (a + g)", _DEFINITION)
def attention_parameters(hidden_size: Count, head_count: Count, kv_head_count: Count, head_size: Count) -> Count:
    """Parameters of the projections to queries, keys and values, and of their output, of one layer. Elementwise."""
    return 2 * hidden_size * head_size * (head_count + kv_head_count)


@model("N_a = N_q + h (r + d_r) + r a (d - d_r + d_v) + a d_v h,  N_q = r_q (h + a d), or h a d if r_q = 0", _LATENT)
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
    the latent vector, `query_rank` r_q that of queries, 0 without one; `value_size` is d_v. Elementwise.
    """
    width = head_count * head_size
    queries = np.where(query_rank > 0, query_rank * (hidden_size + width), hidden_size * width)
    latent = hidden_size * (kv_rank + rotary_size)
    expanded = kv_rank * head_count * (head_size - rotary_size + value_size)
    return queries + latent + expanded + head_count * value_size * hidden_size


@model("N_f = n h f,  n = 3 if gated, else 2", _DEFINITION)
def feed_forward_parameters(hidden_size: Count, feed_forward_size: Count, *, gated: bool) -> Count:
    """Parameters of a feed-forward block, or of one expert. Elementwise."""
    return (3.0 if gated else 2.0) * hidden_size * feed_forward_size


@model("L_x = ⌊(L - L_0) / i⌋", _DEFINITION)
def expert_layers(layer_count: Count, leading_dense_count: Count, expert_interval: Count) -> Count:
    """Layers with experts: every i-th one after the leading dense ones. Elementwise; valid for i ≥ 1."""
    return np.floor((layer_count - leading_dense_count) / expert_interval)


@model("N = L N_a + (L - L_x) N_f + L_x ((n + n_s) N_x + h E) + N_e", _DEFINITION)
def model_parameters(
    layer_count: Count,
    expert_layer_count: Count,
    attention_parameters: Count,
    dense_parameters: Count,
    expert_parameters: Count,
    expert_count: Count,
    shared_expert_count: Count,
    router_parameters: Count,
    embedding_parameters: Count,
) -> Count:
    """Parameters of a model, without norms and biases.

    `expert_count` n counts routed experts of a layer: all of them, or those that a token is sent to; n_s are shared
    ones. `router_parameters` h E are those of one layer, `embedding_parameters` N_e those of all embeddings that count.
    Elementwise.
    """
    experts = (expert_count + shared_expert_count) * expert_parameters + router_parameters
    dense = (layer_count - expert_layer_count) * dense_parameters
    return layer_count * attention_parameters + dense + expert_layer_count * experts + embedding_parameters


@model("l = s + ω (w (2 - w / s) - s),  w < s", "definition, causal masks")
def attended_length(sequence_length: Count, window: Count, windowed_fraction: Fraction) -> Count:
    """Twice the mean number of tokens that a token attends to: s under a causal mask.

    A share ω of the layers has a sliding window of w tokens. Elementwise; valid for s ≥ 1, w ≥ 1.
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


@model("F_h = F + 2 r (N_t - N_o) + r_a L a (d + d_v) l", "definition: recomputation counts")
def executed_operations(
    token_operations: Operations,
    token_parameters: Count,
    output_parameters: Count,
    layer_count: Count,
    head_count: Count,
    head_size: Count,
    value_size: Count,
    attended_length: Count,
    *,
    layer_passes: float,
    attention_passes: float,
) -> Operations:
    """Operations that are executed for one token of training, with those of recomputation.

    `layer_passes` r passes forward through layers, without the output embedding N_o, and `attention_passes` r_a through
    attention are computed again. Elementwise.
    """
    products = 2 * layer_passes * (token_parameters - output_parameters)
    attention = attention_passes * layer_count * head_count * (head_size + value_size) * attended_length
    return token_operations + products + attention


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
    """Operations of the scores and of their products with values in one layer, without those that are masked.

    `passes` x is 1 forward, and 2.5 backward, where scores are computed again. Elementwise.
    """
    products = token_count * head_count * (head_size + value_size) * attended_length
    return passes * products / tensor_size


@model("Q = x (T (h + w / t) + N / t) s", "every matrix is moved once in each pass")
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
    divided = (token_count * width + parameter_count) / tensor_size
    return passes * (token_count * hidden_size + divided) * element_size


@model("Q = (c_h h / t_s + c_f f / t) T s", "elements that fused kernels read and write")
def pointwise_size(
    token_count: Count,
    hidden_size: Count,
    inner_size: Count,
    tensor_size: Count,
    sequence_size: Count,
    hidden_passes: Count,
    inner_passes: Count,
    element_size: Bytes,
) -> Bytes:
    """Bytes of norms, residuals, rotations, activations and their gradients in one layer.

    `hidden_passes` c_h and `inner_passes` c_f count elements read or written of h hidden and f inner ones. Hidden
    elements are divided by `sequence_size` t_s ranks: t with sequence parallelism, else 1. Elementwise.
    """
    hidden = hidden_passes * hidden_size / sequence_size
    return token_count * (hidden + inner_passes * inner_size / tensor_size) * element_size


@model("Q = n w T s / t", _DEFINITION)
def token_size(token_count: Count, width: Count, tensor_size: Count, passes: Count, element_size: Bytes) -> Bytes:
    """Bytes of T tokens of w elements on one of t ranks, n times. Elementwise."""
    return passes * width * token_count * element_size / tensor_size


@model("w = a d + g (d + d_v)", _DEFINITION)
def projection_width(head_count: Count, kv_head_count: Count, head_size: Count, value_size: Count) -> Count:
    """Elements of queries, keys and values of a token. Elementwise."""
    return head_count * head_size + kv_head_count * (head_size + value_size)


@model("w = (a + g) (d + d_v)", _DEFINITION)
def attention_width(head_count: Count, kv_head_count: Count, head_size: Count, value_size: Count) -> Count:
    """Elements of queries, keys, values and outputs of a token. Elementwise."""
    return (head_count + kv_head_count) * (head_size + value_size)


@model("w = ⌈g / t⌉ (d + d_v)", _DEFINITION)
def kv_width(kv_head_count: Count, tensor_size: Count, head_size: Count, value_size: Count) -> Count:
    """Elements of keys and values of a token on one of t ranks. Elementwise; valid for t ≥ 1."""
    return np.ceil(kv_head_count / tensor_size) * (head_size + value_size)


@model("f' = ((L - L_x) f + L_x (k + n_s) f_x) / L", _DEFINITION)
def inner_size(
    layer_count: Count,
    expert_layer_count: Count,
    feed_forward_size: Count,
    expert_size: Count,
    active_expert_count: Count,
    shared_expert_count: Count,
) -> Count:
    """Inner elements of the blocks that a token passes, the mean of the layers. Elementwise; valid for L ≥ 1."""
    dense = (layer_count - expert_layer_count) * feed_forward_size
    experts = expert_layer_count * (active_expert_count + shared_expert_count) * expert_size
    return (dense + experts) / layer_count
