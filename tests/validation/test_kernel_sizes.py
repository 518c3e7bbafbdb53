"""Kernels of the RAJA Performance Suite on a V100, predicted from their times at the largest size (docs/devices.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_kernel_sizes.py` writes the table of the page.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
import pytest

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.validation.kernel_sizes import anchored, kinds, predictions, shape, times_of
from whatif.validation.measured_kinds import numbers
from whatif.validation.tables import rows_of

PAGE = ROOT / "docs" / "devices.md"
STREAMS = ("Stream_ADD", "Stream_COPY", "Stream_MUL", "Stream_TRIAD")
# A GPU that one thread fills, and that starts kernels and returns data in no time.
IDEAL = {
    "dram_latency": 1e-15,
    "multiprocessor_count": 1.0,
    "full_threads": 1.0,
    **dict.fromkeys(("empty_kernel_time", "launch_interval", "synchronisation_time"), 0.0),
}


@pytest.fixture(scope="module")
def table(compared):
    return compared("kernel_sizes").to_pandas()


@pytest.fixture(scope="module")
def predicted():
    """Predicted times of all rows of the table with other values of the GPU."""
    wanted, known = anchored(rows_of("rajaperf_sizes.csv"))
    return lambda gpu: predictions(wanted, known, gpu)


def launch_time():
    """Mean time of a launch of the four streams with 2^22 and 2^23 elements: what their bytes do not explain."""
    wanted, known = anchored(rows_of("rajaperf_sizes.csv"))
    found = 2 * times_of(wanted) - times_of(known)
    chosen = [row["kernel"] in STREAMS and row["elements"] == "4194304" for row in wanted]
    return float(found[chosen].mean())


@pytest.fixture(scope="module")
def errors(table, predicted):
    """Errors of each row by what is predicted with."""
    stated = predicted({"empty_kernel_time": launch_time()})
    times = {"linear": table["linear"], "ideal": predicted(IDEAL), "models": table["predicted"], "stated": stated}
    return {name: (found / table["measured"] - 1).to_numpy() for name, found in times.items()}


def row(name, chosen, sizes, errors):
    """Mean errors of some kernels, for 2^20 elements but for two columns."""
    first, second, third = (chosen & (sizes == 2**power) for power in (20, 21, 22))
    mean = {key: f"{np.abs(found[first]).mean():.1%}" for key, found in errors.items()}
    more = " | ".join(f"{np.abs(errors['models'][size]).mean():.1%}" for size in (second, third))
    shown = f"{mean['linear']} | {mean['ideal']} | {mean['models']} | {errors['models'][first].mean():+.1%}"
    return f"| {name} | {first.sum()} | {shown} | {mean['stated']} | {more} |\n"


def test_the_table_of_the_page_is_that_of_the_data(table, errors):
    head = "| limit | runs | by elements | full GPU | predicted | bias | with t_l | 2^21 | 2^22 |\n"
    groups = {**{kind: table["kind"] == kind for kind in table["kind"].unique()}, "all": table["kind"] != ""}
    rows = [row(name, chosen.to_numpy(), table["elements"], errors) for name, chosen in groups.items()]
    assert_shown(PAGE, "sizes", f"{head}|---|{'---:|' * 8}\n{''.join(rows)}")


def test_errors_are_within_their_bounds(compared, table):
    assert "beyond" not in compared("kernel_sizes").notes
    assert table["kind"].value_counts().to_dict() == {
        "memory bandwidth": 280,
        "host waits": 62,
        "caches, latency": 59,
        "few blocks": 40,
        "arithmetic": 25,
    }


@pytest.mark.parametrize(("kind", "share"), [("memory bandwidth", 0.6), ("few blocks", 0.2), ("host waits", 0.3)])
def test_launches_blocks_and_waits_explain_most_of_the_error_of_small_sizes(table, errors, kind, share):
    chosen = (table["kind"] == kind) & (table["elements"] == 2**20)
    assert np.abs(errors["models"][chosen]).mean() < share * np.abs(errors["ideal"][chosen]).mean()


def test_a_launch_takes_as_long_with_twice_the_blocks(table):
    """Time of a launch beyond its bytes, of kernels with two sizes of blocks: no last wave of blocks explains it."""
    chosen = (table["kind"] == "memory bandwidth") & (table["elements"] == 2**20)
    wanted, known = (list(compress(rows, chosen)) for rows in anchored(rows_of("rajaperf_sizes.csv")))
    growth = numbers(known, "bytes_B") / numbers(wanted, "bytes_B")
    left = (growth * times_of(wanted) - times_of(known)) / (growth - 1) / shape(wanted)["launch_count"]
    pairs = table[chosen].assign(left=left).pivot(index="kernel", columns="block_size", values="left").dropna()
    assert len(pairs) == 35
    assert pairs.median().to_numpy() == pytest.approx(4e-6, rel=0.03)
    assert abs((pairs[128] - pairs[256]).median()) < 0.02e-6


def test_the_launch_time_of_the_page_is_that_of_the_streams(table, errors):
    assert f"t_l = {launch_time() * 1e6:.2f} us" in " ".join(PAGE.read_text(encoding="utf-8").split())
    others = (table["kind"] == "memory bandwidth") & ~table["kernel"].isin(STREAMS)
    for power, shown in ((20, "6.1 to 3.1 %"), (21, "3.3 to 1.9 %")):
        held_out = others & (table["elements"] == 2**power)
        means = [100 * np.abs(errors[name][held_out]).mean() for name in ("models", "stated")]
        assert shown == "{:.1f} to {:.1f} %".format(*means)
        assert f"from {shown} with 2^{power}" in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_kinds_are_those_of_the_largest_size(table):
    _, known = anchored(rows_of("rajaperf_sizes.csv"))
    assert (table["kind"] == kinds(known)).all()
