"""Breakdown of the time: a stacked bar with its legend. All but the widget are pure functions."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from textual.geometry import Size

from whatif import units
from whatif.plotting.cells import EIGHTHS, TextRun
from whatif.plotting.description import StackedBar, shorten, text_cells
from whatif.tui.widgets.picture import PictureOf
from whatif.tui.widgets.text_columns import padded, widest

_GAP = 3


class LegendEntry(NamedTuple):
    """One part of a bar in words: label, formatted value, share and the style of its colour."""

    label: str
    value: str
    share: str
    style: str


def whole_percent(share: float) -> str:
    """Write a fraction as whole percent; a small positive one is `<1%`, never `0%`."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def bar_legend(bar: StackedBar) -> tuple[LegendEntry, ...]:
    """List label, value, share and style of every segment, if the point has an answer."""
    rows = zip(bar.segments, bar.shares(), bar.styles(), strict=True)
    return tuple(
        LegendEntry(part.label, units.format_quantity(part.value, bar.dimension, 3), whole_percent(share), style)
        for part, share, style in rows
        if math.isfinite(part.value)
    )


def bar_runs(bar: StackedBar, width: int) -> list[TextRun]:
    """Draw a bar of exactly `width` cells: labels where they fit, eighth blocks where segments meet."""
    shares, styles = bar.shares(), bar.styles()
    if not any(shares):
        return [TextRun(shorten("nothing to show", width).ljust(width), "label")] if width > 0 else []
    edges = [round(edge * width * 8) for edge in itertools.accumulate(shares, initial=0.0)]
    runs: list[TextRun] = []
    for index, (left, right) in enumerate(itertools.pairwise(edges)):
        first_full = -(-left // 8)
        if right // 8 > first_full:
            text = _segment_text(bar.segments[index].label, shares[index], right // 8 - first_full)
            runs.append(TextRun(text, "", styles[index]))
        # A segment too thin to reach the left side of the cell gives way to the one that does.
        if right % 8 and right // 8 >= first_full:
            beyond = next(i for i, edge in enumerate(edges[1:]) if edge >= right - right % 8 + 8)
            runs.append(TextRun(EIGHTHS[right % 8], styles[index], styles[beyond]))
    return runs


def _segment_text(label: str, share: float, width: int) -> str:
    candidates = (f"{label} {whole_percent(share)}", label, whole_percent(share), "")
    text = next(text for text in candidates if len(text_cells(text)) <= max(0, width - 2))
    cells = text_cells(text)
    before = (width - len(cells)) // 2
    return " " * before + "".join(cells) + " " * (width - before - len(cells))


def legend_runs(entries: tuple[LegendEntry, ...], width: int, height: int) -> list[list[TextRun]]:
    """Set the entries in aligned columns; what finds no room is counted at the end."""
    if not entries or height <= 0 or width <= 0:
        return []
    texts = _aligned(entries, width)
    size = widest(texts) + 2 + _GAP
    columns = max(1, (width + _GAP) // size)
    rows = min(height, -(-len(entries) // columns))
    lines: list[list[TextRun]] = [[] for _ in range(rows)]
    for index, (entry, text) in enumerate(zip(entries, texts, strict=True)):
        # Across, not down: the order of the bar stays readable when its end is given up.
        if index < rows * columns:
            pad = " " * (size - 2 - len(text_cells(text)))
            lines[index // columns].extend([TextRun("■ ", entry.style), TextRun(text + pad, "label")])
    if len(entries) > rows * columns:
        hidden = len(entries) - rows * columns + 1
        lines[-1][-2:] = [TextRun(f"and {hidden} more", "label")]
    return lines


def _aligned(entries: tuple[LegendEntry, ...], width: int) -> list[str]:
    value_size = max(len(entry.value) for entry in entries)
    label_size = min(widest(entry.label for entry in entries), max(4, width - value_size - 9))
    return [f"{padded(entry.label, label_size)} {entry.value:>{value_size}} {entry.share:>4}" for entry in entries]


class Breakdown(PictureOf[StackedBar]):
    """Shows the parts of a whole as a stacked bar above a legend with values and shares."""

    DEFAULT_CSS = """
    Breakdown { height: auto; }
    """

    def show(self, shown: StackedBar | None) -> None:
        """Show another bar, or nothing."""
        before = self._full_height
        super().show(shown)
        if self._full_height != before:
            self.refresh(layout=True)

    @property
    def _full_height(self) -> int:
        """Height with the full legend, whatever the layout left of it."""
        return len(self.draw(self.size.width, self.app.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Ask for the bar and a full legend."""
        return len(self.draw(width, container.height))

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw the bar and as much of the legend as fits."""
        if self._shown is None:
            return []
        return [bar_runs(self._shown, width), *legend_runs(bar_legend(self._shown), width, height - 1)][:height]
