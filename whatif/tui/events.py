"""What widgets tell the desk; data goes the other way, by their `show` methods."""

from __future__ import annotations

from enum import Enum

from textual.message import Message

from whatif.tui.commands import Change, Choose


class ChangeAsked(Message):
    """The person wants the study changed."""

    def __init__(self, change: Change | Choose) -> None:
        super().__init__()
        self.change = change


class Purpose(Enum):
    """What a typed line is for."""

    VALUE = "value"
    RANGE = "sweep"
    SECOND = "and sweep"
    TARGET = "seek"
    FILTER = "filter"


class PromptAsked(Message):
    """The person wants to type something about the selected parameter."""

    def __init__(self, purpose: Purpose) -> None:
        super().__init__()
        self.purpose = purpose


class ParameterSelected(Message):
    """The cursor came to a parameter, or to a table of parameters; `path` is its dotted path, empty where no row is
    left."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class ErrorTold(Message):
    """Something that was asked cannot be done."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class JobAsked(Message):
    """The page in sight wants its job done again: what it asked for, not what is asked, has changed."""


class StopAsked(Message):
    """What is being computed is no longer wanted."""


class FileAsked(Message):
    """The person wants to open another scenario; `source` is its path or name."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
