"""`python -m benchmarks.congestion [unused]`: closed form of congestion against the link simulation, as Markdown.

`unused` takes other numbers of ranks, sizes and topologies: none of them played a part when the form was chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of
from whatif.schema.toml import parse_document

CHOSEN_ON = {
    "star": 'kind = "star"\nbandwidth = "10 GB/s"',
    "tapered tree": 'kind = "fat_tree"\nlevel_count = 3\ndown_count = 4\nup_count = 2\nupper_up_count = 2\n'
    'routing = "static"\nbandwidth = "10 GB/s"',
    "dragonfly": 'kind = "dragonfly"\ngroup_count = 9\nrouter_count = 4\nnodes_per_router = 2\nglobal_link_count = 2\n'
    'routing = "static"\nbandwidth = "10 GB/s"\nglobal_bandwidth = "5 GB/s"',
    "torus": 'kind = "torus"\nextents = { x = 4, y = 4, z = 4 }\nbandwidth = "10 GB/s"\nlatency = "100 ns"',
}
UNUSED = {
    "star": 'kind = "star"\nbandwidth = "25 GB/s"',
    "tapered tree": 'kind = "fat_tree"\nlevel_count = 2\ndown_count = 16\nup_count = 4\nupper_up_count = 4\n'
    'routing = "static"\nbandwidth = "12.5 GB/s"',
    "dragonfly": 'kind = "dragonfly"\ngroup_count = 5\nrouter_count = 8\nnodes_per_router = 4\nglobal_link_count = 2\n'
    'routing = "static"\nbandwidth = "25 GB/s"\nglobal_bandwidth = "25 GB/s"',
    "torus": 'kind = "torus"\nextents = { x = 8, y = 4, z = 4 }\nbandwidth = "5 GB/s"\nlatency = "50 ns"',
}
SCENARIO = """
[platform]
extends = "lassen"

[platform.network.topology]
{topology}

[application]
name = "phase"
rank_count = {ranks}
ranks_per_node = {per_node}
iteration_count = 1

{phase}
"""
HALO = """[application.grid]
scaling = "weak"
cells = {{ {cells} }}
periodic = {periodic}

[application.phases.phase]
kind = "halo"
model = "{model}"
neighbours = "{neighbours}"
message_size = "{size}"
"""
COLLECTIVE = """[application.phases.phase]
kind = "collective"
algorithm = "{algorithm}"
model = "{model}"
message_size = "{size}"
"""
ALGORITHMS = {
    "pairwise": "all-to-all",
    "ring": "allreduce, ring",
    "rabenseifner": "allreduce, Rabenseifner",
    "recursive_doubling": "allreduce, recursive doubling",
    "bruck_allgather": "allgather, Bruck",
}
GRIDS = ((2, "false", "faces"), (2, "true", "all"), (3, "true", "faces"), (3, "false", "all"))


class Case(NamedTuple):
    """A phase on ranks of nodes."""

    name: str
    phase: str
    ranks: int
    per_node: int


def cases(unused: bool = False) -> Iterator[Case]:
    """Halos and collectives, those on which the form was chosen or others."""
    sizes = ("16 KiB", "512 KiB", "4 MiB") if unused else ("1 KiB", "64 KiB", "1 MiB")
    placements = ((32, 1), (128, 2), (256, 8)) if unused else ((64, 1), (64, 4), (256, 4))
    for size, model, grid, placement in product(sizes, ("postal", "k_model"), GRIDS, placements):
        yield Case("halo", _halo(size, model, grid), *placement)
    sizes = ("256 B", "16 KiB", "256 KiB", "64 MiB") if unused else ("8 B", "64 KiB", "1 MiB", "16 MiB")
    for size, model, algorithm in product(sizes, ("postal", "max_rate"), ALGORITHMS):
        phase = COLLECTIVE.format(algorithm=algorithm, model=model, size=size)
        for ranks in (24, 32, 128) if unused else (16, 48, 64):
            yield Case(ALGORITHMS[algorithm], phase, ranks, 1)


def _halo(size: str, model: str, grid: tuple[int, str, str]) -> str:
    dimension_count, periodic, neighbours = grid
    cells = ", ".join(f"{axis} = 100" for axis in "xyz"[:dimension_count])
    return HALO.format(cells=cells, periodic=periodic, neighbours=neighbours, model=model, size=size)


def scenario(topology: str, case: Case) -> Scenario:
    """Scenario of one phase on Lassen's nodes with another topology."""
    text = SCENARIO.format(topology=topology, ranks=case.ranks, per_node=case.per_node, phase=case.phase)
    return Scenario(parse_document(text, "case.toml"))


def error(topology: str, case: Case) -> float:
    """Error of the closed form relative to the simulation."""
    modelled, simulated = (_time(scenario(topology, case), way) for way in ("modelled", "shared_links"))
    return modelled / simulated - 1


def _time(question: Scenario, communication: str) -> float:
    changed = question.changed({"application.communication": communication})
    return float(run_whole(changed, grid_of([], 1)).columns["communication_time"])


def errors(unused: bool = False) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Errors of all cases, by phase and topology."""
    found: dict[tuple[str, str], list[float]] = {}
    for (name, topology), case in product((UNUSED if unused else CHOSEN_ON).items(), list(cases(unused))):
        found.setdefault((case.name, name), []).append(error(topology, case))
    return {key: np.array(values) for key, values in found.items()}


def table(unused: bool = False) -> Iterator[str]:
    """Mean and largest errors of docs/congestion.md."""
    found = errors(unused)
    yield f"| phase | {' | '.join(CHOSEN_ON)} |"
    yield f"|---|{'---:|' * len(CHOSEN_ON)}"
    for phase in ("halo", *ALGORITHMS.values()):
        cells = (np.abs(found[phase, topology]) for topology in CHOSEN_ON)
        count = len(found[phase, "star"])
        yield f"| {phase} ({count}) | {' | '.join(f'{100 * c.mean():.1f} / {100 * c.max():.0f} %' for c in cells)} |"
    everything = np.abs(np.concatenate(list(found.values())))
    yield f"\n{(everything > 0.1).sum()} of {everything.size} are off by more than 10 %; mean {everything.mean():.1%}."


if __name__ == "__main__":
    print("\n".join(table("unused" in sys.argv[1:])))
