"""Sockets: cores, peak rates and memory bandwidth of one rank, where kernels run on processors."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

from whatif.core.context import Context
from whatif.core.parameter_paths import CPU, NODE
from whatif.core.term import Reference, parameters_in
from whatif.models.ranks import ranks_per_socket, sharing_count
from whatif.models.reductions import reduced_set
from whatif.models.sockets import (
    active_bandwidth,
    active_cores,
    cached_bandwidth,
    clocked_rate,
    core_rate,
    domain_bandwidth,
    domain_cores,
    domain_count,
    doubled_rate,
    near_bandwidth,
    rank_bandwidth,
    rank_cores,
    reusing_bandwidth,
    sustained_bandwidth,
    threaded_cores,
    typical_core_bandwidth,
)
from whatif.schema.kernel_phase import KernelPhase
from whatif.units import ONE, Quantity

HOST_BANDWIDTH: Final = f"{NODE}.host.memory_bandwidth"
THREADS: Final = "application.threads_per_rank"
CORES: Final = f"{CPU}.core_count"
DOMAINS: Final = f"{CPU}.numa_domain_count"
CACHE: Final = (f"{CPU}.cache_size", f"{CPU}.cache_bandwidth")
"""Parameters of the last-level cache; without them a `working_set` has no effect."""
PRECISIONS: Final = {"fp_64": "double", "fp_32": "single", "integer": "single"}
"""Peak that the dominant operation of a kernel is charged at; lanes of vectors hold integers as single precision."""
CORE_REUSE: Final = f"{CPU}.core_reuse_bandwidth"
CACHE_REUSE: Final = f"{CPU}.cache_reuse_bandwidth"
RANK_BANDWIDTH: Final = "node.rank_bandwidth"
"""Term of the memory bandwidth of one rank."""


def cores_term(parameters: Container[str]) -> str:
    """Name of the term of the cores that one rank uses."""
    return "placement.rank_threads" if THREADS in parameters else "placement.rank_cores"


def core_rate_term(precision: str) -> str:
    """Name of the term of the peak rate of one core."""
    return f"node.core_{precision}_rate"


def cores_of_rank(context: Context) -> str:
    """Cores that one rank uses."""
    inputs: dict[str, Reference] = {"core_count": CORES, "socket_count": f"{NODE}.socket_count"}
    found = context.once("placement.rank_cores", rank_cores, **inputs, ranks_per_node=context.ranks_per_node)
    if THREADS not in context.wiring.parameters:
        return found
    return context.once("placement.rank_threads", threaded_cores, core_count=found, threads_per_rank=THREADS)


def one_core_of_rank(context: Context) -> str:
    """The core that a rank calls its library with; less than one where ranks take turns."""
    one = Quantity(1.0, ONE)
    cores = {"core_count": cores_of_rank(context)}
    return context.once("placement.reducing_cores", threaded_cores, **cores, threads_per_rank=one)


class Active(NamedTuple):
    """Cores of a rank that load and store at the same time as those of the others."""

    cores: Callable[[Context], str]
    """Term of the cores of a rank."""
    term: str
    """Name of the term of those of a NUMA domain."""


RANKS: Final = Active(cores_of_rank, "placement.active_cores")
REDUCING: Final = Active(one_core_of_rank, "placement.active_reducing_cores")


def rate_of_core(context: Context, precision: str) -> str:
    """Peak rate of one core, at the sustained clock where it is stated."""
    known, clocked = context.wiring.parameters, {"sustained_clock": f"{CPU}.sustained_clock"}
    cycle, term = f"{CPU}.{precision}_operations_per_cycle", core_rate_term(precision)
    if {cycle, *clocked.values()} <= known.keys():
        return context.once(term, clocked_rate, **clocked, operations_per_cycle=cycle)
    peak = f"{CPU}.peak_{precision}_rate"
    if peak not in known:
        return context.once(term, doubled_rate, double_rate=rate_of_core(context, "double"))
    return context.once(term, core_rate, peak_rate=peak, core_count=CORES)


def bandwidth_of_rank(context: Context, kernel: str | None = None) -> str:
    """Memory bandwidth of one rank: the share of its cores among the active ones of their NUMA domain.

    `kernel` names one that loads data again from the caches of its core (`load_store_size`).
    """
    core = _core_bandwidth(context, _memory_bandwidth(context))
    if kernel is None:
        return _share(context, RANKS, core, "node.active_bandwidth", RANK_BANDWIDTH)
    core = _reusing(context, kernel, "core_bandwidth", core, CORE_REUSE)
    return _share(context, RANKS, core, f"{kernel}.active_bandwidth", f"{kernel}.memory_bandwidth")


def bandwidth_of_reduction(context: Context, phase: str, message_size: Reference) -> str:
    """Memory bandwidth of the one core with which a rank combines data, while all ranks of its node do.

    That of its own cache, or of its share of the last-level cache, where a buffer of `message_size` and as much that is
    received fit it.
    """
    core = _core_bandwidth(context, _memory_bandwidth(context))
    found = _share(context, REDUCING, core, "node.reducing_active_bandwidth", "node.reducing_bandwidth")
    working_set = context.once(f"{phase}.reduced_set", reduced_set, message_size=message_size)
    if has_cache(context.wiring.parameters):
        found = _cached(context, REDUCING, f"{phase}.cached_bandwidth", found, working_set, CACHE[1])
    inputs = {"working_set": working_set, "core_bandwidth": core, "rank_core_count": one_core_of_rank(context)}
    return context.wiring.add(f"{phase}.reducing_bandwidth", near_bandwidth, {"rank_bandwidth": found, **inputs})


def _share(context: Context, active: Active, core_bandwidth: str, all_of_them: str, share: str) -> str:
    """Share of a rank in the memory bandwidth of the active cores of its NUMA domain; the last two name terms."""
    socket, count = _memory_bandwidth(context), _active_cores(context, active)
    domain = {"memory_bandwidth": socket, "numa_domain_count": DOMAINS}
    limits: dict[str, Reference] = {
        "core_bandwidth": core_bandwidth,
        "memory_bandwidth": context.once("node.numa_domain_bandwidth", domain_bandwidth, **domain),
    }
    counts: dict[str, Reference] = {"active_count": count, "core_count": _domain_cores(context)}
    shared = context.once(all_of_them, active_bandwidth, **counts, **limits)
    inputs = {"active_bandwidth": shared, "active_count": count, "rank_core_count": active.cores(context)}
    return context.once(share, rank_bandwidth, **inputs)


def bandwidth_of_kernel(context: Context, name: str, phase: KernelPhase) -> str:
    """Bandwidth of one rank for a kernel: that of the last-level cache, where its working set is stated and fits."""
    known = context.wiring.parameters
    memory = bandwidth_of_rank(context, name if phase.load_store_size is not None and CORE_REUSE in known else None)
    if phase.working_set is None or not has_cache(known):
        return memory
    cache = CACHE[1]
    if phase.load_store_size is not None and CACHE_REUSE in known:
        cache = _reusing(context, name, "cache_bandwidth", cache, CACHE_REUSE)
    working_set = f"application.phases.{name}.working_set"
    return _cached(context, RANKS, f"{name}.bandwidth", memory, working_set, cache)


def _cached(
    context: Context, active: Active, term: str, memory: str, working_set: Reference, cache_bandwidth: str
) -> str:
    """Term of the bandwidth of a rank whose working set may fit its share of the last-level caches."""
    inputs: dict[str, Reference] = {
        "rank_bandwidth": memory,
        "working_set": working_set,
        "cache_size": CACHE[0],
        "cache_bandwidth": cache_bandwidth,
        "core_count": CORES,
        "numa_domain_count": DOMAINS,
        "active_count": _active_cores(context, active),
        "rank_core_count": active.cores(context),
    }
    return context.wiring.add(term, cached_bandwidth, inputs)


def _reusing(context: Context, name: str, bandwidth: str, full: str, reuse: str) -> str:
    """Term of a bandwidth for a kernel that loads data again from the first caches."""
    path = f"application.phases.{name}"
    sizes = parameters_in(path, "dram_size", "load_store_size")
    inputs: dict[str, Reference] = {"bandwidth": full, **sizes, "reuse_bandwidth": reuse}
    return context.wiring.add(f"{name}.{bandwidth}", reusing_bandwidth, inputs)


def missing_bandwidth(parameters: Container[str]) -> str:
    """Table or value of the platform without which the memory bandwidth of a core is unknown; empty if it is known."""
    if CORES not in parameters:
        return CPU
    stated = f"{CPU}.memory_bandwidth"
    return "" if stated in parameters or HOST_BANDWIDTH in parameters else stated


def has_cache(parameters: Container[str]) -> bool:
    """Whether a platform states size and bandwidth of the last-level cache."""
    return all(path in parameters for path in CACHE)


def _domain_cores(context: Context) -> str:
    return context.once("node.numa_domain_cores", domain_cores, core_count=CORES, numa_domain_count=DOMAINS)


def _active_cores(context: Context, active: Active) -> str:
    """Active cores of the fullest NUMA domain."""
    sockets = f"{NODE}.socket_count"
    domains = context.once("node.numa_domain_count", domain_count, socket_count=sockets, numa_domain_count=DOMAINS)
    inputs = {"ranks_per_node": context.ranks_per_node, "socket_count": domains}
    full = context.once("placement.ranks_per_numa_domain", ranks_per_socket, **inputs)
    counted = {"rank_count": context.rank_count, "available_count": full}
    sharing = context.once("placement.numa_sharing_count", sharing_count, **counted)
    shared = {"core_count": _domain_cores(context), "sharing_count": sharing}
    return context.once(active.term, active_cores, **shared, rank_core_count=active.cores(context))


def _memory_bandwidth(context: Context) -> str:
    """Sustained memory bandwidth of one socket."""
    stated = f"{CPU}.memory_bandwidth"
    if stated in context.wiring.parameters:
        return stated
    if HOST_BANDWIDTH not in context.wiring.parameters:
        peak = HOST_BANDWIDTH.removeprefix("platform.")
        context.wiring.refuse(
            stated, f"missing: the sustained bandwidth of a socket (STREAM); or state its peak, {peak}"
        )
    inputs = {"memory_bandwidth": HOST_BANDWIDTH, "sustained_fraction": f"{CPU}.sustained_fraction"}
    return context.once("node.memory_bandwidth", sustained_bandwidth, **inputs)


def _core_bandwidth(context: Context, memory: str) -> str:
    """Memory bandwidth of one core."""
    stated = f"{CPU}.core_bandwidth"
    if stated in context.wiring.parameters:
        return stated
    inputs = {"memory_bandwidth": memory, "core_fraction": f"{CPU}.core_fraction", "core_count": CORES}
    return context.once("node.core_bandwidth", typical_core_bandwidth, **inputs)
