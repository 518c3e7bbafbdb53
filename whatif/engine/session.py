"""A session: a question with edits and a sweep, and its answer; every change makes a new session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whatif.axes import Axis, Grid
from whatif.engine.evaluate import Evaluation, evaluate
from whatif.engine.result import Question, Result, result_of, run_whole
from whatif.engine.sweep import PLATFORM_LEAF, file_axes, grid_of, parse_axis, swept_leaf
from whatif.engine.term import Program
from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.schema.expressions import Expression
from whatif.schema.leaves import STATED, Leaf
from whatif.units import Quantity, format_quantity

CURVE_POINTS = 200
FIRST_LEAF = "platform.node.gpu_count"


@dataclass(frozen=True, eq=False)
class Session:
    """The state of an exploration. `point` is the answer at the values as they stand, `result` over the sweep."""

    question: Question
    program: Program
    grid: Grid
    evaluation: Evaluation | None
    result: Result
    at: Evaluation

    @classmethod
    def start(cls, question: Question) -> Session:
        """A session on a question, sweeping what the scenario asks for, or else the GPUs per node."""
        axes = file_axes(question.program, DEFAULT_MAXIMUM_POINTS)
        session = cls._of(question, question.program, grid_of(axes, DEFAULT_MAXIMUM_POINTS))
        return session if axes else session.sweep(FIRST_LEAF)

    @classmethod
    def _of(cls, question: Question, program: Program, grid: Grid, previous: Session | None = None) -> Session:
        """Evaluate; where the terms are those of `previous`, only what lies downstream of a change."""
        known = previous if previous is not None and previous.program.terms is program.terms else None
        at = evaluate(program, previous=known.at if known else None)
        if any(axis.structural for axis in grid.axes):
            return cls(question, program, grid, None, run_whole(question, grid), at)
        before = known.evaluation if known is not None and known.grid is grid else None
        evaluation = evaluate(program, grid.arrays(), before)
        return cls(question, program, grid, evaluation, result_of(evaluation, grid), at)

    @property
    def point(self) -> Result:
        """The answer at the values as they stand, without the sweep."""
        return result_of(self.at, Grid())

    @property
    def here(self) -> float | None:
        """Where the values as they stand lie on the first axis: the value of its leaf, or the number of its choice."""
        if not self.grid.axes:
            return None
        path, values = next(iter(self.grid.axes[0].leaves.items()))
        if path not in self.program.leaves:
            return None
        if values.dtype == object:
            return next((float(i) for i, text in enumerate(values) if text == self.leaf(path).text()), None)
        return float(np.ravel(self.at.values[path])[0])

    def leaf(self, path: str) -> Leaf:
        """A leaf by path; raise `UsageError` for an unknown one."""
        if path not in self.program.leaves:
            raise UsageError(f"`{path}`: there is no such leaf{did_you_mean(path, self.program.leaves)}")
        return self.program.leaves[path]

    def edit(self, path: str, text: str) -> Session:
        """The session with another value; raise `WhatifError` where the value is not allowed."""
        leaf = self.leaf(path)
        question = replace(self.question, sets={**self.question.sets, path: text}, _programs={})
        value = self._number(leaf, text)
        # A number in place of a number changes no term: the compiled program is kept and only fed anew.
        if value is not None and not isinstance(leaf.value, Expression):
            edited = replace(leaf, value=value, source=f"--set {path}={text}", grade=_edited_grade(leaf))
            program = replace(self.program, leaves={**self.program.leaves, path: edited})
            return self._of(question, program, self.grid, self)
        program = question.program
        return self._of(question, program, _still_there(self.grid, program))

    def _number(self, leaf: Leaf, text: str) -> float | None:
        if leaf.field is None:
            return None
        try:
            value = leaf.field.parse(text)
        except ValueError as error:
            raise UsageError(f"{leaf.path}: {error}") from None
        if isinstance(value, Quantity):
            return value.value
        return None if isinstance(value, Expression) else value

    def nudge(self, path: str, steps: int, *, coarse: bool = False) -> Session:
        """The session with a leaf moved by steps: a whole one by 1 (coarse: doubled or halved), any other one
        by 5 % (coarse: by a factor of 2), a choice to the next one."""
        leaf = self.leaf(path)
        if leaf.structural:
            return self._turned(leaf, steps)
        value = float(np.ravel(self.at.values[path])[0])
        return self.edit(path, _moved(leaf, value, steps, coarse))

    def _turned(self, leaf: Leaf, steps: int) -> Session:
        """The session with another choice; those that the files lack values for are passed over."""
        if not leaf.choices:
            raise UsageError(f"{leaf.path}: not a number and not one of a few choices; type a value")
        first: WhatifError | None = None
        at, direction = leaf.choices.index(leaf.text()), 1 if steps > 0 else -1
        for further in range(len(leaf.choices)):
            try:
                return self.edit(leaf.path, leaf.choices[(at + steps + direction * further) % len(leaf.choices)])
            except WhatifError as problem:
                first = first or problem
        raise first or UsageError(f"{leaf.path}: no other choice is possible")

    def sweep(self, path: str, text: str | None = None) -> Session:
        """The session sweeping one leaf, by the text of a range or over a range that suits its value."""
        leaf = swept_leaf(path, self.program)
        spec = text if text is not None or leaf is None else self.range_text(path)
        axis = parse_axis(path, {path: spec or ""}, self.program, DEFAULT_MAXIMUM_POINTS)
        return self.over((axis,))

    def range_text(self, path: str) -> str:
        """The range over which a leaf is swept unless another one is given."""
        leaf = self.leaf(path)
        return default_range(leaf, self.at) if leaf.field is not None else self._choices_text(leaf)

    def _choices_text(self, leaf: Leaf) -> str:
        """The choices that the files have all values for."""
        possible = [choice for choice in leaf.choices if self._compiles(leaf.path, choice)]
        if len(possible) < 2:
            raise UsageError(f"{leaf.path}: not a number and no other choice is possible; there is nothing to sweep")
        return ", ".join(possible)

    def _compiles(self, path: str, choice: str) -> bool:
        try:
            self.question.program_at({path: choice})
        except WhatifError:
            return False
        return True

    def over(self, axes: tuple[Axis, ...]) -> Session:
        """The session with other axes."""
        return self._of(self.question, self.program, grid_of(axes, DEFAULT_MAXIMUM_POINTS), self)


def _edited_grade(leaf: Leaf) -> Any:
    return "assumed" if leaf.path.startswith("platform.") else STATED


def _moved(leaf: Leaf, value: float, steps: int, coarse: bool) -> str:
    assert leaf.field is not None
    domain = leaf.field.domain
    factor = 2.0 if coarse else 1.05
    moved = value + steps if domain.whole and not coarse else value * factor**steps
    if domain.whole:
        moved = float(np.ceil(moved) if steps > 0 else np.floor(moved))
    moved = min(max(moved, domain.minimum), domain.maximum)
    if not domain.accepts(moved):
        return leaf.text()
    return format_quantity(moved, leaf.dimension, digits=17 if domain.whole else 6)


def _still_there(grid: Grid, program: Program) -> Grid:
    """The grid without the axes whose leaves another structure does not have."""
    known = {PLATFORM_LEAF, *program.leaves}
    axes = tuple(axis for axis in grid.axes if known.issuperset(axis.leaves))
    return grid if axes == grid.axes else Grid(axes)


def default_range(leaf: Leaf, at: Evaluation) -> str:
    """A range that a person would pick around a value: small counts one by one, else three octaves each way."""
    assert leaf.field is not None
    value, domain = float(np.ravel(at.values[leaf.path])[0]), leaf.field.domain
    if domain.maximum == 1:
        return f"{0.01 if domain.above_minimum else 0} .. 1 linear 100"
    if leaf.field.domain.whole and value <= 64:
        return f"{max(domain.minimum, 0):g} .. {max(16, 4 * value):g} step 1"
    if value <= 0:
        unit = "" if str(leaf.dimension) == "1" else f" {leaf.dimension}"
        return f"0 .. 1{unit} linear {CURVE_POINTS}"
    low, high = (format_quantity(value * factor, leaf.dimension, digits=6) for factor in (1 / 8, 8))
    if domain.whole:
        low, high = str(max(int(value / 8), 1)), str(int(value * 8))
    return f"{low} .. {high} log {CURVE_POINTS}"
