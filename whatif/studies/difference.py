"""Difference between two scenarios, two platforms, or two revisions of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from whatif.core.scenario import Scenario
from whatif.errors import UsageError, require_choice, require_least
from whatif.studies.attribution import Attribution, attribute
from whatif.studies.bar_charts import names_of
from whatif.vocabulary import GROUPINGS, Grouping

AnyScenario = TypeVar("AnyScenario")
AnyPlatform = TypeVar("AnyPlatform")


def compared_pair(
    first: AnyScenario,
    second: AnyScenario | None,
    platforms: Sequence[AnyPlatform],
    opened: Callable[[AnyScenario, AnyPlatform | None], Scenario],
) -> tuple[Scenario, Scenario]:
    """Both scenarios of a comparison, each opened on its platform.

    Two platforms: that of the first and that of the second scenario. One platform: that of both; without a second
    scenario, the first scenario is compared with itself on it. Raise `UsageError` for more, and if there is nothing to
    compare with.
    """
    if len(platforms) > 2:
        raise UsageError("--platform may be given at most twice")
    if second is None and not platforms:
        raise UsageError("state a second scenario, or the platform to compare with: --platform NAME")
    before = platforms[0] if len(platforms) == 2 or (platforms and second is not None) else None
    after = platforms[-1] if platforms else None
    return opened(first, before), opened(first if second is None else second, after)


def difference_study(first: Scenario, second: Scenario, result: str, by: Grouping, seed: int) -> Attribution:
    """Attribution of the difference in a result to the parameters, or tables of parameters, that changed."""
    require_choice("by", by, GROUPINGS)
    require_least("seed", seed, 0)
    found = attribute(first.program, second.program, result, by_table=by == "table", seed=seed)
    return replace(found, names=names_of(first, second)).about(first, second)
