"""Sensitivity of a result: elasticities, bottlenecks, or Sobol' indices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError, require_choice
from whatif.studies.bottlenecks import Bottlenecks, ladder
from whatif.studies.elasticity import Elasticities, elasticities
from whatif.studies.simulation_count import simulations_counted
from whatif.studies.sobol import Variance, sobol_indices
from whatif.vocabulary import SENSITIVITY_KINDS, SensitivityKind

_SOBOL_SAMPLES: Final = 4096


def sensitivity_study(
    scenario: Scenario,
    result: str,
    show: SensitivityKind,
    sampling: Sampling | None,
    everything: bool,
    progress: Callable[[str], None] | None,
) -> Elasticities | Bottlenecks | Variance:
    """Elasticities (`tornado`), bottlenecks (`ladder`) or Sobol' indices (`sobol`) of a result.

    `progress` receives the number of simulated points. Raise `UsageError` for a sampling without `sobol`, and for
    `everything` with `ladder`: both have no effect.
    """
    require_choice("show", show, SENSITIVITY_KINDS)
    result = scenario.program.result_name(result)
    if sampling is not None and show != "sobol":
        raise UsageError("--samples, --seed, --level and --spread need --show sobol")
    if show == "ladder" and everything:
        raise UsageError("--all: no effect with --show ladder")
    with nullcontext() if progress is None else simulations_counted(progress):
        return _sensitivity(scenario, result, show, sampling, everything)


def _sensitivity(
    scenario: Scenario, result: str, show: SensitivityKind, sampling: Sampling | None, everything: bool
) -> Elasticities | Bottlenecks | Variance:
    if show == "ladder":
        return ladder(scenario.program, result).about(scenario)
    if show == "sobol":
        found = sobol_indices(scenario.program, sampling or Sampling(_SOBOL_SAMPLES), result)
        return replace(found, everything=everything).about(scenario)
    items = elasticities(scenario.program, result)
    return Elasticities(result, items, scenario.program, everything).about(scenario)
