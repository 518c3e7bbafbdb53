"""Files of copies between host and device as one table."""

from __future__ import annotations

from whatif.importers.measurement_files import Files, paths_in_folders
from whatif.importers.rows import joined
from whatif.profiles.nvprof import is_database, read_copies, read_copy_summary
from whatif.table import Table


def read_transfer_files(files: Files) -> Table:
    """Copies of nvprof profiles, or of summaries as CSV. Raise `UsageError` for files of both kinds."""
    paths = paths_in_folders(files)
    return joined([read_copies(path) if is_database(path) else read_copy_summary(path) for path in paths])
