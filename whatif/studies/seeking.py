"""Searches given as text: values that meet targets, break-even points and Pareto fronts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from whatif.arguments import positive_share
from whatif.core.evaluate import evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.overrides import option_named
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.core.term import Program
from whatif.errors import UsageError, require_least
from whatif.studies.break_even import BreakEven, break_even
from whatif.studies.pareto import Front, front
from whatif.studies.population import Objective, SearchGoal
from whatif.studies.search import Optimum, SearchResult, ranked, search
from whatif.studies.search_space import Combination, Varied, is_simulated, parse_varied, quantity_named
from whatif.studies.threshold import SeekResult, Target, parse_target, seek

Vary = str | Sequence[str] | Mapping[str, str | float | Sequence[str | float]]
"""Parameters to vary: texts as `--vary` takes them, or ranges and lists by path; an empty one is the default range."""
Report = Callable[[str], None]


def seek_study(
    scenario: Scenario, vary: Vary, targets: str | Sequence[str], minimise: str | None, maximise: str | None,
    points: int | None, seed: int | None, progress: Report | None,
) -> SeekResult | SearchResult:  # fmt: skip
    """Nearest values that meet all targets, or the best ones; raise `UsageError` without targets and objective.

    A root finder is used for one parameter and one target, unless points or a seed request a search.
    """
    require_least("points", points, 1)
    require_least("seed", seed, 0)
    varied, wanted = _varied(scenario, vary), _targets(scenario, targets)
    objective = _objective(scenario, minimise, maximise)
    if not wanted and objective is None:
        raise UsageError("state an aim: --target, --minimise, --maximise, --equal-to or --pareto")
    with option_named("--vary", [item.path for item in varied]):
        if points is None and seed is None and has_root_finder(scenario, varied, wanted, objective):
            (item,), (target,) = varied, wanted
            nearest = seek(scenario.program, item.path, target, item.low, item.high, progress).about(scenario)
            return replace(nearest, remarks=(*nearest.remarks, *_beyond(scenario.program, nearest.values)))
        found = _searched(scenario, varied, SearchGoal(wanted, objective), seed or 0, points, progress).about(scenario)
        program = found.best.combination.program if found.best is not None else None
        return replace(found, remarks=(*found.remarks, *_beyond(program, found.values)))


def _beyond(program: Program | None, values: Mapping[str, float]) -> tuple[str, ...]:
    """Warnings of the inputs of an answer outside of the range that they were fitted to."""
    if program is None or is_simulated(program):
        return ()
    evaluation = evaluate(program, {path: np.asarray(value) for path, value in values.items()})
    return tuple(f"warning: at the values sought: {text}" for text in extrapolations(evaluation))


def has_root_finder(
    scenario: Scenario, varied: Sequence[Varied], targets: Sequence[Target], objective: Objective | None
) -> bool:
    """Whether one range and one target are stated, without a simulation: a root finder needs thousands of points."""
    single = len(varied) == len(targets) == 1 and objective is None
    return single and not (varied[0].choices or varied[0].values) and not is_simulated(scenario.program)


def _searched(
    scenario: Scenario, varied: Sequence[Varied], goal: SearchGoal, seed: int, points: int | None,
    progress: Report | None,
) -> SearchResult:  # fmt: skip
    """Answers of all combinations of choices, the best first."""

    def report(combination: Combination, count: int) -> None:
        if progress is not None:
            progress(f"{str(combination) or 'search'}: {count:,} points")

    found = list(search(scenario, varied, goal, seed, points, report))
    answers = ranked([item for item in found if isinstance(item, Optimum)], goal, scenario)
    infeasible = tuple(item for item in found if isinstance(item, Combination))
    return SearchResult(scenario, goal, tuple(answers), infeasible, seed)


def break_even_study(
    scenario: Scenario, vary: Vary, equal_to: str | Path | Platform, result: str, progress: Report | None
) -> BreakEven:
    """Places where the scenario, and the same one on another platform or with another value, have equal results."""
    varied = _varied(scenario, vary)
    path = str(equal_to).partition("=")[0].strip()
    if any(item.path == path for item in varied):
        raise UsageError(
            f"--equal-to {equal_to}: `{path}` is moved by --vary; set another parameter, or name a platform"
        )
    with option_named("--equal-to", [path]):
        other, names, same_platform = _opponent(scenario, equal_to)
        return break_even(
            scenario, other, names, varied, result, same_platform=same_platform, progress=_counted(progress)
        ).about(scenario)


def _opponent(scenario: Scenario, equal_to: str | Path | Platform) -> tuple[Scenario, tuple[str, str], bool]:
    """The other scenario, the names of both, and whether both are on the same platform."""
    if isinstance(equal_to, str) and "=" in equal_to:
        path, value = (part.strip() for part in equal_to.split("=", 1))
        if path != PLATFORM_PARAMETER:
            return _with_value(scenario, path, value)
        equal_to = value
    placed = scenario.on(equal_to)
    # Overrides of values of the present platform are not those of the other one.
    other = placed.on_platform(placed.platform)
    present, opponent = (item.program.loaded.scenario.platform.name for item in (scenario, other))
    return other, (present, f"{opponent} as it is" if opponent == present else opponent), False


def _with_value(scenario: Scenario, path: str, value: str) -> tuple[Scenario, tuple[str, str], bool]:
    other = scenario.with_overrides({path: value})
    texts = [
        program.parameters[path].text() if path in program.parameters else "as it is"
        for program in (scenario.program, other.program)
    ]
    key = path.rpartition(".")[2]
    return other, (f"{key}={texts[0]}", f"{key}={texts[1]}"), True


def front_study(
    scenario: Scenario, vary: Vary, objectives: str | Sequence[str], targets: str | Sequence[str],
    within: str | float, points: int | None, progress: Report | None,
) -> Front:  # fmt: skip
    """Pareto front of at least two results over all points of a grid."""
    require_least("points", points, 1)
    varied, wanted, share = _varied(scenario, vary), _targets(scenario, targets), positive_share("--within", within)
    with option_named("--vary", [item.path for item in varied]):
        aims = [_aim(text) for text in (objectives.split(",") if isinstance(objectives, str) else objectives)]
        for aim in aims:
            quantity_named(aim.name, scenario.program)  # Refuses an unknown name before the points are evaluated.
        found = front(scenario, varied, aims, wanted, points, _counted(progress))
    return replace(found, within=share).about(scenario)


def _aim(text: str) -> Objective:
    words = text.split()
    if not words or len(words) > 2 or (len(words) == 2 and words[0] not in ("max", "min")):
        raise UsageError(f"--pareto: `{text.strip()}`: expected RESULT, or max RESULT, with commas between")
    return Objective(words[-1], least=words[0] != "max")


def _varied(scenario: Scenario, vary: Vary) -> list[Varied]:
    """Parameters to vary; raise `UsageError` for none and for one that is stated twice."""
    varied = [parse_varied(text, scenario.program) for text in _texts(vary)]
    paths = [item.path for item in varied]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise UsageError(f"--vary {twice}: it is given twice")
    if not varied:
        raise UsageError("--vary: state at least one parameter")
    return varied


def _texts(vary: Vary) -> Iterator[str]:
    """Texts as `--vary` takes them."""
    if not isinstance(vary, Mapping):
        yield from [vary] if isinstance(vary, str) else vary
        return
    for path, values in vary.items():
        words = values if isinstance(values, Iterable) else [values]
        spec = values if isinstance(values, str) else ", ".join(map(str, words))
        yield f"{path}={spec}" if spec else path


def _targets(scenario: Scenario, targets: str | Sequence[str]) -> tuple[Target, ...]:
    texts = [targets] if isinstance(targets, str) else targets
    return tuple(parse_target(text, scenario.program) for text in texts)


def _objective(scenario: Scenario, minimise: str | None, maximise: str | None) -> Objective | None:
    if minimise and maximise:
        raise UsageError("--minimise and --maximise exclude each other; --pareto shows what one costs of the other")
    name = minimise or maximise
    if name is None:
        return None
    quantity_named(name, scenario.program)  # Refuses an unknown name.
    return Objective(name, least=minimise is not None)


def _counted(progress: Report | None) -> Callable[[int], None]:
    """Progress as the number of evaluated points in words."""

    def report(count: int) -> None:
        if progress is not None:
            progress(f"{count:,} points")

    return report
