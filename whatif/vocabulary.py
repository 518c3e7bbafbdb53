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
UNKNOWN_PAIRS: Final = "unknown_pairs"
"""Note of message times with the files of multi-pair tests that lack the number of pairs; elsewhere NaN is one pair."""
Buffers = Literal["host", "device", "staged"]
"""Memory that holds the data of messages."""

ProtocolName = Literal["short", "eager", "rendezvous"]
PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
"""Protocols of messages, by ascending size."""

MessageModel = Literal["postal", "max_rate", "injection", "loggp"]
MESSAGE_MODELS: Final[tuple[MessageModel, ...]] = get_args(MessageModel)
"""Models of a message with a table of parameters in a platform file."""
CollectiveModel = Literal[MessageModel, "nccl"]
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
LIBRARIES: Final[tuple[Library, ...]] = get_args(Library)
"""Libraries of collectives; nccl is any library of GPUs."""
TraceModel = Literal[MessageModel, "k_model", "pieces"]
TRACE_MODELS: Final[tuple[TraceModel, ...]] = get_args(TraceModel)
"""Models of the messages of a trace."""
HaloModel = Literal[MessageModel, "k_model", "node_aware"]
HALO_MODELS: Final[tuple[HaloModel, ...]] = get_args(HaloModel)
"""Models of the messages of a halo exchange."""
MODEL_OF_ONE_MESSAGE: Final = {"node_aware": "max_rate"}
"""Model of one message between nodes, for models of whole exchanges."""
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
SensitivityKind = Literal["tornado", "ladder", "sobol"]
SENSITIVITY_KINDS: Final[tuple[SensitivityKind, ...]] = get_args(SensitivityKind)
"""Kinds of sensitivity: elasticities, bottlenecks, Sobol' indices."""
Grouping = Literal["parameter", "table"]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)
"""Changes of a difference: of one parameter, or of a table of parameters."""
ErrorRows = Literal["run", "result"]
ERROR_ROWS: Final[tuple[ErrorRows, ...]] = get_args(ErrorRows)
"""Rows of a table of model errors."""
RankingView = Literal["ranking", "commitment"]
RANKING_VIEWS: Final[tuple[RankingView, ...]] = get_args(RankingView)
"""Tables of a ranking of platforms."""
ScalingView = Literal["scaling", "answers", "isoefficiency"]
SCALING_VIEWS: Final[tuple[ScalingView, ...]] = get_args(ScalingView)
"""Tables of a scaling plan."""
StudyView = Literal["bids", "jobs", "commitments", "turns", "changes", "options", "questions"]
STUDY_VIEWS: Final[tuple[StudyView, ...]] = get_args(StudyView)
"""Tables of a study: bids, jobs, commitments, values where the ranking turns, changes with which bids win, options, and
assumed values as questions to the vendors."""

CoreBinding = Literal["spread", "sockets", "compact"]
CORE_BINDINGS: Final[tuple[CoreBinding, ...]] = get_args(CoreBinding)
"""Places of active cores in a measurement of memory: spread over all NUMA domains, or over those of one socket after
another, or one domain after another."""
GridWeighting = Literal["relative", "equal"]
GRID_WEIGHTINGS: Final[tuple[GridWeighting, ...]] = get_args(GridWeighting)
"""Weights of runs in the fit of a structured-grid program."""
PointWeighting = Literal["relative", "uniform", "sqrt_size"]
POINT_WEIGHTINGS: Final[tuple[PointWeighting, ...]] = get_args(PointWeighting)
"""Weights of message times in a fit."""
IntervalKind = Literal["prediction", "confidence"]
INTERVAL_KINDS: Final[tuple[IntervalKind, ...]] = get_args(IntervalKind)
"""Intervals of a prediction: of a single run, or of the mean of many."""

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
