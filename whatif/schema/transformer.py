"""Tables of a transformer, of the plan by which it is trained, and of that by which it is served."""

from __future__ import annotations

from typing import Final, Literal

from whatif.schema.fields import (
    Bytes,
    Count,
    CountOrZero,
    Fraction,
    Number_,
    PerSecond,
    PositiveFraction,
    PositiveSeconds,
    Seconds,
    StrictTable,
    computed_default,
)
from whatif.vocabulary import ProductPrecision

_MODEL: Final = "application.transformer"


class Transformer(StrictTable):
    """A transformer: layers of attention and feed-forward blocks or experts."""

    name: str
    """Name of the model."""
    layer_count: Count
    """Layers."""
    hidden_size: Count
    """Elements of the vector of a token."""
    head_count: Count
    """Heads of queries."""
    kv_head_count: Count = computed_default(f"= {_MODEL}.head_count")
    """Heads of keys and values; by default as many as of queries."""
    head_size: Count = computed_default(f"= {_MODEL}.hidden_size / {_MODEL}.head_count")
    """Elements of a head of queries and keys."""
    value_size: Count = computed_default(f"= {_MODEL}.head_size")
    """Elements of a head of values."""
    blocks: Literal["dense", "experts"] = "dense"
    """Feed-forward blocks: dense ones, or experts in all layers but the leading dense ones."""
    feed_forward_size: Count | None = None
    """Inner elements of a dense feed-forward block."""
    gated: bool = True
    """Whether feed-forward blocks and experts have a gate, a third matrix."""
    vocabulary_size: Count
    """Tokens of the vocabulary."""
    tied_embeddings: bool = False
    """Whether the output uses the matrix of the input embedding."""
    attention: Literal["full", "window", "latent"] = "full"
    """full: all tokens before; window: `windowed_fraction` of the layers attend to `window` tokens; latent: keys and
    values are projected from a latent vector (DeepSeek)."""
    window: Count = 4096.0
    """Tokens of a sliding window."""
    windowed_fraction: Fraction = 0.5
    """Share of the layers with a sliding window."""
    query_rank: CountOrZero = 1536.0
    """Size of the latent vector of queries, for `attention = "latent"`; 0 if queries are projected directly."""
    kv_rank: CountOrZero = 512.0
    """Size of the latent vector of keys and values."""
    rotary_size: CountOrZero = 64.0
    """Elements of a head that carry positions, part of `head_size`."""
    expert_count: Count = 1.0
    """Experts of a layer, for `blocks = "experts"`."""
    active_expert_count: Count = 1.0
    """Experts that a token is sent to."""
    shared_expert_count: Count | None = None
    """Experts that every token passes."""
    expert_size: Count = 1.0
    """Inner elements of an expert."""
    leading_dense_count: CountOrZero = 0.0
    """Dense layers before the first with experts."""
    expert_interval: Count = 1.0
    """Layers from one with experts to the next."""


class TrainingPlan(StrictTable):
    """Training plan of a transformer: batches, parallelism, precision, memory and overlaps."""

    sequence_length: Count
    """Tokens of a sequence."""
    global_batch: Count
    """Sequences of a step."""
    micro_batch: Count = 1.0
    """Sequences of a micro batch."""
    tensor_size: Count = 1.0
    """Ranks that share the products of each layer."""
    sequence_parallel: bool = True
    """Whether tensor ranks share the tokens where no product needs all of them."""
    context_size: Count = 1.0
    """Ranks that share a sequence."""
    pipeline_size: Count = 1.0
    """Stages of the pipeline."""
    virtual_count: Count = 1.0
    """Parts of the model on each stage (interleaving)."""
    expert_size: Count = 1.0
    """Ranks that share the experts of a layer."""
    precision: ProductPrecision = "bf16"
    """Precision of the products of layers; fp8 with a scale for each tensor, mxfp8 and nvfp4 for each block. Attention,
    logits and messages are in bf16."""
    sharding: Literal["none", "optimiser", "gradients", "full"] = "optimiser"
    """States sharded over the replicas: nothing, optimiser states, gradients too, or weights too (FSDP)."""
    recomputation: Literal["none", "selective", "full"] = "none"
    """none: activations are kept; selective: attention is computed again; full: every layer is."""
    offload: Literal["none", "optimiser"] = "none"
    """optimiser: its states are in the memory of the host, which updates the weights (ZeRO-Offload)."""
    offload_exposure: Fraction = 1.0
    """Exposed share of the copies of gradients to the host and of weights back."""
    schedule: Literal["1f1b", "zero_bubble"] = "1f1b"
    """Order of the micro batches in the pipeline."""
    attention_kernel: Literal["vendor", "flash2"] = "vendor"
    """vendor: the kernel of the vendor's library (cuDNN, FlashAttention 3); flash2: FlashAttention 2, as in PyTorch."""
    fused_attention: bool = True
    """Whether attention keeps no scores, as FlashAttention."""
    dropout: bool = False
    """Whether masks of dropout are kept."""
    gradient_size: Bytes = 4.0
    """Bytes of a gradient."""
    optimiser_size: Bytes = 12.0
    """Bytes of the optimiser states of a parameter: 12 for Adam with fp32 weights."""
    buffer_size: Bytes = 4e9
    """Memory of a device for communication buffers, the runtime and fragmentation."""
    pointwise_fraction: PositiveFraction = 0.527
    """Share of the memory bandwidth in norms, residuals and activations."""
    expert_fraction: PositiveFraction = 0.45
    """Share of the rate of large products that products of experts reach, excluding partly filled tiles."""
    layer_time: Seconds = 1.34e-3
    """Overhead of a layer and micro batch, forward and backward: kernel launches and synchronisation."""
    expert_layer_time: Seconds = 4.0e-3
    """Overhead of a layer with experts, which also permutes tokens."""
    tensor_exposure: Fraction = 0.81
    """Exposed share of the communication of tensor ranks: the part that computation does not hide."""
    context_exposure: Fraction = 0.3
    """Exposed share of the communication of context ranks."""
    expert_exposure: Fraction = 0.4
    """Exposed share of the communication of expert ranks."""
    pipeline_exposure: Fraction = 0.3
    """Exposed share of the messages between stages."""
    data_exposure: Fraction = 0.62
    """Exposed share of the communication of replicas, except with full sharding."""
    shard_exposure: Fraction = 0.59
    """Exposed share of the communication of replicas with full sharding."""
    stall_time: Seconds = 0.0
    """Data loading time of a step that is not hidden."""
    token_count: Count | None = None
    """Tokens of the whole training, for its time, energy and cost."""
    checkpoint_time: PositiveSeconds = 30.0
    """Time in which training waits for a checkpoint."""
    checkpoint_interval: PositiveSeconds | None = None
    """Useful time between checkpoints; by default that with the least expected time."""
    restart_time: Seconds = 600.0
    """Time from a failure until training continues from the last checkpoint."""


class ServingPlan(StrictTable):
    """Serving plan of a transformer: requests, parallelism, precision, memory, and overheads of the engine."""

    input_length: Count
    """Tokens of a prompt, mean."""
    output_length: Count
    """Tokens that a request generates, mean."""
    length_variation: Number_ = 0.0
    """Coefficient of variation of the lengths of prompts and outputs, for waiting times."""
    request_rate: PerSecond | None = None
    """Requests per second, arriving at random; by default as many are in flight as fit in memory."""
    largest_batch: Count = 2048.0
    """Requests in flight on a replica, at most."""
    tensor_size: Count = 1.0
    """Ranks that share the products of each layer."""
    pipeline_size: Count = 1.0
    """Stages of the pipeline of a replica."""
    expert_size: Count = computed_default("= application.plan.tensor_size")
    """Ranks that share the experts of a layer: those of a replica, or of several (attention with data parallelism)."""
    precision: ProductPrecision = "bf16"
    """Precision of the products of layers. Logits and messages are in bf16."""
    weight_size: Bytes | None = None
    """Bytes of a weight of a layer; by default those of the precision, with scales of blocks."""
    cache_precision: Literal["bf16", "fp8"] = "bf16"
    """Precision of the key-value cache and of attention."""
    cache_fraction: PositiveFraction = 0.9
    """Share of the memory left by weights and buffers that the key-value cache may take."""
    buffer_size: Bytes = 4e9
    """Memory of a device for activations, communication buffers and the runtime."""
    prefill: Literal["shared", "separate"] = "shared"
    """shared: ranks prefill prompts between steps of decoding; separate: some ranks only prefill (disaggregated)."""
    prefill_rank_count: CountOrZero = 0.0
    """Ranks that only prefill, of the ranks of the application, for `prefill = "separate"`."""
    chunk_length: Count = 8192.0
    """Tokens of a pass of prefill, at least those of a prompt; short prompts share one."""
    draft_length: CountOrZero = 0.0
    """Tokens that a draft model proposes in a step (speculative decoding)."""
    acceptance: Fraction = 0.8
    """Probability that a proposed token is accepted."""
    draft_fraction: Fraction = 0.05
    """Time of the draft model for a token over that of a step of decoding."""
    pointwise_fraction: PositiveFraction = 0.9
    """Share of the memory bandwidth in norms, residuals and activations."""
    expert_fraction: PositiveFraction = 0.463
    """Share of the rate of large products that products of experts reach, excluding partly filled tiles."""
    routing_passes: Number_ = 17.8
    """Elements that routing reads and writes, by hidden element of a token that is sent to an expert: permutation,
    quantisation, sum."""
    layer_time: Seconds = 21.6e-6
    """Overhead of a layer in a pass: launches and synchronisation."""
    expert_layer_time: Seconds = 196e-6
    """Additional overhead of a layer with experts in a pass."""
    step_time: Seconds = 2.25e-3
    """Overhead of a pass: the scheduler of the engine and its host."""
    stage_time: Seconds = 3.86e-3
    """Additional overhead of a pass through a pipeline."""
    request_time: Seconds = 4.4e-6
    """Overhead of a request in a step: sampling and its bookkeeping."""
