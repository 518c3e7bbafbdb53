"""Texts of files in the explorer: no control character of them is drawn."""

from __future__ import annotations

import re

from tests.driver import drive
from whatif.core.scenario import Scenario
from whatif.schema.shipped import shipped_folder
from whatif.visible_text import is_visible

HOSTILE = "\x1b]0;PWNED\x07\u202e"
TOML = r'\u001b]0;PWNED\u0007\u202e"'
SHOWN = r"\x1b]0;PWNED\u202e"
"""Textual leaves out the bell."""
PAGES_WITH_TEXTS = "1234567"


def hostile_scenario(folder):
    """jacobi2d with hostile texts for names, units of work and sources."""
    text = (shipped_folder("scenarios") / "jacobi2d.toml").read_text()
    path = folder / "hostile.toml"
    path.write_text(re.sub(r'^name = ".*"|source = "[^"]*"', lambda found: found[0][:-1] + TOML, text, flags=re.M))
    return Scenario.open(str(path))


def test_no_page_draws_a_control_character(tmp_path):
    drawn = {}

    async def check(driver):
        for page in (None, *PAGES_WITH_TEXTS):
            if page is not None:
                await driver.press(page)
            drawn[page] = [strip.text for strip in driver.app.screen._compositor.render_strips()]
        driver.app.notify(HOSTILE, markup=False)
        await driver.calm()
        drawn["notice"] = [strip.text for strip in driver.app.screen._compositor.render_strips()]

    drive(check, scenario=hostile_scenario(tmp_path), notifications=True)
    for page, lines in drawn.items():
        assert all(map(is_visible, lines)), page
        assert {len(line) for line in lines} == {len(lines[0])}, page
    assert any(SHOWN in line for line in drawn[None])
    assert any(SHOWN in line for line in drawn["notice"])
