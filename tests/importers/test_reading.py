"""Damaged files of other programs: one kind of error, with the file, and bounds on time and size."""

from __future__ import annotations

import re
import sqlite3

import pytest

from tests.paths import DATA
from whatif.errors import InvalidFileError, UsageError
from whatif.importers import gpu_benchmarks, trace_formats
from whatif.importers.run_files import read_runs
from whatif.importers.sqlite import open_database
from whatif.importers.text import reading
from whatif.profiles.formats import read_profile

SAXPY = DATA / "profiles" / "nsys" / "saxpy_a100.sqlite"
DUMPI = (DATA / "traces" / "dumpi" / "testtrace-0000.txt").read_text()
BABELSTREAM = (DATA / "importers" / "gpu" / "babelstream" / "v3.3-titanxp-cuda.txt").read_text()
STREAM = (DATA / "importers" / "gpu" / "babelstream" / "stream-knl.txt").read_text()
DIGITS = "1" * 5000
DAMAGED = {
    "a rank of 5,000 digits": ("trace", "t.goal", f"num_ranks 2\nrank 0 {{\nsend 8b to {DIGITS}\n}}\n", "t.goal:3:1"),
    "a processor of 5,000 digits": (
        "trace", "t.goal", f"num_ranks 2\nrank 0 {{\ncalc 8 cpu {DIGITS}\n}}\n", "t.goal:3:1",
    ),
    "a rank of 63 bits": (
        "trace", "t-0000.txt", re.sub(r"int dest=\d+", f"int dest={2**63 - 1}", DUMPI), "t-0000.txt:23:1: MPI_Isend",
    ),
    "a rank of 32 bits": (
        "trace", "t-0000.txt", re.sub(r"int dest=\d+", f"int dest={2**31}", DUMPI), "t-0000.txt:23:1: MPI_Isend",
    ),
    "a tag of 40 bits": (
        "trace", "t-0000.txt", re.sub(r"int tag=\d+", f"int tag={2**40}", DUMPI), "t-0000.txt:23:1: MPI_Isend",
    ),
    "an array of 200 digits": (
        "gpu", "b.txt", re.sub(r"Array size: [\d.]+", f"Array size: {DIGITS[:200]}", BABELSTREAM), "b.txt:6:1",
    ),
    "an array of no elements": (
        "gpu", "b.txt", re.sub(r"Array size = \d+", "Array size = 0", STREAM), "b.txt:6:1: size of an array",
    ),
    "a lone carriage return in a table": ("runs", "r.csv", "n,time [s]\n1\r2,3\n4,5\n", "r.csv:"),
    "a lone carriage return": ("gpu", "g.csv", "GPU,a\rb,c\n", "g.csv:1:1: not CSV"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused_with_its_line(what, whatif_main, tmp_path):
    verb, name, text, place = DAMAGED[what]
    (tmp_path / name).write_text(text, newline="")
    code, out, err = whatif_main("import", verb, name)
    assert (code, out) == (3, "")
    assert f"whatif: {place}" in err


@pytest.mark.parametrize(
    ("module", "function", "verb", "source"),
    [
        (gpu_benchmarks, "parse_babelstream", "gpu", "importers/gpu/babelstream/v0-k80-cuda.txt"),
        (trace_formats, "read_goal", "trace", "traces/goal/goal_binomialtreebcast_8_8.goal"),
    ],
)
def test_a_defect_of_a_reader_is_an_error_about_the_file(monkeypatch, whatif_main, module, function, verb, source):
    def defect(*_):
        raise IndexError("no such \x1b row")

    if function == "parse_babelstream":
        name = "BabelStream or STREAM"
        patched = {**gpu_benchmarks.GPU_FORMATS, name: (gpu_benchmarks.GPU_FORMATS[name][0], defect)}
        monkeypatch.setattr(module, "GPU_FORMATS", patched)
    else:
        monkeypatch.setattr(module, function, defect)
    code, out, err = whatif_main("import", verb, DATA / source)
    assert (code, out) == (3, "")
    assert re.search(r"cannot be read as .*: IndexError: no such \\x1b row$", err.strip())


def test_the_cause_of_a_defect_is_kept_and_shown_on_demand(monkeypatch, tmp_path, whatif_main):
    with (
        pytest.raises(InvalidFileError, match=r"x\.csv: cannot be read as CSV: KeyError: 'a'") as caught,
        reading(tmp_path / "x.csv", "CSV"),
    ):
        {}["a"]
    assert isinstance(caught.value.__cause__, KeyError)
    monkeypatch.setenv("WHATIF_TRACEBACK", "1")
    with pytest.raises(AssertionError, match="Traceback"):
        whatif_main("import", "gpu", DATA / "ahead" / "README.md")


def test_errors_of_the_user_pass_and_a_lack_of_memory_is_one_of_the_file(tmp_path):
    with pytest.raises(UsageError, match="as it is"), reading(tmp_path, "CSV"):
        raise UsageError("as it is")
    with pytest.raises(InvalidFileError, match="needs more memory"), reading(tmp_path, "CSV"):
        raise MemoryError


def copied(tmp_path):
    path = tmp_path / "endless.sqlite"
    path.write_bytes(SAXPY.read_bytes())
    return path


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0"


def test_a_view_without_end_is_not_read(tmp_path):
    path = copied(tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}")
    connection.close()
    assert 0 < len(read_profile(path).operations) < len(read_profile(SAXPY).operations)


def test_a_query_without_end_is_interrupted(tmp_path):
    with pytest.raises(InvalidFileError, match="more time than those of a profile"), open_database(SAXPY) as database:
        database._connection.execute(ENDLESS).fetchall()


def test_comments_before_a_text_of_extra_p_take_linear_time(tmp_path):
    path = tmp_path / "hashes.txt"
    path.write_text("#" * 5000 + "\nnames,b\n1,2\n")
    assert read_runs([path]).to_pandas()["names"].tolist() == [1.0]
