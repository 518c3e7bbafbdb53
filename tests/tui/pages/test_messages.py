"""The messages page in an app of its own; its numbers by hand from the tables of the papers and by the command line."""

from __future__ import annotations

import asyncio
import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import whatif
from tests.driver import drive as driven
from tests.page_harness import PageApp
from tests.scenarios_at_hand import FEW
from whatif.axes import Grid
from whatif.cli.main import program
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs
from whatif.plotting.description import text_cells
from whatif.plotting.tiles import COLOURS, group_colours
from whatif.schema.toml import parse_document
from whatif.studies.message_study import Detail, curve_label, curve_picture
from whatif.tui.jobs.messages_job import gather
from whatif.tui.labels import duration
from whatif.tui.pages.messages import MessagesPage, chosen_phase
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.message_costs import fitting_picture, message_rows
from whatif.tui.widgets.placement_map import PlacementMap, placement_runs, room_for_ranks
from whatif.tui.widgets.plot_view import PlotView
from whatif.units import SECOND, format_quantity


@pytest.fixture(autouse=True)
def colours(monkeypatch):
    """A terminal with all colours, wherever the tests run."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


SIZES = ((10, 3), (20, 6), (44, 14), (74, 20), (70, 28), (90, 18), (140, 42), (300, 80))
# Table 4 for Summit between nodes, rendezvous: a rank's share of the network with k ranks sending.
SHARED = 12.3e9, 2.58e7


class Harness(PageApp):
    """Shows a study as soon as it runs, and does the job of the page when the page asks for it."""

    def on_mount(self) -> None:
        self.show(self.state)

    def on_job_requested(self) -> None:
        self.do(self.page.job(self.state))

    @property
    def lines(self) -> list[str]:
        """The changes that the page asked for, as a journal has them."""
        return [change.line() for change in self.changes]


class Driver:
    def __init__(self, app: Harness, pilot) -> None:
        self.app, self.pilot = app, pilot
        self.page = app.page

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def words(self) -> str:
        return " ".join(self.text().replace("│", " ").split())

    async def press(self, action: str, *arguments) -> None:
        getattr(self.page, f"action_{action}")(*arguments)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.pause()

    async def resize(self, size) -> None:
        await self.pilot.resize_terminal(*size)
        await self.settle()

    def sees(self, widget) -> bool:
        return widget.size.area > 0 and all(node.display for node in widget.ancestors_with_self)

    @property
    def plot(self) -> PlotView:
        return self.app.query_one(PlotView)

    @property
    def placement(self) -> PlacementMap:
        return self.app.query_one(PlacementMap)


def drive(check, scenario="jacobi2d", size=(140, 42), platform=None, overrides=None):
    async def main():
        opened = (
            scenario
            if isinstance(scenario, Scenario)
            else Scenario.open(scenario, platform=platform, overrides=overrides)
        )
        app = Harness(MessagesPage, ExplorerState.start(Session.start(opened)))
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot)
            await driver.settle()
            await check(driver)

    asyncio.run(main())


def predicted(scenario, *overrides):
    """The times of the phases by the command line."""
    options = [word for text in overrides for word in ("--set", text)]
    done = CliRunner().invoke(program, ["run", scenario, "--point", "--format", "json", *options])
    assert done.exit_code == 0
    return json.loads(done.stdout)["rows"][0]["terms"]


def gathered(scenario="jacobi2d", width=400, height=400, plane=None, overrides=None, platform=None, phase=None):
    scenario = (
        scenario if isinstance(scenario, Scenario) else Scenario.open(scenario, platform=platform, overrides=overrides)
    )
    state = ExplorerState.start(Session.start(scenario))
    return gather(state.session.inputs, phase or chosen_phase(state), width, height, plane)


def lines_of(found, detail=Detail.ALL):
    return {line.label: line for line in curve_picture(found.curves, found.phase, detail).lines}


# Numbers.


def test_the_digits_are_those_of_table_5_and_of_the_command_line():
    async def check(driver):
        expected = duration(predicted("jacobi2d")["halo"])
        assert (
            f"messages of a node 24 to other nodes 14 ranks of a node 6 k, at its adapter 3.5 halo takes {expected}"
            in driver.words()
        )

    drive(check)


def test_an_edit_moves_the_numbers_to_those_of_the_command_line():
    async def check(driver):
        driver.app.show(driver.app.state.with_session(driver.app.state.session.edit("platform.node.gpu_count", "8")))
        await driver.settle()
        expected = predicted("jacobi2d", "platform.node.gpu_count=8")["halo"]
        assert expected != predicted("jacobi2d")["halo"]
        assert f"ranks of a node 8 k, at its adapter 4.5 halo takes {duration(expected)}" in driver.words()
        assert "across nodes max-rate k=8" in driver.words()

    drive(check)


def test_the_messages_are_charged_with_the_times_of_tables_4_and_5_by_hand():
    """Three faces of 16384 cells of 8 B leave the node with k = 3.5, one stays in the socket, which two ranks share."""
    size = 16384 * 8
    away = 9.33e-6 + 3.5 * size / (SHARED[0] + 2.5 * SHARED[1])
    near = 3.59e-6 + 2 * size / (18e9 + 15.3e9)
    words = {name: format_quantity(value, SECOND) for name, value in (("away", away), ("near", near))}

    async def check(driver):
        seen = driver.words()
        assert f"in a socket 1 × y 128 KiB {words['near']} {words['near']} max-rate" in seen
        assert f"across nodes 2 × x 128 KiB {words['away']} {format_quantity(2 * away, SECOND)} K-model" in seen
        assert f"across nodes 1 × y 128 KiB {words['away']} {words['away']} K-model" in seen
        assert f"the sum {format_quantity(3 * away + near, SECOND)}" in seen

    drive(check)


def test_each_curve_has_the_times_of_its_label_by_hand():
    found = gathered()
    lines = lines_of(found)
    at = int(np.flatnonzero(found.curves.sizes == 65537)[0])
    expected = {
        "across nodes K-model k=3.5": 9.33e-6 + 3.5 * 65537 / (SHARED[0] + 2.5 * SHARED[1]),
        "across nodes max-rate k=6": 9.33e-6 + 6 * 65537 / (SHARED[0] + 5 * SHARED[1]),
        "across nodes postal": 7.59e-6 + 65537 * 8.7e-11,
        "across sockets max-rate k=3": 4.04e-6 + 3 * 65537 / (8.28e9 + 2 * 7.08e9),
        "in a socket max-rate k=2": 3.59e-6 + 2 * 65537 / (18e9 + 15.3e9),
    }
    assert [*lines] == [*expected, "sent"]
    for label, seconds in expected.items():
        assert lines[label].x[at] == 65537
        assert_allclose(lines[label].y[at], seconds, rtol=1e-13, atol=0)


def test_the_messages_stand_as_points_on_their_curves():
    found = gathered("minife")
    sent = lines_of(found)["sent"]
    points = {(x, y) for x, y in zip(sent.x, sent.y, strict=True) if np.isfinite(y)}
    assert points == {(message.size, message.time) for message in found.phase.messages}
    assert sent.style == "points"
    program = Scenario.open("minife").program
    values = evaluate(program).values
    # Of the kinds x, y, z, xy, xz, yz, xyz: 200 x 200 cells of 8 B, 200 cells, one.
    between = values["halo.inter_node.message_time"].ravel()
    assert {(320000.0, between[0]), (1600.0, between[3]), (8.0, between[6])} <= points


def test_sizes_are_marked_with_their_kinds_and_the_limits_with_their_protocols():
    found = gathered("minife")
    marks = curve_picture(found.curves, found.phase, Detail.ALL).markers
    assert [(mark.x, mark.label) for mark in marks] == [
        (8, "xyz"),
        (1600, "xy xz yz"),
        (320000, "x y z"),
        (128, "short to 128 B"),
        (65536, "eager to 64 KiB"),
    ]


def test_sizes_close_to_each_other_bear_one_mark():
    found = gathered("minimd")
    assert sorted({message.size for message in found.phase.messages}) == [688128, 725760, 765450]
    narrow = curve_picture(found.curves, found.phase, Detail.COUNTS)
    assert [(mark.x, mark.label) for mark in narrow.markers] == [(688128, "x y z")]


@pytest.mark.parametrize(
    ("platform", "model", "labels"),
    [
        ("lassen", "k_model", ["across sockets max-rate k=2", "in a socket postal"]),
        ("summit", "postal", ["across sockets postal", "in a socket postal"]),
        ("summit", "node_aware", ["across sockets postal", "in a socket postal"]),
        ("summit", "injection", ["across sockets postal", "in a socket postal"]),
    ],
)
def test_on_the_node_the_model_of_the_phase_is_drawn_or_what_stands_in_for_it(platform, model, labels):
    found = gathered(platform=platform, overrides={"application.phases.halo.model": model})
    every = [*lines_of(found)]
    assert [label for label in every if not label.startswith("across nodes")] == [*labels, "sent"]
    assert {f"across nodes {name}" for name in ("postal", "max-rate", "K-model")} <= {
        label.partition(" k=")[0] for label in every
    }
    if model == "injection":
        assert every[0] == "across nodes injection k=6"
    # On the node the times of the K-model are those of the max-rate model: drawn once.
    times = {(curve.distance, curve.model): curve.times for curve in found.curves.curves}
    assert_allclose(times["inter_socket", "k_model"], times["inter_socket", "max_rate"], rtol=0, atol=0)


def test_a_node_aware_phase_adds_what_its_node_sends():
    overrides = "application.phases.halo.model=node_aware"
    expected = predicted("jacobi2d", overrides)["halo"]

    async def check(driver):
        seen = driver.words()
        # Table 4: 14 messages of 128 KiB leave the node with all six ranks sending.
        together = 14 * 131072 / (SHARED[0] + 5 * SHARED[1])
        assert f"across nodes the node's {format_quantity(together, SECOND)}" in seen
        assert f"the sum {format_quantity(expected, SECOND)}" in seen
        assert "halo: node-aware, serialised, messages counted" in seen

    drive(check, overrides=dict([overrides.split("=")]))


def test_of_concurrent_messages_the_slowest_is_the_time():
    overrides = "application.phases.halo.concurrency=concurrent"
    expected = predicted("jacobi2d", overrides)["halo"]

    async def check(driver):
        assert f"the slowest {format_quantity(expected, SECOND)}" in driver.words()
        assert "halo: K-model, concurrent, messages counted" in driver.words()

    drive(check, overrides=dict([overrides.split("=")]))


def test_counts_of_the_file_are_said_to_be_stated():
    path = "application.phases.halo"

    async def check(driver):
        assert "messages stated" in driver.text()
        # 135 / 156 of four ranks.
        assert (
            f"messages of a node 156 to other nodes 135 ranks of a node 4 k, at its adapter {135 / 156 * 4:.4g}"
            in driver.words()
        )

    drive(check, "minife", overrides={f"{path}.inter_node_count": "135", f"{path}.total_count": "156"})


def test_a_message_says_whose_parameters_it_is_charged_with():
    found = gathered("minife_gpus_per_node", platform="bridges", overrides={"application.rank_count": "16"})
    rows = message_rows(found.phase, 200)
    column = rows.titles.index("model")
    on_node = {cells[0].text: cells[column].text for cells in rows.cells}
    assert on_node["across sockets"] == "postal"
    assert on_node["across nodes"] == "max-rate"
    near = gathered(
        "jacobi2d", platform="bridges", overrides={"application.rank_count": "16", "platform.node.gpu_count": "4"}
    )
    assert message_rows(near.phase, 200).cells[0][column].text == "postal, as across sockets"


def test_a_narrow_list_of_messages_parameters_out_whole_columns():
    found = gathered()
    for width in range(10, 100):
        rows = message_rows(found.phase, width)
        needed = sum(max(len(text) for text in (title, *column)) + 2 for title, column in columns_of(rows))
        assert needed <= width or len(rows.titles) == 2
    assert message_rows(found.phase, 80).titles == ("distance", "messages", "size", "each", "together", "model")
    assert message_rows(found.phase, 46).titles == ("distance", "messages", "each", "together")
    assert message_rows(found.phase, 20).titles == ("distance", "together")


def columns_of(rows):
    return [(title, [cells[index].text for cells in rows.cells]) for index, title in enumerate(rows.titles)]


# The table.


def test_the_table_has_the_numbers_of_every_curve():
    async def check(driver):
        assert driver.sees(driver.plot)
        await driver.press("table")
        assert driver.app.lines == ["show picture = table"]
        assert not driver.sees(driver.plot)
        numbers = driver.app.query_one("#numbers", TableView)
        assert driver.sees(numbers)
        # 1 B is short: Table 3.
        first = format_quantity(1.51e-6 + 3.5 * 6.32e-10, SECOND, 5)
        line = next(line for line in driver.text().splitlines() if "1 B" in line)
        assert first in line
        titles = numbers._rows.titles
        assert titles[:2] == ("message size", "across nodes K-model k=3.5")
        assert len(titles) == 1 + len(gathered().curves.curves)
        assert "in a socket K-model k=2" in titles
        await driver.press("table")
        assert driver.sees(driver.plot)

    drive(check)


def test_the_table_comes_in_place_of_the_placement_where_there_is_room_for_one():
    async def check(driver):
        await driver.press("half")
        assert driver.sees(driver.placement)
        await driver.press("table")
        assert not driver.sees(driver.placement)
        assert driver.sees(driver.app.query_one("#placed"))
        assert "rank node socket row column busiest" in driver.words()
        await driver.press("half")
        assert driver.sees(driver.app.query_one("#numbers"))
        assert "K-model k=3.5" in driver.text()

    drive(check, size=(74, 20))


@pytest.mark.parametrize(
    ("size", "halves"), [((80, 24), ["placement", "curves"]), ((160, 48), ["curves", "placement"])]
)
def test_labels_of_keys_are_what_the_keys_show(size, halves):
    def labels(driver):
        keys = driver.main_screen.query_one(KeyBar).keys
        return [place.key.binding.description for place in keys if place.key.binding.key in "md"]

    async def check(driver):
        await driver.go("messages")
        await driver.until(lambda: labels(driver) == [halves[0], "domains"])
        await driver.press("m")
        await driver.until(lambda: labels(driver) == [halves[1], "domains"])
        await driver.press("d")
        await driver.until(lambda: labels(driver) == ["both" if size[0] == 160 else "curves", "next message"])

    driven(check, size)


def test_domains_have_a_table_with_the_rows_of_the_command_line():
    rows = whatif.domains("jacobi2d").table().columns["domain"].values.tolist()

    async def check(driver):
        await driver.press("message", 1)
        await driver.press("table")
        table = driver.app.query_one("#nested")
        assert driver.sees(table)
        shown = [line.strip("│ ").partition("  ")[0] for line in driver.text().splitlines()]
        assert [name for name in shown if name in rows] == rows

    drive(check)


# The placement.


def test_the_map_shows_which_ranks_share_a_node():
    """48 x 32 ranks, six in a row on a node: neighbours bear the same letter where they share one, else others."""
    lines = placement_runs(gathered().placed, 64, 100, letters=True)
    letters = np.array([list("".join(run.text for run in line).ljust(64)[:64:2]) for line in lines[:48]])
    node = np.arange(48 * 32).reshape(48, 32) // 6
    assert set(np.char.lower(letters).ravel()) == set("abcde")
    lower = np.char.lower(letters)
    assert ((lower[:, 1:] == lower[:, :-1]) == (node[:, 1:] == node[:, :-1])).all()
    assert ((lower[1:] == lower[:-1]) == (node[1:] == node[:-1])).all()
    # The first node whose ranks are all in one row with neighbours above and below is the busiest: ranks 36 to 41.
    assert np.argwhere(np.char.isupper(letters)).tolist() == [[1, column] for column in range(4, 10)]
    signs = np.array([list("".join(run.text for run in line).ljust(64)[1:64:2]) for line in lines[:48]])
    assert ((signs == "·") == (np.arange(48 * 32).reshape(48, 32) % 6 < 3)).all()
    assert ((signs == "+") == (np.arange(48 * 32).reshape(48, 32) % 6 >= 3)).all()


def test_the_words_count_what_the_busiest_node_sends():
    """Six ranks in a row: five pairs inside, one of them between the sockets; twelve up and down, two at the ends."""

    async def check(driver):
        seen = driver.words()
        assert "■ busiest node 6 of 256 · socket 1 + socket 2" in seen
        assert "■ in a socket 8 33%" in seen
        assert "■ across sockets 2 8%" in seen
        assert "■ across nodes 14 58%" in seen
        assert "ranks that share a node: rows x, columns y" in seen

    drive(check, size=(300, 80))


def test_how_much_of_the_grid_is_shown_follows_the_size_of_the_screen():
    async def check(driver):
        for width, height in ((140, 42), (300, 80), (95, 24), (44, 14), (160, 50)):
            await driver.resize((width, height))
            if (width, height) == (44, 14):
                await driver.press("half")
            columns, rows = room_for_ranks(*driver.placement.size)
            shown = f"{min(48, rows)} x {min(32, columns)}"
            assert (f"{shown} of 48 x 32 ranks" if shown != "48 x 32" else "48 x 32 ranks") in driver.words()
            if (width, height) == (44, 14):
                await driver.press("half")

    drive(check)


def test_planes_follow_one_another_and_begin_again():
    async def check(driver):
        for plane in (0, 1, 2, 3, 4, 5, 6, 7, 0):
            assert f"8 x 16 ranks x = {plane}, plane {plane + 1} of 8" in driver.words()
            assert ("is elsewhere" in driver.text()) == (plane != 0)
            await driver.press("plane", 1)

    drive(check, "minimd")


def test_a_grid_of_one_plane_has_no_next_one():
    async def check(driver):
        before = driver.text()
        await driver.press("plane", 1)
        assert driver.text() == before
        assert "plane" not in before

    drive(check)


def test_ranks_bear_their_numbers_where_there_is_room():
    """Eight ranks on two nodes of Lassen; each rank is as large as the screen allows."""
    found = gathered(platform="lassen", overrides={"application.rank_count": "8"})
    lines = ["".join(run.text for run in line) for line in placement_runs(found.placed, 70, 30)]
    assert "4 x 2 ranks" in "\n".join(lines)
    numbers = [line.split() for line in lines if "·0" in line or "·4" in line or "+2" in line or "+6" in line]
    assert numbers == [["·0", "·1"], ["+2", "+3"], ["·4", "·5"], ["+6", "+7"]]


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
@pytest.mark.parametrize("mapping", ["block", "round_robin", "tiles"])
def test_neighbouring_nodes_have_other_colours(name, mapping):
    overrides = {"application.grid.mapping": mapping} if name != "minife" else {}
    if mapping == "tiles" and name == "jacobi2d":
        overrides["platform.node.gpu_count"] = "4"
    found = gathered(name, 60, 30, overrides=overrides)
    nodes, colours = found.placed.picture.nodes, found.placed.colours
    assert set(np.unique(colours)) <= set(range(COLOURS))
    for one, other in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[1:], np.s_[:-1])):
        apart = nodes[one] != nodes[other]
        assert apart.any()
        assert ((colours[one] != colours[other]) == apart).all()


def test_a_node_has_one_colour_even_where_five_do_not_suffice():
    """Each of eight nodes lies beside every other one somewhere."""
    pairs = np.array(list(itertools.permutations(range(8), 2)))
    colours = group_colours(pairs.astype(np.int32))
    for node in range(8):
        assert np.unique(colours[pairs == node]).size == 1


def test_without_colours_letters_tell_nodes_apart():
    async def check(driver):
        driver.app.no_color = True
        driver.placement.redraw()
        await driver.settle()
        first = next(line for line in driver.text().splitlines() if "a·a·a·a+a+a+b·" in line)
        assert "b·b·b·b+b+b+c·c·c·c+c+c+" in first
        assert "C·C·C·C+C+C+" in driver.text()
        assert "capitals: busiest node 6 of 256" in driver.text()

    drive(check)


# Phases, and what is missing.


def test_the_next_phase_that_sends_messages():
    async def check(driver):
        row = predicted("minimd")
        assert f"exchange takes {duration(row['exchange'])}" in driver.words()
        await driver.press("phase", 1)
        assert driver.app.lines == ["show y = terms.reverse_exchange"]
        assert f"reverse_exchange takes {duration(row['reverse_exchange'])}" in driver.words()
        await driver.press("phase", 1)
        assert driver.app.lines[1:] == ["show y = terms.exchange"]

    drive(check, "minimd")


def test_another_phase_shows_the_plane_of_its_own_busiest_node():
    async def check(driver):
        await driver.press("plane", 1)
        assert "plane 2 of 8" in driver.text()
        await driver.press("phase", 1)
        assert "plane 1 of 8" in driver.text()

    drive(check, "minimd")


def test_one_phase_alone_has_no_next_one():
    async def check(driver):
        await driver.press("phase", 1)
        assert driver.app.lines == []

    drive(check)


HEAD = """
[platform]
extends = "summit"
[application]
name = "test"
rank_count = 36
iteration_count = 10
"""
REDUCE = """
[application.phases.reduce]
kind = "collective"
algorithm = "rabenseifner"
model = "max_rate"
message_size = "1 MiB"
operation_count = 3
"""
WAIT = """
[application.phases.wait]
kind = "overhead"
overhead_time = "1 ms"
"""
HALO = """
[application.grid]
scaling = "weak"
cells = { x = 1000, y = 1000 }
[application.phases.halo]
kind = "halo"
model = "k_model"
neighbours = "faces"
"""


def scenario(body: str) -> Scenario:
    return Scenario(parse_document(HEAD + body, "test.toml"))


def test_a_collective_has_rounds_and_no_placement():
    inputs = scenario(REDUCE)
    expected = evaluate(inputs.program).values["reduce"].item()

    async def check(driver):
        seen = driver.words()
        # 36 ranks: two rounds before and after five halvings and five doublings.
        assert f"reduce takes {duration(expected)} rounds {len(gathered(inputs).phase.messages)}" in seen
        assert "A collective such as reduce has no placement to draw: its ranks have no neighbours on a grid." in seen
        assert "6 × round 1 1 MiB" in seen
        assert f"the sum {format_quantity(expected, SECOND)}" in seen
        assert not driver.sees(driver.placement)

    drive(check, inputs)


def test_a_collective_beside_a_halo_says_how_to_get_there():
    async def check(driver):
        assert "reduce takes" in driver.text()
        assert "grid, y shows halo." in driver.words()
        await driver.press("phase", 1)
        assert "halo takes" in driver.text()
        assert driver.sees(driver.placement)

    drive(check, scenario(REDUCE + HALO))


HPL = """
platform = "dahu"
[application]
kind = "hpl"
matrix_size = 2000
block_size = 32
process_rows = 1
process_columns = 2
"""


@pytest.mark.parametrize("text", ['extends = "llama_training"\n', HPL])
def test_an_application_with_a_page_of_ranks_of_its_own_names_it(text):
    found = Scenario(parse_document(text, "t.toml"))
    reason = gather(SessionInputs(found, Grid()), None, 10, 10, None).reason
    assert reason.endswith("the curves are the platform's. 4 shows its ranks.")


def test_an_application_without_messages_has_the_curves_of_the_platform():
    async def check(driver):
        assert "No halo or collective phase in this application: the curves are the platform's." in driver.words()
        assert "across nodes max-rate k=6" in driver.words()
        assert "sent" not in driver.text().replace("sends", "")
        for action in (("half",), ("plane", 1), ("phase", 1), ("table",)):
            await driver.press(*action)
            assert "No halo or collective phase in this application" in driver.text()

    drive(check, scenario(WAIT))


def test_a_point_that_cannot_exist_says_why():
    async def check(driver):
        reason = "the ranks need more nodes than the platform has (platform.node_count); 256 needed, 10 available"
        expected = f"Infeasible point: {reason}."
        for size in SIZES[2:]:
            await driver.resize(size)
            assert expected in driver.words()
            assert "postal" in driver.text()
            assert "K-model" not in driver.text()

    drive(check, overrides={"platform.node_count": "10"})


def test_after_an_infeasible_point_the_page_is_as_before():
    async def check(driver):
        before, state = driver.text(), driver.app.state
        driver.app.show(state.with_session(state.session.edit("platform.node_count", "10")))
        await driver.settle()
        assert "Infeasible point" in driver.text()
        driver.app.show(state)
        await driver.settle()
        assert driver.text() == before

    drive(check)


def test_fewer_than_one_rank_at_the_adapter_count_as_one():
    path = "application.phases.halo"

    async def check(driver):
        assert "k, at its adapter 0.025 taken as 1 halo takes" in driver.words()

    drive(check, "minife", overrides={f"{path}.inter_node_count": "1", f"{path}.total_count": "160"})


def test_a_rank_alone_sends_nothing():
    async def check(driver):
        assert "messages of a node 0 to other nodes 0 ranks of a node 1" in driver.words()
        assert "the sum 0 s" in driver.words()
        assert "1 x 1 ranks" in driver.words()

    drive(check, overrides={"application.rank_count": "1"})


def test_messages_out_of_a_link_domain_of_several_nodes_are_named_so():
    # 128 ranks, 16 rows of 8, use 16 nodes of each of two racks: a node of the eighth row sends four messages beyond,
    # and 3 · 2 + 1 along its row and four back.
    async def check(driver):
        assert f"messages of a node {4 + 7 + 4} to other domains 4 ranks of a node 4 k" in driver.words()

    overrides = {"application.rank_count": "128", "application.buffers": "device"}
    drive(check, platform="gb200_nvl72", overrides=overrides)


def test_more_ranks_than_can_be_drawn_have_a_reason(monkeypatch):
    monkeypatch.setattr("whatif.studies.placement_layout.MOST_RANKS_SHOWN", 10_000)

    async def check(driver):
        assert "There is no placement to draw: 10,001 ranks are too many for a picture" in driver.words()
        assert "messages of a node" in driver.words()

    drive(check, overrides={"application.rank_count": "10001"})


# Sizes.


def fills_the_screen(driver, width, height):
    lines = driver.text().splitlines()
    assert len(lines) == height
    assert {len(text_cells(line)) for line in lines} == {width}
    assert "".join(lines).strip()


# A regression, and an exchange that is a term of one formula.
WITHOUT_MESSAGES = ("particle_tracking", "triton")


@pytest.mark.parametrize("name", FEW)
def test_every_shipped_scenario_is_shown_at_every_size(name):
    async def check(driver):
        # Grids in three dimensions and in two; of the others it is enough that they fit.
        for size in SIZES if name in ("jacobi2d", "minimd") else SIZES[1::3]:
            await driver.resize(size)
            fills_the_screen(driver, *size)
            assert ("takes" in driver.text()) == (size[0] >= 44 and name not in WITHOUT_MESSAGES)

    drive(check, name, size=(120, 36))


@pytest.mark.parametrize("sizes", [SIZES[::2]])
def test_every_key_works_at_every_size(sizes):
    async def check(driver):
        for size in sizes:
            await driver.resize(size)
            for action in (("table",), ("half",), ("plane", 1), ("table",), ("half",), ("phase", 1)):
                await driver.press(*action)
                fills_the_screen(driver, *size)

    drive(check, "minimd", size=sizes[0])


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
def test_the_legend_names_every_curve_that_is_drawn(name):
    async def check(driver):
        for size in ((44, 14), (70, 28), (74, 20), (140, 42), (300, 80)):
            await driver.resize(size)
            legend = driver.words()
            for line in driver.plot.description.lines:
                assert line.label in legend or (size[0] == 44 and line.label == "sent"), size
            assert driver.plot.size.height >= 9, size

    drive(check, name)


def test_the_picture_says_as_much_as_its_legend_has_room_for():
    found = gathered()
    sizes = ((200, 24), (72, 15), (60, 15), (42, 9))
    chosen = [fitting_picture(found.curves, found.phase, *size)[0] for size in sizes]
    assert chosen == [Detail.ALL, Detail.DISTANCES, Detail.COUNTS, Detail.NAMES]
    curve = found.curves.curves[0]
    labels = [curve_label(curve, detail) for detail in Detail]
    assert labels == ["in a socket postal"] * 4
    between = next(item for item in found.curves.curves if (item.distance, item.model) == ("inter_node", "k_model"))
    labels = [curve_label(between, detail) for detail in Detail]
    assert labels == ["K-model", "K-model k=3.5", "K-model k=3.5", "across nodes K-model k=3.5"]


def test_where_there_is_room_for_one_half_a_key_goes_to_the_other():
    async def check(driver):
        for _ in range(2):
            assert (driver.sees(driver.plot), driver.sees(driver.placement)) == (True, False)
            await driver.press("half")
            assert (driver.sees(driver.plot), driver.sees(driver.placement)) == (False, True)
            await driver.press("half")

    drive(check, size=(74, 28))


def test_where_there_is_room_for_both_each_can_have_all_of_it():
    async def check(driver):
        seen = []
        for _ in range(4):
            seen.append((driver.sees(driver.plot), driver.sees(driver.placement)))
            await driver.press("half")
        assert seen == [(True, True), (True, False), (False, True), (True, True)]

    drive(check)


def test_the_curves_take_the_focus_and_their_crosshair_reads_them():
    async def check(driver):
        driver.page.enter()
        await driver.settle()
        assert driver.app.focused is driver.plot
        await driver.pilot.press("home")
        await driver.settle()
        assert f"across nodes K-model k=3.5 {format_quantity(1.51e-6 + 3.5 * 6.32e-10, SECOND)}" in driver.words()
        await driver.press("table")
        driver.page.enter()
        await driver.settle()
        assert driver.app.focused is driver.app.query_one("#numbers")

    drive(check)


def test_the_domains_show_what_a_message_crosses_and_step_through_the_messages():
    async def check(driver):
        assert "▶" not in driver.words()
        await driver.press("message", 1)
        seen = driver.words()
        assert "domains: halo x across nodes" in seen
        assert "┏━ Summit ━" in seen
        assert "shared: the network adapter of a node, by 6 processes" in seen
        for _ in range(2):
            await driver.press("message", 1)
        assert "domains: halo y in a socket" in driver.words()
        assert "┌─ Summit ─" in driver.words()
        await driver.press("half")
        assert "domains" not in driver.words()

    drive(check, size=(100, 40))


@pytest.mark.parametrize("size", [(80, 22), (60, 14), (44, 10)])
def test_the_domains_fit_small_screens(size):
    async def check(driver):
        await driver.press("message", 1)
        assert "Summit" in driver.words()
        assert "between nodes: 1.24 us" in driver.words()

    drive(check, size=size)
