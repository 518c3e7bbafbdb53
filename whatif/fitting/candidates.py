"""Coefficient and test of each term that a regression lacks, without a fit for each.

Source: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2009, section 3.2.3: the
coefficient of a further term is that of what the others leave of it; F of adding it is the square of its t.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.formula import MOST_VARIABLES, parse_formula
from whatif.fitting.formula_edits import compact
from whatif.fitting.least_squares import RunsFit
from whatif.models.quantities import FloatArray

_SINGULAR = 1e-7
"""Length of what the present terms leave of another one, relative to its own, below which it adds nothing."""


class Coefficient(NamedTuple):
    """A term as a regression has it, or would have it."""

    name: str
    estimate: float
    standard_error: float
    t: float
    p: float


def coefficients(fit: RunsFit) -> list[Coefficient]:
    """The terms that a regression has."""
    rows = np.stack((fit.coefficients, fit.standard_errors, fit.t_values, fit.p_values), axis=1).tolist()
    return [Coefficient(compact(term.name), *row) for term, row in zip(fit.formula.terms, rows, strict=True)]


def varying_columns(fit: RunsFit) -> dict[str, FloatArray]:
    """The columns that could explain the response: in the unit they were written in, of the runs that are fitted."""
    found = {}
    for name, column in fit.runs.columns.items():
        if column.dimension is not None and name != fit.formula.response and name.isidentifier() and name.isascii():
            values = column.as_written()[fit.kept]
            if np.isfinite(values).all() and np.ptp(values) > 0:
                found[name] = values
    return found


def candidates(fit: RunsFit, others: Collection[str] = ()) -> list[Coefficient]:
    """Terms that could be added alone, the most significant first.

    A constant, variables, squares, logarithms, pairwise interactions, and `others`.
    """
    from scipy.stats import t as student

    if fit.freedom < 2:
        return []
    columns = varying_columns(fit)
    present = {frozenset(compact(term.name).split(":")) for term in fit.formula.terms}
    wanted = {frozenset(name.split(":")): name for name in (*_names(columns), *others)}
    known = [(name, values) for name, values in _values([name for key, name in wanted.items() if key not in present],
             columns) if np.isfinite(values).all()]  # fmt: skip
    if not known:
        return []
    design = np.stack([values / (np.linalg.norm(values) or 1.0) for _, values in known], axis=1)
    basis = np.linalg.qr(fit.design / fit.lengths)[0]
    rest = design - basis @ (basis.T @ design)
    rest -= basis @ (basis.T @ rest)
    size = (rest**2).sum(axis=0)
    adds = size > _SINGULAR**2
    slopes = (fit.residuals @ rest)[adds] / size[adds]
    freedom = fit.freedom - 1
    variance = np.maximum(fit.residuals @ fit.residuals - slopes**2 * size[adds], 0) / freedom
    with np.errstate(divide="ignore"):
        t = slopes / np.sqrt(variance / size[adds])
    p = 2 * student.sf(np.abs(t), freedom)
    rows = zip(np.flatnonzero(adds), slopes, np.sqrt(variance / size[adds]), t, p, strict=True)
    found = [_coefficient(*known[at], *map(float, row)) for at, *row in rows]
    return sorted(found, key=lambda item: -abs(item.t))


def _coefficient(name: str, values: FloatArray, slope: float, error: float, t: float, p: float) -> Coefficient:
    length = float(np.linalg.norm(values))
    return Coefficient(name, slope / length, error / length, t, p)


def _names(columns: Mapping[str, FloatArray]) -> Iterator[str]:
    variables = list(columns)[:MOST_VARIABLES]
    yield "Intercept"
    yield from variables
    yield from (f"I({name}**2)" for name in variables)
    yield from (f"log({name})" for name in variables if columns[name].min() > 0)
    yield from (f"{one}:{other}" for one, other in combinations(variables, 2))


def _values(names: Collection[str], columns: Mapping[str, FloatArray]) -> Iterator[tuple[str, FloatArray]]:
    """Terms with their values at the runs; those that these columns do not give are left out."""
    named: Mapping[str, FloatArray | None] = columns
    for name in names:
        text = "1" if name == "Intercept" else f"0 + {name}"
        try:
            formula = parse_formula(f"{next(iter(columns))} ~ {text}", named)
        except UsageError:
            continue
        if len(formula.terms) == 1:
            yield name, formula.design(columns)[:, 0]
