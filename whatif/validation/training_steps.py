"""Comparison of predicted training steps of transformers with measured ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.transformers.training.memory import MEMORY
from whatif.units import BYTE, ONE, SECOND, Dimension
from whatif.validation.measured_kinds import ErrorTable, Kinds, Rows, mean_errors, numbers, summarised_table

_SIZES: Final = (
    "sequence_length", "global_batch", "micro_batch", "tensor_size", "context_size", "pipeline_size", "virtual_count",
    "expert_size",
)  # fmt: skip
_CHOICES: Final = ("precision", "sharding", "recomputation", "attention_kernel")
_SHAPE: Final = (
    "layer_count", "hidden_size", "head_count", "kv_head_count", "feed_forward_size", "vocabulary_size",
)  # fmt: skip
_SPARSE: Final = ("deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b")
"""Models with experts."""
_TITAN: Final = "TorchTitan"
HELD_OUT: Final = (_TITAN, "torch")
"""Studies that no value was fitted to."""
_TORCHTITAN: Final = {
    "platform.node.gpu.dram_bandwidth": "2128 GB/s",
    "platform.node.gpu.memory_size": "96 GB",
    "platform.node.gpu.power_cap": "500 W",
}
"""Its H100: 96 GB of HBM2e, 89 % of a peak of 2.4 TB/s as on other H100, and a limit of 500 W."""
BOUNDS: Final = {"dense": 0.08, "with experts": 0.25, "held out": 0.12}
"""Largest mean absolute error of each kind of models, and of the steps of `HELD_OUT`."""


def training_steps(rows: Rows) -> ErrorTable:
    """One row per measured step: its settings, measured and predicted time and memory, and the error of the time."""
    columns: dict[str, Dimension | None] = {"study": None, "release": None, "model": None, "platform": None}
    columns |= {"ranks": ONE, "precision": None, "measured": SECOND, "predicted": SECOND, "error": ONE}
    columns |= {"measured memory": BYTE, "predicted memory": BYTE}
    predicted = predictions(rows)
    errors = errors_of(rows, predicted["iteration.time"])
    cells = [
        [*(row[key] for key in ("study", "release", "model")), row["gpu"] or row["platform"], float(row["rank_count"]),
         row["precision"],
         float(row["time_s"]), time, error, measured_memory(row), memory]
        for row, time, error, memory in zip(rows, predicted["iteration.time"].tolist(), errors.tolist(),
                                            predicted[MEMORY].tolist(), strict=True)
    ]  # fmt: skip
    title = "steps of training, predicted and measured"
    return summarised_table(columns, cells, title, mean_errors(kinds(rows), errors, BOUNDS), "steps")


def measured_memory(row: dict[str, str]) -> float:
    """Measured peak memory of a rank in B; NaN where it was not measured."""
    return float(row["peak_memory_GiB"] or "nan") * 2**30


def errors_of(rows: Rows, times: FloatArray) -> FloatArray:
    """Relative errors of predicted times."""
    return np.asarray(times / numbers(rows, "time_s") - 1)


def kinds(rows: Rows) -> Kinds:
    """Kind of the model of each row; `held out` for the studies that nothing was fitted to."""
    held = np.array([row["study"] in HELD_OUT for row in rows])
    sparse = np.array([row["model"] in _SPARSE for row in rows])
    return np.select([held, sparse], ["held out", "with experts"], "dense")


def predictions(rows: Rows) -> dict[str, FloatArray]:
    """Predicted times and memory of the steps, whether or not the memory is predicted to fit."""
    values = [evaluate(training_scenario(row).program).values for row in rows]
    return {term: np.array([float(found[term]) for found in values]) for term in ("iteration.time", MEMORY)}


def training_scenario(row: dict[str, str]) -> Scenario:
    """Scenario of a measured step."""
    model = "\n".join(f"{key} = {row[key]}" for key in _SHAPE if row[key])
    if row["hidden_size"] and not row["feed_forward_size"]:
        model += f"\nfeed_forward_size = {4 * int(row['hidden_size'])}"
    plan = [f"{key} = {row[key]}" for key in (*_SIZES, "sequence_parallel")]
    plan += [f'{key} = "{row[key]}"' for key in _CHOICES]
    text = f"""
[application]
kind = "training"
rank_count = {row["rank_count"]}
[application.transformer]
extends = "{row["model"]}"
{model}
[application.plan]
{chr(10).join(plan)}
"""
    overrides: dict[str, Any] = {"platform.node_count": int(row["rank_count"])}
    if row["study"] == _TITAN:
        overrides |= _TORCHTITAN
    if row["gpu"]:
        overrides["platform.node.gpu.extends"] = row["gpu"]
    return Scenario(parse_document(text, f"{row['study']}, {row['model']}"), row["platform"], overrides)
