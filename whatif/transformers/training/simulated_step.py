"""One training step on the pipeline stages of a replica, with the passes of its schedule simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.core.context import DOMAIN_GPUS
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.transformers.model_parts import PLAN
from whatif.transformers.training.pipeline_schedule import SimulatedSchedule, simulate

_FORWARD_SHARE: Final = {"none": 1 / 3, "selective": 1 / 3, "full": 1 / 4}
"""Share of the forward passes in the time of a micro batch, by recomputation."""


class SimulatedStep(NamedTuple):
    """A training step: its passes, the time after them, and the node of each stage."""

    schedule: SimulatedSchedule | None
    """None if it cannot be simulated."""
    words: str
    """Sizes of the pipeline, or the reason why there is no schedule."""
    remaining_time: float
    nodes: Any
    """Node of the first rank of each stage."""


def simulated_step(program: Program, values: Mapping[str, Any]) -> SimulatedStep:
    """Step of a training scenario at one point; `1f1b` represents every schedule."""
    plan: Any = getattr(program.loaded.scenario.application, "plan", None)
    stages, parts = (int(values[f"{PLAN}.{key}"]) for key in ("pipeline_size", "virtual_count"))
    computing, bubble, step, count = (
        float(values[term])
        for term in ("training.stage_time", "pipeline_bubble", "iteration.time", "training.micro_batch_count")
    )
    remaining, nodes = step - computing - bubble, _nodes(values, stages)
    if not (count >= 1 and count % 1 == 0):
        reason = f"a replica has {count:g} micro batches; it must be a whole number of at least 1"
        return SimulatedStep(None, reason, remaining, nodes)
    batches, once = int(count), computing / (parts * count)
    forward = once * _FORWARD_SHARE[plan.recomputation]
    try:
        schedule = simulate(stages, parts, batches, forward, once - forward)
    except UsageError as problem:
        return SimulatedStep(None, str(problem), remaining, nodes)
    sizes = [f"{stages} stages" if stages > 1 else "one stage", f"{batches} micro batches"]
    sizes += [f"{parts} parts per stage"] * (parts > 1) + [f"bubble {bubble / step:.1%} of the step"] * (stages > 1)
    sizes += ["drawn as 1f1b"] * (plan.schedule != "1f1b")
    return SimulatedStep(schedule, ", ".join(sizes), remaining, nodes)


def _nodes(values: Mapping[str, Any], stages: int) -> Any:
    on_node = float(values.get("placement.ranks_per_node", values.get(DOMAIN_GPUS, 1.0)))
    return (np.arange(stages) * float(values["training.replica_span"]) // on_node).astype(np.int32)
