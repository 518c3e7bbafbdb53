"""Calibration: corrections of a scenario that its measured runs support, chosen by their error at held-out scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.accuracy_cards import platform_names
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.core.term import Program
from whatif.errors import UsageError, did_you_mean
from whatif.files.calibration_file import CorrectionRecord, calibrated_text, write_scenario
from whatif.fitting.correction_choice import CorrectionProblem, FittedCorrections, fit_corrections, fitted
from whatif.limits import CORRECTIONS
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.studies.measured_runs import MeasuredRuns, measured_runs
from whatif.studies.model_errors import Accuracy, ModelErrors
from whatif.studies.run_accuracy import own_cards
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension, format_quantity

APPLICATION: Final = "calibration.application"
PLATFORMS: Final = "calibration.platforms"
_KINDS_OF: Final = {"kernel": ("kernels",), "communication": ("messages", "sharing", "congestion")}
"""Kinds of corrections by the category of the results that they change."""
_SCALES: Final = ("application.rank_count", "platform.node_count", "application.grid.cells")
_BUMP: Final = 1e-3
_DEVIATIONS: Final = 1.96
"""Standard deviations at the ends of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One correction: path of its parameter, kind, neutral value and unit."""

    path: str
    kind: str
    neutral: float
    dimension: Dimension
    least: float = 0.0
    """Smallest value."""

    @property
    def name(self) -> str:
        """Path below the table of the application or the platform."""
        return self.path.removeprefix(f"{APPLICATION}.").removeprefix(f"{PLATFORMS}.")

    @property
    def platform(self) -> str:
        """Platform that it belongs to; empty for one of the application."""
        return self.name.partition(".")[0] if self.path.startswith(PLATFORMS) else ""


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(StudyResult):
    """Corrections with their values, and the errors of the predictions without and with them."""

    scenario: Scenario
    runs: MeasuredRuns
    corrections: tuple[Correction, ...]
    """The chosen corrections."""
    fit: FittedCorrections
    results_of_rows: NDArray[np.int64]
    """Number of the result of each measured value, in the order of `fit.held_out`."""
    before: ModelErrors
    """Errors without corrections."""
    held_out: tuple[Accuracy, ...]
    """Accuracy at scales that were held out when the corrections were determined."""

    @cached_property
    def values(self) -> dict[str, float]:
        """Values of the corrections by path, in base units."""
        return {item.path: float(value) for item, value in zip(self.corrections, self.fit.values, strict=True)}

    @cached_property
    def errors(self) -> FloatArray:
        """Standard errors of the corrections, in base units."""
        return np.sqrt(np.diag(self.fit.covariance))

    @cached_property
    def calibrated(self) -> Scenario:
        """The scenario with the corrections as overrides."""
        texts = {item.path: _text(item, self.values[item.path]) for item in self.corrections}
        return self.scenario.changed({**self.scenario.overrides, **texts}, self.scenario.platform)

    @cached_property
    def after(self) -> ModelErrors:
        """Errors with the corrections, on the runs that determined them."""
        return ModelErrors.of(self.calibrated, self.runs)

    @cached_property
    def held_out_values(self) -> dict[str, FloatArray]:
        """Predictions by result for scales that were held out, NaN for the other runs."""
        held = {name: np.full(len(self.runs), np.nan) for name in self.before.predicted}
        for number, result in enumerate(self.runs.results):
            rows = np.flatnonzero(np.isfinite(result.values))
            held[result.name][rows] = self.fit.held_out[self.results_of_rows == number] * result.values[rows]
        return held

    @property
    def accuracy_cards(self) -> dict[str, AccuracyCard]:
        """Accuracy by category at scales that were held out."""
        return own_cards(self.scenario, self.runs, self.held_out_values, "held-out")

    @property
    def record(self) -> CorrectionRecord:
        """The corrections as a file states them."""
        errors = self.errors
        scale = np.where(errors > 0, errors, 1.0)
        correlation = np.clip(self.fit.covariance / np.outer(scale, scale), -1, 1)
        np.fill_diagonal(correlation, 1.0)
        held = [item.mean_absolute_error for item in self.held_out]
        return CorrectionRecord(
            {_in_table(item.path): _text(item, self.values[item.path]) for item in self.corrections},
            [_text(item, error) for item, error in zip(self.corrections, errors.tolist(), strict=True)],
            correlation,
            dict(_ranges(self.runs, self.scenario.program)),
            self.accuracy_cards,
            f"whatif calibrate: {len(self.runs)} runs of {Path(self.runs.file).name}",
            len(self.fit.held_out),
            float(np.mean(held)) if held else 0.0,
            Path(self.runs.file),
        )

    def to_toml(self) -> str:
        """Text of the scenario's file with the corrections."""
        return calibrated_text(self.scenario, self.record)

    def write(self, path: str | Path) -> None:
        """Write the scenario's file with the corrections, whole or not at all. Raise `UsageError` without any."""
        if not self.corrections:
            raise UsageError(f"{path}: not written: {self.summary()[-1]}")
        text = calibrated_text(self.scenario, self.record, Path(path))
        write_scenario(self.scenario, text, Path(path), self.record.runs)

    def table(self) -> Table:
        """A row for each correction: path, platform (empty: application), value with 95 % interval, and unit."""
        columns = {"correction": None, "platform": None, "value": ONE, "lower": ONE, "upper": ONE, "unit": None}
        return Table.of_rows(columns, list(self._rows()), {"runs": self.runs.file})

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for item, ends in zip(self.corrections, self._intervals(), strict=True):
            yield item.path, item.platform, *ends, "" if item.dimension == ONE else str(item.dimension)

    def _intervals(self) -> Iterator[tuple[float, float, float]]:
        """Value of each correction, and the ends of its interval."""
        for value, error in zip(self.values.values(), self.errors.tolist(), strict=True):
            yield value, max(value - _DEVIATIONS * error, 0.0), value + _DEVIATIONS * error

    def readable_table(self) -> Table:
        """The table with units in the cells."""
        rows = [
            (
                item.name,
                item.platform or "every platform",
                *(format_quantity(number, item.dimension) for number in ends),
            )
            for item, ends in zip(self.corrections, self._intervals(), strict=True)
        ]
        return Table.of_rows(dict.fromkeys(("correction", "holds_on", "value", "lower", "upper")), rows)

    def summary(self) -> tuple[str, ...]:
        """Mean absolute errors of each result without and with the corrections, and at held-out scales."""
        held = {item.result: item for item in self.held_out}
        lines = []
        for before, after in zip(self.before.accuracy, self.after.accuracy, strict=True):
            line = f"{before.result}: mean absolute error {before.mean_absolute_error:.1%}, calibrated "
            line += f"{after.mean_absolute_error:.1%}"
            if before.result in held:
                item = held[before.result]
                line += f", held-out scales {item.mean_absolute_error:.1%} (bias {item.bias:+.1%})"
            lines.append(line)
        return tuple(lines) if self.corrections else ("no correction lowers the error at held-out scales",)


def calibrate(scenario: Scenario, path: str | Path | None = None, kinds: Sequence[str] = ()) -> Calibration:
    """Corrections of a scenario by the runs of a file, by default the one that it names.

    `kinds` are used whatever their held-out error; without any, corrections are chosen by it. Raise `UsageError` for
    unknown kinds and for fewer measured values than corrections, `InvalidFileError` for runs that do not fit.
    """
    for kind in kinds:
        if kind not in CORRECTIONS:
            raise UsageError(
                f"`{kind}`: no such correction{did_you_mean(kind, CORRECTIONS)}; known: {', '.join(CORRECTIONS)}"
            )
    plain = _without_corrections(scenario)
    runs = measured_runs(plain, path)
    before = ModelErrors.of(plain, runs)
    candidates = tuple(item for item in _candidates(plain, runs) if not kinds or item.kind in kinds)
    if not candidates:
        raise UsageError(f"{runs.file}: none of its results has a correction of {', '.join(kinds) or 'any kind'}")
    problem = _problem(plain, runs, candidates)
    if kinds and len(problem.base) < len(candidates):
        raise UsageError(
            f"{runs.file}: {len(problem.base)} measured values do not determine {len(candidates)} corrections"
        )
    every = range(len(candidates))
    fit = fitted(problem, every) if kinds else fit_corrections(problem, list(_stages(runs, problem, candidates)))
    chosen = tuple(candidates[at] for at in fit.chosen)
    found = Calibration(plain, runs, chosen, fit, problem.results, before, tuple(_held_out(runs, problem, fit)))
    return replace(found, remarks=(f"measured runs: {runs.file}",))


def _without_corrections(scenario: Scenario) -> Scenario:
    """Scenario whose corrections are neutral."""
    known = [path for path in scenario.program.parameters if path.startswith("calibration.")]
    neutral = {
        path: ("0 s" if path.endswith("_time") else 0 if path.endswith("doubling_factor") else 1) for path in known
    }
    return scenario.changed({**scenario.overrides, **neutral}, scenario.platform) if neutral else scenario


def _candidates(scenario: Scenario, runs: MeasuredRuns) -> Iterator[Correction]:
    """Corrections that some measured result depends on."""
    program = next(iter(runs.parts(scenario)))[0]
    phases = {f"terms.{phase.phase}": phase for phase in program.phases}
    measured = {result.parts[0] for result in runs.results if len(result.parts) == 1}
    whole = any(part not in phases for result in runs.results for part in result.parts)
    single = [phase.phase for part, phase in phases.items() if phase.category == "kernel" and part in measured]
    for name in single:
        yield Correction(f"{APPLICATION}.kernel_factors.{name}", "kernels", 1.0, ONE)
    if not single and any(phase.category == "kernel" for phase in phases.values()) and whole:
        yield Correction(f"{APPLICATION}.kernel_factor", "kernels", 1.0, ONE)
    if any(phase.category == "communication" for phase in phases.values()):
        # Benchmarks send warm buffers, one message at a time: no application is faster than they are.
        yield Correction(f"{APPLICATION}.message_factor", "messages", 1.0, ONE, 1.0)
        yield Correction(f"{APPLICATION}.message_time", "messages", 0.0, SECOND)
        congested = any(name.endswith(".congestion_time") for name in program.terms)
        for name in _platforms(scenario, runs):
            yield Correction(f"{PLATFORMS}.{name}.sharing_factor", "sharing", 1.0, ONE)
            if congested:
                yield Correction(f"{PLATFORMS}.{name}.congestion_factor", "congestion", 1.0, ONE)
            yield Correction(f"{PLATFORMS}.{name}.doubling_factor", "congestion", 0.0, ONE)
    if whole:
        yield Correction(f"{APPLICATION}.overhead_time", "overhead", 0.0, SECOND)
        yield Correction(f"{APPLICATION}.doubling_time", "overhead", 0.0, SECOND)


def _platforms(scenario: Scenario, runs: MeasuredRuns) -> list[str]:
    """Names of the files of the platforms of the runs."""
    if PLATFORM_PARAMETER in runs.axis.parameters:
        return list(dict.fromkeys(runs.axis.parameters[PLATFORM_PARAMETER].tolist()))
    return list(platform_names(scenario.program)[:1])


def _problem(scenario: Scenario, runs: MeasuredRuns, candidates: Sequence[Correction]) -> CorrectionProblem:
    """Predictions relative to the measured values, and the effect of each correction on them."""
    neutral = {item.path: _text(item, item.neutral) for item in candidates}
    with_all = scenario.changed({**scenario.overrides, **neutral}, scenario.platform)
    found = np.full((len(runs.results), len(runs), 1 + len(candidates)), np.nan)
    for program, numeric, at in runs.parts(with_all):
        found[:, at] = _effects(program, numeric, runs, candidates)
    measured = np.stack([result.values for result in runs.results])
    results, rows = np.nonzero(np.isfinite(measured))
    relative = found[results, rows] / measured[results, rows, np.newaxis]
    neutral_values, least = (np.array([getattr(item, name) for item in candidates]) for name in ("neutral", "least"))
    return CorrectionProblem(relative[:, 0], relative[:, 1:], neutral_values, least, _scales(runs)[rows], rows, results)


def _stages(
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
    """Scale of each run: the first of its parameters that counts ranks, nodes or cells and varies, else its number."""
    for prefix in _SCALES:
        for path, values in runs.axis.parameters.items():
            if path.startswith(prefix) and values.dtype != object and np.ptp(values) > 0:
                return np.asarray(values, dtype=np.float64)
    return np.zeros(len(runs))


def _held_out(runs: MeasuredRuns, problem: CorrectionProblem, fit: FittedCorrections) -> Iterator[Accuracy]:
    for number, result in enumerate(runs.results):
        errors = fit.held_out[problem.results == number] - 1
        if np.isfinite(errors).any():
            yield Accuracy.of(result, errors)


def _in_table(path: str) -> str:
    return path.removeprefix("calibration.")


def _ranges(runs: MeasuredRuns, program: Program) -> Iterator[tuple[str, tuple[float, float]]]:
    """Smallest and largest value of each count among the parameters of the runs, by its last name."""
    for path, values in runs.axis.parameters.items():
        if values.dtype != object and program.parameters[path].dimension == ONE:
            yield path.rpartition(".")[2], (float(values.min()), float(values.max()))


def _text(item: Correction, value: float) -> str | float:
    """Value as it is written into a file."""
    return format_quantity(value, item.dimension, 6) if item.dimension == SECOND else float(f"{value:.6g}")
