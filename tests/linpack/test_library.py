"""`whatif.hpl` and `whatif.tune_hpl`: examples, and the same numbers as the command line."""

from __future__ import annotations

import csv
import doctest
import io

import pytest

import whatif
from tests.paths import DATA, ROOT
from whatif.api import linpack
from whatif.core.platform import Platform

INPUT = DATA / "hpl" / "HPL.dat.4x4"
SMALL = {"platform.node.host.memory_size": "4 GiB"}


def test_examples_of_the_docstrings_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(linpack)
    assert (found.attempted >= 8, found.failed) == (True, 0)


def test_predictions_are_those_of_the_command_line(whatif_main):
    predicted = whatif.hpl(INPUT, platform="dahu", overrides=SMALL)
    code, out, error = whatif_main("hpl", str(INPUT), "--platform", "dahu", "--format", "csv",
                                  "--set", "platform.node.host.memory_size=4 GiB")  # fmt: skip
    assert code == 0
    frame = predicted.to_pandas()
    assert frame["time"].tolist() == [float(row["time [s]"]) for row in csv.DictReader(io.StringIO(out))]
    assert error.splitlines() == list(predicted.notes)
    assert repr(predicted).startswith(f"<HPLPredictions: {len(frame)} rows>")


def test_known_predictions_are_not_simulated_again():
    predicted = whatif.hpl(INPUT, platform="dahu")
    progress: list[int] = []
    first = next(predicted.predictions(lambda number, share: progress.append(number)))
    assert progress
    progress.clear()
    again = next(predicted.predictions(lambda number, share: progress.append(number)))
    assert again is first
    assert not progress


def test_scenario_of_an_input_is_its_first_combination():
    predicted = whatif.hpl(INPUT, platform="dahu", overrides=SMALL)
    first = next(iter(predicted))
    assert float(whatif.run(predicted.scenario)["total_time"]) == pytest.approx(first.row.time, rel=1e-12)


def test_platform_built_in_python_gives_the_times_of_the_shipped_one():
    ours = Platform.of(extends="dahu", name="ours")
    times = [next(iter(whatif.hpl(INPUT, platform=platform))).row.time for platform in ("dahu", ours)]
    assert times[0] == times[1]


def test_search_takes_lists_and_texts():
    same = {"platform": "dahu", "grids": ["1x2", "2x1"], "candidates": 4, "swaps": "mix", "depths": "0"}
    texts = whatif.tune_hpl(**same, matrix_sizes="500", block_sizes="50, 60", broadcasts="ring")
    lists = whatif.tune_hpl(**same, matrix_sizes=[500], block_sizes=[50, 60], broadcasts=["ring"])
    assert texts.to_dict() == lists.to_dict()
    assert "4 of 4 combinations" in texts.notes[0]


def test_workers_without_a_place_have_no_effect_and_are_refused():
    with pytest.raises(whatif.WhatifError, match="--workers: no effect without --on"):
        whatif.tune_hpl(platform="dahu", grids=["1x1"], matrix_sizes=[100], block_sizes=[50], workers=2)
