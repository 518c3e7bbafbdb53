"""The same application on several machines: results, phases and a curve for each, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.result import array_of, has_column, result_of
from whatif.core.scenario import Scenario
from whatif.core.sweep import swept_parameter
from whatif.errors import WhatifError
from whatif.models.quantities import FloatArray
from whatif.units import Dimension


@dataclass(frozen=True, slots=True, eq=False)
class PlatformRow:
    """One row of a comparison."""

    name: str
    """Name of the platform's file; empty if the scenario describes the platform."""
    label: str
    """Name of the platform, followed by ` (edited)` if the scenario overrides its values."""
    columns: Mapping[str, float]
    """Result columns at the present values, in s; NaN if the point is infeasible, empty if it does not compile."""
    phases: Mapping[str, float]
    """Time of each phase in s, as the columns."""
    grade: str
    """Lowest grade of the values behind the results; empty without a program."""
    reason: str
    """Reason why there is no result; empty if there is one."""
    curve: FloatArray | None
    """Requested column along the first axis, in base units; NaN for infeasible points."""
    curve_reason: str
    """Reason why there is no curve; empty if there is one, or no sweep."""
    curve_dimension: Dimension | None = None
    """Dimension of the curve."""


def comparison(
    scenario: Scenario, platforms: Sequence[str] | None, grid: Grid, column: str = "iteration_time"
) -> tuple[PlatformRow, ...]:
    """Rows of the scenario, of the same without overrides of its platform, if any, and of other platforms.

    Overrides of the application apply to every platform, those of the present platform (`platform.*`) to it alone.
    Values that the scenario's file states for its platform apply to all, as with `--platform`. A scenario that cannot
    be compiled or computed is a row with the reason, never an exception. Curves run along the first axis of the grid,
    all in the currency of the first one. None: all known platforms.
    """
    present = scenario.platform_name or ""
    unedited = scenario.on_platform(scenario.platform)
    edited = unedited.overrides != scenario.overrides
    rows = [_row(scenario, present, " (edited)" if edited else "", grid, column)]
    if edited:
        rows.append(_row(unedited, present, "", grid, column))
    names = scenario.known_platforms if platforms is None else platforms
    others = (name for name in dict.fromkeys(names) if name != present)
    rows += [_row(scenario.on_platform(name), name, "", grid, column) for name in others]
    wanted = next((row.curve_dimension for row in rows if row.curve_dimension is not None), None)
    return tuple(row if row.curve_dimension in (None, wanted) else _without_curve(row, wanted) for row in rows)


def _without_curve(row: PlatformRow, wanted: Dimension | None) -> PlatformRow:
    """Row without its curve, which is in another unit."""
    reason = f"in {row.curve_dimension}, not in {wanted}: currencies are not converted"
    return replace(row, curve=None, curve_reason=reason, curve_dimension=None)


def _row(scenario: Scenario, name: str, mark: str, grid: Grid, column: str) -> PlatformRow:
    try:
        program = scenario.program
        result = result_of(evaluate(program), Grid())
    except WhatifError as error:
        no_curve = str(error) if grid.axes else ""
        return PlatformRow(name, f"{name}{mark}", {}, {}, "", str(error), None, no_curve)
    columns = {column: float(value) for column, value in result.columns.items()}
    phases = {phase: float(value) for phase, value in result.terms.items()}
    label = f"{program.loaded.scenario.platform.name}{mark}"
    return PlatformRow(name, label, columns, phases, result.grade, result.obstacle(), *_curve(scenario, grid, column))


def _curve(scenario: Scenario, grid: Grid, column: str) -> tuple[FloatArray | None, str, Dimension | None]:
    """Column along the first axis and its dimension; None and a reason if the platform lacks axis or column."""
    if not grid.axes:
        return None, "", None
    axis = grid.axes[0]
    try:
        # A parameter that is missing here, or has no effect, would draw a flat line.
        if not all(swept_parameter(path, scenario.program) for path in axis.parameters):
            return None, "the axis is the platform itself", None
        result = run_whole(scenario, Grid((axis,)))
    except WhatifError as error:
        return None, str(error), None
    if not has_column(result, column):
        return None, f"no {column.removeprefix('terms.')} on this platform", None
    return np.array(result.grid.spread(array_of(result, column))), "", result.dimensions[column]
