"""Runs of a structured-grid program: its parameters, predictions of other runs, and the run to make next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError, did_you_mean, require_choice, require_least
from whatif.fitting.grid import GridFit, fit_grid
from whatif.fitting.grid_advice import constants, next_run, predict, unidentified, weakly_identified
from whatif.fitting.grid_plan import next_candidates, planned
from whatif.fitting.grid_runs import COUNTED, PLANNED, GridRuns, canonical, is_count, unused
from whatif.fitting.grid_tables import advice_table, grid_parameter_table, prediction_table, runs_table
from whatif.table import Column, Table, warned
from whatif.units import ONE, UnitError, parse_quantity
from whatif.vocabulary import GRID_WEIGHTINGS, GridWeighting

LEVEL: Final = 0.95
EXAMPLE: Final = "cells=272e6,processes=768"
_MOST_SCATTER: Final = 0.3
_FEWEST_DRAWS: Final = 10

GridTarget = str | Mapping[str, str | float]
"""A run: `cells=272e6,processes=768`, or a mapping."""


@dataclass(frozen=True)
class GridOptions:
    """Inputs of the fit of a structured-grid program and of its predictions; None: the default."""

    reduction: bool = False
    weighting: GridWeighting = "relative"
    level: float | None = None
    bootstrap: int | None = None
    """Fits to runs drawn again."""
    seed: int | None = None
    targets: Sequence[GridTarget] = ()
    advice: bool = False
    """Whether to find the run that would narrow the target's interval most."""
    vary: Sequence[str] = ()
    """Runs to choose from: `NAME=V,V,..`."""
    points: bool = False
    """Whether to show the runs instead of the parameters."""

    def __post_init__(self) -> None:
        require_choice("weighting", self.weighting, GRID_WEIGHTINGS)
        require_least("bootstrap", self.bootstrap, _FEWEST_DRAWS)
        require_least("seed", self.seed, 0)
        if (self.advice or self.vary) and len(self.targets) != 1:
            raise UsageError(f"--next and --vary need one --target, the run that matters, such as {EXAMPLE}")
        if self.points and (self.targets or self.advice or self.vary):
            raise UsageError("--points shows the runs that were made: leave out --target, --next and --vary")
        if self.points and self.level is not None:
            raise UsageError("--level: no effect on --points, which have no intervals")
        if self.seed and not self.bootstrap:
            raise UsageError("--seed needs --bootstrap: nothing else is drawn")


@dataclass(frozen=True, eq=False)
class GridStudy:
    """Fit, the runs to predict, and remarks."""

    fit: GridFit
    targets: tuple[GridRuns, ...]
    answer: Table | None
    """Runs, predictions or advice; None if the parameters are shown."""
    notes: tuple[str, ...]

    def table(self, *, in_words: bool = False) -> Table:
        """Runs, predictions or advice, else the parameters; `in_words` writes these with their units."""
        return self.answer if self.answer is not None else grid_parameter_table(self.fit, in_words=in_words)


def study_grid(runs: Table, options: GridOptions) -> GridStudy:
    """Fit and answers from a table of runs (`whatif.fitting.grid_runs.runs_of`).

    Raise `UsageError` for columns that are missing, impossible numbers, and runs that identify no parameter.
    """
    stated = [_values(_pairs(target)) for target in options.targets]
    fit = fit_grid(
        runs,
        cases=[case for values in stated for case in values.get("case", ())],
        weighting=options.weighting,
        reduction=options.reduction,
        level=LEVEL if options.level is None else options.level,
        draws=options.bootstrap or 0,
        seed=options.seed or 0,
    )
    notes = [f"not used: {', '.join(others)}"] if (others := unused(runs)) else []
    notes += _remarks(fit)
    targets = []
    for values in stated:
        target, assumed = planned(fit.runs, values)
        targets.append(target)
        notes += assumed
    answer, remarks = _answer(fit, targets, options)
    return GridStudy(fit, tuple(targets), answer, tuple(notes + remarks))


def _remarks(fit: GridFit) -> Iterator[str]:
    if same := constants(fit.runs):
        yield f"the same in all runs: {', '.join(same)}"
    if len(fit.runs) < len(fit.columns):
        yield f"warning: {len(fit.runs)} runs for {len(fit.columns)} parameters"
    late = int((fit.runs.rest < 0).sum())
    if late:
        yield f"warning: {late} runs have more computation and communication than total time"
    yield from warned(unidentified(fit))
    yield from (f"note: {line}" for line in dict.fromkeys(weakly_identified(fit)))
    spreads = {kind: fit.scatter(kind) for kind in fit.spread}
    for kind, spread in spreads.items():
        if not np.isnan(spread):
            yield f"scatter of single runs, {kind}: {spread:.2%}"
    for kind, spread in spreads.items():
        if spread > _MOST_SCATTER:
            limit = f"{_MOST_SCATTER:.0%}"
            yield f"warning: {kind} scatters by more than {limit}: the model may not be that of these runs"
    for kind, spread in spreads.items():
        if not spread >= 0:
            yield f"warning: no more runs than parameters of {kind}: their errors are unknown"


def _answer(fit: GridFit, targets: Sequence[GridRuns], options: GridOptions) -> tuple[Table | None, list[str]]:
    if options.points:
        return runs_table(fit), []
    if options.advice or options.vary:
        return _advice(fit, targets[0], options.vary)
    if not targets:
        return None, []
    tables = [prediction_table(predict(fit, target)) for target in targets]
    remarks = []
    if any(np.isnan(table.columns["mean_low"].values).any() for table in tables):
        remarks.append("warning: a target depends on what the runs do not identify: it has no interval")
    return _stacked(tables), remarks


def _stacked(tables: Sequence[Table]) -> Table:
    columns = {
        name: Column(np.concatenate([table.columns[name].values for table in tables]), column.dimension)
        for name, column in tables[0].columns.items()
    }
    return Table(columns)


def _advice(fit: GridFit, target: GridRuns, vary: Sequence[str]) -> tuple[Table, list[str]]:
    """Runs that narrow the target's interval most, with remarks; no rows where no single run does."""
    candidates, notes = _candidates(fit, target, vary)
    advice = next_run(fit, target, candidates)
    if advice.assumed_noise:
        notes.append("warning: too few runs to estimate their scatter: 5 % is assumed")
    now = f"{advice.before:.4g} s either way" if advice.before >= 0 else "no precision: the runs do not identify it"
    notes.append(f"the mean of the target is {predict(fit, target).total_time[0]:.4g} s, known to {now}")
    table = advice_table(advice)
    if not len(table):
        notes.append("warning: no single run identifies it: make those that the warnings above name")
    return table, notes


def _candidates(fit: GridFit, target: GridRuns, vary: Sequence[str]) -> tuple[GridRuns, list[str]]:
    """The runs to choose from: stated ones, completed by the target's settings, or those similar to the runs."""
    if not vary:
        return next_candidates(fit.runs, str(target.case[0])).joined(target), []
    given = _values(vary)
    likely = {name: getattr(target, name).tolist() for name in ("cells", "processes", "iterations", "case")}
    if "cells" in given and str(target.case[0]):
        del likely["iterations"]
    return planned(fit.runs, likely | given)


def _pairs(target: GridTarget) -> list[str]:
    return target.split(",") if isinstance(target, str) else [f"{name}={value}" for name, value in target.items()]


def _values(pairs: Sequence[str]) -> dict[str, list[Any]]:
    """Lists of values by column name, of texts `NAME=VALUE,VALUE`."""
    found: dict[str, list[Any]] = {}
    for pair in pairs:
        given, equals, text = (part.strip() for part in pair.partition("="))
        name = canonical(given)
        if not equals or name not in PLANNED:
            raise UsageError(f"`{pair}`: expected NAME=VALUE of {', '.join(PLANNED)}{did_you_mean(name, PLANNED)}")
        if name in found:
            raise UsageError(f"`{pair}`: `{name}` is given twice; --vary takes several values, {given}=V,V")
        values = text.split(",")
        found[name] = [value.strip() for value in values] if name == "case" else _numbers(pair, name, values)
    return found


def _numbers(pair: str, name: str, texts: Sequence[str]) -> list[float]:
    try:
        numbers = [parse_quantity(text) for text in texts]
    except UnitError as error:
        raise UsageError(f"`{pair}`: {error}") from None
    if any(number.dimension != ONE or not number.value >= (name != "halo_cells") for number in numbers):
        raise UsageError(f"`{pair}`: expected a number of at least 1")
    values = [number.value for number in numbers]
    if not is_count(name, np.array(values)).all():
        raise UsageError(f"`{pair}`: expected {COUNTED}")
    return values
