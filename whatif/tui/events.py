"""Messages from widgets to the main screen; data goes the other way, through their `show` methods."""

from __future__ import annotations

from enum import Enum

from textual.message import Message

from whatif.tui.commands.explorer_commands import Change, Choose
from whatif.tui.jobs.background import BackgroundJob


class ChangeRequested(Message):
    """Request to perform a command."""

    def __init__(self, change: Change | Choose) -> None:
        super().__init__()
        self.change = change


class Purpose(Enum):
    """Purpose of a typed line."""

    VALUE = "value"
    RANGE = "sweep"
    SECOND = "and sweep"
    TARGET = "seek"
    FILTER = "filter"


class PromptRequested(Message):
    """Request to type a line about the selected parameter."""

    def __init__(self, purpose: Purpose) -> None:
        super().__init__()
        self.purpose = purpose


class ParameterSelected(Message):
    """The cursor moved to a parameter or a table; `path` is its dotted path, empty if there is no row."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class ErrorReported(Message):
    """A request failed; `text` is the reason."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class JobRequested(Message):
    """The current page needs another job although the state has not changed."""


class BackgroundRequested(Message):
    """Request to compute something in the background."""

    def __init__(self, job: BackgroundJob) -> None:
        super().__init__()
        self.job = job


class StopRequested(Message):
    """Request to cancel the running command."""


class FileRequested(Message):
    """Request to open another scenario, by path or name, and to perform changes there."""

    def __init__(self, source: str, changes: tuple[Change, ...] = ()) -> None:
        super().__init__()
        self.source = source
        self.changes = changes


class NewScenarioRequested(Message):
    """Request to put a new scenario together."""


class VariantFilesRequested(Message):
    """Request to write each variant to a scenario file of its own."""


class EditorRequested(Message):
    """Request to open the file of a parameter in the editor; `path` is that of a parameter or a table."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
