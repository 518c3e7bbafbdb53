"""Names of all choices of a field in one line, the present one marked; a click chooses another one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from textual import events
from textual.content import Content
from textual.widgets import Static

from whatif.tui.commands.explorer_commands import Show
from whatif.tui.events import ChangeRequested


class ChoiceBar(Static):
    """Names of the choices of a field of the view, `PAGE.FIELD`."""

    DEFAULT_CSS = "ChoiceBar { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, field: str, names: Iterable[str], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self._field, self._choices = field, tuple(names)

    def show(self, present: str) -> None:
        """Mark a choice."""
        styles = ("bold reverse $text-primary" if name == present else "$text-muted" for name in self._choices)
        words = (f" {name} " for name in self._choices)
        self.update(Content.assemble(*zip(words, styles, strict=True)), layout=False)

    def on_click(self, event: events.Click) -> None:
        """Choose what is under the mouse."""
        offset = event.get_content_offset(self)
        ends = accumulate(len(name) + 2 for name in self._choices)
        under = (name for name, end in zip(self._choices, ends, strict=True) if offset is not None and offset.x < end)
        name = next(under, None)
        if name is not None:
            self.post_message(ChangeRequested(Show(self._field, name)))
