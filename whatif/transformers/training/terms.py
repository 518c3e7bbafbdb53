"""Terms of a training step: computation, communication, the pipeline, memory."""

from __future__ import annotations

from whatif.core.context import Context
from whatif.core.term import PhaseTerm
from whatif.models import transformer_steps as steps
from whatif.transformers.model_parts import ONCE, PLAN, number
from whatif.transformers.products import check_platform
from whatif.transformers.training.communication import Communication
from whatif.transformers.training.computation import Computation
from whatif.transformers.training.memory import wire_memory
from whatif.transformers.training.parts import Parts
from whatif.vocabulary import Category

_IDLE = {"1f1b": 1.0, "zero_bubble": 1 / 3}
"""Share of the bubble that remains, by schedule."""


def wire_training(context: Context) -> list[PhaseTerm]:
    """Phases of a training step, with their terms wired: one after the other, as far as nothing hides them."""
    parts = Parts(context)
    computation = Computation(parts)
    check_platform(parts, "training", parts.plan.precision)
    parts.constraints()
    wire_memory(parts)
    kernels = computation.kernels()
    computing = context.wiring.sum("training.computing_time", list(kernels.values()))
    communication = Communication(parts, computation.again, computing)
    launches = {"layer_overhead": computation.fixed_times()}
    exposed = communication.of_layers()
    stage = context.wiring.sum("training.stage_time", [*kernels.values(), *launches.values(), *exposed.values()])
    phases: list[tuple[dict[str, str], Category]] = [
        (kernels, "kernel"),
        (launches, "overhead"),
        (exposed, "communication"),
        ({"pipeline_bubble": _bubble(parts, stage)}, "overhead"),
        ({"gradients": communication.of_replicas()}, "communication"),
        ({"optimiser": computation.optimiser()}, "kernel"),
        ({"data_stall": _stall(parts)}, "overhead"),
    ]
    return [PhaseTerm(name, term, category) for terms, category in phases for name, term in terms.items()]


def _bubble(parts: Parts, stage: str) -> str:
    """Time in which a stage waits for the others."""
    sizes = {key: f"{PLAN}.{key}" for key in ("pipeline_size", "virtual_count")}
    return parts.add("pipeline_bubble", steps.bubble_time, stage_time=stage, micro_batch_count=parts.micro_batches,
                     idle_fraction=number(_IDLE[parts.plan.schedule]), **sizes)  # fmt: skip


def _stall(parts: Parts) -> str:
    """Time in which a step waits for its data."""
    return parts.add("data_stall", steps.counted_time, once_time=f"{PLAN}.stall_time", pass_count=ONCE)
