"""The best decomposition of a grid: every way to lay the ranks out along its dimensions and on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from whatif.core.context import DIMENSIONS
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.result import why_not
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import ImpossiblePointError, InvalidFileError, UsageError
from whatif.models.decomposition import ordered_factorisations
from whatif.models.quantities import FloatArray
from whatif.schema.application import CellGrid
from whatif.studies.scaling import GRID

_CHUNK: Final = 16
"""Decompositions that are evaluated at a time, so that progress can be told."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay out the ranks, and what comes of it."""

    ranks: tuple[int, ...]
    """Ranks along each dimension; empty for a bisection."""
    mapping: str
    order: str
    result: float = np.nan
    reason: str = ""
    """Why there is no result; empty where there is one."""

    @property
    def decomposition(self) -> str:
        """The kind that a scenario's file states for it."""
        return "given" if self.ranks else "bisection"


@dataclass(frozen=True, slots=True)
class Layouts:
    """All layouts, the best first."""

    result: str
    present: Layout
    ranked: tuple[Layout, ...]
    refused: tuple[str, ...]
    """Why some kinds of layout cannot be asked of this scenario, each reason once."""

    def change(self, layout: Layout) -> float:
        """By what share a layout's result is above the present one; NaN where there is nothing to compare with."""
        return layout.result / self.present.result - 1 if self.present.result else np.nan


def layouts(
    question: Scenario, result: str = "iteration_time", told: Callable[[int, int], None] = lambda done, count: None
) -> Layouts:
    """Every ordered factorisation of the ranks over the grid's dimensions, with every mapping and order of ranks, and
    the bisection, ranked by a result; of equal ones the present one first.

    The number of ranks and the file's cells stay as they are: in a weak scaling those of one rank, so that the whole
    grid takes another shape with as many cells. Raise `UsageError` for a scenario without a grid of ranks,
    `ImpossiblePointError` for one that has no answer however it is laid out.
    """
    program = question.program
    grid = program.loaded.scenario.application.grid
    refusal = program.loaded.scenario.application.refused_studies.get("layout")
    if refusal is not None:
        raise UsageError(refusal)
    if grid is None:
        raise UsageError("the scenario has no `[application.grid]`, so there is nothing to lay out")
    program.term_of(result)  # A wrong name is refused before anything is laid out.
    now = evaluate(program)
    if now.reasons() and not (grid.decomposition == "given" or grid.mapping == "file"):
        # Nothing that is wrong with the layout: then no other one helps, and counting their messages takes minutes.
        raise ImpossiblePointError(f"impossible: {now.reasons()[0]}")
    present = _present(program, grid, now, result)
    shapes = _shapes(now, grid)
    count, refused = 2 * len(shapes) * len(_mappings(grid)), dict[str, None]()
    found: list[Layout] = []
    for mapping, order in product(_mappings(grid), ("c", "fortran")):
        try:
            for layout in _laid_out(question, grid, shapes, (mapping, order), result):
                found.append(layout)
                told(len(found), count)
        except InvalidFileError as error:
            refused[error.problems[0].message] = None
    found += _bisected(question, result)
    ranked = sorted(found, key=lambda item: (not np.isfinite(item.result), item.result, not same(item, present)))
    return Layouts(result, present, tuple(ranked), tuple(refused))


def same(one: Layout, other: Layout) -> bool:
    """Whether two layouts put every rank in the same place."""
    return (one.ranks, one.mapping, one.order) == (other.ranks, other.mapping, other.order)


def settings(layout: Layout, question: Scenario) -> dict[str, str]:
    """What a scenario must state to have a layout; nothing for what it says already."""
    program = question.program
    grid = program.loaded.scenario.application.grid
    assert grid is not None
    wanted = {f"{GRID}.mapping": layout.mapping, f"{GRID}.order": layout.order}
    if layout.ranks != _ranks(grid, evaluate(program)):
        wanted |= _stated(layout.decomposition, dict(zip(grid.cells, layout.ranks, strict=bool(layout.ranks))))
    return {path: text for path, text in wanted.items() if _text(program, path) != text}


def _text(program: Program, path: str) -> str | None:
    parameter = program.parameters.get(path)
    return None if parameter is None else parameter.text(digits=17)


def _stated(decomposition: str, ranks: Mapping[str, float]) -> dict[str, str]:
    along = {f"{GRID}.ranks.{key}": f"{count:.0f}" for key, count in ranks.items()}
    return {f"{GRID}.decomposition": decomposition, **along}


def _mappings(grid: CellGrid) -> list[str]:
    return ["block", "round_robin", "tiles", *(["file"] if grid.mapping == "file" else [])]


def _ranks(grid: CellGrid, evaluation: Evaluation) -> tuple[int, ...]:
    """Ranks along each dimension as the scenario stands; empty for a bisection."""
    if grid.decomposition == "bisection":
        return ()
    if grid.decomposition == "given":
        return tuple(int(evaluation.values[f"{GRID}.ranks.{key}"]) for key in grid.cells)
    count = evaluation.values["application.rank_count"]
    found: Any = DIMENSIONS[grid.decomposition](count, dimension_count=len(grid.cells))
    # Too many ranks have no extents.
    return tuple(int(extent) for extent in np.nan_to_num(found))


def _present(program: Program, grid: CellGrid, now: Evaluation, result: str) -> Layout:
    number, reason = float(now.numbers(program.term_of(result))), next(iter(now.reasons()), "")
    return Layout(_ranks(grid, now), grid.mapping, grid.order, number, reason)


def _shapes(now: Evaluation, grid: CellGrid) -> list[tuple[int, ...]]:
    return list(ordered_factorisations(int(now.values["application.rank_count"]), len(grid.cells)))


def _laid_out(
    question: Scenario, grid: CellGrid, shapes: Sequence[tuple[int, ...]], choice: tuple[str, str], result: str
) -> Iterator[Layout]:
    """The layouts of one mapping and order."""
    mapping, order = choice
    sets = _stated("given", dict(zip(grid.cells, shapes[0], strict=True)))
    sets |= {f"{GRID}.mapping": mapping, f"{GRID}.order": order}
    program = question.changed({**question.sets, **sets}, question.platform).program
    for start in range(0, len(shapes), _CHUNK):
        some = np.array(shapes[start : start + _CHUNK], dtype=np.float64)
        parameters = {f"{GRID}.ranks.{key}": some[:, at] for at, key in enumerate(grid.cells)}
        for shape, number, reason in _results(program, parameters, result, some):
            yield Layout(shape, mapping, order, number, reason)


def _results(
    program: Program, parameters: Mapping[str, FloatArray], result: str, shapes: FloatArray
) -> Iterator[tuple[tuple[int, ...], float, str]]:
    evaluation = evaluate(program, parameters)
    found = np.broadcast_to(evaluation.numbers(program.term_of(result)), len(shapes))
    for shape, number, reason in zip(shapes, found.tolist(), why_not(evaluation.reason(), found), strict=True):
        yield tuple(int(n) for n in shape), number, str(reason)


def _bisected(question: Scenario, result: str) -> list[Layout]:
    """The bisection, where the scenario's phases allow one."""
    sets = {f"{GRID}.decomposition": "bisection", f"{GRID}.mapping": "block"}
    try:
        program = question.changed({**question.sets, **sets}, question.platform).program
    except InvalidFileError:
        return []
    grid = program.loaded.scenario.application.grid
    assert grid is not None
    (found,) = _results(program, {}, result, np.zeros((1, 0)))
    return [Layout((), "block", grid.order, *found[1:])]
