"""Collectives of a library of GPUs with the measured parameters of a platform, where it has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.term import Reference, parameters_in, signature
from whatif.models.library_steps import (
    by_domain_count,
    chosen_allreduce_time,
    library_steps_time,
    long_tree_time,
    short_tree_time,
)
from whatif.models.library_tuner import tuner_choice
from whatif.models.ranks import memory_fits
from whatif.schema.network_collectives import LibraryParameters
from whatif.vocabulary import PROTOCOLS

SCALES: Final = ("in_domain", "between_domains")
_TABLES: Final[Mapping[str, str]] = {
    "ring": "ring",
    "ring_allgather": "ring",
    "ring_reduce_scatter": "ring",
    "pairwise": "pairwise",
    "hierarchical": "switch",
}
"""Tables of `[network.collectives.between_domains]` by algorithm."""
Inputs = Mapping[str, Reference]


def measured_operation(
    context: Context, name: str, algorithm: str, inputs: Inputs, datasheet: Callable[[str], str]
) -> str | None:
    """Time of an operation from measured parameters; a scale without them follows from `datasheet`.

    None if the platform has no parameters for the algorithm.
    """
    times = {scale: _at_scale(context, name, scale, algorithm, inputs) for scale in SCALES}
    if not any(times.values()):
        return None
    other = "" if all(times.values()) else datasheet(f"{name}.datasheet_time")
    ends: dict[str, Reference] = {f"{scale}_time": time or other for scale, time in times.items()}
    return context.wiring.add(
        f"{name}.operation_time", by_domain_count, {**ends, "domain_count": inputs["domain_count"]}
    )


def _at_scale(context: Context, name: str, scale: str, algorithm: str, inputs: Inputs) -> str | None:
    """Time at one scale; None without parameters."""
    platform = context.scenario.platform
    reduces = platform.node.switch_reduction
    known: LibraryParameters | None = getattr(platform.network.collectives, scale, None)
    if known is None:
        return None
    if algorithm == "best":
        if not reduces and scale == "between_domains" and known.ring is not None and known.tree is not None:
            return _tuned(context, name, scale, inputs)
        algorithm = "hierarchical" if reduces else "ring"
    table = _TABLES.get(algorithm)
    return _steps(context, name, scale, algorithm, inputs) if table and getattr(known, table) is not None else None


def _steps(context: Context, name: str, scale: str, algorithm: str, inputs: Inputs) -> str:
    """Time of messages in turn, by the protocol of their size."""
    table = f"platform.network.collectives.{scale}.{_TABLES[algorithm]}"
    limits = {"needed_size": f"{table}.short_limit", "available_size": f"{table}.eager_limit"}
    context.wiring.require(
        f"{name}.{scale}.limits agree", f"{table}: short_limit exceeds eager_limit", memory_fits, {**limits}
    )
    stated = parameters_in(table, "short_limit", "eager_limit", "bandwidth_share")
    stated |= {f"{protocol}_{key}": f"{table}.{protocol}.{key}" for protocol in PROTOCOLS for key in ("start", "gap")}
    return _add(
        context, f"{name}.{scale}.{algorithm}_time", library_steps_time, {**inputs, **stated}, algorithm=algorithm
    )


def _tuned(context: Context, name: str, scale: str, inputs: Inputs) -> str:
    """Time of an allreduce by ring or tree, as the library's tuner chooses."""
    table = f"platform.network.collectives.{scale}"
    of_tree = parameters_in(f"{table}.tree", "start", "gap", "bandwidth")
    of_ring = {f"rendezvous_{key}": f"{table}.ring.rendezvous.{key}" for key in ("start", "gap")}
    of_ring |= {"bandwidth_share": f"{table}.ring.bandwidth_share"}
    times: dict[str, Reference] = {
        "choice": _add(context, f"{name}.tuner_choice", tuner_choice, inputs),
        "ring_time": _steps(context, name, scale, "ring", inputs),
        "short_tree_time": _add(context, f"{name}.short_tree_time", short_tree_time, {**inputs, **of_tree}),
        "long_tree_time": _add(context, f"{name}.long_tree_time", long_tree_time, {**inputs, **of_ring}),
    }
    return context.wiring.add(f"{name}.{scale}.allreduce_time", chosen_allreduce_time, times)


def _add(context: Context, name: str, function: Callable[..., Any], inputs: Inputs, **options: str) -> str:
    """Add a term with those of the inputs that its function has."""
    used = {key: inputs[key] for key in signature(function).parameters if key in inputs}
    return context.wiring.add(name, function, used, options=options)
