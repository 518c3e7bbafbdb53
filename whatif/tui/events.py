"""Messages from widgets to the main screen; data goes the other way, through their `show` methods."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from textual.message import Message

from whatif.tui.commands.explorer_commands import Change, Choose
from whatif.tui.jobs.background import BackgroundJob


@dataclass(eq=False)
class ChangeRequested(Message):
    """Request to perform a command."""

    change: Change | Choose


class Purpose(Enum):
    """Purpose of a typed line."""

    VALUE = "value"
    RANGE = "sweep"
    SECOND = "and sweep"
    TARGET = "seek"
    FILTER = "filter"


@dataclass(eq=False)
class PromptRequested(Message):
    """Request to type a line about the selected parameter."""

    purpose: Purpose


@dataclass(eq=False)
class ParameterSelected(Message):
    """The cursor moved to a parameter or a table; `path` is its dotted path, empty if there is no row."""

    path: str


@dataclass(eq=False)
class ErrorReported(Message):
    """A request failed; `text` is the reason."""

    text: str


class JobRequested(Message):
    """The current page needs another job although the state has not changed."""


@dataclass(eq=False)
class BackgroundRequested(Message):
    """Request to compute something in the background."""

    job: BackgroundJob


class StopRequested(Message):
    """Request to cancel the running command."""


@dataclass(eq=False)
class FileRequested(Message):
    """Request to open another scenario, by path or name, and to perform changes there."""

    source: str
    changes: tuple[Change, ...] = ()


class NewScenarioRequested(Message):
    """Request to put a new scenario together."""


class VariantFilesRequested(Message):
    """Request to write each variant to a scenario file of its own."""


@dataclass(eq=False)
class EditorRequested(Message):
    """Request to open the file of a parameter in the editor; `path` is that of a parameter or a table."""

    path: str
