"""Files that a compiled scenario was made from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from whatif.core.term import Program
from whatif.schema.toml import Document

_NAMED: Final = ("file", "mapping_file")
"""Keys of parameters that name a file in the folder of the scenario."""


def documents_of(program: Program) -> list[Document]:
    """Files that a scenario was merged from."""
    return [layer.document for layer in program.loaded.layers.items if layer.document.folder is not None]


def paths_of(program: Program) -> Iterator[Path]:
    """Files that a program was made from: those that its scenario was merged from, and those that they name."""
    yield from (Path(document.name).resolve() for document in documents_of(program))
    yield from named_files(program)


def named_files(program: Program) -> Iterator[Path]:
    """Files that parameters of a scenario name, such as traces."""
    documents = documents_of(program)
    folder = (documents[-1].folder if documents else None) or Path()
    for parameter in program.parameters.values():
        if parameter.path.rpartition(".")[2] in _NAMED and parameter.structural:
            yield from _files_at(folder / parameter.text())


def _files_at(path: Path) -> Iterator[Path]:
    # Most scenarios name no file, and need no formats of traces.
    from whatif.importers.trace_formats import trace_files

    return (item.resolve() for item in trace_files(path) if item.is_file())
