"""Plots as files: pictures, tables of the visible points, command lines."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import whatif
from whatif.errors import UsageError
from whatif.files.plot_files import write_plot
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, PlotStack
from whatif.plotting.picture import draw
from whatif.plotting.window import PlotWindow
from whatif.units import SECOND

COMMAND = "whatif run minife --sweep 'platform.node.gpu_count=1 .. 8 step 1'"


@pytest.fixture(scope="module")
def swept():
    return whatif.sweep("minife", "platform.node.gpu_count=1 .. 8 step 1")


def test_csv_has_the_visible_points_of_the_curves(swept, tmp_path):
    path = tmp_path / "part.csv"
    write_plot(PlotWindow((2.5, 6.0)).of(swept.picture()), path, COMMAND)
    heading, *rows = csv.reader(path.read_text().splitlines())
    assert heading[:2] == ["platform.node.gpu_count", "iteration [s]"]
    assert [float(row[0]) for row in rows] == [3, 4, 5, 6]
    np.testing.assert_allclose([float(row[1]) for row in rows], swept["iteration_time"][2:6], rtol=1e-12, atol=0)


def test_pictures_have_the_marks(swept, tmp_path):
    message = write_plot(swept.picture(), tmp_path / "whole.svg", COMMAND)
    assert message == f"written to {tmp_path / 'whole.svg'}"
    assert ">fastest<" in (tmp_path / "whole.svg").read_text()
    write_plot(swept.picture(), tmp_path / "whole.png", COMMAND)
    assert (tmp_path / "whole.png").read_bytes().startswith(b"\x89PNG")


def test_two_plots_are_one_picture_over_one_axis_and_one_table(tmp_path):
    x = np.array([1.0, 2.0, 4.0])
    axis, time = AxisDescription("platform.node.gpu_count"), AxisDescription("time", SECOND)
    above = PlotDescription("", axis, time, (PlotLine("fitted", x, x), PlotLine("measured", [2, 2], [3, 4], "points")))
    error = PlotLine("error in %", [2, 2, 8], [50.0, 100.0, 7.0], "points")
    below = PlotDescription("", AxisDescription(""), AxisDescription(""), (error, PlotLine("exact", x, 0 * x, "band")))
    stack = PlotStack(above, below)
    write_plot(stack, tmp_path / "both.svg", COMMAND)
    text = (tmp_path / "both.svg").read_text()
    assert [text.count(f">{word}<") for word in ("measured", "error in %", "platform.node.gpu_count")] == [1, 1, 1]
    upper, lower = draw(stack).axes
    assert upper.get_xlim() == lower.get_xlim()
    assert upper.get_position().height > 1.5 * lower.get_position().height
    write_plot(stack, tmp_path / "both.csv", COMMAND)
    assert (tmp_path / "both.csv").read_text().splitlines() == [
        "platform.node.gpu_count,fitted [s],measured [s],error in %,exact",
        "1.0,1.0,,,0.0",
        "2.0,2.0,3.0,50.0,0.0",
        "2.0,,4.0,100.0,",
        "4.0,4.0,,,0.0",
        "8.0,,,7.0,",
    ]
    write_plot(PlotStack(above, below, shared=False), tmp_path / "upper.csv", COMMAND)
    assert (tmp_path / "upper.csv").read_text().startswith("platform.node.gpu_count,fitted [s],measured [s]\n")


def test_script_has_the_command_line(swept, tmp_path):
    write_plot(swept.picture(), tmp_path / "whole.sh", COMMAND)
    assert (tmp_path / "whole.sh").read_text() == f"#!/bin/sh\n{COMMAND}\n"


def test_unknown_suffix_names_the_known_ones(swept, tmp_path):
    with pytest.raises(UsageError, match=r"`.jpg` is no known format: use .svg, .png, .pdf"):
        write_plot(swept.picture(), tmp_path / "whole.jpg", COMMAND)
