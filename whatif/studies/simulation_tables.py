"""Simulations and traces as tables: ranks, messages, critical path, slopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.simulation.activity import GROUPS
from whatif.simulation.critical import CriticalPath, critical_path
from whatif.simulation.rank_programs import COLLECTIVES, Kind, RankProgram, Trace
from whatif.simulation.schedule import Costs
from whatif.simulation.schedule_checks import cost_table
from whatif.studies.simulation_run import Simulation
from whatif.table import Column, Table
from whatif.units import BYTE, ONE, SECOND
from whatif.vocabulary import DISTANCES, PROTOCOLS, SimulationTable

_COSTS: Final = ("sender's processor", "sending side", "flight", "receiver's processor", "receiving side")


def rank_table(simulation: Simulation) -> Table:
    """Time of each rank by kind of call, in s, as the simulator of Choi et al. prints it."""
    spent = simulation.activity
    times = spent.rank_times()
    columns = {
        "rank": Column(np.arange(spent.rank_count, dtype=np.float64), ONE),
        "node": Column(simulation.node.astype(np.float64), ONE),
        "time": Column(spent.rank_ends(), SECOND),
        **{f"{group}_time": Column(times[:, place], SECOND) for place, group in enumerate(GROUPS)},
    }
    return Table(columns)


def message_table(simulation: Simulation) -> Table:
    """Sender, receiver and size of every message, when its send began and when its receive ended."""
    spent = simulation.activity
    columns = {
        "sender": Column(spent.sender.astype(np.float64), ONE),
        "receiver": Column(spent.receiver.astype(np.float64), ONE),
        "message_size": Column(spent.message_size, BYTE),
        "sent": Column(spent.sent, SECOND),
        "received": Column(spent.received, SECOND),
    }
    return Table(columns)


def path_table(simulation: Simulation) -> Table:
    """Parts of the critical path: computations, then the costs of messages by distance."""
    path = _path(simulation)
    costs = simulation.machine.costs
    table, names = cost_table(costs), _protocol_names(costs)
    places = list(np.ndindex(3, costs.protocol_count))
    rows: list[tuple[Any, ...]] = [("computation", "", "", np.nan, np.nan, path.compute_time)]
    for number, cost in enumerate(_COSTS):
        for distance, protocol in places:
            at = (number, distance, protocol)
            count, size = float(path.message_count[at]), float(path.byte_count[at])
            time = float(np.dot([count, size], table[at]))
            if time:
                rows.append((cost, DISTANCES[distance], names[protocol], count, size, time))
    kinds = {"part": None, "distance": None, "protocol": None, "count": ONE, "size": BYTE, "time": SECOND}
    return Table.of_rows(kinds, rows)


def _protocol_names(costs: Costs) -> Sequence[str]:
    """Protocols; or pieces of a calibration, of eager messages and of longer ones by blocking and nonblocking sends."""
    if not costs.overhead_first:
        return PROTOCOLS
    pieces = range(1, costs.eager_count + 1)
    protocols = (*PROTOCOLS[1:], f"nonblocking {PROTOCOLS[-1]}")
    return [f"piece {number}, {protocol}" for protocol in protocols for number in pieces]


def slope_table(simulation: Simulation) -> Table:
    """Change of the run time with latency and bandwidth at each distance, for the same critical path.

    `latency_slope`: s of run time per s of latency. `path_size`: B on the path, or s of run time per s/B.
    """
    path = _path(simulation)
    kinds = {"distance": None, "latency_slope": ONE, "path_size": BYTE}
    return Table.of_rows(
        kinds, list(zip(DISTANCES, path.latency_slope.sum(axis=1), path.byte_slope.sum(axis=1), strict=True))
    )


def _path(simulation: Simulation) -> CriticalPath:
    if simulation.replay is None:
        raise UsageError("no critical path where messages share links: every message depends on all others")
    return critical_path(simulation.schedule, simulation.replay, simulation.machine.costs)


def trace_table(trace: Trace) -> Table:
    """Operations of each rank of a trace, the messages and bytes it sends, and the time it computes."""
    of_program = [_counted(program) for program in trace.programs]
    counted = np.array([of_program[number] for number in trace.program_of.tolist()], dtype=np.float64)
    names = {
        "program": ONE,
        "operation_count": ONE,
        "send_count": ONE,
        "sent_size": BYTE,
        "receive_count": ONE,
        "collective_count": ONE,
        "compute_time": SECOND,
    }
    columns = [trace.program_of.astype(np.float64), *counted.T]
    ranks = {"rank": Column(np.arange(trace.rank_count, dtype=np.float64), ONE)}
    named = zip(names.items(), columns, strict=True)
    return Table(ranks | {name: Column(values, dimension) for (name, dimension), values in named}, trace.notes)


def _counted(program: RankProgram) -> tuple[float, ...]:
    repeats = np.ones(len(program))
    for loop in program.loops:
        repeats[loop.first : loop.last] = loop.count
    sends = repeats * np.isin(program.kind, (Kind.SEND, Kind.ISEND))
    receives = repeats * np.isin(program.kind, (Kind.RECEIVE, Kind.IRECEIVE))
    collectives = repeats * np.isin(program.kind, list(COLLECTIVES))
    computed = repeats * (program.kind == Kind.COMPUTE) @ program.size
    sums = (repeats.sum(), sends.sum(), sends @ program.size, receives.sum(), collectives.sum(), computed)
    return tuple(float(value) for value in sums)


TABLES: Final[dict[SimulationTable, Callable[[Simulation], Table]]] = {
    "ranks": rank_table,
    "messages": message_table,
    "path": path_table,
    "slopes": slope_table,
}
"""Tables of a simulation by name."""
