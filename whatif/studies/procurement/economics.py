"""Economics of a study: nodes within the limits, throughput of the mix, power, cost and carbon, at every sample.

With h_a = n_a t_a the node time of a job of application a on N nodes, h'_a and N' on the present machine, and weights w_a
that add up to 1, the shares of the present machine's node time:

- throughput of the mix, relative to the present machine: S = (N / N') / Σ w_a h_a / h'_a. It is the time that the present
  machine takes for a set of jobs in the proportions of its mix, over the time that the bid takes for the same jobs.
- figure of merit: F = Π ((N / N') h'_a / h_a)^w_a, the weighted geometric mean of the throughputs of the applications,
  as the benchmark suites of CORAL-2 and JUPITER form one number of several.

Both count whole machines that always have jobs: what is left over where the nodes of a job do not divide those of the
machine is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.schema.study_spec import StudySpec
from whatif.studies.procurement.jobs import Job
from whatif.studies.procurement.prices import PriceList, Prices
from whatif.units import counted

_DAY: Final = 86_400.0
_ROUNDING: Final = 1 + 1e-12
"""A budget for exactly n nodes buys n, despite the rounding of the quotient."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Conditions that all machines share."""

    weights: FloatArray
    """Shares of the present machine's node time by application; they add up to 1."""
    capital: float
    cost: float
    power: float
    """Limits; infinite without one."""
    working_time: float
    """Part of the lifetime during which nodes run jobs in s; NaN without a lifetime."""
    energy_price: FloatArray | float
    """Money/J; NaN if it is not stated."""
    carbon_intensity: float
    """Carbon/J; NaN if it is not stated."""

    @classmethod
    def of(cls, spec: StudySpec, prices: Prices) -> Terms:
        """Conditions of a study."""
        weights = np.array([float(part.weight) for part in spec.mix.values()])
        limits, site = spec.limits, spec.site
        return cls(
            weights / weights.sum(),
            np.inf if prices.capital is None else prices.capital,
            np.inf if prices.cost is None else prices.cost,
            np.inf if limits.power is None else float(limits.power),
            np.nan if limits.lifetime is None else float(limits.lifetime) * float(site.utilisation),
            np.nan if prices.energy is None else prices.energy,
            np.nan if site.carbon_intensity is None else float(site.carbon_intensity),
        )


    def unlimited(self) -> Terms:
        """The same conditions without limits."""
        return replace(self, capital=np.inf, cost=np.inf, power=np.inf)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A machine within the limits; arrays of [application, draw] or [draw], NaN where unknown or impossible."""

    node_count: FloatArray
    limit: str
    """What bounds the number of nodes without uncertainty."""
    throughput: FloatArray
    """Of the mix, relative to the present machine."""
    merit: FloatArray
    throughputs: FloatArray
    """By application, relative to the present machine."""
    daily_jobs: FloatArray
    """Jobs per day by application, if all run in the proportions of the mix."""
    capital: FloatArray
    """Price of the machine; NaN if rented."""
    power: FloatArray
    """Power of all nodes under load, of the application that draws most."""
    ownership: FloatArray
    """Cost over the lifetime: price or rent, and energy of jobs."""
    costs: FloatArray
    """Cost of one job by application: its share of the price or rent, and its energy."""
    carbon: FloatArray
    """Carbon of the energy of one job by application."""
    mean_power: FloatArray
    """Mean power of all nodes in W while they run the mix."""
    reason: str = ""
    """Reason why the mix cannot run; empty if it can."""
    reasons: tuple[str, ...] = ()
    """Reason why each application cannot run; empty if it can."""

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

    @classmethod
    def of(cls, jobs: Mapping[str, Job]) -> Mix:
        """Arrays of the jobs of a machine."""
        columns = (np.array([getattr(job, key) for job in jobs.values()]) for key in
                   ("time", "node_count", "energy", "power"))  # fmt: skip
        return cls(*columns, tuple(jobs), tuple(job.reason for job in jobs.values()))

    @property
    def node_time(self) -> FloatArray:
        """Node time of one job in s."""
        return self.node_count * self.time


def outcome(mix: Mix, present: Mix, present_nodes: float, prices: PriceList, terms: Terms) -> Outcome:
    """Outcome of a machine under the conditions, with the present machine's node time and nodes as reference."""
    counts = terms.weights > 0
    ratio = mix.node_time / present.node_time
    work = _over(counts, terms.weights, ratio)
    power = mix.power[counts].max(axis=0)
    # Mean power of a node: every application has its share of the node time.
    shares = terms.weights[:, None] * ratio / work
    mean_power = _over(counts, np.ones(len(counts)), shares * mix.energy / mix.node_time)
    nodes, limit, each = _node_count(prices, terms, power, mean_power)
    nodes = np.where((nodes > 0) & np.isfinite(nodes), nodes, np.nan)
    able = np.isfinite(mix.time) & (mix.node_count <= nodes)
    reasons = _reasons(mix, able[:, 0], nodes[0], limit)
    reason = "; ".join(text for text, some in zip(reasons, counts, strict=True) if text and some)
    scale = np.where(able, nodes / present_nodes, np.nan)
    # What cannot run as stated is no option, although some samples may allow it.
    whole = np.where(able[counts].all(axis=0), nodes / present_nodes, np.nan) if not reason else np.full_like(nodes, np.nan)
    throughput = whole / work
    bought = prices.fixed + nodes * each
    energy_cost = terms.energy_price * mean_power
    paid = each / terms.working_time if prices.rate is None else prices.rate
    fixed = prices.fixed / (nodes * terms.working_time) if np.any(prices.fixed) else 0.0
    return Outcome(
        nodes,
        limit,
        throughput,
        np.exp(_over(counts, terms.weights, np.log(whole / ratio))),
        scale / ratio,
        terms.weights[:, None] * present_nodes * throughput * _DAY / present.node_time,
        bought if prices.rate is None else np.full_like(nodes, np.nan),
        nodes * power,
        prices.fixed + nodes * terms.working_time * (paid + energy_cost),
        mix.node_time * (paid + fixed) + mix.energy * terms.energy_price,
        mix.energy * terms.carbon_intensity,
        nodes * mean_power,
        reason,
        reasons,
    )


def _over(counts: FloatArray, weights: FloatArray, values: FloatArray) -> FloatArray:
    """Weighted sum over the applications that count."""
    return np.asarray(np.tensordot(weights[counts], values[counts], axes=1))


def _node_count(
    prices: PriceList, terms: Terms, power: FloatArray, mean_power: FloatArray
) -> tuple[FloatArray, str, FloatArray]:
    """Nodes within all limits, the binding limit, and the price of one node."""
    draws = power.shape
    running = np.nan_to_num(terms.working_time * terms.energy_price * mean_power, nan=0.0)
    steps = prices.node_prices or ((1.0, np.zeros(draws)),)
    best, limit, paid = np.full(draws, -1.0), "", np.full(draws, np.nan)
    for least, each in steps:
        rent = 0.0 if prices.rate is None else prices.rate * terms.working_time
        bounds = {
            "capital": _within(terms.capital - prices.fixed, each),
            "cost": _within(terms.cost - prices.fixed, each + rent + running),
            "power": _within(np.full(draws, terms.power), power),
            "offer": np.full(draws, prices.offered),
        }
        nodes = np.min(list(bounds.values()), axis=0)
        nodes = np.where(nodes >= least, nodes, 0.0)
        better = nodes > best
        if better[0]:
            limit = min(bounds, key=lambda name: bounds[name][0]) if np.isfinite(nodes[0]) else ""
        best, paid = np.where(better, nodes, best), np.where(better, each, paid)
    return best, limit, paid


def _within(limit: FloatArray | float, each: FloatArray) -> FloatArray:
    """Whole nodes within a limit; infinite without a limit or a number for a node."""
    with np.errstate(divide="ignore", invalid="ignore"):
        nodes = np.floor(np.maximum(limit, 0.0) / each * _ROUNDING)
    return np.where(np.isfinite(nodes), nodes, np.inf)


def _reasons(mix: Mix, able: NDArray[np.bool_], nodes: float, limit: str) -> tuple[str, ...]:
    """Reason why each application cannot run without uncertainty; empty if it can."""
    allowed = f"the limit of {limit} allows {nodes:,.0f}" if nodes > 0 else f"the limit of {limit} allows no node"
    if not limit:
        allowed = "no limit bounds the number of nodes: state `node_count`"
    needed = mix.node_count[:, 0].tolist()
    return tuple(
        "" if some else f"{name}: {reason or _needs(number, allowed)}"
        for name, reason, number, some in zip(mix.names, mix.reasons, needed, able.tolist(), strict=True)
    )


def _needs(node_count: float, allowed: str) -> str:
    return f"needs {counted(int(node_count), 'node')}, {allowed}"
