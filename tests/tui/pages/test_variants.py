"""The page of variants: the numbers of each, the values that differ, and what a difference comes from."""

import math

import pytest

from tests.driver import GPUS, MODEL, predicted
from tests.page_harness import GROWING, SHRINKING, on_page
from whatif.tui.commands.explorer_commands import Adopt, Edit, Show
from whatif.tui.labels import change_text, duration
from whatif.tui.pages.variants import VariantsPage
from whatif.tui.variants.variant_commands import Delete, Fork, Go
from whatif.tui.widgets.chart_bars import ChartBars
from whatif.tui.widgets.data_table import TableView

TWO = (Edit(GPUS, "8"), Fork("postal"), Edit(MODEL, "postal"))


def test_results_and_values_stand_side_by_side():
    async def check(page):
        now = predicted(f"{GPUS}=8", f"{MODEL}=postal")["iteration_time"]
        times = page.line("iteration_time", "%")
        assert duration(predicted()["iteration_time"], 4) in times
        assert duration(predicted(f"{GPUS}=8")["iteration_time"], 4) in times
        assert f"{duration(now, 4)} {now / predicted()['iteration_time'] - 1:+.1%}" in times
        assert page.line("A", "B", "C postal (now)")
        assert page.line("gpu_count").split("gpu_count")[1].split()[:3] == ["6", "8", "8"]
        assert page.line("halo.model").split("halo.model")[1].split()[:3] == ["k_model", "k_model", "postal"]

    on_page(VariantsPage, check, changes=TWO)


def test_the_present_variant_is_explained_from_the_chosen_one():
    async def check(page):
        assert "why iteration_time of C postal differs from A" in page.text
        labels = [row.label for row in page.page.query_one(ChartBars)._rows]
        assert (labels[0], labels[-1]) == ("A", "C postal")
        assert set(labels[1:-1]) == {GPUS, "structure"}
        await page.act("against")
        assert "why iteration_time of C postal differs from B" in page.text
        assert [row.label for row in page.page.query_one(ChartBars)._rows] == ["B", "structure", "C postal"]
        await page.change(Go("A"))
        assert "why iteration_time of A differs from B" in page.text
        await page.change(Show("picture", "table"))
        assert page.page.query_one("#contributions", TableView).display

    on_page(VariantsPage, check, changes=TWO)


def test_one_variant_alone_says_what_to_press():
    async def check(page):
        assert "There is one variant only." in page.text
        assert page.page.offers("rename")
        assert not any(page.page.offers(action) for action in ("against", "delete", "write", "result", "table"))
        await page.change(Edit(GPUS, "8"))
        assert "why iteration_time of B differs from A" in page.text
        assert page.page.offers("delete")
        assert not page.page.offers("against")

    on_page(VariantsPage, check)


def test_a_draft_that_equals_the_baseline_has_nothing_to_explain():
    async def check(page):
        await page.change(Delete("C"))
        assert "why iteration_time" not in page.text
        assert page.line("iteration_time", "%")

    on_page(VariantsPage, check, changes=TWO)


def test_an_infeasible_variant_says_why():
    async def check(page):
        assert "the ranks need more nodes" in page.line("infeasible")
        assert "There is no answer" in page.text

    on_page(VariantsPage, check, changes=(Edit("platform.node_count", "10"),))


@pytest.mark.parametrize("sizes", [GROWING, SHRINKING])
def test_every_size_is_filled(sizes):
    async def check(page):
        for size in sizes:
            await page.resize(size)
            assert page.fills(size)

    on_page(VariantsPage, check, size=sizes[0], changes=(*TWO, Fork("far away"), Adopt("lassen")))


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (1.1, 1.0, "+10.0%"),
        (0.9996, 1.0, "-0.04%"),
        (0.3 / 3, 0.1, "±0%"),
        (9.99, 1.0, "+899.0%"),
        (76.88, 1.0, "x76.9"),
        (1.0, 0.0, ""),
        (math.nan, 1.0, ""),
        (1.0, math.nan, ""),
    ],
)
def test_a_change_without_effect_has_no_sign(now, before, text):
    assert change_text(now, before) == text
