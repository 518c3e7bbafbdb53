"""Memory bandwidths of a socket and of one core, from triads by number of active cores.

Active cores have equal work, so that the fullest NUMA domain decides: n cores reach n times the share of one core in it
(`models.sockets.active_bandwidth`). They are spread evenly over all domains, or fill one socket or one domain after
another (`CoreBinding`). Two or more counts of cores give both bandwidths, by least squares of the relative residuals.
One count gives the mean of its runs: of one core where it is 1, else of the sockets, if all their cores were active.
Triads of some of the cores that grow in proportion to them give the bandwidth of one core alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.fitting.linear import positive_values
from whatif.models.quantities import FloatArray
from whatif.models.sockets import active_bandwidth
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import Table
from whatif.units import BYTE_PER_SECOND, counted, format_quantity
from whatif.vocabulary import CoreBinding

PATH: Final = "node.cpu"
TRIADS: Final = ("triad", "stream")
"""Beginnings of the names of the functions that are used; `stream` is what likwid-bench calls a triad."""
_SEEN: Final = 1e-2
"""Least slope of a residual by the logarithm of a bandwidth that the triads show."""


@dataclass(frozen=True)
class MeasuredSockets:
    """Sockets that were measured."""

    socket_count: float
    core_count: float
    """Cores per socket."""
    domain_count: float = 1.0
    """NUMA domains per socket."""
    peak_bandwidth: float = math.nan
    """Peak memory bandwidth of one socket by the data sheet, in B/s; NaN where it is not known."""
    binding: CoreBinding = "spread"
    """spread: active cores are divided evenly among all domains; sockets: they fill one socket after another, spread
    over its domains; compact: they fill one domain after another."""
    processor: str = ""
    """Name of the processor on the platform."""

    @property
    def most_cores(self) -> float:
        """Cores of all sockets."""
        return self.socket_count * self.core_count

    @property
    def domain_cores(self) -> float:
        """Cores of one NUMA domain."""
        return self.core_count / self.domain_count

    def active(self, cores: FloatArray) -> FloatArray:
        """Active cores of the fullest NUMA domain."""
        sharing = {"spread": self.socket_count * self.domain_count, "sockets": self.domain_count, "compact": 1.0}
        return np.minimum(np.ceil(cores / sharing[self.binding]), self.domain_cores)


def measured_sockets(platform: PlatformSpec | None, count: int | None, binding: CoreBinding) -> MeasuredSockets:
    """Sockets of a platform, `count` of them if it is stated. Raise `UsageError` if it does not describe them."""
    cpu = None if platform is None else platform.node.cpu
    if platform is None or cpu is None:
        remedy = "name a platform with `[node.cpu]` by --platform"
        raise UsageError(f"the processor that was measured is not known; {remedy}")
    sockets = platform.node.socket_count if count is None else float(count)
    cores, domains, stated = cpu.core_count, cpu.numa_domain_count, platform.node.host.memory_bandwidth
    if not (isinstance(sockets, float) and isinstance(cores, float) and isinstance(domains, float)):
        raise UsageError(f"{platform.name}: the counts of sockets, cores and NUMA domains must be numbers for a fit")
    return MeasuredSockets(
        sockets, cores, domains, stated if isinstance(stated, float) else math.nan, binding, cpu.name
    )


@dataclass(frozen=True, eq=False)
class HostFit:
    """Fitted bandwidths; the points are arrays of shape (points,), in base units."""

    fits: tuple[Fit, ...]
    cores: FloatArray
    """Active cores of all sockets."""
    measured: FloatArray
    fitted: FloatArray
    warnings: tuple[str, ...]


def fit_host(tables: Sequence[Table], sockets: MeasuredSockets) -> HostFit:
    """Sustained bandwidth of a socket and of one core, from the triads of tables of `importers.host_benchmarks`.

    Raise `UsageError` without a triad, for more active cores than the sockets have, and for one count of cores that is
    neither 1 nor all.
    """
    cores, measured = _triads(tables)
    most = sockets.most_cores
    if cores.max() > most:
        have = f"{counted(int(sockets.socket_count), 'socket')} of {sockets.core_count:.0f} cores"
        raise UsageError(f"{cores.max():.0f} active cores, but {have}; state --sockets, or another --platform")
    if len(np.unique(cores)) == 1:
        name, values = _single(float(cores[0]), measured, sockets)
        names, fitted = [name], np.full(len(cores), measured.mean())
        spread = np.array([[values.var(ddof=1) / len(values) if len(values) > 1 else math.nan]])
        found = np.array([values.mean()])
    else:
        names = ["memory_bandwidth", "core_bandwidth"]
        found, spread = _both(cores, measured, sockets)
        kept = slice(0 if np.isfinite(found[0]) else 1, None)
        fitted = node_bandwidth(cores, found[1], np.nan_to_num(found[0], nan=np.inf), sockets)
        names, found, spread = names[kept], found[kept], spread[kept, kept]
    error = root_mean_square(fitted / measured - 1) if len(cores) > 1 else math.nan
    ranges = {"core_count": range_of(cores)}
    fit = Fit(PATH, dict.fromkeys(names, BYTE_PER_SECOND), found, spread, ranges, len(cores), error)
    files = [line for table in tables for line in table.warnings]
    return HostFit((fit,), cores, measured, fitted, (*files, *_doubts(cores, measured, sockets, names)))


def node_bandwidth(
    cores: FloatArray, core_bandwidth: float, memory_bandwidth: float, sockets: MeasuredSockets
) -> FloatArray:
    """Bandwidth of active cores of all sockets; `memory_bandwidth` is that of one socket with all its cores."""
    active, memory = sockets.active(cores), memory_bandwidth / sockets.domain_count
    limits = (np.asarray(value) for value in (sockets.domain_cores, core_bandwidth, memory))
    return np.asarray(cores * active_bandwidth(active, *limits) / active)


def _triads(tables: Sequence[Table]) -> tuple[FloatArray, FloatArray]:
    """Cores and bandwidths of all triads, in the order of the cores."""
    if not tables:
        raise UsageError("no measurements of a host; known are those of STREAM, likwid-bench, and CSV")
    names, cores, bandwidths = (
        np.concatenate([table.columns[name].values for table in tables]) for name in ("function", "cores", "bandwidth")
    )
    used = np.array([not name or str(name).lower().startswith(TRIADS) for name in names])
    if not used.any():
        raise UsageError(f"no triad was measured, only {', '.join(dict.fromkeys(map(str, names)))}")
    order = np.argsort(cores[used], kind="stable")
    return cores[used][order], bandwidths[used][order]


def _doubts(cores: FloatArray, measured: FloatArray, sockets: MeasuredSockets, names: Sequence[str]) -> Iterator[str]:
    """Bandwidths above the data sheet, and sockets that were not full."""
    peak = sockets.socket_count * sockets.peak_bandwidth
    for count, bandwidth in zip(cores[measured > peak], measured[measured > peak], strict=True):
        found, stated = (format_quantity(float(value), BYTE_PER_SECOND, 3) for value in (bandwidth, peak))
        yield f"{counted(int(count), 'core')}: {found} measured, but a peak of {stated}; do the arrays fit a cache?"
    if cores.max() > 1 and "memory_bandwidth" not in names:
        yield "the triads do not reach the limit of a socket; memory_bandwidth is not determined"
    elif cores.max() > 1 and (reached := float(sockets.active(cores).max())) < sockets.domain_cores:
        share = f"{reached:.0f} of the {sockets.domain_cores:.0f} cores of a NUMA domain"
        yield f"at most {share} were active: the bandwidth of a socket is extrapolated"


def _single(cores: float, measured: FloatArray, sockets: MeasuredSockets) -> tuple[str, FloatArray]:
    if cores == sockets.most_cores:
        return "memory_bandwidth", measured / sockets.socket_count
    if cores == 1:
        return "core_bandwidth", measured
    remedy = f"measure with 1 core and with all {sockets.most_cores:.0f}"
    raise UsageError(f"all runs have {cores:.0f} active cores: {remedy}")


def _both(cores: FloatArray, measured: FloatArray, sockets: MeasuredSockets) -> tuple[FloatArray, FloatArray]:
    """Bandwidths of a socket and of one core, and their covariance; NaN without degrees of freedom.

    A socket whose limit no triad shows has what all its cores draw, and NaN if they were not all active.
    """

    def residuals(values: FloatArray) -> FloatArray:
        return node_bandwidth(cores, values[1], values[0], sockets) / measured - 1.0

    start = np.array([measured[-1] / sockets.socket_count, measured[0] / cores[0]])
    values, spread, free = positive_values(residuals, start, _SEEN)
    if not free[0]:
        full = sockets.active(cores).max() >= sockets.domain_cores
        values[0] = min(values[0], sockets.core_count * values[1]) if full else np.nan
    return values, spread
