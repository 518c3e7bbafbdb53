"""Arguments that the functions of the library share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from whatif import __version__
from whatif.arguments import Share, level_of, share_of
from whatif.core.evaluate import VALUE_OF_TERM
from whatif.core.overrides import checked_overrides
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario, named_platform
from whatif.core.uncertainty import DEFAULT_COUNT, Sampling
from whatif.errors import UsageError
from whatif.schema.shipped import is_study
from whatif.studies.scenario_sources import open_source

__all__ = [
    "AnyPlatform",
    "AnyScenario",
    "Overrides",
    "Share",
    "checked_overrides",
    "is_study",
    "load",
    "named_platform",
    "open_source",
    "resumable",
    "sampling_of",
]

AnyScenario = str | Path | Scenario
"""Name of a shipped scenario, path of a file, or a scenario that was loaded or built."""
AnyPlatform = str | Path | Platform
"""Name of a platform, path of a file, or a platform that was loaded or built."""
Overrides = Mapping[str, Any]
"""Values by dotted path: texts as `--set` takes them, or plain numbers for counts and fractions."""


def load(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> Scenario:
    """Scenario of a file, on another platform and with overrides where they are given.

    `platform` is a name, the path of a file, or a `Platform`; `platform_dirs` are searched for platforms by name.
    Overrides are added to those that a loaded scenario has, whose values relative ones such as `x2` refer to.

    Raise `InvalidFileError` with every problem of the files, `UsageError` for an unknown name.

    >>> import whatif
    >>> whatif.load("jacobi2d", platform="frontier").program.parameters["platform.node.gpu_count"].value
    8.0
    """
    folders = tuple(map(Path, platform_dirs))
    opened = scenario if isinstance(scenario, Scenario) else Scenario.open(scenario)
    if folders:
        opened = replace(opened, folders=(*folders, *opened.folders), _programs={}, _original=[])
    if platform is not None:
        opened = opened.on(platform)
    return opened.with_overrides(checked_overrides(overrides)) if overrides else opened


def sampling_of(
    samples: Sampling | int | None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
) -> Sampling | None:
    """Sampling of uncertain values; None if neither samples nor spreads are given.

    Spreads alone are sampled 1024 times. Raise `UsageError` for a seed or level without samples, which has no effect,
    and for a share that is not one.
    """
    stated: dict[str, Any] = {} if seed is None else {"seed": seed}
    if level is not None:
        stated["level"] = level_of(level)
    if spreads:
        stated["spreads"] = {grade: share_of(f"--spread {grade}=", spread) for grade, spread in spreads.items()}
    if isinstance(samples, Sampling):
        return replace(samples, **stated)
    if samples is None and not spreads:
        if stated:
            raise UsageError(f"{', '.join(stated)}: no effect without samples (--samples N)")
        return None
    return Sampling(DEFAULT_COUNT if samples is None else samples, **stated)


@contextmanager
def resumable(path: str | Path | None) -> Iterator[None]:
    """Context that keeps slow values, such as simulated times, in a file: an interrupted study continues from it.

    Values are those of the same files, changes and inputs; the file is created where it does not exist. Without a path
    nothing is kept. Raise `UsageError` for a file of another version or one that cannot be written, `InvalidFileError`
    for another file.

    >>> import tempfile, whatif
    >>> with tempfile.TemporaryDirectory() as folder, whatif.resumable(f"{folder}/seek.jsonl"):
    ...     found = whatif.seek("jacobi2d", "application.rank_count=6, 12, 24", minimise="iteration_time",
    ...                         overrides={"application.communication": "simulated"})
    >>> found.values
    {'application.rank_count': 6.0}
    """
    if path is None:
        yield
        return
    from whatif.files.kept_terms import KeptTerms

    token = VALUE_OF_TERM.set(KeptTerms(Path(path), __version__))
    try:
        yield
    finally:
        VALUE_OF_TERM.reset(token)
