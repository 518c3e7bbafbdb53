"""Files that the results of a procurement study follow from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from whatif.core.program_files import paths_of
from whatif.errors import WhatifError
from whatif.schema.load import load_platform_document, open_document
from whatif.schema.study_spec import PRESENT
from whatif.studies.procurement.placing import file_of_runs
from whatif.studies.procurement.study import Study


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
