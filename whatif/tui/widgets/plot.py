"""A plot as a widget, and the base of all widgets that draw a picture line by line."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import RenderResult
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from whatif.export.plot import SERIES_STYLES, PlotDescription
from whatif.export.plot_plotext import MarkerName, Run, render_runs


class Picture(Widget):
    """Draws runs of named styles; the strips are kept until data, size or theme change.

    The style names are component classes, so that a stylesheet or a theme recolours every picture alike.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"picture--{name}" for name in (*SERIES_STYLES, "baseline", "marker", "axis", "label", "title")
    }
    # The last two are fixed hues: themes define no fifth and sixth colour that differ from the first four.
    DEFAULT_CSS = """
    Picture { height: 1fr; width: 1fr; }
    Picture > .picture--series-1 { color: $text-primary; }
    Picture > .picture--series-2 { color: $text-warning; }
    Picture > .picture--series-3 { color: $text-success; }
    Picture > .picture--series-4 { color: $text-error; }
    Picture > .picture--series-5 { color: ansi_cyan; }
    Picture > .picture--series-6 { color: ansi_magenta; }
    Picture > .picture--baseline { color: $text-muted; }
    Picture > .picture--marker { color: $foreground; text-style: bold; }
    Picture > .picture--axis { color: $text-disabled; }
    Picture > .picture--label { color: $text-muted; }
    Picture > .picture--title { color: $foreground; text-style: bold; }
    """
    ALLOW_SELECT = False

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name=name, id=id, classes=classes)
        self._strips: list[Strip] = []
        self._drawn: tuple[Size, str] | None = None

    def draw(self, width: int, height: int) -> list[list[Run]]:
        """Return the picture as at most `height` lines of `width` cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Forget the kept picture and ask for a new one."""
        self._drawn = None
        self.refresh()

    def notify_style_update(self) -> None:
        """Colours may have changed: draw again."""
        super().notify_style_update()
        self._drawn = None

    def render(self) -> RenderResult:
        """Show nothing where Textual asks for a whole renderable: pictures are drawn by line."""
        return ""

    def render_line(self, y: int) -> Strip:
        """Return one line of the kept picture."""
        key = (self.size, self.app.theme)
        if self._drawn != key:
            self._strips = self._paint(self.draw(*self.size))
            self._drawn = key
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _paint(self, lines: list[list[Run]]) -> list[Strip]:
        styles: dict[tuple[str, str], Style] = {}
        strips = []
        for line in lines:
            segments = []
            for run in line:
                key = run.style, run.fill
                if key not in styles:
                    styles[key] = self._run_style(*key)
                segments.append(Segment(run.text, styles[key]))
            strips.append(Strip(segments).adjust_cell_length(self.size.width, self.rich_style))
        return strips

    def _run_style(self, name: str, fill: str) -> Style:
        """Colour a run; on a bar the filling's own colour lies behind, and plain text is cut out of it."""
        front = self._named_style(name)
        if not fill:
            return front
        behind = self._named_style(fill)
        if not name:
            return behind + Style(reverse=True)
        return Style(color=front.color, bgcolor=behind.color)

    def _named_style(self, name: str) -> Style:
        component = f"picture--{name}"
        known = component in Picture.COMPONENT_CLASSES
        return self.get_component_rich_style(component) if known else self.rich_style


class PlotView(Picture):
    """Shows a plot description; drawing is all it does, so give it descriptions as fast as you like."""

    def __init__(
        self,
        *,
        marker: MarkerName = "braille",
        name: str | None = None,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._description: PlotDescription | None = None
        self._marker: MarkerName = marker

    @property
    def description(self) -> PlotDescription | None:
        """What is shown."""
        return self._description

    @property
    def marker(self) -> MarkerName:
        """The kind of dots curves are made of."""
        return self._marker

    @marker.setter
    def marker(self, marker: MarkerName) -> None:
        self._marker = marker
        self.redraw()

    def show(self, description: PlotDescription | None) -> None:
        """Show another plot, or nothing."""
        if description is not self._description:
            self._description = description
            self.redraw()

    def draw(self, width: int, height: int) -> list[list[Run]]:
        """Draw the description; without colours on this terminal, letters tell the curves apart."""
        if self._description is None:
            return []
        return render_runs(self._description, width, height, marker=self._marker, keys=self.app.no_color)
