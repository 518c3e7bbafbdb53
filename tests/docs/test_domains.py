"""Errors that docs/domains.md states are those of the comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.paths import ROOT
from whatif.core.scenario import Scenario
from whatif.validation.tables import rows_of

PAGE = (ROOT / "docs" / "domains.md").read_text(encoding="utf-8")
OTHER_NETWORKS = ("Polaris", "Alps", "AWS p4de", "AWS p5")


def test_errors_are_those_of_the_comparison(compared):
    rows = compared("collectives").to_pandas()
    assert rows[["from 1 MiB", "below"]].to_numpy().sum() == 533
    other = rows["machine"].isin(OTHER_NETWORKS)
    usual, others = r"error is ([\d.]+) % and the bias (-[\d.]+) %", r"it is ([\d.]+) % and (-[\d.]+) %"
    for part, words in ((~other, usual), (other, others)):
        stated = re.search(words, PAGE)
        for place, name in ((1, "error"), (2, "bias")):
            assert float(stated[place]) == pytest.approx(100 * np.mean(rows.loc[part, name]), abs=0.5)
    below = re.search(r"Below 1 MiB the mean error is (\d+) %, over Slingshot and EFA (\d+) %", " ".join(PAGE.split()))
    for place, part in ((1, ~other), (2, other)):
        assert float(below[place]) == pytest.approx(100 * np.mean(rows.loc[part, "error below"]), abs=0.5)


def test_times_by_the_size_of_a_link_domain_are_those_of_the_model():
    words = " ".join(PAGE.split())
    spread = [_time(576, "64 KiB", gpus) for gpus in (8, 36, 72)]
    stated = re.search(r"576 GPUs take (\d+) us in domains of 8, (\d+) us in domains of 36 and (\d+) us", words)
    assert [round(1e6 * time) for time in spread] == [int(number) for number in stated.groups()]
    measured = {row["size_B"]: float(row["time_us"]) / 1e3 for row in rows_of("gpu_collectives.csv")
                if row["machine"] == "CoreWeave (GB200 NVL72)"}  # fmt: skip
    half, most = measured["536870912"], measured["8589934592"]
    assert f"512 MiB take {half:.2f} ms, {half - most / 16:.2f} ms more than a sixteenth of the {most:.1f} ms" in words
    times = [1e3 * _time(72, size, 72) for size in ("512 MiB", "8 GiB")]
    # The bytes alone, and one step.
    bytes_alone = (times[1] - times[0]) / 15
    assert f"The model has {times[0]:.2f} ms" in words
    assert f"it would have {bytes_alone + 0.025:.2f} ms" in words


def _time(ranks, size, domain):
    phase = {"kind": "collective", "model": "nccl", "algorithm": "best", "message_size": size}
    application = {"name": "sum", "rank_count": ranks, "iteration_count": 1, "phases": {"sum": phase}}
    overrides = {"platform.node.domain_gpu_count": str(domain)}
    question = Scenario.of({"application": application}, platform="gb200_nvl72").changed(overrides)
    return float(whatif.run(question)["iteration_time"])
