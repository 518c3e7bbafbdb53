"""Runs and their regression as plain numbers and words to show; computed in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from whatif.errors import UsageError, WhatifError
from whatif.fitting.candidates import Coefficient, candidates, coefficients, varying_columns
from whatif.fitting.formula_edits import first_formula
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.tui.fit_job import FitRefusal, stamps_of
from whatif.units import Dimension

if TYPE_CHECKING:
    from whatif.fitting.least_squares import RunsFit
    from whatif.fitting.model_checks import CrossValidation
    from whatif.fitting.regression_review import ModelComparison
    from whatif.tui.pages.runs import RunsView

LEVEL: Final = 0.95
FOLDS: Final = 10
REPEATS: Final = 10
_REMEDY: Final = "; o fits the logarithm"


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
    """Terms that could be added, the most significant first."""
    left_out: tuple[str, ...]
    """Errors on runs that were left out of the fit, in words."""
    quality: tuple[str, ...]
    """Residual errors, in words."""
    warnings: tuple[str, ...]
    models: tuple[ModelComparison, ...]
    table: Table
    """Measured, fit and interval of each run."""


class SavedModel(NamedTuple):
    """Edits that add a written model to a scenario, or the scenario that was written for it."""

    edits: tuple[tuple[str, str], ...]
    scenario: Path | None


class _Runs(NamedTuple):
    """Inputs with the times of change of their files: a changed file is read again."""

    columns: str
    rows: str
    stamps: tuple[tuple[str, int, int], ...]


def regressed(view: RunsView, last: str = "", seen: Sequence[str] = ()) -> Regressed | FitRefusal:
    """Regression of a view, compared with the previous one; terms that were `seen` can be added again."""
    try:
        runs = _runs_of(view)
        return _shown(view, runs, fit_of(view), last, seen)
    except WhatifError as problem:
        return FitRefusal(str(problem))


def fit_of(view: RunsView) -> RunsFit:
    """Regression of a view. Raise `WhatifError` where the runs allow none."""
    runs = _runs_of(view)
    return _fit(runs, view.formula or _first(runs))


def write_regressed(view: RunsView, path: Path, platform: str | None) -> SavedModel:
    """Write the model of a view, and with a platform a scenario of it in the same folder. Raise `WhatifError`."""
    from whatif.files.fitted_regression import write_regression  # noqa: PLC0415 - needed once
    from whatif.files.model_file import phase_edits  # noqa: PLC0415

    fit = fit_of(view)
    scenario = None if platform is None else path.with_name(f"{path.stem}_question.toml")
    source = f"fitted to {fit.runs.notes.get('file', 'runs')} ({len(fit.measured)} runs)"
    write_regression(fit, path, scenario, platform=platform, source=source)
    return SavedModel(phase_edits(fit, path.stem) if scenario is None else (), scenario)


def _runs_of(view: RunsView) -> _Runs:
    return _Runs(view.columns, view.rows, stamps_of(view.files))


@lru_cache(maxsize=4)
def _table(runs: _Runs) -> Table:
    from whatif.importers.measurement_files import column_names, row_filter  # noqa: PLC0415
    from whatif.importers.run_files import read_runs  # noqa: PLC0415

    paths = [Path(name) for name, _, _ in runs.stamps if Path(name).is_file()]
    if not paths:
        raise UsageError("the folder holds no files")
    return read_runs(paths, column_names(runs.columns), row_filter(runs.rows))


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
    from whatif.fitting import regression_review as review  # noqa: PLC0415 - not to be loaded by the explorer itself
    from whatif.fitting.model_checks import diagnose  # noqa: PLC0415
    from whatif.fitting.regression_tables import validation_table  # noqa: PLC0415
    from whatif.importers.measurement_files import warnings_of  # noqa: PLC0415

    race = review.ModelRace(partial(_fit, runs), partial(_left_out, runs))
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
        left_out=tuple(review.left_out_in_words(fit, _left_out(runs, fit.formula.text), REPEATS, checks, LEVEL)),
        quality=review.quality_in_words(fit),
        warnings=(*fit.warnings, *warnings_of(_table(runs)), *review.doubts_in_words(fit, checks, _REMEDY)),
        models=tuple(race.compared(fit, {"pinned": view.pinned, "last": last})),
        table=validation_table(fit, Table(kept), fit.measured, predicted),
    )


def _dimension(column: Column) -> Dimension:
    assert column.dimension is not None  # noqa: S101 - of numbers only
    return column.dimension
