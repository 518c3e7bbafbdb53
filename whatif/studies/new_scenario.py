"""New scenario: its machine, shipped or put together from parts, its phases, and its measured runs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.atomic import write_text
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.files.machine_template import MachineParts
from whatif.files.scenario_template import template
from whatif.importers.mapping import split_unit
from whatif.importers.run_columns import usual_heading
from whatif.importers.runs_csv import RunSheet, ranks_of_nodes, read_run_sheet
from whatif.importers.text import refuse
from whatif.paths import exists
from whatif.schema.motifs import source_name
from whatif.schema.phase_edits import free_phase_name
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import KeyPath, parse_document, shown_path
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import comment_line, toml_value
from whatif.studies.measured_runs import is_heading, measured_runs

_TAKEN: Final = ("rank_count", "ranks_per_node", "iteration_count")
"""Values of the application that are those of its largest run."""


@dataclass(frozen=True, eq=False)
class NewScenario:
    """Files of a new scenario, not written yet."""

    path: Path
    text: str
    others: Mapping[Path, str] = field(default_factory=dict)
    """Texts of its machine and of its runs, where they are new files too."""
    notes: tuple[str, ...] = ()
    """Notes on values that were left out or renamed, and on the name."""

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
    sources: Sequence[str],
    *,
    machine_name: str = "",
    runs: Path | None,
    folders: Sequence[Path],
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
        _require_valid(scenario, machine)
        found = NewScenario(path, text) if runs is None else _with_runs(scenario, path, runs)
    notes = (*found.notes, *_same_name(path))
    return replace(found, others={**files, **found.others}, notes=notes)


def _same_name(path: Path) -> Iterator[str]:
    """Warning of a file with the name of a shipped scenario, which a command takes in its place."""
    if path.stem in shipped_names("scenarios"):
        yield f"warning: `{path.stem}` is a shipped scenario, too: `whatif run {shown_path(path)}` runs the new file"


def _require_valid(scenario: Scenario, machine: str | MachineParts) -> None:
    """Raise `UsageError` for phases that the machine does not allow: no file is written whose line could be named."""
    try:
        _ = scenario.program
    except InvalidFileError as error:
        lines = [f"{problem.key}: {problem.message}" for problem in error.problems]
        lacks_gpu = isinstance(machine, MachineParts) and not machine.gpu and "has no GPU" in str(error)
        hint = "; add --gpu PART, of `whatif list parts`" if lacks_gpu else ""
        raise UsageError("\n".join(lines) + hint) from None


def _with_runs(scenario: Scenario, path: Path, runs: Path) -> NewScenario:
    """Scenario at a path with a CSV file of its measured runs; ranks and iterations become those of the largest run.

    Headings such as `ranks`, `nodes` and `time [s]` are renamed, and other columns left out, in a copy
    `NAME_runs.csv` next to the scenario; a file there that fits is named as it is. Raise `InvalidFileError` for columns
    that do not fit.
    """
    if not runs.is_file():
        raise UsageError(f"{runs}: no such file of runs")
    sheet = read_run_sheet(runs)
    columns, notes = _renamed(sheet, scenario)
    as_it_is = not notes and runs.resolve().parent == path.parent.resolve()
    name = runs.name if as_it_is else f"{path.stem}_runs.csv"
    content = _csv(columns, f"Measured runs of {runs.name}")
    values = {("runs",): toml_value(name), **_largest(columns)}
    text = with_values(scenario.document.text, dict(values))
    stated = Scenario(parse_document(text, path.name, path.parent), folders=scenario.folders)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / name
        write_text(copy, content)
        measured_runs(stated, runs if as_it_is else copy)
    return NewScenario(path, text, {} if as_it_is else {path.parent / name: content}, notes)


def _renamed(sheet: RunSheet, scenario: Scenario) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Columns by the names that the scenario has for them, and a note for each other heading."""
    columns: dict[str, NDArray[Any]] = {}
    notes: list[str] = []
    for heading, values in sheet.values.items():
        name, unit = split_unit(heading)
        is_known = name.strip() in _TAKEN or is_heading(name.strip(), scenario.program)
        meant = name.strip() if is_known else usual_heading(name)
        if any(split_unit(column)[0].strip() == meant for column in columns):
            raise refuse(sheet.file, f"a second column of `{meant}`: leave one of them out", 0, heading)
        if meant:
            columns[heading if is_known else f"{meant} [{unit}]" if unit else meant] = values
        if not is_known:
            used = "used with the ranks: `ranks_per_node`" if meant == "nodes" else f"taken as `{meant}`"
            notes.append(f"{sheet.file}: `{heading}` is {used if meant else 'left out'}")
    if "nodes" in columns:
        columns["ranks_per_node"] = ranks_of_nodes(sheet, columns.pop("nodes"), columns.get("rank_count"))
    return columns, tuple(notes)


def _csv(columns: Mapping[str, NDArray[Any]], title: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        writer.writerow(map(_cell, row))
    return comment_line(title) + out.getvalue()


def _cell(item: Any) -> str:
    """Cell of a file: a number to its last digit, nothing for a missing one."""
    if not isinstance(item, float):
        return str(item)
    return "" if math.isnan(item) else f"{item:.15g}"


def _largest(columns: Mapping[str, NDArray[Any]]) -> dict[KeyPath, str]:
    """Numbers of ranks and iterations of the run with the most ranks."""
    found = {name.removeprefix("application."): values for name, values in columns.items()}
    known = {name: found[name] for name in _TAKEN if name in found and found[name].dtype != object}
    if "rank_count" not in known or not np.isfinite(np.stack(list(known.values()))).all():
        return {}
    at = int(np.argmax(known["rank_count"]))
    return {("application", name): toml_value(int(values[at])) for name, values in known.items()}
