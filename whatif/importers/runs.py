"""Measured runs from files of any known format, told by their content: one row a run, in base units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from whatif.errors import UsageError
from whatif.importers.numbers import MOST_ROWS
from whatif.importers.rows import joined
from whatif.importers.runs_csv import read_runs_csv
from whatif.table import Column, Table


def read_runs(
    paths: Sequence[Path],
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    long: tuple[str, str] | None = None,
) -> Table:
    """The runs of several files in one table, in the order given; of several files a column `file` tells each row's.

    Numbers are float64 in base units, NaN where a cell is missing; `written` is the unit of the first file. `columns`,
    `where` and `long` are for CSV files (see `parse_runs_csv`). Raise `UsageError` for files whose columns differ.
    """
    tables = [read_runs_csv(path, columns, where, long) for path in paths]
    if sum(map(len, tables)) > MOST_ROWS:
        raise UsageError(f"more than {MOST_ROWS:,} rows together: read fewer files")
    for table in tables[1:]:
        _refuse_other_columns(tables[0], table)
    return tables[0] if len(tables) == 1 else joined(tables)


def _refuse_other_columns(first: Table, other: Table) -> None:
    names = first.notes.get("file", ""), other.notes.get("file", "")
    for here, there, (file, with_it) in ((first, other, names), (other, first, names[::-1])):
        if lost := [name for name in there.columns if name not in here.columns]:
            listed = ", ".join(f"`{name}`" for name in lost[:20])
            raise UsageError(f"{file} has no column {listed}, which {with_it} has: `--columns` names those of both")
    for name, column in first.columns.items():
        kinds = _kind(column), _kind(other.columns[name])
        if kinds[0] != kinds[1]:
            raise UsageError(f"`{name}` is {kinds[0]} in {names[0]}, but {kinds[1]} in {names[1]}")


def _kind(column: Column) -> str:
    return "a text" if column.dimension is None else f"in {column.unit}" if column.unit else "a number without a unit"
