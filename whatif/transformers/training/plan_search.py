"""Search over parallelism plans: all sizes that divide, with every sharding and recomputation, ranked by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, get_args

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable
from whatif.schema.transformer import TrainingPlan
from whatif.table import Table
from whatif.transformers.model_parts import MODEL, PLAN
from whatif.transformers.training.application import TrainingApplication
from whatif.units import BYTE, ONE, PER_SECOND, SECOND, Dimension, counted, format_quantity

SIZES: Final = ("tensor_size", "context_size", "pipeline_size", "virtual_count", "micro_batch", "expert_size")
"""Numbers of a plan that are searched."""
CHOICES: Final = ("sharding", "recomputation")
"""Choices of a plan that are searched."""
MOST_PLANS: Final = 20_000_000
_CHUNK: Final = 50_000
_MOST_PARTS: Final = 16
_MOST_CONTEXT: Final = 64
_MOST_MICRO: Final = 64
_RESULTS: Final[Mapping[str, Dimension]] = {
    "iteration_time": SECOND, "token_rate": PER_SECOND, "model_utilisation": ONE, "memory_size": BYTE,
}  # fmt: skip
_HEADINGS: Final = {
    "tensor_size": "tensor", "context_size": "context", "pipeline_size": "stages", "virtual_count": "parts",
    "micro_batch": "micro", "expert_size": "experts", "recomputation": "recompute", "iteration_time": "time",
    "token_rate": "tokens/s", "model_utilisation": "MFU", "memory_size": "memory",
}  # fmt: skip
"""Headings on a terminal."""
Columns = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class PlanSearch(Presentable):
    """Fastest plans of a search, and its Pareto front of time and memory, in the order of their time."""

    plans: Columns
    """Columns of the best plans: sizes, choices and results."""
    present: float
    """Time of the stated plan; NaN if it cannot run."""
    candidates: int
    feasible: int

    def table(self) -> Table:
        """One row a plan; `pareto` marks those on the Pareto front of time and memory."""
        columns: dict[str, Dimension | None] = dict.fromkeys(SIZES, ONE) | dict.fromkeys(CHOICES)
        rows = zip(*(self.plans[key] for key in (*columns, *_RESULTS, "pareto")), strict=True)
        return Table.of_rows(columns | dict(_RESULTS) | {"pareto": None}, [list(row) for row in rows])

    def readable_table(self) -> Table:
        """The table with short headings."""
        table = self.table()
        return Table({_HEADINGS.get(name, name): column for name, column in table.columns.items()}, table.notes)

    @property
    def optional_columns(self) -> tuple[list[str], ...]:
        """Groups of columns omitted on a narrow terminal."""
        return ["tokens/s"], ["MFU"], ["pareto"], ["experts"]

    @property
    def notes(self) -> tuple[str, ...]:
        """Number of plans, and the fastest one as overrides, with its speedup over the stated one."""
        best = {key: self.plans[key][0] for key in (*SIZES, *CHOICES)}
        overrides = " ".join(f"--set {PLAN}.{key}={_text(value)}" for key, value in best.items())
        time = float(self.plans["iteration_time"][0])
        stated = ""
        if np.isfinite(self.present):
            stated = f", {self.present / time:.3g} times as fast as the stated plan"
        return (
            f"{counted(self.candidates, 'plan')}, {self.feasible:,} of them fit",
            f"fastest: {format_quantity(time, SECOND)}{stated}: {overrides}",
        )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:.0f}"


def search_plans(scenario: Scenario, *, keep: Sequence[str] = (), top: int = 10) -> PlanSearch:
    """Fastest plans of a training scenario, with its ranks, batch and precision.

    Keys in `keep` stay as stated. Raise `UsageError` for another application, an unknown key, or too many plans;
    `InfeasiblePointError` if no plan fits.
    """
    application = _training(scenario)
    unknown = next((key for key in keep if key not in (*SIZES, *CHOICES)), None)
    if unknown is not None:
        known = (*SIZES, *CHOICES)
        raise UsageError(f"--keep {unknown}: expected one of {', '.join(known)}{did_you_mean(unknown, known)}")
    sizes = candidates(scenario, application, keep)
    choices = [_choices(application, key, keep) for key in CHOICES]
    count = len(sizes["tensor_size"]) * int(np.prod([len(values) for values in choices]))
    if count > MOST_PLANS:
        raise UsageError(f"{count:,} plans, more than {MOST_PLANS:,}: keep some keys with --keep")
    found = [_evaluated(scenario, dict(zip(CHOICES, words, strict=True)), sizes) for words in product(*choices)]
    columns = {key: np.concatenate([part[key] for part in found]) for key in found[0]}
    present = float(evaluate(scenario.program).column("iteration_time"))
    if not len(columns["iteration_time"]):
        raise InfeasiblePointError(f"none of {count:,} plans fits {scenario.program.loaded.scenario.platform.name}")
    return PlanSearch(_best(columns, top), present, count, len(columns["iteration_time"]))


def _training(scenario: Scenario) -> TrainingApplication:
    """Application of a training scenario; raise `UsageError` for another one."""
    application = scenario.program.loaded.scenario.application
    if not isinstance(application, TrainingApplication):
        raise UsageError(f'{scenario.document.name}: not a training scenario (`application.kind = "training"`)')
    return application


def _choices(application: TrainingApplication, key: str, keep: Sequence[str]) -> tuple[str, ...]:
    """Values of a choice. Fused attention keeps no scores, which selective recomputation would drop."""
    stated: str = getattr(application.plan, key)
    if key in keep:
        return (stated,)
    known: tuple[str, ...] = get_args(TrainingPlan.model_fields[key].annotation)
    return tuple(word for word in known if word != "selective" or not application.plan.fused_attention)


def candidates(scenario: Scenario, application: TrainingApplication, keep: Sequence[str]) -> dict[str, FloatArray]:
    """Sizes of all plans that divide the ranks, the heads, the batch and the experts."""
    values = evaluate(scenario.program).values
    number = {path: int(values[path]) for path in ("application.rank_count", f"{PLAN}.global_batch",
                                                   f"{MODEL}.head_count", f"{MODEL}.layer_count",
                                                   f"{MODEL}.expert_count")}  # fmt: skip
    ranks, batch, heads, layers, experts = number.values()
    experts = experts if application.transformer.blocks == "experts" else 1
    stated = {key: int(values[f"{PLAN}.{key}"]) for key in SIZES if key in keep}
    blocks = []
    for layout in _layouts(ranks, heads, layers, stated):
        rest = _rest(ranks, layout, batch, layers, experts, stated)
        grid = np.meshgrid(*([size] for size in layout), *rest, indexing="ij")
        blocks.append(np.stack(grid, axis=-1).reshape(-1, len(SIZES)))
    table = np.concatenate(blocks) if blocks else np.zeros((0, 6))
    return {key: table[:, at].astype(np.float64) for at, key in enumerate(SIZES)}


def _layouts(ranks: int, heads: int, layers: int, stated: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """Tensor, context and pipeline ranks."""
    for tensor in _allowed(stated, "tensor_size", _divisors(heads)):
        for context in _allowed(stated, "context_size", _powers(_MOST_CONTEXT)):
            if ranks % (tensor * context) == 0:
                stages = (item for item in _divisors(ranks // (tensor * context)) if item <= layers)
                yield from ((tensor, context, item) for item in _allowed(stated, "pipeline_size", stages))


def _rest(
    ranks: int, layout: tuple[int, int, int], batch: int, layers: int, experts: int, stated: Mapping[str, int]
) -> tuple[list[int], list[int], list[int]]:
    """Parts of a stage, micro batches and expert ranks of a layout."""
    replicas, stages = ranks // int(np.prod(layout)), layout[2]
    most = min(_MOST_PARTS, layers // stages) if stages > 1 else 1
    each = batch // replicas if batch % replicas == 0 else 0
    micro = [item for item in _powers(_MOST_MICRO) if each and each % item == 0]
    shares = [item for item in _divisors(experts) if (ranks // stages) % item == 0]
    return (
        _allowed(stated, "virtual_count", range(1, most + 1)),
        _allowed(stated, "micro_batch", micro),
        _allowed(stated, "expert_size", shares),
    )


def _allowed(stated: Mapping[str, int], key: str, values: Any) -> list[int]:
    """Values of a key: the stated one where it is kept."""
    return [stated[key]] if key in stated else list(values)


def _divisors(number: int) -> list[int]:
    return [item for item in range(1, number + 1) if number % item == 0]


def _powers(most: int) -> list[int]:
    return [2**exponent for exponent in range(most.bit_length())]


def _evaluated(scenario: Scenario, choices: Mapping[str, str], sizes: Mapping[str, FloatArray]) -> Columns:
    """Plans that can run, with some choices, and their results."""
    program = scenario.program_at({f"{PLAN}.{key}": word for key, word in choices.items()})
    parts: list[Columns] = []
    for start in range(0, max(len(sizes["tensor_size"]), 1), _CHUNK):
        chunk = {key: array[start : start + _CHUNK] for key, array in sizes.items()}
        found = evaluate(program, {f"{PLAN}.{key}": array for key, array in chunk.items()})
        results = {name: np.broadcast_to(found.column(name), len(chunk["tensor_size"])) for name in _RESULTS}
        able = np.isfinite(results["iteration_time"])
        parts.append({key: array[able] for key, array in (chunk | results).items()})
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    words = {key: np.full(len(joined["iteration_time"]), word, dtype=object) for key, word in choices.items()}
    return joined | words


def _best(columns: Columns, top: int) -> Columns:
    """The fastest plans and as many of the Pareto front of time and memory, in the order of their time, each once.

    Without replicas every sharding is the same plan.
    """
    numbers = [columns[key] for key in (*SIZES, "memory_size", "iteration_time")]
    order = np.lexsort(numbers)
    repeated = np.logical_and.reduce([array[order][1:] == array[order][:-1] for array in numbers])
    order = order[np.concatenate([[True], ~repeated])]
    memory = columns["memory_size"][order]
    least = np.minimum.accumulate(memory)
    front = np.concatenate([[True], memory[1:] < least[:-1]])
    chosen = np.union1d(np.arange(min(top, len(order))), np.flatnonzero(front)[:top])
    kept = {key: array[order][chosen] for key, array in columns.items()}
    return {**kept, "pareto": np.where(front[chosen], "yes", "")}
