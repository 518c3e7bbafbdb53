"""Evaluation of scenarios: at one point, over a grid, and what explains a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, Share, load, sampling_of
from whatif.axes import Grid
from whatif.core.derivation import TermExplanation, explanation
from whatif.core.grid_run import run_whole
from whatif.core.result import Result
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import AxisSpec, asked_grid
from whatif.core.uncertainty import Sampling
from whatif.errors import require_least
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.studies.sweep_parts import ParallelOptions, SweepParts

if TYPE_CHECKING:
    from whatif.reporting.contents import Findings


def run(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
) -> Result:
    """Results of a scenario at one point: times in s, energy in J, and the times of its phases as `terms.NAME`.

    `samples` is the number of draws of uncertain values, with a random `seed`: results get a band that holds `level`
    of the samples (0.9 by default). `spreads` gives values without a distribution one by their grade, such as
    `{"assumed": "20%"}`. The other parameters are those of `load`.

    Raise `InvalidFileError` and `UsageError`. An infeasible point is NaN, with `reasons`.

    >>> import whatif
    >>> answer = whatif.run("jacobi2d", platform="frontier", overrides={"application.rank_count": 64})
    >>> 0 < float(answer["terms.stencil"]) < float(answer["iteration_time"])
    True
    >>> band = whatif.run("minimd", platform="frontier", samples=64, spreads={"assumed": "20%"}).to_pandas()
    >>> bool(band["iteration_time.p5"][0] < band["iteration_time.p95"][0])
    True
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    return run_whole(opened, Grid(), sampling_of(samples, seed, level, spreads))


def sweep(
    scenario: AnyScenario,
    *axes: AxisSpec,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    max_points: int = DEFAULT_MAXIMUM_POINTS,
) -> Result:
    """Results of a scenario over a grid: one axis for each mapping or text, else the scenario's own sweep.

    An axis is a mapping of parameters, which move together, to values, or a text as for `--sweep`:
    `"platform.node.gpu_count=1, 2, 4"`. An array is in base units. The other parameters are those of `run`.

    Raise `UsageError` for an unknown parameter or more than `max_points` points.

    >>> import whatif
    >>> swept = whatif.sweep("jacobi2d", {"platform.node.gpu_count": [2, 4, 6]}, {"platform": ["summit", "lassen"]})
    >>> swept["iteration_time"].shape
    (3, 2)
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    grid = asked_grid(opened, axes, point=False, limit=max_points)
    return run_whole(opened, grid, sampling_of(samples, seed, level, spreads))


def sweep_parts(
    scenario: AnyScenario,
    *axes: AxisSpec,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    samples: Sampling | int | None = None,
    seed: int | None = None,
    level: Share | None = None,
    spreads: Mapping[str, Share] | None = None,
    point: bool = False,
    max_points: int = DEFAULT_MAXIMUM_POINTS,
    on: str | None = None,
    workers: int | None = None,
    part_points: int | None = None,
) -> SweepParts:
    """Results of a sweep of any size, part by part: iterate over them, or `write` them to a file.

    `on` evaluates them in `threads`, `processes`, `local` (a dask.distributed cluster on this machine) or on a running
    scheduler, `tcp://HOST:8786`, with `workers` (by default one for each core) that take `part_points` points at a
    time. `point` ignores the scenario's own sweep. The other parameters are those of `sweep`.

    Raise `UsageError` for `workers` or `part_points` without `on`.

    >>> import whatif
    >>> parts = whatif.sweep_parts("jacobi2d", "platform.node.gpu_count=1 .. 6 step 1", on="threads", workers=2)
    >>> sum(part.grid.size for part in parts)
    6
    """
    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    parallel = ParallelOptions(on, workers, part_points)
    grid = asked_grid(opened, axes, point=point, limit=max_points)
    return SweepParts(EvaluationRequest(opened, grid, sampling_of(samples, seed, level, spreads)), parallel)


def explain(
    scenario: AnyScenario,
    term: str = "iteration_time",
    *,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    depth: int | None = None,
) -> TermExplanation:
    """Derivation of a result, phase, term or parameter: equations, inputs with units, sources and grades.

    `depth` is the number of levels shown below `term`, all of them by default. The other parameters are those of
    `load`. Raise `UsageError` for an unknown name.

    >>> import whatif
    >>> print(whatif.explain("jacobi2d", "platform.node.gpu_count").lines()[0])
    platform.node.gpu_count: 6  (datasheet; Choi et al., ICS 2020, Table 1)
    """
    require_least("depth", depth, 0)
    program = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs).program
    return explanation(program, term, depth)


def report(
    scenario: AnyScenario,
    output: str | Path,
    *axes: AxisSpec,
    platform: AnyPlatform | None = None,
    overrides: Overrides | None = None,
    platform_dirs: Sequence[str | Path] = (),
    against: AnyScenario | AnyPlatform | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Findings:
    """Contents of a report that is written as one HTML page: results, pictures, sensitivities, equations and sources.

    `output` is a file `.html`. `against` adds what explains the difference from another platform or scenario.
    `progress` receives what is computed or drawn next. The other parameters are those of `sweep`. Needs the extra
    `report`; raise `UsageError` without it.

    >>> import tempfile, whatif
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = whatif.report("minife", f"{folder}/minife.html", platform="lassen")
    >>> found.notes
    ()
    """
    from whatif.reporting.html_page import other_scenario, report_words, write_report

    opened = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    grid = asked_grid(opened, axes, point=False, limit=DEFAULT_MAXIMUM_POINTS)
    other = None if against is None else other_scenario(against, opened)
    # A scenario that was loaded already has changes, which those of the arguments replace.
    is_loaded = isinstance(scenario, Scenario)
    command = report_words(
        opened if is_loaded else scenario,
        Path(output),
        platform=None if is_loaded else platform,
        platform_dirs=() if is_loaded else platform_dirs,
        overrides=None if is_loaded else overrides,
        axes=grid.axes if axes else (),
        against=against,
    )
    return write_report(EvaluationRequest(opened, grid), Path(output), command, other, progress)


def report_of(request: EvaluationRequest, output: str | Path) -> Findings:
    """Contents of a report that is written on a scenario over a grid, as `report` writes it."""
    from whatif.reporting.html_page import report_words, write_report

    command = report_words(request.scenario, Path(output), axes=request.grid.axes)
    return write_report(request, Path(output), command)
