"""Measured collectives as tables of times by size, one for each operation, number of ranks and library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, require_choice
from whatif.fitting.library_points import CollectivePoints
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import BYTE, ONE, SECOND
from whatif.vocabulary import COLLECTIVE_OPERATIONS, CollectiveOperation

_ALIASES: Final = {
    "bcast": "broadcast",
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
    "reducescatter": "reduce_scatter",
}
_PRINT_PARTS: Final = ("OSU", "Intel")
_DIVIDED: Final = ("allgather", "alltoall", "gather", "scatter")
"""Operations whose buffer has a part for each rank."""
MOST_POINTS: Final = 20_000
LARGE: Final = 2**20
"""Bytes from which bandwidth decides, mostly."""


@dataclass(frozen=True, eq=False)
class CollectiveTable:
    """Times of one operation on one number of ranks, by ascending size; repetitions are one row, their median."""

    operation: CollectiveOperation
    library: str
    rank_count: int
    ranks_per_node: int | None
    sizes: FloatArray
    times: FloatArray
    scatter: float
    """Largest standard deviation of repetitions, relative to their mean; NaN without repetitions."""

    @property
    def name(self) -> str:
        """Name in `[network.collectives.measured]`."""
        node = "" if self.ranks_per_node is None else f"_{self.ranks_per_node}"
        return f"{self.library}_{self.operation}_{self.rank_count}{node}"


def collective_points(measured: Table, operation: str | None, ranks: int | None) -> CollectivePoints:
    """Collectives among measurements; `operation` and `ranks` are those of rows that do not state them.

    Raise `UsageError` without a collective, and for rows without operation or ranks.
    """
    columns = {name: measured.columns[name].values for name in ("test", "message_size", "process_count", "time")}
    stated = _operation(operation) if operation else ""
    tests = np.array([_ALIASES.get(str(test), str(test)) or stated for test in columns["test"]], dtype=object)
    used = np.isin(tests, COLLECTIVE_OPERATIONS) & (columns["time"] > 0)
    if not used.any():
        _refuse_without_rows(tests)
    counts = columns["process_count"][used]
    if np.isnan(counts).any() and ranks is None:
        raise UsageError("the number of ranks is not known: state it by --ranks")
    counts = np.where(np.isnan(counts), float(ranks or 0), counts)
    if used.sum() > MOST_POINTS:
        raise UsageError(f"{used.sum():,} measured times are more than {MOST_POINTS:,}: read fewer files")
    _refuse_wrong(counts)
    sizes = columns["message_size"][used] * _buffers(measured, tests[used], counts)
    return CollectivePoints(tests[used], sizes, counts, columns["time"][used])


def _buffers(measured: Table, operations: NDArray[Any], ranks: FloatArray) -> FloatArray:
    """Factors from printed sizes to buffers: OSU and IMB print the part of one rank where others print the whole."""
    tool = measured.notes.get("tool", "")
    if "; " in tool:
        raise UsageError(
            f"these files are of several tools ({tool}), which count sizes in other ways: fit them one by one"
        )
    parts = tool.startswith(_PRINT_PARTS) & np.isin(operations, _DIVIDED)
    return np.where(parts, ranks, 1.0)


def _operation(text: str) -> str:
    name = _ALIASES.get(text, text)
    require_choice("operation", name, COLLECTIVE_OPERATIONS)
    return name


def _refuse_without_rows(tests: NDArray[Any]) -> None:
    found = [test for test in dict.fromkeys(map(str, tests)) if test.removesuffix("_in_place")]
    if not found:
        raise UsageError("the operation is not known: state it by --operation, such as alltoall")
    known = f"known are {', '.join(COLLECTIVE_OPERATIONS)}; a CSV file without names needs `test=NAME` in --columns"
    raise UsageError(f"no collective was measured, only {', '.join(found)}; {known}")


def _refuse_wrong(counts: FloatArray) -> None:
    wrong = counts[(counts < 1) | (counts % 1 != 0)]
    if len(wrong):
        raise UsageError(f"`{wrong[0]:g}` is not a number of ranks")


def collective_tables(points: CollectivePoints, library: str, ranks_per_node: int | None) -> list[CollectiveTable]:
    """Tables by operation and number of ranks."""
    keys = dict.fromkeys(zip(points.operations, points.ranks, strict=True))
    return [_table(points, operation, count, library, ranks_per_node) for operation, count in keys]


def _table(
    points: CollectivePoints, operation: CollectiveOperation, count: float, library: str, ranks_per_node: int | None
) -> CollectiveTable:
    own = points.at((points.operations == operation) & (points.ranks == count))
    sizes = np.unique(own.sizes)
    sizes = sizes[sizes > 0] if len(sizes) > 1 else sizes
    repeated = [own.times[own.sizes == size] for size in sizes]
    scatter = max((float(times.std(ddof=1) / times.mean()) for times in repeated if len(times) > 1), default=np.nan)
    medians = np.array([np.median(times) for times in repeated])
    return CollectiveTable(operation, library, int(count), ranks_per_node, sizes, medians, scatter)


def table_of_tables(tables: list[CollectiveTable]) -> Table:
    """One row per table: what it holds, and the scatter of repetitions."""
    columns = {"operation": None, "library": None, "ranks": ONE, "ranks_per_node": ONE, "sizes": ONE}
    columns |= {"smallest": BYTE, "largest": BYTE, "least_time": SECOND, "scatter": ONE}
    cells = [
        (
            table.operation, table.library, table.rank_count, table.ranks_per_node or np.nan, len(table.sizes),
            table.sizes[0], table.sizes[-1], table.times.min(), table.scatter,
        )
        for table in tables
    ]  # fmt: skip
    return Table.of_rows(columns, cells)


def error_table(points: CollectivePoints, errors: Mapping[str, FloatArray]) -> Table:
    """Mean absolute error and bias by operation and number of ranks, from 1 MiB on and below.

    `errors` are relative errors by name, NaN if missing.
    """
    columns: dict[str, Any] = {"operation": None, "ranks": ONE}
    for part in ("", " below"):
        columns |= {f"points{part}": ONE} | {f"{what}{part}": ONE for name in errors for what in (name, f"{name} bias")}
    large, cells = points.sizes >= LARGE, []
    for operation, count in sorted(dict.fromkeys(zip(points.operations, points.ranks, strict=True))):
        own = (points.operations == operation) & (points.ranks == count)
        cells.append([operation, count, *_summary(own & large, errors), *_summary(own & ~large, errors)])
    return Table.of_rows(columns, cells, shares=[name for name in columns if name.startswith(tuple(errors))])


def _summary(rows: NDArray[np.bool_], errors: Mapping[str, FloatArray]) -> list[float]:
    return [float(rows.sum()), *(number for error in errors.values() for number in mean_and_bias(error[rows]))]


def mean_and_bias(errors: FloatArray) -> tuple[float, float]:
    """Mean absolute error and mean error; NaN without errors."""
    known = errors[np.isfinite(errors)]
    return (float(np.abs(known).mean()), float(known.mean())) if len(known) else (np.nan, np.nan)
