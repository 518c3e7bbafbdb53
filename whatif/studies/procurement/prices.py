"""Prices of the machines of a study in one currency, without uncertainty and at every sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.uncertainty import uniform_numbers, values_at
from whatif.errors import InvalidFileError
from whatif.models.quantities import FloatArray
from whatif.schema.distributions import Uncertain
from whatif.schema.fields import Domain
from whatif.schema.load import load_platform_document, open_document
from whatif.schema.price import currencies
from whatif.schema.study_file import StudyFile
from whatif.schema.study_spec import Machine
from whatif.units import JOULE, MONEY, ONE, SECOND, Dimension, Quantity, format_quantity

_PER: Final = {"node_rate": SECOND, "energy_price": JOULE}
_SEED: Final = 1
"""Added to the random seed, so that prices do not follow the values of the model."""


@dataclass(frozen=True, eq=False)
class PriceList:
    """Prices of one machine in the currency of the study; place 0 without uncertainty, the others are samples."""

    node_prices: tuple[tuple[float, FloatArray], ...] = ()
    """Price of one node by the number of nodes from which it holds, ascending; empty without prices."""
    fixed: FloatArray | float = 0.0
    """Price that does not depend on the number of nodes."""
    rate: FloatArray | None = None
    """Rent of one node in money/s."""
    offered: float = np.inf
    """Number of nodes offered."""
    origin: str = ""
    """Where the price comes from, if not from the study."""

    @property
    def is_known(self) -> bool:
        """Whether the machine has a price or a rent."""
        return bool(self.node_prices) or self.rate is not None


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of all machines, of energy, and the limits of money, in one currency."""

    currency: str
    """Empty where no money occurs."""
    machines: dict[str, PriceList]
    energy: FloatArray | None
    """Price of energy in money/J; None where it is not stated."""
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
        self.currency = next(_currencies(study), "")
        self.uncertain: list[Uncertain] = []

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

    def _of_machine(self, name: str, machine: Machine) -> PriceList:
        at = name if name == "present" else f"bids.{name}"
        offered = np.inf if machine.node_count is None else float(machine.node_count)
        kept = 1.0 - float(machine.discount)
        fixed = 0.0 if machine.fixed_price is None else kept * self._amount(f"{at}.fixed_price", machine.fixed_price)
        if machine.node_rate is not None:
            return PriceList((), fixed, kept * self._amount(f"{at}.node_rate", machine.node_rate), offered)
        if machine.node_prices is not None:
            steps = sorted((float(count), key) for key, count in zip(machine.node_prices, map(int, machine.node_prices)))
            known = tuple(
                (count, kept * self._amount(f"{at}.node_prices.{key}", machine.node_prices[key]))
                for count, key in steps
            )
            return PriceList(known, fixed, None, offered)
        if machine.node_price is not None:
            return PriceList(((1.0, kept * self._amount(f"{at}.node_price", machine.node_price)),), fixed, None, offered)
        return self._of_platform(at, machine, kept, fixed, offered)

    def _of_platform(
        self, at: str, machine: Machine, kept: float, fixed: FloatArray | float, offered: float
    ) -> PriceList:
        """Price of the whole offer, or of the platform's own file; an inherited one is that of another machine."""
        study = self.study
        document = open_document(study.source(machine.platform), "platforms", (study.folder,))
        platform, _ = load_platform_document(document, (study.folder,))
        nodes = float(machine.node_count or platform.node_count)
        if machine.price is not None:
            offered = nodes
            return PriceList(((1.0, kept * self._amount(f"{at}.price", machine.price) / nodes),), fixed, None, offered)
        stated = platform.price
        if "price" not in document.data or stated is None:
            return PriceList((), fixed, None, offered)
        origin = f"price of {document.name}"
        where = f"{at}.platform"
        if isinstance(stated.node_rate, Quantity):
            return PriceList((), fixed, kept * self._amount(where, stated.node_rate), offered, origin)
        if isinstance(stated.machine_price, Quantity):
            each = self._amount(where, stated.machine_price) / float(platform.node_count)
            return PriceList(((1.0, kept * each),), fixed, None, offered, f"{origin} for all its nodes")
        if isinstance(stated.node_price, Quantity):
            return PriceList(((1.0, kept * self._amount(where, stated.node_price)),), fixed, None, offered, origin)
        return PriceList((), fixed, None, offered)

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
        return float(stated.value.value)

    def _drawn(self, value: float) -> FloatArray:
        """Value without uncertainty, then its samples."""
        if not isinstance(value, Uncertain):
            return np.full(self.draws + 1, float(value))
        self.uncertain.append(value)
        place = len(self.uncertain)
        numbers = uniform_numbers(place, self.draws, self.seed)[:, place - 1]
        return np.concatenate([[float(value)], values_at(value.distribution, numbers, Domain())])


def _currencies(study: StudyFile) -> Iterator[str]:
    """Currencies of the limits, then of prices, in order."""
    spec = study.spec
    limits: Iterable[Quantity | None] = (spec.limits.capital, spec.limits.cost)
    prices = (
        price
        for machine in (*spec.bids.values(), spec.present)
        for price in (machine.price, machine.node_price, machine.node_rate, *(machine.node_prices or {}).values())
    )
    for amount in (*limits, *prices, spec.site.energy_price):
        if isinstance(amount, Quantity):
            yield from currencies([amount.dimension])


def without_price(study: StudyFile, prices: Prices) -> Iterator[InvalidFileError]:
    """Errors of bids without a price under a limit of money."""
    limit = "capital" if prices.capital is not None else "cost" if prices.cost is not None else ""
    for name in study.spec.bids if limit else ():
        if not prices.machines[name].is_known:
            message = f"no price, which `[limits] {limit}` needs: state price, node_price, node_prices or node_rate"
            yield study.refused(f"bids.{name}", message)


def price_remarks(prices: Prices, spec_rates: Iterable[str] = ()) -> Iterator[str]:
    """Prices that the study does not state itself."""
    for name, item in prices.machines.items():
        if item.origin and item.node_prices:
            amount = format_quantity(float(item.node_prices[0][1][0]), prices.dimension)
            yield f"{name}: {item.origin}: {amount} a node"
