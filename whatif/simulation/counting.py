"""Messages that the nodes of a machine send, counted from a schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whatif.simulation.communicators import IS_COLLECTIVE
from whatif.simulation.schedule import Schedule, Step


def node_message_counts(schedule: Schedule, node: NDArray[np.int32], *, collectives: bool = True) -> tuple[int, int]:
    """Largest number of messages of a node to others, and largest number of all messages of a node.

    `node` [rank] is the node of each rank, ≥ 0. The two maxima may be of different nodes. Messages of a rank
    to itself are not counted, those of collectives only with `collectives`. Source: Choi et al., ICS 2020,
    Eq. 4.
    """
    is_counted = schedule.step == Step.SEND
    if not collectives:
        is_counted &= ~IS_COLLECTIVE[schedule.origin_kind]
    sends = np.flatnonzero(is_counted)
    sender = schedule.rank_of(sends)
    receiver = schedule.peer[sends]
    start, end = node[sender], node[receiver]
    most_sent = (int(np.bincount(start[chosen]).max(initial=0)) for chosen in (start != end, sender != receiver))
    inter_node_count, total_count = most_sent
    return inter_node_count, total_count
