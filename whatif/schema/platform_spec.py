"""Tables of a platform: nodes, devices, links, network parameters."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from whatif.errors import did_you_mean
from whatif.schema.blas_kernels import Kernels
from whatif.schema.explain_errors import known_keys
from whatif.schema.fields import (
    LINK_END_PATTERN,
    Bytes,
    BytesPerSecond,
    Count,
    Domain,
    Key,
    Measured,
    Operations,
    OperationsPerSecond,
    PerSecond,
    PositiveBytes,
    PositiveFraction,
    PositiveSeconds,
    QuantityField,
    Seconds,
    StrictTable,
    Value,
    Watts,
    invalid,
    quantity_field,
)
from whatif.schema.gpu import GPU
from whatif.schema.network import Network
from whatif.schema.price import Price, Site
from whatif.schema.toml import key_path
from whatif.units import ONE, Quantity

Grade = Literal["measured", "datasheet", "assumed"]
GRADES: tuple[Grade, ...] = ("measured", "datasheet", "assumed")

PCIeGeneration = Annotated[Value, QuantityField(ONE, Domain(minimum=1, maximum=6, whole=True))]


class Source(StrictTable):
    """Source of a value, and its grade."""

    grade: Grade
    source: str
    """Reference: paper and table, data sheet, file of a repository."""


class FitRecord(StrictTable):
    """Uncertainty of the fitted values of one table."""

    parameters: list[str]
    """Names of the fitted values of the table."""
    values: list[Measured] = []
    """Fitted values; a value changed by hand since then has no uncertainty from the fit."""
    standard_errors: list[Measured]
    """Standard error of each value, with its unit."""
    correlation: list[list[Annotated[float, Field(ge=-1, le=1)]]]
    """Correlation matrix of the values."""
    ranges: dict[str, Annotated[list[Measured], Field(min_length=2, max_length=2)]] = {}
    """Smallest and largest value of each variable of the points, such as `message_size`."""
    point_count: Annotated[int, Field(ge=1)]
    """Number of fitted points."""
    error: Annotated[float, Field(ge=0)]
    """Root mean square of the relative residuals."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count, errors, rows = len(self.parameters), self.standard_errors, self.correlation
        if len(errors) != count or [len(row) for row in rows] != [count] * count or len(self.values) not in (0, count):
            wanted = "`values`, `standard_errors` and the rows and columns of `correlation`"
            raise invalid(f"{wanted} must have as many entries as `parameters`")
        if not all(isinstance(item, Quantity) and item.value >= 0 for item in errors):
            raise invalid("`standard_errors` must be non-negative quantities")
        if any(rows[at][at] != 1 for at in range(count)) or rows != [list(row) for row in zip(*rows, strict=True)]:
            raise invalid("`correlation` must be symmetric with ones on its diagonal")
        if not _positive(rows):
            raise invalid("`correlation` is not a correlation matrix: it has a negative eigenvalue")
        if any(low.value > high.value or low.dimension != high.dimension for low, high in self.ranges.values()):
            raise invalid("`ranges` must state the smallest and the largest value, in one unit")
        return self


class FittedData(StrictTable):
    """Runs that a phase was fitted to, and the versions of the software that fitted them."""

    file: str = ""
    run_count: Annotated[int, Field(ge=1)]
    freedom: Annotated[int, Field(ge=0)] = 0
    """Degrees of freedom: number of runs minus number of fitted parameters."""
    fingerprint: str = ""
    """SHA-256 of the columns, in their written units."""
    versions: dict[str, str] = {}


def _positive(rows: list[list[float]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, up to rounding in print."""
    import numpy as np

    return bool(np.linalg.eigvalsh(np.array(rows)).min() > -1e-3) if rows else True


class CPU(StrictTable):
    """The processor of one socket."""

    name: str
    """Vendor's name of the processor."""
    core_count: Count
    """Cores per socket."""
    peak_double_rate: OperationsPerSecond
    """Double-precision operations per second of one socket (a fused multiply-add counts as two)."""
    peak_single_rate: OperationsPerSecond | None = None
    """Single-precision operations per second of one socket; of kernels by default twice the double-precision ones."""
    sustained_clock: PerSecond | None = None
    """Clock of all cores under vector load; kernels run at it where the operations per cycle are stated too, else at
    the peak rates."""
    double_operations_per_cycle: Operations | None = None
    """Double-precision operations of one core in a cycle, such as `32 flop`."""
    single_operations_per_cycle: Operations | None = None
    """Single-precision operations of one core in a cycle."""
    memory_bandwidth: BytesPerSecond | None = None
    """Sustained memory bandwidth of one socket, as a triad on all its cores reaches it; by default
    `sustained_fraction` of its peak, `node.host.memory_bandwidth`."""
    sustained_fraction: PositiveFraction = 0.75
    """Share of the peak memory bandwidth that a triad sustains, where `memory_bandwidth` is not stated."""
    core_bandwidth: BytesPerSecond | None = None
    """Memory bandwidth of one active core; by default `core_fraction` of that of the socket."""
    core_fraction: PositiveFraction = 0.125
    """Share of the socket's memory bandwidth that one active core draws, where `core_bandwidth` is not stated."""
    numa_domain_count: Count = 1.0
    """Parts of a socket with their own memory; ranks are divided evenly among them."""
    cache_size: PositiveBytes | None = None
    """Last-level cache of one socket, for kernels with a `working_set`."""
    cache_bandwidth: BytesPerSecond | None = None
    """Bandwidth between the cores of one socket and the caches that hold reused data: a `working_set` that fits in
    `cache_size`, or the innermost columns of the panels of HPL."""
    core_reuse_bandwidth: BytesPerSecond | None = None
    """Bandwidth of one core for data that a kernel loads again from the first cache while it streams from memory, for
    kernels with a `load_store_size`."""
    cache_reuse_bandwidth: BytesPerSecond | None = None
    """The same of all cores of one socket, while they stream from the last-level cache."""
    idle_power: Watts | None = None
    """Power of one socket when no kernel runs."""
    dynamic_power: Watts | None = None
    """Additional power of one socket while a kernel runs on the processor."""


class SocketMemory(StrictTable):
    """Memory of one socket, which its processor determines."""

    memory_bandwidth: BytesPerSecond | None = None
    """Peak bandwidth of the memory of one socket; pageable transfers are copied once more inside it. By default that
    of the data sheet in the part of the processor."""


class Host(SocketMemory):
    """Host memory and the power of the rest of the node."""

    memory_size: PositiveBytes | None = None
    """Memory of one node."""
    staging_read_pass_count: Count | None = None
    """Times that a byte crosses the memory bus when a pageable copy to the device is staged, for projections: 2 by
    default, 3 if the cache fetches each line of the driver's buffers before it is overwritten."""
    staging_write_pass_count: Count | None = None
    """The same as `staging_read_pass_count`, for copies to the host."""
    power: Watts | None = None
    """Constant power of the rest of one node: memory, adapters, fans, losses of the power supply; includes the
    processors if there is no `[node.cpu]`."""


class Staging(StrictTable):
    """Pageable copies by the driver: through pinned buffers of one chunk, filled and emptied by the processor."""

    chunk_size: PositiveBytes = 2.0**20
    """Size of one pinned buffer of the driver: 1 MiB on every machine measured."""
    read_bandwidth: BytesPerSecond
    """Host to device: bandwidth at which the processor copies from pageable memory to the buffers."""
    write_bandwidth: BytesPerSecond
    """Device to host: bandwidth at which the processor copies from the buffers to pageable memory."""
    cache_size: Bytes = 0.0
    """Size of the first part of a copy that is held in the processor's cache; 0: no effect of the cache."""
    cached_read_bandwidth: BytesPerSecond | None = None
    """The same as `read_bandwidth`, for bytes in the cache."""
    cached_write_bandwidth: BytesPerSecond | None = None
    """The same as `write_bandwidth`, for bytes in the cache."""


class LinkTable(StrictTable):
    """Latencies of a host-device link: measured times of a 1 B copy."""

    pinned_read_latency: Seconds
    """Host to device from page-locked memory: latency and overhead, the time of a 1 B copy."""
    pinned_write_latency: Seconds
    """Device to host into page-locked memory: the time of a 1 B copy."""
    pageable_read_latency: Seconds
    """Host to device from pageable memory: the time of a 1 B copy."""
    pageable_write_latency: Seconds
    """Device to host into pageable memory: the time of a 1 B copy."""
    device_count: Count | None = None
    """Devices that share the link for copies, such as the two tiles of a card. By default each has its own, or the
    links of `[node.links]`, which replace this number."""
    peer_count: Count | None = None
    """Other devices to which one device of a mesh has such links; more of them share its links. By default it has
    links to all."""
    staging: Staging | None = None
    """Staging of pageable memory, for `pageable_model = "staged"`."""


class PCIe(LinkTable):
    """PCI Express, by its transaction-layer packets (Abdelhafez et al., Eq. 3 to 5)."""

    kind: Literal["pcie"]
    """PCI Express."""
    generation: PCIeGeneration
    lane_count: Count = 16.0
    maximum_payload_size: PositiveBytes = 128.0
    """MPS: payload of a memory-write packet."""
    maximum_read_request_size: PositiveBytes = 512.0
    """MRRS: bytes requested by one read request."""
    read_completion_size: PositiveBytes = 64.0
    """RCB: payload of one read completion."""
    request_header_size: Bytes = 24.0
    """Overhead of a memory read or write packet with a 64-bit address: framing 2, sequence 2, header 16, LCRC 4 B
    (PCI Express specification). With the 30 B of the released AHEAD tool the error on Titan's writes is 3.6 instead of
    0.3 %."""
    completion_header_size: Bytes = 20.0
    """Overhead of a completion with data: framing 2, sequence 2, header 12, LCRC 4 B."""


class NVLink(LinkTable):
    """NVLink, by its flits (Abdelhafez et al., Eq. 6 to 8)."""

    kind: Literal["nvlink"]
    """NVLink."""
    link_count: Count
    """Links (bricks) between the host, or the peer, and the device."""
    lane_count: Count = 8.0
    """Lanes of one link in one direction."""
    lane_bandwidth: BytesPerSecond
    """Bandwidth of one lane in one direction."""
    flit_size: PositiveBytes = 16.0
    """Size of a flit, the unit of packets."""
    maximum_payload_size: PositiveBytes = 256.0
    """Largest payload of one packet."""


HostLink = Annotated[PCIe | NVLink, Field(discriminator="kind")]


class NodeLink(StrictTable):
    """A link inside a node, shared by concurrent copies."""

    ends: list[Annotated[str, Field(pattern=LINK_END_PATTERN)]] = Field(min_length=2, max_length=2)
    """Its two ends: `cpu0`, `gpu3`, `switch1`, ..; sockets and devices count from 0."""
    bandwidth: BytesPerSecond
    """Bandwidth in each direction; both directions work at the same time."""


class Node(StrictTable):
    """One node."""

    gpu_count: Count | None = None
    """GPUs per node; omitted for a machine without GPUs."""
    socket_count: Count
    """Sockets per node; GPUs and ranks are divided evenly among them."""
    gpu: GPU | None = None
    cpu: CPU | None = None
    host: Host = Host()
    host_link: HostLink | None = None
    """Link between host memory and one device."""
    peer_link: HostLink | None = None
    """Link from one device to the others of its link domain."""
    domain_gpu_count: Count | None = None
    """Devices of a link domain, which peer links connect: a part of a node, or those of several nodes, such as 72 of a
    rack. Default: those of a node."""
    domain_topology: Literal["mesh", "ring", "switch"] = "mesh"
    """Peer links of a link domain. mesh: one to each other device; ring: one to each of two neighbours; switch: one to
    switches, through which it reaches every other device."""
    switch_reduction: bool = False
    """Whether the switches of a link domain reduce, as those of NVLink 4 and later."""
    links: dict[Key, NodeLink] = {}
    """Links by name, which concurrent copies of several devices share."""
    network_power: Watts = 0.0
    """One node's share of the power of the switches; 0 if `host.power` includes it."""
    failure_interval: PositiveSeconds | None = None
    """Mean time between failures of one node that end a job."""

    @model_validator(mode="after")
    def _has_device(self) -> Self:
        if (self.gpu is None) != (self.gpu_count is None):
            there, missing = ("gpu_count", "[node.gpu]") if self.gpu is None else ("[node.gpu]", "gpu_count")
            message = f"`{missing}` is missing, but `{there}` is stated; a machine without GPUs has neither"
            raise invalid(message)
        return self


class PlatformSpec(StrictTable):
    """A machine."""

    name: str
    """Name of the machine."""
    description: str = ""
    """Description in one sentence."""
    node_count: Count
    """Nodes of the machine."""
    node: Node
    network: Network
    site: Site = Site()
    """Site of the machine: cooling and carbon intensity of its energy."""
    price: Price | None = None
    """Price of the nodes, bought or rented."""
    kernels: Kernels | None = None
    """Calibrated costs of the kernels of HPL."""
    sources: dict[str, Source] = {}
    """Source and grade of the values, by path; `*` matches one key and a path covers everything below it."""
    fits: dict[str, FitRecord] = {}
    """Uncertainty of fitted values, by the path of the table that holds them."""

    def lack(self, path: str) -> str:
        """Reason why a machine without GPUs has no parameter of them; empty for other machines and parameters."""
        of_gpus = path == "platform.node.gpu_count" or path.startswith("platform.node.gpu.")
        return f"{self.name} has no GPUs" if of_gpus and self.node.gpu is None else ""

    @model_validator(mode="after")
    def _fits_of_values(self) -> Self:
        """Check the names and units of `fits` by type only, as a part may have replaced the fitted table."""
        for path, fit in self.fits.items():
            table: object = self
            for key in path.split("."):
                table = getattr(table, key, None)
            fields = type(table).model_fields if isinstance(table, StrictTable) else {}
            known = known_keys(type(self), {}, key_path(path))
            for name, error in zip(fit.parameters, fit.standard_errors, strict=True):
                if name not in known:
                    raise invalid(f"`{path}` has no value `{name}`{did_you_mean(name, known)}", path="fits")
                field = quantity_field(fields.get(name))
                if field is not None and field.dimension != error.dimension:
                    raise invalid(f"`{path}`: the standard error of `{name}` is in {error.dimension}", path="fits")
        return self
