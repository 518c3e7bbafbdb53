"""Economics of a study: nodes within the limits, throughput of the mix, power, cost and carbon, at every sample.

The equations are those of `whatif.studies.procurement.definitions`, with their symbols. Throughput and figure of merit
count whole machines that always have jobs: nodes that are left over, as the nodes of a job do not divide those of the
machine, are not lost. All functions broadcast over the last axis, that of the samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.models.quantities import FloatArray
from whatif.schema.study_spec import StudySpec
from whatif.studies.procurement.prices import PriceList, Prices
from whatif.studies.procurement.study_jobs import StudyJob
from whatif.studies.purchase import nodes_within
from whatif.units import DAY, counted


@dataclass(frozen=True, eq=False)
class Terms:
    """Conditions that all machines share."""

    weights: FloatArray
    """Shares of the present machine's node time, of shape [application, 1 or draw]; they add up to 1."""
    capital: FloatArray | float
    cost: FloatArray | float
    power: FloatArray | float
    """Limits; infinite without one."""
    working_time: FloatArray | float
    """Part of the lifetime during which nodes run jobs in s; NaN without a lifetime."""
    energy_price: FloatArray | float
    """Money/J; NaN if it is not stated."""
    carbon_intensity: float
    """Carbon/J; NaN if it is not stated."""

    @classmethod
    def of(cls, spec: StudySpec, prices: Prices) -> Terms:
        """Conditions of a study."""
        weights = np.array([part.weight for part in spec.mix.values()])
        limits, site = spec.limits, spec.site
        return cls(
            (weights / weights.sum())[:, None],
            np.inf if prices.capital is None else prices.capital,
            np.inf if prices.cost is None else prices.cost,
            np.inf if limits.power is None else limits.power,
            np.nan if limits.lifetime is None else limits.lifetime * site.utilisation,
            np.nan if prices.energy is None else prices.energy,
            np.nan if site.carbon_intensity is None else site.carbon_intensity,
        )

    def unlimited(self) -> Terms:
        """The same conditions without limits."""
        return replace(self, capital=np.inf, cost=np.inf, power=np.inf)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A machine within the limits; arrays of [application, draw] or [draw], NaN where unknown or infeasible."""

    node_count: FloatArray
    limit: str
    """Limit that binds the number of nodes, without uncertainty."""
    throughput: FloatArray
    """Throughput of the mix, relative to the present machine."""
    merit: FloatArray
    throughputs: FloatArray
    """By application, relative to the present machine."""
    daily_jobs: FloatArray
    """Jobs per day by application, if all run in the proportions of the mix."""
    power: FloatArray
    """Power of all nodes under load in W, of the application that draws most."""
    mean_power: FloatArray
    """Mean power of all nodes in W while they run the mix."""
    node_price: FloatArray
    """Price of one node, with its discount; 0 without one."""
    capital: FloatArray
    """Price of the machine: of a rented one its fixed price, NaN without one."""
    rent: FloatArray
    """Rent of all nodes in money/s; NaN if bought."""
    ownership: FloatArray
    """Cost over the lifetime: price or rent, and energy of jobs."""
    costs: FloatArray
    """Cost of one job by application: its share of the price or rent, and its energy."""
    carbon: FloatArray
    """Carbon of the energy of one job by application."""
    reason: str = ""
    """Reason why the mix cannot run; empty if it can."""
    reasons: tuple[str, ...] = ()
    """Reason why each application cannot run; empty if it can."""

    @property
    def bought_node_price(self) -> float:
        """Price of one node with its share of what comes with the nodes; NaN if it is rented or has no price."""
        return float("nan") if np.isfinite(self.rent[0]) else float(self.capital[0] / self.node_count[0])

    def score(self, criterion: str) -> FloatArray:
        """Number that ranks bids, larger is better."""
        if criterion == "merit":
            return self.merit
        if criterion == "cost":
            return self.throughput / self.ownership
        return self.throughput / self.mean_power if criterion == "energy" else self.throughput


@dataclass(frozen=True, eq=False)
class Mix:
    """Jobs of one machine as arrays of [application, draw]."""

    time: FloatArray
    node_count: FloatArray
    energy: FloatArray
    power: FloatArray
    names: tuple[str, ...]
    reasons: tuple[str, ...]
    """Reason why each cannot run; empty if it can."""

    @classmethod
    def of(cls, jobs: Mapping[str, StudyJob]) -> Mix:
        """Arrays of the jobs of a machine."""
        time, count, energy, power = (
            np.array([getattr(job, key) for job in jobs.values()]) for key in ("time", "node_count", "energy", "power")
        )
        return cls(time, count, energy, power, tuple(jobs), tuple(job.reason for job in jobs.values()))

    @property
    def node_time(self) -> FloatArray:
        """Node time of one job in s."""
        return self.node_count * self.time


def outcome(mix: Mix, present: Mix, present_nodes: float, prices: PriceList, terms: Terms) -> Outcome:
    """Outcome of a machine under the conditions, with the present machine's node time and nodes as reference."""
    counts = np.asarray((terms.weights > 0).any(axis=1))
    ratio = mix.node_time / present.node_time
    # Limits also hold for a bid that cannot run some applications: its nodes run the others.
    run = counts & [not reason for reason in mix.reasons]
    run = run if run.any() else counts
    work = _over(run, terms.weights, ratio)
    power = mix.power[run].max(axis=0)
    # Every application has its share of the node time, and its own mean power.
    mean_power = _over(run, terms.weights * ratio / work, mix.energy / mix.node_time)
    size = _size(prices, terms, power, mean_power)
    able = np.isfinite(mix.time) & (mix.node_count <= size.nodes)
    reasons = _reasons(mix, able[:, 0], size)
    reason = "; ".join(text for text, some in zip(reasons, counts.tolist(), strict=True) if text and some)
    if size.limit and not size.nodes[0] > 0:
        reason = _allowed(size)
    scale = np.where(able[counts].all(axis=0), size.nodes / present_nodes, np.nan)
    throughput, alone = scale / work, np.where(able, size.nodes / present_nodes, np.nan) / ratio
    return Outcome(
        size.nodes,
        size.limit,
        throughput,
        np.exp(_over(counts, terms.weights, np.log(scale / ratio))),
        alone,
        terms.weights * present_nodes * throughput * DAY / present.node_time,
        size.nodes * power,
        size.nodes * mean_power,
        size.each,
        *_costs(mix, prices, terms, size, mean_power),
        mix.energy * terms.carbon_intensity,
        reason,
        reasons,
    )


@dataclass(frozen=True, eq=False)
class _Size:
    """Size of a machine: nodes (NaN if none or any number is within the limits), binding limit, price of a node."""

    nodes: FloatArray
    limit: str
    each: FloatArray


def _over(counts: NDArray[np.bool_], weights: FloatArray, values: FloatArray) -> FloatArray:
    """Weighted sum over the applications that count."""
    return np.asarray((weights[counts] * values[counts]).sum(axis=0))


def _costs(
    mix: Mix, prices: PriceList, terms: Terms, size: _Size, mean_power: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Price of the machine, its rent, its cost over the lifetime, and the cost of one job of each application."""
    rent = np.full_like(size.nodes, np.nan)
    capital = prices.fixed + size.nodes * (size.each if prices.node_prices else np.nan)
    rate = capital / (size.nodes * terms.working_time)
    if prices.rate is not None:
        capital, rent = _up_front(prices, size), size.nodes * prices.rate
        rate = prices.rate + prices.fixed / (size.nodes * terms.working_time)
    owned = size.nodes * terms.working_time * (rate + _paid(prices, terms, mean_power))
    return capital, rent, owned, mix.node_time * rate + _paid(prices, terms, mix.energy)


def _up_front(prices: PriceList, size: _Size) -> FloatArray:
    """Fixed price of a rented machine; NaN without one."""
    return np.where(np.isfinite(size.nodes) & (np.asarray(prices.fixed) > 0), prices.fixed, np.nan)


def _paid(prices: PriceList, terms: Terms, energy: FloatArray) -> FloatArray:
    """Price of an energy, or rate of a power; rent includes it where no price of energy is stated."""
    if prices.rate is not None and np.isnan(terms.energy_price).all():
        return np.zeros_like(energy)
    return energy * terms.energy_price


def _size(prices: PriceList, terms: Terms, power: FloatArray, mean_power: FloatArray) -> _Size:
    """Size of a machine within all limits: the largest that one of its prices allows."""
    ends = [least - 1 for least, _ in prices.steps[1:]] + [np.inf]
    sizes = [
        _at_price(least, most, each, prices, terms, power, mean_power)
        for most, (least, each) in zip(ends, prices.steps, strict=True)
    ]
    nodes = np.array(np.broadcast_arrays(*(size.nodes for size in sizes)))
    each = np.array(np.broadcast_arrays(nodes[0], *(size.each for size in sizes))[1:])
    best = nodes.argmax(axis=0)[None]
    most = np.take_along_axis(nodes, best, axis=0)[0]
    paid = np.take_along_axis(each, best, axis=0)[0]
    return _Size(np.where((most > 0) & np.isfinite(most), most, np.nan), sizes[int(best.flat[0])].limit, paid)


def _at_price(
    least: float, most: float, each: FloatArray, prices: PriceList, terms: Terms, power: FloatArray,
    mean_power: FloatArray,
) -> _Size:  # fmt: skip
    """Size at one price of a node, which holds for some numbers of nodes; 0 nodes if the limits allow fewer."""
    running = terms.working_time * (_paid(prices, terms, mean_power) + (0.0 if prices.rate is None else prices.rate))
    bounds = {
        "capital": nodes_within(terms.capital - prices.fixed, each),
        "cost": nodes_within(terms.cost - prices.fixed, each + running),
        "power": nodes_within(terms.power, power),
        "offer": np.atleast_1d(prices.offered),
    }
    together = np.broadcast_arrays(*bounds.values())
    nodes = np.minimum(np.minimum.reduce(together), most)
    first = [first_number(bound) for bound in together]
    limit = list(bounds)[int(np.argmin(first))] if np.isfinite(min(first)) else ""
    return _Size(np.where(nodes >= least, nodes, 0.0), limit, each)


def _reasons(mix: Mix, able: NDArray[np.bool_], size: _Size) -> tuple[str, ...]:
    """Reason why each application cannot run without uncertainty; empty if it can."""
    allowed = _allowed(size) if size.limit else "no limit bounds the number of nodes: state `node_count`"
    needed = mix.node_count[:, 0].tolist()
    return tuple(
        "" if some else f"{name}: {reason or f'needs {_nodes(number)}, {allowed}'}"
        for name, reason, number, some in zip(mix.names, mix.reasons, needed, able.tolist(), strict=True)
    )


def _allowed(size: _Size) -> str:
    """Number of nodes that the binding limit allows, in words."""
    nodes = first_number(size.nodes)
    return f"the limit of {size.limit} allows {f'{nodes:,.0f}' if nodes > 0 else 'no node'}"


def _nodes(count: float) -> str:
    return counted(int(count), "node")
