"""The bulk-synchronous model of a structured grid code: compute, exchange halos, repeat.

Eqs. 1, 2 and 6 are sums of equal terms over I iterations. `computation_time` and `communication_time` are one
such term, and `total_time` multiplies by I, so that a timeline can show one iteration. A cell is a count.
"""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Count, FloatArray, Fraction, PerSecond, Seconds, model


@model("T_w / I = C / (P K_w) + H O_h + O_w", "Sharif et al., Eq. 1")
def computation_time(
    cell_count: Count,
    process_count: Count,
    halo_cell_count: Count,
    cell_rate: PerSecond,
    packing_time: Seconds,
    overhead_time: Seconds,
) -> Seconds:
    """Computation time of one iteration: `C / (P K_w) + H O_h + O_w`.

    `cell_count` is C, the cells of the global grid, `halo_cell_count` is H, the halo cells of one process,
    `cell_rate` is K_w, the cells that one process computes per second, `packing_time` is O_h, to pack and
    unpack one cell, and `overhead_time` is O_w, synchronisation and kernel launches. Elementwise over any
    broadcastable shapes; valid for counts ≥ 0, `process_count` ≥ 1, `cell_rate` > 0 (an infinite one leaves
    the overheads). Assumes evenly distributed cells. Source: Sharif et al., "A Performance Prediction
    Model for Structured Grid Based Applications in HPC Environments", Eq. 1; Eq. 5 is P times this.
    """
    return cell_count / (process_count * cell_rate) + halo_cell_count * packing_time + overhead_time


@model("T_c / I = H / K_b + O_l", "Sharif et al., Eq. 2")
def communication_time(halo_cell_count: Count, halo_rate: PerSecond, latency: Seconds) -> Seconds:
    """Time of the halo exchange of one iteration: `H / K_b + O_l`, for any number of processes.

    `halo_cell_count` is H, `halo_rate` is K_b, the halo cells that one process exchanges per second, and
    `latency` is O_l. All pairs exchange at once without disturbing each other. Elementwise over any
    broadcastable shapes; valid for `halo_cell_count` ≥ 0, `halo_rate` > 0 (an infinite one leaves the
    latency). Source: Sharif et al., Eq. 2.
    """
    return halo_cell_count / halo_rate + latency


@model("T_c / I = H / K_b + O_l + lg(P) K_r", "Sharif et al., Eq. 6")
def communication_time_with_reduction(
    halo_cell_count: Count,
    process_count: Count,
    halo_rate: PerSecond,
    latency: Seconds,
    reduction_time: Seconds,
) -> Seconds:
    """Time of the halo exchange and one global reduction of one iteration: `H / K_b + O_l + lg(P) K_r`.

    `reduction_time` is K_r, one level of the binary tree of the reduction; lg is the binary logarithm, not
    rounded up, as printed. The rest is `communication_time`, the value for one process. Elementwise over any
    broadcastable shapes; valid for `process_count` ≥ 1. Source: Sharif et al., Eq. 6 (TRITON chooses its time
    step globally).
    """
    exchange = communication_time(halo_cell_count, halo_rate, latency)
    return exchange + np.log2(process_count) * reduction_time


@model("f = 1 for one rank per node, 0 on one node, else 1/2", "row-wise partition of Sharif et al., section V.F")
def inter_node_share(process_count: Count, ranks_per_node: Count) -> Fraction:
    """Share of the halo of a process sent to other nodes, in a row-wise partition over consecutive ranks.

    Each process exchanges half of its halo with its predecessor and half with its successor. The slowest is the
    process at the edge of a node, which sends one half to another node. `process_count` is P, `ranks_per_node` the
    processes on a full node. Elementwise over any broadcastable shapes; valid for counts ≥ 1. Source: Sharif et al.,
    section V.F (the partition; the paper itself does not distinguish the distances).
    """
    several = np.where(np.asarray(ranks_per_node) > 1, 0.5, 1.0)
    share: FloatArray = np.where(np.asarray(process_count) <= ranks_per_node, 0.0, several)
    return share


@model("T_c / I = H (f / K_b + (1 - f) / K_n) + O_l [f > 0] + O_n [f < 1] + lg(P) K_r", "after Sharif et al., Eq. 6")
def communication_time_by_distance(
    halo_cell_count: Count,
    inter_node_fraction: Fraction,
    process_count: Count,
    halo_rate: PerSecond,
    latency: Seconds,
    reduction_time: Seconds,
    intra_node_halo_rate: PerSecond,
    intra_node_latency: Seconds,
) -> Seconds:
    """Communication time of one iteration by distance: `H (f / K_b + (1 - f) / K_n) + O_l + O_n + lg(P) K_r`.

    `inter_node_fraction` is f, the share of the H halo cells sent to other nodes, at K_b = `halo_rate` with latency
    O_l = `latency`; the rest stays inside, at K_n = `intra_node_halo_rate` with O_n = `intra_node_latency`. Each
    latency counts only if there is such an exchange; the two exchanges are sequential. `reduction_time` is K_r.
    Elementwise over any broadcastable shapes; valid for 0 ≤ f ≤ 1, rates > 0. Source: Sharif et al., Eq. 6; section V
    proposes an additional parameter to distinguish the distances.
    """
    away, near = np.asarray(inter_node_fraction), 1 - np.asarray(inter_node_fraction)
    cells = halo_cell_count * (away / halo_rate + near / intra_node_halo_rate)
    latencies = np.where(away > 0, latency, 0.0) + np.where(near > 0, intra_node_latency, 0.0)
    total: FloatArray = cells + latencies + np.log2(process_count) * reduction_time
    return total


@model("T_o = I O_i + C O_c + O_s", "Sharif et al., Eq. 3")
def setup_time(
    iteration_count: Count,
    cell_count: Count,
    miscellaneous_time: Seconds,
    cell_setup_time: Seconds,
    startup_time: Seconds,
) -> Seconds:
    """Time outside computation and communication, for the whole run: `I O_i + C O_c + O_s`.

    `miscellaneous_time` is O_i, per iteration, `cell_setup_time` is O_c, to initialise one cell of the global
    grid (independent of the number of processes), and `startup_time` is O_s. Elementwise over any
    broadcastable shapes; valid for counts ≥ 0 and times ≥ 0. Source: Sharif et al., Eq. 3.
    """
    return iteration_count * miscellaneous_time + cell_count * cell_setup_time + startup_time


@model("T_t = T_w + T_c + T_o = I (T_w / I + T_c / I) + T_o", "Sharif et al., Eq. 4")
def total_time(
    iteration_count: Count, computation_time: Seconds, communication_time: Seconds, setup_time: Seconds
) -> Seconds:
    """Time of the whole run: I iterations of computation and communication, and the set-up.

    `computation_time` and `communication_time` are per iteration, `setup_time` is for the whole run, without
    overlap. Elementwise over any broadcastable shapes; valid for `iteration_count` ≥ 0. Source:
    Sharif et al., Eq. 4 (printed without its number).
    """
    return iteration_count * (computation_time + communication_time) + setup_time


@model("t = t_mean F", "scatter of single runs")
def scattered_time(time: Seconds, factor: Count) -> Seconds:
    """Time of a single run: the mean time multiplied by a scatter factor.

    Elementwise over any broadcastable shapes; valid for `factor` > 0. Source: prediction intervals are future work of
    Sharif et al., section VII; repeated runs of one configuration differ as a whole (their Fig. 5b).
    """
    return time * factor


def scaled_iteration_count(iteration_count: Count, cell_count: Count, scaled_cell_count: Count) -> Count:
    """Iterations of the same case on another two-dimensional grid: I x (cell size before) / (cell size after).

    `iteration_count` is I on `cell_count` cells, `scaled_cell_count` the cells of the other grid. With 144 times the
    cells, each is a twelfth of the size and twelve times the iterations are needed. Elementwise over any broadcastable
    shapes; valid for counts ≥ 1. Source: Sharif et al., section III.B (the time step scales with the cell size).
    """
    return iteration_count * np.sqrt(np.asarray(scaled_cell_count) / cell_count)
