"""Lanes on matplotlib axes, with the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.plotting.axis_view import AxisView, axis_unit
from whatif.plotting.description import AxisDescription
from whatif.plotting.lanes import PARTS, LaneChart, Lanes
from whatif.plotting.picture_axes import draw_legend, pattern_of, set_axis
from whatif.plotting.picture_style import ink
from whatif.units import SECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGH: Final = 0.72
"""Height of a lane's bar, as a share of the lane."""
_NAMES: Final = 24
"""Most lanes with a name each."""


def draw_lanes(axes: Axes, chart: LaneChart) -> None:
    """Draw a bar of each activity in its colour and pattern, lines between nodes, and the critical path."""
    lanes, kinds = chart.lanes, chart.kinds
    set_axis(axes, "x", AxisView(AxisDescription("time", SECOND), *lanes.window, axis_unit(lanes.window[1], SECOND)))
    used = [number for number in range(1, len(kinds.styles)) if (lanes.group == number).any()]
    for number in used:
        _draw_bars(axes, lanes, number, kinds.styles[number])
    _draw_path(axes, lanes)
    for lane in np.flatnonzero(np.diff(lanes.node)).tolist():
        axes.axhline(lane + 0.5, color=ink("faint"), linewidth=0.6, linestyle=(0, (4, 3)))
    _name(axes, lanes)
    path = [("ink", "critical path")] if (lanes.critical >= 0).any() else []
    draw_legend(axes, [(kinds.styles[number], kinds.names[number - 1]) for number in used], path)


def _draw_bars(axes: Axes, lanes: Lanes, number: int, style: str) -> None:
    for lane, mask in enumerate(lanes.group == number):
        place: dict[str, Any] = {"xranges": _spans(lanes, mask), "yrange": (lane - _HIGH / 2, _HIGH)}
        axes.broken_barh(**place, facecolor=ink(style), linewidth=0)
        axes.broken_barh(**place, **pattern_of(style))


def _draw_path(axes: Axes, lanes: Lanes) -> None:
    """Draw the critical path with a margin that sets it off the bars."""
    for lane in range(len(lanes.node)):
        spans = _spans(lanes, lanes.critical == lanes.first_rank + lane)
        ends = [start for start, _ in spans], [start + size for start, size in spans]
        for width, colour in ((4.0, "ground"), (1.8, "ink")):
            axes.hlines([lane] * len(spans), *ends, color=ink(colour), linewidth=width)


def _spans(lanes: Lanes, mask: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Start and length in s of each run of parts."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    low, high = lanes.window
    scale = (high - low) / PARTS
    return [(low + first * scale, (last - first) * scale) for first, last in edges.tolist()]


def _name(axes: Axes, lanes: Lanes) -> None:
    """Name ranks, or every n-th of many, and the first of each node with its node."""
    count = len(lanes.node)
    step = max(1, -(-count // _NAMES))
    shown = range(0, count, step)
    begins = np.append(True, np.diff(lanes.node) != 0)
    labels = [
        f"node {lanes.node[lane]}  rank {lanes.first_rank + lane}" if begins[lane] else str(lanes.first_rank + lane)
        for lane in shown
    ]
    axes.set_ylim(count - 0.4, -0.8)
    axes.set_yticks(list(shown), labels=labels)
    axes.tick_params(axis="y", length=0, labelcolor=ink("ink"))
    axes.spines["left"].set_visible(False)
