"""Source of a verb: a scenario, or a trace or profile from which one is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whatif.cli.options import parse_sets

if TYPE_CHECKING:
    from whatif.studies.scenario_sources import ScenarioSource


def open_source(
    source: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...]
) -> ScenarioSource:
    """Scenario of a file, or one made from a trace or profile, which is not written yet."""
    from whatif.studies import scenario_sources

    stated = parse_sets(overrides)
    return scenario_sources.open_source(source, platform=platform, platform_dirs=platform_dirs, overrides=stated)
