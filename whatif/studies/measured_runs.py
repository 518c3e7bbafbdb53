"""Reader of measured runs: a CSV file with the parameters of each run of a scenario, and its measured results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER, is_machine, parameter_points, swept_parameter
from whatif.core.term import Program
from whatif.errors import InvalidFileError, Problem, UsageError, WhatifError, did_you_mean
from whatif.importers.mapping import split_unit
from whatif.importers.numbers import is_number
from whatif.importers.run_columns import has_known_unit, size_of_unit, usual_heading
from whatif.importers.runs_csv import MOST_WRONG, RunSheet, ranks_of_nodes, read_run_sheet, repeated_rows
from whatif.importers.text import file_problem, refuse
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.schema.parameters import Parameter
from whatif.schema.toml import shown_path
from whatif.studies.run_predictions import MeasuredResult, MeasuredRuns
from whatif.table import Column
from whatif.units import ONE, UnitError
from whatif.vocabulary import CATEGORIES

REMARKS: Final = ("source", "note", "repetition")
"""Columns that are neither a parameter nor a result; they are not used."""
_SUM: Final = " + "
_PER_NODE: Final = "ranks_per_node"


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
        self.parameters: dict[str, NDArray[Any]] = {}
        self.results: dict[str, MeasuredResult] = {}

    def runs(self) -> MeasuredRuns:
        """Runs of the file. Raise `InvalidFileError` with the problems of all columns."""
        problems: list[Problem] = []
        for heading, values in self._columns().items():
            try:
                self._take(heading, values)
            except InvalidFileError as error:
                problems += error.problems
        if problems:
            raise InvalidFileError(sorted(problems, key=lambda its: its.line))
        self._check()
        axis, results, sheet = Axis("runs", self.parameters), tuple(self.results.values()), self.sheet
        warnings = (*sheet.warnings, *repeated_rows(sheet))
        return MeasuredRuns(sheet.file, axis, results, sheet.lines, warnings, tuple(self._notes()))

    def _take(self, heading: str, values: NDArray[Any]) -> None:
        """Add a column to the parameters or to the results."""
        name = self._name(heading)
        if name in REMARKS:
            return
        path = self._path(name)
        if path in self.parameters or name in self.results:
            raise self._refused(heading, f"a second column of `{path or name}`")
        if path is not None:
            self.parameters[path] = self._parameter(path, heading, values)
        else:
            self.results[name] = self._result(name, heading, values)

    def _check(self) -> None:
        """Refuse a file without results of one unit, or without parameters."""
        if not self.results:
            known = ", ".join(self._result_names()[:8])
            raise refuse(self.sheet.file, f"no measured result among the columns; results: {known}, ..")
        units = sorted({str(result.column.dimension) for result in self.results.values()})
        if len(units) > 1:
            raise refuse(self.sheet.file, f"results in {' and '.join(units)}: a file holds results of one unit")
        if not self.parameters:
            raise refuse(self.sheet.file, "no parameter among the columns, such as `platform` or `rank_count`")

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
        self._refuse_runs(heading, np.flatnonzero(values == ""), lambda run: "empty: every run needs a value")
        try:
            return parameter_points(path, values.tolist(), self.program, DEFAULT_MAXIMUM_POINTS)
        except WhatifError as problem:
            alone = self._wrong_alone(path, values)
            self._refuse_runs(heading, np.array(list(alone), dtype=np.int64), alone.__getitem__)
            raise self._refused(heading, str(problem).removeprefix(f"sweep `{path}`: ")) from None

    def _wrong_alone(self, path: str, values: NDArray[Any]) -> dict[int, str]:
        """Reasons why values of a column are refused alone, by the first run with each."""
        found = {}
        for value, run in zip(*np.unique(values.astype(str), return_index=True), strict=True):
            try:
                parameter_points(path, [str(value)], self.program, DEFAULT_MAXIMUM_POINTS)
            except WhatifError as own:
                found[int(run)] = str(own).removeprefix(f"sweep `{path}`: ")
        return found

    def _numbers(self, parameter: Parameter | None, heading: str, values: NDArray[Any]) -> NDArray[Any]:
        if parameter is None or parameter.field is None:
            raise self._refused(heading, "holds numbers where names are expected")
        column = self._column(heading, values)
        if column.dimension != parameter.dimension:
            expected = f"in {parameter.dimension}" if parameter.dimension != ONE else "a number without a unit"
            raise self._refused(heading, f"is {_unit(column)}; {parameter.path} is {expected}")
        domain, missing = parameter.field.domain, np.isnan(column.values)

        def reason(run: int) -> str:
            if missing[run]:
                return self._word(heading, run) or "no number: every run needs a value"
            allowed = domain.describe(parameter.dimension, values[run])
            return f"{values[run]:g} is not allowed; it must be {allowed}"

        self._refuse_runs(heading, np.flatnonzero(missing | ~domain.accepts(column.values)), reason)
        return column.values

    def _result(self, name: str, heading: str, values: NDArray[Any]) -> MeasuredResult:
        parts = _parts_of(name, self.program)
        assert parts is not None
        if values.dtype == object:
            wrong = np.array([bool(text) and not is_number(text) for text in values])
            advice = f"is not a number; state the unit in the heading: `{name} [us]`"
            self._refuse_runs(heading, np.flatnonzero(wrong), lambda run: f"`{values[run][:40]}` {advice}")
        column, expected = self._column(heading, values), self.program.dimension_of(parts[0])
        if column.dimension != expected:
            raise self._refused(heading, f"is {_unit(column)}; it must be in {expected}: `{name} [{expected}]`")
        low, high = "must be greater than 0; leave the cell empty if the run has none", "too large for a 64-bit float"
        rules = np.where(values > 0, high, f"a measured value {low}")
        wrong = np.flatnonzero(np.isinf(column.values) | (column.values <= 0))
        self._refuse_runs(heading, wrong, lambda run: f"{values[run]:g}: {rules[run]}")
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

    def _refuse_runs(self, heading: str, runs: NDArray[np.int64], message: Callable[[int], str]) -> None:
        """Raise `InvalidFileError` with a problem of each of some runs, if there are any."""
        if problems := [self._problem(heading, message(run), run) for run in runs[:MOST_WRONG].tolist()]:
            raise InvalidFileError(problems)

    def _refused(self, heading: str, message: str, run: int | None = None) -> InvalidFileError:
        return InvalidFileError([self._problem(heading, message, run)])

    def _problem(self, heading: str, message: str, run: int | None = None) -> Problem:
        line = 0 if run is None else int(self.sheet.lines[run])
        return file_problem(self.sheet.file, message, line, heading[:80])


def _unit(column: Column) -> str:
    return f"in {column.written or column.unit}" if column.unit else "a number without a unit"
