"""Columns of tables of runs: names that a formula can use and units, from the headings of any format."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.importers.mapping import split_unit, symbol_of
from whatif.table import Column, Table, noted
from whatif.units import ONE, Dimension, UnitError, parse_unit

PERCENT: Final = "%"
REPETITION: Final = "repetition"
USUAL_HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "rank_count": (
        "ranks", "processes", "mpi ranks", "mpi processes", "mpi tasks", "procs", "nprocs", "np", "tasks", "ntasks",
        "num tasks", "num ranks", "number of ranks", "number of processes", "number of tasks",
    ),
    "nodes": ("nodes", "node count", "num nodes", "number of nodes", "nnodes"),
    "iteration_count": ("iterations", "steps", "time steps", "timesteps"),
    "iteration_time": ("time per iteration", "iteration time", "time per step", "step time"),
    "total_time": (
        "time", "total time", "wall time", "walltime", "wallclock", "wall clock", "wallclock time", "wall clock time",
        "run time", "runtime", "elapsed", "elapsed time",
    ),
}  # fmt: skip
"""Usual headings by the name of the column in a scenario."""


def identifier(heading: str) -> str:
    """A heading as a name in formulas: `Wall time` is `Wall_time`, `power.draw` is `power_draw`."""
    name = re.sub(r"\W+", "_", heading, flags=re.ASCII).strip("_") or "column"
    return f"_{name}" if name[0].isdigit() else f"{name}_" if keyword.iskeyword(name) else name


def usual_heading(name: str) -> str:
    """Name of the column that a usual heading means, such as `rank_count` for `ranks`; empty for other headings."""
    words = re.sub(r"[\W_]+", " ", name.replace("/", " per ")).strip().lower()
    return next((meant for meant, others in USUAL_HEADINGS.items() if words in others), "")


def with_usual_names(table: Table, names: Mapping[str, str], kept: Collection[str]) -> Table:
    """Table whose columns have the names of `names`, by their names in a scenario, where usual headings mean them.

    A column keeps its name if it is one of `kept`, if the table has the other name already, and if two columns mean
    the same.
    """
    means = {name: names.get(name if name in USUAL_HEADINGS else usual_heading(name), "") for name in table.columns}
    taken = [*table.columns, *means.values()]
    new = {
        name: meant
        for name, meant in means.items()
        if meant and meant not in table.columns and taken.count(meant) == 1 and name not in kept
    }
    return replace(table, columns={new.get(name, name): column for name, column in table.columns.items()})


def has_known_unit(heading: str) -> bool:
    """Whether a heading ends with a unit, as in `time [ms]`, so that its column is one of numbers."""
    unit = split_unit(heading)[1]
    try:
        return bool(unit) and (unit == PERCENT or bool(parse_unit(symbol_of(unit))))
    except UnitError:
        return False


def run_table(
    found: Mapping[str, NDArray[Any]],
    notes: Mapping[str, str],
    warnings: Sequence[str],
    units: Mapping[str, str] | None = None,
) -> Table:
    """A table of columns by heading, such as `Wall time [ms]`: float64 is scaled to base units, objects are texts.

    A heading without a unit is a pure number. `units`, by heading, are those stated outside of the headings, which are
    then names that may only end with a known unit. The note `columns` lists names that differ from those of the
    file, `warnings` also the columns with infinite numbers. Raise `UsageError` for an unknown unit and for two
    headings of one name, with what to write instead.
    """
    columns: dict[str, Column] = {}
    headings: dict[str, str] = {}
    infinite: list[str] = []
    file = notes.get("file", "")
    split = {text: split_unit(text) if units is None else _known(text, units) for text in found}
    for heading, values in found.items():
        plain, unit = split[heading]
        name = identifier(plain)
        if name in columns:
            raise _two_of_one_name(name, headings[name], heading, split[headings[name]][1] == unit, file, units is None)
        headings[name] = heading
        columns[name], some_infinite = _finite(_column(values, name, heading, unit, file))
        infinite += [heading] if some_infinite else []
    renamed = [f"{name} is `{text}`" for name, text in headings.items() if split[text][0] != name]
    missing = [f"{file}: `{text[:80]}` holds infinite numbers, which are taken as missing" for text in infinite]
    return Table(columns, noted({**notes, "columns": ", ".join(renamed)}, dict.fromkeys([*warnings, *missing])))


def _known(heading: str, units: Mapping[str, str]) -> tuple[str, str]:
    if heading in units or not has_known_unit(heading):
        return heading, units.get(heading, "")
    return split_unit(heading)


def _two_of_one_name(name: str, first: str, second: str, same_unit: bool, file: str, is_sheet: bool) -> UsageError:
    if not is_sheet:
        return UsageError(f"{file}: `{first[:80]}` and `{second[:80]}` are both `{name}`: rename one in the file")
    repeated = f", or, where they are repetitions, `--columns '{name}={first}|{second}'`" if same_unit else ""
    return UsageError(
        f"{file}: `{first[:80]}` and `{second[:80]}` are both `{name}`: give them names, such as "
        f"`--columns '{name}_1={first},{name}_2={second}'`{repeated}"
    )


def _column(values: NDArray[Any], name: str, heading: str, unit: str, file: str) -> Column:
    if values.dtype == object:
        return Column(values)
    dimension, scale, written = unit_of(unit, name, heading, file) if unit else (ONE, 1.0, "")
    with np.errstate(over="ignore"):
        return Column(values * scale if scale != 1.0 else values, dimension, written)


def _finite(column: Column) -> tuple[Column, bool]:
    """Column with infinite numbers as missing ones, and whether there are any."""
    infinite = np.isinf(column.values) if column.dimension is not None else np.False_
    if not infinite.any():
        return column, False
    return replace(column, values=np.where(infinite, np.nan, column.values)), True


def unit_of(unit: str, name: str, heading: str, file: str) -> tuple[Dimension, float, str]:
    """The dimension of a unit, its size, and how to write it where it is not the base unit.

    Raise `UsageError` for an unknown one, with what to write instead for the column of a heading of the file.
    """
    try:
        return size_of_unit(unit)
    except UnitError as error:
        own = has_known_unit(heading)
        instead = f"`--columns '{name}={heading}{'' if own else ' [1]'}'` reads it "
        instead += "in its own unit" if own else "as a number without a unit"
        raise UsageError(f"{file}: `{heading[:80]}`: {error}; {instead}") from None


def size_of_unit(unit: str) -> tuple[Dimension, float, str]:
    """Dimension of a unit, its size, and how to write it where it is not the base unit. Raise `UnitError`."""
    if unit == PERCENT:
        return ONE, 0.01, ""
    dimension, scale = parse_unit(symbol_of(unit))
    return dimension, scale, "" if scale == 1.0 else symbol_of(unit)
