"""Requests and answers of the page `decide`, as they cross between processes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from whatif.api.editing import scenario_words
from whatif.core.scenario import Scenario
from whatif.core.session import SessionInputs
from whatif.core.term import Program
from whatif.plotting.bars import BarChart
from whatif.plotting.description import PlotDescription
from whatif.schema.phase_edits import edits_of
from whatif.table import Table
from whatif.tui.commands.explorer_commands import Adopt, Edit, EditAll
from whatif.tui.state import View


@dataclass(frozen=True, slots=True, eq=False)
class DecisionRequest:
    """Inputs of a decision."""

    inputs: SessionInputs
    baseline: SessionInputs
    changed: bool
    """Whether the values differ from those of the baseline."""
    decision: str
    """Name of the decision."""
    front_over: str
    """Parameter that the Pareto front varies; empty for the ranks."""
    view: View
    result: str
    """The result column or `terms.PHASE` that is asked about."""
    seconds: float
    """Time of one point."""
    names: tuple[str, str] = ("before", "now")
    """Names of the baseline and of the present values."""
    patient: bool = False
    """Whether it may take minutes."""

    @property
    def program(self) -> Program:
        """The compiled scenario."""
        return self.inputs.program

    @property
    def scenario(self) -> Scenario:
        """The file with its changes."""
        return self.inputs.scenario

    @property
    def present(self) -> str:
        """The name of the platform's file; empty if the scenario describes its machine itself."""
        return self.scenario.platform_name or ""

    @property
    def unedited(self) -> Scenario:
        """The scenario without edits of the present machine, which do not apply to the others."""
        return self.scenario.on_platform(self.scenario.platform)

    @property
    def edited(self) -> bool:
        """Whether values of the present machine are edited."""
        return self.unedited.overrides != self.scenario.overrides

    def platforms(self) -> list[str]:
        """All platforms that are known, the present one first."""
        names = dict.fromkeys([self.present, *self.scenario.known_platforms])
        return [name for name in names if name]

    def command(self, verb: str, *options: str, scenario: Scenario | None = None, machine: bool = True) -> str:
        """A command line about the same scenario, on its machine or on those that the options name.

        Empty if phases are edited, which a command line cannot state.
        """
        if edits_of(self.scenario.document):
            return ""
        words = scenario_words(scenario or self.scenario, machine=machine)
        return shlex.join(["whatif", *verb.split(), *words, *options])


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """An answer: words, and optionally a table and its picture."""

    title: str
    sentences: tuple[str, ...]
    table: Table | None = None
    picture: BarChart | PlotDescription | None = None
    changes: tuple[Adopt | Edit | EditAll | None, ...] = ()
    """Changes by choosing a row of the table or the bars."""
    command: str = ""
    """Command line with the same answer; empty without one."""
    seconds: float = 0.0
    """About how long the answer takes, where that is too long to wait for: it is refused."""
