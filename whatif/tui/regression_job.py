"""Runs read and fitted by a formula, as plain numbers and words to show: what the runs page has computed beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from whatif.errors import UsageError, WhatifError
from whatif.fitting.candidates import Coefficient, candidates, coefficients, varying_columns
from whatif.fitting.formula_edits import first_formula
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.tui.fit_job import FitRefusal, stamps_of
from whatif.tui.labels import percent
from whatif.units import Dimension, format_quantity

if TYPE_CHECKING:
    from whatif.fitting.least_squares import RunsFit
    from whatif.fitting.model_checks import CrossValidation, Diagnostics
    from whatif.tui.pages.runs import RunsView

LEVEL: Final = 0.95
FOLDS: Final = 10
REPEATS: Final = 10
_CLEAR: Final = 0.05
"""Probability below which a test counts."""
_INFLATED: Final = 10.0
_HEAVY: Final = 1.0
"""Cook's distance above which one run makes another fit."""


class ModelComparison(NamedTuple):
    """A model beside the present one, in words."""

    name: str
    """present, pinned or last."""
    formula: str
    term_count: int
    residual: str
    left_out: str
    """Error of runs that were left out."""
    verdict: str
    """Against the present one, by F where one holds the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """A regression of runs; arrays (runs,) in base units."""

    files: str
    formula: str
    first: str
    """The formula to begin with."""
    response: str
    logarithmic: bool
    dimension: Dimension
    measured: FloatArray
    fitted: FloatArray
    lower: FloatArray
    upper: FloatArray
    """Ends of the prediction interval."""
    variables: tuple[tuple[str, FloatArray, Dimension], ...]
    """The columns that could explain the response."""
    terms: tuple[Coefficient, ...]
    others: tuple[Coefficient, ...]
    """Those that could be added, the most telling first."""
    left_out: tuple[str, ...]
    """How good it is for runs that it was not fitted to, in words."""
    quality: tuple[str, ...]
    """How good it is for its own."""
    warnings: tuple[str, ...]
    models: tuple[ModelComparison, ...]
    table: Table
    """Measured, fit and interval of each run."""


class Taken(NamedTuple):
    """What became of a model that was written: edits that take it into a scenario, or a scenario of its own."""

    edits: tuple[tuple[str, str], ...]
    scenario: Path | None


class _Runs(NamedTuple):
    """What is read, and what the file system says of it: a file that was written anew is read anew."""

    columns: str
    rows: str
    stamps: tuple[tuple[str, int, int], ...]


def regressed(view: RunsView, last: str = "", seen: Sequence[str] = ()) -> Regressed | FitRefusal:
    """The regression that a view asks for, beside the one before it; terms that were `seen` can be added again."""
    try:
        runs = _runs_of(view)
        return _shown(view, runs, fit_of(view), last, seen)
    except WhatifError as problem:
        return FitRefusal(str(problem))


def fit_of(view: RunsView) -> RunsFit:
    """The regression of a view; raise `WhatifError` where there can be none."""
    runs = _runs_of(view)
    return _fit(runs, view.formula or _first(runs))


def write_regressed(view: RunsView, path: Path, platform: str | None) -> Taken:
    """Write the model of a view, and with a platform a scenario beside it that asks the model; raise `WhatifError`."""
    from whatif.files.model_file import model_text, phase_edits, question_text  # noqa: PLC0415 - needed once
    from whatif.files.part_file import refuse_question, write_part, write_question  # noqa: PLC0415

    fit = fit_of(view)
    source = f"fitted to {fit.runs.notes.get('file', 'runs')} ({len(fit.measured)} runs)"
    if platform is None:
        write_part(path, model_text(fit, source), "regression")
        return Taken(phase_edits(fit, path.stem), None)
    scenario, question = path.with_name(f"{path.stem}_question.toml"), question_text(fit, path.stem, platform)
    refuse_question(scenario, question, path)
    write_part(path, model_text(fit, source), "regression")
    write_question(scenario, question, path)
    return Taken((), scenario)


def _runs_of(view: RunsView) -> _Runs:
    return _Runs(view.columns, view.rows, stamps_of(view.files))


@lru_cache(maxsize=4)
def _table(runs: _Runs) -> Table:
    from whatif.importers.mapping import parse_mapping  # noqa: PLC0415 - not to be loaded by the explorer itself
    from whatif.importers.run_files import read_runs  # noqa: PLC0415

    columns, where = (parse_mapping(text) if text else None for text in (runs.columns, runs.rows))
    paths = [Path(name) for name, _, _ in runs.stamps if Path(name).is_file()]
    if not paths:
        raise UsageError("the folder holds no files")
    return read_runs(paths, columns, where)


@lru_cache(maxsize=4)
def _first(runs: _Runs) -> str:
    table = _table(runs)
    formula = first_formula(table)
    if not formula:
        raise UsageError(f"{table.notes.get('file', 'the runs')}: no column holds numbers that differ between runs")
    return formula


@lru_cache(maxsize=32)
def _fit(runs: _Runs, formula: str) -> RunsFit:
    from whatif.fitting.least_squares import fit_runs  # noqa: PLC0415

    return fit_runs(_table(runs), formula)


@lru_cache(maxsize=32)
def _left_out(runs: _Runs, formula: str) -> CrossValidation:
    from whatif.fitting.model_checks import cross_validate  # noqa: PLC0415

    fit = _fit(runs, formula)
    return cross_validate(fit, min(FOLDS, len(fit.measured)), REPEATS)


def _shown(view: RunsView, runs: _Runs, fit: RunsFit, last: str, seen: Sequence[str]) -> Regressed:
    from whatif.fitting.model_checks import diagnose  # noqa: PLC0415
    from whatif.fitting.regression_tables import validation_table  # noqa: PLC0415

    column, predicted, checks = fit.runs.columns[fit.formula.response], fit.predict(fit.columns, LEVEL), diagnose(fit)
    kept = {name: replace(item, values=item.values[fit.kept]) for name, item in fit.runs.columns.items()}
    return Regressed(
        files=", ".join(dict.fromkeys(Path(name).name for name, _, _ in runs.stamps)),
        formula=fit.formula.text,
        first=_first(runs),
        response=fit.formula.response,
        logarithmic=fit.formula.link == "log",
        dimension=_dimension(column),
        measured=fit.measured * column.size,
        fitted=predicted.fit * column.size,
        lower=predicted.lower * column.size,
        upper=predicted.upper * column.size,
        variables=tuple((name, kept[name].values, _dimension(kept[name])) for name in varying_columns(fit)),
        terms=tuple(coefficients(fit)),
        others=tuple(candidates(fit, seen)),
        left_out=tuple(_for_others(fit, _left_out(runs, fit.formula.text), checks)),
        quality=(
            f"residual standard error {_residual(fit)}, {fit.freedom} degrees of freedom",
            f"R² {fit.results.rsquared:.4f}, adjusted {fit.results.rsquared_adj:.4f}",
        ),
        warnings=(*fit.warnings, *_table(runs).notes.get("warnings", "").splitlines(), *_warnings(fit, checks)),
        models=tuple(_models(runs, fit, {"pinned": view.pinned, "last": last})),
        table=validation_table(fit, Table(kept), fit.measured, predicted),
    )


def _dimension(column: Column) -> Dimension:
    assert column.dimension is not None  # noqa: S101 - of numbers only
    return column.dimension


def _in_unit(fit: RunsFit, value: float) -> str:
    """A value of the response in words."""
    column = fit.runs.columns[fit.formula.response]
    return format_quantity(value * column.size, _dimension(column), 3) if np.isfinite(value) else "–"


def _residual(fit: RunsFit) -> str:
    error = fit.residual_standard_error
    return f"{error:.3g} of the log" if fit.formula.link == "log" else _in_unit(fit, error)


def _for_others(fit: RunsFit, left_out: CrossValidation, checks: Diagnostics) -> Iterator[str]:
    """How good the fit is for runs that are left out, a sentence each."""
    from scipy.stats import t as student  # noqa: PLC0415

    count = len(fit.measured)
    spread = f" ± {_in_unit(fit, left_out.rmse_spread)}" if np.isfinite(left_out.rmse_spread) else ""
    folds = f"{left_out.folds} folds, {REPEATS} times"
    yield f"left out ({folds}): off by {_in_unit(fit, left_out.rmse)}{spread}, {percent(left_out.wmape)}"
    if left_out.untold:
        yield f"{left_out.untold} folds left out what tells a term"
    # A run lies in the interval of the fit without it where its studentised residual is within the quantile.
    within = np.abs(checks.studentised) <= student.ppf((1 + LEVEL) / 2, fit.freedom - 1) if fit.freedom > 1 else None
    if within is not None:
        yield f"{LEVEL:.0%} interval holds {int(within.sum())} of {count} left out ({within.mean():.0%})"


def _warnings(fit: RunsFit, checks: Diagnostics) -> Iterator[str]:
    """What to mind of a fit, a sentence each."""
    if checks.heteroscedasticity < _CLEAR:
        hint = "" if fit.formula.link == "log" else "; o fits the logarithm"
        yield f"the scatter depends on the variables (Breusch-Pagan p {checks.heteroscedasticity:.2g}){hint}"
    if checks.normality < _CLEAR:
        yield f"residuals are not normal (Jarque-Bera p {checks.normality:.2g}): intervals are rough"
    inflation = np.nan_to_num(checks.inflation, posinf=np.inf)
    if inflation.max(initial=0.0) > _INFLATED:
        name = "".join(fit.formula.terms[int(inflation.argmax())].name.split())
        yield f"{name} hardly differs from other terms: variance inflation {inflation.max():.3g}"
    distances = np.nan_to_num(checks.distances)
    if distances.max() > _HEAVY:
        run = int(fit.kept[distances.argmax()]) + 1
        yield f"run {run} weighs most: without it the fit is another one (Cook's distance {distances.max():.2g})"


def _models(runs: _Runs, fit: RunsFit, others: dict[str, str]) -> Iterator[ModelComparison]:
    """The present model and the others beside it; one that the runs no longer allow is told as such."""
    yield _compared("present", runs, fit, "")
    told = {fit.formula.text}
    for name, formula in others.items():
        if formula and formula not in told:
            told.add(formula)
            try:
                yield _compared(name, runs, _fit(runs, formula), _verdict(runs, fit, formula))
            except WhatifError as problem:
                yield ModelComparison(name, formula, 0, "–", "–", str(problem))


def _compared(name: str, runs: _Runs, fit: RunsFit, verdict: str) -> ModelComparison:
    error = _in_unit(fit, _left_out(runs, fit.formula.text).rmse)
    return ModelComparison(name, fit.formula.text, len(fit.formula.terms), _residual(fit), error, verdict)


def _verdict(runs: _Runs, fit: RunsFit, formula: str) -> str:
    """What the present model is beside another one: by analysis of variance, or by the runs that are left out."""
    from whatif.fitting.model_checks import compare  # noqa: PLC0415

    other = _fit(runs, formula)
    try:
        step = compare([fit, other])[1]
    except UsageError:
        now, then = (_in_unit(fit, _left_out(runs, text).rmse) for text in (fit.formula.text, formula))
        return f"neither holds the other; left out the present one is off by {now}, that one by {then}"
    larger = "the present one" if len(fit.formula.terms) > len(other.formula.terms) else "that one"
    better = f"{larger} explains more" if step.p < _CLEAR else f"the further terms of {larger} explain nothing"
    return f"F {step.f:.3g}, p {step.p:.2g}: {better}"
