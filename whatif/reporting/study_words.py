"""Sentences of the page of a study: the question, and the recommendation with its probability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from whatif.core.answer_words import joined
from whatif.schema.study_spec import StudyMachine
from whatif.studies.procurement.economics import Outcome
from whatif.studies.procurement.study import Study
from whatif.studies.procurement.study_tables import WORDS, chance
from whatif.units import SECOND, WATT, YEAR, counted, format_quantity, in_percent

LIMITS: Final = {"capital": "capital", "cost": "the cost over the lifetime", "power": "power", "offer": "the offer"}
"""Limits of the number of nodes in words."""


def question(found: Study) -> tuple[str, ...]:
    """Machines, mix of applications, limits and criterion of the comparison."""
    spec = found.file.spec
    bids = joined([f"{name} ({_described(machine)})" for name, machine in spec.bids.items()])
    weights = found.terms.weights[:, 0]
    mix = joined([f"{name} {weight:.0%}" for name, weight in zip(spec.mix, weights.tolist(), strict=True)])
    limits = joined(list(_limits(found)))
    return (
        f"The present machine is {spec.present.platform} with {counted(int(found.present_nodes), 'node')}. "
        f"It is compared with {counted(len(spec.bids), 'bid')}: {bids}.",
        f"The machines run a mix of {counted(len(spec.mix), 'application')}, with these shares of the node hours of "
        f"the present machine: {mix}.",
        f"The limits are {limits}." if limits else "The study states no limits; each bid has the nodes that it offers.",
        f"The {WORDS[found.criterion]} ranks the bids. Each end of a band, and each commitment, has a confidence of "
        f"{in_percent(found.confidence)}.",
        *_rates(found),
    )


def _described(machine: StudyMachine) -> str:
    offered = "" if machine.node_count is None else f", {machine.node_count:,.0f} nodes offered"
    return f"platform {machine.platform}{offered}{', with changes' if machine.overrides else ''}"


def _limits(found: Study) -> Iterator[str]:
    limits, money = found.file.spec.limits, found.prices.dimension
    if found.prices.capital is not None:
        yield f"{format_quantity(found.prices.capital, money)} of capital"
    if found.prices.cost is not None:
        yield f"{format_quantity(found.prices.cost, money)} for machine and energy over the lifetime"
    if limits.power is not None:
        yield f"{format_quantity(limits.power, WATT)} of power with cooling"
    if limits.lifetime is not None:
        yield f"a lifetime of {limits.lifetime / YEAR:.3g} years"


def _rates(found: Study) -> Iterator[str]:
    for currency, rate in found.file.spec.rates.items():
        value = format_quantity(rate.value.value, rate.value.dimension, 6)
        yield f"1 {currency} is {value} ({', '.join(filter(None, (rate.date, rate.source)))})."


def recommendation(found: Study) -> tuple[str, ...]:
    """The best bid with its probability, what it does for which price, how far it is ahead, and what cannot run."""
    failures = [
        f"{name} cannot run the mix within the limits: {its.reason}." for name, its in found.bids.items() if its.reason
    ]
    if not found.winner:
        return ("No bid runs the mix within the limits: there is no recommendation.", *failures)
    return (_chosen(found), _work(found, found.winner), *_lead(found), *failures)


def _chosen(found: Study) -> str:
    best, likely, rivals = found.winner, found.chances[found.winner], len(found.able)
    if rivals == 1:
        return f"The bid {best} is recommended: it is the only bid that runs the mix within the limits."
    text = (
        f"The bid {best} is recommended: with a probability of {chance(likely)} it is the best of {rivals} bids by "
        f"{WORDS[found.criterion]}."
    )
    open_ = f" That is less than the confidence of {in_percent(found.confidence)}: the order of the bids is open."
    return text + (open_ if likely < found.confidence else "")


def _work(found: Study, name: str) -> str:
    its = found.bids[name]
    low, high = found.band(its.throughput)
    band = f" (band {low:.3g} to {high:.3g})" if low < high else ""
    return (
        f"Its {counted(int(its.node_count[0]), 'node')} do {its.throughput[0]:.3g} times{band} the work of the present "
        f"machine{_amounts(found, its)}. The number of nodes is limited by {LIMITS[its.limit]}."
    )


def _amounts(found: Study, its: Outcome) -> str:
    money = found.prices.dimension
    price, rent, cost, power = (float(item[0]) for item in (its.capital, its.rent, its.ownership, its.power))
    words = [
        f"at a price of {format_quantity(price, money)}" if price > 0 else "",
        f"at a rent of {format_quantity(rent, money / SECOND)}" if rent > 0 else "",
        f"at a cost over the lifetime, with energy, of {format_quantity(cost, money)}" if cost > 0 else "",
        f"with {format_quantity(power, WATT)} under load" if math.isfinite(power) else "",
    ]
    found_words = [word for word in words if word]
    return f", {joined(found_words)}" if found_words else ""


def _lead(found: Study) -> Iterator[str]:
    best = found.scores[found.winner][0]
    ahead = [f"{best / found.scores[other][0] - 1:.1%} ahead of {other}" for other in found.able[1:]]
    if ahead:
        yield f"By {WORDS[found.criterion]} it is {joined(ahead)}."
