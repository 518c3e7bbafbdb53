"""Base of the widgets that draw a picture line by line."""

from __future__ import annotations

from typing import ClassVar, Final, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.app import RenderResult
from textual.geometry import Size
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from whatif.plotting.cells import TextRun
from whatif.plotting.description import SERIES_STYLES
from whatif.plotting.raster import MarkerName

Shown = TypeVar("Shown")
_ROLES: Final = ("baseline", "marker", "axis", "label", "title", "over-dark", "over-light")
# Viridis (van der Walt and Smith, 2015): even steps of lightness, in order for every kind of colour vision.
HEAT_HUES: Final = {
    "heat-0": "#440154",
    "heat-1": "#482173",
    "heat-2": "#433e85",
    "heat-3": "#38598c",
    "heat-4": "#2d708e",
    "heat-5": "#25858e",
    "heat-6": "#1e9b8a",
    "heat-7": "#2bb07f",
    "heat-8": "#51c56a",
    "heat-9": "#85d54a",
    "heat-10": "#c2df23",
    "heat-11": "#fde725",
}


class Picture(Widget):
    """Draws runs of named styles; the strips are kept until data, size or theme change.

    The style names are component classes, so that a stylesheet or a theme recolours every picture alike. Heat has the
    same colours in all themes: it is no class, for every one costs time with each change of the widget's styles.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"picture--{name}" for name in (*SERIES_STYLES, *_ROLES)}
    # Curves have colours of their own: coloured texts of a theme may be too near to each other.
    DEFAULT_CSS = """
    Picture { height: 1fr; width: 1fr; }
    Picture > .picture--baseline { color: $text-muted; }
    Picture > .picture--marker { color: $foreground; text-style: bold; }
    Picture > .picture--axis { color: $text-disabled; }
    Picture > .picture--label { color: $text-muted; }
    Picture > .picture--title { color: $foreground; text-style: bold; }
    Picture > .picture--over-dark { color: white; text-style: bold; }
    Picture > .picture--over-light { color: black; text-style: bold; }
    """ + "".join(f"Picture > .picture--{style} {{ color: ${style}; }}\n" for style in SERIES_STYLES)
    ALLOW_SELECT = False
    marker: var[MarkerName] = var("braille", init=False)
    """The kind of dots that curves are made of."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._strips: list[Strip] = []
        self._drawn: tuple[Size, str] | None = None
        # Textual forgets its own with every refresh.
        self._styles: dict[tuple[str, str], Style] = {}

    def watch_marker(self) -> None:
        """Draw with other dots."""
        self.redraw()

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
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
        self._styles.clear()

    def render(self) -> RenderResult:
        """Show nothing if Textual asks for a whole renderable: pictures are drawn by line."""
        return ""

    def render_line(self, y: int) -> Strip:
        """Return one line of the kept picture."""
        key = (self.size, self.app.theme)
        if self._drawn != key:
            self._strips = self._paint(self.draw(*self.size))
            self._drawn = key
            self.painted()
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def painted(self) -> None:
        """Hook that is called after each drawing."""

    def _paint(self, lines: list[list[TextRun]]) -> list[Strip]:
        styles, width, plain = self._styles, self.size.width, self.rich_style
        strips = []
        for line in lines:
            segments = []
            for text, style, fill in line:
                key = style, fill
                if key not in styles:
                    styles[key] = self._run_style(*key)
                segments.append(Segment(text, styles[key]))
            strips.append(Strip(segments).adjust_cell_length(width, plain))
        return strips

    def _run_style(self, name: str, fill: str) -> Style:
        """Colour a run; on a bar the filling's own colour lies behind, and plain text is cut out of it."""
        front = self.shade(name)
        if not fill:
            return front
        behind = self.shade(fill)
        if not name:
            return behind + Style(reverse=True)
        return Style(color=front.color, bgcolor=behind.color)

    def shade(self, name: str) -> Style:
        """Style of a name in pictures."""
        if name in HEAT_HUES:
            return self.rich_style + Style(color=HEAT_HUES[name])
        component = f"picture--{name}"
        known = component in Picture.COMPONENT_CLASSES
        return self.get_component_rich_style(component) if known else self.rich_style


class PictureOf(Picture, Generic[Shown]):
    """Picture of one thing at a time."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._shown: Shown | None = None

    def show(self, shown: Shown | None) -> None:
        """Show another thing, or nothing."""
        self._shown = shown
        self.redraw()
