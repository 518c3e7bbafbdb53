"""Models of a kernel fitted to its calls, and the choice between them by calls that were held out.

A model with more terms, with a factor for each processor (M_H) or with other coefficients for large calls (M') always
has smaller residuals at the calls that it was fitted to. Models are therefore compared by their errors at calls with
values of K that were not fitted: a breakpoint in K that does not exist would determine the predicted best NB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.blas_regression import NOISES, Noise, Regression, regression
from whatif.fitting.blas_samples import Samples
from whatif.fitting.linear import non_negative
from whatif.models.quantities import FloatArray
from whatif.vocabulary import MATRIX_TERMS

PER_PROCESSOR: Final = "M_H"
_FOLDS: Final = 5
_RANGES: Final = 20
"""Ranges of K of dgemm; a fold has several, with ranges between them that are fitted."""
_FEW: Final = 20
"""A decade of time with less than 1 / 20 of the calls has a smaller weight than others."""
_CLEARLY: Final = 0.2
"""Least share by which M' must lower the held-out error: it is for an accelerator, not for a nonlinear kernel."""
_MOST_BREAKS: Final = 24
"""Most breakpoints of each size that are tried in a round."""
_SHARES: Final = (1.0, 1.0, 0.1, 0.01)
"""Share of the calls around the present breakpoint that each round of the search tries."""
_MOST_SEARCHED: Final = 2000
"""Calls that the search for breakpoints looks at."""
_FEWEST_OF_SIDE: Final = 25
"""Calls on either side of a breakpoint: five for each term."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Model with a noise, fitted."""

    model: str
    noise: Noise
    names: tuple[str, ...]
    found: Regression
    thresholds: Mapping[str, float]
    """Least sizes of M', by letter."""

    @property
    def parameter_count(self) -> int:
        """Parameters that are not at their bound."""
        return self.found.free + sum(value > 1 for value in self.thresholds.values())

    @property
    def criterion(self) -> float:
        """Bayesian information criterion."""
        more = self.parameter_count - self.found.free
        return self.found.criterion + more * float(np.log(len(self.found.time)))

    @property
    def is_plausible(self) -> bool:
        """Whether an operation of a call that M' sees on an accelerator takes less time than one of the others."""
        products = self.found.mean.coefficients.reshape(-1, len(self.names))[:, 1:2]
        return bool((products[1:] < products[:1]).all())

    def predicted(self, samples: Samples) -> FloatArray:
        """Mean times of calls, on processors that are as the model."""
        times = samples.terms(self.names) @ self.found.mean.coefficients.reshape(-1, len(self.names)).T
        return (
            np.where(_inside(samples, self.thresholds), times[:, -1], times[:, 0]) if self.thresholds else times[:, 0]
        )


def candidates(samples: Samples) -> Iterator[Candidate]:
    """Every model with every noise, as far as there are more calls than terms."""
    product = samples.names[1]
    bases: list[tuple[str, tuple[str, ...]]] = [("-0", ("constant",)), ("-1", ("constant", product))]
    if samples.kernel == "dgemm":
        bases += [("-2", MATRIX_TERMS), ("'", MATRIX_TERMS)]
    for suffix, names in bases:
        thresholds = _thresholds(samples) if suffix == "'" else {}
        for noise in NOISES:
            for lead in ("M", PER_PROCESSOR):
                found = _fitted(samples, f"{lead}{suffix}", noise, names, thresholds)
                if found is not None:
                    yield found


def _fitted(
    samples: Samples, model: str, noise: Noise, names: tuple[str, ...], thresholds: Mapping[str, float]
) -> Candidate | None:
    """A model fitted to calls; None if these are too few for it."""
    count, per_processor = len(samples.time), model.startswith(PER_PROCESSOR)
    if (model[-1] == "'" and not thresholds) or count <= 2 * len(names):
        return None
    groups = samples.groups if per_processor else None
    if per_processor and not 1 < len(samples.representatives) < count - len(names):
        return None
    terms = samples.terms(names)
    if thresholds:
        inside = _inside(samples, thresholds)[:, None]
        terms = np.hstack((terms * ~inside, terms * inside))
    return Candidate(
        model, noise, names, regression(terms, samples.terms(names), samples.time, noise, groups), thresholds
    )


def held_out_residuals(samples: Samples, tried: Sequence[Candidate]) -> dict[str, FloatArray]:
    """|ln(fitted / measured)| of each call by models that were fitted without it, with the noise of least criterion.

    dgemm is held out by ranges of K, other kernels call by call. Models that parts of the calls do not determine are
    left out.
    """
    best = {item.model: item for item in sorted(tried, key=lambda item: -item.criterion)}
    folds = _folds(samples)
    found: dict[str, FloatArray] = {model: np.empty(len(samples.time)) for model in best}
    for fold in range(_FOLDS):
        held = folds == fold
        others, left_out = samples.at(~held), samples.at(held)
        limits = _thresholds(others) if any(item.thresholds for item in best.values()) else {}
        for model, item in best.items():
            fitted = _fitted(others, model, item.noise, item.names, limits if item.thresholds else {})
            if fitted is None:
                found.pop(model, None)
            elif model in found:
                factors = np.ones(1 + samples.groups.max())
                factors[np.unique(samples.groups[~held])] = fitted.found.mean.factors
                times = fitted.predicted(left_out) * factors[samples.groups[held]]
                found[model][held] = np.abs(np.log(np.maximum(times, np.finfo(float).tiny) / left_out.time))
    return found


def _folds(samples: Samples) -> NDArray[np.intp]:
    """[call]: its fold, whatever the order of the rows: ranges of K of dgemm, every fifth call by S of others.

    Single values of K would not do: a neighbouring K that was fitted says nearly the same.
    """
    known, depth = np.unique(samples.sizes.get("k", samples.time), return_inverse=True)
    if samples.kernel == "dgemm" and len(known) >= _FOLDS:
        return np.asarray(depth * min(_RANGES, len(known)) // len(known) % _FOLDS)
    folds = np.empty(len(samples.time), dtype=np.intp)
    folds[_ascending(samples)] = np.arange(len(folds)) % _FOLDS
    return folds


def _ascending(samples: Samples) -> NDArray[np.intp]:
    """Calls by S, then by time, whatever the order of the rows."""
    return np.lexsort((samples.time, samples.terms(samples.names[1:2])[:, 0]))


def decade_weights(time: FloatArray) -> FloatArray:
    """Weights of calls, with which those of every decade of time count alike, unless it has few; their sum is 1."""
    decades = np.floor(np.log10(time)).astype(int)
    counts = np.maximum(np.bincount(decades - decades.min()), len(time) / _FEW)
    weights = 1.0 / counts[decades - decades.min()]
    return np.asarray(weights / weights.sum())


def preferred(tried: Sequence[Candidate], residuals: Mapping[str, FloatArray], weights: FloatArray) -> str:
    """Model of least held-out error; one with more parameters only where it is better by more than chance.

    That is two standard errors of the difference; M' has to be better by `_CLEARLY` as well, and plausible.
    """
    counts = {item.model: item.parameter_count for item in tried if item.model in residuals and item.is_plausible}
    chosen = ""
    for model in sorted(counts, key=lambda model: (model[-1] == "'", counts[model])):
        if not chosen:
            chosen = model
            continue
        gain = residuals[chosen] - residuals[model]
        needed = 2 * float(np.sqrt((weights**2 * (gain - weights @ gain) ** 2).sum()))
        if model[-1] == "'":
            needed = max(needed, _CLEARLY * float(weights @ residuals[chosen]))
        chosen = model if float(weights @ gain) > needed else chosen
    return chosen


def _inside(samples: Samples, thresholds: Mapping[str, float]) -> NDArray[np.bool_]:
    inside = [samples.sizes[letter] >= least for letter, least in thresholds.items()]
    return np.asarray(np.logical_and.reduce(inside), dtype=np.bool_)


def _thresholds(samples: Samples) -> dict[str, float]:
    """Least M, N and K of the calls of another kind (M'), of least criterion; empty if there are too few calls.

    Every size is tried at several places while the others stay, in turn, beginning with one limit for all three.
    """
    some = samples.at(np.sort(_ascending(samples)[:: -(-len(samples.time) // _MOST_SEARCHED)]))
    sizes = np.column_stack([some.sizes[letter] for letter in "mnk"])
    criterion = cache(partial(_broken, sizes, some.terms(MATRIX_TERMS) / some.time[:, None]))
    ranked = np.sort(sizes, axis=0)
    starts: list[tuple[float, ...]] = [(at, at, at) for at in _places(np.sort(sizes.min(axis=1)), 0.0, 1.0)]
    best = min(starts, key=criterion)
    for share in _SHARES:
        for at in range(3):
            places = [1.0, *_places(ranked[:, at], best[at], share)]
            best = min([best, *((*best[:at], place, *best[at + 1 :]) for place in places)], key=criterion)
    return dict(zip("mnk", best, strict=True)) if np.isfinite(criterion(best)) else {}


def _places(ranked: FloatArray, middle: float, share: float) -> list[float]:
    """Sizes to try for a breakpoint, evenly among those that are at most a share of all places from the middle."""
    place, reach = int(np.searchsorted(ranked, middle)), int(np.ceil(share * len(ranked)))
    low, high = max(place - reach, 0), min(place + reach, len(ranked) - 1)
    return [float(size) for size in np.unique(ranked[np.linspace(low, high, _MOST_BREAKS).round().astype(int)])]


def _broken(sizes: FloatArray, relative: FloatArray, limits: tuple[float, ...]) -> float:
    """Criterion of lines in M N K on both sides of limits, from [call, size] and [call, term] relative to its time."""
    inside: NDArray[np.bool_] = np.logical_and.reduce(sizes >= limits, axis=1)
    count, rest, used = len(inside), 0.0, sum(limit > 1 for limit in limits)
    for side in (relative[inside], relative[~inside]):
        if len(side) < _FEWEST_OF_SIDE:
            return np.inf
        found = non_negative(side, np.ones(len(side)), np.ones(len(side)))
        rest += float(((side @ found - 1) ** 2).sum())
        used += int((found > 0).sum())
    return count * float(np.log(max(rest / count, np.finfo(float).tiny))) + used * float(np.log(count))
