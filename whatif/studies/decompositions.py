"""Decompositions of a grid ranked by a result: every layout of the ranks along its dimensions and on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.core.context import DIMENSIONS
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.result import why_not
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, InvalidFileError, UsageError
from whatif.files.scenario_edits import save_as
from whatif.models.decomposition import ordered_factorisations
from whatif.models.quantities import FloatArray
from whatif.schema.application import CellGrid
from whatif.studies.scaling import GRID, Planner
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, Dimension, crossed, format_quantity

_EQUAL: Final = 1e-9
"""Relative difference up to which results are equal."""
_CHUNK: Final = 16
"""Decompositions evaluated at a time, between two reports of the progress."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout of the ranks with its result."""

    ranks: tuple[int, ...]
    """Ranks along each dimension; empty for a bisection."""
    mapping: str
    order: str
    result: float = np.nan
    reason: str = ""
    """Reason why there is no result; empty if there is one."""

    @property
    def decomposition(self) -> str:
        """Value of the key `decomposition` in a scenario file."""
        return "given" if self.ranks else "bisection"

    @property
    def place(self) -> tuple[tuple[int, ...], str, str]:
        """Choices that decide the place of every rank."""
        return self.ranks, self.mapping, self.order


@dataclass(frozen=True, eq=False, repr=False)
class Layouts(StudyResult):
    """Layouts of a scenario's grid, the best first."""

    result: str
    present: Layout
    ranked: tuple[Layout, ...]
    refused: tuple[str, ...]
    """Reasons why some kinds of layout do not apply to this scenario, each once."""
    scenario: Scenario
    dimension: Dimension
    count: int = 10
    """Layouts in the table, in addition to the present one."""
    shows_failures = True
    optional_columns = (["decomposition"], ["order"], ["change"])

    @property
    def best(self) -> Scenario:
        """The scenario with the best layout."""
        return self.scenario.with_overrides(settings(self.ranked[0], self.scenario))

    def write(self, path: str | Path) -> None:
        """Write the scenario with the best layout, comments kept; raise `UsageError` if the file cannot be written."""
        save_as(Path(path), self.best)

    def table(self) -> Table:
        """One row per layout: the best ones and the present one, each with its rank."""
        columns = {"place": ONE, "ranks": None, "decomposition": None, "mapping": None, "order": None}
        columns |= {self.result: self.dimension, "change": ONE, "present": None}
        rows: list[list[Any]] = []
        for at, item in self.shown(self.count):
            words = [crossed(item.ranks), item.decomposition, item.mapping, item.order]
            rows.append([at, *words, item.result, self.change(item), "present" if self.is_present(item) else ""])
        return Table.of_rows(columns, rows, {"layouts": str(len(self.ranked))}, ("change",))

    def shown(self, count: int) -> list[tuple[int, Layout]]:
        """The best layouts and the present one, each with its rank."""
        return [(at, item) for at, item in enumerate(self.ranked, start=1) if at <= count or self.is_present(item)]

    def is_present(self, layout: Layout) -> bool:
        """Whether a layout puts every rank in its present place."""
        return layout.place == self.present.place

    def summary(self) -> tuple[str, ...]:
        """Layouts left out, and the present and the best result."""
        lines = [f"left out: {reason}" for reason in self.refused]
        missing = sum(not np.isfinite(item.result) for item in self.ranked)
        if missing:
            lines.append(f"{missing} of {len(self.ranked)} layouts are infeasible")
        grid = self.scenario.program.loaded.scenario.application.grid
        if grid is not None and grid.scaling == "weak":
            lines.append("weak scaling: ranks keep their cells, the whole grid its number of cells but not its shape; "
                         "--whole-grid keeps that")  # fmt: skip
        best, present = self.ranked[0], self.present
        if np.isfinite(present.result) and np.isfinite(best.result):
            now, then = (format_quantity(item.result, self.dimension, 4) for item in (present, best))
            change = f" ({self.change(best):+.2%})" if np.isfinite(self.change(best)) else ""
            equal = sum(abs(item.result - best.result) <= _EQUAL * abs(best.result) for item in self.ranked)
            ties = f"; {equal} layouts are equally good" if equal > 1 else ""
            lines.append(f"{self.result}: {now} at present, {then} at best{change}{ties}")
        return tuple(lines)

    def obstacle(self) -> str:
        """Reason why no layout has a result."""
        best = self.ranked[0]
        return "" if np.isfinite(best.result) else f"infeasible: {best.reason}"

    def change(self, layout: Layout) -> float:
        """Relative difference of a layout's result from the present one; NaN without a present result."""
        return layout.result / self.present.result - 1 if self.present.result else np.nan


def layouts(
    scenario: Scenario, result: str = "iteration_time", progress: Callable[[str], None] = lambda text: None
) -> Layouts:
    """Layouts of a grid, ranked by a result, of equal ones the present one first.

    All ordered factorisations of the ranks over the grid's dimensions, with every mapping and order of ranks, and the
    bisection. The number of ranks and the file's cells stay the same: in weak scaling those of one rank, so that the
    whole grid changes its shape. Raise `UsageError` for a scenario without a grid of ranks, `InfeasiblePointError` for
    one that no layout makes feasible.
    """
    program = scenario.program
    grid = program.loaded.scenario.application.grid
    refusal = program.loaded.scenario.application.refused_studies.get("layout")
    if refusal is not None:
        raise UsageError(refusal)
    if grid is None:
        raise UsageError("the scenario has no `[application.grid]` to decompose")
    program.term_of(result)  # Refuses an unknown name before the layouts are evaluated.
    now = evaluate(program)
    if now.reasons() and not (grid.decomposition == "given" or grid.mapping == "file"):
        # The reason is not the layout, so that no other one helps; counting their messages would take minutes.
        raise InfeasiblePointError(f"infeasible: {now.obstacle()}")
    present = _present(program, grid, now, result)
    shapes = list(ordered_factorisations(int(now.values[RANK_COUNT]), len(grid.cells)))
    count, refused = 2 * len(shapes) * len(_mappings(grid)), dict[str, None]()
    found: list[Layout] = []
    for mapping, order in product(_mappings(grid), ("c", "fortran")):
        try:
            for layout in _laid_out(scenario, grid, shapes, (mapping, order), result):
                found.append(layout)
                progress(f"{len(found)} of {count} layouts")
        except InvalidFileError as error:
            refused[error.problems[0].message] = None
    found += _bisected(scenario, result)
    ranked = sorted(found, key=lambda item: (not np.isfinite(item.result), item.result, item.place != present.place))
    return Layouts(result, present, tuple(ranked), tuple(refused), scenario, program.dimension_of(result))


def layout_study(
    scenario: Scenario, *, whole_grid: bool, result: str, count: int, progress: Callable[[str], None] | None
) -> Layouts:
    """Layouts of a grid with `count` of the best in the table; `whole_grid` keeps the shape of the whole grid."""
    chosen = Planner(scenario).of_whole_grid() if whole_grid else scenario
    result = scenario.program.result_name(result)
    found = layouts(chosen, result) if progress is None else layouts(chosen, result, progress)
    return replace(found, count=count).about(scenario)


def settings(layout: Layout, scenario: Scenario) -> dict[str, str]:
    """Overrides that give a scenario a layout, without those that it states already."""
    program = scenario.program
    grid = program.loaded.scenario.application.grid
    assert grid is not None
    wanted = {f"{GRID}.mapping": layout.mapping, f"{GRID}.order": layout.order}
    if layout.ranks != _ranks(grid, evaluate(program)):
        wanted |= _stated(layout.decomposition, dict(zip(grid.cells, layout.ranks, strict=bool(layout.ranks))))
    return {path: text for path, text in wanted.items() if _text(program, path) != text}


def _text(program: Program, path: str) -> str | None:
    parameter = program.parameters.get(path)
    return None if parameter is None else parameter.text(digits=None)


def _stated(decomposition: str, ranks: Mapping[str, float]) -> dict[str, str]:
    along = {f"{GRID}.ranks.{key}": f"{count:.0f}" for key, count in ranks.items()}
    return {f"{GRID}.decomposition": decomposition, **along}


def _mappings(grid: CellGrid) -> list[str]:
    return ["block", "round_robin", "tiles", *(["file"] if grid.mapping == "file" else [])]


def _ranks(grid: CellGrid, evaluation: Evaluation) -> tuple[int, ...]:
    """Present ranks along each dimension; empty for a bisection."""
    if grid.decomposition == "bisection":
        return ()
    if grid.decomposition == "given":
        return tuple(int(evaluation.values[f"{GRID}.ranks.{key}"]) for key in grid.cells)
    count = evaluation.values[RANK_COUNT]
    found: Any = DIMENSIONS[grid.decomposition](count, dimension_count=len(grid.cells))
    # Infeasible numbers of ranks have no extents.
    return tuple(int(extent) for extent in np.nan_to_num(found))


def _present(program: Program, grid: CellGrid, now: Evaluation, result: str) -> Layout:
    number, reason = float(now.numbers(program.term_of(result))), now.obstacle()
    return Layout(_ranks(grid, now), grid.mapping, grid.order, number, reason)


def _laid_out(
    scenario: Scenario, grid: CellGrid, shapes: Sequence[tuple[int, ...]], choice: tuple[str, str], result: str
) -> Iterator[Layout]:
    """Layouts of one mapping and order."""
    mapping, order = choice
    sets = _stated("given", dict(zip(grid.cells, shapes[0], strict=True)))
    sets |= {f"{GRID}.mapping": mapping, f"{GRID}.order": order}
    program = scenario.with_overrides(sets).program
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


def _bisected(scenario: Scenario, result: str) -> list[Layout]:
    """Layout of the bisection, if the phases of the scenario allow one."""
    sets = {f"{GRID}.decomposition": "bisection", f"{GRID}.mapping": "block"}
    try:
        program = scenario.with_overrides(sets).program
    except InvalidFileError:
        return []
    grid = program.loaded.scenario.application.grid
    assert grid is not None
    (found,) = _results(program, {}, result, np.zeros((1, 0)))
    return [Layout((), "block", grid.order, *found[1:])]
