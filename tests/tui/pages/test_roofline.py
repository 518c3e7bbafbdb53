"""The roofline as it is read off the screen: places by the ticks of the axes, numbers by hand from the files."""

import math
import re
from itertools import product

import pytest

from tests.driver import MEMORY, RANKS, drive, predicted
from tests.page_harness import few_machines, on_page
from tests.scenarios_at_hand import FEW
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.schema.toml import parse_document
from whatif.studies.roofline_study import kernel_points, second_gpu
from whatif.tui.commands.explorer_commands import Show
from whatif.tui.labels import duration, percent
from whatif.tui.page_views import RooflineView
from whatif.tui.pages.roofline import RooflinePage, roofline_of, rows
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import ColumnsView
from whatif.tui.widgets.roofline_plot import RoofsView, letter, roofline_runs

GPU = "platform.node.gpu"
HEAD = '[platform]\nextends = "{platform}"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'
KERNEL = """
[application.phases.{name}]
kind = "kernel"
model = "roofline"
dominant_operation = "{dominant}"
metrics_per = "rank"
operations = "{operations} flop"
dram_size = "{size} B"
compute_fraction = 0.5
load_store_fraction = 0.1
"""
OVERHEAD = '[application.phases.wait]\nkind = "overhead"\noverhead_time = "1 ms"\n'
SIZES = [(10, 3), (20, 5), (44, 14), (74, 20), (70, 28), (80, 24), (140, 42), (300, 80)]


@pytest.fixture(autouse=True)
def _three_machines(monkeypatch):
    few_machines(monkeypatch)


def opened(name="jacobi2d", **options):
    return Session.start(Scenario.open(name, **options))


def made_up(body, platform="summit"):
    return Session.start(Scenario(parse_document(HEAD.format(platform=platform) + body, "t.toml")))


def kernel(name, operations, size, dominant="fp_64"):
    return KERNEL.format(name=name, operations=operations, size=size, dominant=dominant)


def drawn(session, width=140, height=40, second=None, marker="braille"):
    scene, _ = roofline_of(ExplorerState.start(session), second)
    return ["".join(run.text for run in line) for line in roofline_runs(scene, width, height, marker)]


class Chart:
    """A drawn roofline, read by the ticks of its axes: log10 of intensity over columns, log10 of rate over rows."""

    def __init__(self, lines):
        self.lines = lines
        (self.floor,) = [at for at, line in enumerate(lines) if "└" in line]
        self.x = self._line([(at, self._number(at)) for at in self._ticks()])
        unit = {"G": 9, "T": 12}[re.search(r"rate \((.)flop/s\)", lines[0])[1]]
        marks = [(row, line) for row, line in enumerate(lines) if "┤" in line[:8]]
        self.y = self._line([(row, unit + math.log10(number(line.split("┤")[0]))) for row, line in marks])

    def _ticks(self):
        return [at for at, sign in enumerate(self.lines[self.floor]) if sign == "┬"]

    def _number(self, column):
        words = [(match.start(), match[0]) for match in re.finditer(r"\S+", self.lines[self.floor + 1])]
        return math.log10(number(min(words, key=lambda word: abs(word[0] + len(word[1]) / 2 - column))[1]))

    @staticmethod
    def _line(marks):
        """Position in log space of a column or row, between two ticks."""
        (first, low), (last, high) = marks[0], marks[-1]
        return lambda at: low + (at - first) * (high - low) / (last - first)

    def near(self, row, column, intensity, rate):
        """Whether a cell is where a point belongs, to a cell."""
        right, down = abs(self.x(column + 1) - self.x(column)), abs(self.y(row + 1) - self.y(row))
        return abs(self.x(column) - math.log10(intensity)) < right and abs(self.y(row) - math.log10(rate)) < down

    def signs(self, sign):
        return [(row, at) for row, line in enumerate(self.lines) for at, char in enumerate(line) if char == sign]


def number(text):
    text = text.strip()
    return float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)


def row_of(one, name):
    """The words of a kernel's row."""
    (line,) = [line for line in one.lines if re.match(rf"[│ ]*[a-z ]  {name}  ", line)]
    return line


def test_a_kernel_stands_at_its_intensity_and_rate():
    # One of the 100 profiled launches: W / Q, and W over the time that Q takes on the V100's 779.4108 GB/s, times the
    # factor that was measured.
    stencil = 161061273600 / 459335763200, 161061273600 / 459335763200 * 779.4108e9 / 1.0247
    # x_c, x_m of pack from its file; half of the integer peak of its multiply-adds, in turn with adds and loads.
    x, m = 0.4732613596163474, 1.2811957800588971e-05
    pack = 606.767, x / 2.4957 / ((1 - x - m) / 12797.8768e9 + 2 * x / 12172.8398e9 + m / 3909.2885e9)
    chart = Chart(drawn(opened()))
    points = chart.signs("●")
    for place in (stencil, pack):
        assert [chart.near(*point, *place) for point in points].count(True) == 1
    # pack and unpack differ by 7% in intensity and not at all in rate.
    assert len(points) in (3, 4)


@pytest.mark.parametrize("name", FEW)
def test_every_kernel_of_every_scenario_has_a_point_where_the_engine_puts_it(name):
    session = opened(name)
    chart = Chart(drawn(session, 200, 50))
    points = chart.signs("●")
    for found in kernel_points(session.program, session.at):
        assert any(chart.near(*point, found.intensity, found.achieved_rate) for point in points)
    assert len(points) <= len(kernel_points(session.program, session.at))


@pytest.mark.parametrize("size", [(74, 12), (110, 24), (200, 50)])
@pytest.mark.parametrize("name", FEW)
def test_every_kernel_has_its_letter_once(name, size):
    session = opened(name)
    scene, _ = roofline_of(ExplorerState.start(session), None)
    lines = roofline_runs(scene, *size)[1:-3]
    written = "".join(run.text for line in lines for run in line if run.style in ("label", "marker"))
    letters = sorted(char for char in written if char.isalpha() and char != "k")
    assert letters == [letter(index) for index in range(len(scene.kernels))]


def test_ridges_are_marked_where_peaks_meet_the_memory():
    chart = Chart(drawn(opened()))
    ridges = [chart.x(column) for row, column in chart.signs("▴") if row == chart.floor]
    step = chart.x(1) - chart.x(0)
    assert ridges == pytest.approx([math.log10(6340.4458 / 779.4108), math.log10(12172.8398 / 779.4108)], abs=step)
    assert "8.13" in chart.lines[chart.floor - 1]
    assert "15.6" in chart.lines[chart.floor - 1]


def test_only_the_roofs_that_kernels_use_are_drawn():
    jacobi, minife = "\n".join(drawn(opened())), "\n".join(drawn(opened("minife")))
    assert "DRAM 779.4 GB/s" in jacobi
    assert "fp64 6.34 Tflop/s" in jacobi
    assert "integer 12.17 Tflop/s" in jacobi
    assert "fp32" not in jacobi
    assert "fp64 6.34 Tflop/s" in minife
    assert "integer" not in minife
    assert "L2" not in minife
    assert "fp32 13.08 Tflop/s" in "\n".join(drawn(made_up(kernel("k", 1e9, 1e9, "fp_32"))))


def test_the_second_level_cache_is_a_roof_where_a_kernel_has_it():
    sets = {"application.phases.force.model": "roofline_l2"}

    async def check(one):
        assert "L2 2.879 TB/s" in one.screen
        assert "L2 cache" in row_of(one, "force")
        assert "launch" in row_of(one, "pack")

    on_page(RooflinePage, check, opened("minimd", overrides=sets))


def test_the_list_has_the_numbers_of_the_engine_and_of_the_command_line():
    async def check(one):
        session, point = one.state.session, predicted()
        for found in kernel_points(session.program, session.at):
            line = row_of(one, found.name)
            assert duration(point["terms"][found.name]) in line
            assert percent(point["terms"][found.name] / point["iteration_time"]) in line
            assert {"compute": "compute", "dram": "DRAM"}[found.limit] in line
        stencil, pack = row_of(one, "stencil"), row_of(one, "pack")
        assert "266.7 Gflop/s" in stencil
        assert "0.3506 flop/B" in stencil
        # 266.7 of the 1183.6 Gflop/s that its instructions allow.
        assert "22.5%" in stencil
        assert "1.184 Tflop/s" in stencil
        assert "40.1%" in pack
        assert stencil.strip("│ ").startswith("c")

    on_page(RooflinePage, check, opened())


def test_an_edit_moves_the_roof_and_the_kernels_at_once():
    async def check(one):
        assert "533.2 Gflop/s" not in one.screen
        state = one.state.with_session(one.state.session.edit(MEMORY, "1558.8216 GB/s"))
        one.page.show(state)
        await one.settle()
        assert "DRAM 1.559 TB/s" in one.screen
        assert "533.2 Gflop/s" in row_of(one, "stencil")

    on_page(RooflinePage, check, opened())


def test_a_second_gpu_lies_below_with_hollow_points_and_its_numbers_in_the_list():
    async def check(one):
        assert "○" not in one.screen
        one.page.action_second(1)
        await one.settle()
        assert one.app.changes == [Show("roofline.second", "bridges")]
        text = one.screen
        assert "╍╍○ Tesla P100-PCIE-16GB of bridges" in text
        assert "DRAM 546.7 GB/s" in text
        assert "fp64 4.569 Tflop/s" in text
        # The stencil takes Q / BW on both, and 2 us for its launch.
        assert "on bridges" in text
        assert duration(1.0244 * 4593357632 / 546.7274e9 + 2e-6) in row_of(one, "stencil")
        assert "0.702x" in row_of(one, "stencil")
        one.page.action_second(1)
        await one.settle()
        assert "lassen has the same roofs" in one.screen
        one.page.action_second(1)
        await one.settle()
        assert one.state.view.of(RooflineView).second == ""
        assert "○" not in one.screen

    on_page(RooflinePage, check, opened(), (200, 42))


def test_machines_without_a_gpu_are_passed_over_and_the_comparison_keeps_its_base(monkeypatch):
    monkeypatch.setattr("tests.page_harness.MACHINES", ("bridges", "dahu", "fugaku", "lassen", "summit"))

    async def check(one):
        # Pressed at once, without waiting for the picture.
        for _ in range(2):
            one.page.action_second(1)
        await one.settle()
        assert one.app.changes == [Show("roofline.second", "bridges"), Show("roofline.second", "lassen")]
        assert one.state.view.against == ""
        one.app.show(Show("roofline.second", "dahu").apply(one.state))
        await one.settle()
        frame = next(line for line in one.lines if line.startswith("╰"))
        assert "dahu" in frame

    on_page(RooflinePage, check, opened())


def test_hollow_points_stand_where_the_kernels_are_on_the_second_gpu():
    session = opened()
    found = second_gpu(session.scenario, "bridges")
    chart = Chart(drawn(session, second=found))
    hollow = chart.signs("○")
    pack, stencil = found.kernels[0], found.kernels[2]
    assert any(chart.near(*point, pack.intensity, pack.achieved_rate) for point in hollow)
    assert any(chart.near(*point, stencil.intensity, stencil.achieved_rate) for point in hollow)


def test_the_present_gpu_without_its_edits_is_a_second_one():
    async def check(one):
        for _ in range(3):
            one.page.action_second(1)
            await one.settle()
        assert one.state.view.of(RooflineView).second == "summit"
        assert "╍╍○ Tesla V100-SXM2-16GB of summit" in one.screen
        assert "DRAM 779.4 GB/s" in one.screen

    on_page(RooflinePage, check, opened(overrides={MEMORY: "2 TB/s"}))


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "platform not found"), ("dahu", "has no GPU")])
def test_a_second_gpu_that_cannot_be_asked_says_why(name, reason):
    async def check(one):
        one.app.show(Show("roofline.second", name).apply(one.state))
        await one.settle()
        assert f"on {name}" in one.screen
        assert reason in one.screen
        assert "○" not in one.screen
        assert duration(predicted()["terms"]["stencil"]) in one.screen

    on_page(RooflinePage, check, opened())


def test_a_machine_without_gpus_has_no_roofs():
    session = made_up(f"ranks_per_node = 4\n{OVERHEAD}", "dahu")

    async def check(one):
        for picture, size in product(("plot", "table"), SIZES):
            await one.pilot.resize_terminal(*size)
            one.app.show(Show("picture", picture).apply(one.state))
            one.app.show(Show("roofline.second", "summit").apply(one.state))
            await one.settle()
            words = " ".join(one.screen.translate(str.maketrans("│╭╮╰╯─", " " * 6)).split())
            assert "nan" not in words
            assert size[0] < 20 or "has no GPU" in words, size

    on_page(RooflinePage, check, session)


def test_an_answer_for_another_gpu_than_the_one_asked_for_is_forgotten():
    session = opened()

    async def check(one):
        one.page.show(Show("roofline.second", "bridges").apply(one.state))
        one.page.take(second_gpu(session.scenario, "bridges"))
        await one.settle()
        assert "Tesla P100" in one.screen
        one.page.show(Show("roofline.second", "lassen").apply(one.state))
        await one.settle()
        assert "Tesla P100" not in one.screen

    on_page(RooflinePage, check, session)


def test_a_scenario_without_kernels_says_so_below_all_roofs():
    async def check(one):
        text = one.screen
        assert "This scenario has no kernels" in text
        assert "fp32 13.08 Tflop/s" in text
        assert not one.page.query_one(ColumnsView).display
        one.page.action_second(1)
        one.page.action_table()
        await one.settle()
        assert "546.7 GB/s" in one.screen
        assert "fp32 peak on bridges" in one.screen

    on_page(RooflinePage, check, made_up(OVERHEAD))


def test_an_infeasible_point_has_roofs_and_a_reason():
    async def check(one):
        text = one.screen
        assert "No kernel can be drawn: the ranks need more nodes than the platform has (platform.node_count)" in text
        assert "DRAM 779.4 GB/s" in text
        assert "●" not in text
        one.page.action_table()
        await one.settle()
        assert "No kernel can be drawn: the ranks need more nodes" in one.screen
        assert "779.4 GB/s" in one.screen

    on_page(RooflinePage, check, opened(overrides={RANKS: "60000"}))


def test_the_reason_is_there_in_the_smallest_window():
    async def check(one):
        assert "No kernel can be drawn" in one.screen

    on_page(RooflinePage, check, opened(overrides={RANKS: "60000"}), (24, 4))


def test_kernels_without_bytes_or_operations_stand_at_the_rim():
    body = kernel("computing", 10**9, 0) + kernel("copying", 0, 10**9) + kernel("idle", 0, 0)
    body += kernel("both", 10**9, 10**9)

    async def check(one):
        picture = [line.strip("│") for line in one.lines if "▸" in line or "◂" in line]
        (right,), (left,) = [line for line in picture if "▸" in line], [line for line in picture if "◂" in line]
        assert "▸" in right[-2:]
        assert "◂b" in left[:8]
        assert one.screen.count("●") == 1
        assert "no bytes" in row_of(one, "computing")
        assert "0 flop/s" in row_of(one, "copying")
        assert duration(10**9 / 779.4108e9 + 2e-6) in row_of(one, "copying")
        assert "3.3 us" in row_of(one, "idle")

    on_page(RooflinePage, check, made_up(body))


def test_the_table_lists_kernels_and_roofs():
    async def check(one):
        one.page.action_table()
        await one.settle()
        assert one.state.view.picture == "table"
        assert not one.page.query_one("#roofs").display
        text = one.screen
        assert "kernels and roofs" in text
        assert re.search(r"DRAM +779\.4 GB/s", text)
        assert re.search(r"fp64 peak +6\.34 Tflop/s +from 8\.135 flop/B", text)
        assert re.search(r"integer peak +12\.17 Tflop/s +from 15\.62 flop/B", text)
        one.page.action_table()
        await one.settle()
        assert one.page.query_one("#roofs").display
        assert "integer peak" not in one.screen

    on_page(RooflinePage, check, opened())


def test_the_kernel_under_the_cursor_is_stressed():
    async def check(one):
        view = one.page.query_one(RoofsView)

        def stressed():
            words = "".join(run.text for line in view.draw(*view.size) for run in line if run.style == "marker")
            return "".join(char for char in words if char.isalpha())

        assert stressed() == "a"
        await one.press("down", "down")
        await one.settle()
        assert stressed() == "c"

    on_page(RooflinePage, check, opened())


@pytest.mark.parametrize(("name", "sizes"), [("minimd", SIZES[::2])])
def test_every_size_shows_kernels(name, sizes):
    async def check(one):
        first = kernel_points(one.state.session.program, one.state.session.at)[0].name
        for size in sizes:
            await one.pilot.resize_terminal(*size)
            await one.settle()
            assert first[:4] in one.screen
            assert size[0] < 44 or first in one.screen
            assert (size[1] >= 8) == ("●" in one.screen)
        for size in sizes:
            await one.press("right", "left", "down")
            for _ in range(2):
                one.page.action_second(1)
                one.page.action_table()
                await one.settle()
            await one.pilot.resize_terminal(*size[::-1])
            await one.pilot.resize_terminal(*size)
            await one.settle()
            assert len(one.lines) == size[1]

    on_page(RooflinePage, check, opened(name), sizes[0])


@pytest.mark.parametrize("marker", ["braille", "block", "ascii"])
def test_every_marker_fills_every_size(marker):
    session = opened("minimd", overrides={"application.phases.force.model": "roofline_l2"})
    second = second_gpu(session.scenario, "bridges")
    for width in (0, 1, 7, 16, 17, 40, 141):
        for height in (0, 1, 2, 5, 9, 30):
            lines = drawn(session, width, height, second, marker)
            assert [len(line) for line in lines] == [width] * height
    text = "\n".join(drawn(session, 120, 30, second, marker))
    assert "DRAM 779.4 GB/s" in text
    assert marker != "ascii" or text.isascii()


def test_rows_bear_the_letters_of_the_picture():
    session = opened("minimd")
    scene, reason = roofline_of(ExplorerState.start(session), None)
    found = kernel_points(session.program, evaluate(session.program))
    cells = rows(scene, with_roofs=False).cells
    assert reason == ""
    assert [(line[0].text, line[1].text) for line in cells] == [
        (letter(index), point.name) for index, point in enumerate(found)
    ]


def test_the_explorer_opens_the_page_and_its_keys_work():
    async def check(driver):
        await driver.press("3", "3", "x")
        await driver.until(lambda: "Tesla P100" in driver.screen_text())
        assert driver.state.view.of(RooflineView).second == "bridges"
        await driver.edit(MEMORY, "1558.8216 GB/s")
        assert "DRAM 1.559 TB/s" in driver.screen_text()
        await driver.press("v")
        assert "kernels and roofs" in driver.screen_text()

    drive(check)


def test_kernels_on_sockets_have_the_roofs_of_a_rank():
    session = Session.start(Scenario.open("minife", platform="fugaku", overrides={"application.ranks_per_node": "4"}))

    async def check(one):
        assert "A64FX, 12 cores of Fugaku" in one.screen
        for picture in ("plot", "table"):
            one.app.show(Show("picture", picture).apply(one.state))
            await one.settle()
            assert "200.8 GB/s" in one.screen
            assert "844.8 Gflop/s" in one.screen
            assert "nan" not in one.screen

    on_page(RooflinePage, check, session)
