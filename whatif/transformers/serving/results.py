"""Results of serving other than the time of a step: throughput, latencies, memory, cost of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.evaluate import evaluate
from whatif.core.term import Program, Reference
from whatif.models import transformer_serving as serving
from whatif.transformers.memory_kinds import memory_words
from whatif.transformers.model_parts import PLAN
from whatif.transformers.serving.parts import MEMORY, ServingParts
from whatif.transformers.serving.terms import BATCH, BUSY, CACHE, DECODED, FLYING, first_token, prompt_terms

MEMORY_TERMS: Final = {"weights": "serving.weights_size", "cache": CACHE, "buffers": f"{PLAN}.buffer_size"}
"""Terms of the memory of a rank by kind."""


def serving_results(context: Context, times: Mapping[str, str]) -> dict[str, str]:
    """Terms of the further columns, by name."""
    parts = ServingParts(context)
    output: dict[str, Reference] = {"output_length": f"{PLAN}.output_length"}
    whole: dict[str, Reference] = {"iteration_time": times["iteration_time"]}
    # Prompts on the same ranks delay tokens, those on others the first one only.
    token = parts.add("serving.token_time", serving.token_time, busy_time=DECODED if parts.separate else BUSY,
                      batch=BATCH, replica_count=parts.replicas, **output)  # fmt: skip
    first = first_token(parts)
    prompt = context.wiring.sum("serving.own_prompt_time", prompt_terms(parts))
    rate = parts.add("serving.token_rate", serving.served_tokens, **whole, **output)
    found = {
        "token_rate": rate,
        "rank_token_rate": parts.add("serving.rank_token_rate", serving.rank_rate, token_rate=rate,
                                     rank_count=context.rank_count),
        "first_token_time": first,
        "token_time": token,
        "request_time": parts.add("serving.request_time", serving.request_time, first_token_time=first,
                                  token_time=token, prompt_time=prompt, **output),
        "served_rate": parts.add("serving.served_rate", serving.served_requests, **whole),
        "batch": BATCH if parts.plan.request_rate is None else FLYING,
        "memory_size": MEMORY,
    }  # fmt: skip
    return found | _cost(parts, times, output)


def _cost(parts: ServingParts, times: Mapping[str, str], output: Mapping[str, Reference]) -> dict[str, str]:
    """Cost of a million tokens, where the platform has prices."""
    wiring, total = parts.context.wiring, times.get("total_cost", "")
    if not total:
        return {}
    inputs = {"total_cost": total, "iteration_count": "application.iteration_count", **output}
    cost = wiring.add("serving.million_tokens_cost", serving.million_tokens_cost, inputs,
                      dimension=wiring.dimension(total))  # fmt: skip
    return {"million_tokens_cost": cost}


def serving_remarks(program: Program, swept: Mapping[str, Any]) -> tuple[str, ...]:
    """Memory of a rank and of its device, and the kinds of it, at the stated values."""
    return memory_words(evaluate(program).values, MEMORY, MEMORY_TERMS)
