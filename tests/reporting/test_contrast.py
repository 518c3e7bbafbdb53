"""Contrast of the texts of HTML pages: the report, and the page of a study."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT
from tests.tui.test_themes import contrast
from whatif.plotting.picture_style import DARK, LIGHT

TEXT_COLOUR = re.compile(r"[{;]\s*color: *(?:var\(--([\w-]+)\)|(\w+|#[0-9a-f]+))")


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_of_pages_can_be_read(colours):
    """Contrast of WCAG 2.2, level AA, of every colour of text that the style sheets name."""
    sheets = [path.read_text(encoding="utf-8") for path in (ROOT / "whatif" / "reporting").glob("*.jinja")]
    named = {name for sheet in sheets for name, _ in TEXT_COLOUR.findall(sheet) if name}
    assert {"ink", "muted"} <= named
    assert {name for name in named if contrast(colours[name], colours["ground"]) < 4.5} == set()
    fixed = {value for sheet in sheets for _, value in TEXT_COLOUR.findall(sheet) if value}
    # Printed pages are white.
    assert {value for value in fixed - {"inherit"} if contrast(value, "#ffffff") < 4.5} == set()
