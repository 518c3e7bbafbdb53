"""Tables of the network: message parameters by distance and protocol, and the topology of the links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from whatif.schema.fields import (
    Bytes,
    BytesPerSecond,
    BytesPerSecondOrZero,
    Count,
    Domain,
    Fraction,
    Key,
    PositiveFactor,
    PositiveFraction,
    QuantityField,
    Seconds,
    StrictTable,
    Value,
    invalid,
)
from whatif.schema.network_collectives import Collectives
from whatif.units import ONE


class PostalParameters(StrictTable):
    """Start-up time and bandwidth of one protocol (Choi et al. 2020, Table 2: α and 1/β; Table 3)."""

    latency: Seconds
    """α: time of an empty message."""
    bandwidth: BytesPerSecond
    """1/β: may also be written as a time per byte, such as `0.155 ns/B`."""


class MaxRateParameters(StrictTable):
    """Three-parameter max-rate model (Choi et al. 2020, Eq. 2 and Table 4)."""

    latency: Seconds
    """α: time of an empty message."""
    base_bandwidth: BytesPerSecond
    """R_Cb: bandwidth sustained by a single process."""
    additional_bandwidth: BytesPerSecondOrZero
    """R_Ci: bandwidth added by each further process."""


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
    """o: time for which sending or receiving occupies a processor."""
    bandwidth: BytesPerSecond
    """1/G: bandwidth of long messages."""
    gap_time: Seconds = 0.0
    """g: minimum time between two messages of one processor; used only in simulations."""
    processing_bandwidth: BytesPerSecond | None = None
    """1/O: bytes per second that a processor handles (LogGOPS); used only in simulations."""


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
    """One mode of the message time distribution (N'), e.g. a few slow and many fast messages."""

    weight: PositiveFraction
    """Share of the messages."""
    factor: PositiveFactor
    """Time of these messages relative to the line of the piece."""


class Piece(StrictTable):
    """Messages of a range of sizes (M'): a time linear in the size, and the overheads of both processes."""

    smallest_size: Bytes
    """Start of the range; it ends at the start of the next one."""
    latency: Seconds
    """Time of an empty message."""
    bandwidth: BytesPerSecond
    """Bandwidth of the messages."""
    send_overhead: Seconds = 0.0
    """Time for which an eager message occupies its sender before it leaves."""
    send_bandwidth: BytesPerSecond | None = None
    """Bytes per second that the sender handles in this time."""
    receive_overhead: Seconds = 0.0
    """Time for which an eager message occupies its receiver after it has arrived."""
    receive_bandwidth: BytesPerSecond | None = None
    """Bytes per second that the receiver handles in this time."""
    modes: dict[Key, Mode] = {}
    """Modes of the time, sampled if the noise of HPL is enabled; without modes every message takes the same time."""


# `line_bandwidth`, the similar key, is that of links: it changes no message.
_RATES: Final = (
    '; state the rates of messages by a part, `{0}extends = "infiniband-200"` (`whatif list parts`), '
    "or in the tables `{0}max_rate` or `{0}postal`"
)


class Distance(StrictTable):
    """Messages at one distance: protocol limits and the parameters of each model."""

    meant: ClassVar[Mapping[str, str]] = dict.fromkeys(("bandwidth", "latency"), _RATES.format(""))

    short_limit: Bytes
    """Largest message sent with the short protocol."""
    eager_limit: Bytes
    """Largest message sent with the eager protocol; longer ones use rendezvous."""
    postal: Postal | None = None
    max_rate: MaxRate | None = None
    injection: Injection | None = None
    loggp: LogGP | None = None
    pieces: dict[Key, Piece] = {}
    """Pieces of a piecewise calibration, by name; used for HPL, and for traces with `model = "pieces"`."""
    pieces_eager_limit: Bytes | None = None
    """Largest eager message in `pieces`, for which the sender does not wait; by default `eager_limit`."""
    pieces_early_limit: Bytes | None = None
    """Largest message that leaves before its receive is posted, if less than `pieces_eager_limit`; larger ones leave
    when it is posted, while their sender continues, as with SimGrid's smpi/async-small-thresh. For HPL only."""
    line_bandwidth: BytesPerSecond | None = None
    """Bandwidth of the line that leads to one port, in each direction; of all ports of a node if `port_count` is not
    stated. Links of a topology have it by default; messages have the bandwidths of their models."""
    library_transport: Literal["verbs", "libfabric"] | None = None
    """Interface through which GPU libraries send: `verbs` (InfiniBand, RoCE) or, by a plug-in, `libfabric` (Slingshot,
    EFA). It selects the model error of `model = "nccl"`, and no time."""


class Links(StrictTable):
    """Parameters of one link in one direction, common to all topologies."""

    bandwidth: BytesPerSecond | None = None
    """Bandwidth of one link in each direction. By default all ports of a node are one link, of `port_count` times the
    `line_bandwidth` of `inter_node`; in a torus each link is that of one port."""
    latency: Seconds = 0.0
    """Per-hop latency (link and switch), added to the end-to-end latency of the message model: 0 where that was
    measured across the network, which has these hops in it."""
    cross_traffic: Fraction = 0.0
    """Share of the rate of a message that the links of the way back carry as well, as its acknowledgements: 0.05 in
    SimGrid. For simulated links alone."""
    routing: Literal["static", "adaptive"] = "static"
    """static: each pair of nodes has one route; adaptive: messages spread evenly over links that lead the same way, in
    a dragonfly with detours where these are faster. Simulated links are always static."""


class Star(Links):
    """One switch with a link to every node."""

    kind: Literal["star"]
    """One switch."""


class FatTree(Links):
    """Switches in levels above the nodes."""

    kind: Literal["fat_tree"]
    """A fat tree."""
    level_count: Annotated[Value, QuantityField(ONE, Domain(minimum=1, maximum=8, whole=True))]
    """Levels of switches."""
    down_count: Count
    """Nodes per switch at the lowest level, and lower switches per switch at the other levels."""
    up_count: Count
    """Upper switches per switch, except at the highest level; fewer than `down_count` make a tapered tree."""
    upper_up_count: Count | None = None
    """The same for switches above the lowest level; by default `up_count`."""


class Dragonfly(Links):
    """Groups of routers: all routers of a group are linked, and all groups are linked."""

    kind: Literal["dragonfly"]
    """A dragonfly with minimal routing."""
    group_count: Count
    """Groups."""
    router_count: Count
    """Routers per group."""
    nodes_per_router: Count
    """Nodes per router."""
    global_link_count: Count
    """Links per router to other groups."""
    global_bandwidth: BytesPerSecond | None = None
    """Bandwidth of one link between groups in each direction; by default `bandwidth`, or the `line_bandwidth` of one
    port if that is not stated."""


class Torus(Links):
    """Nodes on a grid that is periodic in every dimension, with dimension-ordered routing."""

    kind: Literal["torus"]
    """A torus."""
    extents: dict[Key, Count] = Field(min_length=1)
    """Nodes along each dimension, such as `{ x = 8, y = 8, z = 4 }`."""


_LINE: Final = "platform.network.inter_node.line_bandwidth"
_PORTS: Final = "platform.network.port_count"


def _with_link_bandwidth(network: Any) -> Any:
    """Tables of a network, the links of its topology with the bandwidth of the ports if they state none."""
    topology, line = (network.get(key) if isinstance(network, dict) else None for key in ("topology", "inter_node"))
    if not isinstance(topology, dict) or not isinstance(line, dict):
        return network
    if "bandwidth" in topology or "line_bandwidth" not in line:
        return network
    kind = topology.get("kind")
    joined = "port_count" in network and kind != "torus"
    links = {"bandwidth": f"= {_PORTS} * {_LINE}" if joined else f"= {_LINE}"}
    links |= {"global_bandwidth": f"= {_LINE}"} if kind == "dragonfly" else {}
    return {**network, "topology": {**links, **topology}}


Topology = Annotated[Star | FatTree | Dragonfly | Torus, Field(discriminator="kind")]


class Network(StrictTable):
    """Message parameters by distance; a missing distance uses those of the next farther one."""

    meant: ClassVar[Mapping[str, str]] = dict.fromkeys(("bandwidth", "latency"), _RATES.format("inter_node."))

    intra_socket: Distance | None = None
    inter_socket: Distance | None = None
    inter_node: Distance
    port_count: Count | None = None
    """Ports of a node, each with the rates of `inter_node`, whose `additional_bandwidth` is not used then. Without it
    `inter_node` has the rates of the whole node."""
    switch_reduction: bool = False
    """Whether the switches between the nodes reduce and duplicate messages, as InfiniBand switches with SHARP do."""
    topology: Topology | None = None
    """Links between the nodes, for congestion and for `communication = "shared_links"`."""
    collectives: Collectives | None = None
    """Measured collectives; without them `model = "nccl"` uses data sheets and the constants of NCCL's tuner."""

    _links_of_ports = model_validator(mode="before")(_with_link_bandwidth)

    @model_validator(mode="after")
    def _links_have_a_bandwidth(self) -> Self:
        if self.topology is not None and self.topology.bandwidth is None:
            raise invalid("missing `bandwidth`; or state that of a port, `inter_node.line_bandwidth`", key="topology")
        return self
