"""Zoom and pan of a plot by keys, wheel and drag."""

from __future__ import annotations

from typing import Final

import numpy as np
from textual import events
from textual.binding import Binding, BindingType

from whatif.plotting.axis_view import axis_space
from whatif.plotting.description import Description, PlotDescription
from whatif.plotting.window import PlotWindow, Which
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.widgets.picture import Picture

_WHEEL: Final = 0.8
"""Factor of one step of the wheel."""
_PAN: Final = 0.25
"""Share of the visible part by which a key pans."""


ZOOM_KEYS: Final[list[BindingType]] = [
    Binding("plus", "zoom('x', 0.5)", "zoom", key_display="+", tooltip="Zoom in along x", id="plot.zoom_in"),
    extra_binding("plot.zoom_out", "minus", "zoom('x', 2)", "", "Zoom out along x"),
    extra_binding("plot.zoom_in_y", "right_curly_bracket", "zoom('y', 0.5)", "", "Zoom in along y"),
    extra_binding("plot.zoom_out_y", "left_curly_bracket", "zoom('y', 2)", "", "Zoom out along y"),
    extra_binding("plot.stretch", "shift+up", "stretch(0.5)", "", "Zoom curves in along y"),
    extra_binding("plot.shrink", "shift+down", "stretch(2)", "", "Zoom curves out along y"),
    extra_binding("plot.pan_left", "shift+left", "pan(-1)", "", "Move the visible part to the left"),
    extra_binding("plot.pan_right", "shift+right", "pan(1)", "", "Move the visible part to the right"),
    Binding("equals_sign", "whole", "whole", key_display="=", tooltip="Show the whole plot", id="plot.whole"),
]


class Zooming(Picture):
    """Picture of a plot that may be visible in part; the window stays as long as the axes do."""

    def __init__(self) -> None:
        super().__init__()
        self.description: Description | None = None
        """Description shown now."""
        self._window = PlotWindow()
        self._held: tuple[tuple[float, float], PlotWindow] | None = None
        self._dragged = False

    @property
    def seen(self) -> Description | None:
        """Visible part of the description."""
        return None if self.description is None else self._window.of(self.description)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys without effect to others: pan and reset only where a part is visible."""
        if action == "zoom":
            return self.description is not None
        if action == "stretch":
            return isinstance(self.description, PlotDescription)
        if action in ("pan", "whole"):
            return self._window != PlotWindow()
        return super().check_action(action, parameters)

    def action_zoom(self, which: Which, factor: float) -> None:
        """Zoom along an axis, around the crosshair if it is shown."""
        if self.description is not None:
            self._look(self._window.zoomed(self.description, which, factor, self.centre(which)))

    def action_stretch(self, factor: float) -> None:
        """Zoom along y; a heat map moves its crosshair by the same keys."""
        self.action_zoom("y", factor)

    def action_pan(self, direction: int) -> None:
        """Move the visible part along x."""
        if self.description is not None:
            distance = direction * _PAN * self._window.length(self.description, "x")
            self._look(self._window.panned(self.description, "x", distance))

    def action_whole(self) -> None:
        """Show the whole plot."""
        self._look(PlotWindow())

    def centre(self, which: Which) -> float | None:
        """Position in axis space that a key zooms around; None for the middle."""
        return None

    def value_under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """Values of x and y under the mouse."""
        raise NotImplementedError

    def _look(self, window: PlotWindow) -> None:
        """Show another part."""
        if window != self._window:
            begun = PlotWindow() in (window, self._window)
            self._window = window
            self.redraw()
            if begun and self.has_focus:
                self.refresh_bindings()

    def keep_window(self, before: Description | None) -> None:
        """Forget the parts of axes that are other ones than those of the plot before."""
        now = self.description
        if now is None or before is None:
            self._look(PlotWindow())
        else:
            x = self._window.x if now.x == before.x else None
            self._look(PlotWindow(x, self._window.y if now.y == before.y else None))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in at the mouse."""
        self._wheel(event, _WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out at the mouse."""
        self._wheel(event, 1 / _WHEEL)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        """Zoom along x; with shift or ctrl along y."""
        place = self._position_under(event)
        if self.description is None or place is None:
            return
        event.stop()
        which: Which = "y" if event.shift or event.ctrl else "x"
        centre = place[which == "y"]
        if np.isfinite(centre):
            self._look(self._window.zoomed(self.description, which, factor, centre))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag."""
        place = self._position_under(event)
        self._dragged, self._held = False, None
        if place is not None and self._window != PlotWindow():
            self._held = place, self._window
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        """End dragging."""
        if self._held is not None:
            self._held = None
            self.release_mouse()

    def drag(self, event: events.MouseMove) -> bool:
        """Pan so that what was taken hold of stays below the mouse; whether something is held."""
        if self._held is None or self.description is None:
            return False
        place = self._position_under(event)
        if place is not None:
            window = self._window
            for which, taken, now in zip(("x", "y"), self._held[0], place, strict=True):
                axis: Which = "y" if which == "y" else "x"
                if np.isfinite(taken - now):
                    window = window.panned(self.description, axis, taken - now)
            self._dragged = self._dragged or window != self._window
            self._look(window)
        return True

    def _position_under(self, event: events.MouseEvent) -> tuple[float, float] | None:
        """Position under the mouse in axis space."""
        value = self.value_under(event)
        if value is None or self.description is None:
            return None
        x, y = (
            float(axis_space(np.array(number), axis))
            for number, axis in zip(value, (self.description.x, self.description.y), strict=True)
        )
        return x, y
