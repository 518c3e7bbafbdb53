"""Plots in pixels: as large as their cells, with the axes where the cells have them, in the colours asked for."""

import io

import numpy as np
import pytest
from PIL import Image, ImageColor

from tests.terminal_pictures import kitty_pictures, sixel_pictures
from whatif.plotting.description import HEAT_STYLES, AxisDescription, HeatMap, Marker, PlotDescription, PlotLine, Scale
from whatif.plotting.picture_style import DARK
from whatif.plotting.pixels import draw_pixels
from whatif.plotting.placed import CellSize, PixelRequest
from whatif.plotting.terminal import place_plot
from whatif.plotting.terminal_graphics import draw_picture
from whatif.units import SECOND

CELL = CellSize(9, 18)
SIZE = (80, 20)
X = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
CURVES = PlotDescription(
    "",
    AxisDescription("n"),
    AxisDescription("time", SECOND),
    (PlotLine("new", X, 1 / X), PlotLine("old", X, 0.5 / X, "baseline"), PlotLine("measured", X, 1.1 / X, "points")),
)
HEAT = HeatMap("", AxisDescription("n"), AxisDescription("m"), AxisDescription("time", SECOND, Scale.LOG), X, X,
               np.outer(X, X), here=(2.0, 3.0))  # fmt: skip
HUES = {style: f"#{20 * number:02x}4040" for number, style in enumerate(HEAT_STYLES)}
COLOURS = {**DARK, **HUES, "label": DARK["muted"], "marker": DARK["ink"], "title": DARK["ink"], "axis": DARK["faint"],
           "": DARK["ink"]}  # fmt: skip


def request_of(description, size=SIZE, cell=CELL):
    plot = place_plot(description, *size, reserve=True)
    return PixelRequest((plot,), *size, cell, COLOURS)


def picture_of(request):
    with Image.open(io.BytesIO(draw_pixels(request))) as image:
        return image.convert("RGB")


def places_of(image, colour, least=1):
    """Rows and columns of the pixels of a colour."""
    found = np.argwhere((np.asarray(image) == ImageColor.getrgb(colour)).all(axis=-1))
    assert len(found) >= least, colour
    return found


@pytest.mark.parametrize("description", [CURVES, HEAT], ids=["curves", "heat"])
@pytest.mark.parametrize("cell", [CellSize(6, 13), CELL, CellSize(21, 44)])
def test_picture_is_as_large_as_its_cells_and_has_the_background_of_the_screen(description, cell):
    image = picture_of(request_of(description, cell=cell))
    assert image.size == (SIZE[0] * cell.width, SIZE[1] * cell.height)
    corner = image.getpixel((image.width - 1, image.height - 1))
    assert corner == ImageColor.getrgb(DARK["ground"])


def test_curves_and_legend_have_the_colours_of_their_styles():
    image = picture_of(request_of(CURVES))
    for style in ("series-1", "series-2", "baseline"):
        rows = places_of(image, DARK[style], least=20)[:, 0]
        legend = 2 * CELL.height
        assert rows.min() < legend < rows.max(), style


def test_ends_of_a_curve_are_in_the_cells_where_the_screen_has_them():
    request = request_of(PlotDescription("", CURVES.x, CURVES.y, CURVES.lines[:1], (Marker(2.0, "now"),)))
    plot = request.plots[0]
    places = places_of(picture_of(request), DARK["series-1"])
    data = places[places[:, 0] >= plot.top * CELL.height]
    first, last = data[:, 1].min() / CELL.width, data[:, 1].max() / CELL.width
    assert plot.left <= first <= plot.left + 1
    assert plot.left + plot.columns - 1 <= last <= plot.left + plot.columns
    top, bottom = data[:, 0].min() / CELL.height, data[:, 0].max() / CELL.height
    assert plot.top <= top <= bottom <= plot.top + plot.rows


def test_scale_of_a_heat_map_has_every_colour():
    image = picture_of(request_of(HEAT))
    for hue in HUES.values():
        places_of(image, hue, least=20)


def test_picture_of_a_huge_screen_has_fewer_pixels_than_the_screen():
    request = request_of(CURVES, size=(300, 80), cell=CellSize(20, 40))
    image = picture_of(request)
    assert 0.9 * 3_000_000 < image.width * image.height < 1.1 * 3_000_000
    assert image.width / image.height == pytest.approx(300 * 20 / (80 * 40), rel=0.01)


def test_a_screen_without_room_for_axes_has_no_place_for_a_plot():
    assert place_plot(CURVES, 12, 3) is None


def test_kitty_gets_the_png_in_messages_and_a_cell_for_each_part_of_it():
    request = request_of(CURVES)
    drawn = draw_picture(request, "kitty", 4711)
    assert max(len(part) for part in drawn.sequence.split("\x1b_G")) < 4096 + 100
    [found] = kitty_pictures(drawn.sequence)
    assert np.array_equal(np.asarray(found.image), np.asarray(picture_of(request)))
    wanted = {"a": "T", "U": "1", "q": "2", "f": "100", "i": "4711", "c": "80", "r": "20"}
    assert wanted.items() <= found.keys.items()
    assert [line.count("\U0010eeee") for line in drawn.lines] == [SIZE[0]] * SIZE[1]
    # Row and column of each cell: U+0305 is 0, U+030D is 1, U+030E is 2.
    assert drawn.lines[0].startswith("\U0010eeee\u0305\u0305\U0010eeee\u0305\u030d")
    assert drawn.lines[2].startswith("\U0010eeee\u030e\u0305\U0010eeee\u030e\u030d")


@pytest.mark.parametrize("description", [CURVES, HEAT], ids=["curves", "heat"])
def test_sixels_show_the_picture_in_256_colours(description):
    request = request_of(description)
    drawn = draw_picture(request, "sixel", 1)
    [found] = sixel_pictures(drawn.sequence)
    assert drawn.lines == ()
    assert found.size == (SIZE[0] * CELL.width, SIZE[1] * CELL.height)
    off = np.abs(np.asarray(found).astype(int) - np.asarray(picture_of(request)).astype(int))
    assert off.mean() < 3
    assert np.quantile(off, 0.99) < 32


def test_sixels_of_a_huge_screen_fill_it():
    request = request_of(CURVES, size=(200, 60), cell=CellSize(20, 40))
    [found] = sixel_pictures(draw_picture(request, "sixel", 1).sequence)
    assert found.size == (4000, 2400)
