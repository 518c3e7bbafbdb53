"""Comparison of the results of benchmarks with those of the last run."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import benchmarks
from benchmarks.growth import broadcast_schedule
from benchmarks.history import Run, append, compared, last_results, record, slowness
from benchmarks.measure import Row
from whatif.importers.goal import read_goal
from whatif.simulation.lower import lower
from whatif.simulation.schedule import Step

NEED_A_GPU = {"gpu_transformer"}
RUN = Run("2026-01-31T12:00:00+00:00", "abc1234", "a machine")


@pytest.mark.parametrize(
    ("now", "before", "factor"),
    [
        ("2.00 s", "1.00 s", 2.0),
        ("500 ms", "1.00 s", 0.5),
        ("2.0 s CPU", "1.0 s CPU", 2.0),
        ("2.0 GB", "500 MB", 4.0),
        ("1.0 M/s", "2.0 M/s", 2.0),
        ("2.0 M ev/s", "1.0 M ev/s", 0.5),
        ("1,500 msg/s", "3,000 msg/s", 2.0),
        ("200 MB/s", "100 MB/s", 0.5),
        ("50 /s", "100 /s", 2.0),
        ("1.2e+03 s", "600 s", 2.0),
    ],
)
def test_slowness_is_above_one_for_more_time_or_memory_and_for_less_rate(now, before, factor):
    assert slowness(now, before) == pytest.approx(factor, rel=1e-12)


def test_results_that_are_no_amounts_are_not_compared():
    assert slowness("3.1%", "3.0%") is None
    assert slowness("1.0 s", "") is None


def test_a_result_is_compared_with_the_last_one_of_the_same_machine(tmp_path):
    path = tmp_path / "bench" / "results.jsonl"
    assert last_results(path, RUN.machine) == {}
    for seconds in ("9.00 s", "1.00 s"):
        append(path, [record(Row("sweep (worst 12 ms)", seconds, "5.00 s", 5.0, "another"), RUN)])
    append(path, [record(Row("sweep", "0.01 s"), Run(RUN.date, RUN.commit, "another machine"))])
    last = last_results(path, RUN.machine)
    assert last == {"sweep": "1.00 s"}
    assert compared(Row("sweep (worst 90 ms)", "1.25 s"), last) == "1.25 x the last time"
    assert compared(Row("sweep", "1.26 s"), last) == "1.26 x the last time  SLOWER"
    assert compared(Row("another", "1.26 s"), last) == ""


@pytest.mark.parametrize("rank_count", [1, 2, 8, 13])
def test_the_schedule_of_a_broadcast_reaches_every_rank_once(rank_count):
    schedule = lower(read_goal(broadcast_schedule(rank_count)))
    sends = schedule.step == Step.SEND
    assert sorted(schedule.peer[sends].tolist()) == list(range(1, rank_count))
    assert (schedule.step == Step.RECEIVE).sum() == rank_count - 1


def test_every_benchmark_can_be_imported():
    """They run by `make bench` alone, which no test does."""
    names = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)} - NEED_A_GPU
    assert len(names) > 20
    for name in names:
        assert importlib.import_module(f"benchmarks.{name}")
