"""Plans of training: all sizes that divide, with every sharding and recomputation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast, get_args

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.scenario import Scenario
from whatif.models.decomposition import divisors
from whatif.models.quantities import FloatArray
from whatif.schema.transformer import TrainingPlan
from whatif.transformers.applications import TrainingApplication
from whatif.transformers.model_parts import MODEL, PLAN
from whatif.transformers.plan_search import PlanSpace, allowed, powers
from whatif.units import BYTE, ONE, PER_SECOND, SECOND

SIZES: Final = ("tensor_size", "context_size", "pipeline_size", "virtual_count", "micro_batch", "expert_size")
"""Numbers of a plan that are searched."""
CHOICES: Final = ("sharding", "recomputation")
"""Choices of a plan that are searched."""
_MOST_PARTS: Final = 16
_MOST_CONTEXT: Final = 64
_MOST_MICRO: Final = 64


def choices(scenario: Scenario, key: str) -> tuple[str, ...]:
    """Values of a choice. Fused attention keeps no scores, which selective recomputation would drop."""
    plan = cast("TrainingApplication", scenario.program.loaded.scenario.application).plan
    known: tuple[str, ...] = get_args(TrainingPlan.model_fields[key].annotation)
    return tuple(word for word in known if word != "selective" or not plan.fused_attention)


def candidates(scenario: Scenario, keep: Sequence[str]) -> dict[str, FloatArray]:
    """Sizes of all plans that divide the ranks, the heads, the batch and the experts."""
    values, model = evaluate(scenario.program).values, scenario.program.loaded.scenario.application
    number = {path: int(values[path]) for path in (RANK_COUNT, f"{PLAN}.global_batch",
                                                   f"{MODEL}.head_count", f"{MODEL}.layer_count",
                                                   f"{MODEL}.expert_count")}  # fmt: skip
    ranks, batch, heads, layers, experts = number.values()
    experts = experts if cast("TrainingApplication", model).transformer.blocks == "experts" else 1
    stated = {key: int(values[f"{PLAN}.{key}"]) for key in SIZES if key in keep}
    contexts = sorted({*powers(_MOST_CONTEXT), int(values[f"{PLAN}.context_size"])})
    blocks = []
    for layout in _layouts(ranks, heads, layers, contexts, stated):
        rest = _rest(ranks, layout, batch, layers, experts, stated)
        grid = np.meshgrid(*([size] for size in layout), *rest, indexing="ij")
        blocks.append(np.stack(grid, axis=-1).reshape(-1, len(SIZES)))
    table = np.concatenate(blocks) if blocks else np.zeros((0, 6))
    return {key: table[:, at].astype(np.float64) for at, key in enumerate(SIZES)}


def _layouts(
    ranks: int, heads: int, layers: int, contexts: Sequence[int], stated: Mapping[str, int]
) -> Iterator[tuple[int, int, int]]:
    """Tensor, context and pipeline ranks."""
    for tensor in allowed(stated, "tensor_size", divisors(heads)):
        for context in allowed(stated, "context_size", contexts):
            if ranks % (tensor * context) == 0:
                stages = (item for item in divisors(ranks // (tensor * context)) if item <= layers)
                yield from ((tensor, context, item) for item in allowed(stated, "pipeline_size", stages))


def _rest(
    ranks: int, layout: tuple[int, int, int], batch: int, layers: int, experts: int, stated: Mapping[str, int]
) -> tuple[list[int], list[int], list[int]]:
    """Parts of a stage, micro batches and expert ranks of a layout."""
    replicas, stages = ranks // int(np.prod(layout)), layout[2]
    most = min(_MOST_PARTS, layers // stages) if stages > 1 else 1
    each = batch // replicas if batch % replicas == 0 else 0
    micro = [item for item in divisors(each) if item <= _MOST_MICRO]
    shares = [item for item in divisors(experts) if (ranks // stages) % item == 0]
    return (
        allowed(stated, "virtual_count", range(1, most + 1)),
        allowed(stated, "micro_batch", micro),
        allowed(stated, "expert_size", shares),
    )


SPACE: Final = PlanSpace(
    sizes=SIZES,
    choices=CHOICES,
    results={"iteration_time": SECOND, "token_rate": PER_SECOND, "model_utilisation": ONE, "memory_size": BYTE},
    rival="memory_size",
    headings={
        "tensor_size": "tensor", "context_size": "context", "pipeline_size": "stages", "virtual_count": "parts",
        "micro_batch": "micro", "expert_size": "experts", "recomputation": "recompute", "iteration_time": "time",
        "token_rate": "tokens/s", "model_utilisation": "MFU", "memory_size": "memory",
    },
    optional=("token_rate", "model_utilisation", "pareto", "expert_size"),
    alike=SIZES,
    candidates=candidates,
    values=choices,
)  # fmt: skip
