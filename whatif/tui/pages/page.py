"""Base class of all pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, cast

from textual.binding import Binding
from textual.containers import Container
from textual.widget import Widget

from whatif.core.sweep_figure import Y_COLUMN, columns_to_plot
from whatif.tui.commands.explorer_commands import Change, Choose, Show
from whatif.tui.events import ChangeRequested, ErrorReported
from whatif.tui.jobs.job import Job
from whatif.tui.page_views import view_kind
from whatif.tui.state import ExplorerState, View
from whatif.tui.view_entries import V, entry_names

if TYPE_CHECKING:
    from whatif.tui.jobs.background import BackgroundJobs


class PageSubject(NamedTuple):
    """Subject of the title and the status line while a page is visible."""

    question: str
    name: str
    """Short name, where the title has no room for the question."""
    status: str = ""
    """Text of the status line; empty for the sweep and the edits of the scenario."""


class PageKey(NamedTuple):
    """Key of a page. `action` is a method `action_..` of the page, with its arguments; without a label the key is never
    in the footer."""

    name: str
    """Part of the binding id after the name of the page, as the configuration file names it."""
    key: str
    action: str
    label: str
    help: str
    primary: bool = True
    """Whether the footer shows the key before those for which there must be room left."""


def extra_key(name: str, key: str, action: str, label: str, help: str) -> PageKey:  # noqa: A002
    """Key of a page that the footer shows only if space permits."""
    return PageKey(name, key, action, label, help, primary=False)


ZOOM_KEYS: Final = "+ - zoom, ← → move", "z Z zoom"
"""Keys of a time line: with the focus on the page, and wherever it is."""


def stepped(choices: Sequence[str], present: str, steps: int = 1) -> str:
    """Choice some steps after the current one, cyclically; counted from the first if the current one is not among them.

    `choices` must not be empty.
    """
    at = choices.index(present) if present in choices else 0
    return choices[(at + steps) % len(choices)]


def stepped_to(choices: Sequence[str], present: str, fits: Callable[[str], bool], steps: int = 1) -> str:
    """Next choice that fits, cyclically; the empty choice fits always."""
    name = stepped(choices, present, steps)
    while name and not fits(name):
        name = stepped(choices, name, steps)
    return name


class Page(Container, Generic[V]):
    """Base of the pages: `show` draws at once what is known, `job` names what a worker computes, `take` shows that.

    Only the current page is shown a state. Its keys work wherever the focus is on the main screen. Widgets of the class
    `panel` have a frame, which a page of the class `-low` draws at the top only, and one of `-flat` not at all.
    """

    DEFAULT_CSS = """
    Page .panel { border: round $primary 40%; border-title-color: $text-primary; border-subtitle-color: $text-muted; }
    Page .panel:focus-within { border: round $primary; }
    Page.-low .panel { border: none; border-top: round $primary 40%; }
    Page.-low .panel:focus-within { border: none; border-top: round $primary; }
    Page.-flat .panel, Page.-flat .panel:focus-within { border: none; }
    """

    NAME: ClassVar[str]
    KEYS: ClassVar[tuple[PageKey, ...]] = ()
    WIDE: ClassVar[bool] = False
    """Whether the page needs the room of the parameter tree on narrow screens."""
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {}
    """Classes for the stylesheet, each with the height below which the page has it: `{"-low": 18}`."""

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(id=self.NAME)
        self.state = state
        """State that is shown, or will be at first."""

    def on_resize(self) -> None:
        """Take on the classes of the height; Textual calls the method of a subclass besides this one."""
        self.update_classes({name: self.size.height < height for name, height in self.HEIGHT_CLASSES.items()})

    @classmethod
    def bindings(cls) -> tuple[Binding, ...]:
        """Key bindings of the page."""
        return tuple(_binding(cls.NAME, key) for key in cls.KEYS)

    @classmethod
    def help(cls) -> str:
        """Description of the page: the first line of its docstring."""
        return (cls.__doc__ or "").splitlines()[0]

    @property
    def command(self) -> str:
        """Command line that computes what is shown; empty for that of the sweep."""
        return ""

    @property
    def answer_key(self) -> object:
        """Inputs of the answer of the job, if it may be computed in the background; else None."""
        return None

    def answer_to_show(self, value: Any, jobs: BackgroundJobs) -> Any:
        """An answer of the job, or that of an earlier background job in its place."""
        return value

    @property
    def message(self) -> str:
        """Text of the page that `e` shows whole; empty without one."""
        return ""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of keys that do something else than usual now, by the name of the key."""
        return {}

    @property
    def subject(self) -> PageSubject | None:
        """Subject of a page that is not about the scenario; None for the scenario."""
        return None

    def show(self, state: ExplorerState) -> None:
        """Show a state."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """Whether an action of the page can do something now."""
        return True

    @property
    def view(self) -> V:
        """Fields of this page in the state that is shown."""
        return self.view_in(self.state.view)

    def view_in(self, view: View) -> V:
        """Fields of this page in a view."""
        return cast("V", view.of(view_kind(self.NAME)))

    def request(self, change: Change | Choose) -> None:
        """Request a change of the state."""
        self.post_message(ChangeRequested(change))

    def report(self, error: str) -> None:
        """Show an error in the status line; an empty text clears the line."""
        self.post_message(ErrorReported(error))

    def ask(self, name: str, value: object) -> None:
        """Ask for another value of a field of this page, or of one that pages share."""
        key = self._key(name)
        self.request(Show(key, self.state.view.text(key, value)))

    def choose(self, name: str, value_in: Callable[[V], object]) -> None:
        """Ask for a value of a field of this page that follows from the view requested last, shown or not."""
        self.request(Choose(f"{self.NAME}.{name}", lambda view: value_in(self.view_in(view))))

    def choose_shared(self, name: str, value_in: Callable[[View], object]) -> None:
        """Ask for a value of a shared field that follows from the view requested last, shown or not."""
        self.request(Choose(name, value_in))

    def _key(self, name: str) -> str:
        """Key of a field of this page, or of a shared one."""
        return f"{self.NAME}.{name}" if name in entry_names(type(self.view)) else name

    def action_turn(self, name: str) -> None:
        """Change a field of this page, or a shared one, to its next choice."""
        key = self._key(name)
        self.choose_shared(key, lambda view: view.next_of(key))

    def action_result(self, steps: int) -> None:
        """Explain the next result."""
        names = columns_to_plot(self.state.session.point)
        self.choose_shared("why", lambda view: stepped(names, view.why if view.why in names else Y_COLUMN, steps))

    def action_table(self) -> None:
        """Show the picture, or the table of its numbers."""
        self.action_turn("picture")

    def job(self, state: ExplorerState) -> Job | None:
        """Job to run in a worker for a state; None if nothing is missing."""
        return None

    def take(self, value: Any) -> None:
        """Show the result of the last job, or a result reported before its end."""

    def focus_first(self, widgets: Iterable[Widget]) -> None:
        """Focus the first of the widgets that is shown and can be focused."""
        for widget in widgets:
            if widget.focusable and all(node.display for node in widget.ancestors_with_self):
                widget.focus()
                return

    def enter(self) -> None:
        """Take the focus, if the page needs it."""

    def leave(self) -> None:
        """Release the numbers of the sweep and the drawn lines: a hidden page would keep some 4 MB of them."""
        self.state = self.state.at_rest()
        for widget in self.walk_children(Widget, with_self=True):
            widget.refresh()

    def keys_hint(self, own: str, always: str = "") -> str:
        """Keys to name in a hint: `own` with the focus on the page, else `always`: arrows, + and - edit parameters."""
        return own if self.has_focus_within else always

    def show_hints(self) -> None:
        """Write the hints that depend on the focus."""

    def on_descendant_focus(self) -> None:
        """Name the keys of the page."""
        self.call_later(self.show_hints)

    def on_descendant_blur(self) -> None:
        """Name the keys that still work."""
        self.call_later(self.show_hints)


def _binding(page: str, key: PageKey) -> Binding:
    method, _, arguments = key.action.partition("(")
    call = f"page('{method}', {arguments}" if arguments else f"page('{method}')"
    shown = bool(key.label) and key.primary
    return Binding(key.key, call, key.label, show=shown, tooltip=key.help, id=f"{page}.{key.name}")
