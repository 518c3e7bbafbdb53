"""Default keys of the whole explorer."""

from __future__ import annotations

from textual.app import App

from whatif.tui import page_registry
from whatif.tui.config import default_keys


def all_keys(explorer: type[App[None]]) -> dict[str, str]:
    """Default keys of every binding; imports all widgets and pages, so only for users with custom keys."""
    from whatif.tui.dialogs.form import ChoiceInput, FormScreen  # noqa: PLC0415
    from whatif.tui.dialogs.job_list import JobsDialog  # noqa: PLC0415
    from whatif.tui.dialogs.pick_list import PickList  # noqa: PLC0415
    from whatif.tui.dialogs.windows import ChoicePrompt, TextDialog, TextPrompt  # noqa: PLC0415
    from whatif.tui.screens.main_screen import MainScreen  # noqa: PLC0415
    from whatif.tui.widgets.cursor_list import CursorList  # noqa: PLC0415
    from whatif.tui.widgets.data_table import TableView  # noqa: PLC0415
    from whatif.tui.widgets.parameter_tree import ParameterTree  # noqa: PLC0415
    from whatif.tui.widgets.plot_view import PlotView  # noqa: PLC0415
    from whatif.tui.widgets.prompt import Prompt, PromptInput  # noqa: PLC0415
    from whatif.tui.widgets.why_tree import WhyTree  # noqa: PLC0415

    widgets = (ParameterTree, TableView, PlotView, CursorList, WhyTree, PromptInput, Prompt, ChoiceInput)
    screens = (explorer, MainScreen, TextDialog, ChoicePrompt, TextPrompt, PickList, JobsDialog, FormScreen)
    return default_keys((*screens, *widgets), page_registry.all_bindings())
