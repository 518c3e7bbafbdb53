"""What a question of the page `decide` is asked about, and what it answers, as both cross between processes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from whatif.engine.result import Question
from whatif.engine.session import Asked
from whatif.engine.term import Program
from whatif.export.bars import BarChart
from whatif.export.plot import PlotDescription
from whatif.export.save import scenario_words
from whatif.table import Table
from whatif.tui.commands import Adopt, Edit, EditAll
from whatif.tui.study import View


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A study in short."""

    asked: Asked
    baseline: Asked
    changed: bool
    """Whether the values differ from those of the baseline."""
    view: View
    result: str
    """The result column or `terms.PHASE` that is asked about."""
    seconds: float
    """What one point takes."""

    @property
    def program(self) -> Program:
        """The compiled question."""
        return self.asked.program

    @property
    def question(self) -> Question:
        """The file with its changes."""
        return self.asked.question

    def command(self, verb: str, *options: str, machine: bool = True) -> str:
        """A command line about the same scenario, on its machine or on those that the options name."""
        return shlex.join(["whatif", *verb.split(), *scenario_words(self.question, machine=machine), *options])


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """An answer: words, and where there is one a table and its picture."""

    title: str
    sentences: tuple[str, ...]
    table: Table | None = None
    picture: BarChart | PlotDescription | None = None
    changes: tuple[Adopt | Edit | EditAll | None, ...] = ()
    """What taking a row of the table, or of the bars, changes."""
    command: str = ""
    """The command line that gives the same answer; empty where there is none."""
