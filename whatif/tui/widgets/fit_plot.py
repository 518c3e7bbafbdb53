"""A fit as a picture: measured points with the fitted curves, and below them, over the same sizes, the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from whatif.plotting.description import AxisDescription, Marker, PlotDescription, PlotLine, Scale
from whatif.tui.jobs.fit_job import DistanceFit, FittedCurve
from whatif.tui.widgets.message_costs import distinct, measured_line
from whatif.tui.widgets.stacked_plots import StackedPlots
from whatif.units import BYTE, ONE, SECOND, format_quantity

LIMITS: Final = ("short", "eager")
_SIZE: Final = AxisDescription("message size", BYTE, Scale.LOG)
_SIZE_BELOW: Final = AxisDescription("", BYTE, Scale.LOG)
_TIME: Final = AxisDescription("time", SECOND, Scale.LOG)
_RESIDUAL: Final = AxisDescription("", ONE)
_CERTAIN: Final = 0.02
"""A band that is nowhere wider than this share of the time looks like its curve."""


def fit_picture(fit: DistanceFit, limits: tuple[float, float], chosen: int) -> PlotDescription:
    """Measured times, the fitted curves with their band, and the limits, one of them chosen."""
    several = len(fit.curves) > 1
    lines = [_band(fit.curves)] if any(_uncertain(curve) for curve in fit.curves) else []
    lines.append(measured_line(fit.points))
    lines += [PlotLine(_pairs(curve.count) if several else "fitted", curve.size, curve.time) for curve in fit.curves]
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


def _band(curves: Sequence[FittedCurve]) -> PlotLine:
    """Both ends of twice the standard error, of each curve; what would lie below zero is left out."""
    ends = [(curve.size, curve.time + sign * curve.error) for curve in curves for sign in (-2, 2)]
    sizes = np.concatenate([np.append(size, np.nan) for size, _ in ends])
    times = np.concatenate([np.append(np.where(time > 0, time, np.nan), np.nan) for _, time in ends])
    return PlotLine("± 2 standard errors", sizes, times, "baseline")


def residual_picture(fit: DistanceFit, limits: tuple[float, float]) -> PlotDescription:
    """By how much of the measured time the fitted one is off, over the sizes of the picture of the times."""
    points = fit.points
    ends = np.array([points.size.min(initial=np.inf, where=points.size > 0), points.size.max()])
    percents = 100 * (fit.fitted / points.time - 1)
    with np.errstate(divide="ignore"):
        chosen = distinct(np.log(points.size), percents)
    lines = (
        PlotLine("residual in %", points.size[chosen], percents[chosen], "points"),
        PlotLine("exact", ends, np.zeros(2), "baseline"),
    )
    return PlotDescription("", _SIZE_BELOW, _RESIDUAL, lines, tuple(Marker(limit) for limit in limits if limit >= 1))


class FitPlot(StackedPlots):
    """Times and residuals over the same sizes."""

    def show_fit(self, fit: DistanceFit, limits: tuple[float, float], chosen: int) -> None:
        """Show another fit."""
        self.show_both(fit_picture(fit, limits, chosen), residual_picture(fit, limits))
