"""Decisions: which platform, how many nodes, which decomposition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, Share, load, sampling_of
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError, require_choice, require_least
from whatif.schema.known_names import is_pattern, matching
from whatif.studies.decompositions import Layouts, layout_study
from whatif.studies.isoefficiency import Isoefficiency
from whatif.studies.platform_ranking import ranking_study
from whatif.studies.purchase import Offers, budget_study
from whatif.studies.ranking import Ranking
from whatif.studies.scaling_plan import ScalingPlan, scaling_study
from whatif.units import Quantity
from whatif.vocabulary import RANKING_VIEWS, RankingView, ScalingView

AnyScenarios = AnyScenario | Sequence[AnyScenario] | Mapping[str, AnyScenario]
"""One or several scenarios, with names of their own if they are a mapping."""


def compare(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform],
    *,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    weights: Mapping[str, str | float] | None = None,
    references: Mapping[str, str | float] | None = None,
    measured: Mapping[str, str | float] | None = None,
    within: Mapping[str, str] | None = None,
    result: str = "total_time",
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    show: RankingView = "ranking",
) -> Ranking:
    """Ranking of platforms by the weighted geometric mean of their speedups over several applications.

    `platforms` may be patterns of known names, such as `dgx_*`. `weights` (1 by default), `references` (numbers in the
    base unit of the result, or texts such as `120 s`; by default the results on the first platform), `measured`
    (measured results on the first platform, which scale the predictions of all: the error of the model is no speedup)
    and `within` (targets such as `total_time <= 1 s`, for which the table has the nodes required) are by scenario.
    `result` is a time, energy, cost or rate. With samples, platforms have a band of the merit and the probability of
    being the best. `show="commitment"` has one row per platform and application.
    Raise `UsageError` for unknown names, wrong units, and a first platform without a reference.

    >>> import whatif
    >>> ranking = whatif.compare(["jacobi2d", "minife"], ["summit", "frontier"], weights={"minife": 2})
    >>> [standing.platform for standing in ranking.standings]
    ['frontier', 'summit']
    """
    require_choice("show", show, RANKING_VIEWS)
    if not platforms:
        raise UsageError("state at least one platform")
    opened, names = _opened(scenarios, platforms, platform_dirs, overrides)
    return ranking_study(
        opened,
        names,
        weights=weights or {},
        references=references or {},
        measured=measured or {},
        within=within or {},
        result=result,
        sampling=sampling_of(samples, seed, level, spreads),
        show=show,
    )


def budget(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform] = (),
    *,
    capital: str | Quantity | None = None,
    cost: str | Quantity | None = None,
    power: str | Quantity | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> Offers:
    """Nodes of each platform that a budget buys, and the jobs of each scenario that they run per day.

    The platforms are by default those of the scenarios.
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


@overload
def scale(
    scenario: AnyScenario,
    *,
    nodes: str | Sequence[float] | None = None,
    efficiency: str | float = "50%",
    show: Literal["scaling", "answers"] = "scaling",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> ScalingPlan: ...
@overload
def scale(
    scenario: AnyScenario,
    *,
    nodes: str | Sequence[float] | None = None,
    efficiency: str | float = "50%",
    show: ScalingView,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> ScalingPlan | Isoefficiency: ...
def scale(
    scenario: AnyScenario,
    *,
    nodes: str | Sequence[float] | None = None,
    efficiency: str | float = "50%",
    show: ScalingView = "scaling",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> ScalingPlan | Isoefficiency:
    """Strong and weak scaling over numbers of full nodes, or the growth of the grid that keeps an efficiency.

    `nodes` are numbers, `1 .. 4096` (doubled), or a list or range as in a sweep; by default the powers of 2 up to the
    platform's nodes. `efficiency` is the lowest acceptable one, as `50%` or 0.5. `show="answers"` has one row per
    question (largest scale, fewest node-hours), `show="isoefficiency"` the growth of the whole grid.
    Raise `UsageError` for invalid nodes, `InfeasiblePointError` if no number of nodes is feasible.

    >>> import whatif
    >>> plan = whatif.scale("jacobi2d_strong", nodes="1 .. 64")
    >>> plan.plans["strong"].nodes.tolist()
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    return scaling_study(opened, nodes, efficiency, show)


def tune_grid(
    scenario: AnyScenario,
    *,
    whole_grid: bool = False,
    result: str = "iteration_time",
    count: int = 10,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    progress: Callable[[str], None] | None = None,
) -> Layouts:
    """Decompositions of a grid with their mappings to nodes and orders of ranks, ranked by a result, the best first.

    Weak scaling keeps the cells of a rank, so that the whole grid changes its shape; `whole_grid` keeps the file's
    grid. The table has `count` of the best layouts; `write` saves the scenario with the best one. `progress` receives
    texts during the computation.
    Raise `UsageError` for a scenario without a grid, `InfeasiblePointError` if no layout can be feasible.

    >>> import whatif
    >>> found = whatif.tune_grid("jacobi2d", overrides={"application.rank_count": 24})
    >>> len(found.ranked), found.ranked[0].ranks
    (48, (1, 24))
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    require_least("show", count, 1)
    return layout_study(opened, whole_grid=whole_grid, result=result, count=count, progress=progress)


def _opened(
    scenarios: AnyScenarios,
    platforms: Sequence[AnyPlatform],
    platform_dirs: Sequence[str | Path],
    overrides: Overrides | None,
) -> tuple[dict[str, Scenario], list[str]]:
    """Scenarios by name that know all platforms, and the names of the platforms, by default their own.

    Raise `UsageError` for no scenarios, and for two of the same name.
    """
    several = [scenarios] if isinstance(scenarios, str | Path | Scenario) else scenarios
    named = several if isinstance(several, Mapping) else {_name(item): item for item in several}
    if not named:
        raise UsageError("state at least one scenario")
    if len(named) < len(several):
        given = [_name(item) for item in several]
        twice = next(name for name in given if given.count(name) > 1)
        raise UsageError(f"scenario `{twice}` is given twice; a mapping gives scenarios names of their own")
    opened, names = {}, dict[str, None]()
    for name, item in named.items():
        scenario = load(item, platform_dirs=platform_dirs, overrides=overrides)
        present = scenario.platform
        for platform in _expanded(platforms, scenario) or [_own_platform(scenario)]:
            scenario = scenario.on(platform)
            scenario.check_platform(scenario.platform)
            names[str(scenario.platform)] = None
        opened[name] = scenario.moved(present)
    return opened, list(names)


def _expanded(platforms: Sequence[AnyPlatform], scenario: Scenario) -> list[AnyPlatform]:
    """Platforms, with the known ones that patterns such as `dgx_*` match in place of these."""
    found: list[AnyPlatform] = []
    for platform in platforms:
        pattern = isinstance(platform, str) and is_pattern(platform) and not Path(platform).is_file()
        found += matching(str(platform), scenario.known_platforms) if pattern else [platform]
    return found


def _own_platform(scenario: Scenario) -> str:
    """Name of the platform of a scenario. Raise `UsageError` if it names none."""
    name = scenario.platform_name
    if name is None:
        raise UsageError(f"{scenario.document.name}: names no platform: state at least one")
    return name


def _name(scenario: AnyScenario) -> str:
    return Path(scenario.document.name).stem if isinstance(scenario, Scenario) else str(scenario)
