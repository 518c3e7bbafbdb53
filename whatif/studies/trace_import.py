"""Trace of another program: a summary of its ranks, and the scenario that replays it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from whatif.atomic import write_text
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.importers.trace_formats import read_trace
from whatif.plotting.presentable import Presentable
from whatif.simulation.rank_programs import Trace
from whatif.studies.scenario_sources import made_scenario
from whatif.studies.simulation_tables import trace_table
from whatif.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class ImportedTrace(Presentable):
    """A trace that was read; raise `InvalidFileError` for a file that is not one."""

    path: Path
    platform: str | Path | Platform | None = None
    platform_dirs: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        _ = self.trace

    @cached_property
    def trace(self) -> Trace:
        """Programs of all ranks."""
        return read_trace(self.path)

    def table(self) -> Table:
        """Operations of each rank, the messages and bytes it sends, and the time it computes."""
        return trace_table(self.trace)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the importer."""
        return self.trace.warnings

    @cached_property
    def scenario(self) -> Scenario:
        """Scenario that replays the trace on the platform."""
        return made_scenario("trace", self.path, self.platform, self.platform_dirs)

    def to_toml(self) -> str:
        """Text of the scenario file."""
        return self.scenario.to_toml()

    def write(self, path: str | Path) -> None:
        """Write the scenario file, whole or not at all. Raise `UsageError` for another folder than the trace's."""
        folder = self.path.resolve().parent
        if Path(path).resolve().parent != folder:
            raise UsageError(f"{path}: write the scenario into the folder of its trace, {folder}")
        write_text(path, self.to_toml())
