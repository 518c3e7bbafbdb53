"""Plans of serving: all sizes that divide, with powers of two of requests in flight, and the stated limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.scenario import Scenario
from whatif.models.decomposition import divisors
from whatif.models.quantities import FloatArray
from whatif.transformers.applications import ServingApplication
from whatif.transformers.model_parts import MODEL, PLAN
from whatif.transformers.plan_search import PlanSpace, allowed, powers
from whatif.transformers.serving.parts import DECODING_RANKS
from whatif.units import BYTE, ONE, PER_SECOND, SECOND

SIZES: Final = ("tensor_size", "pipeline_size", "expert_size", "largest_batch")
"""Numbers of a plan that are searched."""


def candidates(scenario: Scenario, keep: Sequence[str]) -> dict[str, FloatArray]:
    """Sizes of all plans that divide the ranks that decode, the heads and the experts."""
    values = evaluate(scenario.program).values
    decoding = DECODING_RANKS if DECODING_RANKS in values else RANK_COUNT
    ranks, heads, layers, experts = (
        int(values[path]) for path in (decoding, f"{MODEL}.head_count", f"{MODEL}.layer_count", f"{MODEL}.expert_count")
    )
    application = cast("ServingApplication", scenario.program.loaded.scenario.application)
    stated = {key: int(values[f"{PLAN}.{key}"]) for key in SIZES if key in keep}
    most = int(values[f"{PLAN}.largest_batch"])
    batches = allowed(stated, "largest_batch", sorted({*powers(most), most}))
    rows = []
    for tensor in allowed(stated, "tensor_size", (item for item in divisors(ranks) if heads % item == 0)):
        for stages in allowed(stated, "pipeline_size", (item for item in divisors(ranks // tensor) if item <= layers)):
            shares = [item for item in divisors(ranks // stages) if item % tensor == 0 and experts % item == 0]
            dense = application.transformer.blocks != "experts"
            for share in allowed(stated, "expert_size", [tensor] if dense else shares):
                rows += [(tensor, stages, share, batch) for batch in batches]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(SIZES))
    return {key: table[:, at] for at, key in enumerate(SIZES)}


SPACE: Final = PlanSpace(
    sizes=SIZES,
    choices=(),
    results={"iteration_time": SECOND, "batch": ONE, "rank_token_rate": PER_SECOND, "token_time": SECOND,
             "first_token_time": SECOND, "request_time": SECOND, "memory_size": BYTE},
    rival="request_time",
    headings={
        "tensor_size": "tensor", "pipeline_size": "stages", "expert_size": "experts", "largest_batch": "most",
        "batch": "in flight", "iteration_time": "time", "rank_token_rate": "tokens/s/GPU", "token_time": "token",
        "first_token_time": "first", "request_time": "request", "memory_size": "memory",
    },
    optional=("iteration_time", "pareto", "memory_size", "expert_size"),
    # Beyond what the memory takes, a larger batch changes nothing.
    alike=SIZES[:-1],
    candidates=candidates,
    values=lambda scenario, key: (),
)  # fmt: skip
