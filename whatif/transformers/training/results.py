"""Results of a training step other than its time: tokens per second, rate and utilisation of the model, memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import GPU, NODE
from whatif.core.term import Program, Reference, parameters_in
from whatif.models import failures
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.transformers.memory_kinds import memory_words
from whatif.transformers.model_parts import MODEL, ONCE, PLAN
from whatif.transformers.training.computation import AGAIN
from whatif.transformers.training.memory import KINDS, MEMORY
from whatif.transformers.training.parts import Parts
from whatif.vocabulary import PRODUCT_PRECISIONS

MEMORY_TERMS: Final = {name: f"training.{name}_size" for name in KINDS} | {"buffers": f"{PLAN}.buffer_size"}
"""Terms of the memory of a rank by kind."""


def training_results(context: Context, times: Mapping[str, str]) -> dict[str, str]:
    """Terms of the further columns, by name."""
    parts = Parts(context)
    batch = parameters_in(PLAN, "global_batch", "sequence_length")
    tokens = parts.add("training.token_rate", steps.token_rate, iteration_time=times["iteration_time"], **batch)
    work = parts.add("model.token_operations", layers.training_operations, token_parameters=parts.token_parameters,
                     layer_count=f"{MODEL}.layer_count", attended_length=parts.attended, **parts.heads)  # fmt: skip
    rate = parts.add("training.model_rate", steps.model_rate, token_operations=work, token_rate=tokens,
                     rank_count=context.rank_count)  # fmt: skip
    peak = f"{GPU}.matrix_rates.{PRODUCT_PRECISIONS[parts.plan.precision]}"
    share = parts.add("training.model_utilisation", steps.model_utilisation, model_rate=rate, peak_rate=peak)
    executed = parts.add("training.executed_rate", steps.model_rate, token_operations=_executed(parts, work),
                         token_rate=tokens, rank_count=context.rank_count)  # fmt: skip
    whole = parts.add("training.hardware_utilisation", steps.model_utilisation, model_rate=executed, peak_rate=peak)
    found = {"token_rate": tokens, "model_rate": rate, "model_utilisation": share,
             "hardware_utilisation": whole, "memory_size": MEMORY}  # fmt: skip
    return found | _whole_training(parts, times, tokens)


def _executed(parts: Parts, work: str) -> str:
    """Operations that are executed for one token."""
    layer_passes, attention_passes = AGAIN[parts.plan.recomputation]
    inputs: dict[str, Reference] = {
        "token_operations": work, "token_parameters": parts.token_parameters, "layer_count": f"{MODEL}.layer_count",
        "output_parameters": parts.output_embedding, "attended_length": parts.attended, **parts.heads,
    }  # fmt: skip
    options = {"layer_passes": layer_passes, "attention_passes": attention_passes}
    return parts.context.wiring.add("model.executed_operations", layers.executed_operations, inputs, options=options)


def _whole_training(parts: Parts, times: Mapping[str, str], tokens: str) -> dict[str, str]:
    """Share of useful time where nodes fail, and time, energy and cost of the whole training where it is stated."""
    found = _goodput(parts) if f"{NODE}.failure_interval" in parts.context.wiring.parameters else {}
    if parts.plan.token_count is None:
        return found
    if "goodput" in found:
        paths = f"{NODE}.failure_interval, {PLAN}.checkpoint_time, {PLAN}.restart_time"
        reason = f"goodput is 0: nodes fail before the job has restarted and written a checkpoint ({paths})"
        parts.context.wiring.require("training.progress", reason, failures.progresses, {"goodput": found["goodput"]})
    whole = parts.add("training.whole_time", failures.training_time, token_count=f"{PLAN}.token_count",
                      token_rate=tokens, goodput=found.get("goodput", ONCE))  # fmt: skip
    return {**found, "training_time": whole, **_amounts(parts, times, whole)}


def _goodput(parts: Parts) -> dict[str, str]:
    """Share of useful time, and the interval between checkpoints: that stated, or the best one."""
    stated = f"{PLAN}.checkpoint_interval"
    job = parts.add("training.failure_interval", failures.job_failure_interval,
                    failure_interval=f"{NODE}.failure_interval", nodes_needed=parts.context.nodes_needed)  # fmt: skip
    timing: dict[str, Reference] = {"job_interval": job, "checkpoint_time": f"{PLAN}.checkpoint_time"}
    interval = stated if stated in parts.context.wiring.parameters else parts.add(
        "training.checkpoint_interval", failures.best_checkpoint_interval, **timing)  # fmt: skip
    share = parts.add("training.goodput", failures.goodput, checkpoint_interval=interval,
                      restart_time=f"{PLAN}.restart_time", **timing)  # fmt: skip
    return {"goodput": share} if interval == stated else {"goodput": share, "checkpoint_interval": interval}


def _amounts(parts: Parts, times: Mapping[str, str], whole: str) -> dict[str, str]:
    """Energy, carbon and cost of the whole training."""
    wiring = parts.context.wiring
    return {
        f"training_{name}": wiring.add(
            f"training.whole_{name}", failures.training_amount,
            {"amount": times[f"total_{name}"], "total_time": times["total_time"], "training_time": whole},
            dimension=wiring.dimension(times[f"total_{name}"]),
        )
        for name in ("energy", "carbon", "cost") if f"total_{name}" in times
    }  # fmt: skip


def training_remarks(program: Program, swept: Mapping[str, Any]) -> tuple[str, ...]:
    """Memory of a rank and of its device, and the kinds of it, at the stated values."""
    return memory_words(evaluate(program).values, MEMORY, MEMORY_TERMS)
