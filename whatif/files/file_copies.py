"""Copies of scenario, study and platform files in other folders, with what their relative paths lead to."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from pathlib import Path
from typing import Final

from whatif.atomic import atomic_file
from whatif.errors import InvalidFileError, UsageError
from whatif.paths import exists, is_file
from whatif.schema.toml import read_document

_SCHEMA: Final = re.compile(r"\ufeff?#:schema +(?P<path>[^\r\n]*\S)")


def copy_file(source: Path, path: Path) -> str:
    """Copy a file and the measured runs that it names; remark on the runs.

    Raise `UsageError` if a file cannot be read or written.
    """
    try:
        text = source.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
    with atomic_file(path) as temporary:
        temporary.write_bytes(with_schema(text, source.parent, path.parent).encode(errors="surrogateescape"))
    return copy_named_runs(_runs(source), source.parent, path.parent)


def _runs(source: Path) -> str | None:
    """File of runs that a file names; None also for an invalid file."""
    try:
        name = read_document(source).data.get("runs")
    except InvalidFileError:
        return None
    return name if isinstance(name, str) else None


def with_schema(text: str, before: Path | None, after: Path) -> str:
    """Text of a file for another folder: a relative path in its line `#:schema` leads to the same file."""
    found = _SCHEMA.match(text)
    if found is None or before is None or Path(found["path"]).is_absolute() or not is_file(before / found["path"]):
        return text
    path = Path(os.path.relpath(before / found["path"], after)).as_posix()
    return text[: found.start("path")] + path + text[found.end("path") :]


def copy_named_runs(name: str | None, before: Path | None, after: Path) -> str:
    """Copy the file of runs that a scenario names into another folder; remark on the copy, or on another file of its
    name.

    Raise `UsageError` if it cannot be written.
    """
    if name is None or before is None or not is_file(before / name):
        return ""
    there = after / name
    if copy_runs(before / name, there):
        return f", its runs to {there}"
    return f"; {there} is another file than its runs" if holds_others(before / name, there) else ""


def copy_runs(runs: Path, there: Path) -> bool:
    """Copy a file of runs unless a file of that name exists; whether it was copied.

    Raise `UsageError` if it cannot be written.
    """
    if exists(there):
        return False
    with atomic_file(there) as temporary:
        shutil.copyfile(runs, temporary)
    return True


def holds_others(runs: Path, there: Path) -> bool:
    """Whether a file of that name exists and differs from the file of runs."""
    try:
        return exists(there) and not filecmp.cmp(runs, there, shallow=False)
    except OSError:
        return True
