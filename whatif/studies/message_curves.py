"""Time against message size for each model and distance, and the messages that the application itself sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from whatif.axes import first_number
from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.evaluate import Evaluation, Values, evaluate
from whatif.core.phases.collective_choice import taken_algorithm
from whatif.core.phases.message import message_time, parameters_at
from whatif.core.term import Program, Reference
from whatif.core.wiring import Wiring
from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.patterns import INTER_NODE, message_counts, message_kinds
from whatif.models.placed_rounds import BEYOND, INNER
from whatif.models.quantities import FloatArray
from whatif.schema.application import HaloPhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.fields import QuantityField
from whatif.schema.parameters import DEFAULT, STATED, Parameter
from whatif.studies.placement_layout import halo_pattern, halo_phase, halo_phases
from whatif.units import BYTE, ONE, Quantity
from whatif.vocabulary import DISTANCES, LINK_DOMAIN, PARAMETER_TABLES

CURVE_POINTS: Final = 120
LARGEST_SIZE: Final = 2.0**40
"""In B; a larger limit means no limit."""

# The parameter that is swept; no name in a file has a space.
_SIZE: Final = "message curve.size"
_SIZE_PARAMETER: Final = Parameter(_SIZE, 1.0, QuantityField(BYTE), BYTE, (), None, DEFAULT, STATED)


@dataclass(frozen=True, slots=True)
class KCounts:
    """The counts behind k (Choi et al. 2020, Eq. 4 and Table 5), in one exchange of a halo phase."""

    inter_node_count: float
    """K_inter: the most messages that any node sends to others, or out of its link domain of several nodes."""
    total_count: float
    """K_total: the most messages that any node sends."""
    process_count: float
    """k': the processes of a node that communicate."""
    k: float
    """K_inter / K_total · k'."""
    effective_k: float
    """K that the model uses, at least 1."""
    stated: bool
    """Whether the file states K_inter and K_total; else they are counted from the placement."""
    beyond: Literal["node", "domain"]
    """Place that the messages of K_inter leave: their node, or their link domain of several nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Times in s of one model over one distance, at the sizes of `MessageCurves`."""

    distance: str
    model: str
    process_count: float | None
    """The k that the model is charged with: k' of the distance, for the K-model its effective k between nodes."""
    times: FloatArray


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The largest sizes in B that are sent as short and as eager messages over a distance."""

    distance: str
    short_limit: float
    eager_limit: float


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Messages of one kind that the slowest rank of a phase sends over one distance.

    They are charged with the parameters of `model` at the distance `parameters`, which may differ from those
    of the phase, as `note` states.
    """

    distance: str
    kind: str
    """Dimensions in which the receiver is displaced, such as `x` or `xy`; `round 1` of a collective."""
    size: float
    """In B."""
    count: float
    """In one iteration."""
    time: float
    """In s, of one message; for `node_aware` the time that its sender is busy."""
    model: str
    parameters: str
    note: str


@dataclass(frozen=True, slots=True)
class PhaseMessages:
    """Messages of a phase; `time`, in s of one iteration, is the sum of their times, `node_time` and `reduction_time`.

    Of `concurrent` messages only the slowest counts. `node_time` is the time of the bytes of the busiest node into
    the network, if the model (`node_aware`) does not include it in the messages; `reduction_time` is the arithmetic of
    a reduction.
    """

    phase: str
    model: str
    combined: str
    """`serialised` or `concurrent`, or the algorithm of a collective."""
    messages: tuple[SentMessage, ...]
    node_time: float
    time: float
    reduction_time: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class MessageCurves:
    """Time against message size on a platform, and the messages of the application."""

    phase: str | None
    """Halo phase that gives the k of the K-model's curves; None without one."""
    sizes: FloatArray
    """In B, whole numbers in ascending order, with the last of each protocol and the first of the next one."""
    curves: tuple[Curve, ...]
    limits: tuple[SizeLimits, ...]
    phases: tuple[PhaseMessages, ...]
    infeasible: str
    """Reason why the point is infeasible, without messages and k; empty for a feasible one."""


def counts(program: Program, evaluation: Evaluation, phase: str) -> KCounts:
    """K_inter, K_total, k' and k of a halo phase at one point, whatever its model.

    Raise `UsageError` if the phase is not a halo phase, `InfeasiblePointError` if the point is infeasible.
    """
    pattern = halo_pattern(program, evaluation, phase)
    stated = halo_phase(program, phase).inter_node_count is not None
    at = f"application.phases.{phase}" if stated else phase
    if f"{at}.inter_node_count" in evaluation.values:
        inter_node, total = (
            first_number(evaluation.values[f"{at}.{name}"]) for name in ("inter_node_count", "total_count")
        )
    else:
        counted = message_counts(pattern)
        inter_node, total = counted.inter_node_count, counted.total_count
    sharing = float(pattern.ranks_per_node)
    k = k_factor(np.asarray(inter_node), np.asarray(total), np.asarray(sharing))
    beyond: Literal["node", "domain"] = "domain" if pattern.nodes_per_domain > 1 and not stated else "node"
    return KCounts(inter_node, total, sharing, float(k), float(effective_process_count(k)), stated, beyond)


def message_curves(program: Program, evaluation: Evaluation, phase: str | None = None) -> MessageCurves:
    """Every model that the platform has parameters for, over every distance, and the messages of every phase.

    `evaluation` is that of one point, such as `Session.at`. `phase` is the halo phase whose k the K-model has, the
    first one where none is named. Raise `UsageError` if it is not a halo phase. If the point is infeasible there
    are curves of the platform, but none of the K-model, and no messages.
    """
    chosen = phase or next(iter(halo_phases(program)), None)
    if chosen is not None:
        halo_phase(program, chosen)
    infeasible = evaluation.obstacle()
    effective_k = counts(program, evaluation, chosen).effective_k if chosen is not None and not infeasible else None
    phases = () if infeasible else tuple(_sent(program, evaluation.values))
    limits = tuple(_limits(program, evaluation.values))
    sizes = _sizes(limits, phases)
    curves = tuple(_curves(program, evaluation.values, sizes, effective_k))
    return MessageCurves(chosen, sizes, curves, limits, phases, infeasible)


def _limits(program: Program, values: Values) -> Iterator[SizeLimits]:
    for distance in DISTANCES:
        if getattr(program.loaded.scenario.platform.network, distance) is not None:
            at = f"platform.network.{distance}"
            yield SizeLimits(
                distance, first_number(values[f"{at}.short_limit"]), first_number(values[f"{at}.eager_limit"])
            )


def _sizes(limits: Sequence[SizeLimits], phases: Sequence[PhaseMessages]) -> FloatArray:
    """Whole sizes from 1 B to three octaves beyond all limits and messages, with both sides of every limit."""
    last = np.floor([limit for item in limits for limit in (item.short_limit, item.eager_limit)])
    sent = [message.size for item in phases for message in item.messages]
    end = 8 * min(np.fmax.reduce([1.0, *last, *sent]), LARGEST_SIZE)
    sizes = np.unique(np.concatenate([np.round(np.geomspace(1, end, CURVE_POINTS)), last, last + 1]))
    return np.asarray(sizes[(sizes >= 1) & (sizes <= end)])


def _curves(program: Program, values: Values, sizes: FloatArray, effective_k: float | None) -> Iterator[Curve]:
    """The curves as the engine's own wiring computes them, over the sizes as a swept parameter."""
    wiring = Wiring(program.loaded, {**program.parameters, _SIZE: _SIZE_PARAMETER})
    wiring.terms.update(program.terms)
    context = Context(wiring)
    wired: dict[tuple[str, str], str] = {}
    for distance, model in _with_parameters(program):
        shared: Reference = context.sharing(distance)
        if model == "k_model":
            if effective_k is None:
                continue
            shared = Quantity(effective_k, ONE) if distance == "inter_node" else shared
        wired[distance, model] = message_time(context, f"{_SIZE}.{model}", model, distance, _SIZE, shared)
    sizes_program = replace(program, parameters=wiring.parameters, terms=wiring.terms, constraints=())
    # All values of the point are passed on, so that only the terms wired here are computed.
    times = evaluate(sizes_program, {**values, _SIZE: sizes}).values
    for (distance, model), name in wired.items():
        if np.isfinite(times[name]).all():
            yield Curve(
                distance, model, _process_count(sizes_program, times, f"{_SIZE}.{model}.{distance}"), times[name]
            )


def _with_parameters(program: Program) -> Iterator[tuple[str, str]]:
    """The distances and models that the platform has parameters of their own for."""
    network = program.loaded.scenario.platform.network
    for distance in DISTANCES:
        for model, table in PARAMETER_TABLES.items():
            if getattr(getattr(network, distance), table, None) is not None:
                yield distance, model


def _process_count(program: Program, values: Values, name: str) -> float | None:
    """The k that the times of a message are wired to."""
    shared = program.terms[f"{name}.rendezvous_time"].inputs.get("process_count")
    if isinstance(shared, str):
        return first_number(values[shared])
    return None if shared is None else shared.value


def _sent(program: Program, values: Values) -> Iterator[PhaseMessages]:
    """The messages of each phase that sends any, in the order of the file."""
    for name, phase in program.loaded.scenario.application.phases.items():
        if isinstance(phase, HaloPhase):
            yield _halo(program, values, name, phase)
        elif isinstance(phase, CollectivePhase):
            yield _collective(program, values, name, phase)


def _halo(program: Program, values: Values, name: str, phase: HaloPhase) -> PhaseMessages:
    """The messages of the rank that the phase's own function takes longest for, each with its time alone."""
    sent = values[f"{name}.rank_counts"]
    by_class = _exchange_times(program, values, name, sent)
    slowest = sent[by_class.argmax()]
    alone = np.eye(slowest.size).reshape(-1, *slowest.shape)
    times = _exchange_times(program, values, name, alone).reshape(slowest.shape)
    repeated = first_number(values[f"application.phases.{name}.exchange_count"])
    sizes = np.broadcast_to(values[f"{name}.message_size"], slowest.shape[-1])
    kinds = _kinds(program, phase)
    shown = [_shown(program, values, at) for at in range(len(DISTANCES))]
    charged = [_charged(program, name, phase.model, distance) for distance in shown]
    messages = tuple(
        SentMessage(
            shown[at], kinds[kind], float(sizes[kind]), float(count) * repeated, float(times[at, kind]), *charged[at]
        )
        for (at, kind), count in np.ndenumerate(slowest)
        if count
    )
    node_time = repeated * (first_number(values[f"{name}.exchange_time"]) - by_class.max().item())
    return PhaseMessages(name, phase.model, phase.concurrency, messages, node_time, first_number(values[name]))


def _kinds(program: Program, phase: HaloPhase) -> list[str]:
    """The names of the kinds of message, as the keys of `message_sizes` in a file."""
    grid = program.loaded.scenario.application.grid
    axes = list(grid.cells) if grid is not None else []
    return ["".join(axes[dimension] for dimension in kind) for kind in message_kinds(len(axes), phase.neighbours)]


def _exchange_times(program: Program, values: Values, name: str, sent: FloatArray) -> FloatArray:
    """Time of an exchange for each of several ranks [rank], whose nodes send nothing else.

    `sent` are their messages [rank, distance, kind].
    """
    changed = {f"{name}.rank_counts": sent[:, np.newaxis]}
    if f"{name}.node_counts" in values:
        changed[f"{name}.node_counts"] = np.zeros_like(values[f"{name}.node_counts"])
    term = program.terms[f"{name}.exchange_time"]
    alone = replace(program, terms={term.name: term}, constraints=())
    others = {key: value for key, value in values.items() if key != term.name}
    return evaluate(alone, others | changed).values[term.name]


def _charged(program: Program, name: str, model: str, distance: str) -> tuple[str, str, str]:
    """Model and distance of the parameters of messages, and a note on them."""
    if distance == LINK_DOMAIN:
        return "peer_link", LINK_DOMAIN, ""
    context = Context(Wiring(program.loaded, program.parameters))
    # Of the node-aware model, messages on the node have postal times and others max-rate parameters.
    substitute = {"node_aware": "max_rate" if distance == "inter_node" else "postal"}.get(model, model)
    used, table, note = parameters_at(context, name, substitute, distance)
    return model if table == PARAMETER_TABLES[substitute] else table, used, note


def _shown(program: Program, values: Values, at: int) -> str:
    """Distance of messages by their position in `DISTANCES`: between GPUs most are in a link domain."""
    context = Context(Wiring(program.loaded, program.parameters))
    if context.buffers == "host" or at == INTER_NODE:
        return DISTANCES[at]
    parted = DOMAIN_GPUS in values and first_number(values[DOMAIN_GPUS]) < first_number(
        values["platform.node.gpu_count"]
    )
    return DISTANCES[at] if at and parted else LINK_DOMAIN


def _collective(program: Program, values: Values, name: str, phase: CollectivePhase) -> PhaseMessages:
    """The messages of the rounds; equal rounds are one line."""
    if phase.model == "nccl":
        return PhaseMessages(name, phase.model, phase.algorithm, (), 0.0, first_number(values[name]))
    repeated = first_number(values[f"application.phases.{name}.operation_count"])
    times = f"{phase.distance}.message_time" if phase.distance else "round_times"
    taken, algorithm = taken_algorithm(program, values, name, phase)
    rounds = np.broadcast_arrays(*(values[f"{taken}.{key}"] for key in ("round_sizes", times, "round_counts")))
    counts: dict[tuple[str, float, float], list[tuple[int, float]]] = {}
    for index, (size, time, count) in enumerate(zip(*rounds, strict=True)):
        distance = phase.distance or _shown(program, values, _farthest(values[f"{taken}.rounds"], index))
        if count:
            counts.setdefault((distance, float(size), float(time)), []).append((index + 1, float(count)))
    messages = tuple(
        SentMessage(distance, f"round {found[0][0]}", size, sum(count for _, count in found) * repeated, time,
                    *_charged(program, name, phase.model, distance))
        for (distance, size, time), found in counts.items()
    )  # fmt: skip
    reduction = f"{taken}.reduction_time"
    arithmetic = repeated * first_number(values[reduction]) if reduction in values else 0.0
    return PhaseMessages(name, phase.model, algorithm, messages, 0.0, first_number(values[name]), arithmetic)


def _farthest(rounds: FloatArray, index: int) -> int:
    """Position of the farthest distance of a round in `DISTANCES`."""
    return int(np.flatnonzero(rounds[..., INNER : BEYOND + 1, index].ravel()).max(initial=0))
