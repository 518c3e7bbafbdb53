"""Pictures of pixels in place of the cells of a plot, where the terminal has graphics."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as Shade
from textual.errors import NoWidget
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer

from whatif.plotting.description import HEAT_STYLES, SERIES_STYLES
from whatif.plotting.placed import PixelRequest, PlacedPlot
from whatif.tui.terminal.graphics import cell_size
from whatif.tui.widgets.picture import Picture

if TYPE_CHECKING:
    from whatif.plotting.terminal_graphics import DrawnPicture
    from whatif.tui.terminal.graphics import Graphics

PAUSE_SECONDS: Final = 0.15
"""Time without a change after which a picture is drawn."""
_NUMBERS: Final = count(0x770001)
"""Numbers of pictures in kitty, which are colours of cells as well."""
_MOST_CELLS: Final = 297
"""Rows and columns that kitty has names for."""
_RULE: Final = 0.7
"""Share of the background in the colour of grid lines."""


class PixelPicture(Picture):
    """Picture whose cells one of pixels replaces after a moment without changes.

    The picture is as large as the widget, and only shown while nothing covers it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._number = next(_NUMBERS)
        self._version = 0
        self._waiting: Timer | None = None
        self._picture: DrawnPicture | None = None

    @property
    def graphics(self) -> Graphics | None:
        """Graphics of the terminal; None in a program without them."""
        return getattr(self.app, "graphics", None)

    @property
    def shows_pixels(self) -> bool:
        """Whether a picture is shown."""
        return self._picture is not None

    def placed(self) -> tuple[PlacedPlot, ...]:
        """Plots that the cells show; empty if only cells can."""
        return ()

    def painted(self) -> None:
        """Wait for a pause, after which a picture follows the cells that were drawn."""
        self._version += 1
        self._picture = None
        self._wait()

    @property
    def _wanted(self) -> bool:
        return self.marker == "pixels" and self.graphics is not None and self.graphics.available

    def _wait(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE_SECONDS, self._ask) if self._wanted else None

    def _ask(self) -> None:
        """Request a picture of what the cells show."""
        self._waiting = None
        cell, plots = cell_size(), self.placed()
        columns, rows = self.size
        if self.graphics is None or cell is None or not plots or self.app.no_color:
            return
        if not self._uncovered():
            # A window that has just closed, or a message, may still cover the plot; no event says when it is gone.
            if self.screen is self.app.screen and all(node.display for node in self.ancestors_with_self):
                self._wait()
            return
        if self.graphics.protocol == "kitty" and (
            self.app.console.color_system != "truecolor" or max(columns, rows) > _MOST_CELLS
        ):
            return
        request = PixelRequest(plots, columns, rows, cell, self._colours())
        self.graphics.ask(request, self._number, partial(self._take, self._version))

    def _take(self, version: int, drawn: DrawnPicture) -> None:
        """Show a picture, unless something else was drawn meanwhile."""
        if version != self._version or not self.is_attached or self.graphics is None:
            return
        self._picture = drawn
        blank = Strip.blank(self.size.width, self.rich_style)
        if drawn.lines:
            self.graphics.write(drawn.sequence)
            named = self.rich_style + Style(color=Color.from_rgb(*self._number.to_bytes(3, "big")))
            self._strips = [Strip([Segment(line, named)], self.size.width) for line in drawn.lines]
        else:
            self._strips = [blank] * self.size.height
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of the widget; what is drawn over them has to follow."""
        if self._wanted:
            self.call_later(self._restore)
        return super().render_lines(crop)

    def _restore(self) -> None:
        """Draw sixels over cells that were just written; return to cells while something covers them."""
        if self._picture is None:
            if self._waiting is None and self._uncovered():
                self._wait()
        elif not self._uncovered():
            self.redraw()
        elif self.graphics is not None and not self._picture.lines:
            x, y = self.content_region.offset
            self.graphics.write(f"\x1b7\x1b[{y + 1};{x + 1}H{self._picture.sequence}\x1b8")

    def _uncovered(self) -> bool:
        """Whether the whole widget is seen."""
        if not self.is_attached or self.screen is not self.app.screen:
            return False
        try:
            place = self.screen.find_widget(self)
        except NoWidget:
            # On a page that is not shown.
            return False
        whole = bool(place.region) and place.visible_region == place.region
        return whole and not any(cover.region.overlaps(place.region) for cover in self.screen.query("Toast, Tooltip"))

    def _colours(self) -> dict[str, str]:
        """Colour of each name in the theme of the screen."""
        theme = self.app.ansi_theme
        ground = self.background_colors[1].rich_color.get_truecolor(theme, foreground=False).hex
        names = (*SERIES_STYLES, *HEAT_STYLES, "baseline", "marker", "label", "title", "axis", "")
        styles = {name: self.shade(name).color or Color.default() for name in names}
        colours = {name: colour.get_truecolor(theme).hex for name, colour in styles.items()}
        rule = Shade.parse(colours["axis"]).blend(Shade.parse(ground), _RULE).hex
        roles = {"ink": colours["title"], "muted": colours["label"], "faint": colours["axis"]}
        return {**colours, **roles, "ground": ground, "rule": rule}
