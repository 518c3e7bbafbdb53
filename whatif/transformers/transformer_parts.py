"""Quantities that the terms of a training step share, each wired once: parameters, tokens, passes, groups of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, cast

from whatif.core.context import Context
from whatif.core.term import Reference
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.models.ranks import agrees, fits
from whatif.transformers.training_application import TrainingApplication
from whatif.units import BYTE, ONE, Quantity

MODEL: Final = "application.transformer"
PLAN: Final = "application.plan"
BF16: Final = Quantity(2.0, BYTE)
"""Bytes of an element of activations, messages and weights."""
ONCE: Final = Quantity(1.0, ONE)
NOTHING: Final = Quantity(0.0, ONE)
NO_BYTES: Final = Quantity(0.0, BYTE)
Group = Mapping[str, Reference]


def number(value: float) -> Quantity:
    """Constant number."""
    return Quantity(value, ONE)


class Parts:
    """References to shared quantities of a training step."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.application = cast("TrainingApplication", context.scenario.application)
        self.model = self.application.transformer
        self.plan = self.application.plan

    def add(self, name: str, function: Callable[..., Any], **inputs: Reference) -> str:
        """Term of a shared quantity."""
        return self.context.once(name, function, **inputs)

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

    # Parameters of the model

    @cached_property
    def attention(self) -> str:
        """Parameters of the projections of attention of one layer."""
        shape: dict[str, Reference] = {key: f"{MODEL}.{key}" for key in ("hidden_size", "head_count", "head_size")}
        if self.model.attention == "latent":
            latent = ("query_rank", "kv_rank", "rotary_size", "value_size")
            shape |= {key: f"{MODEL}.{key}" for key in latent}
            return self.add("model.attention_parameters", layers.latent_parameters, **shape)
        shape["kv_head_count"] = f"{MODEL}.kv_head_count"
        return self.add("model.attention_parameters", layers.attention_parameters, **shape)

    def _block(self, name: str, size: str) -> str:
        inputs: dict[str, Reference] = {"hidden_size": f"{MODEL}.hidden_size", "feed_forward_size": self.stated(size)}
        if name in self.context.wiring.terms:
            return name
        options = {"gated": self.model.gated}
        return self.context.wiring.add(name, layers.feed_forward_parameters, inputs, options=options)

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
        return self.add("model.active_expert_parameters", layers.product_count, first_count=self.expert,
                        second_count=f"{MODEL}.active_expert_count")  # fmt: skip

    @property
    def shared_experts(self) -> str:
        """Parameters of the shared experts of one layer."""
        return self.add("model.shared_expert_parameters", layers.product_count, first_count=self.expert,
                        second_count=f"{MODEL}.shared_expert_count")  # fmt: skip

    @property
    def expert_layers(self) -> Reference:
        """Layers with experts."""
        if not self.has_experts:
            return NOTHING
        keys = ("layer_count", "leading_dense_count", "expert_interval")
        return self.add("model.expert_layer_count", layers.expert_layers, **{key: f"{MODEL}.{key}" for key in keys})

    @property
    def output_embedding(self) -> str:
        """Parameters of one embedding."""
        return self.add("model.embedding_parameters", layers.product_count, first_count=f"{MODEL}.hidden_size",
                        second_count=f"{MODEL}.vocabulary_size")  # fmt: skip

    def _total(self, name: str, experts: Reference, embeddings: float) -> str:
        """Parameters of all layers with some experts in each, and of some embeddings."""
        embedding = self.add(f"{name}.embeddings", layers.product_count, first_count=self.output_embedding,
                             second_count=number(embeddings))  # fmt: skip
        return self.add(name, layers.model_parameters, layer_count=f"{MODEL}.layer_count",
                        expert_layer_count=self.expert_layers, attention_parameters=self.attention,
                        dense_parameters=self.dense, expert_parameters=self.expert, expert_count=experts,
                        shared_expert_count=self.stated("shared_expert_count"), router_parameters=self._router,
                        embedding_parameters=embedding)  # fmt: skip

    @property
    def _router(self) -> str:
        return self.add("model.router_parameters", layers.product_count, first_count=f"{MODEL}.hidden_size",
                        second_count=self.stated("expert_count"))  # fmt: skip

    @property
    def all_parameters(self) -> str:
        """Parameters of the model."""
        return self._total("model.parameters", self.stated("expert_count"), 1.0 if self.model.tied_embeddings else 2.0)

    @property
    def token_parameters(self) -> str:
        """Parameters that a token is multiplied by, the output embedding included."""
        return self._total("model.token_parameters", self.stated("active_expert_count"), 1.0)

    @property
    def dense_total(self) -> str:
        """Parameters that every rank of an expert group has."""
        return self._total("model.dense_parameters", NOTHING, 1.0 if self.model.tied_embeddings else 2.0)

    # Work of a rank

    @property
    def heads(self) -> dict[str, Reference]:
        """Number of heads and their sizes."""
        return {key: f"{MODEL}.{key}" for key in ("head_count", "head_size", "value_size")}

    @property
    def projection_width(self) -> str:
        """Width of queries, keys and values together."""
        return self.add("model.projection_width", layers.projection_width, kv_head_count=self.kv_heads, **self.heads)

    @property
    def attention_width(self) -> str:
        """Width of queries, keys, values and outputs together."""
        return self.add("model.attention_width", layers.attention_width, kv_head_count=self.kv_heads, **self.heads)

    @property
    def kv_heads(self) -> Reference:
        """Heads of keys and values."""
        return f"{MODEL}.kv_head_count"

    @property
    def kv_width(self) -> str:
        """Elements of keys and values of a token on one rank."""
        return self.add("model.kv_width", layers.kv_width, kv_head_count=self.kv_heads,
                        tensor_size=f"{PLAN}.tensor_size", head_size=f"{MODEL}.head_size",
                        value_size=f"{MODEL}.value_size")  # fmt: skip

    @property
    def inner_size(self) -> str:
        """Inner elements of the blocks that a token passes, the mean of the layers."""
        return self.add("model.inner_size", layers.inner_size, layer_count=f"{MODEL}.layer_count",
                        expert_layer_count=self.expert_layers, feed_forward_size=self.stated("feed_forward_size"),
                        expert_size=self.stated("expert_size"), active_expert_count=self.stated("active_expert_count"),
                        shared_expert_count=self.stated("shared_expert_count"))  # fmt: skip

    @property
    def attended(self) -> Reference:
        """Twice the mean number of tokens that a token attends to."""
        if self.model.attention != "window":
            return f"{PLAN}.sequence_length"
        return self.add("model.attended_length", layers.attended_length, sequence_length=f"{PLAN}.sequence_length",
                        window=f"{MODEL}.window", windowed_fraction=f"{MODEL}.windowed_fraction")  # fmt: skip

    @property
    def tokens(self) -> str:
        """Tokens of a micro batch on one rank."""
        keys = ("micro_batch", "sequence_length", "context_size")
        return self.add("training.rank_tokens", steps.rank_tokens, **{key: f"{PLAN}.{key}" for key in keys})

    @property
    def sequence_size(self) -> str:
        """Tensor ranks that share the tokens between products."""
        name, inputs = "training.sequence_size", {"tensor_size": f"{PLAN}.tensor_size"}
        if name in self.context.wiring.terms:
            return name
        options = {"sequence_parallel": self.plan.sequence_parallel}
        return self.context.wiring.add(name, steps.sequence_size, inputs, options=options)

    @property
    def sequence_tokens(self) -> str:
        """Tokens of a micro batch on all context ranks."""
        keys = {key: f"{PLAN}.{key}" for key in ("micro_batch", "sequence_length")}
        return self.add("training.sequence_tokens", steps.rank_tokens, context_size=ONCE, **keys)

    @property
    def replicas(self) -> str:
        """Replicas of the model."""
        keys = {key: f"{PLAN}.{key}" for key in ("tensor_size", "context_size", "pipeline_size")}
        return self.add("training.replica_count", steps.replica_count, rank_count=self.context.rank_count, **keys)

    @property
    def micro_batches(self) -> str:
        """Micro batches of a replica in a step."""
        keys = {key: f"{PLAN}.{key}" for key in ("global_batch", "micro_batch")}
        return self.add("training.micro_batch_count", steps.micro_batch_count, replica_count=self.replicas, **keys)

    def _passes(self, name: str, count: Reference) -> str:
        keys = {key: f"{PLAN}.{key}" for key in ("pipeline_size", "virtual_count")}
        return self.add(name, steps.layer_passes, counted_layers=count, layer_count=f"{MODEL}.layer_count",
                        micro_batch_count=self.micro_batches, **keys)  # fmt: skip

    @property
    def layer_passes(self) -> str:
        """Passes of micro batches through layers on the fullest stage."""
        return self._passes("training.layer_passes", f"{MODEL}.layer_count")

    @property
    def expert_passes(self) -> str:
        """Passes through layers with experts."""
        return self._passes("training.expert_passes", self.expert_layers)

    @property
    def dense_passes(self) -> str:
        """Passes through layers without experts."""
        return self.add("training.dense_passes", steps.difference, first_count=self.layer_passes,
                        second_count=self.expert_passes)  # fmt: skip

    @property
    def stage_share(self) -> str:
        """Micro batches over stages: passes through the logits, which the stages are taken to share."""
        return self.add("training.stage_share", steps.shared_count, count=self.micro_batches,
                        share_count=f"{PLAN}.pipeline_size")  # fmt: skip

    @property
    def stage_messages(self) -> str:
        """Messages that a stage sends in a step."""
        keys = {key: f"{PLAN}.{key}" for key in ("pipeline_size", "virtual_count")}
        return self.add("training.stage_message_count", steps.stage_message_count,
                        micro_batch_count=self.micro_batches, **keys)  # fmt: skip

    @property
    def local_experts(self) -> str:
        """Experts of a layer on one rank."""
        return self.add("training.local_expert_count", steps.shared_count, count=f"{MODEL}.expert_count",
                        share_count=f"{PLAN}.expert_size")  # fmt: skip

    @property
    def routed_tokens(self) -> str:
        """Tokens of a micro batch that one rank sends to experts: tensor ranks have a share each."""
        return self.add("training.routed_tokens", steps.shared_count, count=self.tokens,
                        share_count=f"{PLAN}.tensor_size")  # fmt: skip

    @property
    def expert_tokens(self) -> str:
        """Tokens of one expert in a micro batch, evenly spread."""
        return self.add("training.expert_tokens", steps.expert_tokens, token_count=self.routed_tokens,
                        active_count=f"{MODEL}.active_expert_count", expert_size=f"{PLAN}.expert_size",
                        expert_count=f"{MODEL}.expert_count")  # fmt: skip

    # Groups of ranks: tensor ranks are next to each other, then context ranks, replicas and stages.

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Size and stride of each group of ranks."""
        tensor, context, expert = (f"{PLAN}.{key}_size" for key in ("tensor", "context", "expert"))
        alike = self._product("training.alike_count", self.replicas, context)
        spanned = self._product("training.replica_span", alike, tensor)
        groups: dict[str, Group] = {
            "tensor": _group(tensor, ONCE),
            "context": _group(context, tensor),
            "data": _group(alike, tensor),
            "pipeline": _group(number(2.0), spanned),
        }
        if self.has_experts:
            # Experts are not divided by tensor ranks: those of a stage share them, consecutive ones first.
            groups["expert"] = _group(expert, ONCE)
            each = self.add("training.expert_replicas", steps.shared_count, count=spanned, share_count=expert)
            groups["expert_data"] = _group(each, expert)
        return groups

    def _product(self, name: str, first: Reference, second: Reference) -> str:
        return self.add(name, layers.product_count, first_count=first, second_count=second)

    # State of a rank

    def state(self, kind: str) -> str:
        """Parameters on one rank: `dense` ones, and those of each `expert`."""
        whole, shares = self.dense_total, f"{PLAN}.tensor_size"
        if kind == "expert":
            whole = self.add("model.routed_parameters", steps.difference, first_count=self.all_parameters,
                             second_count=self.dense_total)  # fmt: skip
            shares = f"{PLAN}.expert_size"
        return self.add(f"training.{kind}_parameters", steps.rank_parameters, parameter_count=whole,
                        tensor_size=shares, pipeline_size=f"{PLAN}.pipeline_size")  # fmt: skip

    def replicas_of(self, kind: str) -> Reference:
        """Ranks with the same parameters of a kind."""
        return self.groups["data" if kind == "dense" else "expert_data"]["group_size"]

    def constraints(self) -> None:
        """Constraints of a plan: what its sizes must divide."""
        require = self.context.wiring.require
        plan = {key: f"{PLAN}.{key}_size" for key in ("tensor", "context", "pipeline", "expert")}
        replicas, stage = self.replicas, self.groups["pipeline"]["group_stride"]
        pairs: list[tuple[str, str, Reference, Reference]] = [
            ("ranks", "tensor, context and pipeline ranks do not divide application.rank_count", replicas, ONCE),
            ("heads", f"{plan['tensor']} does not divide the heads ({MODEL}.head_count)", f"{MODEL}.head_count",
             plan["tensor"]),
            ("batch", f"replicas times {PLAN}.micro_batch do not divide {PLAN}.global_batch", self.micro_batches, ONCE),
        ]  # fmt: skip
        if self.has_experts:
            pairs += [
                ("experts", f"{plan['expert']} does not divide the experts ({MODEL}.expert_count)",
                 f"{MODEL}.expert_count", plan["expert"]),
                ("expert ranks", f"{plan['expert']} does not divide the ranks with the same layers", stage,
                 plan["expert"]),
            ]  # fmt: skip
        for name, reason, first, divisor in pairs:
            inputs = {"first_count": first, "divisor": divisor}
            require(f"training.{name} divide", reason, steps.is_multiple, inputs)
        parts = self._product("training.stage_parts", plan["pipeline"], f"{PLAN}.virtual_count")
        require("training.stages fit", f"more parts of stages than layers ({MODEL}.layer_count)", fits,
                {"needed_count": parts, "available_count": f"{MODEL}.layer_count"})  # fmt: skip
        if not self.has_experts:
            require("training.expert ranks agree", f"a model without experts needs {plan['expert']} = 1", agrees,
                    {"first_count": plan["expert"], "second_count": ONCE})  # fmt: skip


def _group(size: Reference, stride: Reference) -> Group:
    return {"group_size": size, "group_stride": stride}
