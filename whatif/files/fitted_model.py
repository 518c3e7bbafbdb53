"""Models fitted to measured runs: tables to show, and files for scenarios."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from whatif.errors import UsageError
from whatif.files.part_file import refuse_part, refuse_scenario, write_part, write_scenario
from whatif.plotting.presentable import Presentable
from whatif.table import Table

PLATFORM: Final = "summit"
"""Platform of a scenario where none is stated."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedModel(Presentable):
    """A model of runs with the runs themselves and remarks."""

    runs: Table
    notes: tuple[str, ...] = ()

    @abstractmethod
    def write(
        self,
        path: str | Path,
        scenario: str | Path | None = None,
        *,
        platform: str | None = None,
        source: str | None = None,
    ) -> tuple[str, ...]:
        """Write a part file that phases extend, and a scenario that uses it; return remarks.

        The scenario is in the same folder and runs on `platform` (default: summit). `source` is the text of
        `[sources]`; without it the text names the files of the runs. Raise `UsageError` for a file that cannot be
        written, or that holds something else; then nothing is changed.
        """

    def source_text(self, source: str | None) -> str:
        """Text of `[sources]`."""
        return source or f"fitted to {self.runs.notes.get('file', 'runs')} ({len(self.runs)} runs)"


def write_model(
    path: Path, part: str, kind: str, scenario: Path | None, scenario_text: Callable[[str], str], variable: str = ""
) -> tuple[str, ...]:
    """Write a part and a scenario for the part's name, both or none; return remarks with a command to run.

    `variable` is a parameter of the scenario to predict at.
    """
    refuse_part(path, kind)
    if scenario is None:
        write_part(path, part, kind)
        return (f"written: {path}",)
    # A new part with an old scenario would answer the old scenario.
    text = scenario_text(path.stem)
    refuse_scenario(scenario, text, path)
    write_part(path, part, kind)
    write_scenario(scenario, text, path)
    value = f" --set {variable}=VALUE" if variable else ""
    command = f"`whatif run {scenario} --point{value} --samples 1024` predicts with a band"
    return f"written: {path}", f"written: {scenario}; {command}"


def platform_of(platform: str | None, scenario: str | Path | None) -> str:
    """Platform of a scenario. Raise `UsageError` for a platform without a scenario: it would have no effect."""
    if platform is not None and scenario is None:
        raise UsageError("--platform needs --scenario: it is the platform of the scenario")
    return platform or PLATFORM
