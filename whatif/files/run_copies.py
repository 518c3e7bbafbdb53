"""Copies of files of measured runs, next to scenarios that are written into other folders."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from whatif.atomic import atomic_file
from whatif.paths import exists


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
