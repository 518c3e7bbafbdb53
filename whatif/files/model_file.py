"""Fitted regression as a part that phases extend, and as a scenario."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from whatif.errors import UsageError
from whatif.files.run_machine import RunCounts
from whatif.fitting.fit_result import correlation_of, range_of, root_mean_square
from whatif.fitting.least_squares import RunsFit
from whatif.schema.scenario_spec import RESERVED
from whatif.schema.toml_text import file_text, rounded
from whatif.units import SECOND, parse_unit
from whatif.vocabulary import CATEGORIES

_RESULTS = (*(f"{kind}_" for kind in CATEGORIES), "total_", "iteration_", "mean_", "overlap_", "setup_")
"""Prefixes of results, which names of estimates must not have."""
_ROUNDING = 1e-12
_VERSIONS = ("whatif", "statsmodels", "formulaic", "numpy")


def model_text(fit: RunsFit, source: str) -> str:
    """The part file of a regression: formula, terms, coefficients with their covariance, ranges and data."""
    formula = fit.formula
    if fit.residual_standard_error <= _ROUNDING * np.abs(fit.response).max():
        raise UsageError(
            "the runs lie on the model exactly: there is no scatter to estimate its errors from; not written"
        )
    if "residual" in formula.variables:
        raise UsageError(
            "column name `residual` is reserved for the scatter in a model file; rename it with --columns x=residual"
        )
    keys = [term.key for term in formula.terms]
    values = dict(zip(keys, map(float, fit.coefficients), strict=True))
    units = {name: _unit(fit, name) for name in formula.variables}
    document: dict[str, Any] = {
        "part": "phase",
        "kind": "regression",
        "formula": formula.text,
        "response_unit": _unit(fit, formula.response),
        "link": formula.link,
        "residual": f"0 +- {fit.residual_standard_error!r}",
        "units": units,
        "terms": {term.key: term.text for term in formula.terms},
        "coefficients": values,
        "sources": {"coefficients": {"grade": "measured", "source": source}},
        "fits": {"coefficients": _record(fit, units, values)},
        "data": _data(fit),
    }
    return file_text(document, f"{formula.text}, fitted to {len(fit.measured)} runs: a phase `extends` this file.")


def _unit(fit: RunsFit, name: str) -> str:
    column = fit.runs.columns[name]
    return column.written or column.unit or "1"


def _record(fit: RunsFit, units: Mapping[str, str], values: Mapping[str, float]) -> dict[str, Any]:
    """The `[fits]` entry: all digits of the correlation, for terms that nearly cancel live on the last ones."""
    ends = {name: range_of(fit.columns[name]) for name in units}
    fitted, known = fit.predict(fit.columns).fit, fit.measured != 0
    return {
        "parameters": list(values),
        "values": list(values.values()),
        "standard_errors": fit.standard_errors.tolist(),
        "correlation": correlation_of((fit.covariance + fit.covariance.T) / 2).tolist(),
        "ranges": {name: [_quantity(end, units[name]) for end in pair] for name, pair in ends.items()},
        "point_count": len(fit.measured),
        "error": rounded(root_mean_square(fitted[known] / fit.measured[known] - 1)),
    }


def _quantity(value: float, unit: str) -> str | float:
    return value if unit == "1" else f"{value!r} {unit}"


def _data(fit: RunsFit) -> dict[str, Any]:
    """Number of runs, a fingerprint of all their values, and the versions that fitted them."""
    digest = hashlib.sha256()
    for name in sorted(fit.columns):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(fit.columns[name]).tobytes())
    return {
        "file": fit.runs.notes.get("file", ""),
        "run_count": len(fit.measured),
        "freedom": fit.freedom,
        "fingerprint": f"sha256:{digest.hexdigest()}",
        "versions": {name: version(name) for name in _VERSIONS},
    }


def scenario_text(fit: RunsFit, model: str, platform: str, counts: RunCounts) -> str:
    """Scenario of a regression: its only phase, or an estimate with an iteration that takes no time.

    Its ranks and nodes are `counts`; a variable that they follow is a parameter of the scenario.
    """
    response, table = fit.formula.response, table_of(fit)
    _, kind, name = table.split(".")
    none = {} if kind == "phases" else {"phases": {"nothing": {"kind": "overhead", "overhead_time": "0 s"}}}
    expressions = {variable: f"= {variable}" for variable in counts.parameters}
    tables = {
        "platform": {"extends": platform},
        **({"parameters": dict(counts.parameters)} if counts.parameters else {}),
        "application": {
            "name": response,
            **counts.application,
            "iteration_count": 1,
            **none,
            kind: {name: {"extends": model, "variables": _middles(fit) | expressions}},
        },
        "sweep": _sweep(fit, table, counts),
    }
    return file_text(tables, f"Prediction of {response} beyond its measured runs.")


def _sweep(fit: RunsFit, table: str, counts: RunCounts) -> dict[str, dict[str, str]]:
    """Sweep of the count that ranks follow, or of the first variable."""
    for name in counts.parameters:
        return {name: {f"parameters.{name}": counts.sweep}}
    for first in fit.formula.variables[:1]:
        low, high = float(fit.columns[first].min()), 4 * float(fit.columns[first].max())
        ends = " .. ".join(str(_quantity(end, _unit(fit, first))) for end in (low, high))
        return {first: {f"{table}.variables.{first}": f"{ends} linear 9"}}
    return {}


def table_of(fit: RunsFit) -> str:
    """Path of a regression in a scenario: `application.phases.NAME`, or `estimates` where the response is no time."""
    response = fit.formula.response
    kind = "phases" if parse_unit(_unit(fit, response))[0] == SECOND else "estimates"
    return f"application.{kind}.{response}{'_fit' if response in RESERVED or response.startswith(_RESULTS) else ''}"


def _middles(fit: RunsFit) -> dict[str, str | float]:
    """The median of each variable."""
    return {name: _quantity(float(np.median(fit.columns[name])), _unit(fit, name)) for name in fit.formula.variables}


def phase_edits(fit: RunsFit, model: str) -> tuple[tuple[str, str], ...]:
    """Parameters that add a regression to a scenario, with variables at the medians of its runs.

    Kind of the table: a phase, or an estimate if the response is not a time.
    """
    table = table_of(fit)
    middles = ((f"{table}.variables.{name}", str(value)) for name, value in _middles(fit).items())
    return (f"{table}.extends", model), *middles
