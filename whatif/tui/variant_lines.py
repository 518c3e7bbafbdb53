"""The curves of the other variants in the plot of the present one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whatif.core.result import Result, array_of, has_column
from whatif.core.sweep_figure import suiting
from whatif.plotting.description import PlotDescription, PlotLine
from whatif.tui.state import ExplorerState
from whatif.tui.variant_set import BASELINE, Variant


def with_variants(description: PlotDescription, state: ExplorerState, y: str) -> PlotDescription:
    """A plot of a single axis with a curve for each other variant; the parts of the present curve give way to them.

    The curves bear the letters of the variants once there are more than the present values and the baseline.
    """
    drawn = [(item, result) for item, result in state.others() if has_column(result, y)]
    if not drawn or len(state.session.grid.axes) != 1:
        return description
    many = len(drawn) > 1 or drawn[0][0].letter != BASELINE
    own = [line for line in description.lines if line.style == "band"]
    first, *parts = (line for line in description.lines if line.style != "band")
    main = replace(first, label=state.variant_label) if many else first
    others = [_line(item, result, first, y, many=many) for item, result in drawn]
    lines = (main, *own, *([] if many else parts), *others)
    axis = (
        description.y if state.view.y_scale != "auto" else replace(description.y, scale=suiting([x.y for x in lines]))
    )
    return replace(description, y=axis, lines=lines)


def _line(item: Variant, result: Result, like: PlotLine, y: str, *, many: bool) -> PlotLine:
    values = np.asarray(result.grid.spread(array_of(result, y)), dtype=np.float64).ravel()
    return PlotLine(
        item.label if many or item.name else "before",
        like.x,
        values,
        "baseline" if item.letter == BASELINE else like.style,
    )
