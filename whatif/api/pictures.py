"""Pictures of a scenario: roofline, messages, placement, domains, timeline; each with its table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, load
from whatif.studies import domain_study, message_study, placement_study, roofline_study, timeline_study
from whatif.studies.domain_study import Domains
from whatif.studies.message_study import MessageTimes
from whatif.studies.placement_study import Placement
from whatif.studies.roofline_study import Roofline
from whatif.studies.timeline_study import Iteration


def roofline(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    against: str | None = None,
) -> Roofline:
    """Kernels of a scenario under the roofs of its GPU or cores: rate over operational intensity.

    `against` is a platform on whose GPU the same kernels are shown, too. The other parameters are those of `load`.
    Raise `UsageError` without kernels and GPU, `InfeasiblePointError` for an infeasible point.

    >>> import whatif
    >>> found = whatif.roofline("jacobi2d", against="frontier")
    >>> [kernel.name for kernel in found.kernels], found.kernels[0].limit
    (['pack', 'unpack', 'stencil', 'reduce'], 'compute')
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return roofline_study.roofline(opened, against)


def messages(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    phase: str | None = None,
    sent: bool = False,
) -> MessageTimes:
    """Time against message size by model and distance, and the messages of a phase.

    The phase is by default the first one that sends messages; `sent` gives the table of these in the place of that of
    the curves. The other parameters are those of `load`. Raise `UsageError` for a phase that sends none,
    `InfeasiblePointError` for an infeasible point.

    >>> import whatif
    >>> list(whatif.messages("jacobi2d").table().columns)[:2]
    ['message size', 'across nodes K-model k=3.5']
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return message_study.messages(opened, phase, sent)


def placement(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    phase: str | None = None,
    plane: int | None = None,
) -> Placement:
    """Node and socket of each rank of a halo phase, and the messages of the busiest node.

    The phase is by default the first halo phase; `plane`, from 0 on, is that of a 3D grid, by default the one of the
    busiest node. The other parameters are those of `load`. Raise `UsageError` for an unknown phase.

    >>> import whatif
    >>> found = whatif.placement("jacobi2d", overrides={"application.rank_count": 12})
    >>> found.whole.node_count
    2
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return placement_study.placement(opened, phase, plane)


def domains(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    phase: str | None = None,
    message: int | None = None,
) -> Domains:
    """Domains of the machine of a scenario, their links, and which of them a message crosses.

    The phase is by default the first one that sends messages; `message` is the row of the marked one in
    `messages(.., sent=True)`, by default the farthest. The other parameters are those of `load`. Raise `UsageError`
    for a phase or message that does not exist.

    >>> import whatif
    >>> whatif.domains("jacobi2d").domains.machine.count
    1.0
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return domain_study.domains(opened, phase, message)


def timeline(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> Iteration:
    """Start and end of each phase of one iteration, with stated overlaps in parallel.

    The parameters are those of `load`. Raise `InfeasiblePointError` for an infeasible point.

    >>> import whatif
    >>> [bar.phase for bar in whatif.timeline("jacobi2d").timeline.bars]
    ['pack', 'halo', 'unpack', 'stencil', 'reduce', 'overhead']
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return timeline_study.iteration(opened)
