"""Quantities of a model that the terms of training and serving share, each wired once: parameters, widths, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.models.ranks import agrees, fits, is_multiple
from whatif.schema.transformer import Transformer
from whatif.units import BYTE, ONE, Quantity
from whatif.vocabulary import Category

MODEL: Final = "application.transformer"
PLAN: Final = "application.plan"
KV_HEADS: Final = f"{MODEL}.kv_head_count"
"""Heads of keys and values."""
BF16: Final = Quantity(2.0, BYTE)
"""Bytes of an element of activations, messages and weights."""
ONCE: Final = Quantity(1.0, ONE)
NOTHING: Final = Quantity(0.0, ONE)
NO_BYTES: Final = Quantity(0.0, BYTE)
Group = Mapping[str, Reference]


def phase_terms(phases: Iterable[tuple[Mapping[str, str], Category]]) -> list[PhaseTerm]:
    """Phases of terms by name, with the category of each group."""
    return [PhaseTerm(name, term, category) for terms, category in phases for name, term in terms.items()]


def number(value: float) -> Quantity:
    """Constant number."""
    return Quantity(value, ONE)


class ModelParts:
    """References to quantities of a model, for a plan with a `tensor_size`."""

    def __init__(self, context: Context, model: Transformer) -> None:
        self.context = context
        self.model = model

    def add(self, name: str, function: Callable[..., Any], **inputs: Reference) -> str:
        """Term of a shared quantity."""
        return self.context.once(name, function, **inputs)

    def add_with(self, name: str, function: Callable[..., Any], options: dict[str, Any], **inputs: Reference) -> str:
        """Term of a shared quantity, by a function with options."""
        wiring = self.context.wiring
        return name if name in wiring.terms else wiring.add(name, function, inputs, options=options)

    def product(self, name: str, first: Reference, second: Reference) -> str:
        """Term of a product of counts."""
        return self.add(name, layers.product_count, first_count=first, second_count=second)

    def difference(self, name: str, first: Reference, second: Reference) -> str:
        """Term of a difference of counts."""
        return self.add(name, steps.difference, first_count=first, second_count=second)

    def quotient(self, name: str, count: Reference, share_count: Reference) -> str:
        """Term of one of `share_count` equal shares of a count."""
        return self.add(name, steps.shared_count, count=count, share_count=share_count)

    def repeated(self, name: str, once_time: Reference, pass_count: Reference) -> str:
        """Term of the time of several passes."""
        return self.add(name, steps.counted_time, once_time=once_time, pass_count=pass_count)

    def summed(self, name: str, sizes: Iterable[str]) -> str:
        """Term of a sum of sizes."""
        return self.context.wiring.add(name, steps.summed_size, {size: size for size in sizes})

    @property
    def has_experts(self) -> bool:
        """Whether some layers have experts."""
        return self.model.blocks == "experts"

    @property
    def has_dense(self) -> bool:
        """Whether some layers may have a dense feed-forward block."""
        return self.model.feed_forward_size is not None

    def stated(self, key: str) -> Reference:
        """Number that a model may have, else 0: a model without experts has none of theirs."""
        lacks = getattr(self.model, key) is None or ("expert" in key and not self.has_experts)
        return NOTHING if lacks else f"{MODEL}.{key}"

    def model_constraints(self) -> None:
        """Constraints of a model: key-value heads divide query heads, heads are whole, experts suffice."""
        require = self.context.wiring.require
        heads = f"{MODEL}.head_count"
        require("model.heads divide", f"{KV_HEADS} does not divide {heads}", is_multiple,
                {"count": heads, "divisor": KV_HEADS})  # fmt: skip
        # By default the hidden size is divided by the number of heads.
        require("model.head_size whole", f"{heads} does not divide {MODEL}.hidden_size, and no head_size is stated",
                is_multiple, {"count": f"{MODEL}.head_size", "divisor": ONCE})  # fmt: skip
        if self.has_experts:
            active, all_experts = f"{MODEL}.active_expert_count", f"{MODEL}.expert_count"
            require("model.experts fit", f"{active} exceeds {all_experts}", fits,
                    {"needed_count": active, "available_count": all_experts})  # fmt: skip
            self._layer_constraints()

    def _layer_constraints(self) -> None:
        """Constraints of layers with experts and dense ones: no more leading ones than layers, and all have a block."""
        require, layer_count = self.context.wiring.require, f"{MODEL}.layer_count"
        leading = f"{MODEL}.leading_dense_count"
        require("model.leading layers fit", f"{leading} exceeds {layer_count}", fits,
                {"needed_count": leading, "available_count": layer_count})  # fmt: skip
        if not self.has_dense:
            reason = f"{MODEL}.feed_forward_size is missing, which layers without experts need"
            require("model.blocks of all layers", reason, agrees,
                    {"first_count": self.expert_layers, "second_count": layer_count})  # fmt: skip

    # Parameters of the model

    @cached_property
    def attention(self) -> str:
        """Parameters of the projections of attention of one layer."""
        shape = parameters_in(MODEL, "hidden_size", "head_count", "head_size")
        if self.model.attention == "latent":
            latent = ("query_rank", "kv_rank", "rotary_size", "value_size")
            shape |= parameters_in(MODEL, *latent)
            return self.add("model.attention_parameters", layers.latent_parameters, **shape)
        return self.add("model.attention_parameters", layers.attention_parameters, **shape, kv_head_count=KV_HEADS)

    def _block(self, name: str, size: str) -> str:
        return self.add_with(name, layers.feed_forward_parameters, {"gated": self.model.gated},
                        hidden_size=f"{MODEL}.hidden_size", feed_forward_size=self.stated(size))  # fmt: skip

    @property
    def dense(self) -> str:
        """Parameters of a dense feed-forward block."""
        return self._block("model.feed_forward_parameters", "feed_forward_size")

    @property
    def expert(self) -> str:
        """Parameters of one expert."""
        return self._block("model.expert_parameters", "expert_size")

    @property
    def active_experts(self) -> str:
        """Parameters of the routed experts of one token in one layer."""
        return self.product("model.active_expert_parameters", self.expert, f"{MODEL}.active_expert_count")

    @property
    def shared_experts(self) -> str:
        """Parameters of the shared experts of one layer."""
        return self.product("model.shared_expert_parameters", self.expert, f"{MODEL}.shared_expert_count")

    @property
    def expert_layers(self) -> Reference:
        """Layers with experts."""
        if not self.has_experts:
            return NOTHING
        keys = ("layer_count", "leading_dense_count", "expert_interval")
        return self.add("model.expert_layer_count", layers.expert_layers, **parameters_in(MODEL, *keys))

    @property
    def output_embedding(self) -> str:
        """Parameters of one embedding."""
        return self.product("model.embedding_parameters", f"{MODEL}.hidden_size", f"{MODEL}.vocabulary_size")

    @property
    def embedding_count(self) -> float:
        """Embeddings of the model: one for input and output, or one for each."""
        return 1.0 if self.model.tied_embeddings else 2.0

    def _total(self, name: str, experts: Reference, embeddings: float) -> str:
        """Parameters of all layers with some experts in each, and of some embeddings."""
        embedding = self.product(f"{name}.embeddings", self.output_embedding, number(embeddings))
        return self.add(name, layers.model_parameters, layer_count=f"{MODEL}.layer_count",
                        expert_layer_count=self.expert_layers, attention_parameters=self.attention,
                        dense_parameters=self.dense, expert_parameters=self.expert, expert_count=experts,
                        shared_expert_count=self.stated("shared_expert_count"), router_parameters=self._router,
                        embedding_parameters=embedding)  # fmt: skip

    @property
    def _router(self) -> str:
        return self.product("model.router_parameters", f"{MODEL}.hidden_size", self.stated("expert_count"))

    @property
    def all_parameters(self) -> str:
        """Parameters of the model."""
        return self._total("model.parameters", self.stated("expert_count"), self.embedding_count)

    @property
    def token_parameters(self) -> str:
        """Parameters that a token is multiplied by, the output embedding included."""
        return self._total("model.token_parameters", self.stated("active_expert_count"), 1.0)

    @property
    def dense_total(self) -> str:
        """Parameters that every rank of an expert group has."""
        return self._total("model.dense_parameters", NOTHING, self.embedding_count)

    @property
    def routed_parameters(self) -> str:
        """Parameters of the routed experts of all layers."""
        return self.difference("model.routed_parameters", self.all_parameters, self.dense_total)

    def stage_shares(self, virtual_count: Reference) -> str:
        """Stages as full as the fullest one, of several parts each, that hold all layers."""
        return self.add("model.stage_shares", steps.stage_shares, layer_count=f"{MODEL}.layer_count",
                        pipeline_size=f"{PLAN}.pipeline_size", virtual_count=virtual_count)  # fmt: skip

    @property
    def heads(self) -> dict[str, Reference]:
        """Number of heads and their sizes."""
        return parameters_in(MODEL, "head_count", "head_size", "value_size")

    @property
    def projection_width(self) -> str:
        """Width of queries, keys and values together."""
        return self.add("model.projection_width", layers.projection_width, kv_head_count=KV_HEADS, **self.heads)

    @property
    def attention_width(self) -> str:
        """Width of queries, keys, values and outputs together."""
        return self.add("model.attention_width", layers.attention_width, kv_head_count=KV_HEADS, **self.heads)

    @property
    def kv_width(self) -> str:
        """Elements of keys and values of a token on one rank."""
        return self.add("model.kv_width", layers.kv_width, kv_head_count=KV_HEADS,
                        tensor_size=f"{PLAN}.tensor_size", head_size=f"{MODEL}.head_size",
                        value_size=f"{MODEL}.value_size")  # fmt: skip

    @property
    def inner_size(self) -> str:
        """Inner elements of the blocks that a token passes, the mean of the layers."""
        return self.add("model.inner_size", layers.inner_size, layer_count=f"{MODEL}.layer_count",
                        expert_layer_count=self.expert_layers, feed_forward_size=self.stated("feed_forward_size"),
                        expert_size=self.stated("expert_size"), active_expert_count=self.stated("active_expert_count"),
                        shared_expert_count=self.stated("shared_expert_count"))  # fmt: skip

    def attended_by(self, length: Reference) -> Reference:
        """Twice the mean number of tokens that a token attends to, in sequences of a length."""
        if self.model.attention != "window":
            return length
        return self.add("model.attended_length", layers.attended_length, sequence_length=length,
                        window=f"{MODEL}.window", windowed_fraction=f"{MODEL}.windowed_fraction")  # fmt: skip
