"""The tree of parameters: tables that fold, and every value with its unit and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size

from whatif.axes import first_number
from whatif.core.parts_in_use import parts_in_use
from whatif.core.session import NudgeSize, Session
from whatif.plotting.description import shorten, text_cells
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.tui.commands.explorer_commands import Also, Change, Nudge, Revert, SweepParameter
from whatif.tui.events import ChangeRequested, ErrorReported, ParameterSelected, PromptRequested, Purpose
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.page_registry import page_named
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.line_list import movement_keys
from whatif.tui.widgets.parameter_rows import TreeRow, ancestors, idle_tables, matters, outline, with_parts
from whatif.tui.widgets.phase_keys import PHASE_KEYS, PhaseKeys
from whatif.units import format_quantity

_TABLE: Final = "this row has no value of its own; select one below it"

EDITED, SWEPT, COMPUTED = "●", "↔", "="
_PARTS = ("table", "guide", "name", "value", "unit", "idle", "edited", "swept", "computed", "cursor")
# Guides of two cells look better, but deep tables on a narrow screen need the room for names.
_ROOMY = 42


class Shown(NamedTuple):
    """A parameter in words: number, unit, mark, and the style of its state."""

    value: str
    unit: str
    mark: str
    style: str


class ParameterTree(PhaseKeys):
    """Outline of tables and parameters."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"parameter-tree--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *movement_keys("parameter"),
        Binding("enter,i", "enter", "edit", key_display="⏎", tooltip="Type another value", id="parameter.edit"),
        Binding(
            "left,minus,h",
            "step(-1)",
            "nudge",
            key_display="←→",
            tooltip="Decrease the value a little, or fold the table",
            id="parameter.less",
        ),
        extra_binding(
            "parameter.more",
            "right,plus,equals_sign,l",
            "step(1)",
            "",
            "Increase the value a little, or unfold the table",
        ),
        extra_binding("parameter.much_less", "shift+left,<", "step(-1, 'COARSE')", "", "Decrease the value a lot"),
        extra_binding("parameter.much_more", "shift+right,>", "step(1, 'COARSE')", "", "Increase the value a lot"),
        extra_binding("parameter.halve", "[", "step(-1, 'FACTOR')", "halve", "Halve the value"),
        extra_binding("parameter.double", "]", "step(1, 'FACTOR')", "double", "Double the value"),
        extra_binding("parameter.revert", "backspace", "revert", "revert", "Restore the file's value"),
        extra_binding("parameter.fold", "space", "turn", "", "Fold or unfold the table"),
        Binding("s", "sweep", "sweep", tooltip="Sweep this parameter over its usual range", id="parameter.sweep"),
        extra_binding("parameter.range", "S", "ask('RANGE')", "range", "Sweep this parameter over a range"),
        Binding("a", "also", "add axis", tooltip="Sweep this parameter as well, or no longer", id="parameter.also"),
        extra_binding(
            "parameter.also_range", "A", "ask('SECOND')", "axis range", "Sweep this parameter as well, over a range"
        ),
        extra_binding("parameter.seek", "T", "ask('TARGET')", "target", "Seek the value that meets a target"),
        Binding("/", "ask('FILTER')", "find", tooltip="Find parameters by words of their path", id="parameter.find"),
        *PHASE_KEYS,
    ]
    STYLES, GROUND, AROUND = "parameter-tree", "name", 3

    def __init__(self, state: ExplorerState) -> None:
        super().__init__()
        self._state = state
        self._folded = set(idle_tables(state.session.program))
        self.words = ""
        """Filter of the rows."""
        self._rows: tuple[TreeRow, ...] = ()
        self._parts = parts_in_use(state.session.program.loaded)
        self._drawn: dict[int, Shown] = {}
        """Texts of the visible parameters, by row."""

    @property
    def row(self) -> TreeRow | None:
        """Item under the cursor."""
        return self._rows[self.cursor] if self._rows else None

    @property
    def parameter(self) -> Parameter | None:
        """The parameter that the cursor is on."""
        row = self.row
        return None if row is None or row.table else self.session.program.parameters.get(row.path)

    @property
    def path(self) -> str:
        """Path of the parameter or part that the cursor is on; empty on a table."""
        return "" if self.row is None or self.row.table else self.row.path

    @property
    def place(self) -> str:
        """Path of the row that the cursor is on, of a table too."""
        return "" if self.row is None else self.row.path

    def on_mount(self) -> None:
        """Begin at the swept parameter."""
        self._lay_out()
        swept = self.session.grid.parameters()
        if swept:
            self.select(swept[0])

    @property
    def session(self) -> Session:
        """The session shown."""
        return self._state.session

    @property
    def cursor_line(self) -> int:
        """The line of the cursor on the screen, from the top of the list."""
        return self.cursor - self.scroll_offset.y

    @property
    def indent(self) -> int:
        """The cells before the name in the line of the cursor."""
        return 0 if self.row is None else len(self._guides(self.row).text) - 1

    def show(self, state: ExplorerState) -> None:
        """Show another state; the cursor stays on its parameter."""
        program, parts = state.session.program, parts_in_use(state.session.program.loaded)
        same = [*program.parameters, *parts] == [*self.session.program.parameters, *self._parts]
        self._state, self._parts = state, parts
        if same:
            self._draw_changes()
        else:
            self._lay_out()

    def _draw_changes(self) -> None:
        """Draw the visible parameters anew whose texts differ."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        visible = enumerate(self._rows[top : top + height], top)
        before, self._drawn = self._drawn, {at: self._shown(row.path) for at, row in visible if not row.table}
        for at in [at for at, shown in self._drawn.items() if before.get(at) != shown]:
            self.refresh_line(at)

    def filter(self, words: str) -> None:
        """Show only parameters whose path has all the words."""
        self.words = words
        self._lay_out()

    def select(self, path: str) -> None:
        """Move the cursor to a parameter, unfolding what hides it."""
        self._folded.difference_update(ancestors(path))
        self._lay_out()
        at = next((i for i, row in enumerate(self._rows) if row.path == path), None)
        if at is not None:
            self.move_to(at)

    def _lay_out(self) -> None:
        """Make the rows anew, with the cursor on the same row or as near as can be."""
        before = self.row.path if self.row is not None else ""
        self._drawn = {}
        self._rows = outline(with_parts(self.session.program.parameters, self._parts), self._folded, self.words)
        self.virtual_size = Size(0, len(self._rows))
        self.move_to(self._place_of(before))
        # How far can be scrolled is only known when the new size is laid out.
        self.call_after_refresh(self.keep_in_sight)

    def _place_of(self, path: str) -> int:
        """The row of a path; else the first parameter found by a filter, or the innermost visible table around it."""
        places = {row.path: index for index, row in enumerate(self._rows)}
        if self.words and path not in places:
            return next((index for index, row in enumerate(self._rows) if not row.table), 0)
        known = [places[near] for near in (*ancestors(path), path) if near in places]
        return known[-1] if known else 0

    def pointed(self, before: int) -> None:
        """Report the row under the cursor."""
        # A message that is made while the panel around handles one of its own would stop at that panel.
        self.call_next(self._report_row)

    def _report_row(self) -> None:
        self.post_message(ParameterSelected(self.place))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave a key to the visible page if it has that key too."""
        page = page_named(self._state.page) if action == "add_here" else None
        return page is None or all(key.key != "n" for key in page.load().KEYS)

    def clicked(self, again: bool) -> None:
        """Fold a table; edit a parameter on a second click."""
        if not self.path:
            self.action_turn()
        elif again:
            self.action_enter()

    def action_turn(self) -> None:
        """Fold or unfold the table under the cursor."""
        if self.row is not None and self.row.table:
            self._fold(self.row, fold=not self.row.folded)

    def _fold(self, row: TreeRow, *, fold: bool) -> None:
        change = self._folded.add if fold else self._folded.discard
        change(row.path)
        self._lay_out()

    def action_enter(self) -> None:
        """Edit a parameter, fold or unfold a table."""
        if self.path:
            self.post_message(PromptRequested(Purpose.VALUE))
        else:
            self.action_turn()

    def action_step(self, steps: int, size: str = "FINE") -> None:
        """Nudge a parameter; fold or unfold a table."""
        if self.parameter is not None:
            self.post_message(ChangeRequested(Nudge(self.parameter.path, steps, NudgeSize[size])))
        elif self.path:
            self.action_enter()
        elif self.row is not None:
            self._fold(self.row, fold=steps < 0)

    def action_sweep(self) -> None:
        """Sweep the parameter over its default range."""
        self._change(SweepParameter)

    def action_also(self) -> None:
        """Sweep the parameter as well, or no longer."""
        self._change(Also)

    def _change(self, change: Callable[[str], Change]) -> None:
        """Ask for a change of the parameter under the cursor."""
        if self.parameter is None:
            self.post_message(ErrorReported(_TABLE))
        else:
            self.post_message(ChangeRequested(change(self.parameter.path)))

    def action_revert(self) -> None:
        """Give the parameter the file's value back."""
        if self.path:
            self.post_message(ChangeRequested(Revert(self.path)))

    def action_ask(self, purpose: str) -> None:
        """Prompt for a line."""
        if self.parameter is not None or Purpose[purpose] is Purpose.FILTER:
            self.post_message(PromptRequested(Purpose[purpose]))
        else:
            self.post_message(ErrorReported(_TABLE))

    def row_segments(self, index: int, width: int) -> list[Segment]:
        """Segments of a table or a parameter."""
        row = self._rows[index]
        return self._table_line(row) if row.table else self._parameter_line(row, width)

    def _guides(self, row: TreeRow) -> Segment:
        step = "│ " if self.scrollable_content_region.width >= _ROOMY else "│"
        return Segment(step * row.depth, self.part("guide"))

    def _table_line(self, row: TreeRow) -> list[Segment]:
        arrow = "▸ " if row.folded else "▾ "
        return [self._guides(row), Segment(arrow, self.part("guide")), Segment(row.name, self.part("table"))]

    def _parameter_line(self, row: TreeRow, width: int) -> list[Segment]:
        guides, shown = self._guides(row), self._shown(row.path)
        room = width - len(guides.text) - 3
        value = shorten(shown.value, max(room // 2, room - len(row.name)))
        text = f"{value} {shown.unit}".rstrip()
        name = shorten(row.name, max(0, room - len(text_cells(text)) - 1))
        gap = " " * (room - len(text_cells(name)) - len(text_cells(text)))
        known = shown.style not in ("value", "idle")
        return [
            guides,
            Segment(name, self.part("idle" if shown.style == "idle" else "name")),
            Segment(f"{gap}{shown.mark} ", self.part(shown.style)),
            Segment(value, self.part(shown.style)),
            Segment(text[len(value) :], self.part(shown.style if known or shown.style == "idle" else "unit")),
            Segment(" ", self.part("name")),
        ]

    def _shown(self, path: str) -> Shown:
        """Texts of a parameter or a part in the tree."""
        session = self.session
        if path in self._parts:
            edited = path in session.scenario.overrides
            return Shown(self._parts[path] or "no part", "", EDITED if edited else " ", "edited" if edited else "value")
        parameter = session.program.parameters[path]
        number, unit = _words_of(parameter, session)
        swept, edited = parameter.path in session.grid.parameters(), parameter.path in session.scenario.overrides
        if swept or edited:
            return Shown(number, unit, SWEPT if swept else EDITED, "edited" if edited else "swept")
        if isinstance(parameter.value, Expression):
            return Shown(number, unit, COMPUTED, "computed")
        return Shown(number, unit, " ", "value" if matters(session.program, parameter) else "idle")


def _words_of(parameter: Parameter, session: Session) -> tuple[str, str]:
    """The value and unit of a parameter; an expression is shown by what it comes to."""
    text = parameter.text()
    if isinstance(parameter.value, Expression) and parameter.path in session.at.values:
        text = format_quantity(first_number(session.at.values[parameter.path]), parameter.dimension, digits=6)
    if parameter.structural:
        return text, ""
    number, _, unit = text.partition(" ")
    return number, unit
