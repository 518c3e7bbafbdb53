"""Tables of predictions with their errors, and the mean errors of kinds of rows: numbers, words, and bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import Dimension

Row = Mapping[str, str]
Rows = list[dict[str, str]]
Kinds = NDArray[np.str_]
"""Kind of each row."""
_ERRORS: Final = re.compile(r"error|bias|fitted|held out|^by_")
"""Names of columns of errors, which people read in per cent."""


@dataclass(frozen=True)
class MeanError:
    """Mean absolute error of a kind of rows, their number and bias, and the largest error that is accepted.

    The bias is NaN where only absolute errors are known, the bound where none is stated.
    """

    kind: str
    count: int
    error: float
    bias: float
    bound: float = np.nan

    def words(self, rows: str) -> str:
        """Kind, number, error and bias in words."""
        return f"{self.kind}: {self.count} {rows}, mean error {self.error:.1%}, bias {self.bias:+.1%}"


@dataclass(frozen=True, eq=False, repr=False)
class ErrorTable(Table):
    """Table of predictions, with mean errors."""

    means: tuple[MeanError, ...] = ()

    @property
    def optional_columns(self) -> list[list[str]]:
        """Groups of columns omitted on a narrow terminal: numbers that are no errors, then errors, each from the last;
        the first error is kept."""
        numbers = [name for name, column in self.columns.items() if column.dimension is not None][::-1]
        return [[name] for name in sorted(numbers, key=lambda name: self.columns[name].is_share)][:-1]


def numbers(rows: Sequence[Row], key: str) -> FloatArray:
    """Numbers of a column of a file."""
    return np.array([float(row[key]) for row in rows])


def error_table(
    columns: Mapping[str, Dimension | None], cells: Sequence[Sequence[Any]], title: str, means: Sequence[MeanError]
) -> ErrorTable:
    """Table with mean errors; a note names those that are unknown or beyond their bounds."""
    words = "; ".join(f"{it.kind}: mean error {it.error:.1%}, bound {it.bound:.0%}" for it in means
                      if not np.isnan(it.bound) and not it.error <= it.bound)  # fmt: skip
    notes = {"title": title, "beyond": words} if words else {"title": title}
    shares = [name for name in columns if _ERRORS.search(name)]
    return ErrorTable(Table.of_rows(columns, cells, shares=shares).columns, notes, tuple(means))


def summarised_table(
    columns: Mapping[str, Dimension | None], cells: Sequence[Sequence[Any]], title: str, means: Sequence[MeanError],
    rows: str = "runs",
) -> ErrorTable:  # fmt: skip
    """Table whose title ends with the mean errors in words."""
    return error_table(columns, cells, f"{title}: {'; '.join(it.words(rows) for it in means)}", means)


def mean_errors(kinds: Kinds, errors: FloatArray, bounds: Mapping[str, float] | None = None) -> list[MeanError]:
    """Mean errors of the rows of each kind, in the order of the bounds, without bounds in that of the rows."""
    there = set(kinds.tolist())
    known = bounds or dict.fromkeys(kinds.tolist(), np.nan)
    return [mean_error(kind, errors[kinds == kind], bound) for kind, bound in known.items() if kind in there]


def mean_error(kind: str, errors: FloatArray, bound: float = np.nan) -> MeanError:
    """Mean error of all of some errors."""
    return MeanError(kind, len(errors), float(np.abs(errors).mean()), float(errors.mean()), bound)


def joined(kind: str, counts: FloatArray, errors: FloatArray, biases: FloatArray) -> MeanError:
    """Mean error of groups of rows, of those whose means are known."""
    known = np.isfinite(errors)
    means = (float(np.average(values[known], weights=counts[known])) for values in (errors, biases))
    return MeanError(kind, int(counts[known].sum()), *means)


def joined_by(kinds: Sequence[str], means: Sequence[Sequence[float]]) -> list[MeanError]:
    """Mean error of the groups of each kind, from number of rows, mean absolute error and bias of each group."""
    names, values = np.array(kinds), np.array(means, dtype=np.float64)
    return [joined(kind, *values[names == kind].T) for kind in dict.fromkeys(kinds)]
