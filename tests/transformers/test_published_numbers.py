"""Parameters, operations and memory of transformers against published numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.transformers.steps_at_hand import terms
from whatif.core.evaluate import evaluate
from whatif.validation.tables import rows_of
from whatif.validation.training_steps import training_scenario

GIB = 2**30
PARAMETERS = {
    "llama-3-8b": 8.03, "llama-3-70b": 70.55, "llama-3-405b": 405.85, "qwen3-30b-a3b": 30.5, "qwen3-235b-a22b": 235.0,
    "gpt-oss-120b": 116.8, "gpt-oss-20b": 20.9, "llama-4-scout": 109.0, "llama-4-maverick": 400.0, "gpt-j-6b": 6.05,
    "llama-7b": 6.74, "llama-2-70b": 68.98, "falcon-180b": 179.5, "mistral-7b": 7.24, "gpt-3-175b": 174.6,
    "megatron-22b": 22.0, "megatron-530b": 529.6, "megatron-1t": 1008.0, "deepseek-v3": 671.0, "kimi-k2": 1043.0,
    "mixtral-8x7b": 46.7, "mixtral-8x22b": 141.0, "nemotron-4-340b": 341.0,
}  # fmt: skip
"""Parameters in 10^9: cards of the models."""
TABLE_5 = [
    ("megatron-22b", "none", False, 59.25),
    ("megatron-22b", "none", True, 59.25 * 0.6684),
    ("megatron-22b", "selective", False, 59.25 * 0.4942),
    ("megatron-22b", "selective", True, 9.5625),
    ("megatron-22b", "full", False, 59.25 * 0.0764),
    ("megatron-530b", "none", False, 114.0234375),
    ("megatron-530b", "none", True, 114.0234375 * 0.5831),
    ("megatron-530b", "selective", False, 114.0234375 * 0.6204),
    ("megatron-530b", "selective", True, 23.076171875),
    ("megatron-530b", "full", False, 114.0234375 * 0.0942),
]
"""Activations of a rank in GiB (Korthikanti et al. 2022, Fig. 1 and 7)."""


@pytest.mark.parametrize("model", PARAMETERS)
def test_parameters_are_those_of_the_card(model):
    found = terms(model)
    total = found.get("model.parameters", found["model.dense_parameters"])
    assert_allclose(total / 1e9, PARAMETERS[model], rtol=0.017, atol=0)


@pytest.mark.parametrize(("model", "recomputation", "sequence_parallel", "published"), TABLE_5)
def test_activations_are_those_of_korthikanti(model, recomputation, sequence_parallel, published):
    plan = {"ranks": 8, "pipeline_size": 1, "global_batch": 4, "micro_batch": 4}
    if model == "megatron-530b":
        plan = {"ranks": 280, "pipeline_size": 35, "virtual_count": 3, "global_batch": 280}
    found = terms(model, platform="dgx_a100", sequence_length=2048, tensor_size=8, recomputation=recomputation,
                  sequence_parallel=sequence_parallel, dropout=True, fused_attention=False, **plan)  # fmt: skip
    # With full recomputation the paper keeps the inputs of the layer that is computed again, too.
    tolerance = 0.015 if recomputation == "full" else 0.003
    assert_allclose(found["training.activations_size"] / GIB, published, rtol=tolerance, atol=0)


@pytest.mark.parametrize(
    ("model", "ranks", "pipeline", "published"),
    [("megatron-22b", 8, 1, 45.5625), ("megatron-530b", 280, 35, 31.640625)],
)
def test_weights_and_states_are_those_of_korthikanti(model, ranks, pipeline, published):
    """GiB of a rank in their Fig. 1, of the layers alone, without embeddings."""
    found = terms(model, ranks=ranks, tensor_size=8, pipeline_size=pipeline, global_batch=ranks, sharding="none")
    sizes = sum(float(found[f"training.{name}_size"]) for name in ("weights", "gradients", "optimiser"))
    layers = 1 - float(found["model.dense_parameters.embeddings"] / found["model.dense_parameters"])
    assert_allclose(sizes * layers / GIB, published, rtol=1e-6, atol=0)


def test_operations_of_a_token_are_those_that_nvidia_counts():
    """Published operations a second over published tokens per second, of every run with both, rounded."""
    rows = [row for row in rows_of("training_steps.csv") if row["model_rate_Tflops"]]
    names = dict.fromkeys((row["model"], row["sequence_length"]) for row in rows)
    checked = 0
    for name in names:
        own = [row for row in rows if (row["model"], row["sequence_length"]) == name]
        tokens = np.array([float(row["global_batch"]) * float(row["sequence_length"]) / float(row["time_s"])
                           / float(row["rank_count"]) for row in own])  # fmt: skip
        published = np.median(np.array([float(row["model_rate_Tflops"]) for row in own]) * 1e12 / tokens)
        ours = float(evaluate(training_scenario(own[0]).program).values["model.token_operations"])
        if name[0] in ("llama-3-8b", "llama-3-70b", "llama-3-405b", "qwen3-30b-a3b", "qwen3-235b-a22b"):
            assert_allclose(ours, published, rtol=0.01, atol=0, err_msg=name[0])
            checked += 1
    assert checked >= 5
