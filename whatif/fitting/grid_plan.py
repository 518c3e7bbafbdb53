"""Runs to predict, with unstated settings derived from the measured runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.grid_runs import GridRuns
from whatif.models.quantities import FloatArray
from whatif.models.structured_grid import inter_node_share, scaled_iteration_count

_MOST: Final = 100_000
"""Runs of one plan."""
_LAW: Final = 0.05
"""Relative error of the power of C and P that approximates the halo cells of a run."""
_POWERS: Final = np.array([0.5, -0.5])
"""Powers of C and P in H where the runs do not determine them: squares of a grid of two dimensions."""


def planned(runs: GridRuns, given: Mapping[str, Sequence[Any]]) -> tuple[GridRuns, list[str]]:
    """All combinations of stated values as runs without times, and in words what was not stated but followed.

    `given` has lists for `cells`, `processes`, `iterations`, `halo_cells`, `case`, and one of `ranks_per_node`. Without
    iterations they are those of the case's largest run, scaled with the size of a cell; without H it follows the runs.
    """
    cases = [str(item) for item in given.get("case", runs.cases if len(runs.cases) == 1 else ())]
    if not cases:
        raise UsageError(f"which case? state `case`, one of {', '.join(runs.cases)}, or a new one")
    if missing := next((name for name in ("cells", "processes") if name not in given), ""):
        raise UsageError(f"a run needs `{missing}`")
    lists = [_numbers(given, name) for name in ("cells", "processes", "iterations", "halo_cells")]
    if prod([len(cases), *map(len, lists)]) > _MOST:
        raise UsageError(f"more than {_MOST:,} runs to choose from")
    rows = list(product(*lists, cases))
    cells, processes, steps, halo = np.array([row[:4] for row in rows], dtype=np.float64).T
    case, remarks = np.array([row[4] for row in rows], dtype=object), []
    if np.isnan(steps).any():
        steps, words = _iterations(runs, case, cells)
        remarks.append(f"iterations follow the runs: {_some(steps)} ({words})")
    if np.isnan(halo).any():
        halo, words = halo_cells_at(runs, cells, processes)
        remarks.append(f"halo cells follow the runs: {_some(halo)}{words}")
    nothing = np.full(len(rows), np.nan)
    share, node = _share(runs, given, processes)
    return GridRuns(cells, processes, steps, halo, share, node, case, nothing, nothing, nothing), remarks


def _numbers(given: Mapping[str, Sequence[Any]], name: str) -> list[float]:
    return [float(item) for item in given.get(name, [np.nan])]


def _some(values: FloatArray) -> str:
    first = [f"{item:g}" for item in dict.fromkeys(values.tolist())]
    return ", ".join(first[:3]) + (" .." if len(first) > 3 else "")


def halo_cells_at(runs: GridRuns, cells: FloatArray, processes: FloatArray) -> tuple[FloatArray, str]:
    """Whole H of other grids with its doubts in words: a power of C and of P, fitted to the runs.

    Rows of a square grid give C^(1/2), squares C^(1/2) P^(-1/2), cubes C^(2/3) P^(-2/3). Where the runs follow no
    power, H is that of the run that is nearest, with C^(1/2). A single process has none.
    """
    used = runs.at((runs.halo_cells > 0) & (runs.processes > 1))
    if not len(used):
        return np.zeros(len(cells)), ""
    made, wanted = (np.log(np.stack(pair)) for pair in ((used.cells, used.processes), (cells, processes)))
    centre, halo = made.mean(axis=1, keepdims=True), np.log(used.halo_cells)
    off = halo - halo.mean() - _POWERS @ (made - centre)
    change, _, rank, _ = np.linalg.lstsq((made - centre).T, off, rcond=1e-9)
    if np.abs(off - change @ (made - centre)).max() > np.log1p(_LAW):
        nearest = np.abs(wanted[:, :, None] - made[:, None, :]).sum(axis=0).argmin(axis=1)
        found = used.halo_cells[nearest] * np.sqrt(cells / used.cells[nearest])
        return np.where(
            processes > 1, np.round(found), 0.0
        ), "; they follow no power of C and P: those of the nearest run, with the root of C"
    words = "" if rank == 2 else "; the runs do not determine how they follow C and P: in part as squares of a plane do"
    found = np.round(np.exp(halo.mean() + (_POWERS + change) @ (wanted - centre)))
    return np.where(processes > 1, found, 0.0), words


def _iterations(runs: GridRuns, case: Any, cells: FloatArray) -> tuple[FloatArray, str]:
    """Iterations on other grids of a case, rounded, and in words the rule: the power of C that its grids follow.

    With one grid they go inversely with the size of a cell in a plane (Sharif et al., section III.B).
    """
    steps, rules = np.ones(len(cells)), []
    for name in dict.fromkeys(case.tolist()):
        its = np.flatnonzero(runs.case == name)
        if not len(its):
            raise UsageError(f"no run of case `{name}`: state `iterations`")
        if clash := _two_counts(runs, its):
            raise UsageError(f"state `iterations`: runs of one grid have {clash}")
        largest = its[np.argmax(runs.cells[its])]
        counts = scaled_iteration_count(runs.iterations[largest], runs.cells[largest], cells)
        rule = "the root of C: one grid was run"
        if np.ptp(runs.cells[its]) > 0:
            power = float(np.polyfit(np.log(runs.cells[its]), np.log(runs.iterations[its]), 1)[0])
            counts = runs.iterations[largest] * (cells / runs.cells[largest]) ** power
            rule = f"C^{power:.3g}, fitted to the grids that were run"
        rules.append(rule)
        steps = np.where(case == name, np.maximum(np.round(counts), 1.0), steps)
    return steps, f"they grow as {'; '.join(dict.fromkeys(rules))}"


def _two_counts(runs: GridRuns, its: Any) -> str:
    """Text with two numbers of iterations of one grid, which shows that they do not follow from the grid."""
    known: dict[float, float] = {}
    for cells, steps in zip(runs.cells[its].tolist(), runs.iterations[its].tolist(), strict=True):
        if known.setdefault(cells, steps) != steps:
            return f"{known[cells]:g} and {steps:g}"
    return ""


def _share(runs: GridRuns, given: Mapping[str, Sequence[Any]], processes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Share of the halo sent to other nodes, and ranks on a node: stated, or as in runs of as many processes.

    The share for other numbers follows from the ranks on a node; if they are unknown, it is that of the largest run.
    """
    if "ranks_per_node" in given:
        node = np.full(len(processes), float(given["ranks_per_node"][0]))
        share = np.asarray(inter_node_share(processes, node), dtype=np.float64)
        if (share[processes > 1] < 1).any() and not runs.inside.any():
            raise UsageError("no run identifies the time of an exchange inside a node: a column `ranks_per_node` would")
        return share, node
    shares = dict(zip(runs.processes.tolist(), runs.share.tolist(), strict=True))
    nodes = dict(zip(runs.processes.tolist(), runs.ranks_per_node.tolist(), strict=True))
    largest = max(shares)
    node = np.array([nodes.get(count, nodes[largest]) for count in processes.tolist()])
    follows = np.where(np.isnan(node), shares[largest], inter_node_share(processes, node))
    found = [shares.get(count, other) for count, other in zip(processes.tolist(), follows.tolist(), strict=True)]
    return np.array(found), node


def next_candidates(runs: GridRuns, case: str) -> GridRuns:
    """Runs that are at hand: the grids and iterations of the runs and twice the largest, on up to twice the processes.

    For a case that was never run its smallest grids are those of the others.
    """
    settings = set(zip(runs.cells.tolist(), runs.iterations.tolist(), runs.case.tolist(), strict=True))
    for name in runs.cases:
        cells, steps = max(item[:2] for item in settings if item[2] == name)
        settings |= {(2 * cells, steps, name), (cells, 2 * steps, name), (cells, max(steps // 2, 1.0), name)}
    if case not in runs.cases:
        settings |= {(cells, steps, case) for cells, steps, _ in settings}
    counts = sorted({*runs.processes.tolist(), 2 * runs.processes.max()})
    rows = [(*item[:2], count, item[2]) for item in sorted(settings) for count in counts]
    cells, steps, processes = np.array([row[:3] for row in rows], dtype=np.float64).T
    nothing = np.full(len(rows), np.nan)
    halo, (share, node) = halo_cells_at(runs, cells, processes)[0], _share(runs, {}, processes)
    names = np.array([row[3] for row in rows], dtype=object)
    return GridRuns(cells, processes, steps, halo, share, node, names, nothing, nothing, nothing)
