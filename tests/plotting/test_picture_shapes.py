"""Maps of tiles and nested boxes as pictures: borders, numbers, hatches, frames."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from numpy.testing import assert_allclose

from tests.tui.test_themes import contrast
from whatif.plotting.boxes import Box, BoxText
from whatif.plotting.picture import draw
from whatif.plotting.picture_style import DARK, LIGHT, TILES
from whatif.plotting.tiles import COLOURS, TileMap, group_colours, tile_text

GROUPS = np.array([[0, 0, 1], [0, 1, 1]])


def tiles(numbers=None, groups=GROUPS):
    numbers = np.arange(groups.size).reshape(groups.shape) if numbers is None else numbers
    return TileMap("t", "x", "y", numbers, groups, np.zeros_like(groups), groups == 1, "2 x 3", "group 1")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_lines_are_drawn_where_groups_meet_and_around_all():
    (axes,) = draw(tiles()).axes
    *_, borders = [found for found in axes.collections if isinstance(found, LineCollection)]
    drawn = {tuple(map(tuple, segment)) for segment in borders.get_segments()}
    inner = {((2, 0), (2, 1)), ((1, 1), (1, 2)), ((1, 1), (2, 1))}
    assert inner <= drawn
    assert len(drawn) == len(inner) + 2 * (2 + 3)
    assert texts(axes) == ["0", "1", "2", "3", "4", "5"]
    assert axes.get_xlabel() == "x →\n2 x 3; hatched: group 1"


def test_stressed_tiles_are_hatched_and_capitals_in_text():
    (axes,) = draw(tiles()).axes
    hatched = next(found for found in axes.collections if found.get_hatch())
    assert len(hatched.get_paths()) == 3
    assert tile_text(tiles()).splitlines() == ["t", "aaB", "aBB", "2 x 3", "capitals: group 1"]


def test_groups_have_numbers_where_tiles_are_too_small():
    groups = np.kron(np.arange(4).reshape(2, 2), np.ones((40, 40), dtype=int))
    (axes,) = draw(tiles(np.arange(6400).reshape(80, 80) + 100_000, groups)).axes
    assert texts(axes) == ["0", "1", "2", "3"]
    assert_allclose(axes.texts[0].get_position(), [20, 20], rtol=1e-12, atol=0)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_numbers_can_be_read_on_every_tile(colours):
    assert len(TILES) == COLOURS
    assert min(contrast(colours["ink"], colours[name]) for name in TILES) > 4.5


def test_neighbours_differ():
    groups = np.arange(12).reshape(3, 4)
    colours = group_colours(groups)
    assert (np.diff(colours, axis=0) != 0).all()
    assert (np.diff(colours, axis=1) != 0).all()


def test_boxes_lie_inside_each_other_and_marked_ones_have_thick_lines():
    inner = Box("inner", (BoxText("words"), BoxText("chosen", "title")), marked=True)
    (axes,) = draw(Box("outer", (BoxText("\x1b[31m red $x$"),), (inner, Box("second")))).axes
    outer, *others = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    box = outer.get_bbox()
    assert len(others) == 2
    for patch in others:
        assert box.x0 < patch.get_bbox().x0 < patch.get_bbox().x1 < box.x1
        assert box.y0 < patch.get_bbox().y0 < patch.get_bbox().y1 < box.y1
    assert others[0].get_bbox().y1 < others[1].get_bbox().y0
    assert [patch.get_linewidth() > 2 for patch in (outer, *others)] == [False, True, False]
    assert texts(axes) == ["outer", "\\x1b[31m red $x$", "inner", "words", "chosen", "second"]
