"""The network of a machine: what a message costs by distance and protocol, and the links between the nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from whatif.schema.fields import (
    Bytes,
    BytesPerSecond,
    BytesPerSecondOrZero,
    Count,
    Domain,
    PositiveFactor,
    PositiveFraction,
    QuantityField,
    Seconds,
    StrictTable,
    Value,
)
from whatif.units import ONE

Key = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class PostalParameters(StrictTable):
    """Start-up time and bandwidth of one protocol (Choi et al. 2020, Table 2: α and 1/β; Table 3)."""

    latency: Seconds
    """α: time of an empty message."""
    bandwidth: BytesPerSecond
    """1/β: a time per byte such as `0.155 ns/B` may be written instead."""


class MaxRateParameters(StrictTable):
    """Three-parameter max-rate model (Choi et al. 2020, Eq. 2 and Table 4)."""

    latency: Seconds
    """α: time of an empty message."""
    base_bandwidth: BytesPerSecond
    """R_Cb: bandwidth sustained by a single process."""
    additional_bandwidth: BytesPerSecondOrZero
    """R_Ci: bandwidth that each further process adds."""


class InjectionParameters(StrictTable):
    """Max-rate model in Gropp's original form (Gropp et al. 2016)."""

    latency: Seconds
    """α: time of an empty message."""
    process_bandwidth: BytesPerSecond
    """R_b: bandwidth a single process can reach."""
    injection_bandwidth: BytesPerSecond
    """R_N: bandwidth at which the node can inject into the network."""


class LogGPParameters(StrictTable):
    """LogGP (Alexandrov et al. 1997)."""

    latency: Seconds
    """L: time on the wire."""
    overhead_time: Seconds
    """o: time a processor is busy with sending or receiving."""
    bandwidth: BytesPerSecond
    """1/G: bandwidth of long messages."""
    gap_time: Seconds = 0.0
    """g: least time between two messages of one processor; only a simulation keeps to it."""
    processing_bandwidth: BytesPerSecond | None = None
    """1/O: bytes a second that a processor handles (LogGOPS); only a simulation charges it."""


class Postal(StrictTable):
    """Postal parameters by protocol."""

    short: PostalParameters
    eager: PostalParameters
    rendezvous: PostalParameters


class MaxRate(StrictTable):
    """Max-rate parameters by protocol: two for short messages, three for the others."""

    short: PostalParameters
    eager: MaxRateParameters
    rendezvous: MaxRateParameters


class Injection(StrictTable):
    """Parameters of Gropp's form by protocol."""

    short: InjectionParameters
    eager: InjectionParameters
    rendezvous: InjectionParameters


class LogGP(StrictTable):
    """LogGP parameters by protocol."""

    short: LogGPParameters
    eager: LogGPParameters
    rendezvous: LogGPParameters


class Mode(StrictTable):
    """One way that messages of a size may go (N'): a mixture of some slow and many fast ones."""

    weight: PositiveFraction
    """Share of the messages."""
    factor: PositiveFactor
    """Their time, relative to the line of the piece."""


class Piece(StrictTable):
    """Messages of a range of sizes (M'): a line in the size, and what the two processes are busy with themselves."""

    smallest_size: Bytes
    """Where the range begins; it ends where the next one begins."""
    latency: Seconds
    """Time of an empty message."""
    bandwidth: BytesPerSecond
    """Bytes a second."""
    send_overhead: Seconds = 0.0
    """Time that the sender of a message that does not wait is busy, before it leaves."""
    send_bandwidth: BytesPerSecond | None = None
    """Bytes a second that it handles meanwhile."""
    receive_overhead: Seconds = 0.0
    """Time that the receiver of such a message is busy, after it has arrived."""
    receive_bandwidth: BytesPerSecond | None = None
    """Bytes a second that it handles meanwhile."""
    modes: dict[Key, Mode] = {}
    """Modes of the time, drawn where the noise of HPL says so; none: every message takes the same."""


class Distance(StrictTable):
    """Messages between two processes at one distance: protocol limits and the parameters of each model."""

    short_limit: Bytes
    """Largest message sent with the short protocol."""
    eager_limit: Bytes
    """Largest message sent with the eager protocol; longer ones use rendezvous."""
    postal: Postal | None = None
    max_rate: MaxRate | None = None
    injection: Injection | None = None
    loggp: LogGP | None = None
    pieces: dict[Key, Piece] = {}
    """Pieces of a calibration with as many ranges of sizes as it found; only HPL is charged with them."""
    pieces_eager_limit: Bytes | None = None
    """Largest message charged by `pieces` that its sender does not wait for; `eager_limit` where not stated."""
    pieces_early_limit: Bytes | None = None
    """Largest message that leaves before its receive is posted, where that is less than `pieces_eager_limit`; larger
    ones leave when it is posted, while their sender goes on, as with SimGrid's smpi/async-small-thresh."""


class Links(StrictTable):
    """What every topology has: one link, in one direction."""

    bandwidth: BytesPerSecond
    """Bytes a second of one link in each direction."""
    latency: Seconds = 0.0
    """Time a byte takes over one link and its switch, beyond the latency that messages have anyway."""


class Star(Links):
    """One switch, with a link to every node."""

    kind: Literal["star"]
    """One switch."""


class FatTree(Links):
    """Switches in levels, nodes at the bottom."""

    kind: Literal["fat_tree"]
    """A fat tree."""
    level_count: Annotated[Value, QuantityField(ONE, Domain(minimum=1, maximum=8, whole=True))]
    """Levels of switches."""
    down_count: Count
    """Nodes of a switch of the lowest level, and switches below one of the others."""
    up_count: Count
    """Switches above one that is not of the highest level: fewer than `down_count` make a tapered tree."""


class Dragonfly(Links):
    """Groups of routers, all routers of a group linked to each other and all groups to each other."""

    kind: Literal["dragonfly"]
    """A dragonfly with minimal routing."""
    group_count: Count
    """Groups."""
    router_count: Count
    """Routers of one group."""
    nodes_per_router: Count
    """Nodes of one router."""
    global_link_count: Count
    """Links of one router to other groups."""
    global_bandwidth: BytesPerSecond | None = None
    """Bytes a second of one link between groups in each direction; `bandwidth` where it is not stated."""


class Torus(Links):
    """Nodes on a grid that is closed in every dimension, routed dimension by dimension."""

    kind: Literal["torus"]
    """A torus."""
    extents: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], Count] = Field(min_length=1)
    """Nodes along each dimension, such as `{ x = 8, y = 8, z = 4 }`."""


Topology = Annotated[Star | FatTree | Dragonfly | Torus, Field(discriminator="kind")]


class Network(StrictTable):
    """Message parameters by distance; a missing distance takes those of the next farther one."""

    intra_socket: Distance | None = None
    inter_socket: Distance | None = None
    inter_node: Distance
    topology: Topology | None = None
    """The links between the nodes, for `communication = "shared_links"`."""
