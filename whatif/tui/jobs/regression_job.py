"""Job of the runs page: measured runs and their regression as plain numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from whatif.table import Column, Table
from whatif.tui.files.file_paths import paths_of
from whatif.tui.jobs.fit_job import StampedFiles, files_of
from whatif.tui.jobs.refusal import answer_or_refusal, naming_other_readers
from whatif.tui.page_views import RunsView
from whatif.units import Dimension

if TYPE_CHECKING:
    from whatif.api.regressions import Coefficient, ModelComparison, RegressionReview, Regressions
    from whatif.models.quantities import FloatArray

_REMEDY: Final = "; o fits the logarithm"


@dataclass(frozen=True, slots=True, eq=False)
class RunsRegression:
    """Regression of runs; arrays (runs,) in base units."""

    files: str
    formula: str
    first: str
    """Formula to begin with."""
    response: str
    logarithmic: bool
    dimension: Dimension
    measured: FloatArray
    fitted: FloatArray
    lower: FloatArray
    upper: FloatArray
    """Ends of the prediction interval."""
    level: float
    """Share of the runs that the interval should hold."""
    variables: tuple[tuple[str, FloatArray, Dimension], ...]
    """Columns that could explain the response."""
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
    """Measured value, fit and interval of each run."""


class SavedModel(NamedTuple):
    """Edits that add a written model to a scenario, or the scenario that was written for it."""

    edits: tuple[tuple[str, str], ...]
    scenario: Path | None


@answer_or_refusal
def regression_of_view(view: RunsView, last: str = "", seen: Sequence[str] = ()) -> RunsRegression:
    """Regression of a view, compared with the previous one; terms that were `seen` can be added again."""
    found = _regressions(files_of(view))
    review = found.review(view.formula or found.first_formula, {"pinned": view.pinned, "last": last}, seen, _REMEDY)
    return _in_base_units(review, found)


def write_model(view: RunsView, path: Path, platform: str | None, asks: bool) -> SavedModel:
    """Write the model of a view, and where `asks` a scenario of it in the same folder. Raise `WhatifError`."""
    from whatif.api.regressions import phase_edits  # noqa: PLC0415 - needed once

    found = _regressions(files_of(view))
    fit = found.fit(view.formula or found.first_formula)
    scenario = path.with_name(f"{path.stem}_question.toml") if asks else None
    fit.write(path, scenario, platform=platform if asks else None)
    return SavedModel(phase_edits(fit.fits[0], path.stem) if scenario is None else (), scenario)


@lru_cache(maxsize=4)
def _regressions(runs: StampedFiles) -> Regressions:
    from whatif.api.measurements import import_runs  # noqa: PLC0415 - not for the explorer itself
    from whatif.api.regressions import Regressions  # noqa: PLC0415

    paths = paths_of(runs.names)
    with naming_other_readers(paths, "runs"):
        return Regressions(import_runs(paths, columns=runs.columns, where=runs.rows))


def _in_base_units(review: RegressionReview, found: Regressions) -> RunsRegression:
    fit, predicted = review.fit, review.predicted
    column = review.runs[fit.formula.response]
    return RunsRegression(
        files=", ".join(path.name for path in found.runs.files),
        formula=fit.formula.text,
        first=found.first_formula,
        response=fit.formula.response,
        logarithmic=fit.formula.link == "log",
        dimension=_dimension(column),
        measured=fit.measured * column.size,
        fitted=predicted.fit * column.size,
        lower=predicted.lower * column.size,
        upper=predicted.upper * column.size,
        level=review.level,
        variables=tuple((name, review.runs[name].values, _dimension(review.runs[name])) for name in review.variables),
        terms=review.terms,
        others=review.candidates,
        left_out=review.left_out,
        quality=review.quality,
        warnings=review.warnings,
        models=review.models,
        table=review.table,
    )


def _dimension(column: Column) -> Dimension:
    assert column.dimension is not None  # noqa: S101 - of numbers only
    return column.dimension
