"""Collectives of the shipped Polaris against measured times of that machine."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

ALGORITHMS = {"all_reduce": "best", "all_gather": "ring_allgather", "alltoall": "pairwise"}
SCENARIO = """
platform = "polaris"

[application]
name = "one"
rank_count = {ranks}
iteration_count = 1

[application.phases.all]
kind = "collective"
algorithm = "{algorithm}"
model = "nccl"
message_size = "{size} B"
"""


def rows(collective: str) -> list[dict[str, str]]:
    with (ROOT / "validation" / "gpu_collectives.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if (row["machine"], row["collective"]) == ("Polaris", collective)]


@pytest.mark.parametrize("collective", ALGORITHMS)
def test_mean_error_of_the_shipped_machine_is_that_of_its_fit(collective: str, tmp_path) -> None:
    errors = []
    for ranks in sorted({row["ranks"] for row in rows(collective)}):
        path = tmp_path / f"{collective}_{ranks}.toml"
        path.write_text(SCENARIO.format(ranks=ranks, algorithm=ALGORITHMS[collective], size="1024"))
        measured = {float(row["size_B"]): float(row["time_us"]) for row in rows(collective) if row["ranks"] == ranks}
        sizes = ", ".join(f"{size:.0f} B" for size in measured)
        times = whatif.sweep(path, f"application.phases.all.message_size = {sizes}").columns["iteration_time"]
        errors += list(np.asarray(times) * 1e6 / np.array(list(measured.values())) - 1)
    assert len(errors) == len(rows(collective)) > 60
    assert 0.001 < np.mean(np.abs(errors)) < 0.12
