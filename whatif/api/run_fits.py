"""Fits of runs: models of an application, of formulas, grids and scaling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from whatif.api.measurements import ImportedTable
from whatif.arguments import Share, level_of
from whatif.errors import UsageError
from whatif.files.fitted_grid import FittedGrid
from whatif.files.fitted_regression import FittedRegression
from whatif.fitting.grid_study import GridOptions, GridTarget, study_grid
from whatif.fitting.regression_study import RegressionOptions, regress
from whatif.fitting.scaling_runs import NODES, PROCESSES, TIMES
from whatif.fitting.scaling_study import EXAMPLE, FittedScaling, ScalingOptions, study_scaling
from whatif.importers.mapping import parse_mapping, split_unit
from whatif.importers.measurement_files import (
    ColumnNames,
    Files,
    RowFilter,
    read_run_files,
)
from whatif.importers.run_columns import usual_heading, with_usual_names
from whatif.table import Table, warned
from whatif.vocabulary import GridWeighting, IntervalKind

_SCALING_NAMES: Final = {"rank_count": PROCESSES, "nodes": NODES, "total_time": TIMES[0]}
"""Columns of runs that scaling reads, by their names in a scenario."""


def fit_regression(
    files: Files | ImportedTable,
    *,
    formula: str | None = None,
    search: str | None = None,
    compare: Sequence[str] = (),
    folds: int | None = None,
    repeat: int | None = None,
    held_out: str | Path | None = None,
    hold_out: int | None = None,
    level: Share | None = None,
    interval: IntervalKind | None = None,
    at: Sequence[str | Mapping[str, str | float]] = (),
    second_opinion: bool = False,
    seed: int | None = None,
    show: str | None = None,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
    long: str | None = None,
) -> FittedRegression:
    """Linear model of measured runs with intervals, checked on other runs and used for predictions.

    `files` are read as by `import_runs`, or were read by it. `formula` is as in R, `time ~ (x1 + I(x1**2)) * x2`, or
    `search` finds the terms of `time ~ x1 + x2`; `compare` are formulas of other models. `folds` cross-validates,
    `repeat` times; `held_out` is a file of runs to predict, `hold_out` the number of runs to draw for that. `at` are
    points to predict, `nodes=512,size=8 GB`. `level` (default 0.95) and `interval` (prediction or confidence) are those
    of the predictions. `show` chooses one table, such as influence. Raise `UsageError` for options that contradict
    each other or have no effect, and for runs that allow no fit.

    >>> import whatif
    >>> file = "tests/data/runs/caliper/lulesh_grid_runs.csv"
    >>> fit = whatif.fit_regression(file, formula="total_time ~ processes", at=["processes=512"])
    >>> list(fit.to_pandas().columns)
    ['processes', 'fit', 'lower', 'upper']
    """
    runs = files.values if isinstance(files, ImportedTable) else read_run_files(files, columns, where, long)
    others = None if held_out is None else read_run_files(held_out, columns, where, long)
    with _columns_explained(runs):
        points = _points("--at", at, "nodes=512,size=8 GB")
    options = RegressionOptions(
        formula, search, compare, folds, repeat, hold_out, _level(level), interval, points, second_opinion, seed, show
    )
    with _columns_explained(runs):
        study = regress(runs, options, others)
    warnings = warned([*runs.warnings, *(() if others is None else others.warnings)])
    return FittedRegression(
        runs=study.fits[0].runs,
        notes=(*warnings, *study.notes),
        fits=study.fits,
        search=study.search,
        tables=study.tables,
    )


def fit_grid(
    files: Files,
    *,
    reduction: bool = False,
    weighting: GridWeighting = "relative",
    level: Share | None = None,
    bootstrap: int | None = None,
    seed: int | None = None,
    targets: Sequence[GridTarget] = (),
    advice: bool = False,
    vary: Sequence[str] = (),
    points: bool = False,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
    long: str | None = None,
) -> FittedGrid:
    """Parameters of a structured-grid program (Sharif et al.), predictions of runs, or the run to make next.

    `files` are read as by `import_runs`, with columns cells, processes, iterations, total_time and others.
    `reduction` fits K_r, `weighting` is relative or equal, `level` (default 0.95) that of the intervals; `bootstrap`
    takes errors from that many fits to runs drawn again with `seed`. `targets` are runs to predict,
    `cells=272e6,processes=768`; `advice` finds the run that narrows the target's interval most, among those of `vary`.
    `points` shows the runs. Raise `UsageError` for missing columns and for options without effect.

    >>> import whatif
    >>> fit = whatif.fit_grid("tests/data/runs/caliper/lulesh_grid_runs.csv", reduction=True)
    >>> fit.to_pandas()["parameter"][0]
    'cell_rate'
    """
    runs = read_run_files(files, columns, where, long)
    options = GridOptions(reduction, weighting, _level(level), bootstrap, seed, targets, advice, vary, points)
    with _columns_explained(runs):
        study = study_grid(runs, options)
    return FittedGrid(runs=runs, notes=(*warned(runs.warnings), *study.notes), study=study)


def fit_scaling(
    files: Files | ImportedTable,
    *,
    predict: Sequence[str | Mapping[str, str | float]] = (),
    series: str | Sequence[str] = (),
    level: Share | None = None,
    show: str | None = None,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
    long: str | None = None,
) -> FittedScaling:
    """Time of a program on other counts of nodes or processes, with an interval, from runs on several counts.

    `files` are read as by `import_runs`, or were read by it, with columns nodes, processes or another count, total_time
    or time, and optionally iterations. `predict` are points, `nodes=64` or `nodes=64,processes=2048`. Runs are one
    series for each file and text, or for each value of the columns `series`; errors are pooled over all of them.
    `level` (default 0.95) is that of the intervals; `show` is prediction, held-out or models. Raise `UsageError` for
    missing columns, impossible numbers, fewer than two counts, and points that the runs do not describe.

    >>> import whatif
    >>> file = "tests/data/runs/caliper/lulesh_grid_runs.csv"
    >>> fit = whatif.fit_scaling(file, predict=["processes=512"])
    >>> list(fit.to_pandas().columns)
    ['processes', 'fit', 'lower', 'upper', 'naive', 'model']
    """
    runs = files.values if isinstance(files, ImportedTable) else read_run_files(files, columns, where, long)
    names = [name.strip() for name in series.split(",") if name] if isinstance(series, str) else series
    points = _points("--predict", predict, EXAMPLE)
    usual = with_usual_names(runs, _SCALING_NAMES, [*names, *(name for point in points for name in point), *TIMES])
    points = [_usual_point(point, usual) for point in points]
    with _columns_explained(runs):
        found = study_scaling(usual, ScalingOptions(points, names, _level(level), show))
    return replace(found, notes=(*warned(runs.warnings), *found.notes))


def _usual_point(point: Mapping[str, str], runs: Table) -> dict[str, str]:
    """Point whose counts have the names of the columns of the runs, where another usual heading names them."""
    means = {name: _SCALING_NAMES.get(usual_heading(name), "") for name in point if name not in runs.columns}
    new = {name: meant for name, meant in means.items() if meant in runs.columns and meant not in point}
    return {new.get(name, name): value for name, value in point.items()}


def _level(level: Share | None) -> float | None:
    return None if level is None else level_of(level)


@contextmanager
def _columns_explained(runs: Table) -> Iterator[None]:
    """Add to an error that names a column why it was read as texts, or why it has another name than its heading."""
    try:
        yield
    except UsageError as error:
        names = [name for name in runs.columns if f"`{name}`" in str(error)]
        reasons = [line for line in runs.warnings if any(f"`{name}" in line for name in names)]
        raise UsageError("; ".join([str(error), *reasons, *_renamed(runs, str(error))])) from None


def _renamed(runs: Table, message: str) -> list[str]:
    """Names of the columns whose headings are in a message."""
    entries = re.findall(r"(\w+) is `([^`]*)`", runs.notes.get("columns", ""))
    plain = ((name, split_unit(heading)[0]) for name, heading in entries)
    return [f"the heading `{heading}` is `{name}` in a formula" for name, heading in plain if heading in message]


def _points(option: str, points: Sequence[str | Mapping[str, str | float]], example: str) -> list[dict[str, str]]:
    """Values of each point as texts by name."""
    found = []
    for point in [points] if isinstance(points, str) else points:
        if isinstance(point, str) and "=" not in point:
            raise UsageError(f"{option} {point}: expected NAME=VALUE, such as {example}")
        texts = parse_mapping(point, example) if isinstance(point, str) else point
        found.append({key: str(value) for key, value in texts.items()})
    return found
