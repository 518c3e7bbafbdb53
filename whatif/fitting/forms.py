"""The forms of the time of a message: parameters, times, derivatives and the least squares that find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.linear import bounded_line, moments
from whatif.fitting.points import MessagePoints
from whatif.models.max_rate import max_rate, max_rate_injection, max_rate_short
from whatif.models.postal import postal
from whatif.models.quantities import FloatArray
from whatif.units import BYTE_PER_SECOND, SECOND, Dimension

_ROUNDS: Final = 4
_SHAPE_COUNT: Final = 129
"""Each round narrows the shape 64 times, down to some 1e-7 of itself."""
_ROUNDING: Final = 1e-12
"""Relative difference of sums of squares that counts as none."""
LEAST_SHARE: Final = 1e-3
"""Share of a latency: a time per byte that adds less to the largest message is not measurable."""

Estimates = tuple[FloatArray, NDArray[np.bool_]]
"""Values of parameters, and which of them the points determine."""


@dataclass(frozen=True)
class Form:
    """One function of message size and process count, linear in a latency and a time per byte."""

    names: tuple[str, ...]
    """Parameters as in the platform file, the latency first."""
    function: Callable[..., FloatArray]
    """Function of message size, process count and each parameter to times."""
    fit: Callable[[MessagePoints, FloatArray], Estimates]
    """Function of points and weights."""
    jacobian: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    """Function with the arguments of `time` to derivatives by each parameter, of shape (points, parameters)."""

    def time(self, size: FloatArray, count: FloatArray, values: FloatArray) -> FloatArray:
        """Times of messages of some sizes and process counts, for values of the parameters."""
        return self.function(size, count, *values)

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """Dimensions of the parameters, by name."""
        return {name: SECOND if name == "latency" else BYTE_PER_SECOND for name in self.names}


def _line(points: MessagePoints, sums: FloatArray) -> tuple[float, float, bool]:
    """Latency and bandwidth, finite, of a line from its sums, and whether the points have seen any time per byte."""
    latency, byte_time, _ = (float(value) for value in bounded_line(sums))
    largest = float((points.message_size * points.process_count).max())
    least = LEAST_SHARE * max(latency, float(points.time.min())) / max(largest, 1.0)
    return latency, 1.0 / max(byte_time, least), byte_time > least


def _fit_line(points: MessagePoints, weights: FloatArray, x: FloatArray) -> Estimates:
    latency, bandwidth, seen = _line(points, moments(x, points.time, weights).sum(axis=0))
    return np.array([latency, bandwidth]), np.array([latency > 0, seen])


def _fit_postal(points: MessagePoints, weights: FloatArray) -> Estimates:
    return _fit_line(points, weights, points.message_size)


def _fit_short(points: MessagePoints, weights: FloatArray) -> Estimates:
    return _fit_line(points, weights, points.message_size * points.process_count)


def _sums_by_count(points: MessagePoints, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    counts, place = np.unique(points.process_count, return_inverse=True)
    rows = moments(points.message_size, points.time, weights)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, place, rows)
    return counts, sums


def _stretched(sums: FloatArray, factor: FloatArray) -> FloatArray:
    """Sums over all counts with `x` of each multiplied by a factor; (shapes, counts) to (shapes, 6)."""
    total = np.empty((len(factor), sums.shape[1]))
    total[:, [0, 2, 5]] = sums[:, [0, 2, 5]].sum(axis=0)
    total[:, [1, 4]] = factor @ sums[:, [1, 4]]
    total[:, 3] = factor**2 @ sums[:, 3]
    return total


def _best_shape(sums: FloatArray, shapes: FloatArray, factor: Callable[[FloatArray], FloatArray]) -> float:
    """The shape with the least residual: a grid over all of them, then closer and closer around the best."""
    for _ in range(_ROUNDS):
        rest = bounded_line(_stretched(sums, factor(shapes)))[2]
        best = int(np.argmin(rest))
        low, high = shapes[max(best - 1, 0)], shapes[min(best + 1, len(shapes) - 1)]
        shapes, chosen = np.linspace(low, high, _SHAPE_COUNT), float(shapes[best])
    return chosen


def _fit_max_rate(points: MessagePoints, weights: FloatArray) -> Estimates:
    counts, sums = _sums_by_count(points, weights)

    def factor(ratio: FloatArray) -> FloatArray:
        return counts / (1.0 + (counts - 1.0) * ratio[:, None])

    ratio = _best_shape(sums, np.concatenate(([0.0], np.geomspace(1e-5, 1e3, _SHAPE_COUNT))), factor)
    latency, bandwidth, seen = _line(points, _stretched(sums, factor(np.array([ratio])))[0])
    return np.array([latency, bandwidth, ratio * bandwidth]), np.array([latency > 0, seen, seen and ratio > 0])


def _fit_injection(points: MessagePoints, weights: FloatArray) -> Estimates:
    counts, sums = _sums_by_count(points, weights)

    def factor(ratio: FloatArray) -> FloatArray:
        return np.maximum(1.0, counts * ratio[:, None])

    # R_b / R_N from "the node never limits" to "it limits the fewest processes"; the kinks lie at 1/k.
    shapes = np.unique(np.concatenate((1.0 / counts, np.geomspace(1.0 / counts[-1], 1.0 / counts[0], _SHAPE_COUNT))))
    tried = np.array([_best_shape(sums, shapes, factor), shapes[0]])
    rests = bounded_line(_stretched(sums, factor(tried)))[2]
    # A limit that explains less than two standard errors of the points is none that they show.
    least = max(4.0 * rests[0] / max(len(points) - len(INJECTION.names), 1), _ROUNDING * sums[:, 5].sum())
    ratio = float(tried[0] if rests[1] - rests[0] > least else tried[1])
    latency, bandwidth, seen = _line(points, _stretched(sums, factor(np.array([ratio])))[0])
    limited = counts * ratio > 1.0 + 1e-9
    free = np.array([latency > 0, seen and not limited.all(), seen and bool(limited.any())])
    return np.array([latency, bandwidth, bandwidth / ratio]), free


def _postal_of_any(size: FloatArray, _: FloatArray, latency: FloatArray, bandwidth: FloatArray) -> FloatArray:
    return postal(size, latency, bandwidth)


def _postal_jacobian(size: FloatArray, count: FloatArray, values: FloatArray) -> FloatArray:
    return np.stack((np.ones_like(size), -size / values[1] ** 2), axis=-1)


def _short_jacobian(size: FloatArray, count: FloatArray, values: FloatArray) -> FloatArray:
    return _postal_jacobian(size * count, count, values)


def _max_rate_jacobian(size: FloatArray, count: FloatArray, values: FloatArray) -> FloatArray:
    by_rate = -count * size / (values[1] + (count - 1) * values[2]) ** 2
    return np.stack((np.ones_like(by_rate), by_rate, (count - 1) * by_rate), axis=-1)


def _injection_jacobian(size: FloatArray, count: FloatArray, values: FloatArray) -> FloatArray:
    limited = count * values[1] > values[2] * (1.0 + 1e-9)
    by_process = np.where(limited, 0.0, -size / values[1] ** 2)
    by_node = np.where(limited, -count * size / values[2] ** 2, 0.0)
    return np.stack((np.ones_like(by_node), by_process, by_node), axis=-1)


POSTAL: Final = Form(("latency", "bandwidth"), _postal_of_any, _fit_postal, _postal_jacobian)
SHORT: Final = Form(("latency", "bandwidth"), max_rate_short, _fit_short, _short_jacobian)
MAX_RATE: Final = Form(
    ("latency", "base_bandwidth", "additional_bandwidth"), max_rate, _fit_max_rate, _max_rate_jacobian
)
INJECTION: Final = Form(
    ("latency", "process_bandwidth", "injection_bandwidth"), max_rate_injection, _fit_injection, _injection_jacobian
)


def form_of(model: str, protocol: str) -> Form:
    """The form that a platform file has for a protocol: short messages of max_rate have no R_Ci."""
    if model == "max_rate":
        return SHORT if protocol == "short" else MAX_RATE
    return POSTAL if model == "postal" else INJECTION
