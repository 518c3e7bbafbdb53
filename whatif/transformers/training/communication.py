"""Communication of a training step: collectives of the groups of ranks, as far as computation does not hide them."""

from __future__ import annotations

from typing import Final

from whatif.core.phases.gpu_library import library_operation
from whatif.core.term import Reference
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.transformers.model_parts import BF16, MODEL, ONCE, PLAN, number
from whatif.transformers.training.parts import Parts

_GATHERS: Final = 4.0
"""Gathers and reductions of the activations in one pass of a block: one of each forward, and one of each backward."""
_KEYS: Final = 3.0
"""Gathers of keys and values: forward, backward, and the reduction of their gradients."""
_EXCHANGES: Final = 4.0
"""Exchanges of tokens between experts: to them and back, forward and backward."""


class Communication:
    """Wiring of the communication of one rank."""

    def __init__(self, parts: Parts, again: float, computing: str) -> None:
        self.parts = parts
        self.again = 1 + again / 2
        """Communication of layers relative to that without recomputation: of one pass forward more."""
        self.computing = computing

    def of_layers(self) -> dict[str, str]:
        """Exposed times of the communication of all micro batches."""
        parts = self.parts
        hidden = self._size("tensor_parallel", parts.tokens, f"{MODEL}.hidden_size")
        keys = self._size("context_parallel", parts.sequence_tokens, parts.kv_width)
        found = {
            "tensor_parallel": self._layers("tensor", hidden, "ring_allgather", _GATHERS * self.again,
                                            self._divided_blocks()),
            "context_parallel": self._layers("context", keys, "ring_allgather", _KEYS, parts.layer_passes),
        }  # fmt: skip
        if parts.has_experts:
            copies = parts.product("training.routed_copies", parts.routed_tokens, f"{MODEL}.active_expert_count")
            sent = self._size("expert_parallel", copies, f"{MODEL}.hidden_size")
            found["expert_parallel"] = self._layers("expert", sent, "pairwise", _EXCHANGES * self.again,
                                                    parts.expert_passes)  # fmt: skip
        return {**found, "stage_messages": self._stage_messages()}

    def _divided_blocks(self) -> str:
        """Passes of blocks that tensor ranks divide: attention, dense ones, shared experts, but not routed ones.

        Each rank sends its share of the tokens to experts; without sequence parallelism it gathers the results.
        """
        parts = self.parts
        blocks = parts.product("training.block_passes", parts.layer_passes, number(2.0))
        if not parts.has_experts or parts.model.shared_expert_count is not None:
            return blocks
        undivided = number(1.0 if parts.plan.sequence_parallel else 0.5)
        routed = parts.product("training.routed_block_passes", parts.expert_passes, undivided)
        return parts.difference("training.divided_block_passes", blocks, routed)

    def _size(self, name: str, tokens: Reference, width: Reference, shares: Reference = ONCE) -> str:
        """Bytes of the tokens that one collective sends."""
        return self.parts.add(f"{name}.message_size", layers.token_size, token_count=tokens, width=width,
                              tensor_size=shares, passes=ONCE, element_size=BF16)  # fmt: skip

    def _layers(self, group: str, size: str, algorithm: str, each: float, passes: Reference) -> str:
        """Exposed time of `each` collectives of a group in every pass of a layer."""
        name = f"{group}_parallel"
        once = self._operation(name, group, size, algorithm)
        layer = self.parts.repeated(f"{name}.layer_time", once, number(each))
        return self._exposed(name, f"{group}_exposure", layer, passes)

    def _operation(self, name: str, group: str, size: str, algorithm: str) -> str:
        return library_operation(self.parts.context, name, self.parts.groups[group], (algorithm,), size)

    def _exposed(self, name: str, exposure: str, once: str, passes: Reference) -> str:
        total = self.parts.repeated(f"{name}.communication_time", once, passes)
        return self.parts.add(name, steps.exposed_time, communication_time=total, computation_time=self.computing,
                              exposed_fraction=f"{PLAN}.{exposure}")  # fmt: skip

    def _stage_messages(self) -> str:
        """Exposed time of activations and their gradients between stages."""
        name = "stage_messages"
        size = self._size(name, self.parts.tokens, f"{MODEL}.hidden_size", self.parts.sequence_size)
        once = self._operation(name, "pipeline", size, "ring_broadcast")
        return self._exposed(name, "pipeline_exposure", once, self.parts.stage_messages)

    def of_replicas(self) -> str:
        """Exposed time of gradients and weights between replicas."""
        times = [self._replicated("dense", "data")]
        if self.parts.has_experts:
            times.append(self._replicated("expert", "expert_data"))
        once = self.parts.context.wiring.sum("gradients.once_time", times)
        full = self.parts.plan.sharding == "full"
        return self._exposed("gradients", "shard_exposure" if full else "data_exposure", once, ONCE)

    def _replicated(self, kind: str, group: str) -> str:
        """Time of the collectives of one kind of parameters in a step.

        Replicas reduce gradients and gather weights once; without sharding they gather the reduced gradients instead
        (an allreduce). Gradients that they spread are reduced in every micro batch; with full sharding weights are
        gathered twice in each, and gradients are in bf16.
        """
        sharding = self.parts.plan.sharding
        full, every = sharding == "full", self.parts.micro_batches
        element = BF16 if full else f"{PLAN}.gradient_size"
        weight = self._buffer(kind, group, "weight", element if sharding == "none" else BF16)
        gradient = self._buffer(kind, group, "gradient", element)
        twice = self.parts.product("training.gather_count", every, number(2.0)) if full else ONCE
        counts = {weight: twice, gradient: every if sharding in ("gradients", "full") else ONCE}
        times = [self.parts.repeated(f"{once}s", once, count) for once, count in counts.items()]
        return self.parts.context.wiring.sum(f"gradients.{kind}.time", times)

    def _buffer(self, kind: str, group: str, what: str, element: Reference) -> str:
        """Time of one collective of all parameters of a kind."""
        name = f"gradients.{kind}.{what}"
        size = self.parts.add(f"{name}_size", steps.state_size, share_count=ONCE,
                              parameter_count=self.parts.state(kind), element_size=element)  # fmt: skip
        return self._operation(name, group, size, "ring_allgather")
