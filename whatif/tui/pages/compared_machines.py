"""The machines of the comparison: which are drawn, in which order, and the rows of their table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from whatif.core.result import CATEGORY_TIMES
from whatif.core.sweep_figure import MAXIMUM_CURVES, Y_COLUMN, figure, label_of, suiting
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine
from whatif.studies.platform_comparison import PlatformRow
from whatif.tui.labels import brief, duration
from whatif.tui.page_views import CompareView
from whatif.tui.pages.sweep_page import SCALES
from whatif.tui.state import ExplorerState, View
from whatif.tui.widgets.data_table import WORDS, Cell, TableRows, speedup
from whatif.units import SECOND

PRESENT: Final = "present"
"""Name of the present machine in `CompareView.marked`; the others have the names of their platforms."""
RESULTS: Final = (Y_COLUMN, "total_time")
KEPT: Final = 2
"""The columns that stay: the sign of the curve and the machine."""
_BEFORE_GRADE: Final = 4
"""The cells of the results before the grade: iteration and total, each with its speedup."""
ARROWS: Final = (" ▲", " ▼")
"""Behind the title of the column that machines are sorted by: the smallest or the largest first."""


def keys(machines: tuple[PlatformRow, ...]) -> list[str]:
    """Names of the machines in a view: `present` for the first one, `unedited` for one without a platform file."""
    return [PRESENT if at == 0 else machine.name or "unedited" for at, machine in enumerate(machines)]


def baseline(machines: tuple[PlatformRow, ...], against: str) -> int:
    """Baseline machine; the present one for an unknown name."""
    # Behind the present machine with its edits stands the same one without.
    names = [(key, machine.name) for key, machine in zip(keys(machines), machines, strict=True)]
    return next((at for at in reversed(range(len(names))) if against and against in names[at]), 0)


def chosen_machines(machines: tuple[PlatformRow, ...], marked: tuple[str, ...], base: int, column: str) -> list[int]:
    """The machines to draw: the baseline with the marked ones, or with the best that have a curve."""
    names = keys(machines)
    chosen = {at for at, key in enumerate(names) if key in marked}
    if not chosen:
        able = [at for at in order(machines, column) if at != base and has_curve(machines[at])]
        chosen = set(able[: MAXIMUM_CURVES - 1])
    return sorted({*chosen, base} if machines else chosen)


def has_curve(machine: PlatformRow) -> bool:
    """Whether the sweep has a feasible point on a machine."""
    return machine.curve is not None and bool(np.isfinite(machine.curve).any())


def value(machine: PlatformRow, column: str) -> float:
    """Result column, or the time of a phase as `terms.NAME`; NaN without one."""
    if column.startswith("terms."):
        return machine.phases.get(column.removeprefix("terms."), math.nan)
    return machine.columns.get(column, math.nan)


def result_columns(machines: tuple[PlatformRow, ...], by: str) -> tuple[str, ...]:
    """The columns of times: the results, then the phases, or with `category` the kinds of work, that take any time."""
    phases = dict.fromkeys(f"terms.{phase}" for machine in machines for phase in machine.phases)
    names = (*RESULTS, *(CATEGORY_TIMES if by == "category" else phases))
    return tuple(name for name in names if name in RESULTS or any(value(machine, name) > 0 for machine in machines))


def order(machines: tuple[PlatformRow, ...], sort: str) -> list[int]:
    """The machines by a column, those without a number last; `-COLUMN` for the largest first."""
    column, sign = sort.removeprefix("-"), -1.0 if sort.startswith("-") else 1.0
    numbers = [value(machine, column) if column else 0.0 for machine in machines]
    return sorted(range(len(machines)), key=lambda at: (math.isnan(numbers[at]), sign * numbers[at]))


def rows(
    machines: tuple[PlatformRow, ...], shown: list[int], base: int, signs: dict[int, Cell], view: View
) -> TableRows:
    """The table: signs of the curves, machines, and each time with its speedup over that of the baseline."""
    columns, names, own = result_columns(machines, view.breakdown), keys(machines), view.of(CompareView)
    titles = [title for name in columns for title in (_title(name, own.sort), "")]
    titles[_BEFORE_GRADE:_BEFORE_GRADE] = ["grade"]
    cells = tuple(
        (
            signs.get(at, Cell("  ")),
            Cell(machines[at].label, "marked" if names[at] in own.marked else "text"),
            *_cells(machines[at], machines[base], columns),
        )
        for at in shown
    )
    return TableRows(("", "machine", *titles), cells, frozenset((0, 1, KEPT + _BEFORE_GRADE)))


def _title(column: str, sort: str) -> str:
    arrow = dict(zip((column, f"-{column}"), ARROWS, strict=True)).get(sort, "")
    return f"{label_of(column)}{arrow}"


def _cells(machine: PlatformRow, base: PlatformRow, columns: tuple[str, ...]) -> list[Cell]:
    """Each time with its speedup, and the grade; or why there is no answer."""
    if machine.reason:
        return [Cell(brief(machine.reason.splitlines()[0]), WORDS), *[Cell("")] * (2 * len(columns))]
    cells = []
    for name in columns:
        time = value(machine, name)
        cells += [Cell(duration(time)), Cell("base", "faint") if machine is base else speedup(time, value(base, name))]
    cells.insert(_BEFORE_GRADE, Cell(machine.grade, machine.grade))
    return cells


def curves(state: ExplorerState, machines: list[PlatformRow]) -> PlotDescription:
    """The drawn column, for machines, over the first axis."""
    session, view = state.session, state.view
    frame = figure(session.result, Y_COLUMN, session.here, None, SCALES[view.x_scale])
    lines = tuple(
        PlotLine(machine.label, frame.lines[0].x, machine.curve) for machine in machines if machine.curve is not None
    )
    label = label_of(view.y)
    # Phases are times; other results may be energy or cost.
    dimension = session.result.dimensions.get(view.y, SECOND)
    axis = AxisDescription(label, dimension, SCALES[view.y_scale] or suiting([line.y for line in lines]))
    return replace(frame, title="", y=axis, lines=lines)


def why_no_curves(state: ExplorerState, machines: list[PlatformRow]) -> str:
    """Why none of some machines is drawn, in a sentence."""
    if not machines:
        return ""
    if not state.session.grid.axes:
        return "No sweep: select a parameter and press s to draw the time over it on every machine."
    reasons = (machine.curve_reason or machine.reason for machine in machines)
    reason = next(filter(None, reasons), "no point of the axis is feasible")
    return f"No curve of {', '.join(machine.label for machine in machines)}: {reason}"
