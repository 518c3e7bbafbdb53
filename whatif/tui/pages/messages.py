"""Cost of a message by its size, distance and model; the messages of a phase; ranks that share a node; domains."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content

from whatif.core.term import Program
from whatif.schema.application import HaloPhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.studies.domain_study import DomainPicture, domain_boxes, domain_table
from whatif.studies.message_study import DISTANCE_LABELS
from whatif.studies.placement_study import placement_table
from whatif.tui.events import JobRequested
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.messages_job import Gathered, Placed, gather
from whatif.tui.labels import duration
from whatif.tui.page_views import FitView
from whatif.tui.pages.page import Page, PageKey, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.domain_map import DomainMap
from whatif.tui.widgets.facts import Fact, Facts
from whatif.tui.widgets.message_costs import MessageCosts
from whatif.tui.widgets.placement_map import PlacementMap, room_for_ranks
from whatif.units import ONE, format_quantity
from whatif.vocabulary import MODEL_LABELS

_WIDE, _HIGH, _ROOMY = 90, 18, 24
"""Least width and height for both halves, and for the messages below the curves."""
_LOW: Final = 18
"""Height below which frames are hidden."""


def sending_phases(program: Program) -> tuple[str, ...]:
    """The phases of an application that send messages, in the order of the file."""
    phases = program.loaded.scenario.application.phases
    return tuple(name for name, phase in phases.items() if isinstance(phase, HaloPhase | CollectivePhase))


def chosen_phase(state: ExplorerState) -> str | None:
    """The phase that is looked at: the one that is drawn, where it sends messages, else the first one that does."""
    names = sending_phases(state.session.program)
    drawn = state.view.y.removeprefix("terms.")
    return drawn if drawn in names else next(iter(names), None)


def facts_of(found: Gathered) -> tuple[Fact, ...]:
    """The counts behind k and the time of the phase, as far as there are any."""
    phase, numbers = found.phase, found.counts
    if phase is None:
        return ()
    total: Fact = (f"{phase.phase} takes", duration(phase.time))
    if numbers is None:
        return (total, ("rounds", str(len(phase.messages)))) if phase.messages else (total,)
    named = [
        ("messages of a node", numbers.total_count),
        (f"to other {numbers.beyond}s", numbers.inter_node_count),
        ("ranks of a node", numbers.process_count),
        ("k, at its adapter", numbers.k),
    ]
    named += [("taken as", numbers.effective_k)] if numbers.k < numbers.effective_k else []
    return *((name, format_quantity(number, ONE)) for name, number in named), total


def _headed(found: Gathered) -> str:
    """The phase with its model, how its messages follow each other, and where the counts come from."""
    if found.phase is None:
        return "messages"
    combined = found.phase.combined.replace("_", " ")
    source = "" if found.counts is None else f", messages {'stated' if found.counts.stated else 'counted'}"
    return f"{found.phase.phase}: {MODEL_LABELS[found.phase.model]}, {combined}{source}"


def _ranks_headed(placed: Placed | None) -> str:
    """Title of the map, with the axes along its sides."""
    axes = placed.picture.axes if placed is not None else ()
    sides = f": rows {axes[0]}, columns {axes[1]}" if len(axes) > 1 else f" along {axes[0]}" if axes else ""
    return f"ranks that share a node{sides}"


def _domains_headed(domains: DomainPicture) -> str:
    """Title of the picture of domains."""
    message = domains.chosen
    return (
        "domains" if message is None else f"domains: {domains.phase} {message.kind} {DISTANCE_LABELS[message.distance]}"
    )


class MessagesPage(Page[PageView]):
    """Time over message size, the messages of a phase, the placement of its ranks, and the domains that they cross."""

    NAME: ClassVar[str] = "messages"
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": _LOW, "-flat": 8}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("phase", "y", "phase(1)", "phase", "Show the next phase that sends messages"),
        PageKey("plane", "x", "plane(1)", "plane", "Show the next plane of a 3D grid"),
        PageKey("table", "v", "table", "table", "Switch between the pictures and their tables"),
        PageKey("half", "m", "half", "placement", "Switch between the curves and the placement"),
        PageKey(
            "message",
            "d",
            "message(1)",
            "domains",
            "Show the domains that a message of the phase crosses; again: those of the next one",
        ),
    )
    DEFAULT_CSS = """
    MessagesPage Facts { padding: 0 1; max-height: 50%; }
    MessagesPage Horizontal { height: 1fr; }
    MessagesPage MessageCosts, MessagesPage Vertical { width: 1fr; height: 1fr; }
    MessagesPage.-low Facts.panel { border: none; padding: 0; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._found: Gathered | None = None
        self._half = "both"
        self._plane: int | None = None
        self._message: int | None = None
        self._room = (0, 0)

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        yield Facts().add_class("panel")
        with Horizontal():
            yield MessageCosts()
            with Vertical(id="ranks", classes="panel"):
                yield PlacementMap()
                yield TableView(id="placed")
            with Vertical(id="domains", classes="panel"):
                yield DomainMap()
                yield TableView(id="nested")

    def on_resize(self) -> None:
        """Show both halves if they fit."""
        self._arrange()

    def enter(self) -> None:
        """Focus the curves or the tables."""
        self.focus_first(self.query("PlotView, TableView"))

    def offers(self, action: str) -> bool:
        """Only what there is another one of."""
        found, domains = self._found, self._half == "domains"
        placed = found.placed if found is not None else None
        if action == "phase":
            return len(sending_phases(self.state.session.program)) > 1
        if action == "plane":
            return bool(self.query_one("#ranks").display) and placed is not None and placed.picture.part.plane_count > 1
        if action == "message" and domains:
            return found is not None and found.phase is not None and len(found.phase.messages) > 1
        return action != "half" or domains or placed is not None

    @property
    def labels(self) -> dict[str, str]:
        """Names of what `m` and `d` show next."""
        shown = {"ranks": "placement", "both": "both" if self._both else "curves"}.get(self._following, self._following)
        return {"half": shown, **({"message": "next message"} if self._half == "domains" else {})}

    def show(self, state: ExplorerState) -> None:
        """Show the last picture in the way that is asked for."""
        if chosen_phase(state) != chosen_phase(self.state):
            self._plane = self._message = None
        self.state = state
        self._arrange()

    def job(self, state: ExplorerState) -> Job:
        """Evaluate the point anew for its curves, messages and placement."""
        self._room = self._present_room()
        points = state.view.of(FitView)
        chosen = chosen_phase(state)
        return Job(gather, (state.session.inputs, chosen, *self._room, self._plane, points, self._message))

    def take(self, value: Gathered) -> None:
        """Show another point."""
        self._found = value
        facts, ranks = self.query_one(Facts), self.query_one("#ranks")
        hint = self.state.undo_hint if value.curves.infeasible else ""
        facts.show(facts_of(value), " ".join(filter(None, (value.reason, hint))))
        facts.border_title = Content(_headed(value))
        self.query_one(MessageCosts).show(value.curves, value.phase, value.measured)
        self.query_one(PlacementMap).show(value.placed)
        ranks.border_title = Content(_ranks_headed(value.placed))
        if value.placed is not None:
            self.query_one("#placed", TableView).show(placement_table(value.placed.picture))
        self.query_one(DomainMap).show(domain_boxes(value.domains))
        self.query_one("#domains").border_title = Content(_domains_headed(value.domains))
        self.query_one("#nested", TableView).show(domain_table(value.domains))
        self._arrange()

    @property
    def _both(self) -> bool:
        """Whether there is room for both halves."""
        return self.size.width >= _WIDE and self.size.height >= _HIGH

    def _present_room(self) -> tuple[int, int]:
        """The ranks that there is room for; before the page has a size, as many as there may be."""
        size = self.query_one(PlacementMap).size
        width, height = size if size.area else (self.app.size.width // 2, self.app.size.height - 12)
        return room_for_ranks(width, height)

    def _arrange(self) -> None:
        """Show the chosen halves that fit on the screen."""
        tabular = self.state.view.picture == "table"
        placed = self._found is not None and self._found.placed is not None
        drawn = self._half == "domains" or (placed and self._half != "both")
        alone = self._half if drawn else "curves"
        shown = ("curves", "ranks") if placed and self._both and self._half == "both" else (alone,)
        costs = self.query_one(MessageCosts)
        costs.display = "curves" in shown
        self.query_one("#ranks").display = "ranks" in shown
        self.query_one("#domains").display = "domains" in shown
        for picture, table in ((PlacementMap, "#placed"), (DomainMap, "#nested")):
            self.query_one(picture).display = not tabular
            self.query_one(table).display = tabular
        costs.turn(tabular=tabular, messages=self.size.height >= _ROOMY or (tabular and self.size.height >= _LOW))
        self.screen.refresh_bindings()

    @on(PlacementMap.Resized)
    def _resized(self) -> None:
        """Other room shows another part of the ranks."""
        if self._present_room() != self._room:
            self.post_message(JobRequested())

    def action_phase(self, steps: int) -> None:
        """Look at another phase that sends messages."""
        names = sending_phases(self.state.session.program)
        if len(names) > 1:
            self.choose_shared("y", lambda view: f"terms.{stepped(names, view.y.removeprefix('terms.'), steps)}")

    def action_plane(self, steps: int) -> None:
        """Show another plane of ranks."""
        if self._found is not None and self._found.placed is not None:
            part = self._found.placed.picture.part
            if part.plane_count > 1:
                self._plane = (part.plane + steps) % part.plane_count
                self.post_message(JobRequested())

    def action_message(self, steps: int) -> None:
        """Show the domains; where they are shown, mark the path of another message of the phase."""
        if self._half != "domains":
            self._half = "domains"
            self._arrange()
        elif self._found is not None and self._found.phase is not None and self._found.domains.chosen is not None:
            messages = self._found.phase.messages
            self._message = (messages.index(self._found.domains.chosen) + steps) % len(messages)
            self.post_message(JobRequested())

    @property
    def _following(self) -> str:
        """The half that comes next; on large screens both, then each alone."""
        if self._half == "domains":
            return "both"
        # Without room for both, the curves are what is seen of them.
        return stepped(["both", "curves", "ranks"] if self._both else ["both", "ranks"], self._half)

    def action_half(self) -> None:
        """Show the other half."""
        self._half = self._following
        self._arrange()
