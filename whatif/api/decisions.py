"""Decisions: which platform, how many nodes, which decomposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, Share, load, sampling_of
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.studies.platform_ranking import ranking_study
from whatif.studies.purchase import Offers, budget_study
from whatif.studies.ranking import Ranking, RankingView
from whatif.units import Quantity

AnyScenarios = Sequence[AnyScenario] | Mapping[str, AnyScenario]
"""Several scenarios, with names of their own if they are a mapping."""


def compare(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform],
    *,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    weights: Mapping[str, str | float] | None = None,
    references: Mapping[str, str | float] | None = None,
    within: Mapping[str, str] | None = None,
    result: str = "total_time",
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    show: RankingView = "ranking",
) -> Ranking:
    """Ranking of platforms by the weighted geometric mean of their speedups over several applications.

    `weights` (1 by default), `references` (numbers in the base unit of the result, or texts such as `120 s`; by default
    the results on the first platform) and `within` (targets such as `total_time <= 1 s`, for which the table has the
    nodes required) are by scenario. `result` is a time, energy or cost. With samples, platforms have a band of the
    merit and the probability of being the best. `show="commitment"` has one row per platform and application.
    Raise `UsageError` for unknown names, wrong units, and a first platform without a reference.

    >>> import whatif
    >>> ranking = whatif.compare(["jacobi2d", "minife"], ["summit", "frontier"], weights={"minife": 2})
    >>> [standing.platform for standing in ranking.standings]
    ['frontier', 'summit']
    """
    opened, names = _opened(scenarios, platforms, platform_dirs, overrides)
    return ranking_study(
        opened,
        names,
        weights=weights or {},
        references=references or {},
        within=within or {},
        result=result,
        sampling=sampling_of(samples, seed, level, spreads),
        show=show,
    )


def budget(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform],
    *,
    capital: str | Quantity | None = None,
    cost: str | Quantity | None = None,
    power: str | Quantity | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> Offers:
    """Nodes of each platform that a budget buys, and the jobs of each scenario that they run per day.

    `capital` is the price of the nodes and `cost` their price and energy over the lifetime (money, such as `20 MUSD`);
    `power` is that of the nodes under load with cooling (such as `5 MW`). All limits apply together.
    Raise `UsageError` without a limit, for a wrong unit, and for a currency other than that of the prices.

    >>> import whatif
    >>> offers = whatif.budget(["jacobi2d"], ["frontier"], power="1 MW")
    >>> offers[0].limit, offers[0].node_count > 100
    ('power', True)
    """
    opened, names = _opened(scenarios, platforms, platform_dirs, overrides)
    return budget_study(opened, names, {"capital": capital, "cost": cost, "power": power})


def _opened(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform],
    platform_dirs: Sequence[str | Path],
    overrides: Overrides | None,
) -> tuple[dict[str, Scenario], list[str]]:
    """Scenarios by name that know all platforms, and the names of the platforms."""
    named = scenarios if isinstance(scenarios, Mapping) else {_name(item): item for item in scenarios}
    opened, names = {}, dict[str, None]()
    for name, item in named.items():
        scenario = load(item, platform_dirs=platform_dirs, overrides=overrides)
        present = scenario.platform
        for platform in platforms:
            scenario = scenario.on(platform)
            names[str(scenario.platform)] = None
        opened[name] = scenario.changed(scenario.sets, present)
    return opened, list(names)


def _name(scenario: AnyScenario) -> str:
    return Path(scenario.document.name).stem if isinstance(scenario, Scenario) else str(scenario)
