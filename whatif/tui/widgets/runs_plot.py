"""A regression as a picture: measured runs over fitted ones with the interval, and their residuals below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.tui.jobs.regression_job import RunsRegression
from whatif.tui.widgets.message_costs import distinct
from whatif.tui.widgets.stacked_plots import StackedPlots
from whatif.units import ONE

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray

_WIDE: Final = 30.0
"""The ratio of the largest to the smallest value beyond which axes are logarithmic."""
_BAND_POINTS: Final = 60


def fit_picture(found: RunsRegression) -> PlotDescription:
    """Measured over fitted values, where both are the same, and the interval in which one more run lies."""
    scale = _scale(found)
    x = AxisDescription(f"fitted {found.response}", found.dimension, scale)
    y = AxisDescription(f"measured {found.response}", found.dimension, scale)
    ends = np.array([found.fitted.min(), found.fitted.max()])
    chosen = distinct(*(_spread(values, scale) for values in (found.fitted, found.measured)))
    at, lower, upper = _band(found)
    if scale is Scale.LOG:
        lower = np.where(lower > 0, lower, np.nan)
    gap = np.array([np.nan])
    lines = (
        PlotLine("measured", found.fitted[chosen], found.measured[chosen], "points"),
        PlotLine("as fitted", ends, ends),
        PlotLine(
            f"{found.level:.0%} interval",
            np.concatenate((at, gap, at)),
            np.concatenate((lower, gap, upper)),
            "baseline",
        ),
    )
    return PlotDescription("", x, y, lines)


def _band(found: RunsRegression) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ends of the interval along the fitted values: the mean for runs near each other."""
    order = np.argsort(found.fitted, kind="stable")
    parts = np.array_split(order, min(len(order), _BAND_POINTS))
    at, lower, upper = (
        np.array([values[part].mean() for part in parts]) for values in (found.fitted, found.lower, found.upper)
    )
    return at, lower, upper


def _scale(found: RunsRegression) -> Scale:
    values = np.concatenate([found.measured, found.fitted])
    positive = values.min() > 0
    return Scale.LOG if positive and (found.logarithmic or values.max() > _WIDE * values.min()) else Scale.LINEAR


def _spread(values: FloatArray, scale: Scale) -> FloatArray:
    return np.log(values) if scale is Scale.LOG else values


def residual_picture(found: RunsRegression, against: str) -> PlotDescription:
    """Residuals over the fitted values, or over a column: of the regression of a logarithm in percent."""
    variable = next((item for item in found.variables if item[0] == against), None)
    label, values, dimension = ("", found.fitted, found.dimension) if variable is None else variable
    scale = Scale.LINEAR if variable is not None else _scale(found)
    if found.logarithmic:
        axis, residuals, name = AxisDescription("", ONE), 100 * (found.measured / found.fitted - 1), "residual in %"
    else:
        axis, residuals, name = AxisDescription("", found.dimension), found.measured - found.fitted, "residual"
    chosen = distinct(_spread(values, scale), residuals)
    ends = np.array([values.min(), values.max()])
    lines = (
        PlotLine(name, values[chosen], residuals[chosen], "points"),
        PlotLine("exact", ends, np.zeros(2), "baseline"),
    )
    return PlotDescription("", AxisDescription(label, dimension, scale), axis, lines)


class RunsPlot(StackedPlots):
    """Runs and residuals; the residuals may be over another column."""

    BOTH: ClassVar[int] = 16

    def show_runs(self, found: RunsRegression, against: str) -> None:
        """Show another regression."""
        below = residual_picture(found, against)
        self.show_both(fit_picture(found), below, shared=not below.x.label)
