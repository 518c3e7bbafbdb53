"""Time lines of ranks as pictures and as text: bars end where the table says, with the critical path."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import click
import numpy as np
import pytest
from matplotlib.colors import to_rgba

import whatif
from tests.paths import ROOT
from whatif.limits import MOST_LANES
from whatif.plotting.lanes import PARTS
from whatif.plotting.picture import draw
from whatif.plotting.picture_style import LIGHT
from whatif.plotting.terminal import terminal_picture
from whatif.visible_text import is_visible

TREE = ROOT / "docs" / "examples" / "tree.goal"


@pytest.fixture(scope="module")
def tree():
    return whatif.simulate(TREE, platform="summit")


def bars_of(axes):
    """Start, end and lane of each bar with a colour."""
    return [
        (path.vertices[:, 0].min(), path.vertices[:, 0].max(), round(path.vertices[:, 1].mean()))
        for item in axes.collections
        if type(item).__name__ == "PolyCollection" and item.get_facecolor()[:, 3].any()
        for path in item.get_paths()
    ]


def test_bars_of_a_rank_end_when_its_last_operation_does(tree):
    (axes,) = draw(tree.picture()).axes
    ends = tree.table().columns["time"].values
    part = tree.activity.run_time / PARTS
    for rank, end in enumerate(ends):
        assert max(stop for _, stop, lane in bars_of(axes) if lane == rank) == pytest.approx(end, abs=part)
    waits = tree.table().columns["wait_time"].values
    colour = to_rgba(LIGHT["series-2"])
    orange = [item for item in axes.collections if tuple(item.get_facecolor().ravel()) == colour]
    drawn = sum(np.ptp(path.vertices[:, 0]) for item in orange for path in item.get_paths())
    assert drawn == pytest.approx(waits.sum(), rel=0.02)


def test_critical_path_is_one_line_from_the_start_to_the_end_of_the_run(tree):
    (axes,) = draw(tree.picture()).axes
    lines = [item for item in axes.collections if type(item).__name__ == "LineCollection"]
    dark = [item for item in lines if item.get_linewidth()[0] < 2]
    spans = sorted((*segment[:, 0], segment[0, 1]) for item in dark for segment in item.get_segments())
    assert spans[0][0] == 0
    assert spans[-1][1] == pytest.approx(tree.activity.run_time)
    assert [lane for *_, lane in spans] == [0, 1, 3]
    assert all(before[1] == pytest.approx(after[0]) for before, after in pairwise(spans))


def test_names_are_ranks_with_the_node_where_one_begins(tree):
    (axes,) = draw(tree.picture()).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[:4] == ["node 0  rank 0", "2", "4", "node 1  rank 6"]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["send", "wait", "critical path"]
    assert axes.get_legend().legend_handles[-1].get_color() == LIGHT["ink"]


def test_text_has_a_letter_for_each_activity_without_colours(tree, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = click.unstyle(terminal_picture(tree.picture())).splitlines()
    assert lines[0] == "32 ranks on Summit"
    assert lines[1].startswith("node 0  ┌  0 ▸SSSSSSS▸sss")
    assert lines[4].endswith("S" * 15)
    assert set(lines[32].split()[-1][:-1]) == {"w"}
    assert lines[-1] == "s send   w wait   + and capitals: critical path   ▸ sends  ◂ receives"


def test_only_the_first_ranks_of_many_are_drawn(whatif_main, tmp_path):
    words = ("simulate", "jacobi2d", "--set", "application.rank_count=96")
    assert whatif_main(*words, "-o", "ranks.svg")[0] == 0
    text = (tmp_path / "ranks.svg").read_text(encoding="utf-8")
    assert f"first {MOST_LANES} of 96 ranks on Summit" in text
    code, out, _ = whatif_main(*words, "--plot")
    assert code == 0
    assert sum("┌" in line for line in out.splitlines()) == MOST_LANES // 6


def test_run_without_time_has_no_time_lines(whatif_main, tmp_path):
    (tmp_path / "idle.txt").write_text("".join(f"{rank} init\n{rank} finalize\n" for rank in range(2)))
    for options in (("-o", "idle.svg"), ("--plot",)):
        code, out, error = whatif_main("simulate", "idle.txt", "--platform", "summit", *options)
        assert (code, out) == (2, "")
        assert "no time lines to draw: the run takes no time" in error
    assert not (tmp_path / "idle.svg").exists()


def test_no_text_of_a_picture_acts_on_the_terminal(tree):
    hostile = "a\x1b]0;title\x07b"
    tiles = whatif.placement("jacobi2d").picture()
    box = whatif.domains("jacobi2d").picture()
    for picture in (replace(tree.picture(), title=hostile), replace(tiles, title=hostile), replace(box, title=hostile)):
        drawn = click.unstyle(terminal_picture(picture))
        assert r"\x1b]0;title\x07b" in drawn
        assert is_visible(drawn.replace("\n", ""))
