"""Scaling of measured runs: predictions at other counts, predictions of held-out runs, and the models averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean, listed, require_choice, require_level
from whatif.fitting.grid_runs import MOST_COUNTED
from whatif.fitting.scaling_average import Averages, ScalingModel
from whatif.fitting.scaling_fits import CANDIDATES
from whatif.fitting.scaling_runs import ITERATIONS, NODES, PROCESSES, ScalingRuns, Series, files_in_words, runs_of
from whatif.limits import SCALING_TABLES
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable
from whatif.table import Column, Table
from whatif.units import ONE, SECOND, UnitError, parse_quantity

LEVEL: Final = 0.95
EXAMPLE: Final = "nodes=64"
NOTHING_HELD_OUT: Final = "no series has two counts and a third at least 1.4 times as large; nothing is held out"
_FAR: Final = 2.0
"""Doublings beyond the runs from which a prediction is doubtful."""
_NAMED: Final = 3
"""Candidates that a row names."""


@dataclass(frozen=True)
class ScalingOptions:
    """Inputs of a scaling fit; None: the default."""

    predict: Sequence[Mapping[str, str]] = ()
    """Points: texts by column, nodes, processes or another count, and iterations."""
    series: Sequence[str] = ()
    """Columns that distinguish series, besides the file."""
    level: float | None = None
    show: str | None = None
    """One of `SCALING_TABLES`."""

    def __post_init__(self) -> None:
        if self.show is not None:
            require_choice("show", self.show, SCALING_TABLES)
        require_level(LEVEL if self.level is None else self.level)
        if self.show == "prediction" and not self.predict:
            raise UsageError(f"--show prediction needs --predict, such as --predict {EXAMPLE}")
        if self.predict and self.show not in (None, "prediction"):
            raise UsageError(f"--predict: no effect on the shown {self.show}")
        if self.level is not None and self.table == "models":
            raise UsageError("--level: no effect on the shown models, which have no intervals")

    @property
    def table(self) -> str:
        """Name of the table that the options call for."""
        return self.show or ("prediction" if self.predict else "held-out")


@dataclass(frozen=True, eq=False, repr=False)
class FittedScaling(Presentable):
    """Scaling of series of runs: one table, and remarks."""

    runs: ScalingRuns
    model: ScalingModel
    values: Table
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Predictions, held-out runs or candidates."""
        return self.values


def study_scaling(table: Table, options: ScalingOptions) -> FittedScaling:
    """Predictions, held-out runs or candidates, from a table of runs (`whatif.fitting.scaling_runs.runs_of`).

    Raise `UsageError` for columns that are missing, impossible numbers, and points that the runs do not describe.
    """
    points = [_values(point) for point in options.predict]
    runs = runs_of(table, _count_names(points, table), options.series)
    study = _Study(runs, options.level or LEVEL)
    held_out, scores = study.held_out()
    notes = [f"warning: {line}" for line in runs.warnings] + scores
    if options.table == "prediction":
        found, remarks = study.predicted(points)
        return FittedScaling(runs, study.model, found, (*notes, *remarks))
    shown = held_out if options.table == "held-out" else study.models()
    return FittedScaling(runs, study.model, shown, tuple(notes))


def _values(point: Mapping[str, str]) -> dict[str, float]:
    """Numbers of a point by column."""
    found = {}
    for name, text in point.items():
        try:
            quantity = parse_quantity(text)
        except UnitError as error:
            raise UsageError(f"--predict {name}={text}: {error}{_several(text)}") from None
        if quantity.dimension != ONE or not 1 <= quantity.value <= MOST_COUNTED or quantity.value % 1:
            raise UsageError(f"--predict {name}={text}: expected a whole number from 1 to 2**53{_several(text)}")
        found[name] = quantity.value
    return found


def _several(text: str) -> str:
    return "; state each point with its own --predict" if "," in text else ""


def _count_names(points: Sequence[Mapping[str, float]], table: Table) -> tuple[str, ...]:
    """The column of the count that all points state, or nodes and processes; empty without points."""
    for name in (name for point in points for name in point if name not in table.columns):
        known = f"{files_in_words(table)} has {listed(tuple(table.columns))}"
        raise UsageError(f"--predict {name}: no such column{did_you_mean(name, table.columns)}; {known}")
    if wrong := next((name for point in points for name in point if table.columns[name].dimension != ONE), None):
        raise UsageError(f"--predict {wrong}: expected a column of counts, such as {EXAMPLE}")
    names = [tuple(name for name in point if name != ITERATIONS) for point in points]
    for stated in names:
        if not stated or (len(stated) > 1 and set(stated) != {NODES, PROCESSES}):
            raise UsageError(
                f"--predict {','.join(stated)}: expected one count, such as {EXAMPLE}, or nodes and processes"
            )
        if set(stated) != set(names[0]):
            raise UsageError(f"--predict {','.join(stated)}: another one states {','.join(names[0])}; state the same")
    return tuple(sorted(names[0])) if names else ()


class _Study:
    """Tables of the same series."""

    def __init__(self, runs: ScalingRuns, level: float) -> None:
        self.runs, self.level = runs, level
        self.origins = runs.origins()
        self.model = ScalingModel(self.origins)
        self.scatter = np.array([series.scatter for series in runs.series])

    def predicted(self, points: Sequence[Mapping[str, float]]) -> tuple[Table, list[str]]:
        """Predictions of each point in each series, with remarks."""
        pairs = [(number, point) for number in range(len(self.runs.series)) for point in points]
        which = np.array([number for number, _ in pairs], dtype=np.intp)
        found, naive = self._averages(which, [point for _, point in pairs])
        own = np.array([self.runs.series[number].iterations for number in which])
        # All points state the same counts, but not all of them the iterations.
        stated = {
            name: np.array([point.get(name, steps) for (_, point), steps in zip(pairs, own, strict=True)])
            for name in dict.fromkeys(name for point in points for name in point)
        }
        table = self._table(which, stated, found, naive, steps=stated.get(ITERATIONS, own) / own)
        return table, list(dict.fromkeys(line for pair in pairs for line in _remarks(self.runs, *pair)))

    def _averages(self, which: NDArray[np.intp], points: Sequence[Mapping[str, float]]) -> tuple[Averages, FloatArray]:
        """Predictions of points in series, and those by the naive rule, from all runs."""
        series = [self.runs.series[number] for number in which]
        length = np.array([len(it.time) for it in series])
        places = np.array([_place(it, self.runs.scale, point) for it, point in zip(series, points, strict=True)])
        found = self.model.predict(self.runs.problems(which, length, places), which, self.scatter[which])
        return found, self._naive(which, length, places[:, 0])

    def held_out(self) -> tuple[Table, list[str]]:
        """The largest count of each series predicted from the smaller ones, with the errors in words."""
        origins = self.origins
        last = np.flatnonzero(np.diff(origins.series, append=-1) != 0)
        averages = self.model.at_origins(self.scatter[origins.series])
        which, p = origins.series[last], origins.problems.target_processes[last]
        naive, measured = self._naive(which, origins.length[last], p), origins.measured[last]
        count = self._counts(which, p, origins.problems.target_nodes[last])
        table = self._table(which, count, averages.at(last), naive, measured)
        return table, list(self._scores(table)) if len(last) else [NOTHING_HELD_OUT]

    def _counts(self, which: NDArray[np.intp], p: FloatArray, n: FloatArray) -> dict[str, FloatArray]:
        """Columns of counts: processes and nodes if they vary apart in some series, or the scale."""
        series = [self.runs.series[number] for number in which]
        if not any(it.apart for it in series):
            return {self.runs.scale: p}
        apart, ranks = np.array([(it.apart, it.ranks_per_node) for it in series]).T
        processes = np.where(apart, p, p * ranks if self.runs.scale == NODES else p)
        return {NODES: np.where(apart, n, processes / ranks), PROCESSES: processes}

    def _naive(self, which: NDArray[np.intp], length: NDArray[np.intp], processes: FloatArray) -> FloatArray:
        triples = zip(which, length, processes, strict=True)
        return np.array([self.runs.series[number].naive(count, p) for number, count, p in triples])

    def _table(
        self,
        which: NDArray[np.intp],
        counts: Mapping[str, FloatArray],
        found: Averages,
        naive: FloatArray,
        measured: FloatArray | None = None,
        steps: FloatArray | float = 1.0,
    ) -> Table:
        """Rows of predictions, with what was measured where it was."""
        names = np.array([self.runs.series[number].name for number in which], dtype=object)
        half = found.half_width(self.level)
        times = {"fit": found.centre, "lower": found.centre - half, "upper": found.centre + half}
        columns = {"series": Column(names)} if len(self.runs.series) > 1 else {}
        columns |= {name: Column(values, ONE) for name, values in counts.items()}
        columns |= {} if measured is None else {"measured": Column(measured, SECOND)}
        with np.errstate(over="ignore"):
            columns |= {name: Column(np.exp(values) * steps, SECOND) for name, values in times.items()}
        columns["naive"] = Column(naive * steps, SECOND)
        return Table(columns | {"model": Column(np.array([_model(it) for it in found.weights.T], dtype=object))})

    def _scores(self, table: Table) -> Iterator[str]:
        measured, fit, lower, upper, naive = (
            table.columns[name].values for name in ("measured", "fit", "lower", "upper", "naive")
        )
        ours, theirs = np.abs(fit / measured - 1), np.abs(naive / measured - 1)
        inside = int(((lower <= measured) & (measured <= upper)).sum())
        yield (
            f"largest counts of {len(table)} series, predicted from smaller ones: mean error {ours.mean():.1%}, median "
            f"{np.median(ours):.1%}; {inside} of {len(table)} in the {100 * self.level:.4g} % interval"
        )
        naive_errors = f"mean error {theirs.mean():.1%}, median {np.median(theirs):.1%}"
        yield f"the same by perfect scaling from the last run: {naive_errors}"

    def models(self) -> Table:
        """A row a candidate: mean weight at twice the largest counts, error for a doubling, number of its errors."""
        doubled = [{self.runs.scale: 2 * series.largest(self.runs.scale)} for series in self.runs.series]
        which = np.arange(len(doubled))
        weights = self._averages(which, doubled)[0].weights.mean(axis=1)
        texts = [(it.name, it.reason) for it in CANDIDATES]
        numbers = zip(weights, *self.model.candidate_errors(), strict=True)
        rows = [(name, *values, reason) for (name, reason), values in zip(texts, numbers, strict=True)]
        kinds = {"model": None, "weight": ONE, "error": ONE, "predictions": ONE, "reason": None}
        return Table.of_rows(kinds, sorted(rows, key=lambda row: -row[1]), shares=("weight", "error"))


def _place(series: Series, scale: str, point: Mapping[str, float]) -> tuple[float, float]:
    """Processes and nodes of a point in a series; processes on a node are those of the largest run if not stated."""
    ranks = series.ranks_per_node
    if series.apart:
        processes = point[PROCESSES] if PROCESSES in point else point[NODES] * ranks
        return processes, point[NODES] if NODES in point else processes / ranks
    if {NODES, PROCESSES} <= point.keys() and not np.isclose(point[PROCESSES], point[NODES] * ranks, rtol=1e-9, atol=0):
        stated = f"--predict {NODES}={point[NODES]:g},{PROCESSES}={point[PROCESSES]:g}"
        raise UsageError(f"{stated}: all runs have {ranks:g} processes on a node; state one of the two")
    return point[scale], point[scale]


def _remarks(runs: ScalingRuns, number: int, point: Mapping[str, float]) -> Iterator[str]:
    """Doubts about a prediction."""
    series = runs.series[number]
    place = _place(series, runs.scale, point)
    counts = f"the runs{f' of {series.name}' if series.name else ''}"
    words = ",".join(f"{name}={value:g}" for name, value in point.items() if name != ITERATIONS)
    if series.apart and not {NODES, PROCESSES} <= point.keys():
        yield f"{words}: {series.ranks_per_node:g} processes on a node, as in the largest run"
    ranges = zip(place, (series.processes, series.nodes), strict=True)
    far = max(max(np.log2(value / known.max()), np.log2(known.min() / value)) for value, known in ranges)
    if far > _FAR:
        yield f"warning: {words} is {far:.1f} doublings beyond {counts}; errors were measured for about one doubling"
    if far <= 0:
        yield f"{words} is within {counts}; the interval is that of one doubling beyond them"


def _model(weights: FloatArray) -> str:
    """The candidates with the largest weights."""
    order = np.argsort(-weights, kind="stable")[:_NAMED]
    return ", ".join(f"{weights[at]:.0%} {CANDIDATES[at].name}" for at in order if weights[at] >= 0.005)
