"""Visible part of a plot: zoom, pan, and curves clipped to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Axes, AxisView, axes_of, axis_space, heat_axes, points_of
from whatif.plotting.description import Description, HeatMap

Span = tuple[float, float]
Which = Literal["x", "y"]
_NARROWEST: Final = 1e-9
"""Shortest visible part, as a share of the whole axis."""


@dataclass(frozen=True, slots=True)
class PlotWindow:
    """Visible part of both axes, in axis space; None for a whole axis."""

    x: Span | None = None
    y: Span | None = None

    def of(self, description: Description) -> Description:
        """Plot with only this part of its axes drawn."""
        if self == PlotWindow():
            return description
        x, y = replace(description.x, limits=self.x), replace(description.y, limits=self.y)
        return replace(description, x=x, y=y)

    def zoomed(self, description: Description, which: Which, factor: float, centre: float | None = None) -> PlotWindow:
        """Window with a factor times as much of an axis, around a position in axis space or its middle."""
        shown = self._shown(description, which)
        centre = (shown.low + shown.high) / 2 if centre is None else centre
        return self._with(
            description, which, (centre + factor * (shown.low - centre), centre + factor * (shown.high - centre))
        )

    def panned(self, description: Description, which: Which, distance: float) -> PlotWindow:
        """Window moved by a distance in axis space, not beyond the ends; a whole axis stays."""
        if getattr(self, which) is None:
            return self
        shown, whole = self._shown(description, which), _whole(self, description, which)
        distance = float(np.clip(distance, min(whole.low - shown.low, 0.0), max(whole.high - shown.high, 0.0)))
        return self._with(description, which, (shown.low + distance, shown.high + distance))

    def around(self, description: Description, which: Which, position: float) -> PlotWindow:
        """Window moved just as far as a position is to be seen."""
        shown = self._shown(description, which)
        beyond = min(position - shown.low, 0.0) + max(position - shown.high, 0.0)
        return self.panned(description, which, beyond) if np.isfinite(beyond) and beyond else self

    def length(self, description: Description, which: Which) -> float:
        """Length of the visible part of an axis in axis space."""
        shown = self._shown(description, which)
        return shown.high - shown.low

    def _shown(self, description: Description, which: Which) -> AxisView:
        return getattr(_axes(self.of(description)), which)  # type: ignore[no-any-return]

    def _with(self, description: Description, which: Which, span: Span) -> PlotWindow:
        whole = _whole(self, description, which)
        low, high = max(span[0], whole.low), min(span[1], whole.high)
        if high - low < _NARROWEST * (whole.high - whole.low):
            return self
        everything = low <= whole.low and high >= whole.high
        found = None if everything else (low, high)
        return replace(self, x=found) if which == "x" else replace(self, y=found)


def _axes(description: Description) -> Axes:
    if isinstance(description, HeatMap):
        return heat_axes(description)
    return axes_of(description, points_of(description))


def _whole(window: PlotWindow, description: Description, which: Which) -> AxisView:
    """Whole axis; that of y follows from the points in the visible part of x."""
    free = replace(window, x=None) if which == "x" else replace(window, y=None)
    return getattr(_axes(free.of(description)), which)  # type: ignore[no-any-return]


def first_curve_at(plot: Description, cross: tuple[float, float] | None) -> float | None:
    """Position along y of the first curve, at a crosshair or in the middle of x; None without a value."""
    if isinstance(plot, HeatMap) or not plot.lines:
        return None
    axes, (x, y) = _axes(plot), points_of(plot)[0]
    wanted = (axes.x.low + axes.x.high) / 2 if cross is None else float(axis_space(np.array(cross[0]), plot.x))
    distances = np.where(np.isfinite(y), np.abs(x - wanted), np.nan)
    return float(y[np.nanargmin(distances)]) if np.isfinite(distances).any() else None


def clipped(points: FloatArray, width: float, height: float) -> FloatArray:
    """Line through dots (x, y) within a rectangle from 0 to its width and height, with gaps where it is outside.

    Liang and Barsky (1984): the part of each segment between its entry and its exit.
    """
    limits = np.array([[width], [height]])
    outside = (points < 0) | (points > limits)
    if not outside.any():
        return points
    start, step = points[:, :-1], np.diff(points)
    # A dot covers half a step to each side.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(-0.5 - start) / step, (limits + 0.5 - start) / step])
    inside = (start >= 0) & (start <= limits)
    lower, upper = np.fmin(ends[0], ends[1]), np.fmax(ends[0], ends[1])
    still = step == 0
    lower, upper = np.where(still, -np.inf, lower), np.where(still, np.where(inside, np.inf, -np.inf), upper)
    entry, exit_ = np.maximum(lower.max(axis=0), 0.0), np.minimum(upper.min(axis=0), 1.0)
    seen = np.asarray(np.isfinite(step).all(axis=0) & (entry <= exit_))
    alone = np.asarray(~outside.any(axis=0) & np.isfinite(points).all(axis=0))
    first = np.where(seen, start + np.nan_to_num(np.clip(entry, 0, 1)) * step, np.where(alone[:-1], start, np.nan))
    last = np.where(seen, start + np.nan_to_num(np.clip(exit_, 0, 1)) * step, np.nan)
    pieces = np.stack([first, last, np.full_like(first, np.nan)], axis=2).reshape(2, -1)
    end = np.where(alone[-1:], points[:, -1:], np.nan)
    return np.asarray(np.clip(np.rint(np.concatenate([pieces, end], axis=1)), 0.0, limits))
