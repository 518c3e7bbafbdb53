"""A plot as a widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from whatif.plotting.axis_view import axis_space, from_axis_space
from whatif.plotting.cells import TextRun
from whatif.plotting.crosshair import move_crosshair, present_point
from whatif.plotting.description import (
    AxisDescription,
    Description,
    HeatMap,
    PlotDescription,
    PlotStack,
)
from whatif.plotting.placed import PlacedPlot
from whatif.plotting.terminal import DrawOptions, place_plot, point_at, render_runs
from whatif.plotting.window import PlotWindow, Which, first_curve_at
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.widgets.pixel_picture import PixelPicture
from whatif.tui.widgets.zooming import ZOOM_KEYS, Zooming

_ALL: Final = 1_000_000_000


def _key(name: str, keys: str, steps: int, steps_up: int, tooltip: str) -> Binding:
    return extra_binding(f"plot.{name}", keys, f"move({steps}, {steps_up})", "", tooltip)


class PlotView(PixelPicture, Zooming, can_focus=True):
    """Curves or a heat map; the arrow keys, or the mouse, move a crosshair that reads the values."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *ZOOM_KEYS,
        _key("left", "left,h", -1, 0, "Move the crosshair one point to the left"),
        _key("right", "right,l", 1, 0, "Move the crosshair one point to the right"),
        _key("far_left", "shift+left,ctrl+left", -10, 0, "Move the crosshair ten points to the left"),
        _key("far_right", "shift+right,ctrl+right", 10, 0, "Move the crosshair ten points to the right"),
        _key("first", "home", -_ALL, 0, "Move the crosshair to the first point"),
        _key("last", "end", _ALL, 0, "Move the crosshair to the last point"),
        _key("up", "up,k", 0, 1, "Move the crosshair of a heat map one point up"),
        _key("down", "down,j", 0, -1, "Move the crosshair of a heat map one point down"),
        _key("far_up", "shift+up,ctrl+up", 0, 10, "Move the crosshair of a heat map ten points up"),
        _key("far_down", "shift+down,ctrl+down", 0, -10, "Move the crosshair of a heat map ten points down"),
        Binding(
            "enter",
            "adopt",
            "adopt",
            key_display="⏎",
            tooltip="Adopt the values under the crosshair as edits",
            id="plot.adopt",
        ),
        Binding(
            "full_stop",
            "resample",
            "sweep this",
            key_display=".",
            tooltip="Sweep the visible part with more points",
            id="plot.resample",
        ),
        # Textual has the key as well, without words.
        Binding(
            "shift+tab",
            "app.focus_previous",
            "back",
            key_display="⇧tab",
            tooltip="Go back to the parameters, or to what stands before the plot",
            id="plot.back",
        ),
        extra_binding("plot.away", "escape", "take_away", "", "Hide the crosshair"),
    ]

    @dataclass(eq=False)
    class AdoptionRequested(Message):
        """Request to edit the parameters to the values under the crosshair."""

        plot: PlotView
        cross: tuple[float, float]

    @dataclass(eq=False)
    class PartRequested(Message):
        """Request for more points in a part of the axes; None for an axis that is visible whole, or no parameter."""

        parts: tuple[tuple[float, float] | None, ...]

    adopts: bool = False
    """Whether the axes are swept parameters, whose values can be adopted."""

    def __init__(self) -> None:
        super().__init__()
        self.cross: tuple[float, float] | None = None
        """Place of the crosshair, x and, on a heat map, y; None without one."""
        # A crosshair under the mouse goes with it; one put there by a key or a click stays.
        self._stays = False

    @property
    def exported(self) -> Description | PlotStack | None:
        """Description for a file of the plot: its visible part."""
        return self.seen

    def show(self, description: Description | None) -> None:
        """Show another plot, or nothing; the crosshair stays as long as the axes are of the same parameters."""
        if description is self.description:
            return
        before = self.description
        kept = self.cross if _parameters(description) == _parameters(before) else None
        self.description = description
        self.keep_window(before)
        self._place(move_crosshair(description, kept) if description is not None and kept is not None else None)
        self.redraw()
        if (before is None) != (description is None) and self.has_focus:
            # The keys of the first plot belong in the footer.
            self.refresh_bindings()

    def _place(self, cross: tuple[float, float] | None, *, stays: bool | None = None) -> None:
        """Put the crosshair somewhere, or take it away."""
        self._stays = (self._stays if stays is None else stays) and cross is not None
        if cross != self.cross:
            begun = (cross is None) != (self.cross is None)
            self.cross = cross
            self.redraw()
            if begun and self.has_focus:
                self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to others while there is nothing to move, up and down on curves, nothing to take away."""
        if action == "take_away":
            return self.cross is not None
        if action == "adopt":
            return self.adopts and self.cross is not None
        if action == "resample":
            return self.adopts and any(self._visible_parts())
        if action == "move":
            return self.description is not None and (parameters[1] == 0 or isinstance(self.description, HeatMap))
        return super().check_action(action, parameters)

    def action_move(self, steps: int, steps_up: int) -> None:
        """Move the crosshair by points; the first time, from the present point."""
        if self.description is not None:
            start = self.cross or present_point(self.description)
            cross = move_crosshair(self.description, start, steps, steps_up)
            self._place(cross, stays=True)
            self._follow(cross)

    def _follow(self, cross: tuple[float, float]) -> None:
        """Move the visible part to the crosshair."""
        window, description = self._window, self.description
        assert description is not None  # noqa: S101 - there is a crosshair
        for which, value, axis in (("x", cross[0], description.x), ("y", cross[1], description.y)):
            position = float(axis_space(np.array(value), axis))
            window = window.around(description, "y" if which == "y" else "x", position)
        self._look(window)

    def centre(self, which: Which) -> float | None:
        """Position of the crosshair along an axis; for y of curves, that of the first one."""
        plot = self.description
        if isinstance(plot, PlotDescription) and which == "y":
            return first_curve_at(self._window.of(plot), self.cross)
        if plot is None or self.cross is None:
            return None
        return float(axis_space(np.array(self.cross[which == "y"]), plot.y if which == "y" else plot.x))

    def point_to(self, cross: tuple[float, float]) -> None:
        """Put the crosshair on a point, and take the focus."""
        self._place(cross, stays=True)
        self._follow(cross)
        self.focus()

    def action_adopt(self) -> None:
        """Ask for the values under the crosshair."""
        if self.cross is not None:
            self.post_message(self.AdoptionRequested(self, self.cross))

    def action_resample(self) -> None:
        """Ask for more points in the visible part of the axes."""
        parts = self._visible_parts()
        if any(parts):
            self._look(PlotWindow())
            self.post_message(self.PartRequested(parts))

    def _visible_parts(self) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
        """Ends of the visible part of x and of y, which is a parameter on a heat map alone."""
        plot, window = self.description, self._window
        x = None if plot is None or window.x is None else _ends(window.x, plot.x)
        y = _ends(window.y, plot.y) if isinstance(plot, HeatMap) and window.y is not None else None
        return x, y

    def action_take_away(self) -> None:
        """Hide the crosshair."""
        self._place(None)

    def on_click(self, event: events.Click) -> None:
        """Put the crosshair on the point nearest to the mouse."""
        if not self._dragged:
            self._place(self._under(event) or self.cross, stays=True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Let the crosshair follow the mouse until it is put somewhere."""
        if not self.drag(event) and not self._stays:
            self._place(self._under(event))

    def on_leave(self) -> None:
        """The mouse takes its crosshair with it."""
        if not self._stays:
            self._place(None)

    def _under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """The point nearest to the mouse."""
        value = self.value_under(event)
        return None if value is None or self.description is None else move_crosshair(self.description, value)

    def value_under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """Values of x and y under the mouse."""
        offset = event.get_content_offset(self)
        if self.seen is None or offset is None:
            return None
        return point_at(self.seen, self.size.width, self.size.height, (offset.x, offset.y), **self._draw_options())

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw the description; without colours, characters distinguish the values."""
        if self.seen is None:
            return []
        return render_runs(self.seen, width, height, **self._draw_options())

    def placed(self) -> tuple[PlacedPlot, ...]:
        """The plot; none while a crosshair moves over its cells."""
        if self.seen is None or self.cross is not None:
            return ()
        found = place_plot(self.seen, *self.size, **self._draw_options())
        return () if found is None else (found,)

    def _draw_options(self) -> DrawOptions:
        # Sixteen colours are enough for curves, but have no order that a heat map could be read by.
        few = isinstance(self.description, HeatMap) and self.app.console.color_system == "standard"
        colours = not (self.app.no_color or few)
        return {"marker": self.marker, "colours": colours, "cross": self.cross, "reserve": True}


def _ends(part: tuple[float, float], axis: AxisDescription) -> tuple[float, float]:
    return from_axis_space(part[0], axis), from_axis_space(part[1], axis)


def _parameters(description: Description | None) -> tuple[str, ...]:
    """The names of the axes that the crosshair moves along."""
    if description is None:
        return ()
    return (description.x.label, description.y.label) if isinstance(description, HeatMap) else (description.x.label,)
