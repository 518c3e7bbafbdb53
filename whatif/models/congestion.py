"""Congestion: the time that a phase takes longer because its messages share the links between nodes.

The messages of a phase are counted by link along the routes of the topology (`core.phases.link_sharing`). A link of
bandwidth B that m messages of n bytes cross is busy for m n / B; the fullest link decides. Messages of other jobs are
not counted. Valid for one phase at a time and links that serve their messages without loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Final

import numpy as np

from whatif import units
from whatif.models.collectives import RoundSizes, RoundTimes
from whatif.models.phase import KindSize, KindTime
from whatif.models.quantities import Core, FloatArray, Seconds, model

LinkBandwidths = Annotated[FloatArray, units.BYTE_PER_SECOND, Core("link")]
LinkCounts = Annotated[FloatArray, units.ONE, Core("row", "link", "step")]
RoundLoads = Annotated[FloatArray, units.ONE, Core("row", "round")]

NEAR, FAR, HOPS, SHARE, REPEATS, WAITS = range(6)
"""Rows of counts: messages over a link, messages over a link between groups, links of the longest route; of rounds also
the size of a message as a share of the buffer, how often the round occurs, and whether it starts for all at once."""
TAKEN: Final = 3
"""Row of the steps of an exchange: 1 if any rank sends a message in it, also inside a node."""
_SOURCE = "whatif; agrees with the link simulation (docs/congestion.md)"


@model("T_c = max(0, max over links and steps i of (s_i + α_i + Σ_j≥i m_j n_j / B) − T) + h λ", _SOURCE)
def exchange_congestion(
    message_counts: LinkCounts,
    link_bandwidths: LinkBandwidths,
    link_latency: Seconds,
    message_size: KindSize,
    message_time: KindTime,
    latency: KindTime,
    exchange_time: Seconds,
    *,
    step_kinds: tuple[int, ...],
    at_once: bool,
) -> Seconds:
    """Time by which the links prolong an exchange, whose messages alone take `exchange_time` T.

    Ranks send step after step: messages of step i start at s_i, the share of T that belongs to the steps before, at
    most T less the time of a message (0 with `at_once`). From α_i after the start, a link carries what is sent from
    step i on.
    `message_counts` [..., row, link, step] are m of the links, h, those of the longest route, and 1 for steps with
    messages: dimensions of one rank have none, and take no part of T. `link_bandwidths`
    [..., link] B of a link and, if it is stated, of one between groups; `link_latency` [...] λ; `message_size`,
    `message_time`, `latency` [..., kind] n, T and α of one message between nodes; `step_kinds` the kind of each step.
    0 where no message leaves a node, NaN for NaN counts.
    """
    counts = np.asarray(message_counts)
    sizes, times, starts = (_each_kind(item, max(step_kinds) + 1) for item in (message_size, message_time, latency))
    taken = [counts[..., TAKEN, 0, step] * times[..., kind] for step, kind in enumerate(step_kinds)]
    begins = [np.zeros(())] * len(taken) if at_once else _starts(taken, exchange_time)
    entries = [begin + starts[..., kind] for begin, kind in zip(begins, step_kinds, strict=True)]
    points = tuple(range(counts.ndim - 3))
    some, every = ((counts != 0).any(axis=points).tolist(), (counts != 0).all(axis=points).tolist())
    busy = np.asarray(exchange_time)
    for row, link in np.ndindex(2, counts.shape[-2]):
        waiting = np.zeros(())
        for step in reversed(range(len(step_kinds))):
            if some[row][link][step]:
                crossing, kind = counts[..., row, link, step], step_kinds[step]
                waiting = waiting + crossing * (sizes[..., kind] / link_bandwidths[..., -row])
                end = entries[step] + waiting
                busy = np.maximum(busy, end if every[row][link][step] else np.where(crossing != 0, end, 0.0))
    return np.asarray(busy - exchange_time + counts[..., HOPS, 0, :].max(axis=-1) * link_latency)


def _each_kind(values: FloatArray, kind_count: int) -> FloatArray:
    return np.broadcast_to(values, (*np.shape(values)[:-1], kind_count))


def _starts(taken: Sequence[FloatArray], exchange_time: FloatArray) -> list[FloatArray]:
    """Start of each step, from the times of one message of each."""
    sums = list(accumulate(taken, initial=np.zeros(())))
    scale = exchange_time / np.where(sums[-1] > 0, sums[-1], 1.0)
    # Ranks at an end of the grid take fewer steps: the message of a step is sent within T if its link is free.
    latest = [np.maximum(exchange_time - own, 0.0) for own in taken]
    return [np.minimum(before * scale, last) for before, last in zip(sums[:-1], latest, strict=True)]


@model("T' = T + T_c", "definition")
def congested_time(time: Seconds, congestion_time: Seconds) -> Seconds:
    """Time of a phase with the congestion of its links. Elementwise."""
    return time + congestion_time


@model("T_c = Σ_r c_r [max(α_r + n_r / B − T_r, w_r α_r + m_r n_r / B − T_r, 0) + h_r λ]", _SOURCE)
def rounds_congestion(
    round_loads: RoundLoads,
    link_bandwidths: LinkBandwidths,
    link_latency: Seconds,
    message_sizes: RoundSizes,
    round_times: RoundTimes,
    latencies: RoundTimes,
) -> Seconds:
    """Time by which the links prolong a collective, whose rounds follow one another.

    `round_loads` [..., row, round] give m_r, the messages over the fullest link, h_r, c_r, how often a round occurs,
    and w_r, 0 where ranks drift apart and latencies overlap; `round_times` [..., round] are T_r, the times that the
    rounds are charged with alone; `message_sizes` and `latencies` n_r and α_r of one message between nodes. Rounds that
    stay in nodes have no congestion. The rest is as in `exchange_congestion`.
    """
    loads = np.asarray(round_loads)
    result = loads[..., HOPS, :] * np.asarray(link_latency)[..., np.newaxis]
    alone, shared, crosses = latencies * 0.0, latencies * 0.0, (loads[..., (NEAR, FAR), :] != 0).any(axis=-2)
    for row in (NEAR, FAR):
        crossing, once = loads[..., row, :], message_sizes / link_bandwidths[..., -row, np.newaxis]
        shared = np.maximum(shared, crossing * once)
        alone = np.maximum(alone, np.minimum(crossing, 1.0) * once)
    busy = np.maximum(latencies + alone, loads[..., WAITS, :] * latencies + shared)
    result = result + np.where(crosses, np.maximum(busy - round_times, 0.0), 0.0)
    return np.asarray((loads[..., REPEATS, :] * result).sum(axis=-1))
