"""Changes of a study: where the ranking turns, with which changes a bid wins, and what the named options are worth.

All of them are evaluated without uncertainty, along the axis that otherwise holds the samples: the values of one number
are evaluated at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.core.evaluate import evaluate
from whatif.core.model_error import with_model_errors
from whatif.core.term import Program
from whatif.models.quantities import FloatArray
from whatif.schema.study_spec import PRESENT
from whatif.studies.procurement.economics import Mix, Outcome, Terms, outcome
from whatif.studies.procurement.prices import PriceList
from whatif.units import BYTE_PER_SECOND, JOULE, ONE, SECOND, WATT, Dimension

if TYPE_CHECKING:
    from whatif.studies.procurement.study import Study

_POINTS: Final = 65
_PASSES: Final = 3
"""Times that a value is sought, each time between two of the last."""
_FINE: Final = 20_001
"""Values among which the nearest turning point is sought: bids gain whole nodes, so leads may change twice within a few
per mille."""
_MOST_SHARE: Final = 0.9999
"""Largest share of an application in the mix that is tried: a weight of 1 would leave no other application."""
PRICE: Final = "price of a node"
MOST_CHANGE: Final = 10.0
"""Largest factor that is tried."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Value of one number, nearest to the present one, at which another bid leads."""

    name: str
    present: float
    at: float
    """NaN if the leader stays."""
    leader: str
    dimension: Dimension


@dataclass(frozen=True, slots=True)
class NeededChange:
    """Least change of one number with which a bid is level with the best."""

    bid: str
    name: str
    factor: float
    """Factor on the present value; NaN if no factor that was tried is enough."""
    present: float
    needed: float
    """Values before and after, NaN where several values change."""
    dimension: Dimension


@dataclass(frozen=True, eq=False)
class _Point:
    """A study without uncertainty, whose parts can be replaced by arrays of values."""

    study: Study
    terms: Terms
    mixes: dict[str, Mix]
    prices: dict[str, PriceList]

    @classmethod
    def of(cls, study: Study) -> _Point:
        price = study.terms.energy_price
        energy_price = price[:1] if isinstance(price, np.ndarray) else price
        return cls(
            study,
            replace(study.terms, energy_price=energy_price),
            {name: _stated_mix(mix) for name, mix in study.mixes.items()},
            {name: _stated_prices(its) for name, its in study.prices.machines.items()},
        )

    def outcome(self, name: str) -> Outcome:
        """Outcome of one bid."""
        return outcome(self.mixes[name], self.mixes[PRESENT], self.study.present_nodes, self.prices[name], self.terms)

    def score(self, name: str) -> FloatArray:
        """Criterion of one bid; minus infinity where it cannot run the mix."""
        score = self.outcome(name).score(self.study.criterion)
        return np.where(np.isfinite(score), score, -np.inf)

    def leaders(self, count: int) -> NDArray[np.object_]:
        """Best bid at each of some values; empty if none runs the mix."""
        names = np.array(list(self.study.file.spec.bids), dtype=object)
        scores = np.array([np.broadcast_to(self.score(name), count) for name in names])
        return np.where(np.isfinite(scores.max(axis=0)), names[scores.argmax(axis=0)], "")


def _stated_mix(mix: Mix) -> Mix:
    return replace(mix, time=mix.time[:, :1], node_count=mix.node_count[:, :1], energy=mix.energy[:, :1],
                   power=mix.power[:, :1])  # fmt: skip


def _stated_prices(its: PriceList) -> PriceList:
    fixed = its.fixed if isinstance(its.fixed, float) else its.fixed[:1]
    steps = tuple((count, each[:1]) for count, each in its.node_prices)
    return replace(its, node_prices=steps, fixed=fixed, rate=None if its.rate is None else its.rate[:1])


def _times(its: PriceList, factor: FloatArray) -> PriceList:
    """Prices or rent of the nodes of a machine times a factor."""
    steps = tuple((count, each * factor) for count, each in its.node_prices)
    rate = None if its.rate is None else its.rate * factor
    return replace(its, node_prices=steps, rate=rate)


_Lever = Callable[[FloatArray], _Point]
"""Point at each value of one number."""


def turns(study: Study) -> list[Turn]:
    """Turning points of the ranking over weights, limits, the price of energy, and the prices of the bids."""
    point = _Point.of(study)
    return [_turn(point, *item) for item in (*_weights(point), *_conditions(point), *_prices(point))]


def _weights(point: _Point) -> Iterator[tuple[str, float, FloatArray, _Lever, Dimension]]:
    """Weight of each application as the file states it, from a share of 0 to nearly 1, while the others stay."""
    weights = np.array([part.weight for part in point.study.file.spec.mix.values()])
    shares = np.linspace(0.0, _MOST_SHARE, _FINE)
    for at, name in enumerate(point.study.file.spec.mix):

        def lever(values: FloatArray, at: int = at) -> _Point:
            changed = np.repeat(weights[:, None], len(values), axis=1)
            changed[at] = values
            return replace(point, terms=replace(point.terms, weights=changed / changed.sum(axis=0)))

        if (others := weights.sum() - weights[at]) and weights[at]:
            yield f"mix.{name}.weight", float(weights[at]), others * shares / (1 - shares), lever, ONE


def _conditions(point: _Point) -> Iterator[tuple[str, float, FloatArray, _Lever, Dimension]]:
    """Limits and price of energy, from a tenth to ten times the present value."""
    study, terms = point.study, point.terms
    money = study.prices.dimension
    stated: list[tuple[str, str, Any, Dimension]] = [
        ("limits.capital", "capital", study.prices.capital, money),
        ("limits.cost", "cost", study.prices.cost, money),
        ("limits.power", "power", study.file.spec.limits.power, WATT),
        ("site.energy_price", "energy_price", study.prices.energy, money / JOULE),
    ]
    for name, key, known, dimension in stated:

        def lever(values: FloatArray, key: str = key) -> _Point:
            changed: dict[str, Any] = {key: values}
            return replace(point, terms=replace(terms, **changed))

        if known is not None:
            value = first_number(known)
            yield name, value, value * _factors(), lever, dimension


def _prices(point: _Point) -> Iterator[tuple[str, float, FloatArray, _Lever, Dimension]]:
    """Factor on the prices of each bid."""
    for name in point.study.bids:
        its = point.prices[name]

        def lever(values: FloatArray, name: str = name, its: PriceList = its) -> _Point:
            priced = replace(_times(its, values), fixed=its.fixed * values)
            return replace(point, prices={**point.prices, name: priced})

        if its.is_known:
            yield f"prices of {name}", 1.0, _factors(), lever, ONE


def _factors() -> FloatArray:
    return np.geomspace(1 / MOST_CHANGE, MOST_CHANGE, _FINE)


def _turn(point: _Point, name: str, present: float, values: FloatArray, lever: _Lever, dimension: Dimension) -> Turn:
    """Turning point nearest to the present value: sought on all values, then between the two next to it."""
    found, winner = (math.nan, ""), point.study.winner
    for passed in range(_PASSES):
        leaders = lever(values).leaders(len(values))
        others = np.flatnonzero(leaders != winner)
        if not others.size:
            break
        at = int(others[np.abs(values[others] - present).argmin()])
        found = (float(values[at]), leaders[at] or "no bid")
        # Later passes begin where the leader still leads, on whichever side of the present value that is.
        before = at - 1 if passed or values[at] > present else at + 1
        values = np.linspace(values[before], values[at], _POINTS) if 0 <= before < len(values) else values
    return Turn(name, present, *found, dimension)


def changes(study: Study) -> list[NeededChange]:
    """Least changes with which each bid is level with the best: prices, nodes for the same money, power, hardware."""
    point = _Point.of(study)
    best = study.winner
    if not best:
        return []
    target = float(study.scores[best][0])
    return [change for bid in study.bids if bid != best for change in _of_bid(point, bid, target)]


def _of_bid(point: _Point, bid: str, target: float) -> Iterator[NeededChange]:
    """Changes of one bid: of its prices or nodes, its power, and its hardware."""
    own, mix, known = point.prices[bid], point.mixes[bid], point.outcome(bid)
    nodes, money = float(known.node_count[0]), point.study.prices.dimension

    def cheaper(factors: FloatArray) -> _Point:
        return replace(point, prices={**point.prices, bid: _times(own, 1 / factors)})

    def larger(factors: FloatArray) -> _Point:
        more = replace(_times(own, 1 / factors), offered=np.floor(own.offered * factors))
        return replace(point, prices={**point.prices, bid: more})

    def frugal(factors: FloatArray) -> _Point:
        less = replace(mix, power=mix.power / factors, energy=mix.energy / factors)
        return replace(point, mixes={**point.mixes, bid: less})

    if own.is_known:
        factor, growth = _least(cheaper, bid, target), _least(larger, bid, target)
        more = float(larger(np.array([growth])).outcome(bid).node_count[0]) if growth < np.inf else math.nan
        each = float(known.node_price[0]) / own.kept if own.node_prices and own.kept else math.nan
        yield NeededChange(bid, PRICE, 1 / factor, each, each / factor, money)
        yield NeededChange(bid, "nodes for the same money", more / nodes, nodes, more, ONE)
    if np.isfinite(mix.power).all():
        yield NeededChange(bid, "power", 1 / _least(frugal, bid, target), math.nan, math.nan, ONE)
    for name, choose in _HARDWARE.items():
        factor = _least(partial(_faster, point, bid, choose), bid, target)
        yield NeededChange(bid, name, factor, math.nan, math.nan, ONE)


def _least(lever: _Lever, bid: str, target: float) -> float:
    """Least factor of at least 1 with which the criterion of a bid reaches the target; NaN if that of ten does not."""
    low, high = 1.0, MOST_CHANGE
    for _ in range(_PASSES):
        factors = np.geomspace(low, high, _POINTS)
        met = np.broadcast_to(lever(factors).score(bid), factors.shape) >= target
        if not met.any():
            return math.nan
        at = int(met.argmax())
        low, high = float(factors[max(at - 1, 0)]), float(factors[at])
    return high


def _faster(point: _Point, bid: str, choose: Callable[[str, Dimension], int], factors: FloatArray) -> _Point:
    """Point whose times of one bid are those of faster hardware."""
    scenarios, mix = point.study.jobs.scenarios[bid], point.mixes[bid]
    times = np.array(
        [
            mix.time[at] * _speed(scenario.program, choose, factors) if not mix.reasons[at] else mix.time[at] * factors
            for at, scenario in enumerate(scenarios.values())
        ]
    )
    # Energy is that of the mean power of the job.
    faster = replace(mix, time=times, energy=mix.energy * times / mix.time)
    return replace(point, mixes={**point.mixes, bid: faster})


def _speed(program: Program, choose: Callable[[str, Dimension], int], factors: FloatArray) -> FloatArray:
    """Time over that without the change, for factors on some parameters."""
    changed = {
        path: float(parameter.value) * factors**power
        for path, parameter in program.parameters.items()
        if path in program.reached
        and parameter.field is not None
        and isinstance(parameter.value, float)
        and (power := choose(path, parameter.dimension))
    }
    if not changed:
        return np.ones_like(factors)
    expected = with_model_errors(program)
    time = evaluate(expected, changed).column("total_time")
    return np.asarray(np.broadcast_to(time, factors.shape) / evaluate(expected).column("total_time"))


def _memory(path: str, dimension: Dimension) -> int:
    is_memory = path.rpartition(".")[2] in ("dram_bandwidth", "memory_bandwidth") and path.startswith("platform.node.")
    return int(is_memory and dimension == BYTE_PER_SECOND)


def _network(path: str, dimension: Dimension) -> int:
    return int(path.startswith("platform.network.") and dimension == BYTE_PER_SECOND)


def _latency(path: str, dimension: Dimension) -> int:
    return -int(path.startswith("platform.network.") and dimension == SECOND)


_HARDWARE: Final = {"memory bandwidth": _memory, "network bandwidth": _network, "network latency": _latency}


def changed_throughput(study: Study, bid: str, change: Callable[[Mix], Mix]) -> FloatArray:
    """Throughput of the mix, without uncertainty, of a bid with other jobs."""
    point = _Point.of(study)
    return replace(point, mixes={**point.mixes, bid: change(point.mixes[bid])}).outcome(bid).throughput
