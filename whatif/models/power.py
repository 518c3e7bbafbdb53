"""Power and energy: what devices draw all the time, and what kernels add while they run.

E = PUE · Σ over devices (idle power · time + dynamic power · time in use), after Sasidharan 2021, Eq. 9 to 11. There,
both powers are drawn while a device is used; here, idle power is drawn by every node of a job over the whole time,
dynamic power while kernels run, and the rest of the node and of the site (PUE) is added.
"""

from __future__ import annotations

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
_CLOCK = "P ~ f V², with V ~ f: the textbook rule (Weste and Harris, CMOS VLSI Design)"


@model("n P", "definition")
def devices_power(device_count: Count, device_power: Watts) -> Watts:
    """Power of several devices of a kind in W. Elementwise; both ≥ 0."""
    return device_count * device_power


@model("Σ P", "definition")
def summed_power(*powers: Watts) -> Watts:
    """Power of all that a node consists of in W. Elementwise; all ≥ 0."""
    return np.asarray(sum(powers[1:], start=powers[0]))


@model("⌊P / n⌋ d(n) + d(P mod n), d(ranks) = min(⌈ranks / ranks per device⌉, devices of a node)", "definition")
def devices_in_use(rank_count: Count, ranks_per_node: Count, ranks_per_device: Count, device_count: Count) -> Count:
    """Devices that run kernels: those that ranks are on, on n-rank nodes and a last one with the rest.

    `device_count` is that of a node. Elementwise; all ≥ 1.
    """
    full_nodes, rest = np.divmod(rank_count, ranks_per_node)
    on_full, on_last = (np.minimum(np.ceil(n / ranks_per_device), device_count) for n in (ranks_per_node, rest))
    return full_nodes * on_full + on_last


@model("kernels − hidden", "definition: two kernels at the same time keep one device busy")
def busy_time(kernel_time: Seconds, hidden_time: Seconds) -> Seconds:
    """Time in which kernels run; `hidden_time` is what overlaps of kernels with each other save. Elementwise."""
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

    `idle_power` is that of a node, drawn over the whole time t; `dynamic_power` that of one of the d devices that
    kernels run on, drawn while kernels run (t_busy ≤ t). Hosts are idle while devices compute, and everything is
    idle in communication, copies and overhead: what they add there is neglected. Elementwise; all ≥ 0, PUE ≥ 1.
    """
    idle_energy = nodes_needed * idle_power * iteration_time
    return power_usage_effectiveness * (idle_energy + device_count * dynamic_power * busy_time)


@model("P = PUE (P_idle + d / N · P_dynamic)", "definition")
def busy_power(
    idle_power: Watts,
    nodes_needed: Count,
    device_count: Count,
    dynamic_power: Watts,
    power_usage_effectiveness: Count,
) -> Watts:
    """What one node of a job draws in W while kernels run: what supply and cooling must be built for.

    `device_count` are the devices of all nodes that kernels run on. Elementwise; `nodes_needed` ≥ 1, PUE ≥ 1.
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
    """Energy of a whole run in J: its iterations, and idle nodes while it is set up. Elementwise; all ≥ 0."""
    setup_energy = power_usage_effectiveness * nodes_needed * idle_power * setup_time
    return iteration_count * iteration_energy + setup_energy


@model("P = E / T", "definition")
def mean_power(total_energy: Joules, total_time: Seconds) -> Watts:
    """Mean power of a run in W; NaN for one that takes no time. Elementwise."""
    return np.where(total_time > 0, total_energy / np.where(total_time > 0, total_time, 1.0), np.nan)


@model("C = E · intensity", "definition; operation only, not what making the machine emitted")
def total_carbon(total_energy: Joules, carbon_intensity: CarbonPerJoule) -> Carbon:
    """Greenhouse gases of a run's energy in gCO2e. Elementwise; both ≥ 0."""
    return total_energy * carbon_intensity


@model("f = min(1, ((P_cap − P_idle) / P_dynamic)^(1/a))", _CLOCK)
def capped_clock(power_cap: Watts, idle_power: Watts, dynamic_power: Watts, power_exponent: Count) -> Fraction:
    """Share of its full clock at which a device stays below a cap: P_idle + P_dynamic f^a ≤ P_cap.

    Measured times follow it within 10 % down to 60 % of the power without a cap; further down the voltage falls no
    more, and devices are slower than this (docs/validation.md). NaN where the cap is at or below the idle power.
    Elementwise; powers ≥ 0, exponent > 0.
    """
    room = power_cap - idle_power
    share = np.where(dynamic_power > room, room / np.where(dynamic_power > 0, dynamic_power, 1.0), 1.0)
    return np.where(room > 0, np.maximum(share, 0.0) ** (1 / power_exponent), np.nan)


@model("f R", _CLOCK)
def capped_rate(clock_fraction: Fraction, peak_rate: OperationsPerSecond) -> OperationsPerSecond:
    """A peak rate of arithmetic at a share of the full clock; memory keeps its own clock. Elementwise."""
    return clock_fraction * peak_rate


@model("f^a P_dynamic", _CLOCK)
def capped_power(clock_fraction: Fraction, dynamic_power: Watts, power_exponent: Count) -> Watts:
    """Dynamic power at a share of the full clock, also of kernels that memory limits. Elementwise."""
    return clock_fraction**power_exponent * dynamic_power


@model("P_cap > P_idle", "definition")
def exceeds_idle(power_cap: Watts, idle_power: Watts) -> Count:
    """1 where a cap leaves power to compute with, else 0."""
    return np.asarray(power_cap > idle_power, dtype=np.float64)
