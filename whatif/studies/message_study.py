"""Messages against size: curves of models and distances with the messages of a phase among them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import plot_table
from whatif.errors import InfeasiblePointError, UsageError, did_you_mean
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.schema.application import HaloPhase
from whatif.studies.message_curves import LARGEST_SIZE, Curve, MessageCurves, PhaseMessages, SentMessage, message_curves
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import BYTE, ONE, SECOND, Dimension, format_quantity
from whatif.vocabulary import DISTANCES, LINK_DOMAIN, MODEL_LABELS

DISTANCE_LABELS: Final[Mapping[str, str]] = dict(
    zip((*DISTANCES, LINK_DOMAIN), ("in a socket", "across sockets", "across nodes", "in a link domain"), strict=True)
)
# On the node the K-model has the times of the max-rate model, and the node-aware model has those of the postal one.
_ON_THE_NODE: Final = {"k_model": "max_rate", "node_aware": "postal"}
_ACROSS_NODES: Final = ("k_model", "max_rate", "postal")
_SIZE: Final = AxisDescription("message size", BYTE, Scale.LOG)
_TIME: Final = AxisDescription("time", SECOND, Scale.LOG)
_SENT: Final = "● sent by the slowest rank"
_MOST_MARKED: Final = 4
_NEAR: Final = 1.25
"""Sizes that differ by less than this factor are marked as one."""
_COLUMNS: Final[dict[str, Dimension | None]] = {
    "distance": None, "kind": None, "messages": ONE, "size": BYTE, "each": SECOND, "together": SECOND, "model": None,
}  # fmt: skip


class Detail(IntEnum):
    """Detail of a picture of curves, by its size."""

    NAMES = 0
    """The curves across nodes, by the names of their models."""
    COUNTS = 1
    """These with their k."""
    DISTANCES = 2
    """The curves on the node as well, these with their distance, and the limits of the protocols."""
    ALL = 3
    """Every curve with its distance."""


@dataclass(frozen=True, eq=False, repr=False)
class MessageTimes(StudyResult):
    """Time against message size on a platform, and the messages of a phase."""

    curves: MessageCurves
    phase: PhaseMessages | None
    sent: bool = False
    """Whether the table has the messages of the phase in place of the curves."""
    title: str = ""

    def table(self) -> Table:
        """Times of every curve, a row for each size; or the messages that the slowest rank of the phase sends."""
        return (
            sent_table(self.phase) if self.sent and self.phase else plot_table(curve_numbers(self.curves, self.phase))
        )

    def readable_table(self) -> Table:
        """As the table; of the curves one size for each power of 4, which are enough to read."""
        table, sizes = self.table(), self.curves.sizes
        if self.sent:
            return table
        places = np.searchsorted(sizes, 4.0 ** np.arange(np.log2(sizes[-1]) // 2 + 1))
        return table.at(np.unique(places[places < sizes.size]))

    def picture(self) -> PlotDescription:
        """Curves of every model across nodes and of the phase's model on the node, with the messages of the phase."""
        picture = curve_picture(self.curves, self.phase, Detail.ALL)
        lines = (replace(line, label=_SENT) if line.style == "points" else line for line in picture.lines)
        return replace(picture, title=self.title, lines=tuple(lines))


def messages(scenario: Scenario, phase: str | None = None, sent: bool = False) -> MessageTimes:
    """Messages of a scenario against size; of a phase, by default the first one that sends any.

    Raise `UsageError` for a phase that sends no messages, `InfeasiblePointError` for an infeasible point.
    """
    program = scenario.program
    stated = program.loaded.scenario.application.phases.get(phase or "")
    curves = message_curves(program, evaluate(program), phase if isinstance(stated, HaloPhase) else None)
    if curves.infeasible:
        raise InfeasiblePointError(f"infeasible: {curves.infeasible}")
    found = sending_phase(curves, phase)
    if sent and found is None:
        raise UsageError("this application has no phase that sends messages")
    loaded = program.loaded.scenario
    name = f"{found.phase} of {loaded.application.name} on " if found else ""
    title = f"Time over message size: {name}{loaded.platform.name}"
    return MessageTimes(curves, found, sent, title).about(scenario)


def sending_phase(curves: MessageCurves, name: str | None) -> PhaseMessages | None:
    """Messages of a phase, or of the first one that sends any; raise `UsageError` for an unknown name."""
    phases = {item.phase: item for item in curves.phases}
    if name is not None and name not in phases:
        known = did_you_mean(name, phases) or (f"; phases with messages: {', '.join(phases)}" if phases else "")
        raise UsageError(f"`{name}` is not a phase that sends messages{known}")
    return phases[name] if name is not None else next(iter(phases.values()), None)


def sent_table(phase: PhaseMessages) -> Table:
    """Messages of the slowest rank in one iteration, line by line, then the time of the phase."""
    return Table.of_rows(_COLUMNS, list(_sent_rows(phase)))


def _sent_rows(phase: PhaseMessages) -> Iterator[tuple[Any, ...]]:
    none = math.nan
    for item in phase.messages:
        yield (DISTANCE_LABELS[item.distance], item.kind, item.count, item.size, item.time, item.count * item.time,
               _charged_model(item))  # fmt: skip
    if phase.node_time > 0:
        across, model = DISTANCE_LABELS["inter_node"], MODEL_LABELS["max_rate"]
        yield across, "the node's", none, none, none, phase.node_time, model
    if phase.reduction_time > 0:
        yield "in memory", "arithmetic", none, none, none, phase.reduction_time, ""
    yield ("the slowest" if phase.combined == "concurrent" else "the sum"), "", none, none, none, phase.time, ""


def _charged_model(item: SentMessage) -> str:
    """Model that a message is charged with, and the distance of its parameters if that is another one."""
    on_node = item.model == "k_model" and item.distance != "inter_node"
    charged = MODEL_LABELS["max_rate" if on_node else item.model]
    return charged if item.parameters == item.distance else f"{charged}, as {DISTANCE_LABELS[item.parameters]}"


def curve_label(curve: Curve, detail: Detail = Detail.ALL) -> str:
    """The model of a curve with its distance and the k that it is charged with, as far as there is room."""
    distance = detail is Detail.ALL or curve.distance != "inter_node"
    words = f"{DISTANCE_LABELS[curve.distance]} {MODEL_LABELS[curve.model]}" if distance else MODEL_LABELS[curve.model]
    if curve.process_count is None or detail is Detail.NAMES:
        return words
    return f"{words} k={format_quantity(curve.process_count, ONE)}"


def _curves_shown(curves: MessageCurves, phase: PhaseMessages | None) -> list[Curve]:
    """Curves that differ visibly: every model across nodes, and that of the phase on the node."""
    model = phase.model if phase is not None else "postal"
    by_key = {(curve.distance, curve.model): curve for curve in curves.curves}
    # The model of the phase comes first: it lies on top.
    keys = [("inter_node", name) for name in dict.fromkeys((model, *_ACROSS_NODES))]
    for distance in ("inter_socket", "intra_socket"):
        key = distance, _ON_THE_NODE.get(model, model)
        keys.append(key if key in by_key else (distance, "postal"))
    return [by_key[key] for key in keys if key in by_key]


def curve_picture(
    curves: MessageCurves, phase: PhaseMessages | None, detail: Detail, measured: PlotLine | None = None
) -> PlotDescription:
    """Time over message size with the messages of the phase, and what was measured."""
    roomy = detail >= Detail.DISTANCES
    shown = [curve for curve in _curves_shown(curves, phase) if roomy or curve.distance == "inter_node"]
    lines = [PlotLine(curve_label(curve, detail), curves.sizes, curve.times) for curve in shown]
    messages = phase.messages if phase is not None else ()
    if messages:
        lines.append(_dots("sent", messages))
    if measured is not None:
        lines.append(measured)
    limits = _limits(curves) if roomy else ()
    time = _TIME if roomy else replace(_TIME, label="")
    return PlotDescription("", _SIZE, time, tuple(lines), (*_sizes_sent(messages), *limits))


def _dots(label: str, messages: Sequence[SentMessage]) -> PlotLine:
    """Points that no line joins."""
    places = sorted({(item.size, item.time) for item in messages})
    size, time = np.array(places).T
    return PlotLine(label, size, time, "points")


def _limits(curves: MessageCurves) -> tuple[Marker, ...]:
    """Limits of the protocols of messages to another node."""
    named = [
        (name, limit)
        for item in curves.limits
        if item.distance == "inter_node"
        for name, limit in (("short", item.short_limit), ("eager", item.eager_limit))
    ]
    return tuple(
        Marker(limit, f"{name} to {format_quantity(limit, BYTE)}")
        for name, limit in named
        if 1 <= limit <= LARGEST_SIZE
    )


def _sizes_sent(messages: Sequence[SentMessage]) -> tuple[Marker, ...]:
    """The sizes of the messages with their kinds, unless too many to distinguish."""
    kinds: dict[float, set[str]] = {}
    for item in sorted(messages, key=lambda item: item.size):
        near = next((size for size in kinds if item.size < size * _NEAR), item.size)
        kinds.setdefault(near, set()).add(item.kind)
    if len(kinds) > _MOST_MARKED:
        return ()
    return tuple(Marker(size, _listed(found)) for size, found in kinds.items())


def _listed(kinds: set[str]) -> str:
    """`x y xy`, or the first and the last of many."""
    names = sorted(kinds, key=lambda name: (len(name), name))
    return " ".join(names) if len(names) <= _MOST_MARKED else f"{names[0]} to {names[-1]}"


def curve_numbers(curves: MessageCurves, phase: PhaseMessages | None) -> PlotDescription:
    """Every curve there is, those of the picture first, for a table of their numbers."""
    every = dict.fromkeys((*_curves_shown(curves, phase), *curves.curves))
    lines = tuple(PlotLine(curve_label(curve), curves.sizes, curve.times) for curve in every)
    return PlotDescription("", _SIZE, _TIME, lines)
