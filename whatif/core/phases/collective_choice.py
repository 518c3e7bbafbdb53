"""Algorithms of a collective phase: the one that it names, or all of its operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from whatif.axes import first_number
from whatif.core.context import Context
from whatif.core.evaluate import Values
from whatif.core.term import Program, Term
from whatif.models.collectives import fastest_time
from whatif.schema.collective_phase import CollectivePhase
from whatif.simulation.collective_stages import NESTED
from whatif.vocabulary import IN_NETWORK, LIBRARY_ALGORITHMS, MESSAGE_ALGORITHMS, CollectiveOperation

_UNEVEN: Final = MESSAGE_ALGORITHMS["alltoall"]
Algorithms = Mapping[CollectiveOperation, tuple[str, ...]]


def chosen_algorithms(context: Context, name: str, phase: CollectivePhase) -> tuple[str, ...]:
    """Algorithms whose fastest one counts; an algorithm that does not fit the phase is a problem of the files."""
    offered: Algorithms = LIBRARY_ALGORITHMS if phase.model == "nccl" else MESSAGE_ALGORITHMS
    key, reason = _problem(phase, offered)
    chosen: tuple[str, ...] = ()
    if not reason and phase.algorithm == "best":
        known = offered[phase.operation or "allreduce"]
        chosen = tuple(one for one in known if phase.model == "nccl" or not _obstacle(context, phase, one))
        reason = f"`best` is not simulated: name one of {', '.join(chosen)}" if context.is_simulated else ""
    elif not reason:
        chosen, reason = (phase.algorithm,), _obstacle(context, phase, phase.algorithm)
    if not reason and phase.imbalance != 1 and chosen[0] not in _UNEVEN:
        key, reason = "imbalance", f"applies to an all-to-all only, not to `{chosen[0]}`"
    if not reason and phase.distance is not None and phase.channel_count is not None:
        key, reason = "channel_count", "not used with `distance`"
    if reason:
        context.wiring.refuse(f"application.phases.{name}.{key}", reason)
    return chosen


def taken_algorithm(program: Program, values: Values, name: str, phase: CollectivePhase) -> tuple[str, str]:
    """Beginning of the names of the terms of the fastest algorithm of a phase at one point, and the algorithm."""
    times = compared_times(program.terms, name)
    if not times:
        return name, phase.algorithm
    fastest = min(times, key=lambda algorithm: first_number(values[times[algorithm]]))
    return fastest, fastest.removeprefix(f"{name}.")


def compared_times(terms: Mapping[str, Term], name: str) -> dict[str, str]:
    """Terms of the times that decide which algorithm of a phase is the fastest, with congestion if there is any.

    They are by the beginning of the names of the terms of each algorithm; empty for a phase with one algorithm.
    """
    found = terms.get(f"{name}.fastest_congested_time") or terms.get(f"{name}.operation_time")
    if found is None or found.function is not fastest_time:
        return {}
    return {time.rpartition(".")[0]: time for time in found.inputs}


def _problem(phase: CollectivePhase, offered: Algorithms) -> tuple[str, str]:
    """Key and reason of an algorithm that the model, or the stated operation, does not have."""
    of_model = [one for names in offered.values() for one in names]
    if phase.operation is not None and phase.operation not in offered:
        return "operation", f"`{phase.model}` has no `{phase.operation}`; it has {', '.join(offered)}"
    if phase.algorithm == "best":
        return "algorithm", ""
    if phase.algorithm not in of_model:
        known = f"it has {', '.join(dict.fromkeys(of_model))}"
        other = "" if phase.model == "nccl" else '; state `model = "nccl"`'
        return "algorithm", f"`{phase.model}` has no `{phase.algorithm}`{other}; {known}"
    if phase.operation is not None and phase.algorithm not in offered[phase.operation]:
        own = next(operation for operation, names in offered.items() if phase.algorithm in names)
        known = ", ".join(offered[phase.operation])
        return "algorithm", f"`{phase.algorithm}` is of {own}; {phase.operation} has {known}"
    return "algorithm", ""


def _obstacle(context: Context, phase: CollectivePhase, algorithm: str) -> str:
    """Reason why an algorithm cannot be computed for the messages of a phase; empty if it can."""
    platform = context.scenario.platform
    if phase.model == "nccl":
        return ""
    if algorithm in NESTED and phase.distance is not None:
        return f"`{algorithm}` follows the placement of the ranks: leave out `distance`"
    if algorithm in IN_NETWORK and not platform.network.switch_reduction:
        return f"`{algorithm}`: {platform.name} does not state `[network] switch_reduction = true`"
    if algorithm in IN_NETWORK and context.is_simulated:
        return f"`{algorithm}` has a closed form and cannot be simulated"
    return ""
