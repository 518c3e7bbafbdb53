"""Workers, their barrier, and the routines that they call by address."""

from __future__ import annotations

import os

import numpy as np
import pytest

from whatif.errors import UsageError
from whatif.measuring.blas_calls import KERNELS
from whatif.measuring.routines import BLAS, Blas, blas_name, clock_block
from whatif.measuring.team import Team

PROCESSORS = sorted(os.sched_getaffinity(0))[:2]


LOOPS = (
    {"do": "triad", "length": 64, "sweeps": 1},
    {"do": "convolution", "length": 64, "sweeps": 1},
    {"do": "multiply_add", "length": 64, "precision": "float32", "sweeps": 1},
    {"do": "gemm", "shape": (2, 2, 2), "precision": "float64", "sweeps": 1},
    {"do": "hpl", "plan": [[0, 2, 2, 2, 1]], "largest": 8},
)


@pytest.fixture(scope="module")
def team():
    """Workers of which one compiles the loops, so that the others find them compiled."""
    with Team(PROCESSORS) as found:
        for loop in LOOPS:
            found.rounds(1, 1, **loop)
        yield found


def test_rounds_have_a_start_and_an_end_on_each_worker(team):
    times = team.rounds(len(PROCESSORS), 5, do="triad", length=4096, sweeps=2)
    assert times.shape == (5, len(PROCESSORS), 2)
    assert (times[:, :, 1] > times[:, :, 0]).all()
    assert (times[1:, :, 0] >= times[:-1, :, 1]).all(), "a round begins after the one before has ended"


def test_workers_start_a_round_when_all_have_ended_the_last_one(team):
    times = team.rounds(len(PROCESSORS), 5, do="multiply_add", length=512, precision="float32", sweeps=10)
    assert (times[1:, :, 0].min(axis=1) >= times[:-1, :, 1].max(axis=1)).all()


def test_fewer_workers_take_part(team):
    assert team.rounds(1, 2, do="convolution", length=4096, sweeps=1).shape == (2, 1, 2)
    assert team.rounds(len(PROCESSORS), 1, do="gemm", shape=(8, 8, 8), precision="float64", sweeps=1).shape[1] > 0


def test_every_kernel_of_hpl_is_called(team):
    plan = [[kernel, 40, 12, 8, 1] for kernel in range(len(KERNELS))]
    times = team.rounds(len(PROCESSORS), len(plan), do="hpl", plan=plan, largest=64)
    assert (times[:, :, 1] >= times[:, :, 0]).all()


def test_a_worker_that_ends_is_reported():
    with Team(PROCESSORS[:1], "no_such_library.so") as team, pytest.raises(UsageError, match="a worker has ended"):
        team.rounds(1, 1, do="triad", length=64, sweeps=1)


def test_workers_end_with_the_block():
    with Team(PROCESSORS[:1]) as team:
        (worker,) = team._workers
        assert worker.poll() is None
    assert worker.returncode != 0


def test_blas_of_scipy_has_all_routines():
    found = Blas()
    assert all(found.addresses[name] > 0 for name in (*BLAS, "sgemm"))
    assert "of scipy" in blas_name(None)


def test_a_library_without_blas_is_refused():
    with pytest.raises(UsageError, match="no BLAS with Fortran names"):
        Blas("libm.so.6")


def test_the_clock_is_that_of_the_system():
    block = clock_block()
    assert block[4] == block.ctypes.data + 8
    assert np.count_nonzero(block[5:]) == 0
