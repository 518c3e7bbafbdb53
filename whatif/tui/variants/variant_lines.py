"""The curves of the other variants in the plot of the present one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from whatif.core.result import Result, array_of, has_column
from whatif.core.sweep_figure import figure, suiting
from whatif.plotting.description import PlotDescription, PlotLine
from whatif.tui.state import ExplorerState
from whatif.tui.variants.variant_set import BASELINE, Variant

_MOST_CURVES: Final = 12


def with_variants(description: PlotDescription, state: ExplorerState, y: str) -> PlotDescription:
    """A plot with a curve for each other variant; they replace the parts of the present curve.

    The curves bear the letters of the variants once there are more than the present values and the baseline. Over two
    axes each variant has dashes, and each value of the second axis a colour.
    """
    drawn = others_with(state, y)
    if not drawn or not state.session.grid.axes:
        return description
    many = len(drawn) > 1 or drawn[0][0].letter != BASELINE
    if len(state.session.grid.axes) > 1:
        return _families(description, drawn, y, many=many)
    own = [line for line in description.lines if line.style == "band"]
    first, *parts = (line for line in description.lines if line.style != "band")
    main = replace(first, label=state.variant_label) if many else first
    others = [_line(item, result, first, y, many=many) for item, result in drawn]
    lines = (main, *own, *([] if many else parts), *others)
    axis = (
        description.y if state.view.y_scale != "auto" else replace(description.y, scale=suiting([x.y for x in lines]))
    )
    return replace(description, y=axis, lines=lines)


def others_with(state: ExplorerState, y: str) -> list[tuple[Variant, Result]]:
    """The other variants with their results over the sweep, as far as they have a column."""
    return [(item, result) for item, result in state.others() if has_column(result, y)]


def _families(
    description: PlotDescription, drawn: Sequence[tuple[Variant, Result]], y: str, *, many: bool
) -> PlotDescription:
    """A family of curves with those of other variants, as many as can be distinguished."""
    own = [replace(line, number=0) if line.style == "data" else line for line in description.lines]
    present = [line for line in own if line.style == "data"]
    others = []
    for number, (item, result) in enumerate(drawn[: max(_MOST_CURVES // len(present) - 1, 1)], 1):
        family = (line for line in figure(result, y).lines if line.style == "data")
        for line, like in zip(family, present, strict=True):
            label = _label(item, many=many) if like is present[0] else ""
            others.append(replace(line, label=label, of=like.label, number=number))
    return replace(description, lines=(*own, *others))


def _label(item: Variant, *, many: bool) -> str:
    return item.label if many or item.name else "before"


def _line(item: Variant, result: Result, like: PlotLine, y: str, *, many: bool) -> PlotLine:
    values = np.asarray(result.grid.spread(array_of(result, y)), dtype=np.float64).ravel()
    return PlotLine(
        _label(item, many=many),
        like.x,
        values,
        "baseline" if item.letter == BASELINE else like.style,
    )
