"""The line of keys at the bottom of a screen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from whatif.tui.keys.key_areas import ActiveKey, KeyArea, footer_keys

_EDGE = 2
"""Cells at the right of the palette's key."""


class PlacedKey(NamedTuple):
    """A key with its first cell and the cell behind its label."""

    start: int
    end: int
    key: ActiveKey


class KeyBar(Static):
    """Keys of the page, of the widget with the focus and general ones, as many as there is room for.

    One widget draws them all: a widget for each, as in Textual's footer, takes a third of the time of a start.
    """

    ALLOW_SELECT = False

    def __init__(self, *, palette: bool = False) -> None:
        super().__init__(markup=False)
        self._with_palette = palette
        self._pointed: ActiveKey | None = None
        self.keys: tuple[PlacedKey, ...] = ()
        """Visible keys from left to right."""

    def on_mount(self) -> None:
        """Follow the keys of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, self._keys_changed)

    def on_resize(self) -> None:
        """Show as many keys as fit."""
        self.call_after_refresh(self._place)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight the key under the mouse and explain it."""
        self._point(self._key_at(event))

    def on_leave(self) -> None:
        """Take the highlight away."""
        self._point(None)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        key = self._key_at(event)
        if key is not None and key.enabled:
            self.app.simulate_key(key.binding.key)
        elif key is not None:
            self.app.bell()

    def _keys_changed(self, screen: Screen[object]) -> None:
        if self.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._place)

    def _place(self) -> None:
        """Place the keys, and draw them if others are shown than before."""
        # A screen that is cleared away loses its parts one by one.
        if not self.is_attached or self._pruning:
            return
        keys = tuple(self._placed(self.app.size.width))
        if keys != self.keys:
            self.keys = keys
            self._draw()

    def _placed(self, width: int) -> Iterator[PlacedKey]:
        palette = self._palette_key()
        right = width if palette is None else width - palette.width - _EDGE
        # The line at the left of the palette's key covers the gap behind the last one.
        shown = footer_keys(self.screen, right + 1)
        for key, end in zip(shown, accumulate(key.width for key in shown), strict=True):
            yield PlacedKey(end - key.width, end - 1, key)
        if palette is not None:
            yield PlacedKey(right, width - _EDGE, palette)

    def _palette_key(self) -> ActiveKey | None:
        found = self.screen.active_bindings.get(self.app.COMMAND_PALETTE_BINDING) if self._with_palette else None
        if found is None:
            return None
        return ActiveKey(KeyArea.PALETTE, found.binding, found.enabled, self.app.get_key_display(found.binding))

    def _draw(self) -> None:
        parts: list[str | tuple[str, str]] = []
        end = 0
        for place in self.keys:
            parts += [" " * (place.start - end), *self._words(place.key)]
            end = place.end
        self.update(Content.assemble(*parts), layout=False)

    def _words(self, key: ActiveKey) -> Iterator[tuple[str, str]]:
        """The key and its label, and the line at the left of the palette's."""
        ground = " on $block-hover-background" if key is self._pointed else ""
        colour = "$footer-key-foreground" if ground else "$footer-description-foreground"
        if key.area is KeyArea.PALETTE:
            yield "▏", "$foreground 20%"
        yield key.display, f"bold $footer-key-foreground{ground}"
        yield f" {key.binding.description}", f"{'' if key.enabled else 'dim '}{colour}{ground}"

    def _key_at(self, event: events.MouseEvent) -> ActiveKey | None:
        """Key under the mouse."""
        return next((place.key for place in self.keys if place.start <= event.x < place.end), None)

    def _point(self, key: ActiveKey | None) -> None:
        if key is not self._pointed:
            self._pointed = key
            self.tooltip = None if key is None else key.binding.tooltip or key.binding.description
            self._draw()
