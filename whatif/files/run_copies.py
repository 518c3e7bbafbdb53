"""Copies of files of measured runs, next to scenarios that are written into other folders."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from whatif.atomic import atomic_file
from whatif.paths import exists, is_file


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
