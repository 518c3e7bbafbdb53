"""Rows as a table with known columns, and tables of one kind as one."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.errors import SHOWN_PROBLEMS, UsageError, WhatifError
from whatif.importers.text import refuse
from whatif.schema.toml import shown_path
from whatif.table import Column, Table, noted
from whatif.units import Dimension

MOST_FILES: Final = 10_000
"""Largest number of files in a folder."""


def row_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Dimension | None],
    notes: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> Table:
    """A table of rows that have a value for each column; empty notes are dropped, equal warnings once."""
    cells = [[row[name] for name in columns] for row in rows]
    return Table.of_rows(columns, cells, noted(notes, dict.fromkeys(warnings)))


def csv_cells(line: str, file: str, number: int) -> list[str]:
    """Cells of a line of CSV; raise `InvalidFileError` with its number."""
    try:
        return next(csv.reader([line], skipinitialspace=True))
    except csv.Error as error:
        raise refuse(file, f"not CSV: {error}", number) from None


def files_in(folder: Path) -> list[Path]:
    """Files of a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def tables_of_folder(folder: Path, read: Callable[[Path], Table], warnings: list[str]) -> list[Table]:
    """Tables of the files of a folder, sorted by name; files that are refused add to the warnings.

    Raise `UsageError` if nothing is left.
    """
    found: list[Table] = []
    files = files_in(folder)
    if len(files) > MOST_FILES:
        raise refuse(shown_path(folder), f"more than {MOST_FILES:,} files in this folder")
    for path in files:
        try:
            found.append(read(path))
        except WhatifError as error:
            warnings.append(str(error))
    if not found:
        problems = [f"{shown_path(folder)}: no measurements in this folder", *warnings[:SHOWN_PROBLEMS]]
        raise UsageError("\n".join(problems))
    return found


def joined(tables: Sequence[Table], warnings: Sequence[str] = ()) -> Table:
    """Tables with the same columns one below the other; notes that differ are joined with `; `.

    A column `file` is added for several files; `warnings` are added to those of the tables.
    Raise `UsageError` for tables with other columns.
    """
    if any(table.columns.keys() != tables[0].columns.keys() for table in tables):
        raise UsageError("these files hold different kinds of measurements; give them one kind at a time")
    columns = {
        name: Column(np.concatenate([table.columns[name].values for table in tables]), column.dimension, column.written)
        for name, column in tables[0].columns.items()
    }
    files = [table.notes.get("file", "") for table in tables]
    if len(set(files)) > 1 and "file" not in columns:
        columns["file"] = Column(np.repeat(np.array(files, dtype=object), [len(table) for table in tables]))
    notes: dict[str, list[str]] = {}
    for table in tables:
        for name, text in table.notes.items():
            notes.setdefault(name, []).append(text)
    if warnings:
        notes.setdefault("warnings", []).extend(warnings)
    between = {name: "\n" if name == "warnings" else "; " for name in notes}
    return Table(columns, {name: between[name].join(dict.fromkeys(texts)) for name, texts in notes.items()})
