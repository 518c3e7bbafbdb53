"""Measured runs from files of any known format, detected by content: a row a run, in base units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from whatif.errors import UsageError, listed
from whatif.importers.caliper import MARK, read_caliper
from whatif.importers.caliper_json import caliper_document
from whatif.importers.extrap import TEXT, extrap_document, is_extrap_document, is_extrap_line, read_extrap
from whatif.importers.json_text import parse_json
from whatif.importers.mapping import SheetLayout, filters_of, no_rows
from whatif.importers.numbers import MOST_ROWS
from whatif.importers.nvidia_smi import is_nvidia_smi, read_nvidia_smi
from whatif.importers.rows import joined
from whatif.importers.run_columns import run_table
from whatif.importers.runs_csv import named_columns, read_runs_csv
from whatif.importers.sheets import kept
from whatif.importers.text import chunks, read_text, reading
from whatif.schema.toml import shown_path
from whatif.table import Column, Table

_LINES = re.compile(r"\A\s*\{[^\n]*\}[ \t]*\n\s*\{")
"""Beginning of JSON lines."""


def read_runs(
    paths: Sequence[Path],
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    long: tuple[str, str] | None = None,
) -> Table:
    """The runs of several files in one table, in the order given; with a column `file` if there are several.

    Numbers are float64 in base units, NaN where a cell is missing; `written` is the unit of the first file. `columns`
    and `where` name columns by their headings or, in files that are no CSV, by the names they have here; `long` is for
    CSV files (see `read_runs_csv`). Raise `UsageError` for files whose columns differ.
    """
    tables = []
    for path in paths:
        with reading(path, "measured runs"):
            tables.append(_read(path, columns, where, long))
    if not tables:
        raise UsageError("no files of runs here")
    if sum(map(len, tables)) > MOST_ROWS:
        raise UsageError(f"more than {MOST_ROWS:,} rows together: read fewer files")
    for table in tables[1:]:
        _refuse_other_columns(tables[0], table)
    return tables[0] if len(tables) == 1 else joined(tables)


def _read(
    path: Path,
    columns: Mapping[str, str] | None,
    where: Mapping[str, str] | None,
    long: tuple[str, str] | None,
) -> Table:
    head = next(chunks(path), "")
    table = _profile(path, head)
    if long is not None and (table is not None or is_nvidia_smi(head)):
        raise UsageError(f"{shown_path(path)}: --long applies to CSV files only")
    if table is not None:
        return chosen(table, columns, where or {})
    if is_nvidia_smi(head):
        return read_nvidia_smi(path, columns=columns, where=where)
    return read_runs_csv(path, columns=columns, where=where, long=long)


def is_run_profile(path: Path) -> bool:
    """Whether a file of runs has a format that is detected by content: any but a sheet."""
    head = next(chunks(path), "") if path.is_file() else ""
    return is_nvidia_smi(head) or _profile(path, head) is not None


def _profile(path: Path, head: str) -> Table | None:
    """Table of a profile; None for a sheet."""
    start = head.lstrip()
    if start.startswith(MARK):
        return read_caliper(path)
    if TEXT.match(head) or is_extrap_line(start.partition("\n")[0]):
        return read_extrap(path)
    if not start.startswith(("{", "[")):
        return None
    text, file = read_text(path), shown_path(path)
    if _LINES.match(text):
        lines = enumerate(text.splitlines(), 1)
        return caliper_document([parse_json(line, file, number) for number, line in lines if line.strip()], file)
    document = parse_json(text, file)
    return extrap_document(document, file) if is_extrap_document(document) else caliper_document(document, file)


def chosen(table: Table, columns: Mapping[str, str] | None, where: Mapping[str, str]) -> Table:
    """The rows that have given values, in the units of the file, and the columns that a mapping names."""
    file = table.notes.get("file", "")
    if where:
        filters = filters_of(SheetLayout(",", tuple(table.columns), 0), where)
        written = dict(enumerate(column.as_written() for column in table.columns.values()))
        keep = kept(written, filters)
        if not keep.any():
            raise no_rows(file, where)
        table = table.at(keep)
    if columns is None:
        return table
    headings = {_heading(name, column): column.as_written() for name, column in table.columns.items()}
    notes = {name: text for name, text in table.notes.items() if name not in ("columns", "warnings")}
    return run_table(named_columns(headings, columns, file), notes, table.warnings)


def _heading(name: str, column: Column) -> str:
    unit = column.written or column.unit
    return f"{name} [{unit}]" if unit else name


def _refuse_other_columns(first: Table, other: Table) -> None:
    names = first.notes.get("file", ""), other.notes.get("file", "")
    for here, there, (file, with_it) in ((first, other, names), (other, first, names[::-1])):
        if lost := [name for name in there.columns if name not in here.columns]:
            raise UsageError(
                f"{file} has no column {listed(lost)}, which {with_it} has: `--columns` names those of both"
            )
    for name, column in first.columns.items():
        kinds = _kind(column), _kind(other.columns[name])
        if kinds[0] != kinds[1]:
            raise UsageError(f"`{name}` is {kinds[0]} in {names[0]}, but {kinds[1]} in {names[1]}")


def _kind(column: Column) -> str:
    return "a text" if column.dimension is None else f"in {column.unit}" if column.unit else "a number without a unit"
