"""GOAL schedules read all lines at once: the same programs, warnings and errors as line by line."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.paths import DATA
from whatif.errors import InvalidFileError
from whatif.importers import goal
from whatif.importers.goal import read_goal
from whatif.importers.goal_ranks import read_ranks
from whatif.simulation.rank_programs import ANY, Kind, Trace

FILES = sorted((DATA / "traces" / "goal").glob("*.goal"))
CHARACTERS = "abl:{}-0123456789 \n\t/*#_é"


def line_by_line(read, source):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goal, "read_ranks", lambda *_: None)
        return read(source)


def columns(trace: Trace):
    lists = (
        "kind", "peer", "size", "tag", "wait_start", "waits", "started_start", "started", "processor",
    )  # fmt: skip
    programs = [[np.asarray(getattr(program, name)).tolist() for name in lists] for program in trace.programs]
    return programs, trace.program_of.tolist(), trace.notes


def outcome(read, source):
    try:
        return columns(read(source))
    except InvalidFileError as error:
        return str(error)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shipped_schedules_are_the_same_as_line_by_line(path):
    text = path.read_text()
    body = text[text.index("rank 0") :]
    assert read_ranks(body, len(read_goal(path).programs)) is not None
    assert outcome(read_goal, path) == line_by_line(lambda path: outcome(read_goal, path), path)


PLAIN = """rank 1 {
l1: calc 123456789
first_2: recv 8b from -1 tag -1 cpu 3 nic 1
send 1234567890123456b to 0 tag 2147483647
l4: send 0b to 1 cpu 255
first_2 requires l4
l4 irequires l1
first_2 requires l1
}
rank 0 {
}
"""


def test_plain_statements_become_columns():
    found = read_ranks(PLAIN, 2)
    assert found is not None
    assert (found.ranks, found.batch.start.tolist(), found.line_count, found.adapter) == ([1, 0], [0, 4, 4], 11, 1)
    assert found.batch.kind.tolist() == [Kind.COMPUTE, Kind.RECEIVE, Kind.SEND, Kind.SEND]
    assert found.batch.size.tolist() == [123456789 * 1e-9, 8.0, 1234567890123456.0, 0.0]
    assert found.batch.peer.tolist() == [0, ANY, 0, 1]
    assert found.batch.tag.tolist() == [0, ANY, 2**31 - 1, 0]
    assert found.batch.processor.tolist() == [0, 3, 0, 255]
    assert [part.tolist() for part in found.batch.after] == [[3, 0], [1, 1]]
    assert [part.tolist() for part in found.batch.after_started] == [[0], [3]]


def test_dependencies_on_later_operations_come_last():
    found = read_ranks("rank 0 {\na: calc 1\nb: calc 1\nb requires c\nb requires a\nc: calc 1\n}\n", 1)
    assert found is not None
    assert [part.tolist() for part in found.batch.after] == [[0, 2], [1, 1]]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("l1: calc", "l1 : calc"),
        ("calc 123456789", "calc 12345678x"),
        ("calc 123456789", "calc 12345678901234567"),
        ("to 0", "from 0"),
        ("to 0", "to 2"),
        ("to 0", "to -1"),
        ("8b from", "8 b from"),
        ("tag 2147483647", "tag 2147483648"),
        ("cpu 255", "cpu 256"),
        ("l4: send", "l1: send"),
        ("l4: send", "4l: send"),
        ("l4: send", "l-4: send"),
        ("first_2: recv", "first_234: recv"),
        ("l4 irequires l1", "l4 irequires l9"),
        ("l4 irequires l1", "l4 irequiret l1"),
        ("rank 0 {", "rank 2 {"),
        ("rank 0 {", "rank 0{"),
        ("}\nrank 0", "rank 0"),
        ("}\nrank 0", "}\ncalc 5\nrank 0"),
        ("cpu 3 nic 1", "nic 1 cpu 3"),
        ("calc 123456789", "calc 123456789 tag 1"),
        ("calc 123456789", "/* */ calc 1"),
    ],
)
def test_unusual_and_wrong_statements_are_left_to_the_reader_of_lines(old, new):
    assert PLAIN.count(old) >= 1
    assert read_ranks(PLAIN.replace(old, new, 1), 2) is None


@pytest.mark.parametrize("seed", range(40))
def test_changed_schedules_give_the_same_as_line_by_line(seed):
    """A character or two of a schedule are changed, removed or added."""
    generator = random.Random(seed)  # noqa: S311
    text = list(generator.choice(FILES).read_text()[:3000] if seed % 2 else "num_ranks 2\n" + PLAIN)
    for _ in range(generator.randint(0, 2)):
        place = generator.randrange(len(text))
        text[place] = generator.choice(("", generator.choice(CHARACTERS), text[place] + generator.choice(CHARACTERS)))
    whole = "".join(text)
    assert outcome(read_goal, whole) == line_by_line(lambda text: outcome(read_goal, text), whole)


def test_a_rank_stated_in_two_pieces_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (32,))
    one = "rank {} {{\nl1: calc 5\n}}\n"
    path = tmp_path / "twice.goal"
    path.write_text("num_ranks 3\n" + "".join(one.format(rank) for rank in (0, 1, 0)))
    with pytest.raises(InvalidFileError, match=r"twice\.goal:8:1: rank 0 is stated twice"):
        read_goal(path)


@pytest.mark.parametrize("size", [32, 2**20])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", " // the end", "\nrank"])
def test_files_that_end_without_a_line_end_are_read(tmp_path, monkeypatch, end, size):
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (size,))
    path = tmp_path / "end.goal"
    path.write_text("num_ranks 2\n" + PLAIN.rstrip() + end)
    assert outcome(read_goal, path) == line_by_line(lambda path: outcome(read_goal, path), path)
