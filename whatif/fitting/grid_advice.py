"""Parameters that runs do not identify, predictions of other runs, and the run to make next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.grid import GridFit, estimable, independent, normalised
from whatif.fitting.grid_runs import RATES, GridRuns, rows_of, terms_of, total_terms
from whatif.models.quantities import FloatArray
from whatif.models.structured_grid import inter_node_share

_OF_HALOS: Final = ("packing_time", "halo_rate", "intra_node_halo_rate")
UNKNOWN_NOISE: Final = 0.05
"""Relative scatter that is assumed for too few runs to estimate it."""
_LEAST_NOISE: Final = 1e-4
"""Least relative scatter of repeated runs."""
_PRIORS: Final = (1e2, 1e3)
"""Largest time of a coefficient, before any run determines it, in times of all runs: two guesses."""
_GUESSED: Final = 1.5
"""Growth of half an interval between the guesses, above which it depends on the guess."""
_ALIKE: Final = 1e-6
_WORDS: Final[Mapping[str, str]] = {"halo_cells": "H", "cells": "C", "processes": "P", "iterations": "I"}


def constants(runs: GridRuns) -> list[str]:
    """Settings that are equal in all runs, such as `H = 5400`; C / P where C differs."""
    values = {_WORDS[name]: getattr(runs, name) for name in _WORDS}
    if np.ptp(runs.cells) > 0:
        values["C / P"] = runs.cells / runs.processes
    return [f"{name} = {item[0]:g}" for name, item in values.items() if np.ptp(item) <= _ALIKE * abs(item).max()]


def unidentified(fit: GridFit) -> Iterator[str]:
    """Parameters that the runs do not identify, a line each, with the run that would identify them."""
    identified, terms, columns = fit.identified, normalised(fit.rows.terms), fit.columns
    for at in np.flatnonzero(~identified):
        name = columns.symbol(int(at))
        if columns.names[at] == "cell_rate" and columns.cases[at] not in fit.runs.cases:
            yield f"{name}: no run of this case; one would identify it, until then it counts as the others do"
            continue
        held = f"{_time(fit, int(at))} is fixed at 0{_remedy(fit, int(at))}"
        if not fit.rows.terms[:, at].any():
            yield f"{name}: no run has a term with it; {held}"
            continue
        earlier = np.flatnonzero(identified)
        parts = np.linalg.lstsq(terms[:, earlier], terms[:, at], rcond=None)[0]
        others = " and ".join(columns.symbol(int(item)) for item in earlier[np.abs(parts) > _ALIKE])
        yield f"{name} and {others} are not separately identifiable; {held}"


def _time(fit: GridFit, at: int) -> str:
    """A parameter that is a time, or the inverse of one that is a rate."""
    return f"1/{fit.columns.symbol(at)}" if fit.columns.names[at] in RATES else fit.columns.symbol(at)


def _remedy(fit: GridFit, at: int) -> str:
    """Change of settings by which one more run would identify a coefficient; empty without any."""
    if fit.columns.names[at] in _OF_HALOS and not fit.runs.halo_cells.any():
        return "; a column `halo_cells` would identify it"
    if fit.columns.names[at] in ("latency", "halo_rate") and not fit.runs.share.any():
        return "; runs on several nodes would identify it"
    # A single process would show nothing of exchanges.
    first = fit.runs.at([int(fit.runs.processes.argmax())])
    found = []
    for name in _WORDS:
        other = _twice(first, name)
        more = np.concatenate((fit.rows.terms, rows_of(other, fit.columns).terms))
        if independent(more)[at]:
            found.append(_WORDS[name])
    if found:
        return f"; a run that changes only {' or '.join(found)} would identify it"
    if (fit.rows.kind == "total").any():
        return "; runs with computation_time and communication_time next to the total would identify it"
    return "" if np.isfinite(fit.runs.total_time).any() else "; a column `total_time` would identify it"


def _twice(runs: GridRuns, name: str) -> GridRuns:
    """Runs with twice as much of one setting; with more processes, more of a halo may leave the node."""
    other = runs.changed(**{name: 2 * np.maximum(getattr(runs, name), 1.0)})
    node = other.ranks_per_node
    share = np.where(np.isnan(node), other.share, inter_node_share(other.processes, node))
    return other.changed(share=share) if name == "processes" else other


def weakly_identified(fit: GridFit) -> Iterator[str]:
    """Parameters at their bound, and strongly correlated pairs, a line each."""
    columns = fit.columns
    _, high = fit.intervals
    for at in np.flatnonzero(fit.bound):
        most = f"; at {fit.level:.0%} it is at most {high[at]:.3g} s" if np.isfinite(high[at]) else ""
        if high[at] == 0:
            most = "; the runs contradict a time of at least 0: the model does not fit"
        yield f"{_time(fit, int(at))} is at its bound of 0{most}"
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = fit.covariance / np.outer(fit.deviations, fit.deviations)
    for a, b in zip(*np.where(np.triu(np.abs(correlation), 1) > 0.95), strict=True):
        pair = f"{columns.symbol(int(a))} and {columns.symbol(int(b))}"
        yield f"{pair} are weakly identified: their correlation is {correlation[a, b]:.2f}"


@dataclass(frozen=True, eq=False)
class PredictedRuns:
    """Times of runs that were never made, each array of shape (runs,), in s."""

    runs: GridRuns
    computation_time: FloatArray
    communication_time: FloatArray
    setup_time: FloatArray
    mean_reach: FloatArray
    """Half the interval of the mean of many such runs; NaN where it is not identified."""
    reach: FloatArray
    """Half the interval of a single such run."""

    @property
    def total_time(self) -> FloatArray:
        """T_t (Eq. 4)."""
        return np.asarray(self.computation_time + self.communication_time + self.setup_time)


def predict(fit: GridFit, runs: GridRuns) -> PredictedRuns:
    """T_w, T_c and T_o of runs with the half-widths of intervals at the fit's level.

    The interval of a mean is that of the coefficients; that of one run has the scatter of runs as well.
    """
    parts = {name: terms @ fit.likely for name, terms in terms_of(runs, fit.columns).items()}
    weights = total_terms(runs, fit.columns)
    mean, single = _spans(fit, runs, weights)
    known = estimable(fit, weights)
    steps = runs.iterations
    times = steps * parts["computation"], steps * parts["communication"], parts["setup"]
    return PredictedRuns(runs, *times, np.where(known, mean, np.nan), np.where(known, single, np.nan))


def _spans(fit: GridFit, runs: GridRuns, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    variances = fit.variances(weights)
    if fit.drawn is not None:
        drawn = np.var(fit.drawn @ weights.T, axis=0)
        variances = variances * drawn / np.where(variances.sum(axis=0) > 0, variances.sum(axis=0), 1.0)
    scatter = np.zeros_like(variances)
    rows, scale = _as_rows(fit, runs)
    for at, kind in enumerate(fit.spread):
        its = np.flatnonzero(rows.kind == kind)
        scatter[at, rows.run[its]] = (fit.spread[kind][0] * scale[its] * rows.factor[its]) ** 2
    spans = [fit.reach(item) * np.sqrt(item.sum(axis=0)) for item in (variances, variances + scatter)]
    return spans[0], spans[1]


def _as_rows(fit: GridFit, runs: GridRuns) -> tuple[Any, FloatArray]:
    """The rows that runs would give if they were timed as the others were, and the scale of each."""
    parts = {name: terms @ fit.likely for name, terms in terms_of(runs, fit.columns).items()}
    timed = {
        name: bool(np.isfinite(getattr(fit.runs, name)).any()) for name in ("computation_time", "communication_time")
    }
    whole = total_terms(runs, fit.columns) @ fit.likely
    nothing = np.full(len(runs), np.nan)
    times = {
        name: runs.iterations * parts[name.removesuffix("_time")] if its else nothing for name, its in timed.items()
    }
    some = np.isfinite(fit.runs.total_time).any()
    rows = rows_of(runs.changed(**times, total_time=whole if some else nothing), fit.columns)
    scale = np.maximum(rows.values, rows.floor)
    if fit.weighting == "equal":
        for kind in fit.spread:
            scale[rows.kind == kind] = fit.scale[fit.rows.kind == kind][0]
    return rows, scale


@dataclass(frozen=True, eq=False)
class Advice:
    """Runs that could be made next, the most informative first, each array of shape (candidates,)."""

    runs: GridRuns
    total_time: FloatArray
    """Predicted total times, in s."""
    before: float
    """Half the interval of the target's mean time now, in s; NaN where it is not identified."""
    after: FloatArray
    """Half the interval of the target's mean time with each run, in s."""
    assumed_noise: bool
    """Whether the scatter of runs is taken to be `UNKNOWN_NOISE`, as there are too few to estimate it."""

    @property
    def cost(self) -> FloatArray:
        """Processes times time, in s."""
        return self.total_time * self.runs.processes


def next_run(fit: GridFit, target: GridRuns, candidates: GridRuns) -> Advice:
    """Interval of the mean total time of one target after each of some runs.

    One step of a c-optimal design: with M = sum of a aᵀ / s² over the rows a of the runs, in units of their scatter s,
    the target t has the variance tᵀ M⁻¹ t, and with the rows R of a run tᵀ M⁻¹ t - v (I + R M⁻¹ Rᵀ)⁻¹ vᵀ, v = tᵀ M⁻¹ Rᵀ
    (A. C. Atkinson, A. N. Donev and R. D. Tobias, Optimum Experimental Designs, 2007, sections 10.2 and 11.2).
    """
    noise = {kind: max(spread, _LEAST_NOISE) for kind, (spread, _) in fit.spread.items() if np.isfinite(spread)}
    norms = np.linalg.norm(fit.rows.terms / fit.scale[:, None], axis=0)
    rows, scale = _as_rows(fit, candidates)
    # What no run has a term with is measured by the runs that would have.
    reserve = np.linalg.norm(rows.terms / scale[:, None], axis=0)
    norms = np.where(norms > 0, norms, np.where(reserve > 0, reserve, 1.0))
    made = _whitened(fit.rows.terms, fit.scale, fit.rows.kind, noise) / norms
    more = _whitened(rows.terms, scale, rows.kind, noise) / norms
    kinds = list(dict.fromkeys(rows.kind.tolist()))
    blocks = np.zeros((len(candidates), len(kinds), len(norms)))
    for at, kind in enumerate(kinds):
        blocks[rows.run[rows.kind == kind], at] = more[rows.kind == kind]
    weights = total_terms(target, fit.columns)[0] / norms
    (before, after), (other_before, other_after) = (_variances(made, blocks, weights, prior) for prior in _PRIORS)
    reach = float(fit.reach(fit.variances(total_terms(target, fit.columns)))[0])
    total = total_terms(candidates, fit.columns) @ fit.likely
    half = reach * np.sqrt(np.where(other_after > _GUESSED**2 * after, np.nan, after))
    now = np.nan if other_before > _GUESSED**2 * before else reach * before**0.5
    worth = np.round(np.nan_to_num(half / (reach * before**0.5), nan=np.inf), 4)
    order = np.lexsort((total * candidates.processes, worth))
    return Advice(candidates.at(order), total[order], float(now), half[order], len(noise) < len(fit.spread))


def _variances(made: FloatArray, blocks: FloatArray, weights: FloatArray, prior: float) -> tuple[float, FloatArray]:
    """Variances of the target, in units of the scatter: now, and with each candidate's (candidates, rows, columns)."""
    inverse = np.linalg.inv(made.T @ made + np.eye(len(weights)) / prior**2)
    reached = blocks @ inverse
    along = reached @ weights
    inner = np.eye(blocks.shape[1]) + reached @ np.swapaxes(blocks, 1, 2)
    gain = np.einsum("ci,ci->c", along, np.linalg.solve(inner, along[..., None])[..., 0])
    variance = float(weights @ inverse @ weights)
    return variance, np.maximum(variance - gain, 0.0)


def _whitened(terms: FloatArray, scale: FloatArray, kinds: NDArray[Any], noise: Mapping[str, float]) -> FloatArray:
    deviations = np.array([noise.get(kind, UNKNOWN_NOISE) for kind in kinds.tolist()])
    return np.asarray(terms / (scale * deviations)[:, None])
