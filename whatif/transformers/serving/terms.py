"""Terms of serving: one request, its steps of decoding and its prompt; requests in flight, waiting times."""

from __future__ import annotations

from typing import Final

from whatif.core.context import Context
from whatif.core.parameter_paths import GPU
from whatif.core.phases.gpu_library import library_operation
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.models import serving_waits as waits
from whatif.models import transformer_serving as serving
from whatif.models import transformer_steps as steps
from whatif.transformers.model_parts import ONCE, PLAN, number, phase_terms
from whatif.transformers.products import check_platform
from whatif.transformers.serving.forward_pass import ForwardPass, Work
from whatif.transformers.serving.parts import MEMORY, ServingParts
from whatif.units import SECOND, Quantity
from whatif.vocabulary import LIBRARY_ALGORITHMS, Category

Phases = list[tuple[dict[str, str], Category]]
Point = tuple[Reference, Reference]
"""Requests in flight, and the time of a step with them."""
BATCH: Final = "serving.batch"
ALONE: Final = "closest.alone_time"
ADDED: Final = "closest.added_time"
FLYING: Final = "serving.flying_count"
LARGEST_RATE: Final = "serving.largest_rate"
CACHE: Final = "serving.cache_size"
BUSY: Final = "serving.busy_time"
DECODED: Final = "serving.request_decoding_time"
DECODING: Final = "step.decoding_time"
STEP: Final = "step.step_time"
PROMPT: Final = "serving.prompt_time"
FIRST_PASS: Final = "first.pass_time"  # noqa: S105 - the name of a term
STEP_PROMPTS: Final = "first.step_prompts_wait"
NO_TIME: Final = Quantity(0.0, SECOND)
_INPUT: Final = f"{PLAN}.input_length"
RATE: Final = f"{PLAN}.request_rate"


def wire_serving(context: Context) -> list[PhaseTerm]:
    """Phases of one request, as all replicas share them: its steps of decoding and its prompt, with their terms."""
    parts = ServingParts(context)
    check_platform(parts, "serving", precision=parts.plan.precision, cache_precision=parts.plan.cache_precision)
    if f"{GPU}.memory_size" not in context.wiring.parameters:
        context.wiring.refuse(f"{GPU}.memory_size", "missing key, needed for the key-value cache")
    parts.constraints()
    prompt = _prompt(parts)
    batch = _batch(parts, _summed(parts, PROMPT, prompt))
    _memory(parts, batch)
    decoding = _decode(parts, batch)
    phases = [*decoding, *(_waiting(parts, decoding) if parts.separate else _prefill(parts, prompt))]
    busy = _summed(parts, BUSY, phases)
    if parts.plan.request_rate is not None:
        phases.append(({"idle": parts.add("idle", serving.idle_time, request_rate=RATE, busy_time=busy)}, "overhead"))
    return phase_terms(phases)


def _summed(parts: ServingParts, name: str, phases: Phases) -> str:
    return parts.context.wiring.sum(name, [term for terms, _ in phases for term in terms.values()])


def _phases(part: ForwardPass, attention: str) -> Phases:
    return [
        (part.kernels(attention), "kernel"),
        (part.communication(), "communication"),
        ({f"{part.name}_overhead": part.overhead()}, "overhead"),
    ]


# Decoding


def _decoding(parts: ServingParts, name: str, batch: Reference) -> Phases:
    """Phases of a step of decoding with requests in flight: one pass of a share of them for each stage."""
    stages = f"{PLAN}.pipeline_size"
    flying = parts.add(f"{name}.pass_requests", serving.pass_requests, batch=batch, pipeline_size=stages)
    tokens = parts.add(f"{name}.pass_tokens", serving.pass_tokens, request_count=flying,
                       draft_length=f"{PLAN}.draft_length")  # fmt: skip
    part = ForwardPass(parts, name, Work(tokens, tokens, stages, parts.imbalance))
    requests = parts.repeated(f"{name}_requests", f"{PLAN}.request_time", batch)
    return [*_phases(part, part.cached_attention(flying)), ({f"{name}_requests": requests}, "overhead")]


def _step(parts: ServingParts, name: str, batch: Reference) -> Phases:
    """Phases of a step with requests in flight: decoding, and the draft that proposes its tokens."""
    decoding = _decoding(parts, name, batch)
    draft = parts.add(f"{name}_draft", serving.draft_time,
                      decoding_time=_summed(parts, f"{name}.decoding_time", decoding),
                      **parameters_in(PLAN, "draft_length", "draft_fraction"))  # fmt: skip
    return [*decoding, ({f"{name}_draft": draft}, "kernel")]


def _decode(parts: ServingParts, batch: str) -> Phases:
    """Phases of the steps of decoding of one request; the requests in flight share each."""
    step = _step(parts, "step", batch)
    _summed(parts, STEP, step)
    share = parts.add("serving.step_share", serving.step_share, batch=batch, step_tokens=parts.gained,
                      replica_count=parts.replicas, output_length=f"{PLAN}.output_length")  # fmt: skip
    return _of_request(parts, step, "step", "decode", share)


def _of_request(parts: ServingParts, phases: Phases, name: str, request: str, share: Reference) -> Phases:
    """Phases of a request that takes a share of others; `request` begins their names in place of `name`."""

    def shared(phase: str, term: str) -> tuple[str, str]:
        renamed = phase.replace(name, request, 1)
        return renamed, parts.repeated(renamed, term, share)

    return [(dict(shared(*item) for item in terms.items()), category) for terms, category in phases]


# Prompts


def _prompt(parts: ServingParts) -> Phases:
    """Phases of one prompt on a stage, in passes that prompts fill together."""
    chunk = parts.add("prompt.chunk_tokens", serving.chunk_tokens, input_length=_INPUT,
                      chunk_length=f"{PLAN}.chunk_length")  # fmt: skip
    rows = parts.quotient("prompt.pass_prompts", chunk, _INPUT)
    passes = parts.add("prompt.passes", serving.prompt_passes, input_length=_INPUT, chunk_tokens=chunk)
    share = parts.add("prompt.layer_share", serving.layer_share, pass_count=passes, stage_imbalance=parts.imbalance,
                      pipeline_size=f"{PLAN}.pipeline_size")  # fmt: skip
    part = ForwardPass(parts, "prompt", Work(chunk, rows, passes, share))
    return _phases(part, part.prompt_attention(_INPUT))


def _prefill(parts: ServingParts, prompt: Phases) -> Phases:
    """Phases of the prompt of a request; each replica computes one at a time."""
    share = parts.quotient("serving.replica_share", ONCE, parts.replicas)
    return _of_request(parts, prompt, "prompt", "prefill", share)


def _waiting(parts: ServingParts, decoding: Phases) -> Phases:
    """Time in which the ranks that decode wait for those that prefill."""
    wait = parts.add("prefill_wait", serving.prefill_wait, prompt_time=PROMPT,
                     decoding_time=_summed(parts, DECODED, decoding),
                     prefill_replica_count=parts.prefill_replicas)  # fmt: skip
    return [({"prefill_wait": wait}, "overhead")]


# Requests in flight


def _batch(parts: ServingParts, prompt: str) -> str:
    """Requests of a step: as many as may be in flight, or those of a rate of requests."""
    flying, require = parts.limit, parts.context.wiring.require
    if parts.plan.request_rate is not None:
        flying = _flying(parts, NO_TIME if parts.separate else prompt)
        reason = f"the ranks {'that decode ' * parts.separate}cannot serve as many requests ({RATE})"
        require("serving.requests fit", reason, serving.rate_fits,
                {"needed_rate": RATE, "available_rate": LARGEST_RATE})  # fmt: skip
    if parts.plan.request_rate is not None and parts.separate:
        reason = f"the ranks that prefill cannot serve as many requests ({RATE})"
        prompts = {"request_rate": RATE, "replica_count": parts.prefill_replicas, "prompt_time": prompt}
        require("serving.prompts fit", reason, serving.prompts_fit, prompts)
    return parts.add(BATCH, serving.step_batch, batch=flying, batch_limit=parts.limit)


def _flying(parts: ServingParts, prompt: Reference) -> str:
    """Requests in flight on a replica at the rate of requests, in the mean.

    The step time is taken as linear between two numbers in flight, one and the limit at first; then twice between
    closer ones, on either side of the solution (regula falsi).
    """
    low: Point = ONCE, _step_time(parts, "single", ONCE)
    high: Point = parts.limit, _step_time(parts, "largest", parts.limit)
    line = _line(parts, "widest", low, high, prompt)
    replica = {"replica_count": parts.replicas, "batch_limit": parts.limit}
    parts.add(LARGEST_RATE, serving.largest_rate, **replica, **line)
    for name in ("closer", "closest"):
        mean = parts.add(f"{name}.mean_batch", serving.steady_batch, request_rate=RATE, **replica, **line)
        batch = parts.add(f"{name}.step_batch", serving.step_batch, batch=mean, batch_limit=parts.limit)
        low, high = _bracket(parts, name, low, high, (batch, _step_time(parts, name, batch)), prompt)
        line = _line(parts, name, low, high, prompt)
    return parts.add(FLYING, serving.steady_batch, **_arrivals(parts))


def _step_time(parts: ServingParts, name: str, batch: Reference) -> str:
    return _summed(parts, f"{name}.step_time", _step(parts, name, batch))


def _requests(parts: ServingParts) -> dict[str, Reference]:
    return {"output_length": f"{PLAN}.output_length", "step_tokens": parts.gained}


def _line(parts: ServingParts, name: str, low: Point, high: Point, prompt: Reference) -> dict[str, Reference]:
    """Time of a request as a line over the requests in flight, through two of their numbers."""
    ends = {"low_batch": low[0], "low_time": low[1], "prompt_time": prompt, **_requests(parts)}
    added = parts.add(f"{name}.added_time", serving.added_time, high_batch=high[0], high_time=high[1], **ends)
    alone = parts.add(f"{name}.alone_time", serving.alone_time, added_time=added, **ends)
    return {"alone_time": alone, "added_time": added}


def _bracket(
    parts: ServingParts, name: str, low: Point, high: Point, probe: Point, prompt: Reference
) -> tuple[Point, Point]:
    """The two numbers in flight, with their step times, that bracket the solution: a probe replaces one."""
    below = parts.add(f"{name}.is_below", serving.is_below, batch=probe[0], step_time=probe[1], request_rate=RATE,
                      replica_count=parts.replicas, prompt_time=prompt, **_requests(parts))  # fmt: skip

    def chosen(end: str, first: Point, second: Point) -> Point:
        pairs = zip(("batch", "time"), first, second, strict=True)
        count, time = (
            parts.add(f"{name}.{end}_{key}", serving.chosen, condition=below, first_value=one, second_value=other)
            for key, one, other in pairs
        )
        return count, time

    return chosen("low", probe, low), chosen("high", high, probe)


def _arrivals(parts: ServingParts) -> dict[str, Reference]:
    """Rate of requests, and what determines how long they are in flight."""
    return {"request_rate": RATE, "replica_count": parts.replicas, "alone_time": ALONE, "added_time": ADDED,
            "batch_limit": parts.limit}  # fmt: skip


def _memory(parts: ServingParts, batch: str) -> None:
    """Wire the memory of a rank: weights, the cache of requests in flight, buffers."""
    cache = parts.cache_of("serving.cached_size", parts.context_length)
    whole = parts.add(CACHE, steps.state_size, parameter_count=batch, element_size=cache, share_count=ONCE)
    parts.summed(MEMORY, (parts.weights, whole, f"{PLAN}.buffer_size"))


# Latencies


def first_token(parts: ServingParts) -> str:
    """Time from the arrival of a request to its first token: it waits, its prompt is computed, and sent on."""
    part = ForwardPass(parts, "first", Work(_INPUT, ONCE, f"{PLAN}.pipeline_size", ONCE))
    times = [_summed(parts, FIRST_PASS, _phases(part, part.prompt_attention(_INPUT)))]
    if parts.separate:
        times.append(_cache_transfer(parts))
    else:
        times.append(parts.repeated("first.step_wait", STEP, number(0.5)))
    if parts.plan.request_rate is not None:
        times += _queues(parts)
    elif parts.separate:
        flying = parts.product("serving.all_flying", BATCH, parts.replicas)
        times.append(parts.repeated("first.prefill_wait", "prefill_wait", flying))
    else:
        times.append(parts.add(STEP_PROMPTS, waits.step_prompts_wait, batch=BATCH, prompt_time=PROMPT,
                               **_requests(parts)))  # fmt: skip
    return parts.context.wiring.sum("serving.first_token_time", times)


def prompt_terms(parts: ServingParts) -> list[str]:
    """Times of a request before its first token that the ranks which decode spend on prompts."""
    if parts.separate:
        return []
    return [FIRST_PASS] if parts.plan.request_rate is not None else [FIRST_PASS, STEP_PROMPTS]


def _cache_transfer(parts: ServingParts) -> str:
    """Time to send the cache of a prompt to the ranks that decode."""
    name = "first.cache_transfer"
    size = parts.cache_of(f"{name}.size", parts.kept("first", _INPUT))
    return library_operation(parts.context, name, parts.groups["cache"], LIBRARY_ALGORITHMS["broadcast"], size)


def _queues(parts: ServingParts) -> list[str]:
    """Times that a request waits for a place among those in flight, and for the prompts before it."""
    variation = f"{PLAN}.length_variation"
    serves = parts.prefill_replicas if parts.separate else parts.replicas
    return [
        parts.add("first.slot_wait", waits.slot_wait, length_variation=variation, **_arrivals(parts)),
        parts.add("first.prompt_wait", waits.prompt_wait, request_rate=RATE, replica_count=serves,
                  prompt_time=PROMPT, length_variation=variation),
    ]  # fmt: skip
