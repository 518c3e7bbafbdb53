"""The parameters of a structured-grid program from its runs: non-negative least squares, and how well they are known.

The coefficients are those with the least squares that are not negative. Their uncertainty is that of least squares
without the bound, whose intervals, cut off at 0, have the stated coverage; or that of a bootstrap of the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, require_level
from whatif.fitting.fit_result import root_mean_square
from whatif.fitting.grid_runs import RATES, Columns, GridRuns, LinearRows, rows_of, runs_of, total_terms
from whatif.fitting.linear import non_negative
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.vocabulary import GridWeighting

SINGULAR: Final = 1e-7
"""Share of a column that must be its own, or it is not identified."""
_FREEDOM: Final = 1e-6
_PROPORTION: Final = 1e-6
"""Relative error of the proportions of inseparable terms from rounding."""
_WHOLE: Final = 1e-3
"""Relative error of H and I of a prediction from rounding to whole counts."""
_ROUNDS: Final = 2
_FEWEST: Final = 3
"""Runs of a case that can be drawn again: a lone one would come out as if it were exact."""


@dataclass(frozen=True, eq=False)
class GridFit:
    """Coefficients of the linear form, K_w and K_b as inverses, and their uncertainty."""

    runs: GridRuns
    columns: Columns
    rows: LinearRows
    scale: FloatArray
    """Shape (rows,): what a row's residual is divided by, in s."""
    coefficients: FloatArray
    """Shape (columns,), not negative, s; 0 where it is not identified."""
    unbounded: FloatArray
    """Shape (columns,): least squares without the bound; NaN where it is not identified."""
    pulls: FloatArray
    """Shape (columns, rows): what a residual, divided by its scale, moves each coefficient."""
    weighting: GridWeighting
    level: float
    drawn: FloatArray | None = None
    """Shape (draws, columns): coefficients of runs drawn again."""

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Mask of the coefficients that the runs identify, of shape (columns,)."""
        return np.isfinite(self.unbounded)

    @property
    def likely(self) -> FloatArray:
        """The coefficients, with that of a case that was never run as the others have it on the average."""
        rates = np.array([name == "cell_rate" for name in self.columns.names])
        never = rates & ~np.isin(np.array(self.columns.cases, dtype=object), self.runs.cases)
        others = self.coefficients[rates & ~never]
        return np.where(never, others.mean(), self.coefficients)

    @property
    def bound(self) -> NDArray[np.bool_]:
        """Mask of the coefficients that are identified and at their bound, of shape (columns,)."""
        return np.asarray(self.identified & (self.coefficients == 0))

    @cached_property
    def spread(self) -> Mapping[str, tuple[float, float]]:
        """Standard deviation of residuals over their scale, and their degrees of freedom, by kind of row.

        NaN where none was.
        """
        terms = self.rows.terms[:, self.identified] / self.scale[:, None]
        leverage = np.einsum("rc,cr->r", terms, self.pulls[self.identified])
        residuals = self.rows.values / self.scale - terms @ self.unbounded[self.identified]
        found = {}
        for kind in dict.fromkeys(self.rows.kind.tolist()):
            its = self.rows.kind == kind
            free = float((1 - leverage[its]).sum())
            variance = float((residuals[its] ** 2).sum()) / free if free > _FREEDOM else np.nan
            found[kind] = variance**0.5, free
        return found

    def variances(self, weights: FloatArray) -> FloatArray:
        """Variances by kind of row of sums of coefficients, of shape (kinds, ..) for weights (.., columns)."""
        along = np.where(self.identified, weights, 0.0) @ np.where(self.identified[:, None], self.pulls, 0.0)
        parts = [(along[..., self.rows.kind == kind] ** 2).sum(axis=-1) for kind in self.spread]
        return np.stack([self._squares(part, kind) for part, kind in zip(parts, self.spread, strict=True)])

    def _squares(self, part: FloatArray, kind: str) -> FloatArray:
        return np.where(part > 0, part * self.spread[kind][0] ** 2, 0.0)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients, (columns, columns), of the design or the draws; NaN where not identified."""
        # A kind without freedom leaves its own coefficients unknown, not those it has nothing to do with.
        moved = np.where(self.pulls == 0, 0.0, self.pulls * self._row_deviations)
        design = np.asarray(moved @ moved.T)
        if self.drawn is None:
            return design
        identified = self.identified & np.isfinite(np.diag(design))
        return np.where(np.outer(identified, identified), np.cov(self.drawn.T), np.nan)

    @property
    def deviations(self) -> FloatArray:
        """Standard errors of the coefficients, of shape (columns,); NaN where they are not identified."""
        return np.where(self.identified, np.sqrt(np.diag(self.covariance)), np.nan)

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the coefficients at the level, of shape (columns,), never below 0."""
        if self.drawn is not None:
            low, high = np.quantile(self.drawn, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        else:
            half = self.reach(self.variances(np.eye(len(self.columns)))) * self.deviations
            low, high = np.maximum(self.unbounded - half, 0.0), np.maximum(self.unbounded + half, 0.0)
        identified = np.where(np.isfinite(self.deviations), 1.0, np.nan)
        return identified * np.minimum(low, self.coefficients), identified * np.maximum(high, self.coefficients)

    def reach(self, variances: FloatArray) -> FloatArray:
        """Standard deviations that an interval reaches, for variances of shape (kinds, ..): Student's t.

        Freedom: F. E. Satterthwaite, Biometrics Bulletin 2, 1946.
        """
        from scipy.special import stdtrit

        free = np.array([count for _, count in self.spread.values()])
        free = np.maximum(free, _FREEDOM).reshape((-1,) + (1,) * (variances.ndim - 1))
        squares = (np.nan_to_num(variances) ** 2 / free).sum(axis=0)
        freedom = np.nan_to_num(variances).sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0)
        return np.asarray(stdtrit(np.where(squares > 0, freedom, 1.0), (1 + self.level) / 2))

    @cached_property
    def free_covariance(self) -> FloatArray:
        """Covariance of the identified coefficients, those at their bound held at 0; NaN for these.

        The errors of predictions follow from them, around the coefficients before the bound.
        """
        free = self.coefficients > 0
        if self.drawn is not None:
            return np.where(np.outer(free, free), self.covariance, np.nan)
        terms = self.rows.terms[:, free] / self.scale[:, None]
        pulls = _pulls(terms)
        moved = np.where(pulls == 0, 0.0, pulls * self._row_deviations)
        found = np.full((len(free), len(free)), np.nan)
        found[np.ix_(free, free)] = moved @ moved.T
        return found

    @property
    def _row_deviations(self) -> FloatArray:
        """Standard deviation of each row over its scale, of shape (rows,); NaN where it is unknown."""
        return np.array([self.spread[kind][0] for kind in self.rows.kind.tolist()])

    def scatter(self, kind: str) -> float:
        """Relative scatter of single runs in one kind of time; NaN where it is not identified."""
        if kind not in self.spread or self.weighting == "relative":
            return self.spread.get(kind, (np.nan, 0.0))[0]
        return root_mean_square(self.residuals[self.rows.kind == kind])

    @property
    def residuals(self) -> FloatArray:
        """(measured - fitted) / fitted of each row; of a fitted time below the floor of the row, over that floor."""
        fitted = self.rows.terms @ self.coefficients
        return (self.rows.values - fitted) / np.maximum(fitted, self.rows.floor)

    def index(self, name: str, case: str = "") -> int:
        """The place of a parameter, K_w by its case."""
        return list(zip(self.columns.names, self.columns.cases, strict=True)).index((name, case))

    def value(self, at: int) -> float:
        """A parameter as the model has it: a rate in 1/s, infinite at its bound, or a time in s."""
        number = float(self.coefficients[at])
        return number if self.columns.names[at] not in RATES else 1 / number if number > 0 else float("inf")


def fit_grid(
    table: Table | GridRuns,
    *,
    weighting: GridWeighting = "relative",
    reduction: bool = False,
    level: float = 0.95,
    draws: int = 0,
    seed: int = 0,
    cases: Sequence[str] = (),
) -> GridFit:
    """Fit K_w of each case and the parameters that all share to runs, as `runs_of` takes them.

    `equal`: the squares of Eq. 5 (P T_w / I), of T_c / I and of the rest of T_t, as the paper has them; `relative`: of
    the same, each over its fitted value, for scatter that grows with the time. `reduction` adds K_r (Eq. 6). With
    `draws` the standard errors and intervals are those of that many fits to runs drawn again within their case. `cases`
    are further ones, that were never run.
    Source: Sharif et al., section II.B.
    """
    runs = table if isinstance(table, GridRuns) else runs_of(table)
    if not len(runs):
        raise UsageError("no runs")
    require_level(level)
    for case in runs.cases if draws else ():
        if (runs.case == case).sum() < _FEWEST:
            whose = f"case `{case}` has" if case else "there are"
            raise UsageError(f"--bootstrap: {whose} fewer than {_FEWEST} runs, which hardly vary when drawn again")
    known = dict.fromkeys((*runs.cases, *cases))
    columns = Columns.of(tuple(known), reduction=reduction, intra_node=bool(runs.inside.any()))
    rows = rows_of(runs, columns)
    identified = independent(rows.terms)
    scale = _means(rows) if weighting == "equal" else np.maximum(rows.values, rows.floor)
    coefficients = _solved(rows, scale, identified)
    for _ in range(_ROUNDS if weighting == "relative" else 0):
        # Over the measured value, runs that happened to be fast would count for more than slow ones.
        scale = np.maximum(rows.terms @ coefficients, rows.floor)
        coefficients = _solved(rows, scale, identified)
    pulls = np.zeros((len(columns), len(rows.values)))
    pulls[identified] = _pulls(rows.terms[:, identified] / scale[:, None])
    unbounded = np.where(identified, pulls @ (rows.values / scale), np.nan)
    drawn = _drawn(runs, rows, scale, identified, draws, seed) if draws else None
    return GridFit(runs, columns, rows, scale, coefficients, unbounded, pulls, weighting, level, drawn)


def independent(terms: FloatArray) -> NDArray[np.bool_]:
    """Mask of the columns that are not sums of earlier ones, of shape (columns,)."""
    basis = np.zeros((len(terms), 0))
    kept = np.zeros(terms.shape[1], dtype=np.bool_)
    # Rows of one kind are all in one unit, those of another are not: each row counts by its largest term.
    norms = _norms(terms)
    for at, column in enumerate((terms / norms).T):
        own = column - basis @ (basis.T @ column)
        own -= basis @ (basis.T @ own)
        kept[at] = np.linalg.norm(own) > SINGULAR
        if kept[at]:
            basis = np.column_stack((basis, own / np.linalg.norm(own)))
    return kept


def normalised(terms: FloatArray) -> FloatArray:
    """Columns of length 1; those without a length stay."""
    return terms / _norms(terms)


def _norms(terms: FloatArray) -> FloatArray:
    norms = np.linalg.norm(terms, axis=0)
    return np.where(norms > 0, norms, 1.0)


def estimable(fit: GridFit, weights: FloatArray) -> NDArray[np.bool_]:
    """Mask of sums of coefficients that the runs identify: inseparable terms must have the runs' proportions."""
    terms, weights = normalised(fit.rows.terms), weights / _norms(fit.rows.terms)
    dependent = np.linalg.lstsq(terms[:, fit.identified], terms[:, ~fit.identified], rcond=None)[0]
    off = np.abs(weights[:, fit.identified] @ dependent - weights[:, ~fit.identified])
    largest = np.maximum(np.abs(weights).max(axis=1, keepdims=True), np.finfo(float).tiny)
    own = np.maximum(np.abs(weights[:, fit.identified]) @ np.abs(dependent), np.abs(weights[:, ~fit.identified]))
    return np.asarray((off <= np.maximum(_PROPORTION * largest, _WHOLE * own)).all(axis=1))


def _pulls(terms: FloatArray) -> FloatArray:
    """Effect of each row on the coefficients of least squares, of shape (columns, rows); exactly 0 without one."""
    norms = _norms(terms)
    pulls = np.linalg.pinv(terms / norms, rcond=SINGULAR / 100)
    rounding = SINGULAR**2 * np.abs(pulls).max(axis=1, keepdims=True)
    return np.asarray(np.where(np.abs(pulls) > rounding, pulls, 0.0) / norms[:, None])


def _means(rows: LinearRows) -> FloatArray:
    """One scale for all rows of a kind, so that those of different kinds can be compared."""
    scale = np.ones(len(rows.values))
    for kind in dict.fromkeys(rows.kind.tolist()):
        its = rows.kind == kind
        scale[its] = max(float(np.abs(rows.values[its]).mean()), float(rows.floor[its].max()))
    return scale


def _solved(rows: LinearRows, scale: FloatArray, identified: NDArray[np.bool_]) -> FloatArray:
    coefficients = np.zeros(len(identified))
    coefficients[identified] = non_negative(rows.terms[:, identified], rows.values, scale)
    return coefficients


def _drawn(
    runs: GridRuns, rows: LinearRows, scale: FloatArray, identified: NDArray[np.bool_], draws: int, seed: int
) -> FloatArray:
    """Coefficients of runs drawn again, those of a case among themselves: every K_w keeps its runs."""
    random = np.random.default_rng(seed)
    found = np.zeros((draws, len(identified)))
    groups = [np.flatnonzero(runs.case == case) for case in runs.cases]
    for at in range(draws):
        count = np.bincount(np.concatenate([random.choice(group, len(group)) for group in groups]), minlength=len(runs))
        weight = np.sqrt(count[rows.run])
        # A run that was drawn twice counts twice: its residual over a scale that is smaller by the root of two.
        used = weight > 0
        found[at, identified] = non_negative(
            rows.terms[used][:, identified], rows.values[used], scale[used] / weight[used]
        )
    return found


def held_out_times(fit: GridFit, most_fits: int = 50) -> FloatArray:
    """T_t of each run from a fit to the runs of other settings, of shape (runs,), in s.

    NaN where those do not identify it, as for the only run of a case. Repetitions are left out together. Settings are
    left out one by one, or in `most_fits` groups.
    """
    runs = fit.runs
    rows = zip(runs.cells, runs.processes, runs.iterations, runs.halo_cells, runs.case, strict=True)
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(row, len(numbers)) for row in rows]) % most_fits
    found = np.full(len(runs), np.nan)
    reduction = "reduction_time" in fit.columns.names
    for at in range(min(len(numbers), most_fits)):
        left, others = runs.at(group == at), runs.at(group != at)
        if not len(others):
            continue
        again = fit_grid(others, weighting=fit.weighting, reduction=reduction)
        weights = total_terms(left, again.columns)
        known = np.isin(left.case.astype(str), others.cases) & estimable(again, weights)
        if "intra_node_latency" not in again.columns.names:
            known &= ~left.inside
        found[np.flatnonzero(group == at)[known]] = weights[known] @ again.coefficients
    return found
