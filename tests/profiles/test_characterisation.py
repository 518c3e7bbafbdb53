"""What a profile says of its application, against AHEAD's Table I and figures counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import SHARED
from tests.profiles_at_hand import copy, kernel, profile
from whatif.profiles.characterisation import (
    characterise,
    kernel_table,
    size_distribution,
    size_labels,
    stream_table,
    symbol_copies,
    totals,
)
from whatif.profiles.formats import read_profile

LAMMPS = SHARED / "profiles" / "ahead/Summit_Data/Applications_Traces/lammps/peak-51127-lammps-h41n08-54871.nvvp"
READ, WRITE, INSIDE = "host_to_device", "device_to_host", "device_to_device"
OPERATIONS = profile([
    copy(WRITE, "pageable", 8.0, 1e-6),
    copy(WRITE, "pageable", 9.0, 1e-6, 1.0),
    copy(READ, "pinned", 10.0, 2e-6, 2.0, stream=8.0, is_asynchronous=1.0),
    copy(INSIDE, "device", 2e6, 4e-6, 3.0, is_symbol=1.0),
    kernel(3e-6, 4.0, "small"),
    kernel(5e-6, 5.0, "large"),
    kernel(4e-6, 6.0, "large"),
    {"operation": "fill", "memory": "device", "message_size": 4.0, "time": 7e-6, "start_time": 7.0, "is_symbol": 1.0},
]).operations  # fmt: skip


def rows(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows()]


@pytest.mark.shared_data
def test_table_1_of_the_paper_for_lammps():
    (row,) = rows(totals(read_profile(LAMMPS).operations))
    # Printed: 2.88 s, 2.23 s, 43.64 % (of the rounded times), 2K.
    assert (round(row["kernel_time"], 2), round(row["transfer_time"], 2), row["transfer_count"]) == (2.88, 2.23, 2089)
    assert 100 * row["transfer_fraction"] == pytest.approx(43.64, abs=0.05)


def test_totals_count_copies_as_transfers_and_fills_separately():
    (row,) = rows(totals(OPERATIONS))
    expected = {
        "kernel_time": 12e-6, "transfer_time": 8e-6, "transfer_fraction": 0.4, "transfer_count": 4.0,
        "kernel_count": 3.0, "fill_time": 7e-6, "fill_count": 1.0,
    }  # fmt: skip
    assert_allclose([row[name] for name in expected], list(expected.values()), rtol=1e-12, atol=0)


def test_sizes_fall_into_decades_in_number_and_in_time():
    every = [row for row in rows(size_distribution(OPERATIONS)) if not row["direction"]]
    assert [(row["message_size"], row["count"], row["count_fraction"]) for row in every] == [
        ("< 10 B", 2, 0.5), ("10 B to 100 B", 1, 0.25), ("1 MB to 10 MB", 1, 0.25),
    ]  # fmt: skip
    assert_allclose([row["time_fraction"] for row in every], [0.25, 0.25, 0.5], rtol=1e-12, atol=0)
    written = [row for row in rows(size_distribution(OPERATIONS)) if row["direction"] == WRITE]
    assert [(row["memory"], row["message_size"], row["count_fraction"]) for row in written] == [
        ("pageable", "< 10 B", 1.0)
    ]


@pytest.mark.parametrize(
    ("size", "label"),
    [(0.0, "< 10 B"), (9.99, "< 10 B"), (10.0, "10 B to 100 B"), (1e6, "1 MB to 10 MB"), (1e9, ">= 1 GB"),
     (7e12, ">= 1 GB"), (np.nan, "")],
)  # fmt: skip
def test_a_decade_begins_with_its_lower_end(size, label):
    assert size_labels(np.array([size])).tolist() == [label]


def test_symbol_copies_have_their_share_of_all_copies():
    inside, fill = rows(symbol_copies(OPERATIONS))
    assert (inside["operation"], inside["direction"], inside["is_device_to_device"]) == ("copy", INSIDE, 1.0)
    assert (inside["count_fraction"], inside["time_fraction"]) == (0.25, pytest.approx(0.5))
    assert (fill["operation"], fill["count"], fill["count_fraction"]) == ("fill", 1.0, None)


def test_streams_and_kernels_are_summed():
    first, second = rows(stream_table(OPERATIONS))
    assert (first["stream"], first["kernel_count"], first["copy_count"], first["fill_count"]) == (7.0, 3.0, 3.0, 1.0)
    assert (second["stream"], second["copy_count"], second["copy_time"]) == (8.0, 1.0, 2e-6)
    large, small = rows(kernel_table(OPERATIONS))
    assert (large["kernel"], large["launch_count"], large["mean_time"]) == ("large", 2.0, pytest.approx(4.5e-6))
    assert (small["kernel"], small["time_fraction"]) == ("small", pytest.approx(0.25))
    assert len(kernel_table(OPERATIONS, most=1)) == 1


def test_a_profile_of_kernels_alone_has_no_tables_of_copies():
    tables = characterise(profile([kernel(1.0, 0.0)]))
    assert set(tables) == {"totals", "classes", "streams", "kernels"}
    (row,) = rows(tables["totals"])
    assert (row["transfer_fraction"], row["transfer_count"]) == (0.0, 0.0)


def test_copies_of_unknown_size_are_in_no_decade():
    table = size_distribution(profile([copy(READ, "unknown", np.nan, 1.0), copy(READ, "unknown", 5.0, 1.0)]).operations)
    assert all(row["count"] == 1 and row["time_fraction"] == 1.0 for row in rows(table))
