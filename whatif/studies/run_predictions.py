"""Measured runs of a scenario: their parameters and results, and the predictions of the model for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import InvalidFileError, Problem
from whatif.importers.runs_csv import MOST_WRONG
from whatif.importers.text import file_problem
from whatif.models.quantities import FloatArray
from whatif.table import Column
from whatif.units import counted

_OF_FILE: Final = " of "
_RUNS_AT_A_TIME: Final = 8192
"""Most runs of one evaluation: all terms of a run take about 10 kB."""


@dataclass(frozen=True, eq=False)
class MeasuredResult:
    """A measured result of each run, NaN where it is missing."""

    name: str
    """A result column, a phase, or phases joined by ` + `."""
    parts: tuple[str, ...]
    """Results that it is the sum of, as named by `Program.results`."""
    category: str
    column: Column

    @property
    def values(self) -> FloatArray:
        """Measured values in base units."""
        return np.asarray(self.column.values)


@dataclass(frozen=True, eq=False)
class MeasuredRuns:
    """Runs of a file: their parameters as one axis, and their measured results."""

    file: str
    axis: Axis
    results: tuple[MeasuredResult, ...]
    lines: NDArray[np.int64]
    warnings: tuple[str, ...] = ()
    """How cells were read that are not numbers, such as failed runs, and rows that are equal in every column."""
    notes: tuple[str, ...] = ()
    """Usual headings that were taken as names of the scenario."""

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def origin(self) -> str:
        """Number of the runs, and the name of their file."""
        return f"{counted(len(self), 'run')}{_OF_FILE}{Path(self.file).name}"

    def determined(self, source: str) -> bool:
        """Whether runs of this file determined the values of a source."""
        return source.endswith(f"{_OF_FILE}{Path(self.file).name}")

    def at(self, kept: NDArray[Any]) -> MeasuredRuns:
        """Some of the runs, by their numbers or a mask, with the results that these have."""
        parameters = {path: values[kept] for path, values in self.axis.parameters.items()}
        some = (replace(result, column=replace(result.column, values=result.values[kept])) for result in self.results)
        results = tuple(result for result in some if np.isfinite(result.values).any())
        return replace(self, axis=Axis("runs", parameters), results=results, lines=self.lines[kept])

    @cached_property
    def points(self) -> NDArray[np.int64]:
        """Number of the parameters of each run; repetitions have the same one."""
        keys = list(zip(*(values.tolist() for values in self.axis.parameters.values()), strict=True))
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([numbers[key] for key in keys])

    @cached_property
    def choices(self) -> tuple[tuple[dict[str, str], NDArray[np.int64]], ...]:
        """Structural values of runs, and the numbers of the runs that share them."""
        structural = {path: values for path, values in self.axis.parameters.items() if values.dtype == object}
        found: dict[tuple[str, ...], list[int]] = {}
        for run in range(len(self)):
            found.setdefault(tuple(str(values[run]) for values in structural.values()), []).append(run)
        return tuple((dict(zip(structural, key, strict=True)), np.array(runs)) for key, runs in found.items())

    def parts(self, scenario: Scenario) -> Iterator[tuple[Program, dict[str, FloatArray], NDArray[np.int64]]]:
        """Program, numeric parameters and run numbers of runs that share a compilation, `_RUNS_AT_A_TIME` at most."""
        for program, (_, runs) in zip(self._programs(scenario), self.choices, strict=True):
            for first in range(0, len(runs), _RUNS_AT_A_TIME):
                some = runs[first : first + _RUNS_AT_A_TIME]
                yield program, self._numeric(some), some

    def _programs(self, scenario: Scenario) -> list[Program]:
        """Program of each choice. Raise `InvalidFileError` with the first run of each that does not compile."""
        programs, problems = [], []
        for structural, runs in self.choices:
            try:
                programs.append(scenario.program_at(structural))
            except InvalidFileError as error:
                problems.append(self._problem(int(runs[0]), error.problems[0].message))
        if problems:
            raise InvalidFileError(problems)
        return programs

    def _numeric(self, runs: NDArray[np.int64]) -> dict[str, FloatArray]:
        parameters = self.axis.parameters.items()
        return {path: values[runs].astype(np.float64) for path, values in parameters if values.dtype != object}

    def predicted(self, scenario: Scenario) -> dict[str, FloatArray]:
        """Predictions of the measured results by name, a value for each run.

        Raise `InvalidFileError` with the lines of runs that are infeasible in the model.
        """
        problems: list[Problem] = []
        found = {result.name: np.full(len(self), np.nan) for result in self.results}
        for program, numeric, runs in self.parts(scenario):
            evaluation = evaluate(program, numeric)
            reasons = evaluation.reason()
            if reasons is not None:
                its = np.broadcast_to(reasons, runs.shape)
                wrong = np.flatnonzero(its != "")[:MOST_WRONG]
                problems += [self._problem(int(runs[at]), f"infeasible: {its[at]}") for at in wrong]
            for result in self.results:
                found[result.name][runs] = sum(evaluation.masked(program.term_of(part)) for part in result.parts)
        if problems:
            raise InvalidFileError(sorted(problems, key=lambda its: its.line))
        return found

    def remarks(self, scenario: Scenario) -> tuple[str, ...]:
        """Their file, its notes and warnings, and overrides without effect, as every run states the parameter."""
        paths = [path for path in scenario.overrides if path in self.axis.parameters]
        without_effect = (f"{path}: the override has no effect, as the runs state it" for path in paths)
        return (
            f"measured runs: {self.file}",
            *self.notes,
            *(f"warning: {text}" for text in (*self.warnings, *without_effect)),
        )

    def _problem(self, run: int, message: str) -> Problem:
        """Problem of one run, with its line."""
        return file_problem(self.file, message, int(self.lines[run]))
