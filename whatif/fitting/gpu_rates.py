"""A GPU's peak rates and bandwidths from measurements: mixbench, BabelStream or STREAM, gpuroofperf, in any mix.

mixbench measures rates over operational intensity, `rate(I) = min(I B, P)`. Its rows scatter below the two roofs: near
the ridge both limits act at once, and some rows stay low at any intensity (unrolling that stops, unlucky iteration
counts), while hardly any lies above. Least squares through all rows would be below the capability of the device, and
the maximum is the luckiest row. A roof is therefore the median of the upper plateau: the rows within `PLATEAU_WIDTH` of
the level that `LEVEL_COUNT` rows reach. Its standard error is that of the median of normal scatter, sqrt(π/2) s /
sqrt(n), with the plateau's standard deviation s. P is the plateau of the rates of one precision; B that of the
bandwidths of all precisions, which share one memory. A fit's `error` is over all the rows under its roof.

BabelStream gives the bandwidth of each function's shortest time. `dram_bandwidth` is the mean over copy, mul, add
and triad of the largest arrays (dot, a reduction, is left out); its standard error comes from their spread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.models.quantities import FloatArray
from whatif.schema.fields import quantity_field
from whatif.schema.gpu import GPU, RATE_RULES
from whatif.schema.gpu_parts import same_gpu
from whatif.table import Table
from whatif.units import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP_PER_BYTE,
    FLOP_PER_SECOND,
    Dimension,
    format_quantity,
    parse_quantity,
)

PATH: Final = "node.gpu"
PLATEAU_WIDTH: Final = 0.05
LEVEL_COUNT: Final = 3
PAST_RIDGE: Final = 1.25
"""Distance beyond the ridge of at least `LEVEL_COUNT` rows, so that a plateau is a roof and not a slope's end."""
TOLERANCE: Final = 0.02
"""Relative excess over a data sheet, or difference of measurements, above which it is reported."""
DIMENSIONS: Final[Mapping[str, Dimension]] = {
    parameter: field.dimension
    for parameter, info in GPU.model_fields.items()
    if (info.is_required() or parameter in RATE_RULES)
    and (field := quantity_field(info)) is not None
    and field.dimension is not None
}
"""The parameters of `node.gpu` that are measured."""

_RATES: Final = {"single": "peak_single_rate", "double": "peak_double_rate", "integer": "peak_integer_rate"}
_PROCESSOR: Final = re.compile(r"\bcpus?\b|xeon|epyc|ryzen|\bcore\b|opteron|thunderx|\bpower\d|pthread", re.IGNORECASE)
_HOST_CODES: Final = ("openmp", "tbb", "serial", "c++ threads")
"""Implementations of BabelStream that run on processors, where no device is named."""
_STREAMS: Final = ("copy", "mul", "add", "triad")
_BABELSTREAM: Final = {"function": None, "array_size": BYTE, "bandwidth": BYTE_PER_SECOND}
_MIXBENCH: Final = {
    "precision": None,
    "operational_intensity": FLOP_PER_BYTE,
    "rate": FLOP_PER_SECOND,
    "bandwidth": BYTE_PER_SECOND,
}


@dataclass(frozen=True, eq=False)
class RatePoints:
    """Measurements to draw, with what was fitted to them; arrays of shape (points,), in base units."""

    name: str
    """`mixbench double`, `BabelStream triad`."""
    variable: str
    """Quantity of `x`: `operational_intensity` in flop/B, or `array_size` in B (NaN if not stated)."""
    x: FloatArray
    measured: FloatArray
    """flop/s over an operational intensity, B/s over an array size."""
    fitted: FloatArray


@dataclass(frozen=True, eq=False)
class GpuFit:
    """Fitted rates and bandwidths of one GPU."""

    device: str
    """The name that the measurements give, or an empty text."""
    fits: tuple[Fit, ...]
    """One for each parameter of `node.gpu` that was found, in the order of `DIMENSIONS`."""
    points: tuple[RatePoints, ...]
    warnings: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """The parameters that were found, in base units."""
        return {parameter: float(fit.values[0]) for fit in self.fits for parameter in fit.dimensions}


Found = tuple[Sequence[Fit], Sequence[RatePoints], Sequence[str]]
"""Fits of one parameter each, points to draw, warnings."""


def fit_gpu(tables: Sequence[Table], datasheet: Mapping[str, float] | None = None, device: str = "") -> GpuFit:
    """Peaks and bandwidths of a GPU from tables of the importers.

    If several tools measured a parameter, BabelStream's bandwidth is used, then mixbench's values, then those of
    gpuroofperf, whose covariance is NaN as it states no spread. `warnings` report others that differ, values above
    `datasheet` (by parameter, in base units) or above the specification that mixbench prints, and measurements of
    another GPU than `device`, that of the platform (`same_gpu`). Raise `UsageError` for no table, one of something else
    or in other units, one without rows, several GPUs in one or in several, or when nothing can be found.
    """
    groups = _grouped(tables)
    measured = _device(tables)
    fits: dict[str, Fit] = {}
    points: list[RatePoints] = []
    warnings = [line for table in tables for line in table.warnings]
    warnings += _of_host(tables)
    for kind, (_, fitter) in _KINDS.items():
        found, drawn, remarks = fitter(groups[kind]) if groups[kind] else ((), (), ())
        points += drawn
        warnings += remarks
        for fit in found:
            (parameter,) = fit.dimensions
            warnings += _differs(parameter, fits.setdefault(parameter, fit), fit)
    if not fits:
        raise UsageError("\n".join(["no peak or bandwidth could be found", *warnings]))
    if measured and device and not same_gpu(measured, device):
        rest = f"what they do not measure (name, memory size, other rates) stays that of {device}"
        warnings.append(f"the measurements are of {measured}, the platform has {device}; {rest}")
    warnings += _above(fits, _printed(tables) | dict(datasheet or {}))
    in_order = tuple(fits[parameter] for parameter in DIMENSIONS if parameter in fits)
    return GpuFit(measured, in_order, tuple(points), tuple(dict.fromkeys(warnings)))


def _device(tables: Sequence[Table]) -> str:
    """The device that was measured, empty if no table names it; refuse different ones."""
    names = list(dict.fromkeys(table.notes["device"] for table in tables if table.notes.get("device")))
    if any(not same_gpu(*pair) for pair in combinations(names, 2)):
        raise UsageError(f"the measurements are of different devices: {', '.join(names)}; give those of one")
    return names[0] if names else ""


def _grouped(tables: Sequence[Table]) -> dict[str, list[Table]]:
    groups: dict[str, list[Table]] = {kind: [] for kind in _KINDS}
    for table in tables:
        groups[_kind(table)].append(table)
    if not tables:
        raise UsageError(f"no measurements of a GPU; known are those of {', '.join(_KINDS)}")
    return groups


def _kind(table: Table) -> str:
    file = table.notes.get("file", "a table")
    kind = next((kind for kind, (needed, _) in _KINDS.items() if needed.keys() <= table.columns.keys()), None)
    if kind is None:
        raise UsageError(f"{file}: not measurements of {', '.join(_KINDS)}")
    for name, dimension in _KINDS[kind][0].items():
        if table.columns[name].dimension != dimension:
            raise UsageError(f"{file}: `{name}` must be in {dimension}, not in `{table.columns[name].unit}`")
    if not len(table):
        raise UsageError(f"{file}: no rows")
    if table.notes.get("tool") == "STREAM":
        remedy = "give it to `whatif fit host`; BabelStream measures a GPU's"
        raise UsageError(f"{file}: STREAM measures the memory of a host, not of a GPU: {remedy}")
    return kind


def _of_host(tables: Iterable[Table]) -> Iterator[str]:
    """Doubts about tables of BabelStream that may be of a processor."""
    for table in tables:
        device, code = (table.notes.get(note, "") for note in ("device", "implementation"))
        if _PROCESSOR.search(device) or (not device and code.casefold() in _HOST_CODES):
            file = table.notes.get("file", "a table")
            yield f"{file}: measured with {device or code}: is this a GPU, or the memory of a host?"


def _differs(parameter: str, used: Fit, other: Fit) -> Iterator[str]:
    if abs(other.values[0] / used.values[0] - 1) > TOLERANCE:
        numbers = (format_quantity(float(fit.values[0]), DIMENSIONS[parameter]) for fit in (used, other))
        yield "{}: measurements differ; {} is used, not {}".format(parameter, *numbers)


def _printed(tables: Iterable[Table]) -> dict[str, float]:
    """Device specification as printed by mixbench."""
    prefix = "datasheet."
    notes = [item for table in tables for item in table.notes.items() if item[0].startswith(prefix)]
    return {key.removeprefix(prefix): parse_quantity(text).value for key, text in notes}


def _above(fits: Mapping[str, Fit], datasheet: Mapping[str, float]) -> Iterator[str]:
    for parameter, stated in datasheet.items():
        measured = float(fits[parameter].values[0]) if parameter in fits else 0.0
        if measured > stated * (1 + TOLERANCE):
            numbers = [format_quantity(number, DIMENSIONS[parameter]) for number in (measured, stated)]
            reason = "do the arrays fit a cache?" if parameter == "dram_bandwidth" else "was the clock above its base?"
            yield "{}: {} measured, but {} in the data sheet; {}".format(parameter, *numbers, reason)


def _babelstream(tables: Sequence[Table]) -> Found:
    functions, sizes, bandwidths = _joined(tables, _BABELSTREAM)
    streams = np.isin(functions, _STREAMS)
    functions, sizes, bandwidths = functions[streams], sizes[streams], bandwidths[streams]
    # Sizes are rounded in the text; unstated ones are taken for one size.
    large = ~(sizes < 0.99 * np.nanmax(sizes)) if np.isfinite(sizes).any() else np.ones(len(sizes), dtype=bool)
    if large.sum() < 2:
        return (), (), [f"BabelStream: fewer than two of {', '.join(_STREAMS)}, so no spread and no dram_bandwidth"]
    mean, variance = bandwidths[large].mean(), bandwidths[large].var(ddof=1) / large.sum()
    fit = _fit("dram_bandwidth", mean, variance, bandwidths[large], _range("array_size", sizes[large]))
    points = []
    for name in dict.fromkeys(functions.tolist()):
        chosen = functions == name
        fitted = np.full(int(chosen.sum()), mean)
        points.append(RatePoints(f"BabelStream {name}", "array_size", sizes[chosen], bandwidths[chosen], fitted))
    return [fit], points, [] if large.all() else ["BabelStream: only the largest arrays are used"]


def _mixbench(tables: Sequence[Table]) -> Found:
    precisions, intensities, rates, bandwidths = _joined(tables, _MIXBENCH)
    bandwidth, variance = _plateau(bandwidths)
    memory_limits = intensities * bandwidth
    peaks, warnings = _peaks(precisions, rates, memory_limits)
    fits, points = [], []
    for name, (peak, peak_variance) in peaks.items():
        chosen = precisions == name
        x, y, limit = intensities[chosen], rates[chosen], memory_limits[chosen]
        points.append(RatePoints(f"mixbench {name}", "operational_intensity", x, y, np.minimum(limit, peak)))
        if name in _RATES and peak < np.inf:
            ranges = _range("operational_intensity", x)
            fits.append(_fit(_RATES[name], peak, peak_variance, y[limit >= peak], ranges))
    roofs = np.array([peaks[name][0] for name in precisions.tolist()])
    memory_bound = memory_limits * PAST_RIDGE < roofs
    if memory_bound.sum() < LEVEL_COUNT:
        return (
            fits,
            points,
            [*warnings, f"mixbench: fewer than {LEVEL_COUNT} rows where memory is the limit: no bandwidth"],
        )
    ranges = _range("operational_intensity", intensities[memory_bound])
    return [*fits, _fit("dram_bandwidth", bandwidth, variance, bandwidths[memory_bound], ranges)], points, warnings


def _peaks(
    precisions: NDArray[Any], rates: FloatArray, memory_limits: FloatArray
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Peaks with their variances by precision, infinite where no row shows one; and warnings."""
    peaks, warnings = {}, []
    for name in dict.fromkeys(precisions.tolist()):
        chosen = precisions == name
        peaks[name] = _plateau(rates[chosen])
        if (memory_limits[chosen] > PAST_RIDGE * peaks[name][0]).sum() < LEVEL_COUNT:
            peaks[name] = (math.inf, math.nan)
            warnings.append(f"mixbench: {name}: fewer than {LEVEL_COUNT} rows where operations are the limit: no peak")
    unpacked, packed = (peaks.get(name, (math.nan,))[0] for name in ("single", "packed single"))
    if unpacked < packed < math.inf:
        warnings.append("mixbench: packed single operations are faster; peak_single_rate is that of the ordinary ones")
    return peaks, warnings


def _gpuroofperf(tables: Sequence[Table]) -> Found:
    """Rates of gpuroofperf, one GPU a table; if there are several tables, the first."""
    fits = []
    for table in tables:
        if len(table) > 1:
            names = ", ".join(table.columns["name"].values) if "name" in table.columns else f"{len(table)} rows"
            raise UsageError(f"{table.notes.get('file', 'a table')}: several GPUs ({names}); choose one")
        values = {parameter: table.columns[parameter].values for parameter in DIMENSIONS}
        fits += [_fit(parameter, value[0], math.nan, value, {}) for parameter, value in values.items() if value[0] > 0]
    return fits, (), ()


_KINDS: Final[Mapping[str, tuple[Mapping[str, Dimension | None], Any]]] = {
    "BabelStream": (_BABELSTREAM, _babelstream),
    "mixbench": (_MIXBENCH, _mixbench),
    "gpuroofperf": (DIMENSIONS, _gpuroofperf),
}
"""Kinds of table: the columns they are known by, and who fits them; the first that finds a parameter is believed."""


def _joined(tables: Sequence[Table], columns: Iterable[str]) -> list[NDArray[Any]]:
    return [np.concatenate([table.columns[name].values for table in tables]) for name in columns]


def _plateau(values: FloatArray) -> tuple[float, float]:
    """The roof over some values and its variance, NaN for a single one."""
    level = np.sort(values)[-min(LEVEL_COUNT, len(values))]
    plateau = values[np.abs(values - level) <= PLATEAU_WIDTH * level]
    variance = math.pi / 2 * plateau.var(ddof=1) / len(plateau) if len(plateau) > 1 else math.nan
    return float(np.median(plateau)), float(variance)


def _fit(
    parameter: str, value: float, variance: float, measured: FloatArray, ranges: Mapping[str, tuple[float, float]]
) -> Fit:
    residuals = (value - measured[measured > 0]) / measured[measured > 0]
    error = root_mean_square(residuals) if len(measured) > 1 else math.nan
    covariance = np.array([[variance]], dtype=np.float64)
    return Fit(PATH, {parameter: DIMENSIONS[parameter]}, np.array([value]), covariance, ranges, len(measured), error)


def _range(variable: str, values: FloatArray) -> dict[str, tuple[float, float]]:
    finite = values[np.isfinite(values)]
    return {variable: range_of(finite)} if len(finite) else {}
