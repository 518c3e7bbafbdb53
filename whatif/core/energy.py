"""Power, energy, cost and carbon of a run; where the platform lacks values for them, the missing parameters."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from whatif.core.context import Context
from whatif.core.parameter_paths import CPU, GPU, NODE, NODE_COUNT
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.core.wiring import Wiring
from whatif.models.cost import capital_cost, energy_cost, node_price, node_time, owned_cost, rent_cost, total_cost
from whatif.models.power import (
    busy_power,
    busy_time,
    capped_clock,
    capped_power,
    capped_rate,
    devices_in_use,
    devices_power,
    exceeds_idle,
    iteration_energy,
    mean_power,
    summed_power,
    total_carbon,
    total_energy,
)
from whatif.models.sockets import socket_ranks
from whatif.schema.price import AMOUNTS, currencies, mixed_currencies
from whatif.units import JOULE, SECOND

PRICE: Final = "platform.price"
SITE: Final = "platform.site"
PUE: Final = f"{SITE}.power_usage_effectiveness"
INTENSITY: Final = f"{SITE}.carbon_intensity"
CAP: Final = f"{GPU}.power_cap"
ENERGIES: Final = ("iteration_energy", "total_energy", "mean_power")
NODE_CAPITAL: Final = "node.price"
BUSY_POWER: Final = "node.busy_power"
CLOCK: Final = "node.clock_fraction"
OWNED_COST: Final = "node.owned_cost"
"""Terms for budgets and validation: a node's capital, its power while kernels run, the share of its clock at which a
capped GPU runs, a node's cost over its lifetime."""
_CURVE: Final = ("power_exponent", "voltage_floor")
"""Power of a device by its clock."""

Columns = dict[str, str]
Missing = dict[str, tuple[str, ...]]


def gpu_rate(context: Context, key: str) -> str:
    """Peak rate of the GPU, lowered by its power cap if it has one; the memory bandwidth stays the same."""
    wiring, rate = context.wiring, f"{GPU}.{key}"
    if CAP not in wiring.parameters or key.endswith("_bandwidth"):
        return rate
    clock: dict[str, Reference] = {"clock_fraction": _clock(context)}
    return context.once(f"node.capped_{key}", capped_rate, **clock, peak_rate=rate)


def _clock(context: Context) -> str:
    """Share of its full clock at which a capped GPU runs."""
    wiring = context.wiring
    if CLOCK in wiring.terms:
        return CLOCK
    lacking = _lacking(wiring, f"{GPU}.idle_power", f"{GPU}.dynamic_power")
    if lacking:
        wiring.refuse(CAP, f"a power cap needs {' and '.join(lacking)}")
    powers: dict[str, Reference] = {"power_cap": CAP, "idle_power": f"{GPU}.idle_power"}
    reason = f"the power cap leaves nothing to compute with ({CAP} is not above idle_power)"
    wiring.require("node.power_cap fits", reason, exceeds_idle, powers)
    return wiring.add(CLOCK, capped_clock, powers | parameters_in(GPU, "dynamic_power", *_CURVE))


def wire_energy(context: Context, phases: Sequence[PhaseTerm], times: Mapping[str, str]) -> tuple[Columns, Missing]:
    """Terms of energy, carbon and cost by column, and the missing parameters of columns that cannot be computed."""
    _refuse_cap(context, phases)
    columns: Columns = {}
    missing: Missing = {}
    lacking = _lacking(context.wiring, *_power_parameters(context))
    if lacking:
        missing |= dict.fromkeys(ENERGIES, lacking)
        missing["total_carbon"] = lacking + _lacking(context.wiring, INTENSITY)
    else:
        columns |= _energies(context, phases, times)
        columns |= _carbon(context.wiring, columns, missing)
    columns |= _cost(context, columns, times, missing)
    return columns, missing


def _lacking(wiring: Wiring, *parameters: str) -> tuple[str, ...]:
    return tuple(path for path in parameters if path not in wiring.parameters)


def _refuse_cap(context: Context, phases: Sequence[PhaseTerm]) -> None:
    """Refuse a cap that does not slow down all kernels: energies under it would be too small."""
    application = context.scenario.application
    if CAP not in context.wiring.parameters or not context.on_gpus:
        return
    stated, kernels = application.phases, [phase for phase in phases if phase.category == "kernel"]
    for phase in [] if application.kernels_follow_rates else kernels:
        kernel = stated.get(phase.phase)
        if (
            kernel is None
            or kernel.kind not in ("kernel", "measured_kernel", "gemm")
            or getattr(kernel, "bound", "") == "nothing"
        ):
            context.wiring.problem(CAP, f"the time of `{phase.phase}` was measured and does not follow a power cap")
    context.wiring.raise_problems()
    _clock(context)


def _idle_parameters(context: Context) -> dict[str, str]:
    """Idle power of each kind of device of a node, with the parameter that counts the devices."""
    node = context.scenario.platform.node
    kinds = ((GPU, node.gpu, "gpu_count"), (CPU, node.cpu, "socket_count"))
    return {f"{table}.idle_power": f"{NODE}.{count}" for table, device, count in kinds if device is not None}


def _power_parameters(context: Context) -> list[str]:
    """Parameters that the energy of a run needs."""
    device = GPU if context.on_gpus else CPU
    return [*_idle_parameters(context), f"{device}.dynamic_power", f"{NODE}.host.power"]


def _idle_power(context: Context) -> str:
    """Idle power of one node."""
    wiring = context.wiring
    parts = [f"{NODE}.host.power", f"{NODE}.network_power"]
    for idle, count in _idle_parameters(context).items():
        inputs: dict[str, Reference] = {"device_count": count, "device_power": idle}
        parts.append(wiring.add(f"node.idle_{idle.split('.')[-2]}_power", devices_power, inputs))
    return wiring.add("node.idle_power", summed_power, {part: part for part in parts})


def _dynamic_power(context: Context) -> str:
    """Power that a kernel adds on one device, under its cap if it has one."""
    power = f"{GPU if context.on_gpus else CPU}.dynamic_power"
    if CAP not in context.wiring.parameters or not context.on_gpus:
        return power
    inputs: dict[str, Reference] = {"clock_fraction": _clock(context), "dynamic_power": power}
    return context.wiring.add("node.capped_dynamic_power", capped_power, inputs | parameters_in(GPU, *_CURVE))


def _devices(context: Context) -> str:
    """Number of devices of all nodes that run kernels."""
    count = f"{NODE}.{'gpu_count' if context.on_gpus else 'socket_count'}"
    inputs: dict[str, Reference] = {
        "rank_count": context.rank_count,
        "ranks_per_node": context.ranks_per_node,
        "ranks_per_device": context.ranks_per_device if context.on_gpus else _socket_ranks(context, count),
        "device_count": count,
    }
    choice = {"mapping": context.mapping}
    return context.wiring.add("placement.devices_in_use", devices_in_use, inputs, options=choice)


def _socket_ranks(context: Context, socket_count: str) -> str:
    """Ranks that keep one socket of a full node busy."""
    inputs: dict[str, Reference] = {"ranks_per_node": context.ranks_per_node, "socket_count": socket_count}
    return context.wiring.add("placement.socket_ranks", socket_ranks, inputs)


def _busy(context: Context, phases: Sequence[PhaseTerm]) -> str:
    """Time in which kernels run; overlapping kernels are counted once."""
    wiring = context.wiring
    kernels = {phase.phase: phase.term for phase in phases if phase.category == "kernel"}
    both = [
        f"overlap.{name}"
        for name, overlap in context.scenario.application.overlaps.items()
        if kernels.keys() >= set(overlap.phases)
    ]
    hidden = wiring.sum("iteration.overlapping_kernels", both)
    inputs: dict[str, Reference] = {"kernel_time": "iteration.kernel_time", "hidden_time": hidden}
    return wiring.add("iteration.busy_time", busy_time, inputs)


def _energies(context: Context, phases: Sequence[PhaseTerm], times: Mapping[str, str]) -> Columns:
    wiring = context.wiring
    idle = _idle_power(context)
    nodes: dict[str, Reference] = {"nodes_needed": context.nodes_needed, "idle_power": idle}
    nodes["power_usage_effectiveness"] = PUE
    used: dict[str, Reference] = {"device_count": _devices(context), "dynamic_power": _dynamic_power(context)}
    wiring.add(BUSY_POWER, busy_power, nodes | used)
    busy: dict[str, Reference] = {"iteration_time": times["iteration_time"], "busy_time": _busy(context, phases)}
    once = wiring.add("iteration.energy", iteration_energy, nodes | used | busy)
    run: dict[str, Reference] = {"iteration_energy": once, "setup_time": times["setup_time"]}
    run["iteration_count"] = "application.iteration_count"
    total = wiring.add("total.energy", total_energy, nodes | run)
    of_run: dict[str, Reference] = {"total_energy": total, "total_time": times["total_time"]}
    return {
        "iteration_energy": once,
        "total_energy": total,
        "mean_power": wiring.add("total.power", mean_power, of_run),
    }


def _carbon(wiring: Wiring, columns: Columns, missing: Missing) -> Columns:
    if lacking := _lacking(wiring, INTENSITY):
        missing["total_carbon"] = lacking
        return {}
    inputs: dict[str, Reference] = {"total_energy": columns["total_energy"], "carbon_intensity": INTENSITY}
    return {"total_carbon": wiring.add("total.carbon", total_carbon, inputs)}


def _cost(context: Context, columns: Columns, times: Mapping[str, str], missing: Missing) -> Columns:
    """Cost: rent, or a share of the capital, and energy. Rent includes energy where no price of energy is stated."""
    wiring = context.wiring
    _wire_capital(wiring)
    rented = f"{PRICE}.node_rate" in wiring.parameters
    is_paid = not rented or f"{PRICE}.energy_price" in wiring.parameters
    lacking = () if rented else _lacking_capital(wiring)
    if is_paid:
        lacking += _lacking(wiring, f"{PRICE}.energy_price") + missing.get("total_energy", ())
    if lacking:
        missing["total_cost"] = lacking
        return {}
    _one_currency(wiring)
    inputs: dict[str, Reference] = {"nodes_needed": context.nodes_needed, "total_time": times["total_time"]}
    nodes = wiring.add("total.node_time", node_time, inputs)
    costs = [_rent(wiring, nodes) if rented else _capital(wiring, nodes)]
    if is_paid:
        paid: dict[str, Reference] = {"total_energy": columns["total_energy"], "energy_price": f"{PRICE}.energy_price"}
        currency = wiring.dimension(f"{PRICE}.energy_price") * JOULE
        costs.append(wiring.add("total.energy_cost", energy_cost, paid, dimension=currency))
    total = wiring.add("total.cost", total_cost, {cost: cost for cost in costs}, dimension=wiring.dimension(costs[0]))
    if f"{PRICE}.lifetime" in wiring.parameters:
        owned: dict[str, Reference] = {"total_cost": total, "node_time": nodes}
        wiring.add(OWNED_COST, owned_cost, owned | parameters_in(PRICE, "lifetime", "utilisation"))
    return {"total_cost": total}


def _lacking_capital(wiring: Wiring) -> tuple[str, ...]:
    """Parameters missing for the write-off of nodes; the capital of the machine can replace that of a node."""
    price = () if f"{PRICE}.machine_price" in wiring.parameters else _lacking(wiring, f"{PRICE}.node_price")
    return price + _lacking(wiring, f"{PRICE}.lifetime")


def _one_currency(wiring: Wiring) -> None:
    """Check that all prices have one currency; that of an expression is only known here."""
    paths = [f"{PRICE}.{key}" for key in AMOUNTS if f"{PRICE}.{key}" in wiring.parameters]
    found = currencies(map(wiring.dimension, paths))
    if len(found) > 1:
        wiring.refuse(paths[0], mixed_currencies(found))


def _rent(wiring: Wiring, nodes: str) -> str:
    rate = f"{PRICE}.node_rate"
    inputs: dict[str, Reference] = {"node_time": nodes, "node_rate": rate}
    return wiring.add("total.rent", rent_cost, inputs, dimension=wiring.dimension(rate) * SECOND)


def _wire_capital(wiring: Wiring) -> None:
    """Term of the capital of a node, where that of the machine is stated."""
    machine = f"{PRICE}.machine_price"
    if machine in wiring.parameters:
        wiring.add(NODE_CAPITAL, node_price, {"machine_price": machine, "node_count": NODE_COUNT})


def node_capital(terms: Container[str]) -> str:
    """Term or parameter of one node's capital."""
    return NODE_CAPITAL if NODE_CAPITAL in terms else f"{PRICE}.node_price"


def _capital(wiring: Wiring, nodes: str) -> str:
    inputs: dict[str, Reference] = {"node_time": nodes, "node_price": node_capital(wiring.terms)}
    return wiring.add("total.capital_cost", capital_cost, inputs | parameters_in(PRICE, "lifetime", "utilisation"))
