"""Sobol' indices: the share of a result's variance that each uncertain value explains, alone and with all others.

With two independent samples A and B, and A_j with the values j from B: S_j = mean(f_B (f_Aj - f_A)) / V (Saltelli et
al. 2010, Table 2 b), T_j = mean((f_A - f_Aj)^2) / 2V (Jansen 1999, Table 2 f). Values that a fit correlates are one
factor: for them alone an index has no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.term import Program
from whatif.core.uncertainty import (
    Sampling,
    correlations,
    parameter_samples,
    sampled_program,
    uncertain,
    uniform_numbers,
)
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import LESS, BarChart, BarRow
from whatif.plotting.description import AxisDescription
from whatif.studies.bar_charts import MOST_BARS, share_bar, short_path
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, Dimension, format_quantity

MODEL_ERRORS: Final = (
    "model_error: errors of the models for this application on all machines; "
    "platform.model_error: those on this machine or its GPU alone"
)
_MOST_MISSING: Final = 0.01
"""Share of samples without an answer that changes indices by less than their errors."""


@dataclass(frozen=True, slots=True)
class SobolIndex:
    """Share of the variance explained by one factor: an uncertain value, or all values of one fit."""

    paths: tuple[str, ...]
    first: float
    """First-order index: the share of the variance removed by knowing this factor."""
    first_error: float
    """Half the width of the interval at the level of the sampling."""
    total: float
    """Total index: the share that would remain if all other factors were known."""
    total_error: float

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Both indices, each with its error."""
        return self.first, self.first_error, self.total, self.total_error


@dataclass(frozen=True, eq=False, repr=False)
class Variance(StudyResult):
    """Mean and standard deviation of a result, with the Sobol' indices of the uncertain values, largest first."""

    mean: float
    deviation: float
    indices: tuple[SobolIndex, ...]
    sampling: Sampling
    result: str = ""
    dimension: Dimension = ONE
    missing: int = 0
    """Samples that have no answer and are left out."""
    everything: bool = False
    """Whether the table includes values that explain nothing."""
    optional_columns = (["explains"],)

    @property
    def _shown(self) -> list[SobolIndex]:
        """The rows of the table: factors that explain something, or all."""
        return [item for item in self.indices if self.everything or any(item.numbers)]

    def table(self) -> Table:
        """One row per factor: first-order and total index with their errors."""
        columns = {"value": None, **dict.fromkeys(("first", "first_error", "total", "total_error"), ONE)}
        rows = [[", ".join(item.paths), *item.numbers] for item in self._shown]
        return Table.of_rows(columns, rows, {"result": self.result})

    def readable_table(self) -> Table:
        """The table with a bar per row."""
        return self.table().with_texts("explains", (share_bar(item.total) for item in self._shown))

    def picture(self) -> BarChart:
        """Bars of the total indices."""
        rows = [
            BarRow(short_path(", ".join(its.paths)), 0.0, its.total, LESS, f"{its.total:.2f} ± {its.total_error:.2f}")
            for its in self.indices[:MOST_BARS]
            if its.total > 0
        ]
        title = f"what explains the variance of {self.result}"
        return BarChart(title, AxisDescription("total Sobol' index"), tuple(rows))

    def summary(self) -> tuple[str, ...]:
        """Mean and standard deviation, with the number of samples, and what the errors of the models are."""
        mean, deviation = (format_quantity(value, self.dimension) for value in (self.mean, self.deviation))
        spread = f"{self.result}: {mean} on average, standard deviation {deviation}"
        missing = f", of which {self.missing:,} have no answer and are left out" if self.missing else ""
        with_models = any("model_error." in path for item in self._shown for path in item.paths)
        numbers = f"{spread}; errors at {self.sampling.level:.0%}, {self.sampling.count:,} samples{missing}"
        return (numbers, MODEL_ERRORS) if with_models else (numbers,)


def sobol_indices(program: Program, sampling: Sampling, result: str = "iteration_time") -> Variance:
    """Sobol' indices of a result column or phase in each uncertain value that it depends on.

    Of the errors: S_j and T_j are ratios of means over the samples; their standard errors are those of independent
    samples (the delta method), which a Sobol' sequence stays below. Raise `UsageError` if nothing is uncertain,
    `InfeasiblePointError` where a sample has no answer or all have the same.
    """
    program = sampled_program(program, sampling)
    term = program.term_of(result)
    known = uncertain(program, sampling)
    known = {path: known[path] for path in known if path in program.inputs_of(term)}
    if not known:
        raise UsageError(f"nothing that {result} depends on is uncertain; write a value as `V +- E`, or use --spread")
    numbers = uniform_numbers(2 * len(known), sampling.count, sampling.seed)
    first, second = (parameter_samples(program, known, part) for part in np.hsplit(numbers, 2))
    at_first = evaluate(program, first)
    groups = factors(program, list(known))
    points = [second, *(first | {path: second[path] for path in group} for group in groups)]
    arrays = [at_first.numbers(term), *(evaluate(program, point, at_first).numbers(term) for point in points)]
    base, other, *mixed = _answered(np.stack(arrays), at_first.reasons())
    found = variance_of(base, other, dict(zip(groups, mixed, strict=True)), sampling)
    missing = sampling.count - base.size
    return replace(found, result=result, dimension=program.dimension_of(result), missing=missing)


def factors(program: Program, paths: Sequence[str]) -> list[tuple[str, ...]]:
    """Values that vary independently of all others: single ones, or all that a fit correlates, if by others."""
    from scipy.sparse.csgraph import connected_components

    _, numbers = connected_components(correlations(program, paths) != 0, directed=False)
    groups: dict[int, list[str]] = {}
    for number, path in zip(numbers.tolist(), paths, strict=True):
        groups.setdefault(number, []).append(path)
    return [tuple(group) for group in groups.values()]


def _answered(numbers: FloatArray, reasons: Sequence[str]) -> FloatArray:
    """Samples [array, sample] with a number in all arrays; raise `InfeasiblePointError` if many have none."""
    known = np.isfinite(numbers).all(axis=0)
    if 1 - known.mean() > _MOST_MISSING:
        lacking = f"{np.count_nonzero(~known):,} of {known.size:,} samples have no answer"
        raise InfeasiblePointError(f"infeasible: {lacking}: {'; '.join(reasons)}")
    return numbers[:, known]


def variance_of(
    base: FloatArray, other: FloatArray, mixed: Mapping[tuple[str, ...], FloatArray], sampling: Sampling
) -> Variance:
    """The estimators, of numbers less their mean, for which they are most precise."""
    both = np.concatenate([base, other])
    mean, deviation = float(both.mean()), float(both.std())
    if not deviation > 1e-12 * abs(mean):
        raise InfeasiblePointError("infeasible: all samples give the same result: there is no variance to explain")
    base, other = base - mean, other - mean
    spread = (base**2 + other**2) / 2
    indices = []
    for paths, array in mixed.items():
        moved = array - mean
        first, total = (
            _ratio(part, spread, sampling.level) for part in (other * (moved - base), (base - moved) ** 2 / 2)
        )  # fmt: skip
        indices.append(SobolIndex(paths, *first, *total))
    return Variance(mean, deviation, tuple(sorted(indices, key=lambda item: -item.total)), sampling)


def _ratio(above: FloatArray, below: FloatArray, level: float) -> tuple[float, float]:
    """The ratio of two means and half the width of its interval."""
    from scipy.special import ndtri

    ratio = float(above.mean() / below.mean())
    scatter = float((above - ratio * below).std() / below.mean())
    return ratio, float(ndtri((1 + level) / 2)) * scatter / above.size**0.5
