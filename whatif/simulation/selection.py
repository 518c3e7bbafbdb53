"""Selection of the algorithm of each collective call: named by hand, or by the rules of a library.

MPICH: thresholds of Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
IJHPCA 19(1), 2005, Section 4, as MPICH 3.x has them as defaults: src/mpi/coll/algorithms/default in pmodels/mpich,
allgather.c and red_scat.c at 7279307b, allreduce.c at 885c8ffa, alltoall.c at 8ca80b81, bcast.c at 16a3a874, reduce.c
at b6d42182. All-to-alls of medium size post all messages at once, where MPICH posts 32. Ranks of a node are not treated
apart, as MPICH treats them.

Open MPI: see `openmpi_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.simulation.collective_schedules import ALGORITHMS, check_algorithm
from whatif.simulation.openmpi_rules import RULES, rule_of
from whatif.simulation.rank_programs import COLLECTIVES, Kind

_BY_NAME: Final = {kind.name.lower(): kind for kind in sorted(COLLECTIVES)}
_SHORT_BROADCAST: Final = 12_288
_SHORT_ALLGATHER: Final = 81_920
_SHORT_REDUCTION: Final = 2048
_SHORT_ALLTOALL, _MEDIUM_ALLTOALL = 256, 32_768
_LONG: Final = 524_288
_FEW: Final = 8


def _is_power_of_two(process_count: int) -> bool:
    return process_count & (process_count - 1) == 0


def _broadcast(size: float, process_count: int) -> str:
    if size < _SHORT_BROADCAST or process_count < _FEW:
        return "binomial_tree"
    is_medium = size < _LONG and _is_power_of_two(process_count)
    return "scatter_doubling_allgather" if is_medium else "scatter_ring_allgather"


def _allgather(size: float, process_count: int) -> str:
    total, is_regular = size * process_count, _is_power_of_two(process_count)
    if total >= (_LONG if is_regular else _SHORT_ALLGATHER):
        return "ring_allgather"
    return "doubling_allgather" if is_regular else "bruck_allgather"


def _alltoall(size: float, process_count: int) -> str:
    if size <= _SHORT_ALLTOALL and process_count >= _FEW:
        return "bruck"
    return "linear" if size <= _MEDIUM_ALLTOALL else "pairwise"


Rule = Callable[[float, int], str]


LIBRARIES: Final[Mapping[str, Mapping[Kind, Rule]]] = {
    "mpich": {
        Kind.BROADCAST: _broadcast,
        Kind.REDUCE: lambda size, _: "binomial_tree" if size <= _SHORT_REDUCTION else "rabenseifner",
        Kind.ALLREDUCE: lambda size, _: "recursive_doubling" if size <= _SHORT_REDUCTION else "rabenseifner",
        Kind.ALLGATHER: _allgather,
        Kind.ALLTOALL: _alltoall,
        Kind.REDUCE_SCATTER: lambda size, count: "recursive_halving" if size * count < _LONG else "pairwise",
    },
    "openmpi": {_BY_NAME[operation]: rule_of(operation) for operation in RULES},
}
"""Rules of libraries: from the size that a trace gives for a call in B, and the number of ranks, to an algorithm."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Algorithms of collectives: those named, then those of a library, then the first of each kind."""

    named: tuple[tuple[Kind, str], ...] = ()
    library: str = ""

    def places(self, kinds: NDArray[np.uint8], sizes: FloatArray, process_count: int) -> NDArray[np.int64]:
        """Places of the algorithms of calls in a communicator among those of their kinds in `ALGORITHMS`."""
        found: NDArray[np.int64] = _places(self.named)[kinds]
        for kind, rule in LIBRARIES.get(self.library, {}).items():
            ruled = np.flatnonzero((kinds == kind) & (kind not in dict(self.named)))
            if not ruled.size:
                continue
            known, number = np.unique(sizes[ruled], return_inverse=True)
            chosen = [_place(kind, rule(size, process_count)) for size in known.tolist()]
            found[ruled] = np.array(chosen, dtype=np.int64)[number]
        return found


def _places(named: tuple[tuple[Kind, str], ...]) -> NDArray[np.int64]:
    """[kind]: place of its algorithm; the first one where none is named."""
    places = np.zeros(len(Kind), dtype=np.int64)
    for kind, name in named:
        places[kind] = _place(kind, name)
    return places


def _place(kind: Kind, name: str) -> int:
    return list(ALGORITHMS[kind]).index(name)


FIRST_ALGORITHMS: Final = Selection()


def parse_selection(text: str) -> Selection:
    """Selection of a text such as `mpich, allreduce=ring`; raise `UsageError` for unknown names."""
    named, library = dict[Kind, str](), ""
    for part in filter(None, (part.strip() for part in text.split(","))):
        operation, is_named, algorithm = (word.strip() for word in part.partition("="))
        kind = _BY_NAME[_known(operation, _BY_NAME, "collective")] if is_named else None
        if library if kind is None else kind in named:
            raise UsageError(f"`{text}`: `{part}`: {'a library' if kind is None else operation} is given already")
        if kind is None:
            library = _known(operation, LIBRARIES, "library")
        else:
            named[kind] = algorithm
    return selection_of(named, library)


def selection_of(named: Mapping[Kind, str], library: str = "") -> Selection:
    """Selection of named algorithms; raise `UsageError` for a name that its kind does not have."""
    for kind, name in named.items():
        check_algorithm(kind, name)
    return Selection(tuple(named.items()), library)


def _known(word: str, known: Mapping[str, object], what: str) -> str:
    if word not in known:
        raise UsageError(f"`{word}` is not a {what}: {', '.join(known)}{did_you_mean(word, known)}")
    return word
