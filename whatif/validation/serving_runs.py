"""Comparison of the predicted throughput of transformers that are served with measured ones."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.transformers.serving.terms import BATCH, DECODING, FIRST_PASS
from whatif.units import ONE, PER_SECOND, SECOND, Dimension
from whatif.validation.measured_kinds import ErrorTable, Kinds, Rows, mean_error, mean_errors, numbers, summarised_table

_NUMBERS: Final = (
    "input_length", "output_length", "tensor_size", "pipeline_size", "expert_size", "largest_batch",
)  # fmt: skip
_CHOICES: Final = ("precision", "cache_precision", "weight_size")
_FITTED: Final = ("TensorRT-LLM 1.0", "TensorRT-LLM 1.1")
"""Software whose runs values were fitted to."""
BOUNDS: Final = {"dense": 0.12, "with experts": 0.2, "held out": 0.2}
"""Largest mean absolute error of each kind of models, and of the runs of other software."""


class _Words(NamedTuple):
    """Words of a table of times, and the largest mean absolute error."""

    title: str
    kind: str
    rows: str
    bound: float


_FIRST: Final = _Words("times to the first token", "first token", "runs", 0.2)
_STEPS: Final = _Words("steps of decoding", "decoding", "steps", 0.08)
_RATE: Final = "serving.token_rate"


def serving_runs(rows: Rows) -> ErrorTable:
    """One row per measured run: its settings, measured and predicted tokens per second, and the error."""
    columns: dict[str, Dimension | None] = {"software": None, "model": None, "platform": None, "ranks": ONE}
    columns |= {"precision": None, "input": ONE, "output": ONE, "batch": ONE}
    columns |= {"measured": PER_SECOND, "predicted": PER_SECOND, "error": ONE}
    found = predictions(rows)
    rates = numbers(rows, "tokens_per_s")
    errors = found[_RATE] / rates - 1
    cells = [
        [row["software"], row["model"], row["gpu"] or row["platform"], float(row["rank_count"]), row["precision"],
         float(row["input_length"]), float(row["output_length"]), batch, rate, predicted, error]
        for row, batch, rate, predicted, error in zip(rows, found[BATCH].tolist(), rates.tolist(),
                                                      found[_RATE].tolist(), errors.tolist(), strict=True)
    ]  # fmt: skip
    title = "tokens per second, predicted and measured"
    return summarised_table(columns, cells, title, mean_errors(kinds(rows), errors, BOUNDS))


def first_tokens(rows: Rows) -> ErrorTable:
    """One row per measured time to the first token of a single request: its settings, and the error of the time."""
    columns: dict[str, Dimension | None] = {"software": None, "model": None, "platform": None, "ranks": ONE}
    columns |= {"precision": None, "input": ONE, "measured": SECOND, "predicted": SECOND, "error": ONE}
    return _timed(rows, columns, ("rank_count", "precision", "input_length"), FIRST_PASS, "first_token_s", _FIRST)


def decoding_steps(rows: Rows) -> ErrorTable:
    """One row per measured step of decoding, a token of each request of a batch, and the error of its time."""
    columns: dict[str, Dimension | None] = {"software": None, "model": None, "platform": None, "precision": None}
    columns |= {"length": ONE, "batch": ONE, "measured": SECOND, "predicted": SECOND, "error": ONE}
    return _timed(rows, columns, ("precision", "input_length", "largest_batch"), DECODING, "step_s", _STEPS)


def _timed(
    rows: Rows, columns: dict[str, Dimension | None], keys: tuple[str, ...], term: str, column: str, words: _Words
) -> ErrorTable:
    """Measured times in a column of the file, and those of a term."""
    known = numbers(rows, column)
    times = np.array([float(evaluate(serving_scenario(row).program).values[term]) for row in rows])
    errors = times / known - 1
    cells = [
        [row["software"], row["model"], row["gpu"] or row["platform"],
         *(row[key] if key == "precision" else float(row[key]) for key in keys), *found]
        for row, *found in zip(rows, known.tolist(), times.tolist(), errors.tolist(), strict=True)
    ]  # fmt: skip
    means = [mean_error(words.kind, errors, words.bound)]
    return summarised_table(columns, cells, f"{words.title}, predicted and measured", means, words.rows)


def kinds(rows: Rows) -> Kinds:
    """Kind of the model of each run; `held out` for those of software that nothing was fitted to."""
    held = np.array([row["software"] not in _FITTED for row in rows])
    sparse = np.array([bool(row["expert_size"]) for row in rows])
    return np.select([held, sparse], ["held out", "with experts"], "dense")


def predictions(rows: Rows) -> dict[str, FloatArray]:
    """Predicted tokens per second, and requests in flight on a replica."""
    values = [evaluate(serving_scenario(row).program).values for row in rows]
    return {term: np.array([float(found[term]) for found in values]) for term in (_RATE, BATCH)}


def serving_scenario(row: dict[str, str]) -> Scenario:
    """Scenario of a measured run."""
    plan = [f"{key} = {row[key]}" for key in _NUMBERS if row[key]]
    plan += [f'{key} = "{row[key]}"' for key in _CHOICES if row[key]]
    text = f"""
[application]
kind = "serving"
rank_count = {row["rank_count"]}
[application.transformer]
extends = "{row["model"]}"
[application.plan]
{chr(10).join(plan)}
"""
    parts = {"gpu": row["gpu"], "peer_link": row["link"]}
    overrides: dict[str, Any] = {f"platform.node.{table}.extends": name for table, name in parts.items() if name}
    return Scenario(parse_document(text, f"{row['software']}, {row['model']}"), row["platform"], overrides)
