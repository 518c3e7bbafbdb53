"""Files that results follow from: those of a compiled scenario, and those of a procurement study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from whatif.core.term import Program
from whatif.errors import WhatifError
from whatif.importers.trace_formats import trace_files
from whatif.schema.load import load_platform_document, open_document
from whatif.schema.study_spec import PRESENT
from whatif.schema.toml import Document
from whatif.studies.procurement.placing import file_of_runs
from whatif.studies.procurement.study import Study

_NAMED: Final = ("file", "mapping_file")
"""Keys of parameters that name a file in the folder of the scenario."""


def documents_of(program: Program) -> list[Document]:
    """Files that a scenario was merged from."""
    return [layer.document for layer in program.loaded.layers.items if layer.document.folder is not None]


def paths_of(program: Program) -> Iterator[Path]:
    """Files that a program was made from: those that its scenario was merged from, and the traces that they name."""
    documents = documents_of(program)
    yield from (Path(document.name).resolve() for document in documents)
    folder = (documents[-1].folder if documents else None) or Path()
    for parameter in program.parameters.values():
        if parameter.path.rpartition(".")[2] in _NAMED and parameter.structural:
            yield from (item.resolve() for item in trace_files(folder / parameter.text()) if item.is_file())


def study_paths(found: Study) -> Iterator[Path]:
    """Files of a study: its own, then the platforms, scenarios and runs that it names, with all that they extend."""
    file = found.file
    documents = [file.document]
    for machine in file.spec.machines.values():
        document = open_document(file.source(machine.platform), "platforms", (file.folder,))
        documents += [layer.document for layer in load_platform_document(document, (file.folder,))[1].items]
    yield from (Path(document.name).resolve() for document in documents if document.folder is not None)
    for its in found.jobs.scenarios.values():
        for scenario in its.values():
            # A job that cannot run may have no program.
            with suppress(WhatifError):
                yield from paths_of(scenario.program)
    for name, scenario in found.jobs.scenarios[PRESENT].items():
        runs = file_of_runs(file, name, scenario)
        if runs is not None:
            yield runs.resolve()
