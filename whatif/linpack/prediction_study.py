"""Predictions of every run of an HPL.dat on a platform."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, Problem, UsageError
from whatif.files.platform_file import PlatformChange, platform_text, present, write_platform
from whatif.linpack.input_reader import HPLInput
from whatif.linpack.kernel_correction import LearntCorrection, learnt_correction
from whatif.linpack.machine import CORRECTION, NOISES
from whatif.linpack.output_reader import HPLRun, read_hpl_output
from whatif.linpack.output_writer import HPLRow, hpl_table
from whatif.linpack.prediction_errors import HPLErrors, errors_of
from whatif.linpack.prediction_tables import (
    LEVEL,
    HPLPrediction,
    Key,
    detail_lines,
    key_of,
    prediction_of,
    prediction_table,
)
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.scenario_writer import Noise
from whatif.linpack.threads import Reported
from whatif.plotting.presentable import Presentable
from whatif.schema.toml import shown_path
from whatif.table import Table
from whatif.units import counted

DEFAULT_MAXIMUM_RUNS: Final = 10_000
"""Default limit on the combinations of an HPL.dat."""
NOISY_REPLICATES: Final = 10
"""Default number of runs of a combination with noise."""
NOISE_OF: Final[Mapping[tuple[bool, bool], Noise]] = {
    (False, False): "none",
    (True, False): "kernels",
    (False, True): "network",
    (True, True): "both",
}
"""`application.noise` by whether kernels and messages deviate."""
_INTERVAL: Final = f"{LEVEL:.0%} of runs"
_LINES: Final = {"N": 6, "P x Q": 11, "DEPTH": 25, "": 0}
"""Lines of an HPL.dat with values that a platform may refuse."""


@dataclass(frozen=True, eq=False, repr=False)
class HPLPredictions(Presentable):
    """Predicted runs in the order of HPL.dat; each is simulated when it is first iterated over or shown."""

    input: HPLInput
    scenario: Scenario
    """Scenario of the first combination, with the platform of all of them."""
    runs: HPLRuns
    seeds: range
    """Seeds of the replicates of each combination."""
    measured: Mapping[Key, Sequence[HPLRun]]
    with_components: bool
    assumed: tuple[str, ...]
    """Notes on what was assumed of the machine."""
    measured_files: tuple[str, ...] = ()
    _known: list[HPLPrediction] = field(default_factory=list)

    @property
    def run_count(self) -> int:
        """Number of simulated runs: combinations times replicates."""
        return self.input.configuration_count * len(self.seeds)

    def __iter__(self) -> Iterator[HPLPrediction]:
        return self.predictions()

    def predictions(self, progress: Reported | None = None) -> Iterator[HPLPrediction]:
        """Predictions, each as soon as it is known; `progress` gets the number of a run and the finished share of it.

        Runs that are known are not simulated again.
        """
        yield from self._known
        remaining = islice(self.input.configurations(), len(self._known), None)
        outcomes = self.runs.in_order(((run, seed) for run in remaining for seed in self.seeds), progress)
        while replicates := list(islice(outcomes, len(self.seeds))):
            self._known.append(prediction_of(replicates, self.measured))
            yield self._known[-1]

    def lines(self, predictions: Iterable[HPLPrediction]) -> Iterator[str]:
        """HPL's own table of some of the predictions, with measured times and components below each run."""
        latest: list[HPLPrediction] = []

        def rows() -> Iterator[HPLRow]:
            for item in predictions:
                latest.append(item)
                yield item.row

        for line in hpl_table(rows(), _INTERVAL if len(self.seeds) > 1 else ""):
            yield line
            for item in latest:
                yield from detail_lines(item, self.with_components)
            latest.clear()

    def errors(self) -> HPLErrors | None:
        """Errors of all runs that were measured; None without any."""
        return errors_of(list(self)) if self.measured else None

    def correction(self) -> LearntCorrection:
        """Relative time of the kernels that the measured runs show. Raise `UsageError` for too few of them."""
        return learnt_correction(list(self), self._times)

    def _times(self, predictions: Sequence[HPLPrediction], factor: float) -> list[float]:
        """Mean times with all kernels slowed by `factor`, by the same seeds."""
        tasks = ((item.row.configuration, seed) for item in predictions for seed in self.seeds)
        times = [outcome.time for outcome in replace(self.runs, kernel_factor=factor).in_order(tasks)]
        return [float(mean) for mean in np.reshape(times, (len(predictions), -1)).mean(axis=1)]

    def to_toml(self) -> str:
        """Text of a platform that extends this one by its correction."""
        return platform_text(present(Path("corrected.toml"), self._platform), self._change())

    def write(self, path: str | Path) -> None:
        """Write the correction into a platform file, a new one that extends the platform, or the platform itself.

        Raise `UsageError` for too few measured runs, for a changed platform, and for a file that cannot be written.
        """
        file = Path(path)
        own = file.is_file() and file.stem == self._platform
        write_platform(file, self._change(), None if own else self._platform, self.scenario.folders)

    @property
    def _platform(self) -> str:
        """Name of the platform, which a file with a correction extends."""
        return str(self.scenario.document.data["platform"])

    def _change(self) -> PlatformChange:
        if not self.measured:
            raise UsageError("a correction is learnt from measured runs: state --measured HPL.out")
        changed = next((path for path in self.scenario.overrides if path.startswith("platform.")), None)
        if changed is not None:
            how = "--set, or by an option that chooses or draws nodes or links"
            raise UsageError(f"a correction is written without `{changed}`, which was changed by {how}: state the "
                             "change in a platform file, and learn the correction on that platform")  # fmt: skip
        stated = float(self.runs.base.values.get(CORRECTION, 1.0))
        return self.correction().change(stated, [Path(file).name for file in self.measured_files])

    def table(self) -> Table:
        """One row for each combination; see `prediction_table`."""
        return self.table_of(list(self))

    def table_of(self, predictions: Sequence[HPLPrediction]) -> Table:
        """Some of the predictions in the columns of `table`."""
        program = self.runs.program
        notes = {
            "platform": program.loaded.scenario.platform.name,
            "grade": program.grade,
            "ranks_per_node": str(self.runs.ranks_per_node),
            "noise": self.runs.plan.noise,
            "seeds": f"{self.seeds[0]} to {self.seeds[-1]}",
        }
        return prediction_table(
            predictions,
            interval=len(self.seeds) > 1,
            components=self.with_components,
            measured=bool(self.measured),
            notes=notes,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions and inputs; after all runs also the errors, and measured runs without a prediction."""
        found = [*self.assumed, self._summary()]
        if self.runs.plan.kernels_deviate and not self.runs.has_deviations:
            found.append("warning: the platform states no deviations of its kernels: their times are always the same")
        missed = self.measured.keys() - {key_of(item.row.configuration) for item in self._known}
        if missed and len(self._known) == self.input.configuration_count:
            code, n, nb, p, q = next(key for key in self.measured if key in missed)
            example = f"such as {code} N {n} NB {nb} P {p} Q {q}"
            found.append(f"warning: {len(missed)} of the measured runs are not a combination of HPL.dat, {example}")
        if self.measured and len(self._known) == self.input.configuration_count:
            errors = errors_of(self._known)
            found += [] if errors is None else errors.lines()
        return tuple(found)

    def _summary(self) -> str:
        count, seeds = self.input.configuration_count, self.seeds
        return (
            f"{self.runs.basis}; {counted(count, 'run')}; {counted(self.runs.ranks_per_node, 'rank')} on a node; "
            f"noise {NOISES[self.runs.plan.noise]}; "
            + (f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}")
        )


def require_few(requested: HPLInput, file: Path, most: int) -> None:
    """Raise `UsageError` for an HPL.dat with more than `most` combinations."""
    if requested.configuration_count > most:
        count = f"{requested.configuration_count:,} combinations"
        raise UsageError(f"{file}: {count}, more than --max-points {most:,}")


def require_feasible(requested: HPLInput, file: Path, runs: HPLRuns) -> None:
    """Raise `InvalidFileError` with every size, grid and depth of an HPL.dat that the machine has no room for."""
    problems: dict[Problem, None] = {}
    sizes = {
        (run.matrix_size, run.process_rows, run.process_columns, run.depth): run for run in requested.configurations()
    }
    for run in sizes.values():
        refusal = runs.refusal(run)
        if refusal is not None:
            line = _LINES[refusal.about]
            problems[Problem(shown_path(file), line, min(line, 1), refusal.about, refusal.message)] = None
    if problems:
        raise InvalidFileError(list(problems))


def measured_runs(files: Sequence[str | Path]) -> list[HPLRun]:
    """Runs of several outputs of HPL; a file that is named twice is read once."""
    once = {Path(file).resolve(): Path(file) for file in files}
    return [run for path in once.values() for run in read_hpl_output(path)]


def passed_runs(runs: Sequence[HPLRun]) -> tuple[list[HPLRun], tuple[str, ...]]:
    """Runs that did not fail HPL's check of the residual, and a warning of those that did, if any."""
    passed = [run for run in runs if run.has_passed is not False]
    count = len(runs) - len(passed)
    words = f"warning: {count:,} of {len(runs):,} measured runs failed HPL's check of the residual and are left out"
    return passed, (words,) if count else ()
