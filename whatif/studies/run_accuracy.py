"""Accuracy cards from measured runs: ratio and scatter of measured and predicted times, by category of phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.validated import platform_names
from whatif.studies.run_predictions import MeasuredResult, MeasuredRuns

ITERATION: Final = "iteration"
_PRIOR_RUNS: Final = 3
"""Number of runs that the expected scatter weighs as much as."""
_EXPECTED: Final = 0.1
"""Relative scatter that is expected before any run is seen."""
_UNKNOWN_SHARE: Final = 0.5
"""Shared fraction where no application ran on two platforms."""


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs of one application on one platform: measured / predicted of each."""

    application: str
    platform: str
    ratios: FloatArray


def category_ratios(runs: MeasuredRuns, predicted: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Measured / predicted of each run by category, and of the iteration; NaN where it was not measured.

    It is that of the category's time where this was measured, else that of the sum of its measured phases. Raise
    `UsageError` for a phase that is a part of several of them, as it would count twice.
    """
    found: dict[str, FloatArray] = {}
    for category in dict.fromkeys(_category(result) for result in runs.results):
        parts = [result for result in runs.results if category and _category(result) == category]
        whole = [result for result in parts if not result.parts[0].startswith("terms.")]
        counted = whole[:1] or parts
        _refuse_overlap(counted)
        if counted:
            measured = sum(result.values for result in counted)
            found[category] = np.asarray(measured / sum(predicted[result.name] for result in counted))
    return found


def _refuse_overlap(results: Sequence[MeasuredResult]) -> None:
    """Refuse measured results with a phase in common."""
    for one, other in combinations(results, 2):
        for part in set(one.parts) & set(other.parts):
            name = part.removeprefix("terms.")
            raise UsageError(f"`{one.name}` and `{other.name}` both contain {name}: leave out one of the columns")


def _category(result: MeasuredResult) -> str:
    return ITERATION if result.parts[0] in ("iteration_time", "total_time") else result.category


def run_groups(application: str, runs: MeasuredRuns, ratios: FloatArray, platform: str) -> Iterator[RunGroup]:
    """The runs with a ratio, by platform; `platform` is that of runs that state none."""
    names = runs.axis.parameters.get(PLATFORM_PARAMETER, np.full(len(runs), platform, dtype=object))
    for name in dict.fromkeys(names[np.isfinite(ratios)].tolist()):
        yield RunGroup(application, str(name), ratios[(names == name) & np.isfinite(ratios)])


def pooled_card(groups: Sequence[RunGroup], source: str = "") -> AccuracyCard:
    """Card of some groups of runs, each group with the same weight.

    The variance of ln(measured / predicted) is that within the groups and that between their means; few runs are
    supplemented by an expected scatter of 10 %. The shared fraction is what remains of the variance without the
    variance between platforms of one application.
    """
    logs = [np.log(group.ratios) for group in groups]
    means = np.array([log.mean() for log in logs])
    centre = float(means.mean())
    within = [(np.sum((log - log.mean()) ** 2) + _PRIOR_RUNS * _EXPECTED**2) / (log.size + _PRIOR_RUNS) for log in logs]
    between = float(means.var(ddof=1)) if len(groups) > 1 else 0.0
    variance = float(np.mean(within)) + between
    errors = [1 / group.ratios - 1 for group in groups]
    return AccuracyCard(
        ratio=float(np.exp(centre)),
        scatter=float(np.exp(np.sqrt(variance))),
        shared_fraction=_shared_fraction(groups, means, variance),
        mean_absolute_error=float(np.mean([np.abs(error).mean() for error in errors])),
        bias=float(np.mean([error.mean() for error in errors])),
        run_count=sum(log.size for log in logs),
        applications=list(dict.fromkeys(group.application for group in groups)),
        platforms=list(dict.fromkeys(group.platform for group in groups)),
        source=source,
    )


def _shared_fraction(groups: Sequence[RunGroup], means: FloatArray, variance: float) -> float:
    names = np.array([group.application for group in groups])
    several = [means[names == name] for name in dict.fromkeys(names.tolist()) if np.count_nonzero(names == name) > 1]
    if not several:
        return _UNKNOWN_SHARE
    return float(np.clip(1 - np.mean([part.var(ddof=1) for part in several]) / variance, 0.0, 1.0))


def own_cards(
    scenario: Scenario, runs: MeasuredRuns, predicted: Mapping[str, FloatArray], source: str = ""
) -> dict[str, AccuracyCard]:
    """Cards of one scenario by category, from its runs; `source` is the kind of the runs."""
    program = scenario.program
    application, platform = program.loaded.scenario.application.name, platform_names(program.loaded.layers)[0]
    cards = {
        category: pooled_card(list(run_groups(application, runs, ratios, platform)), source)
        for category, ratios in category_ratios(runs, predicted).items()
        if np.isfinite(ratios).any()
    }
    if "kernel" in cards:
        used = (part.loaded.scenario.kernel_device for part, _, _ in runs.parts(scenario))
        devices = list(dict.fromkeys(device.name for device in used if device is not None))
        cards["kernel"] = cards["kernel"].model_copy(update={"devices": devices})
    return cards
