"""End to end: phases in order make an iteration, iterations and what is done once make the run."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Count, Fraction, Seconds, model


@model("t = kernel + communication + transfer + overhead − overlap", "Choi et al. 2020, sec. 3.4")
def iteration_time(
    kernel_time: Seconds,
    communication_time: Seconds,
    transfer_time: Seconds,
    overhead_time: Seconds,
    overlap_time: Seconds,
) -> Seconds:
    """Time of one iteration: the sum of its phases by category, less what stated overlaps hide. Elementwise."""
    return kernel_time + communication_time + transfer_time + overhead_time - overlap_time


@model("T = I t + setup", "Choi et al. 2020, sec. 5.1; Sharif et al., Eq. 4")
def run_time(iteration_count: Count, iteration_time: Seconds, setup_time: Seconds) -> Seconds:
    """Time of the whole run: iterations, and what is done once. Elementwise."""
    return iteration_count * iteration_time + setup_time


@model("f · min(t_1, t_2)", "definition: the stated fraction of the shorter phase is hidden")
def overlap_time(fraction: Fraction, first_time: Seconds, second_time: Seconds) -> Seconds:
    """Time saved where two phases run partly at the same time; `fraction` from 0 to 1. Elementwise."""
    return fraction * np.minimum(first_time, second_time)
