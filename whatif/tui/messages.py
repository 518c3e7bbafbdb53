"""What widgets tell the screen; data goes the other way, by their `show` methods."""

from __future__ import annotations

from enum import Enum

from textual.message import Message

from whatif.tui.changes import Change


class ChangeAsked(Message):
    """The person wants the session changed."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change


class Purpose(Enum):
    """What a typed line is for."""

    VALUE = "value"
    RANGE = "sweep"
    FILTER = "filter"


class PromptAsked(Message):
    """The person wants to type something about the selected leaf."""

    def __init__(self, purpose: Purpose) -> None:
        super().__init__()
        self.purpose = purpose


class LeafSelected(Message):
    """The cursor came to a leaf, or to a table of leaves; `path` is its dotted path."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
