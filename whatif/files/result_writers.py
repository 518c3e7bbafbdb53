"""Writers of results, part by part: JSON, CSV, Markdown, a plain table; Parquet to a file (extra `parquet`)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TextIO, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whatif.atomic import atomic_file
from whatif.core.result import CATEGORY_TIMES, Result
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.table import Column, Table, number_text
from whatif.table_writers import column_rows, csv_rows, markdown_rows, narrowed, omission
from whatif.units import Dimension
from whatif.visible_text import visible_json

if TYPE_CHECKING:
    from whatif.core.sweep_answers import Answers


@runtime_checkable
class Answering(Protocol):
    """Results that have answers when all of them were evaluated."""

    def answers(self) -> Answers:
        """Answers of the sweep."""


def write_json(results: Iterable[Result], out: TextIO) -> None:
    """One object: scenario, axes, units, rows and answers; times in seconds, null and a reason for an infeasible point.

    `grade` is that of the times, `grades` are those of energy and cost by column. `axes` are the swept parameters,
    slowest first; `tied` lists those that move together. The answers are those of a sweep that can
    be asked for them when all its results were written.
    """
    sweep = results
    first, results = _peek(results)
    head = {
        "scenario": first.program.loaded.name,
        "platform": first.program.loaded.scenario.platform.name,
        "grade": first.grade,
        "grades": dict(first.other_grades),
        "axes": list(first.grid.parameters()),
        "tied": [list(axis.parameters) for axis in first.grid.axes if len(axis.parameters) > 1],
        "units": _units(first),
    }
    out.write(_json(head)[:-1] + ', "rows": [')
    separator = "\n"
    for result in results:
        for row in _json_rows(result):
            out.write(separator + _json(row))
            separator = ",\n"
    answers = sweep.answers().to_dict()["answers"] if isinstance(sweep, Answering) else []
    words = f', "answers": {_json(answers)}' if answers else ""
    out.write(f"\n]{words}}}\n")


def _json(data: Any) -> str:
    return visible_json(json.dumps(data, ensure_ascii=False))


def _units(result: Result) -> dict[str, str]:
    columns = result.table().columns
    numbers = {name: column.unit for name, column in columns.items() if column.dimension is not None}
    return {name: unit for name, unit in numbers.items() if not name.startswith("terms.")} | {"terms": "s"}


def _json_rows(result: Result) -> Iterator[dict[str, Any]]:
    table = result.table()
    for row in table.rows():
        cells = dict(zip(table.columns, row, strict=True))
        marks = {name: mark for name in ("infeasible", "extrapolated") if (mark := cells.pop(name))}
        terms = {name: cells.pop(name) for name in table.columns if name.startswith("terms.")}
        cells["terms"] = {name.removeprefix("terms."): value for name, value in terms.items()}
        yield cells | marks


def write_csv(results: Iterable[Result], out: TextIO) -> None:
    """One row per point in base units; the header has the unit, `total_time [s]`; `infeasible` is a reason or empty."""
    for number, result in enumerate(results):
        csv_rows(result.table(), out, heading=number == 0)


def write_markdown(results: Iterable[Result], out: TextIO) -> None:
    """A Markdown table with units written out for people."""
    for number, result in enumerate(results):
        markdown_rows(result.table(), out, heading=number == 0)


def write_table(results: Iterable[Result], out: TextIO, width: int | None = None) -> str:
    """Plain table; a single point has one row a result, with the share of each phase.

    A width in characters omits columns for which there is no room, and the text returned names them.
    """
    first, results = _peek(results)
    if first.grid.axes:
        return _write_columns(results, out, width)
    _write_point(first, out)
    return ""


def _write_point(result: Result, out: TextIO) -> None:
    iteration = float(result.columns["iteration_time"])
    rows = [(name, name, float(array)) for name, array in result.columns.items()]
    rows += [(f"terms.{name}", f"  {name}", float(array)) for name, array in result.terms.items()]
    width = max(len(shown) for _, shown, _ in rows)
    bands = result.bands
    if bands is not None:
        out.write(f"{'':{width + 23}}{''.join(f'{name:>12}' for name in bands.sampling.names)}\n")
    for name, shown, value in rows:
        if value == 0 and name in ("transfer_time", "overlap_time", "setup_time"):
            continue
        dimension = result.dimensions[name]
        part = name in ("iteration_time", *CATEGORY_TIMES) or name.startswith("terms.")
        share = f"{value / iteration:.1%}" if part and iteration > 0 else ""
        quantiles = () if bands is None else bands.values[name]
        number, *band = (_number(name, float(item), dimension) for item in (value, *quantiles))
        out.write(f"{shown:{width}}  {number:>12}{share:>9}{''.join(f' {end:>11}' for end in band)}".rstrip() + "\n")


def _number(name: str, value: float, dimension: Dimension) -> str:
    return number_text(name, value, dimension) if math.isfinite(value) else "-"


def _write_columns(results: Iterable[Result], out: TextIO, width: int | None) -> str:
    first, results = _peek(results)
    whole = shown = _worth_showing(first)
    if width is not None:
        shown = narrowed(whole, width, first.optional_columns)
    widths: list[int] = []
    for result in results:
        columns = result.table().columns
        part = Table({name: columns[name] for name in shown.columns})
        widths = column_rows(part if width is None else narrowed(part, width, ()), out, widths)
    return "" if width is None else omission(whole, shown, width)


def _worth_showing(result: Result) -> Table:
    hidden = _hidden_quantiles(result)
    columns = result.table().columns
    return Table({name: its for name, its in columns.items() if name not in hidden and _is_worth_showing(name, its)})


def _hidden_quantiles(result: Result) -> set[str]:
    """Quantiles left out of a plain table: all but the ends of the band of two times."""
    if result.bands is None:
        return set()
    lower, _, upper = result.bands.sampling.names
    quantiles = {f"{name}.{suffix}" for name in result.dimensions for suffix in result.bands.sampling.names}
    return quantiles.difference(f"{name}.{end}" for name in ("total_time", "iteration_time") for end in (lower, upper))


def _is_worth_showing(name: str, column: Column) -> bool:
    if name in ("overlap_time", "setup_time"):
        return bool(np.nansum(column.values))
    if name == "grade":
        return bool(np.any(column.values != column.values[0]))
    if column.dimension is None and name in ("infeasible", "extrapolated"):
        return bool(np.any(column.values != ""))
    return not name.startswith("terms.")


def write_parquet(results: Iterable[Result], out: BinaryIO) -> None:
    """Parquet: one row a point, one row group a chunk; the metadata of a column hold its `unit`."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"Parquet needs pyarrow: {install_command('parquet')}") from None
    first, results = _peek(results)
    columns = first.table().columns
    schema = pa.schema(
        [
            pa.field(
                name,
                pa.string() if column.values.dtype == object else pa.float64(),
                nullable=False,
                metadata={"unit": column.unit},
            )
            for name, column in columns.items()
        ]
    )
    # Byte streams by significance take a quarter of the space of dictionaries for sweeps, at the same speed.
    texts = [name for name, column in columns.items() if column.values.dtype == object]
    numbers = [name for name in columns if name not in texts]
    options = {"compression": "zstd", "use_dictionary": texts, "use_byte_stream_split": numbers}
    with parquet.ParquetWriter(out, schema, **options) as writer:
        for result in results:
            arrays = [_arrow(column.values) for column in result.table().columns.values()]
            writer.write_table(pa.table(arrays, schema=schema))


def _arrow(values: NDArray[Any]) -> Any:
    """Arrow array without a copy of every value; `pa.array` would import pandas first."""
    import pyarrow as pa

    if values.dtype == np.float64:
        return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    if values.strides == (0,) and len(values):
        text = str(values[0]).encode()
        ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(len(text))
        return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(text * len(values)))
    return pa.array(values)


WRITERS: Final[dict[str, Callable[[Iterable[Result], TextIO], object]]] = {
    "table": write_table,
    "json": write_json,
    "csv": write_csv,
    "markdown": write_markdown,
}


def write_file(results: Iterable[Result], file_format: str, path: Path) -> None:
    """Write a file, which appears when it is complete; results before an error are kept in a file next to it."""
    # The rest of a Parquet file on a full disk is unreadable.
    keep = (KeyboardInterrupt, UsageError) if file_format == "parquet" else (KeyboardInterrupt, UsageError, OSError)
    with atomic_file(path, keep) as temporary:
        if file_format == "parquet":
            with temporary.open("wb") as binary:
                write_parquet(results, binary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as text:
                WRITERS[file_format](results, text)


def _peek(results: Iterable[Result]) -> tuple[Result, Iterable[Result]]:
    iterator = iter(results)
    first = next(iterator)
    return first, chain([first], iterator)
