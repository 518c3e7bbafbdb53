"""Base of the results of studies, and the remarks on their inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from whatif.core.calibration_notes import model_notes
from whatif.core.evaluate import evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.machine_notes import note_on
from whatif.core.scenario import Scenario
from whatif.errors import abridged
from whatif.plotting.presentable import Presentable
from whatif.schema.load import stated_values
from whatif.table import Table

_LISTED: Final = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StudyResult(Presentable):
    """Base of the results of studies."""

    remarks: tuple[str, ...] = ()
    """Remarks on the inputs, such as assumed values."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the inputs, then the summary of the answer; the command line prints them to stderr."""
        return (*self.remarks, *self.summary())

    def readable_table(self) -> Table:
        """Table for a terminal: as `table`, where an empty column is an answer, too."""
        return self.table()

    def summary(self) -> tuple[str, ...]:
        """The answer in words, a line each."""
        return ()

    def about(self, *scenarios: Scenario) -> Self:
        """The same result with the remarks on the inputs of some scenarios."""
        return replace(self, remarks=(*self.remarks, *input_remarks(*scenarios)))


def input_remarks(*scenarios: Scenario) -> tuple[str, ...]:
    """Platforms whose results rest on assumed values, and inputs outside the range of their fits."""
    found: list[str] = []
    programs = [scenario.program for scenario in scenarios]
    several = len({program.loaded.name for program in programs}) > 1
    for program in programs:
        platform = program.loaded.scenario.platform.name
        where = f"{program.loaded.name} on {platform}" if several else platform
        if program.grade == "assumed":
            found.append(f"{platform}: rests on assumed values")
        found += [note_on(where, note) for note in model_notes(program)]
        # A simulation costs too much for a remark.
        outside = () if program.loaded.scenario.application.costly_points else extrapolations(evaluate(program))
        found += [f"warning: {where}: {text}" for text in outside]
    return tuple(dict.fromkeys(found))


def values_on_all_platforms(*scenarios: Scenario) -> tuple[str, ...]:
    """Remark per scenario whose file states values of its platform: they are the same on every platform."""
    found = []
    for scenario in scenarios:
        paths = stated_values(scenario.document, scenario.folders)
        if paths:
            name = Path(scenario.document.name).stem
            found.append(f"{name} itself states {abridged(paths, _LISTED)}: the same on every machine")
    return tuple(found)
