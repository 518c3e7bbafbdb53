"""Offers of platforms for a budget of money or power: nodes, the jobs they run, and the cost of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from whatif.axes import Grid
from whatif.core.energy import BUSY_POWER, NODE_CAPITAL, OWNED_COST, PRICE, node_capital
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.parameter_paths import NODES_NEEDED
from whatif.core.request_notes import idle_overrides
from whatif.core.result import result_of
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.schema.price import currencies
from whatif.studies.study_result import StudyResult, values_on_all_platforms
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import DAY, JOULE, MONEY, ONE, WATT, Dimension, Quantity, UnitError, counted, parse_quantity


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer of one platform for the budget; NaN for unknown numbers."""

    scenario: str
    platform: str
    node_count: float = np.nan
    limit: str = ""
    """The binding limit: `capital`, price of the nodes; `cost`, price or rent plus energy over the lifetime; or `power`
    of the site."""
    job_count: float = np.nan
    """Jobs that run at the same time."""
    daily_jobs: float = np.nan
    """Jobs per day if all nodes are always busy."""
    energy: float = np.nan
    """Energy of one job in J."""
    cost: Quantity | None = None
    """Cost of one job."""
    reason: str = ""
    """Reason why there is no answer; empty if there is one."""


@dataclass(frozen=True, eq=False, repr=False)
class Offers(StudyResult):
    """Offers of platforms for a budget, for each scenario the most jobs first; a sequence of `Offer`."""

    items: tuple[Offer, ...]
    shows_failures = True

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Offer]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Offer:
        return self.items[index]

    @property
    def optional_columns(self) -> tuple[list[str], ...]:
        """Groups of columns omitted on a narrow terminal."""
        scenarios = {offer.scenario for offer in self.items}
        return ["scenario"] if len(scenarios) == 1 else [], ["side by side"], ["limit"]

    def table(self) -> Table:
        """One row per scenario and platform; one column of costs per currency."""
        money = dict.fromkeys(row.cost.dimension for row in self.items if row.cost is not None)
        priced = {dimension: "cost" if len(money) == 1 else f"cost in {dimension}" for dimension in money}
        columns: dict[str, Dimension | None] = {"scenario": None, "platform": None, "nodes": ONE, "limit": None}
        columns |= {"side by side": ONE, "jobs per day": ONE, "energy": JOULE}
        columns |= {name: dimension for dimension, name in priced.items()} | {"reason": None}
        rows = [
            [
                *(row.scenario, row.platform, row.node_count, row.limit, row.job_count, row.daily_jobs, row.energy),
                *(row.cost.value if row.cost and row.cost.dimension == its else np.nan for its in priced),
                row.reason,
            ]
            for row in self.items
        ]
        return worth_showing(Table.of_rows(columns, rows))

    def obstacle(self) -> str:
        """Reason why no platform has an offer."""
        reasons = dict.fromkeys(offer.reason for offer in self.items)
        return "" if "" in reasons else f"no machine has an answer within the budget: {next(iter(reasons), '')}"


def budget_study(
    scenarios: Mapping[str, Scenario], platforms: Sequence[str], budget: Mapping[str, str | Quantity | None]
) -> Offers:
    """Offers within all limits of a budget, stated as texts such as `20 MUSD` and `5 MW`; None for no limit."""
    stated = {name: _limit(name, limit) for name, limit in budget.items() if limit is not None}
    found = offers(scenarios, list(dict.fromkeys(platforms)), checked_limits(stated))
    answered = [scenarios[row.scenario].moved(row.platform) for row in found if not row.reason]
    remarks = (*values_on_all_platforms(*scenarios.values()), *_idle(answered, stated))
    return Offers(found, remarks=remarks).about(*answered)


def _idle(answered: Sequence[Scenario], limits: Iterable[str]) -> Iterator[str]:
    """Warning of overrides, which are those of all scenarios, that change neither a result nor a limit."""
    terms = {"capital": (NODE_CAPITAL, f"{PRICE}.node_price"), "cost": (OWNED_COST,), "power": (BUSY_POWER,)}
    further = [term for name in limits for term in terms[name]]
    overrides = {path: text for scenario in answered for path, text in scenario.overrides.items()}
    yield from idle_overrides(overrides, [scenario.program for scenario in answered], further)


def _limit(name: str, limit: str | Quantity) -> Quantity:
    if isinstance(limit, Quantity):
        return limit
    try:
        return parse_quantity(limit)
    except UnitError as error:
        expected = "a power, such as `5 MW`" if name == "power" else "money, such as `20 MUSD`"
        raise UsageError(f"--{name}: {str(error).partition('; did you mean')[0]}; expected {expected}") from None


def offers(
    scenarios: Mapping[str, Scenario], platforms: Sequence[str], limits: Mapping[str, Quantity]
) -> tuple[Offer, ...]:
    """Offers of the platforms within all limits, for each application by name, the most jobs first.

    Overrides apply to every platform. Raise `UsageError` for a budget in another currency than prices, and the first
    error if no scenario compiles on any platform; other problems are the reasons of their rows.
    """
    found: list[Offer] = []
    errors: list[WhatifError] = []
    for name, scenario in scenarios.items():
        rows = []
        for platform in platforms:
            try:
                evaluation = evaluate(scenario.moved(platform).program)
            except WhatifError as error:
                errors.append(error)
                rows.append(Offer(name, platform, reason=str(error)))
            else:
                rows.append(_offer(name, evaluation, platform, limits))
        found += sorted(rows, key=lambda row: -row.daily_jobs if np.isfinite(row.daily_jobs) else np.inf)
    if found and len(errors) == len(found):
        raise errors[0]
    return tuple(found)


def _offer(scenario: str, evaluation: Evaluation, platform: str, limits: Mapping[str, Quantity]) -> Offer:
    program, result = evaluation.program, result_of(evaluation, Grid())
    missing = _missing(program, limits)
    energy = float(result.columns["total_energy"]) if "total_energy" in result.columns else np.nan
    offer = partial(Offer, scenario, platform, energy=energy, cost=_cost(program, evaluation))
    time = float(result.columns["total_time"])
    reason = evaluation.obstacle() or missing or ("" if time > 0 else "a job takes no time there")
    if reason:
        return offer(reason=reason)
    affordable = {name: _affordable(program, evaluation, name, limit) for name, limit in limits.items()}
    limit = min(affordable, key=lambda name: affordable[name])
    needed, nodes = float(evaluation.values[NODES_NEEDED]), affordable[limit]
    if not 0 < nodes < np.inf:
        reason = "not one node is within the budget" if nodes == 0 else f"nodes take no {limit} there"
        return offer(nodes, limit, reason=reason)
    jobs = float(np.floor(nodes / needed))
    reason = "" if jobs else f"a job needs {counted(int(needed), 'node')}, the offer has {nodes:,.0f}"
    daily = jobs * DAY / time if jobs else np.nan
    return offer(nodes, limit, jobs, daily, reason=reason)


def _missing(program: Program, limits: Mapping[str, Quantity]) -> str:
    """Parameters that the limits need and the platform does not state; empty if all are stated."""
    lacking: dict[str, None] = {}
    if "power" in limits:
        lacking |= dict.fromkeys(program.missing.get("total_energy", ()))
    if "cost" in limits:
        lacking |= dict.fromkeys(program.missing.get("total_cost", ()))
        lacking |= {} if f"{PRICE}.lifetime" in program.parameters else {f"{PRICE}.lifetime": None}
    capital = node_capital(program.terms)
    if "capital" in limits and capital not in program.terms and capital not in program.parameters:
        lacking |= {capital: None}
    advice = "give values in the file of the platform, or with --set PATH=VALUE"
    return f"not stated: {', '.join(lacking)}; {advice}" if lacking else ""


def _affordable(program: Program, evaluation: Evaluation, name: str, limit: Quantity) -> float:
    """Whole nodes within one limit."""
    reference = {"capital": node_capital(program.terms), "cost": OWNED_COST, "power": BUSY_POWER}[name]
    dimension = program.dimension(reference)
    if dimension != limit.dimension:
        here, there = (" and ".join(currencies([item])) for item in (limit.dimension, dimension))
        machine = program.loaded.scenario.platform.name
        raise UsageError(f"the budget is in {here}, the prices of {machine} are in {there}: nothing here converts them")
    return float(nodes_within(limit.value, evaluation.values[reference]))


def nodes_within(limit: FloatArray | float, each: FloatArray | float) -> FloatArray:
    """Whole nodes within a limit; infinite without a limit or a number for a node, none within a negative limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # A budget for exactly n nodes buys n, despite the rounding of the quotient.
        nodes = np.floor(limit / np.asarray(each, dtype=np.float64) * (1 + 1e-12))
    return np.where(np.less(limit, 0), 0.0, np.where(np.isfinite(nodes), nodes, np.inf))


def _cost(program: Program, evaluation: Evaluation) -> Quantity | None:
    if "total_cost" not in program.columns:
        return None
    return Quantity(float(evaluation.column("total_cost")), program.dimension_of("total_cost"))


def checked_limits(given: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Limits whose units are right; raise `UsageError` for another unit, a number not above 0, and no limit."""
    for name, limit in given.items():
        right = limit.dimension == WATT if name == "power" else limit.dimension in MONEY.values()
        if not (right and limit.value > 0):
            wanted = "a power above 0, such as `5 MW`" if name == "power" else "money above 0, such as `20 MUSD`"
            raise UsageError(f"the limit of {name} must be {wanted}")
    if not given:
        raise UsageError("state a budget: --capital, --cost or --power")
    return dict(given)
