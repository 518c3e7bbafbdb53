"""The elasticities of a result as bars to both sides of a line: less of it to the left, more to the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from whatif.plotting.cells import TextRun
from whatif.studies.elasticity import Elasticity
from whatif.tui.jobs.elasticity_job import written
from whatif.tui.widgets.cursor_list import CursorList
from whatif.tui.widgets.text_columns import GAP, column, padded, tail, widest

_NUMBER, _CHANGE, _VALUE = 6, 5, 18
_SIDES = {True: (" faster ", " slower "), False: (" less ", " more ")}


class ElasticityBars(CursorList):
    """Elasticities of a result in each parameter, as bars."""

    TITLES: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self._items: tuple[Elasticity, ...] = ()
        self._sides = _SIDES[True]
        self._longest_path = self._longest_value = 0
        # How far the elasticities go to both sides.
        self._range = 0.0, 0.0

    @property
    def item(self) -> Elasticity | None:
        """Item under the cursor."""
        return self._items[self.cursor] if self._items else None

    def show(self, items: Sequence[Elasticity], *, timed: bool = True) -> None:
        """Show other elasticities, of a time or of another result; the cursor stays on its parameter, if it is
        there."""
        self._sides = _SIDES[timed]
        path = self.item.path if self.item is not None else ""
        self._items = tuple(items)
        self._longest_path = widest(item.path for item in items)
        self._longest_value = min(widest(item.value for item in items), _VALUE)
        known = [item.elasticity for item in items if not item.reason]
        self._range = -min([0.0, *known]), max([0.0, *known])
        self.lay_out(len(items), next((index for index, item in enumerate(items) if item.path == path), 0))

    def draw_title(self, line: int, width: int) -> Sequence[TextRun]:
        """Name the columns, and the two sides of the bars."""
        path, sides, change, value = self._columns(width)
        faster, slower = (name if len(name) <= size else "" for name, size in zip(self._sides, sides, strict=True))
        room = sides[1] + GAP + _NUMBER
        number = "elasticity".rjust(room - len(slower)) if len(slower) + 10 <= room else " " * (room - len(slower))
        return [
            TextRun(padded("parameter", path) + " " * GAP, "faint"),
            TextRun(faster.rjust(sides[0]), "good"),
            TextRun("│", "guide"),
            TextRun(slower, "bad"),
            TextRun(number + column("step", change) + column("now", value, right=True), "faint"),
        ]

    def draw_row(self, index: int, width: int) -> Sequence[TextRun]:
        """Draw a parameter: its path, the bar, the number, what was compared, the value."""
        item = self._items[index]
        path, sides, change, value = self._columns(width)
        left, right = self._bar(item.elasticity, sides) if not item.reason else ("".ljust(sides[0]), "".ljust(sides[1]))
        idle = "text" if item.elasticity and not item.reason else "faint"
        return [
            TextRun(padded(tail(item.path, path), path) + " " * GAP, idle),
            TextRun(left, "good"),
            TextRun("│", "guide"),
            TextRun(right, "bad"),
            TextRun(column(written(item), _NUMBER, right=True), "strong" if idle == "text" else "faint"),
            TextRun(column(item.change.replace(" and", ""), change) + column(item.value, value, right=True), "faint"),
        ]

    def _bar(self, elasticity: float, sides: tuple[int, int]) -> tuple[str, str]:
        """The two sides of the line, one of them with a bar; what is too short for one is a thin mark."""
        low, high = self._range
        side = sides[elasticity > 0]
        halves = round(2 * side * abs(elasticity) / ((high if elasticity > 0 else low) or 1))
        thin = elasticity != 0 and side > 0 and not halves
        if elasticity > 0:
            return " " * sides[0], ("█" * (halves // 2) + "▌" * (halves % 2) + "▏" * thin).ljust(sides[1])
        return ("▕" * thin + "▐" * (halves % 2) + "█" * (halves // 2)).rjust(sides[0]), " " * sides[1]

    def _columns(self, width: int) -> tuple[int, tuple[int, int], int, int]:
        """The cells of the path, of both sides of the bars, of what was compared, and of the value."""
        change = _CHANGE if width >= 44 else 0
        value = self._longest_value if width >= 72 else 0
        room = max(0, width - GAP - 1 - sum(size + GAP for size in (_NUMBER, change, value) if size))
        path = min(self._longest_path, max(2 * room // 3, room - 60))
        low, high = self._range
        left = round((room - path) * low / (low + high)) if low + high else (room - path) // 2
        return path, (left, room - path - left), change, value
