"""A profile projected to another machine, operation by operation (Abdelhafez et al., "AHEAD")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable
from whatif.profiles.characterisation import CLASS, groups, known_sum, size_labels
from whatif.profiles.copy_times import APPROACHES, RATES, Machines, classes, device_rates, is_profiled_on, other_device
from whatif.profiles.operation_replay import ProfileTimeline, hidden_time, profile_timeline, total_time
from whatif.profiles.profile_data import COPY, KERNEL, PEER, Profile, Rows
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import Column, Table
from whatif.table_writers import column_lines
from whatif.units import BYTE, ONE, SECOND

_TIMES: Final = ("time", "projected_time", "peak_time", "envelope_time", "actual_time")
_SHOWN: Final = (*CLASS, "message_size", "device", "stream", "start_time", *_TIMES)
RowKind = Literal["classes", "sizes", "operations"]


@dataclass(frozen=True, slots=True)
class WeightedError:
    """Errors of projected times, as fractions, by the weights of AHEAD, Sec. VI-C.

    The error of an operation is `|A_i - P_i| / A_i` and its weight `A_i / sum A`: weighted, `|A_i - P_i| / sum A`. The
    paper calls their average over the operations WMAPE, which falls with the number of operations; `total` is their
    sum, the usual weighted mean error.
    """

    total: float
    mean: float
    deviation: float
    """Standard deviation of the weighted errors of the operations."""


def weighted_error(actual: FloatArray, projected: FloatArray) -> WeightedError:
    """The weighted errors of the operations whose times are known both ways; NaN for none or no time."""
    known = np.isfinite(actual) & np.isfinite(projected)
    whole = float(actual[known].sum())
    if not whole > 0:
        return WeightedError(np.nan, np.nan, np.nan)
    errors = np.abs(actual[known] - projected[known]) / whole
    return WeightedError(float(errors.sum()), float(errors.mean()), float(errors.std()))


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Presentable):
    """Times of the operations of a profile on another machine."""

    operations: Table
    """The profile's operations with `projected_time`, `peak_time`, `envelope_time`, and `actual_time`, NaN where not
    known. Kernels have none of the three: see `kernel_range`."""
    kernel_range: tuple[float, float]
    """Least and largest factor on the times of kernels by the two sides of the roofline; a range, no prediction."""
    timeline: ProfileTimeline
    warnings: tuple[str, ...]
    machines: tuple[str, str]
    """Names of the platforms of the latencies and of the data sheet."""
    rows: RowKind = "classes"
    """Unit of a row of `table`: a class, a size or an operation."""

    def table(self) -> Table:
        """Times by class, by size, or of single operations, as `rows` states."""
        if self.rows == "operations":
            return self.single_operations()
        return self.by_size() if self.rows == "sizes" else self.summary()

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings, sources of the parameters, the time line before and after, and the weighted mean error."""
        source, target = self.machines
        warnings = [*self.operations.warnings, *self.warnings]
        found = [*(f"warning: {line}" for line in warnings), f"latencies of {source}, data sheet of {target}"]
        low, high = self.kernel_range
        if (low, high) != (1.0, 1.0) and KERNEL in self._values("operation"):
            found.append(f"kernels take {low:.3g} to {high:.3g} times as long: a range of both rooflines")
        found += column_lines(self.totals())
        error = self.error()
        if error.total >= 0:
            found.append(f"weighted mean error of all copies and fills: {error.total:.2%}")
        return tuple(found)

    def error(self, approach: str = "projected", rows: Rows | None = None) -> WeightedError:
        """Weighted errors of copies and fills, or of some rows, where actual times are known."""
        chosen = slice(None) if rows is None else rows
        return weighted_error(self._values("actual_time")[chosen], self._values(f"{approach}_time")[chosen])

    def single_operations(self) -> Table:
        """Every copy and fill: its class, size, start and times."""
        rows = np.flatnonzero(self._values("operation") != KERNEL)
        return Table(
            {name: Column(self._values(name)[rows], self.operations.columns[name].dimension) for name in _SHOWN}
        )

    def summary(self) -> Table:
        """One row for each class of copies and fills, then one for all: sums of times, and weighted errors."""
        found = groups(self.operations, CLASS)
        rows = [(words, chosen) for words, chosen in found if words[0] != KERNEL]
        every = np.flatnonzero(self._values("operation") != KERNEL)
        return self._sums(CLASS, [*rows, (("all", "", ""), every)] if len(every) else [])

    def by_size(self) -> Table:
        """Like `summary`, by direction, memory and decade of the size of copies."""
        is_copy = self._values("operation") == COPY
        decade = Column(size_labels(self._values("message_size")))
        names = ("direction", "memory", "decade")
        table = Table({**self.operations.columns, "decade": decade})
        found = [(words, chosen[is_copy[chosen]]) for words, chosen in groups(table, names)]
        found.sort(key=lambda row: (row[0][:2], np.nanmin(self._values("message_size")[row[1]], initial=np.inf)))
        return self._sums(names, [(words, chosen) for words, chosen in found if len(chosen)])

    def totals(self) -> Table:
        """The time line as it was and with projected copies, kernels at both ends of their range: total time, time of
        kernels, of copies and fills, and how much of all of it is hidden behind other operations, in s."""
        low, high = self.kernel_range
        cases = {"measured": None, "kernels at best": low, "kernels at worst": high}
        rows = []
        for name, factor in cases.items():
            time = self.timeline.time if factor is None else self.times(factor)
            start = self.timeline.replay(time)
            kernel = self.timeline.kind == KERNEL
            sums = float(time[kernel].sum()), float(time[~kernel].sum())
            rows.append((name, total_time(start, time), *sums, hidden_time(start, time)))
        kinds = {
            "case": None,
            "total_time": SECOND,
            "kernel_time": SECOND,
            "transfer_time": SECOND,
            "overlapped_time": SECOND,
        }
        return Table.of_rows(kinds, rows)

    def times(self, kernel_factor: float) -> FloatArray:
        """Durations in s for a replay: projected copies and fills, kernels times a factor; what is not known stays."""
        measured, projected = self._values("time"), self._values("projected_time")
        kernels = np.where(self._values("operation") == KERNEL, measured * kernel_factor, measured)
        return np.where(np.isfinite(projected), projected, kernels)

    def _values(self, name: str) -> NDArray[Any]:
        return self.operations.columns[name].values

    def _sums(self, names: Sequence[str], found: Sequence[tuple[tuple[Any, ...], Rows]]) -> Table:
        rows = []
        for words, chosen in found:
            sums = [known_sum(self._values(name)[chosen]) for name in _TIMES]
            size = known_sum(self._values("message_size")[chosen])
            errors = [self.error(approach, chosen) for approach in APPROACHES]
            spread = (errors[0].mean, errors[0].deviation)
            rows.append((*words, len(chosen), size, *sums, *(error.total for error in errors), *spread))
        kinds = {
            **dict.fromkeys(names), "count": ONE, "total_size": BYTE, **dict.fromkeys(_TIMES, SECOND),
            **{f"{approach}_error": ONE for approach in APPROACHES}, "error_mean": ONE, "error_deviation": ONE,
        }  # fmt: skip
        return Table.of_rows(kinds, rows, shares=[name for name in kinds if "error" in name])


def project(profile: Profile, source: PlatformSpec, target: PlatformSpec, actual: Profile | None = None) -> Projection:
    """The operations of a profile on `target`: latencies as measured on `source`, all else from its data sheet.

    `actual` is a profile of the same application on the target: the k-th operation of a class and size in the one is
    compared with the k-th in the other. Where it is the profile itself (sizes from the target's own run, parameters
    from the source's), kernels keep their times. Raise `UsageError` for a parameter that is needed and not stated, or a
    profile without copies and fills.
    """
    operations, machines = profile.operations, Machines(source, target)
    found = classes(operations)
    if not found:
        raise UsageError("the profile holds no copies and no fills: there is nothing to project")
    columns = {f"{approach}_time": np.full(len(operations), np.nan) for approach in APPROACHES}
    for kind, rows in found.items():
        size = operations.columns["message_size"].values[rows]
        for approach in APPROACHES:
            columns[f"{approach}_time"][rows] = machines.times(kind, approach, size)
    columns["actual_time"] = _actual_times(operations, actual)
    added = {name: Column(values, SECOND) for name, values in columns.items()}
    kernel_range = (1.0, 1.0) if actual is profile else _kernel_range(profile, actual, source, target)
    table = Table({**operations.columns, **added}, operations.notes)
    warnings = (*other_device(profile, source), *_warnings(table, target, actual, kernel_range))
    return Projection(table, kernel_range, profile_timeline(operations), warnings, (source.name, target.name))


def _actual_times(operations: Table, actual: Profile | None) -> FloatArray:
    """Times of the same copies and fills on the target; NaN for kernels and what has no counterpart there."""
    times = np.full(len(operations), np.nan)
    if actual is not None and actual.operations is operations:
        return np.where(operations.columns["operation"].values == KERNEL, np.nan, operations.columns["time"].values)
    if actual is not None:
        names = (*CLASS, "message_size")
        there = dict(groups(actual.operations, names))
        for words, rows in groups(operations, names):
            others = there.get(words, rows[:0])
            count = min(len(rows), len(others))
            if words[0] != KERNEL:
                times[rows[:count]] = actual.operations.columns["time"].values[others[:count]]
    return times


def _kernel_range(
    profile: Profile, actual: Profile | None, source: PlatformSpec, target: PlatformSpec
) -> tuple[float, float]:
    """The least and the largest of the ratios of memory bandwidth and peak rates of the devices, source over target."""
    device = target.node.gpu
    if device is not None and is_profiled_on(profile, device.name):
        return 1.0, 1.0
    before, after = device_rates(profile, source), device_rates(actual, target)
    ratios = [before[name] / after[name] for name in RATES if before[name] > 0 and after[name] > 0]
    return (min(ratios), max(ratios)) if ratios else (1.0, 1.0)


def _warnings(
    table: Table, target: PlatformSpec, actual: Profile | None, kernel_range: tuple[float, float]
) -> tuple[str, ...]:
    columns = table.arrays
    priced = columns["operation"] != KERNEL
    unsized = int((priced & ~np.isfinite(columns["message_size"])).sum())
    vague = int((priced & np.isin(columns["memory"], ("managed", "unknown"))).sum())
    alone = int((priced & ~np.isfinite(columns["actual_time"])).sum())
    peers = target.node.peer_link is None and bool((columns["direction"] == PEER).any())
    same = kernel_range == (1.0, 1.0) and bool((~priced).any()) and actual is None
    remarks = {
        f"{unsized} copies or fills have no size: they keep their measured times": unsized > 0,
        f"{vague} copies or fills of managed memory or memory of unknown kind: taken as pinned": vague > 0,
        f"{alone} copies or fills have no counterpart in the target's profile": actual is not None and alone > 0,
        f"{target.name} states no link between devices: copies between them are taken over `node.host_link`": peers,
        "kernels keep their measured times: it is the same device, or the rates of one are not known": same,
    }
    return tuple(text for text, holds in remarks.items() if holds)
