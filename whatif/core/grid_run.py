"""Evaluation of scenarios over grids: in chunks, and once for each structural choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

import numpy as np

from whatif.axes import Grid
from whatif.core.evaluate import Evaluation, Points, Texts, evaluate
from whatif.core.overrides import option_named
from whatif.core.result import Result, result_of
from whatif.core.scenario import Scenario, structural_parts, worst_grades
from whatif.core.sweep import PLATFORM_PARAMETER, machine_name, names_file
from whatif.core.term import Program
from whatif.core.uncertainty import Sampling, joined_bands
from whatif.errors import InvalidFileError, UsageError
from whatif.models.quantities import FloatArray
from whatif.units import Dimension

# Points evaluated at a time: large enough to amortise Python, small enough to stay in a core's cache.
CHUNK_POINTS: Final = 65_536


class Evaluator:
    """Evaluator of parts of a grid, one after the other; terms that did not change since the last part are reused."""

    def __init__(self, scenario: Scenario, sampling: Sampling | None = None) -> None:
        self._scenario, self._sampling = scenario, sampling
        self._latest: Evaluation | None = None

    def run(self, grid: Grid, chunk_points: int = CHUNK_POINTS) -> Iterator[Result]:
        """Results of a part, in chunks along its leading axis, in order."""
        samples = 1 if self._sampling is None else self._sampling.count
        for part in grid.chunks(max(1, chunk_points // samples)):
            if any(axis.structural for axis in part.axes):
                with option_named("--sweep", [path for axis in part.axes for path in axis.parameters]):
                    result = _run_structural(self._scenario, part, self._sampling)
                yield result
            else:
                self._latest = evaluate(self._scenario.program, part.arrays(), self._latest)
                yield result_of(self._latest, part, self._sampling)


def run(
    scenario: Scenario,
    grid: Grid = Grid(),  # noqa: B008
    chunk_points: int = CHUNK_POINTS,
    sampling: Sampling | None = None,
) -> Iterator[Result]:
    """Results over a grid, in chunks along its leading axis, in order."""
    return Evaluator(scenario.compiled(grid), sampling).run(grid, chunk_points)


def run_whole(scenario: Scenario, grid: Grid, sampling: Sampling | None = None) -> Result:
    """Result over a whole grid."""
    points = grid.size * (1 if sampling is None else sampling.count)
    return next(run(scenario, grid, chunk_points=max(1, points), sampling=sampling))


def _run_structural(scenario: Scenario, grid: Grid, sampling: Sampling | None) -> Result:
    """Result over a grid with structural values: one compilation for each combination of them."""
    reason = np.full(grid.shape, "", dtype=object)
    parts: list[tuple[tuple[slice, ...], Result]] = []
    machines: dict[str, Program] = {}
    failed: InvalidFileError | None = None
    for where, structural in structural_parts(grid):
        part = Grid(tuple(axis.slice(place) for axis, place in zip(grid.axes, where, strict=True)))
        try:
            program = scenario.program_at(structural)
        except InvalidFileError as problem:
            reason[where] = unfit(scenario, problem, structural)
            failed = problem
            continue
        _refuse_missing(program, part, structural)
        machines.setdefault(machine_name(structural), program)
        result = result_of(evaluate(program, part.arrays()), part, sampling)
        reason[where] = result.reason
        parts.append((where, result))
    if not scenario.programs:
        assert failed is not None
        raise failed
    return replace(_joined(scenario, grid, parts, reason, sampling), machines=machines)


def _joined(
    scenario: Scenario, grid: Grid, parts: Sequence[tuple[tuple[slice, ...], Result]], reason: Texts,
    sampling: Sampling | None,
) -> Result:  # fmt: skip
    """Result of joined parts of a grid; NaN where a part has no such column, no time where it has no such phase."""
    known = scenario.programs
    names = _column_names(known)
    parts = [(where, _named(result, names)) for where, result in parts]
    nowhere = np.full(grid.shape, np.nan)
    ordered = _in_order([[names[name, item.dimension_of(name)] for name in item.columns] for item in known])
    columns = dict.fromkeys(ordered, nowhere)
    terms = {phase.phase: nowhere for item in known for phase in item.phases}
    columns |= grid.join((where, result.grid, result.columns) for where, result in parts)
    terms |= grid.join((where, result.grid, _with_absent(terms, result)) for where, result in parts)
    grades = np.full(grid.shape, "", dtype=object)
    extrapolated: dict[str, Points] = {}
    for where, result in parts:
        grades[where] = result.grades
        for text, beyond in result.extrapolated.items():
            extrapolated.setdefault(text, np.zeros(grid.shape, dtype=bool))[where] = beyond  # type: ignore[index]
    dimensions = {column: unit for (_, unit), column in names.items()}
    sampled = [(where, result.grid, result.bands) for where, result in parts if result.bands is not None]
    bands = None if sampling is None else joined_bands(grid, sampled, sampling, dimensions)
    program = parts[0][1].program if parts else known[0]
    whole = worst_grades(known)
    others = {column: whole[name] for (name, _), column in names.items() if name in whole}
    remarks = (grades, reason, extrapolated, bands, others, whole[""])
    return Result(program, grid, columns, terms, dimensions, *remarks)


def _with_absent(phases: Iterable[str], result: Result) -> dict[str, FloatArray]:
    """Times of all phases; those that a result does not have take no time at feasible points."""
    none = 0.0 * result.columns["total_time"]
    return {**dict.fromkeys(phases, none), **result.terms}


def _in_order(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of all lists, each list in its own order."""
    before: dict[str, list[str]] = {name: [] for names in lists for name in names}
    for names in lists:
        for first, second in pairwise(names):
            before[second].append(first)
    return tuple(TopologicalSorter(before).static_order())


def _column_names(programs: Sequence[Program]) -> dict[tuple[str, Dimension], str]:
    """Columns of the results of some programs, by result and unit: costs in two currencies are two columns, such as
    `total_cost in USD`."""
    units: dict[str, dict[Dimension, None]] = {}
    for program in programs:
        for name in program.results:
            units.setdefault(name, {})[program.dimension_of(name)] = None
    return {(name, unit): name if len(its) == 1 else f"{name} in {unit}" for name, its in units.items() for unit in its}


def _named(result: Result, names: Mapping[tuple[str, Dimension], str]) -> Result:
    """Result with columns of these names, by result and unit."""
    new = {name: names[name, unit] for name, unit in result.dimensions.items()}
    if all(name == column for name, column in new.items()):
        return result
    bands = result.bands
    return replace(
        result,
        columns={new[name]: array for name, array in result.columns.items()},
        dimensions={new[name]: unit for name, unit in result.dimensions.items()},
        bands=bands and replace(bands, values={new[name]: ends for name, ends in bands.values.items()}),
        other_grades={new.get(name, name): grade for name, grade in result.other_grades.items()},
    )


def unfit(scenario: Scenario, problem: InvalidFileError, structural: Mapping[str, str]) -> str:
    """Reason why a scenario does not fit a structural choice, such as a precision that a GPU has no rate for.

    Raise `InvalidFileError` if a choice names a file that does not exist or is invalid, whatever the scenario.
    """
    if any(item.key in structural and names_file(item.key) for item in problem.problems):
        raise problem
    scenario.check_platform(structural.get(PLATFORM_PARAMETER))
    first = problem.problems[0]
    return f"{first.key}: {first.message}" if first.message.startswith("missing key") else first.message


def _refuse_missing(program: Program, grid: Grid, structural: Mapping[str, str]) -> None:
    """Refuse a swept parameter that some structural choice lacks: a flat line would hide that."""
    missing = next((path for path in grid.arrays() if path not in program.parameters), None)
    if missing is not None:
        choices = ", ".join(f"{path}={value}" for path, value in structural.items())
        raise UsageError(f"`{missing}`: no such parameter with {choices}")
