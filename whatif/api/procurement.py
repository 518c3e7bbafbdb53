"""Procurement studies: bids compared over a mix of applications within limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import overload

from whatif.api.common import Overrides
from whatif.core.scenario import Scenario
from whatif.core.sweep import SweepText
from whatif.errors import UsageError
from whatif.files.study_edits import edited_study, put_study
from whatif.files.study_template import write_study_template
from whatif.paths import toml_path
from whatif.schema.study_file import open_study
from whatif.schema.toml import Document
from whatif.studies.procurement.placing import present_scenario
from whatif.studies.procurement.study import Study, study_of
from whatif.studies.procurement.sweeping import StudySweep, absolute_values, study_sweep
from whatif.vocabulary import StudyView

AnyStudy = str | Path
"""Name of a shipped study, or path of a file."""


def new_study(new: str | Path) -> Path:
    """Path of a new file, NAME.toml, with a commented study to begin with. Raise `UsageError` for one that exists.

    >>> import whatif
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = whatif.new_study(Path(folder) / "ours")
    ...     print(path.name, whatif.study(path).winner)
    ours.toml north
    """
    path = toml_path(new)
    write_study_template(path)
    return path


def study_page(source: AnyStudy | Study, output: str | Path, *, overrides: Overrides | None = None) -> Study:
    """Study whose page for the committee is written: recommendation, bids, commitments, sensitivity, questions, files.

    `output` is a file `.html`, one page that loads nothing, or `.pdf`, the same page in print. The other parameters are
    those of `study`. Needs the extra `report`, and for a PDF the extra `pdf`; raise `UsageError` without them.

    >>> import tempfile, whatif
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = whatif.new_study(f"{folder}/ours.toml")
    ...     found = whatif.study_page(f"{folder}/ours.toml", f"{folder}/page.html")
    >>> found.winner
    'north'
    """
    from whatif.reporting.study_page import check_page, write_study_page

    check_page(Path(output))
    found = source if isinstance(source, Study) else study(source, overrides=overrides)
    write_study_page(found, Path(output))
    return found


def study_scenario(source: AnyStudy, overrides: Overrides | None = None) -> Scenario:
    """The first application of the mix of a study on its present machine, as a scenario file that is not written.

    Raise `InvalidFileError` with every problem of the files.
    """
    return present_scenario(open_study(source, absolute_values(source, overrides or {})))


def save_study(source: AnyStudy | Document, overrides: Overrides, path: str | Path) -> None:
    """Write a study with overrides into its own file or another one; comments and order stay.

    The new file must be usable where it is. Raise `InvalidFileError` if a file that it names is missing, `UsageError`
    if it cannot be written.
    """
    document = open_study(source).document
    edited = edited_study(document, absolute_values(document, overrides), Path(path))
    study_of(edited)
    put_study(Path(path), document, edited)


@overload
def study(source: AnyStudy, *, overrides: Overrides | None = None, show: StudyView = "bids") -> Study: ...


@overload
def study(source: AnyStudy, *, overrides: Overrides | None = None, sweep: Mapping[str, SweepText]) -> StudySweep: ...


def study(
    source: AnyStudy,
    *,
    overrides: Overrides | None = None,
    sweep: Mapping[str, SweepText] | None = None,
    show: StudyView = "bids",
) -> Study | StudySweep:
    """Bids of a study file within its limits, ranked over its mix of applications, with probabilities.

    `overrides` are values of the study by path, such as `{"limits.power": "2.5 MW"}` or
    `{"bids.north.overrides.node.gpu_count": 8}`. `show` selects the table: `bids`, `jobs`, `commitments`, `turns`
    (where the ranking changes), `changes` (with which bids win), `options` or `questions` (assumed values, to ask the
    vendors). With `sweep`, `{path: values}`, the result is the ranking at each value.

    Raise `InvalidFileError` with every problem of the files, each with line, column and key; `UsageError` for an
    unknown path and a value that is not allowed.

    >>> import whatif
    >>> found = whatif.study("successor")
    >>> found.winner, float(found.outcomes["present"].throughput[0])
    ('accelerators', 1.0)
    """
    stated = absolute_values(source, overrides or {})
    if sweep is None:
        return study_of(source, stated, show=show)
    if len(sweep) != 1:
        raise UsageError("a study is swept over one parameter")
    ((path, values),) = sweep.items()
    return study_sweep(source, path, values, stated)
