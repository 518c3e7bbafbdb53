"""Terms of High Performance Linpack: its time, split into the update of the matrix and the rest."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np

from whatif import units
from whatif.core.context import Context
from whatif.core.message_simulation import each_point
from whatif.core.term import PhaseTerm, Reference
from whatif.errors import UsageError
from whatif.linpack.machine import CHOICES, RUN_DEVIATION, SEED, Plan, plan_of
from whatif.linpack.simulation.simulator import HPLOutcome, Progress, simulate
from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.quantities import Bytes, Core, Count, FloatArray, Seconds, model
from whatif.models.ranks import memory_fits

SOURCE = "every message of every step simulated; Cornebize et al. 2019"
_CORES: Final = "platform.node.cpu.core_count"
Parts = Annotated[FloatArray, units.SECOND, Core("part")]
Values = Annotated[FloatArray, units.ONE, Core("parameter")]


def gathered(*values: FloatArray) -> Values:
    """Values of parameters of any unit, joined along the trailing axis `parameter`."""
    return np.stack(np.broadcast_arrays(*values), axis=-1)


@model("T = T_update + T_rest", SOURCE)
def hpl_times(values: Values, rank_count: Count, ranks_per_node: Count, socket_count: Count, *, plan: Plan) -> Parts:
    """Run time of HPL as [..., part]: the mean over the processes of solving and multiplying in updates, and the rest.

    `values` [..., parameter] are those of `plan.parameters`, in base units. NaN where HPL would refuse the point.
    """

    def simulated(*point: Any) -> FloatArray:
        return parts_of(outcome_at(plan, tuple(point[0].tolist()), *(float(number) for number in point[1:])))

    return each_point(simulated, (1, 0, 0, 0), values, rank_count, ranks_per_node, socket_count, shape=(2,))


def parts_of(outcome: HPLOutcome) -> FloatArray:
    """Time of updates without swaps, and the rest."""
    working = float((outcome.components["update"] - outcome.components["row_swap"]).mean())
    return np.array([working, outcome.time - working])


@lru_cache(maxsize=64)
def outcome_at(
    plan: Plan, values: tuple[float, ...], rank_count: float, ranks_per_node: float, socket_count: float,
    panels_seen: int = 0,
) -> HPLOutcome:  # fmt: skip
    """Outcome of the run at one point. Raise `UsageError` for one that HPL would refuse."""
    return run_at(
        plan, dict(zip(plan.parameters, values, strict=True)), rank_count, ranks_per_node, socket_count, panels_seen
    )


def run_at(
    plan: Plan, values: Mapping[str, float], rank_count: float, ranks_per_node: float, socket_count: float,
    panels_seen: int = 0, progress: Progress | None = None,
) -> HPLOutcome:  # fmt: skip
    """Like `outcome_at`, with a callback for its progress."""
    configuration = plan.configuration(values)
    if not is_count(np.array([rank_count, ranks_per_node, socket_count]), most=MOST_RANKS).all():
        raise UsageError("application.rank_count and the ranks of a node must be whole numbers")
    if rank_count != configuration.rank_count:
        raise UsageError(
            f"P x Q = {configuration.rank_count:,} processes, but application.rank_count is {rank_count:,.0f}"
        )
    machine = plan.machine(values, int(rank_count), int(ranks_per_node), int(socket_count))
    seed, noisy = int(values[SEED]), plan.kernels_deviate
    if noisy and values.get(RUN_DEVIATION, 0.0) > 0:
        machine = machine.slowed(_factor_of_run(values[RUN_DEVIATION], seed))
    return simulate(
        configuration, machine, seed=seed, noisy=noisy, panels_seen=panels_seen, progress=progress,
        sampled=plan.samples(configuration),
    )  # fmt: skip


def _factor_of_run(deviation: float, seed: int) -> float:
    """Relative time of the kernels in one run: log-normal, with mean 1."""
    spread = math.log1p(deviation**2) ** 0.5
    return math.exp(spread * float(np.random.default_rng((seed, 1)).standard_normal()) - spread**2 / 2)


@model("8 N (N + 1) / nodes", "the matrix and the right-hand side in doubles, HPL 2.2")
def memory_per_node(matrix_size: Count, nodes_needed: Count) -> Bytes:
    """Bytes of the matrix on one node."""
    return 8 * matrix_size * (matrix_size + 1) / nodes_needed


@model("n_GPU V", "definition")
def device_memory_per_node(gpu_count: Count, memory_size: Bytes) -> Bytes:
    """Bytes of the memories of the GPUs of one node."""
    return gpu_count * memory_size


@model("DEPTH ≤ 1", "ROCm/rocHPL, HPL_pdgesv")
def one_panel_ahead(depth: Count) -> Count:
    """1 where HPL on GPUs looks so far ahead, else 0."""
    return np.asarray(depth <= 1, dtype=np.float64)


@model("T_update", SOURCE)
def update_part(times: Parts) -> Seconds:
    """Time of solving and multiplying in updates, mean over the processes."""
    return times[..., 0]


@model("T_rest = T - T_update", SOURCE)
def rest_part(times: Parts) -> Seconds:
    """The rest: panels, row swaps, broadcasts, waiting, and the back substitution."""
    return times[..., 1]


@model("p ≤ sockets · c", "definition: calibrated kernels ran with a core or more for each rank")
def ranks_fit_cores(ranks_per_node: Count, socket_count: Count, core_count: Count) -> Count:
    """1 where a node has a core for each of its ranks, else 0."""
    return np.asarray(ranks_per_node <= socket_count * core_count, dtype=np.float64)


def wire_hpl(context: Context) -> list[PhaseTerm]:
    """Phases of HPL, with their terms wired."""
    wiring = context.wiring
    application = context.scenario.application
    if application.runs_on is not None:
        wiring.refuse("application.runs_on", "no effect on HPL, which runs where `[platform.kernels]` was calibrated")
    numeric = {path: parameter for path, parameter in wiring.parameters.items() if parameter.field is not None}
    try:
        plan = plan_of(numeric, [getattr(application, name) for name in CHOICES])
    except UsageError as error:
        wiring.refuse("platform", str(error))
    _wire_memory(context, numeric)
    if plan.host is not None:
        wiring.require(
            "hpl.depth fits",
            "on GPUs HPL looks ahead one panel, or none (application.look_ahead_depth)",
            one_panel_ahead,
            {"depth": "application.look_ahead_depth"},
        )
    inputs: dict[str, Reference] = {
        "values": wiring.add("hpl.values", gathered, {path: path for path in plan.parameters}),
        "rank_count": context.placed_count,
        "ranks_per_node": context.ranks_per_node,
        "socket_count": "platform.node.socket_count",
    }
    if "dgemm" not in plan.uncalibrated and plan.host is None and _CORES in numeric:
        reason = "more ranks than cores of a node, on which no kernel was calibrated (application.ranks_per_node)"
        cores = {"ranks_per_node": context.ranks_per_node, "socket_count": inputs["socket_count"], "core_count": _CORES}
        wiring.require("hpl.ranks fit", reason, ranks_fit_cores, cores)
    note = "; ".join(plan.datasheet.in_words(plan.uncalibrated))
    times = wiring.add("hpl.times", hpl_times, inputs, options={"plan": plan}, note=note)
    update = wiring.add("hpl.update", update_part, {"times": times})
    rest = wiring.add("hpl.rest", rest_part, {"times": times})
    return [PhaseTerm("hpl.update", update, "kernel"), PhaseTerm("hpl.rest", rest, "communication")]


def memory_of(application: Any, parameters: Container[str]) -> tuple[str, ...]:
    """Parameters whose product is the memory of a node for the matrix; empty if the platform does not state it."""
    on_device = ("platform.node.gpu_count", "platform.node.gpu.memory_size")
    if application.matrix_on == "device" and all(path in parameters for path in on_device):
        return on_device
    host = "platform.node.host.memory_size"
    return (host,) if host in parameters else ()


def _wire_memory(context: Context, parameters: Container[str]) -> None:
    """Require that the matrix fits the memory that is to hold it."""
    wiring, memory = context.wiring, memory_of(context.scenario.application, parameters)
    if not memory:
        return
    needed: dict[str, Reference] = {"matrix_size": "application.matrix_size", "nodes_needed": context.nodes_needed}
    size = wiring.add("hpl.memory_size", memory_per_node, needed)
    available: Reference = memory[-1]
    if len(memory) > 1:
        parts: dict[str, Reference] = {"gpu_count": memory[0], "memory_size": memory[1]}
        available = wiring.add("hpl.device_memory_size", device_memory_per_node, parts)
    wiring.require(
        "hpl.memory_size fits",
        f"the matrix does not fit the memory of its nodes ({' x '.join(memory)})",
        memory_fits,
        {"needed_size": size, "available_size": available},
    )
