"""Two plots, one above the other, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from textual import events

from whatif.plotting.cells import TextRun
from whatif.plotting.description import Description, PlotDescription, PlotStack
from whatif.plotting.placed import PlacedPlot
from whatif.plotting.terminal import place_plot, point_at, render_runs
from whatif.tui.widgets.plot_view import PlotView


class _Part(NamedTuple):
    """One of several plots: where it stands, and the cells left of it."""

    description: PlotDescription
    top: int
    rows: int
    margin: int = 0


class StackedPlots(PlotView):
    """Two plots, the lower one if space permits; the crosshair goes through both where they have the same axis."""

    BOTH: ClassVar[int] = 13
    """Least number of lines for the lower plot."""

    def __init__(self) -> None:
        super().__init__()
        self._below: PlotDescription | None = None
        self._parts: tuple[_Part, ...] = ()
        self._shared = True

    def show_both(self, above: Description, below: PlotDescription | None, *, shared: bool = True) -> None:
        """Show other plots, or one alone; `shared`: over the same values, the lower one's axis need not be named."""
        self._below, self._shared = below, shared
        self.show(above)

    @property
    def exported(self) -> Description | PlotStack | None:
        """Both plots, even if only one fits."""
        above = self.seen
        if self._below is None or not isinstance(above, PlotDescription):
            return above
        return PlotStack(above, self._below, self._shared)

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw the upper plot, and the lower one if it fits, with their axes in one column."""
        above, below = self.seen, self._below
        if not isinstance(above, PlotDescription) or below is None or height < self.BOTH:
            self._parts = ()
            return super().draw(width, height)
        if self._shared:
            below = replace(below, x=replace(below.x, limits=above.x.limits))
        low = max(height // 3, 6)
        parts = _Part(above, 0, height - low), _Part(below, height - low, low)
        margins = [_margin(self._lines(part, width)) for part in parts]
        self._parts = tuple(part._replace(margin=max(margins) - own) for part, own in zip(parts, margins, strict=True))
        return [line for part in self._parts for line in self._lines(part, width)]

    def _lines(self, part: _Part, width: int) -> list[list[TextRun]]:
        manner = self._draw_options()
        if part.top and not self._shared:
            manner["cross"] = None
        lines = render_runs(part.description, width - part.margin, part.rows, **manner)
        return [[TextRun(" " * part.margin, ""), *line] for line in lines]

    def placed(self) -> tuple[PlacedPlot, ...]:
        """Both plots, as far as they are drawn."""
        if not self._parts or self.cross is not None:
            return super().placed()
        width, manner = self.size.width, self._draw_options()
        found = [
            place_plot(part.description, width - part.margin, part.rows, (part.margin, part.top), **manner)
            for part in self._parts
        ]
        return tuple(plot for plot in found if plot is not None)

    def value_under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """Values under the mouse, on either plot that has the crosshair; below, that of x alone."""
        offset = event.get_content_offset(self)
        if not self._parts or offset is None:
            return super().value_under(event)
        part = self._parts[offset.y >= self._parts[1].top]
        if part.top and not self._shared:
            return None
        place = offset.x - part.margin, offset.y - part.top
        value = point_at(part.description, self.size.width - part.margin, part.rows, place, **self._draw_options())
        return (value[0], float("nan")) if part.top and value is not None else value


def _margin(lines: Sequence[Sequence[TextRun]]) -> int:
    """The cells left of the vertical axis; it is the first thing that is drawn in the colour of an axis."""
    starts = [_before_axis(line) for line in lines]
    return min((start for start in starts if start is not None), default=0)


def _before_axis(line: Sequence[TextRun]) -> int | None:
    used = 0
    for run in line:
        if run.style == "axis":
            return used
        used += len(run.text)
    return None
