"""Collectives of MPI on shipped machines: table and errors of docs/collectives.md are those of the comparison.

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_mpi_collectives.py -k of_the_page` writes the table.
"""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.validation.message_collectives import series_of, time_ratios
from whatif.validation.tables import rows_of

PAGE = ROOT / "docs" / "collectives.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())
SERIES = {
    (series[0]["collective"], series[0]["program"]): series for series in series_of(rows_of("mpi_collectives.csv"))
}
OSU = SERIES["allreduce", "OSU, Julia"]
GATHERS = [series for (collective, _), series in SERIES.items() if collective == "gather"]
JOB = {
    "extends": "fugaku",
    "name": "job",
    "node_count": 384,
    "network": {"topology": {"extents": {"x": 4, "y": 6, "z": 16}}},
}
"""Fugaku, where a job has a torus of its own."""
ONE_PORT = {"extends": "fugaku", "name": "one port", "network": {"port_count": 1}}


def numbers(series, key):
    return np.array([float(row[key]) for row in series])


def percents(*ratios):
    """Distances of ratios from 1 in whole percents, as the page writes them."""
    return [f"{abs(ratio - 1):.0%}".removesuffix("%") for ratio in ratios]


def test_table_is_that_of_the_page(compared):
    lines = [
        "| machine | collective | measured by | ranks | algorithm | sizes | error | bias | factor |",
        "|" + "---|" * 9,
    ]
    for row in compared("mpi_collectives").to_pandas().itertuples(index=False):
        name = f"| {row.platform.capitalize()} | {row.collective} | {row.program} | {row.ranks:,.0f} | {row.algorithm} "
        error, bias = f"{row.error:.0%}".replace("%", " %"), f"{row.bias:+.0%}".replace("%", " %")
        lines.append(f"{name}| {row.sizes:.0f} | {error} | {bias} | {row.factor:.2f} |")
    assert_shown(PAGE, "mpi collectives", "\n".join(lines) + "\n")


def test_every_time_is_of_a_public_run_on_a_shipped_machine():
    rows = rows_of("mpi_collectives.csv")
    assert {row["source"].partition(":")[0] for row in rows} == {
        "giordano/julia-on-fugaku@91b07995", "eth-cscs/cscs-docs@80abed13",
    }  # fmt: skip
    assert len(rows) == 185
    assert min(numbers(rows, "time_us")) > 1


def test_errors_of_an_allreduce_by_size_are_those_of_the_page():
    ratios = time_ratios(OSU)
    low, high = percents(ratios[2:15].max(), ratios[2:15].min())
    assert f"too fast, by {low} to {high} %, one of 512 KiB" in TEXT
    assert "slow by {} and {} %".format(*percents(*ratios[-2:])) in TEXT
    assert f"the prediction is too slow by {percents(time_ratios(OSU, platform=JOB)[-1])[0]} %" in TEXT
    arithmetic = (ratios - time_ratios(OSU, arithmetic="none"))[-1] * numbers(OSU, "time_us")[-1]
    assert f"At 1 MiB, arithmetic takes {arithmetic:.0f} us" in TEXT


def test_shortest_reductions_are_too_slow_by_the_factors_of_the_page():
    shortest = np.concatenate([time_ratios(series[:2]) for (name, _), series in SERIES.items() if "reduce" in name])
    assert f"too slow by a factor of {shortest.min():.1f} to {shortest.max():.1f}" in TEXT


def test_a_root_takes_longer_than_measured_by_the_factors_of_the_page():
    rates = [numbers(series, "size_B")[-1] / numbers(series, "time_us")[-1] / 1e3 for series in GATHERS]
    assert f"receives {min(rates):.0f} to {max(rates):.0f} GB/s" in TEXT
    ratios = [time_ratios(series) for series in GATHERS]
    ends = [found[-1] for found in ratios]
    assert f"take {min(ends):.1f} to {max(ends):.1f} times as long" in TEXT
    assert f"Short blocks are too fast, by up to {percents(np.min(ratios))[0]} %" in TEXT


def test_errors_of_pairwise_messages_on_alps_are_those_of_the_page():
    ratios = time_ratios(SERIES["alltoall", "OSU, CSCS"], "pairwise")
    assert f"Up to blocks of 128 B, `pairwise` is within {np.abs(ratios[:8] - 1).max():.0%}".replace("%", " %") in TEXT
    assert "it is too slow by {} to {} %".format(*percents(ratios[8:17].min(), ratios[8:17].max())) in TEXT
    assert f"At 1 MiB it is too fast by {percents(ratios[-1])[0]} %" in TEXT


def test_four_processes_of_a_node_have_interfaces_of_their_own():
    """Tofu has six interfaces a node. With one of them for all, allreduces and reduces are predicted worse."""
    times = [time_ratios(OSU[13:], model=model) for model in ("max_rate", "injection")]
    assert_allclose(*times, rtol=1e-9)
    for name in (key for key in SERIES if "reduce" in key[0]):
        found, shared = (np.abs(time_ratios(SERIES[name], platform=each) - 1).mean() for each in (None, ONE_PORT))
        assert found < 0.95 * shared
