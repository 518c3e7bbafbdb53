"""Collectives of simulated messages against their closed forms: the errors of the page, and where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.core.test_domains import collective, scenario
from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.grid_run import run_whole
from whatif.core.sweep import grid_of, parse_option
from whatif.models.quantities import FloatArray

MACHINES = {"lassen": 'buffers = "host"', "perlmutter": "", "turin": "ranks_per_node = 4"}
ROWS = {
    "recursive doubling": ("recursive_doubling",),
    "Rabenseifner, recursive halving": ("rabenseifner", "recursive_halving"),
    "ring, pairwise exchange": ("ring", "pairwise"),
    "hierarchical": ("hierarchical",),
    "Bruck": ("bruck_allgather", "bruck_alltoall"),
    "broadcast along a tree": ("binomial_tree",),
    "scatter along a tree": ("binomial_scatter",),
    "gather along a tree": ("binomial_gather",),
    "gather and reduction one by one": ("linear_gather", "linear_reduce"),
}
POWERS, OTHERS = (32, 64), (24, 33, 100)
SIZES = ("1 KiB", "1 MiB")


def ratios(platform: str, algorithm: str, counts: Sequence[int]) -> FloatArray:
    """Closed form over simulation [number of ranks, size]."""
    question = scenario(platform, 32, collective(algorithm) + "channel_count = 1\n", MACHINES[platform])
    found = []
    for way in ("modelled", "simulated"):
        changed = question.changed({"application.communication": way})
        values = {"application.rank_count": counts, "application.phases.phase.message_size": SIZES}
        texts = (f"{path} = {', '.join(map(str, items))}" for path, items in values.items())
        axes = [parse_option(text, changed.program, 100) for text in texts]
        found.append(run_whole(changed, grid_of(axes, 100)).columns["communication_time"])
    return np.asarray(found[0] / found[1])


def test_ratios_of_closed_forms_are_those_of_the_page() -> None:
    lines = ["| closed form / simulation | 32 and 64 ranks | 24, 33 and 100 ranks |", "|---|---|---|"]
    for row, algorithms in ROWS.items():
        cells = []
        for counts in (POWERS, OTHERS):
            found = np.array([ratios(*case, counts) for case in product(MACHINES, algorithms)])
            cells.append(f"{found.mean():.3g} ({found.min():.3g} to {found.max():.3g})")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    assert_shown(ROOT / "docs" / "domains.md", "simulated", "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("algorithm", ["ring", "ring_allgather", "bruck_allgather", "bruck_alltoall"])
@pytest.mark.parametrize("platform", sorted(MACHINES))
def test_rings_and_bruck_take_the_modelled_time_on_any_number_of_ranks(platform: str, algorithm: str) -> None:
    assert_allclose(ratios(platform, algorithm, (5, *POWERS, *OTHERS)), 1, rtol=2e-4, atol=0)
