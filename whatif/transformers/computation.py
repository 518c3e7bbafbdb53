"""Computation of a training step on one rank: products by precision, attention, memory traffic, the optimiser."""

from __future__ import annotations

from typing import Final

from whatif.core.energy import GPU, gpu_rate
from whatif.core.term import Reference
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.models.gemm import gemm_efficiency, tile_efficiency
from whatif.transformers.transformer_parts import BF16, MODEL, NO_BYTES, ONCE, PLAN, Parts, number
from whatif.units import BYTE, Quantity
from whatif.vocabulary import TRAINING_PRECISIONS

_DRAM: Final = f"{GPU}.dram_bandwidth"
_TENSOR: Final = f"{PLAN}.tensor_size"
_BF16_RATE: Final = "matrix_rates.bf16"
HIDDEN_PASSES: Final = 36.0
"""Elements that norms, residuals, rotations and their gradients read and write, by hidden element of a token."""
INNER_PASSES: Final = 8.0
"""Elements that activations and their gradients read and write, by inner element."""
LOGIT_PASSES: Final = 6.0
"""Elements that the loss and its gradient read and write, by element of the logits."""
UPDATE_SIZE: Final = 30.0
"""Bytes that an update of one parameter reads and writes: two moments, weight and gradient in fp32, weight in bf16."""
_AGAIN: Final = {"none": (0.0, 0.0), "selective": (0.0, 1.0), "full": (1.0, 1.0)}
"""Passes forward again through layers, and through attention, by recomputation."""


class Computation:
    """Wiring of the computation of one rank."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.context = parts.context
        self.again, self.attention_again = _AGAIN[parts.plan.recomputation]

    def check(self) -> None:
        """Raise `InvalidFileError` for a platform without what training needs, and for what it does not take."""
        wiring, gpu = self.context.wiring, self.context.scenario.platform.node.gpu
        device = "" if gpu is None else gpu.name
        name = self.context.scenario.platform.name
        if gpu is None or not self.context.on_gpus:
            wiring.problem("application.kind", f"{name} has no GPUs, which training needs (`[platform.node.gpu]`)")
            wiring.raise_problems()
        if self.context.buffers == "host":
            wiring.problem(
                "application.buffers", f"training sends between GPUs: {name} needs `[platform.node.peer_link]`"
            )
        if self.context.scenario.application.communication != "modelled":
            wiring.problem("application.communication", "training has closed forms and cannot be simulated")
        if self.parts.model.feed_forward_size is None and not self.parts.has_experts:
            wiring.problem(f"{MODEL}.feed_forward_size", "missing key, needed by dense blocks")
        for precision in dict.fromkeys((self.parts.plan.precision, "bf16")):
            key = f"matrix_rates.{TRAINING_PRECISIONS[precision]}"
            if f"{GPU}.{key}" not in wiring.parameters:
                wiring.problem("application.plan.precision", f"{device} states no `{key}`, which {precision} needs")
        wiring.raise_problems()

    def kernels(self) -> dict[str, str]:
        """Times of the computation of all micro batches."""
        parts, found = self.parts, {"projections": self._projections()}
        if parts.has_dense:
            found["feed_forward"] = self._block("feed_forward", parts.dense, "feed_forward_size", parts.dense_passes)
        if parts.has_experts:
            found["experts"] = self._routed_experts()
            if parts.model.shared_expert_count is not None:
                found["shared_experts"] = self._block("shared_experts", parts.shared_experts, "expert_size",
                                                      parts.expert_passes)  # fmt: skip
        return {**found, "attention": self._attention(), "pointwise": self._pointwise(), "logits": self._logits()}

    def _projections(self) -> str:
        parts = self.parts
        return self._products("projections", parts.attention, parts.projection_width, parts.layer_passes)

    def _block(self, name: str, parameters: str, width: str, passes: Reference) -> str:
        return self._products(name, parameters, f"{MODEL}.{width}", passes)

    def _routed_experts(self) -> str:
        """Time of the products of routed experts, one for each expert of the rank."""
        parts, width = self.parts, f"{MODEL}.expert_size"
        shape: dict[str, Reference] = {"m": parts.expert_tokens, "n": width, "batch_count": parts.local_experts}
        share = parts.add("experts.large_efficiency", gemm_efficiency, matrix_efficiency=self._share,
                          tile_efficiency=f"{PLAN}.expert_fraction")  # fmt: skip
        efficiency = self._efficiency("experts", shape, share)
        return self._timed("experts", parts.active_experts, width, parts.expert_passes, efficiency,
                           {"token_count": parts.routed_tokens, "tensor_size": ONCE})  # fmt: skip

    @property
    def _share(self) -> Reference:
        """Share of the peak that large products sustain in the precision of the plan."""
        return f"{GPU}.transformer.{self.parts.plan.precision}"

    def _efficiency(self, name: str, shape: dict[str, Reference], share: Reference) -> str:
        """Share of the peak of products of a shape: that of large ones times that of their tiles."""
        device = {key: f"{GPU}.{key}" for key in ("tile_extent", "multiprocessor_count")}
        tiles = self.parts.add(f"{name}.tile_efficiency", tile_efficiency, **shape, **device)
        return self.parts.add(f"{name}.efficiency", gemm_efficiency, matrix_efficiency=share, tile_efficiency=tiles)

    def _products(self, name: str, parameters: str, width: Reference, passes: Reference) -> str:
        """Time of products with the parameters of a layer, divided by tensor ranks, to tokens of a width."""
        columns = self.parts.add(f"{name}.column_count", steps.shared_count, count=width, share_count=_TENSOR)
        shape: dict[str, Reference] = {"m": self.parts.tokens, "n": columns, "batch_count": ONCE}
        return self._timed(name, parameters, width, passes, self._efficiency(name, shape, self._share),
                           {"token_count": self.parts.tokens, "tensor_size": _TENSOR})  # fmt: skip

    def _timed(
        self, name: str, parameters: str, width: Reference, passes: Reference, efficiency: str,
        divided: dict[str, Reference],
    ) -> str:  # fmt: skip
        """Time of products of the tokens of a rank; `divided` are the tokens and the ranks that divide the products."""
        counts = {**divided, "passes": number(layers.PASSES + self.again), "parameter_count": parameters}
        work = self.parts.add(f"{name}.operations", layers.product_operations, **counts)
        moved = self.parts.add(f"{name}.moved_size", layers.product_size, hidden_size=f"{MODEL}.hidden_size",
                               width=width, element_size=BF16, **counts)  # fmt: skip
        peak = gpu_rate(self.context, f"matrix_rates.{TRAINING_PRECISIONS[self.parts.plan.precision]}")
        return self.parts.add(name, steps.pass_time, operations=work, moved_size=moved, efficiency=efficiency,
                              peak_rate=peak, dram_bandwidth=_DRAM, pass_count=passes)  # fmt: skip

    def _attention(self) -> str:
        """Time of scores and their products with values, in bf16."""
        passes = 1.0 + layers.BACKWARD_ATTENTION + self.attention_again
        work = self.parts.add("attention.operations", layers.attention_operations, token_count=self.parts.tokens,
                              attended_length=self.parts.attended, tensor_size=_TENSOR, passes=number(passes),
                              **self.parts.heads)  # fmt: skip
        share = "flash2_attention" if self.parts.plan.attention_kernel == "flash2" else "attention"
        return self._computed("attention", work, f"{GPU}.transformer.{share}", self.parts.layer_passes)

    def _computed(self, name: str, work: str, efficiency: str, passes: Reference) -> str:
        return self.parts.add(name, steps.pass_time, operations=work, moved_size=NO_BYTES, efficiency=efficiency,
                              peak_rate=gpu_rate(self.context, _BF16_RATE), dram_bandwidth=_DRAM,
                              pass_count=passes)  # fmt: skip

    def _pointwise(self) -> str:
        """Time of norms, residuals, rotations, activations and their gradients."""
        again = 1 + self.again / layers.PASSES
        moved = self.parts.add("pointwise.moved_size", layers.pointwise_size, token_count=self.parts.tokens,
                               hidden_size=f"{MODEL}.hidden_size", inner_size=self.parts.inner_size,
                               tensor_size=_TENSOR, sequence_size=self.parts.sequence_size,
                               hidden_passes=number(HIDDEN_PASSES * again),
                               inner_passes=number(INNER_PASSES * again), element_size=BF16)  # fmt: skip
        return self._moved("pointwise", moved, self.parts.layer_passes)

    def _moved(self, name: str, moved: str, passes: Reference) -> str:
        return self.parts.add(name, steps.moving_time, moved_size=moved, dram_bandwidth=_DRAM, pass_count=passes,
                              efficiency=f"{PLAN}.pointwise_fraction")  # fmt: skip

    def _logits(self) -> str:
        """Time of products with the output embedding in bf16, and of the loss; stages are taken to share them."""
        counts: dict[str, Reference] = {"token_count": self.parts.tokens, "tensor_size": _TENSOR}
        work = self.parts.add("logits.operations", layers.product_operations, passes=number(layers.PASSES),
                              parameter_count=self.parts.output_embedding, **counts)  # fmt: skip
        moved = self.parts.add("logits.moved_size", layers.token_size, width=f"{MODEL}.vocabulary_size",
                               passes=number(LOGIT_PASSES), element_size=BF16, **counts)  # fmt: skip
        products = self._computed("logits.product_time", work, f"{GPU}.transformer.bf16", self.parts.stage_share)
        loss = self._moved("logits.loss_time", moved, self.parts.stage_share)
        return self.context.wiring.sum("logits", [products, loss])

    def fixed_times(self) -> str:
        """Fixed times of all layers and micro batches."""
        parts, times = self.parts, []
        kinds = {"layer": parts.dense_passes} | ({"expert_layer": parts.expert_passes} if parts.has_experts else {})
        for kind, passes in kinds.items():
            times.append(parts.add(f"layer_overhead.{kind}_time", steps.counted_time, once_time=f"{PLAN}.{kind}_time",
                                   pass_count=passes))  # fmt: skip
        return self.context.wiring.sum("layer_overhead", times)

    def optimiser(self) -> str:
        """Time of the update, of the parameters that a replica updates."""
        sizes = [self._updated(kind) for kind in ("dense", "expert")[: 1 + self.parts.has_experts]]
        times = [self._moved(f"optimiser.{size}", size, ONCE) for size in sizes]
        return self.context.wiring.sum("optimiser", times)

    def _updated(self, kind: str) -> str:
        shares = ONCE if self.parts.plan.sharding == "none" else self.parts.replicas_of(kind)
        return self.parts.add(f"training.{kind}_update_size", steps.state_size, share_count=shares,
                              element_size=Quantity(UPDATE_SIZE, BYTE),
                              parameter_count=self.parts.state(kind))  # fmt: skip
