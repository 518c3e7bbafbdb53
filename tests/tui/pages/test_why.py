"""The why page: the tree is that of `whatif explain`, the elasticities are those of runs beside the present values."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner

from tests.driver import MEMORY, RANKS, drive, predicted
from tests.page_harness import GROWING, SHRINKING, on_page
from tests.scenarios_at_hand import FEW
from whatif.cli.main import program
from whatif.core.answer_words import is_time
from whatif.core.derivation import explain
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.plotting.description import shorten
from whatif.studies.elasticity import Elasticity
from whatif.tui.commands.explorer_commands import Edit, Nudge, Show
from whatif.tui.jobs.elasticity_job import leverage, sentence, written
from whatif.tui.labels import duration
from whatif.tui.pages.why import WhyPage, in_words
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.elasticity_bars import ElasticityBars
from whatif.tui.widgets.why_tree import SHOWN_ABOVE, WhyTree, rows_of, titled, unfolded

TOO_FEW = Edit("platform.node_count", "20")
INFINITE = Edit("application.phases.stencil.compute_fraction", "0")
TABLE = Show("picture", "table")


def told(scenario, name):
    """The lines of `whatif explain`, without its guides."""
    done = CliRunner().invoke(program, ["explain", scenario, name])
    assert done.exit_code == 0
    return [line.lstrip("│├└─ ") for line in done.stdout.splitlines()]


def tree_of(scenario, name="iteration_time"):
    return explain(Session.start(Scenario.open(scenario)).at, name)


def slope(path, low, high, result="iteration_time", **others):
    """The elasticity by two runs of the command line."""
    times = [predicted(f"{path}={value:.17g}{unit}")[result] for value, unit in (low, high)]
    return math.log(times[1] / times[0]) / math.log(high[0] / low[0])


def name_column(page):
    """The names in sight, line by line."""
    return [row.label for row in page.app.query_one(WhyTree)._rows]


@pytest.mark.parametrize("scenario", FEW)
def test_the_tree_has_the_rows_of_the_command_line(scenario):
    lines = told(scenario, "iteration_time")
    position = 0
    for row in rows_of(tree_of(scenario)):
        node = row.node
        expected = f"{titled(node)}: {node.value}"
        position = next(number for number in range(position, len(lines)) if lines[number].startswith(expected)) + 1
        assert f"({node.grade}" in lines[position - 1]
        if row.repeated:
            assert lines[position] == f"({SHOWN_ABOVE})"
    # What is left are equations and notes alone.
    assert sum(": " in line and line.endswith(")") for line in lines[position:]) == 0
    repeats = sum(row.repeated for row in rows_of(tree_of(scenario)))
    assert repeats == sum(line == f"({SHOWN_ABOVE})" for line in lines)
    assert repeats or scenario == "particle_tracking"


@pytest.mark.parametrize("scenario", FEW)
def test_the_numbers_on_the_screen_are_those_of_the_command_line(scenario):
    row, program = predicted(scenario=scenario), Scenario.open(scenario).program

    async def check(page):
        shown = page.line("▾ iteration.time")
        assert "100.0%" in shown
        for name in ("kernel_time", "communication_time", "transfer_time", "overhead_time"):
            assert page.line(f" {name} ", f" {row[name] / row['iteration_time']:.1%} ")
        for phase, time in row["terms"].items():
            label = program.term_of(f"terms.{phase}").rpartition(".")[2]
            assert page.line(f" {label} ", f" {time / row['iteration_time']:.1%} ")

    on_page(WhyPage, check, scenario, (140, 60))


def test_terms_fold_and_unfold_and_the_cursor_goes_up_and_down_the_tree():
    async def check(page):
        tree = page.app.query_one(WhyTree)
        assert page.app.focused is tree
        await page.press("down")
        assert tree.row.label == "kernel_time"
        await page.press("left")
        assert "stencil" not in name_column(page)
        await page.press("l")
        assert "stencil" in name_column(page)
        await page.press("right")
        assert tree.row.label == "pack"
        await page.press("h")
        assert tree.row.label == "kernel_time"
        assert "stencil" in name_column(page)
        await page.press("space")
        assert "stencil" not in name_column(page)
        await page.press("enter", "j")
        assert tree.row.label == "pack"
        await page.press("G")
        assert tree.row.label == "overlap_time"
        await page.press("g")
        assert tree.row.label == "iteration.time"

    on_page(WhyPage, check, size=(70, 28))


def test_a_click_folds_and_unfolds():
    async def check(page):
        tree = page.app.query_one(WhyTree)
        line = next(number for number, text in enumerate(page.lines) if "▾ kernel_time" in text)
        for there in (False, True):
            await page.pilot.click(offset=(10, line))
            await page.settle()
            assert tree.row.label == "kernel_time"
            assert ("stencil" in name_column(page)) == there

    on_page(WhyPage, check, size=(70, 28))


@pytest.mark.parametrize("size", [(140, 42), (300, 80)])
def test_from_a_repeated_term_enter_goes_to_its_first_place(size):
    async def check(page):
        tree = page.app.query_one(WhyTree)
        rows = rows_of(tree_of("jacobi2d"))
        repeated = next(row for row in rows if row.repeated)
        tree._folds = {row.key: False for row in rows}
        tree._lay_out(repeated.key)
        await page.settle()
        assert tree.row.key == repeated.key
        assert SHOWN_ABOVE in page.line("↑ ")
        tree._folds = {row.key: repeated.key[: len(row.key)] != row.key for row in rows}
        tree._lay_out(repeated.key)
        await page.press("enter")
        assert tree.row.node.name == repeated.node.name
        assert not tree.row.repeated
        assert rows.index(tree.row) < rows.index(repeated)

    on_page(WhyPage, check, size=size)


def test_the_row_under_the_cursor_is_said_in_full_below():
    async def check(page):
        await page.press("j", "j")
        node = page.app.query_one(WhyTree).row.node
        assert node.name == "pack"
        below = page.text.partition("─── ")[2]
        assert "pack 1.518 ms 12.8% of the iteration" in below
        assert "T = max(f r T_roof + n t_l, n t_h)" in below
        assert "assumed definition: measured time in the ratio of the binding" in below

    on_page(WhyPage, check, size=(70, 28))


def test_a_note_of_the_model_is_said_too():
    async def check(page):
        tree = page.app.query_one(WhyTree)
        noted = next(row for row in tree._all if row.node.note)
        tree._folds = {row.key: False for row in tree._all}
        tree._lay_out(noted.key)
        await page.settle()
        assert noted.node.note in page.text

    on_page(WhyPage, check, "minife_gpus_per_node", size=(99, 60), changes=(Show("why", "terms.halo"),))


def test_brackets_in_the_name_of_a_file_are_no_markup(tmp_path):
    path = tmp_path / "a[red]b.toml"
    path.write_text('extends = "jacobi2d"\n[application]\nrank_count = 96\n')

    async def check(page):
        tree = page.app.query_one(WhyTree)
        tree._folds = {row.key: False for row in tree._all}
        ranks = next(row for row in tree._all if row.node.name == RANKS)
        tree._lay_out(ranks.key)
        await page.settle()
        assert "a[red]b.toml" in page.text.replace(" ", "")

    on_page(WhyPage, check, str(path), size=(99, 60))


def test_what_is_folded_stays_so_when_numbers_change():
    async def check(page):
        tree = page.app.query_one(WhyTree)
        await page.press("j", "j", "enter")
        before = name_column(page), tree.row.key
        await page.change(Nudge(MEMORY, 5))
        assert (name_column(page), tree.row.key) == before
        assert duration(predicted()["iteration_time"])[:5] not in page.line("iteration.time")

    on_page(WhyPage, check)


def test_what_was_unfolded_for_being_the_longest_stays_so_when_it_is_no_longer():
    async def check(page):
        tree = page.app.query_one(WhyTree)
        assert 16 <= tree.size.height < 20
        before = name_column(page)
        assert before[before.index("stencil") + 1] == "roofline_time = roofline"
        assert before[before.index("reduce") + 1] != "roofline_time = roofline"
        await page.change(Edit("application.phases.reduce.dram_size", "2000 GB"))
        row = predicted("application.phases.reduce.dram_size=2000 GB")["terms"]
        assert row["reduce"] > row["stencil"]
        assert f"{row['reduce'] * 1e3:.4g} ms" in page.line(" reduce ")
        assert name_column(page) == before

    on_page(WhyPage, check, size=(99, 24))


def test_more_room_unfolds_more_level_by_level_the_longest_first():
    rows = rows_of(tree_of("jacobi2d"))
    least = unfolded(rows, 0)
    assert {key for key in least if len(key) > 2} == set()
    assert ("iteration.time", "kernel_time") in least
    # 12 rows are there at least; the stencil, the longest phase, has six inputs, halo two and overhead one.
    assert unfolded(rows, 18) - least == {("iteration.time", "kernel_time", "stencil")}
    shorter = {("iteration.time", "overhead_time", "overhead"), ("iteration.time", "communication_time", "halo")}
    assert unfolded(rows, 15) - least == shorter
    assert unfolded(rows, 10_000) == {row.key for row in rows if row.folds}


def test_the_elasticities_are_those_of_runs_beside_the_present_value():
    parameter = Session.start(Scenario.open("jacobi2d")).parameter(MEMORY).value
    expected = slope(MEMORY, (0.99 * parameter, " B/s"), (1.01 * parameter, " B/s"))
    cells = slope("application.grid.cells.x", (8192, ""), (32768, ""))

    async def check(page):
        memory, wide = page.line("gpu.dram_bandwidth"), page.line("grid.cells.x")
        assert f"{expected:+.2f}" in memory
        assert "±1 %" in memory
        assert f"{cells:+.2f}" in wide
        assert "x2 /2" in wide
        # A larger bandwidth makes it faster: the bar is on the left of the line.
        for line, left in ((memory, True), (wide, False)):
            faster, _, slower = line.rpartition("││")[2].partition("│")
            assert ("█" in faster, "█" in slower) == (left, not left)
        assert "1.98 times as long" in page.text

    on_page(WhyPage, check)


def test_bars_are_as_long_as_the_elasticities_are_large():
    async def check(page):
        bars = page.app.query_one(ElasticityBars)
        items = {item.path: item for item in bars._items if not item.reason}
        width = bars.size.width
        lengths = {}
        for index, item in enumerate(bars._items):
            _, left, _, right, *_ = bars.draw_row(index, width)
            lengths[item.path] = sum({"█": 2, "▌": 1, "▐": 1}.get(letter, 0) for letter in left.text + right.text)
        largest = max(items.values(), key=lambda item: abs(item.elasticity))
        for path, item in items.items():
            assert abs(lengths[path] - lengths[largest.path] * abs(item.elasticity / largest.elasticity)) <= 2, path

    on_page(WhyPage, check, size=(300, 80))


def test_parameters_without_influence_come_last_without_a_bar():
    async def check(page):
        await page.act("half")
        # The last one cannot vary: a fat tree with a level more has too many links.
        await page.press("end", "up")
        last = next(line for line in reversed(page.lines) if " 0 " in line)
        assert not set("█▌▐▏▕") & set(last)
        assert "makes no difference to the iteration time here" in page.text

    on_page(WhyPage, check, size=(74, 20))


def test_the_sentence_says_what_the_elasticity_under_the_cursor_means():
    async def check(page):
        bars = page.app.query_one(ElasticityBars)
        bars.move_to(next(index for index, item in enumerate(bars._items) if item.path == MEMORY))
        await page.settle()
        faster = 1 - predicted(f"{MEMORY}=787.205 GB/s")["iteration_time"] / predicted()["iteration_time"]
        assert abs(faster - 0.0071) < 0.00015
        assert f"1 % more of {MEMORY}, now 779.411 GB/s, makes the iteration time 0.71 % shorter." in page.text
        assert "Elasticities: with -0.5, 1 % more of a parameter is 0.5 % less time." in page.text

    on_page(WhyPage, check, size=(70, 28))


@pytest.mark.parametrize(
    ("change", "elasticity", "expected"),
    [
        ("+1 %", 2.0, "1 % more of a.b, now 4, makes it 2 % longer."),
        ("-1 %", -0.25, "1 % more of a.b, now 4, makes it 0.25 % shorter."),
        ("x2", -1.0, "Twice a.b, now 4, makes it 0.5 times as long."),
        ("/2", -1.0, "Half of a.b, now 4, makes it 2 times as long."),
        ("x2 and /2", 2.0, "From half to twice a.b, now 4, each doubling makes it 4 times as long."),
        ("x2 and /2", 0.0, "a.b, now 4, makes no difference to it here."),
    ],
)
def test_an_elasticity_in_words(change, elasticity, expected):
    assert sentence(Elasticity("a.b", "4", elasticity, change), "it") == expected


def test_energy_is_more_or_less_and_not_longer():
    item = Elasticity("a.b", "4", -0.25, "±1 %")
    assert sentence(item, "it", timed=is_time("total_energy")) == "1 % more of a.b, now 4, makes it 0.25 % less."
    assert [is_time(name) for name in ("terms.halo", "setup_time", "total_cost")] == [True, True, False]


def test_a_parameter_that_cannot_move_says_why():
    item = Elasticity("a.b", "4", math.nan, "", "it must be 4")
    assert sentence(item, "it") == "a.b, now 4, cannot be varied: it must be 4."
    assert written(item) == "–"


@pytest.mark.parametrize(
    ("elasticity", "expected"),
    [(0.908, "+0.91"), (-0.58, "-0.58"), (-0.0444, "-0.044"), (3e-5, "+3e-05"), (0.0, "0"), (-12.3, "-12.30")],
)
def test_an_elasticity_fits_its_column(elasticity, expected):
    assert written(Elasticity("a.b", "4", elasticity, "±1 %")) == expected
    assert len(expected) <= 6


def test_the_next_result_is_explained_columns_first_then_phases():
    async def check(page):
        seen = []
        for _ in range(14):
            seen.append(page.app.state.explained)
            assert f"why {in_words(seen[-1])}" in page.lines[0]
            assert f"elasticities of {in_words(seen[-1])}" in page.lines[0]
            await page.act("result", 1)
        row = predicted()
        columns = [name for name, number in row.items() if name not in ("terms", "infeasible", "grade") and number > 0]
        assert set(seen) == {*columns, *(f"terms.{name}" for name in row["terms"])}
        assert [name.startswith("terms.") for name in seen] == sorted(name.startswith("terms.") for name in seen)
        assert page.app.state.explained == seen[0]
        await page.act("result", -1)
        assert page.app.state.explained == seen[-1]

    on_page(WhyPage, check)


def test_until_the_new_elasticities_are_there_the_last_ones_stay_under_their_name():
    async def check(page):
        await page.change(Show("why", "terms.halo"), work=False)
        assert "why the phase halo" in page.lines[0]
        assert "elasticities of the iteration time" in page.lines[0]
        assert "gpu.dram_bandwidth" in page.text
        await page.change(work=True)
        assert "elasticities of the phase halo" in page.lines[0]

    on_page(WhyPage, check)


def test_a_result_that_is_not_there_gives_way_to_the_iteration():
    async def check(page):
        assert "why the iteration time" in page.lines[0]

    on_page(WhyPage, check, changes=(Show("why", "terms.no_such_phase"),))


def test_an_infeasible_point_tells_its_reasons_and_which_key_helps():
    async def check(page):
        reason = "the ranks need more nodes than the platform has (platform.node_count); 256 needed, 20 available"
        assert page.text.count(reason) == 1 + 1
        assert "u undoes the last change" in page.text
        await page.change(Edit("platform.node_count", "4608"))
        assert "Infeasible point" not in page.text
        assert "▾ kernel_time" in page.text
        assert "gpu.dram_bandwidth" in page.text

    on_page(WhyPage, check, size=(99, 60), changes=(TOO_FEW,))


def test_a_point_without_a_number_tells_the_key_to_blame():
    async def check(page):
        assert "the time of `stencil` is not finite because of application.phases.stencil.compute_fraction" in page.text
        assert "u undoes the last change" in page.text

    on_page(WhyPage, check, size=(300, 80), changes=(INFINITE,))


def test_a_result_of_zero_has_a_tree_but_no_elasticities():
    async def check(page):
        assert "iteration.transfer_time 0 s 0.0%" in page.text
        assert "There are no elasticities: `transfer_time` is 0. y explains the next result." in page.text

    on_page(WhyPage, check, size=(300, 80), changes=(Show("why", "transfer_time"),))


def test_a_reason_of_another_result_is_given_up_with_it():
    assert leverage(Session.start(Scenario.open("jacobi2d")).inputs, "transfer_time").reason == "`transfer_time` is 0"

    async def check(page):
        await page.change(Show("why", "kernel_time"))
        assert "There are no elasticities" not in page.text
        assert "█" in page.text

    on_page(WhyPage, check, changes=(Show("why", "transfer_time"),))


def test_where_there_is_room_for_one_half_a_key_turns_to_the_other():
    async def check(page):
        tree, bars = page.app.query_one(WhyTree), page.app.query_one(ElasticityBars)
        assert page.app.focused is tree
        assert "elasticities" not in page.text
        await page.act("half")
        assert page.app.focused is bars
        assert "why the" not in page.text
        assert "elasticities of the iteration time" in page.text
        await page.act("half")
        assert page.app.focused is tree
        assert "why the" in page.text

    on_page(WhyPage, check, size=(44, 14))


@pytest.mark.parametrize("size", [(140, 42), (70, 28)])
def test_where_there_is_room_for_both_the_key_goes_from_one_to_the_other(size):
    async def check(page):
        assert "why the iteration time" in page.text
        assert "elasticities of the iteration time" in page.text
        await page.act("half")
        assert page.app.focused is page.app.query_one(ElasticityBars)
        await page.press("tab")
        page.app.query_one(WhyTree).focus()
        await page.settle()
        await page.act("half")
        assert page.app.focused is page.app.query_one(ElasticityBars)

    on_page(WhyPage, check, size=size)


def test_the_table_has_the_same_elasticities_and_the_focus_of_the_bars():
    async def check(page):
        items = page.app.query_one(ElasticityBars)._items
        await page.act("half")
        await page.act("table")
        table = page.app.query_one(TableView)
        assert page.app.focused is table
        assert table.row_count == len(items)
        for item in items[:20]:
            line = page.line(f" {shorten(item.path, 44)} ", f" {written(item)} ")
            assert item.change in line
            assert item.value in line
        await page.press("down", "down")
        assert sentence(items[2], "the iteration time") in page.text
        await page.act("table")
        assert page.app.focused is page.app.query_one(ElasticityBars)

    on_page(WhyPage, check, size=(300, 80))


@pytest.mark.parametrize("sizes", [GROWING[::3] + SHRINKING[1::3]])
def test_no_size_is_too_small_or_too_large(sizes):
    async def check(page):
        for changes in ((), (TABLE,), (TOO_FEW,)):
            await page.change(*changes)
            for size in sizes:
                await page.resize(size)
                for _ in range(2):
                    await page.act("half")
                    await page.press("end")
                    assert page.fills(size), size

    on_page(WhyPage, check, size=sizes[0])


def test_no_row_is_wider_than_its_list():
    async def check(page):
        tree, bars = page.app.query_one(WhyTree), page.app.query_one(ElasticityBars)
        tree._folds = {row.key: False for row in tree._all}
        tree._lay_out(())
        for rows, count in ((tree, len(tree._rows)), (bars, len(bars._items))):
            assert count > 70
            for width in (8, 14, 36, 44, 72, 200):
                for index in range(count):
                    assert sum(len(run.text) for run in rows.draw_row(index, width)) <= max(width, 12)

    on_page(WhyPage, check, "minife")


def test_key_3_opens_the_page_and_y_explains_the_next_result():
    async def check(driver):
        await driver.press("3")
        await driver.until(lambda: "dram_bandwidth" in driver.screen_text().partition("elasticities")[2])
        assert "why the iteration time" in driver.screen_text()
        await driver.press("y")
        assert driver.state.view.why != "iteration_time"
        assert f"why {in_words(driver.state.view.why)}" in driver.screen_text()
        await driver.press("Y")
        assert driver.state.view.why == "iteration_time"
        await driver.press("m")
        assert driver.app.focused is driver.main_screen.query_one(ElasticityBars)

    drive(check)


def test_elasticities_are_computed_once_for_the_same_values_and_result():
    async def check(page):
        assert page.page.job(page.app.state) is None
        await page.change(TABLE, work=False)
        assert page.page.job(page.app.state) is None
        for change in (Edit(MEMORY, "1 TB/s"), Show("why", "total_energy")):
            await page.change(change, work=False)
            assert page.page.job(page.app.state) is not None
            await page.change()
            assert page.page.job(page.app.state) is None

    on_page(WhyPage, check)
