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
from whatif.vocabulary import CORE_BINDINGS

PAGE = ROOT / "docs" / "processors.md"
# 176 GB/s on 32 cores exceed the 153.6 GB/s of the eight channels of the node: the arrays were in its caches.
IMPOSSIBLE = {("Xeon E5-2695 v4 (CTS-1)", 32.0)}


def read_groups(file, key):
    """Rows of a file of facts, by the value of a column."""
    lines = (DATA / "processors" / file).read_text().splitlines()
    rows = [row for row in csv.DictReader(lines[1:]) if (row["processor"], float(row["cores"])) not in IMPOSSIBLE]
    names = list(dict.fromkeys(row[key] for row in rows))
    return {name: [row for row in rows if row[key] == name] for name in names}


def numbers(rows, key):
    return np.array([float(row[key]) for row in rows])


TRIADS = read_groups("triads_by_cores.csv", "processor")
PROGRAMS = read_groups("programs_by_cores.csv", "program")


def clipped(cores: FloatArray, core_bandwidth: float, memory_bandwidth: float, sockets: MeasuredSockets) -> FloatArray:
    """min(n b, B) in the fullest domain, for comparison."""
    active = sockets.active(cores)
    return cores * np.minimum(active * core_bandwidth, memory_bandwidth / sockets.domain_count) / active


def errors(name, model=node_bandwidth, binding=None):
    """Relative errors between the ends: the row with the fewest cores and the full node are given.

    `binding` stands in for that of the data.
    """
    cores, measured = (numbers(TRIADS[name], key) for key in ("cores", "bandwidth [GB/s]"))
    return (bandwidths(name, cores, model, binding) / measured - 1)[1:-1]


def bandwidths(name, cores, model=node_bandwidth, binding=None):
    """Bandwidths of active cores by the triads with the fewest and with all of them."""
    ends = TRIADS[name][0], TRIADS[name][-1]
    sockets = MeasuredSockets(
        *(float(ends[0][key]) for key in ("sockets", "cores per socket", "domains per socket")),
        binding=ends[0]["binding"] if binding is None else binding,
    )
    first, last = numbers(ends, "bandwidth [GB/s]")
    return model(cores, first / float(ends[0]["cores"]), last / sockets.socket_count, sockets)


def program_errors(program):
    """Relative errors of the speed-up over the fewest cores, by the bandwidths of the triads alone."""
    rows = PROGRAMS[program]
    cores, measured = (numbers(rows, key) for key in ("cores", "figure of merit"))
    found = bandwidths(rows[0]["processor"], cores, binding=rows[0]["binding"])
    return (found / found[0] / (measured / measured[0]) - 1)[1:]


def of_errors(found):
    return f"{np.abs(found).mean():.1%} | {found.mean():+.1%} | {np.abs(found).max():.1%}"


def row(name):
    cells = [of_errors(errors(name, model)) for model in (node_bandwidth, clipped)]
    return f"| {name} | {len(errors(name))} | {' | '.join(cells)} |\n"


def program_row(name):
    found = program_errors(name)
    return f"| {name} | {PROGRAMS[name][-1]['cores']} | {len(found)} | {of_errors(found)} |\n"


def program_table():
    head = "| program | cores | predicted | mean error | bias | largest |\n"
    return f"{head}|---|---:|---:|---:|---:|---:|\n" + "".join(map(program_row, PROGRAMS))


def table():
    head = "| node | predicted | mean error | bias | largest | min(n b, B): mean error | bias | largest |\n"
    return f"{head}|---|---:|---:|---:|---:|---:|---:|---:|\n" + "".join(map(row, TRIADS))


@pytest.mark.parametrize(
    ("name", "limit"),
    [("A64FX (Fugaku)", 0.02), ("Xeon Max 9480 (Crossroads)", 0.06), ("Xeon E5-2695 v4 (CTS-1)", 0.15)],
)
def test_bandwidths_between_one_core_and_all(name, limit):
    assert np.abs(errors(name)).mean() < limit


def test_mean_error_of_all_triads():
    found = np.concatenate([errors(name) for name in TRIADS])
    assert len(found) == 53
    assert np.abs(found).mean() < 0.023
    assert abs(found.mean()) < 0.002


def test_cores_of_crossroads_filled_one_socket_after_the_other():
    """The source does not say how its cores were bound: one way of three meets the triads between the ends."""
    found = {binding: np.abs(errors("Xeon Max 9480 (Crossroads)", binding=binding)) for binding in CORE_BINDINGS}
    assert found["sockets"].max() < 0.1 < found["compact"].mean() < found["spread"].mean()
    assert round(float(found["spread"].mean()), 3) == 0.225


def test_the_default_share_of_the_peak_is_the_mean_of_measured_triads():
    """Grace, EPYC 7V73X, EPYC 7V12 and Xeon E5-2695 v4, of one socket, by the peak of its memory."""
    shares = [403.406 / 512, 170 / 204.8, 130 / 204.8, 114.811 / 153.6]
    assert CPU.model_fields["sustained_fraction"].default == round(float(np.mean(shares)), 2)


@pytest.mark.parametrize("name", TRIADS)
def test_a_smooth_bend_is_better_than_a_sharp_one(name):
    assert np.abs(errors(name)).mean() < np.abs(errors(name, clipped)).mean()


def test_speed_up_of_programs_by_bandwidth_alone():
    """AMG on 64 cores: 34 and 37 times as fast as on one, 39 predicted."""
    problems = [PROGRAMS[f"AMG problem {number}"] for number in (1, 2)]
    measured = [numbers(rows, "figure of merit")[-1] / float(rows[0]["figure of merit"]) for rows in problems]
    predicted = [
        (1 + program_errors(rows[0]["program"])[-1]) * value for rows, value in zip(problems, measured, strict=True)
    ]
    assert np.round(measured).tolist() == [34, 37]
    assert np.round(predicted).tolist() == [39, 39]


@pytest.mark.parametrize(("name", "shown"), [("triads", table), ("programs", program_table)])
def test_tables_of_the_page_are_those_of_the_data(name, shown):
    assert_shown(PAGE, name, shown())
