"""The application: ranks, grid and decomposition, iterations, and the phases of one iteration in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from whatif.schema.fields import (
    AnyNumber,
    AnyQuantity,
    Bytes,
    BytesPerSecond,
    Count,
    CountOrZero,
    Fraction,
    Operations,
    OperationsPerSecond,
    PerSecond,
    PositiveBytes,
    PositiveFactor,
    PositiveFraction,
    Seconds,
    StrictTable,
    Unit,
)
from whatif.vocabulary import Category, DistanceName, HaloModel, MessageModel, TraceModel

Key = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class CellGrid(StrictTable):
    """A Cartesian grid of cells on a Cartesian grid of ranks."""

    scaling: Literal["weak", "strong"]
    """weak: `cells` are those of one rank; strong: `cells` are those of all ranks together."""
    cells: dict[Key, Count] = Field(min_length=1)
    """Cells along each dimension, such as `{ x = 16384, y = 16384 }`."""
    decomposition: Literal["balanced", "ascending", "given", "bisection"] = "balanced"
    """balanced: as MPI_Dims_create, the largest extent first; ascending: the largest last, as MiniMD;
    given: `ranks`; bisection: recursive coordinate bisection as MiniFE."""
    ranks: dict[Key, Count] = {}
    """Ranks along each dimension, where the decomposition is given."""
    periodic: bool = False
    """Whether the grid is closed: a rank at the rim exchanges with the one at the other end."""
    order: Literal["c", "fortran"] = "c"
    """How ranks are numbered: c: the last dimension fastest, as MPI_Cart_create does; fortran: the first."""
    mapping: Literal["block", "round_robin", "tiles", "file"] = "block"
    """Which node a rank runs on: consecutive ranks, in turn, compact tiles, or as `mapping_file` says."""
    mapping_file: str | None = None
    """A file beside the scenario with the node number of every rank, one a line."""


class KernelPhase(StrictTable):
    """A GPU kernel on the quantitative roofline, from its profiled metrics."""

    kind: Literal["kernel"]
    """A GPU kernel."""
    model: Literal["roofline", "roofline_l2"]
    """roofline: compute or DRAM bound (gpuroofperf); roofline_l2: L2 bandwidth is a limit as well."""
    dominant_operation: Literal["fp_32", "fp_64", "integer"]
    """What most of the operations are: it decides which peak of the device counts."""
    metrics_per: Literal["profile", "launch", "cell", "rank"]
    """What `operations`, `dram_size` and `l2_size` count: the whole profile of `profiled_launch_count` launches,
    one launch, one cell of the rank's grid, or all of one rank's launches in an iteration."""
    profiled_launch_count: Count = 1.0
    """Launches in the profiled run, where the metrics are those of the whole profile."""
    operations: Operations
    """Dominant operations, a fused multiply-add counted as two."""
    dram_size: Bytes
    """Bytes read from and written to device memory."""
    l2_size: Bytes = 0.0
    """Bytes between the processors and the second-level cache."""
    operation_efficiency: PositiveFraction = 1.0
    """Share of the peak that the mix of operations allows (fused multiply-adds or not)."""
    compute_fraction: Fraction
    """Share of compute instructions in all instructions."""
    load_store_fraction: Fraction
    """Share of load and store instructions in all instructions."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    follows: Literal["cells", "surface", "nothing"] = "nothing"
    """What the work of a launch grows with when the rank's grid differs from `profiled_cells`."""
    profiled_cells: dict[Key, Count] = {}
    """The rank's grid in the profiled run."""


class HaloPhase(StrictTable):
    """Exchange of halos with the neighbours on the grid."""

    kind: Literal["halo"]
    """An exchange of halos."""
    model: HaloModel
    """postal, max_rate (k: ranks on a node), injection (Gropp's form), k_model (k: the share that leaves the node),
    loggp, or node_aware (ranks work off their own messages, nodes the bytes that leave them)."""
    neighbours: Literal["faces", "all"]
    """faces: 2 a dimension; all: edges and corners too (8 in two dimensions, 26 in three)."""
    concurrency: Literal["serialised", "concurrent"] = "serialised"
    """serialised: a rank's messages follow one another; concurrent: the slowest decides."""
    element_size: PositiveBytes = 8.0
    """Bytes of one cell in the halo."""
    halo_width: Count = 1.0
    """Cells the halo is deep."""
    message_size: Bytes | None = None
    """Size of every message, where it does not follow from the grid."""
    message_sizes: dict[Key, Bytes] = {}
    """Size by kind of message (`x`, `xy`, ..), where it does not follow from the grid."""
    exchange_count: CountOrZero = 1.0
    """Exchanges in one iteration."""
    inter_node_count: CountOrZero | None = None
    """K_inter, where it was measured; otherwise it is counted from the placement."""
    total_count: CountOrZero | None = None
    """K_total, where it was measured; otherwise it is counted from the placement."""


class CollectivePhase(StrictTable):
    """A collective operation over all ranks by a named algorithm."""

    kind: Literal["collective"]
    """A collective operation."""
    algorithm: Literal[
        "binomial_tree",
        "recursive_doubling",
        "ring",
        "rabenseifner",
        "dissemination",
        "ring_allgather",
        "bruck_allgather",
    ]
    model: MessageModel
    message_size: Bytes = 0.0
    """Size of the buffer that is broadcast, reduced or gathered; a dissemination barrier has none."""
    distance: DistanceName = "inter_node"
    """The distance whose parameters every round is charged with."""
    operation_count: CountOrZero = 1.0
    """Operations in one iteration."""


class TransferPhase(StrictTable):
    """Copies between host and device, or on or between devices."""

    kind: Literal["transfer"]
    """Copies between host and device, or devices."""
    direction: Literal["host_to_device", "device_to_host", "device_to_device", "peer_to_peer"]
    """Between host and device, on one device, or between two devices of a node."""
    memory: Literal["pinned", "pageable"] = "pinned"
    """Page-locked host memory, or memory that the driver has to copy first."""
    pageable_model: Literal["ahead", "staged", "projected"] = "ahead"
    """Pageable memory by Eq. 9 of AHEAD, or through the driver's buffers as `[node.host_link.staging]` says, or, where
    nobody measured it, at the rate that follows from the host memory's peak."""
    transfer_size: Bytes | None = None
    """Bytes of one transfer."""
    halo: str | None = None
    """Instead of `transfer_size`: the halo phase whose messages of one rank are copied, together."""
    transfer_count: CountOrZero = 1.0
    """Transfers in one iteration."""
    device_count: Count = 1.0
    """Devices of the node that transfer at the same time and share the links of `[platform.node.links]`; between
    devices, each to the next one in a ring."""


class OverheadPhase(StrictTable):
    """A fixed time in every iteration, measured."""

    kind: Literal["overhead"]
    """A fixed time."""
    overhead_time: Seconds
    """Time that passes in every iteration, whatever else happens."""


class MeasuredKernelPhase(StrictTable):
    """Kernels that were timed on another device, whose time follows one of its rates."""

    kind: Literal["measured_kernel"]
    """Kernels of which only the time is known."""
    kernel_time: Seconds
    """Time of one launch on the profiled device."""
    launch_count: CountOrZero = 1.0
    """Launches in one iteration."""
    bound: Literal["nothing", "dram_bandwidth", "peak_single_rate", "peak_double_rate"] = "nothing"
    """What limits them: their time is that on the profiled device, times its rate, over the same rate of this one.
    nothing: the time stays as it was measured."""
    profiled_bandwidth: BytesPerSecond | None = None
    """Memory bandwidth of the profiled device, for `bound = "dram_bandwidth"`."""
    profiled_rate: OperationsPerSecond | None = None
    """Peak rate of the profiled device, for a bound that is a peak."""


class TracePhase(StrictTable):
    """The messages and computations of a traced run, replayed message by message."""

    kind: Literal["trace"]
    """A traced run, replayed."""
    file: str
    """A trace beside the scenario: a file, or the folder that holds one file a rank."""
    model: TraceModel
    """What a message costs; k_model counts k from the messages of the trace."""
    computation_factor: PositiveFactor = 1.0
    """Computations of this machine take so many times as long as the traced ones."""


class StructuredGridPhase(StrictTable):
    """One iteration of a structured-grid program with fitted parameters (Sharif et al., Eq. 1 to 6)."""

    kind: Literal["structured_grid"]
    """An iteration of a structured-grid program."""
    halo_cell_count: CountOrZero
    """H: halo cells of one process."""
    cell_rate: PerSecond
    """K_w: cells one process computes a second."""
    packing_time: Seconds = 0.0
    """O_h: packing and unpacking, per halo cell."""
    overhead_time: Seconds = 0.0
    """O_w: synchronisation and kernel calls, per iteration."""
    halo_rate: PerSecond
    """K_b: halo cells exchanged a second; between nodes, where `intra_node_halo_rate` is stated."""
    latency: Seconds = 0.0
    """O_l: communication latency, per iteration; between nodes, where `intra_node_halo_rate` is stated."""
    intra_node_halo_rate: PerSecond | None = None
    """K_n: halo cells exchanged a second inside a node. Rows of the grid lie on consecutive ranks: from a node's edge
    half of the halo leaves the node."""
    intra_node_latency: Seconds = 0.0
    """O_n: communication latency inside a node, per iteration."""
    reduction_time: Seconds = 0.0
    """K_r: one step of the global reduction."""
    miscellaneous_time: Seconds = 0.0
    """O_i: anything else, per iteration."""
    cell_setup_time: Seconds = 0.0
    """O_c: initialisation of one cell, once."""
    startup_time: Seconds = 0.0
    """O_s: start-up of the program, once."""
    computation_factor: PositiveFactor | None = None
    """What a single run's computation takes of the mean: 1, and as far from it as runs scatter, `1 +- 3 %`."""
    communication_factor: PositiveFactor | None = None
    """The same of its communication."""
    setup_factor: PositiveFactor | None = None
    """The same of all else."""


class RegressionPhase(StrictTable):
    """What a regression of measured runs gives for this run: `whatif fit regression -o` writes all but `variables`."""

    kind: Literal["regression"]
    """A regression fitted to runs."""
    category: Category = "kernel"
    """What kind of time it is, where it is one."""
    formula: str
    """The formula that was fitted, as its author wrote it."""
    response_unit: Unit
    """What the regression is in: `ms`; for `link = "log"`, what its exponential is in."""
    link: Literal["identity", "log"] = "identity"
    """identity: the sum of the terms is the response; log: it is the response's natural logarithm, so that the
    response is positive, and the prediction its median."""
    units: dict[Key, Unit] = {}
    """What each variable is in where a term reads it."""
    terms: dict[Key, str] = Field(min_length=1)
    """Expressions of the variables, such as `x1**2 * x2`; `1` is the intercept."""
    coefficients: dict[Key, AnyNumber]
    """What each term is multiplied by."""
    residual: AnyNumber = 0.0
    """What is added to the sum of the terms: 0, and as far from it as single runs were from the fit."""
    variables: dict[Key, AnyQuantity] = {}
    """The value of each variable in this run."""


Phase = Annotated[
    KernelPhase
    | MeasuredKernelPhase
    | HaloPhase
    | CollectivePhase
    | TransferPhase
    | OverheadPhase
    | StructuredGridPhase
    | RegressionPhase
    | TracePhase,
    Field(discriminator="kind"),
]


class Overlap(StrictTable):
    """Two phases that run partly at the same time."""

    phases: list[str] = Field(min_length=2, max_length=2)
    fraction: Fraction
    """Share of the shorter phase that is hidden behind the longer one."""


class Repeat(StrictTable):
    """A phase that runs often in an iteration, or not in each, and ends when the slowest device does."""

    repeat_count: Count = 1.0
    """Times in an iteration, such as the tracking iterations of a Monte Carlo code."""
    interval: Count = 1.0
    """Iterations from one to the next: population control or load balancing in every 20th."""
    device_count: Count = 1.0
    """Devices that wait for one another."""
    device_spread: Fraction = 0.0
    """Standard deviation of a device's time in one iteration, relative to the mean: the imbalance."""


class Application(StrictTable):
    """An application: what one iteration does, and how often."""

    costly_points: ClassVar[bool] = False
    """Whether a simulation answers every point, whatever `communication` says."""
    refused_studies: ClassVar[Mapping[str, str]] = {}
    """Studies that do not apply to this application (`layout`, `scaling`), each with the error message."""

    name: str
    """The program, as people call it."""
    rank_count: Count
    """Processes, one for each GPU unless `ranks_per_gpu` says otherwise."""
    ranks_per_gpu: Count = 1.0
    """Processes that share one GPU."""
    ranks_per_node: Count | None = None
    """Processes on one node, where they are not those of its GPUs."""
    iteration_count: Count
    """Iterations, or time steps, of one run."""
    memory_size: Bytes = 0.0
    """Device memory one rank needs; checked against the GPU's where both are stated."""
    communication: Literal["modelled", "simulated", "shared_links"] = "modelled"
    """modelled: closed forms; simulated: halos and collectives are played message by message;
    shared_links: so are they, and messages between nodes share the links of `[platform.network.topology]`."""
    grid: CellGrid | None = None
    phases: dict[Key, Phase] = Field(min_length=1)
    overlaps: dict[Key, Overlap] = {}
    repeats: dict[Key, Repeat] = {}
    """By phase, for programs whose load changes as they run: what is stated of it is one repetition on one device."""
    estimates: dict[Key, RegressionPhase] = {}
    """Regressions of what is no time, such as power or energy: each is a result of its own."""
