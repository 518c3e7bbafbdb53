"""Fits of message times: protocol limits, and for each protocol the parameters of each form of the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, require_choice
from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.fitting.forms import Form, form_of
from whatif.fitting.input_checks import ONE_KIND, POOR
from whatif.fitting.linear import covariance
from whatif.fitting.points import WINDOWED, MessagePoints, choose, on_one_node
from whatif.fitting.protocols import ProtocolLimits, Segmentation, find_limits, protocol_limits, segmentation
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import BYTE, SECOND, counted, format_quantity
from whatif.vocabulary import POINT_WEIGHTINGS, PROTOCOLS, PointWeighting

Model = Literal["postal", "max_rate", "injection"]
FEWEST_SIZES_OF_PROTOCOL: Final = 2
"""Different sizes that the parameters of a protocol need."""
_SMALL: Final = 65536.0
"""Largest message in B whose time is mostly latency."""
_SHORTEST, _LONGEST = 1e-8, 1e-3
"""Times in s of a small message between which its unit is not doubted."""
OUTLIER: Final = 8.0
"""Multiple of the median residual above which a point is an outlier, if its residual also exceeds `LEAST_OUTLIER`."""
LEAST_OUTLIER: Final = 0.25
"""Least residual of an outlier, relative to its time."""


@dataclass(frozen=True, eq=False)
class NetworkFit:
    """Protocol limits and parameters of one distance, with the points they were fitted to."""

    distance: str
    """`inter_node`, `inter_socket` or `intra_socket`."""
    test: str
    """The test whose rows gave the postal parameters."""
    weighting: PointWeighting
    limits: ProtocolLimits
    segmentations: tuple[Segmentation, ...]
    """Compared segmentations: the found limits, the given ones if any, then the best lines by criterion."""
    points: MessagePoints
    """Points of the postal fit: the rows with the fewest pairs."""
    shared_test: str
    """The test whose rows gave the other parameters; empty if no test has several pair counts."""
    shared: MessagePoints | None
    fits: tuple[Fit, ...]
    """Fits by model and protocol, with the path of a platform file such as `network.inter_node.postal.eager`."""
    why_unshared: str
    """Reason why `shared` is None; empty if it is not."""
    lone_latency: bool
    """Whether the latencies of the models of sharing are those of postal, as their points are streams."""
    choice_warnings: tuple[str, ...]
    """About the rows that were chosen."""

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the parameters, one sentence each."""
        return (*self.choice_warnings, *_warnings(self))

    @property
    def short_limit(self) -> float:
        """Largest message sent with the short protocol; 0 if no such protocol was seen."""
        return self.limits.short

    @property
    def eager_limit(self) -> float:
        """Largest message sent with the eager protocol; the largest measured size if no rendezvous was seen."""
        return self.limits.eager

    @cached_property
    def _stream_fits(self) -> tuple[Fit, ...]:
        """The fits with the latencies that their own points give: of streams the gap between messages."""
        return _fits(self.distance, self.points, self.shared, self.limits, self.weighting)

    @property
    def is_alone(self) -> bool:
        """Whether only messages of one process at a time were measured, and no streams: any model has their times."""
        return self.shared is None and self.test not in WINDOWED and self.points.counts[0] == 1

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that were fitted."""
        return ("postal",) if self.shared is None else ("postal", "max_rate", "injection")

    def points_of(self, model: Model) -> MessagePoints:
        """The points that a model was fitted to."""
        return self.points if model == "postal" or self.shared is None else self.shared

    def fit_of(self, model: Model, protocol: str) -> Fit:
        """The parameters of a model for one protocol; `UsageError` where it was not fitted."""
        path = f"network.{self.distance}.{model}.{protocol}"
        found = next((fit for fit in self.fits if fit.path == path), None)
        if found is None:
            raise UsageError(f"no fit of `{model}`: {self.why_unshared or 'no such model or protocol'}")
        return found

    def curve(self, model: Model, sizes: FloatArray, count: FloatArray | float = 1.0) -> FloatArray:
        """Fitted times of messages of some sizes while `count` pairs communicate, elementwise."""
        return self._by_protocol(model, sizes, count)[0]

    def band(self, model: Model, sizes: FloatArray, count: FloatArray | float = 1.0) -> FloatArray:
        """Standard error of `curve`, from the covariance of the parameters; those not determined count as exact."""
        return self._by_protocol(model, sizes, count)[1]

    def residuals(self, model: Model) -> FloatArray:
        """(fitted - measured) / measured of each of `points_of(model)`, streams with their gap."""
        points = self.points_of(model)
        fitted = self if model == "postal" or not self.lone_latency else replace(self, fits=self._stream_fits)
        return fitted.curve(model, points.message_size, points.process_count) / points.time - 1.0

    def error(self, model: Model) -> float:
        """Root mean square of `residuals`."""
        return root_mean_square(self.residuals(model))

    def with_limits(self, short_limit: float, eager_limit: float) -> NetworkFit:
        """The same measurements fitted anew with other protocol limits."""
        limits = _limits((short_limit, eager_limit), found=False)
        fits = _fits(self.distance, self.points, self.shared, limits, self.weighting)
        return replace(self, limits=limits, fits=_with_lone_latencies(fits) if self.lone_latency else fits)

    @cached_property
    def held_out_errors(self) -> dict[Model, float]:
        """Mean relative error at points that were left out, for each model of sharing.

        One pair count is left out at a time if there are three or more, else one message size. What is left
        without enough sizes to fit is passed over; a model without such points is missing.
        """
        errors = {model: self._held_out_error(model) for model in self.models[1:]}
        return {model: error for model, error in errors.items() if np.isfinite(error)}

    @property
    def recommended(self) -> Model:
        """The model with the least error at points that were left out; postal without measurements of sharing.

        Not max_rate where its R_Ci ends at 0: without the bound it would be negative, the form does not fit.
        """
        return self._choice[0]

    @property
    def recommendation(self) -> str:
        """The recommended model and why: `injection: least error at points left out`."""
        model, reason = self._choice
        return f"{model}: {reason}"

    @property
    def _choice(self) -> tuple[Model, str]:
        if self.shared is None:
            return "postal", self.why_unshared
        errors: dict[Model, float] = dict(self.held_out_errors)
        if not errors:
            return "postal", "too few points to leave any out and compare the others"
        best = min(errors, key=errors.__getitem__)
        parts = [self.fit_of("max_rate", protocol) for protocol in PROTOCOLS[1:]]
        if best == "max_rate" and any(part.values[2] == 0 and np.ptp(part.ranges["process_count"]) for part in parts):
            return "injection", "R_Ci of max_rate ends at its bound"
        return best, "least error at points left out"

    def _held_out_error(self, model: Model) -> float:
        points = self.points_of(model)
        left_out = points.process_count if len(points.counts) > 2 else points.message_size
        errors = []
        for value in np.unique(left_out):
            rest, out = points.where(left_out != value), points.where(left_out == value)
            try:
                fits = _protocol_fits(self.distance, model, rest, self.limits, self.weighting)
            except UsageError:
                continue
            predicted = replace(self, fits=fits).curve(model, out.message_size, out.process_count)
            errors.append(np.abs(predicted / out.time - 1.0))
        return float(np.mean(np.concatenate(errors))) if errors else np.nan

    def _by_protocol(self, model: Model, sizes: FloatArray, count: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        size, process_count = np.broadcast_arrays(np.asarray(sizes, float), np.asarray(count, float))
        times, errors = np.empty(size.shape), np.empty(size.shape)
        for protocol, inside in zip(PROTOCOLS, _protocol_masks(size, self.limits), strict=True):
            fit, form = self.fit_of(model, protocol), form_of(model, protocol)
            times[inside] = form.time(size[inside], process_count[inside], fit.values)
            jacobian = form.jacobian(size[inside], process_count[inside], fit.values)
            spread = np.einsum("ij,jk,ik->i", jacobian, np.nan_to_num(fit.covariance), jacobian)
            errors[inside] = np.sqrt(np.maximum(spread, 0.0))
        return times, errors


def fit_network(
    table: Table,
    *,
    distance: str = "inter_node",
    limits: tuple[float, float] | None = None,
    weighting: PointWeighting = "relative",
    test: str | None = None,
    buffers: str | None = None,
) -> NetworkFit:
    """Fit protocol limits and parameters to measurements (`whatif.importers.message_tables`).

    `limits` are the short and the eager limit, inclusive; they are found where they are not given. `test` and
    `buffers` choose among the rows. Raises `UsageError` where the rows do not allow a fit, with the reason.
    """
    require_choice("weighting", weighting, POINT_WEIGHTINGS)
    chosen = choose(table, test, buffers)
    placed = on_one_node(table, chosen) if distance == "inter_node" else ""
    points = chosen.points.alone()
    found, *lines = find_limits(chosen.points)
    tried = [found]
    at = protocol_limits(found.limits, points.message_size)
    if limits is not None:
        at = limits
        tried.append(segmentation(chosen.points, limits, "given"))
    where = _limits(at, found=limits is None)
    fits = _fits(distance, points, chosen.shared, where, weighting)
    return NetworkFit(
        distance,
        chosen.test,
        weighting,
        where,
        (*tried, *lines),
        points,
        chosen.shared_test,
        chosen.shared,
        _with_lone_latencies(fits) if chosen.lone_latency else fits,
        chosen.why_unshared,
        chosen.lone_latency,
        (*chosen.warnings, *([placed] if placed else [])),
    )


def _warnings(fit: NetworkFit) -> Iterator[str]:
    if fit.shared is None:
        yield f"{fit.why_unshared}: only the postal model can be fitted"
    if fit.limits.found and not fit.segmentations[0].limits:
        yield "no change of protocol was found: all sizes share one set of parameters"
    yield from _doubt_of_unit(fit.points)
    for part in fit.fits:
        yield from part.warnings
    residuals = np.abs(fit.residuals("postal"))
    outlier_count = int((residuals > max(OUTLIER * float(np.median(residuals)), LEAST_OUTLIER)).sum())
    if outlier_count:
        yield f"{outlier_count} of {len(residuals)} points lie far outside the fitted postal lines"
    yield from _scatter(fit)


def _doubt_of_unit(points: MessagePoints) -> Iterator[str]:
    """Remark on times of small messages that no network has: their unit may be another one."""
    small = points.time[points.message_size <= _SMALL]
    if small.size and not _SHORTEST < small.min() < _LONGEST:
        shortest = format_quantity(float(small.min()), SECOND, 3)
        yield f"a message takes at least {shortest}: is the unit of the times right?"


def _scatter(fit: NetworkFit) -> Iterator[str]:
    """Possible causes of points far from their curves: mixed measurements, or limits at other sizes."""
    poor = {part.path.split(".", 2)[2]: part.error for part in fit.fits if part.error > POOR and not part.borrowed}
    if poor:
        around = ", ".join(f"by {error:.0%} around {name}" for name, error in poor.items())
        yield f"the points scatter {around}; {ONE_KIND}"
    missed = max((error for name, error in poor.items() if name.startswith("postal.")), default=0.0)
    best = next(tried for tried in fit.segmentations if tried.kind == "lines")
    if missed and best.error < segmentation(fit.points, (fit.short_limit, fit.eager_limit), "given").error:
        limits = ", ".join(format_quantity(limit, BYTE) for limit in best.limits)
        better = f"lines between {limits} would miss by {best.error:.0%} on the whole"
        yield f"a line for each protocol misses by up to {missed:.0%}; {better}"


def _limits(at: tuple[float, float], found: bool) -> ProtocolLimits:
    short, eager = at
    if not 0 <= short <= eager:
        raise UsageError(f"protocol limits must ascend from 0 B: {short:g} B, {eager:g} B")
    return ProtocolLimits(short, eager, found)


def _protocol_masks(size: FloatArray, limits: ProtocolLimits) -> tuple[NDArray[np.bool_], ...]:
    short, eager = size <= limits.short, size <= limits.eager
    return short, eager & ~short, ~eager


def _fits(
    distance: str, points: MessagePoints, shared: MessagePoints | None, limits: ProtocolLimits, weights: PointWeighting
) -> tuple[Fit, ...]:
    fits = _protocol_fits(distance, "postal", points, limits, weights)
    if shared is not None:
        for model in ("max_rate", "injection"):
            fits += _protocol_fits(distance, model, shared, limits, weights)
    return fits


def _with_lone_latencies(fits: tuple[Fit, ...]) -> tuple[Fit, ...]:
    """The fits with the latency of postal's same protocol in all models, known apart from their bandwidths."""
    lone = {fit.path.rpartition(".")[2]: fit for fit in fits[: len(PROTOCOLS)]}
    others = (_with_latency(fit, lone[fit.path.rpartition(".")[2]]) for fit in fits[len(PROTOCOLS) :])
    return (*fits[: len(PROTOCOLS)], *others)


def _with_latency(fit: Fit, lone: Fit) -> Fit:
    values, spread = fit.values.copy(), fit.covariance.copy()
    values[0], spread[0], spread[:, 0] = lone.values[0], 0.0, 0.0
    spread[0, 0] = lone.covariance[0, 0]
    bounds = tuple(name for name in fit.undetermined if name != "latency")
    bounds += tuple(name for name in lone.undetermined if name == "latency")
    warnings = tuple(text for text in fit.warnings if not text.startswith(f"{fit.path}.latency:"))
    return replace(fit, values=values, covariance=spread, undetermined=bounds, warnings=warnings)


def _protocol_fits(
    distance: str, model: str, points: MessagePoints, limits: ProtocolLimits, weighting: PointWeighting
) -> tuple[Fit, ...]:
    parts = [points.where(mask) for mask in _protocol_masks(points.message_size, limits)]
    own = [len(np.unique(part.message_size)) >= FEWEST_SIZES_OF_PROTOCOL for part in parts]
    if not any(own):
        raise UsageError("no protocol has two message sizes: move the protocol limits")
    fits = []
    for place, protocol in enumerate(PROTOCOLS):
        source = place if own[place] else _neighbour(own, place)
        path = f"network.{distance}.{model}.{protocol}"
        fit = _fit(path, form_of(model, protocol), parts[source], weighting)
        if source != place:
            lender = PROTOCOLS[source]
            few = f"fewer than {FEWEST_SIZES_OF_PROTOCOL} sizes; the parameters are those of {lender} messages"
            fit = replace(fit, warnings=(f"{path}: {few}", *fit.warnings), borrowed=lender)
        fits.append(fit)
    return tuple(fits)


def _neighbour(own: list[bool], place: int) -> int:
    """Protocol whose points replace those of one with too few: the next above, else below."""
    places = (*range(place, len(own)), *range(place, -1, -1))
    return int(next(other for other in places if own[other]))


def _fit(path: str, form: Form, points: MessagePoints, weighting: PointWeighting) -> Fit:
    weights = points.weights(weighting)
    values, free = form.fit(points, weights)
    size, count = points.message_size, points.process_count
    residuals = form.time(size, count, values) - points.time
    spread = covariance(form.jacobian(size, count, values), weights, residuals, free)
    ranges = {"message_size": range_of(size), "process_count": range_of(count)}
    error = root_mean_square(residuals / points.time)
    warnings = tuple(_fit_warnings(path, form, values, free, len(points)))
    bounds = tuple(name for name, determined in zip(form.names, free, strict=True) if not determined)
    return Fit(path, form.dimensions, values, spread, ranges, len(points), error, warnings, undetermined=bounds)


def _fit_warnings(path: str, form: Form, values: FloatArray, free: NDArray[np.bool_], count: int) -> Iterator[str]:
    for name, value, determined in zip(form.names, values, free, strict=True):
        if not determined:
            shown = format_quantity(float(value), form.dimensions[name])
            yield f"{path}.{name}: the points do not determine it; {shown} is the bound of what they allow"
    if count <= len(values):
        points = counted(count, "point")
        yield f"{path}: {points} for {len(values)} parameters leave no freedom to estimate their errors"
