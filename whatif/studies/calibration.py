"""Calibration: corrections of a scenario that its measured runs support, chosen by their error at held-out runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import Y_COLUMN
from whatif.core.term import Program
from whatif.errors import UsageError, did_you_mean
from whatif.files.calibration_file import CorrectionRecord, calibrated_text
from whatif.fitting.correction_choice import CorrectionProblem, FittedCorrections, fit_corrections, fitted
from whatif.fitting.fit_result import correlation_of, range_of, root_mean_square
from whatif.limits import CORRECTIONS
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.studies.correction_candidates import (
    Correction,
    correction_problem,
    relative_predictions,
    stages,
    without_corrections,
)
from whatif.studies.measured_runs import measured_runs
from whatif.studies.model_errors import Accuracy, ModelErrors, RunsResult
from whatif.studies.run_accuracy import own_cards
from whatif.studies.run_predictions import MeasuredRuns
from whatif.table import Table
from whatif.units import ONE, counted, format_quantity

_DEVIATIONS: Final = 1.96
"""Standard deviations at the ends of a 95 % interval."""
_LINEAR: Final = 0.01
"""Largest relative difference between the corrected predictions and those of the least squares."""


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(RunsResult):
    """Corrections with their values, and the errors of the predictions without and with them.

    Its file has the corrections as `[calibration]`, if there are any.
    """

    corrections: tuple[Correction, ...]
    """The chosen corrections."""
    fit: FittedCorrections
    problem: CorrectionProblem
    """The problem of least squares; its rows are those of `fit.held_out`."""
    before: ModelErrors
    """Errors without corrections."""

    @cached_property
    def values(self) -> dict[str, float]:
        """Values of the corrections by path, in base units."""
        return {item.path: float(value) for item, value in zip(self.corrections, self.fit.values, strict=True)}

    @cached_property
    def errors(self) -> FloatArray:
        """Standard errors of the corrections, in base units."""
        return np.sqrt(np.diag(self.fit.covariance))

    @cached_property
    def calibrated(self) -> Scenario:
        """The scenario with the corrections as overrides."""
        texts = {item.path: item.text(self.values[item.path]) for item in self.corrections}
        return self.scenario.with_overrides(texts)

    @cached_property
    def after(self) -> ModelErrors:
        """Errors with the corrections, on the runs that determined them."""
        return ModelErrors.of(self.calibrated, self.runs)

    @cached_property
    def held_out_values(self) -> dict[str, FloatArray]:
        """Predictions by result for runs that were held out, NaN for the other runs."""
        held = {name: np.full(len(self.runs), np.nan) for name in self.before.predicted}
        for number, result in enumerate(self.runs.results):
            rows = np.flatnonzero(np.isfinite(result.values))
            held[result.name][rows] = self.fit.held_out[self.problem.results == number] * result.values[rows]
        return held

    @cached_property
    def held_out(self) -> tuple[Accuracy, ...]:
        """Accuracy at runs that were held out when the corrections were chosen and determined."""
        known = ((result, self.held_out_values[result.name]) for result in self.runs.results)
        return tuple(
            Accuracy.of(result, values / result.values - 1) for result, values in known if np.isfinite(values).any()
        )

    @property
    def accuracy_cards(self) -> dict[str, AccuracyCard]:
        """Accuracy by category at runs that were held out."""
        return own_cards(self.scenario, self.runs, self.held_out_values, "held-out")

    @property
    def record(self) -> CorrectionRecord:
        """The corrections as a file states them."""
        residuals = relative_predictions(self.runs, self.after.predicted) - 1
        return CorrectionRecord(
            {item.path.removeprefix("calibration."): item.text(self.values[item.path]) for item in self.corrections},
            [item.text(error) for item, error in zip(self.corrections, self.errors.tolist(), strict=True)],
            correlation_of(self.fit.covariance),
            dict(_ranges(self.runs, self.scenario.program)),
            self.accuracy_cards,
            f"whatif calibrate: {self.runs.origin}",
            len(residuals),
            root_mean_square(residuals),
            Path(self.runs.file),
        )

    def _text(self, path: Path | None) -> str:
        if not self.corrections:
            raise UsageError(f"{path or self.scenario.document.name}: not written: {self.summary()[-1]}")
        return calibrated_text(self.scenario, self.record, path)

    def table(self) -> Table:
        """A row for each correction: path, platform (empty: application), value with 95 % interval, and unit."""
        columns = {"correction": None, "platform": None, "value": ONE, "lower": ONE, "upper": ONE, "unit": None}
        rows = [
            (item.path, item.platform, *ends, "" if item.dimension == ONE else str(item.dimension))
            for item, ends in zip(self.corrections, self._intervals(), strict=True)
        ]
        return Table.of_rows(columns, rows, {"runs": self.runs.file})

    def _intervals(self) -> Iterator[tuple[float, float, float]]:
        """Value of each correction, and the ends of its interval."""
        for item, error in zip(self.corrections, self.errors.tolist(), strict=True):
            value = self.values[item.path]
            yield value, max(value - _DEVIATIONS * error, item.least), value + _DEVIATIONS * error

    def readable_table(self) -> Table:
        """The table with units in the cells."""
        rows = [
            (item.name, item.platform or "every platform", *(format_quantity(end, item.dimension) for end in ends))
            for item, ends in zip(self.corrections, self._intervals(), strict=True)
        ]
        return Table.of_rows(dict.fromkeys(("correction", "holds_on", "value", "lower", "upper")), rows)

    def summary(self) -> tuple[str, ...]:
        """Mean absolute errors of each result without and with the corrections, and at held-out runs."""
        held = {item.result: item for item in self.held_out}
        lines = []
        for before, after in zip(self.before.accuracy, self.after.accuracy, strict=True):
            line = f"{before.result}: mean absolute error {before.mean_absolute_error:.1%}, calibrated "
            line += f"{after.mean_absolute_error:.1%}"
            if before.result in held:
                item = held[before.result]
                line += f", held-out runs {item.mean_absolute_error:.1%} (bias {item.bias:+.1%})"
            lines.append(line)
        if not self.held_out:
            lines.append("no held-out errors: too few runs with different parameters")
        found = lines if self.corrections else ["no correction lowers the error at held-out runs"]
        return (*found, *self._raised_errors(), *self.before.unit_warnings())

    def _raised_errors(self) -> Iterator[str]:
        """Warning of corrections that fit the phases but raise the error of the iteration."""
        before = {item.result: item.mean_absolute_error for item in self.before.accuracy}.get(Y_COLUMN, np.inf)
        for runs, accuracy in (("", self.after.accuracy), (" at held-out runs", self.held_out)):
            now = next((item.mean_absolute_error for item in accuracy if item.result == Y_COLUMN), 0.0)
            # Both errors as printed: equal texts would be no warning.
            if round(now, 3) > round(before, 3):
                yield f"warning: the corrections raise the error of {Y_COLUMN}{runs} from {before:.1%} to {now:.1%}"
                return


def calibrate(
    scenario: Scenario, path: str | Path | None = None, kinds: Sequence[str] = (), *, of_application: bool = False
) -> Calibration:
    """Corrections of a scenario by the runs of a file, by default the one that it names.

    The stated `kinds` of corrections are kept regardless of their held-out error; by default cross-validation selects
    them. `of_application` excludes corrections that hold on one platform only. Raise `UsageError` for unknown kinds and
    those that no measured value depends on, for too few runs, and for results that are not linear in
    the corrections, `InvalidFileError` for runs that do not fit.
    """
    for kind in kinds:
        if kind not in CORRECTIONS:
            hint = did_you_mean(kind, CORRECTIONS)
            raise UsageError(f"`{kind}`: no such correction{hint}; known: {', '.join(CORRECTIONS)}")
    plain = without_corrections(scenario)
    runs = measured_runs(plain, path)
    before = ModelErrors.of(plain, runs)
    candidates, problem = correction_problem(plain, runs, kinds, of_application=of_application)
    fit = _fit(runs, candidates, problem, by_choice=not kinds)
    chosen = tuple(candidates[at] for at in fit.chosen)
    found = Calibration(plain, runs, chosen, fit, problem, before, remarks=runs.remarks(scenario))
    _refuse_curved(found)
    return found


def _fit(
    runs: MeasuredRuns, candidates: Sequence[Correction], problem: CorrectionProblem, *, by_choice: bool
) -> FittedCorrections:
    """Corrections by choice, or all of them. Raise `UsageError` for too few runs."""
    if not by_choice and len(problem.base) < len(candidates):
        values = counted(len(problem.base), "measured value")
        raise UsageError(f"{runs.file}: {values} cannot determine {len(candidates)} corrections")
    if not by_choice:
        return fitted(problem, range(len(candidates)))
    if not problem.folds():
        message = "corrections are chosen by runs that are held out, which needs at least 2 with different parameters"
        lost = "".join(f" ({text})" for text in runs.warnings)
        raise UsageError(f"{runs.file}: {message}; --correct KIND fits without a choice{lost}")
    return fit_corrections(problem, list(stages(runs, problem, candidates)))


def _refuse_curved(found: Calibration) -> None:
    """Refuse corrections whose effect differs from the linear one that they were fitted with by more than 1 %."""
    after = relative_predictions(found.runs, found.after.predicted)
    error = np.abs(after / found.problem.predicted(found.fit.chosen, found.fit.values) - 1)
    if error.max() > _LINEAR:
        result = found.runs.results[found.problem.results[error.argmax()]].name
        raise UsageError(
            f"{found.runs.file}: {result} is not linear in the corrections: with them it differs by {error.max():.1%} "
            "from the least squares; phases that overlap hide parts of each other: calibrate without `overlaps`"
        )


def _ranges(runs: MeasuredRuns, program: Program) -> Iterator[tuple[str, tuple[float, float]]]:
    """Smallest and largest value of each count among the parameters of the runs, by its last name."""
    for path, values in runs.axis.parameters.items():
        if values.dtype != object and program.parameters[path].dimension == ONE:
            yield path.rpartition(".")[2], range_of(values)
