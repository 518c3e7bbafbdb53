"""Regressions of the same runs: what their terms are, which could be added, and how good they are on other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from whatif.api.measurements import ImportedTable
from whatif.api.run_fits import fit_regression
from whatif.errors import UsageError
from whatif.files.fitted_regression import FittedRegression
from whatif.files.model_file import phase_edits
from whatif.fitting import formula_edits
from whatif.fitting.candidates import Coefficient, candidates, coefficients, varying_columns
from whatif.fitting.least_squares import Predicted, RunsFit
from whatif.fitting.model_checks import CrossValidation, cross_validate, diagnose
from whatif.fitting.regression_review import (
    ModelComparison,
    ModelRace,
    doubts_in_words,
    left_out_in_words,
    quality_in_words,
)
from whatif.fitting.regression_tables import validation_table
from whatif.table import Column, Table

__all__ = ["Coefficient", "ModelComparison", "RegressionReview", "Regressions", "phase_edits"]

LEVEL: Final = 0.95
FOLDS: Final = 10
REPEATS: Final = 10


@dataclass(frozen=True, eq=False)
class RegressionReview:
    """A regression with its terms, its doubts, and the models it is compared with."""

    fit: RunsFit
    runs: Mapping[str, Column]
    """Columns of the runs that are fitted."""
    predicted: Predicted
    """Fit and prediction interval of each run, in the unit of the response."""
    level: float
    """Share of the runs that the interval should hold."""
    variables: tuple[str, ...]
    """Columns that could explain the response."""
    terms: tuple[Coefficient, ...]
    candidates: tuple[Coefficient, ...]
    """Terms that could be added, the most significant first."""
    left_out: tuple[str, ...]
    """Errors on runs that were left out of the fit, a sentence each."""
    quality: tuple[str, ...]
    """Residual errors, a sentence each."""
    warnings: tuple[str, ...]
    models: tuple[ModelComparison, ...]
    table: Table
    """Measured value, fit and interval of each run."""


class Regressions:
    """Regressions of the same runs; each formula is fitted and cross-validated once."""

    def __init__(self, runs: ImportedTable) -> None:
        self.runs = runs
        self.fit = lru_cache(maxsize=32)(self._fit)
        """Regression of a formula. Raise `UsageError` if the runs allow none."""
        self._left_out = lru_cache(maxsize=32)(self._cross_validated)

    @cached_property
    def first_formula(self) -> str:
        """Formula to begin with. Raise `UsageError` if no column varies."""
        formula = formula_edits.first_formula(self.runs.values)
        if not formula:
            names = self.runs.values.notes.get("file", "the runs")
            raise UsageError(f"{names}: no column holds numbers that differ between runs")
        return formula

    def review(
        self, formula: str, others: Mapping[str, str], seen: Sequence[str] = (), remedy: str = ""
    ) -> RegressionReview:
        """Review of a formula, compared with other formulas by name; `seen` are terms that could be added again.

        `remedy` is added to a doubt that the logarithm of the response may remove.
        """
        fit = self._runs_fit(formula)
        predicted, checks = fit.predict(fit.columns, LEVEL), diagnose(fit)
        runs = {name: replace(item, values=item.values[fit.kept]) for name, item in fit.runs.columns.items()}
        race = ModelRace(self._runs_fit, self._left_out)
        return RegressionReview(
            fit=fit,
            runs=runs,
            predicted=predicted,
            level=LEVEL,
            variables=tuple(varying_columns(fit)),
            terms=tuple(coefficients(fit)),
            candidates=tuple(candidates(fit, seen)),
            left_out=tuple(left_out_in_words(fit, self._left_out(fit.formula.text), REPEATS, checks, LEVEL)),
            quality=quality_in_words(fit),
            warnings=(*fit.warnings, *self.runs.warnings, *doubts_in_words(fit, checks, remedy)),
            models=tuple(race.compared(fit, others)),
            table=validation_table(fit, Table(runs), fit.measured, predicted),
        )

    def _fit(self, formula: str) -> FittedRegression:
        return fit_regression(self.runs, formula=formula)

    def _runs_fit(self, formula: str) -> RunsFit:
        return self.fit(formula).fits[0]

    def _cross_validated(self, formula: str) -> CrossValidation:
        fit = self._runs_fit(formula)
        return cross_validate(fit, min(FOLDS, len(fit.measured)), REPEATS)
