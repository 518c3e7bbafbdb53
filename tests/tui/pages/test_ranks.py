"""The ranks page: its numbers are those of the command line, its bars are where the times say, its keys move them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from textual import events

from tests.driver import GPUS, RANKS, drive, predicted
from tests.page_harness import SIZES, on_page
from tests.text_runs import columns_with, text_of
from whatif.cli.main import program
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError
from whatif.plotting.lane_cells import lane_runs
from whatif.plotting.lanes import PARTS, Lanes, MessageLines
from whatif.simulation.activity import GROUPS
from whatif.studies.rank_lanes import RANK_KINDS, RunSummary, busiest, main_groups, path_owners
from whatif.tui.commands.explorer_commands import Edit, Show
from whatif.tui.jobs.simulation_job import simulated_part
from whatif.tui.labels import duration
from whatif.tui.page_views import RanksView
from whatif.tui.pages.ranks import RanksPage
from whatif.tui.state import ExplorerState, View
from whatif.tui.time_window import moved
from whatif.tui.widgets.rank_bars import RankBars
from whatif.tui.widgets.run_labels import node_times

# Rank 0 computes for 3 ms, then rank 1, which waited for it, for 1 ms; the others are done before.
CHAIN = """num_ranks 4

rank 0 {
l1: calc 3000000
l2: send 8b to 1 tag 0
l2 requires l1
}

rank 1 {
l1: recv 8b from 0 tag 0
l2: calc 1000000
l2 requires l1
}

rank 2 {
l1: calc 2000000
}

rank 3 {
l1: calc 1000000
l2: send 8b to 2 tag 0
l2 requires l1
}
"""
COMPUTE, WAIT = GROUPS.index("compute"), GROUPS.index("wait")
rank_lines = partial(lane_runs, kinds=RANK_KINDS)
TRACE = """
[platform]
extends = "summit"

[application]
name = "chain"
rank_count = 4
iteration_count = 1
phases.trace = { kind = "trace", file = "chain.goal", model = "max_rate" }
"""


@pytest.fixture
def chain(tmp_path):
    """A scenario of a trace of four ranks."""
    (tmp_path / "chain.goal").write_text(CHAIN.replace("calc 2000000", "calc 2000000\nl2: recv 8b from 3 tag 0"))
    path = tmp_path / "chain.toml"
    path.write_text(TRACE)
    return str(path)


def simulated(*arguments):
    """What the command line prints of a run."""
    done = CliRunner().invoke(program, ["simulate", *arguments, "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["rows"], done.stderr


def lanes_of(spans, node, path=(), messages=(), window=(0.0, 1.0)):
    """Lanes of spans (rank, group, start, end)."""
    rank, group, start, end = (np.array(column) for column in zip(*spans, strict=True))
    group = main_groups(rank.astype(np.int32), group.astype(np.uint8), start, end, window, len(node))
    ways = [np.array(column) for column in zip(*path, strict=True)] or [np.empty(0)] * 3
    owners = path_owners(ways[0].astype(np.int32), ways[1], ways[2], window)
    ends = [np.array(column) for column in zip(*messages, strict=True)] or [np.empty(0)] * 5
    ranks = (column.astype(np.int32) for column in ends[:2])
    return Lanes(window, 0, np.array(node, dtype=np.int32), group, owners, MessageLines(*ranks, *ends[3:]))


def test_each_part_of_a_window_shows_what_takes_most_of_it():
    random = np.random.default_rng(5)
    edges = np.sort(random.random(400))
    groups = random.integers(0, len(GROUPS) + 1, 399)
    spans = [(0, group, start, end) for group, start, end in zip(groups, edges, edges[1:], strict=False)]
    low, high = 0.21, 0.37
    found = lanes_of([span for span in spans if span[1] < len(GROUPS)], [0], window=(low, high)).group[0]
    # A thousand points of each part tell what takes most of it, where nothing else takes nearly as much.
    points = low + (high - low) * (np.arange(PARTS * 1000) + 0.5) / (PARTS * 1000)
    there = np.append(groups, len(GROUPS))[np.searchsorted(edges, points, side="right") - 1].reshape(PARTS, 1000)
    counts = np.stack([(there == group).sum(axis=1) for group in (len(GROUPS), *range(len(GROUPS)))])
    first, second = np.sort(counts, axis=0)[-1], np.sort(counts, axis=0)[-2]
    clear = first - second > 4
    assert clear.sum() > 0.9 * PARTS
    assert (found == counts.argmax(axis=0))[clear].all()


def test_the_critical_path_is_on_one_rank_at_a_time():
    # Rank 7 to 0.25, in flight to 0.5, rank 2 to 0.75 but for a moment on rank 7.
    spans = ((7, 0.0, 0.25), (2, 0.5, 0.6), (7, 0.6, 0.6 + 0.1 / PARTS), (2, 0.6 + 0.1 / PARTS, 0.75))
    owners = lanes_of([(0, COMPUTE, 0.0, 1.0)], [0], path=spans).critical
    assert (owners[: PARTS // 4] == 7).all()
    assert (owners[PARTS // 4 : PARTS // 2] == -1).all()
    assert (owners[PARTS // 2 : 3 * PARTS // 4] == 2).all()
    assert (owners[3 * PARTS // 4 :] == -1).all()


def test_bars_ranks_nodes_and_messages_stand_where_they_belong():
    spans = [(0, COMPUTE, 0.0, 0.75), (1, WAIT, 0.0, 0.5), (1, COMPUTE, 0.5, 1.0), (2, COMPUTE, 0.0, 0.25)]
    lanes = lanes_of(spans, [4, 4, 9], path=[(0, 0.0, 0.75)], messages=[(0, 2, 8.0, 0.5, 0.9)])
    lines = rank_lines(lanes, 0, None, 100, 7)
    text = text_of(lines)
    left = text[0].index("0 ") + 2
    width = 100 - left
    assert text[0].startswith("node 4  ┌ ")
    assert text[1].lstrip().startswith("└ ")
    # Where there is room a line lies between two nodes.
    assert not text[2].strip()
    assert text[3].startswith("node 9  ╶ ")
    for line, style, start, end in ((0, "series-3", 0, 0.75), (1, "series-2", 0, 0.5), (3, "series-3", 0, 0.25)):
        found = {column for column in columns_with(lines[line], style) if column >= left}
        assert abs(min(found) - left - start * width) <= 1
        assert abs(max(found) + 1 - left - end * width) <= 1
    assert abs(text[0].count("━") - 0.75 * width) <= 2
    assert "━" not in text[1]
    assert text[0][left + int(0.5 * width)] == "▸"
    assert text[3][left + int(0.9 * width)] == "◂"
    plain = text_of(rank_lines(lanes, 0, 1, 100, 7, colours=False))
    assert set(plain[0][left:]) == {"C", "▸", " "}
    assert plain[1][left:].strip() == "w" * round(0.5 * width) + "-" * (width - round(0.5 * width))
    assert "»" in plain[1]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size_has_its_picture(width, height):
    spans = [(rank, rank % 5, 0.1 * (rank % 7), 0.9) for rank in range(100)]
    lanes = lanes_of(spans, np.arange(100) // 6, path=[(3, 0.0, 0.5)], messages=[(1, 2, 8.0, 0.2, 0.3)] * 20)
    for colours in (True, False):
        lines = text_of(rank_lines(lanes, 40, 41, width, height, colours=colours))
        assert len(lines) <= height
        assert all(len(line) <= width for line in lines)
        assert any("»41" in line for line in lines) or height < 4 or width < 20


@pytest.mark.parametrize("text", ["3", "1 ms", "2 ms, 1 ms", "1 s, 2 GB", "a, b", "1 ms, 2 ms, 3 ms"])
def test_a_window_that_is_none_is_told(text):
    with pytest.raises(UsageError, match="window"):
        View().with_entry("ranks.window", text)


def test_a_window_moves_and_grows_within_the_run():
    assert moved(None, 4.0, 0.0, 0.5) == (1.0, 3.0)
    assert moved((1.0, 3.0), 4.0, 0.25, 1.0) == (1.5, 3.5)
    assert moved((1.5, 3.5), 4.0, 0.5, 1.0) == (2.0, 4.0)
    assert moved((1.5, 3.5), 4.0, 0.0, 4.0) is None
    # A far zoom is still a window.
    window = None
    for _ in range(60):
        window = moved(window, 4.0, 0.0, 0.5)
    low, high = View().with_entry("ranks.window", View().text("ranks.window", window)).of(RanksView).window
    assert 0 <= low < high <= 4.0


def test_a_trace_has_the_times_of_the_command_line(chain):
    rows, told = simulated(chain)

    async def check(page):
        time = max(row["time"] for row in rows)
        assert f"chain.goal · {duration(time)} on Summit · 4 ranks on 1 node" in page.lines[0]
        assert "4 ranks" in told
        assert "2 messages" in told
        assert "2 messages with 16 B in all; cost model: max-rate." in page.text
        # On the path both computations lie: 4 ms.
        assert "critical path: computing 4 ms (100.0%)" in page.text
        mean = sum(row["compute_time"] for row in rows) / 4
        assert page.line("compute ", duration(mean), duration(max(row["compute_time"] for row in rows)))
        bars = page.app.query_one(RankBars)
        lines = text_of(bars.draw(*bars.size))
        counts = {line.count("━") for line in lines if "━" in line and "critical path" not in line}
        assert max(counts) / sum(counts) == pytest.approx(0.75, abs=0.02)
        assert len(counts) == 2
        await page.change(Show("picture", "table"))
        for row in rows:
            assert page.line(f" {duration(row['time'])} ", duration(row["compute_time"]))

    on_page(RanksPage, check, chain)


def test_a_modelled_study_is_played_beside_and_both_times_are_told():
    rows, _ = simulated("jacobi2d", "--iterations", "2", "--set", f"{RANKS}=96")
    state = 2 * predicted(f"{RANKS}=96")["iteration_time"]

    async def check(page):
        time = duration(max(row["time"] for row in rows))
        expected = f"Analytic model {duration(state)}, simulated {time}"
        assert expected in page.text
        assert f"2 iterations of jacobi2d · {time} on Summit · 96 ranks on 16 nodes" in page.lines[0]

    on_page(RanksPage, check, changes=(Edit(RANKS, "96"), Show("ranks.iterations", "2")))


def test_why_there_is_no_time_line_is_told():
    state = Edit("platform.node_count", "20").apply(_state("jacobi2d"))
    found = simulated_part(state.session.inputs, RanksView(), None, known=False)
    assert "the ranks need more nodes than the platform has" in found.reason


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("window", "2 ms, 1 ms", "such as `0 s, 3 ms`"),
        ("window", "2 ms", "such as `0 s, 3 ms`"),
        ("iterations", "0", "expected a whole number"),
        ("iterations", "many", "expected a whole number"),
        ("first_rank", "-1", "expected the number of a rank"),
    ],
)
def test_wrong_view_fields_are_refused(key, text, reason):
    with pytest.raises(UsageError, match=reason):
        View().with_entry(f"ranks.{key}", text)


def test_a_deadlock_is_told_with_its_ranks(chain):
    dead = "num_ranks 2\n\n" + "".join(
        f"rank {rank} {{\nl1: recv 8b from {1 - rank} tag 0\nl2: send 8b to {1 - rank} tag 0\nl2 requires l1\n}}\n"
        for rank in range(2)
    )
    Path(chain).with_name("chain.goal").write_text(dead)
    Path(chain).write_text(TRACE.replace("rank_count = 4", "rank_count = 2"))

    async def check(page):
        assert "There is no time line: deadlock: 2 of 2 ranks wait forever" in page.text
        assert "rank 1, operation 0 (receive): receive of 8 B from rank 0" in page.text
        assert "The other pages show the analytic model." in page.text
        # The file is wrong, no change.
        assert "u undoes" not in page.text

    on_page(RanksPage, check, chain)


def _state(scenario):
    return ExplorerState.start(Session.start(Scenario.open(scenario)))


def test_a_window_of_many_ranks_is_small_and_its_block_holds_the_ranks_in_sight():
    state = Edit(RANKS, "384").apply(_state("jacobi2d"))
    view = RanksView(first_rank=200, window=(1.5e-3, 1.9e-3))
    path = simulated_part(state.session.inputs, view, None, known=False).summary.path
    parts = path.compute_time + path.latency_time.sum() + path.transfer_time.sum()
    assert_allclose(parts, predicted(f"{RANKS}=384")["iteration_time"], rtol=1e-3, atol=0)
    found = simulated_part(state.session.inputs, view, 205, known=True)
    assert found.summary is None
    lanes = found.lanes
    assert lanes.first_rank <= 200 < lanes.first_rank + len(lanes.node) - 90
    assert set(lanes.messages.sender.tolist()) | set(lanes.messages.receiver.tolist()) >= {205}
    assert all(205 in pair for pair in zip(lanes.messages.sender, lanes.messages.receiver, strict=True))
    last = simulated_part(state.session.inputs, replace(view, first_rank=99999), None, known=True).lanes
    assert last.first_rank + len(last.node) == 384


def test_the_keys_move_through_the_run(chain):
    async def check(driver):
        await driver.go("ranks")
        assert "chain.goal" in driver.screen_text()
        assert "whole run · + - zoom, ← → move" in driver.screen_text()
        assert "marked" in driver.screen_text()
        await driver.press("v")
        assert not any(words in driver.screen_text() for words in ("zoom, ← →", "marked"))
        await driver.press("m")
        assert "parts of the run time" in driver.screen_text()
        assert "marked" not in driver.screen_text()
        await driver.press("v", "v", "plus")
        # From just after the end of rank 3 to that of rank 0: most of what happens.
        assert driver.state.view.of(RanksView).window == pytest.approx((1.004e-3, 3.004e-3), rel=1e-3)
        await driver.press("home", "x")
        assert "Rank 0 on node 0" in driver.screen_text()
        await driver.press("x")
        assert "Rank 1 on node 0 ends at 4.0006 ms: compute 1 ms, wait 3.0006 ms." in driver.screen_text()
        await driver.press("y")
        assert "Rank 2 on node 0" in driver.screen_text()
        await driver.press("v")
        assert "ends at" in driver.screen_text()
        await driver.press("m")
        assert "parts of the run time" in driver.screen_text()
        await driver.press("m")
        assert "ends at, least" in driver.screen_text() or "done at, least" in driver.screen_text()
        await driver.press("m", "m")
        assert "node 0" not in driver.screen_text().replace("on node 0", "")
        await driver.press("I")
        assert "a trace is simulated once" in driver.screen_text()

    drive(check, (80, 24), chain)


def test_a_run_that_is_known_or_under_way_is_not_begun_anew(chain):
    async def check(page):
        assert page.page.job(page.app.state) is None
        await page.change(Edit(GPUS, "4"), work=False)
        assert "simulating …" in page.text
        job = page.page.job(page.app.state)
        await page.act("zoom", 0.5)
        await page.act("rank", 1)
        await page.change(Show("picture", "table"), work=False)
        assert page.page.job(page.app.state) is job

    on_page(RanksPage, check, chain)


def test_busiest_part_is_where_activities_change():
    group = np.ones((3, PARTS), dtype=np.uint8)
    group[0, 900:910] = 2
    group[1, 905:] = 3
    lanes = replace(lanes_of([(0, 0, 0.0, 1.0)], [0, 0, 0]), group=group)
    low, high = busiest(lanes, 0.5)
    assert high - low == 0.5
    assert low <= 900 / PARTS
    assert high >= 910 / PARTS
    # Without any change the middle is as good as any other part.
    still = replace(lanes, group=np.ones((3, PARTS), dtype=np.uint8))
    assert busiest(still, 0.5) == (0.25, 0.75)


def test_times_by_node_are_least_median_and_most_of_its_ranks():
    times = np.zeros((5, len(GROUPS)))
    times[:, COMPUTE] = [1.0, 4.0, 2.0, 8.0, 6.0]
    times[:, WAIT] = [3.0, 0.0, 2.0, 0.0, 2.0]
    node, ends = np.array([1, 0, 1, 0, 1], np.int32), times.sum(axis=1)
    summary = RunSummary(8.0, "Summit", "run", True, (), node, ends, times, 0, 0.0, None, 8.0, False, ())
    table = node_times(summary)
    assert table.columns["node"].values.tolist() == [0.0, 1.0]
    assert table.columns["ranks"].values.tolist() == [2.0, 3.0]
    assert [table.columns[f"compute, {word}"].values.tolist() for word in ("least", "median", "most")] == [
        [4.0, 1.0],
        [6.0, 2.0],
        [8.0, 6.0],
    ]
    assert table.columns["messages, most"].values.tolist() == [0.0, 3.0]
    assert table.columns["done at, median"].values.tolist() == [6.0, 4.0]


def test_hint_names_only_keys_that_the_focus_leaves_to_the_page():
    async def check(driver):
        driver.app.runner.ask(Show("screen", "ranks"))
        await driver.until(lambda: "whole run ·" in driver.screen_text())
        driver.main_screen.query_one(RankBars).focus()
        await driver.until(lambda: "+ - zoom, ← → move" in driver.screen_text())
        driver.tree.focus()
        await driver.until(lambda: "· z Z zoom" in driver.screen_text())
        assert "+ - zoom" not in driver.screen_text()
        before = driver.session.scenario
        await driver.press("z")
        assert driver.session.scenario is before
        assert driver.state.view.of(RanksView).window is not None

    drive(check, size=(200, 50))


def test_the_wheel_scrolls_the_ranks():
    async def check(driver):
        await driver.go("ranks")
        bars = driver.main_screen.query_one(RankBars)
        for kind, first in ((events.MouseScrollDown, 3), (events.MouseScrollDown, 6), (events.MouseScrollUp, 3)):
            driver.app.screen.post_message(kind(bars, *bars.region.offset, 0, 0, 0, False, False, False))
            await driver.calm()
            assert driver.state.view.of(RanksView).first_rank == first

    drive(check, (120, 36))
