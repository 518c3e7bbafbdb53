"""Job of the fit page: measured times of messages and their fit as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from whatif.errors import UsageError, WhatifError
from whatif.tui.files.file_paths import paths_of
from whatif.tui.jobs.refusal import answer_or_refusal, naming_other_readers
from whatif.tui.page_views import FitView, RunsView
from whatif.units import Dimension

if TYPE_CHECKING:
    from whatif.api.measurements import ImportedTable
    from whatif.files.fitted_platform import FittedPlatform
    from whatif.fitting.message_parameters import Model, NetworkFit
    from whatif.fitting.points import MessagePoints
    from whatif.models.quantities import FloatArray

CURVE_POINTS: Final = 160
MOST_CURVES: Final = 4
MOST_FILES: Final = 1000
"""Files of a folder whose times of change are checked."""


@dataclass(frozen=True, slots=True, eq=False)
class FitPoints:
    """Points in base units, sorted by message size: three arrays of one length."""

    size: FloatArray
    count: FloatArray
    """Pairs of processes that communicate at the same time."""
    time: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class FittedCurve:
    """Times over message sizes while `count` pairs communicate, and their standard errors."""

    count: float
    size: FloatArray
    time: FloatArray
    error: FloatArray


class FitParameter(NamedTuple):
    """A value in base units with its standard error, NaN where the points do not determine it."""

    name: str
    value: float
    error: float
    dimension: Dimension


class Protocol(NamedTuple):
    """The parameters of one protocol; `error` is the root mean square of the relative residuals."""

    name: str
    parameters: tuple[FitParameter, ...]
    point_count: int
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class DistanceFit:
    """A fit of one model to the measurements of one distance."""

    source: str
    """Tool that measured, if it is known."""
    distance: str
    model: str
    models: tuple[str, ...]
    """Models that the measurements allow."""
    recommended: str
    buffers: tuple[str, ...]
    """Kinds of buffers that were measured, the fitted one first."""
    points: FitPoints
    fitted: FloatArray
    """Fitted times of the points."""
    curves: tuple[FittedCurve, ...]
    protocols: tuple[Protocol, ...]
    limits: tuple[float, float]
    """Short and eager limit."""
    stops: FloatArray
    """Sizes that a limit can be moved to, ascending."""
    found_limits: tuple[float, float]
    """Limits that were found in the measurements."""
    error: float
    held_out: Mapping[str, float]
    """Mean relative error at points that were left out, by model, with the limits that were found."""
    warnings: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    """Fitted values by parameter of the platform."""


@answer_or_refusal
def fit_of_view(view: FitView) -> DistanceFit:
    """Fit of a view, or the reason why it is not possible."""
    files = files_of(view)
    found = _fit(files, view.buffers, view.distance)
    return _distance_fit(view, _measurements(files), found.detail, _with_limits(found, view))


def points_of_view(view: FitView) -> FitPoints | None:
    """Points of a view with the fewest pairs; None if it has no measurements."""
    try:
        return _points(_fit(files_of(view), view.buffers, view.distance).detail.points) if view.files else None
    except WhatifError:
        return None


def write_fit(view: FitView, path: Path, extends: str, folders: Sequence[Path]) -> None:
    """Write a platform that extends another one with the fitted values; raise `WhatifError`."""
    found = _with_limits(_fit(files_of(view), view.buffers, view.distance), view)
    found.write(path, extends, platform_dirs=folders)


def limits_of(view: FitView, found: DistanceFit) -> tuple[float, float]:
    """Stated limits of a view, else those of the fit."""
    return found.found_limits if view.limits is None else view.limits


def moved_limits(view: FitView, found: DistanceFit, chosen: int, steps: int) -> tuple[float, float] | None:
    """Limits with one moved to another measured size; unchanged if it cannot move."""
    limits, stops = list(limits_of(view, found)), found.stops
    at = int(np.searchsorted(stops, limits[chosen], side="right" if steps > 0 else "left"))
    at = min(max(at if steps > 0 else at - 1, 0), len(stops) - 1)
    limits[chosen] = float(stops[at])
    if limits[0] > limits[1]:
        return view.limits
    return None if tuple(limits) == found.found_limits else (limits[0], limits[1])


class StampedFiles(NamedTuple):
    """Inputs with the times of change of their files: a changed file is read again."""

    names: tuple[str, ...]
    columns: str
    rows: str
    stamps: tuple[tuple[str, int, int], ...]


def files_of(view: FitView | RunsView) -> StampedFiles:
    """Inputs of a view, with the times of change and sizes of their files, also of those in folders."""
    stamps = (stamp for path in paths_of(view.files) for stamp in _stamps(path))
    return StampedFiles(view.files, view.columns, view.rows, tuple(stamps))


def _stamps(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        places = sorted(path.iterdir())[:MOST_FILES] if path.is_dir() else [path]
        for place in places:
            status = place.stat()
            yield str(place), status.st_mtime_ns, status.st_size
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=4)
def _measurements(files: StampedFiles) -> ImportedTable:
    from whatif.api.measurements import import_network  # noqa: PLC0415 - not for the explorer itself

    paths = paths_of(files.names)
    with naming_other_readers(paths, "network"):
        return import_network(paths, columns=files.columns, where=files.rows)


@lru_cache(maxsize=16)
def _fit(files: StampedFiles, buffers: str, distance: str) -> FittedPlatform[NetworkFit]:
    from whatif.api.fits import fit_network  # noqa: PLC0415 - not for the explorer itself

    times = _measurements(files)
    return fit_network(times, distance=distance, buffers=next(iter(_kinds(times, buffers)), None))


def _with_limits(found: FittedPlatform[NetworkFit], view: FitView) -> FittedPlatform[NetworkFit]:
    from whatif.api.fits import with_limits  # noqa: PLC0415 - not for the explorer itself

    return found if view.limits is None else with_limits(found, view.limits)


def _kinds(times: ImportedTable, chosen: str) -> list[str]:
    """Kinds of buffers: the chosen one, then those in host memory, then the others."""
    column = times.values.columns.get("buffers")
    kinds = set() if column is None else {str(kind) for kind in column.values}
    return sorted(kinds, key=lambda kind: (kind != chosen, kind != "host", kind))


def _distance_fit(
    view: FitView, times: ImportedTable, found: NetworkFit, shown: FittedPlatform[NetworkFit]
) -> DistanceFit:
    # To leave points out takes a hundred times longer than to fit with other limits.
    held_out, recommended, fit = found.held_out_errors, found.recommended, shown.detail
    model = next((name for name in fit.models if name == view.model), recommended)
    points, notes = fit.points_of(model), times.values.notes
    return DistanceFit(
        source=" ".join(notes[key] for key in ("tool", "version") if key in notes),
        distance=fit.distance,
        model=model,
        models=fit.models,
        recommended=recommended,
        buffers=tuple(_kinds(times, view.buffers)),
        points=_points(points),
        fitted=points.time * (1 + fit.residuals(model)),
        curves=tuple(_curves(fit, model)),
        protocols=tuple(_protocols(fit, model)),
        limits=(fit.short_limit, fit.eager_limit),
        stops=np.unique(np.append(0.0, fit.points.message_size)),
        found_limits=(found.short_limit, found.eager_limit),
        error=fit.error(model),
        held_out={str(name): error for name, error in held_out.items()},
        warnings=(*times.warnings, *fit.warnings),
        texts=tuple((f"platform.{path}", text) for path, text in shown.change("").values.items()),
    )


def _points(points: MessagePoints) -> FitPoints:
    return FitPoints(points.message_size, points.process_count, points.time)


def _curves(fit: NetworkFit, model: Model) -> Iterator[FittedCurve]:
    """A curve for each pair count, a few of many."""
    points = fit.points_of(model)
    counts = points.counts
    size = _sizes(fit)
    for index in np.unique(np.linspace(0, len(counts) - 1, min(len(counts), MOST_CURVES)).astype(int)):
        count = float(counts[index])
        yield FittedCurve(count, size, fit.curve(model, size, count), fit.band(model, size, count))


def _sizes(fit: NetworkFit) -> FloatArray:
    """Whole sizes over the measured ones, with both sides of every limit."""
    measured_sizes = fit.points.message_size
    low, high = max(float(measured_sizes.min()), 1.0), max(float(measured_sizes.max()), 1.0)
    last = np.floor([fit.short_limit, fit.eager_limit])
    sizes = np.unique(np.concatenate([np.round(np.geomspace(low, high, CURVE_POINTS)), last, last + 1]))
    return np.asarray(sizes[(sizes >= low) & (sizes <= high)])


def _protocols(fit: NetworkFit, model: str) -> Iterator[Protocol]:
    for part in fit.fits:
        place, _, name = part.path.rpartition(".")
        if place.endswith(f".{model}"):
            known = zip(part.dimensions.items(), part.values, part.standard_errors, strict=True)
            parameters = (FitParameter(key, float(value), float(error), unit) for (key, unit), value, error in known)
            yield Protocol(name, tuple(parameters), part.point_count, part.error)
