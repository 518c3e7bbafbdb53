"""Structured-grid fits as tables: parameters, runs, predictions, and runs to make next."""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.fitting.grid import GridFit, held_out_times
from whatif.fitting.grid_advice import Advice, PredictedRuns
from whatif.fitting.grid_runs import DIMENSIONS, RATES, GridRuns, terms_of
from whatif.table import Column, Table, share_column
from whatif.units import ONE, SECOND, Dimension, format_quantity

DIGITS: Final = 9
_ADVISED: Final = 10
"""Runs that are advised."""


def rate_or_time(value: float, name: str, digits: int = DIGITS) -> str:
    """A parameter with its unit, rates in Mcell/s."""
    return f"{value / 1e6:.{digits}g} Mcell/s" if name in RATES else format_quantity(value, DIMENSIONS[name], digits)


def grid_parameter_table(fit: GridFit, *, in_words: bool) -> Table:
    """One row per parameter: value, standard error, the ends of its interval, and a remark."""
    low, high = fit.intervals
    deviations = fit.deviations
    rows = []
    for at, name in enumerate(fit.columns.names):
        value, ends, error = fit.value(at), (low[at], high[at]), deviations[at]
        if name in RATES:
            with np.errstate(divide="ignore"):
                ends, error = (1 / high[at], 1 / low[at]), value**2 * error if np.isfinite(value) else np.nan
        worth = "not identified" if not fit.identified[at] else "at its bound" if fit.bound[at] else ""
        numbers = [np.nan if worth == "not identified" else float(item) for item in (value, error, *ends)]
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
    return "unlimited" if np.isinf(value) else rate_or_time(value, name, 4)


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
        columns["residual"] = share_column(fitted["total"] / runs.total_time - 1)
        columns |= {
            "held_out": Column(held_out, SECOND),
            "held_out_residual": share_column(held_out / runs.total_time - 1),
        }
    return Table(columns)


def prediction_table(prediction: PredictedRuns) -> Table:
    """One row per run: its times, and the ends of the intervals of the mean of such runs and of one of them."""
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


def advice_table(advice: Advice) -> Table:
    """The runs that narrow the target's interval most: what they take, its half-width with them, how much narrower."""
    chosen = np.flatnonzero(np.isfinite(advice.after))[:_ADVISED]
    after = advice.after[chosen]
    return Table(
        _settings(advice.runs.at(chosen))
        | {
            "time": Column(advice.total_time[chosen], SECOND),
            "cost": Column(advice.cost[chosen], SECOND),
            "half_width": Column(after, SECOND),
            "narrower": share_column(1 - after / advice.before),
        }
    )
