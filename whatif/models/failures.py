"""Failures of nodes and checkpoints: the best interval between checkpoints, and the share of useful time.

Failures are independent and without memory (exponential), also while a job restarts or writes a checkpoint. Symbols: M
mean time between failures of a job, τ useful time between checkpoints, δ time to write one, R time to restart.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from whatif.models.quantities import Count, FloatArray, Fraction, PerSecond, Seconds, model

_SHORTEST: Final = 1e-12
_SMALL: Final = 1e-8
_DALY: Final = "Daly 2006, doi:10.1016/j.future.2004.11.016"


@model("M = M_1 / N", "failures of N nodes are independent")
def job_failure_interval(failure_interval: Seconds, nodes_needed: Count) -> Seconds:
    """Mean time between failures of a job, from that of one of its nodes. Elementwise; valid for N ≥ 1."""
    return failure_interval / nodes_needed


@model("τ = M (1 + W(-e^(-δ / M - 1)))", f"{_DALY}, Eq. 13 minimised; W is Lambert's function")
def best_checkpoint_interval(job_interval: Seconds, checkpoint_time: Seconds) -> Seconds:
    """Useful time between checkpoints with the least expected time of a run; √(2 δ M) for δ much smaller than M.

    Elementwise; valid for M > 0, δ > 0.
    """
    from scipy.special import lambertw  # noqa: PLC0415 - slow to import, for jobs with failures only

    ratio = checkpoint_time / np.maximum(job_interval, _SHORTEST)
    # Near its branch point Lambert's function has no digits left; the limit is Young's interval.
    argument: Any = -np.exp(-np.maximum(ratio, _SMALL) - 1)
    exact = 1 + lambertw(argument).real
    return np.asarray(job_interval * np.where(ratio > _SMALL, exact, np.sqrt(2 * ratio)))


@model("g = τ / (M e^(R / M) (e^((τ + δ) / M) - 1))", f"{_DALY}, Eq. 13")
def goodput(
    checkpoint_interval: Seconds, job_interval: Seconds, checkpoint_time: Seconds, restart_time: Seconds
) -> Fraction:
    """Share of the time of a run that is useful; the rest writes checkpoints, restarts, and computes again.

    Elementwise; valid for τ > 0, M > 0.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        segment = np.expm1((checkpoint_interval + checkpoint_time) / job_interval)
        share = checkpoint_interval / (job_interval * np.exp(restart_time / job_interval) * segment)
    # No time between checkpoints, or none without a failure: nothing is useful.
    return np.where((checkpoint_interval > 0) & np.isfinite(segment), share, 0.0)


@model("g > 0", "definition")
def progresses(goodput: Fraction) -> Count:
    """1 where some of the time is useful, else 0. Elementwise; valid for g ≥ 0."""
    return np.asarray(goodput > 0, dtype=np.float64)


@model("N / (R g)", "definition")
def training_time(token_count: Count, token_rate: PerSecond, goodput: Fraction) -> Seconds:
    """Time to train on N tokens, at R tokens per second of useful time. Elementwise; valid for R > 0, g > 0."""
    return token_count / (token_rate * goodput)


@model("A T / T_0", "proportional to time")
def training_amount(amount: FloatArray, total_time: Seconds, training_time: Seconds) -> FloatArray:
    """Energy, carbon or cost of the training, from that of some iterations. Elementwise; valid for T_0 > 0."""
    return amount / total_time * training_time
