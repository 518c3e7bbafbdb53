"""Time of a communication phase, from the message counts of the ranks and the time of one message.

Counts come from `placement.rank_message_counts` and `placement.node_message_counts`. Properties of one
message are [..., kind] (an axis of length 1 applies to all kinds); times are given once per distance.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from whatif import units
from whatif.models.placement import NodeCounts, RankCounts
from whatif.models.quantities import Core, Count, FloatArray, Seconds, model

KindTime = Annotated[FloatArray, units.SECOND, Core("kind")]
KindSize = Annotated[FloatArray, units.BYTE, Core("kind")]
KindRate = Annotated[FloatArray, units.BYTE_PER_SECOND, Core("kind")]


@model("T = max over ranks of Σ m_dk T_dk", "Choi et al. 2020, section 3.2, and its simulator")
def serialised_time(
    rank_counts: RankCounts,
    intra_socket_time: KindTime,
    inter_socket_time: KindTime,
    inter_node_time: KindTime,
) -> Seconds:
    """Time until the slowest rank has sent its messages, one after the other.

    `rank_counts` [..., class, distance, kind] and three times [..., kind] give [...]. The paper has the parameters
    of each distance; that the sends of a rank queue behind each other is in the authors' simulator alone
    (minitu/codes @c9327e64, simplenet-upd.c). Its additional queue on the receiving side is left out. A message that
    is not sent takes no time, even if its time is infinite; NaN counts (no such placement) give NaN.
    """
    times = _by_distance(intra_socket_time, inter_socket_time, inter_node_time)
    return _largest_sum(rank_counts, times)


@model("T = max over ranks of max T_dk", "messages without shared resources, after Choi et al. 2020, Listing 1")
def concurrent_time(
    rank_counts: RankCounts,
    intra_socket_time: KindTime,
    inter_socket_time: KindTime,
    inter_node_time: KindTime,
) -> Seconds:
    """Time of the slowest message of any rank: all messages travel at once and share no resources.

    A lower bound of `serialised_time`, with the same shapes and edge cases.
    """
    counts = np.asarray(rank_counts)
    times = _by_distance(intra_socket_time, inter_socket_time, inter_node_time)
    slowest = np.where(np.isnan(counts), np.nan, np.where(counts > 0, times, 0.0))
    return np.asarray(slowest.max(axis=(-3, -2, -1)))


@model("T = T_domain if d ≥ g, else T_host", "definition")
def time_in_node(domain_time: Seconds, host_time: Seconds, domain_gpu_count: Count, gpu_count: Count) -> Seconds:
    """Time of messages inside a node of g GPUs: through main memory if its link domains have less. Elementwise."""
    return np.where(domain_gpu_count >= gpu_count, domain_time, host_time)


@model("T = T_write + T_message + T_read", "definition")
def staged_time(message_time: Seconds, write_time: Seconds, read_time: Seconds) -> Seconds:
    """Time of messages that are copied to main memory before they leave and back after they arrive. Elementwise."""
    return write_time + message_time + read_time


@model("t_on = 2 T_on", "both ends copy, as in a ping-pong")
def busy_time(message_time: Seconds) -> Seconds:
    """Time that a rank is busy with a message in main memory that it sends inside its node. Elementwise.

    Both ends are busy for the whole duration of a message, and in an exchange a rank receives as much as it sends.
    Peer links of GPUs carry both directions at once, without the ranks: there the time is that of the message.
    """
    return 2 * message_time


@model(
    "T = max over ranks of Σ (m_on t_on + m_off α) + max over nodes of Σ m_off n / R(k), "
    "R(k) = min(R_Cb + (k − 1) R_Ci, max(R_N, R_Cb))",
    "whatif, with the parameters of Choi et al. 2020, Tables 2 and 4",
)
def node_aware_time(
    rank_counts: RankCounts,
    node_counts: NodeCounts,
    intra_socket_time: KindTime,
    inter_socket_time: KindTime,
    message_size: KindSize,
    process_count: Count,
    latency: KindTime,
    base_bandwidth: KindRate,
    additional_bandwidth: KindRate,
    largest_bandwidth: KindRate,
) -> Seconds:
    """Time of a phase in which each rank handles its own messages and each node its outgoing bytes.

    - Inside a node a rank is busy with each of its messages for `intra_socket_time` and `inter_socket_time`: those
      of `busy_time`, of postal times. By Table 4 further pairs add nearly the bandwidth of the first
      (R_Ci ≈ 0.85 R_Cb), so the rank is the bottleneck.
    - Between nodes a rank only starts the message (`latency`, with the copies of a staged message). The bytes that
      leave a node share its rate R(k), whichever rank sends them, with k = min(k', outgoing messages) and
      `process_count` = k', the communicating ranks of a node. `largest_bandwidth` is R_N, that of the ports of a node
      together, infinite without ports. Sending and receiving do not share it.

    The slowest rank and the slowest node need not coincide, so the sum is an upper bound. `node_counts`
    [..., node_class, kind], `process_count` [...], the rest as in `serialised_time`. The [..., kind] arguments
    are those of the protocol of each kind; where Eq. 3 holds, `base_bandwidth` is 1/β and
    `additional_bandwidth` 0.

    No number is fitted to halo times, but the terms were chosen knowing the 20 measured times of Jacobi2D's
    slowest rank (mean absolute error 15 %; max-rate 25 %, K-model 36 %, postal 56 %), so this error does not
    come from a test on new data. On one node of Summit (4 and 6 ranks) the factor 2 overestimates by 52 and
    33 %.
    """
    busy = _by_distance(intra_socket_time, inter_socket_time, latency)
    counts = np.asarray(node_counts)
    k = np.clip(counts.sum(axis=-1), 1.0, np.asarray(process_count)[..., np.newaxis])[..., np.newaxis]
    base, additional, largest = (
        np.asarray(rate)[..., np.newaxis, :] for rate in (base_bandwidth, additional_bandwidth, largest_bandwidth)
    )
    added = (k - 1) * np.where(k == 1, 0.0, additional)
    rate = np.minimum(base + added, np.maximum(largest, base))
    sent = counts * np.asarray(message_size)[..., np.newaxis, :] / rate
    injection: FloatArray = sent.sum(axis=-1).max(axis=-1)
    return np.asarray(_largest_sum(rank_counts, busy) + injection)


def _largest_sum(rank_counts: FloatArray, times: FloatArray) -> FloatArray:
    """Largest sum of counts times durations over the classes [..., class, distance, kind]."""
    counts = np.asarray(rank_counts)
    spent: FloatArray = counts * np.where(counts != 0, times, 0.0)  # 0 · ∞ would be NaN
    return np.asarray(spent.sum(axis=(-2, -1)).max(axis=-1))


def _by_distance(intra_socket: FloatArray, inter_socket: FloatArray, inter_node: FloatArray) -> FloatArray:
    """Three arrays [..., kind] joined as [..., 1, distance, kind], to broadcast with counts that have a class axis."""
    times = np.stack(np.broadcast_arrays(intra_socket, inter_socket, inter_node), axis=-2)
    return np.asarray(times[..., np.newaxis, :, :])
