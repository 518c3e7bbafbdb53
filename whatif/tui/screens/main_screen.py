"""Main screen: the parameters on the left, a page on the right, messages and keys below."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap, BindingType
from textual.containers import Horizontal
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from whatif.core.sweep_figure import breakdown
from whatif.tui import page_registry
from whatif.tui.commands.explorer_commands import Choose
from whatif.tui.dialogs.windows import TextDialog
from whatif.tui.events import (
    ErrorReported,
    JobRequested,
    ParameterSelected,
    StopRequested,
)
from whatif.tui.jobs.background import BackgroundJobs
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.latest_only import LatestOnly
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.pages.explore import ExplorePage
from whatif.tui.pages.page import Page, PageSubject
from whatif.tui.screens.command_screen import CommandScreen
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.parameter_help import ParameterHelp
from whatif.tui.widgets.parameter_panel import ParameterPanel
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.picture import Picture
from whatif.tui.widgets.plot_view import PlotView
from whatif.tui.widgets.status import Status
from whatif.tui.widgets.title import Title

_FOOTED: Final = 10
"""Height below which every line is needed for the answer."""


class MainScreen(CommandScreen):
    """Screen of the open scenario; requests of the user go to the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "pin", "baseline", tooltip="Set the present values as the baseline", id="screen.pin"),
        extra_binding("screen.fork", "f", "fork", "fork", "Fork the values into a new variant"),
        extra_binding("screen.variant", "F", "variant", "next variant", "Switch to the next variant"),
        extra_binding("screen.variants", "V", "go('variants')", "variants", "Compare the variants"),
        extra_binding("screen.jobs", "L", "jobs", "jobs", "List the jobs in the background"),
        extra_binding("screen.export", "X", "export", "export", "Write the plot to a file"),
        extra_binding("screen.editor", "E", "edit_file", "editor", "Open the file in $EDITOR"),
        extra_binding("screen.revert", "R", "revert", "reset", "Discard all edits"),
        extra_binding("screen.new", "ctrl+n", "new_scenario", "new scenario", "Make a scenario: machine and phases"),
        extra_binding("screen.tree", "t", "tree", "parameters", "Show or hide the parameters"),
        extra_binding("screen.marker", "M", "marker", "marker", "Draw plots with braille, blocks, ASCII or pixels"),
        Binding("e", "detail", "more", tooltip="Show the whole message", id="screen.message"),
        Binding(
            "f1,?", "help", "help", key_display="F1", tooltip="List keys, explain what has the focus", id="screen.help"
        ),
        extra_binding("screen.stop", "escape", "stop", "", "Stop computing, clear the message or the filter"),
    ]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared without ClassVar by Textual
        (0, "-mini"),
        (40, "-tiny"),
        (60, "-narrow"),
        (100, "-normal"),
        (160, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-low"), (30, "-tall")]  # noqa: RUF012
    # The widgets draw the focus: nothing else of the screen is to be painted again.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self, state: ExplorerState, jobs: BackgroundJobs) -> None:
        super().__init__(jobs)
        self.state = state
        self.busy = self._had_message = False
        self._error = self._notice = self._selected_path = ""
        self.activity = ""
        """Activity of the program itself, such as replaying a journal."""
        self._tree: bool | None = None
        self._page_job: Job | None = None
        self._seen: dict[str, str] = {}
        self.latest = LatestOnly(self._taken, self.fail)
        self._screen_bindings = self._bindings
        # Its widgets are styled once: Textual sets the same classes only when the screen gets its size.
        sides = zip((self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS), self.app.size, strict=True)
        self.set_classes([max(known for known in breakpoints if known[0] <= cells)[1] for breakpoints, cells in sides])
        self._bind_keys(ExplorePage)

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        yield Title(id="title")
        with Horizontal(id="body"):
            yield ParameterPanel(self.state, id="parameters")
            with ContentSwitcher(initial=ExplorePage.NAME, id="answer"):
                yield ExplorePage(self.state)
        yield Breakdown(id="below")
        yield ParameterHelp(markup=False)
        yield Status()
        yield KeyBar(palette=True)

    def on_mount(self) -> None:
        """Draw the first picture."""
        self.query_one(ParameterTree).focus()
        self._show_state()
        self._show_texts()

    def on_unmount(self) -> None:
        """Cancel all computations."""
        self.latest.close()

    def on_resize(self) -> None:
        """The narrowest screens have room for one thing at a time."""
        self.query_one(KeyBar).display = self.size.height >= _FOOTED
        self._show_texts()
        self._arrange()

    @property
    def page(self) -> Page[Any]:
        """The visible page."""
        return self.query_one(f"#{self.query_one(ContentSwitcher).current}", Page)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of keys that the visible page states itself, by the id of their bindings."""
        return {f"{self.page.NAME}.{name}": label for name, label in self.page.labels.items()}

    def _bind_keys(self, page: type[Page[Any]]) -> None:
        """Bind the keys of the groups and those of one page, in place of the same keys of the screen."""
        added = (*page.bindings(), *page_registry.go_bindings(self.state.view.screen))
        self.key_list = (*added, *self.BINDINGS)
        bound = BindingsMap(added)
        for key, bindings in self._screen_bindings.key_to_bindings.items():
            # Also where the page does not offer its own: `f` of the runs must not fork before there are any.
            bound.key_to_bindings.setdefault(key, bindings)
        self._bindings = bound

    def show(self, state: ExplorerState, error: str = "", *, busy: bool = False, notice: str = "") -> None:
        """Show another state, or only the error of the last request, or that it is being computed.

        A notice is what stays wrong, whatever is asked.
        """
        new = state is not self.state
        self.state, self._error, self._notice, self.busy = state, error or notice, notice, busy
        if not self.is_ready:
            return
        if not busy:
            self.query_one(ParameterPanel).answered(error)
        if new:
            self._show_state()
        self._show_texts()

    def tell_activity(self, words: str) -> None:
        """Report what the program does on its own."""
        self.activity = words
        if self.is_ready:
            self._show_texts()

    def _show_state(self) -> None:
        """Hand the state down to every widget."""
        state = self.state
        self._seen[page_registry.group_of(state.view.screen)] = state.view.screen
        self.query_one(ParameterPanel).show(state)
        self.query_one("#below", Breakdown).show(breakdown(state.session.point, state.view.breakdown))
        if state.page == self.page.NAME:
            self._show_page(self.page)
        else:
            # Called when its turn comes: one that is overtaken before that is never begun.
            going: Any = partial(self._go_to, state.page)
            self.run_worker(going, exclusive=True, group="page")

    async def _go_to(self, name: str) -> None:
        """Go to a page, created on first use."""
        switcher = self.query_one(ContentSwitcher)
        if not switcher.query_children(f"#{name}"):
            entry = page_registry.page_named(name)
            assert entry is not None  # noqa: S101 - the view allows registered names only
            await switcher.add_content(entry.load()(self.state))
            if not self.is_ready:
                return
        left, switcher.current = self.page, name
        left.leave()
        self.minimize()
        self._bind_keys(type(self.page))
        self._arrange()
        self._show_page(self.page)
        if not self.query_one(ParameterPanel).display or self.page.WIDE:
            self.page.enter()
        else:
            self.query_one(ParameterTree).focus()
        self.refresh_bindings()
        self._show_texts()

    def _show_page(self, page: Page[Any]) -> None:
        for picture in page.query(Picture):
            picture.marker = self.state.view.marker
        page.show(self.state)
        self._start_page_job()

    @on(JobRequested)
    def _start_page_job(self) -> None:
        """Start the job of the visible page in a worker process, and stop any other."""
        before, self._page_job = self._page_job, self.page.job(self.state)
        if self.answered_before() or self._page_job is None:
            self.latest.stop()
        elif not (self._page_job == before and self.latest.busy):
            self.latest.ask(self._page_job)

    def _taken(self, value: Any) -> None:
        if self.is_ready:
            self.page.take(self.page.answer_to_show(value, self.jobs))
            self._show_texts()

    def fail(self, error: str) -> None:
        """Show an error in the status line; an empty text clears it."""
        self._error = error
        if self.is_ready:
            self._show_texts()

    def _arrange(self) -> None:
        """Show the parameters next to a page if there is room for both, or as chosen."""
        explore = self.page.NAME == ExplorePage.NAME
        room = self.size.width >= 100 and not (self.page.WIDE and self.size.width < 160)
        shown = self._tree if self._tree is not None and not explore else explore or room
        self.query_one(ParameterPanel).display = shown
        # Classes of the screen would cost the styles of all widgets again; these are of no widget inside the parts.
        for part in (self.query_one("#below"), self.query_one("#answer")):
            if part.has_class("-elsewhere") == explore:
                part.set_class(not explore, "-elsewhere", update=False)
                self.app.stylesheet.update_nodes((part,), animate=True)
        self.query_one(ParameterHelp).set_class(not shown, "-no-parameters")

    def _show_texts(self) -> None:
        """The title, the explanation and the status line."""
        state, row = self.state, self.query_one(ParameterTree).row
        subject = self.page.subject or _subject(state)
        self.query_one(Title).show(subject.question, subject.name, state.view.screen, state.edit_count)
        if row is not None:
            self.query_one(ParameterHelp).show(state, row.path)
        background = self.activity or self.jobs.line
        self.query_one(Status).show(state, self._error, busy=self.busy, background=background, own=subject.status)
        self._offer_message()

    def _offer_message(self) -> None:
        """Offer to show the whole text if one exists."""
        before, self._had_message = self._had_message, self._has_message
        if self._had_message != before:
            self.refresh_bindings()

    @property
    def _has_message(self) -> bool:
        """Whether there is a message, or a text of the page, to show whole."""
        return self.query_one(Status).has_message or bool(self.page.message)

    @on(ErrorReported)
    def _show_error(self, event: ErrorReported) -> None:
        self.fail(event.text)

    @on(ParameterSelected)
    def _selected(self, event: ParameterSelected) -> None:
        self.query_one(ParameterHelp).show(self.state, event.path)
        if self._selected_path not in ("", event.path) and self._error != self._notice:
            self.fail(self._notice)
        self._selected_path = event.path

    def action_go_group(self, group: str) -> None:
        """Go to the page of a group that was seen last; from one of its pages, to the next."""
        self.change(Choose("screen", lambda view: page_registry.next_screen(group, view.screen, self._seen)))

    def action_maximize(self) -> None:
        """Show the part with the focus alone, without the line of keys."""
        super().action_maximize()
        if self.maximized is not None:
            self.notify("esc exits full screen")

    def action_tree(self) -> None:
        """Show or hide the parameters next to the page."""
        self._tree = not self.query_one(ParameterPanel).display
        self._arrange()
        (self.query_one(ParameterTree).focus if self._tree else self.page.enter)()

    def select_parameter(self, path: str) -> None:
        """Move the cursor of the tree to a parameter or a table."""
        panel = self.query_one(ParameterPanel)
        panel.filter("")
        if not panel.display:
            self.action_tree()
        panel.parameter_tree.focus()
        panel.parameter_tree.select(path)

    def action_stop(self) -> None:
        """Leave the line that is typed, else stop computing, else clear the error, else the filter."""
        parameters = self.query_one(ParameterPanel)
        if parameters.prompt.display:
            parameters.prompt.action_leave()
        elif self.busy:
            self.post_message(StopRequested())
        elif self._error:
            self.fail("")
        else:
            parameters.filter("")

    def action_detail(self) -> None:
        """Show the whole of the message in the status line."""
        status = self.query_one(Status)
        texts = (status.full if status.has_message else "", self.page.message)
        self.app.push_screen(TextDialog("\n\n".join(filter(None, texts))))

    def action_page(self, action: str, *arguments: object) -> None:
        """Run an action of the visible page."""
        getattr(self.page, f"action_{action}")(*arguments)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the whole message only if there is one, and the keys of a page only where they do something."""
        if action == "page":
            return self.page.offers(str(parameters[0]))
        if action == "export":
            return any(plot.seen is not None for plot in self.page.query(PlotView))
        return self._has_message if action == "detail" else True


def _subject(state: ExplorerState) -> PageSubject:
    """The scenario and its variant."""
    loaded, several = state.session.program.loaded, state.has_variants
    question = f"{state.variant_label} · " * several + (loaded.question or loaded.name)
    return PageSubject(question, f"{state.variants.current} " * several + loaded.name)
