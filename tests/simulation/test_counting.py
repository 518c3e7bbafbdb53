"""Messages of nodes counted from schedules, and the k of the K-model for traces."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from whatif.core.phases.traced_run import TraceFile, traced_k
from whatif.simulation.counting import node_message_counts
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind, Loop, RankProgram, Trace

COUNT = 70_000
"""More than 16 bits count."""


def ring(rank_count: int, count: int, distance: int = 1) -> Trace:
    """Every rank sends so many messages to the one at a distance; the last is followed by the first."""
    kind = np.array([Kind.ISEND, Kind.RECEIVE], dtype=np.uint8)
    peer, tag = np.array([distance, -distance], dtype=np.int32), np.zeros(2, dtype=np.int32)
    none = np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32)
    program = RankProgram(kind, peer, np.full(2, 8.0), tag, *none, loops=(Loop(0, 2, count),), relative=True)
    return Trace((program,), np.zeros(rank_count, dtype=np.int32))


def test_more_messages_than_16_bits_count_are_counted_round_the_ring() -> None:
    node = np.array([0, 0, 0, 1], dtype=np.int32)
    assert node_message_counts(lower(ring(4, COUNT)), node) == (COUNT, 3 * COUNT)


def test_a_message_to_oneself_is_not_counted() -> None:
    assert node_message_counts(lower(ring(2, 3, distance=0)), np.zeros(2, dtype=np.int32)) == (0, 0)


def actions(*rows: str) -> str:
    return "".join(f"{rank} {row}\n" for row in rows for rank in range(4))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (actions("init", "barrier") + "0 isend 1 0 8\n1 irecv 0 0 8\n", 0.0),
        (actions("init", "barrier") + "0 isend 1 0 8\n1 irecv 0 0 8\n0 isend 2 0 8\n2 irecv 0 0 8\n", 0.5),
        # Rounds to ranks 1 and 2 further: of the 4 messages of a node one leaves it in the first, two in the second.
        (actions("init", "barrier"), 0.75),
        (actions("init"), 0.0),
    ],
)
def test_collectives_count_for_k_only_where_nothing_else_is_sent(tmp_path: Path, text: str, expected: float) -> None:
    (tmp_path / "trace.txt").write_text(text)
    file = TraceFile.at(tmp_path / "trace.txt")
    assert traced_k(*np.array([4.0, 2.0, 1.0, 2.0]), file=file) == 2 * expected
    assert traced_k(*np.array([4.0, 2.0, 2.0, 2.0]), file=file) == 0.0


def test_a_trace_is_read_again_when_any_of_its_files_has_changed(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}").write_text(f"{rank} init\n{rank} compute 1e9\n")
    (tmp_path / "index").write_text("rank0\nrank1\n")
    first, second = (tmp_path / f"rank{rank}" for rank in range(2))
    os.utime(first, ns=(2**60, 2**60))
    before = TraceFile.at(tmp_path / "index")
    assert before.schedule(2).size.max() == 1.0
    second.write_text("1 init\n1 compute 3e9\n")
    os.utime(second, ns=(2**59, 2**59))
    assert TraceFile.at(tmp_path / "index").schedule(2).size.max() == 3.0
