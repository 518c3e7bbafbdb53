"""Traces by the pieces of a calibration, compared with SimGrid's replays of the same traces."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.core.message_simulation import costs_of
from whatif.models.charges import by_protocol_charges, piece_charges
from whatif.validation.tables import rows_of

ROWS = rows_of("simgrid_pieces.csv")
PLATFORM = ROOT / "validation" / "simgrid_pieces.toml"
BOUNDS = {"ring": 0.001, "chain": 0.001, "incast": 0.003, "halo": 0.14}


def exchanges(peers, size):
    """Irecv from all, Isend to all, Waitall: `(peer, sent tag, received tag)`."""
    receives = [f"irecv {peer} {tag} {size} 6" for peer, _, tag in peers]
    return [*receives, *(f"isend {peer} {tag} {size} 6" for peer, tag, _ in peers), "waitall"]


def ring(ranks, size):
    for rank in range(ranks):
        to = f"isend {(rank + 1) % ranks} 0 {size} 6"
        yield [f"irecv {(rank - 1) % ranks} 0 {size} 6", to, "waitall"] * 3


def halo(ranks, size):
    side = int(ranks**0.5)
    for rank in range(ranks):
        x, y = rank % side, rank // side
        around = ((x + 1) % side + y * side, 0, 1), ((x - 1) % side + y * side, 1, 0)
        around += (x + (y + 1) % side * side, 2, 3), (x + (y - 1) % side * side, 3, 2)
        yield exchanges(around, size) * 2


def incast(ranks, size):
    yield [*(f"irecv {rank} 0 {size} 6" for rank in range(1, ranks)), "waitall"]
    yield from ([f"send 0 0 {size} 6"] for _ in range(1, ranks))


def chain(ranks, size):
    for rank in range(ranks):
        before = [f"recv {rank - 1} 0 {size} 6"] if rank else []
        after = [f"send {rank + 1} 0 {size} 6"] if rank + 1 < ranks else []
        yield [*before, f"compute {1000 * (rank % 3 + 1)}", *after] * 4


PATTERNS = {"ring": ring, "halo": halo, "incast": incast, "chain": chain}


def simulated(folder, row, **overrides):
    programs = PATTERNS[row["pattern"]](int(row["ranks"]), int(row["message_size_B"]))
    lines = [f"{rank} {call}" for rank, calls in enumerate(programs) for call in ["init", *calls, "finalize"]]
    (folder / "trace.txt").write_text("\n".join(lines) + "\n")
    return whatif.simulate(folder / "trace.txt", platform=str(PLATFORM), model="pieces", overrides=overrides)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['pattern']}-{row['message_size_B']}")
def test_times_are_those_of_simgrid(tmp_path, row):
    """Halos differ where a message arrives while its receiver still sends: SMPI handles it in the wait."""
    found = simulated(tmp_path, row, **{"application.communication": "shared_links"})
    measured = float(row["time_s"])
    assert_allclose(found.activity.run_time, measured, rtol=BOUNDS[row["pattern"]], atol=0)


def test_a_message_alone_takes_the_sum_of_its_parts(tmp_path):
    """4,000 B: 2.8 us of the sender, 4 us latency, 4000 / 9.375 GB/s, 1.7 us of the receiver."""
    (tmp_path / "trace.txt").write_text(
        "0 init\n0 send 1 0 4000 6\n0 finalize\n1 init\n1 recv 0 0 4000 6\n1 finalize\n"
    )
    found = whatif.simulate(tmp_path / "trace.txt", platform=str(PLATFORM), model="pieces")
    assert_allclose(found.activity.run_time, 2.8e-6 + 4e-6 + 4000 / 9.375e9 + 1.7e-6, rtol=1e-9)
    path = found.table("path").to_pandas()
    assert set(path["protocol"]) - {""} == {"piece 3, eager"}


def test_pieces_are_taken_in_the_order_of_their_sizes_and_split_at_the_eager_limit():
    lines = [piece_charges(*(np.array(float(x)) for x in (lat, 1e9, 1, 1e9, 2, 1e9))) for lat in (30, 10, 20)]
    charges = by_protocol_charges(*lines * 3)
    costs = costs_of(charges, np.array([[1000.0, 0.0, 100.0, 500.0]] * 3), "pieces")
    assert costs.protocol_count == 9
    sizes, distance = np.array([0.0, 99.0, 100.0, 500.0, 501.0, 999.0, 1000.0]), np.zeros(7, dtype=int)
    assert costs.protocols(sizes, distance).tolist() == [0, 0, 1, 1, 4, 4, 5]
    assert costs.protocols(sizes, distance, True).tolist() == [0, 0, 1, 1, 7, 7, 8]
    assert_allclose(costs.flight[0, :, 0], [11, 21, 31, 10, 20, 30, 11, 21, 31])
    assert_allclose(costs.send_overhead[0, :, 0], [1, 1, 1, 0, 0, 0, 1, 1, 1])
    assert_allclose(costs.receive_overhead[0, :, 0], [2, 2, 2, 0, 0, 0, 0, 0, 0])


def test_a_platform_without_pieces_is_refused(tmp_path):
    (tmp_path / "trace.txt").write_text("0 init\n0 finalize\n")
    with pytest.raises(whatif.WhatifError, match="Lassen has no parameters of it"):
        whatif.simulate(tmp_path / "trace.txt", platform="lassen", model="pieces")


def test_more_pieces_than_the_replay_numbers_are_refused(tmp_path):
    pieces = "".join(
        f'[network.inter_node.pieces.p{at}]\nsmallest_size = "{at} B"\nlatency = "1 us"\nbandwidth = "1 GB/s"\n'
        for at in range(15)
    )
    (tmp_path / "many.toml").write_text(f'format = 1\nextends = "generic_cpu"\nname = "many"\n{pieces}')
    (tmp_path / "trace.txt").write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    with pytest.raises(whatif.WhatifError, match="45 protocols of messages; at most 42, a piece counts as three"):
        whatif.simulate(tmp_path / "trace.txt", platform=str(tmp_path / "many.toml"), model="pieces")
