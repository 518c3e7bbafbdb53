"""The parameters with the line that edits them in place."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset

from whatif.core.session import FAMILY_POINTS
from whatif.errors import WhatifError
from whatif.tui.commands.explorer_commands import Also, Change, Edit, SweepParameter
from whatif.tui.commands.seek_command import Seek
from whatif.tui.events import (
    BackgroundRequested,
    ChangeRequested,
    ErrorReported,
    PromptRequested,
    Purpose,
    StopRequested,
)
from whatif.tui.keys.keys_in_order import is_pending, set_pending
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.prompt import Prompt


class ParameterPanel(Vertical):
    """The tree and its prompt; what is typed becomes a change, and a refused one stays to be mended."""

    # In full screen the line that edits stays with the tree.
    ALLOW_MAXIMIZE = True
    DEFAULT_CSS = """
    ParameterPanel { layers: base above; }
    ParameterPanel Prompt { layer: above; position: absolute; }
    """

    def __init__(self, state: ExplorerState, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._state = state

    def compose(self) -> ComposeResult:
        """The tree, and above it the line."""
        yield ParameterTree(self._state)
        yield Prompt()

    def on_mount(self) -> None:
        """Name the panel."""
        self.border_title = "parameters"

    @property
    def parameter_tree(self) -> ParameterTree:
        """The list of parameters."""
        return self.query_one(ParameterTree)

    @property
    def prompt(self) -> Prompt:
        """The line."""
        return self.query_one(Prompt)

    def show(self, state: ExplorerState) -> None:
        """Show another state."""
        self._state = state
        tree = self.parameter_tree
        tree.show(state)
        wanted = tree.phase_wanted
        if wanted and any(path.startswith(f"{wanted}.") for path in state.session.program.parameters):
            self.filter("")
            tree.select(wanted)
            tree.phase_wanted = ""
            if tree.forms_wanted:
                tree.fill_in_wanted()

    @on(PromptRequested)
    def _ask(self, event: PromptRequested) -> None:
        event.stop()
        tree, parameter = self.parameter_tree, self.parameter_tree.parameter
        self.prompt.styles.offset = Offset(tree.indent, tree.cursor_line)
        if event.purpose is Purpose.FILTER:
            self.prompt.ask(event.purpose, "", tree.words)
        elif event.purpose is Purpose.VALUE:
            self._ask_value(tree.path)
        elif parameter is not None and event.purpose is Purpose.TARGET:
            self.prompt.ask(event.purpose, parameter.path, "<= 80 %")
        elif parameter is not None:
            self._ask_range(event.purpose, parameter.path)

    def _ask_value(self, path: str) -> None:
        from whatif.tui.dialogs.choice_picker import pick_value, picked  # noqa: PLC0415 - not for the first frame

        def choose(name: str | None) -> None:
            if name is not None:
                self.post_message(ChangeRequested(picked(path, name)))

        window, parameter = pick_value(path, self._state.session), self.parameter_tree.parameter
        if window is not None:
            self.app.push_screen(window, choose)
        elif parameter is not None:
            self.prompt.ask(Purpose.VALUE, path, parameter.text())

    def _ask_range(self, purpose: Purpose, path: str) -> None:
        try:
            points = {"points": FAMILY_POINTS} if purpose is Purpose.SECOND else {}
            text = self._state.session.range_text(path, **points)
        except WhatifError as problem:
            self.post_message(ErrorReported(str(problem)))
        else:
            self.prompt.ask(purpose, path, text)

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        prompt = self.prompt
        if event.purpose is Purpose.FILTER:
            self.filter(event.text)
            if event.accepted:
                self._close()
        elif event.accepted and event.text == prompt.original and event.purpose is Purpose.VALUE:
            # A value is shown rounded: taking it back as it stands must not change it.
            self._close()
        elif event.accepted and event.purpose is Purpose.TARGET and self._sought(prompt.path, event.text):
            self._close()
        elif event.accepted:
            set_pending(prompt.line, pending=True)
            self.post_message(ChangeRequested(_change(event.purpose, prompt.path, event.text)))

    def _sought(self, path: str, target: str) -> bool:
        """Whether a target is sought in the background, because every point is simulated."""
        from whatif.tui.commands.seek_command import takes_minutes  # noqa: PLC0415
        from whatif.tui.jobs.background_seek import background_seek  # noqa: PLC0415 - not for the first frame

        if not takes_minutes(self._state):
            return False
        self.post_message(BackgroundRequested(background_seek(self._state, Seek(path, target))))
        return True

    def answered(self, error: str) -> None:
        """Close the line after a good answer; after a refusal it stays."""
        if is_pending(line := self.prompt.line):
            set_pending(line, pending=False)
            self.prompt.mark(wrong=bool(error))
            if not error:
                self._close()

    @on(Prompt.Left)
    def _left(self, event: Prompt.Left) -> None:
        if event.purpose is Purpose.FILTER:
            self.filter("")
        if is_pending(line := self.prompt.line):
            self.post_message(StopRequested())
            set_pending(line, pending=False)
        self._close()

    def _close(self) -> None:
        self.prompt.display = False
        self.parameter_tree.focus()

    def filter(self, words: str) -> None:
        """Show only parameters whose path has all the words."""
        self.parameter_tree.filter(words)
        self.border_subtitle = Content(f"esc clears /{words}" if words else "")


def _change(purpose: Purpose, path: str, text: str) -> Change:
    kinds: dict[Purpose, type[Edit | SweepParameter | Also | Seek]] = {
        Purpose.VALUE: Edit,
        Purpose.RANGE: SweepParameter,
        Purpose.SECOND: Also,
        Purpose.TARGET: Seek,
    }
    return kinds[purpose](path, text)
