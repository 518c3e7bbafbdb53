"""Copies between host and device to the parameters of a link: latencies, and how pageable memory is staged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.copies import Copies, copy_sets, doubts
from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.fitting.linear import bounded_line, covariance, moments, positive_values
from whatif.models.postal import postal
from whatif.models.quantities import FloatArray
from whatif.models.transfer import pageable_time, pinned_time, staged_read_time, staged_write_time, staging_bandwidth
from whatif.profiles.copy_times import link_bandwidth, link_effective_bandwidth, link_number
from whatif.schema.platform_spec import NVLink, PCIe, Staging
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, format_quantity

Curve = Callable[[FloatArray], FloatArray]

_UNCLEAR: Final = 0.1
_VISIBLE: Final = 0.95
_FOREIGN: Final = 0.2
"""Weighted error of pinned copies above which the link's data sheet is doubted."""
_STAGING: Final = "staging."


@dataclass(frozen=True, eq=False)
class TransferFit:
    """Parameters of a link, and how well the formulas that use them follow the measurements."""

    fits: tuple[Fit, ...]
    """One for each set of copies with its latency, then one for each set that was staged with its bandwidths.

    Each has the points and the error of its own set. A latency and the bandwidths of staging come from one fit, but
    are in two tables of a platform: the covariance between the two is dropped.
    """
    points: Table
    """Fitted copies: `direction`, `memory`, `message_size` and typical `time`."""
    comparison: Table
    """`direction`, `memory`, `model`, `weighted_error` (sum of absolute errors over sum of times), `largest_error`."""
    curves: Mapping[tuple[str, str, str], Curve]
    """Functions of sizes to times, by direction, memory and model."""
    warnings: tuple[str, ...]

    def curve(self, direction: str, memory: str, model: str, message_size: FloatArray) -> FloatArray:
        """Times of a model for sizes in bytes; `model` is one of those in `comparison`."""
        return self.curves[direction, memory, model](np.asarray(message_size, dtype=float))


@dataclass(frozen=True, eq=False)
class _Found:
    """Fit of one set of copies: values of parameters below the link, and curves, the first of them with the
    values."""

    copies: Copies
    names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    curves: Mapping[str, Curve]
    warnings: tuple[str, ...] = ()

    @property
    def residuals(self) -> FloatArray:
        fitted = next(iter(self.curves.values()))(self.copies.message_size)
        return fitted / self.copies.time - 1.0


def fit_transfer(
    table: Table,
    link: PCIe | NVLink,
    *,
    machine: str | None = None,
    memory_bandwidth: float | None = None,
) -> TransferFit:
    """Latencies of a link, and the bandwidths of its staging, by least squares of the relative residuals.

    `table` has the columns `direction`, `memory`, `message_size`, `time` and perhaps `repetition_count`, as the
    importers of copies give them; of a size that occurs more than once the median counts. `machine` chooses rows
    if there is a column `machine`. The link's own data says the effective bandwidth (Abdelhafez et al., Eq. 2 to
    8), its `staging` the chunk and cache sizes; `memory_bandwidth`, the host's peak, is only for Eq. 9. The models:
    `pinned` (Eq. 10), `ahead` (Eq. 9), `staged`, and `line`, latency + n / bandwidth without any data sheet. Raise
    `UsageError` if there are no such copies, fewer than three sizes, or times that do not grow.
    """
    found = [_fit(copies, link, memory_bandwidth) for copies in copy_sets(table, machine)]
    limit = float(link_bandwidth(link))
    return TransferFit(
        tuple(fit for prefix in ("", _STAGING) for each in found for fit in _fits(prefix, each)),
        _points([each.copies for each in found]),
        _comparison(found),
        {
            (each.copies.direction, each.copies.memory, name): time
            for each in found
            for name, time in each.curves.items()
        },
        tuple(line for each in found for line in (*doubts(each.copies, limit), *each.warnings)),
    )


def weighted_error(fitted: FloatArray, measured: FloatArray) -> float:
    """Sum of the absolute errors over the sum of the measured times (Abdelhafez et al., Sec. VI-C)."""
    return float(np.abs(fitted - measured).sum() / measured.sum())


def _fit(copies: Copies, link: PCIe | NVLink, memory_bandwidth: float | None) -> _Found:
    line = {"line": _line(copies)}
    bandwidth = partial(link_effective_bandwidth, link, copies.way)
    if copies.memory == "pageable":
        return _fit_pageable(copies, link, bandwidth, line, memory_bandwidth)
    latency, variance = _latency(copies, bandwidth(copies.message_size), np.inf)
    curves: dict[str, Curve] = {"pinned": partial(_pinned, bandwidth, latency), **line}
    return _Found(
        copies, (f"pinned_{copies.way}_latency",), np.array([latency]), variance, curves, _foreign(copies, curves)
    )


def _foreign(copies: Copies, curves: Mapping[str, Curve]) -> tuple[str, ...]:
    """A warning where pinned copies, which nothing but the link limits, do not follow its data sheet."""
    error = weighted_error(curves["pinned"](copies.message_size), copies.time)
    if error <= _FOREIGN:
        return ()
    return (f"{copies.words}: the data sheet of the link does not fit ({error:.0%} off): another machine?",)


def _line(copies: Copies) -> Curve:
    sums = moments(copies.message_size, copies.time, copies.time**-2.0).sum(axis=0)
    latency, byte_time, _ = (float(value) for value in bounded_line(sums))
    if byte_time * copies.message_size[-1] < _UNCLEAR * copies.time[0]:
        said = "the times do not grow with the size: all sizes too small, or columns or units mixed up?"
        raise UsageError(f"{copies.words}: {said}")
    return partial(postal, latency=np.asarray(latency), bandwidth=np.asarray(1.0 / byte_time))


def _latency(copies: Copies, bandwidth: FloatArray, largest: float) -> tuple[float, FloatArray]:
    """The latency of `pinned_time` over sizes up to the largest, at least 0, and its variance, of shape (1, 1)."""
    used = copies.message_size <= largest
    weights = copies.time[used] ** -2.0
    rest = copies.time[used] - (copies.message_size / bandwidth)[used]
    latency = max(float(weights @ rest / weights.sum()), 0.0)
    return latency, covariance(np.ones((len(rest), 1)), weights, latency - rest, np.array([latency > 0]))


def _pinned(bandwidth: Curve, latency: float, size: FloatArray) -> FloatArray:
    return pinned_time(size, np.asarray(latency), bandwidth(size))


def _ahead(bandwidth: Curve, latency: float, memory_bandwidth: float, size: FloatArray) -> FloatArray:
    return pageable_time(size, np.asarray(latency), bandwidth(size), np.asarray(memory_bandwidth))


def _fit_pageable(
    copies: Copies, link: PCIe | NVLink, bandwidth: Curve, line: Mapping[str, Curve], memory_bandwidth: float | None
) -> _Found:
    path, names = _staged_path(copies, link)
    if names:
        values, variance = path.fit(copies, 1 + len(names))
        curves: dict[str, Curve] = {"staged": partial(path.time, values)}
        warnings = path.doubts(copies, values)
    else:
        window = format_quantity(path.window, BYTE)
        said = f"there must be two sizes beyond {window}, and they must be slower than the link"
        latency, variance = _latency(copies, bandwidth(copies.message_size), path.window)
        values, curves = np.array([latency]), {}
        warnings = (f"{copies.words}: the bandwidth of staging cannot be determined: {said}",)
    curves["pinned"] = partial(_pinned, bandwidth, float(values[0]))
    if memory_bandwidth is not None:
        curves["ahead"] = partial(_ahead, bandwidth, float(values[0]), memory_bandwidth)
    return _Found(copies, (f"pageable_{copies.way}_latency", *names), values, variance, {**curves, **line}, warnings)


def _staged_path(copies: Copies, link: PCIe | NVLink) -> tuple[_StagedPath, tuple[str, ...]]:
    """The staged path of a link, and the bandwidths that the sizes determine: beyond the buffers, and in the cache."""
    parameters = ("chunk_size", "cache_size")
    stated = link.staging or Staging.model_construct(
        **{parameter: Staging.model_fields[parameter].default for parameter in parameters}
    )
    path = _StagedPath(link, copies.way, *(link_number(stated, parameter) for parameter in parameters))
    size = copies.message_size
    large = size > path.window
    link_rate = link_effective_bandwidth(link, copies.way, size)[-1]
    if large.sum() < 2 or size[-1] / copies.time[-1] > _VISIBLE * link_rate:
        return path, ()
    own = f"staging.{copies.way}_bandwidth"
    if (large & (size <= path.cache_size)).any() and (size > path.cache_size).any():
        return path, (own, f"staging.cached_{copies.way}_bandwidth")
    return replace(path, cache_size=np.zeros(())), (own,)


@dataclass(frozen=True, eq=False)
class _StagedPath:
    """Pageable copies through the driver's buffers, in one direction."""

    link: PCIe | NVLink
    way: str
    chunk_size: FloatArray
    cache_size: FloatArray

    @property
    def window(self) -> float:
        """Bytes that go without waiting: one chunk to the device, both buffers to the host."""
        return float(self.chunk_size) * (1 if self.way == "read" else 2)

    def time(self, values: FloatArray, size: FloatArray) -> FloatArray:
        """Times for values of latency, bandwidth and, where it is fitted, bandwidth in the cache."""
        rate = staging_bandwidth(size, self.cache_size, values[-1], values[1])
        function = staged_read_time if self.way == "read" else staged_write_time
        bandwidth = link_effective_bandwidth(self.link, self.way, size)
        return function(size, values[0], bandwidth, rate, self.chunk_size)

    def fit(self, copies: Copies, count: int) -> tuple[FloatArray, FloatArray]:
        """Positive values by least squares of the relative residuals, and their covariance."""
        size, rate = copies.message_size, copies.message_size / copies.time
        start = np.array([copies.time[0], rate[-1], rate[np.argmax(size > self.window)]])[:count]
        return positive_values(lambda values: self.time(values, size) / copies.time - 1.0, start, 1e-6)[:2]

    def doubts(self, copies: Copies, values: FloatArray) -> tuple[str, ...]:
        """Warning about staged copies far from the curve."""
        large = copies.message_size > self.window
        residuals = self.time(values, copies.message_size[large]) / copies.time[large] - 1.0
        error = root_mean_square(residuals)
        if error <= _UNCLEAR:
            return ()
        hint = "" if self.cache_size else "; a cache may explain it: state `staging.cache_size` of the link"
        return (f"{copies.words}: RMS error of the staged copies {error:.0%}{hint}",)


def _fits(prefix: str, found: _Found) -> Iterator[Fit]:
    """The fit of a set of copies as far as its parameters are in one table of the platform."""
    places = [place for place, name in enumerate(found.names) if name.startswith(_STAGING) == bool(prefix)]
    if not places:
        return
    names = [found.names[place].removeprefix(prefix) for place in places]
    size = found.copies.message_size
    yield Fit(
        f"node.host_link.{prefix}".removesuffix("."),
        {name: SECOND if name.endswith("latency") else BYTE_PER_SECOND for name in names},
        found.values[places],
        found.covariance[np.ix_(places, places)],
        {"message_size": range_of(size)},
        len(size),
        root_mean_square(found.residuals),
    )


def _points(sets: Sequence[Copies]) -> Table:
    rows = [
        (copies.direction, copies.memory, size, time)
        for copies in sets
        for size, time in zip(copies.message_size, copies.time, strict=True)
    ]
    return Table.of_rows({"direction": None, "memory": None, "message_size": BYTE, "time": SECOND}, rows)


def _comparison(found: Sequence[_Found]) -> Table:
    rows = []
    for each in found:
        time = each.copies.time
        for name, curve in each.curves.items():
            fitted = curve(each.copies.message_size)
            largest = float(np.abs(fitted / time - 1.0).max())
            rows.append((each.copies.direction, each.copies.memory, name, weighted_error(fitted, time), largest))
    kinds = {"direction": None, "memory": None, "model": None, "weighted_error": ONE, "largest_error": ONE}
    return Table.of_rows(kinds, rows, shares=("weighted_error", "largest_error"))
