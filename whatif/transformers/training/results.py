"""Results of a training step other than its time: tokens a second, rate and utilisation of the model, memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whatif.core.context import Context
from whatif.core.energy import GPU
from whatif.core.evaluate import evaluate
from whatif.core.term import Program
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.transformers.model_parts import MODEL, PLAN
from whatif.transformers.training.memory import KINDS, MEMORY
from whatif.transformers.training.parts import Parts
from whatif.units import BYTE, format_quantity
from whatif.vocabulary import PRODUCT_PRECISIONS


def training_results(context: Context, times: Mapping[str, str]) -> dict[str, str]:
    """Terms of the further columns, by name."""
    parts = Parts(context)
    batch = {key: f"{PLAN}.{key}" for key in ("global_batch", "sequence_length")}
    tokens = parts.add("training.token_rate", steps.token_rate, iteration_time=times["iteration_time"], **batch)
    work = parts.add("model.token_operations", layers.training_operations, token_parameters=parts.token_parameters,
                     layer_count=f"{MODEL}.layer_count", attended_length=parts.attended, **parts.heads)  # fmt: skip
    rate = parts.add("training.model_rate", steps.model_rate, token_operations=work, token_rate=tokens,
                     rank_count=context.rank_count)  # fmt: skip
    peak = f"{GPU}.matrix_rates.{PRODUCT_PRECISIONS[parts.plan.precision]}"
    share = parts.add("training.model_utilisation", steps.model_utilisation, model_rate=rate, peak_rate=peak)
    return {"token_rate": tokens, "model_rate": rate, "model_utilisation": share, "memory_size": MEMORY}


def training_remarks(program: Program, swept: Mapping[str, Any]) -> tuple[str, ...]:
    """Memory of a rank and of its device, and the kinds of it, at the stated values."""
    values = evaluate(program).values
    sizes = {name: f"training.{name}_size" for name in KINDS} | {"buffers": f"{PLAN}.buffer_size"}
    shown = {name.replace("_", " "): float(values[term]) for name, term in sizes.items() if term in values}
    words = (f"{name} {format_quantity(size, BYTE, 3)}" for name, size in shown.items() if size)
    room = values.get(f"{GPU}.memory_size")
    device = "" if room is None else f" of {format_quantity(float(room), BYTE, 3)}"
    return (f"memory of a rank: {format_quantity(float(values[MEMORY]), BYTE, 3)}{device}: {', '.join(words)}",)
