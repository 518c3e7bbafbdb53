"""Checks of files: the measured runs that a scenario names."""

from __future__ import annotations

import pytest

import whatif

SCENARIO = 'runs = "own.csv"\nextends = "jacobi2d"\n'


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        (
            {"owns.csv": "rank_count,iteration_time [us]\n4,100\n"},
            "runs: own.csv: no such file; did you mean `owns.csv`?",
        ),
        ({}, "runs: own.csv: no such file"),
        ({"own.csv": "rank_count,itration_time [us]\n4,100\n"}, "itration_time"),
        ({"own.csv": "rank_count,iteration_time [us]\n4,100\n"}, ""),
    ],
)
def test_the_runs_that_a_scenario_names_are_checked(tmp_path, monkeypatch, runs, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    for name, text in runs.items():
        (tmp_path / name).write_text(text)
    problems = [str(found) for found in whatif.check("mine.toml").problems]
    assert len(problems) == bool(problem)
    assert all(problem in found for found in problems)
