"""Rules by which Open MPI 4.1 selects algorithms of collectives: facts of its component `tuned`.

Source: ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of open-mpi/ompi (BSD-3-Clause), for commutative operations.
Below each limit of the number of ranks, algorithms follow with the sizes in B below which they hold. Names are those of
the messages: chains and pipelines of a single segment are chains; `linear_sync` of an all-to-all and `linear_nb` are
linear; a ring over fewer elements than ranks, which all short ones are, is recursive doubling. The split and the
in-order binary tree are written as a binary tree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

RULES: Final = {
    "barrier": """
        4 recursive_doubling
        8 linear
        64 recursive_doubling
        256 dissemination
        512 binomial_tree
        1024 dissemination
        4096 binomial_tree
        inf dissemination
    """,
    "broadcast": """
        4 chain<32 binary_tree<256 chain<512 knomial_tree<1024 linear<32768 binary_tree<131072 chain<262144
          linear<524288 doubling_tree<1048576 binary_tree
        8 binary_tree<64 doubling_tree<128 binary_tree<2048 doubling_tree<8192 linear<1048576 chain
        16 knomial_tree<8 binary_tree<64 knomial_tree<4096 binary_tree<16384 doubling_tree<32768 linear
        32 knomial_tree<4096 doubling_tree<1048576 scatter_doubling_allgather
        64 doubling_tree<2048 knomial_tree
        128 knomial_tree
        256 doubling_tree<2 binary_tree<16384 linear<32768 binary_tree<65536 knomial_tree
        1024 knomial_tree<16384 binary_tree<32768 knomial_tree
        2048 knomial_tree<524288 scatter_doubling_allgather
        4096 knomial_tree<262144 scatter_doubling_allgather
        inf knomial_tree<8192 binary_tree<16384 knomial_tree<262144 scatter_doubling_allgather
    """,
    "reduce": """
        4 linear<8 binary_tree<16 chain<32 linear<262144 chain
        8 binary_tree<4096 chain<65536 binomial_tree<262144 linear<524288 binomial_tree<1048576 linear
        16 binary_tree<8192 binomial_tree
        32 binary_tree<4096 binomial_tree
        256 binomial_tree
        512 binomial_tree<8192 binary_tree<16384 binomial_tree
        2048 binomial_tree
        4096 binomial_tree<512 binary_tree<1024 binomial_tree<8192 binary_tree<16384 binomial_tree
        inf binomial_tree<16 binary_tree<32 binomial_tree<1024 binary_tree<2048 binomial_tree<8192 binary_tree<16384
          binomial_tree
    """,
    "allreduce": """
        4 recursive_doubling<4096 ring<8192 recursive_doubling<16384 ring<262144 halved_rabenseifner
        8 recursive_doubling<8192 halved_rabenseifner
        16 recursive_doubling<8192 halved_rabenseifner
        32 recursive_doubling<4096 halved_rabenseifner
        64 recursive_doubling<128 halved_rabenseifner
        128 recursive_doubling<262144 halved_rabenseifner
        256 reduce_binary_tree<16384 reduce_linear<32768 reduce_binary_tree<65536 reduce_knomial_tree<131072
          recursive_doubling<262144 halved_rabenseifner
        512 reduce_knomial_tree<4096 halved_rabenseifner
        2048 reduce_knomial_tree<2048 recursive_doubling<16384 halved_rabenseifner
        4096 reduce_knomial_tree<2048 recursive_doubling<16384 halved_rabenseifner
        inf reduce_knomial_tree<2048 recursive_doubling<32768 halved_rabenseifner
    """,
    "allgather": """
        32 doubling_allgather
        64 doubling_allgather<1024 neighbour_exchange<65536 ring_allgather
        128 doubling_allgather<512 neighbour_exchange<65536 ring_allgather
        256 doubling_allgather<512 neighbour_exchange<131072 ring_allgather<524288
          neighbour_exchange<1048576 ring_allgather
        512 doubling_allgather<32 bruck_allgather<128 doubling_allgather<1024
          neighbour_exchange<131072 ring_allgather<524288 neighbour_exchange<1048576 ring_allgather
        1024 doubling_allgather<64 bruck_allgather<256 doubling_allgather<2048 neighbour_exchange
        2048 doubling_allgather<4 bruck_allgather<8 doubling_allgather<16 bruck_allgather<32
          doubling_allgather<256 bruck_allgather<512 doubling_allgather<4096 neighbour_exchange
        4096 bruck_allgather<32 doubling_allgather<128 bruck_allgather<512 doubling_allgather<4096 neighbour_exchange
        inf doubling_allgather<2 bruck_allgather<8 doubling_allgather<16 bruck_allgather<512
          doubling_allgather<4096 neighbour_exchange
    """,
    "alltoall": """
        3 pairwise
        8 linear<524288 pairwise<1048576 linear
        16 linear
        32 linear<4 bruck<512 linear
        64 bruck<512 linear
        128 bruck<1024 linear<262144 pairwise
        256 bruck<1024 linear<262144 pairwise
        512 bruck<1024 linear<32768 pairwise
        1024 bruck<512 linear<262144 pairwise
        2048 bruck<512 linear
        4096 bruck<1024 linear
        inf bruck<2048 linear
    """,
    "gather": """
        4 signalled<2 linear<4 binomial_tree<32768 linear<65536 binomial_tree<131072 signalled
        8 binomial_tree<1024 linear<8192 binomial_tree<32768 linear<262144 signalled
        256 binomial_tree
        512 binomial_tree<2048 linear<8192 binomial_tree
        inf binomial_tree
    """,
    "scatter": """
        4 linear
        8 binomial_tree<2048 linear<4096 binomial_tree<8192 linear
        32 binomial_tree<16384 linear
        64 binomial_tree<512 linear<8192 binomial_tree<16384 linear
        inf binomial_tree<512 linear
    """,
    "scan": "inf linear",
    "reduce_scatter": """
        4 ring<65536 butterfly<131072 ring
        8 reduce_linear_scatter<8 recursive_halving<262144 ring
        32 recursive_halving<262144 ring
        64 reduce_linear_scatter<64 recursive_halving<2048 butterfly<524288 ring
        128 reduce_linear_scatter<256 recursive_halving<512 butterfly<2048 recursive_halving<4096 butterfly
        256 reduce_linear_scatter<256 recursive_halving<512 butterfly
        512 reduce_linear_scatter<256 recursive_halving<1024 butterfly
        1024 reduce_linear_scatter<512 recursive_halving<2048 butterfly<8192 recursive_halving<16384 butterfly
        2048 reduce_linear_scatter<512 recursive_halving<4096 butterfly<16384 recursive_halving<32768 butterfly
        4096 reduce_linear_scatter<512 recursive_halving<4096 butterfly
        inf reduce_linear_scatter<1024 recursive_halving<8192 butterfly
    """,
}
"""Rules by collective; the sizes are those of a trace, of a reduction that is scattered those of all blocks."""


def rule_of(operation: str) -> Callable[[float, int], str]:
    """Rule of a collective: from the size that a trace gives in B and the number of ranks to an algorithm."""

    def rule(size: float, process_count: int) -> str:
        total = size * process_count if operation == "reduce_scatter" else size
        algorithms = next(algorithms for limit, algorithms in _table(operation) if process_count < limit)
        return next(name for limit, name in algorithms if total < limit)

    return rule


@lru_cache
def _table(operation: str) -> list[tuple[float, list[tuple[float, str]]]]:
    """Limits of the number of ranks, each with the limits of sizes and their algorithms."""
    rows: list[tuple[float, list[tuple[float, str]]]] = []
    for word in RULES[operation].split():
        if word.isdigit() or word == "inf":
            rows.append((float(word), []))
        else:
            name, _, limit = word.partition("<")
            rows[-1][1].append((float(limit or "inf"), name))
    return rows
