"""Ticks and limits of axes on the screen: labels that fit, ticks without labels, and starts other than zero."""

import math

import numpy as np
import pytest

from whatif import units
from whatif.plotting.axis_view import axes_of, minor_ticks, points_of
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.plotting.terminal import render


def over_counts(y, scale=Scale.LINEAR, label="time", dimension=units.SECOND):
    x = np.linspace(1, 16, len(y))
    axes = AxisDescription("count"), AxisDescription(label, dimension, scale)
    return PlotDescription("", *axes, (PlotLine("", x, y),))


def y_labels(description, height, marker="braille"):
    lines = render(description, 80, height, marker=marker, colour=False).splitlines()
    tick = "┤" if marker == "braille" else "+"
    found = [line.partition(tick)[0].strip() for line in lines[:-2] if tick in line]
    return [label for label in found if label]


def test_values_between_5_and_10_have_labels_on_an_axis_of_two_decades():
    description = over_counts(np.geomspace(0.1, 10, 50) * 1e-3, Scale.LOG)
    assert y_labels(description, 24) == ["10", "5", "2", "1", "0.5", "0.2", "0.1"]


def test_logarithmic_axis_in_few_lines_has_more_labels_than_one_decade():
    description = over_counts(np.linspace(4e-3, 64e-3, 50), Scale.LOG)
    for marker in ("braille", "ascii"):
        assert y_labels(description, 8, marker) == ["50", "20", "10", "5"]


def test_linear_axis_shows_a_variation_of_7_percent_in_most_lines():
    y = 5e-3 * (1 + 0.07 * np.linspace(0, 1, 50))
    lines = render(over_counts(y), 80, 24, colour=False).splitlines()[1:-3]
    assert sum(any("⠀" < char <= "⣿" for char in line) for line in lines) >= 0.75 * len(lines)
    assert min(float(label) for label in y_labels(over_counts(y), 24)) >= 5


def test_residual_axis_in_four_lines_has_three_ticks():
    for low, high in ((-23.8, 13), (-100, 2), (-0.4, 0.3), (3.0, 7.0), (-1e-9, 4e-3)):
        labels = y_labels(over_counts(np.linspace(low, high, 50), label="", dimension=units.ONE), 7)
        assert len(labels) >= 3, (low, high, labels)


def test_minor_ticks_are_the_multiples_of_each_decade_or_2_and_5_where_they_are_close():
    axis = AxisDescription("size", units.BYTE, Scale.LOG)
    view = axes_of(*both(PlotDescription("", axis, axis, (PlotLine("", [1, 1e3], [1, 1e3]),)))).x

    def factors(apart):
        found = minor_ticks(view, lambda positions: np.diff(positions).min() >= apart)
        return sorted({round(10 ** (position % 1)) for position in found if position % 1 > 1e-9})

    assert factors(0.04) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert factors(0.2) == [2, 5]
    assert factors(0.5) == []


def both(description):
    return description, points_of(description)


@pytest.mark.parametrize(("marker", "across", "up"), [("braille", "┴", "├"), ("ascii", "'", "+")])
def test_ticks_without_labels_are_drawn_at_their_values(marker, across, up):
    n = np.geomspace(1, 1e4, 100)
    axes = AxisDescription("size", units.BYTE, Scale.LOG), AxisDescription("time", units.SECOND, Scale.LOG)
    lines = render(PlotDescription("", *axes, (PlotLine("", n, n),)), 120, 36, marker=marker, colour=False).splitlines()
    floor = lines[-3]
    left, length = len(floor.partition("└" if marker == "braille" else "+")[0]) + 1, 120
    columns = [column for column, char in enumerate(floor) if char == across]
    values = [4 * (column - left) / (length - left - 1) for column in columns]
    expected = [decade + math.log10(factor) for decade in range(4) for factor in range(2, 10)]
    assert max(abs(a - b) for a, b in zip(values, expected, strict=True)) < 4 / 100
    assert sum(line[left - 1] == up for line in lines[:-3]) >= 8


def test_linear_axis_has_no_ticks_without_labels():
    assert "┴" not in render(over_counts(np.linspace(1, 3, 20)), 80, 24, colour=False)
