"""Plain CSV and TSV files whose columns are named by a mapping: see `whatif.importers.mapping`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from whatif.importers.mapping import TESTS, TEXTS, ColumnSource, filters_of, no_rows, own_names, sources_of
from whatif.importers.numbers import valid_measurements
from whatif.importers.sheets import SheetRows, opened, read_rows
from whatif.importers.text import pieces_of
from whatif.table import Table

_PAIRS = re.compile(r"(?:(?:[nk]|num|number)[_ ]?(?:of[_ ])?)?pairs?(?:[_ ]?count)?", re.IGNORECASE)


def read_columns(
    source: str | Path,
    mapping: Mapping[str, str] | None,
    file: str = "<text>",
    where: Mapping[str, str] | None = None,
) -> Table:
    """A table of measurements from a CSV or TSV file with one line of headings, or from its text.

    `mapping` gives the heading of a column of measurements, with `[unit]` behind where the heading
    has none, or a value; without it, headings must be the names of the columns, `message_size [B]`. `message_size`
    and `time` or `bandwidth` must be there. `where` keeps the rows in which columns of the file have given values.
    Lines that start with `#` are comments. Raise `UsageError` for a mapping that does not fit the headings and
    `InvalidFileError` for cells that are no numbers (formulas, decimal commas, thousands separators), and ragged rows.
    """
    texts, file = pieces_of(source, file)
    sheet, rest, texts = opened(texts, file)
    sources = sources_of(sheet, own_names(sheet) if mapping is None else mapping, file)
    wanted = {source.position: name not in TEXTS for name, source in sources.items() if source.position >= 0}
    part = read_rows(chain((rest,), texts), sheet, wanted, filters_of(sheet, where or {}), file)
    part.refuse_wrong(wanted)
    if "pair_count" not in sources and (pairs := next(filter(_PAIRS.fullmatch, sheet.names), "")):
        message = "no pair_count was given, but a column looks like it"
        part.warnings.append(f"{file}: {message}: `pair_count={pairs}` uses it")
    return _measured(part, sources, file, where or {})


def _measured(part: SheetRows, sources: Mapping[str, ColumnSource], file: str, where: Mapping[str, str]) -> Table:
    if not part.count:
        raise no_rows(file, where, part.warnings)
    columns = {name: _values(part, name, source) for name, source in sources.items()}
    warnings = part.remarks
    if "test" not in columns:
        columns["test"] = "ping_pong" if "time" in columns else "bandwidth"
        meaning = "one-way times of ping-pongs" if "time" in columns else "bandwidths of streams"
        warnings.append(f"{file}: taken as {meaning}; `test=NAME` states another one")
    if "time" not in columns:
        columns["time"] = _streamed(columns)
    return valid_measurements(columns, np.concatenate(part.lines), {"file": file}, warnings)


def _values(part: SheetRows, name: str, source: ColumnSource) -> Any:
    if source.position < 0:
        return np.full(part.count, source.value, dtype=object if name in TEXTS else float)
    values = np.concatenate([frame[source.position] for frame in part.frames])
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
