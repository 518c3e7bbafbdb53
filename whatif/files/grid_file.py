"""A fitted structured-grid program as a part that phases extend, and as tables."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.grid import GridFit, held_out_times
from whatif.fitting.grid_advice import Advice, PredictedRuns, untold
from whatif.fitting.grid_runs import DIMENSIONS, RATES, GridRuns, terms_of
from whatif.schema.toml_text import toml_text
from whatif.table import Column, Table
from whatif.units import ONE, SECOND, Dimension, format_quantity

UNLIMITED: Final = 1e18
"""Cells a second that take no time: what a file says of a rate at its bound."""
_DIGITS: Final = 9
_SHRUNK: Final = 1 - 1e-6
"""Rounded correlations near 1 are none of any matrix."""
_FACTORS: Final = {
    "computation": "computation_factor",
    "communication": "communication_factor",
    "setup": "setup_factor",
}
_HOW_MANY: Final = 10
"""Runs that are advised."""


def model_part(fit: GridFit, case: str, source: str) -> dict[str, Any]:
    """The part file of one case: parameters, their sources, what is known of their errors, and the scatter of runs."""
    places = [at for at, its in enumerate(fit.columns.cases) if its in ("", case)]
    places = [at for at in places if fit.columns.names[at] != "cell_rate" or fit.columns.cases[at] == case]
    if not fit.coefficients[fit.index("cell_rate", case)] > 0:
        raise UsageError("K_w is not told: cells take no time in this fit, and it predicts nothing; not written")
    values = {fit.columns.names[at]: _text(min(fit.value(at), UNLIMITED), fit.columns.names[at]) for at in places}
    sources = {"*": {"grade": "measured", "source": source}}
    reasons = dict(zip(np.flatnonzero(~fit.told).tolist(), untold(fit), strict=True))
    for at in places:
        if fit.coefficients[at] == 0:
            words = reasons.get(at, f"{fit.columns.symbol(at)}: at its bound, no time was found for it")
            sources[fit.columns.names[at]] = {"grade": "assumed", "source": f"{words}; {source}"}
    factors = {_FACTORS.get(kind, "computation_factor"): fit.scatter(kind) for kind in fit.spread}
    spreads = {name: f"1 +- {spread:.4g}" for name, spread in factors.items() if np.isfinite(spread) and spread > 0}
    entry = _known(fit, [at for at in places if fit.coefficients[at] > 0])
    fits = {"fits": {"": entry}} if entry is not None else {}
    return {"part": "phase", "kind": "structured_grid", **values, **spreads, "sources": sources, **fits}


def _text(value: float, name: str, digits: int = _DIGITS) -> str:
    return f"{value / 1e6:.{digits}g} Mcell/s" if name in RATES else format_quantity(value, DIMENSIONS[name], digits)


def _known(fit: GridFit, places: list[int]) -> dict[str, Any] | None:
    """The `[fits]` entry of coefficients that the runs tell the errors of; rates fall as their inverses rise."""
    deviations = np.sqrt(np.diag(fit.free_covariance))
    kept = [at for at in places if deviations[at] > 0]
    if not kept:
        return None
    names = [fit.columns.names[at] for at in kept]
    values = np.array([fit.value(at) for at in kept])
    rate = np.isin(names, RATES)
    correlation = fit.free_covariance[np.ix_(kept, kept)] / np.outer(deviations[kept], deviations[kept])
    correlation = correlation * np.outer(1 - 2 * rate, 1 - 2 * rate) * _SHRUNK
    np.fill_diagonal(correlation, 1.0)
    errors = deviations[kept] * np.where(rate, values**2, 1.0)
    runs = fit.runs
    ranges = {"cell_count": runs.cells, "process_count": runs.processes, "halo_cell_count": runs.halo_cells}
    residuals = fit.rows.values / np.maximum(fit.rows.terms @ fit.coefficients, fit.rows.floor) - 1
    return {
        "parameters": names,
        "values": [_text(float(value), name) for value, name in zip(values, names, strict=True)],
        "standard_errors": [_text(float(error), name, 4) for error, name in zip(errors, names, strict=True)],
        "correlation": [[round(float(item), 7) for item in row] for row in correlation],
        "ranges": {name: [float(item.min()), float(item.max())] for name, item in ranges.items()},
        "point_count": len(runs),
        "error": float(f"{np.sqrt(np.mean(residuals**2)):.4g}"),
    }


def part_text(fit: GridFit, case: str, source: str) -> str:
    """The part file of one case, and how a scenario uses it."""
    lead = "# A scenario beside this file uses it in a phase: `extends` names it, and `halo_cell_count` is its own H.\n"
    return lead + toml_text(model_part(fit, case, source))


def question_text(model: str, target: GridRuns, platform: str) -> str:
    """A scenario of one run, whose phase extends the part of a name."""
    counts = {name: int(getattr(target, name)[0]) for name in ("cells", "processes", "iterations", "halo_cells")}
    application: dict[str, Any] = {
        "name": model,
        "rank_count": counts["processes"],
        "iteration_count": counts["iterations"],
        "grid": {"scaling": "strong", "cells": {"all": counts["cells"]}},
        "phases": {"step": {"extends": model, "halo_cell_count": counts["halo_cells"]}},
    }
    if np.isfinite(target.ranks_per_node[0]):
        application["ranks_per_node"] = int(target.ranks_per_node[0])
    lead = f"# How long does {model} take on {counts['processes']} processes?\n"
    return lead + toml_text({"platform": platform, "application": application})


def parameters_of(fit: GridFit, *, in_words: bool) -> Table:
    """One row a parameter: value, standard error, the ends of its interval, and what else is to be said."""
    low, high = fit.intervals
    deviations = fit.deviations
    rows = []
    for at, name in enumerate(fit.columns.names):
        value, ends, error = fit.value(at), (low[at], high[at]), deviations[at]
        if name in RATES:
            with np.errstate(divide="ignore"):
                ends, error = (1 / high[at], 1 / low[at]), value**2 * error if np.isfinite(value) else np.nan
        worth = "not told" if not fit.told[at] else "at its bound" if fit.bound[at] else ""
        numbers = [np.nan if worth == "not told" else float(item) for item in (value, error, *ends)]
        symbol = fit.columns.symbol(at)
        unit = [] if in_words else [str(DIMENSIONS[name])]
        rows.append((name, symbol, *(_shown(item, name) if in_words else item for item in numbers), *unit, worth))
    kind = None if in_words else ONE
    units: dict[str, Dimension | None] = {} if in_words else {"unit": None}
    numbers_of = dict.fromkeys(("value", "standard_error", "low", "high"), kind)
    return Table.of_rows({"parameter": None, "symbol": None, **numbers_of, **units, "note": None}, rows)


def _shown(value: float, name: str) -> str:
    if np.isnan(value):
        return "-"
    return "unlimited" if np.isinf(value) else _text(value, name, 4)


def _settings(runs: GridRuns) -> dict[str, Column]:
    numbers = {
        "cells": runs.cells,
        "processes": runs.processes,
        "iterations": runs.iterations,
        "halo_cells": runs.halo_cells,
    }
    case = {"case": Column(runs.case)} if any(runs.case.tolist()) else {}
    return case | {name: Column(values, ONE) for name, values in numbers.items()}


def runs_table(fit: GridFit) -> Table:
    """Every run: what was measured, fitted, and predicted from the runs of other settings, and relative residuals."""
    runs = fit.runs
    parts = {name: terms @ fit.coefficients for name, terms in terms_of(runs, fit.columns).items()}
    fitted = {name: runs.iterations * parts[name] for name in ("computation", "communication")}
    fitted["total"] = fitted["computation"] + fitted["communication"] + parts["setup"]
    columns = _settings(runs)
    for name, times in fitted.items():
        measured = getattr(runs, f"{name}_time")
        columns |= {f"{name}_time": Column(measured, SECOND), f"{name}_fitted": Column(times, SECOND)}
    held_out = held_out_times(fit)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["residual"] = Column(fitted["total"] / runs.total_time - 1, ONE)
        columns |= {
            "held_out": Column(held_out, SECOND),
            "held_out_residual": Column(held_out / runs.total_time - 1, ONE),
        }
    return Table(columns)


def prediction_table(prediction: PredictedRuns) -> Table:
    """One row a run: its times, and the ends of the intervals of the mean of such runs and of one of them."""
    total = prediction.total_time
    columns = _settings(prediction.runs)
    for name in ("computation_time", "communication_time", "setup_time", "total_time"):
        columns[name] = Column(getattr(prediction, name), SECOND)
    for lead, reach in (("mean", prediction.mean_reach), ("run", prediction.reach)):
        columns |= {
            f"{lead}_low": Column(np.maximum(total - reach, 0.0), SECOND),
            f"{lead}_high": Column(total + reach, SECOND),
        }
    return Table(columns)


def advice_table(advice: Advice, most: int = _HOW_MANY) -> Table:
    """The runs that narrow the target's interval most: what they take, its half-width with them, how much narrower."""
    chosen = np.flatnonzero(np.isfinite(advice.after))[:most]
    after = advice.after[chosen]
    return Table(
        _settings(advice.runs.at(chosen))
        | {
            "time": Column(advice.total_time[chosen], SECOND),
            "cost": Column(advice.cost[chosen], SECOND),
            "half_width": Column(after, SECOND),
            "narrower": Column(1 - after / advice.before, ONE),
        }
    )
