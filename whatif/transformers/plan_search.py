"""Search over parallelism plans of training and serving: all that divide, ranked by time, with a Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, cast

import numpy as np

from whatif.core.context import DOMAIN_GPUS
from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import GPU
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable
from whatif.plugins import resolve
from whatif.table import Table
from whatif.transformers.model_parts import PLAN
from whatif.units import BYTE, ONE, SECOND, Dimension, counted, format_quantity
from whatif.vocabulary import PRODUCT_PRECISIONS

MOST_PLANS: Final = 20_000_000
_CHUNK: Final = 50_000
_AMPLE: Final = "1 EB"
"""Memory of a device that no plan fills."""
_SPACES: Final = {
    "training": "whatif.transformers.training.plan_space:SPACE",
    "serving": "whatif.transformers.serving.plan_space:SPACE",
}
"""Space of the plans of each kind of application."""


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Variables and results of a search."""

    sizes: tuple[str, ...]
    """Numbers of a plan."""
    choices: tuple[str, ...]
    """Choices of a plan."""
    results: Mapping[str, Dimension]
    """Results of a plan, with `iteration_time`."""
    rival: str
    """Result that the Pareto front minimises besides the time."""
    headings: Mapping[str, str]
    """Headings of columns on a terminal."""
    optional: tuple[str, ...]
    """Columns omitted on a narrow terminal, in this order."""
    alike: tuple[str, ...]
    """Sizes in which plans differ that have the same results; of others the least one is reported."""
    candidates: Callable[[Scenario, Sequence[str]], dict[str, FloatArray]]
    """Sizes of all plans that divide, for a scenario and the keys that stay as stated."""
    values: Callable[[Scenario, str], tuple[str, ...]]
    """Values of a choice."""


def allowed(stated: Mapping[str, int], key: str, values: Iterable[int]) -> list[int]:
    """Values of a key: the stated one where it is kept."""
    return [stated[key]] if key in stated else list(values)


def powers(most: int) -> list[int]:
    """Powers of two up to a number."""
    return [2**exponent for exponent in range(most.bit_length())]


Columns = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class PlanSearch(Presentable):
    """Fastest plans of a search, and its Pareto front of time and a rival of it, in the order of their time."""

    space: PlanSpace
    plans: Columns
    """Columns of the best plans: sizes, choices and results."""
    present: float
    """Time of the stated plan; NaN if it cannot run."""
    candidates: int
    feasible: int
    binds: str = ""
    """The longest phases of the fastest plan, and how full it makes the memory."""
    worth: tuple[str, ...] = ()
    """Gains of changes of the machine, each with the best plan for it."""

    def table(self) -> Table:
        """One row per plan; `pareto` marks those on the Pareto front."""
        keys: dict[str, Dimension | None] = dict.fromkeys(self.space.sizes, ONE) | dict.fromkeys(self.space.choices)
        rows = zip(*(self.plans[key] for key in (*keys, *self.space.results, "pareto")), strict=True)
        return Table.of_rows(keys | dict(self.space.results) | {"pareto": None}, [list(row) for row in rows])

    def readable_table(self) -> Table:
        """The table with short headings; those of rates, such as `tokens/s`, state the unit."""
        table, columns = self.table(), {}
        for name, column in table.columns.items():
            heading = self.space.headings.get(name, name)
            columns[heading] = replace(column, dimension=ONE) if "/" in heading else column
        return Table(columns, table.notes)

    @property
    def optional_columns(self) -> tuple[list[str], ...]:
        """Groups of columns omitted on a narrow terminal."""
        return tuple([self.space.headings.get(name, name)] for name in self.space.optional)

    @property
    def notes(self) -> tuple[str, ...]:
        """Number of plans, and the fastest one as overrides, with its speedup over the stated one."""
        best = {key: self.plans[key][0] for key in (*self.space.sizes, *self.space.choices)}
        overrides = " ".join(f"--set {PLAN}.{key}={_text(value)}" for key, value in best.items())
        time = float(self.plans["iteration_time"][0])
        stated = ""
        if np.isfinite(self.present):
            ratio = f"{self.present / time:.3g} times "
            stated = f", {ratio.removeprefix('1 times ')}as fast as the stated plan"
        return (
            f"{counted(self.candidates, 'plan')}, {self.feasible:,} of them fit",
            f"fastest: {format_quantity(time, SECOND)}{stated}: {overrides}",
            self.binds,
            *self.worth,
        )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:.0f}"


def search_plans(scenario: Scenario, *, keep: Sequence[str] = (), top: int = 10) -> PlanSearch:
    """Fastest plans of a scenario of training or serving, at its ranks and precision.

    Keys in `keep` stay as stated. Raise `UsageError` for another application, an unknown key, or too many plans;
    `InfeasiblePointError` if no plan fits.
    """
    space = _space(scenario)
    known = (*space.sizes, *space.choices)
    unknown = next((key for key in keep if key not in known), None)
    if unknown is not None:
        raise UsageError(f"--keep {unknown}: expected one of {', '.join(known)}{did_you_mean(unknown, known)}")
    sizes = _with_stated(space.candidates(scenario, keep), scenario)
    plan = _plan(scenario)
    choices = [(getattr(plan, key),) if key in keep else space.values(scenario, key) for key in space.choices]
    count = len(sizes["tensor_size"]) * int(np.prod([len(values) for values in choices]))
    if count > MOST_PLANS:
        raise UsageError(f"{count:,} plans, more than {MOST_PLANS:,}: keep some keys with --keep")
    words = [dict(zip(space.choices, chosen, strict=True)) for chosen in product(*choices)]
    columns = _all_evaluated(scenario, space, words, sizes)
    present = float(evaluate(scenario.program).column("iteration_time"))
    if not len(columns["iteration_time"]):
        name = scenario.program.loaded.scenario.platform.name
        raise InfeasiblePointError(f"none of {count:,} plans fits {name}{_least_memory(scenario, space, words, sizes)}")
    best = _best(space, columns, top)
    return PlanSearch(space, best, present, count, len(columns["iteration_time"]), _binds(scenario, space, best))


def _least_memory(
    scenario: Scenario, space: PlanSpace, choices: Sequence[Mapping[str, str]], sizes: Mapping[str, FloatArray]
) -> str:
    """Words about the plan that needs the least memory, of those that only memory prevents; empty without one."""
    room = f"{GPU}.memory_size"
    if room not in scenario.program.parameters:
        return ""
    needed = _all_evaluated(scenario.with_overrides({room: _AMPLE}), space, choices, sizes)["memory_size"]
    if not len(needed):
        return ""
    compared = (float(needed.min()), float(evaluate(scenario.program).values[room]))
    least, there = (format_quantity(size, BYTE) for size in compared)
    return f": the smallest needs {least} a device, which has {there}; more ranks share it (application.rank_count)"


def _with_stated(sizes: Mapping[str, FloatArray], scenario: Scenario) -> dict[str, FloatArray]:
    """Sizes with those of the stated plan, which a search of powers of two may lack: the best is never slower."""
    values = evaluate(scenario.program).values
    stated = {key: float(values[f"{PLAN}.{key}"]) for key in sizes}
    if np.logical_and.reduce([array == stated[key] for key, array in sizes.items()]).any():
        return dict(sizes)
    return {key: np.append(array, stated[key]) for key, array in sizes.items()}


def _binds(scenario: Scenario, space: PlanSpace, best: Columns) -> str:
    """Sentence about the longest phases of the fastest plan and its memory."""
    program = scenario.program_at({f"{PLAN}.{key}": best[key][0] for key in space.choices})
    evaluation = evaluate(program, {f"{PLAN}.{key}": np.asarray(float(best[key][0])) for key in space.sizes})
    times = {phase.phase: float(evaluation.values[phase.term]) for phase in program.phases}
    longest = sorted(times, key=lambda name: -times[name])[:3]
    shares = ", ".join(f"{name.replace('_', ' ')} {times[name] / sum(times.values()):.0%}" for name in longest)
    room = evaluation.values.get(f"{GPU}.memory_size")
    full = "" if room is None else f"; memory {float(best['memory_size'][0]) / float(room):.0%} full"
    return f"most of its time: {shares}{full}"


def with_worth(scenario: Scenario, found: PlanSearch, keep: Sequence[str]) -> PlanSearch:
    """A search with what changes of the machine are worth, each with its best plan."""
    return replace(found, worth=tuple(_worth(scenario, found, keep)))


def _worth(scenario: Scenario, found: PlanSearch, keep: Sequence[str]) -> Iterator[str]:
    """Sentences: with a change, the time of the best plan, and the gain over that of the machine as it is."""
    parameters = scenario.program.parameters
    for path, change in _changes(scenario).items():
        if path in parameters or path == DOMAIN_GPUS:
            changed = scenario.with_overrides({path: change})
            try:
                result = _gain(found, search_plans(changed, keep=keep, top=1))
            except InfeasiblePointError:
                result = "no plan fits"
            yield f"with {path} {change}: {result}"


def _gain(found: PlanSearch, after: PlanSearch) -> str:
    """Time of the best plan of another search, its gain, and the sizes that differ."""
    before, time = (float(search.plans["iteration_time"][0]) for search in (found, after))
    gain = f"{before / time - 1:.1%} faster" if time < before * 0.9995 else "no faster"
    return f"{format_quantity(time, SECOND, 4)}, {gain}, {_difference(found, after)}"


def _difference(found: PlanSearch, after: PlanSearch) -> str:
    """Sizes of the best plan of another search, as far as they differ."""
    names, one, other = found.space.headings, found.plans, after.plans
    changed = [f"{names[key]} {other[key][0]:.0f}" for key in found.space.sizes if one[key][0] != other[key][0]]
    return f"with {', '.join(changed)}" if changed else "same plan"


def _changes(scenario: Scenario) -> dict[str, str]:
    """Changes of the machine: memory, bandwidth and rate of a device, links, devices of a link domain, ports."""
    values = evaluate(scenario.program).values
    domain = values.get(DOMAIN_GPUS, values["platform.node.gpu_count"])
    precision = PRODUCT_PRECISIONS[_plan(scenario).precision]
    return {
        f"{GPU}.memory_size": "x1.1",
        f"{GPU}.dram_bandwidth": "x1.1",
        f"{GPU}.matrix_rates.{precision}": "x1.1",
        "platform.node.peer_link.link_count": "x2",
        DOMAIN_GPUS: f"{2 * float(domain):.0f}",
        "platform.network.port_count": "x2",
    }


def _space(scenario: Scenario) -> PlanSpace:
    """Space of the plans of a scenario; raise `UsageError` for one without a plan."""
    kind = getattr(scenario.program.loaded.scenario.application, "kind", "")
    if kind not in _SPACES:
        raise UsageError(f'{scenario.document.name}: not a transformer (`application.kind = "training"` or "serving")')
    return cast("PlanSpace", resolve(_SPACES[kind]))


def _plan(scenario: Scenario) -> Any:
    """Plan of a scenario that has a space of plans."""
    return cast("Any", scenario.program.loaded.scenario.application).plan


def _all_evaluated(
    scenario: Scenario, space: PlanSpace, choices: Sequence[Mapping[str, str]], sizes: Mapping[str, FloatArray]
) -> Columns:
    """Plans that can run, with any of the choices, and their results."""
    found = [_evaluated(scenario, space, chosen, sizes) for chosen in choices]
    return {key: np.concatenate([part[key] for part in found]) for key in found[0]}


def _evaluated(
    scenario: Scenario, space: PlanSpace, choices: Mapping[str, str], sizes: Mapping[str, FloatArray]
) -> Columns:
    """Plans that can run, with some choices, and their results."""
    program = scenario.program_at({f"{PLAN}.{key}": word for key, word in choices.items()})
    parts: list[Columns] = []
    for start in range(0, max(len(sizes["tensor_size"]), 1), _CHUNK):
        chunk = {key: array[start : start + _CHUNK] for key, array in sizes.items()}
        found = evaluate(program, {f"{PLAN}.{key}": array for key, array in chunk.items()})
        results = {name: np.broadcast_to(found.column(name), len(chunk["tensor_size"])) for name in space.results}
        able = np.isfinite(results["iteration_time"])
        parts.append({key: array[able] for key, array in (chunk | results).items()})
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    words = {key: np.full(len(joined["iteration_time"]), word, dtype=object) for key, word in choices.items()}
    return joined | words


def _best(space: PlanSpace, columns: Columns, top: int) -> Columns:
    """The fastest plans and as many of the Pareto front of time and its rival, in the order of their time, each once.

    Without replicas every sharding is the same plan.
    """
    rest = [columns[key] for key in space.sizes if key not in space.alike]
    # At a rate of requests all times are the same, but for their last bits.
    times = np.round(columns["iteration_time"] / columns["iteration_time"].min(), 9)
    numbers = [*(columns[key] for key in (*space.alike, space.rival)), times]
    order = np.lexsort([*rest, *numbers])
    repeated = np.logical_and.reduce([array[order][1:] == array[order][:-1] for array in numbers])
    order = order[np.concatenate([[True], ~repeated])]
    rival = columns[space.rival][order]
    least = np.minimum.accumulate(rival)
    front = np.concatenate([[True], rival[1:] < least[:-1]])
    chosen = np.union1d(np.arange(min(top, len(order))), np.flatnonzero(front)[:top])
    kept = {key: array[order][chosen] for key, array in columns.items()}
    return {**kept, "pareto": np.where(front[chosen], "yes", "")}
