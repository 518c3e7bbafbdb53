"""Tables of the simulation of HPL from the parameters of a scenario.

A `Plan` maps each parameter to its place in the tables; it is the same for all points of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.errors import UsageError
from whatif.linpack.datasheet import (
    NO_DATASHEET,
    DataSheet,
    LinkPlan,
    PanelPlan,
    datasheet_of,
    link_plan_of,
    panel_plan_of,
)
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.configuration import Mapping as ProcessMapping
from whatif.linpack.simulation.costs import (
    AT_ONCE,
    DGEMM,
    DGEMM_DEVIATION,
    DGEMM_LIMITS,
    DGEMM_OFFLOADED,
    DTRSM,
    KERNEL_COLUMNS,
    KERNELS,
    PER_MNK,
    RENDEZVOUS,
    SIZE_SLOPE,
    SPREAD_SLOPE,
    WHEN_RECEIVED,
    PieceColumn,
)
from whatif.linpack.simulation.sampling import LEAST_WORK
from whatif.linpack.simulation.simulator import HPLMachine
from whatif.models.quantities import FloatArray
from whatif.vocabulary import DISTANCES, MATRIX_TERMS, PROTOCOLS

NUMBERS: Final[Mapping[str, str]] = {
    "matrix_size": "matrix_size", "block_size": "block_size", "process_rows": "process_rows",
    "process_columns": "process_columns", "look_ahead_depth": "depth", "swap_threshold": "swap_threshold",
    "recursion_minimum": "recursion_minimum", "recursion_divisions": "recursion_divisions",
}  # fmt: skip
"""Numeric fields of a `Configuration` by parameter of the application."""
WORDS: Final[Mapping[str, tuple[str, type[IntEnum]]]] = {
    "broadcast": ("broadcast", Broadcast),
    "swap": ("swap", RowSwap),
    "panel_factorisation": ("panel_factorisation", Looking),
    "recursive_factorisation": ("recursive_factorisation", Looking),
    "process_mapping": ("mapping", ProcessMapping),
}
"""Fields of a `Configuration` whose values are words, with their type, by parameter."""
CHOICES: Final = (*WORDS, "binding", "noise", "panel_on", "steps")
"""Structural parameters of the application."""
NOISES: Final = {
    "none": "none",
    "kernels": "of the kernels",
    "network": "of the messages",
    "both": "of kernels and messages",
}
"""Deviating parts by `application.noise`, for messages."""
SEED: Final = "application.seed"
CORRECTION: Final = "platform.kernels.correction"
RUN_DEVIATION: Final = "platform.kernels.run_deviation"
PROCESSORS: Final = "platform.kernels.processors."
DEVIATIONS: Final = "platform.kernels.deviations."
"""Leads of the relative times of processors, and of their deviations."""
_MATRIX_ROWS: Final = {
    "dgemm": DGEMM, "dgemm.deviation": DGEMM_DEVIATION, "dgemm.offloaded": DGEMM_OFFLOADED,
}  # fmt: skip
_LIMITS: Final = ("smallest_m", "smallest_n", "smallest_k")
_PIECE_SECONDS: Final = {
    "latency": PieceColumn.LATENCY, "send_overhead": PieceColumn.SEND, "receive_overhead": PieceColumn.RECEIVE,
    "bandwidth": PieceColumn.PER_BYTE, "send_bandwidth": PieceColumn.SEND_PER_BYTE,
    "receive_bandwidth": PieceColumn.RECEIVE_PER_BYTE,
}  # fmt: skip
_FACTORS: Final = (CORRECTION, RUN_DEVIATION)
_TREE: Final = tuple(
    f"platform.network.topology.{name}" for name in ("level_count", "down_count", "up_count", "bandwidth")
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Places of the parameters in the tables; hashable, since it is an option of a term."""

    kernels: tuple[tuple[str, int, int], ...]
    """Parameter, row and column in the table of kernels."""
    pieces: tuple[tuple[tuple[str, int, int], ...], ...]
    """[local or remote]: parameter, piece and column."""
    limits: tuple[tuple[str, str], ...]
    """[local or remote]: parameters of the largest message that leaves at once, and that is not waited for."""
    processors: tuple[str, ...]
    """Parameters of the relative times of processors, node after node."""
    deviations: tuple[str, ...]
    """Parameters of their relative deviations, likewise."""
    adapter: tuple[str, ...]
    """Parameters whose product is the bandwidth of a node's adapters; empty: that of its largest messages."""
    tree: tuple[str, ...]
    """Parameters of a fat tree: levels, nodes of a lowest switch, its links upwards, their bandwidth; empty: none."""
    datasheet: DataSheet
    """Parameters of the devices of a node, which charge the kernels that were not calibrated."""
    uncalibrated: tuple[str, ...]
    """Kernels without a calibration."""
    factors: tuple[str, ...]
    """Parameters of the relative time of all kernels, and of its deviation from run to run."""
    host: PanelPlan | None
    """Parameters of the cost of panels during updates on GPUs; None: there are no GPUs."""
    peer_link: LinkPlan | None
    """Link of messages between the GPUs of a node; None: those of `pieces`."""
    choices: tuple[str, ...]
    """`CHOICES` of the application."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters that become numbers, each once."""
        named = [path for path, _, _ in self.kernels]
        named += [path for side in self.pieces for path, _, _ in side]
        named += [path for side in self.limits for path in side]
        named += [*self.processors, *self.deviations, *self.adapter, *self.tree]
        named += [*self.datasheet.parameters, *self.factors]
        named += [path for part in (self.host, self.peer_link) if part is not None for path in part.parameters]
        named += [*(f"application.{name}" for name in NUMBERS), SEED]
        return tuple(dict.fromkeys(named))

    def configuration(self, values: Mapping[str, float]) -> Configuration:
        """Configuration at one point. Raise `UsageError` for one that HPL would refuse."""
        numbers = {name: values[f"application.{name}"] for name in NUMBERS}
        wrong = next((name for name, value in numbers.items() if value % 1), None)
        if wrong is not None:
            raise UsageError(f"application.{wrong} is {numbers[wrong]:g}, not a whole number")
        fields: dict[str, Any] = {NUMBERS[name]: int(value) for name, value in numbers.items()}
        for (field, kind), word in zip(WORDS.values(), self.choices, strict=False):
            fields[field] = kind[word.upper()]
        return Configuration(**fields)

    @property
    def noise(self) -> str:
        """Deviating parts: none, kernels, network or both."""
        return self.choices[CHOICES.index("noise")]

    @property
    def kernels_deviate(self) -> bool:
        """Whether kernel calls deviate."""
        return self.noise in ("kernels", "both")

    def samples(self, configuration: Configuration) -> bool:
        """Whether windows of steps are simulated. Raise `UsageError` if they are wanted and cannot be."""
        steps = self.choices[CHOICES.index("steps")]
        alike = self.noise == "none" and not self.processors
        if steps == "sampled" and not alike:
            raise UsageError('`application.steps = "sampled"` needs identical processors and no noise')
        many = configuration.step_count * configuration.rank_count >= LEAST_WORK
        return steps == "sampled" or (steps == "auto" and alike and many and self.settles_soon(configuration))

    def settles_soon(self, configuration: Configuration) -> bool:
        """Whether a window of steps shows their period: not on processors with look-ahead (docs/hpl_platforms.md)."""
        return self.host is not None or configuration.depth == 0

    def machine(
        self, values: Mapping[str, float], rank_count: int, ranks_per_node: int, socket_count: int
    ) -> HPLMachine:
        """Machine at one point, for a number of ranks."""
        kernels = self._kernels(values, ranks_per_node)
        sides = [self._pieces(values, side) for side in range(2)]
        longest = max(len(side) for side in sides)
        pieces = np.stack([_padded(side, longest) for side in sides])
        if self.peer_link is not None:
            pieces[0, :, [PieceColumn.LATENCY, PieceColumn.PER_BYTE]] = np.array(self.peer_link.copies(values)[:1]).T
        ranks = np.arange(rank_count)
        nodes = ranks // ranks_per_node
        socket = self._processors(ranks, ranks_per_node, socket_count)
        gap = (
            1 / prod(values[path] for path in self.adapter)
            if self.adapter
            else float(pieces[1, -1, PieceColumn.PER_BYTE])
        )
        shared = _Shared(gap if ranks_per_node > 1 and rank_count > ranks_per_node else 0.0)
        if self.tree:
            shared = _of_tree([values[path] for path in self.tree], nodes, ranks_per_node, shared)
        return HPLMachine(
            kernels,
            pieces,
            nodes,
            _of_processors([values[path] for path in self.processors], socket),
            shared.gap,
            _of_processors([values[path] for path in self.deviations], socket),
            shared.groups,
            shared.links,
            None if self.host is None else self.host.host(values, ranks_per_node),
        ).slowed(values.get(CORRECTION, 1.0))

    def _kernels(self, values: Mapping[str, float], ranks_per_node: int) -> FloatArray:
        table = np.zeros((len(KERNELS), KERNEL_COLUMNS))
        table[DGEMM_LIMITS] = np.inf
        self.datasheet.charge(table, self.uncalibrated, values, ranks_per_node)
        for path, row, column in self.kernels:
            table[row, column] = values[path]
        if "dtrsm" in self.uncalibrated and "dgemm" not in self.uncalibrated:
            # Its S is one operation each, M N K of dgemm are two.
            table[DTRSM, [SIZE_SLOPE, SPREAD_SLOPE]] = table[[DGEMM, DGEMM_DEVIATION], PER_MNK] / 2
        return table

    def _pieces(self, values: Mapping[str, float], side: int) -> FloatArray:
        """[piece, column] of one distance in the order of sizes, cut where the protocol changes."""
        cells = self.pieces[side]
        table = np.zeros((1 + max(piece for _, piece, _ in cells), self._width))
        for path, piece, column in cells:
            value = values[path]
            table[piece, column] = 1 / value if path.endswith("bandwidth") else value + path.endswith("_limit")
        start = PieceColumn.SMALLEST_SIZE
        shares = table[:, PieceColumn.MODES :: 2]
        shares[...] = shares.cumsum(axis=1) / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        table = table[np.argsort(table[:, start], kind="stable")]
        table[0, start] = 0.0
        early, eager = (values[path] + 1 for path in self.limits[side])
        starts = np.unique([*table[:, start], early, max(early, eager)])
        cut = table[np.searchsorted(table[:, start], starts, side="right") - 1]
        cut[:, start] = starts
        cut[:, PieceColumn.PROTOCOL] = np.where(
            starts >= max(early, eager), RENDEZVOUS, np.where(starts >= early, WHEN_RECEIVED, AT_ONCE)
        )
        return cut

    @property
    def _width(self) -> int:
        """Number of columns of the table of pieces, without those of modes if there are none."""
        return max(PieceColumn.MODES, 1 + max(column for side in self.pieces for _, _, column in side))

    def _processors(self, ranks: Any, ranks_per_node: int, socket_count: int) -> Any:
        """[rank]: its processor, node after node; raise `UsageError` if fewer are described."""
        local = ranks % ranks_per_node
        by_socket = self.choices[CHOICES.index("binding")] == "by_socket"
        per_socket = -(-ranks_per_node // socket_count)
        socket = local % socket_count if by_socket else local // per_socket
        found = ranks // ranks_per_node * socket_count + socket
        for table, named in (("processors", self.processors), ("deviations", self.deviations)):
            if named and found.max() >= len(named):
                known = f"platform.kernels.{table} has {len(named)}"
                raise UsageError(f"the ranks need {found.max() + 1} processors; {known}")
        return found


class _Shared(NamedTuple):
    """Links that messages share: time per byte of a link; by rank its group, and the link of the group to it."""

    gap: float
    groups: Any = None
    links: Any = None


def _of_tree(tree: Sequence[float], nodes: Any, ranks_per_node: int, adapters: _Shared) -> _Shared:
    """Links above the lowest switches of a fat tree, if they limit more than the adapters; else the adapters."""
    level_count, down_count, up_count, bandwidth = tree
    on_adapter = adapters.gap * ranks_per_node
    if level_count < 2 or nodes[-1] < down_count or ranks_per_node * down_count / (up_count * bandwidth) <= on_adapter:
        return adapters
    return _Shared(1 / bandwidth, nodes // int(down_count), nodes % int(up_count))


def _of_processors(values: Sequence[float], processor: Any) -> FloatArray:
    """[rank]: value of its processor; 1 if the platform states no processors."""
    found: FloatArray = np.array(values)[processor] if values else np.ones(len(processor))
    return found


def _padded(table: FloatArray, count: int) -> FloatArray:
    """Table with unused pieces appended."""
    behind = np.repeat(table[-1:], count - len(table), axis=0)
    behind[:, PieceColumn.SMALLEST_SIZE] = np.inf
    return np.concatenate([table, behind])


def plan_of(parameters: Mapping[str, Any], choices: Sequence[str]) -> Plan:
    """Plan of the parameters of a scenario. Raise `UsageError` if the platform lacks required ones."""
    kernels = tuple(_kernel_cells(parameters))
    uncalibrated = _uncalibrated(row for _, row, _ in kernels)
    datasheet = datasheet_of(parameters)
    if "dgemm" in uncalibrated and not datasheet.rates:
        raise UsageError("the platform has neither `[kernels.dgemm]` nor a data sheet of its processors (`[node.cpu]`)")
    sides = [
        _distance(parameters, DISTANCES),
        _distance(parameters, ("inter_node",)),
    ]
    drawn = choices[CHOICES.index("noise")] in ("network", "both")
    pieces = tuple(tuple(_piece_cells(parameters, side, drawn)) for side in sides)
    if drawn and not any(column >= PieceColumn.MODES for side in pieces for _, _, column in side):
        raise UsageError("noise of messages needs `modes` in `[network.inter_node.pieces]` (whatif fit kernel)")
    processors, deviations = (
        tuple(path for path in parameters if path.startswith(lead)) for lead in (PROCESSORS, DEVIATIONS)
    )
    ports = tuple(path for path in ("platform.network.port_count",) if path in parameters)
    adapter = "platform.network.inter_node.injection.rendezvous.injection_bandwidth"
    return Plan(
        kernels,
        pieces,
        tuple(_limits(parameters, side) for side in sides),
        processors,
        deviations,
        (adapter, *ports) if adapter in parameters else (),
        _TREE if set(_TREE) <= set(parameters) else (),
        datasheet if uncalibrated else NO_DATASHEET,
        uncalibrated,
        tuple(path for path in _FACTORS if path in parameters),
        panel_plan_of(parameters, choices[CHOICES.index("panel_on")]),
        _peer_link(parameters),
        tuple(choices),
    )


def _peer_link(parameters: Mapping[str, Any]) -> LinkPlan | None:
    """Link between the GPUs of a node, unless messages inside a node are stated."""
    link = "platform.node.peer_link"
    stated = _distance(parameters, DISTANCES) != "platform.network.inter_node"
    return None if stated or f"{link}.pinned_write_latency" not in parameters else link_plan_of(link, parameters)


def _uncalibrated(rows: Iterable[int]) -> tuple[str, ...]:
    """Kernels without a row of times; those of dgemm are the first."""
    stated = {max(row, DGEMM_LIMITS) for row in rows}
    return tuple(name for at, name in enumerate(KERNELS) if name and max(at, DGEMM_LIMITS) not in stated)


def _kernel_cells(parameters: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    at = "platform.kernels"
    for table, row in _MATRIX_ROWS.items():
        yield from ((f"{at}.{table}.{name}", row, column) for column, name in enumerate(MATRIX_TERMS)
                    if f"{at}.{table}.{name}" in parameters)  # fmt: skip
    yield from ((f"{at}.dgemm.offloaded.{name}", DGEMM_LIMITS, column) for column, name in enumerate(_LIMITS)
                if f"{at}.dgemm.offloaded.{name}" in parameters)  # fmt: skip
    for name in KERNELS[DTRSM:]:
        cells = (f"{at}.{name}.constant", f"{at}.{name}.size", f"{at}.{name}.deviation.constant",
                 f"{at}.{name}.deviation.size")  # fmt: skip
        yield from ((path, KERNELS.index(name), column) for column, path in enumerate(cells) if path in parameters)


def _distance(parameters: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        table = f"platform.network.{name}"
        if any(path.startswith((f"{table}.pieces.", f"{table}.postal.")) for path in parameters):
            return table
    raise UsageError("the platform has neither `pieces` nor `postal` parameters in `[network.inter_node]`")


def _piece_cells(parameters: Mapping[str, Any], table: str, drawn: bool) -> Iterator[tuple[str, int, int]]:
    prefix = f"{table}.pieces."
    names = list(
        dict.fromkeys(path.removeprefix(prefix).split(".")[0] for path in parameters if path.startswith(prefix))
    )
    for piece, name in enumerate(names):
        yield f"{prefix}{name}.smallest_size", piece, PieceColumn.SMALLEST_SIZE
        yield from ((f"{prefix}{name}.{key}", piece, column) for key, column in _PIECE_SECONDS.items()
                    if f"{prefix}{name}.{key}" in parameters)  # fmt: skip
        modes = [path for path in parameters if drawn and path.startswith(f"{prefix}{name}.modes.")]
        shares = [path for path in modes if path.endswith(".weight")]
        for number, path in enumerate(shares):
            yield path, piece, PieceColumn.MODES + 2 * number
            yield f"{path.removesuffix('weight')}factor", piece, PieceColumn.MODES + 2 * number + 1
    if names:
        return
    for piece, protocol in enumerate(PROTOCOLS):
        if piece:
            yield f"{table}.{('short', 'eager')[piece - 1]}_limit", piece, PieceColumn.SMALLEST_SIZE
        yield f"{table}.postal.{protocol}.latency", piece, PieceColumn.LATENCY
        yield f"{table}.postal.{protocol}.bandwidth", piece, PieceColumn.PER_BYTE


def _limits(parameters: Mapping[str, Any], table: str) -> tuple[str, str]:
    has_pieces = any(path.startswith(f"{table}.pieces.") for path in parameters)
    stated = f"{table}.pieces_eager_limit"
    eager = stated if has_pieces and stated in parameters else f"{table}.eager_limit"
    early = f"{table}.pieces_early_limit"
    return (early if has_pieces and early in parameters else eager), eager
