"""A fit as a picture: measured points with the fitted curves, and below them, over the same sizes, the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from textual import events

from whatif.export.cells import Run
from whatif.export.plot import AxisDescription, Line, Marker, PlotDescription, Scale
from whatif.export.readout import moved
from whatif.export.render import point_at, render_runs
from whatif.tui.fitted import Fitted, FittedCurve
from whatif.tui.widgets.message_costs import distinct, measured_line, points_line
from whatif.tui.widgets.plot import PlotView
from whatif.units import BYTE, ONE, SECOND, format_quantity

LIMITS: Final = ("short", "eager")
_SIZE: Final = AxisDescription("message size", BYTE, Scale.LOG)
_SIZE_BELOW: Final = AxisDescription("", BYTE, Scale.LOG)
_TIME: Final = AxisDescription("time", SECOND, Scale.LOG)
_RESIDUAL: Final = AxisDescription("", ONE)
_CERTAIN: Final = 0.02
"""A band that is nowhere wider than this share of the time cannot be told from its curve."""
_BOTH: Final = 13
"""The lines from which on there is room for the residuals."""


def fit_picture(fit: Fitted, limits: tuple[float, float], chosen: int) -> PlotDescription:
    """Measured times, the fitted curves with their band, and the limits, of which one is chosen."""
    several = len(fit.curves) > 1
    lines = [_band(fit.curves)] if any(_uncertain(curve) for curve in fit.curves) else []
    lines.append(measured_line(fit.points))
    lines += [Line(_pairs(curve.count) if several else "fitted", curve.size, curve.time) for curve in fit.curves]
    marks = (
        Marker(limit, f"{'▸ ' * (at == chosen)}{name} to {format_quantity(limit, BYTE)}")
        for at, (name, limit) in enumerate(zip(LIMITS, limits, strict=True))
        if limit >= 1
    )
    return PlotDescription("", _SIZE, _TIME, tuple(lines), tuple(marks))


def _pairs(count: float) -> str:
    return f"{format_quantity(count, ONE)} pair{'s' * (count != 1)}"


def _uncertain(curve: FittedCurve) -> bool:
    return bool(np.nanmax(2 * curve.error / curve.time, initial=0.0) > _CERTAIN)


def _band(curves: Sequence[FittedCurve]) -> Line:
    """Both ends of twice the standard error, of each curve; what would lie below zero is left out."""
    ends = [(curve.size, curve.time + sign * curve.error) for curve in curves for sign in (-2, 2)]
    sizes = np.concatenate([np.append(size, np.nan) for size, _ in ends])
    times = np.concatenate([np.append(np.where(time > 0, time, np.nan), np.nan) for _, time in ends])
    return Line("± 2 standard errors", sizes, times, "baseline")


def residual_picture(fit: Fitted, limits: tuple[float, float]) -> PlotDescription:
    """By how much of the measured time the fitted one is off, over the sizes of the picture of the times."""
    points = fit.points
    ends = np.array([points.size.min(initial=np.inf, where=points.size > 0), points.size.max()])
    percents = 100 * (fit.fitted / points.time - 1)
    with np.errstate(divide="ignore"):
        chosen = distinct(np.log(points.size), percents)
    lines = (
        points_line("residual in %", points.size[chosen], percents[chosen]),
        Line("exact", ends, np.zeros(2), "baseline"),
    )
    return PlotDescription("", _SIZE_BELOW, _RESIDUAL, lines, tuple(Marker(limit) for limit in limits if limit >= 1))


class _Part(NamedTuple):
    """One of several plots: where it stands, and the cells left of it."""

    description: PlotDescription
    top: int
    rows: int
    margin: int = 0


class FitPlot(PlotView):
    """Two plots over the same sizes; the crosshair goes through both."""

    def __init__(self) -> None:
        super().__init__()
        self._below: PlotDescription | None = None
        self._parts: tuple[_Part, ...] = ()

    def show_fit(self, fit: Fitted, limits: tuple[float, float], chosen: int) -> None:
        """Show another fit."""
        self._below = residual_picture(fit, limits)
        self.show(fit_picture(fit, limits, chosen))

    def draw(self, width: int, height: int) -> list[list[Run]]:
        """Draw the times, and where there is room the residuals below them, with their axes in one column."""
        above, below = self._description, self._below
        if not isinstance(above, PlotDescription) or below is None or height < _BOTH:
            self._parts = ()
            return super().draw(width, height)
        low = max(height // 3, 6)
        parts = _Part(above, 0, height - low), _Part(below, height - low, low)
        margins = [_margin(self._lines(part, width)) for part in parts]
        self._parts = tuple(part._replace(margin=max(margins) - own) for part, own in zip(parts, margins, strict=True))
        return [line for part in self._parts for line in self._lines(part, width)]

    def _lines(self, part: _Part, width: int) -> list[list[Run]]:
        lines = render_runs(part.description, width - part.margin, part.rows, **self._manner())
        return [[Run(" " * part.margin, ""), *line] for line in lines]

    def _under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """The point nearest to the mouse, on either plot."""
        offset = event.get_content_offset(self)
        if not self._parts or offset is None:
            return super()._under(event)
        part = self._parts[offset.y >= self._parts[1].top]
        place = offset.x - part.margin, offset.y - part.top
        value = point_at(part.description, self.size.width - part.margin, part.rows, place, **self._manner())
        return None if value is None else moved(self._parts[0].description, value)


def _margin(lines: Sequence[Sequence[Run]]) -> int:
    """The cells left of the vertical axis; it is the first thing that is drawn in the colour of an axis."""
    starts = [_before_axis(line) for line in lines]
    return min((start for start in starts if start is not None), default=0)


def _before_axis(line: Sequence[Run]) -> int | None:
    used = 0
    for run in line:
        if run.style == "axis":
            return used
        used += len(run.text)
    return None
