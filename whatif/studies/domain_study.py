"""Nested domains of a machine as table and picture: their counts, links and ports, and what messages cross."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from whatif.axes import first_number
from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.evaluate import Evaluation, Values, evaluate
from whatif.core.parameter_paths import NODE_COUNT
from whatif.core.phases.host_transfer import link_bandwidth
from whatif.core.phases.message import PORT_COUNT, distance_at
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.core.wiring import Wiring
from whatif.errors import UsageError
from whatif.plotting.boxes import Box, BoxText
from whatif.schema.parameters import worst
from whatif.studies.message_curves import PhaseMessages, SentMessage, message_curves
from whatif.studies.message_study import DISTANCE_LABELS, sending_phase
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, Dimension, format_quantity
from whatif.vocabulary import DISTANCES, LINK_DOMAIN, MESSAGE_MODELS, DistanceName

_HOLDERS: Final[Mapping[str, str]] = {
    **dict(zip(DISTANCES, ("socket", "node", "machine"), strict=True)),
    LINK_DOMAIN: "link domain",
}
"""Smallest domain that holds both ranks of a message, by its distance."""
_BANDWIDTHS: Final = ("base_bandwidth", "process_bandwidth", "bandwidth")
_TOPOLOGIES: Final = {
    "mesh": "a link to each other GPU",
    "ring": "links to two neighbours",
    "switch": "one link through switches",
}
_LATENCY: Final = "platform.node.peer_link.pinned_write_latency"
_COLUMNS: Final[dict[str, Dimension | None]] = {
    "domain": None, "inside": None, "count": ONE, "holds": None, "connects": None, "latency": SECOND,
    "bandwidth": BYTE_PER_SECOND, "link": None, "grade": None, "ports": ONE, "messages": ONE, "longest": SECOND,
    "crossed": None, "shared": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DomainLink:
    """The link between the parts of a domain, as one process uses it, and the table of the platform file with it."""

    table: str
    borrowed: bool
    """Whether messages are charged as between nodes, or sockets, as the platform states nothing nearer."""
    latency: float
    """In s, of a short message."""
    bandwidth: float
    """In B/s, of long messages."""
    grade: str
    port_count: float = 0.0
    """Ports of a node, 0 where they are not stated."""


@dataclass(frozen=True, slots=True)
class MachineDomain:
    """A domain of a machine: how many there are in the one around it, and what it holds.

    `messages` are those of a phase whose two ranks it holds, but none of the domains inside; `crossed` says whether
    the chosen one of them crosses it, `shared` what this shares with others.
    """

    kind: str
    count: float
    parts: str
    """Units that its link connects, such as `nodes`."""
    holds: str
    """Devices that it holds, such as `4 GPUs`."""
    link: DomainLink | None = None
    shared: str = ""
    inside: tuple[MachineDomain, ...] = ()
    messages: tuple[SentMessage, ...] = ()
    crossed: bool = False


@dataclass(frozen=True, slots=True)
class DomainPicture:
    """Domains of a machine, the outermost first, with the messages of a phase."""

    platform: str
    machine: MachineDomain
    phase: str
    chosen: SentMessage | None
    """The message whose path is marked."""


def domain_picture(
    program: Program, evaluation: Evaluation, sent: PhaseMessages | None, chosen: int | None
) -> DomainPicture:
    """Domains of the platform of a program at one point, with the messages of a phase; the path of one is marked.

    `chosen` is its index, modulo the number of messages; without it, it is the farthest, and of several the one that
    takes longest.
    """
    platform = _Machine(program, evaluation.values)
    machine = platform.machine()
    messages = sent.messages if sent is not None else ()
    message = None
    if messages:
        message = max(messages, key=_distance_and_time) if chosen is None else messages[chosen % len(messages)]
    by_kind: dict[str, list[SentMessage]] = {}
    for one in messages:
        by_kind.setdefault(_HOLDERS[one.distance], []).append(one)
    machine = _with_messages(machine, by_kind)
    if message is not None:
        machine = _marked(machine, _HOLDERS[message.distance], platform.start())
    return DomainPicture(program.loaded.scenario.platform.name, machine, sent.phase if sent else "", message)


def _distance_and_time(message: SentMessage) -> tuple[int, float]:
    return (LINK_DOMAIN, *DISTANCES).index(message.distance), message.time


class _Machine:
    """The machine of one program; what the point does not contain is wired and evaluated."""

    def __init__(self, program: Program, values: Values) -> None:
        self.program, self.platform = program, program.loaded.scenario.platform
        wiring = Wiring(program.loaded, program.parameters)
        wiring.terms.update(program.terms)
        self.context = Context(wiring)
        self._shared = {distance: self.context.sharing(distance) for distance in DISTANCES}
        node = self.platform.node
        self._peer = link_bandwidth(self.context, "peer_link") if node.gpu and node.peer_link else ""
        whole = replace(program, parameters=wiring.parameters, terms=wiring.terms, constraints=())
        self.values = evaluate(whole, values).values

    def machine(self) -> MachineDomain:
        """The machine with all domains inside."""
        nodes, node = self._value(NODE_COUNT), self._node()
        inside = replace(node, count=nodes)
        if self._spanned > 1:
            domain = self._link_domain(nodes / self._spanned, self._value(DOMAIN_GPUS))
            inside = replace(domain, inside=(replace(node, count=self._spanned),))
        return MachineDomain("machine", 1.0, "nodes", "", self._link("inter_node"), self._ports(), (inside,))

    def start(self) -> str:
        """Kind of the innermost domain in which messages start."""
        if self.context.buffers == "host":
            return "socket"
        return "node" if self._spanned > 1 else "link domain"

    @property
    def _gpu_count(self) -> float:
        """GPUs of a node."""
        return self._value("platform.node.gpu_count") if self.platform.node.gpu is not None else 0.0

    @property
    def _spanned(self) -> float:
        """Nodes of a link domain; 1 where it is the GPUs of a node, or a part of them if less."""
        return self._value(DOMAIN_GPUS) / self._gpu_count if self._peer and DOMAIN_GPUS in self.values else 1.0

    def _node(self) -> MachineDomain:
        sockets, cores = self._value("platform.node.socket_count"), "platform.node.cpu.core_count"
        held = _number_of(self._value(cores), "core") if cores in self.values else ""
        shared = f"its memory, by {self._processes('intra_socket', 'pair')}"
        inside = [MachineDomain("socket", sockets, "cores", held, self._link("intra_socket"), shared)]
        if self._peer and self._spanned <= 1:
            inside.append(self._link_domain(1 / self._spanned, self._gpu_count * self._spanned))
        gpus = _number_of(self._gpu_count, "GPU") if self._gpu_count and len(inside) == 1 else ""
        shared = f"the way between sockets, by {self._processes('inter_socket', 'process')} of a socket"
        link = self._link("inter_socket") if sockets > 1 else None
        return MachineDomain("node", 1.0, "sockets", gpus, link, shared, tuple(inside))

    def _link_domain(self, count: float, gpu_count: float) -> MachineDomain:
        paths = (_LATENCY, "platform.node.peer_link.lane_bandwidth")
        link = DomainLink("node.peer_link", False, self._value(_LATENCY), self._value(self._peer), self._grade(paths))
        shared = f"nothing: each GPU has {_TOPOLOGIES[self.platform.node.domain_topology]}"
        # Nodes that do not fill the last domain have the links of one.
        whole = math.ceil(count)
        held = f"{'' if whole == count else 'up to '}{_number_of(gpu_count, 'GPU')}"
        return MachineDomain("link domain", float(whole), "GPUs", held, link, shared)

    def _link(self, distance: DistanceName) -> DomainLink | None:
        """Parameters of the messages of a distance, or of the next farther distance if it has none."""
        used, parameters = distance_at(self.platform.network, distance)
        model = next((name for name in MESSAGE_MODELS if getattr(parameters, name) is not None), None)
        if model is None:
            return None
        base = f"platform.network.{used}.{model}"
        bandwidth = next(path for path in (f"{base}.rendezvous.{name}" for name in _BANDWIDTHS) if path in self.values)
        paths = (f"{base}.short.latency", bandwidth)
        latency, rate = (self._value(path) for path in paths)
        ports = self._value(PORT_COUNT) if used == "inter_node" and PORT_COUNT in self.values else 0.0
        return DomainLink(f"network.{used}", used != distance, latency, rate, self._grade(paths), ports)

    def _ports(self) -> str:
        ports = _number_of(self._value(PORT_COUNT), "port") if PORT_COUNT in self.values else "network adapter"
        return f"the {ports} of a node, by {self._processes('inter_node', 'process')}"

    def _processes(self, distance: DistanceName, word: str) -> str:
        return _number_of(self._value(self._shared[distance]), word)

    def _grade(self, paths: Iterable[str]) -> str:
        return worst(self.program.parameters[path].grade for path in paths if path in self.program.parameters)

    def _value(self, name: str) -> float:
        return first_number(self.values[name])


def _number_of(number: float, word: str) -> str:
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{format_quantity(number, ONE)} {word if number == 1 else many}"


def _with_messages(domain: MachineDomain, by_kind: Mapping[str, list[SentMessage]]) -> MachineDomain:
    inside = tuple(_with_messages(inner, by_kind) for inner in domain.inside)
    return replace(domain, inside=inside, messages=tuple(by_kind.get(domain.kind, ())))


def _marked(domain: MachineDomain, holder: str, start: str, within: bool = False) -> MachineDomain:
    """The domain with those crossed that a message passes from where it starts to the one that holds both ranks."""
    within = within or domain.kind == holder
    inside = tuple(_marked(inner, holder, start, within) for inner in domain.inside)
    crossed = within and (domain.kind == start or any(inner.crossed for inner in inside))
    return replace(domain, inside=inside, crossed=crossed)


def domain_boxes(picture: DomainPicture) -> Box:
    """The domains as boxes in boxes; those that the chosen message crosses are marked."""
    return _box(picture.machine, picture.platform, picture.chosen)


def _box(domain: MachineDomain, name: str, chosen: SentMessage | None) -> Box:
    count = f" × {format_quantity(domain.count, ONE)}" if domain.count != 1 else ""
    holds = f", {domain.holds}{' each' if count else ''}" if domain.holds else ""
    title = f"{name}{count}{holds}"
    words = [BoxText(_link_words(domain.parts, domain.link))] if domain.link is not None else []
    words += [BoxText(line, style) for line, style in _message_words(domain.messages, chosen)]
    if chosen in domain.messages:
        words.append(BoxText(f"shared: {domain.shared}", "label", 1))
    if domain.link is not None:
        words.append(BoxText(f"[{domain.link.table}], {domain.link.grade}", "axis", 2))
    inside = tuple(_box(inner, inner.kind, chosen) for inner in domain.inside)
    return Box(title, tuple(words), inside, domain.crossed)


def _link_words(parts: str, link: DomainLink) -> str:
    latency, bandwidth = format_quantity(link.latency, SECOND, 3), format_quantity(link.bandwidth, BYTE_PER_SECOND, 3)
    ports = f", {_number_of(link.port_count, 'port')} a node" if link.port_count and not link.borrowed else ""
    farther = " as farther apart" if link.borrowed else ""
    return f"between {parts}{farther}: {latency}, {bandwidth} a process{ports}"


def _message_words(messages: tuple[SentMessage, ...], chosen: SentMessage | None) -> Iterator[tuple[str, str]]:
    """A line for the chosen message, and one for all others."""
    others = [one for one in messages if one != chosen]
    if len(others) < len(messages) and chosen is not None:
        size, time = format_quantity(chosen.size, BYTE, 3), format_quantity(chosen.time, SECOND, 3)
        yield f"▶ {chosen.kind}: {_number_of(chosen.count, 'message')} of {size}, {time} each", "title"
    if others:
        total, longest = sum(one.count for one in others), max(one.time for one in others)
        more = "and " if len(others) < len(messages) else ""
        yield f"{more}{_number_of(total, 'message')}, up to {format_quantity(longest, SECOND, 3)} each", "label"


@dataclass(frozen=True, eq=False, repr=False)
class Domains(StudyResult):
    """Domains of a machine with their links, and the messages of a phase that they hold."""

    shows_failures: ClassVar[bool] = True
    domains: DomainPicture
    infeasible: str = ""
    """Reason why the point is infeasible: then there are no messages."""
    optional_columns = (["shared"], ["grade", "ports"], ["link"], ["holds"])

    def obstacle(self) -> str:
        """Reason why there are no messages."""
        return f"infeasible: {self.infeasible}" if self.infeasible else ""

    def table(self) -> Table:
        """Domains and their links (see `domain_table`)."""
        return domain_table(self.domains)

    def summary(self) -> tuple[str, ...]:
        """The message whose path is marked."""
        sent = self.domains.chosen
        if sent is None:
            return ()
        size, time = format_quantity(sent.size, BYTE), format_quantity(sent.time, SECOND)
        return (f"marked: {self.domains.phase} {sent.kind} {DISTANCE_LABELS[sent.distance]}, {size}, {time}",)

    def picture(self) -> Box:
        """Boxes in boxes; those that the marked message crosses have thick lines."""
        return domain_boxes(self.domains)


def domains(scenario: Scenario, phase: str | None = None, message: int | None = None) -> Domains:
    """Domains of the machine, with the messages of a phase, by default the first one that sends any.

    `message` is the one whose path is marked, by its row in `messages(.., sent=True)` from 1 on; without it, the
    farthest. Raise `UsageError` for a phase or message that does not exist.
    """
    program = scenario.program
    evaluation = evaluate(program)
    curves = message_curves(program, evaluation)
    sent = None if curves.infeasible else sending_phase(curves, phase)
    chosen = None if message is None or sent is None else _chosen(sent, message)
    return Domains(domain_picture(program, evaluation, sent, chosen), curves.infeasible).about(scenario)


def domain_table(found: DomainPicture) -> Table:
    """One row per domain, the outermost first: how many are `inside` the one around it, its link as one process uses
    it, the messages of the phase that it holds, and whether the marked one crosses it."""
    return Table.of_rows(_COLUMNS, list(_rows(found.machine, "")))


def _chosen(sent: PhaseMessages, message: int) -> int:
    count = len(sent.messages)
    if not 1 <= message <= count:
        raise UsageError(f"message {message}: {sent.phase} sends 1 to {count}")
    return message - 1


def _rows(domain: MachineDomain, around: str) -> Iterator[tuple[Any, ...]]:
    link, sent = domain.link, domain.messages
    linked = (link.latency, link.bandwidth, link.table, link.grade, link.port_count or math.nan) if link else (
        math.nan, math.nan, "", "", math.nan
    )  # fmt: skip
    longest = max((one.time for one in sent), default=math.nan)
    crossed = "yes" if domain.crossed else "no"
    yield (domain.kind, around, domain.count, domain.holds, domain.parts, *linked, sum(one.count for one in sent),
           longest, crossed, domain.shared)  # fmt: skip
    for inner in domain.inside:
        yield from _rows(inner, domain.kind)
