"""Causes: what a result depends on, and why two results differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Literal, overload

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, Share, load, sampling_of
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError
from whatif.files.git_revisions import checked_out, names_a_revision
from whatif.studies.attribution import Attribution, difference_study
from whatif.studies.bottlenecks import Bottlenecks
from whatif.studies.elasticity import Elasticities
from whatif.studies.sensitivity_study import sensitivity_study
from whatif.studies.side_by_side import SideBySide, side_by_side
from whatif.studies.sobol import Variance
from whatif.vocabulary import Grouping, SensitivityKind


@overload
def sensitivity(
    scenario: AnyScenario,
    *,
    show: Literal["tornado"] = "tornado",
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    everything: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Elasticities: ...
@overload
def sensitivity(
    scenario: AnyScenario,
    *,
    show: Literal["ladder"],
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    progress: Callable[[str], None] | None = None,
) -> Bottlenecks: ...
@overload
def sensitivity(
    scenario: AnyScenario,
    *,
    show: Literal["sobol"],
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    everything: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Variance: ...
@overload
def sensitivity(
    scenario: AnyScenario,
    *,
    show: SensitivityKind,
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    everything: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Elasticities | Bottlenecks | Variance: ...
def sensitivity(
    scenario: AnyScenario,
    *,
    show: SensitivityKind = "tornado",
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    everything: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Elasticities | Bottlenecks | Variance:
    """Elasticities, bottlenecks or Sobol' indices of a result, largest first.

    - `show="tornado"`: elasticity d log(result) / d log(value) of every parameter, without unit.
    - `show="ladder"`: the bottlenecks; the result, in its unit, with the worst part ideal, then the next one too.
    - `show="sobol"`: shares of the variance that the uncertain values explain; `samples` is 4096 by default.

    `result` is a result or a phase (`terms.NAME`); `everything` includes parameters without effect in the table.
    `progress` receives a text after each simulation. Raise `UsageError` for an unknown result and for arguments that
    have no effect with this `show`, `InfeasiblePointError` if the present result is 0 or missing.

    >>> import whatif
    >>> first = whatif.sensitivity("jacobi2d")[0]
    >>> first.path, round(first.elasticity, 2)
    ('application.ranks_per_gpu', 0.98)
    >>> whatif.sensitivity("jacobi2d", show="ladder").rungs[0].part
    'platform.node.gpu.dram_bandwidth'
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    return sensitivity_study(opened, result, show, sampling_of(samples, seed, level, spreads), everything, progress)


def diff(
    first: AnyScenario,
    second: AnyScenario | None = None,
    *,
    platforms: Sequence[AnyPlatform] = (),
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    result: str = "iteration_time",
    by: Grouping = "parameter",
    seed: int = 0,
) -> Attribution:
    """Contribution of every change to the difference of a result between two scenarios, in the result's unit.

    A scenario may be `REV:path`, a file in a git revision. Two `platforms` are those of the first and of the second
    scenario, one is that of both; without a second scenario, the first one is compared with itself on that platform.
    `by="table"` treats the parameters of one table as one change. Contributions are Shapley values: exact for up to
    14 changes with an effect, else means over random orders drawn with `seed`, with standard errors.
    Raise `UsageError` without anything to compare with, `InfeasiblePointError` if a scenario has no result.

    >>> import whatif
    >>> found = whatif.diff("minimd", platforms=["summit"], by="table")
    >>> found.changes[0].name
    'platform.network.inter_node.max_rate.rendezvous'
    """
    if len(platforms) > 2:
        raise UsageError("--platform may be given at most twice")
    if second is None and not platforms:
        raise UsageError("state a second scenario, or the platform to compare with: --platform NAME")
    before = platforms[0] if len(platforms) == 2 or (platforms and second is not None) else None
    after = platforms[-1] if platforms else None
    with ExitStack() as checkouts:

        def opened(name: AnyScenario, platform: AnyPlatform | None) -> Scenario:
            if isinstance(name, str) and names_a_revision(name):
                name = checkouts.enter_context(checked_out(name))
            return load(name, platform=platform, platform_dirs=platform_dirs, overrides=overrides)

        one, other = opened(first, before), opened(first if second is None else second, after)
        return difference_study(one, other, result, by, seed)


def differences(
    *scenarios: AnyScenario,
    names: Sequence[str] = (),
    platforms: Sequence[AnyPlatform] = (),
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> SideBySide:
    """Results of two or more scenarios side by side, and every value that differs between them.

    `names` head the columns, by default `A`, `B`, ..; `platforms`, if given, are one for each scenario. `overrides`
    apply to all. Raise `UsageError` for fewer than two scenarios, for names that are not distinct, and for more or
    fewer names or platforms than scenarios.

    >>> import whatif
    >>> found = whatif.differences("jacobi2d", whatif.load("jacobi2d", overrides={"platform.node.gpu_count": 4}))
    >>> list(found.values), [value.text() for value in found.values["platform.node.gpu_count"]]
    (['platform.node.gpu_count'], ['6', '4'])
    """
    if len(scenarios) < 2:
        raise UsageError("state two scenarios or more to compare")
    for what, given in (("names", names), ("platforms", platforms)):
        if given and len(given) != len(scenarios):
            raise UsageError(f"{len(scenarios)} scenarios need as many {what}, not {len(given)}")
    if len(set(names)) < len(names):
        raise UsageError(f"the names are not distinct: {', '.join(names)}")
    opened = [
        load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
        for scenario, platform in zip_longest(scenarios, platforms)
    ]
    labels = names or [chr(ord("A") + at) for at in range(len(opened))]
    found = side_by_side({label: scenario.program for label, scenario in zip(labels, opened, strict=True)})
    return found.about(*opened)
