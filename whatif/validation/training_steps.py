"""Comparison of predicted training steps of transformers with measured ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension

Rows = list[dict[str, str]]
_SIZES: Final = (
    "sequence_length", "global_batch", "micro_batch", "tensor_size", "context_size", "pipeline_size", "virtual_count",
    "expert_size",
)  # fmt: skip
_CHOICES: Final = ("precision", "sharding", "recomputation")
_SHAPE: Final = ("layer_count", "hidden_size", "head_count", "vocabulary_size")
_SPARSE: Final = ("deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b")
"""Models with experts."""
_OLD_ATTENTION: Final = 0.182
"""Share of the peak of the FlashAttention of 2023 on an H100, with which MPT was timed, fitted to its steps."""
BOUNDS: Final = {"dense": 0.08, "with experts": 0.25}
"""Largest mean absolute error of each kind of models."""


def training_steps(rows: Rows) -> Table:
    """One row per measured step: its settings, the measured and the predicted time, and the error."""
    columns: dict[str, Dimension | None] = {"study": None, "release": None, "model": None, "platform": None}
    columns |= {"ranks": ONE, "precision": None, "measured": SECOND, "predicted": SECOND, "error": ONE}
    times = predicted_times(rows)
    errors = errors_of(rows, times)
    cells = [
        [*(row[key] for key in ("study", "release", "model", "platform")), float(row["rank_count"]), row["precision"],
         float(row["time_s"]), time, error]
        for row, time, error in zip(rows, times.tolist(), errors.tolist(), strict=True)
    ]  # fmt: skip
    title = "; ".join(f"{kind}: {text}" for kind, text in summaries(rows, errors))
    notes = {"title": f"steps of training, predicted and measured: {title}"}
    return Table.of_rows(columns, cells, notes | _beyond(rows, errors))


def _beyond(rows: Rows, errors: FloatArray) -> dict[str, str]:
    """Note of the kinds of models whose mean error is beyond its bound; empty if none is."""
    means = {kind: np.abs(errors[mask]).mean() for kind, mask in kinds(rows).items()}
    words = [f"{kind}: mean error {mean:.1%}, bound {BOUNDS[kind]:.0%}" for kind, mean in means.items()
             if mean > BOUNDS[kind]]  # fmt: skip
    return {"beyond": "; ".join(words)} if words else {}


def errors_of(rows: Rows, times: FloatArray) -> FloatArray:
    """Relative errors of predicted times."""
    return np.asarray(times / np.array([float(row["time_s"]) for row in rows]) - 1)


def summaries(rows: Rows, errors: FloatArray) -> Iterator[tuple[str, str]]:
    """Number, mean absolute error and bias of each kind of models, in words."""
    for kind, mask in kinds(rows).items():
        mean, bias = np.abs(errors[mask]).mean(), errors[mask].mean()
        yield kind, f"{mask.sum()} steps, mean error {mean:.1%}, bias {bias:+.1%}"


def kinds(rows: Rows) -> dict[str, Any]:
    """Masks of the rows of each kind of models."""
    sparse = np.array([row["model"] in _SPARSE for row in rows])
    return {kind: mask for kind, mask in (("dense", ~sparse), ("with experts", sparse)) if mask.any()}


def predicted_times(rows: Rows) -> FloatArray:
    """Predicted times of the steps, whether or not their memory is predicted to fit."""
    programs = (training_scenario(row).program for row in rows)
    return np.array([float(evaluate(program).values["iteration.time"]) for program in programs])


def training_scenario(row: dict[str, str]) -> Scenario:
    """Scenario of a measured step."""
    model = "\n".join(f"{key} = {row[key]}" for key in _SHAPE if row[key])
    if row["hidden_size"]:
        model += f"\nfeed_forward_size = {4 * int(row['hidden_size'])}"
    plan = [f"{key} = {row[key]}" for key in _SIZES] + [f'{key} = "{row[key]}"' for key in _CHOICES]
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
    if row["study"] == "MPT" and row["platform"] == "dgx_h100":
        overrides["platform.node.gpu.transformer.attention"] = _OLD_ATTENTION
    if row["gpu"]:
        overrides["platform.node.gpu.extends"] = row["gpu"]
    return Scenario(parse_document(text, f"{row['study']}, {row['model']}"), row["platform"], overrides)
