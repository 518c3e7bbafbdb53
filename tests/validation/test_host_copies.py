"""Large copies between host and device, and between devices, by data sheets (docs/validation.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_host_copies.py` writes the table of the page.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.toml import parse_document
from whatif.validation.tables import rows_of

PAGE = ROOT / "docs" / "validation.md"
SIZE = 512 * 2**20
WORDS = {"host_to_device": "to device", "device_to_host": "to host", "peer_to_peer": "between devices, both ways"}


def predicted(row, sharing=""):
    """Rate of copies of 512 MiB of all ranks together in GB/s; between devices that of both directions."""
    ranks = int(row.get("rank_count", 1))
    text = f"""
{sharing}
[application]
name = "copy"
rank_count = {ranks}
iteration_count = 1
[application.phases.copy]
kind = "transfer"
direction = "{row["direction"]}"
transfer_size = "{SIZE} B"
"""
    values = evaluate(Scenario(parse_document(text, "copy"), row["platform"]).program).values
    ways = 2 if row["direction"] == "peer_to_peer" else 1
    return ways * ranks * SIZE / float(values["iteration.time"]) / 1e9


@pytest.fixture(scope="module")
def errors():
    """Rows, predicted rates and errors."""
    rows = rows_of("host_copies.csv")
    found = np.array([predicted(row) for row in rows])
    return rows, found, found / np.array([float(row["rate_gb_s"]) for row in rows]) - 1


def test_the_table_of_the_page_is_that_of_the_data(errors):
    lines = [
        f"| `{row['platform']}` | {WORDS[row['direction']]} | {row['rate_gb_s']} | {rate:.1f} | {error:+.1%} |"
        f" {row['doubt']} |\n"
        for row, rate, error in zip(*errors, strict=True)
    ]
    head = "| platform | copies | measured, GB/s | predicted | error | doubt |\n|---|---|---:|---:|---:|---|\n"
    assert_shown(PAGE, "host copies", head + "".join(lines))


def test_copies_between_host_and_device_are_within_a_sixth(errors):
    rows, _, all_errors = errors
    found = all_errors[[not row["doubt"] for row in rows]]
    assert len(found) == 7
    assert np.abs(found).max() < 0.16
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{np.abs(found).mean():.1%}, bias {found.mean():+.1%}" in text
    assert f"| 7 rates on nodes of A100, H100, MI300X and GB200 | {100 * np.abs(found).mean():.0f} % |" in text


def test_rows_in_doubt_contradict_the_links(errors):
    """One direction of NVLink carries 300, 450 and 900 GB/s; a copy to the host of an A100 needs more than this one."""
    rows, found, _ = errors
    rates = {(row["platform"], row["direction"]): rate for row, rate in zip(rows, found, strict=True)}
    assert [row["direction"] for row in rows if row["doubt"]] == ["device_to_host", *["peer_to_peer"] * 3]
    shares = [423 / 600, 672 / 900, 1530 / 1800]
    assert f"reach {min(shares):.1f} to {max(shares):.2f} of what" in " ".join(PAGE.read_text(encoding="utf-8").split())
    for platform, measured in (("dgx_a100", 423), ("dgx_h100", 672), ("gb200_nvl72", 1530)):
        assert rates[platform, "peer_to_peer"] / 2 < measured < rates[platform, "peer_to_peer"]
    assert rates["dgx_a100", "device_to_host"] > 4 * 6.27


def test_the_table_of_copies_of_a_whole_node_is_that_of_the_data():
    own = "[platform.node.host_link]\ndevice_count = 1\n"
    lines = []
    for row in rows_of("node_copies.csv"):
        measured, rates = float(row["rate_gb_s"]), (predicted(row), predicted(row, own))
        shown = " | ".join(f"{rate:.0f} | {rate / measured - 1:+.0%}" for rate in rates)
        lines.append(f"| {row['rank_count']} | {WORDS[row['direction']]} | {measured:.0f} | {shown} |\n")
    head = "| tiles | copies | measured, GB/s | predicted | error | own links | error |\n"
    assert_shown(PAGE, "node copies", head + "|---:|---|---:|---:|---:|---:|---:|\n" + "".join(lines))


def test_tiles_of_a_node_copy_as_fast_as_their_links():
    rows = {(row["direction"], row["rank_count"]): row for row in rows_of("node_copies.csv")}
    together, one = (predicted(rows["host_to_device", count]) for count in ("12", "1"))
    assert together == pytest.approx(6 * one, rel=1e-4)
    assert together == pytest.approx(float(rows["host_to_device", "12"]["rate_gb_s"]), rel=0.11)
