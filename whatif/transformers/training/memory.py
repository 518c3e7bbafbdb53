"""Memory of a rank in training: weights, gradients, optimiser states, activations, buffers; it must fit the GPU."""

from __future__ import annotations

from typing import Final

from whatif.core.parameter_paths import GPU, NODE
from whatif.core.term import Reference, parameters_in
from whatif.models import transformer_steps as steps
from whatif.models.ranks import memory_fits
from whatif.transformers.model_parts import BF16, MODEL, ONCE, PLAN
from whatif.transformers.training.parts import Parts
from whatif.units import BYTE, Quantity

MEMORY: Final = "training.memory_size"
_SPREAD: Final = {
    "weights": ("full",),
    "gradients": ("gradients", "full"),
    "optimiser": ("optimiser", "gradients", "full"),
}
"""Shardings in which replicas spread a state."""
KINDS: Final = (*_SPREAD, "activations", "recomputed_layer", "logits")
"""Kinds of memory, each in a term `training.KIND_size` where the plan has it."""
_LOGIT: Final = Quantity(10.0, BYTE)
"""Bytes of a logit: bf16, its copy in fp32 and the gradient of that."""
_PRODUCT_SIZES: Final = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1.0, "nvfp4": 1.0}
"""Bytes of an element that is kept as operand of a product; with fp4 its transpose is kept, too."""


def wire_memory(parts: Parts) -> None:
    """Wire the memory of a rank by kind, and the constraint that it fits its GPU."""
    offloaded = parts.plan.offload == "optimiser"
    if offloaded:
        _require_host(parts, _state(parts, "optimiser", on_host=True))
    states = [_state(parts, name) for name in _SPREAD if name != "optimiser" or not offloaded]
    sizes = [*states, *_activations(parts), _logits(parts), f"{PLAN}.buffer_size"]
    total, room = parts.summed(MEMORY, sizes), f"{GPU}.memory_size"
    if room in parts.context.wiring.parameters:
        reason = f"weights, gradients, optimiser states, activations and buffers do not fit the device ({room})"
        parts.context.wiring.require("training.memory_size fits", reason, memory_fits,
                                     {"needed_size": total, "available_size": room})  # fmt: skip


def _require_host(parts: Parts, size: str) -> None:
    """Require that the memory of the host takes the states of the ranks of a node."""
    room, ranks = f"{NODE}.host.memory_size", parts.context.ranks_per_node
    if room in parts.context.wiring.parameters:
        whole = parts.add("training.host_size", steps.state_size, parameter_count=ranks, element_size=size,
                          share_count=ONCE)  # fmt: skip
        reason = f"optimiser states do not fit the host ({room})"
        parts.context.wiring.require("training.host_memory fits", reason, memory_fits,
                                     {"needed_size": whole, "available_size": room})  # fmt: skip


def _state(parts: Parts, name: str, *, on_host: bool = False) -> str:
    """Bytes of one state of the parameters of a rank, on its device or on the host."""
    sizes_of: dict[str, Reference] = {"weights": BF16, "gradients": f"{PLAN}.gradient_size"}
    element = sizes_of.get(name, f"{PLAN}.optimiser_size")
    spread = parts.plan.sharding in _SPREAD[name]
    sizes = [
        parts.add(f"training.{kind}_{name}_size", steps.state_size, parameter_count=parts.state(kind),
                  element_size=element, share_count=parts.replicas_of(kind) if spread else ONCE)
        for kind in parts.kinds
    ]  # fmt: skip
    return parts.summed(f"training.{'host_' * on_host}{name}_size", sizes)


def _activations(parts: Parts) -> list[str]:
    """Bytes of the activations of the first stage, and those of the layer in progress that are computed again."""
    recomputation, sizes = parts.plan.recomputation, _element_sizes(parts)
    # With full recomputation a layer keeps its input.
    kept = [_layer(parts, "training.layer_size", (2.0, 0.0, 0.0) if recomputation == "full" else sizes)]
    again = [_layer(parts, "training.whole_layer_size", sizes)] if recomputation == "full" else []
    if not parts.plan.fused_attention:
        (kept if recomputation == "none" else again).append(_scores(parts))
    stages = parameters_in(PLAN, "pipeline_size", "virtual_count")
    found = [parts.add("training.activations_size", steps.stage_activations,
                       layer_size=parts.summed("training.kept_size", kept), layer_count=f"{MODEL}.layer_count",
                       micro_batch_count=parts.micro_batches, **stages)]  # fmt: skip
    return [*found, parts.summed("training.recomputed_layer_size", again)] if again else found


def _scores(parts: Parts) -> str:
    """Bytes of the scores of attention in one layer."""
    return parts.add("training.score_size", steps.score_size, token_count=parts.tokens,
                     head_count=f"{MODEL}.head_count", sequence_length=f"{PLAN}.sequence_length",
                     tensor_size=f"{PLAN}.tensor_size")  # fmt: skip


def _layer(parts: Parts, name: str, element_sizes: tuple[float, float, float]) -> str:
    """Bytes that one layer keeps of a micro batch."""
    hidden, attention, inner = (Quantity(size, BYTE) for size in element_sizes)
    return parts.add(name, steps.layer_activations, token_count=parts.tokens, hidden_size=f"{MODEL}.hidden_size",
                     attention_width=parts.attention_width, inner_size=parts.inner_size,
                     tensor_size=f"{PLAN}.tensor_size", sequence_size=parts.sequence_size, hidden_element_size=hidden,
                     attention_element_size=attention, inner_element_size=inner)  # fmt: skip


def _element_sizes(parts: Parts) -> tuple[float, float, float]:
    """Bytes that a layer keeps of a hidden element, one of attention, and an inner one.

    Those of inputs of both norms and of both blocks, masks of dropout, queries, keys, values and outputs of attention,
    inputs and output of the activation (Korthikanti et al. 2022, Eq. 1 to 6).
    """
    product = _PRODUCT_SIZES[parts.plan.precision]
    hidden = 4.0 + 2 * product + (2.0 if parts.plan.dropout else 0.0)
    return hidden, 2.0, (4.0 if parts.model.gated else 2.0) + product


def _logits(parts: Parts) -> str:
    """Bytes of the logits of a micro batch."""
    sizes = parameters_in(PLAN, "tensor_size", "pipeline_size")
    return parts.add("training.logits_size", steps.logits_memory, token_count=parts.tokens, element_size=_LOGIT,
                     vocabulary_size=f"{MODEL}.vocabulary_size", **sizes)  # fmt: skip
