"""Plots as files: pictures, tables of the visible points, command lines."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import whatif
from whatif.errors import UsageError
from whatif.files.plot_files import write_plot
from whatif.plotting.window import PlotWindow

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


def test_script_has_the_command_line(swept, tmp_path):
    write_plot(swept.picture(), tmp_path / "whole.sh", COMMAND)
    assert (tmp_path / "whole.sh").read_text() == f"#!/bin/sh\n{COMMAND}\n"


def test_unknown_suffix_names_the_known_ones(swept, tmp_path):
    with pytest.raises(UsageError, match=r"cannot tell the format from `.jpg`: use .svg, .png, .pdf"):
        write_plot(swept.picture(), tmp_path / "whole.jpg", COMMAND)
