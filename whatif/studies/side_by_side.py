"""Scenarios side by side: their results, and the values that differ between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.axes import Grid, first_number
from whatif.core.evaluate import evaluate
from whatif.core.result import Result, array_of, result_of
from whatif.core.term import Program
from whatif.schema.parameters import Parameter
from whatif.studies.study_result import StudyResult
from whatif.table import Table, number_text
from whatif.units import Dimension

ITERATION: Final = "iteration_time"
_EXACT: Final = 17
_MISSING: Final = "–"


@dataclass(frozen=True, eq=False, repr=False)
class SideBySide(StudyResult):
    """Results of some scenarios and the values that differ between them, a place for each scenario."""

    names: tuple[str, ...]
    results: Mapping[str, tuple[float, ...]]
    """By result or phase (`terms.NAME`), in base units; NaN where a scenario has none or its point is infeasible. Costs
    in two currencies are two results, such as `total_cost in USD`."""
    dimensions: Mapping[str, Dimension]
    values: Mapping[str, tuple[Parameter | None, ...]]
    """By path; None if a scenario has no such parameter."""
    reasons: tuple[str, ...]
    """Why a scenario has no results; empty if it has."""

    def table(self) -> Table:
        """One row per scenario: its results, and a column for each value that differs."""
        numeric = {path: _dimension(pair) for path, pair in self.values.items()}
        columns: dict[str, Dimension | None] = {"scenario": None, **self.dimensions, **numeric}
        rows = [
            [
                name,
                *(numbers[at] for numbers in self.results.values()),
                *(_cell(pair[at], numeric[path]) for path, pair in self.values.items()),
            ]
            for at, name in enumerate(self.names)
        ]
        if any(self.reasons):
            columns["infeasible"] = None
            rows = [[*row, reason] for row, reason in zip(rows, self.reasons, strict=True)]
        return Table.of_rows(columns, rows)

    def readable_table(self) -> Table:
        """One row per result and per value that differs, a column for each scenario."""
        return Table.of_rows(dict.fromkeys(("value", *self.names)), [[name, *texts] for name, texts in self.rows()])

    def rows(self, digits: int = 4) -> list[tuple[str, tuple[str, ...]]]:
        """The same in words: a name, and the text of each scenario."""
        results = [
            (name, tuple(_number(name, number, self.dimensions[name], digits) for number in numbers))
            for name, numbers in self.results.items()
        ]
        return results + [(path, tuple(map(_text, pair))) for path, pair in self.values.items()]

    def summary(self) -> tuple[str, ...]:
        """Number of differing values."""
        count = len(self.values)
        return (f"{count or 'no'} value{'s' * (count != 1)} differ{'s' * (count == 1)}",)


def side_by_side(programs: Mapping[str, Program], points: Mapping[str, Result] | None = None) -> SideBySide:
    """Some compiled scenarios side by side, by name; `points` are their results where they are known."""
    found = points or {name: result_of(evaluate(program), Grid()) for name, program in programs.items()}
    results, dimensions = _results(list(found.values()))
    reasons = tuple(point.obstacle() for point in found.values())
    tables = [program.parameters for program in programs.values()]
    paths = dict.fromkeys(path for table in tables for path in table)
    rows = ((path, tuple(table.get(path) for table in tables)) for path in paths)
    values = {path: row for path, row in rows if any(not _same(row[0], other) for other in row[1:])}
    reached = frozenset().union(*(program.reached for program in programs.values()))
    ordered = dict(sorted(values.items(), key=lambda item: _rank(item, reached)))
    return SideBySide(tuple(programs), results, dimensions, ordered, reasons)


def _rank(item: tuple[str, Sequence[Parameter | None]], reached: Collection[str]) -> int:
    """Order of the values: the machine, then what the results depend on, then all else."""
    path, row = item
    if path == "platform.name":
        return 0
    choice = any(parameter is not None and parameter.choices for parameter in row)
    return 1 if choice or path in reached else 2


def _results(points: Sequence[Result]) -> tuple[dict[str, tuple[float, ...]], dict[str, Dimension]]:
    """Results and phases that any scenario has, but those that are 0 everywhere; each unit has its own row."""
    units: dict[str, dict[Dimension, None]] = {ITERATION: {}}
    for point in points:
        for name, unit in point.dimensions.items():
            units.setdefault(name, {})[unit] = None
    ordered = [(name, unit) for name, its in units.items() for unit in its]
    found = {item: tuple(_number_of(point, *item) for point in points) for item in ordered}
    kept = {item: row for item, row in found.items() if any(number != 0 for number in row)}
    count = Counter(name for name, _ in kept)
    names = {(name, unit): name if count[name] == 1 else f"{name} in {unit}" for name, unit in kept}
    return {names[item]: row for item, row in kept.items()}, {name: item[1] for item, name in names.items()}


def _number_of(point: Result, name: str, unit: Dimension) -> float:
    """Result of a scenario; NaN if it has none in this unit."""
    return first_number(array_of(point, name)) if point.dimensions.get(name) == unit else np.nan


def _same(one: Parameter | None, other: Parameter | None) -> bool:
    if one is other:
        return True
    if one is None or other is None:
        return False
    return (one.value, one.dimension) == (other.value, other.dimension) or one.text(_EXACT) == other.text(_EXACT)


def _dimension(pair: Sequence[Parameter | None]) -> Dimension | None:
    """The unit of values that are plain numbers of one kind; None for texts."""
    units = {parameter.dimension for parameter in pair if parameter is not None and _is_number(parameter)}
    plain = all(parameter is None or _is_number(parameter) for parameter in pair)
    return units.pop() if plain and len(units) == 1 else None


def _is_number(parameter: Parameter) -> bool:
    return isinstance(parameter.value, int | float) and not parameter.structural


def _cell(parameter: Parameter | None, dimension: Dimension | None) -> object:
    if dimension is None:
        return _text(parameter)
    return np.nan if parameter is None else float(parameter.value)


def _text(parameter: Parameter | None) -> str:
    return _MISSING if parameter is None else parameter.text()


def _number(name: str, number: float, dimension: Dimension, digits: int) -> str:
    return number_text(name, number, dimension, digits) if np.isfinite(number) else _MISSING
