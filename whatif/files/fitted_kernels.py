"""Calibrations of HPL's kernels and messages as parameters of a platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whatif.errors import UsageError
from whatif.files.fitted_platform import PROCESSORS, FittedPlatform
from whatif.files.platform_file import PlatformChange, change_of, source_text
from whatif.fitting.blas_costs import KernelFit, fit_kernel, kernel_name
from whatif.fitting.coefficients import fit_coefficients
from whatif.fitting.fit_result import Fit
from whatif.fitting.pieces import PiecesFit, fit_pieces
from whatif.fitting.processors import Processors, in_words, slow_in_words, spread, synthetic_processors
from whatif.importers.rows import joined
from whatif.schema.blas_kernels import KERNEL_NAMES
from whatif.schema.platform_spec import Grade
from whatif.table import Table, warned
from whatif.table_writers import column_lines
from whatif.units import ONE

CalibrationFit = KernelFit | PiecesFit


@dataclass(frozen=True)
class ProcessorChoice:
    """Processors to write in place of the calibrated ones."""

    without: Sequence[str] = ()
    average: Sequence[str] = ()
    synthetic: int | None = None
    """Nodes of a synthetic machine."""
    seed: int = 0

    @property
    def option(self) -> str:
        """The first stated option that needs calibrated processors; empty if none is stated."""
        stated = {"--without": self.without, "--average": self.average, "--synthetic": self.synthetic is not None}
        return next((name for name, value in stated.items() if value), "")


@dataclass(frozen=True)
class CalibrationModels:
    """Models to fit; None chooses by the Bayesian information criterion."""

    kernel: str | None = None
    """Kernel of files that do not name theirs."""
    model: str | None = None
    noise: str | None = None
    distance: str = "inter_node"


def fit_calibrations(
    tables: Mapping[Path, Table], models: CalibrationModels, choice: ProcessorChoice
) -> FittedPlatform[tuple[CalibrationFit, ...]]:
    """Costs of kernels and messages with factors of processors, from calibrations by file.

    Raise `UsageError` for calibrations that do not fit together, and for options that do not fit the calibrations.
    """
    parts = _by_kernel(tables, models.kernel)
    fits = tuple(_fitted(name, table, models) for name, table in parts.items())
    processors = next((it.processors for it in fits if isinstance(it, KernelFit) and it.kernel == "dgemm"), None)
    chosen = _chosen_processors(processors, choice)
    busy = _busy_cores(parts)
    found = [fit for each in fits for fit in each.fits]
    remarks = [f"warning: {line}" for table in tables.values() for line in table.warnings]
    several = sum(isinstance(fit, KernelFit) for fit in fits) > 1
    remarks += [line for fit in fits for line in _remarks(fit, shortened=several)]
    remarks += _busy_remarks(parts, busy)
    return FittedPlatform(
        fits,
        (*found, *([] if chosen is None else [chosen.fit])),
        tuple(fit.points for fit in fits),
        source_text(list(tables), list(parts.values())),
        lambda source: _change(found, chosen, busy, source),
        notes=(*remarks, *([chosen.remark] if chosen is not None and chosen.remark else [])),
    )


def _by_kernel(tables: Mapping[Path, Table], kernel: str | None) -> dict[str, Table]:
    """Calibrations of all files by kernel; those of messages have an empty name."""
    parts: dict[str, list[Table]] = {}
    for path, table in tables.items():
        for name, part in _kernels_of(table, kernel, path):
            parts.setdefault(name, []).append(part)
    for name, found in parts.items():
        kinds = sorted({table.notes["kind"] for table in found})
        if len(kinds) > 1:
            raise UsageError(f"{name}: the files hold {' and '.join(kinds)}; give one kind at a time")
    return {name: found[0] if len(found) == 1 else joined(found) for name, found in parts.items()}


def _kernels_of(table: Table, kernel: str | None, path: Path) -> Iterator[tuple[str, Table]]:
    if table.notes["kind"] == "messages":
        yield "", table
    elif "kernel" not in table.columns:
        name = kernel or next((known for known in sorted(KERNEL_NAMES, key=len) if known in path.stem.lower()), None)
        if name is None:
            raise UsageError(
                f"{path}: the kernel is not named in the file; use `--kernel NAME`: {', '.join(KERNEL_NAMES)}"
            )
        yield kernel_name(name), table
    else:
        names = table.columns["kernel"].values
        known = {name: kernel_name(name) for name in dict.fromkeys(names.tolist())}
        if kernel is not None and kernel_name(kernel) not in known.values():
            raise UsageError(f"{path}: no calls of {kernel}; its kernels are {', '.join(known.values())}")
        for name, short in known.items():
            if kernel is None or short == kernel_name(kernel):
                yield short, table.at(names == name)


def _fitted(name: str, table: Table, models: CalibrationModels) -> CalibrationFit:
    if table.notes["kind"] == "messages":
        if models.model not in (None, "M'"):
            raise UsageError(f"--model {models.model}: messages are fitted in pieces (M')")
        return fit_pieces(table, models.distance, models.noise)
    fit = fit_coefficients if table.notes["kind"] == "coefficients" else fit_kernel
    return fit(table, name, models.model, models.noise)


def _remarks(fit: CalibrationFit, *, shortened: bool) -> Iterator[str]:
    """The compared models, the chosen one, and warnings, a line each; shortened, only the number of models compared."""
    shortened = shortened and isinstance(fit, KernelFit)
    yield from () if shortened else column_lines(fit.comparison)
    warnings = list(fit.warnings)
    if isinstance(fit, KernelFit):
        models = f" of {len(fit.comparison)} models (--kernel {fit.kernel} compares them)" if shortened else ""
        yield f"{fit.kernel}: {fit.model} {fit.noise}{models}"
        if fit.processors is not None:
            yield from in_words(fit.processors)
            warnings += slow_in_words(fit.processors)
    else:
        yield from fit.remarks
    yield from warned(warnings)


@dataclass(frozen=True)
class _ChosenProcessors:
    fit: Fit
    values: dict[str, str]
    """Texts of a platform file by path."""
    assumed: dict[str, str]
    """Lead of the source of a value that was not measured, by path."""
    remark: str


def _chosen_processors(found: Processors | None, choice: ProcessorChoice) -> _ChosenProcessors | None:
    """Factors of the processors after a choice; None if no processors were calibrated."""
    if found is None:
        if choice.option:
            raise UsageError(f"{choice.option}: no processors were calibrated (M_H of dgemm)")
        return None
    chosen = found.without(choice.without).averaged(choice.average)
    values, assumed, remark, count = chosen.table, {}, "", choice.synthetic
    if count is not None:
        values = synthetic_processors(spread(chosen), count, choice.seed)
        remark = f"{count} synthetic nodes drawn with seed {choice.seed}"
        assumed = dict.fromkeys((PROCESSORS, "node_count"), remark)
    elif choice.average:
        measured = found.table
        averaged = (key for key, factor in values.items() if factor != measured[key])
        assumed = {f"{PROCESSORS}.{key}": "the mean of the other nodes" for key in averaged}
    texts = {f"{PROCESSORS}.{key}": f"{value:.6g}" for key, value in values.items()}
    nodes = {} if count is None else {"node_count": str(count)}
    return _ChosenProcessors(_factors(chosen, values, synthetic=count is not None), texts | nodes, assumed, remark)


def _busy_cores(parts: Mapping[str, Table]) -> dict[str, str]:
    """Fewest busy cores of a node during the calibration of kernels, as a value of a platform; empty if not stated."""
    stated = [table.columns["busy_cores"].values.min() for name, table in parts.items()
              if name and "busy_cores" in table.columns]  # fmt: skip
    return {"kernels.busy_cores": f"{min(stated):.0f}"} if stated else {}


def _busy_remarks(parts: Mapping[str, Table], busy: Mapping[str, str]) -> Iterator[str]:
    """Warnings about dgemm that was timed with idle cores, or with an unknown number of them."""
    if "dgemm" not in parts or parts["dgemm"].notes["kind"] != "samples":
        return
    how = "HPL is slower on a node whose cores share memory and clock: time dgemm with all cores busy"
    if not busy:
        yield f"warning: dgemm: no column `busy_cores`: {how} (docs/hpl_calibration.md)"
    elif busy["kernels.busy_cores"] == "1":
        yield f"warning: dgemm was timed on a single core: {how} (docs/hpl_calibration.md)"


def _change(
    fits: Sequence[Fit], chosen: _ChosenProcessors | None, busy: Mapping[str, str], source: str
) -> PlatformChange:
    change = change_of(fits, source, busy)
    if chosen is None:
        return change
    assumed: dict[str, tuple[Grade, str]] = {
        path: ("assumed", f"{lead}; {source}") for path, lead in chosen.assumed.items()
    }
    return replace(change, values={**change.values, **chosen.values}, sources={**change.sources, **assumed})


def _factors(found: Processors, values: Mapping[str, float], *, synthetic: bool) -> Fit:
    errors = np.full(len(values), np.nan) if synthetic else found.standard_errors
    numbers = np.array(list(values.values()))
    count = int(found.run_counts.sum())
    return Fit(PROCESSORS, dict.fromkeys(values, ONE), numbers, np.diag(errors**2), {}, count, found.drift)
