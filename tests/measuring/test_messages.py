"""Messages between ranks: pairs by distance, the launcher, and its failures."""

from __future__ import annotations

import sys

import pytest
from numpy.testing import assert_allclose

from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.measuring import ping_pongs
from whatif.measuring.mpi_collectives import part_size, ranks_of_nodes
from whatif.measuring.mpi_ranks import SIZES, pairs_by_distance
from whatif.measuring.ping_pongs import Messages, messages_of_ranks, rank_count

RANK = """import sys
print("a line of the launcher")
print('{"library": "Test MPI", "rank_count": 2, "rows": [["intra_socket", 8, 2e-7], ["intra_socket", 8, 4e-7]]}')
"""


@pytest.fixture
def launcher(monkeypatch, tmp_path):
    """Command that runs a text as a program in place of a launcher."""
    monkeypatch.setattr(ping_pongs.importlib.util, "find_spec", lambda name: object())
    for name in ping_pongs.RANK_COUNTS:
        monkeypatch.delenv(name, raising=False)

    def command(text):
        script = tmp_path / "launcher.py"
        script.write_text(text)
        return f"{sys.executable} {script}"

    return command


def test_first_pair_of_ranks_at_each_distance():
    places = [("a", 0), ("a", 1), ("a", 0), ("b", 0)]
    assert dict(pairs_by_distance(places)) == {"intra_socket": (0, 2), "inter_socket": (0, 1), "inter_node": (0, 3)}
    assert dict(pairs_by_distance([("a", 0)])) == {}


def test_sizes_are_two_in_each_factor_of_two():
    assert (SIZES[0], SIZES[-1]) == (1, 2**25)
    assert {8, 11, 16, 22, 32} <= set(SIZES)


@pytest.mark.parametrize("before", ["", "print('{ a line of the launcher }'); ", r"print(end='\x1b[0m'); "])
def test_messages_of_a_launcher(launcher, before):
    found, reason = messages_of_ranks(launcher(before + RANK), 1.0)
    assert reason == ""
    assert (found.library, found.rank_count) == ("Test MPI", 2)
    assert_allclose(found.medians("intra_socket").columns["time"].values, [3e-7], rtol=1e-12, atol=0)
    assert len(found.calibration("intra_socket")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('import sys; sys.exit("-----\\nno slots")', "failed: no slots"),
        ("", "failed: exit code 0"),
        ('print(\'{"library": "x", "rank_count": 1, "rows": []}\')', "started 1 rank: messages need two"),
    ],
)
def test_a_stated_launcher_that_fails_is_an_error(launcher, text, message):
    with pytest.raises(UsageError, match=message):
        messages_of_ranks(launcher(text), 1.0)


def test_a_stated_launcher_that_is_missing_is_an_error(launcher):
    with pytest.raises(UsageError, match="`no_launcher` is not installed"):
        messages_of_ranks("no_launcher -n 2", 1.0)


def test_a_stated_launcher_with_an_open_quotation_is_an_error():
    with pytest.raises(UsageError, match="--launcher mpirun 'n01: no closing quotation"):
        messages_of_ranks("mpirun 'n01", 1.0)


def test_the_default_launcher_may_be_missing(launcher, monkeypatch):
    monkeypatch.setattr(ping_pongs, "LAUNCHER", "no_launcher")
    assert messages_of_ranks(None, 1.0) == (None, "`no_launcher` is not installed")


def test_without_mpi4py_the_remedy_is_named(launcher, monkeypatch):
    monkeypatch.setattr(ping_pongs.importlib.util, "find_spec", lambda name: None)
    assert messages_of_ranks(None, 1.0) == (None, f"mpi4py is not installed (`{install_command('mpi')}`)")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(UsageError, match="started in 4 ranks of MPI, but mpi4py is not installed"):
        messages_of_ranks(None, 1.0)


def test_ranks_of_launchers_are_counted():
    assert rank_count({}) == 1
    assert rank_count({"OMPI_COMM_WORLD_SIZE": "4"}) == 4
    assert rank_count({"PMI_SIZE": "2"}) == 2
    assert rank_count({"SLURM_STEP_NUM_TASKS": "many"}) == 1


def test_rows_of_ranks_are_those_of_their_distance():
    found = Messages.of({"library": "x", "rank_count": 3, "rows": [["intra_socket", 1, 1e-6], ["inter_node", 2, 2e-6]]})
    assert found.rows == {"intra_socket": [(1, 1e-6)], "inter_node": [(2, 2e-6)]}


def test_parts_of_all_ranks_fill_a_buffer():
    assert part_size(1024, 4) * 4 == 1024
    assert part_size(1024, 3) * 3 == 1023
    assert part_size(8, 16) == 1


def test_ranks_of_a_node_are_known_where_all_nodes_have_as_many():
    assert ranks_of_nodes(["a", "b", "a", "b"]) == 2
    assert ranks_of_nodes(["a", "b", "a"]) is None
