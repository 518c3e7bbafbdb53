"""Measurements meant as between nodes whose processes appear to share one."""

from __future__ import annotations

import re
from typing import Final

from whatif.fitting.points import Choice
from whatif.table import Table
from whatif.units import SECOND, format_quantity

SHORTEST_BETWEEN_NODES: Final = 0.7e-6
"""Time in s of a message below which no network is assumed: the shortest that was measured between nodes is 1.04 us
(Fugaku, IMB; `platforms/fugaku.toml`), and within a socket up to 0.6 us (Summit; `platforms/summit.toml`)."""

# `-N` of srun is the number of nodes; that of mpirun and aprun the number of processes on each.
_ONE_NODE = re.compile(r"\bsrun\b.*\s(?:-N|--nodes)[ =]*1(?=\s|$)")
_NODES: Final = "nodes"
"""Note of the importers with the nodes of the first two processes: `n1, n2`."""
_HINT: Final = "if they share a node, fit another distance (`--distance intra-socket` or `inter-socket`)"


def on_one_node(table: Table, choice: Choice) -> str:
    """Why the processes of chosen rows appear to share a node: names, command line or times; empty if they do not."""
    names = [text.split(", ") for text in table.notes.get(_NODES, "").split("; ") if text]
    if shared := next((first for first, second in names if first == second), ""):
        return f"both processes ran on the node {shared}, as the file says, but the distance is between nodes: {_HINT}"
    if command := next((text for text in table.notes.get("command", "").split("; ") if _ONE_NODE.search(text)), ""):
        return f"the processes were started on one node (`{command[:80]}`), but the distance is between nodes: {_HINT}"
    shortest = float(choice.points.time.min())
    if choice.test == "ping_pong" and shortest < SHORTEST_BETWEEN_NODES:
        told, least = (format_quantity(time, SECOND) for time in (shortest, SHORTEST_BETWEEN_NODES))
        return f"the shortest message takes {told}, and messages between nodes more than {least}: {_HINT}"
    return ""
