"""Records of profiles as a table of runs; paths of call trees."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from whatif.importers.numbers import MOST_ROWS, is_number
from whatif.importers.run_columns import has_known_unit, run_table
from whatif.importers.text import refuse
from whatif.table import Table

REGION: Final = "region"
MOST_LETTERS: Final = 64
"""Longest text that becomes a column."""
DEEPEST: Final = 500
"""Levels of a call tree."""
_OWN: Final = ("cali.", "spot.")
"""Prefix of the attributes that a profiler adds about itself."""

Key = TypeVar("Key", bound=Hashable)


def records_table(
    rows: Sequence[Mapping[str, Any]],
    notes: Mapping[str, str],
    units: Mapping[str, str],
    texts: Collection[str] = (),
    warnings: Sequence[str] = (),
) -> Table:
    """Table with a column for each key of the records: numbers if all its values are, else short texts.

    Lists, long texts, and attributes of the profiler itself are left out; `texts` stay texts even if they are numbers.
    A name may end with a unit, `time [ms]`, if `units` has none. The warnings name numbers that are read as texts.
    """
    file = notes.get("file", "")
    if not rows:
        raise refuse(file, "; ".join(["no measurements in this file", *warnings]))
    if len(rows) > MOST_ROWS:
        raise refuse(file, f"more than {MOST_ROWS:,} rows: split the file")
    columns: dict[str, NDArray[Any]] = {}
    told = list(warnings)
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        values = _values(cells, name in texts)
        if values is not None and (name == REGION or _worth(name, values)):
            columns[name] = values
            other = _other_than_numbers(cells) if values.dtype == object and name not in texts else None
            told += [f"{file}: `{name[:80]}` is read as texts: `{other}` is not a number"] if other else []
    if not columns.keys() - {REGION}:
        raise refuse(file, "no measurements in this file: no record has a number or a short text")
    known = {name: unit for name, unit in units.items() if has_known_unit(f"x [{unit}]")}
    return run_table(columns, notes, told, known)


def _values(cells: list[Any], text: bool) -> NDArray[Any] | None:
    there = [cell for cell in cells if cell is not None]
    if not there or any(isinstance(cell, list | dict) for cell in there):
        return None
    if not text and all(map(_is_number, there)):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    return np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)


def _other_than_numbers(cells: Sequence[Any]) -> str:
    """First cell that is not a number like the others, as JSON."""
    others = [cell for cell in cells if cell is not None and (isinstance(cell, bool) or not _is_number(cell))]
    numbers = any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)
    return json.dumps(others[0], ensure_ascii=False)[:40] if others and numbers else ""


def _is_number(cell: Any) -> bool:
    """Whether a cell is one that a float can hold, as a number or as a text."""
    try:
        float(cell)
    except (ValueError, OverflowError):
        return False
    return is_number(str(cell))


def _worth(name: str, values: NDArray[Any]) -> bool:
    different = set(values.tolist())
    if name.startswith(_OWN):
        return len(different) > 1
    if values.dtype != object:
        return True
    longest = max(map(len, different))
    return 0 < longest <= MOST_LETTERS and not any(text.startswith("[") for text in different)


def paths_of(labels: Mapping[Key, str], parents: Mapping[Key, Key], file: str) -> dict[Key, str]:
    """The path of each node of a call tree, `main/loop/MPI_Wait`; raise `InvalidFileError` for a cycle."""
    paths = {}
    for key in labels:
        path, at = [labels[key]], key
        while at in parents:
            at = parents[at]
            if at not in labels or len(path) > DEEPEST:
                raise refuse(
                    file, "a call tree with a ring, or deeper than any" if at in labels else "a node without one above"
                )
            path.append(labels[at])
        paths[key] = "/".join(reversed(path))
    return paths
