"""Files and folders of measurements, with the columns and rows to use, as one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from whatif.arguments import pairs
from whatif.errors import UsageError
from whatif.importers.calibration_tables import read_calibration
from whatif.importers.gpu_benchmarks import read_gpu, read_kernels
from whatif.importers.logs import read_logs
from whatif.importers.mapping import parse_mapping
from whatif.importers.message_files import read_networks
from whatif.importers.rows import files_in, joined, tables_of_folder
from whatif.importers.run_files import chosen, read_runs
from whatif.importers.simgrid import is_platform, read_platform
from whatif.importers.text import reading
from whatif.schema.toml import shown_path
from whatif.table import Table

Files = str | Path | Sequence[str | Path]
"""Path or paths; a folder means all its files."""
ColumnNames = str | Mapping[str, str]
"""Headings by the names of columns: `time=Wall time [ms],ranks=Ranks`, or a mapping."""
RowFilter = str | Sequence[str] | Mapping[str, str]
"""Values to keep by heading: texts `HEADING=VALUE`, one text `a=1,b=2`, or a mapping."""


def listed_paths(files: Files) -> list[Path]:
    """Paths without repetitions, and without the files of a folder among them, so that no measurement counts twice.

    Raise `UsageError` for none.
    """
    paths = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    if not paths:
        raise UsageError("no files: name at least one")
    found = {path.resolve(): path for path in reversed(paths)}
    folders = {resolved for resolved in found if resolved.is_dir()}
    kept = [path for resolved, path in found.items() if not (resolved.parent in folders and resolved.is_file())]
    return kept[::-1]


def paths_in_folders(files: Files) -> list[Path]:
    """Paths without repetitions, each folder replaced by its files in alphabetical order.

    Raise `UsageError` for a folder without files.
    """
    found = []
    for path in listed_paths(files):
        inside = files_in(path) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{shown_path(path)}: no files in this folder")
        found += inside
    return listed_paths(found)


def read_message_files(files: Files, columns: ColumnNames | None, where: RowFilter) -> Table:
    """Message times of files and folders; `columns` and `where` apply to CSV files."""
    return read_networks(listed_paths(files), column_names(columns), row_filter(where))


def read_network_files(files: Files, columns: ColumnNames | None, where: RowFilter) -> Table:
    """Message times as `read_message_files`, or the parameters of a single SimGrid platform file."""
    paths = listed_paths(files)
    if len(paths) == 1 and is_platform(paths[0]):
        with reading(paths[0], "a platform of SimGrid"):
            return read_platform(paths[0])
    return read_message_files(paths, columns, where)


def read_gpu_files(files: Files) -> Table:
    """Measured rates and bandwidths of GPUs. Raise `UsageError` for files of several tools."""
    return _rows_of(files, read_gpu)


def read_kernel_files(files: Files) -> Table:
    """Profiled kernels. Raise `UsageError` for files of several tools."""
    return _rows_of(files, read_kernels)


def _rows_of(files: Files, read: Callable[[Path], Table]) -> Table:
    """Rows of files; those of a folder that cannot be read are warnings."""
    tables: list[Table] = []
    warnings: list[str] = []
    for path in listed_paths(files):
        tables += tables_of_folder(path, read, warnings) if path.is_dir() else [read(path)]
    return joined(tables, warnings)


def read_run_files(files: Files, columns: ColumnNames | None, where: RowFilter, long: str | None) -> Table:
    """Measured runs of files and folders; `long` is `METRIC=VALUE`, the headings of CSV files with a row a metric."""
    pair = None if long is None else next(iter(pairs("--long", [long], "METRIC=VALUE").items()))
    return read_runs(paths_in_folders(files), column_names(columns), row_filter(where), pair)


def read_log_files(files: Files, pattern: str | None, columns: ColumnNames | None, where: RowFilter) -> Table:
    """Runs of the output of an application in files and folders; `pattern` names a shipped pattern or its file."""
    table = read_logs(paths_in_folders(files), pattern)
    return chosen(table, column_names(columns), row_filter(where) or {})


def read_calibration_files(
    files: Files, columns: ColumnNames | None = None, where: RowFilter = ()
) -> dict[Path, Table]:
    """Calibrations of kernels and messages by file."""
    names, rows = column_names(columns), row_filter(where)
    return {path: _calibration(path, names, rows or {}) for path in paths_in_folders(files)}


def _calibration(path: Path, names: Mapping[str, str] | None, rows: Mapping[str, str]) -> Table:
    with reading(path, "a calibration"):
        return read_calibration(path, mapping=names, where=rows)


def column_names(columns: ColumnNames | None) -> dict[str, str] | None:
    """Headings by the names of columns; None if nothing is stated. Raise `UsageError` for a malformed text."""
    if columns is None or columns == "":
        return None
    return parse_mapping(columns) if isinstance(columns, str) else dict(columns)


def row_filter(where: RowFilter) -> dict[str, str] | None:
    """Values to keep by heading; None if nothing is stated. Raise `UsageError` for a heading given twice."""
    if isinstance(where, Mapping):
        return dict(where) or None
    texts = re.split(r",(?=[^,=]+=)", where) if isinstance(where, str) else where
    return pairs("--where", filter(None, texts), "HEADING=VALUE") or None
