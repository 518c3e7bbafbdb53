"""One training step on the pipeline stages of a replica, with the passes of its schedule simulated one by one.

The schedule is one forward, one backward, with parts of the model interleaved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.core.context import DOMAIN_GPUS
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray, IntArray
from whatif.transformers.model_parts import PLAN

FORWARD: Final = 1
BACKWARD: Final = 2
MOST_PASSES: Final = 200_000
"""Most passes of parts that are simulated."""
Pass = tuple[int, int, int]
"""Direction, part of the model on its stage, and micro batch."""
_FORWARD_SHARE: Final = {"none": 1 / 3, "selective": 1 / 3, "full": 1 / 4}
"""Share of the forward passes in the time of a micro batch, by recomputation."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedSchedule:
    """Passes in a pipeline, each with its stage, direction, begin and end in s."""

    stage: IntArray
    direction: IntArray
    start: FloatArray
    end: FloatArray
    stage_count: int

    @property
    def time(self) -> float:
        """Time from the first begin to the last end."""
        return float(self.end.max())


def pass_order(stage: int, stages: int, parts: int, micro_batches: int) -> list[Pass]:
    """Order of the passes of one stage (Narayanan et al. 2021, arXiv 2104.04473, sec. 2.2).

    Forward passes until the first backward one can follow, then one of each in turn, then the rest. Micro batches go
    through a part in groups of as many as there are stages.
    """
    count = parts * micro_batches
    behind = stages - stage - 1
    ahead = min(behind if parts == 1 else 2 * behind + (parts - 1) * stages, count)
    forward = [(FORWARD, *_place(at, stages, parts)) for at in range(count)]
    backward = [(BACKWARD, parts - 1 - part, batch) for _, part, batch in forward]
    turns = [item for pair in zip(forward[ahead:], backward, strict=False) for item in pair]
    return [*forward[:ahead], *turns, *backward[count - ahead :]]


def _place(at: int, stages: int, parts: int) -> tuple[int, int]:
    """Part and micro batch of a pass, by its place among those of one direction."""
    group, within = divmod(at, stages * parts)
    return within // stages, group * stages + within % stages


def simulate(
    stages: int, parts: int, micro_batches: int, forward_time: float, backward_time: float
) -> SimulatedSchedule:
    """Passes of all micro batches, each as soon as its stage is free and its input has arrived; messages take no time.

    `forward_time` and `backward_time` are those of one part and micro batch, in s. Raise `UsageError` for interleaved
    parts whose micro batches the stages do not divide, and for too many passes.
    """
    if parts > 1 and micro_batches % stages:
        raise UsageError(f"{stages} stages do not divide {micro_batches} micro batches, as interleaved parts need")
    if 2 * stages * parts * micro_batches > MOST_PASSES:
        raise UsageError(f"more than {MOST_PASSES:,} passes of micro batches through parts of the model")
    orders = [pass_order(stage, stages, parts, micro_batches) for stage in range(stages)]
    times = {FORWARD: forward_time, BACKWARD: backward_time}
    ends: dict[tuple[int, int, int], float] = {}
    next_pass, free = [0] * stages, [0.0] * stages
    found: list[tuple[int, int, float, float]] = []
    waiting = list(range(stages))
    while waiting:
        for stage in waiting:
            while next_pass[stage] < len(orders[stage]):
                direction, part, batch = orders[stage][next_pass[stage]]
                ready = _ready(ends, direction, part * stages + stage, batch, stages * parts)
                if ready is None:
                    break
                start = max(ready, free[stage])
                free[stage] = ends[direction, part * stages + stage, batch] = start + times[direction]
                found.append((stage, direction, start, free[stage]))
                next_pass[stage] += 1
        waiting = [stage for stage in waiting if next_pass[stage] < len(orders[stage])]
    stage_of, directions, starts, end = (np.array(column) for column in zip(*found, strict=True))
    return SimulatedSchedule(stage_of, directions, starts, end, stages)


def _ready(
    ends: dict[tuple[int, int, int], float], direction: int, place: int, batch: int, places: int
) -> float | None:
    """End of the pass that gives the input of one; None if not known yet. `place` is that in the whole model."""
    before = (FORWARD, place - 1, batch) if direction == FORWARD else (BACKWARD, place + 1, batch)
    if before[1] == -1:
        return 0.0
    return ends.get((FORWARD, place, batch) if before[1] == places else before)


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
