"""Measured runs of a scenario: a CSV file with the parameters of each run, and its measured results."""

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
from whatif.core.sweep import PLATFORM_PARAMETER, is_machine, parameter_points, swept_parameter
from whatif.core.term import Program
from whatif.errors import InvalidFileError, UsageError, WhatifError, did_you_mean
from whatif.importers.mapping import split_unit
from whatif.importers.numbers import is_number
from whatif.importers.run_columns import has_known_unit, size_of_unit, usual_heading
from whatif.importers.runs_csv import RunSheet, ranks_of_nodes, read_run_sheet
from whatif.importers.text import refuse
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.models.quantities import FloatArray
from whatif.schema.parameters import Parameter
from whatif.schema.toml import shown_path
from whatif.table import Column
from whatif.units import ONE, UnitError, counted
from whatif.vocabulary import CATEGORIES

REMARKS: Final = ("source", "note", "repetition")
"""Columns that are neither a parameter nor a result; they are not used."""
_SUM: Final = " + "
_PER_NODE: Final = "ranks_per_node"
_OF_FILE: Final = " of "
_RUNS_AT_A_TIME: Final = 8192
"""Most runs of one evaluation: all terms of a run take about 10 kB."""
_MOST_PAIRS: Final = 3
"""Most pairs of equal rows that a warning names."""


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
        for structural, runs in self.choices:
            try:
                program = scenario.program_at(structural)
            except InvalidFileError as problem:
                raise self.refused(int(runs[0]), problem.problems[0].message) from None
            for first in range(0, len(runs), _RUNS_AT_A_TIME):
                some = runs[first : first + _RUNS_AT_A_TIME]
                yield program, self._numeric(some), some

    def _numeric(self, runs: NDArray[np.int64]) -> dict[str, FloatArray]:
        parameters = self.axis.parameters.items()
        return {path: values[runs].astype(np.float64) for path, values in parameters if values.dtype != object}

    def predicted(self, scenario: Scenario) -> dict[str, FloatArray]:
        """Predictions of the measured results by name, a value for each run.

        Raise `InvalidFileError` with the line of a run that is infeasible in the model.
        """
        found = {result.name: np.full(len(self), np.nan) for result in self.results}
        for program, numeric, runs in self.parts(scenario):
            evaluation = evaluate(program, numeric)
            reasons = evaluation.reason()
            if reasons is not None:
                at = int(np.argmax(np.broadcast_to(reasons, runs.shape) != ""))
                raise self.refused(int(runs[at]), f"infeasible: {np.broadcast_to(reasons, runs.shape)[at]}")
            for result in self.results:
                terms = (program.term_of(part) for part in result.parts)
                found[result.name][runs] = sum(evaluation.masked(term) for term in terms)
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

    def refused(self, run: int, message: str) -> InvalidFileError:
        """Error about one run, with its line."""
        return refuse(self.file, message, int(self.lines[run]))


def is_heading(name: str, program: Program) -> bool:
    """Whether a column of this name is a parameter or a result of a scenario, or a remark."""
    if name in REMARKS or name in program.parameters or is_machine(name):
        return True
    ends = any(path.endswith(f".{name}") for path in program.parameters)
    return ends or _parts_of(name, program) is not None


def _parts_of(name: str, program: Program) -> tuple[str, ...] | None:
    """Results that a column is the sum of; None if a part is none."""
    known = program.results
    parts = [part if part in known else f"terms.{part}" for part in map(str.strip, name.split(_SUM))]
    return tuple(parts) if all(part in known for part in parts) else None


def stated_runs(scenario: Scenario) -> Path | None:
    """Path of the file of runs that a scenario names; None without any."""
    name = scenario.program.loaded.scenario.runs
    return None if name is None or scenario.document.folder is None else scenario.document.folder / name


def measured_runs(scenario: Scenario, path: str | Path | None = None) -> MeasuredRuns:
    """Measured runs in a file, by default the one that the scenario names.

    Raise `UsageError` without a file, `InvalidFileError` for columns and values that do not fit the scenario.
    """
    found = stated_runs(scenario) if path is None else Path(path)
    if found is None:
        name = Path(scenario.document.name).stem
        raise UsageError(f'{name}: no measured runs; give a CSV file with --runs, or state `runs = "FILE.csv"`')
    if not found.is_file():
        raise refuse(shown_path(found), "a folder, not a file of runs" if found.is_dir() else "no such file")
    runs = _Reader(scenario.program, read_run_sheet(found)).runs()
    platforms = runs.axis.parameters.get(PLATFORM_PARAMETER)
    if scenario.platform is None or platforms is None:
        return runs
    if scenario.platform not in platforms:
        names = ", ".join(dict.fromkeys(platforms.tolist()))
        raise UsageError(f"{shown_path(found)}: no runs on {scenario.platform}; there are runs on {names}")
    kept = runs.at(platforms == scenario.platform)
    if not kept.results:
        raise UsageError(f"{shown_path(found)}: no measured value in the runs on {scenario.platform}")
    return kept


class _Reader:
    """Reader of the columns of one file, by the names of a compiled scenario."""

    def __init__(self, program: Program, sheet: RunSheet) -> None:
        self.program = program
        self.sheet = sheet

    def runs(self) -> MeasuredRuns:
        parameters: dict[str, NDArray[Any]] = {}
        results: dict[str, MeasuredResult] = {}
        for heading, values in self._columns().items():
            name = self._name(heading)
            if name in REMARKS:
                continue
            path = self._path(name)
            if path in parameters or name in results:
                raise self._refused(heading, f"a second column of `{path or name}`")
            if path is not None:
                parameters[path] = self._parameter(path, heading, values)
            else:
                results[name] = self._result(name, heading, values)
        if not results:
            known = ", ".join(self._result_names()[:8])
            raise refuse(self.sheet.file, f"no measured result among the columns; results: {known}, ..")
        kinds = {result.column.dimension for result in results.values()}
        if len(kinds) > 1:
            units = " and ".join(sorted(map(str, kinds)))
            raise refuse(self.sheet.file, f"results in {units}: a file holds results of one unit")
        if not parameters:
            raise refuse(self.sheet.file, "no parameter among the columns, such as `platform` or `rank_count`")
        axis, sheet = Axis("runs", parameters), self.sheet
        warnings = (*sheet.warnings, *_repeated_rows(sheet))
        return MeasuredRuns(sheet.file, axis, tuple(results.values()), sheet.lines, warnings, tuple(self._notes()))

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Columns by heading; a column of nodes becomes the ranks of a node."""
        named = {self._name(heading): heading for heading in self.sheet.values}
        nodes, columns = named.get(_PER_NODE, ""), dict(self.sheet.values)
        if usual_heading(nodes) == "nodes":
            columns[nodes] = ranks_of_nodes(self.sheet, columns[nodes], columns.get(named.get("rank_count", "")))
        return columns

    def _name(self, heading: str) -> str:
        """Name of a column in the scenario: as written, or the one that a usual heading means."""
        name = split_unit(heading)[0].strip()
        meant = usual_heading(name)
        meant = _PER_NODE if meant == "nodes" else meant
        return meant if meant and is_heading(meant, self.program) and not is_heading(name, self.program) else name

    def _notes(self) -> Iterator[str]:
        for heading in self.sheet.values:
            if (name := self._name(heading)) != split_unit(heading)[0].strip():
                taken = f"used with the ranks: `{name}`" if name == _PER_NODE else f"taken as `{name}`"
                yield f"{self.sheet.file}: `{heading}` is {taken}"

    def _path(self, name: str) -> str | None:
        """Path of a parameter: as written, or the only path that ends with the name; None for a result."""
        if name in self.program.parameters or is_machine(name):
            return name
        if _parts_of(name, self.program) is not None:
            return None
        ends = [path for path in self.program.parameters if path.endswith(f".{name}")]
        if len(ends) > 1:
            listed = ", ".join(f"`{path}`" for path in ends[:4])
            raise self._refused(name, f"several parameters end like this: {listed}")
        if not ends:
            known = (
                PLATFORM_PARAMETER,
                *self._result_names(),
                *self.program.parameters,
                *(p.rpartition(".")[2] for p in self.program.parameters),
            )
            meant = self._with_unit(name) or usual_heading(name)
            hint = f"; did you mean `{meant}`?" if meant else did_you_mean(name, dict.fromkeys(known))
            if meant == "nodes":
                hint = "; to use it, state `application.ranks_per_node` in the scenario or with --set"
            raise self._refused(name, f"neither a parameter nor a result nor a phase of the scenario{hint}")
        return ends[0]

    def _with_unit(self, name: str) -> str:
        """Heading meant by one with its unit at its end, `time [us]` for `time_us`; empty for other ones."""
        before, _, unit = name.rpartition("_")
        meant = before if is_heading(before, self.program) else usual_heading(before)
        heading = f"{meant} [{unit}]"
        return heading if meant and has_known_unit(heading) else ""

    def _result_names(self) -> list[str]:
        return [*self.program.columns, *(phase.phase for phase in self.program.phases)]

    def _parameter(self, path: str, heading: str, values: NDArray[Any]) -> NDArray[Any]:
        try:
            parameter = swept_parameter(path, self.program)
        except UsageError as problem:
            raise self._refused(heading, str(problem)) from None
        if values.dtype != object:
            return self._numbers(parameter, heading, values)
        for run in np.flatnonzero(values == ""):
            raise self._refused(heading, "empty: every run needs a value", int(run))
        try:
            return parameter_points(path, values.tolist(), self.program, DEFAULT_MAXIMUM_POINTS)
        except WhatifError as problem:
            raise self._refused(heading, *self._first_wrong(path, values, problem)) from None

    def _first_wrong(self, path: str, values: NDArray[Any], problem: WhatifError) -> tuple[str, int | None]:
        """Reason why the values of a column are refused, and the run of the first one that is refused alone."""
        for value, run in zip(*np.unique(values.astype(str), return_index=True), strict=True):
            try:
                parameter_points(path, [str(value)], self.program, DEFAULT_MAXIMUM_POINTS)
            except WhatifError as own:
                return str(own).removeprefix(f"sweep `{path}`: "), int(run)
        return str(problem).removeprefix(f"sweep `{path}`: "), None

    def _numbers(self, parameter: Parameter | None, heading: str, values: NDArray[Any]) -> NDArray[Any]:
        if parameter is None or parameter.field is None:
            raise self._refused(heading, "holds numbers where names are expected")
        column = self._column(heading, values)
        if column.dimension != parameter.dimension:
            expected = f"in {parameter.dimension}" if parameter.dimension != ONE else "a number without a unit"
            raise self._refused(heading, f"is {_unit(column)}; {parameter.path} is {expected}")
        for run in np.flatnonzero(np.isnan(column.values)):
            raise self._refused(
                heading, self._word(heading, int(run)) or "no number: every run needs a value", int(run)
            )
        for run in np.flatnonzero(~parameter.field.domain.accepts(column.values)):
            allowed = parameter.field.domain.describe(parameter.dimension, values[run])
            raise self._refused(heading, f"{values[run]:g} is not allowed; it must be {allowed}", int(run))
        return column.values

    def _result(self, name: str, heading: str, values: NDArray[Any]) -> MeasuredResult:
        parts = _parts_of(name, self.program)
        assert parts is not None
        if values.dtype == object:
            first, text = next((run, text) for run, text in enumerate(values) if text and not is_number(text))
            message = f"`{text[:40]}` is not a number; state the unit in the heading: `{name} [us]`"
            raise self._refused(heading, message, first)
        column, expected = self._column(heading, values), self.program.dimension_of(parts[0])
        if column.dimension != expected:
            raise self._refused(heading, f"is {_unit(column)}; it must be in {expected}: `{name} [{expected}]`")
        for run in np.flatnonzero(np.isinf(column.values) | (column.values <= 0)):
            low = "a measured value must be greater than 0; leave the cell empty if the run has none"
            rule = "too large for a 64-bit float" if values[run] > 0 else low
            raise self._refused(heading, f"{values[run]:g}: {rule}", int(run))
        if not np.isfinite(column.values).any():
            raise self._refused(heading, self._word(heading, 0) or "no values", 0)
        return MeasuredResult(name, parts, self._category(name, parts), column)

    def _category(self, name: str, parts: tuple[str, ...]) -> str:
        of_phase = {f"terms.{phase.phase}": phase.category for phase in self.program.phases}
        found: set[str] = {of_phase[part] for part in parts if part in of_phase}
        if len(found) == 1 and len(parts) == sum(part in of_phase for part in parts):
            return found.pop()
        return name.removesuffix("_time") if name.removesuffix("_time") in CATEGORIES else ""

    def _column(self, heading: str, values: NDArray[Any]) -> Column:
        unit = split_unit(heading)[1]
        try:
            dimension, scale, written = size_of_unit(unit) if unit else (ONE, 1.0, "")
        except UnitError as problem:
            raise self._refused(heading, f"{problem}; known are such as us, MB and GB/s") from None
        return Column(values * scale, dimension, written)

    def _word(self, heading: str, run: int) -> str:
        """Message about the word in the place of the number of a run; empty without one."""
        word = self.sheet.words.get(heading, {}).get(int(self.sheet.lines[run]), "")
        return f"`{word[:40]}` is not a number" if word else ""

    def _refused(self, heading: str, message: str, run: int | None = None) -> InvalidFileError:
        line = 0 if run is None else int(self.sheet.lines[run])
        return refuse(self.sheet.file, message, line, heading[:80])


def _repeated_rows(sheet: RunSheet) -> Iterator[str]:
    """Warning about rows that are equal in every column: repeated measurements rarely take exactly the same time."""
    first: dict[str, int] = {}
    pairs = []
    for line, *row in zip(sheet.lines.tolist(), *(values.tolist() for values in sheet.values.values()), strict=True):
        # As text, so that missing values, NaN, are equal.
        same = first.setdefault(repr(row), line)
        pairs += [(line, same)] if same != line else []
    if pairs:
        named = ", ".join(f"line {line} as line {same}" for line, same in pairs[:_MOST_PAIRS])
        more = f" and {len(pairs) - _MOST_PAIRS:,} more" if len(pairs) > _MOST_PAIRS else ""
        yield f"rows that are equal in every column count as separate runs: {named}{more}"


def _unit(column: Column) -> str:
    return f"in {column.written or column.unit}" if column.unit else "a number without a unit"
