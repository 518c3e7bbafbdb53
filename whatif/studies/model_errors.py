"""Errors of a model: predictions of measured runs, run by run, and their mean error and bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import numpy as np

from whatif.core.calibration_notes import calibration_notes, calibration_source
from whatif.core.scenario import Scenario
from whatif.errors import ToleranceError, UsageError
from whatif.files.calibration_file import validated_text, write_scenario
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.studies.measured_runs import measured_runs
from whatif.studies.run_accuracy import own_cards
from whatif.studies.run_predictions import MeasuredResult, MeasuredRuns
from whatif.studies.study_result import StudyResult
from whatif.table import Column, Table, share_column, text_column
from whatif.units import ONE, Dimension, counted
from whatif.vocabulary import ErrorRows

_IN_SAMPLE: Final = "the corrections were fitted to these runs, so that their errors are not held-out ones"

_OFF: Final = 20.0
"""Least ratio of measured and predicted at which a wrong unit is likely."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy of one result over some runs; an error is predicted / measured - 1."""

    result: str
    category: str
    run_count: int
    mean_absolute_error: float
    bias: float
    """Mean error: negative where predictions are too fast."""
    largest_error: float

    @classmethod
    def of(cls, result: MeasuredResult, errors: FloatArray) -> Accuracy:
        """Accuracy of a result with the errors of its runs, NaN where it was not measured."""
        known = errors[np.isfinite(errors)]
        largest, mean = known[np.argmax(np.abs(known))], np.abs(known).mean()
        return cls(result.name, result.category, known.size, float(mean), float(known.mean()), float(largest))

    @property
    def text(self) -> str:
        """The accuracy in words."""
        errors = f"mean absolute error {self.mean_absolute_error:.1%}, bias {self.bias:+.1%}"
        return f"{self.result}: {errors}, {counted(self.run_count, 'run')}"


@dataclass(frozen=True, eq=False, repr=False)
class RunsResult(StudyResult):
    """Base of the results of measured runs that are written into the file of their scenario."""

    scenario: Scenario
    runs: MeasuredRuns

    @property
    def inputs(self) -> tuple[Path, ...]:
        """File of the runs."""
        return (Path(self.runs.file),)

    def to_toml(self) -> str:
        """Text of the scenario's file with this result. Raise `UsageError` if there is nothing to write."""
        return self._text(None)

    def write(self, path: str | Path) -> None:
        """Write the scenario's file with this result, whole or not at all. Raise `UsageError` as `to_toml`."""
        self.check_output(Path(path))
        write_scenario(self.scenario, self._text(Path(path)), Path(path), Path(self.runs.file))

    def _text(self, path: Path | None) -> str:
        """Text for a path; None for a file that is not written."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class ModelErrors(RunsResult):
    """Predicted and measured results of runs, and the errors of the predictions.

    Its file has the accuracy as `[accuracy]`, unless these runs determined the corrections of the scenario.
    """

    predicted: Mapping[str, FloatArray]
    """Predictions by result, a value for each run."""
    dimensions: Mapping[str, Dimension]
    """Units of the parameters of the runs."""
    by: ErrorRows = "run"
    tolerance: float | None = None
    """Largest mean absolute error allowed, a share; None without a limit."""
    optional_columns = ({"category"}, {"run"})

    @classmethod
    def of(cls, scenario: Scenario, runs: MeasuredRuns) -> Self:
        """Errors of the predictions of a scenario for its runs."""
        parameters = scenario.program.parameters
        known = [path for path in runs.axis.parameters if path in parameters and parameters[path].field is not None]
        dimensions = {path: parameters[path].dimension for path in known}
        return cls(scenario, runs, runs.predicted(scenario), dimensions)

    def errors(self, result: MeasuredResult) -> FloatArray:
        """Errors of one result by run, predicted / measured - 1; NaN where it was not measured."""
        return np.asarray(self.predicted[result.name] / result.values - 1)

    @property
    def accuracy(self) -> tuple[Accuracy, ...]:
        """Accuracy of each measured result."""
        return tuple(Accuracy.of(result, self.errors(result)) for result in self.runs.results)

    def table(self) -> Table:
        """Errors by run or by result, as chosen by `by`."""
        return self.table_of_runs() if self.by == "run" else self.table_of_results()

    def table_of_results(self) -> Table:
        """A row for each result: number of runs, mean absolute error, bias and largest error."""
        numbers = dict.fromkeys(("runs", "mean_absolute_error", "bias", "largest_error"), ONE)
        columns = {"result": None, "category": None, **numbers}
        rows = [
            (item.result, item.category, item.run_count, item.mean_absolute_error, item.bias, item.largest_error)
            for item in self.accuracy
        ]
        errors = ("mean_absolute_error", "bias", "largest_error")
        return Table.of_rows(columns, rows, {"runs": self.runs.file}, errors)

    def table_of_runs(self) -> Table:
        """A row for each measured result of each run: its parameters, predicted and measured value, and error."""
        results = self.runs.results
        values = np.stack([result.values for result in results], axis=1)
        predicted = np.stack([self.predicted[result.name] for result in results], axis=1)
        places = np.nonzero(np.isfinite(values))
        columns = {"run": Column(places[0] + 1.0, ONE)}
        for path, cells in self.runs.axis.parameters.items():
            columns[path] = Column(cells[places[0]], self.dimensions.get(path))
        columns["result"] = text_column(results[at].name for at in places[1])
        columns["category"] = text_column(results[at].category for at in places[1])
        dimension = results[0].column.dimension
        columns["predicted"] = Column(predicted[places], dimension)
        columns["measured"] = Column(values[places], dimension)
        columns["error"] = share_column(predicted[places] / values[places] - 1)
        return Table(columns, {"runs": self.runs.file, **{item.result: item.text for item in self.accuracy}})

    def readable_table(self) -> Table:
        """The table with parameters by their last name."""
        table, paths = self.table(), list(self.runs.axis.parameters)
        ends = [path.rpartition(".")[2] for path in paths]
        short = {path: end if ends.count(end) == 1 else path for path, end in zip(paths, ends, strict=True)}
        return Table({short.get(name, name): column for name, column in table.columns.items()}, table.notes)

    def summary(self) -> tuple[str, ...]:
        """Mean absolute error and bias of each result, and a hint at a wrong unit."""
        return (*(item.text for item in self.accuracy), *self.unit_warnings())

    def unit_warnings(self) -> Iterator[str]:
        """Results whose measured values are many times the predicted ones, or a small part of them."""
        for result in self.runs.results:
            with np.errstate(all="ignore"):
                ratio = float(np.nanmedian(result.values / self.predicted[result.name]))
            if ratio > _OFF or ratio < 1 / _OFF:
                times = f"{ratio:,.0f}" if ratio > 1 else f"{ratio:.2g}"
                yield f"warning: {result.name}: measured is {times} times predicted; is the unit of its column right?"

    @property
    def accuracy_cards(self) -> dict[str, AccuracyCard]:
        """Accuracy by category of phases, and of the iteration."""
        return own_cards(self.scenario, self.runs, self.predicted)

    @property
    def calibrated(self) -> bool:
        """Whether runs of this file determined the corrections of the scenario."""
        return self.runs.determined(calibration_source(self.scenario.program))

    def _text(self, path: Path | None) -> str:
        if self.calibrated:
            name = path or self.scenario.document.name
            raise UsageError(f"{name}: not written: {_IN_SAMPLE}; state other ones with --runs")
        return validated_text(self.scenario, self.accuracy_cards, Path(self.runs.file), path)

    def raise_if_beyond(self) -> None:
        """Raise `ToleranceError` if the mean absolute error of a result is larger than the tolerance."""
        limit = np.inf if self.tolerance is None else self.tolerance
        beyond = [item for item in self.accuracy if item.mean_absolute_error > limit]
        if beyond:
            names = ", ".join(f"{item.result} {item.mean_absolute_error:.1%}" for item in beyond)
            raise ToleranceError(f"mean absolute error beyond the tolerance of {100 * limit:g} %: {names}")


def model_errors(scenario: Scenario, path: str | Path | None = None) -> ModelErrors:
    """Errors of the predictions for the runs of a file, by default the one that the scenario names."""
    found = ModelErrors.of(scenario, measured_runs(scenario, path))
    remarks = (*found.runs.remarks(scenario), *calibration_notes(scenario.program))
    return replace(found, remarks=(*remarks, *((_IN_SAMPLE,) if found.calibrated else ())))
