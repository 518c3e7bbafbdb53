"""Copies of scenario, study and platform files in other folders, with what their relative paths lead to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from whatif.atomic import atomic_file
from whatif.errors import InvalidFileError, UsageError
from whatif.files.run_copies import copy_named_runs
from whatif.paths import is_file
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
