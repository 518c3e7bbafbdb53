"""Candidates for the time on a count of resources: sums of terms with coefficients of at least 0, and a power law.

p is the count, n the nodes where these vary apart from the processes p; else n is p. Time never falls faster than 1/p
beyond the runs: a program that gains by its caches does so only until all of its data fits into them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

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
