"""Messages that share links: replayed messages per second, and rates of many flows.

The alternative is SimGrid 3.32, with its recorded output for the halo of 48 ranks: 26,000 to 38,000 messages per second
online, 115,000 to 121,000 actions per second from a trace (README of the flow-level data).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Row, median_seconds
from whatif.models.quantities import FloatArray
from whatif.simulation.flows import replay_flows
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind, Loop, RankProgram, Trace
from whatif.simulation.schedule import Costs, Places, Schedule, Step
from whatif.simulation.sharing import max_min
from whatif.simulation.topology import fat_tree, star

PEER_MESSAGES = 38_000
PEER_ACTIONS = 121_000
MESSAGE_SIZE = 131_072.0


def sharing() -> Iterator[Row]:
    """Rate of replay for halos and random pairs on one switch, and time to find the rates of a million flows."""
    halo = _halo(6, 8, 1000)
    messages, operations = np.count_nonzero(halo.step == Step.SEND), len(halo.step)
    seconds = _seconds(halo, 6)
    what = "flows: halo, 48 ranks, 6 on a node"
    for count, unit, peer, how in (
        (messages, "msg", PEER_MESSAGES, "online"),
        (operations, "op", PEER_ACTIONS, "replay"),
    ):
        ours = count / seconds
        yield Row(what, f"{ours:,.0f} {unit}/s", f"{peer:,} {unit}/s", ours / peer, f"SimGrid 3.32 on this, {how}")
    for what, schedule in (
        ("halo, 4096 ranks, 6 on a node", _halo(64, 64, 1)),
        ("random, 1024 nodes", _random(1024, 4)),
    ):
        count = np.count_nonzero(schedule.step == Step.SEND)
        yield Row(f"flows: {what}", f"{count / _seconds(schedule, 6 if 'halo' in what else 1):,.0f} msg/s")
    yield _rates(1_000_000)


def _seconds(schedule: Schedule, ranks_per_node: int) -> float:
    node = np.arange(schedule.rank_count, dtype=np.int32) // ranks_per_node
    network, places = star(int(node[-1]) + 1, 12.5e9, 1e-6), Places(node, node)
    return median_seconds(lambda: replay_flows(schedule, places, _costs(), network, compiled_loop=True), 3)


def _costs() -> Costs:
    """Costs without any time except that of the links, and 50 GB/s inside a node."""
    nothing, flight = np.zeros((3, 3, 2)), np.zeros((3, 3, 2))
    flight[:2, :, 1] = 1 / 50e9
    return Costs(nothing, nothing, flight, nothing, nothing, np.tile([0.0, np.inf], (3, 1)))


def _halo(width: int, height: int, iteration_count: int) -> Schedule:
    """Trace of Irecv, Isend and Waitall with four neighbours in a periodic grid of ranks."""
    rank = np.arange(width * height)
    x, y = rank % width, rank // width
    peers = [(x + 1) % width + y * width, (x - 1) % width + y * width]
    peers += [x + (y + 1) % height * width, x + (y - 1) % height * width]
    kinds = [Kind.IRECEIVE] * 4 + [Kind.ISEND] * 4 + [Kind.WAIT]
    tags = [1, 0, 3, 2, 0, 1, 2, 3, 0]
    return lower(_trace(np.stack([*peers, *peers, 0 * rank], axis=1), kinds, tags, iteration_count))


def _random(rank_count: int, iteration_count: int) -> Schedule:
    """Trace in which every rank repeatedly sends to a random other rank, with one permutation and size per round."""
    generator = np.random.default_rng(1)
    peers: list[NDArray[np.int64]] = []
    kinds: list[Kind] = []
    for _ in range(iteration_count):
        there = generator.permutation(rank_count)
        peers += [np.argsort(there), there]
        kinds += [Kind.IRECEIVE, Kind.ISEND]
    peers.append(np.zeros(rank_count, dtype=np.int64))
    sizes = generator.uniform(1e3, MESSAGE_SIZE, rank_count)
    tags = np.repeat(np.arange(iteration_count), 2).tolist()
    return lower(_trace(np.stack(peers, axis=1), [*kinds, Kind.WAIT], [*tags, 0], 1, sizes))


def _trace(
    peers: NDArray[np.int64], kinds: list[Kind], tags: list[int], iteration_count: int, sizes: FloatArray | None = None
) -> Trace:
    """Trace with the same calls in every rank, with peers [rank, call]; the last call waits for all others."""
    count = len(kinds)
    kind, tag = np.array(kinds, dtype=np.uint8), np.array(tags, dtype=np.int32)
    wait_start = np.append(np.zeros(count, dtype=np.int64), count - 1)
    waits = np.arange(1, count, dtype=np.int32)
    loops = (Loop(0, count, iteration_count),) if iteration_count > 1 else ()
    sizes = np.full(len(peers), MESSAGE_SIZE) if sizes is None else sizes
    programs = []
    for rank, row in enumerate(peers.astype(np.int32)):
        size = np.where(kind == Kind.IRECEIVE, sizes[row], sizes[rank])
        programs.append(RankProgram(kind, row, size, tag, wait_start, waits, loops=loops))
    return Trace(tuple(programs), np.arange(len(programs), dtype=np.int32))


def _rates(flow_count: int) -> Row:
    """Time to find max-min rates of random pairs in a three-level fat tree of 36-port switches."""
    generator, network = np.random.default_rng(1), fat_tree((18, 18, 36), (1, 18, 18), (1, 1, 1), 12.5e9, 1e-6)
    routes = network.routes(*generator.integers(0, network.node_count, (2, flow_count)))
    seconds = median_seconds(lambda: max_min(routes, network.capacities), 1)
    return Row(f"flows: rates of {flow_count:,} flows in a fat tree", f"{flow_count / seconds:,.0f} /s")
