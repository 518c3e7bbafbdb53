"""Power and energy: idle power over the whole time, dynamic power while kernels run.

E = PUE · Σ over devices (idle power · time + dynamic power · time in use), after Sasidharan 2021, Eq. 9 to 11. In the
source both powers are drawn while a device is used. Here every node of a job draws idle power over the whole time and
dynamic power while kernels run, and the rest of the node and of the site (PUE) is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from whatif.models.quantities import (
    Carbon,
    CarbonPerJoule,
    Count,
    Fraction,
    Joules,
    OperationsPerSecond,
    Seconds,
    Watts,
    model,
)

_SOURCE = "after Sasidharan 2021, Eq. 9 to 11, with idle power over the whole time, hosts and PUE added"
_CLOCK = "P ~ f V², with V ~ f down to a lowest voltage: the textbook rule (Weste and Harris, CMOS VLSI Design)"


@model("n P", "definition")
def devices_power(device_count: Count, device_power: Watts) -> Watts:
    """Power of several devices of one kind in W. Elementwise; both ≥ 0."""
    return device_count * device_power


@model("Σ P", "definition")
def summed_power(*powers: Watts) -> Watts:
    """Power of all components of a node in W. Elementwise; all ≥ 0."""
    return np.asarray(sum(powers[1:], start=powers[0]))


@model("Σ over nodes min(⌈ranks / ranks per device⌉, devices of a node)", "definition")
def devices_in_use(
    rank_count: Count,
    ranks_per_node: Count,
    ranks_per_device: Count,
    device_count: Count,
    *,
    mapping: str | tuple[int, ...] = "block",
) -> Count:
    """Devices that run kernels: those with ranks.

    `device_count` is the number per node, `mapping` the node of each rank from a file, or a name: with `round_robin`
    nodes have equal shares of the ranks, with all others all nodes but the last are full. Elementwise; all ≥ 1.
    """
    used = [
        nodes * np.minimum(np.ceil(ranks / ranks_per_device), device_count)
        for nodes, ranks in _ranks_of_nodes(rank_count, ranks_per_node, mapping)
    ]
    return np.asarray(sum(used))


def _ranks_of_nodes(
    rank_count: Count, ranks_per_node: Count, mapping: str | tuple[int, ...]
) -> Iterable[tuple[Count, Count]]:
    """Numbers of nodes with equal numbers of ranks, and these numbers."""
    if isinstance(mapping, tuple):
        ranks = Counter(Counter(mapping).values())
        return [(np.asarray(float(nodes)), np.asarray(float(count))) for count, nodes in ranks.items()]
    if mapping == "round_robin":
        nodes = np.ceil(rank_count / ranks_per_node)
        fewest, larger = np.divmod(rank_count, nodes)
        return (larger, fewest + 1), (nodes - larger, fewest)
    full, rest = np.divmod(rank_count, ranks_per_node)
    return (full, ranks_per_node), (np.ones_like(rest), rest)


@model("kernels − hidden", "definition: two kernels at the same time keep one device busy")
def busy_time(kernel_time: Seconds, hidden_time: Seconds) -> Seconds:
    """Time in which kernels run; `hidden_time` is saved by kernels that overlap each other. Elementwise."""
    return kernel_time - hidden_time


@model("E = PUE (N P_idle t + d P_dynamic t_busy)", _SOURCE)
def iteration_energy(
    nodes_needed: Count,
    idle_power: Watts,
    iteration_time: Seconds,
    device_count: Count,
    dynamic_power: Watts,
    busy_time: Seconds,
    power_usage_effectiveness: Count,
) -> Joules:
    """Energy of one iteration of a whole job in J.

    `idle_power` is drawn by a node over the whole time t; `dynamic_power` by each of the d devices in use while
    kernels run (t_busy ≤ t). Hosts count as idle while devices compute, and everything counts as idle during
    communication, copies and overhead: their dynamic power is neglected. Elementwise; all ≥ 0, PUE ≥ 1.
    """
    # Times first: what takes no time has no energy, whatever the product of the other factors.
    idle_energy = iteration_time * nodes_needed * idle_power
    return power_usage_effectiveness * (idle_energy + busy_time * device_count * dynamic_power)


@model("P = PUE (P_idle + d / N · P_dynamic)", "definition")
def busy_power(
    idle_power: Watts,
    nodes_needed: Count,
    device_count: Count,
    dynamic_power: Watts,
    power_usage_effectiveness: Count,
) -> Watts:
    """Power of one node of a job in W while kernels run; supply and cooling must provide it.

    `device_count` is the number of devices that run kernels, over all nodes. Elementwise; `nodes_needed` ≥ 1, PUE ≥ 1.
    """
    return power_usage_effectiveness * (idle_power + device_count / nodes_needed * dynamic_power)


@model("E = I E_1 + PUE N P_idle setup", "definition")
def total_energy(
    iteration_count: Count,
    iteration_energy: Joules,
    setup_time: Seconds,
    nodes_needed: Count,
    idle_power: Watts,
    power_usage_effectiveness: Count,
) -> Joules:
    """Energy of a whole run in J: its iterations, and idle nodes during set-up. Elementwise; all ≥ 0."""
    # The time first, as in `iteration_energy`.
    setup_energy = setup_time * power_usage_effectiveness * nodes_needed * idle_power
    return iteration_count * iteration_energy + setup_energy


@model("P = E / T", "definition")
def mean_power(total_energy: Joules, total_time: Seconds) -> Watts:
    """Mean power of a run in W; 0 if the run takes no time. Elementwise."""
    return np.where(total_time == 0, 0.0, total_energy / np.where(total_time == 0, 1.0, total_time))


@model("C = E · intensity", "definition; operation only, without the manufacture of the machine")
def total_carbon(total_energy: Joules, carbon_intensity: CarbonPerJoule) -> Carbon:
    """Greenhouse gas emissions of the energy of a run in gCO2e. Elementwise; both ≥ 0."""
    return total_energy * carbon_intensity


@model("f max(f, v)^(a−1) = min(1, (P_cap − P_idle) / P_dynamic)", _CLOCK)
def capped_clock(
    power_cap: Watts, idle_power: Watts, dynamic_power: Watts, power_exponent: Count, voltage_floor: Fraction
) -> Fraction:
    """Largest share f of the full clock at which a device stays within a power cap.

    Below the share v, the floor, the voltage is at its minimum, and power falls in proportion to the clock. Errors
    against measured times are in docs/validation.md. NaN where the cap is at or below the idle power. Elementwise;
    powers ≥ 0, exponent > 0, 0 ≤ v ≤ 1.
    """
    room = power_cap - idle_power
    share = np.where(dynamic_power > room, room / np.where(dynamic_power > 0, dynamic_power, 1.0), 1.0)
    share = np.where(room > 0, share, np.nan)
    above = share >= voltage_floor**power_exponent
    lowest = np.where(above, 1.0, voltage_floor) ** (power_exponent - 1)
    return np.where(above, share ** (1 / power_exponent), share / lowest)


@model("f R", _CLOCK)
def capped_rate(clock_fraction: Fraction, peak_rate: OperationsPerSecond) -> OperationsPerSecond:
    """Peak arithmetic rate at a share of the full clock; memory keeps its own clock. Elementwise."""
    return clock_fraction * peak_rate


@model("f max(f, v)^(a−1) P_dynamic", _CLOCK)
def capped_power(
    clock_fraction: Fraction, dynamic_power: Watts, power_exponent: Count, voltage_floor: Fraction
) -> Watts:
    """Dynamic power at a share of the full clock, also for memory-bound kernels. Elementwise."""
    voltage = np.maximum(clock_fraction, voltage_floor) ** (power_exponent - 1)
    return clock_fraction * voltage * dynamic_power


@model("P_cap > P_idle", "definition")
def exceeds_idle(power_cap: Watts, idle_power: Watts) -> Count:
    """1 where the power cap exceeds the idle power, else 0."""
    return np.asarray(power_cap > idle_power, dtype=np.float64)
