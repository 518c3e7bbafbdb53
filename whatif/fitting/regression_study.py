"""Regression of measured runs: a stated or searched formula, checked on other runs and used for predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from whatif.errors import UsageError, require_choice, require_least, require_level
from whatif.fitting.additive import additive
from whatif.fitting.formula import parse_formula
from whatif.fitting.least_squares import RunsFit, fit_runs
from whatif.fitting.model_checks import compare, cross_validate, diagnose
from whatif.fitting.pmnf import Search, beyond, search
from whatif.fitting.regression_predictions import Remarked, predict_at, validate_runs
from whatif.fitting.regression_tables import (
    coefficient_table,
    comparison_table,
    cross_table,
    diagnostic_table,
    diagnostics_in_words,
    influence_table,
    model_in_words,
    model_table,
    second_opinion,
    summary,
)
from whatif.limits import REGRESSION_TABLES
from whatif.models.quantities import FloatArray
from whatif.table import Table, warned
from whatif.vocabulary import INTERVAL_KINDS, IntervalKind

LEVEL: Final = 0.95
FOLDS: Final = 10
_SEARCHED: Final = "the search for terms used all runs; with --hold-out N it uses none of those left out"
_WITH_INTERVALS: Final = {"prediction", "validation", "runs"}


@dataclass(frozen=True)
class RegressionOptions:
    """Inputs of a regression, its checks and its predictions; None: the default."""

    formula: str | None = None
    search: str | None = None
    """`RESPONSE ~ a + b`: the best terms of these columns are searched."""
    compare: Sequence[str] = ()
    """Formulas of other models of the same runs."""
    folds: int | None = None
    repeat: int | None = None
    hold_out: int | None = None
    """Number of runs that are drawn to be predicted by the others."""
    level: float | None = None
    interval: IntervalKind | None = None
    at: Sequence[Mapping[str, str]] = ()
    """Points to predict: texts with units by variable."""
    second_opinion: bool = False
    seed: int | None = None
    show: str | None = None
    """One of `REGRESSION_TABLES`."""

    def tables(self, *, held_out: bool) -> list[str]:
        """Names of the tables that the options call for."""
        if self.show is not None:
            return [self.show]
        wanted = {
            "prediction": self.at, "validation": held_out, "folds": self.folds is not None, "comparison": self.compare,
        }  # fmt: skip
        return [name for name, stated in wanted.items() if stated] or ["coefficients"]


@dataclass(frozen=True, eq=False)
class RegressionStudy:
    """Fits of runs, the requested tables by name, and remarks."""

    fits: tuple[RunsFit, ...]
    """The model, then those it is compared with."""
    search: Search | None
    tables: Mapping[str, Table]
    notes: tuple[str, ...]


def regress(runs: Table, options: RegressionOptions, held_out: Table | None = None) -> RegressionStudy:
    """Regression of runs; `held_out` are runs that are only predicted.

    Raise `UsageError` for options that contradict each other or have no effect, and for runs that allow no fit.
    """
    _check(options, held_out)
    fitted, drawn = _split(runs, options)
    validation = held_out if held_out is not None else drawn
    searched, variables = (None, ()) if options.search is None else _searched(fitted, options.search)
    formula = options.formula or ""
    notes: list[str] = []
    if searched is not None:
        formula = searched.best.formula(str(options.search).partition("~")[0].strip())
        best = f"{searched.tried:,} hypotheses over {searched.point_count} points; the best: "
        notes += [*warned(searched.warnings), best + model_in_words(searched.best)]
    fits = tuple(fit_runs(fitted, text) for text in (formula, *options.compare))
    notes += warned(line for fit in fits for line in fit.warnings)
    notes += [f"{fit.formula.text}: {summary(fit)}" for fit in fits]
    if options.second_opinion:
        notes.append(second_opinion(fits[0], additive(fits[0])))
    tables = {}
    for name in options.tables(held_out=validation is not None):
        tables[name], remarks = _tabulated(name, fits, searched, variables, options, validation)
        notes += remarks
    return RegressionStudy(fits, searched, tables, tuple(notes))


def _check(options: RegressionOptions, held_out: Table | None) -> None:
    """Refuse options that contradict each other or have no effect."""
    if (options.formula is None) == (options.search is None):
        raise UsageError("--formula states the model, such as `time ~ nodes + size`, or --search finds it")
    if options.show is not None:
        require_choice("show", options.show, REGRESSION_TABLES)
    if options.interval is not None:
        require_choice("interval", options.interval, INTERVAL_KINDS)
    require_least("seed", options.seed, 0)
    require_least("repeat", options.repeat, 1)
    if (options.repeat or 1) > 1 and options.folds is None:
        raise UsageError("--repeat needs --folds: how many are cross-validated")
    if held_out is not None and options.hold_out:
        raise UsageError("--held-out names the runs to predict, --hold-out draws them: give one of the two")
    require_level(LEVEL if options.level is None else options.level)
    _refuse_missing(options, held_out is not None or bool(options.hold_out))
    _refuse_ineffective(options, held_out)


def _refuse_missing(options: RegressionOptions, any_held_out: bool) -> None:
    """Refuse a table whose options are missing."""
    if options.show == "validation" and not any_held_out:
        raise UsageError(
            "--show validation: nothing is held out; --held-out FILE or --hold-out N; --show runs: all runs"
        )
    needs = {
        "comparison": (options.compare, "--compare FORMULA"),
        "prediction": (options.at, "--at NAME=VALUE,.."),
        "models": (options.search, "--search"),
    }
    if options.show in needs and not needs[options.show][0]:
        raise UsageError(f"--show {options.show} needs {needs[options.show][1]}")


def _refuse_ineffective(options: RegressionOptions, held_out: Table | None) -> None:
    """Refuse options of tables that are not shown."""
    shown = set(options.tables(held_out=held_out is not None or bool(options.hold_out)))
    intervals, folds = bool(shown & _WITH_INTERVALS), "folds" in shown
    without_effect = {
        "--level": options.level is not None and not intervals,
        "--interval": options.interval is not None and not intervals,
        "--folds": options.folds is not None and not folds,
        "--at": bool(options.at) and "prediction" not in shown,
        "--held-out": held_out is not None and "validation" not in shown,
        "--seed": options.seed is not None and not (folds or options.hold_out),
    }
    if wrong := next((name for name, found in without_effect.items() if found), ""):
        raise UsageError(f"{wrong}: no effect on the shown {', '.join(sorted(shown))}")


def _split(runs: Table, options: RegressionOptions) -> tuple[Table, Table | None]:
    """The runs to fit, and those that are drawn to be predicted."""
    count = options.hold_out or 0
    if not count:
        return runs, None
    if not 0 < count < len(runs):
        raise UsageError(f"--hold-out {count}: of {len(runs)} runs some must be left to fit")
    order = np.random.default_rng(options.seed or 0).permutation(len(runs))
    return runs.at(np.sort(order[count:])), runs.at(np.sort(order[:count]))


def _searched(runs: Table, text: str) -> tuple[Search, tuple[str, ...]]:
    """The models of Extra-P's normal form that the runs support, best first, and the variables of the search."""
    named = {name: None if it.dimension is None else it.as_written() for name, it in runs.columns.items()}
    parsed = parse_formula(text, named)
    plain = all(term.text in ("1", *parsed.variables) for term in parsed.terms)
    if parsed.link != "identity" or not plain or len(parsed.terms) != len(parsed.variables) + 1:
        raise UsageError(
            f"--search `{text}`: expected `RESPONSE ~ a + b`: the search finds powers and logarithms itself; "
            f"for a logarithm of the response, `--formula 'log({parsed.response}) ~ ..'`"
        )
    columns = {name: values for name in (parsed.response, *parsed.variables) if (values := named[name]) is not None}
    whole = np.isfinite(np.stack(list(columns.values()))).all(axis=0)
    variables = {name: columns[name][whole] for name in parsed.variables}
    found = search(variables, columns[parsed.response][whole], positive_beyond=True)
    return _positive(found, runs, parsed.response, beyond(variables)), parsed.variables


def _positive(found: Search, runs: Table, response: str, far: Mapping[str, FloatArray]) -> Search:
    """The search without models whose regression is not above 0 in the runs and `far` beyond, if all runs are.

    A regression counts each repetition, the search each point: their coefficients may differ.
    """
    for place, model in enumerate(found.models):
        fit = fit_runs(runs, model.formula(response))
        values = [fit.predict(points).fit for points in (fit.columns, far)]
        if fit.measured.min() <= 0 or np.concatenate(values).min() > 0:
            return replace(found, models=found.models[place:])
    raise UsageError(f"--search: every model of `{response}` falls below 0 in the runs or beyond, unlike all runs")


def _tabulated(
    name: str,
    fits: Sequence[RunsFit],
    searched: Search | None,
    variables: Sequence[str],
    options: RegressionOptions,
    validation: Table | None,
) -> Remarked:
    fit, level, interval = fits[0], options.level or LEVEL, options.interval or "prediction"
    if name == "prediction":
        return predict_at(fit, options.at, level, interval, variables)
    if name in ("validation", "runs"):
        others = fit.runs if validation is None or name == "runs" else validation
        return validate_runs(fit, others, level, interval, searched is not None)
    if name in ("collinearity", "influence"):
        found = diagnose(fit)
        table = diagnostic_table if name == "collinearity" else influence_table
        return table(fit, found), diagnostics_in_words(fit, found)
    if name == "folds":
        folds, repeat, seed = FOLDS if options.folds is None else options.folds, options.repeat or 1, options.seed or 0
        validated = {it.formula.text: cross_validate(it, folds, repeat, seed) for it in fits}
        return cross_table(validated, fit.unit), [] if searched is None else [_SEARCHED]
    if name == "models" and searched is not None:
        return model_table(searched.models), []
    return (comparison_table(compare(fits)) if name == "comparison" else coefficient_table(fit)), []
