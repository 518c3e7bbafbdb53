"""Steps of training a transformer: micro batches in a pipeline, exposed communication, state of a rank, rates.

Symbols: B sequences of a step, b of a micro batch, s tokens of a sequence, m micro batches; ranks of tensor t, context
c, pipeline p (v parts of the model on each) and expert parallelism x; D replicas.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from whatif.models.quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    Fraction,
    Operations,
    OperationsPerSecond,
    PerSecond,
    Seconds,
    model,
)

_DEFINITION: Final = "definition"
_PIPELINE: Final = "Narayanan et al. 2021, arXiv 2104.04473, sec. 2.2"
_MEMORY: Final = "Korthikanti et al. 2022, arXiv 2205.05198, sec. 4"


@model("D = P / (t c p)", _DEFINITION)
def replica_count(rank_count: Count, tensor_size: Count, context_size: Count, pipeline_size: Count) -> Count:
    """Replicas of the model: ranks over those of one replica. Elementwise."""
    return rank_count / (tensor_size * context_size * pipeline_size)


@model("m = B / (b D)", _DEFINITION)
def micro_batch_count(global_batch: Count, micro_batch: Count, replica_count: Count) -> Count:
    """Micro batches of a replica in one step. Elementwise."""
    return global_batch / (micro_batch * replica_count)


@model("T = b s / c", _DEFINITION)
def rank_tokens(micro_batch: Count, sequence_length: Count, context_size: Count) -> Count:
    """Tokens of a micro batch on one rank. Elementwise."""
    return micro_batch * sequence_length / context_size


def _fullest(layer_count: Count, pipeline_size: Count, virtual_count: Count) -> Count:
    """Layers of the fullest stage, whose parts have as many each; one stage has all layers, whatever its parts."""
    return np.minimum(np.ceil(layer_count / (pipeline_size * virtual_count)) * virtual_count, layer_count)


@model("n = min(⌈L / (p v)⌉ v, L) m L_k / L", _DEFINITION)
def layer_passes(
    counted_layers: Count, layer_count: Count, pipeline_size: Count, virtual_count: Count, micro_batch_count: Count
) -> Count:
    """Passes of micro batches through layers of a kind on the fullest stage in one step.

    `counted_layers` L_k are those of the kind, of L. Elementwise.
    """
    fullest = _fullest(layer_count, pipeline_size, virtual_count)
    return fullest * micro_batch_count * counted_layers / layer_count


@model("v = 1 or m mod p = 0", _PIPELINE)
def interleaves(count: Count, divisor: Count, virtual_count: Count) -> Count:
    """1 where the stages divide the micro batches, as interleaved parts need, else 0.

    `count` are the m micro batches, `divisor` the p stages. Elementwise; valid for p ≥ 1. Without interleaving (v = 1)
    any number of micro batches is possible.
    """
    return np.asarray((virtual_count <= 1) | (np.mod(count, divisor) == 0), dtype=np.float64)


@model("a - b", _DEFINITION)
def difference(first_count: Count, second_count: Count) -> Count:
    """Difference of two counts. Elementwise."""
    return first_count - second_count


@model("n / k", _DEFINITION)
def shared_count(count: Count, share_count: Count) -> Count:
    """Share of a count. Elementwise; valid for k ≥ 1."""
    return count / share_count


@model("2 v m if p > 1", _DEFINITION)
def stage_message_count(pipeline_size: Count, virtual_count: Count, micro_batch_count: Count) -> Count:
    """Messages that a stage sends in a step: of every part of the model, forward and backward. Elementwise."""
    return np.where(pipeline_size > 1, 2 * virtual_count * micro_batch_count, 0.0)


@model("t_s = t with sequence parallelism, else 1", _MEMORY)
def sequence_size(tensor_size: Count, *, sequence_parallel: bool) -> Count:
    """Tensor ranks that share the tokens where no product needs all of them. Elementwise."""
    return tensor_size if sequence_parallel else np.ones_like(tensor_size)


@model("T_x = T k x / E", _DEFINITION)
def expert_tokens(token_count: Count, active_count: Count, expert_size: Count, expert_count: Count) -> Count:
    """Tokens of one expert, evenly spread: those of x ranks, each sent to k of E experts. Elementwise."""
    return token_count * active_count * expert_size / expert_count


@model("T = n max(W / (P e), Q / BW)", "roofline")
def pass_time(
    operations: Operations,
    moved_size: Bytes,
    peak_rate: OperationsPerSecond,
    efficiency: Fraction,
    dram_bandwidth: BytesPerSecond,
    pass_count: Count,
) -> Seconds:
    """Time of n passes that compute and move data. Elementwise; valid for rates and efficiencies > 0."""
    return pass_count * np.maximum(operations / (peak_rate * efficiency), moved_size / dram_bandwidth)


@model("T = n Q / (BW e)", "roofline")
def moving_time(moved_size: Bytes, dram_bandwidth: BytesPerSecond, efficiency: Fraction, pass_count: Count) -> Seconds:
    """Time of n passes that move data at a share of the bandwidth. Elementwise; valid for rates > 0."""
    return pass_count * moved_size / (dram_bandwidth * efficiency)


@model("T = Q r / (BW e)", "Ren et al. 2021, arXiv 2101.06840: the host reads and writes all states once")
def host_update_time(
    moved_size: Bytes, memory_bandwidth: BytesPerSecond, ranks_per_socket: Count, efficiency: Fraction
) -> Seconds:
    """Time in which a socket, with memory of bandwidth BW, updates the weights of its r ranks. Elementwise."""
    return moved_size * ranks_per_socket / (memory_bandwidth * efficiency)


@model("T = φ Q / BW", _DEFINITION)
def offload_time(moved_size: Bytes, link_bandwidth: BytesPerSecond, exposed_fraction: Fraction) -> Seconds:
    """Exposed time of copies between host and device. Elementwise; valid for BW > 0."""
    return exposed_fraction * moved_size / link_bandwidth


@model("T = n t", _DEFINITION)
def counted_time(once_time: Seconds, pass_count: Count) -> Seconds:
    """Time of n passes. Elementwise."""
    return once_time * pass_count


@model("T = max(φ C, C - K)", "a share φ is never hidden, and computation hides no more than it takes")
def exposed_time(communication_time: Seconds, computation_time: Seconds, exposed_fraction: Fraction) -> Seconds:
    """Time of communication C that computation K does not hide. Elementwise; valid for fractions from 0 to 1."""
    exposed: Seconds = np.maximum(exposed_fraction * communication_time, communication_time - computation_time)
    return exposed


@model("T = β (p - 1) / (v m) K", _PIPELINE)
def bubble_time(
    stage_time: Seconds, pipeline_size: Count, virtual_count: Count, micro_batch_count: Count, idle_fraction: Fraction
) -> Seconds:
    """Time in which a stage of a pipeline waits, at the beginning and the end of a step.

    `stage_time` K is that of all micro batches. `idle_fraction` β is 1 for one forward, one backward, and 1/3 where
    gradients of weights fill the bubble (Qi et al. 2023, arXiv 2401.10241, ZB-H1). Elementwise; valid for m ≥ 1.
    """
    return idle_fraction * (pipeline_size - 1) / (virtual_count * micro_batch_count) * stage_time


@model("p' = L / min(⌈L / (p v)⌉ v, L)", _DEFINITION)
def stage_shares(layer_count: Count, pipeline_size: Count, virtual_count: Count) -> Count:
    """Stages as full as the fullest one that hold all layers: p, or fewer where they do not divide the layers.

    Elementwise; valid for p, v ≥ 1.
    """
    return layer_count / _fullest(layer_count, pipeline_size, virtual_count)


@model("N_r = N / (t p')", _DEFINITION)
def rank_parameters(parameter_count: Count, tensor_size: Count, stage_shares: Count) -> Count:
    """Parameters on one rank of the fullest stage, before they are spread over replicas. Elementwise."""
    return parameter_count / (tensor_size * stage_shares)


@model("M = N s / D", _DEFINITION)
def state_size(parameter_count: Count, element_size: Bytes, share_count: Count) -> Bytes:
    """Bytes of a state of N parameters that D replicas spread among them. Elementwise."""
    return parameter_count * element_size / share_count


@model("M = T (c_h h / t_s + (c_a w + c_f f) / t)", _MEMORY)
def layer_activations(
    token_count: Count,
    hidden_size: Count,
    attention_width: Count,
    inner_size: Count,
    tensor_size: Count,
    sequence_size: Count,
    hidden_element_size: Bytes,
    attention_element_size: Bytes,
    inner_element_size: Bytes,
) -> Bytes:
    """Bytes that one layer keeps of a micro batch for the backward pass.

    c_h counts bytes of a hidden element, which `sequence_size` t_s ranks divide: t with sequence parallelism, else 1.
    c_a and c_f count bytes of an element of queries, keys, values and outputs w, and of an inner element f.
    Elementwise.
    """
    divided = attention_element_size * attention_width + inner_element_size * inner_size
    return token_count * (hidden_element_size * hidden_size / sequence_size + divided / tensor_size)


@model("M = 5 T a s / t", _MEMORY)
def score_size(token_count: Count, head_count: Count, sequence_length: Count, tensor_size: Count) -> Bytes:
    """Bytes of the scores of attention that one layer keeps where its kernel is not fused. Elementwise."""
    return 5.0 * token_count * head_count * sequence_length / tensor_size


@model("Σ of the sizes", _DEFINITION)
def summed_size(*sizes: Bytes) -> Bytes:
    """Sum of sizes. Elementwise."""
    return reduce(np.add, sizes, np.zeros(()))


@model("M = A min(⌈L / (p v)⌉ v, L) min(m, p) (1 + (p - 1) / (p v) if v > 1)", _MEMORY)
def stage_activations(
    layer_size: Bytes, layer_count: Count, pipeline_size: Count, virtual_count: Count, micro_batch_count: Count
) -> Bytes:
    """Bytes of activations of the first stage, which keeps those of p micro batches. Elementwise."""
    layers = _fullest(layer_count, pipeline_size, virtual_count)
    kept = np.minimum(micro_batch_count, pipeline_size)
    interleaved = np.where(virtual_count > 1, 1 + (pipeline_size - 1) / (pipeline_size * virtual_count), 1.0)
    return layer_size * layers * kept * interleaved


@model("M = s T V / t if p = 1", "bf16 logits, their fp32 copy and its gradient")
def logits_memory(
    token_count: Count, vocabulary_size: Count, tensor_size: Count, pipeline_size: Count, element_size: Bytes
) -> Bytes:
    """Bytes of the logits of a micro batch; with several stages the last one, with fewer activations, has them.

    `element_size` s counts bytes of a logit. Elementwise.
    """
    return np.where(pipeline_size > 1, 0.0, element_size * token_count * vocabulary_size / tensor_size)


@model("R = B s / T", _DEFINITION)
def token_rate(global_batch: Count, sequence_length: Count, iteration_time: Seconds) -> PerSecond:
    """Tokens per second of all ranks. Elementwise; valid for times > 0."""
    return global_batch * sequence_length / iteration_time


@model("F R / P", "Chowdhery et al. 2022, arXiv 2204.02311")
def model_rate(token_operations: Operations, token_rate: PerSecond, rank_count: Count) -> OperationsPerSecond:
    """Operations a second on one rank, of the model or of those that are executed. Elementwise."""
    return token_operations * token_rate / rank_count


@model("MFU = F R / (P P_0)", "Chowdhery et al. 2022, arXiv 2204.02311")
def model_utilisation(model_rate: OperationsPerSecond, peak_rate: OperationsPerSecond) -> Fraction:
    """Share of the peak that operations take, of the model or executed (HFU). Elementwise; valid for peaks > 0."""
    return model_rate / peak_rate
