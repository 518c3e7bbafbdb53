"""Measured points of a sweep: several runs at one place."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import whatif
from whatif.errors import UsageError
from whatif.studies.measured_curves import averaged


def test_several_runs_at_one_place_are_their_mean_with_the_sample_deviation():
    x, mean, deviation = averaged(np.array([4.0, 1.0, 4.0, 4.0]), np.array([1.0, 7.0, 2.0, 3.0]))
    assert_array_equal(x, [1, 4])
    assert_allclose(mean, [7, 2], rtol=1e-12, atol=0)
    assert_allclose(deviation, [np.nan, 1.0], rtol=1e-12, atol=0)


def drawn(*axes, **settings):
    parts = whatif.sweep_parts("minife", *axes)
    for name, value in settings.items():
        setattr(parts, name, value)
    return parts, parts.picture()


def points_in(picture):
    return {line.label: line for line in picture.lines if line.style == "points"}


def test_picture_of_a_sweep_has_the_runs_of_the_scenario_in_the_colours_of_their_curves():
    parts, picture = drawn("application.rank_count=1, 2, 4, 8, 16, 32")
    found = points_in(picture)
    assert list(found) == ["measured", "measured, kernel", "measured, communication"]
    assert_array_equal(found["measured"].x, [2, 4, 8, 16, 32])
    assert_allclose(found["measured"].y[:2], [4721.4e-6, 4871.2e-6], rtol=1e-12, atol=0)
    styles = dict(zip([line.label for line in picture.lines], picture.line_styles(), strict=True))
    for label, curve in (("measured", "iteration"), ("measured, kernel", "kernel")):
        assert styles[label] == styles[curve]
    assert not any("measured" in text for text in parts.remarks)


@pytest.mark.parametrize("axes", [["platform=lassen, summit"], ["application.rank_count=2, 4", "platform=lassen"]])
def test_runs_are_drawn_over_a_single_number_only(axes, tmp_path):
    assert not points_in(drawn(*axes)[1])
    with pytest.raises(UsageError, match="a sweep of one number"):
        drawn(*axes, runs=tmp_path / "runs.csv")


def test_runs_of_a_file_are_drawn_with_error_bars_and_wrong_files_are_refused(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("platform,rank_count,iteration_time [ms]\nlassen,2,4\nlassen,2,6\nlassen,4,5\nsummit,8,1\n")
    ranks = "application.rank_count=1, 2, 4, 8"
    [line] = points_in(drawn(ranks, runs=file)[1]).values()
    assert_allclose([line.x, line.y, line.error], [[2, 4], [5e-3, 5e-3], [np.sqrt(2) * 1e-3, np.nan]], rtol=1e-12)
    for runs, axis, words in (
        (tmp_path / "nothing.csv", ranks, "no such file"),
        (file, "platform.node.gpu_count=1, 2", "no run has the values of this sweep"),
    ):
        with pytest.raises(UsageError, match=words):
            drawn(axis, runs=runs)


def test_svg_of_a_sweep_names_the_runs_and_relative_times_have_none(whatif_main, tmp_path):
    picture, ranks = tmp_path / "x.svg", ["--sweep", "application.rank_count=1, 2, 4, 8, 16, 32"]
    for options, named in (([], True), (["--relative", "speedup"], False)):
        code, _, err = whatif_main("run", "minife", *ranks, "-o", picture, *options)
        assert code == 0, err
        assert ("measured, kernel" in picture.read_text(encoding="utf-8")) is named
    code, out, err = whatif_main("run", "minife", *ranks, "--runs", "x.csv")
    assert (code, out) == (2, "")
    assert "--runs: drawn over a sweep by --plot" in err
