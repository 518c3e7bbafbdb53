"""Runs on several counts of resources as series: one time for each count, with the scatter of repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean, listed
from whatif.fitting.grid_runs import MOST_COUNTED
from whatif.fitting.scaling_average import Origins
from whatif.fitting.scaling_fits import Problems
from whatif.measuring.repetition import MAD_SCALE
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension, counted

NODES: Final = "nodes"
PROCESSES: Final = "processes"
ITERATIONS: Final = "iterations"
TIMES: Final = ("total_time", "time")
"""Columns of the time, the first that there is."""
_CELLS: Final = "cells"
FILE: Final = "file"
"""Column of the files, if there are several."""
_SHORTEST, _LONGEST = 1e-12, 1e12
"""Seconds, which no run takes."""
_FEWEST: Final = 2
"""Different counts of a series."""
_MOST_ORIGINS: Final = 16
"""Counts of a series that are predicted from smaller ones, the largest."""
_STEP: Final = 1.4
"""Least factor between the largest count of an origin and its target."""
_MOST_COUNTS: Final = 10_000
"""Different counts of a series."""
_ALIKE: Final = 1.5
"""Largest factor between times of one count that needs no warning."""


@dataclass(frozen=True, eq=False)
class Series:
    """Runs of one program, case and machine at different counts, ascending; arrays of shape (counts,)."""

    name: str
    processes: FloatArray
    """p."""
    nodes: FloatArray
    """n; equal to p where the nodes do not vary apart from the processes."""
    time: FloatArray
    """Median of the repetitions, in s."""
    scatter: float
    """Standard deviation of repeated runs, of the logarithm; 0 without repetitions."""
    apart: bool
    """Whether the nodes vary apart from the processes."""
    ranks_per_node: float
    """Processes on a node in the largest run."""
    iterations: float
    """Iterations of the largest run, to which the times are scaled; 1 if not stated."""

    def largest(self, scale: str) -> float:
        """Largest count: nodes, or processes for any other scale."""
        return float((self.nodes if scale == NODES else self.processes).max())

    def naive(self, length: int, processes: float) -> float:
        """Time by perfect scaling from the last of the first `length` runs, in s.

        It is inverse to the count, or the same for series whose time changes less than its root.
        """
        p, time = self.processes[:length], self.time[:length]
        weak = np.log(time[-1] / time[0]) > -0.5 * np.log(p[-1] / p[0])
        return float(time[-1] * (1.0 if weak else p[-1] / processes))


@dataclass(frozen=True, eq=False)
class ScalingRuns:
    """All series of a table."""

    series: tuple[Series, ...]
    scale: str
    """Column of the count."""
    warnings: tuple[str, ...]

    def problems(self, which: NDArray[np.intp], length: NDArray[np.intp], targets: FloatArray) -> Problems:
        """Fits to the first `length` counts of series, each with a target: rows (processes, nodes)."""
        arrays = np.ones((3, len(which), int(length.max(initial=1))))
        for row, (number, count) in enumerate(zip(which, length, strict=True)):
            series = self.series[number]
            arrays[:, row, :count] = series.processes[:count], series.nodes[:count], series.time[:count]
        apart = np.array([self.series[number].apart for number in which], dtype=bool)
        used = np.arange(arrays.shape[2]) < length[:, None]
        return Problems(arrays[0], arrays[1], arrays[2], used, apart, targets[:, 0], targets[:, 1])

    def origins(self) -> Origins:
        """The runs up to each count of a series, with the next count that is at least 1.4 times as large.

        The last target of a series is its largest count.
        """
        rows = [(number, *step) for number, series in enumerate(self.series) for step in _steps(series)]
        which, length, place = np.array(rows, dtype=np.intp).reshape(-1, 3).T
        pairs = [(self.series[number], at) for number, at in zip(which, place, strict=True)]
        targets = np.array([(it.processes[at], it.nodes[at], it.time[at]) for it, at in pairs]).reshape(-1, 3)
        earlier = [(which[:row] == which[row]) & (place[:row] < length[row]) for row in range(len(which))]
        known = np.searchsorted(which, which) + np.array([one.sum() for one in earlier], dtype=np.intp)
        return Origins(self.problems(which, length, targets[:, :2]), which, length, targets[:, 2], known)


def _steps(series: Series) -> list[tuple[int, int]]:
    """Number of counts, and position of the one to predict from them; the last is the largest count."""
    p = series.processes
    ends = np.flatnonzero(np.diff(p) > 0)[_FEWEST - 1 :]
    steps = [(int(end) + 1, int(np.searchsorted(p, _STEP * p[end]))) for end in ends]
    steps = [(length, at) for length, at in steps if at < len(p)]
    largest = int(np.searchsorted(p, p[-1]))
    if steps and steps[-1][1] != largest:
        steps.append((steps[-1][0], largest))
    return steps[-_MOST_ORIGINS:]


def runs_of(table: Table, counts: Sequence[str] = (), series: Sequence[str] = ()) -> ScalingRuns:
    """The series of a table with a row a run; the first of `counts` is the scale (default: nodes or processes).

    `series` are the columns that distinguish series, besides the file (default: all columns of texts). Times are scaled
    to the iterations of the largest run of a series. Raise `UsageError` for a missing column, another unit, counts
    below 1, times of 0 or less, and fewer than two counts.
    """
    sheet = _Sheet(table)
    scale, time = sheet.first(counts[:1] or (NODES, PROCESSES)), sheet.first(TIMES)
    others = (*((NODES, PROCESSES) if scale in (NODES, PROCESSES) else ()), ITERATIONS)
    read = {name: sheet.counts(name) for name in dict.fromkeys((scale, *others)) if name in table.columns}
    read[time] = sheet.times(time)
    rows = np.flatnonzero(np.isfinite(list(read.values())).all(axis=0))
    if not len(rows):
        raise UsageError(f"{sheet.file}: no run has a number in each of {', '.join(read)}")
    warnings = [sheet.missing(np.isnan(values), name) for name, values in read.items() if np.isnan(values).any()]
    steps = read.get(ITERATIONS, np.ones_like(read[time]))
    columns = _Columns(scale, read.get(PROCESSES, read[scale]), read.get(NODES, read[scale]), steps, read[time] / steps)
    keys, labels = sheet.keys(series, rows)
    own = np.split(rows[np.argsort(keys, kind="stable")], np.cumsum(np.bincount(keys))[:-1])
    found = [_series(label, columns, some, sheet, warnings) for label, some in zip(labels, own, strict=True)]
    changing = [(it.name, it.iterations) for it, some in zip(found, own, strict=True) if np.ptp(steps[some]) > 0]
    warnings += [f"{name or sheet.file}: times are scaled to {count:g} iterations" for name, count in changing]
    return ScalingRuns(tuple(found), scale, tuple(warnings))


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of all runs, and the one of them that is the count."""

    scale: str
    processes: FloatArray
    nodes: FloatArray
    iterations: FloatArray
    iteration_time: FloatArray


def _series(name: str, columns: _Columns, rows: NDArray[np.intp], sheet: _Sheet, warnings: list[str]) -> Series:
    """A series of some rows. Raise `UsageError` for a single count, and for several sizes on one count."""
    order = np.lexsort((columns.iteration_time[rows], columns.nodes[rows], columns.processes[rows]))
    rows = rows[order]
    p, n = columns.processes[rows], columns.nodes[rows]
    ranks, steps = p / n, float(columns.iterations[rows[-1]])
    apart = bool(np.ptp(ranks) > 0)
    if not apart:
        p = n = n if columns.scale == NODES else p
    scale = PROCESSES if apart else columns.scale
    log_time = np.log(columns.iteration_time[rows] * steps)
    first = np.flatnonzero(np.append(True, (np.diff(p) != 0) | (np.diff(n) != 0)))
    sheet.refuse_counts(name, rows, p, scale)
    sheet.refuse_mixed_cells(rows, first, scale)
    middle, scatter, most = _repetitions(log_time, first)
    if most > _ALIKE:
        differ = f"times of one count differ by a factor of {most:.3g}: --series COLUMN,.. separates different cases"
        warnings.append(f"{name or sheet.file}: {differ}")
    return Series(name, p[first], n[first], np.exp(middle), scatter, apart, float(ranks[-1]), steps)


def _repetitions(log_time: FloatArray, first: NDArray[np.intp]) -> tuple[FloatArray, float, float]:
    """Median of the logarithms of each count, their scatter, and the largest factor between times of one count.

    Times of a count are consecutive and ascending. Deviations are those from the mean of k times, which are
    sqrt((k - 1) / k) of the scatter.
    """
    size = np.diff(first, append=len(log_time))
    last = first + size - 1
    middle = (log_time[first + (size - 1) // 2] + log_time[first + size // 2]) / 2
    away = np.abs(log_time - np.repeat(np.add.reduceat(log_time, first) / size, size))
    scaled = (away * np.repeat(np.sqrt(size / np.maximum(size - 1, 1)), size))[np.repeat(size > 1, size)]
    scatter = MAD_SCALE * float(np.median(scaled)) if len(scaled) else 0.0
    return middle, scatter, float(np.exp((log_time[last] - log_time[first]).max()))


_MAPPING: Final = "'nodes=HEADING,total_time=HEADING'"


def files_in_words(table: Table) -> str:
    """The file of a table, or the first of several and their number."""
    first, *others = table.notes.get("file", "the table").split("; ")
    return f"{first} (and {counted(len(others), 'other')})" if others else first


class _Sheet:
    """Table of runs whose numbers are checked; messages name file, run and column."""

    def __init__(self, table: Table) -> None:
        self.columns = table.columns
        self.file = files_in_words(table)

    def first(self, names: Sequence[str]) -> str:
        """The first of some columns that there is."""
        if found := next((name for name in names if name in self.columns), ""):
            return found
        wanted, hint = "` or `".join(names), did_you_mean(names[0], self.columns)
        known = f"the columns are {listed(tuple(self.columns))}; map all by --columns {_MAPPING}"
        raise UsageError(f"{self.file}: no column `{wanted}`{hint}; {known}")

    def counts(self, name: str) -> FloatArray:
        """Values of a column of counts."""
        values = self._numbers(name, ONE)
        bad = (values < 1) | (values > MOST_COUNTED) | (values % 1 != 0)
        self._refuse(bad & np.isfinite(values), name, values, "a count is a whole number from 1 to 2**53")
        return values

    def times(self, name: str) -> FloatArray:
        """Values of a column of times, in s."""
        values = self._numbers(name, SECOND)
        self._refuse(values <= 0, name, values, "a time is above 0")
        self._refuse(
            (values < _SHORTEST) | (values > _LONGEST), name, values, "out of range (1e-12 to 1e12 s); check the unit"
        )
        return values

    def _numbers(self, name: str, wanted: Dimension) -> FloatArray:
        column = self.columns[name]
        if column.dimension is None:
            raise UsageError(f"{self.file}: `{name}` holds texts; it must be numbers")
        if column.dimension != wanted:
            example = f"; write the unit into the heading, such as `{name} [s]`" if wanted == SECOND else ""
            raise UsageError(f"{self.file}: `{name}` is in {column.unit or 'no unit'}, not in {wanted}{example}")
        return np.asarray(column.values, dtype=np.float64)

    def _refuse(self, bad: NDArray[np.bool_], name: str, values: FloatArray, reason: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise UsageError(f"{self._place(row)}: `{name}` is {values[row]:g}: {reason}")

    def _place(self, row: int) -> str:
        """File of a run, and its number in that file."""
        if FILE not in self.columns:
            return f"{self.file}: run {row + 1}"
        files = self.columns[FILE].values
        return f"{files[row]}: run {int((files[: row + 1] == files[row]).sum())}"

    def missing(self, rows: NDArray[np.bool_], name: str) -> str:
        """Remark on runs without a number."""
        return f"{self._place(int(np.argmax(rows)))}: no number in `{name}`; runs left out: {rows.sum()}"

    def keys(self, series: Sequence[str], rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[str]]:
        """Number of the series of each of the rows, and the names of the series in the order of the rows."""
        for name in series:
            if name not in (*self.columns, FILE):
                hint = did_you_mean(name, self.columns)
                raise UsageError(f"{self.file}: --series {name}: no such column{hint}; {listed(tuple(self.columns))}")
        texts = [name for name, column in self.columns.items() if column.dimension is None]
        used = dict.fromkeys((FILE, *series)) if series else texts
        parts = [_texts(name, self.columns[name].values[rows]) for name in used if name in self.columns]
        whole = np.array([", ".join(words) for words in zip(*parts, strict=True)] if parts else [""] * len(rows))
        names, first, keys = np.unique(whole, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return np.argsort(order)[keys.ravel()], names[order].tolist()

    def refuse_counts(self, name: str, rows: NDArray[np.intp], p: FloatArray, scale: str) -> None:
        """Raise `UsageError` for a series with a single count, or with too many."""
        count = len(np.unique(p))
        if count > _MOST_COUNTS:
            raise UsageError(f"{self.file}: `{scale}` has {count:,} different values; at most {_MOST_COUNTS:,}")
        if count < _FEWEST:
            which = f" of `{name}`" if name else ""
            needed = f"scaling needs at least {_FEWEST} different counts, better 4"
            remedy = "--series COLUMN,.. states the columns that distinguish series"
            raise UsageError(f"{self._place(rows[0])}: `{scale}`{which} is {p[0]:g} in all runs: {needed}; {remedy}")

    def refuse_mixed_cells(self, rows: NDArray[np.intp], first: NDArray[np.intp], scale: str) -> None:
        """Raise `UsageError` for runs of several sizes on the same count."""
        cells = self.columns.get(_CELLS)
        if cells is None or cells.dimension is None:
            return
        values = cells.values[rows]
        mixed = np.fmax.reduceat(values, first) > np.fmin.reduceat(values, first)
        if mixed.any():
            at = rows[first[int(np.argmax(mixed))]]
            remedy = f"--series {_CELLS} separates them"
            raise UsageError(f"{self._place(at)}: runs of the same `{scale}` differ in `{_CELLS}`: {remedy}")


def _texts(name: str, values: NDArray[Any]) -> list[str]:
    """Texts of a column; of files their names, if these differ as their paths do."""
    texts = [f"{item:g}" if isinstance(item, float) else str(item) for item in values.tolist()]
    short = {text: PurePath(text).name for text in set(texts)} if name == FILE else {}
    return [short[text] for text in texts] if short and len(set(short.values())) == len(short) else texts
