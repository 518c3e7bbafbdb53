"""Fits as tables: parameters with their standard errors, and points with their residuals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from whatif.fitting.fit_result import Fit
from whatif.fitting.gpu_rates import GpuFit
from whatif.fitting.host_bandwidths import HostFit
from whatif.fitting.message_parameters import NetworkFit
from whatif.table import Column, Table, share_column, text_column
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, Dimension, format_quantity

_UNKNOWN = "not known"
_UNITS = {"operational_intensity": "flop/s", "array_size": "B/s"}
_SHOWN = 4
"""Number of reported ways to divide the sizes."""


def parameter_table(fits: Iterable[Fit], notes: Mapping[str, str], *, in_words: bool) -> Table:
    """One row per parameter: value, standard error, how many points gave it, and how far they lie from the curve.

    `in_words` writes values with their units, for people; else they are in base units, with a column `unit`.
    """
    kind, unit = (None, ()) if in_words else (ONE, ("unit",))
    kinds = {"parameter": None, "value": kind, "standard_error": kind, **dict.fromkeys(unit)}
    rows = [
        (f"{fit.path}.{name}", *_shown(float(value), float(error), dimension, in_words), fit.point_count, fit.error)
        for fit in fits
        for (name, dimension), value, error in zip(fit.dimensions.items(), fit.values, fit.standard_errors, strict=True)
    ]
    return Table.of_rows({**kinds, "points": ONE, "rms_residual": ONE}, rows, notes)


def _shown(value: float, error: float, dimension: Dimension, in_words: bool) -> tuple[float | str, ...]:
    """Value and standard error, in words or followed by their unit."""
    if not in_words:
        return value, error, str(dimension)
    return format_quantity(value, dimension), format_quantity(error, dimension, 2) if np.isfinite(error) else _UNKNOWN


def point_table(fit: NetworkFit) -> Table:
    """Every point of every model: size, processes, measured and fitted time, (fitted - measured) / measured."""
    parts = [(model, fit.points_of(model), fit.residuals(model)) for model in fit.models]
    names = [model for model, points, _ in parts for _ in range(len(points))]
    size, count, time = (
        np.concatenate([getattr(points, name) for _, points, _ in parts])
        for name in ("message_size", "process_count", "time")
    )
    residual = np.concatenate([residuals for _, _, residuals in parts])
    return Table(
        {
            "model": text_column(names),
            "message_size": Column(size, BYTE),
            "process_count": Column(count, ONE),
            "time": Column(time, SECOND),
            "fitted_time": Column(time * (1 + residual), SECOND),
            "residual": share_column(residual),
        }
    )


def limit_notes(fit: NetworkFit) -> dict[str, str]:
    """Protocol limits, and whether they were found or given."""
    limits = {"short_limit": fit.short_limit, "eager_limit": fit.eager_limit}
    texts = {name: format_quantity(limit, BYTE, 6) for name, limit in limits.items()}
    return {**texts, "limits": "found" if fit.limits.found else "given"}


def limits_in_words(fit: NetworkFit) -> list[str]:
    """The protocol limits, what they were compared with, and the errors of the models of sharing, a line each."""
    how = "found" if fit.limits.found else "given"
    limits = ", ".join(format_quantity(limit, BYTE) for limit in (fit.short_limit, fit.eager_limit))
    lines = [f"protocol limits ({how}): short {limits.replace(', ', ', eager ')}"]
    for tried in fit.segmentations[:_SHOWN]:
        at = ", ".join(format_quantity(limit, BYTE) for limit in tried.limits) or "none"
        lines.append(f"  {tried.kind}, breaks at {at}: criterion {tried.criterion:.1f}, residual {tried.error:.2%}")
    shared = ", ".join(f"{model} {error:.1%}" for model, error in fit.held_out_errors.items())
    return [*lines, f"error at points left out: {shared}; recommended is {fit.recommendation}"] if shared else lines


def gpu_points(fit: GpuFit) -> Table:
    """Every point: what was varied, measured and fitted rate or bandwidth in base units, and the relative residual."""
    rows = [
        (points.name, points.variable, x, measured, fitted, _UNITS[points.variable], fitted / measured - 1)
        for points in fit.points
        for x, measured, fitted in zip(points.x, points.measured, points.fitted, strict=True)
    ]
    numbers = dict.fromkeys(("x", "measured", "fitted"), ONE)
    return Table.of_rows({"series": None, "variable": None, **numbers, "unit": None, "residual": ONE}, rows)


def host_points(fit: HostFit) -> Table:
    """Every triad: active cores, measured and fitted bandwidth, and the relative residual."""
    return Table(
        {
            "cores": Column(fit.cores, ONE),
            "measured": Column(fit.measured, BYTE_PER_SECOND),
            "fitted": Column(fit.fitted, BYTE_PER_SECOND),
            "residual": share_column(fit.fitted / fit.measured - 1),
        }
    )
