"""From a question to results: load, compile, evaluate a grid in chunks, and tell what each number is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.axes import Axis, Grid
from whatif.engine.compile import compile_scenario
from whatif.engine.evaluate import Evaluation, Texts, evaluate
from whatif.engine.fitted import extrapolations
from whatif.engine.sweep import PLATFORM_LEAF, is_machine, structural_points
from whatif.engine.term import Program
from whatif.errors import InvalidFileError, UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.schema.leaves import worst
from whatif.schema.load import load_document, open_document
from whatif.schema.toml import Document
from whatif.table import Column, Table

NO_NUMBER: Final = "the model gives no number there"

# Points evaluated at a time: large enough to amortise Python, small enough to stay in a core's cache.
CHUNK_POINTS: Final = 65_536


@dataclass(frozen=True)
class Question:
    """A scenario file with the changes asked for from outside; compiles once for each structural choice."""

    document: Document
    platform: str | None = None
    sets: Mapping[str, Any] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    _programs: dict[tuple[tuple[str, str], ...], Program] = field(default_factory=dict, compare=False, repr=False)
    _original: list[Program | None] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        platform: str | None = None,
        sets: Mapping[str, Any] | None = None,
        folders: Sequence[Path] = (),
    ) -> Question:
        """A scenario by path or shipped name."""
        return cls(open_document(source, "scenarios"), platform, dict(sets or {}), tuple(folders))

    @property
    def program(self) -> Program:
        """The compiled scenario as it stands."""
        return self.program_at({})

    @property
    def original(self) -> Program | None:
        """The file as it is, without changes from outside; None where it does not stand by itself."""
        if not self._original:
            try:
                self._original.append(Question(self.document, None, {}, self.folders).program)
            except WhatifError:
                self._original.append(None)
        return self._original[0]

    def changed(self, sets: Mapping[str, Any], platform: str | None = None) -> Question:
        """The same file with other changes from outside."""
        return replace(self, sets=dict(sets), platform=platform, _programs={})

    def on_platform(self, name: str | None) -> Question:
        """The question on a platform (None: the scenario's own), without edits of the present machine: they say
        nothing of another one."""
        sets = {path: value for path, value in self.sets.items() if not path.startswith(f"{PLATFORM_LEAF}.")}
        return self.changed(sets, name)

    def reread(self, document: Document) -> Question:
        """The same changes on another text of the file."""
        return Question(document, self.platform, self.sets, self.folders)

    def program_at(self, structural: Mapping[str, str]) -> Program:
        """The compiled scenario with other structural values."""
        key = tuple(sorted(structural.items()))
        if key not in self._programs:
            sets = {path: value for path, value in structural.items() if path != PLATFORM_LEAF}
            self._programs[key] = compile_scenario(
                load_document(
                    self.document,
                    platform=structural.get(PLATFORM_LEAF, self.platform),
                    sets={**self.sets, **sets},
                    folders=self.folders,
                )
            )
        return self._programs[key]


@dataclass(frozen=True, eq=False)
class Result:
    """Columns and phase times over a grid; every array broadcasts to the grid's shape.

    `grade` is the worst grade of the values that the results depend on; `forbidden` says why points cannot exist,
    empty where they can, None where all of them can; `extrapolated` what lies outside the range it was fitted in.
    """

    program: Program
    grid: Grid
    columns: Mapping[str, FloatArray]
    terms: Mapping[str, FloatArray]
    grade: str
    forbidden: Texts | None = None
    extrapolated: tuple[str, ...] = ()

    @cached_property
    def reason(self) -> Texts:
        """Why each point of the grid has no answer: it cannot exist, or would take forever; empty where it has."""
        reason = np.broadcast_to("" if self.forbidden is None else self.forbidden, self.grid.shape).astype(object)
        reason[~np.isfinite(self.grid.spread(self.columns["total_time"])) & (reason == "")] = NO_NUMBER
        return reason

    @property
    def impossible(self) -> int:
        """How many points of the grid have no answer."""
        return int((self.reason != "").sum()) if self.reasons else 0

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why points have no answer, each reason once."""
        if self.forbidden is None and np.isfinite(self.columns["total_time"]).all():
            return ()
        return tuple(text for text in dict.fromkeys(self.reason.ravel().tolist()) if text)

    def table(self) -> Table:
        """One row a point: swept leaves, columns, phase times (`terms.NAME`), and why it is impossible, if it is."""
        columns = {path: self._coordinate(path) for path in self.grid.leaves()}
        columns |= {name: self._column(name, array) for name, array in self.columns.items()}
        columns |= {name: self._column(name, array) for name, array in self._phases()}
        columns["impossible"] = Column(self.reason.ravel())
        return Table(columns, {"scenario": self.program.loaded.name, "grade": self.grade})

    def _coordinate(self, path: str) -> Column:
        leaf = self.program.leaves.get(path)
        dimension = leaf.dimension if leaf is not None and leaf.field is not None else None
        return Column(self.grid.coordinate(path).ravel(), dimension)

    def _phases(self) -> Iterator[tuple[str, FloatArray]]:
        return ((f"terms.{name}", array) for name, array in self.terms.items())

    def _column(self, name: str, array: FloatArray) -> Column:
        return Column(self.grid.spread(array).ravel(), self.program.dimension_of(name))


def run(question: Question, grid: Grid = Grid(), chunk_points: int = CHUNK_POINTS) -> Iterator[Result]:  # noqa: B008
    """Evaluate a grid, in chunks along its leading axis, in order."""
    structural = any(axis.structural for axis in grid.axes)
    evaluation: Evaluation | None = None
    for part in grid.chunks(chunk_points):
        if structural:
            yield _run_structural(question, part)
        else:
            # From chunk to chunk only what lies downstream of the leading axis is computed anew.
            evaluation = evaluate(question.program, part.arrays(), evaluation)
            yield result_of(evaluation, part)


def run_whole(question: Question, grid: Grid) -> Result:
    """Evaluate a grid that is known to be small in one piece."""
    return next(run(question, grid, chunk_points=max(1, grid.size)))


def result_of(evaluation: Evaluation, grid: Grid) -> Result:
    """The result columns of an evaluation."""
    program = evaluation.program
    columns = {name: evaluation.column(name) for name in program.columns}
    terms = {phase.phase: evaluation.masked(evaluation.values[phase.term]) for phase in program.phases}
    return Result(program, grid, columns, terms, program.grade, evaluation.reason(), extrapolations(evaluation))


def _run_structural(question: Question, grid: Grid) -> Result:
    """Compile once for each combination of structural values, evaluate the rest, and put the parts together."""
    columns: dict[str, FloatArray] = {}
    terms: dict[str, FloatArray] = {}
    reason = np.full(grid.shape, "", dtype=object)
    grades: list[str] = []
    extrapolated: dict[str, None] = {}
    first: Program | None = None
    failed: InvalidFileError | None = None
    for places in product(*(_places(axis) for axis in grid.axes)):
        structural = {path: value for _, values in places for path, value in values.items()}
        part = Grid(tuple(axis.slice(place) for axis, (place, _) in zip(grid.axes, places, strict=True)))
        where = tuple(place for place, _ in places)
        try:
            program = question.program_at(structural)
        except InvalidFileError as problem:
            reason[where] = unfit(problem, structural)
            failed = problem
            continue
        _refuse_missing(program, part, structural)
        result = result_of(evaluate(program, part.arrays()), part)
        for target, source in ((columns, result.columns), (terms, result.terms)):
            for name, array in source.items():
                target.setdefault(name, np.full(grid.shape, np.nan))[where] = part.spread(array)
        reason[where] = result.reason
        grades.append(result.grade)
        extrapolated |= dict.fromkeys(result.extrapolated)
        first = first or program
    if first is None:
        assert failed is not None
        raise failed
    return Result(first, grid, columns, terms, worst(grades), reason, tuple(extrapolated))


def unfit(problem: InvalidFileError, structural: Mapping[str, str]) -> str:
    """Why a machine of a sweep cannot be asked; any other choice that no file could state is an error."""
    if not any(map(is_machine, structural)) or any(is_machine(item.key) for item in problem.problems):
        raise problem
    return problem.problems[0].message


def _refuse_missing(program: Program, grid: Grid, structural: Mapping[str, str]) -> None:
    """A swept leaf must be there under every structural choice: else a flat line would hide that it is not."""
    missing = next((path for path in grid.arrays() if path not in program.leaves), None)
    if missing is not None:
        choices = ", ".join(f"{path}={value}" for path, value in structural.items())
        raise UsageError(f"`{missing}`: there is no such leaf with {choices}")


def _places(axis: Axis) -> list[tuple[slice, dict[str, str]]]:
    """The parts of an axis that one compilation can serve: all of a numeric one, each place of a structural one."""
    if not axis.structural:
        return [(slice(None), {})]
    return [(slice(index, index + 1), values) for index, values in enumerate(structural_points(axis))]


def array_of(result: Result, name: str) -> FloatArray:
    """A result column, or the time of a phase as `terms.NAME`."""
    return result.terms[name.removeprefix("terms.")] if name.startswith("terms.") else result.columns[name]


def has_column(result: Result, name: str) -> bool:
    """Whether a result has such a column or phase."""
    return name in result.columns or (name.startswith("terms.") and name.removeprefix("terms.") in result.terms)
