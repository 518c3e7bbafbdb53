"""Writers of tables: CSV and JSON in base units for programs; text, Markdown and HTML with units for people."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

from whatif.errors import UsageError
from whatif.plain_text import is_plain, undrawn
from whatif.table import Column, Table
from whatif.visible_text import spreadsheet_cell, visible, visible_json

_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_MANGLED: Final = re.compile(r"_Z(\d+)([A-Za-z_]\w*)")
_NAMESPACE: Final = re.compile(r"(?:\w+|\(anonymous namespace\))::")
_STYLE: Final = """
body { margin: 1rem; font: .9rem/1.4 system-ui, sans-serif; font-variant-numeric: tabular-nums }
table { border-collapse: collapse }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid #8888; text-align: right; vertical-align: top }
"""
_LEAST: Final = 12
"""Characters to which texts are cut at most."""
_WIDEST: Final = 80
"""Most characters of the name of a kernel in columns."""


def csv_rows(table: Table, out: TextIO, heading: bool = True) -> None:
    """Write CSV, one row per line; headings contain the unit, `time [s]`; for texts see `spreadsheet_cell`."""
    writer = csv.writer(out, lineterminator="\n")
    if heading:
        named = ((name, column.unit) for name, column in table.columns.items())
        writer.writerow([spreadsheet_cell(f"{name} [{unit}]" if unit else name) for name, unit in named])
    safe = {name: column if column.dimension is not None else _safe(column) for name, column in table.columns.items()}
    writer.writerows(Table(safe).rows())


def _safe(column: Column) -> Column:
    cells = [spreadsheet_cell(cell) if cell and isinstance(cell, str) else cell for cell in column.values.tolist()]
    return Column(np.array(cells, dtype=object))


def json_rows(table: Table, out: TextIO) -> None:
    """Write one JSON object with notes, units and rows; null for missing values."""
    out.write(visible_json(json.dumps(table.to_dict(), ensure_ascii=False, indent=1)) + "\n")


def markdown_rows(table: Table, out: TextIO, heading: bool = True) -> None:
    """Write a Markdown table; each cell has its unit."""
    if heading:
        out.write(f"| {' | '.join(map(_marked_down, table.columns))} |\n")
        out.write(f"|{'|'.join([' ---: '] * len(table.columns))}|\n")
    for row in shown_rows(table):
        out.write(f"| {' | '.join(map(_marked_down, row))} |\n")


def _marked_down(cell: str) -> str:
    """Cell of Markdown that is text, neither a further cell nor a tag of HTML."""
    return _TAG.sub("&lt;", visible(cell, "").replace("|", "\\|"))


def html_rows(table: Table, out: TextIO) -> None:
    """Write an HTML table; each cell has its unit, and texts are escaped."""
    heading = "".join(f"<th>{escape(visible(name, ''))}</th>" for name in table.columns)
    out.write(f"<table>\n<thead><tr>{heading}</tr></thead>\n<tbody>\n")
    for row in shown_rows(table):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        out.write(f"<tr>{cells}</tr>\n")
    out.write("</tbody>\n</table>\n")


def html_page(table: Table, out: TextIO) -> None:
    """Write a page with an HTML table, in the light or dark colours of the browser."""
    title = escape(visible(table.notes.get("title", "whatif"), ""))
    out.write(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
        "</head>\n<body>\n"
    )
    html_rows(table, out)
    out.write("</body>\n</html>\n")


def column_rows(table: Table, out: TextIO, widths: Sequence[int] = ()) -> list[int]:
    """Write aligned columns and return their widths; rows written with given widths have no heading.

    Names of kernels are short ones, cut: those of templates can be longer than a screen. In plain text, a line for each
    whole cell with the name of its column.
    """
    if is_plain():
        named_rows(table, out)
        return [0]
    names = [visible(name, "") for name in table.columns]
    rows = [
        [_short(cell) if name == "kernel" else cell for name, cell in zip(names, row, strict=True)]
        for row in shown_rows(table)
    ]
    fitting = list(widths) or [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    if not widths:
        out.write(_line(names, fitting))
    out.writelines(_line(row, fitting) for row in rows)
    return fitting


def short_kernel(name: str) -> str:
    """A kernel's name without what it returns and without namespaces; of a mangled one, its own name."""
    mangled = _MANGLED.match(name)
    if mangled is not None and int(mangled[1]) <= len(mangled[2]):
        return mangled[2][: int(mangled[1])]
    return _NAMESPACE.sub("", name.removeprefix("void "))


def _short(kernel: str) -> str:
    name = short_kernel(kernel)
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


def named_rows(table: Table, out: TextIO) -> None:
    """Write a line `name: value` for each cell, and an empty line after each row; columns of drawn bars are omitted."""
    names = [visible(name, "") for name in table.columns]
    for row in shown_rows(table):
        cells = ((name, cell) for name, cell in zip(names, row, strict=True) if _without_bars(cell))
        out.write("".join(f"{name}: {undrawn(cell).strip()}\n" for name, cell in cells) + "\n")


def column_lines(table: Table) -> list[str]:
    """Lines of a table in columns."""
    out = io.StringIO()
    column_rows(table, out)
    return out.getvalue().splitlines()


def worth_showing(table: Table) -> Table:
    """Table without empty columns."""
    kept = {
        name: column
        for name, column in table.columns.items()
        if (np.any(column.values != "") if column.dimension is None else np.any(np.isfinite(column.values)))
    }
    return Table(kept, table.notes)


def narrowed(table: Table, width: int, optional: Sequence[Collection[str]]) -> Table:
    """Table without as many groups of optional columns, the first ones first, as needed for a width in characters.

    If that is not enough, the longest texts are cut: a path at its start, as its end is more useful, others at the end.
    """
    columns, left = dict(table.columns), list(optional)
    cells = [list(table.columns), *shown_rows(table)]
    widths = {name: max(map(len, column)) for name, column in zip(columns, zip(*cells, strict=True), strict=True)}
    while left and sum(widths[name] + 2 for name in columns) - 2 > width:
        gone = left.pop(0)
        columns = {name: column for name, column in columns.items() if name not in gone}
    over = sum(widths[name] + 2 for name in columns) - 2 - width
    texts = [name for name, column in columns.items() if column.dimension is None]
    room = _room([widths[name] for name in texts], over)
    for name in texts:
        cut = [_cut(str(text), room) for text in columns[name].values]
        columns[name] = Column(np.array(cut, dtype=object))
    return Table(columns, table.notes)


def _room(widths: Sequence[int], over: int) -> int:
    """Characters of the widest column of texts after all of them lost `over` characters together."""
    room = max(widths, default=_LEAST)
    while over > 0 and room > _LEAST:
        over -= sum(width >= room for width in widths)
        room -= 1
    return room


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[: room - 2]}.." if " " in text else f"..{text[2 - room :]}"


def omission(whole: Table, shown: Table, width: int) -> str:
    """Remark on the columns of a table that are not shown, except drawn bars, else on cut texts; empty without any."""
    names = [name for name, its in whole.columns.items() if name not in shown.columns and not _is_drawn(its)]
    if names:
        return f"columns omitted at a width of {width}: {', '.join(names)}; --format csv has all"
    texts = ((its.values, whole.columns[name].values) for name, its in shown.columns.items() if its.dimension is None)
    is_cut = any(np.any(cut != full) for cut, full in texts)
    return f"texts cut at a width of {width}; --format csv has all" if is_cut else ""


def _is_drawn(column: Column) -> bool:
    return column.dimension is None and not any(_without_bars(str(text)) for text in column.values)


def _without_bars(cell: str) -> str:
    return undrawn(cell).strip(" |#")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() + "\n"


def shown_rows(table: Table) -> Iterator[list[str]]:
    """Rows of the table as visible texts with units."""
    for row in table.rows():
        yield [_cell(value, column) for value, column in zip(row, table.columns.values(), strict=True)]


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return visible("; ".join(value.splitlines()), "")
    return column.text(value)


FORMATS_BY_SUFFIX: Final = {
    ".csv": "csv",
    ".html": "html",
    ".json": "json",
    ".md": "markdown",
    ".out": "hpl",
    ".parquet": "parquet",
    ".tex": "latex",
    ".toml": "toml",
    ".txt": "table",
}


def format_of(path: Path | None, stated: str | None, formats: Collection[str], pictures: Collection[str] = ()) -> str:
    """Format of a table: the stated one, else that of the file name, else `table`.

    Raise `UsageError` for a name of another format, or of none of `formats`; the message names the endings of
    `pictures`, too.
    """
    if path is None:
        return stated or "table"
    named = FORMATS_BY_SUFFIX.get(path.suffix.lower())
    if stated is not None and named not in (None, stated):
        raise UsageError(f"{path}: `{path.suffix}` is the format {named}, not {stated}")
    if stated is None and named not in formats:
        known = ", ".join([*(ending for ending, name in FORMATS_BY_SUFFIX.items() if name in formats), *pictures])
        found = f"`{path.suffix}` is no known format" if path.suffix else "the name has no ending"
        raise UsageError(f"{path}: {found}: use {known}, or --format")
    return stated or str(named)


TABLE_WRITERS: Final[dict[str, Callable[[Table, TextIO], object]]] = {
    "table": column_rows,
    "json": json_rows,
    "csv": csv_rows,
    "markdown": markdown_rows,
    "html": html_rows,
}

FILE_WRITERS: Final = {**TABLE_WRITERS, "html": html_page}
"""Writers of files that hold one table: HTML is a whole page, on stdout a part that fits into one."""
