"""Line below a plot: what its curves answer, in one sentence."""

from __future__ import annotations

import re
from typing import ClassVar

from whatif.core.sweep_answers import Answers
from whatif.tui.widgets.unchanged import KeptStatic


class AnswerLine(KeptStatic):
    """One line with as many clauses as fit; hidden without an answer. `full` has one sentence a line."""

    DEFAULT_CSS: ClassVar[str] = """
    AnswerLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.full = self._line = ""

    def show(self, answers: Answers | None, prefix: str = "") -> None:
        """Show the answers of another plot after a prefix, or none."""
        notes = () if answers is None else answers.notes
        self.full = prefix + "\n".join(notes) if notes else ""
        self.display = bool(notes)
        self._line = f"{prefix}{'; '.join(notes)}"
        self.on_resize()

    def on_resize(self) -> None:
        """Show the clauses that there is room for."""
        self.update(whole_clauses(self._line, self.size.width or len(self._line)))


def whole_clauses(text: str, width: int) -> str:
    """Clauses of a text that fit in a line, with an ellipsis for the others: a number keeps its unit."""
    ends = [found.start() for found in re.finditer("[:;,] ", text) if found.start() + len(" …") <= width]
    return text if len(text) <= width or not ends else f"{text[: ends[-1]]} …"
