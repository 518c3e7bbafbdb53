"""Checks of scenario, platform and part files, and of scenario results against stored ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whatif.axes import Grid
from whatif.core.answer_words import is_time
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import file_axes, grid_of
from whatif.errors import InfeasiblePointError, InvalidFileError, MovedError, Problem, UsageError, did_you_mean
from whatif.files.baseline import Move, moves, read_results, write_results
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.paths import is_file
from whatif.plotting.presentable import Presentable
from whatif.schema.load import load_part, load_platform, open_document
from whatif.schema.parameters import unused_sources
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.shipped import is_platform, kind_of, shipped_names
from whatif.schema.toml import Document, shown_path
from whatif.studies.measured_runs import measured_runs, stated_runs
from whatif.studies.procurement.study import study_of
from whatif.studies.procurement.study_options import options
from whatif.table import Table
from whatif.units import ONE, SECOND, format_quantity


@dataclass(frozen=True, eq=False, repr=False)
class CheckedFile:
    """Check of one file: its kind, or its errors."""

    name: str
    kind: str = ""
    problems: tuple[Problem, ...] = ()
    scenario: Scenario | None = None
    platform: PlatformSpec | None = None
    """Platform of a file; None for a shipped one."""
    unused: tuple[Problem, ...] = ()
    """Entries of its `[sources]` that cover no value."""
    obstacle: str = ""
    """Reason why a scenario without a sweep cannot be run; empty for one that can."""

    @property
    def unstated(self) -> tuple[str, ...]:
        """Tables that a platform may state and does not, with what is absent without them."""
        if self.platform is None:
            return ()
        node = self.platform.node
        cpu_bandwidth = None if node.cpu is None else node.cpu.memory_bandwidth or node.host.memory_bandwidth
        absent = {
            "node.host.memory_bandwidth (no kernels on processors)": node.cpu is not None and cpu_bandwidth is None,
            "node.host.power (no energy)": node.host.power is None,
            "node.peer_link (no links between GPUs)": node.gpu_count not in (None, 0, 1) and node.peer_link is None,
            "price (no costs)": self.platform.price is None,
        }
        return tuple(text for text, is_absent in absent.items() if is_absent)


@dataclass(frozen=True, eq=False, repr=False)
class FileChecks(Presentable):
    """Outcome of checking files, and of comparing the results of scenarios with a file of results."""

    files: tuple[CheckedFile, ...]
    moved: tuple[str, ...] = ()
    """Results that differ from the file of results, a line each."""
    against: Path | None = None
    updated: bool = False

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the files."""
        return tuple(problem for file in self.files for problem in file.problems)

    @property
    def notes(self) -> tuple[str, ...]:
        """Tables that platforms do not state, sources without a value, missing files of measured runs, and the file of
        results if written."""
        scenarios = {file.name: file.scenario for file in self.files if file.scenario}
        unstated = (f"{file.name}: not stated: {', '.join(file.unstated)}" for file in self.files if file.unstated)
        unused = (f"warning: {problem}" for file in self.files for problem in file.unused)
        missing = (*unstated, *unused, *(line for scenario in scenarios.values() for line in _missing_runs(scenario)))
        return (*missing, f"{self.against}: results of {', '.join(scenarios)}") if self.updated else missing

    def table(self) -> Table:
        """One row per file: its name, its kind, and its problems."""
        rows = [(file.name, file.kind, "\n".join(map(str, file.problems))) for file in self.files]
        return Table.of_rows({"file": None, "kind": None, "problems": None}, rows)

    def raise_for_problems(self) -> None:
        """Raise `InvalidFileError` for invalid files, `InfeasiblePointError` for scenarios that cannot be run,
        `MovedError` for results that differ."""
        if self.problems:
            raise InvalidFileError(self.problems)
        if infeasible := [
            f"{file.name}: its own point is infeasible: {file.obstacle}" for file in self.files if file.obstacle
        ]:
            raise InfeasiblePointError("\n".join(infeasible))
        if self.moved:
            raise MovedError(f"not as in {self.against}; `whatif diff` shows why, --update stores the present results")


def check_files(
    names: Sequence[Any], folders: Sequence[Path], against: Path | None, tolerance: float, *, update: bool
) -> FileChecks:
    """Check scenarios, platforms and parts, by path or name; nothing is compared where a file is invalid."""
    if update and against is None:
        raise UsageError("--update needs --against JSON, the file to write")
    files = tuple(_checked(name, folders) for name in names)
    scenarios = {file.name: file.scenario for file in files if file.scenario is not None}
    if against is None or any(file.problems for file in files):
        return FileChecks(files)
    if not scenarios:
        raise UsageError(f"--against {against}: no scenario among {', '.join(map(str, names))}")
    results = {name: _results(name, scenario) for name, scenario in scenarios.items()}
    if update:
        write_results(against, results)
        return FileChecks(files, (), against, updated=True)
    known = read_results(against)
    lines = [f"{name}: not in {against}" for name in results if name not in known]
    lines += [_line(move, scenarios[move.scenario]) for move in moves(known, results, tolerance)]
    return FileChecks(files, tuple(lines), against)


def _checked(name: Any, folders: Sequence[Path]) -> CheckedFile:
    shown = Path(name.document.name).stem if isinstance(name, Scenario) else str(name)
    try:
        return _check_scenario(shown, name) if isinstance(name, Scenario) else _check(shown, tuple(folders))
    except InvalidFileError as error:
        return CheckedFile(shown, problems=error.problems)


def _check(name: str, folders: tuple[Path, ...]) -> CheckedFile:
    if not is_file(Path(name)) and name in shipped_names("platforms"):
        load_platform(name, folders)
        return CheckedFile(name, "platform")
    if not is_file(Path(name)) and name in shipped_names("studies"):
        return _check_study(name, open_document(name, "studies"))
    document = open_document(name, "scenarios", folders, also=("platforms", "studies"))
    return replace(_check_document(name, document, folders), unused=tuple(unused_sources(document)))


def _check_document(name: str, document: Document, folders: tuple[Path, ...]) -> CheckedFile:
    if "part" in document.data:
        load_part(name, folders)
        return CheckedFile(name, "part")
    if kind_of(document.data) == "study":
        return _check_study(name, document)
    if is_platform(document, folders):
        return CheckedFile(name, "platform", platform=load_platform(name, folders)[0])
    return _check_scenario(name, Scenario(document, folders=folders))


def _check_study(name: str, document: Document) -> CheckedFile:
    """A study with the files that it names, its measured runs, and its options."""
    list(options(study_of(document, {"uncertainty.samples": 2})))
    return CheckedFile(name, "study")


def _check_scenario(name: str, scenario: Scenario) -> CheckedFile:
    """A scenario, its sweep, and the measured runs that it names, if the file exists."""
    grid_of(file_axes(scenario.program, DEFAULT_MAXIMUM_POINTS), DEFAULT_MAXIMUM_POINTS)
    if (runs := stated_runs(scenario)) is not None and runs.is_file():
        measured_runs(scenario)
    return CheckedFile(name, "scenario", scenario=scenario, obstacle=_obstacle(scenario))


def _obstacle(scenario: Scenario) -> str:
    """Reason why the own point of a scenario is infeasible; empty for a feasible one, and for a scenario with a sweep.

    Conditions alone are evaluated, as phases may be simulated.
    """
    program = scenario.program
    if program.loaded.scenario.sweep:
        return ""
    conditions = program.part(constraint.term for constraint in program.constraints)
    return evaluate(replace(conditions, constraints=program.constraints)).obstacle()


def _missing_runs(scenario: Scenario) -> Iterator[str]:
    """Warning of a missing file of measured runs: a scenario can be run without it."""
    runs = stated_runs(scenario)
    if runs is not None and not runs.is_file():
        near = did_you_mean(runs.name, [path.name for path in runs.parent.glob("*.csv")])
        yield f"warning: {scenario.document.problem(('runs',), f'{shown_path(runs)}: no such file{near}')}"


def _results(name: str, scenario: Scenario) -> dict[str, float]:
    result = run_whole(scenario, Grid())
    if result.reasons:
        raise InfeasiblePointError(f"{name}: infeasible: {result.obstacle()}")
    columns = result.table().columns.items()
    numbers = {name: float(column.values[0]) for name, column in columns if column.dimension is not None}
    # A run without time has no mean power.
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _line(move: Move, scenario: Scenario) -> str:
    """A result before and after, with its unit: of one that is missing now, only that of a time is known."""
    missing = SECOND if is_time(move.result) else ONE
    dimension = missing if move.after is None else scenario.program.dimension_of(move.result)
    before, after = (
        "not there" if value is None else format_quantity(value, dimension, 6) for value in (move.before, move.after)
    )
    return f"{move.scenario}: {move.result}: {before} -> {after}{_change(move)}"


def _change(move: Move) -> str:
    if not move.before or move.after is None:
        return ""
    return f" ({move.after / move.before - 1:+.2%})"
