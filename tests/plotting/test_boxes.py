"""Boxes in boxes: frames that close, words that give way, and what is left on small screens."""

from __future__ import annotations

import pytest

from whatif.plotting.boxes import Box, BoxText, box_runs
from whatif.plotting.description import text_cells

INNER = Box("inner × 2", (BoxText("words that are long enough to be wrapped in a narrow box"),), marked=True)
OUTER = Box("outer", (BoxText("first"), BoxText("second", rank=1), BoxText("third", rank=2)), (INNER,))


def text(width, height, box=OUTER):
    return ["".join(run.text for run in line) for line in box_runs(box, width, height)]


def test_a_box_holds_its_words_and_the_boxes_inside():
    assert text(40, 20) == [
        "┌─ outer ──────────────────────────────┐",
        "│ first                                │",
        "│ second                               │",
        "│ third                                │",
        "│ ┏━ inner × 2 ━━━━━━━━━━━━━━━━━━━━━━┓ │",
        "│ ┃ words that are long enough to be ┃ │",
        "│ ┃   wrapped in a narrow box        ┃ │",
        "│ ┗━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┛ │",
        "└──────────────────────────────────────┘",
    ]


def test_words_of_higher_ranks_give_way_first_and_then_the_frames():
    assert [("second" in line, "third" in line) for line in ("\n".join(text(40, height)) for height in (9, 8, 7))] == [
        (True, True), (True, False), (False, False),
    ]  # fmt: skip
    assert text(40, 5) == [
        "  outer",
        "    first",
        "    second",
        "  ▶ inner × 2",
        "      words that are long enough to be …",
    ]
    assert text(40, 4) == ["  outer", "    first", "  ▶ inner × 2", "      words that are long enough to be …"]
    assert text(40, 2) == ["  outer", "    first"]


@pytest.mark.parametrize("width", [1, 5, 12, 23, 24, 30, 80])
@pytest.mark.parametrize("height", [1, 3, 8, 40])
def test_every_line_fits_the_screen(width, height):
    lines = text(width, height)
    assert 0 < len(lines) <= height
    assert all(len(text_cells(line)) <= width for line in lines)


def test_a_screen_without_room_shows_nothing():
    assert box_runs(OUTER, 0, 5) == box_runs(OUTER, 5, 0) == []
