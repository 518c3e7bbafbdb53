"""Text files packed with gzip are read as plain ones; damaged and oversized ones are refused."""

from __future__ import annotations

import gzip

import pytest

from tests.paths import DATA
from whatif.errors import InvalidFileError
from whatif.importers.message_files import read_network
from whatif.importers.run_files import read_runs
from whatif.importers.text import MOST_TEXT, read_text
from whatif.importers.trace_formats import is_trace, read_trace

NCCL = DATA / "importers" / "network" / "nccl" / "alps_all_reduce_2_nodes.txt"
OSU = DATA / "importers" / "network" / "cscs" / "mpich_01.txt"
RUNS = DATA / "runs" / "caliper" / "lulesh_grid_runs.csv"
GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 1\n}\nrank 1 {\nl1: recv 8b from 0 tag 1\n}\n"


def read_run(path):
    return read_runs([path])


def packed(source, folder):
    path = folder / f"{source.name}.gz"
    path.write_bytes(gzip.compress(source.read_bytes()))
    return path


@pytest.mark.parametrize(("read", "source"), [(read_network, NCCL), (read_network, OSU), (read_run, RUNS)])
def test_packed_files_are_read_as_plain_ones(read, source, tmp_path):
    plain, found = read(source).to_pandas(), read(packed(source, tmp_path)).to_pandas()
    assert plain.drop(columns="file", errors="ignore").equals(found.drop(columns="file", errors="ignore"))


def test_a_packed_trace_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "two.goal"
    path.write_bytes(b"\x1f\x8b\x08")
    assert not is_trace(path)
    with pytest.raises(InvalidFileError, match="damaged or cut off"):
        read_trace(path)


def test_a_packed_trace_is_read(tmp_path):
    source = tmp_path / "two.goal"
    source.write_text(GOAL)
    assert read_trace(packed(source, tmp_path)).rank_count == read_trace(source).rank_count == 2


def test_a_packed_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(NCCL.read_bytes())[:-40])
    with pytest.raises(InvalidFileError, match="damaged or cut off"):
        read_network(path)


def test_a_pointer_of_git_lfs_is_not_the_file(tmp_path):
    (tmp_path / "runs.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    with pytest.raises(InvalidFileError, match="a pointer of Git LFS, not the file itself"):
        read_runs([tmp_path / "runs.csv"])


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\n" * (2 * MOST_TEXT)))
    with pytest.raises(InvalidFileError, match=r"larger than 64 MiB|300 times"):
        read_text(path)
