"""Search: values that meet targets, break-even points and Pareto fronts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, load
from whatif.errors import require_least
from whatif.studies.break_even import BreakEven
from whatif.studies.pareto import Front
from whatif.studies.search import SearchResult
from whatif.studies.seeking import Vary, break_even_study, front_study, seek_study
from whatif.studies.threshold import SeekResult

if TYPE_CHECKING:
    from whatif.transformers.plan_search import PlanSearch


def seek(
    scenario: AnyScenario,
    vary: Vary,
    targets: str | Sequence[str] = (),
    *,
    minimise: str | None = None,
    maximise: str | None = None,
    points: int | None = None,
    seed: int | None = None,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    progress: Callable[[str], None] | None = None,
) -> SeekResult | SearchResult:
    """Values of parameters that meet all targets, the nearest to the present ones, or those with the best result.

    `vary` has texts such as `PATH`, `PATH=LOW .. HIGH`, `PATH=A, B` or `platform=summit, lassen`, or the ranges by
    path; the default range is a thousandth of the present value to a thousand times it. A target is a text such as
    `iteration_time <= 5 ms`, `terms.halo <= 80 %` (of the present result) or `total_cost >= 1 USD`. `minimise` or
    `maximise` is a result, a phase (`terms.NAME`) or a parameter; without it, the sum of the squared logarithms of
    the factors is minimal, after the number of changed choices.

    One parameter with one target has a root finder (`SeekResult`), unless `points` or `seed` ask for a search
    (`SearchResult`): at most `points` points per combination of choices, 20000 by default, 200 if each is simulated.
    Both have `values` by path in base units, and `is_met`; `obstacle()` is the reason if no value meets the targets.
    Raise `UsageError` for unknown names, parameters without effect and empty ranges, `InfeasiblePointError` if no
    value in the range of a root finder has a result.

    >>> import whatif
    >>> bandwidth = "platform.node.gpu.dram_bandwidth"
    >>> found = whatif.seek("minife", bandwidth, "iteration_time <= 4 ms")
    >>> found.is_met, round(found.values[bandwidth] / 1e12, 2)
    (True, 1.05)
    >>> vary = {"platform": "summit, lassen", bandwidth: "0.5 TB/s .. 4 TB/s"}
    >>> cheapest = whatif.seek("jacobi2d", vary, "iteration_time <= 8 ms", minimise=bandwidth, points=500)
    >>> cheapest.choices
    {'platform': 'lassen'}
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    return seek_study(opened, vary, targets, minimise, maximise, points, seed, progress)


def break_even(
    scenario: AnyScenario,
    vary: Vary,
    equal_to: AnyPlatform,
    *,
    result: str = "iteration_time",
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    progress: Callable[[str], None] | None = None,
) -> BreakEven:
    """Values of a parameter at which a result is the same on another platform, or with another value.

    `equal_to` is a platform, or a text `PATH=VALUE`; `vary` as in `seek`, one parameter that is a number, or two: a
    curve over the second one. Parameters of the platform vary on the scenario's own platform only. `crossings` are in
    base units; `leaders()` has the name with the smaller result without one, as `obstacle()` states in words.
    Raise `UsageError` for unknown names, choices, and parameters without effect on the result.

    >>> import whatif
    >>> found = whatif.break_even("jacobi2d", "platform.node.gpu.dram_bandwidth", "lassen")
    >>> found.names, found.crossings[0].less_above
    (('Summit', 'Lassen'), 'Summit')
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    return break_even_study(opened, vary, equal_to, result, progress)


def pareto_front(
    scenario: AnyScenario,
    vary: Vary,
    objectives: str | Sequence[str],
    *,
    targets: str | Sequence[str] = (),
    within: str | float = "10%",
    points: int | None = None,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    progress: Callable[[str], None] | None = None,
) -> Front:
    """Points that no other point beats in one result without being worse in another, over a grid of parameters.

    `objectives` are at least two results, phases or parameters, to minimise or, as `max RESULT`, to maximise; `vary`
    and `targets` as in `seek`. The grid has at most `points` points per combination of choices, 20000 by default, 100
    if each is simulated. The operating range, in the notes, has every objective within a share of its best.
    `values` and `results` are arrays [point] in base units, in order of the first objective.
    Raise `UsageError` for unknown names, fewer than two objectives, and a grid of more points.

    >>> import whatif
    >>> vary = {"application.rank_count": [6, 12, 24, 48]}
    >>> front = whatif.pareto_front("jacobi2d_strong", vary, ["iteration_time", "application.rank_count"])
    >>> front.values["application.rank_count"].tolist()
    [48.0, 24.0, 12.0, 6.0]
    """
    opened = load(scenario, platform=platform, platform_dirs=platform_dirs, overrides=overrides)
    return front_study(opened, vary, objectives, targets, within, points, progress)


def tune_transformer(
    scenario: AnyScenario,
    *,
    keep: Sequence[str] = (),
    top: int = 10,
    worth: bool = False,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
) -> PlanSearch:
    """Fastest plans of a scenario of training or serving that fit the memory, and a Pareto front.

    Of training the search covers tensor, context, pipeline and expert sizes, interleaving, micro batches, sharding and
    recomputation, at the stated ranks, batch and precision, with the front of time and memory; of serving tensor,
    pipeline and expert sizes and requests in flight, with the front of throughput and time of a request. Keys in `keep`
    stay as stated. With `worth` the search is repeated with more memory, bandwidth, links and so on. Raise `UsageError`
    for another application and an unknown key, `InfeasiblePointError` if no plan fits.

    >>> import whatif
    >>> found = whatif.tune_transformer("llama_training", keep=["context_size"], top=3)
    >>> bool(found.plans["iteration_time"][0] <= found.present)
    True
    """
    from whatif.transformers.plan_search import search_plans, with_worth

    require_least("top", top, 1)
    loaded = load(scenario, platform=platform, overrides=overrides, platform_dirs=platform_dirs)
    found = search_plans(loaded, keep=keep, top=top)
    return with_worth(loaded, found, keep) if worth else found
