"""Remarks on ranks that share a GPU, and on kernels on sockets: unused parts of a GPU profile, and assumptions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import GPU, NODE, RANK_COUNT
from whatif.core.socket_share import CACHE, CORE_REUSE, CORES, PRECISIONS, THREADS
from whatif.core.term import Program
from whatif.models.quantities import FloatArray
from whatif.schema.application import TransferPhase
from whatif.schema.kernel_phase import KernelPhase
from whatif.units import counted

_SOCKETS: Final = f"{NODE}.socket_count"
_SHARED: Final = "placement.ranks_on_gpu"
_RANKS: Final = "placement.ranks_per_node"


def kernel_notes(program: Program) -> Iterator[str]:
    """Remarks on ranks and kernels on the sockets of a node, and on values of kernels without effect."""
    scenario = program.loaded.scenario
    phases = scenario.application.phases
    kernels = {name: phase for name, phase in phases.items() if isinstance(phase, KernelPhase)}
    if not scenario.on_gpus:
        yield from _socket_notes(program, kernels)
    yield from _unused(kernels)
    cache = _cache_values(program)
    if (reused := [name for name, phase in kernels.items() if phase.working_set is not None]) and cache:
        yield f"the working_set of {', '.join(reused)} has no effect: the platform does not state {', '.join(cache)}"


def _socket_notes(program: Program, kernels: Mapping[str, KernelPhase]) -> Iterator[str]:
    """Remarks on the ranks of a node, and on kernels on its sockets."""
    scenario = program.loaded.scenario
    if _RANKS in program.terms:
        share = "each core" if THREADS not in program.parameters else f"each `{THREADS}` cores"
        yield f"a rank for {share} of a node, as application.ranks_per_node is not stated"
        yield from _partly_filled(program)
    yield from _shared_cores(program)
    if not scenario.kernels_on_sockets:
        return
    assert scenario.kernel_device is not None
    yield f"kernels run on {scenario.kernel_device.name}: a rank has the rate and the memory bandwidth of its cores"
    copies = [name for name, phase in scenario.application.phases.items() if isinstance(phase, TransferPhase)]
    if copies:
        yield f"no time for {', '.join(copies)}: the data of kernels on sockets is in the memory of the host"
    if kernels:
        yield f"assumed of kernels on processors: {', '.join(_assumptions(kernels.values()))}"
    again = [name for name, phase in kernels.items() if phase.load_store_size is not None]
    if again and CORE_REUSE not in program.parameters:
        yield f"the load_store_size of {', '.join(again)} has no effect: the platform does not state {CORE_REUSE}"


def sharing_notes(program: Program, arrays: Mapping[str, FloatArray]) -> Iterator[str]:
    """Remark on ranks that share a GPU at some point of a grid; empty if none do."""
    if _SHARED not in program.terms or np.all(evaluate(program.part([_SHARED]), arrays).values[_SHARED] <= 1):
        return
    application = program.loaded.scenario.application
    if application.gpu_sharing == "time_slices":
        yield "ranks share a GPU in time slices: it switches to the next one where a rank waits (docs/devices.md)"
    else:
        stated = "gpu_sharing" in application.model_fields_set
        assumed = "" if stated else " (assumed: application.gpu_sharing is not stated)"
        yield f"kernels of ranks that share a GPU run at the same time, as under MPS{assumed}"


def _shared_cores(program: Program) -> Iterator[str]:
    """Warning of more ranks on a node than its cores can take; none without stated numbers."""
    stated = {path: item.value for path, item in program.parameters.items() if isinstance(item.value, float)}
    wanted = ("application.ranks_per_node", RANK_COUNT, _SOCKETS, CORES)
    if any(path not in stated for path in wanted):
        return
    ranks_per_node, rank_count, sockets, cores = (stated[path] for path in wanted)
    taken = min(ranks_per_node, rank_count) * stated.get(THREADS, 1.0)
    if taken > sockets * cores:
        yield f"warning: ranks take {taken:,.0f} cores of a node, which has {sockets * cores:,.0f}: they share cores"


def _partly_filled(program: Program) -> Iterator[str]:
    """Remark on ranks that do not fill a node."""
    values = evaluate(program.part([_RANKS, RANK_COUNT])).values
    ranks, full = (float(np.max(values[name])) for name in (RANK_COUNT, _RANKS))
    if ranks < full:
        few = counted(int(ranks), "rank")
        yield (
            f"{few} on the first cores of a node, which has room for {full:.0f}: "
            f"with application.ranks_per_node = {ranks:.0f} they share all its cores"
        )


def _assumptions(phases: Collection[KernelPhase]) -> Iterator[str]:
    precisions = sorted({PRECISIONS[phase.dominant_operation] for phase in phases})
    yield f"operations at the {' and '.join(precisions)}-precision peak"
    yield "no limit by other instructions or shared memory"
    if any(phase.model == "roofline_l2" for phase in phases):
        yield "no limit by the L2 cache"
    if any(phase.measured_factor is not None for phase in phases):
        yield "no measured_factor"
    if any(phase.launch_time is not None for phase in phases):
        yield "no launch_time"
    if any(phase.roof_exponent is not None for phase in phases):
        yield "the highest roof alone"
    if any(phase.block_count is not None for phase in phases):
        yield "work that fills the cores"


def _cache_values(program: Program) -> list[str]:
    """Values without which a `working_set` has no effect, as far as the platform does not state them."""
    wanted = (f"{GPU}.l2_capacity",) if program.loaded.scenario.on_gpus else CACHE
    return [path for path in wanted if path not in program.parameters]


def _unused(kernels: Mapping[str, KernelPhase]) -> Iterator[str]:
    """Remarks on the growth of kernels whose metrics do not need it."""
    for name, phase in kernels.items():
        if phase.follows != "nothing" and phase.metrics_per in ("cell", "rank"):
            yield f"the follows of {name} has no effect: its metrics are those of a {phase.metrics_per} (`metrics_per`)"
