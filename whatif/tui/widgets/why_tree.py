"""The tree of an explanation: what a result is computed from, term by term down to the parameters, as an outline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from textual.binding import BindingType
from textual.content import Content

from whatif.core.derivation import Explanation
from whatif.plotting.cells import TextRun
from whatif.plotting.description import text_cells
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.labels import MUTED, grade_style, percent
from whatif.tui.widgets.cursor_list import CursorList
from whatif.tui.widgets.text_columns import GAP, column, padded, widest

SHOWN_ABOVE: Final = "shown above"
# Deep trees on a narrow screen need the room for names.
_ROOMY: Final = 72
_SHARE, _GRADE = 6, 9
# Equations and sources in fewer cells would say nothing.
_LEAST: Final = 12
_UNFOLDED_DEPTH: Final = 2

Key = tuple[str, ...]


class DerivationRow(NamedTuple):
    """A node of the tree at its place: the parameters on the way to it. What is repeated has no rows below."""

    key: Key
    node: Explanation
    repeated: bool

    @property
    def depth(self) -> int:
        """Depth of the row, from 0."""
        return len(self.key) - 1

    @property
    def folds(self) -> bool:
        """Whether there is anything below."""
        return bool(self.node.inputs) and not self.repeated

    @property
    def label(self) -> str:
        """The parameter it feeds, and the last part of its name if that adds information."""
        parameter, name = (text.rpartition(".")[2] for text in (self.node.parameter, self.node.name))
        if not self.depth:
            return self.node.name
        if self.repeated:
            return f"{parameter or name}, {SHOWN_ABOVE}"
        return name if parameter in ("", name) else f"{parameter} = {name}"


def titled(node: Explanation) -> str:
    """`parameter = name`, or one of the two where they are the same."""
    return f"{node.parameter} = {node.name}" if node.parameter and node.parameter != node.name else node.name


def rows_of(tree: Explanation) -> tuple[DerivationRow, ...]:
    """The rows of a whole tree, from the top; a subtree that comes again has its first row only."""
    return tuple(_rows(tree, (), set()))


def _rows(node: Explanation, above: Key, explained: set[str]) -> Iterator[DerivationRow]:
    row = DerivationRow((*above, node.parameter or node.name), node, bool(node.inputs) and node.name in explained)
    yield row
    explained.add(node.name)
    for child in () if row.repeated else node.inputs:
        yield from _rows(child, row.key, explained)


def unfolded(rows: Sequence[DerivationRow], height: int) -> frozenset[Key]:
    """Rows to unfold in some lines: the topmost ones always, then as fit, level by level, the longest first."""
    inputs = Counter(row.key[:-1] for row in rows)
    used, keys = 1, set()
    for row in sorted(rows, key=lambda row: (row.depth, -(row.node.share or 0))):
        reached = not row.depth or row.key[:-1] in keys
        if row.folds and reached and (row.depth < _UNFOLDED_DEPTH or used + inputs[row.key] <= height):
            keys.add(row.key)
            used += inputs[row.key]
    return frozenset(keys)


class _Columns(NamedTuple):
    """The cells of each column; 0 for one that there is no room for."""

    label: int
    value: int
    share: int
    grade: int
    equation: int
    source: int


class WhyTree(CursorList):
    """Terms and inputs of a result as a tree; terms fold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        extra_binding("why.fold", "left,h", "fold", "", "Fold, or go to the term above"),
        extra_binding("why.unfold", "right,l", "unfold", "", "Unfold, or go to the first input"),
        extra_binding("why.turn", "enter,space", "turn", "", "Fold or unfold, or go to where the term is shown"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._all: tuple[DerivationRow, ...] = ()
        self._rows: tuple[DerivationRow, ...] = ()
        # What the user folded or unfolded, and what is unfolded because there is room.
        self._folds: dict[Key, bool] = {}
        self._roomy: frozenset[Key] = frozenset()
        self._divided: dict[int, _Columns] = {}

    @property
    def row(self) -> DerivationRow | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self._rows else None

    def show(self, tree: Explanation) -> None:
        """Show another explanation; what is folded stays so, and the cursor stays on its term."""
        before, self._all = self._all, rows_of(tree)
        # Other numbers in the same terms must not fold what somebody is looking at.
        if [row.key for row in before] != [row.key for row in self._all]:
            self._roomy = unfolded(self._all, self.size.height)
        self._lay_out(self.row.key if self.row is not None else ())

    def on_resize(self) -> None:
        """Unfold more on a larger screen."""
        self._roomy = unfolded(self._all, self.size.height)
        self._lay_out(self.row.key if self.row is not None else ())

    def _lay_out(self, key: Key) -> None:
        """Find the visible rows; the cursor goes to one of them, or to the nearest above it in the tree."""
        self._rows, self._divided = tuple(self._in_sight()), {}
        places = {row.key: index for index, row in enumerate(self._rows)}
        near = [places[key[:size]] for size in range(1, len(key) + 1) if key[:size] in places]
        self.lay_out(len(self._rows), near[-1] if near else 0)

    def _in_sight(self) -> Iterator[DerivationRow]:
        folded: int | None = None
        for row in self._all:
            if folded is None or row.depth <= folded:
                folded = row.depth if self._is_folded(row) else None
                yield row

    def _is_folded(self, row: DerivationRow) -> bool:
        return row.folds and self._folds.get(row.key, row.key not in self._roomy)

    def action_fold(self) -> None:
        """Fold the term, or go to the one above if it is folded."""
        row = self.row
        if row is not None and row.folds and not self._is_folded(row):
            self.action_turn()
        elif row is not None and row.depth:
            self._lay_out(row.key[:-1])

    def action_unfold(self) -> None:
        """Unfold the term; where it is unfolded, go to its first input."""
        row = self.row
        if row is not None and self._is_folded(row):
            self.action_turn()
        elif row is not None and row.folds:
            self.action_move(1)

    def action_turn(self) -> None:
        """Fold or unfold the term; from one shown above, go there."""
        row = self.row
        if row is None:
            return
        if row.repeated:
            row = next(other for other in self._all if other.node.name == row.node.name)
            self._folds |= {row.key[:size]: False for size in range(1, len(row.key))}
        elif row.folds:
            self._folds[row.key] = not self._is_folded(row)
        self._lay_out(row.key)

    def clicked(self, again: bool) -> None:
        """A click folds and unfolds."""
        self.action_turn()

    def draw_row(self, index: int, width: int) -> Sequence[TextRun]:
        """Draw a row: the outline, the value, its share of the iteration, and where it comes from."""
        if width not in self._divided:
            self._divided[width] = self._columns(width)
        row, columns = self._rows[index], self._divided[width]
        node = row.node
        outline = " " * (_step(width) * row.depth)
        arrow = "↑ " if row.repeated else "  " if not row.folds else "▸ " if self._is_folded(row) else "▾ "
        room = max(0, columns.label - len(outline) - len(arrow))
        return [
            TextRun((outline + arrow)[: columns.label], "guide"),
            TextRun(padded(row.label, room), "term" if node.inputs else "text"),
            TextRun(column(node.value, columns.value, right=True), "strong"),
            TextRun(column("" if node.share is None else percent(node.share), columns.share, right=True), "text"),
            TextRun(column(node.grade if columns.grade > 1 else node.grade[:1], columns.grade), node.grade),
            TextRun(column(node.equation, columns.equation), "term"),
            TextRun(column(node.source, columns.source), "faint"),
        ]

    def _columns(self, width: int) -> _Columns:
        """Divide a line: equations and sources have what names and numbers leave."""
        value = min(widest(row.node.value for row in self._rows), max(9, width // 4)) if width >= 14 else 0
        share = _SHARE if width >= 36 else 0
        label = 2 + max(_step(width) * row.depth + len(text_cells(row.label)) for row in self._rows)
        longest = widest(row.node.equation for row in self._rows)
        # The grade has its whole word where that costs no equation.
        for grade in (_GRADE, 1) if width >= 44 else (0,):
            left = max(0, width - sum(size + GAP for size in (value, share, grade) if size))
            equation = min(left - label - GAP, longest)
            if equation >= min(longest, 2 * _LEAST):
                break
        if equation < _LEAST:
            return _Columns(left, value, share, grade, 0, 0)
        source = left - label - equation - 2 * GAP
        return _Columns(label, value, share, grade, equation, source if source >= _LEAST else 0)


def _step(width: int) -> int:
    return 2 if width >= _ROOMY else 1


def details(row: DerivationRow | None) -> Content:
    """Full text of a row: name and value, equation, grade and source, note."""
    if row is None:
        return Content("")
    node = row.node
    share = "" if node.share is None or math.isnan(node.share) else f"   {percent(node.share)} of the iteration"
    again = f"   {SHOWN_ABOVE}: ⏎ goes there" if row.repeated else ""
    parts = [(titled(node), "bold"), (f"   {node.value}{share}{again}\n", "")]
    if node.equation:
        parts.append((f"{node.equation}\n", "$text-primary"))
    parts += [(node.grade, grade_style(node.grade)), (f"  {node.source}".rstrip(), MUTED)]
    if node.note:
        parts.append((f"\n{node.note}", MUTED))
    return Content.assemble(*parts)
