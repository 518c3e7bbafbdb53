"""Rounds of a collective between placed ranks: sizes, repetitions, messages that leave a node, and times."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np

from whatif import units
from whatif.models.collectives import RoundCounts, RoundSizes, RoundTimes
from whatif.models.quantities import Bytes, Core, Count, FloatArray, model

PlacedRounds = Annotated[FloatArray, units.ONE, Core("row", "round")]
SHARE, REPEATS, INNER, OUTER, BEYOND, LEAVING, MEAN_LEAVING, COMBINING = range(8)
"""Rows: size of the largest message as a share of the buffer, how often the round occurs, whether messages stay in an
inner domain, in an outer one, or leave it, the messages that leave a node at once: of the busiest node, and on average
over the nodes with ranks of the busiest link domain, and how often the round ends with a combination of what was
received."""
COUNTED: Final = "counted from the schedule that is simulated"
"""Source of placed rounds."""


@model("c_r", "definition")
def round_repeats(rounds: PlacedRounds, *, row: int = REPEATS) -> RoundCounts:
    """Number of repeats of each round, [..., round], or of those with a combination (row `COMBINING`)."""
    return np.asarray(rounds)[..., row, :]


@model("k_r = max(k_1, C k_m, 1)", COUNTED)
def leaving_count(rounds: PlacedRounds, channel_count: Count) -> RoundCounts:
    """Messages that share the ports of a node in each round, [..., round], with C channels over its link domain.

    k_1: messages of one channel that leave the busiest node at once; k_m: their greatest mean over the nodes of a
    domain that have ranks. Each channel uses another node of the domain.
    """
    rounds = np.asarray(rounds)
    spread = rounds[..., MEAN_LEAVING, :] * np.asarray(channel_count)[..., np.newaxis]
    return np.maximum(np.maximum(rounds[..., LEAVING, :], spread), 1.0)


@model("C = m · ports", "definition")
def domain_ports(node_count: Count, port_count: Count) -> Count:
    """Ports of a link domain of m nodes. Elementwise."""
    return node_count * port_count


@model("n_r / C", "definition")
def channel_sizes(round_sizes: RoundSizes, channel_count: Count) -> RoundSizes:
    """Size of the messages of one of C channels, [..., round]."""
    return round_sizes / np.asarray(channel_count)[..., np.newaxis]


@model("n_r = x_r n", "definition")
def round_sizes(rounds: PlacedRounds, message_size: Bytes, *, row: int) -> RoundSizes:
    """Size of the largest message of each round, [..., round], from the buffer n and its shares x_r in a row."""
    return np.asarray(rounds)[..., row, :] * np.asarray(message_size)[..., np.newaxis]


@model("T_r = max over the distances d of its messages of T_d(n_r)", "definition")
def slowest_times(
    rounds: PlacedRounds, intra_socket_time: RoundTimes, inter_socket_time: RoundTimes, inter_node_time: RoundTimes
) -> RoundTimes:
    """Time of the farthest messages of each round, [..., round]."""
    times = {INNER: intra_socket_time, OUTER: inter_socket_time, BEYOND: inter_node_time}
    slowest: FloatArray = np.zeros(())
    for row, time in times.items():
        slowest = np.maximum(slowest, np.where(np.asarray(rounds)[..., row, :] > 0, time, 0.0))
    return slowest
