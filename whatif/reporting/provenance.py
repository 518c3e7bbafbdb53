"""Inputs of results: every value with its source and grade, and every file with its SHA-256."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from whatif.core.program_files import documents_of, paths_of
from whatif.core.scenario import structural_parts
from whatif.core.term import Program
from whatif.errors import InvalidFileError
from whatif.plotting.picture_style import typographic
from whatif.reporting.contents import Findings
from whatif.schema.parameters import Parameter
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import shown_path
from whatif.units import format_quantity


@dataclass(frozen=True, slots=True)
class Stated:
    """Value that results depend on."""

    name: str
    value: str
    grade: str
    source: str


def values_of(program: Program) -> dict[str, list[Stated]]:
    """Numbers that a result depends on, and choices of models, by table."""
    tables: dict[str, list[Stated]] = {}
    files = {document.name: _shown(Path(document.name).resolve()) for document in documents_of(program)}
    for path, parameter in program.parameters.items():
        if path in program.reached or (parameter.structural and parameter.choices):
            table, _, name = path.rpartition(".")
            source = files.get(parameter.source, parameter.source)
            tables.setdefault(table, []).append(Stated(name, typographic(_written(parameter)), parameter.grade, source))
    return tables


def _written(parameter: Parameter) -> str:
    known = parameter.fitted
    error = "" if known is None else f" ± {format_quantity(known.standard_error, parameter.dimension, 2)}"
    return f"{parameter.text()}{error}"


def files_of(found: Findings) -> list[tuple[str, str]]:
    """Name and SHA-256 of the files of a scenario, of its swept platforms, and of the other scenario."""
    programs = [found.scenario.program, *_swept(found)]
    programs += [found.other.program] if found.other is not None else []
    return hashes(path for program in programs for path in paths_of(program))


def hashes(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """Name and SHA-256 of files, each once."""
    return [(_shown(path), _digest(path)) for path in dict.fromkeys(paths)]


def _swept(found: Findings) -> Iterator[Program]:
    """Programs of a sweep over choices and platforms."""
    for _, choices in structural_parts(found.sweep.grid) if found.sweep is not None else ():
        with suppress(InvalidFileError):
            yield found.scenario.program_at(choices)


def _shown(path: Path) -> str:
    """Displayed name of a file; that of a shipped one is its path in the program."""
    home = shipped_folder("platforms").parent.resolve()
    return f"shipped with whatif: {path.relative_to(home)}" if path.is_relative_to(home) else shown_path(path)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
