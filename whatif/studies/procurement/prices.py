"""Prices of the machines of a study in one currency, without uncertainty and at every sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.uncertainty import values_at
from whatif.errors import InvalidFileError, Problem
from whatif.models.quantities import FloatArray
from whatif.schema.distributions import Uncertain
from whatif.schema.fields import Domain
from whatif.schema.load import load_platform_document, open_document
from whatif.schema.parameters import provenance
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.price import Price, currencies
from whatif.schema.study_file import StudyFile
from whatif.schema.study_spec import StudyMachine, machine_path
from whatif.schema.toml import Document, Layers
from whatif.units import MONEY, ONE, Dimension, Quantity, format_quantity

_SEED: Final = 1
"""Added to the random seed, so that prices do not follow the errors of the runs."""


@dataclass(frozen=True, eq=False)
class PriceList:
    """Prices of one machine in the currency of the study; place 0 without uncertainty, the others are samples."""

    node_prices: tuple[tuple[float, FloatArray], ...] = ()
    """Price of one node by the number of nodes from which it holds, ascending; empty without prices."""
    fixed: FloatArray | float = 0.0
    """Price that does not depend on the number of nodes."""
    rate: FloatArray | None = None
    """Rent of one node in money/s."""
    offered: FloatArray | float = np.inf
    """Number of nodes offered."""
    kept: float = 1.0
    """Share of the stated prices that remains after the discount."""
    origin: str = ""
    """Origin of the price, if not the study."""

    @property
    def steps(self) -> tuple[tuple[float, FloatArray], ...]:
        """Prices of one node by the number of nodes from which they hold; 0 for a machine without one."""
        return self.node_prices or ((1.0, np.zeros(1)),)

    @property
    def is_known(self) -> bool:
        """Whether the machine has a price or a rent."""
        return bool(self.node_prices) or self.rate is not None


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of all machines, of energy, and the limits of money, in one currency."""

    currency: str
    """Empty without prices and costs."""
    machines: dict[str, PriceList]
    energy: FloatArray | None
    """Price of energy in money/J; None if it is not stated."""
    capital: float | None
    """Limit of capital; None without one."""
    cost: float | None
    """Limit of the cost over the lifetime; None without one."""

    @property
    def dimension(self) -> Dimension:
        """Dimension of amounts of money."""
        return MONEY.get(self.currency, ONE)


def prices_of(study: StudyFile, draws: int, seed: int) -> Prices:
    """Prices of a study. Raise `InvalidFileError` for a currency without a rate."""
    return _Converter(study, draws, seed).prices()


class _Converter:
    """Conversion of stated prices into one currency, with samples of the uncertain ones."""

    def __init__(self, study: StudyFile, draws: int, seed: int) -> None:
        self.study = study
        self.draws = draws
        self.seed = seed + _SEED
        self.currency = next(_currencies(study), "") or self._of_platforms()
        self.uncertain: list[Uncertain] = []

    def _of_platforms(self) -> str:
        """Currency that the prices of all platforms have in a study without money; empty if they have several."""
        machines = self.study.spec.machines.items()
        platforms = (
            self._platform(machine_path(name), machine) for name, machine in machines if not machine.stated_price
        )
        amounts = (amount for document, spec, _ in platforms for amount in _amounts(_own_price(document, spec)))
        found = {currency for amount in amounts for currency in currencies([amount.dimension])}
        return found.pop() if len(found) == 1 else ""

    def prices(self) -> Prices:
        spec = self.study.spec
        limits = spec.limits
        return Prices(
            self.currency,
            {name: self._of_machine(name, machine) for name, machine in spec.machines.items()},
            None if spec.site.energy_price is None else self._amount("site.energy_price", spec.site.energy_price),
            None if limits.capital is None else float(self._amount("limits.capital", limits.capital)[0]),
            None if limits.cost is None else float(self._amount("limits.cost", limits.cost)[0]),
        )

    def _of_machine(self, name: str, machine: StudyMachine) -> PriceList:
        """Prices that the study states, else those of the platform's own file."""
        at = machine_path(name)
        found = self._stated(at, machine) if machine.stated_price else self._of_platform(at, machine)
        kept = 1.0 - machine.discount
        fixed = 0.0 if machine.fixed_price is None else kept * self._amount(f"{at}.fixed_price", machine.fixed_price)
        steps = tuple((count, kept * each) for count, each in found.node_prices)
        rate = None if found.rate is None else kept * found.rate
        offered = found.offered if machine.node_count is None else machine.node_count
        return PriceList(steps, fixed, rate, offered, kept, found.origin)

    def _stated(self, at: str, machine: StudyMachine) -> PriceList:
        if machine.node_rate is not None:
            return PriceList(rate=self._amount(f"{at}.node_rate", machine.node_rate))
        if machine.price is not None:
            nodes = machine.node_count or self._own_nodes(at, machine)
            return PriceList(_one(self._amount(f"{at}.price", machine.price) / nodes), offered=nodes)
        if machine.node_price is not None:
            return PriceList(_one(self._amount(f"{at}.node_price", machine.node_price)))
        steps = sorted((machine.node_prices or {}).items(), key=lambda item: int(item[0]))
        return PriceList(
            tuple((float(count), self._amount(f"{at}.node_prices.{count}", price)) for count, price in steps)
        )

    def _own_nodes(self, at: str, machine: StudyMachine) -> float:
        """Nodes that the platform's own file states; raise `InvalidFileError` for others: a price is not for them."""
        document, platform, layers = self._platform(at, machine)
        nodes = self._count(f"{at}.price", document, platform)
        inherited = "node_count" not in document.data
        if inherited or provenance(("node_count",), layers)[1] == "assumed":
            how = "inherited from another machine" if inherited else "assumed"
            count = f"the {nodes:,.0f} nodes of {platform.name}"
            message = f"for how many nodes? State `node_count`: {count} are {how}"
            raise self.study.refused(f"{at}.price", message)
        return nodes

    def _count(self, where: str, document: Document, platform: PlatformSpec) -> float:
        """Nodes of a platform's file; raise `InvalidFileError` for an expression, which only a scenario evaluates."""
        if not isinstance(platform.node_count, float):
            message = f"for how many nodes? `node_count` of {document.name} is an expression; state a `node_price` here"
            raise self.study.refused(where, message)
        return platform.node_count

    def _of_platform(self, at: str, machine: StudyMachine) -> PriceList:
        """Price that the platform's own file states; none without a currency of the study."""
        document, platform, _ = self._platform(at, machine)
        stated, where, origin = _own_price(document, platform), f"{at}.platform", f"price of {document.name}"
        if stated is None or not self.currency:
            return PriceList()
        if isinstance(stated.node_rate, Quantity):
            return PriceList(rate=self._amount(where, stated.node_rate), origin=origin)
        if isinstance(stated.machine_price, Quantity):
            each = self._amount(where, stated.machine_price) / self._count(where, document, platform)
            return PriceList(_one(each), origin=f"{origin} for all its nodes")
        if isinstance(stated.node_price, Quantity):
            return PriceList(_one(self._amount(where, stated.node_price)), origin=origin)
        return PriceList()

    def _platform(self, at: str, machine: StudyMachine) -> tuple[Document, PlatformSpec, Layers]:
        folders = (self.study.folder,)
        try:
            document = open_document(self.study.source(machine.platform), "platforms", folders)
        except InvalidFileError as problem:
            raise self.study.refused(f"{at}.platform", problem.problems[0].message) from None
        return document, *load_platform_document(document, folders)

    def _amount(self, path: str, amount: Quantity) -> FloatArray:
        """Amount in the currency of the study at every draw."""
        found = currencies([amount.dimension])[0]
        rate = 1.0 if found == self.currency else self._rate(path, found)
        return rate * self._drawn(amount.value)

    def _rate(self, path: str, currency: str) -> float:
        stated = self.study.spec.rates.get(currency)
        if stated is None:
            message = f"is in {currency}, the study in {self.currency}; state `[rates.{currency}]` with value and date"
            raise self.study.refused(path, message)
        if currencies([stated.value.dimension]) != (self.currency,):
            message = f"must be in {self.currency}, the currency of the study"
            raise self.study.refused(f"rates.{currency}.value", message)
        return stated.value.value

    def _drawn(self, value: float) -> FloatArray:
        """Value without uncertainty, then its samples."""
        if not isinstance(value, Uncertain):
            return np.full(self.draws + 1, float(value))
        self.uncertain.append(value)
        # The sequence of the values of the model would not do: one dimension with two seeds differs in few digits.
        random = np.random.default_rng((self.seed, len(self.uncertain)))
        numbers = (random.permutation(self.draws) + random.random(self.draws)) / self.draws
        return np.concatenate([[float(value)], values_at(value.distribution, numbers, Domain())])


def _own_price(document: Document, platform: PlatformSpec) -> Price | None:
    """Price in a platform's own file: an inherited one is that of another machine."""
    return platform.price if "price" in document.data else None


def _amounts(price: Price | None) -> Iterator[Quantity]:
    stated = () if price is None else (price.node_rate, price.machine_price, price.node_price)
    yield from (amount for amount in stated if isinstance(amount, Quantity))


def _one(each: FloatArray) -> tuple[tuple[float, FloatArray]]:
    """One price for any number of nodes."""
    return ((1.0, each),)


def _currencies(study: StudyFile) -> Iterator[str]:
    """Currencies of the limits, then of prices, in order."""
    spec = study.spec
    limits: Iterable[Quantity | None] = (spec.limits.capital, spec.limits.cost)
    prices = (
        price
        for machine in (*spec.bids.values(), spec.present)
        for price in (
            *(machine.price, machine.node_price, machine.node_rate, machine.fixed_price),
            *(machine.node_prices or {}).values(),
        )
    )
    for amount in (*limits, *prices, spec.site.energy_price):
        if isinstance(amount, Quantity):
            yield from currencies([amount.dimension])


def money_need(study: StudyFile) -> str:
    """Limit or criterion that needs the cost over the lifetime; empty without one."""
    if study.spec.limits.cost is not None:
        return "`[limits] cost`"
    return '`criterion = "cost"`' if study.spec.criterion == "cost" else ""


def energy_is_paid(prices: Prices, machine: str) -> bool:
    """Whether the energy of a machine is paid for: rent includes it where no price of energy is stated."""
    return prices.energy is not None or prices.machines[machine].rate is None


def without_price(study: StudyFile, prices: Prices) -> Iterator[Problem]:
    """Problems of bids without a price that a limit of money or the criterion needs."""
    needed = "`[limits] capital`" if prices.capital is not None else money_need(study)
    for name in study.spec.bids if needed else ():
        if not prices.machines[name].is_known:
            message = f"no price, which {needed} needs: state price, node_price, node_prices or node_rate"
            yield study.problem(f"bids.{name}", message)


def without_node_price(study: StudyFile, prices: Prices) -> Iterator[Problem]:
    """Problems of fixed prices of machines whose nodes have no price: the sum is not known."""
    for name, machine in study.spec.machines.items():
        if machine.fixed_price is not None and not prices.machines[name].is_known:
            message = "no effect without a price of the nodes: state price, node_price, node_prices or node_rate"
            yield study.problem(f"{machine_path(name)}.fixed_price", message)


def without_bound(study: StudyFile, prices: Prices) -> Iterator[Problem]:
    """Problems of bids whose number of nodes nothing bounds."""
    limits = study.spec.limits
    if (limits.capital, limits.cost, limits.power) == (None, None, None):
        for name in study.spec.bids:
            if np.isinf(prices.machines[name].offered).all():
                message = "nothing bounds its number of nodes: state `node_count`, or a limit of capital, cost or power"
                yield study.problem(f"bids.{name}", message)


def without_conditions(study: StudyFile, prices: Prices) -> Iterator[Problem]:
    """Problems of a cost over the lifetime that is needed without a lifetime or a price of energy."""
    needed, at = money_need(study), "criterion" if study.spec.limits.cost is None else "limits.cost"
    if needed and study.spec.limits.lifetime is None:
        yield study.problem(at, f"{needed} needs `[limits] lifetime`")
    if needed and prices.energy is None and any(energy_is_paid(prices, name) for name in study.spec.bids):
        yield study.problem(at, f"{needed} needs `[site] energy_price`; only rent (`node_rate`) may include it")


def price_remarks(prices: Prices) -> Iterator[str]:
    """Prices that the study does not state itself."""
    for name, item in prices.machines.items():
        if item.origin and item.node_prices:
            amount = format_quantity(float(item.node_prices[0][1][0]), prices.dimension)
            discount = " after the discount" if item.kept < 1 else ""
            yield f"{name}: {item.origin}: {amount} a node{discount}"
