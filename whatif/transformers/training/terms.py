"""Terms of a training step: computation, communication, the pipeline, memory."""

from __future__ import annotations

from whatif.core.context import Context
from whatif.core.socket_share import HOST_BANDWIDTH
from whatif.core.term import PhaseTerm, parameters_in
from whatif.models import transformer_steps as steps
from whatif.transformers.model_parts import ONCE, PLAN, number, phase_terms
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
    check_platform(parts, "training", precision=parts.plan.precision)
    _check_host(parts)
    parts.constraints()
    wire_memory(parts)
    kernels = computation.kernels()
    computing = context.wiring.sum("training.computing_time", list(kernels.values()))
    communication = Communication(parts, computation.again, computing)
    launches = {"layer_overhead": computation.fixed_times()}
    exposed = communication.of_layers()
    stage = context.wiring.sum("training.stage_time", [*kernels.values(), *launches.values(), *exposed.values()])
    # Devices draw idle power while the host updates the weights.
    updating: Category = "kernel" if parts.plan.offload == "none" else "overhead"
    phases: list[tuple[dict[str, str], Category]] = [
        (kernels, "kernel"),
        (launches, "overhead"),
        (exposed, "communication"),
        ({"pipeline_bubble": _bubble(parts, stage)}, "overhead"),
        ({"gradients": communication.of_replicas()}, "communication"),
        (computation.offload(), "transfer"),
        ({"optimiser": computation.optimiser()}, updating),
        ({"data_stall": _stall(parts)}, "overhead"),
    ]
    return phase_terms(phases)


def _check_host(parts: Parts) -> None:
    """Raise `InvalidFileError` for a platform whose host cannot take the states of the optimiser."""
    wiring, platform = parts.context.wiring, parts.context.scenario.platform
    if parts.plan.offload == "optimiser" and (
        platform.node.host_link is None or HOST_BANDWIDTH not in wiring.parameters
    ):
        needs = f"`[platform.node.host_link]` and `{HOST_BANDWIDTH}`"
        wiring.refuse("application.plan.offload", f"{platform.name} lacks {needs}, which offload needs")


def _bubble(parts: Parts, stage: str) -> str:
    """Time in which a stage waits for the others."""
    sizes = parameters_in(PLAN, "pipeline_size", "virtual_count")
    return parts.add("pipeline_bubble", steps.bubble_time, stage_time=stage, micro_batch_count=parts.micro_batches,
                     idle_fraction=number(_IDLE[parts.plan.schedule]), **sizes)  # fmt: skip


def _stall(parts: Parts) -> str:
    """Time in which a step waits for its data."""
    return parts.repeated("data_stall", f"{PLAN}.stall_time", ONCE)
