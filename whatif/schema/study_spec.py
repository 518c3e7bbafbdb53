"""Tables of a procurement study: the present machine, bids, the mix of applications, limits, site and confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from whatif import units
from whatif.schema.expressions import Expression
from whatif.schema.fields import Domain, Key, MoneyField, QuantityField, StrictTable, invalid
from whatif.schema.price import key_of_price
from whatif.schema.toml import dotted, walk

Criterion = Literal["throughput", "merit", "cost", "energy"]
"""Criterion that ranks the bids: work per day, figure of merit, or the money or energy for the work of a day."""


def _number(value: Any) -> Any:
    if isinstance(value, Expression):
        raise invalid("a study has no `[parameters]`: write a value, not an expression")
    return value


def _date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise invalid(f'`{text}` is not a date; write it as "2026-11-01"') from None
    return text


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


_Plain = AfterValidator(_number)
# Values of `--set` and `--sweep` are texts.
_Integer = BeforeValidator(_integer)
_POSITIVE: Final = Domain(above_minimum=True)
_SHARE: Final = Domain(maximum=1, above_minimum=True)
# As in other files, but without expressions, which need `[parameters]`.
Money = Annotated[units.Quantity, MoneyField(None), _Plain]
MoneyPerSecond = Annotated[units.Quantity, MoneyField(None, Domain(), "2.5 USD/h", units.SECOND), _Plain]
MoneyPerJoule = Annotated[units.Quantity, MoneyField(None, Domain(), "0.15 EUR/kWh", units.JOULE), _Plain]
Lifetime = Annotated[float, QuantityField(units.SECOND, _POSITIVE, "5 years"), _Plain]
PositiveFraction = Annotated[float, QuantityField(units.ONE, _SHARE), _Plain]
PositiveWatts = Annotated[float, QuantityField(units.WATT, _POSITIVE), _Plain]
CarbonPerJoule = Annotated[float, QuantityField(units.CARBON_PER_JOULE), _Plain]
NodeCount = Annotated[float, QuantityField(units.ONE, Domain(minimum=1, whole=True)), _Plain]
Weight = Annotated[float, QuantityField(units.ONE), _Plain]
Discount = Annotated[float, QuantityField(units.ONE, Domain(maximum=1)), _Plain]
Effectiveness = Annotated[float, QuantityField(units.ONE, Domain(minimum=1)), _Plain]
Confidence = Annotated[float, QuantityField(units.ONE, Domain(minimum=0.5, maximum=0.9999)), _Plain]
PRESENT: Final = "present"
"""Name of the present machine among those of a study."""
MIX: Final = "mix"
"""Name of all applications together."""
Tables = dict[str, Any]
"""Tables of a platform or a scenario, in part."""
_PRICES: Final = ("price", "node_price", "node_rate", "node_prices")


class StudyMachine(StrictTable):
    """A machine of a study: a platform, with values that replace those of its file, and a number of nodes."""

    platform: str
    """Name of a platform, or a file next to the study."""
    node_count: NodeCount | None = None
    """Number of nodes of the machine, or nodes offered; by default as many as the limits allow."""
    price: Money | None = None
    """Price of the whole offer: `node_count` nodes, or those that the platform's own file states, and what comes with
    them."""
    node_price: Money | None = None
    """Price of one node."""
    node_prices: Annotated[dict[str, Money], Field(min_length=1)] | None = None
    """Price of one node by the number of nodes from which it holds, such as `256 = "45 kEUR"`."""
    fixed_price: Money | None = None
    """Price that does not depend on the number of nodes, such as storage or a building."""
    discount: Discount = 0.0
    """Discount on all prices, a share."""
    node_rate: MoneyPerSecond | None = None
    """Rent of one node, such as `2.5 USD/h`, instead of prices."""
    overrides: Tables = {}
    """Values of the platform that replace those of its file: `node.gpu_count = 8`; `"none"` removes one."""

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        key_of_price(self, _PRICES)
        for count in self.node_prices or {}:
            if not count.isdigit() or int(count) < 1:
                raise invalid(f"`{count}` is not a number of nodes", key="node_prices")
        return self

    def settings(self) -> dict[str, Any]:
        """Overrides of a scenario that this machine states, by path."""
        return {f"platform.{path}": value for path, value in flattened(self.overrides)}

    @property
    def stated_price(self) -> str:
        """Key of the price that it states; empty if that of the platform holds."""
        return key_of_price(self, _PRICES)


class MixPart(StrictTable):
    """An application of the mix."""

    scenario: str
    """Name of a scenario, or a file next to the study."""
    runs: str | None = None
    """CSV file of measured runs on the present machine; by default those that the scenario names, if any."""
    weight: Weight = 1.0
    """Share of the node hours of the present machine; weights need not add up to 1."""
    target: str | None = None
    """Target of one job, such as `total_time <= 40 min`, for which the fewest nodes are sought."""
    overrides: Tables = {}
    """Values that replace those of the scenario: `application.iteration_count = 500`."""
    on: dict[Key, Tables] = {}
    """Values on one machine, by its name or `present`, such as ranks per node."""


class Limits(StrictTable):
    """Limits that every bid must meet."""

    capital: Money | None = None
    """Most that the machine may cost to buy."""
    cost: Money | None = None
    """Most that the machine and its energy may cost over its lifetime."""
    power: PositiveWatts | None = None
    """Most power of the nodes under load, with cooling."""
    lifetime: Lifetime | None = None
    """Time over which the machine is used."""


class SiteSpec(StrictTable):
    """Site of the machines; its values replace those of their platforms."""

    energy_price: MoneyPerJoule | None = None
    """Price of electricity, such as `0.18 EUR/kWh`."""
    power_usage_effectiveness: Effectiveness | None = None
    """PUE: energy of the site divided by that of the machine."""
    carbon_intensity: CarbonPerJoule | None = None
    """Greenhouse gas emissions of the electricity, such as `380 gCO2e/kWh`."""
    utilisation: PositiveFraction = 1.0
    """Share of the lifetime during which nodes run jobs."""


class Rate(StrictTable):
    """Exchange rate of a currency."""

    value: Money
    """Value of one unit of the currency in that of the limits, such as `0.92 EUR`."""
    date: Annotated[str, AfterValidator(_date)]
    """Date of the rate, such as `2026-11-01`."""
    source: str = ""


class Commit(StrictTable):
    """Commitment of the vendor."""

    confidence: Confidence = 0.9
    """Probability with which a bid meets the times to commit to."""


class Uncertainty(StrictTable):
    """Samples of uncertain values."""

    samples: Annotated[int, Field(ge=2, le=2**20), _Integer] = 1024
    """Number of samples, best a power of 2."""
    seed: Annotated[int, Field(ge=0), _Integer] = 0
    """Random seed."""
    spreads: dict[str, PositiveFraction] = {}
    """Spread by grade of values without a distribution, such as `assumed = 0.2`."""


class StudySpec(StrictTable):
    """A procurement study."""

    question: str = ""
    """Question that the study answers."""
    present: StudyMachine
    """The present machine, which runs are measured on and speedups refer to."""
    bids: Annotated[dict[Key, StudyMachine], Field(min_length=1)]
    """Bids by name."""
    mix: Annotated[dict[Key, MixPart], Field(min_length=1)]
    """Applications by name."""
    limits: Limits = Limits()
    site: SiteSpec = SiteSpec()
    rates: dict[Key, Rate] = {}
    """Exchange rates by currency, such as `USD`."""
    options: dict[Key, Tables] = {}
    """Changes of the study by name, whose effect is reported: `limits.power = "x0.9"`, or
    `bids.north.overrides.node.gpu_count = 8`."""
    criterion: Criterion = "throughput"
    """Criterion that ranks the bids."""
    commit: Commit = Commit()
    uncertainty: Uncertainty = Uncertainty()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if PRESENT in self.bids:
            raise invalid("`present` is the present machine: give the bid another name", path="bids.present")
        if MIX in self.mix:
            raise invalid(f"`{MIX}` means all applications: give this one another name", path=f"mix.{MIX}")
        if not any(part.weight for part in self.mix.values()):
            raise invalid("the weights add up to 0: at least one application must count", path="mix")
        machines = (PRESENT, *self.bids)
        for name, part in self.mix.items():
            for machine in part.on:
                if machine not in machines:
                    known = ", ".join(machines)
                    raise invalid(
                        f"`{machine}` is not a machine of the study: {known}", path=f"mix.{name}.on.{machine}"
                    )
        return self

    @property
    def machines(self) -> dict[str, StudyMachine]:
        """The present machine and the bids, by name."""
        return {PRESENT: self.present, **self.bids}


def machine_path(name: str) -> str:
    """Path of the table of a machine in the file of a study."""
    return name if name == PRESENT else f"bids.{name}"


def flattened(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of nested tables by dotted path."""
    return ((dotted(path), value) for path, value in walk(dict(tables)) if not isinstance(value, dict))
