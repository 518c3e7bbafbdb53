"""Models fitted to measured runs: tables to show, and files for scenarios."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from whatif.atomic import write_text
from whatif.errors import UsageError
from whatif.files.run_machine import machine_path, machine_text
from whatif.files.trace_scenario import ranks_per_node
from whatif.paths import is_file
from whatif.plotting.presentable import Presentable
from whatif.schema.load import load_platform
from whatif.schema.shipped import is_name
from whatif.schema.toml import read_document
from whatif.table import Table


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

        The scenario is in the same folder and runs on `platform`, by default on `SCENARIO_machine.toml`, which is
        written next to it and states nothing that the runs do not tell. `source` is the text of `[sources]`; without
        it the text names the files of the runs. Raise `UsageError` for a file that cannot be
        written, or that holds something else; then nothing is changed.
        """

    def source_text(self, source: str | None) -> str:
        """Text of `[sources]`."""
        return source or f"fitted to {self.runs.notes.get('file', 'runs')} ({len(self.runs)} runs)"


@dataclass(frozen=True)
class ScenarioTarget:
    """Scenario to write with a model, and its platform; without one, a file of the unknown machine of the runs."""

    path: Path
    platform: str
    machine: str = ""
    """Text of the machine's file."""

    @property
    def ranks_per_node(self) -> dict[str, int]:
        """Key `ranks_per_node` of the application, if neither the platform nor the runs state it."""
        return {"ranks_per_node": 1} if self.machine else ranks_per_node(load_platform(self.platform)[0])

    @classmethod
    def of(cls, scenario: str | Path | None, platform: str | None, runs: Table) -> ScenarioTarget | None:
        """Target of a path. Raise `UsageError` for a platform without a scenario: it would have no effect."""
        if scenario is None:
            if platform is not None:
                raise UsageError("--platform needs --scenario: it is the platform of the scenario")
            return None
        if platform is not None:
            return cls(Path(scenario), platform)
        names = (Path(name).name for name in runs.notes.get("file", "the runs").split("; "))
        return cls(Path(scenario), machine_path(Path(scenario)).stem, machine_text(", ".join(names)))


def write_model(
    path: Path,
    part: str,
    kind: str,
    target: ScenarioTarget | None,
    scenario_text: Callable[[str, ScenarioTarget], str],
    variable: str = "",
) -> tuple[str, ...]:
    """Write a part, and a scenario for its name, all or nothing; return remarks with a command to run.

    `variable` is a parameter of the scenario to predict at, or empty.
    """
    _refuse_part(path, kind)
    if target is None:
        write_text(path, part)
        return (f"written: {path}",)
    # A new part with an old scenario would answer the old scenario.
    texts = {target.path: scenario_text(path.stem, target)}
    if target.machine:
        texts[machine_path(target.path)] = target.machine
    for file, text in texts.items():
        _refuse_scenario(file, text, path)
    for file, text in {path: part, **texts}.items():
        write_text(file, text)
    value = f" --set {variable}=VALUE" if variable else ""
    command = f"`whatif run {target.path} --point{value} --samples 1024` predicts with a band"
    machine = f"; energy and cost: state them in {machine_path(target.path).name}, or --platform NAME"
    return f"written: {path}", f"written: {target.path}; {command}{machine if target.machine else ''}"


def _refuse_part(path: Path, kind: str) -> None:
    """Raise `UsageError` for a name that no phase could extend, and for a file with other content."""
    if path.suffix != ".toml" or not is_name(path.stem):
        raise UsageError(f"{path}: phases extend it by its name: call the file NAME.toml")
    if is_file(path) and read_document(path).data.get("kind") != kind:
        raise UsageError(f"{path}: already exists and holds something else; not overwritten")


def _refuse_scenario(path: Path, text: str, part: Path) -> None:
    """Raise `UsageError` for a scenario in another folder, and for a file with other content."""
    if path.resolve() == part.resolve():
        raise UsageError(f"{path}: the part and the scenario need two files")
    if path.resolve().parent != part.resolve().parent:
        raise UsageError(f"{path}: the scenario needs {part.name} in its folder: write both into one folder")
    if is_file(path) and path.read_bytes() != text.encode():
        raise UsageError(f"{path}: already exists; not overwritten")
