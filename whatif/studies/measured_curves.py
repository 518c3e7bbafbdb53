"""Measured runs on the curves of a sweep, and the errors of the predictions below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.core.sweep_figure import Y_COLUMN, label_of
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine
from whatif.units import ONE
from whatif.vocabulary import CATEGORIES

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray
    from whatif.studies.measured_points import MeasuredPoints

_ERROR: Final = AxisDescription("", ONE)


def drawn_points(points: Mapping[str, MeasuredPoints], y: str) -> dict[str, MeasuredPoints]:
    """Measured points of the curves of a figure, by result: of `y`, and of the categories of an iteration."""
    names = [y, *(f"{category}_time" for category in CATEGORIES)] if y == Y_COLUMN else [y]
    return {name: points[name] for name in names if name in points}


def with_measured(description: PlotDescription, points: Mapping[str, MeasuredPoints]) -> PlotDescription:
    """Plot with measured points in front of its curves; several runs at one place are their mean with an error bar."""
    lines = tuple(_line(name, _label("measured", name), item.x, item.measured) for name, item in points.items())
    return replace(description, lines=(*description.lines, *lines)) if lines else description


def error_picture(description: PlotDescription, points: Mapping[str, MeasuredPoints]) -> PlotDescription | None:
    """Errors of the predictions in per cent over the axis of a plot; None without measured points."""
    if not points:
        return None
    x = np.concatenate([line.x[np.isfinite(line.x)] for line in description.lines])
    ends = np.array([x.min(), x.max()])
    lines = [_line(name, _label("error in %", name), item.x, 100 * item.errors) for name, item in points.items()]
    exact = PlotLine("exact", ends, np.zeros(2), "baseline")
    return PlotDescription("", replace(description.x, label=""), _ERROR, (*lines, exact))


def _line(name: str, label: str, x: FloatArray, values: FloatArray) -> PlotLine:
    """Means at each place as points in the colour of the curve of a result."""
    places, means, deviations = averaged(x, values)
    return PlotLine(label, places, means, "points", deviations, of=label_of(name))


def averaged(x: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places, means and standard deviations of the values at each place; no deviation of a single value."""
    places, of, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(of, values) / counts
    squares = np.bincount(of, (values - means[of]) ** 2)
    with np.errstate(invalid="ignore"):
        return places, means, np.sqrt(np.where(counts > 1, squares, np.nan) / (counts - 1))


def _label(word: str, name: str) -> str:
    return word if name == Y_COLUMN else f"{word}, {label_of(name)}"
