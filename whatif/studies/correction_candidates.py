"""Corrections that measured runs may support: candidates, and the problem of linear least squares that they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import NODE_COUNT, RANK_COUNT
from whatif.core.phases.correction import NEUTRAL
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.fitting.correction_choice import CorrectionProblem
from whatif.models.quantities import FloatArray
from whatif.schema.toml_text import rounded
from whatif.schema.validated import platform_names
from whatif.studies.run_predictions import MeasuredRuns
from whatif.units import ONE, SECOND, Dimension, Quantity, format_quantity

APPLICATION: Final = "calibration.application"
PLATFORMS: Final = "calibration.platforms"
_KINDS_OF: Final = {"kernel": ("kernels",), "communication": ("messages", "sharing", "congestion")}
"""Kinds of corrections by the category of the results that they change."""
_SCALES: Final = (RANK_COUNT, NODE_COUNT, "application.grid.cells")
_BUMP: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Correction:
    """One correction: path of its parameter, and kind."""

    path: str
    kind: str
    least: float = 0.0
    """Smallest value."""

    @property
    def neutral(self) -> float:
        """Value that changes nothing, in base units."""
        return _neutral(self.path).value

    @property
    def dimension(self) -> Dimension:
        """Dimension of its values."""
        return _neutral(self.path).dimension

    @property
    def name(self) -> str:
        """Path below the table of the application or the platform."""
        return self.path.removeprefix(f"{APPLICATION}.").removeprefix(f"{PLATFORMS}.")

    @property
    def platform(self) -> str:
        """Platform that it belongs to; empty for one of the application."""
        return self.name.partition(".")[0] if self.path.startswith(PLATFORMS) else ""

    def text(self, value: float) -> str | float:
        """Value as it is written into a file."""
        return _text(Quantity(value, self.dimension))


def _text(value: Quantity) -> str | float:
    return format_quantity(value.value, SECOND, 6) if value.dimension == SECOND else rounded(value.value, 6)


def without_corrections(scenario: Scenario) -> Scenario:
    """Scenario whose corrections are neutral."""
    known = [path for path in scenario.program.parameters if path.startswith("calibration.")]
    neutral = {path: _text(_neutral(path)) for path in known}
    return scenario.with_overrides(neutral) if neutral else scenario


def _neutral(path: str) -> Quantity:
    """Value of a correction that changes nothing; that of a factor of kernels is 1, whatever they are called."""
    table, _, name = path.rpartition(".")
    one = Quantity(1.0, ONE)
    return one if table.endswith(".kernel_factors") else NEUTRAL.get(name, one)


def correction_problem(
    scenario: Scenario, runs: MeasuredRuns, kinds: Sequence[str], *, of_application: bool
) -> tuple[tuple[Correction, ...], CorrectionProblem]:
    """Corrections of some kinds (none stated: of all) that measured values depend on, and their problem.

    `of_application` keeps those that belong to no platform.

    Raise `UsageError` for a kind without any.
    """
    candidates = [item for item in _candidates(scenario, runs) if not kinds or item.kind in kinds]
    candidates = [item for item in candidates if not (of_application and item.platform)]
    problem = _problem(scenario, runs, candidates)
    known = tuple(item for item, some in zip(candidates, problem.determined, strict=True) if some)
    lost = [kind for kind in kinds if kind not in {item.kind for item in known}]
    if lost or not known:
        raise UsageError(f"{runs.file}: no measured value depends on corrections of {', '.join(lost) or 'any kind'}")
    return known, problem.of(problem.determined)


def relative_predictions(runs: MeasuredRuns, predicted: Mapping[str, FloatArray]) -> FloatArray:
    """Predictions over the measured values, in the order of the rows of a problem."""
    known = [(result, np.isfinite(result.values)) for result in runs.results]
    return np.concatenate([predicted[result.name][rows] / result.values[rows] for result, rows in known])


def _candidates(scenario: Scenario, runs: MeasuredRuns) -> Iterator[Correction]:
    """Corrections that a scenario may have, whether or not a measured value depends on them.

    Kernels that were measured alone have factors of their own. The others have a common one if they were measured
    together, or no kernel was measured alone.
    """
    categories = {phase.phase: phase.category for program, *_ in runs.parts(scenario) for phase in program.phases}
    kernels = [name for name, category in categories.items() if category == "kernel"]
    alone = [name for name in kernels if (f"terms.{name}",) in {result.parts for result in runs.results}]
    together = {part for result in runs.results for part in result.parts} & {
        f"terms.{name}" for name in kernels if name not in alone
    }
    for name in alone:
        yield Correction(f"{APPLICATION}.kernel_factors.{name}", "kernels")
    if kernels and (together or not alone):
        yield Correction(f"{APPLICATION}.kernel_factor", "kernels")
    if "communication" in categories.values():
        # Benchmarks send warm buffers, one message at a time: no application is faster than they are.
        yield Correction(f"{APPLICATION}.message_factor", "messages", least=1.0)
        yield Correction(f"{APPLICATION}.message_time", "messages")
        for name in _platforms(scenario, runs):
            yield Correction(f"{PLATFORMS}.{name}.sharing_factor", "sharing")
            yield Correction(f"{PLATFORMS}.{name}.congestion_factor", "congestion")
            yield Correction(f"{PLATFORMS}.{name}.doubling_factor", "congestion")
    yield Correction(f"{APPLICATION}.overhead_time", "overhead")
    yield Correction(f"{APPLICATION}.doubling_time", "overhead")


def _platforms(scenario: Scenario, runs: MeasuredRuns) -> list[str]:
    """Names of the files of the platforms of the runs."""
    if PLATFORM_PARAMETER in runs.axis.parameters:
        return list(dict.fromkeys(runs.axis.parameters[PLATFORM_PARAMETER].tolist()))
    return list(platform_names(scenario.program.loaded.layers)[:1])


def _problem(scenario: Scenario, runs: MeasuredRuns, candidates: Sequence[Correction]) -> CorrectionProblem:
    """Predictions relative to the measured values, and the effect of each correction on them."""
    neutral = {item.path: item.text(item.neutral) for item in candidates}
    with_all = scenario.with_overrides(neutral)
    found = np.full((len(runs.results), len(runs), 1 + len(candidates)), np.nan)
    for program, numeric, at in runs.parts(with_all):
        found[:, at] = _effects(program, numeric, runs, candidates)
    measured = np.stack([result.values for result in runs.results])
    results, rows = np.nonzero(np.isfinite(measured))
    relative = found[results, rows] / measured[results, rows, np.newaxis]
    neutral_values, least = (np.array([getattr(item, name) for item in candidates]) for name in ("neutral", "least"))
    places = _scales(runs)[rows], runs.points[rows], results
    return CorrectionProblem(relative[:, 0], relative[:, 1:], neutral_values, least, *places)


def stages(
    runs: MeasuredRuns, problem: CorrectionProblem, candidates: Sequence[Correction]
) -> Iterator[tuple[list[int], NDArray[np.bool_]]]:
    """Candidates by category with the rows of that category; by the rows of all others where it was not measured."""
    categories = np.array([result.category for result in runs.results])
    rest = list(range(len(candidates)))
    for category, kinds in _KINDS_OF.items():
        if category in categories:
            own = [at for at in rest if candidates[at].kind in kinds]
            rest = [at for at in rest if at not in own]
            yield own, categories[problem.results] == category
    others = ~np.isin(categories[problem.results], list(_KINDS_OF))
    yield rest, others if others.any() else np.ones(len(problem.base), dtype=bool)


def _effects(
    program: Program, numeric: Mapping[str, FloatArray], runs: MeasuredRuns, candidates: Sequence[Correction]
) -> FloatArray:
    """Results [result, run] without corrections, and their change by one unit of each, [.., 1 + correction]."""
    columns = 1 + len(candidates)
    swept = {path: values[:, np.newaxis] for path, values in numeric.items()}
    for at, item in enumerate(candidates):
        if item.path in program.parameters:
            swept[item.path] = np.where(np.arange(columns) == 1 + at, item.neutral + _BUMP, item.neutral)[np.newaxis]
    values = evaluate(program, swept).values
    count = len(next(iter(numeric.values()))) if numeric else 1
    shape = (count, columns)
    sums = (sum(values[program.term_of(part)] for part in result.parts) for result in runs.results)
    times = np.stack([np.broadcast_to(total, shape) for total in sums])
    return np.concatenate([times[..., :1], (times[..., 1:] - times[..., :1]) / _BUMP], axis=-1)


def _scales(runs: MeasuredRuns) -> FloatArray:
    """Scale of each run: the first of its parameters that counts ranks, nodes or cells and varies, else 0."""
    for prefix in _SCALES:
        for path, values in runs.axis.parameters.items():
            if path.startswith(prefix) and values.dtype != object and np.ptp(values) > 0:
                return np.asarray(values, dtype=np.float64)
    return np.zeros(len(runs))
