"""Search for the parameters of HPL with the highest rate on a platform: its progress, its result and its file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whatif import __version__
from whatif.atomic import write_text
from whatif.core.executors import Place, opened
from whatif.errors import UsageError
from whatif.linpack.input_writer import hpl_input_text
from whatif.linpack.output_reader import SIZES, variant_code
from whatif.linpack.predictions import HPLRuns, parameters_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.threads import Reported
from whatif.linpack.tuning import BEST, Space, combinations, drawn, ranked, rate_of, search
from whatif.linpack.tuning_log import TuningFile
from whatif.plotting.presentable import Presentable
from whatif.table import Table
from whatif.units import FLOP_PER_SECOND, ONE, SECOND


class TuningObserver:
    """Observer of a search; this one ignores everything."""

    def note(self, text: str) -> None:
        """Receive a remark, such as the best candidate so far."""

    def simulating(self, count: int) -> AbstractContextManager[Reported | None]:
        """Context of the simulation of `count` runs; its value is called with their progress."""
        return nullcontext()


@dataclass(frozen=True, eq=False, repr=False)
class HPLTuning(Presentable):
    """Best configurations of a search, the highest rate first."""

    times: Mapping[Configuration, float]
    """Run times in s at the largest N at which something is known."""
    summary: str

    @property
    def ranked(self) -> list[Configuration]:
        """All configurations of `times`, the highest rate first."""
        return ranked(self.times)

    @property
    def best(self) -> Configuration:
        """Configuration with the highest rate."""
        return self.ranked[0]

    def table(self) -> Table:
        """The ten best configurations with their times and rates."""
        columns = {"variant": None, **dict.fromkeys(SIZES, ONE), "broadcast": None, "swap": None, "depth": ONE}
        rows = [
            [variant_code(run), *_in_words(run).values(), self.times[run], rate_of(run, self.times[run])]
            for run in self.ranked[:BEST]
        ]
        return Table.of_rows({**columns, "time": SECOND, "rate": FLOP_PER_SECOND}, rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """Platform, grade of its values, and the size of the search."""
        return (self.summary,)

    def write_input(self, path: str | Path) -> None:
        """Write an HPL.dat of the best configuration."""
        write_text(path, hpl_input_text(self.best))


class TuningInterrupted(KeyboardInterrupt):
    """Interruption of a search; `tuning` is the result so far, None if nothing is known."""

    def __init__(self, message: str, tuning: HPLTuning | None) -> None:
        super().__init__(message)
        self.tuning = tuning


def tuned(
    runs: HPLRuns, space: Space, log: Path | None, on: str | None, workers: int | None, observer: TuningObserver
) -> HPLTuning:
    """Result of a search over a space; `log` keeps its runs, so that the same search continues from it.

    Raise `TuningInterrupted` if it is interrupted, `UsageError` for an infeasible space or the log of another one.
    """
    if on is None and workers is not None:
        raise UsageError("--workers: no effect without --on")
    everything = combinations(space, runs)
    chosen = drawn(everything, space.candidate_count, space.seed)
    summary = _summary(runs, space.seed, everything, chosen)
    observer.note(summary)
    file = None if log is None else TuningFile(log, _identity(space, runs))
    with _place(on, workers, observer) as place:
        simulator = _Simulator(runs, space.seed, file, place, observer)
        try:
            search(everything, chosen, simulator)
        except KeyboardInterrupt:
            hint = f"; the same command continues from {log}" if log else ""
            partial = HPLTuning(simulator.known, summary) if simulator.known else None
            raise TuningInterrupted(f"interrupted{hint}", partial) from None
    return HPLTuning(simulator.known, summary)


@contextmanager
def _place(on: str | None, workers: int | None, observer: TuningObserver) -> Iterator[Place | None]:
    """Workers; None if this process simulates without them."""
    if on is None:
        yield None
        return
    with opened(on, workers) as place:
        if not place.count():
            observer.note(f"{on} has no workers yet; waiting for the first")
        yield place


def _identity(space: Space, runs: HPLRuns) -> dict[str, Any]:
    """Everything that a search depends on: its lists, every number of the machine, and the program."""
    own = {f"application.{name}" for name in parameters_of(Configuration(1, 1, 1, 1))}
    values = [
        (path, str(parameter.value)) for path, parameter in sorted(runs.program.parameters.items()) if path not in own
    ]
    return {
        "program": f"whatif {__version__} tune hpl",
        "platform": runs.program.loaded.scenario.platform.name,
        **asdict(space),
        "machine": hashlib.sha256(repr(values).encode()).hexdigest(),
    }


def _summary(runs: HPLRuns, seed: int, everything: Sequence[Configuration], chosen: Sequence[Configuration]) -> str:
    sizes = [item.matrix_size for item in everything]
    tried = f"{len(chosen):,} of {len(everything):,} combinations"
    return f"{runs.basis}; {tried}; N {min(sizes):,} to {max(sizes):,}; seed {seed}"


class _Simulator:
    """Simulates the candidates of a search, keeps their times, and reports the best so far."""

    def __init__(
        self, runs: HPLRuns, seed: int, file: TuningFile | None, place: Place | None, observer: TuningObserver
    ) -> None:
        self._runs = runs
        self._place = place
        self._seed = seed
        self._file = file
        self._observer = observer
        self._times: dict[Configuration, float] = {} if file is None else file.times
        self._share = 0.0
        self.known: dict[Configuration, float] = {}
        """Times at the last share of N at which something is known."""

    def __call__(self, configurations: Sequence[Configuration], share: float) -> Mapping[Configuration, float]:
        """Times of configurations; known ones are not simulated again."""
        wanted = [item for item in dict.fromkeys(configurations) if item not in self._times]
        known = {item: self._times[item] for item in configurations if item in self._times}
        size = f"{share:.0%} of N" if share < 1 else "full N"
        self._observer.note(f"{size}: {len(known) + len(wanted)} candidates, {len(known)} of them known")
        if share == self._share:
            known |= self.known
        with self._observer.simulating(len(wanted)) as progress:
            outcomes = self._runs.in_order(((item, self._seed) for item in wanted), progress, self._place)
            for item, outcome in zip(wanted, outcomes, strict=True):
                self._keep(item, outcome.time)
                known[item] = outcome.time
                self.known, self._share = known, share
                self._report(item)
        self.known, self._share = known, share
        return known

    def _keep(self, configuration: Configuration, time: float) -> None:
        if self._file is not None:
            self._file.add(configuration, time)
        else:
            self._times[configuration] = time

    def _report(self, latest: Configuration) -> None:
        if len(self.known) > 1 and latest == ranked(self.known)[0]:
            rate = rate_of(latest, self.known[latest]) / 1e9
            text = " ".join(f"{name} {value}" for name, value in _in_words(latest).items())
            self._observer.note(f"best so far: {rate:,.5g} Gflops: {text}")


def _in_words(run: Configuration) -> dict[str, Any]:
    """Searched parameters of a configuration by HPL's names."""
    return {
        "N": run.matrix_size, "NB": run.block_size, "P": run.process_rows, "Q": run.process_columns,
        "BCAST": run.broadcast.name.lower(), "SWAP": run.swap.name.lower(), "DEPTH": run.depth,
    }  # fmt: skip
