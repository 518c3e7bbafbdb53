"""Fits and imports of the library: their examples run, and results show and write themselves."""

from __future__ import annotations

import doctest
from importlib import import_module

import numpy as np
import pytest

import whatif
from tests.paths import DATA, ROOT
from whatif.errors import UsageError
from whatif.schema.load import load_platform

COPIES = DATA / "ahead" / "memcpy_sweep.csv"
GRID = DATA / "runs" / "caliper" / "lulesh_grid_runs.csv"
DGEMM = DATA / "kernels" / "dahu_dgemm_calibration.csv"


@pytest.mark.parametrize("name", ["fits", "measurements"])
def test_docstring_examples_run(monkeypatch, name):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(import_module(f"whatif.api.{name}"))
    assert found.attempted >= 10
    assert found.failed == 0


def test_transfer_fit_has_table_points_and_short_repr():
    fit = whatif.fit_transfer(COPIES, platform="titan", machine="Titan")
    assert "node.host_link.staging.read_bandwidth" in fit.to_pandas()["parameter"].tolist()
    assert len(fit.points()) == 4 * 29
    assert len(repr(fit).splitlines()) < 10
    assert any(line.startswith("warning: pinned") for line in fit.notes)
    assert "<table" in fit._repr_html_()


def test_fit_written_to_new_platform_can_be_loaded(tmp_path):
    fit = whatif.fit_transfer(COPIES, platform="titan", machine="Titan")
    remarks = fit.write(tmp_path / "ours.toml", extends="titan", source="measured by us")
    assert remarks[0].startswith("written: ")
    link = load_platform("ours", [tmp_path])[0].node.host_link
    fitted = fit.to_pandas().set_index("parameter")["value"]
    np.testing.assert_allclose(link.staging.read_bandwidth, fitted["node.host_link.staging.read_bandwidth"], rtol=1e-5)
    assert "measured by us" in (tmp_path / "ours.toml").read_text()


def test_regression_is_written_with_scenario_and_predicts_the_same(tmp_path):
    fit = whatif.fit_regression(GRID, formula="total_time ~ processes", at=[{"processes": 512}])
    remarks = fit.write(tmp_path / "step.toml", tmp_path / "ask.toml", platform="frontier")
    assert "--set parameters.processes=VALUE" in remarks[1]
    parameter = remarks[1].split("--set ")[1].partition("=")[0]
    answer = whatif.run(tmp_path / "ask.toml", overrides={parameter: 512})
    np.testing.assert_allclose(float(answer["total_time"]), fit.to_pandas()["fit"][0], rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--formula states the model"),
        ({"level": 0.9}, "--level: no effect on the shown coefficients"),
        ({"interval": "confidence"}, "--interval: no effect"),
        ({"seed": 3}, "--seed: no effect"),
        ({"folds": 3, "show": "coefficients"}, "--folds: no effect"),
        ({"at": ["processes=8"], "show": "runs"}, "--at: no effect"),
        ({"held_out": GRID, "show": "coefficients"}, "--held-out: no effect"),
        ({"held_out": GRID, "hold_out": 2}, "give one of the two"),
        ({"show": "everything"}, "expected one of coefficients"),
        ({"level": 1.0, "at": ["processes=8"]}, "expected a level above 0 %"),
    ],
)
def test_regression_refuses_options_without_effect(options, message):
    formula = "total_time ~ processes" if options else None
    with pytest.raises(UsageError, match=message):
        whatif.fit_regression(GRID, formula=formula, **options)


@pytest.mark.parametrize("fit", [whatif.fit_host, whatif.fit_transfer])
def test_fit_of_a_file_that_cannot_be_read_says_so_before_it_asks_for_a_platform(tmp_path, fit):
    (tmp_path / "none.csv").touch()
    with pytest.raises(whatif.WhatifError, match=r"none\.csv"):
        fit(tmp_path / "none.csv")


def test_kernel_fit_of_one_kernel_has_its_calls_only():
    file = ROOT / "docs" / "examples" / "kernels.csv"
    all_of, only = (whatif.fit_kernel(file, kernel=name) for name in (None, "dgemm"))
    every, one = (its.table().to_pandas() for its in (all_of, only))
    assert "dgemm: M-2 N-2 of 12 models (--kernel dgemm compares them)" in all_of.notes
    assert len([line for line in only.notes if line.startswith(" dgemm ")]) == 12
    assert "dgemm: M-2 N-2" in only.notes
    of_one = every["parameter"].str.startswith("kernels.dgemm.")
    assert 0 < of_one.sum() < len(every) / 2
    assert one.equals(every[of_one].reset_index(drop=True))
    with pytest.raises(UsageError, match="no calls of dgemv; its kernels are dgemm"):
        whatif.fit_kernel(DGEMM, kernel="dgemv")


def test_kernel_fit_refuses_options_without_effect():
    with pytest.raises(UsageError, match="--seed: no effect without --synthetic"):
        whatif.fit_kernel(DGEMM, seed=3)
    with pytest.raises(UsageError, match="--distance inter-node: no effect on calibrations without messages"):
        whatif.fit_kernel(DGEMM, distance="inter-node")


def test_grid_fit_refuses_level_of_points():
    with pytest.raises(UsageError, match="--level: no effect on --points"):
        whatif.fit_grid(GRID, points=True, level=0.9)


def test_commands_refuse_options_that_need_an_output_file(whatif_main):
    for option, value in (("--source", "me"), ("--extends", "summit")):
        code, out, err = whatif_main("fit", "kernel", DGEMM, option, value)
        assert (code, out) == (2, "")
        assert f"{option} needs -o PLATFORM.toml" in err


def test_imported_runs_are_a_table_in_base_units():
    runs = whatif.import_runs([GRID])
    frame = runs.to_pandas()
    assert frame.attrs["units"]["total_time"] == "s"
    assert len(frame) == len(runs.to_dict()["rows"]) == 5
    with pytest.raises(UsageError, match="no column `nothing`"):
        whatif.import_runs(GRID, columns={"time": "nothing"})
