"""Candidates for the time on a count of resources, and fits of all of them to many sets of runs, each at one target.

Candidates are sums of terms with coefficients of at least 0, and a power law.
p is the count, n the nodes where these vary apart from the processes p; else n is p. Time never falls faster than 1/p
beyond the runs: a program that gains by its caches does so only until all of its data fits into them.

Residuals are relative, and a run counts half for each doubling between it and the target: a form that leaves out an
effect is closest near to where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

TERMS: Final[Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "1": lambda p, n: np.ones_like(p),
    "1/p": lambda p, n: 1 / p,
    "1/n": lambda p, n: 1 / n,
    "p^(-2/3)": lambda p, n: p ** (-2 / 3),
    "n^(-2/3)": lambda p, n: n ** (-2 / 3),
    "p^(-1/2)": lambda p, n: p**-0.5,
    "p^(1/2)": lambda p, n: p**0.5,
    "log p": lambda p, n: np.log2(p),
    "log n": lambda p, n: np.log2(n),
}
"""Terms by name."""
CACHE: Final = "max(1/p - 1/c, 0)"
"""Work outside of the caches, which hold all data on c and more."""
POWER: Final = "p^b"
GROWING: Final = frozenset(("log p", "log n", "p^(1/2)"))
"""Terms that grow with the count."""


@dataclass(frozen=True)
class ScalingForm:
    """A form of the time, with its physical reason."""

    terms: tuple[str, ...]
    reason: str
    """Meaning of the terms, with the source."""
    apart: bool = False
    """Whether it needs runs whose nodes vary apart from their processes."""

    @property
    def name(self) -> str:
        """The terms as a sum."""
        return " + ".join(self.terms)

    @property
    def parameters(self) -> int:
        """Number of fitted values: a coefficient a term, the b of a power, the c of a cache."""
        return len(self.terms) + (POWER in self.terms) + (CACHE in self.terms)

    @property
    def grows(self) -> bool:
        """Whether a term grows with the count."""
        return bool(GROWING.intersection(self.terms))


CANDIDATES: Final = (
    ScalingForm(("1/p",), "perfect strong scaling"),
    ScalingForm(("1",), "perfect weak scaling (J. L. Gustafson, CACM 31, 1988)"),
    ScalingForm((POWER,), "power law with b from -1 to 1"),
    ScalingForm(("1/p", "1"), "serial part (G. M. Amdahl, AFIPS 1967)"),
    ScalingForm(("1/p", "log p"), "reductions and broadcasts by trees (R. Thakur et al., IJHPCA 19, 2005)"),
    ScalingForm(("1/p", "p^(-2/3)"), "halo of blocks in three dimensions: their surface"),
    ScalingForm(("1/p", "p^(-1/2)"), "halo of blocks in two dimensions: their edges"),
    ScalingForm(("1/p", "p^(1/2)"), "wavefront over a grid of processes (A. Hoisie et al., IJHPCA 14, 2000)"),
    ScalingForm(("1/p", "p^(-2/3)", "log p"), "halo in three dimensions, and reductions"),
    ScalingForm(("1/p", CACHE), "work inside and outside of the caches, whose sum grows with p"),
    ScalingForm(("1/p", "log p", CACHE), "caches, and reductions"),
    ScalingForm(("1", "log p"), "weak scaling with reductions"),
    ScalingForm(("1", "p^(1/2)"), "weak scaling of a wavefront: its pipeline fills over the grid of processes"),
    ScalingForm(("1/p", "1/n"), "memory bandwidth that the processes of a node share", apart=True),
    ScalingForm(("1/p", "1/n", "1"), "memory bandwidth of nodes, and a serial part", apart=True),
    ScalingForm(("1/p", "1/n", "log n"), "memory bandwidth of nodes, and reductions between nodes", apart=True),
    ScalingForm(("1/p", "1/n", "n^(-2/3)"), "memory bandwidth of nodes, and the halo that leaves a node", apart=True),
)

_CAPACITIES: Final = 8
"""Counts from which the caches hold all data that are tried, from the smallest of the runs to twice the largest."""
_RIDGE: Final = 1e-12
"""Part of a column's square that separates columns which the runs do not."""


@dataclass(frozen=True, eq=False)
class Problems:
    """Sets of runs with a target each, of shape (problems, points) and (problems,)."""

    processes: FloatArray
    """p."""
    nodes: FloatArray
    """n; equal to p where the two do not vary apart."""
    time: FloatArray
    used: NDArray[np.bool_]
    """Points of the set; the others have any values above 0."""
    apart: NDArray[np.bool_]
    """Whether the nodes vary apart from the processes."""
    target_processes: FloatArray
    target_nodes: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Weights of the points, the largest 1; 0 for those that are not used."""
        far = np.where(self.used, np.abs(np.log2(self.processes / self.target_processes[:, None])), np.inf)
        weights: FloatArray = 2.0 ** (far.min(axis=1, keepdims=True) - far)
        return weights

    @property
    def doublings(self) -> FloatArray:
        """Doublings from the nearest end of the set's range to the target, at least 1."""
        pairs = (self.processes, self.target_processes), (self.nodes, self.target_nodes)
        far: FloatArray = np.maximum.reduce([np.ones(len(self.used)), *(_beyond(self.used, *pair) for pair in pairs)])
        return far


def _beyond(used: NDArray[np.bool_], values: FloatArray, target: FloatArray) -> FloatArray:
    above = np.log2(target / np.where(used, values, 0).max(axis=1))
    below = np.log2(np.where(used, values, np.inf).min(axis=1) / target)
    return np.asarray(np.maximum(above, below), dtype=np.float64)


def predictions(problems: Problems) -> FloatArray:
    """Logarithm of the time at the target, of shape (candidates, problems).

    NaN where a candidate has more parameters than the set has points, or needs nodes that vary apart.
    """
    weights, counts = problems.weights, problems.used.sum(axis=1)
    found = np.full((len(CANDIDATES), len(counts)), np.nan)
    for row, candidate in enumerate(CANDIDATES):
        possible = (candidate.parameters <= counts) & (problems.apart | (not candidate.apart))
        with np.errstate(divide="ignore"):
            values = _power_law(problems, weights) if POWER in candidate.terms else _sum(problems, weights, candidate)
        found[row] = np.where(possible, values, np.nan)
    return found


def _power_law(problems: Problems, weights: FloatArray) -> FloatArray:
    """`log a + b log p` by weighted least squares, with b from -1 to 1."""
    share = weights / weights.sum(axis=1, keepdims=True)
    x, y = np.log(problems.processes), np.log(problems.time)
    middle, level = (share * x).sum(axis=1), (share * y).sum(axis=1)
    away = x - middle[:, None]
    slope = (share * away * y).sum(axis=1) / (share * away**2).sum(axis=1)
    result: FloatArray = level + np.clip(slope, -1.0, 1.0) * (np.log(problems.target_processes) - middle)
    return result


def _sum(problems: Problems, weights: FloatArray, candidate: ScalingForm) -> FloatArray:
    """Logarithm of the best sum of the candidate's terms at the targets."""
    plain = [TERMS[name] for name in candidate.terms if name != CACHE]
    p, n, at_p, at_n = problems.processes, problems.nodes, problems.target_processes, problems.target_nodes
    columns = np.stack([term(p, n) for term in plain], axis=2)
    at = np.stack([term(at_p, at_n) for term in plain], axis=1)
    root = np.sqrt(weights)
    if CACHE not in candidate.terms:
        coefficients, _ = non_negative(columns * (root / problems.time)[..., None], root)
        return np.asarray(np.log((coefficients * at).sum(axis=1)), dtype=np.float64)
    best, least = np.full(len(at), np.nan), np.full(len(at), np.inf)
    for capacity in _capacities(problems):
        outside = np.maximum(1 / p - 1 / capacity[:, None], 0)[..., None]
        design = np.concatenate((columns, outside), axis=2) * (root / problems.time)[..., None]
        coefficients, squares = non_negative(design, root)
        beyond = np.concatenate((at, np.maximum(1 / at_p - 1 / capacity, 0)[:, None]), axis=1)
        best = np.where(squares < least, np.log((coefficients * beyond).sum(axis=1)), best)
        least = np.minimum(least, squares)
    return best


def _capacities(problems: Problems) -> Iterator[FloatArray]:
    """Counts c to try, each of shape (problems,)."""
    low = np.where(problems.used, problems.processes, np.inf).min(axis=1)
    high = 2 * np.where(problems.used, problems.processes, 0).max(axis=1)
    for step in range(1, _CAPACITIES + 1):
        yield low * (high / low) ** (step / _CAPACITIES)


def non_negative(design: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients >= 0 of least squares, (problems, columns), and the sums of squares, (problems,).

    `design` is (problems, points, columns), `values` (problems, points). All sets of columns are tried: there are few.
    """
    lengths = np.linalg.norm(design, axis=1)
    lengths[lengths == 0] = 1.0
    columns = design / lengths[:, None]
    best, least = np.zeros_like(lengths), (values**2).sum(axis=1)
    for count in range(1, design.shape[2] + 1):
        for chosen in combinations(range(design.shape[2]), count):
            part = columns[..., list(chosen)]
            gram = np.einsum("rpi,rpj->rij", part, part) + _RIDGE * np.eye(count)
            solved = np.linalg.solve(gram, np.einsum("rpi,rp->ri", part, values)[..., None])[..., 0]
            squares = ((np.einsum("rpi,ri->rp", part, solved) - values) ** 2).sum(axis=1)
            better = (solved >= 0).all(axis=1) & (squares < least)
            least[better] = squares[better]
            best[better] = 0.0
            best[np.ix_(better, chosen)] = solved[better]
    return best / lengths, least
