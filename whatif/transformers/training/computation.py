"""Computation of a training step on one rank: products by precision, attention, memory traffic, the optimiser."""

from __future__ import annotations

from typing import Final

from whatif.core.parameter_paths import GPU
from whatif.core.phases.host_transfer import link_bandwidth
from whatif.core.socket_share import HOST_BANDWIDTH
from whatif.core.term import Reference
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.models.gemm import gemm_efficiency
from whatif.transformers.model_parts import BF16, MODEL, ONCE, PLAN, number
from whatif.transformers.products import TENSOR, Products
from whatif.transformers.training.parts import Parts
from whatif.units import BYTE, Quantity

HIDDEN_PASSES: Final = 36.0
"""Elements that norms, residuals, rotations and their gradients read and write, by hidden element of a token."""
INNER_PASSES: Final = 8.0
"""Elements that activations and their gradients read and write, by inner element."""
LOGIT_PASSES: Final = 6.0
"""Elements that the loss and its gradient read and write, by element of the logits."""
UPDATE_SIZE: Final = 30.0
"""Bytes that an update of one parameter reads and writes: two moments, weight and gradient in fp32, weight in bf16."""
AGAIN: Final = {"none": (0.0, 0.0), "selective": (0.0, 1.0), "full": (1.0, 1.0)}
"""Passes forward again through layers, and through attention, by recomputation."""


class Computation:
    """Wiring of the computation of one rank."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.context = parts.context
        self.again, self.attention_again = AGAIN[parts.plan.recomputation]
        self.products = Products(parts, parts.plan.precision, layers.PASSES + self.again, BF16)

    def kernels(self) -> dict[str, str]:
        """Times of the computation of all micro batches."""
        parts = self.parts
        found = {"projections": self._divided("projections", parts.attention, parts.projection_width,
                                              parts.layer_passes)}  # fmt: skip
        if parts.has_dense:
            found["feed_forward"] = self._divided("feed_forward", parts.dense, f"{MODEL}.feed_forward_size",
                                                  parts.dense_passes)  # fmt: skip
        if parts.has_experts:
            found["experts"] = self._routed_experts()
            if parts.model.shared_expert_count is not None:
                found["shared_experts"] = self._divided("shared_experts", parts.shared_experts,
                                                        f"{MODEL}.expert_size", parts.expert_passes)  # fmt: skip
        return {**found, "attention": self._attention(), "pointwise": self._pointwise(), "logits": self._logits()}

    def _divided(self, name: str, parameters: str, width: Reference, passes: Reference) -> str:
        return self.products.divided(name, parameters, width, self.parts.tokens, passes)

    def _routed_experts(self) -> str:
        """Time of the products of routed experts, one for each expert of the rank."""
        parts, width = self.parts, f"{MODEL}.expert_size"
        shape: dict[str, Reference] = {"m": parts.expert_tokens, "n": width, "batch_count": parts.local_experts}
        share = parts.add("experts.large_efficiency", gemm_efficiency, large_efficiency=self.products.share,
                          tile_efficiency=f"{PLAN}.expert_fraction")  # fmt: skip
        efficiency = self.products.efficiency("experts", shape, share)
        return self.products.timed("experts", parts.active_experts, width, parts.expert_passes, efficiency,
                                   {"token_count": parts.routed_tokens, "tensor_size": ONCE})  # fmt: skip

    def _attention(self) -> str:
        """Time of scores and their products with values, in bf16."""
        passes = 1.0 + layers.BACKWARD_ATTENTION + self.attention_again
        work = self.parts.add("attention.operations", layers.attention_operations, token_count=self.parts.tokens,
                              attended_length=self.parts.attended, tensor_size=TENSOR, passes=number(passes),
                              **self.parts.heads)  # fmt: skip
        share = "flash2_attention" if self.parts.plan.attention_kernel == "flash2" else "attention"
        return self.products.computed("attention", work, f"{GPU}.transformer.{share}", self.parts.layer_passes)

    def _pointwise(self) -> str:
        """Time of norms, residuals, rotations, activations and their gradients."""
        again = 1 + self.again / layers.PASSES
        moved = self.parts.add("pointwise.moved_size", layers.pointwise_size, token_count=self.parts.tokens,
                               hidden_size=f"{MODEL}.hidden_size", inner_size=self.parts.inner_size,
                               tensor_size=TENSOR, sequence_size=self.parts.sequence_size,
                               hidden_passes=number(HIDDEN_PASSES * again),
                               inner_passes=number(INNER_PASSES * again), element_size=BF16)  # fmt: skip
        return self.products.moved("pointwise", moved, self.parts.layer_passes)

    def _logits(self) -> str:
        """Time of products with the output embedding in bf16, and of the loss; stages are taken to share them."""
        counts: dict[str, Reference] = {"token_count": self.parts.tokens, "tensor_size": TENSOR}
        work = self.parts.add("logits.operations", layers.product_operations, passes=number(layers.PASSES),
                              parameter_count=self.parts.output_embedding, **counts)  # fmt: skip
        moved = self.parts.add("logits.moved_size", layers.token_size, width=f"{MODEL}.vocabulary_size",
                               passes=number(LOGIT_PASSES), element_size=BF16, **counts)  # fmt: skip
        products = self.products.computed(
            "logits.product_time", work, f"{GPU}.transformer.bf16", self.parts.stage_share
        )
        loss = self.products.moved("logits.loss_time", moved, self.parts.stage_share)
        return self.context.wiring.sum("logits", [products, loss])

    def fixed_times(self) -> str:
        """Fixed times of all layers and micro batches."""
        parts, times = self.parts, []
        kinds = {"layer": parts.dense_passes} | ({"expert_layer": parts.expert_passes} if parts.has_experts else {})
        for kind, passes in kinds.items():
            times.append(parts.repeated(f"layer_overhead.{kind}_time", f"{PLAN}.{kind}_time", passes))
        return self.context.wiring.sum("layer_overhead", times)

    def optimiser(self) -> str:
        """Time of the update, of the parameters that a replica updates."""
        sizes = [self._updated(kind, "update", Quantity(UPDATE_SIZE, BYTE)) for kind in self.parts.kinds]
        times = [self._update(f"optimiser.{size}", size) for size in sizes]
        return self.context.wiring.sum("optimiser", times)

    def _update(self, name: str, size: str) -> str:
        """Time of an update on the device, or on the host that has the states."""
        if self.parts.plan.offload == "none":
            return self.products.moved(name, size, ONCE)
        return self.parts.add(name, steps.host_update_time, moved_size=size, memory_bandwidth=HOST_BANDWIDTH,
                              ranks_per_socket=self.context.ranks_per_socket,
                              efficiency=f"{PLAN}.pointwise_fraction")  # fmt: skip

    def _updated(self, kind: str, name: str, element: Reference) -> str:
        """Bytes of the parameters of a kind that a replica updates."""
        shares = ONCE if self.parts.plan.sharding == "none" else self.parts.replicas_of(kind)
        return self.parts.add(f"training.{kind}_{name}_size", steps.state_size, share_count=shares,
                              element_size=element, parameter_count=self.parts.state(kind))  # fmt: skip

    def offload(self) -> dict[str, str]:
        """Exposed time of the copies of gradients to the host and of weights back; empty without offload."""
        if self.parts.plan.offload == "none":
            return {}
        elements: dict[str, Reference] = {"sent_gradient": f"{PLAN}.gradient_size", "sent_weight": BF16}
        sizes = [self._updated(kind, *item) for kind in self.parts.kinds for item in elements.items()]
        moved = self.parts.summed("training.offload_size", sizes)
        return {"offload": self.parts.add("offload", steps.offload_time, moved_size=moved,
                                          link_bandwidth=link_bandwidth(self.context, "host_link"),
                                          exposed_fraction=f"{PLAN}.offload_exposure")}  # fmt: skip
