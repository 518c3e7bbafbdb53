"""Answer to a study for its page, in a worker process, which keeps the jobs of the study seen last."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

from whatif.api.procurement import save_study
from whatif.plotting.bars import BarChart
from whatif.schema.parameters import stated_parameters
from whatif.schema.study_file import open_study
from whatif.schema.toml import Document
from whatif.studies.input_files import study_paths
from whatif.studies.procurement.study import study_of
from whatif.studies.procurement.study_jobs import JobCache
from whatif.studies.procurement.sweeping import absolute_values
from whatif.table import Table
from whatif.tui.commands.study_values import text_of, value_in, values_in
from whatif.tui.jobs.refusal import answer_or_refusal
from whatif.vocabulary import StudyView


class StudyRequest(NamedTuple):
    """Inputs of the answer; `version` counts the changes of the files on disk."""

    file: str
    values: str
    show: str
    version: int


class StudyAnswer(NamedTuple):
    """A study in one view."""

    question: str
    words: tuple[str, ...]
    """The recommendation, the best bid first."""
    remarks: tuple[str, ...]
    bars: BarChart
    table: Table
    best: str
    changed: tuple[str, ...]
    """Changed values in words, with those of the file."""
    values: tuple[tuple[str, str], ...]
    """Path and text of every value that the study states."""
    files: tuple[Path, ...]
    """Files that the answer follows from."""
    document: Document
    """The file of the study as it was read, without changed values."""


# Of the study seen last: its file and the version of that, with its jobs.
_kept: tuple[object, JobCache] = (None, JobCache())


@answer_or_refusal
def answered(request: StudyRequest) -> StudyAnswer:
    """Answer to a study with changed values."""
    values = absolute_values(request.file, values_in(request.values))
    found = study_of(request.file, values, show=cast("StudyView", request.show), cache=_cache(request))
    stated = {path: item.text() for path, item in stated_parameters(found.file.spec, found.file.layers).items()}
    return StudyAnswer(
        question=found.file.spec.question or Path(request.file).stem,
        words=(*found.summary(), *filter(None, (found.obstacle(),))),
        remarks=found.remarks,
        bars=found.picture(),
        table=found.table(),
        best=found.winner,
        changed=_changed(request.file, values, stated),
        values=tuple(stated.items()),
        files=tuple(dict.fromkeys(study_paths(found))),
        document=found.file.document,
    )


def _cache(request: StudyRequest) -> JobCache:
    global _kept  # noqa: PLW0603 - a process answers one study at a time
    key = request.file, request.version
    if _kept[0] != key:
        _kept = key, JobCache()
    return _kept[1]


def _changed(file: str, values: dict[str, str], stated: dict[str, str]) -> tuple[str, ...]:
    base = open_study(file)
    known = stated_parameters(base.spec, base.layers)
    before = {path: known[path].text() if path in known else "not stated" for path in values}
    return tuple(f"{path}: {before[path]} → {stated.get(path, text)}" for path, text in values.items())


def with_value(file: str, values: str, line: str) -> str:
    """Changed values of a study with that of `PATH = VALUE`; raise `WhatifError` for one that the study cannot have."""
    path, text = value_in(line)
    changed = {**values_in(values), path: text}
    open_study(file, absolute_values(file, changed))
    return text_of(changed)


def saved(study: str | Document, values: str, path: Path) -> str:
    """Message about a study whose changed values are written to a file."""
    save_study(study, values_in(values), path)
    return f"saved to {path}"
