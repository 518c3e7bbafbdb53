"""Quantities that the terms of serving share, each wired once: replicas, memory, requests in flight, groups."""

from __future__ import annotations

from functools import cached_property
from typing import Final, cast

from whatif.core.context import Context
from whatif.core.parameter_paths import GPU
from whatif.core.term import Reference, parameters_in
from whatif.models import transformer_serving as serving
from whatif.models import transformer_steps as steps
from whatif.models.ranks import fits, is_multiple, memory_fits
from whatif.transformers.applications import ServingApplication
from whatif.transformers.model_parts import BF16, MODEL, NOTHING, ONCE, PLAN, Group, ModelParts, number
from whatif.units import BYTE, Quantity

WEIGHT_SIZES: Final = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1.03125, "nvfp4": 0.5625}
"""Bytes of a weight; mxfp8 has a scale for 32 elements, nvfp4 one for 16."""
CACHE_SIZES: Final = {"bf16": 2.0, "fp8": 1.0}
MEMORY: Final = "serving.memory_size"
DECODING_RANKS: Final = "serving.decoding_ranks"
"""Ranks that decode, where others prefill."""
_RANKS: Final = f"{PLAN}.prefill_rank_count"


class ServingParts(ModelParts):
    """References to shared quantities of serving."""

    def __init__(self, context: Context) -> None:
        application = cast("ServingApplication", context.scenario.application)
        super().__init__(context, application.transformer)
        self.plan = application.plan

    @property
    def latent(self) -> bool:
        """Whether the cache holds latent vectors."""
        return self.model.attention == "latent"

    @property
    def weight_size(self) -> Reference:
        """Bytes of a weight of a layer."""
        stated = self.plan.weight_size is not None
        return f"{PLAN}.weight_size" if stated else Quantity(WEIGHT_SIZES[self.plan.precision], BYTE)

    @property
    def separate(self) -> bool:
        """Whether some ranks only prefill."""
        return self.plan.prefill == "separate"

    # Replicas and their ranks

    def _replicas(self, name: str, ranks: Reference, others: Reference) -> str:
        sizes = parameters_in(PLAN, "tensor_size", "pipeline_size")
        return self.add(name, serving.decoding_replicas, rank_count=ranks, prefill_rank_count=others, **sizes)

    @property
    def replicas(self) -> str:
        """Replicas that decode."""
        return self._replicas("serving.replica_count", self.context.rank_count, _RANKS if self.separate else NOTHING)

    @property
    def prefill_replicas(self) -> str:
        """Replicas that only prefill."""
        return self._replicas("serving.prefill_replica_count", _RANKS, NOTHING)

    @property
    def decoding_ranks(self) -> Reference:
        """Ranks that decode."""
        if not self.separate:
            return self.context.rank_count
        return self.difference(DECODING_RANKS, self.context.rank_count, _RANKS)

    @property
    def replica_ranks(self) -> str:
        """Ranks of a replica."""
        return self.product("serving.replica_ranks", f"{PLAN}.tensor_size", f"{PLAN}.pipeline_size")

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Size and stride of each group of ranks: tensor ranks are next to each other, then stages, then replicas.

        Ranks that share experts are of one stage: those of several replicas are as many apart as there are stages.
        """
        tensor, pair = f"{PLAN}.tensor_size", number(2.0)
        return {
            "tensor": {"group_size": tensor, "group_stride": ONCE},
            "pipeline": {"group_size": pair, "group_stride": tensor},
            "expert": {"group_size": f"{PLAN}.expert_size", "group_stride": f"{PLAN}.pipeline_size"},
            "cache": {"group_size": pair, "group_stride": self.decoding_ranks if self.separate else self.replica_ranks},
        }

    # Memory of a rank

    @property
    def layer_parameters(self) -> str:
        """Parameters of all layers that every expert rank has."""
        return self._total("model.layer_parameters", NOTHING, 0.0)

    @cached_property
    def weights(self) -> str:
        """Bytes of the weights of a rank; embeddings are in bf16."""
        stages = parameters_in(PLAN, "pipeline_size")
        count = self.add("serving.embedding_count", serving.stage_embeddings, **stages,
                         embedding_count=number(self.embedding_count))  # fmt: skip
        embeddings = self.product("serving.stage_embedding_parameters", self.output_embedding, count)
        kinds: dict[str, tuple[Reference, Reference, Reference]] = {
            "layer": (self.layer_parameters, f"{PLAN}.tensor_size", self.weight_size),
            "embedding": (embeddings, f"{PLAN}.tensor_size", BF16),
        }
        if self.has_experts:
            kinds["expert"] = (self.routed_parameters, f"{PLAN}.expert_size", self.weight_size)
        sizes = [self._weights(kind, *inputs) for kind, inputs in kinds.items()]
        return self.summed("serving.weights_size", sizes)

    def _weights(self, kind: str, whole: Reference, shares: Reference, element: Reference) -> str:
        stages = ONCE if kind == "embedding" else self.stage_shares(ONCE)
        parameters = self.add(f"serving.{kind}_parameters", steps.rank_parameters, parameter_count=whole,
                              tensor_size=shares, stage_shares=stages)  # fmt: skip
        return self.add(f"serving.{kind}_weights_size", steps.state_size, parameter_count=parameters,
                        element_size=element, share_count=ONCE)  # fmt: skip

    @property
    def cache_width(self) -> str:
        """Elements of a token in the cache of one layer on one rank."""
        if not self.latent:
            return self.kv_width
        return self.add("model.latent_width", serving.latent_width,
                        **parameters_in(MODEL, "kv_rank", "rotary_size"))  # fmt: skip

    @property
    def cache_element(self) -> Quantity:
        """Bytes of an element of the cache."""
        return Quantity(CACHE_SIZES[self.plan.cache_precision], BYTE)

    def kept(self, name: str, length: Reference) -> Reference:
        """Tokens of a sequence of a length whose keys and values a layer keeps."""
        if self.model.attention != "window":
            return length
        return self.add(f"{name}.cached_length", serving.cached_length, length=length, window=f"{MODEL}.window",
                        windowed_fraction=f"{MODEL}.windowed_fraction")  # fmt: skip

    def _length(self, name: str, function: object) -> str:
        lengths = parameters_in(PLAN, "input_length", "output_length")
        return self.add(name, function, **lengths)  # type: ignore[arg-type]

    @property
    def context_length(self) -> Reference:
        """Tokens of the cache of a request in flight that a step reads, in the mean."""
        return self.kept("serving.mean", self._length("serving.mean_length", serving.mean_length))

    def cache_of(self, name: str, length: Reference) -> str:
        """Bytes of the cache of sequences of a length on one rank."""
        token = self.add("serving.token_size", serving.token_cache, kv_width=self.cache_width,
                         layer_count=f"{MODEL}.layer_count", element_size=self.cache_element,
                         stage_shares=self.stage_shares(ONCE))  # fmt: skip
        return self.add(name, serving.request_cache, length=length, token_size=token)

    @property
    def _needs(self) -> dict[str, Reference]:
        """Memory of weights, buffers and a whole request, and the share of the cache."""
        whole = self.kept("serving.full", self._length("serving.full_length", serving.full_length))
        plan = parameters_in(PLAN, "cache_fraction", "buffer_size")
        return {"weight_size": self.weights, "request_size": self.cache_of("serving.request_size", whole), **plan}

    @cached_property
    def limit(self) -> str:
        """Requests that may be in flight on a replica."""
        return self.add("serving.batch_limit", serving.batch_limit, memory_size=f"{GPU}.memory_size",
                        largest_batch=f"{PLAN}.largest_batch", **self._needs)  # fmt: skip

    # Steps

    @property
    def gained(self) -> str:
        """Tokens that a request gains in a step."""
        draft = parameters_in(PLAN, "draft_length", "acceptance")
        return self.add("serving.step_tokens", serving.step_tokens, **draft)

    @property
    def imbalance(self) -> str:
        """Layers of the fullest stage over the mean."""
        return self.add("serving.stage_imbalance", serving.stage_imbalance, layer_count=f"{MODEL}.layer_count",
                        pipeline_size=f"{PLAN}.pipeline_size")  # fmt: skip

    def constraints(self) -> None:
        """Constraints of a model and a plan: what its sizes must divide, and that a request fits."""
        self.model_constraints()
        require = self.context.wiring.require
        tensor, expert, stages = (f"{PLAN}.{key}_size" for key in ("tensor", "expert", "pipeline"))
        ranks = "does not divide the ranks that decode (application.rank_count)"
        pairs: list[tuple[str, str, Reference, Reference]] = [
            ("ranks", f"{tensor} times {stages} {ranks}", self.decoding_ranks, self.replica_ranks),
            ("heads", f"{tensor} does not divide the heads ({MODEL}.head_count)", f"{MODEL}.head_count", tensor),
        ]
        sharing = self.product("serving.sharing_ranks", expert, stages)
        if self.has_experts:
            pairs += [
                ("experts", f"{expert} does not divide the experts ({MODEL}.expert_count)", f"{MODEL}.expert_count",
                 expert),
                ("expert ranks", f"{tensor} does not divide {expert}", expert, tensor),
                ("expert replicas", f"{expert} times {stages} {ranks}", self.decoding_ranks, sharing),
            ]  # fmt: skip
        if self.separate:
            pairs.append(("prefill ranks", f"{tensor} times {stages} does not divide {_RANKS}", _RANKS,
                          self.replica_ranks))  # fmt: skip
        if self.separate and self.has_experts:
            pairs.append(("prefill experts", f"{expert} times {stages} does not divide {_RANKS}", _RANKS, sharing))
        for name, reason, count, divisor in pairs:
            require(f"serving.{name} divide", reason, is_multiple, {"count": count, "divisor": divisor})
        require("serving.stages fit", f"more stages than layers ({MODEL}.layer_count)", fits,
                {"needed_count": stages, "available_count": f"{MODEL}.layer_count"})  # fmt: skip
        working = {"decode": self.replicas} | ({"prefill": self.prefill_replicas} if self.separate else {})
        for name, count in working.items():
            require(f"serving.ranks {name}", f"no ranks are left to {name} ({_RANKS})", fits,
                    {"needed_count": ONCE, "available_count": count})  # fmt: skip
        reason = f"weights and the cache of one request do not fit the device ({GPU}.memory_size)"
        least = self.add("serving.least_size", serving.least_memory, **self._needs)
        sizes: dict[str, Reference] = {"needed_size": least, "available_size": f"{GPU}.memory_size"}
        require("serving.request fits", reason, memory_fits, sizes)
