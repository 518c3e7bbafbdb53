"""Tables of the price and the site of a machine: prices, lifetime, cooling, carbon intensity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Self

from pydantic import model_validator

from whatif.schema.fields import (
    CarbonPerJoule,
    Domain,
    Lifetime,
    Money,
    MoneyPerJoule,
    MoneyPerSecond,
    PositiveFraction,
    QuantityField,
    StrictTable,
    Value,
    invalid,
)
from whatif.units import CURRENCIES, MONEY, ONE, Dimension, Quantity

_OF_NODES: Final = ("machine_price", "node_price", "node_rate")
AMOUNTS: Final = (*_OF_NODES, "energy_price")
"""Prices of a machine, all in one currency."""

AtLeastOne = Annotated[Value, QuantityField(ONE, Domain(minimum=1))]


class Site(StrictTable):
    """Site of a machine: cooling and carbon intensity of its energy."""

    power_usage_effectiveness: AtLeastOne = 1.0
    """PUE: energy of the site, with cooling and losses, divided by that of the machine."""
    carbon_intensity: CarbonPerJoule | None = None
    """Greenhouse gas emissions of the electricity, such as `380 gCO2e/kWh`."""


class Price(StrictTable):
    """Price of the nodes, bought (capital, lifetime, energy) or rented, in one currency."""

    machine_price: Money | None = None
    """Capital cost of the whole machine: all its `node_count` nodes, and everything bought with them."""
    node_price: Money | None = None
    """Capital cost of one node, instead of `machine_price`."""
    lifetime: Lifetime | None = None
    """Time over which the capital cost is written off."""
    utilisation: PositiveFraction = 1.0
    """Share of the lifetime during which nodes run jobs."""
    energy_price: MoneyPerJoule | None = None
    """Price of electricity; omit it if the rent includes electricity."""
    node_rate: MoneyPerSecond | None = None
    """Rent of one node, such as `2.5 USD/h`, instead of a capital cost."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        key_of_price(self, _OF_NODES)
        amounts = {key: getattr(self, key) for key in AMOUNTS}
        dimensions = {key: amount.dimension for key, amount in amounts.items() if isinstance(amount, Quantity)}
        found = currencies(dimensions.values())
        if len(found) > 1:
            raise invalid(mixed_currencies(found), key=next(reversed(dimensions)))
        return self


def key_of_price(table: StrictTable, keys: Iterable[str]) -> str:
    """Key of the price that a table states, empty without one. Two prices are an error."""
    stated = [key for key in keys if getattr(table, key) is not None]
    if len(stated) > 1:
        raise invalid(f"`{stated[0]}` and `{stated[1]}` exclude each other: state one price", key=stated[1])
    return next(iter(stated), "")


def currencies(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Currencies that occur in dimensions, each once."""
    powers = [dimension.powers for dimension in dimensions]
    return tuple(name for name in CURRENCIES if any(_has(item, MONEY[name]) for item in powers))


def _has(powers: tuple[int, ...], money: Dimension) -> bool:
    place = len(money.powers) - 1
    return len(powers) > place and powers[place] != 0


def mixed_currencies(found: Iterable[str]) -> str:
    """Error message for prices in several currencies."""
    return f"prices in {' and '.join(found)}: state all of them in one currency, as currencies are not converted"
