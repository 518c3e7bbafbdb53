"""Calibrations of a kernel to what it costs on one process: mean, deviation, and how processors differ.

The models are those of Cornebize et al. 2019, section 6.1: M-0 a constant, M-1 a line in the kernel's one product, M-2
all products, M' two of these, one for calls whose sizes are all large; M_H the same with a factor for each processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.fitting.fit_result import Fit
from whatif.fitting.input_checks import LONGEST_TIME, POOR
from whatif.fitting.processors import Processors, processors
from whatif.fitting.regression import NOISES, Noise, Regression, non_negative, regression
from whatif.models.quantities import FloatArray
from whatif.schema.blas_kernels import KERNEL_NAMES
from whatif.table import Column, Table
from whatif.units import ONE, SECOND

MODELS: Final = ("M-0", "M-1", "M-2", "M'", "M_H-0", "M_H-1", "M_H-2", "M_H'")
MATRIX_TERMS: Final = ("constant", "mnk", "mn", "mk", "nk")
SIZE_TERMS: Final = ("constant", "size")
FEWEST_POINTS: Final = 6
"""Calls without which nothing is fitted."""
_PER_PROCESSOR: Final = "M_H"
# The sizes whose product is S; a triangular solve has one from the left and one from the right.
_PRODUCTS: Final[Mapping[str, tuple[str, ...]]] = {
    "dtrsm": ("mmn", "mnn"), "dtrsv": ("n",), "daxpy": ("n",), "dscal": ("n",), "idamax": ("n",),
}  # fmt: skip
_SIDES: Final = {"mmn": "M M N (from the left)", "mnn": "M N N (from the right)"}
_MOST_BREAKS: Final = 24
"""Places for a breakpoint of each size that are tried."""
_SHARES: Final = (1.0, 1.0, 0.1, 0.01)
"""Rounds of that search, each among so much of the calls around the place found before."""
_MOST_SEARCHED: Final = 2000
"""Calls that the search for breakpoints looks at."""
_FEWEST_OF_SIDE: Final = 25
"""Calls on either side of a breakpoint: five for each term."""


@dataclass(frozen=True, eq=False)
class KernelFit:
    """Fitted costs of one kernel."""

    kernel: str
    model: str
    """One of `MODELS`."""
    noise: str
    """One of `NOISES`."""
    fits: tuple[Fit, ...]
    """Of `kernels.KERNEL`, of its `deviation` unless the noise is N-0, and of `offloaded` for M'."""
    processors: Processors | None
    """Processors of model M_H, else None."""
    comparison: Table
    """`kernel`, `model`, `noise`, `parameter_count`, `criterion` (BIC), `error` (root mean square, relative)."""
    points: Table
    """Fitted calls, with `time`, `fitted_time` and `residual`, (fitted - measured) / measured."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Samples:
    kernel: str
    sizes: Mapping[str, FloatArray]
    """By column of the file, with the product S as `size` where the kernel has one."""
    time: FloatArray
    nodes: NDArray[np.object_]
    cpus: NDArray[np.object_]
    groups: NDArray[np.intp]
    """Number of the processor and calibration of each call."""
    representatives: NDArray[np.intp]
    """One call of each group."""

    @property
    def names(self) -> tuple[str, ...]:
        return MATRIX_TERMS if self.kernel == "dgemm" else SIZE_TERMS

    def terms(self, names: tuple[str, ...]) -> FloatArray:
        """The products of the sizes, of shape (calls, names)."""
        one = np.ones_like(self.time)
        if self.kernel != "dgemm":
            return np.stack([one if name == "constant" else self.sizes["size"] for name in names], axis=1)
        factors = ([] if name == "constant" else [self.sizes[letter] for letter in name] for name in names)
        return np.stack([reduce(np.multiply, factor, one) for factor in factors], axis=1)


@dataclass(frozen=True, eq=False)
class _Candidate:
    model: str
    noise: Noise
    names: tuple[str, ...]
    found: Regression
    thresholds: Mapping[str, float]
    """Least sizes of M', by letter."""

    @property
    def parameter_count(self) -> int:
        return self.found.free + sum(value > 1 for value in self.thresholds.values())

    @property
    def criterion(self) -> float:
        more = self.parameter_count - self.found.free
        return self.found.criterion + more * float(np.log(len(self.found.time)))


def kernel_name(name: str) -> str:
    """Kernel of a name; raise `UsageError` for an unknown one."""
    if name.lower() not in KERNEL_NAMES:
        raise UsageError(f"`{name}` is no kernel of HPL{did_you_mean(name.lower(), KERNEL_NAMES)}: {', '.join(KERNEL_NAMES)}")
    return name.lower()


def fit_kernel(table: Table, kernel: str, model: str | None = None, noise: str | None = None) -> KernelFit:
    """Fit a kernel to single calls: `time` and its sizes `m`, `n`, `k` or `size`, perhaps `node`, `cpu` and `run`.

    `model` and `noise` default to the choice of the criterion; noise N-1 or N-2, since N-0 has no scatter, and N-2 if
    the times span a decade or more, since with N-1 only the long calls would count.
    Coefficients are never below zero. Raise `UsageError` for a missing column, fewer calls than
    `FEWEST_POINTS` or than a model has terms, sizes that are all equal, and times that cannot be.
    """
    if model is not None and model not in MODELS:
        raise UsageError(f"unknown model `{model}`; there are {', '.join(MODELS)}")
    if noise is not None and noise not in NOISES:
        raise UsageError(f"unknown noise `{noise}`; there are {', '.join(NOISES)}")
    samples, remarks = _samples(table, kernel_name(kernel))
    tried = list(_candidates(samples))
    eligible = [item for item in tried if model in (None, item.model)]
    if not eligible:
        raise UsageError(f"{samples.kernel}: {_why_not(samples, str(model))}")
    noises = (noise,) if noise is not None else NOISES[2:] if np.ptp(np.log10(samples.time)) >= 1 else NOISES[1:]
    best = min((item for item in eligible if item.noise in noises), key=lambda item: item.criterion)
    return KernelFit(
        samples.kernel,
        best.model,
        best.noise,
        tuple(_fits(samples, best)),
        _processors(samples, best) if best.model.startswith(_PER_PROCESSOR) else None,
        _comparison(samples.kernel, tried),
        _points(samples, best),
        (*remarks, *_doubts(best, samples)),
    )


def _samples(table: Table, kernel: str) -> tuple[_Samples, list[str]]:
    columns = {name: column.values for name, column in table.columns.items()}
    time = columns["time"]
    if len(time) < FEWEST_POINTS:
        raise UsageError(f"{kernel}: {len(time)} calls; at least {FEWEST_POINTS} are needed")
    if time.max() > LONGEST_TIME:
        raise UsageError(f"{kernel}: a time of {time.max():g} s is not possible: are the units mixed up?")
    sizes, remarks = _sizes(columns, kernel, time)
    empty = np.full(len(time), "", dtype=object)
    nodes, cpus, runs = (columns.get(name, empty) for name in ("node", "cpu", "run"))
    labels = [f"{node}\n{cpu}\n{run}" for node, cpu, run in zip(nodes, cpus, runs, strict=True)]
    _, representatives, groups = np.unique(np.array(labels, dtype=str), return_index=True, return_inverse=True)
    return _Samples(kernel, sizes, time, nodes, cpus, groups, representatives), remarks


def _sizes(columns: Mapping[str, FloatArray], kernel: str, time: FloatArray) -> tuple[dict[str, FloatArray], list[str]]:
    remarks: list[str] = []
    if kernel == "dgemm":
        sizes = _needed(columns, kernel, "mnk")
    elif "size" in columns:
        sizes = {"size": columns["size"]}
    else:
        sizes, remarks = _product(columns, kernel, time)
    if all(np.ptp(values) == 0 for values in sizes.values()):
        raise UsageError(f"{kernel}: all sizes are equal: the dependence on them cannot be determined")
    return sizes, remarks


def _needed(columns: Mapping[str, FloatArray], kernel: str, letters: str) -> dict[str, FloatArray]:
    wanted = dict.fromkeys(letters)
    if missing := [letter for letter in wanted if letter not in columns]:
        listed = ", ".join(f"`{letter}`" for letter in missing)
        raise UsageError(f"{kernel}: no column {listed}; `--columns {missing[0]}=HEADING` names its column")
    return {letter: columns[letter] for letter in wanted}


def _product(
    columns: Mapping[str, FloatArray], kernel: str, time: FloatArray
) -> tuple[dict[str, FloatArray], list[str]]:
    """S as the product of the kernel's sizes: where there are two of them, that on which the times lie best."""
    errors: dict[str, float] = {}
    products: dict[str, FloatArray] = {}
    sizes: dict[str, FloatArray] = {}
    for letters in _PRODUCTS.get(kernel, ("mn",)):
        sizes = _needed(columns, kernel, letters)
        products[letters] = reduce(np.multiply, [sizes[letter] for letter in letters])
        terms = np.stack((np.ones_like(time), products[letters]), axis=1)
        errors[letters] = float(np.std(terms @ non_negative(terms, time, time) / time))
    best, *others = sorted(errors, key=errors.__getitem__)
    remarks = f"{kernel}: S is {_SIDES.get(best, '')}, {errors[best]:.1%} off; "
    remarks += " or ".join(f"{_SIDES[letters]} would be {errors[letters]:.1%} off" for letters in others)
    return {**sizes, "size": products[best]}, [remarks] if others else []


def _candidates(samples: _Samples) -> Iterator[_Candidate]:
    """Every model with every noise, as far as there are more calls than terms."""
    product = samples.names[1]
    bases: list[tuple[str, tuple[str, ...]]] = [("-0", ("constant",)), ("-1", ("constant", product))]
    if samples.kernel == "dgemm":
        bases += [("-2", MATRIX_TERMS), ("'", MATRIX_TERMS)]
    thresholds = _thresholds(samples) if samples.kernel == "dgemm" else {}
    for suffix, names in bases:
        sides = thresholds if suffix == "'" else {}
        if (suffix == "'" and not sides) or len(samples.time) <= 2 * len(names):
            continue
        terms = samples.terms(names)
        if sides:
            inside = _inside(samples, sides)[:, None]
            terms = np.hstack((terms * ~inside, terms * inside))
        for noise in NOISES:
            found = regression(terms, samples.terms(names), samples.time, noise)
            yield _Candidate(f"M{suffix}", noise, names, found, sides)
            if len(samples.representatives) > 1 and len(samples.time) > len(samples.representatives) + len(names):
                found = regression(terms, samples.terms(names), samples.time, noise, samples.groups)
                yield _Candidate(f"{_PER_PROCESSOR}{suffix}", noise, names, found, sides)


def _why_not(samples: _Samples, model: str) -> str:
    if model.endswith(("2", "'")) and samples.kernel != "dgemm":
        return f"it has one size: {model} is for dgemm"
    if model.startswith(_PER_PROCESSOR) and len(samples.representatives) < 2:
        return f"{model} needs columns `node` or `cpu` with several processors"
    return f"{len(samples.time)} calls are too few, or too much alike, for {model}"


def _inside(samples: _Samples, thresholds: Mapping[str, float]) -> NDArray[np.bool_]:
    inside = [samples.sizes[letter] >= least for letter, least in thresholds.items()]
    return np.asarray(np.logical_and.reduce(inside), dtype=np.bool_)


def _thresholds(samples: _Samples) -> dict[str, float]:
    """Least M, N and K of the calls of another kind (M'), of least criterion; empty where there are too few calls.

    Every size is tried at several places while the others stay, in turn, beginning with one limit for all three.
    """
    step = -(-len(samples.time) // _MOST_SEARCHED)
    some = _where(samples, slice(None, None, step))
    ranked = {letter: np.sort(some.sizes[letter]) for letter in "mnk"}
    smallest = np.sort(np.minimum.reduce([some.sizes[letter] for letter in "mnk"]))
    starts = [dict.fromkeys("mnk", at) for at in _places(smallest, 0.0, 1.0)]
    best = min(starts, key=lambda limits: _broken(some, limits))
    for share in _SHARES:
        for letter in "mnk":
            tried = [best, {**best, letter: 1.0}]
            tried += [{**best, letter: at} for at in _places(ranked[letter], best[letter], share)]
            best = min(tried, key=lambda limits: _broken(some, limits))
    return best if np.isfinite(_broken(some, best)) else {}


def _places(ranked: FloatArray, middle: float, share: float) -> list[float]:
    """Sizes to try for a breakpoint, evenly among those that are at most a share of all places from the middle."""
    place, reach = int(np.searchsorted(ranked, middle)), int(np.ceil(share * len(ranked)))
    low, high = max(place - reach, 0), min(place + reach, len(ranked) - 1)
    return [float(size) for size in np.unique(ranked[np.linspace(low, high, _MOST_BREAKS).round().astype(int)])]


def _where(samples: _Samples, chosen: slice) -> _Samples:
    return replace(
        samples, time=samples.time[chosen], sizes={name: size[chosen] for name, size in samples.sizes.items()}
    )


def _broken(samples: _Samples, thresholds: Mapping[str, float]) -> float:
    """Criterion of lines in M N K on both sides of thresholds, with relative weights."""
    inside = _inside(samples, thresholds)
    count, terms = len(inside), samples.terms(MATRIX_TERMS)
    if min(inside.sum(), count - inside.sum()) < _FEWEST_OF_SIDE:
        return np.inf
    rest, used = 0.0, sum(limit > 1 for limit in thresholds.values())
    for side in (inside, ~inside):
        found = non_negative(terms[side], samples.time[side], samples.time[side])
        rest += float(((terms[side] @ found / samples.time[side] - 1) ** 2).sum())
        used += int((found > 0).sum())
    return count * float(np.log(max(rest / count, np.finfo(float).tiny))) + used * float(np.log(count))


def _fits(samples: _Samples, best: _Candidate) -> Iterator[Fit]:
    """The tables of a kernel, each with all its terms: those that the model has not are zero."""
    found, path, count = best.found, f"kernels.{samples.kernel}", len(best.names)
    spread = found.covariance
    yield _fit(samples, best, path, found.mean.coefficients[:count], spread[:count, :count])
    if best.noise != "N-0":
        yield _fit(samples, best, f"{path}.deviation", found.deviations, found.deviation_covariance)
    if best.thresholds:
        offloaded = _fit(samples, best, f"{path}.offloaded", found.mean.coefficients[count:], spread[count:, count:])
        names = {f"smallest_{letter}": ONE for letter in best.thresholds}
        values = np.concatenate((offloaded.values, [*best.thresholds.values()]))
        whole = np.full((len(values), len(values)), np.nan)
        whole[: len(offloaded.values), : len(offloaded.values)] = offloaded.covariance
        yield replace(offloaded, dimensions={**offloaded.dimensions, **names}, values=values, covariance=whole)


def _fit(samples: _Samples, best: _Candidate, path: str, values: FloatArray, spread: FloatArray) -> Fit:
    places = [samples.names.index(name) for name in best.names]
    whole, filled = np.full((len(samples.names),) * 2, np.nan), np.zeros(len(samples.names))
    whole[np.ix_(places, places)], filled[places] = spread, values
    ranges = {name: (float(size.min()), float(size.max())) for name, size in samples.sizes.items()}
    dimensions = dict.fromkeys(samples.names, SECOND)
    return Fit(path, dimensions, filled, whole, ranges, len(samples.time), best.found.error)


def _processors(samples: _Samples, best: _Candidate) -> Processors:
    nodes, cpus = samples.nodes[samples.representatives], samples.cpus[samples.representatives]
    return processors(nodes, cpus, best.found.mean.factors, best.found.mean.weights)


def _comparison(kernel: str, tried: list[_Candidate]) -> Table:
    kinds = {"kernel": None, "model": None, "noise": None, "parameter_count": ONE, "criterion": ONE, "error": ONE}
    rows = [
        (kernel, item.model, item.noise, item.parameter_count, item.criterion, item.found.error)
        for item in sorted(tried, key=lambda item: item.criterion)
    ]
    return Table.of_rows(kinds, rows)


def _points(samples: _Samples, best: _Candidate) -> Table:
    found = best.found
    labels = {name: texts for name, texts in (("node", samples.nodes), ("cpu", samples.cpus)) if texts.any()}
    return Table(
        {
            "kernel": Column(np.full(len(found.time), samples.kernel, dtype=object)),
            **{name: Column(texts) for name, texts in labels.items()},
            **{name: Column(size, ONE) for name, size in samples.sizes.items()},
            "time": Column(found.time, SECOND),
            "fitted_time": Column(found.mean.fitted, SECOND),
            "residual": Column(found.residuals, ONE),
        }
    )


def _doubts(best: _Candidate, samples: _Samples) -> Iterator[str]:
    if best.found.error > POOR:
        yield f"{samples.kernel}: the calls scatter by {best.found.error:.0%} around {best.model}"
    if best.model.endswith("0") and np.corrcoef(samples.time, samples.terms(samples.names)[:, 1])[0, 1] < 0:
        yield f"{samples.kernel}: the times go down with the size: are the columns mixed up?"
