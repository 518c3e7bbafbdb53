"""Ranks per node and socket, and k', the number of processes that communicate at the same time."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Bytes, Count, model

_CONFIGURATION = "Choi et al. 2020, sec. 4.1 and the authors' configuration (minitu/hpm)"


@model("p = g r", "definition; Choi et al. 2020, sec. 3.2: one process for each GPU")
def ranks_per_node(gpu_count: Count, ranks_per_gpu: Count) -> Count:
    """Ranks on a full node of g GPUs with r ranks each."""
    return gpu_count * ranks_per_gpu


@model("min(p, max(r, ⌈p / g⌉))", "definition")
def ranks_on_gpu(ranks_per_gpu: Count, ranks_per_node: Count, gpu_count: Count) -> Count:
    """Ranks that share a GPU of a full node: as many as stated or, if the node has more, its ranks divided evenly."""
    return np.minimum(ranks_per_node, np.maximum(ranks_per_gpu, np.ceil(ranks_per_node / gpu_count)))


@model("min(p, r d)", "definition")
def copying_ranks(node_rank_count: Count, ranks_on_gpu: Count, device_count: Count) -> Count:
    """Ranks of a node that copy over one link, which d devices with r ranks each share; at most its p ranks."""
    return np.minimum(node_rank_count, ranks_on_gpu * device_count)


@model("max(r, p / g)", "definition")
def ranks_per_device(ranks_per_gpu: Count, ranks_per_node: Count, gpu_count: Count) -> Count:
    """Mean ranks of each used GPU of a full node: as many as stated or, if the node has more, an even share."""
    return np.maximum(ranks_per_gpu, ranks_per_node / gpu_count)


@model("min(g, ⌈p / r⌉)", "definition")
def copying_devices(node_rank_count: Count, ranks_per_device: Count, gpu_count: Count) -> Count:
    """GPUs of a node whose p ranks copy, r on each of g GPUs."""
    return np.minimum(gpu_count, np.ceil(node_rank_count / ranks_per_device))


@model("⌈p / sockets⌉", "Choi et al. 2020, sec. 6.1: GPUs on a node are divided evenly")
def ranks_per_socket(ranks_per_node: Count, socket_count: Count) -> Count:
    """Ranks on a full socket; the first sockets take the remainder."""
    return np.ceil(ranks_per_node / socket_count)


@model("k' = min(p, P)", "definition; of processes that use the network of a node, k of Choi et al. 2020, Eq. 2")
def sharing_count(rank_count: Count, available_count: Count) -> Count:
    """Ranks or devices that share a node, a socket or a link at the same time: all that fit, at most all."""
    return np.minimum(rank_count, available_count)


@model("m' ⌈p min(1, d / g)⌉", "definition")
def ranks_per_domain(
    ranks_per_node: Count, domain_gpu_count: Count, gpu_count: Count, nodes_per_domain: Count
) -> Count:
    """Ranks of a link domain of d GPUs on nodes of g GPUs, of which m' belong to the domain and are used."""
    return nodes_per_domain * np.ceil(ranks_per_node * np.minimum(domain_gpu_count / gpu_count, 1.0))


@model("m' = ⌈N / ⌈N / max(1, d / g)⌉⌉", "assumed: segments of batch systems")
def nodes_per_domain(node_count: Count, domain_gpu_count: Count, gpu_count: Count) -> Count:
    """Nodes that a run on N nodes uses of each link domain of d GPUs on nodes of g GPUs; 1 if a node has several.

    A run is spread evenly over the fewest domains that hold it: 64 nodes use 16 in each of four racks of 18.
    """
    domains = np.ceil(node_count / np.maximum(domain_gpu_count / gpu_count, 1.0))
    return np.ceil(node_count / domains)


@model("g / d or d / g is whole", "definition")
def nests(domain_gpu_count: Count, gpu_count: Count) -> Count:
    """1 where a link domain is a part of a node or consists of whole nodes, else 0."""
    ratio = domain_gpu_count / gpu_count
    return np.asarray(np.maximum(ratio, 1 / ratio) % 1 == 0, dtype=np.float64)


@model("t · s", "definition")
def ranks_together(group_stride: Count, group_size: Count) -> Count:
    """Ranks that a group of s spans, t apart: the stride of the next kind of groups."""
    return group_stride * group_size


@model("P / s", "definition")
def group_count(rank_count: Count, group_size: Count) -> Count:
    """Groups of s ranks."""
    return rank_count / group_size


@model("s if all ranks are placed", "definition")
def placed_members(group_size: Count, rank_count: Count) -> Count:
    """Ranks of a group to place; NaN where the machine has too few nodes for all `rank_count` ranks."""
    return group_size + 0.0 * rank_count


@model("n mod d = 0", "definition")
def is_multiple(count: Count, divisor: Count) -> Count:
    """1 where a number is a multiple of a divisor, else 0. Elementwise; valid for divisors ≥ 1."""
    return np.asarray(np.mod(count, divisor) == 0, dtype=np.float64)


@model("m = min(s, max(1, ⌊d / t⌋))", "definition")
def members_in_domain(group_size: Count, group_stride: Count, domain_rank_count: Count) -> Count:
    """Ranks of a group of s, t apart, in one link domain of d ranks."""
    return np.minimum(group_size, np.maximum(np.floor(domain_rank_count / group_stride), 1.0))


@model("⌈r / 2⌉", _CONFIGURATION)
def pair_count(sharing_count: Count) -> Count:
    """Pairs of ranks that communicate inside one socket at the same time: 2 of 3 ranks on Summit, 1 of 2 on Lassen."""
    return np.ceil(sharing_count / 2)


@model("⌈P / p⌉", "definition")
def nodes_needed(rank_count: Count, ranks_per_node: Count) -> Count:
    """Required nodes of a number of ranks."""
    return np.ceil(rank_count / ranks_per_node)


@model("nodes in the file", "counted in application.grid.mapping_file")
def nodes_of_file(node_count: Count) -> Count:
    """Nodes that a file places ranks on."""
    return node_count


@model("⌈P / N⌉", "definition")
def ranks_in_turn(rank_count: Count, node_count: Count) -> Count:
    """Ranks of the fullest of N nodes that take ranks in turn."""
    return np.ceil(rank_count / node_count)


@model("P if ⌈P / p⌉ nodes are available", "definition")
def placed_count(rank_count: Count, needed_count: Count, available_count: Count) -> Count:
    """Number of ranks to place; NaN where the machine has too few nodes, so their messages are not counted."""
    return np.where(needed_count <= available_count, rank_count, np.nan)


@model("needed ≤ available", "definition")
def fits(needed_count: Count, available_count: Count) -> Count:
    """1 where the required amount is available, else 0."""
    return np.asarray(needed_count <= available_count, dtype=np.float64)


@model("M r", "definition")
def device_memory(memory_size: Bytes, ranks_per_device: Count) -> Bytes:
    """Memory required by all ranks of one GPU, or of one node of sockets, together."""
    return memory_size * ranks_per_device


@model("needed ≤ available", "definition")
def memory_fits(needed_size: Bytes, available_size: Bytes) -> Count:
    """1 where the required memory is available, else 0."""
    return np.asarray(needed_size <= available_size, dtype=np.float64)


@model("first = second", "definition")
def agrees(first_count: Count, second_count: Count) -> Count:
    """1 where two counts are equal, else 0."""
    return np.asarray(first_count == second_count, dtype=np.float64)
