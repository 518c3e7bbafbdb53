"""The machine: nodes, devices, links and the parameters of its network."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from whatif.errors import did_you_mean
from whatif.schema.blas_kernels import Kernels
from whatif.schema.explain_errors import known_keys
from whatif.schema.fields import (
    Bytes,
    BytesPerSecond,
    Count,
    Domain,
    Measured,
    OperationsPerSecond,
    PositiveBytes,
    PositiveFactor,
    QuantityField,
    Seconds,
    StrictTable,
    Value,
    Watts,
    quantity_field,
)
from whatif.schema.network import Network
from whatif.schema.price import Price, Site
from whatif.units import ONE, Quantity

Grade = Literal["measured", "datasheet", "assumed"]
GRADES: tuple[Grade, ...] = ("measured", "datasheet", "assumed")

PCIeGeneration = Annotated[Value, QuantityField(ONE, Domain(minimum=1, maximum=6, whole=True))]


class Source(StrictTable):
    """Where a value comes from, and how far it can be trusted."""

    grade: Grade
    source: str
    """A reference a reader can follow: paper and table, data sheet, file of a repository."""


class FitRecord(StrictTable):
    """How well the parameters of one table are known, from the fit that gave them."""

    parameters: list[str]
    """Names of the values of the table that the fit tells the uncertainty of."""
    values: list[Measured] = []
    """Those values as they were fitted: one that was changed since by hand is no longer the fit's."""
    standard_errors: list[Measured]
    """Standard error of each of them, with its unit."""
    correlation: list[list[Annotated[float, Field(ge=-1, le=1)]]]
    """Correlation matrix: with the standard errors it makes the covariance."""
    ranges: dict[str, Annotated[list[Measured], Field(min_length=2, max_length=2)]] = {}
    """Least and largest value of each variable of the points, such as `message_size`."""
    point_count: Annotated[int, Field(ge=1)]
    """Points that were fitted."""
    error: Annotated[float, Field(ge=0)]
    """Root mean square of the relative residuals."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count, errors, rows = len(self.parameters), self.standard_errors, self.correlation
        if len(errors) != count or [len(row) for row in rows] != [count] * count or len(self.values) not in (0, count):
            wanted = "`values`, `standard_errors` and the rows and columns of `correlation`"
            raise _error(f"{wanted} must be as many as `parameters`")
        if not all(isinstance(item, Quantity) and item.value >= 0 for item in errors):
            raise _error("`standard_errors` must be quantities that are not negative")
        if any(rows[at][at] != 1 for at in range(count)) or rows != [list(row) for row in zip(*rows, strict=True)]:
            raise _error("`correlation` must be symmetric with ones on its diagonal")
        if not _positive(rows):
            raise _error("`correlation` is no correlation: the matrix has a negative eigenvalue")
        if any(low.value > high.value or low.dimension != high.dimension for low, high in self.ranges.values()):
            raise _error("`ranges` must be the least and the largest value, in one unit")
        return self


class FittedData(StrictTable):
    """The runs that a phase was fitted to, and what fitted them."""

    file: str = ""
    run_count: Annotated[int, Field(ge=1)]
    freedom: Annotated[int, Field(ge=0)] = 0
    """Runs beyond the fitted parameters."""
    fingerprint: str = ""
    """SHA-256 of the columns, in the units they were written in."""
    versions: dict[str, str] = {}


def _positive(rows: list[list[float]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, but for rounding in print."""
    import numpy as np

    return bool(np.linalg.eigvalsh(np.array(rows)).min() > -1e-3) if rows else True


def _error(message: str, path: str = "") -> PydanticCustomError:
    return PydanticCustomError("fit", "{message}", {"message": message, **({"path": path} if path else {})})


class GPU(StrictTable):
    """One device: measured or datasheet peaks, as gpuroofperf's GPU files give them."""

    name: str
    """The device, as its vendor calls it."""
    peak_single_rate: OperationsPerSecond
    """Single-precision operations a second (a fused multiply-add counts two)."""
    peak_double_rate: OperationsPerSecond
    """Double-precision operations a second."""
    peak_integer_rate: OperationsPerSecond
    """Integer multiply-add operations a second."""
    peak_add_rate: OperationsPerSecond
    """Integer additions a second."""
    peak_shared_rate: OperationsPerSecond
    """Shared-memory operations a second."""
    dram_bandwidth: BytesPerSecond
    """Bytes a second between the processors and device memory, as measured."""
    l2_bandwidth: BytesPerSecond
    """Bytes a second between the processors and the second-level cache, as measured."""
    memory_size: PositiveBytes | None = None
    """Memory of one device; checked against `application.memory_size` where both are stated."""
    copy_latency: Seconds | None = None
    """Latency and overhead of a copy inside the device: the time of one byte."""
    idle_power: Watts | None = None
    """Power that one device draws when no kernel runs."""
    dynamic_power: Watts | None = None
    """What a running kernel adds to it."""
    power_cap: Watts | None = None
    """Limit of the device's power; under it, kernels compute at a lower clock."""
    power_exponent: PositiveFactor = 3.0
    """Power of the clock that dynamic power follows, for `power_cap`: 3 where the voltage follows the clock."""


class CPU(StrictTable):
    """The processor of one socket."""

    name: str
    """The processor, as its vendor calls it."""
    core_count: Count
    """Cores of one socket."""
    peak_double_rate: OperationsPerSecond
    """Double-precision operations a second of one socket (a fused multiply-add counts two)."""
    peak_single_rate: OperationsPerSecond | None = None
    """Single-precision operations a second of one socket."""
    cache_bandwidth: BytesPerSecond | None = None
    """Bytes a second between the cores of one socket and the caches that hold what they work on again and again, such
    as the innermost columns of HPL's panels."""
    idle_power: Watts | None = None
    """Power that one socket draws when no kernel runs."""
    dynamic_power: Watts | None = None
    """What kernels that run on the processor add to it."""


class Host(StrictTable):
    """The processor's memory, as transfers see it."""

    memory_bandwidth: BytesPerSecond | None = None
    """Bytes a second that a copy in host memory moves; pageable transfers are copied once more."""
    memory_size: PositiveBytes | None = None
    """Memory of one node."""
    staging_read_pass_count: Count | None = None
    """Times that a byte crosses the memory's bus when a pageable copy to the device is staged, for projections: 2 where
    it is not stated, 3 where the cache fetches each line of the driver's buffers before it is overwritten."""
    staging_write_pass_count: Count | None = None
    """Like `staging_read_pass_count`, for copies to the host."""
    power: Watts | None = None
    """What else of one node draws power at any time: memory, adapters, fans, losses of its supply; its processors too
    where there is no `[node.cpu]`."""


class Staging(StrictTable):
    """How the driver moves pageable memory: through pinned buffers of one chunk, copied by the processor."""

    chunk_size: PositiveBytes = 2.0**20
    """Bytes of one pinned buffer of the driver: 1 MiB on every machine measured."""
    read_bandwidth: BytesPerSecond
    """Host to device: bytes a second that the processor copies from pageable memory to the buffers."""
    write_bandwidth: BytesPerSecond
    """Device to host: bytes a second that the processor copies from the buffers to pageable memory."""
    cache_size: Bytes = 0.0
    """First bytes of a copy that the processor's cache holds; 0 where that makes no difference."""
    cached_read_bandwidth: BytesPerSecond | None = None
    """Like `read_bandwidth`, for the bytes in the cache."""
    cached_write_bandwidth: BytesPerSecond | None = None
    """Like `write_bandwidth`, for the bytes in the cache."""


class LinkTable(StrictTable):
    """What every host-device link has: the measured time of one byte."""

    pinned_read_latency: Seconds
    """Host to device from page-locked memory: latency and overhead, the time of one byte."""
    pinned_write_latency: Seconds
    """Device to host into page-locked memory: the time of one byte."""
    pageable_read_latency: Seconds
    """Host to device from pageable memory: the time of one byte."""
    pageable_write_latency: Seconds
    """Device to host into pageable memory: the time of one byte."""
    staging: Staging | None = None
    """The way of pageable memory, for `pageable_model = "staged"`."""


class PCIe(LinkTable):
    """PCI Express, by its transaction-layer packets (Abdelhafez et al., Eq. 3 to 5)."""

    kind: Literal["pcie"]
    """PCI Express."""
    generation: PCIeGeneration
    lane_count: Count = 16.0
    maximum_payload_size: PositiveBytes = 128.0
    """MPS: payload of a memory-write packet."""
    maximum_read_request_size: PositiveBytes = 512.0
    """MRRS: bytes one read request asks for."""
    read_completion_size: PositiveBytes = 64.0
    """RCB: payload of one read completion."""
    request_header_size: Bytes = 24.0
    """Overhead of a memory read or write packet with a 64-bit address: framing 2, sequence 2, header 16, LCRC 4 B
    (PCI Express specification). With the 30 B of the released AHEAD tool Titan's writes are 3.6 % off, not 0.3 %."""
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
    """Bytes a second of one lane in one direction."""
    flit_size: PositiveBytes = 16.0
    """Bytes of a flit, the unit that packets are made of."""
    maximum_payload_size: PositiveBytes = 256.0
    """Most data of one packet."""


HostLink = Annotated[PCIe | NVLink, Field(discriminator="kind")]


class NodeLink(StrictTable):
    """A link inside a node that several copies may share."""

    ends: list[Annotated[str, Field(pattern=r"^(cpu|gpu|switch)[0-9]+$")]] = Field(min_length=2, max_length=2)
    """What it joins: `cpu0`, `gpu3`, `switch1`, .., sockets and devices counted from 0."""
    bandwidth: BytesPerSecond
    """Bytes a second in each direction, both at the same time."""


class Node(StrictTable):
    """One node."""

    gpu_count: Count | None = None
    """GPUs per node; not stated for a machine without."""
    socket_count: Count
    """Sockets per node; GPUs and ranks are divided evenly among them."""
    gpu: GPU | None = None
    cpu: CPU | None = None
    host: Host = Host()
    host_link: HostLink | None = None
    """Between host memory and one device."""
    peer_link: HostLink | None = None
    """Between two devices of a node."""
    links: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], NodeLink] = {}
    """The graph of links that devices copying at the same time share."""
    network_power: Watts = 0.0
    """One node's share of what the switches draw; 0 where `host.power` has it in it."""

    @model_validator(mode="after")
    def _has_device(self) -> Self:
        if (self.gpu is None) != (self.gpu_count is None):
            there, missing = ("gpu_count", "[node.gpu]") if self.gpu is None else ("[node.gpu]", "gpu_count")
            message = f"`{missing}` is missing beside `{there}`; a machine without GPUs has neither"
            raise _error(message)
        return self


class PlatformSpec(StrictTable):
    """A machine."""

    name: str
    """The machine, as people call it."""
    description: str = ""
    """What it is, in a sentence."""
    node_count: Count
    """Nodes of the machine."""
    node: Node
    network: Network
    site: Site = Site()
    """What the place of the machine adds to its energy."""
    price: Price | None = None
    """What its nodes cost, bought or rented."""
    kernels: Kernels | None = None
    """What the kernels of HPL cost, where they were calibrated."""
    sources: dict[str, Source] = {}
    """Source and grade of the values, by path; `*` stands for one key and a path covers all below it."""
    fits: dict[str, FitRecord] = {}
    """Uncertainty of fitted values, by the path of the table that holds them."""

    @model_validator(mode="after")
    def _fits_of_values(self) -> Self:
        """A part may have taken the place of a table that was fitted: only its type is asked."""
        for path, fit in self.fits.items():
            table: object = self
            for key in path.split("."):
                table = getattr(table, key, None)
            fields = type(table).model_fields if isinstance(table, StrictTable) else {}
            known = known_keys(type(self), {}, tuple(path.split(".")))
            for name, error in zip(fit.parameters, fit.standard_errors, strict=True):
                if name not in known:
                    raise _error(f"`{path}` has no value `{name}`{did_you_mean(name, known)}", "fits")
                field = quantity_field(fields.get(name))
                if field is not None and field.dimension != error.dimension:
                    raise _error(f"`{path}`: the standard error of `{name}` is in {error.dimension}", "fits")
        return self
