"""Regression of runs with its checks, against statsmodels: `python -m benchmarks.regression`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Row, median_seconds
from whatif.fitting.formula import Formula
from whatif.fitting.least_squares import fit_runs
from whatif.fitting.model_checks import compare, cross_validate
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.units import ONE

RUNS, FOLDS, REPEATS = 500, 10, 20
LARGE = "y ~ (a + b + c + d + e) ** 2"
"""16 terms."""
SMALL = "y ~ a + b + c + d + e"


def regressing() -> Iterator[Row]:
    """Time to fit two models, compare them, and cross-validate the larger one."""
    rng = np.random.default_rng(0)
    columns = {name: Column(rng.uniform(1, 100, RUNS), ONE) for name in "abcde"}
    columns["y"] = Column(sum(column.values for column in columns.values()) + rng.normal(0, 5, RUNS), ONE)
    runs = Table(columns)
    seconds = median_seconds(lambda: _ours(runs), 10)
    large, small = (fit_runs(runs, text) for text in (LARGE, SMALL))
    others = median_seconds(lambda: _theirs(large.response, large.design, small.design), 3)
    what = f"regression of {RUNS} runs, 16 terms, ANOVA, 10 folds x {REPEATS}"
    yield Row(
        what, f"{seconds * 1e3:.0f} ms", f"{others * 1e3:.0f} ms", others / seconds, "statsmodels, one fit per fold"
    )


def _ours(runs: Table) -> tuple[Formula, float, float]:
    large, small = (fit_runs(runs, text) for text in (LARGE, SMALL))
    steps = compare([small, large])
    return large.formula, steps[-1].p, cross_validate(large, FOLDS, REPEATS).rmse


def _theirs(response: FloatArray, large: FloatArray, small: FloatArray) -> float:
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.anova import anova_lm

    whole: Any = OLS(response, large).fit()
    anova_lm(OLS(response, small).fit(), whole)
    rng, squares = np.random.default_rng(0), 0.0
    for _ in range(REPEATS):
        for part in np.array_split(rng.permutation(RUNS), FOLDS):
            rest = np.setdiff1d(np.arange(RUNS), part)
            found = OLS(response[rest], large[rest]).fit().predict(large[part])
            squares += float(((found - response[part]) ** 2).sum())
    return float(np.sqrt(squares / RUNS / REPEATS))


if __name__ == "__main__":
    for row in regressing():
        print(row.what, row.this, row.other, f"{row.ratio:.1f} x", row.alternative)
