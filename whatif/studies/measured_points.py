"""Measured runs on the curves of a sweep: those with the present values of all other parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import SessionInputs
from whatif.core.term import Program
from whatif.errors import WhatifError
from whatif.models.quantities import FloatArray
from whatif.studies.measured_runs import measured_runs
from whatif.studies.run_predictions import MeasuredResult, MeasuredRuns
from whatif.studies.search import present_choice


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPoints:
    """Measured and predicted values of one result at the values of the swept parameter."""

    x: FloatArray
    measured: FloatArray
    predicted: FloatArray

    @property
    def errors(self) -> FloatArray:
        """Errors of the predictions: predicted / measured - 1."""
        return np.asarray(self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True, eq=False)
class SweepMeasurements:
    """Measured points of a sweep by result (`terms.NAME` for a phase); a remark where the runs cannot be used."""

    points: Mapping[str, MeasuredPoints]
    remark: str = ""


def sweep_measurements(inputs: SessionInputs, file: str | Path | None = None) -> SweepMeasurements:
    """Measured points on the first axis of a sweep, from the runs in a file, by default that of the scenario.

    A run counts if its platform and its parameters off the axis have the values of the session.
    """
    axes = inputs.grid.axes
    path = next(iter(axes[0].parameters), "") if axes else ""
    try:
        runs = measured_runs(inputs.scenario.moved(None), file)
        kept = runs.at(_same(inputs.scenario, runs, path))
    except WhatifError as problem:
        return SweepMeasurements({}, f"measured runs: {problem}")
    x = kept.axis.parameters.get(path)
    if x is None or x.dtype == object or not len(kept):
        return SweepMeasurements({})
    points = {
        name: _points(inputs.program, kept, result, path)
        for result in kept.results
        for name in _drawn_names(inputs.program, result)
    }
    edited = inputs.scenario.overrides.keys() - runs.axis.parameters.keys()
    return SweepMeasurements(points, "measured with the values of the file" if edited else "")


def _same(scenario: Scenario, runs: MeasuredRuns, path: str) -> NDArray[np.bool_]:
    """Mask of the runs whose platform and parameters, except the swept one, have the values of a scenario."""
    values = evaluate(scenario.program).values
    same = np.ones(len(runs), dtype=bool)
    for name, column in runs.axis.parameters.items():
        if name != path and column.dtype == object:
            same &= column == present_choice(scenario, name)
        elif name != path:
            same &= np.isclose(column, first_number(values[name]), rtol=1e-9, atol=0)
    return same


def _points(program: Program, runs: MeasuredRuns, result: MeasuredResult, path: str) -> MeasuredPoints:
    known = np.isfinite(result.values)
    x = runs.axis.parameters[path][known].astype(np.float64)
    evaluation = evaluate(program, {path: x})
    predicted = sum(evaluation.masked(program.term_of(part)) for part in result.parts)
    return MeasuredPoints(x, result.values[known], np.broadcast_to(predicted, x.shape))


def _drawn_names(program: Program, result: MeasuredResult) -> tuple[str, ...]:
    """Results that a measured one is: its only part, and the time of a category where it sums all of its phases."""
    phases = {f"terms.{phase.phase}" for phase in program.phases if phase.category == result.category}
    whole = (f"{result.category}_time",) if phases and phases == set(result.parts) else ()
    return (*(result.parts if len(result.parts) == 1 else ()), *whole)
