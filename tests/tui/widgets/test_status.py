"""The line above the keys."""

from __future__ import annotations

import pytest

from tests.driver import MEMORY, drive


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_an_error_is_shown_whole(size):
    """Its end says what is possible."""

    async def check(driver):
        driver.tree.select(MEMORY)
        await driver.press("T")
        await driver.type("iteration_time <= 1 us")
        words = " ".join(driver.screen_text().split())
        assert "longest phases: " in words
        assert driver.status.size.height in (2, 3)
        await driver.press("escape", "escape")
        assert driver.status.size.height == 1

    drive(check, size)


def test_an_error_takes_one_line_of_a_flat_screen():
    async def check(driver):
        driver.tree.select(MEMORY)
        await driver.press("T")
        await driver.type("iteration_time <= 1 us")
        assert driver.status.full.startswith("no value of")
        assert driver.status.size.height == 1

    drive(check, (80, 12))
