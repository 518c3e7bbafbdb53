"""Names shared by files, models, results and pages: distances, protocols, message models, categories of time.

Each set of names is defined here only; whatever lists them derives its list from these.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

DistanceName = Literal["intra_socket", "inter_socket", "inter_node"]
DISTANCES: Final[tuple[DistanceName, ...]] = get_args(DistanceName)
"""Distances between the two ranks of a message, nearest first."""

LINK_DOMAIN: Final = "link_domain"
"""Distance between two GPUs that peer links connect."""
Buffers = Literal["host", "device", "staged"]
"""Memory that holds the data of messages."""

ProtocolName = Literal["short", "eager", "rendezvous"]
PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
"""Protocols of messages, by ascending size."""

MessageModel = Literal["postal", "max_rate", "injection", "loggp"]
MESSAGE_MODELS: Final[tuple[MessageModel, ...]] = get_args(MessageModel)
"""Models of a message with a table of parameters in a platform file."""
CollectiveModel = Literal[MessageModel, "nccl"]
COLLECTIVE_MODELS: Final[tuple[CollectiveModel, ...]] = get_args(CollectiveModel)
"""Models of a collective."""
CollectiveOperation = Literal[
    "allreduce",
    "reduce_scatter",
    "allgather",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
]
COLLECTIVE_OPERATIONS: Final[tuple[CollectiveOperation, ...]] = get_args(CollectiveOperation)
"""Operations of a collective."""
MESSAGE_ALGORITHMS: Final[Mapping[CollectiveOperation, tuple[str, ...]]] = {
    "allreduce": (
        "recursive_doubling",
        "rabenseifner",
        "ring",
        "bidirectional_ring",
        "hierarchical",
        "switch_reduction",
    ),
    "reduce_scatter": ("recursive_halving", "ring_reduce_scatter", "pairwise_reduce_scatter"),
    "allgather": ("bruck_allgather", "ring_allgather"),
    "alltoall": ("bruck_alltoall", "pairwise"),
    "broadcast": ("binomial_tree", "scatter_ring_allgather", "linear_broadcast", "switch_multicast"),
    "reduce": ("binomial_tree", "linear_reduce"),
    "gather": ("binomial_gather", "linear_gather"),
    "scatter": ("binomial_scatter", "linear_scatter"),
    "barrier": ("dissemination",),
}
"""Algorithms of an operation with a model of messages."""
LIBRARY_ALGORITHMS: Final[Mapping[CollectiveOperation, tuple[str, ...]]] = {
    "allreduce": ("ring", "double_binary_tree", "hierarchical"),
    "reduce_scatter": ("ring_reduce_scatter",),
    "allgather": ("ring_allgather",),
    "alltoall": ("pairwise",),
    "broadcast": ("ring_broadcast",),
}
"""Algorithms of an operation of a library of GPUs."""
IN_NETWORK: Final = frozenset({"switch_reduction", "switch_multicast"})
"""Algorithms in which the switches of the network take part."""
Library = Literal["mpi", "nccl"]
"""Libraries of collectives; nccl is any library of GPUs."""
TraceModel = Literal[MessageModel, "k_model", "pieces"]
TRACE_MODELS: Final[tuple[TraceModel, ...]] = get_args(TraceModel)
"""Models of the messages of a trace."""
HaloModel = Literal[MessageModel, "k_model", "node_aware"]
HALO_MODELS: Final[tuple[HaloModel, ...]] = get_args(HaloModel)
"""Models of the messages of a halo exchange."""
PARAMETER_TABLES: Final[dict[str, MessageModel]] = {model: model for model in MESSAGE_MODELS} | {"k_model": "max_rate"}
"""Table of a platform file that holds the parameters of a model."""
MODEL_LABELS: Final[dict[str, str]] = {
    **{model: model for model in (*HALO_MODELS, "pieces")},
    "max_rate": "max-rate",
    "peer_link": "peer link",
    "k_model": "K-model",
    "loggp": "LogGP",
    "nccl": "NCCL",
    "node_aware": "node-aware",
}
"""Names of models in running text."""

Relation = Literal["value", "speedup", "efficiency", "ratio"]
RELATIONS: Final[tuple[Relation, ...]] = ("speedup", "efficiency", "ratio")
"""Scales of a result relative to the baseline, or to its smallest number of ranks."""
SimulationTable = Literal["ranks", "messages", "path", "slopes"]
SIMULATION_TABLES: Final[tuple[SimulationTable, ...]] = get_args(SimulationTable)
"""Tables of a simulation."""

Category = Literal["kernel", "communication", "transfer", "overhead"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
"""Categories of the time of an iteration; results have a column `CATEGORY_time` for each."""

MATRIX_TERMS: Final = ("constant", "mnk", "mn", "mk", "nk")
"""Terms of the time of dgemm: products of its M, N and K."""

Precision = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
"""Precisions of the elements of a matrix."""
ProductPrecision = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
PRODUCT_PRECISIONS: Final[Mapping[ProductPrecision, Precision]] = {
    "bf16": "bf16",
    "fp8": "fp8",
    "mxfp8": "fp8",
    "nvfp4": "fp4",
}
"""Precision of the matrix units by that of the products of a transformer."""
