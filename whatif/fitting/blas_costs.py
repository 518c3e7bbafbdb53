"""Calibrations of a kernel to what it costs on one process: mean, deviation, and how processors differ.

The models are named as in Cornebize et al. 2019, section 6.1: M-0 a constant, M-1 a line in the kernel's one product,
M-2 all products, M' two of these, one for calls whose sizes are all large; M_H the same with a factor for each
processor, where the paper has a model for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.fitting.blas_models import (
    PER_PROCESSOR,
    Candidate,
    candidates,
    decade_weights,
    held_out_residuals,
    preferred,
)
from whatif.fitting.blas_regression import NOISES
from whatif.fitting.blas_samples import Samples, samples_of
from whatif.fitting.fit_result import Fit, range_of
from whatif.fitting.input_checks import POOR
from whatif.fitting.processors import Processors, processors
from whatif.models.quantities import FloatArray
from whatif.schema.blas_kernels import KERNEL_NAMES
from whatif.table import Column, Table
from whatif.units import ONE, SECOND, Dimension

MODELS: Final = ("M-0", "M-1", "M-2", "M'", "M_H-0", "M_H-1", "M_H-2", "M_H'")
COMPARED: Final[Mapping[str, Dimension | None]] = {
    "kernel": None, "model": None, "noise": None, "parameter_count": ONE, "criterion": ONE, "error": ONE,
}  # fmt: skip
"""Columns of a comparison of models, with the dimensions of numbers."""


@dataclass(frozen=True, eq=False)
class KernelFit:
    """Fitted costs of one kernel."""

    kernel: str
    model: str
    """One of `MODELS`."""
    noise: str
    """One of `NOISES`."""
    fits: tuple[Fit, ...]
    """Fits of `kernels.KERNEL`, of its `deviation` unless the noise is N-0, and of `offloaded` for M'."""
    processors: Processors | None
    """Processors of model M_H, else None."""
    comparison: Table
    """`kernel`, `model`, `noise`, `parameter_count`, `criterion` (BIC), `error` (root mean square, relative),
    `held_out_error` (mean |ln(fitted / measured)| of calls that were not fitted, those of every decade alike)."""
    points: Table
    """Fitted calls, with `time`, `fitted_time` and `residual`, (fitted - measured) / measured."""
    warnings: tuple[str, ...] = ()


def kernel_name(name: str) -> str:
    """Kernel of a name; raise `UsageError` for an unknown one."""
    if name.lower() not in KERNEL_NAMES:
        raise UsageError(
            f"`{name}` is not a kernel of HPL: {', '.join(KERNEL_NAMES)}{did_you_mean(name.lower(), KERNEL_NAMES)}"
        )
    return name.lower()


def fit_kernel(table: Table, kernel: str, model: str | None = None, noise: str | None = None) -> KernelFit:
    """Fit a kernel to single calls: `time` and its sizes `m`, `n`, `k` or `size`, perhaps `node`, `cpu` and `run`.

    `model` defaults to the one that predicts calls best that were held out, `noise` to the choice of the criterion: N-1
    or N-2, since N-0 has no scatter, and N-2 if the times span a decade or more, since with N-1 only the long calls
    would count.
    Coefficients are never below zero. Raise `UsageError` for a missing column, fewer calls than
    `FEWEST_POINTS` or than a model has terms, sizes that are all equal, and impossible times.
    """
    if model is not None and model not in MODELS:
        raise UsageError(f"unknown model `{model}`; there are {', '.join(MODELS)}")
    if noise is not None and noise not in NOISES:
        raise UsageError(f"unknown noise `{noise}`; there are {', '.join(NOISES)}")
    samples, remarks = samples_of(table, kernel_name(kernel))
    tried = list(candidates(samples))
    eligible = [item for item in tried if model in (None, item.model)]
    if not eligible:
        raise UsageError(f"{samples.kernel}: {_why_not(samples, str(model))}")
    weights = decade_weights(samples.time)
    residuals = held_out_residuals(samples, tried)
    errors = {name: float(weights @ found) for name, found in residuals.items()}
    chosen = model or preferred(eligible, residuals, weights)
    noises = (noise,) if noise is not None else NOISES[2:] if np.ptp(np.log10(samples.time)) >= 1 else NOISES[1:]
    best = min((it for it in eligible if it.model == chosen and it.noise in noises), key=lambda it: it.criterion)
    return KernelFit(
        samples.kernel,
        best.model,
        best.noise,
        tuple(_fits(samples, best)),
        _processors(samples, best) if best.model.startswith(PER_PROCESSOR) else None,
        _comparison(samples.kernel, tried, errors),
        _points(samples, best),
        (*remarks, *_doubts(best, samples)),
    )


def _why_not(samples: Samples, model: str) -> str:
    if model.endswith(("2", "'")) and samples.kernel != "dgemm":
        return f"it has one size: {model} is for dgemm"
    if model.startswith(PER_PROCESSOR) and len(samples.representatives) < 2:
        return f"{model} needs columns `node` or `cpu` with several processors"
    return f"{len(samples.time)} calls are too few, or too much alike, for {model}"


def _fits(samples: Samples, best: Candidate) -> Iterator[Fit]:
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


def _fit(samples: Samples, best: Candidate, path: str, values: FloatArray, spread: FloatArray) -> Fit:
    places = [samples.names.index(name) for name in best.names]
    whole, filled = np.full((len(samples.names),) * 2, np.nan), np.zeros(len(samples.names))
    whole[np.ix_(places, places)], filled[places] = spread, values
    ranges = {name: range_of(size) for name, size in samples.sizes.items()}
    dimensions = dict.fromkeys(samples.names, SECOND)
    return Fit(path, dimensions, filled, whole, ranges, len(samples.time), best.found.error)


def _processors(samples: Samples, best: Candidate) -> Processors:
    nodes, cpus = samples.nodes[samples.representatives], samples.cpus[samples.representatives]
    return processors(nodes, cpus, best.found.mean.factors, best.found.mean.weights)


def _comparison(kernel: str, tried: Sequence[Candidate], errors: Mapping[str, float]) -> Table:
    rows = [
        (kernel, it.model, it.noise, it.parameter_count, it.criterion, it.found.error, errors.get(it.model, np.nan))
        for it in sorted(tried, key=lambda it: it.criterion)
    ]
    return Table.of_rows({**COMPARED, "held_out_error": ONE}, rows)


def _points(samples: Samples, best: Candidate) -> Table:
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


def _doubts(best: Candidate, samples: Samples) -> Iterator[str]:
    if best.found.error > POOR:
        yield f"{samples.kernel}: the calls scatter by {best.found.error:.0%} around {best.model}"
    trend = np.corrcoef(samples.time, samples.terms(samples.names)[:, 1])[0, 1]
    # Three standard errors below none: without a trend half of all slopes are negative.
    if best.model.endswith("0") and trend < -3 / np.sqrt(len(samples.time) + 7):
        yield f"{samples.kernel}: the times go down with the size: are the columns mixed up?"
