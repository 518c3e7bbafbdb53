"""Uncertain values: samples of their distributions as one more axis of the grid, and the bands of results.

Samples are those of a scrambled Sobol' sequence (Owen 1998), whose quantiles converge faster than random ones.
Values of one fit are correlated by a Gaussian copula, which is exact for normal distributions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from whatif.axes import Axis, Grid
from whatif.core.evaluate import evaluate
from whatif.core.model_error import KERNEL_ERROR, with_model_errors
from whatif.core.term import Program
from whatif.errors import UsageError, require_least, require_level
from whatif.models.quantities import FloatArray
from whatif.schema.distributions import Distribution
from whatif.schema.expressions import Expression
from whatif.schema.fields import Domain
from whatif.schema.parameters import Parameter
from whatif.schema.platform_spec import GRADES
from whatif.units import in_percent

SAMPLES: Final = "samples"
"""The name of the axis."""
MOST_SAMPLES: Final = 2**20
DEFAULT_COUNT: Final = 1024
NOTHING_UNCERTAIN: Final = "nothing is uncertain: write `3 us +- 0.2 us`, or use --spread assumed=20%"
_EDGE: Final = 1e-12
"""Least distance from the ends of (0, 1), where a normal distribution is infinite."""


Quantiles = tuple[FloatArray, FloatArray, FloatArray]
"""Lower end, median and upper end."""


def quantile_name(quantile: float) -> str:
    """Quantile in the name of a column: `p5`, `p97.5`."""
    return f"p{100 * quantile:g}"


def commitment_name(name: str, probability: float) -> str:
    """Name of the column of values that are met with a probability, of a time or a rate: `time 90% sure`."""
    return f"{name} {in_percent(probability)} sure"


@dataclass(frozen=True)
class Sampling:
    """Sampling of uncertain values: number of samples, random seed, confidence level of the band, spreads by grade."""

    count: int = DEFAULT_COUNT
    """Number of samples; the sequence is balanced for powers of two."""
    seed: int = 0
    level: float = 0.9
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Spread by grade of values without a distribution: a log-normal of geometric deviation 1 + spread."""
    model_error: bool = True
    """Whether the errors of the models, by their accuracy cards, belong to the samples."""
    keys: tuple[str, ...] = ()
    """Uncertain values of several programs, which share samples; empty: those of the program."""

    def __post_init__(self) -> None:
        if not 2 <= self.count <= MOST_SAMPLES:
            raise UsageError(f"{self.count:,} samples: must be between 2 and {MOST_SAMPLES:,}")
        require_level(self.level)
        require_least("seed", self.seed, 0)
        for grade, spread in self.spreads.items():
            if grade not in GRADES:
                raise UsageError(f"spread of `{grade}`: no such grade; known: {', '.join(GRADES)}")
            if not 0 <= spread < np.inf:
                raise UsageError(f"spread of `{grade}`: {spread:g} must be 0 or more")

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """Lower end, median and upper end of the band."""
        return (1 - self.level) / 2, 0.5, (1 + self.level) / 2

    @property
    def names(self) -> tuple[str, str, str]:
        """Suffixes of the columns of the quantiles: `p5`, `p50`, `p95`."""
        lower, median, upper = map(quantile_name, self.quantiles)
        return lower, median, upper


@dataclass(frozen=True, eq=False)
class Bands:
    """Quantiles of every result over the samples: arrays that broadcast to the grid's shape, by name and quantile."""

    sampling: Sampling
    values: Mapping[str, Quantiles]
    """Columns, and phases as `terms.NAME`."""
    answered: float
    """Share of the samples with an answer, at points where any has one; the others do not count for quantiles."""


def distribution_of(parameter: Parameter, spreads: Mapping[str, float]) -> Distribution | None:
    """Distribution of a parameter: its own, else that of its fit, else the spread of its grade; None without any."""
    if parameter.field is None or isinstance(parameter.value, Expression):
        return None
    if parameter.distribution is not None:
        return parameter.distribution
    value = float(parameter.value)
    if parameter.fitted is not None and parameter.fitted.standard_error > 0:
        return Distribution("normal", (value, parameter.fitted.standard_error))
    spread, domain = spreads.get(parameter.grade, 0.0), parameter.field.domain
    # At an end of its range, such as a PUE of 1, a value would vary to one side only, away from what is stated.
    if spread > 0 and max(domain.minimum, 0.0) < value < domain.maximum and not domain.whole:
        return Distribution("lognormal", (value, 1 + spread))
    return None


def uncertain(program: Program, sampling: Sampling, fixed: Iterable[str] = ()) -> dict[str, Distribution]:
    """Uncertain parameters that some result depends on, except the fixed (swept) ones."""
    reached = program.reached.difference(fixed)
    known = {
        path: distribution_of(parameter, sampling.spreads)
        for path, parameter in program.parameters.items()
        if path in reached
    }
    return {path: distribution for path, distribution in known.items() if distribution is not None}


def sampled_program(program: Program, sampling: Sampling) -> Program:
    """Program that samples are evaluated with: its phases have the errors of their models, unless left out."""
    return with_model_errors(program) if sampling.model_error else program


def key_of(program: Program, path: str) -> str:
    """Key of an uncertain value: values with equal keys in several programs share their samples.

    The error of the model of kernels belongs to their device, so that platforms with the same one share it.
    """
    loaded, platform = program.loaded, program.loaded.scenario.platform
    device = loaded.scenario.kernel_device if path == KERNEL_ERROR else None
    owner = device.name if device is not None else platform.name if path.startswith("platform.") else loaded.name
    return f"{owner}: {path}"


def shared_keys(programs: Iterable[Program], sampling: Sampling) -> tuple[str, ...]:
    """Keys of the uncertain values of several programs, each once."""
    sampled = [sampled_program(program, sampling) for program in programs]
    return tuple(dict.fromkeys(key_of(item, path) for item in sampled for path in uncertain(item, sampling)))


def sample_axis(program: Program, sampling: Sampling, fixed: Iterable[str] = ()) -> Axis | None:
    """Axis of all uncertain parameters with their samples, tied together; None without uncertain parameters."""
    known = uncertain(program, sampling, fixed)
    if not known:
        return None
    keys = sampling.keys or tuple(key_of(program, path) for path in known)
    columns = [keys.index(key_of(program, path)) for path in known]
    numbers = uniform_numbers(len(keys), sampling.count, sampling.seed)[:, columns]
    return Axis(SAMPLES, parameter_samples(program, known, numbers))


def parameter_samples(
    program: Program, known: Mapping[str, Distribution], numbers: FloatArray
) -> dict[str, FloatArray]:
    """Values of parameters for numbers in (0, 1) of shape [sample, parameter]."""
    numbers = _correlated(program, list(known), np.clip(numbers, _EDGE, 1 - _EDGE))
    return {
        path: values_at(distribution, numbers[:, at], _domain(program.parameters[path]))
        for at, (path, distribution) in enumerate(known.items())
    }


def _domain(parameter: Parameter) -> Domain:
    assert parameter.field is not None
    return parameter.field.domain


@lru_cache(maxsize=8)
def uniform_numbers(dimensions: int, count: int, seed: int) -> FloatArray:
    """Numbers between 0 and 1 of shape [sample, dimension]."""
    from scipy.stats import qmc

    rounded = 1 << (count - 1).bit_length()
    return np.asarray(qmc.Sobol(dimensions, seed=seed).random_base2(rounded.bit_length() - 1)[:count])


def _correlated(program: Program, paths: Sequence[str], numbers: FloatArray) -> FloatArray:
    """Numbers with the correlations of the parameters' fits; each remains uniform."""
    from scipy.special import ndtr, ndtri

    matrix = correlations(program, paths)
    if np.array_equal(matrix, np.eye(len(paths))):
        return numbers
    sizes, vectors = np.linalg.eigh(matrix)
    root = (vectors * np.sqrt(np.maximum(sizes, 0))) @ vectors.T
    return np.asarray(np.clip(ndtr(ndtri(numbers) @ root), _EDGE, 1 - _EDGE))


def correlations(program: Program, paths: Sequence[str]) -> FloatArray:
    """Correlation matrix of parameters: that of the fit for two values of one fit, else 0."""
    matrix = np.eye(len(paths))
    known = ((at, path, program.parameters[path]) for at, path in enumerate(paths))
    plain = {path: (at, parameter.fitted) for at, path, parameter in known if parameter.distribution is None}
    for row, fitted in plain.values():
        for other, correlation in fitted.correlation.items() if fitted is not None else ():
            if other in plain and plain[other][0] != row:
                matrix[row, plain[other][0]] = correlation
    return matrix


def values_at(distribution: Distribution, shares: FloatArray, domain: Domain) -> FloatArray:
    """Quantiles of a distribution that is truncated to the domain of its parameter."""
    if distribution.kind in ("normal", "lognormal"):
        values = _bell(distribution, shares, domain)
    elif distribution.kind == "empirical":
        ordered = np.sort(np.array(distribution.numbers))
        values = ordered[np.ceil(shares * ordered.size).astype(int) - 1]
    elif distribution.kind == "uniform":
        low, high = distribution.numbers
        values = np.floor(low + shares * (high - low + 1)) if domain.whole else low + shares * (high - low)
    else:
        values = _triangle(distribution.numbers, shares)
    return np.asarray(np.rint(values) if domain.whole else values, dtype=np.float64)


def _bell(distribution: Distribution, shares: FloatArray, domain: Domain) -> FloatArray:
    """Normal or log-normal distribution, truncated to the domain."""
    from scipy.special import ndtri

    if distribution.numbers[1] == (1 if distribution.kind == "lognormal" else 0):
        return np.full(shares.shape, distribution.centre)
    centre, deviation, low, high = _truncated(distribution, domain)
    values = centre + deviation * ndtri(low + shares * (high - low))
    return np.asarray(np.exp(values) if distribution.kind == "lognormal" else values)


@lru_cache(maxsize=1024)
def _truncated(distribution: Distribution, domain: Domain) -> tuple[float, float, float, float]:
    """Centre, deviation, and shares below the ends of the domain; cached, as each run of HPL draws all of its costs."""
    from scipy.special import ndtr

    (centre, deviation), ends = distribution.numbers, np.array([domain.minimum, domain.maximum])
    with np.errstate(divide="ignore"):
        if distribution.kind == "lognormal":
            centre, deviation, ends = np.log(centre), np.log(deviation), np.log(np.maximum(ends, 0))
        low, high = ndtr((ends - centre) / deviation)
    return centre, deviation, low, high


def _triangle(numbers: tuple[float, ...], shares: FloatArray) -> FloatArray:
    low, mode, high = numbers
    rising, width = (mode - low) / (high - low), high - low
    below = low + np.sqrt(shares * width * (mode - low))
    return np.where(shares < rising, below, high - np.sqrt((1 - shares) * width * (high - mode)))


def result_samples(program: Program, result: str, sampling: Sampling) -> FloatArray:
    """Result column or phase at every sample, NaN without an answer; constant if nothing is uncertain."""
    program = sampled_program(program, sampling)
    axis = sample_axis(program, sampling)
    evaluation = evaluate(program, {} if axis is None else axis.parameters)
    return np.broadcast_to(evaluation.numbers(program.term_of(result)), (sampling.count,))


def bands_of(program: Program, grid: Grid, sampling: Sampling) -> Bands:
    """Quantiles of every result over the samples, at each point of a grid."""
    program = sampled_program(program, sampling)
    axis = sample_axis(program, sampling, grid.parameters())
    axes = grid.axes if axis is None else (*grid.axes, axis)
    evaluation = evaluate(program, Grid(axes).arrays())
    shape = tuple(map(len, axes))
    values = {}
    for name, term in program.results.items():
        array = evaluation.masked(term)
        values[name] = _quantiles(array if axis is None else np.broadcast_to(array, shape), sampling, axis)
    answered = np.isfinite(np.broadcast_to(evaluation.column("total_time"), shape))
    wanted = answered.sum() if axis is None else answered.any(axis=-1).sum() * len(axis)
    return Bands(sampling, values, float(answered.sum() / wanted) if wanted else 1.0)


def joined_bands(
    grid: Grid, parts: Sequence[tuple[tuple[slice, ...], Grid, Bands]], sampling: Sampling, names: Iterable[str]
) -> Bands:
    """Bands of joined parts of a grid, of all names; NaN where a part has no such result."""
    nowhere = dict.fromkeys(names, np.full(grid.shape, np.nan))
    low, median, high = (
        nowhere | grid.join((at, part, _ends(known, end)) for at, part, known in parts) for end in range(3)
    )
    feasible = [float(np.isfinite(part.spread(bands.values["total_time"][1])).sum()) for _, part, bands in parts]
    answered = np.average([its.answered for _, _, its in parts], weights=feasible) if any(feasible) else 1.0
    return Bands(sampling, {name: (low[name], median[name], high[name]) for name in nowhere}, float(answered))


def _ends(bands: Bands, at: int) -> dict[str, FloatArray]:
    """One of the quantiles of every result."""
    return {name: quantiles[at] for name, quantiles in bands.values.items()}


def _quantiles(array: FloatArray, sampling: Sampling, axis: Axis | None) -> Quantiles:
    """Quantiles along the last axis, over samples with a number; the value itself without samples."""
    if axis is None:
        return array, array, array
    known = np.isfinite(array)
    if known.all():
        lower, median, upper = np.quantile(array, sampling.quantiles, axis=-1)
        return lower, median, upper
    somewhere = np.any(known, axis=-1, keepdims=True)
    array = np.where(somewhere, np.where(known, array, np.nan), 0.0)
    lower, median, upper = np.where(somewhere[..., 0], np.nanquantile(array, sampling.quantiles, axis=-1), np.nan)
    return lower, median, upper


def shares_of_the_best(scores: FloatArray) -> FloatArray:
    """Share of the samples in which each of several candidates has the largest score, of shape [candidate, sample].

    Candidates that tie share the sample, one without a number is not the best. Samples without any number do not count.
    """
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    known = np.isfinite(scores).any(axis=0)
    best = (scores == scores.max(axis=0)) & known
    shared = best / np.maximum(best.sum(axis=0), 1)
    return np.asarray(shared.sum(axis=1) / max(known.sum(), 1))
