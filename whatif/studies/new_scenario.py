"""New scenario: its machine, shipped or put together from parts, its phases, and its measured runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from whatif.atomic import write_text
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.files.machine_template import MachineParts
from whatif.files.scenario_template import template
from whatif.paths import exists
from whatif.schema.motifs import source_name
from whatif.schema.phase_edits import free_phase_name
from whatif.schema.toml import parse_document, shown_path
from whatif.studies.new_runs import RunsOfScenario, with_runs


@dataclass(frozen=True, eq=False)
class NewScenario:
    """Files of a new scenario, not written yet."""

    path: Path
    text: str
    others: Mapping[Path, str] = field(default_factory=dict)
    """Texts of its machine and of its runs, where they are new files too."""
    notes: tuple[str, ...] = ()
    """Notes on values that were left out or renamed."""

    @property
    def files(self) -> dict[Path, str]:
        """Texts of all files, the scenario last: it needs the others."""
        return {**self.others, self.path: self.text}

    def to_toml(self) -> str:
        """Text of the scenario file."""
        return self.text

    def write(self, *, overwrite: bool = False) -> None:
        """Write all files, each whole or not at all. Raise `UsageError` for one that exists, unless `overwrite`."""
        if not overwrite:
            _refuse_taken(self.files)
        for path, text in self.files.items():
            write_text(path, text)


def _refuse_taken(paths: Iterable[Path]) -> None:
    taken = [shown_path(path) for path in paths if exists(path)]
    if taken:
        raise UsageError(f"{', '.join(taken)}: exists already, and is not overwritten; choose another name")


def named_phases(sources: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Name and source of each phase, of texts `SOURCE` or `NAME=SOURCE`; names are numbered where they repeat."""
    found: dict[str, str] = {}
    for text in sources:
        name, _, source = (part.strip() for part in text.rpartition("="))
        found[free_phase_name(name or source_name(source), found)] = source
    return tuple(found.items())


def new_scenario(
    path: Path,
    machine: str | MachineParts,
    sources: Sequence[str] = (),
    *,
    machine_name: str = "",
    runs: Path | None = None,
    folders: Sequence[Path] = (),
) -> NewScenario:
    """Scenario at a path, with its machine as a platform file next to it if it is put together from parts.

    `sources` are its phases, as `named_phases` takes them; `runs` is a CSV file of measured runs. Raise `WhatifError`
    for what does not fit together.
    """
    name = machine if isinstance(machine, str) else machine_name or f"{path.stem}_machine"
    with TemporaryDirectory() as made:
        search, files = (Path(made), path.parent, *folders), {}
        if isinstance(machine, MachineParts):
            files = {path.parent / f"{name}.toml": machine.document(name, (path.parent, *folders)).text}
            _refuse_taken(files)
            write_text(Path(made) / f"{name}.toml", files[path.parent / f"{name}.toml"])
        text = template(path.stem, name, search, named_phases(sources), path.parent)
        scenario = Scenario(parse_document(text, path.name, path.parent), folders=search)
        _ = scenario.program
        found = RunsOfScenario(text) if runs is None else with_runs(scenario, path, runs)
    return NewScenario(path, found.text, {**files, **found.files}, found.notes)
