"""Measurements of a machine as changes of a platform file, each with its source, grade and standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from whatif.files.fitted_collectives import collectives_change, fit_points
from whatif.files.fitted_kernels import CalibrationModels, ProcessorChoice, fit_calibrations
from whatif.files.measured_gpus import gpu_changes, gpu_warnings
from whatif.files.measured_source import finite, source_of, value_change
from whatif.files.platform_file import PlatformChange, change_of, network_change
from whatif.fitting.fit_result import Fit
from whatif.fitting.host_bandwidths import MeasuredSockets, fit_host
from whatif.fitting.library_points import CollectivePoints
from whatif.fitting.message_parameters import fit_network
from whatif.importers.rows import row_table
from whatif.measuring.hardware import Machine
from whatif.measuring.loops import CONVOLUTION_BYTES, PRECISIONS, REUSE_IN_CACHE, REUSE_IN_MEMORY, STREAMED_BYTES
from whatif.measuring.ping_pongs import Messages
from whatif.measuring.repetition import Sample
from whatif.measuring.whole_machine import Measurements
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, ONE, Dimension, counted, format_quantity

SUSTAINED: Final = 0.75
"""Share of the peak bandwidth that a triad reaches, of rule *sustained share*."""
_LEAST: Final = 0.05
"""Share of its time that a convolution must take longer than its stream."""
_BUSY: Final = 0.5
"""Scatter of calls around their fit from which other work is suspected."""
_CPU: Final = "node.cpu"
_TRIADS: Final[Mapping[str, Dimension | None]] = {"function": None, "cores": ONE, "bandwidth": BYTE_PER_SECOND}


@dataclass(frozen=True)
class Fitted:
    """A change of a platform file, and warnings about it."""

    change: PlatformChange
    warnings: tuple[str, ...] = ()


def fitted_parts(found: Measurements) -> Iterator[Fitted]:
    """All values of the platform: described, measured and assumed."""
    yield Fitted(_description(found))
    yield from map(Fitted, _cpu_rates(found))
    yield _memory(found)
    yield _calibrated(found, {Path("kernels"): found.kernels}, f"HPL's kernels with {found.blas}", "")
    yield from map(Fitted, gpu_changes(found))
    yield Fitted(PlatformChange({}, ""), tuple(gpu_warnings(found)))
    if found.messages is not None:
        for distance in found.messages.rows:
            what = f"messages between two ranks of {found.messages.library}"
            medians = found.messages.medians(distance)
            fit = fit_network(medians, distance=distance)
            yield Fitted(network_change(fit, source_of(found, what, len(found.messages.rows[distance]))))
            yield _calibrated(found, {Path("messages"): found.messages.calibration(distance)}, what, distance)
        if found.messages.collectives:
            yield Fitted(_collectives(found, found.messages))


def _description(found: Measurements) -> PlatformChange:
    machine = found.machine
    sockets = machine.socket_count
    values = {
        "node.socket_count": str(sockets),
        "node.cpu.name": machine.processor,
        "node.cpu.core_count": str(len(machine.cores) // sockets),
        "node.cpu.numa_domain_count": str(max(machine.domain_count // sockets, 1)),
    }
    if machine.last_level:
        size = machine.last_level * machine.cache_count / sockets
        values["node.cpu.cache_size"] = format_quantity(size, BYTE, 6)
    if machine.memory_size:
        values["node.host.memory_size"] = format_quantity(machine.memory_size, BYTE, 6)
    return PlatformChange(values, f"reported by {machine.source} on {machine.host}, {found.date}", grade="datasheet")


def _cpu_rates(found: Measurements) -> Iterator[PlatformChange]:
    """Peak rates, and the bandwidth of the last-level cache, of one socket."""
    for precision in PRECISIONS:
        rates = {name: sample for name, sample in found.operations.items() if name.endswith(f", {precision}")}
        name, best = max(rates.items(), key=lambda item: item[1].median)
        yield _rate(found, f"peak_{precision}_rate", FLOP_PER_SECOND, best, name)
    if found.caches:
        last = found.caches[-1]
        yield _rate(found, "cache_bandwidth", BYTE_PER_SECOND, last, last.name)
        yield from _reuse(found, "cache_reuse_bandwidth", found.reuse[REUSE_IN_CACHE], last, found.machine.socket_count)
    yield from _reuse(found, "core_reuse_bandwidth", found.reuse[REUSE_IN_MEMORY], found.memory[0], 1)


def _reuse(found: Measurements, key: str, sample: Sample, triad: Sample, sockets: int) -> Iterator[PlatformChange]:
    """Bandwidth of loads from the first cache: what a convolution takes longer than its stream; none if it does not."""
    streamed, again = STREAMED_BYTES / triad.median, CONVOLUTION_BYTES / sample.median
    longer = again - streamed
    if longer <= _LEAST * again:
        return
    errors = (again * sample.standard_error / sample.median, streamed * triad.standard_error / triad.median)
    value = (CONVOLUTION_BYTES - STREAMED_BYTES) / longer / sockets
    error = value * float(np.hypot(*errors)) / longer
    count = len(sample.values)
    said = (f"{sample.name} less its stream", count, sample.scatter)
    yield value_change(found, f"{_CPU}.{key}", BYTE_PER_SECOND, value, error, said)


def _rate(found: Measurements, key: str, dimension: Dimension, sample: Sample, what: str) -> PlatformChange:
    sockets = found.machine.socket_count
    busy = f"{what}, {counted(len(found.machine.cores), 'core')} busy"
    said = (busy, len(sample.values), sample.scatter)
    path, error = f"{_CPU}.{key}", sample.standard_error / sockets
    return value_change(found, path, dimension, sample.median / sockets, error, said)


def _memory(found: Measurements) -> Fitted:
    """Bandwidths of a socket and of one core; the peak follows by rule *sustained share*."""
    rows = [
        {"function": "triad", "cores": float(count), "bandwidth": sample.median}
        for count, sample in zip(found.core_counts, found.memory, strict=True)
    ]
    fitted = fit_host([row_table(rows, _TRIADS, {})], _sockets(found.machine))
    count = sum(len(sample.values) for sample in found.memory)
    scatter = max(sample.scatter for sample in found.memory)
    change = change_of(
        [_with_errors(fitted.fits[0], found)], source_of(found, "triads by number of cores", count, scatter)
    )
    socket = fitted.fits[0].values[list(fitted.fits[0].dimensions).index("memory_bandwidth")]
    peak = "node.host.memory_bandwidth"
    rule = f"rule sustained share: the measured bandwidth of a socket over {SUSTAINED:g}"
    values = {**change.values, peak: format_quantity(socket / SUSTAINED, BYTE_PER_SECOND, 4)}
    return Fitted(replace(change, values=values, sources={peak: ("assumed", rule)}), fitted.warnings)


def _with_errors(fit: Fit, found: Measurements) -> Fit:
    """The fit, with the errors of the samples where it has no degree of freedom left."""
    if np.isfinite(np.diag(fit.covariance)).all():
        return fit
    sockets = found.machine.socket_count
    errors = {"core_bandwidth": found.memory[0].standard_error,
              "memory_bandwidth": found.memory[-1].standard_error / sockets}  # fmt: skip
    covariance = np.diag([errors[name] ** 2 for name in fit.dimensions])
    return replace(fit, covariance=covariance, error=finite(fit.error))


def _sockets(machine: Machine) -> MeasuredSockets:
    sockets = machine.socket_count
    cores, domains = len(machine.cores) / sockets, max(machine.domain_count // sockets, 1)
    return MeasuredSockets(float(sockets), cores, float(domains), processor=machine.processor)


def _calibrated(found: Measurements, tables: Mapping[Path, Table], what: str, distance: str) -> Fitted:
    """Costs of HPL's kernels, or of messages in pieces."""
    fit = fit_calibrations(tables, CalibrationModels(distance=distance or "inter_node"), ProcessorChoice())
    count = sum(map(len, tables.values()))
    means = (item for item in fit.fits if not item.path.endswith(".deviation") and ".modes." not in item.path)
    poor = [item for item in means if item.error > _BUSY]
    names = ", ".join(item.path.rpartition(".")[2] for item in poor)
    busy = f"{what}: calls scatter by more than {_BUSY:.0%} around {names}: was the machine busy with other work?"
    return Fitted(fit.change(source_of(found, what, count)), (busy,) if poor else ())


def _collectives(found: Measurements, messages: Messages) -> PlatformChange:
    """Tables of times of each operation."""
    operations, sizes, times = zip(*messages.collectives, strict=True)
    ranks = np.full(len(sizes), float(messages.rank_count))
    points = CollectivePoints(np.array(operations, dtype=object), np.array(sizes, float), ranks, np.array(times))
    fit = fit_points(points, None, "mpi", messages.ranks_per_node)
    what = f"collectives of {counted(messages.rank_count, 'rank')} of {messages.library}"
    return collectives_change(fit, source_of(found, what, len(messages.collectives)))
