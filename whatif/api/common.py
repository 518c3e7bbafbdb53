"""Arguments that the functions of the library share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError

AnyScenario = str | Path | Scenario
"""A shipped name, a path, or a scenario that was loaded or built."""
Overrides = Mapping[str, Any]
"""Values by dotted path: texts as `--set` takes them, or plain numbers for counts and fractions."""


def load(
    scenario: AnyScenario,
    *,
    platform: str | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> Scenario:
    """Scenario, on another platform and with other values where they are given.

    `platform` is a name or the path of a platform file; `platform_dirs` are searched for platforms.
    Raise `InvalidFileError` with everything that is wrong with the files, `UsageError` for an unknown name.

    >>> import whatif
    >>> whatif.load("jacobi2d", platform="frontier").program.parameters["platform.node.gpu_count"].value
    8.0
    """
    if isinstance(scenario, Scenario):
        both = {**scenario.sets, **(overrides or {})}
        return scenario.changed(both, platform or scenario.platform) if overrides or platform else scenario
    return Scenario.open(scenario, platform=platform, sets=overrides, folders=tuple(map(Path, platform_dirs)))


def sampling_of(
    samples: Sampling | int | None,
    seed: int | None = None,
    level: float | None = None,
    spreads: Mapping[str, float] | None = None,
) -> Sampling | None:
    """Sampling of uncertain values; None where no samples are asked for.

    Raise `UsageError` for a seed, level or spread without samples: it would have no effect.
    """
    given = {"seed": seed, "level": level, "spreads": spreads}
    stated = {name: value for name, value in given.items() if value is not None}
    if isinstance(samples, int):
        return Sampling(samples, **stated)  # type: ignore[arg-type]
    if stated:
        raise UsageError(f"{', '.join(stated)}: no effect without samples=N")
    return samples
