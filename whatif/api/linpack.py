"""Predictions of High Performance Linpack, and the search for its best parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from whatif.api.common import AnyPlatform, Overrides, checked_overrides
from whatif.arguments import Share
from whatif.core.scenario import Scenario
from whatif.errors import require_least
from whatif.linpack.fleet import fleet_of, link_notes
from whatif.linpack.input_reader import read_hpl_input
from whatif.linpack.prediction_study import (
    DEFAULT_MAXIMUM_RUNS,
    NOISE_OF,
    NOISY_REPLICATES,
    HPLPredictions,
    measured_runs,
    passed_runs,
    require_feasible,
    require_few,
)
from whatif.linpack.prediction_tables import by_key
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.scenario_writer import Binding, HPLPlacement, PanelPlace, hpl_scenario_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.tuning import Space
from whatif.linpack.tuning_options import Names, Numbers, space_of
from whatif.linpack.tuning_study import HPLTuning, TuningInterrupted, TuningObserver, tuned

__all__ = [
    "HPLPredictions",
    "HPLTuning",
    "TuningInterrupted",
    "TuningObserver",
    "hpl",
    "tune_hpl",
]


def hpl(
    input_file: str | Path,
    *,
    platform: AnyPlatform,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    ranks_per_node: int | None = None,
    binding: Binding = "by_core",
    panel_on: PanelPlace = "device",
    hosts: str | Path | Sequence[str] = (),
    without_slowest: int = 0,
    cluster: int | None = None,
    spread: str | Mapping[str, float] = "",
    cluster_seed: int | None = None,
    without_uplinks: int = 0,
    noise: bool = False,
    network_noise: bool = False,
    replicates: int | None = None,
    seed: int | None = None,
    measured: Sequence[str | Path] = (),
    components: bool = False,
    max_points: int = DEFAULT_MAXIMUM_RUNS,
) -> HPLPredictions:
    """Predicted times (s) and rates (flop/s) of every combination of an HPL.dat on a platform, in the file's order.

    Combinations are simulated when the result is first iterated over or shown. `ranks_per_node` is by default one
    for each GPU or core. With noise or replicates the time is the mean of the replicates (with noise 10 by default,
    with seeds from `seed` on), and a further run is in the interval with 90 % probability: fitted costs are drawn
    from their covariance, kernel calls deviate, and so do whole runs (`kernels.run_deviation`). `measured` are
    outputs of HPL to compare with, without runs that failed its check of the residual: `errors()` of the result has
    mean error, bias, order and coverage, and `write(path)` writes a platform with the correction that they show.
    `components` adds the parts of the time. `scenario` of the result is that of the first combination.

    `hosts` names the nodes to use in order, or a file with these names; `without_slowest` leaves out the slowest nodes;
    `cluster` draws a machine of that many nodes with relative spreads by level: `spread="node=2%, processor=1%, day=1%,
    call=3%"` (default: those of the platform; day and call need `noise`, and a day is drawn for each replicate and
    node); `without_uplinks` removes that many uplinks of every lowest switch of a fat tree.

    Raise `InvalidFileError` for a wrong file and for sizes that the machine has no room for, `UsageError` for more
    than `max_points` combinations, for overrides of what HPL.dat states, and for nodes that the machine does not have.

    >>> import whatif
    >>> predicted = whatif.hpl("tests/data/hpl/HPL.dat.4x4", platform="dahu")
    >>> first = next(iter(predicted))
    >>> first.row.configuration.block_size, 0 < first.row.time < 10
    (64, True)
    >>> float(whatif.run(predicted.scenario)["total_time"]) == first.row.time
    True
    """
    require_least("replicates", replicates, 1)
    require_least("seed", seed, 0)
    asked = read_hpl_input(Path(input_file))
    require_few(asked, Path(input_file), max_points)
    fleet = fleet_of(hosts, without_slowest, cluster, spread, cluster_seed, without_uplinks)
    placement = HPLPlacement(ranks_per_node, binding, panel_on, NOISE_OF[noise, network_noise], seed or 0, fleet)
    scenario, runs, notes = _runs(next(asked.configurations()), platform, platform_dirs, overrides, placement)
    require_feasible(asked, Path(input_file), runs)
    notes += link_notes(fleet, runs, max(run.rank_count for run in asked.configurations()))
    sampling = next(filter(None, map(runs.sampling, asked.configurations())), "")
    notes += (sampling,) if sampling else ()
    count = replicates or (NOISY_REPLICATES if runs.is_noisy else 1)
    known, failed = passed_runs(measured_runs(measured))
    notes += failed
    return HPLPredictions(
        asked, scenario, runs, range(runs.seed, runs.seed + count), by_key(known), components, notes,
        tuple(map(str, measured)),
    )  # fmt: skip


def tune_hpl(
    *,
    platform: AnyPlatform,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    ranks_per_node: int | None = None,
    binding: Binding = "by_core",
    panel_on: PanelPlace = "device",
    hosts: str | Path | Sequence[str] = (),
    without_slowest: int = 0,
    cluster: int | None = None,
    spread: str | Mapping[str, float] = "",
    cluster_seed: int | None = None,
    without_uplinks: int = 0,
    ranks: int | None = None,
    grids: Sequence[str] = (),
    memory_fraction: Share = 0.8,
    matrix_sizes: Numbers | None = None,
    block_sizes: Numbers | None = None,
    broadcasts: Names | None = None,
    swaps: Names | None = None,
    depths: Numbers = (0, 1),
    candidates: int = 200,
    seed: int = 0,
    log: str | Path | None = None,
    on: str | None = None,
    workers: int | None = None,
    observer: TuningObserver | None = None,
) -> HPLTuning:
    """Ten best configurations of HPL on a platform, with times (s) and rates (flop/s).

    Searched are the `grids` ("4x8") or all those of `ranks` (default: as many as fit the platform), N (default: the
    largest that fits `memory_fraction` of the nodes' memory), NB, broadcast, swap and depth, as lists or as texts with
    commas. `candidates` of the combinations are drawn with `seed`. `log` keeps every run: the same search continues
    from it. The options of the nodes are those of `hpl`: the grids are those of the nodes that remain. `on` and
    `workers` simulate in parallel: `threads`, `processes`, `local` or a scheduler's address.

    Raise `UsageError` for a wrong value, an infeasible space, or the log of another search; `TuningInterrupted`, with
    the best configurations so far, for an interruption.

    >>> import whatif
    >>> found = whatif.tune_hpl(platform="dahu", grids=["1x2", "2x1"], matrix_sizes=[500], block_sizes=[50],
    ...                         broadcasts=["ring"], swaps=["mix"], depths=[0])
    >>> len(found.table()), found.best.block_size
    (2, 50)
    """
    watching = observer or TuningObserver()
    fleet = fleet_of(hosts, without_slowest, cluster, spread, cluster_seed, without_uplinks)
    placement = HPLPlacement(ranks_per_node, binding, panel_on, seed=seed, fleet=fleet)
    _, runs, notes = _runs(Configuration(1, 1, 1, 1), platform, platform_dirs, overrides, placement)
    space = space_of(
        runs, ranks=ranks, grids=grids, memory_fraction=memory_fraction, matrix_sizes=matrix_sizes,
        block_sizes=block_sizes, broadcasts=broadcasts, swaps=swaps, depths=depths, candidates=candidates, seed=seed,
    )  # fmt: skip
    most = max(rows * columns for rows, columns in space.grids)
    sampling = runs.sampling(_longest(runs, space))
    for note in (*notes, *link_notes(fleet, runs, min(most, runs.rank_limit)), *filter(None, [sampling])):
        watching.note(note)
    return tuned(runs, space, None if log is None else Path(log), on, workers, watching)


def _longest(runs: HPLRuns, space: Space) -> Configuration:
    """Configuration of a space with the most steps and processes."""
    rows, columns = max(space.grids, key=math.prod)
    example = Configuration(1, min(space.block_sizes), rows, columns)
    size = max(space.matrix_sizes, default=runs.largest_matrix(example, space.memory_fraction))
    return replace(example, matrix_size=int(size))


def _runs(
    example: Configuration,
    platform: AnyPlatform,
    platform_dirs: Sequence[str | Path],
    overrides: Overrides | None,
    placement: HPLPlacement,
) -> tuple[Scenario, HPLRuns, tuple[str, ...]]:
    """Scenario of a configuration, runs on its machine, and the notes on what was assumed of that."""
    scenario, ranks, fleet = hpl_scenario_of(
        example, platform, platform_dirs, checked_overrides(overrides or {}), placement
    )
    runs = HPLRuns(scenario.program)
    assumed = [(ranks, "--ranks-per-node"), (runs.panel_place, "--panel-on")]
    assumed += [(text, "platform.kernels") for text in runs.plan.datasheet.in_words(runs.plan.uncalibrated)]
    notes = [f"assumed: {text} ({option})" for text, option in assumed if text]
    return scenario, runs, (*notes, *fleet, *filter(None, [runs.idle_cores]))
