"""What a budget of money or power buys: nodes of each machine, the jobs they run, what one job takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.axes import Grid
from whatif.core.energy import BUSY_POWER, OWNED_COST, PRICE, node_capital
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.result import result_of
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import UsageError, WhatifError
from whatif.schema.price import currencies
from whatif.units import MONEY, WATT, Quantity, parse_unit

_DAY: Final = parse_unit("day")[1]
_NODES: Final = "placement.nodes_needed"
LIMITS: Final = ("capital", "cost", "power")
"""What nodes are bought with: their price; their price, or rent, and energy over the lifetime; the site's power."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one machine gives for the budget; NaN for what is not known there."""

    scenario: str
    platform: str
    node_count: float
    limit: str
    """The limit that binds, one of `LIMITS`."""
    job_count: float
    """Jobs that run side by side."""
    daily_jobs: float
    """Jobs a day, if nodes are never without one."""
    energy: float
    """Energy of one job in J."""
    cost: Quantity | None
    """Cost of one job."""
    reason: str
    """Why there is no answer; empty where there is one."""


def offers(
    questions: Mapping[str, Scenario], platforms: Sequence[str], limits: Mapping[str, Quantity]
) -> tuple[Offer, ...]:
    """For each application by name, what each platform gives within all limits, the most jobs first.

    Changes of the question (`--set`) hold on every platform. Raise `UsageError` for a budget in another currency than
    prices, and the first error where no question can be asked on any platform; whatever else a machine lacks is the
    reason of its row.
    """
    found: list[Offer] = []
    errors: list[WhatifError] = []
    for name, question in questions.items():
        rows = []
        for platform in platforms:
            try:
                evaluation = evaluate(question.changed(question.sets, platform).program)
            except WhatifError as error:
                errors.append(error)
                rows.append(_nothing(name, platform, str(error)))
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
    cost = _cost(program, evaluation)
    time = float(result.columns["total_time"])
    reason = "; ".join(result.reasons) or missing or ("" if time > 0 else "a job takes no time there")
    if reason:
        return Offer(scenario, platform, np.nan, "", np.nan, np.nan, energy, cost, reason)
    affordable = {name: _affordable(program, evaluation, name, limit) for name, limit in limits.items()}
    limit = min(affordable, key=lambda name: affordable[name])
    needed, nodes = float(evaluation.values[_NODES]), affordable[limit]
    if not 0 < nodes < np.inf:
        return Offer(scenario, platform, nodes, limit, np.nan, np.nan, energy, cost, _why(limit, nodes))
    jobs = float(np.floor(nodes / needed))
    reason = "" if jobs else f"{nodes:,.0f} nodes are too few: one job needs {needed:,.0f}"
    daily = jobs * _DAY / time if jobs else np.nan
    return Offer(scenario, platform, nodes, limit, jobs, daily, energy, cost, reason)


def _why(limit: str, nodes: float) -> str:
    """Why a budget buys no node, or more than can be counted."""
    return "not one node is within the budget" if nodes == 0 else f"nodes take no {limit} there"


def _nothing(scenario: str, platform: str, reason: str) -> Offer:
    return Offer(scenario, platform, np.nan, "", np.nan, np.nan, np.nan, None, reason)


def _missing(program: Program, limits: Mapping[str, Quantity]) -> str:
    """The parameters that the limits need and the platform does not state; empty where it has all."""
    lacking: dict[str, None] = {}
    if "power" in limits:
        lacking |= dict.fromkeys(program.missing.get("total_energy", ()))
    if "cost" in limits:
        lacking |= dict.fromkeys(program.missing.get("total_cost", ()))
        lacking |= {} if f"{PRICE}.lifetime" in program.parameters else {f"{PRICE}.lifetime": None}
    if "capital" in limits and not _known(program, node_capital(program.terms)):
        lacking |= {node_capital(program.terms): None}
    return f"not stated: {', '.join(lacking)}" if lacking else ""


def _known(program: Program, reference: str) -> bool:
    return reference in program.terms or reference in program.parameters


def _affordable(program: Program, evaluation: Evaluation, name: str, limit: Quantity) -> float:
    """Whole nodes within one limit."""
    reference = {"capital": node_capital(program.terms), "cost": OWNED_COST, "power": BUSY_POWER}[name]
    dimension = (program.terms[reference] if reference in program.terms else program.parameters[reference]).dimension
    if dimension != limit.dimension:
        here, there = (" and ".join(currencies([item])) for item in (limit.dimension, dimension))
        machine = program.loaded.scenario.platform.name
        raise UsageError(f"the budget is in {here}, the prices of {machine} are in {there}: nothing here converts them")
    each = float(evaluation.values[reference])
    # A budget for exactly so many nodes buys them, whatever the last bit of a quotient says.
    return float(np.floor(limit.value / each * (1 + 1e-12))) if each > 0 else np.inf


def _cost(program: Program, evaluation: Evaluation) -> Quantity | None:
    if "total_cost" not in program.columns:
        return None
    return Quantity(float(evaluation.column("total_cost")), program.dimension_of("total_cost"))


def checked_limits(given: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Limits with the unit that each of them needs; raise `UsageError`."""
    for name, limit in given.items():
        right = limit.dimension == WATT if name == "power" else limit.dimension in MONEY.values()
        if not (right and limit.value > 0):
            wanted = "a power above 0, such as `5 MW`" if name == "power" else "money above 0, such as `20 MUSD`"
            raise UsageError(f"the limit of {name} must be {wanted}")
    if not given:
        raise UsageError("say what the budget is: --capital, --cost or --power")
    return dict(given)
