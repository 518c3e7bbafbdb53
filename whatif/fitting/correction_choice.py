"""Corrections of a model that is linear in them: the smallest set that measured runs support, by held-out runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.linear import non_negative
from whatif.models.quantities import FloatArray

_GAIN: Final = 0.01
"""Share of the held-out error that a correction must remove to be added."""
_NOISE: Final = 0.05
"""Relative scatter of runs around a corrected model that is expected before any is seen."""
_PRIOR_ROWS: Final = 3
"""Number of rows that the expected scatter weighs as much as."""
_CERTAIN: Final = 1.645
"""Standard errors that a correction is away from neutral, at least."""
_NOTHING: Final = 1e-9
"""Change of a relative prediction by one unit of a correction that counts as none."""
_LEAST_SCALES: Final = 3
"""Least number of scales to hold out the runs of the largest one; below, runs with equal parameters are held out."""


Fold = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Rows to learn from, and rows to predict."""


@dataclass(frozen=True, eq=False)
class CorrectionProblem:
    """Predictions relative to measured values, `base + effects @ (values - neutral)`, a row each measured value.

    A perfect prediction is 1. `effects` is [row, correction], `scales` and `points` are the scale and the number of the
    parameters of the run of each row, so that repetitions have one number, `results` the number of its result.
    """

    base: FloatArray
    effects: FloatArray
    neutral: FloatArray
    least: FloatArray
    """Smallest value of each correction."""
    scales: FloatArray
    points: NDArray[np.int64]
    results: NDArray[np.int64]

    def at(self, rows: NDArray[np.bool_]) -> CorrectionProblem:
        """Problem of some rows."""
        kept = {name: getattr(self, name)[rows] for name in ("base", "effects", "scales", "points", "results")}
        return replace(self, **kept)

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Whether any row depends on each correction."""
        return np.asarray((np.abs(self.effects) > _NOTHING).any(axis=0))

    def of(self, corrections: NDArray[np.bool_]) -> CorrectionProblem:
        """Problem with some of the corrections."""
        kept = {name: getattr(self, name)[..., corrections] for name in ("effects", "neutral", "least")}
        return replace(self, **kept)

    def folds(self) -> list[Fold]:
        """Runs of each of the larger half of the scales, predicted from all smaller ones; if there are too few scales,
        runs with equal parameters, predicted from all others. None if all runs have the same parameters."""
        scales, points = np.unique(self.scales), np.unique(self.points)
        if len(scales) >= _LEAST_SCALES:
            return [(self.scales < scale, self.scales == scale) for scale in scales[(len(scales) + 1) // 2 :]]
        return [(self.points != point, self.points == point) for point in points] if len(points) > 1 else []

    def predicted(self, chosen: Sequence[int], values: FloatArray) -> FloatArray:
        """Predictions of all rows with values of some corrections."""
        at = list(chosen)
        return np.asarray(self.base + self.effects[:, at] @ (values - self.neutral[at]))

    def mean_error(self, predicted: FloatArray, rows: NDArray[np.bool_]) -> float:
        """Mean over the results of the mean absolute error of some rows."""
        errors, present = np.abs(predicted - 1), np.unique(self.results[rows])
        return float(np.mean([np.mean(errors[rows & (self.results == result)]) for result in present]))


Stage = tuple[Sequence[int], NDArray[np.bool_]]
"""Candidates, and the rows by whose held-out error they are chosen."""


@dataclass(frozen=True, eq=False)
class FittedCorrections:
    """Chosen corrections with their values and covariance, and the predictions of held-out rows."""

    chosen: tuple[int, ...]
    values: FloatArray
    covariance: FloatArray
    held_out: FloatArray
    """Prediction relative to the measured value of each row that was held out, from the other runs; else NaN."""


def fit_corrections(problem: CorrectionProblem, stages: Sequence[Stage]) -> FittedCorrections:
    """The corrections that predict held-out runs best, and their values from all rows.

    Stages are chosen one after the other, each by its own rows, with the corrections of the earlier ones: kernels by
    measured kernels, messages by measured communication, the rest by whole iterations. So no correction makes up for
    the error of another part that was measured. The predictions of held-out rows are those of corrections that were
    chosen without them; NaN where the other rows have the same parameters, so that nothing can be chosen.
    """
    folds = [(known, rows) for known, rows in problem.folds() if problem.at(known).folds()]
    return _fitted(problem, folds, lambda known: _chosen(problem, stages, known))


def fitted(problem: CorrectionProblem, chosen: Sequence[int]) -> FittedCorrections:
    """Values of given corrections from all rows, their covariance, and the predictions of held-out rows."""
    return _fitted(problem, problem.folds(), lambda _: chosen)


def _fitted(
    problem: CorrectionProblem, folds: Sequence[Fold], choice: Callable[[NDArray[np.bool_]], Sequence[int]]
) -> FittedCorrections:
    """Corrections with their values from all rows; `choice` gives those that some rows support."""
    held_out = np.full(len(problem.base), np.nan)
    for known, rows in folds:
        held_out[rows] = _predicted(problem, choice(known), known)[rows]
    chosen = choice(np.ones(len(problem.base), dtype=bool))
    return FittedCorrections(tuple(chosen), *_solve(problem, chosen), held_out)


def _chosen(problem: CorrectionProblem, stages: Sequence[Stage], known: NDArray[np.bool_]) -> list[int]:
    """Corrections chosen by some rows."""
    part = problem.at(known)
    chosen: list[int] = []
    for candidates, rows in stages:
        if rows[known].any():
            chosen = _selected(part, candidates, rows[known], chosen)
    return sorted(chosen)


def _selected(
    problem: CorrectionProblem, candidates: Sequence[int], rows: NDArray[np.bool_], kept: Sequence[int]
) -> list[int]:
    """Corrections chosen forward by the held-out error of some rows, then those removed without which it is no larger.

    The one is added that lowers the error most, else the pair, as long as each correction lowers it by 1 %.
    """
    chosen = list(kept)
    score = _score(problem, rows, chosen)
    while (step := _next(problem, candidates, rows, chosen, score)) is not None:
        chosen = [*chosen, *step]
        score = _score(problem, rows, chosen)
    for item in chosen[len(kept) :]:
        without = [other for other in chosen if other != item]
        if (other_score := _score(problem, rows, without)) <= score:
            chosen, score = without, other_score
    return chosen


def _next(
    problem: CorrectionProblem,
    candidates: Sequence[int],
    rows: NDArray[np.bool_],
    chosen: Sequence[int],
    score: float,
) -> tuple[int, ...] | None:
    """The correction, or the pair, that lowers the held-out error most; None if the gain is too small."""
    rest = [item for item in candidates if item not in chosen]
    for count in (1, 2):
        scores = {step: _score(problem, rows, [*chosen, *step]) for step in combinations(rest, count)}
        best = min(scores, key=lambda step: scores[step], default=())
        if best and scores[best] < (1 - _GAIN) ** count * score:
            return best
    return None


def _score(problem: CorrectionProblem, rows: NDArray[np.bool_], chosen: Sequence[int]) -> float:
    """Mean error of some rows over the folds; infinite where the runs do not support a correction: at its smallest
    value, or with neutral in its interval of 90 %."""
    at = list(chosen)
    values, covariance = _solve(problem, chosen)
    certain = np.abs(values - problem.neutral[at]) > _CERTAIN * np.sqrt(np.diag(covariance))
    if not ((values > problem.least[at]) & certain).all():
        return np.inf
    folds = [(known, held_out & rows) for known, held_out in problem.folds() if (held_out & rows).any()]
    # A result that was measured at the smallest scales only: all that is known of it is these rows.
    folds = folds or [(np.ones(len(rows), dtype=bool), rows)]
    errors = [problem.mean_error(_predicted(problem, chosen, known), counted) for known, counted in folds]
    # A fold that learns from more scales is nearer to a prediction beyond all of them.
    weights = [len(np.unique(problem.scales[known])) ** 2 for known, _ in folds]
    return float(np.average(errors, weights=weights))


def _predicted(problem: CorrectionProblem, chosen: Sequence[int], known: NDArray[np.bool_]) -> FloatArray:
    """Predictions of all rows with the values that some rows give."""
    return problem.predicted(chosen, _solve(problem.at(known), chosen)[0])


def _solve(problem: CorrectionProblem, chosen: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Values and covariance of corrections by weighted non-negative least squares with a penalty.

    The weight of a result is the inverse of its scatter, from a first fit with equal weights. The penalty is that of a
    normal prior around neutral whose standard deviation changes the affected rows by 100 %.
    """
    at = list(chosen)
    if not at:
        return np.empty(0), np.empty((0, 0))
    effects, least = problem.effects[:, at], problem.least[at]
    base, centre = problem.base + effects @ (least - problem.neutral[at]), problem.neutral[at] - least
    affected = np.maximum(np.count_nonzero(effects, axis=0), 1)
    prior = np.maximum(np.sqrt((effects**2).sum(axis=0) / affected), 1e-30)
    scatter = np.full(len(effects), _NOISE)
    for _ in range(2):
        rows = np.vstack([effects / scatter[:, np.newaxis], np.diag(prior)])
        above = non_negative(rows, np.concatenate([(1 - base) / scatter, prior * centre]), np.ones(len(rows)))
        scatter = _scatter(problem, base + effects @ above - 1)
    return least + above, np.linalg.inv(rows.T @ rows)


def _scatter(problem: CorrectionProblem, residuals: FloatArray) -> FloatArray:
    """Scatter of the result of each row, with the weight of three rows for the one that is expected."""
    counts = np.bincount(problem.results)
    squares = np.bincount(problem.results, residuals**2)
    scatter = np.sqrt((squares + _PRIOR_ROWS * _NOISE**2) / (counts + _PRIOR_ROWS))
    return np.asarray(scatter[problem.results])
