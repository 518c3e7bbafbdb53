"""Training steps of llm-analysis: run by the Python of an environment with llm-analysis, not of this project.

Reads a JSON list of cases from standard input; prints the seconds of a case in the median, and for each share of the
peak the times of the steps, null for those that llm-analysis refuses.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from typing import Any

SHARES = tuple(share / 100 for share in range(30, 81, 5))


def step_time(case: dict[str, Any], share: float) -> float | None:
    """Time of a step in s."""
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import GPUConfig, ModelConfig, ParallelismConfig

    analysis = LLMAnalysis(
        ModelConfig(**case["model"]),
        GPUConfig(**case["gpu"]),
        parallelism_config=ParallelismConfig(**case["plan"]),
        flops_efficiency=share,
        hbm_memory_efficiency=0.85,
    )
    try:
        found = analysis.training(
            batch_size_per_gpu=case["micro_batch"],
            gradient_accumulation_steps=case["accumulation"],
            global_batch_size=case["global_batch"],
            seq_len=case["model"]["max_seq_len"],
            total_num_tokens=10**9,
            activation_recomputation=ActivationRecomputation[case["recomputation"]],
            ds_zero=DSZeRO(case["sharding"]),
            mlp_gated_linear_units=case["gated"],
        )
    except AssertionError:
        return None
    return float(found["latency_per_iter"])


def main() -> None:
    """Print the times."""
    logging.disable(logging.CRITICAL)
    cases = json.load(sys.stdin)
    spent, times = [], {}
    for share in SHARES:
        times[share] = []
        for case in cases:
            start = time.perf_counter()
            times[share].append(step_time(case, share))
            spent.append(time.perf_counter() - start)
    json.dump({"seconds": statistics.median(spent), "times": times}, sys.stdout)


if __name__ == "__main__":
    main()
