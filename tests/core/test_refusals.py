"""Phases without a finite time are refused with the key to blame, alike in every form of the answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whatif

KEY = "application.phases.stencil.compute_fraction"
REASON = f"the time of `stencil` is not finite because of {KEY}"


def test_the_library_answers_nan_with_the_key():
    result = whatif.run("jacobi2d", overrides={KEY: "0"})
    assert np.isnan(result["total_time"])
    assert np.isnan(result["terms.stencil"])
    assert result.reasons == (REASON,)


@pytest.mark.parametrize("suffix", ["", ".json", ".csv"])
def test_the_command_line_ends_with_4(suffix, tmp_path, whatif_main):
    file = tmp_path / f"answer{suffix}"
    arguments = ["run", "jacobi2d", "--set", f"{KEY}=0", *(["-o", str(file)] if suffix else [])]
    code, _, errors = whatif_main(*arguments)
    assert code == 4
    assert REASON in errors
    if suffix == ".json" and file.exists():
        assert "Infinity" not in file.read_text()
        json.loads(file.read_text())


def test_only_points_without_a_number_of_a_sweep_are_refused():
    result = whatif.sweep("jacobi2d", {KEY: "0, 0.1"})
    assert np.isfinite(result["total_time"]).tolist() == [False, True]
    assert result.reason.tolist() == [f"the time of `stencil` is not finite because of {KEY}", ""]


def test_an_overflow_names_the_value_that_is_too_large():
    large = {"operations": "1e308 flop", "launch_count": "100", "profiled_launch_count": "1"}
    result = whatif.run("jacobi2d", overrides={f"application.phases.pack.{key}": value for key, value in large.items()})
    assert "the time of `pack` is not finite because of application.phases.pack.operations" in result.reasons[0]


def test_each_point_names_its_own_cause():
    other = "application.phases.pack.compute_fraction"
    result = whatif.sweep("jacobi2d", {KEY: "0, 0.1, 0.1", other: "0.1, 0, 0.1"})
    assert [reason.rpartition(" ")[2] for reason in result.reason.tolist()] == [KEY, other, ""]


def test_cells_that_do_not_fit_the_device_are_infeasible():
    # 16,384 x 131,072 values of 8 B are 17.2 GB, of 16 GB; half of them fit, and a stated memory counts alone.
    cells = "application.grid.cells.x"
    result = whatif.run("jacobi2d", overrides={cells: "131072"})
    (reason,) = result.reasons
    assert reason.startswith(
        "the memory of a rank (application.memory_size, at least one copy of its cells) does not fit"
    )
    assert whatif.run("jacobi2d", overrides={cells: "65536"}).reasons == ()
    assert whatif.run("jacobi2d", overrides={cells: "131072", "application.memory_size": "1 GB"}).reasons == ()
    swept = whatif.sweep("jacobi2d", {"application.memory_size": "1 GB, 32 GB"})
    assert np.isfinite(swept["total_time"]).tolist() == [True, False]
