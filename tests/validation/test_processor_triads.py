"""Triads by number of active cores: one core and the full node are fitted, the others predicted (docs/processors.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_processor_triads.py` writes the table of the page.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.page_tables import assert_shown
from tests.paths import DATA, ROOT
from whatif.fitting.host_bandwidths import MeasuredSockets, node_bandwidth
from whatif.models.quantities import FloatArray
from whatif.schema.platform_spec import CPU

PAGE = ROOT / "docs" / "processors.md"
# 176 GB/s on 32 cores exceed the 153.6 GB/s of the eight channels of the node: the arrays were in its caches.
IMPOSSIBLE = {("Xeon E5-2695 v4 (CTS-1)", 32.0)}


def read_triads():
    lines = (DATA / "processors" / "triads_by_cores.csv").read_text().splitlines()
    rows = [row for row in csv.DictReader(lines[1:]) if (row["processor"], float(row["cores"])) not in IMPOSSIBLE]
    names = list(dict.fromkeys(row["processor"] for row in rows))
    return {name: [row for row in rows if row["processor"] == name] for name in names}


TRIADS = read_triads()


def clipped(cores: FloatArray, core_bandwidth: float, memory_bandwidth: float, sockets: MeasuredSockets) -> FloatArray:
    """min(n b, B) in the fullest domain, for comparison."""
    active = sockets.active(cores)
    return cores * np.minimum(active * core_bandwidth, memory_bandwidth / sockets.domain_count) / active


def errors(name, model=node_bandwidth):
    """Relative errors between the ends: the row with the fewest cores and the full node are given."""
    rows = TRIADS[name]
    sockets = MeasuredSockets(
        *(float(rows[0][key]) for key in ("sockets", "cores per socket", "domains per socket")),
    )
    cores, measured = (np.array([float(row[key]) for row in rows]) for key in ("cores", "bandwidth [GB/s]"))
    found = model(cores, measured[0] / cores[0], measured[-1] / sockets.socket_count, sockets)
    return (found / measured - 1)[1:-1]


def row(name):
    cells = [name, str(len(errors(name)))]
    for model in (node_bandwidth, clipped):
        found = errors(name, model)
        cells.append(f"{np.abs(found).mean():.1%} | {found.mean():+.1%} | {np.abs(found).max():.1%}")
    return f"| {' | '.join(cells)} |\n"


def table():
    head = "| node | predicted | mean error | bias | largest | min(n b, B): mean error | bias | largest |\n"
    return f"{head}|---|---:|---:|---:|---:|---:|---:|---:|\n" + "".join(map(row, TRIADS))


@pytest.mark.parametrize(("name", "limit"), [("A64FX (Fugaku)", 0.02), ("Xeon E5-2695 v4 (CTS-1)", 0.15)])
def test_bandwidths_between_one_core_and_all(name, limit):
    assert np.abs(errors(name)).mean() < limit


def test_mean_error_of_all_triads():
    found = np.concatenate([errors(name) for name in TRIADS])
    assert len(found) == 53
    assert np.abs(found).mean() < 0.04
    assert abs(found.mean()) < 0.03


def test_the_default_share_of_the_peak_is_the_mean_of_measured_triads():
    """Grace, EPYC 7V73X, EPYC 7V12 and Xeon E5-2695 v4, of one socket, by the peak of its memory."""
    shares = [403.406 / 512, 170 / 204.8, 130 / 204.8, 114.811 / 153.6]
    assert CPU.model_fields["sustained_fraction"].default == round(float(np.mean(shares)), 2)


@pytest.mark.parametrize("name", TRIADS)
def test_a_smooth_bend_is_better_than_a_sharp_one(name):
    assert np.abs(errors(name)).mean() < np.abs(errors(name, clipped)).mean()


def test_the_table_of_the_page_is_that_of_the_data():
    assert_shown(PAGE, "triads", table())
