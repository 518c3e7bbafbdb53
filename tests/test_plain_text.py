"""Plain text for screen readers: words for columns, pictures and frames, by one variable."""

from __future__ import annotations

import re

import pytest

from whatif.plain_text import is_plain, undrawn

DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]|##")


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setenv("WHATIF_PLAIN", "1")


def test_the_variable_decides(monkeypatch):
    for value, expected in (("1", True), ("yes", True), ("0", False), ("", False)):
        monkeypatch.setenv("WHATIF_PLAIN", value)
        assert is_plain() == expected
    monkeypatch.delenv("WHATIF_PLAIN")
    assert not is_plain()
    assert undrawn("┌a█⣿b") == " a  b"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "timeline", "jacobi2d"),
        ("show", "domains", "jacobi2d", "--plot"),
        ("show", "messages", "jacobi2d", "--plot"),
        ("show", "placement", "jacobi2d", "--set", "application.rank_count=12", "--plot"),
        ("run", "minife_gpus_per_node", "--plot"),
        ("run", "minife_gpus_per_node"),
        ("scale", "jacobi2d_strong", "--nodes", "1, 2", "--plot"),
        ("sensitivity", "jacobi2d"),
        ("sensitivity", "jacobi2d", "--show", "ladder"),
        ("diff", "minimd", "--platform", "summit"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("plain")
def test_tables_are_named_values_and_nothing_is_drawn(whatif_main, words):
    code, out, _ = whatif_main(*words)
    assert code == 0
    assert not DRAWN.search(out)
    lines = [line for line in out.splitlines() if line]
    assert len(lines) > 5
    assert [line for line in lines if not re.fullmatch(r"[^:]+: \S.*", line) or "  " in line] == []


@pytest.mark.usefixtures("plain")
def test_a_derivation_states_the_level_of_each_line(whatif_main):
    code, out, _ = whatif_main("explain", "minife", "halo", "--depth", "1")
    assert code == 0
    assert not DRAWN.search(out)
    levels = re.findall(r"^level (\d): (\S+)", out, re.MULTILINE)
    assert levels == [("0", "halo:"), ("1", "once_time"), ("1", "repeat_count")]


@pytest.mark.usefixtures("plain")
def test_other_formats_and_pictures_stay(whatif_main, tmp_path):
    code, out, _ = whatif_main("show", "timeline", "jacobi2d", "--format", "csv")
    assert (code, out.splitlines()[0]) == (0, "phase,category,start [s],end [s],time [s],share")
    assert whatif_main("show", "timeline", "jacobi2d", "-o", "x.svg")[0] == 0
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
