"""Published models of dgemm, one for each processor and calibration, combined to one for the platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.blas_costs import COMPARED, KernelFit
from whatif.fitting.fit_result import Fit, root_mean_square
from whatif.fitting.processors import processors
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table, share_column
from whatif.units import SECOND
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
    columns = table.arrays
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
    nodes, cpus = (columns.get(name, np.full(len(table), "", dtype=object)) for name in ("node", "cpu"))
    found = processors(nodes, cpus, columns["mnk"])
    if len(found) < 2:
        chosen = f"M-{known}"
    places = {name: at for at, name in enumerate(zip(found.nodes, found.cpus, strict=True))}
    owner = np.array([places[str(node), str(cpu)] for node, cpu in zip(nodes, cpus, strict=True)])
    names = [*MATRIX_TERMS, *(f"{_DEVIATION}{name}" for name in MATRIX_TERMS)]
    means = {name: np.bincount(owner, columns[name]) / found.run_counts for name in names if name in columns}
    common = np.full(len(table), means["mnk"].mean())
    fitted = {f"M-{known}": common, f"M_H-{known}": common * found.factors[owner]}
    points = _points(columns, fitted[chosen])
    error = root_mean_square(points.columns["residual"].values)
    return KernelFit(
        "dgemm",
        chosen,
        deviation,
        tuple(_fits(means, len(found), len(table), error, with_deviation=deviation != "N-0")),
        found if chosen.startswith("M_H") else None,
        _comparison(columns["mnk"], fitted, (2, len(found) + 1), deviation),
        points,
    )


def _fits(
    means: Mapping[str, FloatArray], processor_count: int, count: int, error: float, *, with_deviation: bool
) -> Iterator[Fit]:
    """Means over processors of those of their calibrations; zeros for missing coefficients."""
    for path, lead in (("kernels.dgemm", ""), ("kernels.dgemm.deviation", _DEVIATION))[: 1 + with_deviation]:
        values = np.stack([means.get(f"{lead}{name}", np.zeros(processor_count)) for name in MATRIX_TERMS])
        spread = np.full((len(values), len(values)), np.nan)
        if processor_count > 1:
            kept = np.flatnonzero(values.any(axis=1))
            spread[np.ix_(kept, kept)] = np.cov(values[kept]) / processor_count
        yield Fit(path, dict.fromkeys(MATRIX_TERMS, SECOND), values.mean(axis=1), spread, {}, count, error)


def _points(columns: Mapping[str, Any], fitted: FloatArray) -> Table:
    """Coefficient `mnk` of each row relative to that of the model."""
    labels: dict[str, Column] = {name: Column(columns[name]) for name in ("node", "cpu", "run") if name in columns}
    numbers = {"mnk": Column(columns["mnk"], SECOND), "fitted_mnk": Column(fitted, SECOND)}
    return Table({**labels, **numbers, "residual": share_column(fitted / columns["mnk"] - 1)})


def _comparison(measured: FloatArray, fitted: Mapping[str, FloatArray], used: Sequence[int], noise: str) -> Table:
    """Deviation of the coefficients `mnk` from a common one, and from one for each processor."""
    count, rows = len(measured), []
    for (model, values), parameters in zip(fitted.items(), used, strict=True):
        variance = max(float(np.mean((values / measured - 1) ** 2)), np.finfo(float).tiny)
        criterion = count * (np.log(2 * np.pi * variance) + 1) + parameters * np.log(count)
        rows.append(("dgemm", model, noise, parameters, criterion, variance**0.5))
    return Table.of_rows(COMPARED, rows)
