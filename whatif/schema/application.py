"""The application: ranks, grid and decomposition, iterations, and the phases of one iteration in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.fields import (
    AnyNumber,
    AnyQuantity,
    Bytes,
    Count,
    CountOrZero,
    Fraction,
    Key,
    PerSecond,
    PositiveBytes,
    PositiveFactor,
    Seconds,
    StrictTable,
    Unit,
)
from whatif.schema.kernel_phase import GemmPhase, KernelPhase, MeasuredKernelPhase
from whatif.vocabulary import (
    Buffers,
    Category,
    HaloModel,
    TraceModel,
)


class CellGrid(StrictTable):
    """A Cartesian grid of cells on a Cartesian grid of ranks."""

    scaling: Literal["weak", "strong"]
    """weak: `cells` counts the cells of one rank; strong: `cells` counts the cells of all ranks together."""
    cells: dict[Key, Count] = Field(min_length=1)
    """Cells along each dimension, such as `{ x = 16384, y = 16384 }`."""
    decomposition: Literal["balanced", "ascending", "given", "bisection"] = "balanced"
    """balanced: as MPI_Dims_create, the largest extent first; ascending: the largest last, as MiniMD;
    given: `ranks`; bisection: recursive coordinate bisection as MiniFE."""
    ranks: dict[Key, Count] = {}
    """Ranks along each dimension, for `decomposition = "given"`."""
    periodic: bool = False
    """Whether the grid is periodic: a rank at one end exchanges with the rank at the other end."""
    order: Literal["c", "fortran"] = "c"
    """Numbering of the ranks: c: last dimension fastest, as MPI_Cart_create; fortran: first dimension fastest."""
    mapping: Literal["block", "round_robin", "tiles", "file"] = "block"
    """Placement of ranks on nodes. block: consecutive ranks share a node; round_robin: consecutive ranks are on
    consecutive nodes; tiles: a compact part of the grid on each node; file: from `mapping_file`."""
    group: str | None = None
    """Group of `[application.groups]` whose ranks share a grid; every group has a grid of its own. By default all ranks
    share one."""
    mapping_file: str | None = None
    """File in the folder of the scenario with the node number of every rank, one per line."""


class HaloPhase(StrictTable):
    """Exchange of halos with the neighbours on the grid."""

    kind: Literal["halo"]
    """An exchange of halos."""
    model: HaloModel
    """postal: latency and bandwidth of a message; max_rate: the same, with the bandwidth of k ranks on a node;
    injection: Gropp's form of it; k_model: max_rate where k counts only messages to other nodes; loggp: latency,
    overheads and gaps; node_aware: ranks handle their own messages, nodes their outgoing bytes; its simulated messages
    are those of max_rate."""
    neighbours: Literal["faces", "all"]
    """faces: 2 per dimension; all: edges and corners too (8 in two dimensions, 26 in three)."""
    concurrency: Literal["serialised", "concurrent"] = "serialised"
    """serialised: a rank sends its messages one after the other; concurrent: all at once, the slowest decides."""
    element_size: PositiveBytes = 8.0
    """Size of one halo cell."""
    halo_width: Count = 1.0
    """Depth of the halo in cells."""
    message_size: Bytes | None = None
    """Size of every message, if it does not follow from the grid."""
    message_sizes: dict[Key, Bytes] = {}
    """Size by kind of message (`x`, `xy`, ..), if it does not follow from the grid."""
    exchange_count: CountOrZero = 1.0
    """Exchanges in one iteration."""
    inter_node_count: CountOrZero | None = None
    """K_inter, if measured; otherwise it is counted from the placement."""
    total_count: CountOrZero | None = None
    """K_total, if measured; otherwise it is counted from the placement."""


class RankGroup(StrictTable):
    """Ranks that take part in a collective together."""

    size: Count
    """Ranks of the group."""


class TransferPhase(StrictTable):
    """Copies between host and device, or within or between devices."""

    kind: Literal["transfer"]
    """Copies between host and device, or devices."""
    direction: Literal["host_to_device", "device_to_host", "device_to_device", "peer_to_peer"]
    """Between host and device, on one device, or between two devices of a node."""
    memory: Literal["pinned", "pageable"] = "pinned"
    """pinned: page-locked host memory; pageable: the driver copies it through its own buffers."""
    pageable_model: Literal["ahead", "staged", "projected"] = "ahead"
    """Model of pageable copies. ahead: Eq. 9 of AHEAD; staged: through the driver's buffers, with the measured
    `[node.host_link.staging]`; projected: the same with a rate estimated from the peak of the host memory."""
    transfer_size: Bytes | None = None
    """Size of one transfer."""
    halo: str | None = None
    """Instead of `transfer_size`: the halo phase whose messages of one rank are copied in one transfer."""
    transfer_count: CountOrZero = 1.0
    """Transfers in one iteration."""
    blocking: bool = False
    """Whether the host waits for the copy before it starts another kernel (`synchronisation_time` of the GPU)."""
    device_count: Count | None = None
    """Devices of the node that transfer at the same time and share the links of `[platform.node.links]`, or the host
    link that states how many devices share it; copies between devices go to the next device in a ring. Default: all
    devices with ranks."""


class OverheadPhase(StrictTable):
    """A fixed, measured time in every iteration."""

    kind: Literal["overhead"]
    """A fixed time."""
    overhead_time: Seconds
    """Time added to every iteration."""


class TracePhase(StrictTable):
    """The messages and computations of a traced run, replayed message by message."""

    kind: Literal["trace"]
    """A traced run, replayed."""
    file: str
    """Trace in the folder of the scenario: a file, or a folder with one file per rank."""
    model: TraceModel
    """Model of the message time; k_model counts k from the messages of the trace; pieces: by range of sizes, with the
    overheads of sender and receiver, as SimGrid's factors."""
    computation_factor: PositiveFactor = 1.0
    """Scale factor applied to traced computation times."""
    collectives: str = ""
    """Algorithms of collectives: a library whose rules select them by size and number of ranks (mpich, openmpi),
    algorithms of single operations, or both, as in "mpich, allreduce=ring"; by default the first one of each
    operation."""


class StructuredGridPhase(StrictTable):
    """One iteration of a structured-grid program with fitted parameters (Sharif et al., Eq. 1 to 6)."""

    kind: Literal["structured_grid"]
    """An iteration of a structured-grid program."""
    halo_cell_count: CountOrZero
    """H: halo cells of one process."""
    cell_rate: PerSecond
    """K_w: cells that one process computes per second."""
    packing_time: Seconds = 0.0
    """O_h: packing and unpacking, per halo cell."""
    overhead_time: Seconds = 0.0
    """O_w: synchronisation and kernel calls, per iteration."""
    halo_rate: PerSecond
    """K_b: halo cells exchanged per second; between nodes only, if `intra_node_halo_rate` is stated."""
    latency: Seconds = 0.0
    """O_l: communication latency, per iteration; between nodes only, if `intra_node_halo_rate` is stated."""
    intra_node_halo_rate: PerSecond | None = None
    """K_n: halo cells exchanged per second inside a node. Rows of the grid are on consecutive ranks: a rank at the edge
    of a node sends half of its halo to another node."""
    intra_node_latency: Seconds = 0.0
    """O_n: communication latency inside a node, per iteration."""
    reduction_time: Seconds = 0.0
    """K_r: one step of the global reduction."""
    miscellaneous_time: Seconds = 0.0
    """O_i: other time, per iteration."""
    cell_setup_time: Seconds = 0.0
    """O_c: initialisation of one cell, once."""
    startup_time: Seconds = 0.0
    """O_s: start-up of the program, once."""
    computation_factor: PositiveFactor | None = None
    """Computation time of a single run relative to the mean: 1 with the scatter of runs, e.g. `1 +- 3 %`."""
    communication_factor: PositiveFactor | None = None
    """Communication time of a single run relative to the mean."""
    setup_factor: PositiveFactor | None = None
    """All other time of a single run relative to the mean."""


class RegressionPhase(StrictTable):
    """Prediction of a regression over measured runs; `whatif fit regression -o` writes all keys except `variables`."""

    kind: Literal["regression"]
    """A regression fitted to measured runs."""
    category: Category = "kernel"
    """Category of the time, if the response is a time."""
    formula: str
    """Fitted formula, as written by its author."""
    response_unit: Unit
    """Unit of the response, such as `ms`; for `link = "log"`, of its exponential."""
    link: Literal["identity", "log"] = "identity"
    """identity: the sum of the terms is the response; log: the sum is its natural logarithm, so the response is
    positive and the prediction is its median."""
    units: dict[Key, Unit] = {}
    """Unit of each variable in the terms."""
    terms: dict[Key, str] = Field(min_length=1)
    """Expressions of the variables, such as `x1**2 * x2`; `1` is the intercept."""
    coefficients: dict[Key, AnyNumber]
    """Coefficient of each term."""
    residual: AnyNumber = 0.0
    """Residual added to the sum of the terms: 0 with the scatter of single runs around the fit."""
    variables: dict[Key, AnyQuantity] = {}
    """Value of each variable in this run."""


Phase = Annotated[
    KernelPhase
    | MeasuredKernelPhase
    | HaloPhase
    | CollectivePhase
    | TransferPhase
    | OverheadPhase
    | StructuredGridPhase
    | RegressionPhase
    | TracePhase
    | GemmPhase,
    Field(discriminator="kind"),
]


class Overlap(StrictTable):
    """Two phases that partly overlap in time."""

    phases: list[str] = Field(min_length=2, max_length=2)
    fraction: Fraction
    """Share of the shorter phase that is hidden behind the longer one."""


class Repeat(StrictTable):
    """A phase that runs several times in an iteration, or only in some, and ends with the slowest device."""

    repeat_count: Count = 1.0
    """Repetitions per iteration, such as the tracking iterations of a Monte Carlo code."""
    interval: Count = 1.0
    """Iterations between two occurrences: 20 for load balancing in every 20th iteration."""
    device_count: Count = 1.0
    """Devices that wait for each other."""
    device_spread: Fraction = 0.0
    """Load imbalance: relative standard deviation of the device times in one iteration."""


class Application(StrictTable):
    """An application: the phases of one iteration, and the number of iterations."""

    costly_points: ClassVar[bool] = False
    """Whether a simulation answers every point, whatever `communication` says."""
    kernels_follow_rates: ClassVar[bool] = False
    """Whether the kernels of this application, which has no phases in its file, follow the rates of the GPU."""
    states_whole: ClassVar[bool] = False
    """Whether the file states the work of all ranks together, without a grid: only strong scaling has a meaning."""
    refused_studies: ClassVar[Mapping[str, str]] = {}
    """Studies that do not apply to this application (`layout`, `scaling`), each with the error message."""

    name: str
    """Name of the program."""
    rank_count: Count
    """MPI processes, one per GPU unless `ranks_per_gpu` is stated; on sockets one per core."""
    ranks_per_gpu: Count = 1.0
    """MPI processes that share one GPU, each with an equal share of its rates."""
    gpu_sharing: Literal["mps", "time_slices"] = "mps"
    """How ranks share a GPU. mps: their kernels run at the same time, as under NVIDIA's MPS; time_slices: one rank has
    the GPU at a time, as without MPS."""
    ranks_per_node: Count | None = None
    """MPI processes on one node; by default `gpu_count` times `ranks_per_gpu`, on sockets one for each core or for each
    `threads_per_rank` cores."""
    runs_on: Literal["gpu", "cpu"] | None = None
    """Devices that kernels run on; by default GPUs if the nodes have any, else sockets."""
    threads_per_rank: Count | None = None
    """Most cores that a rank uses on sockets; by default all its cores of the node."""
    iteration_count: Count
    """Iterations (time steps) of one run."""
    memory_size: Bytes = 0.0
    """Memory required by one rank; checked against that of the GPU, or on sockets of the node, if it is stated. By
    default one copy of the cells of a grid whose halo is exchanged, of `element_size` each, else nothing."""
    buffers: Buffers | None = None
    """Memory that holds the data of halos and collectives. host: main memory; device: memory of the GPUs, sent over
    the peer links of a link domain and without copies between nodes; staged: the same, but copied to main memory and
    back between nodes. Default: device where kernels run on GPUs and the platform states peer links and no host
    messages inside a node, else host."""
    communication: Literal["modelled", "simulated", "shared_links"] = "modelled"
    """modelled: closed forms; simulated: halos and collectives are simulated message by message; shared_links: also
    simulated, and messages between nodes share the links of `[platform.network.topology]`."""
    congestion: Literal["modelled", "none"] = "modelled"
    """modelled: halos and collectives take longer where links of `[platform.network.topology]` are full, if it is
    stated; none: links have no limits, as in the models of Choi et al. 2020."""
    grid: CellGrid | None = None
    groups: dict[Key, RankGroup] = {}
    """Groups of ranks by name: nested axes of the ranks, the fastest first. A group of the first kind are consecutive
    ranks, those of the next one are as far apart as the product of the sizes before."""
    phases: dict[Key, Phase] = Field(min_length=1)
    overlaps: dict[Key, Overlap] = {}
    repeats: dict[Key, Repeat] = {}
    """Repetitions by phase, for programs whose load changes; the phase itself then describes one repetition on one
    device."""
    estimates: dict[Key, RegressionPhase] = {}
    """Regressions of quantities other than time, such as power or energy; each is a separate result."""

    @property
    def accuracy_model(self) -> str:
        """Model that computes all phases, if one does and its accuracy is known; else empty."""
        return ""

    def takes_model_error(self, phase: str) -> bool:
        """Whether a phase has the error of the model of all phases; not if it follows from the times of others."""
        return bool(self.accuracy_model)

    @property
    def keeps_whole(self) -> bool:
        """Whether the work of all ranks together stays the same for any number of them."""
        return self.states_whole or (self.grid is not None and self.grid.scaling == "strong")
