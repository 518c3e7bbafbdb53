"""Measured collectives as parameters of a platform: messages of a library of GPUs, or tables of times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from whatif.errors import UsageError
from whatif.files.fitted_platform import FittedPlatform
from whatif.files.platform_file import PlatformChange, change_of, source_text
from whatif.fitting.collective_steps import (
    PATH,
    LibraryFit,
    StepsFit,
    TreeFit,
    fit_library,
    held_out_errors,
    relative_errors,
)
from whatif.fitting.collective_tables import (
    CollectiveTable,
    collective_tables,
    error_table,
    mean_and_bias,
    table_of_tables,
)
from whatif.fitting.fit_result import Fit
from whatif.fitting.library_points import ALGORITHMS, CollectivePoints, LibrarySheet
from whatif.models.quantities import FloatArray
from whatif.schema.platform_spec import Grade
from whatif.table import Column, Table, share_column, text_column, warned
from whatif.table_writers import column_lines
from whatif.units import BYTE, ONE, SECOND, counted, format_quantity

_DIGITS = 6
_LARGEST_SHARE = 1.5
"""Share of the bandwidth of the data sheet, above which the sheet is that of another machine."""
_TUNER = "constant of NCCL's tuner"
_UNSEEN = {"bandwidth_share": "the bandwidth of the data sheet", "bandwidth": "start of the fit"}
"""Origin of parameters without points that show them, where it is not the tuner."""


@dataclass(frozen=True, eq=False)
class CollectivesFit:
    """Fitted parameters of a library of GPUs, tables of the other operations, and how good they are."""

    library: LibraryFit | None
    tables: tuple[CollectiveTable, ...]
    points: CollectivePoints
    """Points of `library`."""
    fitted_errors: FloatArray
    """(fitted - measured) / measured of the points."""
    held_out_errors: FloatArray
    """The same, of a fit without the largest number of ranks of each operation, at these; NaN at the others."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedCollectives(FittedPlatform[CollectivesFit]):
    """Fitted collectives."""

    def table(self, *, in_words: bool = False) -> Table:
        """One row per parameter; or one row per table of times where nothing is fitted."""
        return super().table(in_words=in_words) if self.fits else table_of_tables(list(self.detail.tables))


def fit_points(
    points: CollectivePoints, sheet: LibrarySheet | None, library: str, ranks_per_node: int | None
) -> CollectivesFit:
    """Parameters of the operations that have a form, if there is a data sheet, and tables of the others."""
    formed = np.isin(points.operations, list(ALGORITHMS)) & (sheet is not None)
    # An empty buffer, or one rank, sends nothing.
    own = points.at(formed & (points.ranks > 1) & (points.sizes > 0))
    tables = tuple(collective_tables(points.at(~formed), library, ranks_per_node))
    if not len(own) and not tables:
        raise UsageError("no times of buffers that are larger than 0 B, on more than one rank")
    if sheet is None or not len(own):
        return CollectivesFit(None, tables, own, np.empty(0), np.empty(0))
    fit = fit_library(own, sheet)
    return CollectivesFit(fit, tables, own, relative_errors(fit, own), held_out_errors(own, sheet))


def fitted_collectives(
    fit: CollectivesFit, files: Sequence[Path], measured: Table, warnings: Sequence[str]
) -> FittedCollectives:
    """The fit as a table of parameters, with its points and notes."""
    fits = () if fit.library is None else tuple(fit.library.fits())
    points = _point_table(fit) if fits else table_of_tables(list(fit.tables))
    notes = warned([*warnings, *_without_freedom(fit.library), *_impossible(fits)])
    return FittedCollectives(
        fit,
        fits,
        (points,),
        source_text(files, [measured]),
        partial(collectives_change, fit),
        notes=(*notes, *_quality(fit)),
    )


def _without_freedom(library: LibraryFit | None) -> Iterator[str]:
    """Warnings about as many parameters as points, or more."""
    parts: list[StepsFit | TreeFit] = [] if library is None else [*library.steps.values(), *library.trees.values()]
    for part in parts:
        points, count = len(part.points), len(part.solution.values)
        if points <= count:
            found = f"{counted(points, 'point')} for {count} parameters"
            yield f"{part.path}: {found} leave no freedom to estimate their errors"


def _impossible(fits: Sequence[Fit]) -> Iterator[str]:
    """Warnings about shares of a bandwidth that no network reaches, not even with the error of a fit."""
    for fit in fits:
        share = dict(zip(fit.dimensions, fit.values.tolist(), strict=True)).get("bandwidth_share", 0.0)
        if share > _LARGEST_SHARE:
            found = f"{fit.path}.bandwidth_share: measured bandwidths are {share:.3g} times those of the data sheet"
            yield f"{found}; is it the platform, and the ranks of a node, of the measurements?"


def collectives_change(fit: CollectivesFit, source: str) -> PlatformChange:
    """Limits, starts, gaps and shares, and tables of times."""
    limits = {} if fit.library is None else fit.library.limits()
    texts = {path: format_quantity(limit, BYTE, _DIGITS) for path, limit in limits.items()}
    fits = () if fit.library is None else tuple(fit.library.fits())
    change = change_of(fits, source, texts)
    unseen: dict[str, tuple[Grade, str]] = {
        f"{item.path}.{name}": ("assumed", f"{_UNSEEN.get(name, _TUNER)}, which no point contradicts; {source}")
        for item in fits
        for name in item.undetermined
    }
    tables: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for table in fit.tables:
        tables |= _table_values(table)
        lists |= _table_lists(table)
    return replace(change, values={**change.values, **tables}, sources={**change.sources, **unseen}, lists=lists)


def _table_values(table: CollectiveTable) -> dict[str, str]:
    values = {"operation": table.operation, "library": table.library, "rank_count": str(table.rank_count)}
    if table.ranks_per_node is not None:
        values["ranks_per_node"] = str(table.ranks_per_node)
    return {f"{PATH}.measured.{table.name}.{name}": value for name, value in values.items()}


def _table_lists(table: CollectiveTable) -> dict[str, list[str]]:
    path = f"{PATH}.measured.{table.name}"
    sizes, times = (
        [format_quantity(float(value), unit, _DIGITS) for value in values]
        for values, unit in ((table.sizes, BYTE), (table.times, SECOND))
    )
    return {f"{path}.sizes": sizes, f"{path}.times": times}


def _quality(fit: CollectivesFit) -> list[str]:
    """Errors by operation and number of ranks, in words and as a table."""
    if fit.library is None:
        return ['times are kept as they are: `algorithm = "measured"` interpolates them in size']
    held = np.isfinite(fit.held_out_errors)
    errors = {"fitted": fit.fitted_errors} | ({"held out": fit.held_out_errors} if held.any() else {})
    lines = column_lines(error_table(fit.points, errors))
    if not held.any():
        return [*lines, "one number of ranks of each operation: the error at other numbers is unknown"]
    error, bias = mean_and_bias(fit.held_out_errors)
    predicted = f"mean absolute error {100 * error:.1f} %, bias {100 * bias:+.1f} %"
    return [*lines, f"held out, the largest number of ranks of each operation: {predicted}, of {held.sum()} points"]


def _point_table(fit: CollectivesFit) -> Table:
    points, numbers = fit.points, {"fitted_residual": fit.fitted_errors, "held_out_residual": fit.held_out_errors}
    columns = {
        "operation": text_column(points.operations),
        "message_size": Column(points.sizes, BYTE),
        "rank_count": Column(points.ranks, ONE),
        "time": Column(points.times, SECOND),
        "fitted_time": Column(points.times * (1 + fit.fitted_errors), SECOND),
    }
    return Table({**columns, **{name: share_column(values) for name, values in numbers.items()}})
