"""Passes of tokens through a model that is served: products, attention, memory traffic, communication, overheads."""

from __future__ import annotations

from typing import Final, NamedTuple

from whatif.core.parameter_paths import GPU
from whatif.core.phases.gpu_library import library_operation
from whatif.core.term import Reference, parameters_in
from whatif.models import transformer_layers as layers
from whatif.models import transformer_serving as serving
from whatif.models.gemm import gemm_efficiency
from whatif.transformers.model_parts import BF16, MODEL, NO_BYTES, ONCE, PLAN, number
from whatif.transformers.products import TENSOR, Products
from whatif.transformers.serving.parts import ServingParts
from whatif.vocabulary import LIBRARY_ALGORITHMS, Precision

HIDDEN_PASSES: Final = 12.0
"""Elements that norms, residuals and rotations read and write, by hidden element of a token: a third of training's."""
INNER_PASSES: Final = 8 / 3
"""Elements that activations read and write, by inner element."""
LOGIT_PASSES: Final = 3.0
"""Elements that sampling reads and writes, by element of the logits."""
_REDUCTIONS: Final = 2.0
"""Reductions of the activations between tensor ranks in a layer."""
_EXCHANGES: Final = 2.0
"""Exchanges of tokens between replicas that share experts in a layer: to the experts and back."""


class Work(NamedTuple):
    """Work of a forward pass, and how often it runs."""

    tokens: Reference
    """Tokens of the pass on one replica."""
    rows: Reference
    """Tokens whose next ones are drawn, from logits."""
    passes: Reference
    """Passes through a stage."""
    layer_share: Reference
    """Passes through every layer, as far as they occupy one stage."""


class ForwardPass:
    """Wiring of passes of one kind; `name` begins the names of their terms and phases."""

    def __init__(self, parts: ServingParts, name: str, work: Work) -> None:
        self.parts, self.name, self.work = parts, name, work
        self.products = Products(parts, parts.plan.precision, 1.0, parts.weight_size)
        self.attention_precision: Precision = parts.plan.cache_precision

    def _named(self, phase: str) -> str:
        return f"{self.name}_{phase}"

    def _passes(self, kind: str, count: Reference) -> str:
        return self.parts.product(f"{self.name}.{kind}_passes", count, self.work.layer_share)

    @property
    def layer_passes(self) -> str:
        """Passes through layers."""
        return self._passes("layer", f"{MODEL}.layer_count")

    @property
    def expert_passes(self) -> str:
        """Passes through layers with experts."""
        return self._passes("expert", self.parts.expert_layers)

    @property
    def dense_passes(self) -> str:
        """Passes through layers without experts."""
        return self.parts.difference(f"{self.name}.dense_passes", self.layer_passes, self.expert_passes)

    def kernels(self, attention: str) -> dict[str, str]:
        """Times of the computation; `attention` is the time of that of all layers."""
        parts = self.parts
        found = {"projections": self._divided("projections", parts.attention, parts.projection_width,
                                              self.layer_passes)}  # fmt: skip
        if parts.has_dense:
            found["feed_forward"] = self._divided("feed_forward", parts.dense, f"{MODEL}.feed_forward_size",
                                                  self.dense_passes)  # fmt: skip
        if parts.has_experts:
            found |= {"routing": self._routing(), "experts": self._experts()}
            if parts.model.shared_expert_count is not None:
                found["shared_experts"] = self._divided("shared_experts", parts.shared_experts,
                                                        f"{MODEL}.expert_size", self.expert_passes)  # fmt: skip
        found |= {"attention": attention, "pointwise": self._pointwise(), "logits": self._logits()}
        return {self._named(phase): term for phase, term in found.items()}

    def _divided(self, phase: str, parameters: str, width: Reference, passes: Reference) -> str:
        return self.products.divided(self._named(phase), parameters, width, self.work.tokens, passes)

    # Experts

    @property
    def _routed(self) -> str:
        sizes = parameters_in(PLAN, "expert_size", "tensor_size")
        return self.parts.add(f"{self.name}.routed_tokens", serving.routed_tokens, token_count=self.work.tokens,
                              **sizes)  # fmt: skip

    @property
    def _own(self) -> str:
        """Tokens whose experts one rank computes."""
        return self.parts.add(f"{self.name}.rank_routed_tokens", serving.rank_routed_tokens, token_count=self._routed,
                              expert_size=f"{PLAN}.expert_size")  # fmt: skip

    @property
    def _copies(self) -> str:
        """Tokens of a rank, once for each expert that they are sent to."""
        return self.parts.product(f"{self.name}.routed_copies", self._own, f"{MODEL}.active_expert_count")

    def _routing(self) -> str:
        """Time in which tokens are permuted for their experts, and their results summed."""
        name = self._named("routing")
        moved = self.parts.add(f"{name}.moved_size", layers.token_size, token_count=self._copies, tensor_size=ONCE,
                               width=f"{MODEL}.hidden_size", passes=f"{PLAN}.routing_passes",
                               element_size=BF16)  # fmt: skip
        return self.products.moved(name, moved, self.expert_passes)

    def _experts(self) -> str:
        """Time of the products of the experts that tokens are sent to."""
        parts, name, width = self.parts, self._named("experts"), f"{MODEL}.expert_size"
        counts = parameters_in(MODEL, "expert_count", "active_expert_count")
        hit = parts.add(f"{name}.hit_count", serving.hit_experts, token_count=self._routed, **counts)
        rows = parts.add(f"{name}.token_count", serving.tokens_of_hit, token_count=self._routed, hit_count=hit,
                         active_expert_count=counts["active_expert_count"])  # fmt: skip
        own = parts.quotient(f"{name}.local_count", hit, f"{PLAN}.expert_size")
        share = parts.add(f"{name}.large_efficiency", gemm_efficiency, large_efficiency=self.products.share,
                          tile_efficiency=f"{PLAN}.expert_fraction")  # fmt: skip
        efficiency = self.products.efficiency(name, {"m": rows, "n": width, "batch_count": own}, share)
        read = parts.add(f"{name}.read_parameters", serving.read_parameters, expert_parameters=parts.expert,
                         hit_count=hit, expert_size=f"{PLAN}.expert_size")  # fmt: skip
        return self.products.timed(name, parts.active_experts, width, self.expert_passes, efficiency,
                                   {"token_count": self._own, "tensor_size": ONCE}, read)  # fmt: skip

    # Attention

    def prompt_attention(self, length: Reference) -> str:
        """Time of attention among the tokens of prompts of a length."""
        return self._attention(self.parts.attended_by(length), self.parts.heads, NO_BYTES)

    def cached_attention(self, requests: Reference) -> str:
        """Time of attention of the tokens of a pass of requests to their caches, which it reads once."""
        parts, name = self.parts, self._named("attention")
        length = parts.context_length
        twice = parts.product(f"{name}.attended_length", length, number(2.0))
        rows = parts.product(f"{name}.cached_tokens", requests, length)
        read = parts.add(f"{name}.read_size", layers.token_size, token_count=rows, width=parts.cache_width,
                         tensor_size=ONCE, passes=ONCE, element_size=parts.cache_element)  # fmt: skip
        heads = parts.heads
        if parts.latent:
            # The projections of keys and values are absorbed by those of queries and outputs.
            heads |= {"head_size": parts.cache_width, "value_size": f"{MODEL}.kv_rank"}
        return self._attention(twice, heads, read)

    def _attention(self, attended: Reference, heads: dict[str, Reference], read: Reference) -> str:
        name = self._named("attention")
        work = self.parts.add(f"{name}.operations", layers.attention_operations, token_count=self.work.tokens,
                              attended_length=attended, tensor_size=TENSOR, passes=ONCE, **heads)  # fmt: skip
        return self.products.computed(name, work, f"{GPU}.transformer.attention", self.layer_passes, moved=read,
                                      precision=self.attention_precision)  # fmt: skip

    # Memory traffic and overheads

    def _pointwise(self) -> str:
        """Time of norms, residuals, rotations and activations."""
        name = self._named("pointwise")
        moved = self.parts.add(f"{name}.moved_size", layers.pointwise_size, token_count=self.work.tokens,
                               hidden_size=f"{MODEL}.hidden_size", inner_size=self.parts.inner_size,
                               tensor_size=TENSOR, sequence_size=ONCE, hidden_passes=number(HIDDEN_PASSES),
                               inner_passes=number(INNER_PASSES), element_size=BF16)  # fmt: skip
        return self.products.moved(name, moved, self.layer_passes)

    def _logits(self) -> str:
        """Time of products with the output embedding in bf16, and of sampling; stages are taken to share them."""
        parts, name = self.parts, self._named("logits")
        counts: dict[str, Reference] = {"token_count": self.work.rows, "tensor_size": TENSOR}
        work = parts.add(f"{name}.operations", layers.product_operations, passes=ONCE,
                         parameter_count=parts.output_embedding, **counts)  # fmt: skip
        read = parts.add(f"{name}.read_size", layers.token_size, token_count=parts.output_embedding, width=ONCE,
                         tensor_size=TENSOR, passes=ONCE, element_size=BF16)  # fmt: skip
        moved = parts.add(f"{name}.moved_size", layers.token_size, width=f"{MODEL}.vocabulary_size",
                          passes=number(LOGIT_PASSES), element_size=BF16, **counts)  # fmt: skip
        count = self.work.layer_share
        products = self.products.computed(f"{name}.product_time", work, f"{GPU}.transformer.bf16", count, moved=read)
        return parts.context.wiring.sum(name, [products, self.products.moved(f"{name}.sampling_time", moved, count)])

    def overhead(self) -> str:
        """Overheads of passes and layers."""
        stages = self.parts.add(f"{self.name}.pipeline_passes", serving.pipeline_count, pass_count=self.work.passes,
                                pipeline_size=f"{PLAN}.pipeline_size")  # fmt: skip
        counts = {"layer": self.layer_passes, "step": self.work.passes, "stage": stages}
        counts |= {"expert_layer": self.expert_passes} if self.parts.has_experts else {}
        times = [
            self.parts.repeated(f"{self.name}.{kind}_overhead", f"{PLAN}.{kind}_time", count)
            for kind, count in counts.items()
        ]
        return self.parts.context.wiring.sum(self._named("overhead"), times)

    # Communication

    def communication(self) -> dict[str, str]:
        """Times of the communication."""
        hidden = self._size("tensor_parallel", self.work.tokens)
        found = {
            "tensor_parallel": self._collective("tensor_parallel", "tensor", LIBRARY_ALGORITHMS["allreduce"], hidden,
                                                self._passes("reduction", number(_REDUCTIONS)), f"{MODEL}.layer_count"),
            "stage_messages": self._stage_messages(hidden),
        }  # fmt: skip
        if self.parts.has_experts:
            found["expert_parallel"] = self._exchanges()
        return {self._named(phase): term for phase, term in found.items()}

    def _size(self, phase: str, tokens: Reference) -> str:
        return self.parts.add(f"{self._named(phase)}.message_size", layers.token_size, token_count=tokens,
                              width=f"{MODEL}.hidden_size", tensor_size=ONCE, passes=ONCE,
                              element_size=BF16)  # fmt: skip

    def _collective(
        self, phase: str, group: str, algorithms: tuple[str, ...], size: str, count: Reference, layer_count: Reference
    ) -> str:
        """Time of collectives, `count` in each of some layers."""
        name = self._named(phase)
        once = library_operation(self.parts.context, name, self.parts.groups[group], algorithms, size)
        each = self.parts.repeated(f"{name}.layer_time", once, count)
        return self.parts.repeated(name, each, layer_count)

    def _exchanges(self) -> str:
        """Time of the exchanges of tokens between replicas that share experts."""
        sizes = parameters_in(PLAN, "expert_size", "tensor_size")
        count = self.parts.add(f"{self.name}.exchange_count", serving.exchange_count,
                               pass_count=self._passes("exchange", number(_EXCHANGES)), **sizes)  # fmt: skip
        size = self._size("expert_parallel", self._copies)
        return self._collective("expert_parallel", "expert", LIBRARY_ALGORITHMS["alltoall"], size, count,
                                self.parts.expert_layers)  # fmt: skip

    def _stage_messages(self, size: str) -> str:
        """Time of the messages of activations from one stage to the next."""
        count = self.parts.add(f"{self.name}.message_count", serving.pipeline_count, pass_count=self.work.passes,
                               pipeline_size=f"{PLAN}.pipeline_size")  # fmt: skip
        return self._collective("stage_messages", "pipeline", LIBRARY_ALGORITHMS["broadcast"], size, count, ONCE)
