"""Calibrations of kernels and messages as CSV or TSV: three kinds of files, recognised by their columns.

`samples`: one call a row, its `time` and the sizes `m`, `n`, `k`, or the one `size` S of the kernel. `coefficients`: a
fitted model a row, for one processor at one time, `constant` and `mnk` and perhaps `mn`, `mk`, `nk`
and the same names with `deviation_` before. `messages`: `test`, `message_size` and `time` of one call of MPI. All
may have `node`, `cpu`, `run` (a repetition of the calibration), `kernel`, `machine` and `busy_cores` (cores of a node
that computed at the same time). Other headings that are known,
such as `duration` or `intercept`, are in `HEADINGS`. Times without a unit in the heading are seconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.importers.mapping import (
    SheetLayout,
    filters_of,
    no_column,
    no_rows,
    position_of,
    split_unit,
    symbol_of,
)
from whatif.importers.numbers import is_number
from whatif.importers.sheets import SheetRows, opened, read_rows
from whatif.importers.text import read_as_it_ends, refuse, text_of
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table, noted, text_column
from whatif.units import BYTE, ONE, SECOND, Dimension, UnitError, parse_unit
from whatif.vocabulary import MATRIX_TERMS

HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("time", "duration"),
    "m": ("m",),
    "n": ("n",),
    "k": ("k",),
    "size": ("size",),
    "message_size": ("message_size", "msg_size"),
    "busy_cores": ("busy_cores", "busy_processes"),
    **{term: (term, "intercept") if term == "constant" else (term,) for term in MATRIX_TERMS},
    **{
        f"deviation_{term}": (f"deviation_{term}", f"{'intercept' if term == 'constant' else term}_residual")
        for term in MATRIX_TERMS
    },
    "test": ("test", "experiment"),
    "node": ("node", "host", "hostname"),
    "cpu": ("cpu", "processor", "socket"),
    "run": ("run", "start_time", "jobid"),
    "kernel": ("kernel", "function"),
    "machine": ("machine", "cluster"),
}
"""Default headings by column."""
TEXTS: Final = ("test", "node", "cpu", "run", "kernel", "machine")
_SIZES: Final = ("m", "n", "k", "size", "message_size", "busy_cores")


def read_calibration(
    source: str | Path,
    file: str = "<text>",
    mapping: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
) -> Table:
    """Rows of a file, or of its text, with the note `kind`: `samples`, `coefficients` or `messages`.

    `mapping` names the headings of columns that have others than `HEADINGS`, `where` keeps the rows in which columns
    of the file have given values. Raise `UsageError` for a mapping that does not fit and `InvalidFileError` for a file
    of no known kind, cells that are not numbers, times that are not above zero, and sizes below one.
    """
    text, file = text_of(source, file, read_as_it_ends)
    sheet, first, _ = opened([text], file)
    positions = _positions(sheet, mapping or {})
    kind = _kind(positions, sheet, file)
    filters = filters_of(sheet, where or {})
    rows = read_rows([first], sheet, dict.fromkeys(positions.values(), False), filters, file)
    if not rows.count:
        raise no_rows(file, where or {})
    columns = {name: _column(name, at, rows) for name, at in positions.items()}
    _refuse_several_machines(columns, file)
    return Table(columns, noted({"file": file, "kind": kind}, rows.warnings))


def _positions(sheet: SheetLayout, mapping: Mapping[str, str]) -> dict[str, int]:
    """Position of each known column."""
    for name, heading in mapping.items():
        if name not in HEADINGS:
            raise UsageError(f"`{name}` is not a column of a calibration{did_you_mean(name, HEADINGS)}")
        if position_of(sheet, heading) < 0:
            raise UsageError(no_column(sheet, heading))
    found = {}
    for name, headings in HEADINGS.items():
        places = (position_of(sheet, heading) for heading in ((mapping[name],) if name in mapping else headings))
        if (at := next((place for place in places if place >= 0), -1)) >= 0:
            found[name] = at
    return found


def _kind(positions: Mapping[str, int], sheet: SheetLayout, file: str) -> str:
    if {"message_size", "time", "test"} <= positions.keys():
        return "messages"
    if "time" in positions and {"m", "n", "k", "size"} & positions.keys():
        return "samples"
    if {"constant", "mnk"} <= positions.keys():
        return "coefficients"
    wanted = "`time` with `m`, `n`, `k` or `size`; `constant` and `mnk`; or `test`, `message_size` and `time`"
    listed = ", ".join(f"`{name[:40]}`" for name in sheet.names[:12])
    raise refuse(file, f"no calibration: the columns are {listed}; needed are {wanted} (`--columns` names them)", 1)


def _column(name: str, at: int, rows: SheetRows) -> Column:
    cells, heading = [str(cell).strip() for frame in rows.frames for cell in frame[at]], rows.sheet.names[at]
    if name in TEXTS:
        return text_column(cells)
    dimension = BYTE if name == "message_size" else ONE if name in _SIZES else SECOND
    values = _numbers(name, cells, heading, np.concatenate(rows.lines), rows.file)
    return Column(values * _scale(heading, dimension, rows.file), dimension)


def _numbers(name: str, cells: list[str], heading: str, lines: NDArray[np.int64], file: str) -> FloatArray:
    try:
        values = np.array(cells, dtype=float)
    except ValueError:
        place = next((place for place, cell in enumerate(cells) if not is_number(cell)), 0)
        raise refuse(file, f"`{cells[place][:40]}` is not a number", int(lines[place]), heading) from None
    least = 1.0 if name in ("m", "n", "k", "size", "busy_cores") else 0.0
    bad = ~(np.isfinite(values) & ((values > 0) if name == "time" else (values >= least)))
    if bad.any():
        place = int(np.argmax(bad))
        wanted = "above zero" if name == "time" else f"at least {least:g}"
        raise refuse(file, f"`{cells[place][:40]}` must be a number {wanted}", int(lines[place]), heading)
    return values


def _scale(heading: str, dimension: Dimension, file: str) -> float:
    unit = split_unit(heading)[1]
    if not unit:
        return 1.0
    try:
        found, size = parse_unit(symbol_of(unit))
    except UnitError as error:
        raise refuse(file, str(error), 1, heading) from None
    if found != dimension:
        raise refuse(file, f"must be in {dimension}", 1, heading)
    return size


def _refuse_several_machines(columns: Mapping[str, Column], file: str) -> None:
    if "machine" not in columns:
        return
    machines = sorted(set(columns["machine"].values.tolist()))
    if len(machines) > 1:
        listed = ", ".join(f"`{name}`" for name in machines[:8])
        raise refuse(file, f"rows of {len(machines)} machines ({listed}); `--where` of that column chooses one")
