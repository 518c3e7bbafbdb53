"""Steps of training against llm-analysis: time of a point, plans per second, and errors at measured steps.

llm-analysis pins old packages and runs in a separate environment, created on the first run (0.2 GB). Its share of the
peak is a setting; the one with its least mean error over all compared steps counts.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from benchmarks.measure import Row, median_seconds
from benchmarks.separate import Separate
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.transformers.plan_search import PlanSearch, search_plans
from whatif.validation.tables import rows_of
from whatif.validation.training_steps import kinds, training_scenario

LLM_ANALYSIS: Final = "llm-analysis==0.2.2"
_GPUS: Final = {
    "dgx_a100": {"hbm_bandwidth_in_GB_per_sec": 2039, "intra_node_bandwidth_in_GB_per_sec": 300,
                 "inter_node_bandwidth_in_GB_per_sec": 200, "peak_fp16_TFLOPS": 312},
    "dgx_h100": {"hbm_bandwidth_in_GB_per_sec": 3350, "intra_node_bandwidth_in_GB_per_sec": 450,
                 "inter_node_bandwidth_in_GB_per_sec": 400, "peak_fp16_TFLOPS": 989},
}  # fmt: skip
"""As in llm-analysis, by platform."""
_SHARDINGS: Final = {"none": 0, "optimiser": 1, "gradients": 2, "full": 3}
_PLANS: Final = """
[application]
kind = "training"
rank_count = 16384
[application.transformer]
extends = "llama-3-405b"
[application.plan]
sequence_length = 8192
global_batch = 16384
"""


def training_steps() -> Iterator[Row]:
    """Time of one point, rate of plans, and mean errors."""
    rows = [row for row in rows_of("training_steps.csv") if _is_comparable(row)]
    programs = [training_scenario(row).program for row in rows]
    point = median_seconds(lambda: evaluate(programs[0]), 200)
    yield _plans()
    other = Separate("llm-analysis", LLM_ANALYSIS)
    try:
        found = json.loads(other.run("with_llm_analysis.py", text=json.dumps([_case(row) for row in rows])))
    except (OSError, subprocess.CalledProcessError) as error:
        other.left_out(error)
        return
    seconds = found["seconds"]
    yield Row(
        "training step, one point", f"{point * 1e3:.2f} ms", f"{seconds * 1e3:.2f} ms", seconds / point, LLM_ANALYSIS
    )
    measured = np.array([float(row["time_s"]) for row in rows])
    own = np.array([float(evaluate(program).values["iteration.time"]) for program in programs])
    yield _errors(measured, own, found["times"])


def _is_comparable(row: dict[str, str]) -> bool:
    """Whether llm-analysis knows what a step takes: dense models in bf16 on A100 and H100, no context parallelism."""
    dense = "with experts" not in kinds([row])
    return dense and row["precision"] == "bf16" and row["platform"] in _GPUS and row["context_size"] == "1"


def plan_search(gpu_count: int) -> Callable[[], PlanSearch]:
    """Search of all plans of a 405B model."""
    overrides = {"platform.node_count": 4096, "application.rank_count": gpu_count}
    scenario = Scenario(parse_document(_PLANS, "plans"), "dgx_h100", overrides)
    return lambda: search_plans(scenario)


def _plans() -> Row:
    search = plan_search(16_384)
    seconds = median_seconds(search, 3)
    count = search().candidates
    return Row(f"{count:,} plans of a 405B model on 16,384 GPUs", f"{seconds:.2f} s")


def _errors(measured: FloatArray, own: FloatArray, times: dict[str, list[float | None]]) -> Row:
    """Mean absolute errors at the steps that both programs predict."""
    others = {share: np.array(values, dtype=float) for share, values in times.items()}
    known = np.all([np.isfinite(values) for values in others.values()], axis=0)
    errors = {share: float(np.abs(values / measured - 1)[known].mean()) for share, values in others.items()}
    share = min(errors, key=lambda name: errors[name])
    mean = float(np.abs(own / measured - 1)[known].mean())
    what = f"training step, mean error at {known.sum()} measured steps"
    return Row(
        what, f"{mean:.1%}", f"{errors[share]:.1%}", errors[share] / mean, f"{LLM_ANALYSIS}, {share} of the peak"
    )


def _case(row: dict[str, str]) -> dict[str, Any]:
    """Settings of a step for llm-analysis."""
    program = training_scenario(row).program
    model, values = program.loaded.scenario.application.transformer, evaluate(program).values
    sizes = {name: int(row[f"{name}_size"]) for name in ("tensor", "pipeline")}
    replicas = int(values["training.replica_count"])
    inner = int(model.feed_forward_size or 0)
    return {
        "model": {
            "name": row["model"], "num_layers": int(model.layer_count), "n_head": int(model.head_count),
            "hidden_dim": int(model.hidden_size), "vocab_size": int(model.vocabulary_size),
            "max_seq_len": int(row["sequence_length"]),
            "num_key_value_heads": int(values["application.transformer.kv_head_count"]),
            "ffn_embed_dim": inner, "expansion_ratio": inner / int(model.hidden_size),
        },
        "gpu": {"name": row["platform"], "mem_per_GPU_in_GB": 80, "intra_node_min_message_latency": 8e-6,
                **_GPUS[row["platform"]]},
        "plan": {"tp_size": sizes["tensor"], "pp_size": sizes["pipeline"], "dp_size": replicas,
                 "sp_size": sizes["tensor"] if row["sequence_parallel"] == "true" else 1},
        "micro_batch": int(row["micro_batch"]), "global_batch": int(row["global_batch"]),
        "accumulation": int(values["training.micro_batch_count"]),
        "recomputation": row["recomputation"].upper(), "sharding": _SHARDINGS[row["sharding"]],
        "gated": bool(model.gated),
    }  # fmt: skip


if __name__ == "__main__":
    for line in training_steps():
        print(line)
