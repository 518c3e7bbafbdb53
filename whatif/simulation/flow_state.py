"""State of the event loop of `flows`: rows of arrays if it is compiled, lists of objects if not."""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from whatif.simulation.replay_state import NONE

CHANGED: Final = 0
MEMBERS: Final = 1
COMPONENT: Final = 2
TALLIES: Final = 3
"""Entries of `FlowState.tally`, and their number."""
_FORMATS: Final = {"float": np.float64, "int": np.int32, "bool": np.bool_}


@dataclass(slots=True)
class Operation:
    """An operation of the schedule, and while it is a message on its way, its place in the heap of its bundle."""

    step: int
    rank: int
    unit: int
    """Its processor, numbered over all ranks."""
    peer: int
    tag: int
    size: float
    """s of a computation; the bytes of a message that cross links."""
    charged: float
    """Bytes of a message by which it is charged elsewhere."""
    channel: int
    """Number of its sender, receiver and tag; `NONE` for receives with wildcards and operations without a message."""
    cost: int
    """Row of the costs of a send, distance · protocols + protocol."""
    waits: bool
    """Whether it is a send that waits for its receive."""
    bundle: int
    """Bundle of a send to another node; else `NONE`."""
    need: int
    start: float = 0.0
    """Until it starts, when its dependencies are met."""
    end: float = np.nan
    match: int = NONE
    arrived: bool = False
    threshold: float = 0.0
    """`served` of its bundle at which it has got all its bytes."""
    child: int = NONE
    sibling: int = NONE


@dataclass(slots=True)
class Side:
    """The sending side of a rank (2 rank) or its receiving side (2 rank + 1), with those that wait for it."""

    free: float = 0.0
    head: int = NONE
    tail: int = NONE


@dataclass(slots=True)
class Queue:
    """First and last of a linked list of operations."""

    head: int = NONE
    tail: int = NONE


@dataclass(slots=True)
class Bundle:
    """The flows that cross the same links under the same limit, and so get the same rate."""

    first: int
    """Its links are the entries from here .."""
    last: int
    """.. to here, not included."""
    limit: float
    """Highest rate of each of its flows."""
    latency: float
    flow_count: int = 0
    rate: float = 0.0
    """Rate of each of its flows."""
    served: float = 0.0
    """Bytes of each flow since the bundle was last empty; a flow of n bytes that enters at s leaves at s + n."""
    since: float = 0.0
    """Time at which `served` was counted."""
    end: float = np.nan
    """Time at which its first flow ends."""
    root: int = NONE
    """The flow that ends first: root of a pairing heap."""
    marked: bool = False
    """Whether it needs a new rate; it is in `changed` then."""
    inside: bool = False
    """Whether it is in `members`."""
    level: float = 0.0
    """Largest feasible rate; the final one once the bundle is settled."""


@dataclass(slots=True)
class NetworkLink:
    """A link of the network."""

    capacity: float
    head: int = NONE
    """The first entry of a bundle that has flows."""
    found: bool = False
    """Whether in `component`."""
    usage: float = 0.0
    """Flows on it that are not settled."""
    level: float = 0.0
    """Largest rate of each of these flows."""
    lowest: float = 0.0
    """The least level of the bundles that cross it."""
    remaining: float = 0.0


@dataclass(slots=True)
class BundleLink:
    """A bundle on a link, with its neighbours in the list of the link."""

    link: int
    bundle: int
    share: float = 1.0
    """Share of the rate of its flows that the link carries."""
    before: int = NONE
    after: int = NONE


class FlowState(NamedTuple):
    """State of a replay: the schedule and the network."""

    operations: MutableSequence[Operation]
    next_start: MutableSequence[int]
    next: MutableSequence[int]
    charges: MutableSequence[float]
    """[of five, distance, protocol, 2], flat."""
    kinds: int
    """Distances times protocols."""
    unit_free: MutableSequence[float]
    sides: MutableSequence[Side]
    side_next: MutableSequence[int]
    """[op]: the next operation that waits for the same side."""
    channels: MutableSequence[Queue]
    """Sends, or receives, without a match."""
    channel_next: MutableSequence[int]
    loose: MutableSequence[Queue]
    """[2 rank]: messages without a receive, [2 rank + 1]: receives with wildcards."""
    loose_next: MutableSequence[int]
    wild: MutableSequence[bool]
    """[rank]: whether it has receives of any."""

    bundles: MutableSequence[Bundle]
    links: MutableSequence[NetworkLink]
    entries: MutableSequence[BundleLink]
    changed: MutableSequence[int]
    """Bundles with new or finished flows: the first `tally[CHANGED]`."""
    members: MutableSequence[int]
    """Bundles of a component: the first `tally[MEMBERS]`."""
    open: MutableSequence[int]
    """Bundles of the component that are not settled."""
    component: MutableSequence[int]
    """Links of a component: the first `tally[COMPONENT]`."""
    tally: MutableSequence[int]
    """Numbers of entries in use: `CHANGED`, `MEMBERS` and `COMPONENT`."""


Row = TypeVar("Row", Operation, Side, Queue, Bundle, NetworkLink, BundleLink)


def rows(kind: type[Row], count: int, **columns: NDArray[Any]) -> MutableSequence[Row]:
    """An array of `count` rows of a kind; fields that are not given have their defaults."""
    formats = [(field.name, _FORMATS[str(field.type)]) for field in fields(kind)]
    table = np.empty(count, dtype=np.dtype(formats, align=True))
    for field in fields(kind):
        table[field.name] = columns.get(field.name, field.default)
    return cast("MutableSequence[Row]", table)


def listed(state: FlowState) -> FlowState:
    """The same as lists, of objects for rows, which Python reaches faster."""
    kinds = {"operations": Operation, "sides": Side, "channels": Queue, "loose": Queue}
    kinds |= {"bundles": Bundle, "links": NetworkLink, "entries": BundleLink}
    columns: dict[str, Any] = {}
    for name, column in state._asdict().items():
        values = column.tolist() if isinstance(column, np.ndarray) else column
        columns[name] = [kinds[name](*row) for row in values] if name in kinds else values
    return FlowState(**columns)


def column(table: MutableSequence[Row], name: str) -> NDArray[Any]:
    """One field of all rows."""
    if isinstance(table, np.ndarray):
        return cast("NDArray[Any]", np.ascontiguousarray(table[name]))
    return np.array([getattr(row, name) for row in table])
