"""Plain CSV and TSV files whose columns are named by a mapping: see `whatif.importers.mapping`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whatif.importers.mapping import TESTS, TEXTS, Sheet, Source, filters_of, own_names, parse_mapping, sources_of
from whatif.importers.numbers import MOST_ROWS, is_number, valid_measurements
from whatif.importers.text import CUT_OFF, chunks, pieces, refuse, whole_lines
from whatif.schema.toml import shown_path
from whatif.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["parse_columns", "parse_mapping", "read_columns"]

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_PAIRS = re.compile(r"(?:(?:[nk]|num|number)[_ ]?(?:of[_ ])?)?pairs?(?:[_ ]?count)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


@dataclass
class _Part:
    """Rows read so far."""

    frames: list[pd.DataFrame] = field(default_factory=list)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    count: int = 0


def parse_columns(
    text: str,
    mapping: Mapping[str, str] | None = None,
    file: str = "<text>",
    where: Mapping[str, str] | None = None,
) -> Table:
    """A table of measurements from a CSV or TSV text with one line of headings.

    `mapping` gives for a column of measurements the heading it stands under, with `[unit]` behind where the heading
    has none, or a value; without it, headings must be the names of the columns, `message_size [B]`. `message_size`
    and `time` or `bandwidth` must be there. `where` keeps the rows in which columns of the file have given values.
    Lines that start with `#` are comments. Raise `UsageError` for a mapping that does not fit the headings and
    `InvalidFileError` for cells that are no numbers (formulas, decimal commas, thousands separators), and ragged rows.
    """
    return _table(pieces(text), mapping, file, where or {})


def read_columns(path: Path, mapping: Mapping[str, str] | None = None, where: Mapping[str, str] | None = None) -> Table:
    """Like `parse_columns`, of a file of any size."""
    return _table(chunks(path), mapping, shown_path(path), where or {})


def _table(texts: Iterable[str], mapping: Mapping[str, str] | None, file: str, where: Mapping[str, str]) -> Table:
    texts = iter(texts)
    first = next(texts, "")
    sheet = _sheet(first, file)
    sources = sources_of(sheet, own_names(sheet) if mapping is None else mapping, file)
    filters = filters_of(sheet, where)
    rest = "".join(first.splitlines(keepends=True)[sheet.line :])
    part = _read(chain((rest,), texts), sheet, sources, filters, file)
    if "pair_count" not in sources and (pairs := next(filter(_PAIRS.fullmatch, sheet.names), "")):
        said = "no pair_count was given, but a column looks like it"
        part.warnings.append(f"{file}: {said}: `pair_count={pairs}` uses it")
    return _measured(part, sources, file, where)


def _sheet(text: str, file: str) -> Sheet:
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if at is None:
        raise refuse(file, "no measurements in this file: it is empty")
    if _is_data(lines[at]):
        # A heading may itself be written as a comment: `# Threads,Bandwidth (MB/s)`.
        at = next((above for above in range(at - 1, -1, -1) if lines[above].strip()), -1)
        if at < 0:
            raise refuse(file, "the first line holds numbers: a line of headings is missing above it", 1)
    heading = lines[at].strip().removeprefix("#").strip()
    separator = max("\t,;", key=heading.count)
    # A comment may follow the headings: `size (bytes),time (seconds) # Source: ...`.
    cells = next(csv.reader([re.sub(r"\s#.*", "", heading)], delimiter=separator, skipinitialspace=True))
    return Sheet(separator, tuple(cell.strip() for cell in cells), at + 1)


def _is_data(line: str) -> bool:
    cells = [cell for cell in re.split(r"[\t,;]", line) if cell.strip()]
    return all(is_number(cell) for cell in cells)


def _read(
    texts: Iterator[str], sheet: Sheet, sources: Mapping[str, Source], filters: Mapping[int, str], file: str
) -> _Part:
    part, line = _Part(), sheet.line + 1
    wanted = {source.position: name not in TEXTS for name, source in sources.items() if source.position >= 0}
    for piece in texts:
        text, rest = whole_lines(piece)
        if rest.strip():
            part.warnings.append(f"{file}:{line + text.count(chr(10))}: {CUT_OFF}")
        if text:
            frame, lines = _frame(text, sheet, dict.fromkeys(filters, False) | wanted, line, file, part.warnings)
            if filters:
                keep = _kept(frame, filters)
                frame, lines = frame[keep], lines[keep]
            part.frames.append(frame)
            part.lines.append(lines)
            part.count += len(lines)
            line += text.count("\n")
        if part.count > MOST_ROWS:
            raise refuse(file, f"more than {MOST_ROWS:,} rows: split the file, or keep a part of the rows")
    return part


def _frame(
    text: str, sheet: Sheet, wanted: Mapping[int, bool], line: int, file: str, warnings: list[str]
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The wanted columns (numbers or not) of some lines, with the line of each row."""
    lines = _lines_of_rows(text, line)
    if text.count(sheet.separator) != len(lines) * (len(sheet.names) - 1) or '"' in text:
        text, lines = _without_cut_row(text, sheet, lines, file, warnings)
    try:
        frame = _parsed(text, sheet, wanted)
    except ValueError:
        _refuse_cells(text, sheet, wanted, lines, file)
        raise refuse(file, "is no table with one row a line", line) from None
    return frame, lines


def _lines_of_rows(text: str, line: int) -> NDArray[np.int64]:
    if "#" not in text and "\n\n" not in text and not text.startswith("\n"):
        return line + np.arange(text.count("\n"))
    rows = enumerate(text.splitlines(), line)
    return np.array([number for number, row in rows if row.strip() and not row.lstrip().startswith("#")], dtype=int)


def _parsed(text: str, sheet: Sheet, wanted: Mapping[int, bool]) -> pd.DataFrame:
    import pandas as pd

    kinds: dict[Any, Any] = {position: float if number else str for position, number in wanted.items()}
    missing: dict[Any, Any] = {
        position: ["NaN", "nan", "NA", ""] if number else [] for position, number in wanted.items()
    }
    frame: pd.DataFrame = pd.read_csv(
        BytesIO(text.encode()),
        sep=sheet.separator,
        header=None,
        names=list(range(len(sheet.names))),
        index_col=False,
        usecols=sorted(wanted),
        dtype=kinds,
        comment="#",
        skipinitialspace=True,
        na_values=missing,
        keep_default_na=False,
        engine="c",
    )
    return frame


def _rows(text: str, sheet: Sheet, lines: NDArray[np.int64]) -> Iterator[tuple[int, list[str]]]:
    plain = (row.split("#", 1)[0].rstrip("\n") for row in text.splitlines())
    rows = csv.reader((row for row in plain if row.strip()), delimiter=sheet.separator, skipinitialspace=True)
    return zip(lines.tolist(), rows, strict=False)


def _without_cut_row(
    text: str, sheet: Sheet, lines: NDArray[np.int64], file: str, warnings: list[str]
) -> tuple[str, NDArray[np.int64]]:
    """Refuse rows with more or fewer cells than headings; a last one with fewer is left out with a warning."""
    width = len(sheet.names)
    for line, cells in _rows(text, sheet, lines):
        if len(cells) == width:
            continue
        if len(cells) < width and line == lines[-1]:
            warnings.append(f"{file}:{line}: a row that was cut off, left out")
            start = text.rstrip("\n").rfind("\n") + 1
            return text[:start], lines[:-1]
        comma = "; decimal commas?" if sheet.separator == "," and len(cells) > width else ""
        raise refuse(file, f"{len(cells)} cells where the heading has {width}{comma}", line)
    return text, lines


def _refuse_cells(text: str, sheet: Sheet, wanted: Mapping[int, bool], lines: NDArray[np.int64], file: str) -> None:
    positions = [position for position, is_number in wanted.items() if is_number]
    for line, cells in _rows(text, sheet, lines):
        for position in positions:
            cell = cells[position].strip() if position < len(cells) else ""
            if cell and not is_number(cell):
                raise refuse(file, _said_of(cell), line, sheet.names[position])


def _said_of(cell: str) -> str:
    shown = f"`{cell[:40]}`"
    if cell.startswith("="):
        return f"{shown} is a formula: save the values"
    if _THOUSANDS.fullmatch(cell):
        return f"{shown} has a thousands separator, or a decimal comma: write plain numbers with a decimal point"
    if _DECIMAL_COMMA.fullmatch(cell):
        return f"{shown} has a decimal comma: write it with a decimal point"
    return f"{shown} is not a number"


def _kept(frame: pd.DataFrame, filters: Mapping[int, str]) -> NDArray[np.bool_]:
    keep = np.ones(len(frame), dtype=bool)
    for position, value in filters.items():
        cells = frame[position]
        same = [cell for cell in cells.unique() if _same(str(cell).strip(), value)]
        keep &= cells.isin(same).to_numpy(dtype=bool)
    return keep


def _same(cell: str, value: str) -> bool:
    return cell == value or (is_number(cell) and is_number(value) and float(cell) == float(value))


def _measured(part: _Part, sources: Mapping[str, Source], file: str, where: Mapping[str, str]) -> Table:
    if not part.count:
        said = " with " + ", ".join(f"{name}={value}" for name, value in where.items()) if where else ""
        raise refuse(file, "; ".join([f"no rows{said}", *part.warnings]))
    columns = {name: _values(part, name, source) for name, source in sources.items()}
    warnings = list(part.warnings)
    if "test" not in columns:
        columns["test"] = "ping_pong" if "time" in columns else "bandwidth"
        meaning = "one-way times of ping-pongs" if "time" in columns else "bandwidths of streams"
        warnings.append(f"{file}: taken as {meaning}; `test=NAME` says otherwise")
    if "time" not in columns:
        columns["time"] = _streamed(columns)
    return valid_measurements(columns, np.concatenate(part.lines), {"file": file}, warnings)


def _values(part: _Part, name: str, source: Source) -> Any:
    if source.position < 0:
        return np.full(part.count, source.value, dtype=object if name in TEXTS else float)
    values = np.concatenate([frame[source.position].to_numpy() for frame in part.frames])
    if name not in TEXTS:
        with np.errstate(over="ignore"):
            return values * source.scale
    texts = {text: str(text).strip() for text in set(values.tolist())}
    return np.array([TESTS.get(texts[text].lower(), texts[text]) for text in values.tolist()], dtype=object)


def _streamed(columns: Mapping[str, Any]) -> Any:
    """The time for each message of a stream, as for OSU's bandwidth tests."""
    directions = np.where(np.asarray(columns["test"]) == "bidirectional_bandwidth", 2.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return directions * columns["message_size"] * columns.get("pair_count", 1.0) / columns["bandwidth"]
