"""The K-model: effective number of processes of a node that send over the network."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Count, model


@model("k = K_inter / K_total · k'", "Choi et al. 2020, Eq. 4")
def k_factor(inter_node_count: Count, total_count: Count, process_count: Count) -> Count:
    """Effective k of the max-rate model: k' times the share of messages that leave the node, `K_inter / K_total · k'`.

    `inter_node_count` is K_inter, the most inter-node messages that any node sends, `total_count` is K_total,
    the most messages of any kind that any node sends, and `process_count` is k', the processes of a node that
    communicate. The two maxima may be on different nodes. Elementwise over any broadcastable shapes; valid
    for 0 ≤ `inter_node_count` ≤ `total_count`; k is 0 without messages. Source: Choi et al., ICS 2020, Eq. 4,
    Table 5.
    """
    # Without messages K_inter is 0 as well, and 0 / 1 gives the required 0.
    return inter_node_count / np.where(total_count > 0, total_count, 1.0) * process_count


@model("max(k, 1)", "whatif, for Choi et al. 2020, Eqs. 2 and 5")
def effective_process_count(k: Count) -> Count:
    """Effective k of a message that crosses the network, at least one process: `max(k, 1)`.

    A message between nodes is sent by at least one process, but Eq. 4 gives k < 1 where fewer than one
    message in k' leaves the node; Eq. 2 would then exceed R_Cb. The paper does not clamp: its Table 5 has no
    k below 1. Elementwise over any shape; valid for `k` ≥ 0.
    """
    return np.maximum(k, 1.0)
