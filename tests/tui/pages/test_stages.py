"""Pages of transformers: stages in one step, communication, memory, and what cannot be shown."""

from __future__ import annotations

import pytest

from tests.driver import drive
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.transformers.group_collectives import group_collectives
from whatif.transformers.training.simulated_step import simulated_step
from whatif.tui.pages.stages import StagesPage
from whatif.tui.widgets.rank_bars import RankBars
from whatif.tui.widgets.transformer_parts import memory_bar, step_lanes

PLAN = "application.plan"


def at(name, **plan):
    """Program and values of a shipped scenario with another plan."""
    program = Scenario.open(name, overrides={f"{PLAN}.{key}": value for key, value in plan.items()}).program
    return program, evaluate(program).values


def test_the_lanes_are_those_of_the_step():
    program, values = at("llama_training")
    step = simulated_step(program, values)
    lanes = step_lanes(step)
    assert lanes.window[1] == pytest.approx(float(values["iteration.time"]), rel=1e-9)
    # A stage of four ranks times two replicas fills a node.
    assert lanes.node.tolist() == list(range(8))
    assert step.words == "8 stages, 128 micro batches, 5 parts per stage, bubble 1.1% of the step"


def test_what_cannot_be_simulated_and_other_orders_are_said():
    step = simulated_step(*at("llama_training", global_batch="260", micro_batch="1"))
    assert step_lanes(step) is None
    assert "8 stages do not divide 130 micro batches" in step.words
    assert simulated_step(*at("llama_training", schedule="zero_bubble")).words.endswith("drawn as 1f1b")


@pytest.mark.parametrize(("global_batch", "count"), [("1", "0.5"), ("129", "64.5")])
def test_micro_batches_that_are_no_whole_number_are_not_drawn(global_batch, count):
    """Such points are infeasible; none at all would be a division by 0."""
    step = simulated_step(*at("llama_training", global_batch=global_batch, micro_batch="1"))
    assert step_lanes(step) is None
    assert step.words == f"a replica has {count} micro batches; it must be a whole number of at least 1"


def test_the_memory_bar_is_the_memory_of_the_device():
    _, values = at("llama_training")
    bar = memory_bar(values, StagesPage.MEMORY, StagesPage.TERMS)
    assert sum(part.value for part in bar.segments) == pytest.approx(80e9, rel=1e-12)
    kinds = ["weights", "gradients", "optimiser", "activations", "buffers", "free"]
    assert [part.label for part in bar.segments] == kinds


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
def test_the_page_of_a_training_shows_stages_collectives_and_memory(size):
    async def check(driver):
        await driver.go("ranks")
        assert driver.state.page == "stages"
        text = driver.screen_text()
        assert "one step on every stage: 8 stages" in text
        assert "activations 44.2 GB" in text
        assert driver.main_screen.query_one(RankBars).lane_count == 8
        await driver.press("v")
        text = " ".join(driver.screen_text().split())
        assert "tensor parallel 4 4 128 MiB 256.28 us" in text
        assert size[0] < 100 or "2.6243 s 19.0%" in text
        assert "stage messages 2 1 32 MiB" in text

    drive(check, size, "llama_training")


@pytest.mark.parametrize(("name", "key"), [("llama_training", "v"), ("llama_serving", "home")])
def test_columns_of_the_collectives_without_room_are_a_key_away(name, key):
    async def check(driver):
        await driver.go("ranks")
        await driver.press(key)
        await driver.until(lambda: "← → other columns" in driver.screen_text())
        assert " all " not in driver.screen_text()
        await driver.press("right", "right", "right")
        assert " all " in driver.screen_text()
        assert "tensor parallel" in driver.screen_text()

    drive(check, (50, 20), name)


def test_stages_without_room_are_counted_and_scrolled_to():
    async def check(driver):
        await driver.go("ranks")
        assert "stages 0 to 6 of 8" in driver.screen_text()
        await driver.press("down", "down")
        text = driver.screen_text()
        assert "stages 1 to 7 of 8" in text
        assert "╶ 7 " in text
        await driver.press("v", "v")
        await driver.until(lambda: "stages 1 to 7 of 8" in driver.screen_text())
        await driver.pilot.resize_terminal(80, 24)
        await driver.calm()
        assert "╶ 0 " in driver.screen_text()
        assert " of 8 " not in driver.screen_text()

    drive(check, (60, 20), "llama_training")


def test_collectives_are_those_of_the_terms():
    program, values = at("llama_training")
    found = {item.name: item for item in group_collectives(program, values)}
    tensor = found["tensor parallel"]
    assert (tensor.ranks, tensor.in_domain, tensor.size) == (4, 4, 8192 * 8192 * 2)
    assert tensor.whole * (1 - tensor.hidden) == pytest.approx(float(values["tensor_parallel"]), rel=1e-12)
    gradients = found["gradients dense weight"].whole + found["gradients dense gradient"].whole
    assert gradients == pytest.approx(float(values["gradients.communication_time"]), rel=1e-12)


def test_the_page_of_serving_shows_its_collectives_and_memory():
    async def check(driver):
        await driver.go("ranks")
        assert driver.state.page == "memory"
        text = driver.screen_text()
        assert "memory of a rank: 67 GB" in text
        assert "cache" in text
        assert "step tensor parallel" in text
        assert "hidden" not in text

    drive(check, (120, 36), "llama_serving")


def test_a_plan_that_does_not_fit_keeps_the_page():
    async def check(driver):
        await driver.go("ranks")
        assert "memory of a rank" in driver.screen_text()

    scenario = Scenario.open("llama_training", overrides={f"{PLAN}.micro_batch": "8"})
    drive(check, (120, 36), scenario)
