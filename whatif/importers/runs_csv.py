"""Runs as CSV or TSV: one row a run, in wide form (a column a metric) or in long form (a row a metric)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InvalidFileError, UsageError
from whatif.importers.cell_numbers import is_missing, looks_like_number
from whatif.importers.mapping import (
    DURATIONS,
    SheetLayout,
    filters_of,
    no_column,
    no_rows,
    position_of,
    refuse_other_unit,
    split_unit,
)
from whatif.importers.run_columns import REPETITION, has_known_unit, run_table, unit_of
from whatif.importers.sheets import SheetRows, opened, read_rows
from whatif.importers.text import chunks, file_problem, pieces_of, reading, refuse
from whatif.schema.toml import shown_path
from whatif.table import Table

MOST_COLUMNS: Final = 2000
"""Columns of one file."""
MOST_WRONG: Final = 1000
"""Problems that are kept of one column, or of runs that share a compilation."""

_MOST_PAIRS: Final = 3
"""Most pairs of equal rows that a warning names."""

UNNAMED: Final = "column_"
"""Before the number of a column without a heading."""

Values = dict[str, NDArray[Any]]
"""Columns by heading."""


def read_runs_csv(
    source: str | Path,
    file: str = "<text>",
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    long: tuple[str, str] | None = None,
) -> Table:
    """A table of runs from a CSV or TSV file, or its text, with one line of headings and units in them, `time [ms]`.

    `columns` gives names to headings, `NAME: HEADING [unit]`, and keeps only those; `HEADING|HEADING` are columns of
    repetitions. `where` keeps the rows in which columns have given values. `long` names the column of metrics and
    that of their values. Columns are numbers where most of their cells are, or where they have a unit. There, a word
    such as TIMEOUT is a missing value; any other cell makes the column one of texts, with a warning. Raise
    `InvalidFileError` for such a cell in a column that `columns` names, `UsageError` for missing headings and unknown
    units.
    """
    return sheet_runs(*pieces_of(source, file), columns, where, long)


@dataclass(frozen=True)
class RunSheet:
    """Columns of a CSV file by heading, numbers as float64 (NaN where missing) and texts as objects; a row each run."""

    file: str
    values: Values
    lines: NDArray[np.int64]
    """Line of each row in the file."""
    warnings: tuple[str, ...] = ()
    """Words in the place of numbers, taken as missing, and how other cells were read."""
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Words in the place of numbers by line, by heading."""


def read_run_sheet(path: Path) -> RunSheet:
    """All columns of a CSV file, with units left in the headings. Raise `InvalidFileError` for other files."""
    file = shown_path(path)
    with reading(path, "CSV"):
        sheet, first, texts = opened(chunks(path), file)
        sheet = _checked(sheet, file)
        wanted = _wanted(sheet, first, None, None, {}, file)
        rows = read_rows(chain((first,), texts), sheet, wanted, {}, file)
    rows.refuse_wrong(wanted)
    if not rows.count or rows.warnings:
        raise _cut_off(rows) or refuse(file, "no runs: only a line of headings")
    values = {_heading(rows, at): _joined(rows, at) for at in wanted}
    words = {_heading(rows, at): words for at, words in rows.words.items()}
    return RunSheet(file, values, np.concatenate(rows.lines), tuple(rows.remarks), words)


def ranks_of_nodes(sheet: RunSheet, nodes: NDArray[Any], ranks: NDArray[Any] | None) -> NDArray[Any]:
    """Ranks of a node in each run, from the numbers of nodes and ranks. Raise `InvalidFileError` if they do not fit."""
    if ranks is None or object in (ranks.dtype, nodes.dtype):
        raise refuse(sheet.file, "`nodes` needs a column of the ranks, such as `rank_count`", 0, "nodes")
    whole = np.isfinite(nodes) & (nodes > 0)
    share: NDArray[np.float64] = np.divide(ranks, nodes, out=np.zeros(len(ranks)), where=whole)
    uneven = np.flatnonzero(~(share >= 1) | (np.floor(share) != share))[:MOST_WRONG]
    words = (f"{ranks[run]:g} ranks do not fill {nodes[run]:g} nodes evenly" for run in uneven)
    lines = sheet.lines[uneven].tolist()
    if problems := [file_problem(sheet.file, text, line, "nodes") for text, line in zip(words, lines, strict=True)]:
        raise InvalidFileError(problems)
    return share


def repeated_rows(sheet: RunSheet) -> Iterator[str]:
    """Warning about rows that are equal in every column: repeated measurements rarely take exactly the same time."""
    first: dict[str, int] = {}
    pairs = []
    for line, *row in zip(sheet.lines.tolist(), *(values.tolist() for values in sheet.values.values()), strict=True):
        # As text, so that missing values, NaN, are equal.
        same = first.setdefault(repr(row), line)
        pairs += [(line, same)] if same != line else []
    if pairs:
        named = ", ".join(f"line {line} as line {same}" for line, same in pairs[:_MOST_PAIRS])
        more = f" and {len(pairs) - _MOST_PAIRS:,} more" if len(pairs) > _MOST_PAIRS else ""
        yield f"rows that are equal in every column count as separate runs: {named}{more}"


def _cut_off(rows: SheetRows) -> InvalidFileError | None:
    """Error about rows that the reader would leave out, each with its line; None without any."""
    found = (text.removeprefix(f"{rows.file}:").partition(": ") for text in rows.warnings)
    problems = [file_problem(rows.file, text.replace(", left out", ""), int(line)) for line, _, text in found]
    return InvalidFileError(problems) if problems else None


@dataclass(frozen=True)
class _Pick:
    """The headings that hold a column, several where they are repetitions, and the unit stated after them."""

    headings: tuple[str, ...]
    unit: str


def sheet_runs(
    texts: Iterable[str],
    file: str,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    long: tuple[str, str] | None = None,
) -> Table:
    """Runs of a text in pieces that end with a line; see `read_runs_csv`."""
    where = where or {}
    sheet, first, texts = opened(texts, file)
    sheet = _with_forms(_checked(sheet, file), columns or {})
    pair = None if long is None else (_found(sheet, long[0]), _found(sheet, long[1]))
    filters = filters_of(sheet, where)
    wanted = _wanted(sheet, first, columns, pair, filters, file)
    rows = read_rows(chain((first,), texts), sheet, wanted, filters, file)
    rows.refuse_wrong(pair or (() if columns is None else wanted))
    if not rows.count:
        raise no_rows(file, where, rows.warnings)
    values = {_heading(rows, position): _joined(rows, position) for position in wanted}
    if pair is not None:
        values = _pivoted(values, sheet.names[pair[0]], sheet.names[pair[1]], file, rows.warnings)
    if columns is not None:
        named = named_columns(values, columns, file)
        values = named | ({REPETITION: values[REPETITION]} if pair and REPETITION in values else {})
    return run_table(values, {"file": file}, rows.remarks)


def _checked(sheet: SheetLayout, file: str) -> SheetLayout:
    """The sheet with a heading for each column."""
    if len(sheet.names) > MOST_COLUMNS:
        raise refuse(file, f"more than {MOST_COLUMNS:,} columns", sheet.line)
    names = tuple(name or f"{UNNAMED}{at}" for at, name in enumerate(sheet.names, 1))
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        message = f"the heading of {names.count(twice)} columns: give each another one"
        raise refuse(file, message, sheet.line, twice[:80])
    return SheetLayout(sheet.separator, names, sheet.line)


def _with_forms(sheet: SheetLayout, columns: Mapping[str, str]) -> SheetLayout:
    """The sheet with the form of durations in its headings, where a mapping states it: `time=Elapsed [mm:ss]`."""
    names = list(sheet.names)
    for text in columns.values():
        plain, unit = split_unit(text)
        if unit in DURATIONS and (at := position_of(sheet, plain)) >= 0 and not split_unit(names[at])[1]:
            names[at] = text
    return replace(sheet, names=tuple(names))


def _found(sheet: SheetLayout, heading: str) -> int:
    position = position_of(sheet, heading)
    if position < 0:
        raise UsageError(no_column(sheet, heading))
    return position


def _wanted(
    sheet: SheetLayout,
    first: str,
    columns: Mapping[str, str] | None,
    pair: tuple[int, int] | None,
    filters: Mapping[int, str],
    file: str,
) -> dict[int, bool]:
    """The columns to read by position, and whether they are numbers."""
    positions = set(range(len(sheet.names)))
    certain = {at for at in positions if has_known_unit(sheet.names[at])}
    if columns is not None:
        # In the long form, a name may be that of a metric, which is only known from the rows.
        picks = [_pick(sheet, name, text, file, strict=pair is None) for name, text in columns.items()]
        certain |= {sheet.names.index(heading) for pick in picks if pick.unit for heading in pick.headings}
        positions = {sheet.names.index(heading) for pick in picks for heading in pick.headings}
    name, value = pair or (-1, -1)
    unsure = dict.fromkeys(sorted(positions - certain - {name, value}), False)
    sample = read_rows([first], sheet, unsure or {0: False}, filters, file)
    if not sample.count:
        sample = read_rows([first], sheet, unsure or {0: False}, {}, file)
    wanted = {at: _is_numeric(sample, at) for at in unsure if not _is_empty(sample, at, sheet)}
    wanted |= dict.fromkeys(certain.intersection(positions), True) | ({name: False, value: True} if pair else {})
    return dict(sorted(wanted.items()))


def _is_empty(sample: SheetRows, position: int, sheet: SheetLayout) -> bool:
    """Whether a column is empty because each line ends with a separator."""
    unnamed = sheet.names[position] == f"{UNNAMED}{position + 1}"
    return unnamed and not any(_cells(sample, position))


def _is_numeric(sample: SheetRows, position: int) -> bool:
    cells = [cell for cell in _cells(sample, position) if not is_missing(cell)]
    return not cells or 2 * sum(map(looks_like_number, cells)) > len(cells)


def _cells(sample: SheetRows, position: int) -> Iterator[str]:
    return (cell for frame in sample.frames for cell in map(str.strip, frame[position]))


def _heading(rows: SheetRows, position: int) -> str:
    """Heading of a column, with the unit of durations."""
    heading = rows.sheet.names[position]
    return f"{heading} [s]" if position in rows.durations and not split_unit(heading)[1] else heading


def _joined(rows: SheetRows, position: int) -> NDArray[Any]:
    values = np.concatenate([frame[position] for frame in rows.frames])
    if values.dtype == np.float64:
        return values
    return np.array([str(text).strip() for text in values.tolist()], dtype=object)


def _pick(sheet: SheetLayout, name: str, stated: str, file: str, strict: bool = True) -> _Pick:
    """Headings that a mapping selects; raise `UsageError` for a missing column if `strict`."""
    position = position_of(sheet, stated)
    if position >= 0:
        return _Pick((sheet.names[position],), split_unit(sheet.names[position])[1])
    # Headings of the file itself have no other unit than their own.
    own = all(part.strip() in sheet.names for part in stated.split("|"))
    plain, unit = (stated, "") if own else split_unit(stated)
    parts = [plain] if position_of(sheet, plain) >= 0 else [part.strip() for part in plain.split("|")]
    lost = next((part for part in parts if position_of(sheet, part) < 0), None)
    if lost is not None:
        if not strict:
            return _Pick((), "")
        raise UsageError(f"{file}: `{name}={stated}`: {no_column(sheet, lost)}")
    headings = tuple(sheet.names[position_of(sheet, part)] for part in parts)
    for heading in headings if unit else ():
        refuse_other_unit(heading, name, stated, unit, file)
    units = {unit} if unit else {split_unit(heading)[1] for heading in headings}
    if len(units) > 1:
        listed = ", ".join(f"`{heading}`" for heading in headings)
        raise UsageError(f"{file}: `{name}={stated}`: repetitions in several units: {listed}")
    return _Pick(headings, units.pop())


def named_columns(values: Values, columns: Mapping[str, str], file: str) -> Values:
    """The columns that a mapping names; those of repetitions one below the other, each run with its repetitions."""
    sheet = SheetLayout(",", tuple(values), 0)
    picks = {name: _pick(sheet, name, text, file) for name, text in columns.items()}
    counts = {len(pick.headings) for pick in picks.values()} - {1}
    if len(counts) > 1:
        raise UsageError(f"{file}: columns with {' and '.join(map(str, sorted(counts)))} repetitions: give all as many")
    count = counts.pop() if counts else 1
    named = {}
    for name, pick in picks.items():
        cells = [values[heading] for heading in pick.headings]
        if pick.unit and cells[0].dtype != object:
            unit_of(pick.unit, name, "|".join(pick.headings), file)
        stacked = np.stack(cells * (count if len(cells) == 1 else 1), axis=1).ravel()
        named[f"{name} [{pick.unit}]" if pick.unit else name] = stacked
    if count > 1:
        rows = len(next(iter(values.values())))
        named[REPETITION] = np.tile(np.arange(1.0, count + 1), rows)
    return named


def _pivoted(values: Values, metric: str, value: str, file: str, warnings: list[str]) -> Values:
    """Long form as wide form: a column a metric; a metric that occurs twice in a run is a repetition."""
    import pandas as pd

    unit = split_unit(value)[1]
    keys = [name for name in values if name not in (metric, value)]
    frame = pd.DataFrame(values)
    # No name of a column, as the file may have any.
    repetition = frame.groupby([*keys, metric], dropna=False, sort=False).cumcount().to_numpy() + 1.0
    run = frame.groupby([*(frame[key] for key in keys), repetition], dropna=False, sort=False).ngroup().to_numpy()
    names = list(dict.fromkeys(values[metric].tolist()))
    if len(names) + len(keys) > MOST_COLUMNS:
        raise refuse(file, f"`{metric}` holds more than {MOST_COLUMNS:,} names of metrics")
    first = np.unique(run, return_index=True)[1]
    if len(names) > 1 and len(first) == len(run):
        warnings.append(f"{file}: no run has two metrics: omit a column that differs from row to row by `--columns`")
    wide: Values = {key: values[key][first] for key in keys}
    if repetition.max() > 1 and REPETITION not in wide:
        wide[REPETITION] = repetition[first]
    if clash := set(names).intersection(keys):
        raise refuse(file, f"`{min(clash)[:80]}` is the name of a metric and of a column")
    for name in names:
        at = values[metric] == name
        cells = np.full(len(first), np.nan)
        cells[run[at]] = values[value][at]
        wide[name if split_unit(name)[1] or not unit else f"{name} [{unit}]"] = cells
    return wide
