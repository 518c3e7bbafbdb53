"""Published models of dgemm, one for each processor and calibration, combined to one for the platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.blas_costs import KernelFit
from whatif.fitting.fit_result import Fit, root_mean_square
from whatif.fitting.processors import Processors, processors
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.units import ONE, SECOND
from whatif.vocabulary import MATRIX_TERMS

_DEVIATION = "deviation_"


def fit_coefficients(
    table: Table, kernel: str = "dgemm", model: str | None = None, noise: str | None = None
) -> KernelFit:
    """Means over processors of `constant`, `mnk`, .. and of their `deviation_`, and the factor of each processor.

    A factor is that of `mnk`, which is all of the time of calls that take long. `model` may be M_H (as M_H-1) or M, for
    one without factors; `noise` N-0 leaves the deviation out. Standard errors are those of means over processors. Raise
    `UsageError` for another kernel, a coefficient `mnk` that is zero, and a model that coefficients do not have.
    """
    columns = {name: column.values for name, column in table.columns.items()}
    used = [name for name in MATRIX_TERMS if name in columns]
    known = "2" if len(used) > 2 else "1"
    chosen = model or f"M_H-{known}"
    if kernel != "dgemm":
        raise UsageError(f"coefficients of `{kernel}`: only those of dgemm are read; give single calls instead")
    if chosen not in (f"M_H-{known}", f"M-{known}"):
        raise UsageError(f"these coefficients are of M-{known}; {chosen} needs single calls")
    deviation = noise or ("N-2" if f"{_DEVIATION}mnk" in columns else "N-0")
    if deviation != "N-0" and (deviation != "N-2" or f"{_DEVIATION}mnk" not in columns):
        raise UsageError(
            f"these coefficients do not determine {deviation}; `deviation_mnk` is N-2, or give single calls"
        )
    if not (columns["mnk"] > 0).all():
        raise UsageError("a coefficient `mnk` of zero: a product of matrices takes time")
    empty = np.full(len(table), "", dtype=object)
    found = processors(columns.get("node", empty), columns.get("cpu", empty), columns["mnk"])
    if len(found) < 2:
        chosen = f"M-{known}"
    per_processor = chosen.startswith("M_H")
    points = _points(columns, found, per_processor)
    return KernelFit(
        "dgemm",
        chosen,
        deviation,
        tuple(_fits(columns, found, points, with_deviation=deviation != "N-0")),
        found if per_processor else None,
        _comparison(columns, found, known, deviation),
        points,
    )


def _owner(columns: dict[str, Any], found: Processors) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The place among the processors of each row."""
    places = {name: at for at, name in enumerate(zip(found.nodes, found.cpus, strict=True))}
    empty = np.full(len(columns["mnk"]), "", dtype=object)
    names = zip(columns.get("node", empty), columns.get("cpu", empty), strict=True)
    return np.array([places[str(node), str(cpu)] for node, cpu in names])


def _means(columns: dict[str, Any], found: Processors, name: str) -> FloatArray:
    """The mean of a coefficient over the calibrations of each processor; zeros for a missing one."""
    values = columns.get(name, np.zeros(len(columns["mnk"])))
    return np.bincount(_owner(columns, found), values) / found.run_counts


def _fits(columns: dict[str, Any], found: Processors, points: Table, *, with_deviation: bool) -> Iterator[Fit]:
    error = root_mean_square(points.columns["residual"].values)
    for path, lead in (("kernels.dgemm", ""), ("kernels.dgemm.deviation", _DEVIATION))[: 1 + with_deviation]:
        means = np.stack([_means(columns, found, f"{lead}{name}") for name in MATRIX_TERMS])
        spread = np.full((len(means), len(means)), np.nan)
        if len(found) > 1:
            kept = np.flatnonzero(means.any(axis=1))
            spread[np.ix_(kept, kept)] = np.cov(means[kept]) / len(found)
        dimensions = dict.fromkeys(MATRIX_TERMS, SECOND)
        yield Fit(path, dimensions, means.mean(axis=1), spread, {}, len(points), error)


def _points(columns: dict[str, Any], found: Processors, per_processor: bool) -> Table:
    """Coefficient `mnk` of each row relative to that of the model."""
    mean = float(_means(columns, found, "mnk").mean())
    factors = found.factors[_owner(columns, found)] if per_processor else 1.0
    labels: dict[str, Column] = {name: Column(columns[name]) for name in ("node", "cpu", "run") if name in columns}
    numbers = {"mnk": Column(columns["mnk"], SECOND), "fitted_mnk": Column(mean * factors + 0 * columns["mnk"], SECOND)}
    return Table({**labels, **numbers, "residual": Column(mean * factors / columns["mnk"] - 1, ONE)})


def _comparison(columns: dict[str, Any], found: Processors, known: str, noise: str) -> Table:
    """Deviation of the coefficients `mnk` from a common one, and from one for each processor."""
    count = len(columns["mnk"])
    rows = []
    for model, per_processor, used in ((f"M-{known}", False, 2), (f"M_H-{known}", True, len(found) + 1)):
        residuals = _points(columns, found, per_processor).columns["residual"].values
        variance = max(float(np.mean(residuals**2)), np.finfo(float).tiny)
        criterion = count * (np.log(2 * np.pi * variance) + 1) + used * np.log(count)
        rows.append(("dgemm", model, noise, used, criterion, variance**0.5))
    kinds = {"kernel": None, "model": None, "noise": None, "parameter_count": ONE, "criterion": ONE, "error": ONE}
    return Table.of_rows(kinds, rows)
