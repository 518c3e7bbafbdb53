"""SQLite files of profilers, read safely: never written to, columns by name, whole tables as arrays, bounded.

A file is opened read-only and as immutable: no lock is taken, no file next to it is created or replayed.
Source: SQLite, "Database File Format" (header: magic, page size, count of pages) and "URI Filenames".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InvalidFileError
from whatif.importers.text import readable, refuse, refuse_special
from whatif.schema.toml import shown_path

MOST_OPERATIONS: Final = 10_000_000
"""Rows of a table of operations that are read."""
LONGEST_VALUE: Final = 16 * 2**20
"""Bytes of a text or of a row."""

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_SIZE: Final = 100
_ROWS_AT_A_TIME: Final = 100_000
# A column of a row takes two or three steps; the tables of a profile are read a few times over.
_STEPS: Final = 10_000_000
_STEPS_A_BYTE: Final = 100
_STEPS_AT_A_TIME: Final = 100_000
_REPORTS: Final = (".nsys-rep", ".qdrep", ".qdstrm")


class Database:
    """Open file: its shown name, its tables, and warnings."""

    def __init__(self, connection: sqlite3.Connection, name: str, warnings: list[str]) -> None:
        self._connection = connection
        self.name = name
        self.warnings = warnings
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = frozenset(str(row[0]) for row in rows)

    def columns(self, table: str) -> frozenset[str]:
        """Names of the columns of a table, empty for a missing table."""
        if table not in self.tables:
            return frozenset()  # also of a view, whose rows are the work of code in the file
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return frozenset(str(row[0]) for row in rows)

    def integers(
        self,
        table: str,
        defaults: Mapping[str, int | None],
        most: int = MOST_OPERATIONS,
        what: str = "rows",
        where: tuple[str, Sequence[int]] | None = None,
    ) -> dict[str, NDArray[np.int64]]:
        """Columns of a table as whole numbers, by name, empty for a missing table.

        A default replaces NULL and a missing column; a column without one must be there and
        full; `where` names a column and the values of it that are wanted. Raise `InvalidFileError` for a column that
        is missing, another value, more than `most` rows.
        """
        there = self.columns(table)
        if not there:
            return {name: np.empty(0, dtype=np.int64) for name in defaults}
        missing = [name for name, default in defaults.items() if default is None and name not in there]
        if missing:
            raise refuse(self.name, f"the table `{table}` has no column {', '.join(missing)}")
        chosen = ", ".join(_chosen(name, default, name in there) for name, default in defaults.items())
        # Names of tables and columns are constants of the importers, never text of the file.
        query = f'SELECT {chosen} FROM "{table}"'  # noqa: S608
        if where and where[0] in there:
            query += f' WHERE "{where[0]}" IN ({", ".join(map(str, where[1]))})'
        blocks = list(self._blocks(table, query, len(defaults), most, what))
        return dict(zip(defaults, np.concatenate([np.empty((0, len(defaults)), np.int64), *blocks]).T, strict=True))

    def _blocks(self, table: str, query: str, width: int, most: int, what: str) -> Iterator[NDArray[np.int64]]:
        cursor, count = self._connection.execute(query), 0
        while True:
            values = chain.from_iterable(islice(cursor, _ROWS_AT_A_TIME))
            try:
                block = np.fromiter(values, dtype=np.int64).reshape(-1, width)
            except (TypeError, ValueError, OverflowError):
                raise refuse(self.name, f"the table `{table}` holds a value that is not a whole number") from None
            if not len(block):
                return
            count += len(block)
            if count > most:
                raise refuse(self.name, f"more than {most:,} {what}: profile a shorter run")
            yield block

    def distinct(self, table: str, column: str) -> list[int]:
        """Distinct numbers of a column, empty for a missing column."""
        if column not in self.columns(table):
            return []
        rows = self._connection.execute(f'SELECT DISTINCT "{column}" FROM "{table}" LIMIT 1000')  # noqa: S608
        return [row[0] for row in rows if isinstance(row[0], int)]

    def texts(self, table: str, key: str, value: str) -> dict[int, str]:
        """The texts of a table by their number; empty if the table or a column is missing."""
        rows = self._two_columns(table, key, value, MOST_OPERATIONS)
        return {number: str(text) for number, text in rows if isinstance(number, int)}

    def pairs(self, table: str, key: str, value: str) -> dict[str, str]:
        """A table of names and values, as texts; empty if the table or a column is missing."""
        return {str(name): str(text) for name, text in self._two_columns(table, key, value, 1000)}

    def _two_columns(self, table: str, first: str, second: str, most: int) -> Iterable[tuple[Any, Any]]:
        if not {first, second} <= self.columns(table):
            return []
        query = f'SELECT "{first}", "{second}" FROM "{table}" LIMIT {most}'  # noqa: S608 - constants, as above
        return self._connection.execute(query)


def _chosen(name: str, default: int | None, is_there: bool) -> str:
    if not is_there:
        return str(default)
    return f'"{name}"' if default is None else f'COALESCE("{name}", {default})'


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as an SQLite database does; raise `InvalidFileError` if it cannot be read."""
    return head_of(path).startswith(_MAGIC)


@contextmanager
def open_database(path: Path, expected: str = "") -> Iterator[Database]:
    """SQLite file opened for reading; `expected` names the kind of file and the command that writes it.

    Raise `InvalidFileError` with the reason for a file that is not a database, is empty, encrypted, cut off or damaged,
    here or while it is read.
    """
    name = shown_path(path)
    head = head_of(path)
    if not head.startswith(_MAGIC):
        raise refuse(
            name, f"no SQLite database: {other_format(path, head)}{f'; expected {expected}' if expected else ''}"
        )
    warnings = _unfinished(path, name)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            connection.text_factory = _decoded
            connection.set_progress_handler(_StepLimit(path.stat().st_size), _STEPS_AT_A_TIME)
            # A damaged page is found when it is loaded; no function is called from within the file's own schema.
            connection.executescript(
                "PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;"
            )
            yield Database(connection, name, warnings)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # The latter where a message quotes a damaged name.
        more = "".join(f"; {warning}" for warning in warnings)
        raise refuse(name, f"the database is damaged or cut off: {_message(error)}{_lost(path, head)}{more}") from None


class _StepLimit:
    """Ends a query that takes more steps of SQLite's machine than any table of a file of this size."""

    def __init__(self, size: int) -> None:
        self._left = (_STEPS + _STEPS_A_BYTE * size) // _STEPS_AT_A_TIME

    def __call__(self) -> bool:
        """Whether the query is to be interrupted."""
        self._left -= 1
        return self._left < 0


def _message(error: Exception) -> str:
    if str(error) == "interrupted":
        return "its tables take more time than those of a profile of this size"
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "replace")
    return str(error)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def head_of(path: Path) -> bytes:
    """The first bytes of a file; raise `InvalidFileError` if it cannot be read."""
    with readable(path):
        refuse_special(path)
        with path.open("rb") as file:
            return file.read(_HEADER_SIZE)


def other_format(path: Path, head: bytes) -> str:
    """Description of a file that is not SQLite, by its first bytes and the end of its name."""
    if not head:
        return "it is empty"
    if path.suffix.lower() in _REPORTS:
        return "it is a report of Nsight Systems: write it as SQLite with `nsys export --type sqlite FILE`"
    if head.startswith(b"\x1f\x8b"):
        return "it is packed with gzip; unpack it first"
    is_text = b"\0" not in head and b"\xff" not in head
    return f"it is {'text' if is_text else 'binary, encrypted'} or of another format"


def _lost(path: Path, head: bytes) -> str:
    """Size according to the header, if the file is shorter."""
    page_size = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (2**16 if page_size == 1 else page_size)
    size = path.stat().st_size
    return f"; it has {size:,} of {expected:,} B" if size < expected else ""


def _unfinished(path: Path, name: str) -> list[str]:
    """Warnings about files next to a database that is being written, or was not closed."""
    for end, effect in (("-wal", "its changes were not read"), ("-journal", "the last change may be incomplete")):
        companion = path.with_name(path.name + end)
        if companion.is_file() and companion.stat().st_size:
            return [f"{name}: {companion.name} exists, so it is being written or was not closed: {effect}"]
    return []


def newest_known(database: Database, stated: str, known: tuple[int, ...]) -> None:
    """Warn of a version (`11`, `3.13.2`) beyond the known one; the columns are looked for by name all the same."""
    numbers = tuple(int(part) for part in stated.split(".")[: len(known)] if part.isdecimal() and len(part) < 10)
    if numbers > known:
        shown = ".".join(map(str, known))
        database.warnings.append(
            f"{database.name}: version {stated[:40]} is newer than {shown}, the newest known: read by the names of its"
            " columns"
        )


def refused(database: Database, message: str) -> InvalidFileError:
    """Error for a damaged or foreign database, with its warnings."""
    return refuse(database.name, "; ".join([message, *database.warnings]))
