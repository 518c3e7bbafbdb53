"""Time against message size as curves with the messages of a phase among them, and these messages line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from whatif.core.sweep_figure import plot_table
from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.studies.message_curves import LARGEST_SIZE, Curve, MessageCurves, PhaseMessages, SentMessage
from whatif.tui.fit_job import MeasuredPoints
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.sweep_plot import PlotView
from whatif.units import BYTE, ONE, SECOND, format_quantity
from whatif.vocabulary import DISTANCES, LINK_DOMAIN, MODEL_LABELS

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray

DISTANCE_LABELS: Final[Mapping[str, str]] = dict(
    zip((*DISTANCES, LINK_DOMAIN), ("in a socket", "across sockets", "across nodes", "in a link domain"), strict=True)
)
# On the node the K-model has the times of the max-rate model, and the node-aware model has those of the postal one.
_ON_THE_NODE: Final = {"k_model": "max_rate", "node_aware": "postal"}
_ACROSS_NODES: Final = ("k_model", "max_rate", "postal")
_SIZE: Final = AxisDescription("message size", BYTE, Scale.LOG)
_TIME: Final = AxisDescription("time", SECOND, Scale.LOG)
_MOST_MARKED: Final = 4
_NEAR: Final = 1.25
"""Sizes that differ by less than this factor are marked as one."""
_MOST_POINTS: Final = 300
_FINENESS: Final = ((256, 256), (256, 64), (256, 12), (128, 12), (64, 12), (32, 8))
"""Steps across and up, from fine to coarse: points within one of them are drawn as one."""
_TITLES: Final = ("distance", "messages", "size", "each", "together", "model")
_TEXTS: Final = ("distance", "messages", "model")
# What gives way first if there is no room for all.
_DISPENSABLE: Final = ("model", "size", "each", "messages")


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


_HEADINGS: Final = {
    Detail.NAMES: "time over message size, across nodes",
    Detail.COUNTS: "time over message size, across nodes",
    Detail.DISTANCES: "time over size, across nodes unless named",
    Detail.ALL: "time over message size",
}


def curve_label(curve: Curve, detail: Detail = Detail.ALL) -> str:
    """The model of a curve with its distance and the k that it is charged with, as far as there is room."""
    distance = detail is Detail.ALL or curve.distance != "inter_node"
    words = f"{DISTANCE_LABELS[curve.distance]} {MODEL_LABELS[curve.model]}" if distance else MODEL_LABELS[curve.model]
    if curve.process_count is None or detail is Detail.NAMES:
        return words
    return f"{words} k={format_quantity(curve.process_count, ONE)}"


def curves_shown(curves: MessageCurves, phase: PhaseMessages | None) -> list[Curve]:
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
    curves: MessageCurves, phase: PhaseMessages | None, detail: Detail, measured: MeasuredPoints | None = None
) -> PlotDescription:
    """Time over message size with the messages of the phase, and what was measured."""
    roomy = detail >= Detail.DISTANCES
    shown = [curve for curve in curves_shown(curves, phase) if roomy or curve.distance == "inter_node"]
    lines = [PlotLine(curve_label(curve, detail), curves.sizes, curve.times) for curve in shown]
    messages = phase.messages if phase is not None else ()
    if messages:
        lines.append(_dots("sent", messages))
    if measured is not None:
        lines.append(measured_line(measured))
    limits = _limits(curves) if roomy else ()
    time = _TIME if roomy else replace(_TIME, label="")
    return PlotDescription("", _SIZE, time, tuple(lines), (*_sizes_sent(messages), *limits))


def fitting_picture(
    curves: MessageCurves, phase: PhaseMessages | None, width: int, height: int, measured: MeasuredPoints | None = None
) -> tuple[Detail, PlotDescription]:
    """The most detailed picture whose legend fits on a screen."""
    for detail in sorted(Detail, reverse=True):
        picture = curve_picture(curves, phase, detail, measured)
        if _legend_lines(picture, width) <= max(1, height // 6):
            break
    return detail, picture


def _legend_lines(picture: PlotDescription, width: int) -> int:
    """Number of lines of the legend of a plot: the y axis with its unit, then each curve behind a sample."""
    lines, used = 1, len(f"{picture.y.label} (us)".strip())
    for line in picture.lines:
        size = len(f"   ━━ {line.label}")
        lines, used = (lines, used + size) if used + size <= width else (lines + 1, size - 3)
    return lines


def _dots(label: str, messages: Sequence[SentMessage]) -> PlotLine:
    """Points that no line joins."""
    places = sorted({(item.size, item.time) for item in messages})
    size, time = np.array(places).T
    return points_line(label, size, time)


def points_line(label: str, size: FloatArray, value: FloatArray, error: FloatArray | None = None) -> PlotLine:
    """Points that no line joins, with error bars of half that length."""
    return PlotLine(label, size, value, "points", error)


def measured_line(points: MeasuredPoints) -> PlotLine:
    """Measured times, as many as can be distinguished."""
    with np.errstate(divide="ignore"):
        chosen = distinct(np.log(points.size), np.log(points.time))
    return points_line("measured", points.size[chosen], points.time[chosen])


def distinct(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """The places, ascending, of points that do not fall together on a screen; of those that do, the first."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    chosen = known
    for steps in _FINENESS:
        if chosen.size <= _MOST_POINTS:
            break
        along = zip(steps, (x[known], y[known]), strict=True)
        places = [np.rint(count * (value - value.min()) / (np.ptp(value) or 1.0)) for count, value in along]
        chosen = known[np.sort(np.unique(np.stack(places), axis=1, return_index=True)[1])]
    return chosen


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
    every = dict.fromkeys((*curves_shown(curves, phase), *curves.curves))
    lines = tuple(PlotLine(curve_label(curve), curves.sizes, curve.times) for curve in every)
    return PlotDescription("", _SIZE, _TIME, lines)


def message_rows(phase: PhaseMessages, width: int) -> TableRows:
    """The messages of the slowest rank in one iteration, line by line, and the time of the phase.

    Where a screen is narrow, whole columns are left out.
    """
    lines = [_row(item) for item in phase.messages]
    if phase.node_time > 0:
        across, model = DISTANCE_LABELS["inter_node"], MODEL_LABELS["max_rate"]
        lines.append((across, "the node's", "", "", _time(phase.node_time), model))
    if phase.reduction_time > 0:
        lines.append(("in memory", "arithmetic", "", "", _time(phase.reduction_time), ""))
    lines.append(("the slowest" if phase.combined == "concurrent" else "the sum", "", "", "", _time(phase.time), ""))
    columns = dict(zip(_TITLES, zip(*lines, strict=True), strict=True))
    for title in _DISPENSABLE:
        if sum(max(map(len, (name, *texts))) + 2 for name, texts in columns.items()) > width:
            del columns[title]
    rows = [tuple(Cell(text) for text in line) for line in zip(*columns.values(), strict=True)]
    rows[-1] = tuple(replace(cell, part="marked") for cell in rows[-1])
    return TableRows(tuple(columns), tuple(rows), frozenset(i for i, title in enumerate(columns) if title in _TEXTS))


def _row(item: SentMessage) -> tuple[str, ...]:
    on_node = item.model == "k_model" and item.distance != "inter_node"
    charged = MODEL_LABELS["max_rate" if on_node else item.model]
    return (
        DISTANCE_LABELS[item.distance],
        f"{format_quantity(item.count, ONE)} × {item.kind}",
        format_quantity(item.size, BYTE),
        _time(item.time),
        _time(item.count * item.time),
        charged if item.parameters == item.distance else f"{charged}, as {DISTANCE_LABELS[item.parameters]}",
    )


def _time(seconds: float) -> str:
    return format_quantity(seconds, SECOND)


class MessageCosts(Vertical):
    """The curves, or the table of their numbers, above the messages."""

    DEFAULT_CSS = """
    MessageCosts #timing { height: 1fr; }
    MessageCosts #sent { height: auto; max-height: 45%; }
    MessageCosts #rows { scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="costs")
        self._curves: MessageCurves | None = None
        self._phase: PhaseMessages | None = None
        self._measured: MeasuredPoints | None = None

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        with Vertical(id="timing", classes="panel"):
            yield PlotView()
            yield TableView(id="numbers")
        with Vertical(id="sent", classes="panel"):
            yield TableView(id="rows")

    def show(self, curves: MessageCurves, phase: PhaseMessages | None, measured: MeasuredPoints | None = None) -> None:
        """Show other curves and messages, and what was measured."""
        self._curves, self._phase, self._measured = curves, phase, measured
        self.query_one("#numbers", TableView).show(plot_table(curve_numbers(curves, phase)))
        if phase is not None:
            self.query_one("#sent").border_title = Content(f"{phase.phase}: what the slowest rank sends")
        self._draw()

    def turn(self, *, tabular: bool, messages: bool) -> None:
        """Show numbers in place of the curves; the messages if they fit."""
        self.query_one(PlotView).display = not tabular
        self.query_one("#numbers").display = tabular
        self.query_one("#sent").display = messages and self._phase is not None
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """A wider screen has room for more words."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        """Show as much as there is room for."""
        if self._curves is None:
            return
        plot = self.query_one(PlotView)
        detail, picture = fitting_picture(self._curves, self._phase, *plot.size, self._measured)
        plot.show(picture)
        self.query_one("#timing").border_title = _HEADINGS[detail if plot.display else Detail.ALL]
        if self._phase is not None:
            table = self.query_one("#rows", TableView)
            rows = message_rows(self._phase, self.size.width - 3)
            table.show(rows)
            table.styles.height = len(rows.cells) + 1
