"""The comparison: the same application on every machine that is known, in numbers and in curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.axes import Grid
from whatif.core.scenario import Scenario
from whatif.core.sweep_answers import curve_family_answers
from whatif.core.sweep_figure import MAXIMUM_CURVES, Y_COLUMN, figure, plot_table, suiting
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale, series_style
from whatif.studies.platform_comparison import PlatformRow, comparison, known_platforms
from whatif.tui.commands import Adopt
from whatif.tui.events import ChangeRequested
from whatif.tui.labels import brief, duration
from whatif.tui.pages.page import Job, Page, PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState, View
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.answer_line import AnswerLine
from whatif.tui.widgets.column_layout import SHORT, SLIGHT, WORDS, ColumnsView, speedup
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.sweep_plot import PlotView
from whatif.units import SECOND
from whatif.vocabulary import CATEGORIES

PRESENT: Final = "present"
"""How `CompareView.marked` names the machine as it stands; all others by their platform."""
RESULTS: Final = (Y_COLUMN, "total_time")
CATEGORY_TIMES: Final = (*(f"{category}_time" for category in CATEGORIES), "overlap_time")
_KEPT: Final = 2
"""The columns that stay: the sign of the curve and the machine."""
_BEFORE_GRADE: Final = 4
"""The cells of the results before the grade: iteration and total, each with its speedup."""
_ARROWS: Final = (" ▲", " ▼")
"""Behind the title of the column that machines are sorted by: the smallest or the largest first."""


ComparisonInputs = tuple[Scenario, Grid, str]


def compared(scenario: Scenario, grid: Grid, column: str) -> tuple[PlatformRow, ...]:
    """The question on every platform that is known."""
    return comparison(scenario, known_platforms(scenario), grid, column)


@dataclass(frozen=True, slots=True)
class CompareView(PageView):
    """View of the comparison."""

    PAGE: ClassVar[str] = "compare"
    sort: str = ""
    """Column by which platforms are sorted; `-COLUMN` for descending order, empty for the order of the files."""
    marked: tuple[str, ...] = ()
    """Platforms to draw next to the baseline; empty for the best ones."""


class ComparePage(Page[CompareView]):
    """A table of machines with their results, and below it the swept parameter with a curve for each of them."""

    NAME: ClassVar[str] = "compare"
    VIEW = CompareView
    WIDE: ClassVar[bool] = True
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("sort", "o", "sort(1)", "sort", "Sort by the next column"),
        extra_key("turn", "O", "reverse", "reverse", "Reverse the order"),
        PageKey("mark", "m", "mark", "mark", "Mark the machine, to draw marked ones and the baseline"),
        PageKey("against", "x", "against", "reference", "Compare all machines with this one"),
        PageKey("next_curve", "y", "curve(1)", "result", "Draw the next result or phase"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table"),
    )
    DEFAULT_CSS = """
    ComparePage ColumnsView, ComparePage #curves {
        border: round $primary 40%;
        border-title-color: $text-primary;
        border-subtitle-color: $text-muted;
    }
    ComparePage #curves { height: 1fr; }
    ComparePage #no-curves { width: 1fr; height: 1fr; content-align: center middle; color: $text-muted; }
    ComparePage.-short ColumnsView, ComparePage.-short #curves { border: none; border-top: round $primary 40%; }
    ComparePage.-slight ColumnsView { border: none; max-height: 100%; }
    ComparePage.-slight #curves { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._machines: tuple[PlatformRow, ...] = ()
        self._inputs: ComparisonInputs | None = None
        self._order: list[int] = []
        self._sorted = ""

    def compose(self) -> ComposeResult:
        """The table, and below it the curves, their numbers, or why there are none."""
        yield ColumnsView()
        with Vertical(id="curves"):
            yield PlotView()
            yield TableView(id="curve-numbers")
            yield AnswerLine()
            yield Static(id="no-curves", markup=False)

    def enter(self) -> None:
        """The machines want the keys."""
        self.query_one(ColumnsView).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Where there are few lines, the frames give way, then the curves."""
        self.set_class(event.size.height < SHORT, "-short")
        self.set_class(event.size.height < SLIGHT, "-slight")

    def show(self, state: ExplorerState) -> None:
        """Show a study; while the machines are being asked, the last picture stays."""
        self._state = state
        if self._fresh(state) or not self._machines:
            self._fill(state)

    def _fresh(self, state: ExplorerState) -> bool:
        """Whether the machines were asked this very question."""
        if self._inputs is None:
            return False
        scenario, grid, column = self._inputs
        session = state.session
        return scenario is session.scenario and grid is session.grid and column == state.view.y

    def job(self, state: ExplorerState) -> Job | None:
        """Ask all machines, unless only the view has changed."""
        if self._fresh(state):
            return None
        return Job(compared, (state.session.scenario, Grid(state.session.grid.axes[:1]), state.view.y))

    def take(self, value: tuple[PlatformRow, ...]) -> None:
        """Show what the machines answered."""
        if self._state is not None:
            self._machines = value
            self._inputs = self._state.session.scenario, self._state.session.grid, self._state.view.y
            self._fill(self._state)

    def _fill(self, state: ExplorerState) -> None:
        machines, view, pointed = self._machines, self.view_in(state.view), self._pointed
        base = baseline(machines, state.view.against)
        chosen = chosen_machines(machines, view.marked, base, state.view.y)
        drawn = [at for at in chosen if _has_curve(machines[at])][:MAXIMUM_CURVES]
        signs = {at: self._sign(place) for place, at in enumerate(drawn)}
        self._order = order(machines, view.sort)
        names, table = keys(machines), self.query_one(ColumnsView)
        table.cursor = next((row for row, at in enumerate(self._order) if names[at] == pointed), 0)
        content = rows(machines, self._order, base, signs, state.view)
        table.border_title = "machines" if machines else "evaluating the other machines …"
        table.fill(content, _KEPT, f"speedups over {machines[base].label}" if machines else "")
        if view.sort != self._sorted:
            self._sorted = view.sort
            table.bring(next((at for at, title in enumerate(content.titles) if title.endswith(_ARROWS)), 0))
        if drawn:
            self._draw(state, [machines[at] for at in drawn])
        else:
            self._draw_nothing(why_no_curves(state, [machines[at] for at in chosen]))

    @property
    def message(self) -> str:
        """The answers of the curves, one a line."""
        return self.query_one(AnswerLine).full

    @property
    def _pointed(self) -> str:
        """Name of the platform under the cursor; empty without one."""
        row = self.query_one(ColumnsView).cursor
        names = keys(self._machines)
        return names[self._order[row]] if row < len(self._order) and self._order[row] < len(names) else ""

    def _sign(self, place: int) -> Cell:
        """What tells a curve: its colour, or without colours the letter that the plot gives it."""
        return Cell(chr(ord("a") + place) if self.app.no_color else "━━", series_style(place))

    def _draw(self, state: ExplorerState, machines: list[PlatformRow]) -> None:
        """The curves of some machines, or their numbers."""
        panel, plot = self.query_one("#curves"), self.query_one(PlotView)
        numbers, tabular = self.query_one("#curve-numbers", TableView), state.view.picture == "table"
        self.query_one("#no-curves").display, plot.display, numbers.display = False, not tabular, tabular
        description = curves(state, machines)
        answers = curve_family_answers(description, state.view.y, "platform")
        description = answers.marked(description)
        drawn_alone = len(machines) < sum(map(_has_curve, self._machines))
        self.query_one(AnswerLine).show(answers, "of those drawn: " if drawn_alone else "")
        over = ".".join(description.x.label.split(".")[-2:])
        panel.border_title = Content(f"{description.y.label} over {over}")
        marked = self.view_in(state.view).marked
        absent = (
            machine
            for name, machine in zip(keys(self._machines), self._machines, strict=True)
            if not _has_curve(machine) and (name in marked or (machine.curve_reason and not machine.reason))
        )
        reasons = (f"{machine.label}: {brief(machine.curve_reason or machine.reason)}" for machine in absent)
        panel.border_subtitle = Content(" · ".join((f"{len(machines)} of {len(self._machines)} drawn", *reasons)))
        plot.show(description)
        if tabular:
            numbers.show(plot_table(description))

    def _draw_nothing(self, reason: str) -> None:
        """Why there are no curves."""
        panel, words = self.query_one("#curves"), self.query_one("#no-curves", Static)
        panel.border_title = panel.border_subtitle = ""
        self.query_one(AnswerLine).show(None)
        for child in panel.children:
            child.display = child is words
        words.update(reason)

    @on(TableView.Chosen)
    def _chosen(self, event: TableView.Chosen) -> None:
        """Go to the machine under the cursor."""
        if event.table is not self.query_one(ColumnsView):
            return
        at = self._order[event.row]
        if at > 0 and self._machines[at].name:
            self.post_message(ChangeRequested(Adopt(self._machines[at].name)))

    def action_sort(self, steps: int) -> None:
        """Sort by the next column; after the last one, as the machines come."""
        machines = self._machines

        def sorting(view: View) -> str:
            columns = ("", *result_columns(machines, view.breakdown))
            return stepped(columns, self.view_in(view).sort.removeprefix("-"), steps)

        self.choose_shared("compare.sort", sorting)

    def action_reverse(self) -> None:
        """Sort the other way round; where nothing is sorted, the slowest machine first."""
        self.choose("sort", lambda view: view.sort[1:] if view.sort.startswith("-") else f"-{view.sort or Y_COLUMN}")

    def action_mark(self) -> None:
        """Mark the machine under the cursor, or take its mark away."""
        name = self._pointed

        def marking(view: CompareView) -> tuple[str, ...]:
            marks = view.marked
            return tuple(mark for mark in marks if mark != name) if name in marks else (*marks, name)

        if name:
            self.choose("marked", marking)

    def action_against(self) -> None:
        """Compare all with the machine under the cursor."""
        if self._pointed:
            self.ask_shared("against", "" if self._pointed == PRESENT else self._pointed)

    def action_curve(self, steps: int) -> None:
        """Draw the next column."""
        columns = result_columns(self._machines, "phase")
        self.choose_shared("y", lambda view: stepped(columns, view.y, steps) if view.y in columns else columns[0])


def keys(machines: tuple[PlatformRow, ...]) -> list[str]:
    """What a view calls each machine: the first one `present`, one without a platform's file `unedited`."""
    return [PRESENT if at == 0 else machine.name or "unedited" for at, machine in enumerate(machines)]


def baseline(machines: tuple[PlatformRow, ...], against: str) -> int:
    """The machine that the others are compared with; the present one where there is no such name."""
    # Behind the present machine with its edits stands the same one without.
    names = [(key, machine.name) for key, machine in zip(keys(machines), machines, strict=True)]
    return next((at for at in reversed(range(len(names))) if against and against in names[at]), 0)


def chosen_machines(machines: tuple[PlatformRow, ...], marked: tuple[str, ...], base: int, column: str) -> list[int]:
    """The machines to draw: the baseline with the marked ones, or with the best that have a curve."""
    names = keys(machines)
    chosen = {at for at, key in enumerate(names) if key in marked}
    if not chosen:
        able = [at for at in order(machines, column) if at != base and _has_curve(machines[at])]
        chosen = set(able[: MAXIMUM_CURVES - 1])
    return sorted({*chosen, base} if machines else chosen)


def _has_curve(machine: PlatformRow) -> bool:
    return machine.curve is not None and bool(np.isfinite(machine.curve).any())


def value(machine: PlatformRow, column: str) -> float:
    """Result column, or the time of a phase as `terms.NAME`; NaN without one."""
    if column.startswith("terms."):
        return machine.phases.get(column.removeprefix("terms."), math.nan)
    return machine.columns.get(column, math.nan)


def result_columns(machines: tuple[PlatformRow, ...], by: str) -> tuple[str, ...]:
    """The columns of times: the results, then the phases, or with `category` the kinds of work, that take any time."""
    phases = dict.fromkeys(f"terms.{phase}" for machine in machines for phase in machine.phases)
    names = (*RESULTS, *(CATEGORY_TIMES if by == "category" else phases))
    return tuple(name for name in names if name in RESULTS or any(value(machine, name) > 0 for machine in machines))


def order(machines: tuple[PlatformRow, ...], sort: str) -> list[int]:
    """The machines by a column, those without a number last; `-COLUMN` for the largest first."""
    column, sign = sort.removeprefix("-"), -1.0 if sort.startswith("-") else 1.0
    numbers = [value(machine, column) if column else 0.0 for machine in machines]
    return sorted(range(len(machines)), key=lambda at: (math.isnan(numbers[at]), sign * numbers[at]))


def rows(
    machines: tuple[PlatformRow, ...], shown: list[int], base: int, signs: dict[int, Cell], view: View
) -> TableRows:
    """The table: signs of the curves, machines, and each time with its speedup over that of the baseline."""
    columns, names, own = result_columns(machines, view.breakdown), keys(machines), view.of(CompareView)
    titles = [title for name in columns for title in (_title(name, own.sort), "")]
    titles[_BEFORE_GRADE:_BEFORE_GRADE] = ["grade"]
    cells = tuple(
        (
            signs.get(at, Cell("  ")),
            Cell(machines[at].label, "marked" if names[at] in own.marked else "text"),
            *_cells(machines[at], machines[base], columns),
        )
        for at in shown
    )
    return TableRows(("", "machine", *titles), cells, frozenset((0, 1, _KEPT + _BEFORE_GRADE)))


def _title(column: str, sort: str) -> str:
    arrow = dict(zip((column, f"-{column}"), _ARROWS, strict=True)).get(sort, "")
    return f"{column.removesuffix('_time').removeprefix('terms.')}{arrow}"


def _cells(machine: PlatformRow, base: PlatformRow, columns: tuple[str, ...]) -> list[Cell]:
    """Each time with its speedup, and the grade; or why there is no answer."""
    if machine.reason:
        return [Cell(brief(machine.reason.splitlines()[0]), WORDS), *[Cell("")] * (2 * len(columns))]
    cells = []
    for name in columns:
        time = value(machine, name)
        cells += [Cell(duration(time)), Cell("base", "faint") if machine is base else speedup(time, value(base, name))]
    cells.insert(_BEFORE_GRADE, Cell(machine.grade, machine.grade))
    return cells


def curves(state: ExplorerState, machines: list[PlatformRow]) -> PlotDescription:
    """The column of a study's view, for machines, over the first axis."""
    session, view = state.session, state.view
    frame = figure(session.result, Y_COLUMN, session.here, None, _scale(view.x_scale))
    lines = tuple(
        PlotLine(machine.label, frame.lines[0].x, machine.curve) for machine in machines if machine.curve is not None
    )
    label = view.y.removesuffix("_time").removeprefix("terms.")
    axis = AxisDescription(label, SECOND, _scale(view.y_scale) or suiting([line.y for line in lines]))
    return replace(frame, title="", y=axis, lines=lines)


def _scale(choice: str) -> Scale | None:
    return None if choice == "auto" else Scale(choice)


def why_no_curves(state: ExplorerState, machines: list[PlatformRow]) -> str:
    """Why none of some machines is drawn, in a sentence."""
    if not machines:
        return ""
    if not state.session.grid.axes:
        return "No sweep: select a parameter and press s to draw the time over it on every machine."
    reasons = (machine.curve_reason or machine.reason for machine in machines)
    reason = next(filter(None, reasons), "no point of the axis is feasible")
    return f"No curve of {', '.join(machine.label for machine in machines)}: {reason}"
