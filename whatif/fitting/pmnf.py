"""Search for a model in the normal form: which terms the runs speak for, and which other hypotheses come close.

One variable: all hypotheses of one term. Several: for each variable the best term along lines of runs that differ in
it alone (averaged, as in a full design), then all sums of up to three products of these terms, over all runs.
Extra-P (Calotoiu et al., CLUSTER 2016) does the same for one variable; of several it tries 4 or 23 chosen sums and
ranks them by their error in the sample. Here all are ranked by their leave-one-out error, the constant with them, and
a model counts only where each of its terms passes an F test against the model without it.

On noise alone (5 %, 1000 trials of 5 or 10 points of one variable) a term was kept in 7 or 8 % of searches at a level
of 5 %, and in 15 to 21 % where the constant was ranked by its error in the sample, as in Extra-P; with 25 points of two
variables (300 trials) in 11 %, at a level of 1 % in 3 %: the test does not know how many exponents were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import isclose
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.hypotheses import Fits, least_squares, probability
from whatif.fitting.normal_form import EXPONENTS, FALLING, Factor, Normal, Term, value_of
from whatif.models.quantities import FloatArray

LEVEL: Final = 0.05
"""Significance level of the F test of each term."""
FEWEST: Final = 3
"""Different values of a variable without which no term of it can be tested."""
ENOUGH: Final = 5
"""Different values that Extra-P requires."""
MOST_VARIABLES: Final = 4
MOST_TERMS: Final = 3
LEAST_PART: Final = 5e-4
"""Share of a measured value: a term that is nowhere larger is left out, as in Extra-P."""
FAR: Final = 8.0
"""Factor beyond the largest value of a variable up to which models of positive responses are above 0."""
_EXACT: Final = 1e-10
"""Error in percent below which fits count as equal: rounding."""
_SAME: Final = 1e-6


@dataclass(frozen=True, eq=False)
class Search:
    """Model that was found."""

    models: tuple[Normal, ...]
    """Best first: those whose terms all earn their place, by leave-one-out error, then the others by theirs."""
    tried: int
    """Hypotheses fitted: over all points, and along the lines before."""
    point_count: int
    """Different points, repetitions as one."""
    level: float
    """Significance level of the test of each term, after the division."""
    warnings: tuple[str, ...]

    @property
    def best(self) -> Normal:
        """The model to use."""
        return self.models[0]


@dataclass(frozen=True, eq=False)
class _Points:
    variables: Mapping[str, FloatArray]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)


def search(
    variables: Mapping[str, FloatArray],
    response: FloatArray,
    *,
    positive_beyond: bool = False,
    kept: int = 10,
) -> Search:
    """The best models of `response`, all arrays of shape (runs,); runs at equal points are repetitions.

    As in Extra-P, repetitions count as one point with their mean, all points weigh the same, and a model has one term
    of one variable and up to `MOST_TERMS` of several. `LEVEL` of the F test of each term is divided by the number of
    products of several variables (Bonferroni). Coefficients may be negative, as in Extra-P; but a model of a response
    above 0 in all runs is above 0 in all of them too, and with `positive_beyond` where variables are up to `FAR` times
    as large (`beyond`). `kept` models are returned.
    Logarithms are left out for a variable with values below 1. Raises `UsageError` for arrays of different lengths,
    values that are not finite, negative variables, a variable that does not vary, and runs without a line of at least
    three points along each variable.
    """
    points = _points(variables, response)
    warnings = list(_cautions(points))
    if len(points.variables) == 1:
        terms, tried, most, level = _alone(points), 0, 1, LEVEL
    else:
        lines = [_line(points, name, warnings) for name in points.variables]
        terms, tried = _products(lines)
        most, level = MOST_TERMS, LEVEL / max(len(terms), 1)
    fits = _fits(points, terms, most)
    known = [points.variables, *([beyond(points.variables)] if positive_beyond else [])]
    known = known if points.values.min() > 0 else []
    allowed = [np.logical_and.reduce([_is_positive(fit, terms, x) for x in known]) for fit in fits]
    models = _ranked(fits, level, allowed)[:kept]
    best = [_normal(terms, fits[at], row, earned) for at, row, earned in models]
    warnings += _doubts(best)
    return Search(tuple(best), tried + sum(len(fit.chosen) for fit in fits), len(points), level, tuple(warnings))


def beyond(variables: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Points where each variable has its smallest value, its largest, or `FAR` times that."""
    ends = [(x.min(), x.max(), FAR * x.max()) for x in variables.values()]
    return dict(zip(variables, np.array(list(product(*ends))).T, strict=True))


def _points(variables: Mapping[str, FloatArray], response: FloatArray) -> _Points:
    """The different points in ascending order, each with the mean of its runs."""
    if not 0 < len(variables) <= MOST_VARIABLES:
        raise UsageError(f"a search takes 1 to {MOST_VARIABLES} variables, not {len(variables)}")
    values = np.asarray(response, dtype=float)
    columns = {name: np.asarray(x, dtype=float) for name, x in variables.items()}
    for name, x in columns.items():
        if x.ndim != 1 or x.shape != values.shape:
            raise UsageError(f"`{name}` must have one value for each of the {values.size} runs")
        if not np.isfinite(x).all() or (x < 0).any():
            raise UsageError(f"`{name}` has values that are negative or missing: the normal form has powers of them")
        if len(x) and x.min() == x.max():
            raise UsageError(f"`{name}` is {x[0]:g} in all runs: leave it out, its effect cannot be determined")
    if not np.isfinite(values).all() or not len(values):
        raise UsageError("the response has no value in some runs")
    order = np.lexsort(tuple(columns.values())[::-1])
    table = np.column_stack(tuple(columns.values()))[order]
    starts = np.flatnonzero(np.append(True, (np.diff(table, axis=0) != 0).any(axis=1)))
    means = np.add.reduceat(values[order], starts) / np.diff(starts, append=len(values))
    return _Points(dict(zip(columns, table[starts].T, strict=True)), means)


def _cautions(points: _Points) -> Iterator[str]:
    for name, x in points.variables.items():
        count = len(np.unique(x))
        if count < FEWEST:
            raise UsageError(f"`{name}` has {count} different values; a term needs at least {FEWEST}, better {ENOUGH}")
        if count < ENOUGH:
            yield f"`{name}` has {count} different values; a model that can be trusted needs at least {ENOUGH}"
        if x.min() < 1:
            yield f"`{name}` has values below 1: terms with its logarithm are left out"


def _alone(points: _Points) -> list[Term]:
    """All terms of the one variable, with negative powers of it where the response falls from its first to its last."""
    ((name, x),) = points.variables.items()
    falls = points.values[-1] < points.values[0] and x.min() > 0
    return [(Factor(name, i, j),) for i, j in (*EXPONENTS, *(FALLING if falls else ())) if not j or x.min() >= 1]


def _line(points: _Points, name: str, warnings: list[str]) -> _Points:
    """The mean of the longest lines along a variable that have the same values of it, the most of such lines."""
    x, others = points.variables[name], [key for key in points.variables if key != name]
    place = np.column_stack([points.variables[key] for key in others])
    _, owner, sizes = np.unique(place, axis=0, return_inverse=True, return_counts=True)
    owner, length = owner.ravel(), int(sizes.max())
    if length < FEWEST:
        raise UsageError(_advice(points, name, owner, int(sizes.argmax())))
    if length < min(ENOUGH, len(np.unique(x))):
        warnings.append(f"only {length} runs differ in `{name}` alone; a model that can be trusted needs {ENOUGH}")
    inside = np.flatnonzero(sizes[owner] == length)
    inside = inside[np.lexsort((x[inside], owner[inside]))]
    sets, which, counts = np.unique(x[inside].reshape(-1, length), axis=0, return_inverse=True, return_counts=True)
    most = int(counts.argmax())
    values = points.values[inside].reshape(-1, length)[which.ravel() == most].mean(axis=0)
    return _Points({name: sets[most]}, values)


def _advice(points: _Points, name: str, owner: np.ndarray[tuple[int], np.dtype[np.intp]], longest: int) -> str:
    """Advice on runs that would make the longest line along a variable long enough."""
    x, there = points.variables[name], owner == longest
    missing = np.setdiff1d(x, x[there])[:ENOUGH]
    held = ", ".join(f"{key} = {column[there][0]:g}" for key, column in points.variables.items() if key != name)
    return (
        f"no {FEWEST} runs differ in `{name}` alone, so its term cannot be separated from those of the others; run also"
        f" {name} = {', '.join(f'{value:g}' for value in missing)} at {held}"
    )


def _products(lines: Sequence[_Points]) -> tuple[list[Term], int]:
    """All products of the best terms along the lines, and how many were tried; a constant is best of some lines."""
    found: list[Factor] = []
    tried = 0
    for line in lines:
        terms = _alone(line)
        fits = _fits(line, terms, 1)
        # A term has to pass its test over all runs: a line alone is too short for it.
        at, row, _ = _ranked(fits, 1.0)[0]
        found += [terms[column][0] for column in fits[at].chosen[row]]
        tried += sum(len(fit.chosen) for fit in fits)
    return [product for count in range(1, len(found) + 1) for product in combinations(found, count)], tried


def _fits(points: _Points, terms: Sequence[Term], most: int) -> list[Fits]:
    """All sums of up to `most` of the terms, by their number; the constant comes first."""
    columns = np.array([value_of(term, points.variables) for term in terms]).reshape(-1, len(points)).T
    varying = float(np.ptp(points.values)) > np.finfo(float).eps * len(points) * float(np.abs(points.values).max())
    largest = min(most, len(terms), len(points) - 2) if varying else 0
    sums = (list(combinations(range(len(terms)), count)) for count in range(largest + 1))
    return [least_squares(columns, np.array(chosen, dtype=np.intp), points.values) for chosen in sums]


def _is_positive(fit: Fits, terms: Sequence[Term], variables: Mapping[str, FloatArray]) -> NDArray[np.bool_]:
    """Mask of the hypotheses that are above 0 at some points."""
    points = len(next(iter(variables.values())))
    with np.errstate(all="ignore"):
        columns = np.stack([value_of(term, variables) for term in terms], axis=1) if terms else np.empty((points, 0))
        values = fit.coefficients[:, :1] + np.einsum("ht,pht->hp", fit.coefficients[:, 1:], columns[:, fit.chosen])
    return np.asarray(((values > 0) & np.isfinite(values)).all(axis=1))


def _ranked(
    fits: Sequence[Fits], level: float, allowed: Sequence[NDArray[np.bool_]] | None = None
) -> list[tuple[int, int, bool]]:
    """Position of each hypothesis in `fits` and whether its terms are significant; the best first."""
    errors, earned, places = [], [], []
    for at, fit in enumerate(fits):
        passed = (probability(fit.term_f, 1, fit.freedom) <= level) & (fit.largest_parts >= LEAST_PART)
        error = np.maximum(fit.smape(fit.left_out), _EXACT)
        if allowed is not None:
            error[~allowed[at]] = np.nan
        errors.append(error)
        earned.append(passed.all(axis=1))
        places += [(at, row) for row in range(len(fit.chosen))]
    error, pass_all = np.concatenate(errors), np.concatenate(earned)
    order = np.lexsort((np.array([at for at, _ in places]), error, ~pass_all))
    return [(*places[one], bool(pass_all[one])) for one in order if np.isfinite(error[one])]


def _doubts(models: Sequence[Normal]) -> Iterator[str]:
    best = models[0]
    if (best.coefficients[1:] < 0).any():
        yield "a term of the best model is negative: outside the range of the runs the model may fall below 0"
    error = max(best.cross_validated, _EXACT)
    for other in models[1:]:
        if other.earned and isclose(max(other.cross_validated, _EXACT), error, rel_tol=_SAME):
            alike = " and ".join(f"`{' + '.join(model.terms)}`" for model in (best, other))
            several = len({factor.name for term in best.factors for factor in term}) > 1
            needed = "runs that differ in several variables at once" if several else "other runs"
            yield f"the runs do not separate {alike}; {needed} may"
            return


def _normal(terms: Sequence[Term], fits: Fits, row: int, earned: bool) -> Normal:
    one = slice(row, row + 1)
    about_mean = fits.squares_about_mean
    part = float(fits.squares[row]) / about_mean if about_mean else 0.0
    return Normal(
        factors=tuple(terms[column] for column in fits.chosen[row]),
        coefficients=fits.coefficients[row],
        standard_errors=fits.standard_errors[row],
        term_f=fits.term_f[row],
        f=float(fits.f[row]),
        p=float(probability(fits.f[one], fits.chosen.shape[1], fits.freedom)[0]),
        smape=float(fits.smape(fits.residuals[one])[0]),
        cross_validated=float(fits.smape(fits.left_out[one])[0]),
        r_squared=1 - part,
        freedom=fits.freedom,
        earned=earned,
    )
