"""Files of copies between host and device as one table."""

from __future__ import annotations

from pathlib import Path

from whatif.importers.measurement_files import Files, paths_in_folders
from whatif.importers.rows import joined
from whatif.importers.sqlite import is_sqlite
from whatif.importers.text import reading
from whatif.profiles.nvprof import read_copies, read_copy_summary
from whatif.table import Table


def read_transfer_files(files: Files) -> Table:
    """Copies of nvprof profiles, or of summaries as CSV. Raise `UsageError` for files of both kinds."""
    paths = paths_in_folders(files)
    return joined([_read(path) for path in paths])


def _read(path: Path) -> Table:
    with reading(path, "copies of nvprof"):
        return read_copies(path) if is_sqlite(path) else read_copy_summary(path)
