"""Table of a phase of collective operations."""

from __future__ import annotations

from typing import Literal

from whatif.schema.fields import Bytes, Count, CountOrZero, FactorFromOne, StrictTable
from whatif.vocabulary import CollectiveModel, CollectiveOperation, DistanceName


class CollectivePhase(StrictTable):
    """A collective operation over all ranks, or in every group of a kind at once, by a named algorithm."""

    kind: Literal["collective"]
    """A collective operation."""
    operation: CollectiveOperation | None = None
    """Operation whose fastest algorithm `best` is (default: allreduce), or that was measured; otherwise that of the
    algorithm."""
    algorithm: Literal[
        "best",
        "recursive_doubling",
        "rabenseifner",
        "ring",
        "bidirectional_ring",
        "hierarchical",
        "switch_reduction",
        "double_binary_tree",
        "recursive_halving",
        "ring_reduce_scatter",
        "pairwise_reduce_scatter",
        "bruck_allgather",
        "ring_allgather",
        "pairwise",
        "bruck_alltoall",
        "binomial_tree",
        "scatter_ring_allgather",
        "linear_broadcast",
        "ring_broadcast",
        "switch_multicast",
        "linear_reduce",
        "binomial_gather",
        "linear_gather",
        "binomial_scatter",
        "linear_scatter",
        "dissemination",
        "measured",
    ]
    """Algorithm of the operation (docs/domains.md lists them). best: the fastest one; measured: by the times of
    `[platform.network.collectives.measured]`; hierarchical: inside a node or link domain, then between them;
    switch_reduction and switch_multicast: by the switches of the network."""
    model: CollectiveModel
    """Model of the messages, or nccl: a library of GPUs, by the constants of NCCL's tuner."""
    message_size: Bytes = 0.0
    """Size of the buffer that is broadcast, reduced or gathered, or that one rank sends in an all-to-all; not used by a
    dissemination barrier."""
    imbalance: FactorFromOne = 1.0
    """Largest message of an all-to-all over the mean one; the largest decides every round. At most the ranks that take
    part."""
    distance: DistanceName | None = None
    """Distance whose parameters apply to every round; by default the farthest one that a message of the round
    crosses."""
    group: str | None = None
    """Group of `[application.groups]`; by default all ranks take part."""
    channel_count: Count | None = None
    """Parallel rings or trees, each with an equal part of the buffer, that leave a node, or a link domain of several
    nodes, through different ports. Default: its ports for messages of device memory, else 1. Not with `distance`,
    whose messages all leave main memory."""
    arithmetic: Literal["memory", "none"] = "memory"
    """Arithmetic of a reduction by messages. memory: by the memory bandwidth of a rank, where the platform states it;
    none: not counted. Measured times and those of `nccl` include it."""
    operation_count: CountOrZero = 1.0
    """Operations in one iteration."""
