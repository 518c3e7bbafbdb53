"""Base of the main screen: keys that ask for a command of the explorer or open a window."""

from __future__ import annotations

from textual import on, work

from whatif.errors import WhatifError
from whatif.tui.commands.explorer_commands import Change, Choose, Pin, Revert, Show
from whatif.tui.dialogs.windows import TextDialog
from whatif.tui.events import ChangeRequested, EditorRequested, FileRequested, NewScenarioRequested
from whatif.tui.screens.background_screen import BackgroundScreen
from whatif.tui.state import View
from whatif.tui.variants.variant_commands import Fork, Go
from whatif.tui.widgets.parameter_tree import ParameterTree


class CommandScreen(BackgroundScreen):
    """Actions of keys that work on every page."""

    def fail(self, error: str) -> None:
        """Show an error in the status line; an empty text clears it."""
        raise NotImplementedError

    def change(self, change: Change | Choose) -> None:
        """Ask for a change."""
        self.post_message(ChangeRequested(change))

    def action_go(self, name: str) -> None:
        """Go to another page."""
        self.change(Show("screen", name))

    def action_decide(self, name: str) -> None:
        """Go to one of the questions of the page `decide`."""
        self.change(Show("decide.decision", name))
        self.action_go("decide")

    def action_pin(self) -> None:
        """Set the present values as the baseline."""
        self.change(Pin())

    def action_fork(self) -> None:
        """Fork the present values into a new variant."""
        self.change(Fork())

    def action_variant(self) -> None:
        """Go to the next variant."""
        following = self.state.next_variant()
        if following:
            self.change(Go(following))
        else:
            self.fail("there is no other variant: f forks the present values")

    def action_marker(self) -> None:
        """Draw curves with other dots."""
        self.change(Choose("marker", self._next_marker))

    def _next_marker(self, view: View) -> object:
        """Marker after that of a view: pixels only where the terminal has graphics."""
        following = view.next_of("marker")
        graphics = getattr(self.app, "graphics", None)
        if following == "pixels" and not (graphics and graphics.available):
            return view.with_entry("marker", "pixels").next_of("marker")
        return following

    def action_revert(self) -> None:
        """Discard all edits."""
        self.change(Revert())

    @on(NewScenarioRequested)
    @work
    async def action_new_scenario(self) -> None:
        """Put a scenario together, with a machine of one's own, and open it."""
        from whatif.tui.dialogs.scenario_dialogs import make_scenario  # noqa: PLC0415 - not for the first frame

        try:
            path = await make_scenario(self.app, self.state)
        except WhatifError as problem:
            self.fail(str(problem))
        else:
            if path is not None:
                self.post_message(FileRequested(str(path)))

    def action_edit_file(self) -> None:
        """Open the file of the parameter or table under the cursor in the editor."""
        row = self.query_one(ParameterTree).row
        self.post_message(EditorRequested("" if row is None else row.path))

    @work
    async def action_export(self) -> None:
        """Write the plot of the visible page to a file."""
        from whatif.tui.files.export import export_plot  # noqa: PLC0415 - not for the first frame

        await export_plot(self.app, self.page, self.state)

    def action_help(self) -> None:
        """Explain what has the focus, and its keys."""
        from whatif.tui.screens.help import help_text  # noqa: PLC0415 - not for the first frame

        self.app.push_screen(TextDialog(*help_text(self, self.page, self.query_one(ParameterTree))))
