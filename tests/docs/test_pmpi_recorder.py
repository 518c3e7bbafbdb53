"""The recorder of the documentation, compiled with a real MPI: its trace has the calls of a known program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest

import whatif
from tests.paths import DATA, ROOT
from whatif.importers.trace_formats import read_trace
from whatif.simulation.rank_programs import ANY, COLLECTIVES, Kind

RANKS = 4
RECORDER = ROOT / "docs" / "pmpi_recorder.c"
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
pytestmark = pytest.mark.skipif(
    not shutil.which("mpicc") or not shutil.which("mpirun"), reason="no MPI library: mpicc and mpirun are needed"
)


def ran(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Folder of a trace, and what the recorder said."""
    folder = tmp_path_factory.mktemp("recorder")
    strict = ("mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
    ran(*strict, "-shared", "-fPIC", "-o", folder / "librecorder.so", RECORDER)
    ran("mpicc", "-std=c99", "-O1", "-o", folder / "program", DATA / "recorder" / "program.c")
    words = ("mpirun", "--oversubscribe", "-n", str(RANKS), "env", f"LD_PRELOAD={folder}/librecorder.so", "./program")
    done = ran(*words, cwd=folder, env={**os.environ, **OPEN_MPI, "PMPI_TRACE": "recorded"})
    return folder / "recorded", done.stderr


def test_the_recorder_is_short():
    assert len(RECORDER.read_text().splitlines()) <= 320


def test_the_trace_has_the_messages_of_the_program(recorded):
    trace = read_trace(recorded[0])
    assert trace.rank_count == RANKS
    assert "warnings" not in trace.notes
    for rank, program in enumerate(trace.programs):
        left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
        sends, receives = (
            Counter(
                (int(program.peer[at]), int(program.tag[at]), float(program.size[at]))
                for at in np.flatnonzero(np.isin(program.kind, kinds))
            )
            for kinds in ((Kind.SEND, Kind.ISEND), (Kind.RECEIVE, Kind.IRECEIVE))
        )
        expected_sends = Counter({(right, 7, 1000.0): 1, (right, 8, 8.0): 1, (right, 9, 16.0): 1, (right, 2, 24.0): 3})
        expected_receives = Counter({(left, 7, 1000.0): 1, (ANY, 8, 8.0): 1})
        expected_receives += Counter({(left, 9, 16.0): 1, (left, 2, 24.0): 3})
        if rank == 0:
            expected_sends[1, 5, 400.0] += 1
        if rank == 1:
            expected_receives[0, 5, 800.0] += 1
        if rank + 1 < RANKS:
            expected_sends[rank + 1, 1, 400.0] += 1
        if rank > 0:
            expected_receives[rank - 1, 1, 400.0] += 1
        if rank < 2:
            expected_sends[rank + 2, 3, 33.0] += 1
        else:
            expected_receives[rank - 2, 3, 33.0] += 1
        assert sends == expected_sends
        assert receives == expected_receives


def test_the_trace_has_the_collectives_of_the_program(recorded):
    for rank, program in enumerate(read_trace(recorded[0]).programs):
        own = 4.0 * (rank + 1)
        calls = np.flatnonzero(np.isin(program.kind, list(COLLECTIVES)))
        found = [(Kind(program.kind[at]), float(program.size[at]), int(program.peer[at])) for at in calls]
        assert found == [
            (Kind.BARRIER, 0.0, 0),
            (Kind.BROADCAST, 80.0, 1),
            (Kind.REDUCE, 8.0, 2),
            (Kind.ALLREDUCE, 8.0, 0),
            (Kind.SCAN, 8.0, 0),
            (Kind.GATHER, 44.0, 0),
            (Kind.SCATTER, 48.0, 0),
            (Kind.ALLGATHER, 52.0, 0),
            (Kind.ALLTOALL, 56.0, 0),
            (Kind.GATHER, own, 3),
            (Kind.SCATTER, own, 3),
            (Kind.ALLGATHER, own, 0),
            (Kind.ALLTOALL, 10.0, 0),
            (Kind.REDUCE_SCATTER, 10.0, 0),
            (Kind.REDUCE_SCATTER, 60.0, 0),
            (Kind.ALLREDUCE, 8.0, 0),
            (Kind.ALLTOALL, 64.0, 0),
            (Kind.BARRIER, 0.0, 0),
        ]


def test_the_first_computation_lasts_as_long_as_the_program_computes(recorded):
    """It computes for 20 ms by its own clock."""
    for program in read_trace(recorded[0]).programs:
        assert program.kind[0] == Kind.COMPUTE
        assert program.size[0] >= 0.02


def test_collectives_of_smaller_communicators_are_reported(recorded):
    for rank in range(RANKS):
        assert f"pmpi_recorder: rank {rank}: 1 collectives on smaller communicators left out" in recorded[1]


def test_the_trace_is_simulated_on_a_platform(recorded):
    simulation = whatif.simulate(recorded[0], platform="lassen")
    sent = simulation.table("messages").to_pandas()["message_size"]
    assert (sent == 1000.0).sum() == RANKS
    assert (sent == 24.0).sum() == 3 * RANKS
    assert (sent == 33.0).sum() == 2
    # The 20 ms before the first message are on every path.
    assert simulation.activity.run_time >= 0.02
