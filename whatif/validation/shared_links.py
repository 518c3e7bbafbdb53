"""Runs of SimGrid 3.32 over shared links as schedules: every call that SMPI makes, and its additions.

One switch, a link of 12.5 GB/s and 1 us to each node in each direction; ranks of one node exchange at 50 GB/s. SMPI
puts 16 B before every message, does not let sends of up to 64 KiB wait for their end, and starts the flow of a message
when its receive is posted. Times count from a barrier, which rank 0 leaves before all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.simulation.flows import FlowReplay, replay_flows
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind, RankProgram, Trace
from whatif.simulation.schedule import Costs, Places, Schedule
from whatif.simulation.topology import Topology, star
from whatif.validation.measured_kinds import Row

HEADER: Final = 16.0
DETACHED: Final = 65536
BANDWIDTH: Final = 12.5e9
LATENCY: Final = 1e-6
LOOPBACK: Final = 50e9
CROSS_TRAFFIC: Final = 0.05
Call = tuple[Kind, int, float, int, list[int]]
"""Kind, peer, size, tag, and how many calls back the calls are that it waits for."""
Peers = list[tuple[int, int]]
"""Direction of a message, and the other rank."""


def simulated_time(row: Row) -> float:
    """Simulated time of a row of `validation/simgrid_flows.csv` in s."""
    schedule = schedule_of_row(row)
    return as_seen_by_the_ranks(schedule, replay_flows(schedule, *machine_of_row(row), compiled_loop=False))


def program(calls: list[Call]) -> RankProgram:
    """Calls of one rank."""
    return RankProgram(
        kind=np.array([call[0] for call in calls], dtype=np.uint8),
        peer=np.array([call[1] for call in calls], dtype=np.int32),
        size=np.array([call[2] for call in calls], dtype=np.float64),
        tag=np.array([call[3] for call in calls], dtype=np.int32),
        wait_start=np.cumsum([0] + [len(call[4]) for call in calls]),
        waits=np.array([back for call in calls for back in call[4]], dtype=np.int32),
    )


def schedule_of(ranks: list[list[Call]]) -> Schedule:
    """Schedule of the calls of all ranks."""
    return lower(Trace(tuple(map(program, ranks)), np.arange(len(ranks), dtype=np.int32)))


def schedule_of_row(row: Row) -> Schedule:
    """Schedule of a row: the end of the barrier, then the iterations."""
    rank_count = int(row["P"])
    # The ranks of a node compute on its one core, in turns: each is done when all of them are.
    compute = float(row["comp"]) * int(row["rpn"])
    before: list[Call] = [(Kind.COMPUTE, 0, compute, 0, [])] if compute else []
    repeated = ((before + iteration(row, rank)) * int(row["iters"]) for rank in range(rank_count))
    return schedule_of([_released(rank, rank_count) + calls for rank, calls in enumerate(repeated)])


def _released(rank: int, rank_count: int) -> list[Call]:
    """End of the barrier: a message from rank 0 to all others."""
    if rank:
        return [(Kind.RECEIVE, 0, HEADER, 1, [])]
    return [(Kind.ISEND, peer, HEADER, 1, []) for peer in range(1, rank_count)]


def iteration(row: Row, rank: int) -> list[Call]:
    """Calls of one iteration: Irecv from all, Isend to all, Waitall; in pairs each rank does one of both."""
    size, detached = float(row["bytes"]) + HEADER, float(row["bytes"]) <= DETACHED
    sources, destinations = peers_of(row, rank)
    calls: list[Call] = [(Kind.IRECEIVE, peer, size, 2 + way, []) for way, peer in sources]
    calls += [(Kind.ISEND, peer, size, 2 + way, []) for way, peer in destinations]
    waited = range(1 + len(destinations) if detached else 1, len(calls) + 1)
    return [*calls, (Kind.WAIT, 0, 0.0, 0, list(waited))]


def peers_of(row: Row, rank: int) -> tuple[Peers, Peers]:
    """Ranks that a rank receives from and sends to."""
    first, second, rank_count = int(row["A"]), int(row["B"]), int(row["P"])
    if row["pattern"] == "pairs":
        sources = [(0, rank - second)] if second <= rank < second + first else []
        return sources, [(0, rank + second)] if rank < first else []
    if row["pattern"] == "ring":
        return [(0, (rank - 1) % rank_count)], [(0, (rank + 1) % rank_count)]
    x, y = rank % first, rank // first
    right, left = (x + 1) % first + y * first, (x - 1) % first + y * first
    above, below = x + (y + 1) % second * first, x + (y - 1) % second * first
    sources = [(1, right), (0, left), (3, above), (2, below)]
    return sources, [(0, right), (1, left), (2, above), (3, below)]


def as_seen_by_the_ranks(schedule: Schedule, replayed: FlowReplay) -> float:
    """Longest time of a rank since it left the barrier."""
    left = replayed.end[schedule.rank_start[:-1]]
    left[0] = 0.0
    return float((replayed.end[schedule.rank_start[1:] - 1] - left).max())


def linear(constant: float, per_byte: float, inter_node: tuple[float, float] | None = None) -> FloatArray:
    """Costs that are the same for all protocols, with another one between nodes."""
    table = np.empty((3, 3, 2))
    table[:] = constant, per_byte
    table[2] = inter_node or (constant, per_byte)
    return table


def machine_of_row(row: Row) -> tuple[Places, Costs, Topology]:
    """Machine of a row: places of the ranks, costs of messages, and links."""
    node = np.arange(int(row["P"]), dtype=np.int32) // int(row["rpn"])
    free, flight = linear(0.0, 0.0), linear(0.0, 1 / LOOPBACK, (0.0, 0.0))
    # The barrier's messages are sent at once: their receives have been posted before.
    costs = Costs(free, free, flight, free, free, np.tile([0.0, HEADER], (3, 1)))
    links = star(int(node.max()) + 1, BANDWIDTH, LATENCY)
    return Places(node, node), costs, replace(links, cross_traffic=CROSS_TRAFFIC * (row["config"] == "crosstraffic"))
