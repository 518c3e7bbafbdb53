"""Quantities that the terms of a training step share, each wired once: parameters, tokens, passes, groups of ranks."""

from __future__ import annotations

from functools import cached_property
from typing import cast

from whatif.core.context import Context
from whatif.core.term import Reference, parameters_in
from whatif.models import transformer_steps as steps
from whatif.models.ranks import agrees, fits, is_multiple
from whatif.transformers.applications import TrainingApplication
from whatif.transformers.model_parts import MODEL, ONCE, PLAN, Group, ModelParts, number


class Parts(ModelParts):
    """References to shared quantities of a training step."""

    def __init__(self, context: Context) -> None:
        application = cast("TrainingApplication", context.scenario.application)
        super().__init__(context, application.transformer)
        self.plan = application.plan

    @property
    def attended(self) -> Reference:
        """Twice the mean number of tokens that a token attends to."""
        return self.attended_by(f"{PLAN}.sequence_length")

    @property
    def tokens(self) -> str:
        """Tokens of a micro batch on one rank."""
        keys = ("micro_batch", "sequence_length", "context_size")
        return self.add("training.rank_tokens", steps.rank_tokens, **parameters_in(PLAN, *keys))

    @property
    def sequence_size(self) -> str:
        """Tensor ranks that share the tokens between products."""
        options = {"sequence_parallel": self.plan.sequence_parallel}
        return self.add_with("training.sequence_size", steps.sequence_size, options, tensor_size=f"{PLAN}.tensor_size")

    @property
    def sequence_tokens(self) -> str:
        """Tokens of a micro batch on all context ranks."""
        sizes = parameters_in(PLAN, "micro_batch", "sequence_length")
        return self.add("training.sequence_tokens", steps.rank_tokens, context_size=ONCE, **sizes)

    @property
    def replicas(self) -> str:
        """Replicas of the model."""
        sizes = parameters_in(PLAN, "tensor_size", "context_size", "pipeline_size")
        return self.add("training.replica_count", steps.replica_count, rank_count=self.context.rank_count, **sizes)

    @property
    def micro_batches(self) -> str:
        """Micro batches of a replica in a step."""
        sizes = parameters_in(PLAN, "global_batch", "micro_batch")
        return self.add("training.micro_batch_count", steps.micro_batch_count, replica_count=self.replicas, **sizes)

    def _passes(self, name: str, count: Reference) -> str:
        sizes = parameters_in(PLAN, "pipeline_size", "virtual_count")
        return self.add(name, steps.layer_passes, counted_layers=count, layer_count=f"{MODEL}.layer_count",
                        micro_batch_count=self.micro_batches, **sizes)  # fmt: skip

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
        return self.difference("training.dense_passes", self.layer_passes, self.expert_passes)

    @property
    def stage_share(self) -> str:
        """Micro batches over stages: passes through the logits, which the stages are taken to share."""
        return self.quotient("training.stage_share", self.micro_batches, f"{PLAN}.pipeline_size")

    @property
    def stage_messages(self) -> str:
        """Messages that a stage sends in a step."""
        sizes = parameters_in(PLAN, "pipeline_size", "virtual_count")
        return self.add("training.stage_message_count", steps.stage_message_count,
                        micro_batch_count=self.micro_batches, **sizes)  # fmt: skip

    @property
    def local_experts(self) -> str:
        """Experts of a layer on one rank."""
        return self.quotient("training.local_expert_count", f"{MODEL}.expert_count", f"{PLAN}.expert_size")

    @property
    def routed_tokens(self) -> str:
        """Tokens of a micro batch that one rank sends to experts: tensor ranks have a share each."""
        return self.quotient("training.routed_tokens", self.tokens, f"{PLAN}.tensor_size")

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
        alike = self.product("training.alike_count", self.replicas, context)
        spanned = self.product("training.replica_span", alike, tensor)
        groups: dict[str, Group] = {
            "tensor": _group(tensor, ONCE),
            "context": _group(context, tensor),
            "data": _group(alike, tensor),
            "pipeline": _group(number(2.0), spanned),
        }
        if self.has_experts:
            # Experts are not divided by tensor ranks: those of a stage share them, consecutive ones first.
            groups["expert"] = _group(expert, ONCE)
            each = self.quotient("training.expert_replicas", spanned, expert)
            groups["expert_data"] = _group(each, expert)
        return groups

    # State of a rank

    def state(self, kind: str) -> str:
        """Parameters on one rank: `dense` ones, and those of each `expert`."""
        whole, shares = self.dense_total, f"{PLAN}.tensor_size"
        if kind == "expert":
            whole, shares = self.routed_parameters, f"{PLAN}.expert_size"
        return self.add(f"training.{kind}_parameters", steps.rank_parameters, parameter_count=whole,
                        tensor_size=shares, stage_shares=self.stage_shares(f"{PLAN}.virtual_count"))  # fmt: skip

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of parameters that the model has."""
        return ("dense", "expert") if self.has_experts else ("dense",)

    def replicas_of(self, kind: str) -> Reference:
        """Ranks with the same parameters of a kind."""
        return self.groups["data" if kind == "dense" else "expert_data"]["group_size"]

    def constraints(self) -> None:
        """Constraints of a model and a plan: what its sizes must divide."""
        self.model_constraints()
        require = self.context.wiring.require
        plan = {key: f"{PLAN}.{key}_size" for key in ("tensor", "context", "pipeline", "expert")}
        ranks, stage = self.context.rank_count, self.groups["pipeline"]["group_stride"]
        stages = self.product("training.stage_ranks", plan["tensor"], plan["context"])
        replica = self.product("training.replica_ranks", stages, plan["pipeline"])
        sequences = self.product("training.parallel_sequences", self.replicas, f"{PLAN}.micro_batch")
        pairs: list[tuple[str, str, Reference, Reference]] = [
            ("ranks", "tensor, context and pipeline ranks do not divide application.rank_count", ranks, replica),
            ("heads", f"{plan['tensor']} does not divide the heads ({MODEL}.head_count)", f"{MODEL}.head_count",
             plan["tensor"]),
            ("sequence", f"{PLAN}.context_size does not divide the tokens ({PLAN}.sequence_length)",
             f"{PLAN}.sequence_length", f"{PLAN}.context_size"),
            ("batch", f"replicas times {PLAN}.micro_batch do not divide {PLAN}.global_batch", f"{PLAN}.global_batch",
             sequences),
        ]  # fmt: skip
        if self.has_experts:
            pairs += [
                ("experts", f"{plan['expert']} does not divide the experts ({MODEL}.expert_count)",
                 f"{MODEL}.expert_count", plan["expert"]),
                ("expert ranks", f"{plan['expert']} does not divide the ranks with the same layers", stage,
                 plan["expert"]),
            ]  # fmt: skip
        for name, reason, count, divisor in pairs:
            require(f"training.{name} divide", reason, is_multiple, {"count": count, "divisor": divisor})
        parts = self.product("training.stage_parts", plan["pipeline"], f"{PLAN}.virtual_count")
        require("training.stages fit", f"more parts of stages than layers ({MODEL}.layer_count)", fits,
                {"needed_count": parts, "available_count": f"{MODEL}.layer_count"})  # fmt: skip
        require("training.parts interleave",
                f"{plan['pipeline']} does not divide the micro batches, as interleaved parts need", steps.interleaves,
                {"count": self.micro_batches, "divisor": plan["pipeline"],
                 "virtual_count": f"{PLAN}.virtual_count"})  # fmt: skip
        if not self.has_experts:
            require("training.expert ranks agree", f"a model without experts needs {plan['expert']} = 1", agrees,
                    {"first_count": plan["expert"], "second_count": ONCE})  # fmt: skip


def _group(size: Reference, stride: Reference) -> Group:
    return {"group_size": size, "group_stride": stride}
