"""Names of MPI: sizes of datatypes, and calls that count as work of the program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from whatif.simulation.rank_programs import Kind

DATATYPE_SIZES: Final[Mapping[str, int]] = {
    "MPI_DATATYPE_NULL": 0,
    "MPI_CHAR": 1,
    "MPI_SIGNED_CHAR": 1,
    "MPI_UNSIGNED_CHAR": 1,
    "MPI_BYTE": 1,
    "MPI_WCHAR": 4,
    "MPI_SHORT": 2,
    "MPI_UNSIGNED_SHORT": 2,
    "MPI_INT": 4,
    "MPI_UNSIGNED": 4,
    "MPI_LONG": 8,
    "MPI_UNSIGNED_LONG": 8,
    "MPI_FLOAT": 4,
    "MPI_DOUBLE": 8,
    "MPI_LONG_DOUBLE": 16,
    "MPI_LONG_LONG_INT": 8,
    "MPI_UNSIGNED_LONG_LONG": 8,
    "MPI_LONG_LONG": 8,
    "MPI_PACKED": 1,
    "MPI_LB": 0,
    "MPI_UB": 0,
    "MPI_FLOAT_INT": 8,
    "MPI_DOUBLE_INT": 12,
    "MPI_LONG_INT": 12,
    "MPI_SHORT_INT": 6,
    "MPI_2INT": 8,
    "MPI_LONG_DOUBLE_INT": 20,
}
"""Sizes in B of the datatypes of C on 64-bit machines, in the order in which DUMPI numbers them from 1."""

COLLECTIVE_KINDS: Final[Mapping[str, Kind]] = {
    "MPI_Barrier": Kind.BARRIER,
    "MPI_Bcast": Kind.BROADCAST,
    "MPI_Reduce": Kind.REDUCE,
    "MPI_Allreduce": Kind.ALLREDUCE,
    "MPI_Gather": Kind.GATHER,
    "MPI_Gatherv": Kind.GATHER,
    "MPI_Scatter": Kind.SCATTER,
    "MPI_Scatterv": Kind.SCATTER,
    "MPI_Allgather": Kind.ALLGATHER,
    "MPI_Allgatherv": Kind.ALLGATHER,
    "MPI_Alltoall": Kind.ALLTOALL,
    "MPI_Alltoallv": Kind.ALLTOALL,
    "MPI_Alltoallw": Kind.ALLTOALL,
    "MPI_Reduce_scatter": Kind.REDUCE_SCATTER,
    "MPI_Reduce_scatter_block": Kind.REDUCE_SCATTER,
    "MPI_Scan": Kind.SCAN,
    "MPI_Exscan": Kind.SCAN,
}

_LOCAL = re.compile(
    r"MPI_(?:Comm_(?:rank|size|group|compare|test_inter|remote_\w+|[gs]et_\w+|f2c|c2f)|Wti(?:me|ck)|"
    r"Cart(?:_(?:coords|shift|get|rank|map)|dim_get)|Graph(?:_(?:get|map|neighbors\w*)|dims_get)|Topo_test|Dims_create|"
    r"Type_\w+|Group_\w+|Get_\w+|Op_\w+|Info_\w+|Attr_\w+|Keyval_\w+|Err\w+|Add_error\w+|Pack\w*|Unpack\w*|Address|"
    r"Initialized|Finalized|Query_thread|Is_thread_main|Pcontrol|Status_\w+|Alloc_mem|Free_mem|Buffer_attach)"
)
_OUTSIDE = re.compile(
    r"MPI_(?:Put|Get|R?Accumulate|Get_accumulate|Fetch\w*|Compare_and_swap|Win_\w+|File_\w+)|MPIO_\w+"
)


def is_local(call: str) -> bool:
    """Whether a call only queries or prepares, so that its time counts as work of the rank."""
    return _LOCAL.fullmatch(call) is not None


def is_outside(call: str) -> bool:
    """Whether a call moves data in a way that is not simulated: one-sided, or to files."""
    return _OUTSIDE.fullmatch(call) is not None
