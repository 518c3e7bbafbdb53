import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine
from whatif.plotting.raster import GLYPHS, Raster, isolated, walk
from whatif.plotting.terminal import render, render_runs

COLUMNS, ROWS = 7, 5
# Unicode numbering of the dots of a braille cell from the top: 1 2 3 7 on the left, 4 5 6 8 on the right.
BRAILLE = {"1": (0, 3), "2": (0, 2), "3": (0, 1), "7": (0, 0), "4": (1, 3), "5": (1, 2), "6": (1, 1), "8": (1, 0)}
QUARTERS = {"UPPER LEFT": (0, 1), "UPPER RIGHT": (1, 1), "LOWER LEFT": (0, 0), "LOWER RIGHT": (1, 0)}


def braille_dots(character):
    return [BRAILLE[number] for number in unicodedata.name(character).rpartition("-")[2]]


def block_dots(character):
    name = unicodedata.name(character)
    if name.startswith("QUADRANT"):
        return [QUARTERS[part] for part in name.removeprefix("QUADRANT ").split(" AND ")]
    halves = name.removesuffix(" BLOCK").removesuffix(" HALF").removesuffix("FULL")
    return [dot for part, dot in QUARTERS.items() if halves in part]


def shown_dots(text, decode, across, down):
    """Dots of the characters, from their Unicode names."""
    return {
        (column * across + x, (len(text) - 1 - row) * down + y)
        for row, line in enumerate(text)
        for column, character in enumerate(line)
        if character != " "
        for x, y in decode(character)
    }


@pytest.mark.parametrize(("marker", "decode"), [("braille", braille_dots), ("block", block_dots)])
def test_braille_dots_are_at_their_unicode_positions(marker, decode):
    glyphs = GLYPHS[marker]
    across, down = (2, 4) if marker == "braille" else (2, 2)

    @given(st.sets(st.tuples(st.integers(0, COLUMNS * across - 1), st.integers(0, ROWS * down - 1)), max_size=40))
    def drawn(dots):
        raster = Raster(COLUMNS, ROWS, glyphs)
        for number, part in enumerate((sorted(dots)[::2], sorted(dots)[1::2]), start=1):
            raster.draw(np.array(part, dtype=int).reshape(-1, 2).T, glyphs.pens[1], number)
        assert shown_dots(raster.text.tolist(), decode, across, down) == dots
        assert ((raster.styles > 0) == (raster.text != " ")).all()

    drawn()


def test_characters_of_a_marker_are_distinct():
    for marker, count in (("braille", 256), ("block", 16)):
        assert len(set(GLYPHS[marker].pens[1].characters.tolist())) == count


def test_walk_is_continuous_and_never_crosses_a_gap():
    dots = walk(np.array([[0.0, 3.0, np.nan, 6.0, 6.0], [0.0, 9.0, np.nan, 2.0, np.nan]]))
    steps = [tuple(dot) for dot in dots.T.tolist()]
    assert (0, 0) in steps
    assert (3, 9) in steps
    rising = [dot for dot in steps if dot[0] <= 3]
    assert sorted(y for _, y in rising) == list(range(10))
    assert {dot for dot in steps if dot[0] > 3} == {(6, 2)}


def test_isolated_points_are_found():
    np.testing.assert_array_equal(isolated(np.array([1, np.nan, 2, 3, np.nan, 4])), [0, 5])


def described(*lines):
    return PlotDescription("", AxisDescription("x"), AxisDescription("y"), lines)


def test_single_point_among_many_is_visible():
    x = np.arange(100_000.0)
    y = np.zeros(x.size)
    flat = render(described(PlotLine("", x, y), PlotLine("", x, y + 1, "baseline")), 120, 30, colour=False)
    y[43_210] = 1
    spike = render(described(PlotLine("", x, y), PlotLine("", x, np.ones(x.size), "baseline")), 120, 30, colour=False)
    changed = [
        column
        for before, after in zip(flat.split("\n")[2:-3], spike.split("\n")[2:-3], strict=True)
        for column, (a, b) in enumerate(zip(before.ljust(120), after.ljust(120), strict=True))
        if a != b
    ]
    assert len(changed) >= 20
    assert max(changed) - min(changed) <= 1


def test_shared_cell_has_all_dots_and_the_colour_of_the_first_curve():
    x = np.array([0.0, 1.0])
    low, high = PlotLine("low", x, np.array([0.0, 0.0])), PlotLine("high", x, np.array([0.06, 0.06]))
    top = PlotLine("", x, np.array([1.0, 1.0]), "baseline")
    rows = {
        number: [[run for run in row if run.style.startswith("series")] for row in render_runs(plot, 60, 8)]
        for number, plot in enumerate((described(low, high, top), described(low, top)))
    }
    both, alone = ([runs for runs in rows[number] if any(run.text[0] >= "⠀" for run in runs)] for number in (0, 1))
    [[shared]], [[single]] = both, alone
    assert shared.style == single.style == "series-1"
    assert len(braille_dots(shared.text[5])) == 2 * len(braille_dots(single.text[5])) == 4
