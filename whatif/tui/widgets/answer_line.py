"""Line below a plot: what its curves answer, in one sentence."""

from __future__ import annotations

from typing import ClassVar

from whatif.core.sweep_answers import Answers
from whatif.tui.widgets.unchanged import KeptStatic


class AnswerLine(KeptStatic):
    """One line, cut with an ellipsis; hidden without an answer. `full` has one sentence a line."""

    DEFAULT_CSS: ClassVar[str] = """
    AnswerLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.full = ""

    def show(self, answers: Answers | None, prefix: str = "") -> None:
        """Show the answers of another plot after a prefix, or none."""
        notes = () if answers is None else answers.notes
        self.full = prefix + "\n".join(notes) if notes else ""
        self.display = bool(notes)
        self.update(f"{prefix}{'; '.join(notes)}")
