"""Run times: an iteration from its phases, a run from its iterations and its set-up."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Final

import numpy as np

from whatif.models.quantities import Count, FloatArray, Fraction, Seconds, model
from whatif.vocabulary import CATEGORIES

_Z: Final = np.linspace(-9.0, 9.0, 1801)
"""Standard normal deviates; the probability outside is 1e-18."""
_BELOW: Final = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _Z])


@model(f"t = {' + '.join(CATEGORIES)} − overlap", "Choi et al. 2020, sec. 3.4")
def iteration_time(*times: Seconds) -> Seconds:
    """Time of one iteration: the sum of the times of all categories, minus the overlap (last argument). Elementwise."""
    *category_times, hidden_time = times
    return reduce(add, category_times) - hidden_time


@model("T = I t + setup", "Choi et al. 2020, sec. 5.1; Sharif et al., Eq. 4")
def run_time(iteration_count: Count, iteration_time: Seconds, setup_time: Seconds) -> Seconds:
    """Time of the whole run: all iterations plus set-up. Elementwise."""
    return iteration_count * iteration_time + setup_time


@model("f · min(t_1, t_2)", "definition: the stated fraction of the shorter phase is hidden")
def overlap_time(fraction: Fraction, first_time: Seconds, second_time: Seconds) -> Seconds:
    """Time saved by two phases that partly overlap; `fraction` from 0 to 1. Elementwise."""
    return fraction * np.minimum(first_time, second_time)


@model("f · p · min(t_1 / p_1, t_2 / p_2), p_i = floor(K / f_i) / K", "definition: hidden where both phases occur")
def occasional_overlap_time(
    fraction: Fraction,
    first_time: Seconds,
    second_time: Seconds,
    iteration_count: Count,
    first_interval: Count,
    second_interval: Count,
) -> Seconds:
    """Time saved in the mean iteration by two phases that partly overlap and do not occur in every iteration.

    `first_time` and `second_time` are their parts t_1, t_2 of the mean of K iterations. Phase i occurs in every
    f_i-th iteration, a share p_i of them; both do in those of the least common multiple, a share p, and hide there
    the `fraction` of the shorter occurrence. Elementwise; intervals are whole numbers.
    """
    intervals = [np.rint(np.asarray(interval)).astype(np.int64) for interval in (first_interval, second_interval)]
    first, second, both = (
        np.floor(iteration_count / interval) / iteration_count for interval in (*intervals, np.lcm(*intervals))
    )
    # Where a phase never occurs, both do not.
    shorter = np.minimum(first_time / np.where(first > 0, first, 1), second_time / np.where(second > 0, second, 1))
    return np.asarray(fraction * both * shorter)


def expected_largest(count: FloatArray) -> FloatArray:
    """Mean of the largest of n = `count` standard normal deviates: `∫ z d(Φ(z)^n)`.

    It is 0 for n = 1, 0.564 for 2 and 1.424 for 8. Integrated by parts as `∫_0^∞ (1 - Φ^n) dz - ∫_-∞^0 Φ^n dz`;
    error below 1e-6 for n up to 10^6. Elementwise.
    """
    powers = _BELOW ** np.asarray(count, dtype=np.float64)[..., None]
    values = np.where(_Z < 0, -powers, 1 - powers)
    return np.asarray((np.diff(_Z) * (values[..., 1:] + values[..., :-1]) / 2).sum(axis=-1)) - _STEP_AT_ZERO


_STEP_AT_ZERO: Final = float(_Z[1] - _Z[0]) / 2
"""Correction of the trapezoidal rule for the unit jump of the integrand."""


@model("t = floor(K / f) / K · m (1 + s e_d) t_1", "Sasidharan 2021, Eq. 7, for normal times on d devices")
def repeated_time(
    once_time: Seconds,
    iteration_count: Count,
    repeat_count: Count,
    interval: Count,
    device_count: Count,
    device_spread: Fraction,
) -> Seconds:
    """Contribution of a repeated phase to the mean iteration: `floor(K / f) / K · m (1 + s e_d) t_1`.

    Eq. 7 sums the time of the slowest of d devices, over K iterations for m repetitions and over every f-th iteration
    for population control. With normal times of mean t_1 and relative standard deviation s over the devices of an
    iteration (which keep their load through its m repetitions), the mean of the slowest is `m (1 + s e_d) t_1`, with
    e_d the mean of the largest of d standard normal deviates. `iteration_count` is K, `repeat_count` m, `interval` f,
    `device_count` d, `device_spread` s. Elementwise; valid for counts ≥ 1 and s small enough (below 0.3) that a
    normal time is not negative.
    """
    share = np.floor(iteration_count / interval) / iteration_count
    slowest = 1 + device_spread * expected_largest(device_count)
    return share * repeat_count * slowest * once_time
