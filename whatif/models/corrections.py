"""Corrections of predicted times: factors and added times that measured runs determine."""

from __future__ import annotations

import numpy as np

from whatif.models.collectives import RoundCounts
from whatif.models.placement import RankCounts
from whatif.models.quantities import Count, FloatArray, Seconds, model

_SOURCE = "whatif: linear in every correction, so that runs determine them by least squares"


@model("T = f t", _SOURCE)
def corrected_time(time: Seconds, factor: Count) -> Seconds:
    """Time of a kernel with its factor f. Elementwise; valid for f > 0."""
    return time * factor


@model("T = (f + d log2 N) t + (s − 1) t_shared + (c − 1) t_congestion + m t_m", _SOURCE)
def corrected_message_time(
    time: Seconds,
    message_factor: Count,
    doubling_factor: Count,
    node_count: Count,
    sharing_factor: Count,
    shared_time: Seconds,
    congestion_factor: Count,
    congestion_time: Seconds,
    message_count: Count,
    message_time: Seconds,
) -> Seconds:
    """Time of a communication phase with its corrections; neutral for f = s = c = 1, d = 0 and t_m = 0.

    `message_factor` is f, `doubling_factor` d, `node_count` N, `sharing_factor` s, `congestion_factor` c,
    `message_time` t_m. `shared_time` and `congestion_time` [...] are the parts of `time` that are due to sharing of a
    node's adapter and of the links between nodes, `message_count` m the messages of the busiest rank. Elementwise;
    valid for N ≥ 1.
    """
    growth = message_factor + doubling_factor * np.log2(np.maximum(node_count, 1.0))
    shared = (sharing_factor - 1.0) * shared_time + (congestion_factor - 1.0) * congestion_time
    return growth * time + shared + message_count * message_time


@model("T = t_0 + t_d log2 N", _SOURCE)
def correction_time(overhead_time: Seconds, doubling_time: Seconds, node_count: Count) -> Seconds:
    """Time added to an iteration: a constant t_0, and t_d for each doubling of the N nodes. Elementwise; N ≥ 1."""
    return overhead_time + doubling_time * np.log2(np.maximum(node_count, 1.0))


@model("t_shared = t − t(k = 1)", "definition")
def time_of_sharing(time: Seconds, time_alone: Seconds) -> Seconds:
    """Part of a communication time that is due to sharing, from the time without any. Elementwise."""
    return np.maximum(time - time_alone, 0.0)


@model("m = R max over ranks of Σ m_dk", "definition")
def busiest_count(rank_counts: RankCounts, repeat_count: Count) -> Count:
    """Messages that the busiest rank sends in `repeat_count` exchanges; [..., class, distance, kind] -> [...]."""
    counts: FloatArray = np.asarray(rank_counts)
    return np.asarray(repeat_count * counts.sum(axis=(-2, -1)).max(axis=-1))


@model("m = m_a of the algorithm a with the least T_a", "definition")
def count_of_fastest(*times_and_counts: FloatArray) -> Count:
    """Rounds of the fastest algorithm, from the times of all and their rounds in the same order. Elementwise."""
    times, counts = np.split(np.stack(np.broadcast_arrays(*times_and_counts)), 2)
    return np.asarray(np.take_along_axis(counts, times.argmin(axis=0, keepdims=True), axis=0)[0])


@model("m = R Σ_r c_r", "definition")
def all_rounds(round_counts: RoundCounts, repeat_count: Count) -> Count:
    """Rounds of `repeat_count` collective operations; [..., round] -> [...]."""
    return np.asarray(repeat_count * np.asarray(round_counts).sum(axis=-1))
