"""Predictions of a regression at given values and for other runs, as tables with remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.fitting.least_squares import Predicted, RunsFit
from whatif.fitting.regression_tables import coverage, validation_table
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.units import ONE, UnitError, counted, parse_quantity
from whatif.vocabulary import IntervalKind

Remarked = tuple[Table, list[str]]
"""A table, and remarks on it; those of warnings begin with `warning: `."""


def predict_at(
    fit: RunsFit, at: Sequence[Mapping[str, str]], level: float, interval: IntervalKind, searched: Sequence[str] = ()
) -> Remarked:
    """The response at stated values of every variable, with its interval, in base units.

    `searched` are the variables of a search, whose points state all of them (default: those of the formula). Raise
    `UsageError` for missing or unknown variables, and for values in other units than those of the runs.
    """
    columns = _point_columns(fit.runs, searched or fit.formula.variables, at)
    found, remarks = _predicted(fit, columns, level, interval, bool(searched))
    known = {name: fit.runs.columns[name] for name in columns}
    given = {name: Column(values * known[name].size, known[name].dimension) for name, values in columns.items()}
    table = validation_table(fit, Table(given), np.full(len(at), np.nan), found)
    shown = {name: column for name, column in table.columns.items() if name != "inside"}
    return Table({**given, **shown}), [*_beyond_runs(fit, columns), *remarks]


def validate_runs(fit: RunsFit, runs: Table, level: float, interval: IntervalKind, searched: bool = False) -> Remarked:
    """Measured response of other runs with its prediction and interval, in base units.

    Raise `UsageError` if a column of the formula is missing or in another unit, and where no run has all numbers.
    """
    names = (fit.formula.response, *fit.formula.variables)
    file = runs.notes.get("file", "the held-out runs")
    for name in names:
        if name not in runs.columns or runs.columns[name].dimension is None:
            raise UsageError(f"{file}: no column of numbers `{name}`")
    table = runs.at(np.isfinite(np.stack([runs.columns[name].values for name in names])).all(axis=0))
    if not len(table):
        raise UsageError(f"{file}: no run has a number for each of {', '.join(names)}")
    columns = {name: _in_unit_of_fit(fit, name, table.columns[name]) for name in names}
    found, remarks = _predicted(fit, columns, level, interval, searched)
    measured = columns[fit.formula.response]
    remarks = [*_beyond_runs(fit, columns), *remarks, coverage(measured, found, level, interval)]
    return validation_table(fit, table, measured, found), remarks


def _in_unit_of_fit(fit: RunsFit, name: str, column: Column) -> FloatArray:
    """Values of other runs in the unit of the fitted ones."""
    known = fit.runs.columns[name]
    if column.dimension != known.dimension:
        raise UsageError(f"`{name}` is in {column.unit or '1'}; the fitted runs have it in {known.unit or '1'}")
    values: FloatArray = column.values / known.size
    return values


def _beyond_runs(fit: RunsFit, columns: Mapping[str, FloatArray]) -> Iterator[str]:
    for name in fit.formula.variables:
        low, high, values = fit.columns[name].min(), fit.columns[name].max(), columns[name]
        if (beyond := values[(values < low) | (values > high)]).size:
            yield f"warning: `{name}` of {beyond[0]:g} is outside the range of the runs, {low:g} to {high:g}"


def _predicted(
    fit: RunsFit, columns: Mapping[str, FloatArray], level: float, interval: IntervalKind, searched: bool
) -> tuple[Predicted, list[str]]:
    """Predictions, with a remark on intervals that reach below 0 unlike all runs; those of a search end at 0.

    Raise `UsageError` for points far beyond the runs where the model of a search is below 0.
    """
    _refuse_undefined(fit, columns)
    found = fit.predict(columns, level, interval)
    count = int((found.lower < 0).sum())
    if fit.measured.min() <= 0 or not count:
        return found, []
    if searched and (found.fit < 0).any():
        at = int(np.argmax(found.fit < 0))
        point = ", ".join(f"{name} = {values[at]:g}" for name, values in columns.items())
        raise UsageError(f"{point}: too far beyond the runs: the model is below 0 there, unlike all runs")
    remedy = f"`--formula 'log({fit.formula.response}) ~ ..'` gives none"
    intervals = f"{counted(count, 'interval')} with values below 0, unlike all runs"
    remark = f"note: {intervals}{' (cut at 0)' if searched else ''}: {remedy}"
    return replace(found, lower=np.maximum(found.lower, 0.0)) if searched else found, [remark]


def _refuse_undefined(fit: RunsFit, columns: Mapping[str, FloatArray]) -> None:
    """Raise `UsageError` for a point where a term has no value, such as a logarithm of 0."""
    undefined = ~np.isfinite(fit.formula.design(columns))
    if not undefined.any():
        return
    at, number = np.argwhere(undefined)[0]
    term = fit.formula.terms[number]
    point = ", ".join(f"{name} = {columns[name][at]:g}" for name in term.expression.names())
    raise UsageError(f"{point}: `{term.name}` has no value there")


def _point_columns(runs: Table, variables: Sequence[str], at: Sequence[Mapping[str, str]]) -> dict[str, FloatArray]:
    """Values of the variables at stated points, in the units that the runs were written in."""
    points = [dict(_values(runs, variables, given)) for given in at]
    return {name: np.array([point[name] for point in points]) for name in variables}


def _values(runs: Table, variables: Sequence[str], given: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name in given:
        if name not in variables:
            hint = did_you_mean(name, variables)
            reads = f"it reads {', '.join(variables)}" if variables else "it is a constant and reads no column"
            raise UsageError(f"--at {name}: the formula does not read it{hint}; {reads}")
    for name in variables:
        if name not in given:
            stated = ",".join(f"{key}={text}" for key, text in given.items())
            raise UsageError(f"--at {stated}: the value of `{name}` is missing")
        column = runs.columns[name]
        try:
            quantity = parse_quantity(given[name])
        except UnitError as error:
            raise UsageError(f"--at {name}={given[name]}: {error}") from None
        if quantity.dimension != (column.dimension or ONE):
            raise UsageError(f"--at {name}={given[name]}: the runs have it in {column.written or column.unit or '1'}")
        yield name, quantity.value / column.size
