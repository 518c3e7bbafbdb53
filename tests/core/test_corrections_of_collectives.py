"""The fastest algorithm of a collective has the corrections that it has when it is named."""

from __future__ import annotations

import numpy as np
import pytest

import whatif

SIZES = ["64 B", "1 KiB", "32 KiB", "1 MiB", "64 MiB"]
SIZE = "application.phases.reduce.message_size"


def times(algorithm, calibration, operation="allreduce", ranks=64):
    """Times of a collective over sizes."""
    phase = {
        "kind": "collective", "model": "postal", "operation": operation, "algorithm": algorithm, "message_size": "1 B",
        "operation_count": 3,
    }  # fmt: skip
    application = {"name": "c", "rank_count": ranks, "iteration_count": 1, "phases": {"reduce": phase}}
    tables = {"application": application, **({"calibration": {"application": calibration}} if calibration else {})}
    swept = whatif.sweep(whatif.Scenario.of(tables, platform="blue_waters"), {SIZE: SIZES})
    return swept.columns["iteration_time"]


@pytest.mark.parametrize("calibration", [{"message_time": "100 us"}, {"message_time": "2 us", "message_factor": 1.5}])
def test_the_fastest_algorithm_has_the_corrections_of_its_messages(calibration):
    algorithms = ["recursive_doubling", "rabenseifner", "ring"]
    alone = np.array([times(name, {}) for name in algorithms])
    assert len(set(alone.argmin(axis=0))) > 1
    corrected = np.array([times(name, calibration) for name in algorithms])
    others, best = times("best", {}), times("best", calibration)
    # Two algorithms may be equally fast with different numbers of messages.
    fastest = np.isclose(alone, others, rtol=1e-12, atol=0)
    assert (fastest.sum(axis=1) > 0).sum() > 1
    agree = fastest & np.isclose(corrected, best, rtol=1e-12, atol=0)
    assert (agree.any(axis=0) == fastest.any(axis=0)).all()
    assert (best > 1.001 * others).all()


def test_warnings_of_the_fastest_algorithm_are_those_that_it_has_when_it_is_named():
    def outside(algorithm):
        phase = {"kind": "collective", "model": "postal", "operation": "allreduce", "algorithm": algorithm}
        application = {"name": "c", "rank_count": 64, "iteration_count": 1}
        tables = {"application": application | {"phases": {"reduce": phase | {"message_size": "1 B"}}}}
        swept = whatif.sweep(whatif.Scenario.of(tables, platform="blue_waters"), {SIZE: ["1 KiB", "64 MiB"]})
        return {text: np.broadcast_to(points, 2).tolist() for text, points in swept.extrapolated.items()}

    # 64 MiB are in 64 pieces around a ring.
    assert outside("best") == outside("ring") != {}
    assert outside("recursive_doubling") != outside("best")
