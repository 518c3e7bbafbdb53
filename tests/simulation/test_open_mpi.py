"""Messages of collectives by the rules of Open MPI, compared with those that a real Open MPI sends.

Its component `pml_monitoring` reports each message that collectives consist of (tests/data/recorder/collective.c).
"""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
import pytest

from tests.paths import DATA
from tests.written_programs import op, program, trace
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind
from whatif.simulation.schedule import Step
from whatif.simulation.selection import parse_selection

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def version():
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return ""
    return subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout


pytestmark = pytest.mark.skipif("Open MPI) 4.1" not in version(), reason="no Open MPI 4.1: mpicc and mpirun are needed")

CASES = [
    ("broadcast", 3, 16),  # chain
    ("broadcast", 13, 32),  # binary tree
    ("broadcast", 13, 20_000),  # binomial tree by doubling distances
    ("broadcast", 24, 64),  # k-nomial tree
    ("broadcast", 16, 2_000_000),  # scatter and allgather
    ("reduce", 5, 5000),
    ("reduce", 13, 64),
    ("allreduce", 6, 64),
    ("allreduce", 13, 50_000),
    ("allreduce", 3, 6000),
    ("allgather", 13, 64),
    ("allgather", 16, 64),
    ("allgather", 40, 2000),
    ("alltoall", 24, 64),
    ("alltoall", 8, 600_000),
    ("gather", 13, 64),
    ("gather", 5, 300_000),
    ("scatter", 24, 20_000),
    ("reduce_scatter", 16, 64),
    ("reduce_scatter", 32, 600),
    ("barrier", 5, 0),
    ("barrier", 13, 0),
    ("scan", 5, 64),
]
"""Collective, number of ranks, and size in bytes."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("collective") / "collective"
    subprocess.run(["mpicc", "-std=c99", "-rdynamic", "-o", path, DATA / "recorder" / "collective.c"], check=True)
    return path


def sent(compiled, folder, ranks):
    """Messages and bytes [collective, messages or bytes, from, to] that Open MPI sends in the cases of some ranks.

    One start for all of them, as a rank takes 40 ms to begin.
    """
    collectives = [(name, size) for name, count, size in CASES if count == ranks]
    arguments = [str(word) for collective in collectives for word in collective]
    options = ["--oversubscribe", "-n", str(ranks), "--mca", "pml_monitoring_enable", "2"]
    done = subprocess.run(["mpirun", *options, compiled, folder, *arguments], capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, **ENVIRONMENT})  # fmt: skip
    found = np.zeros((len(collectives), 2, ranks, ranks))
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            at, target, messages, bytes_ = map(int, line.split())
            found[at, :, int(path.name), target] = messages, bytes_
    if not found.any():
        pytest.skip(f"Open MPI has no pml_monitoring, or cannot run here: {done.stderr[-300:]}")
    return dict(zip(collectives, found, strict=True))


def selected(name, ranks, size):
    """The same of a trace with this collective."""
    call = op(Kind[name.upper()], size=float(size))
    schedule = lower(trace(*(program(call) for _ in range(ranks))), parse_selection("openmpi"))
    rank = np.repeat(np.arange(ranks), np.diff(schedule.rank_start))
    sends = schedule.step == Step.SEND
    found = np.zeros((2, ranks, ranks))
    np.add.at(found[0], (rank[sends], schedule.peer[sends]), 1)
    np.add.at(found[1], (rank[sends], schedule.peer[sends]), schedule.size[sends])
    return found


@pytest.mark.parametrize(("name", "ranks", "size"), CASES)
def test_messages_are_those_of_open_mpi(compiled, tmp_path, once, name, ranks, size):
    messages, bytes_ = once(f"open_mpi_{ranks}", lambda: sent(compiled, tmp_path, ranks))[name, size]
    ours, our_bytes = selected(name, ranks, size)
    np.testing.assert_array_equal(ours, messages)
    # Blocks of P do not divide a size evenly.
    np.testing.assert_allclose(our_bytes, bytes_, rtol=0, atol=8.0 * ranks)
    assert our_bytes.sum() == pytest.approx(bytes_.sum(), rel=1e-3)
