"""The library: its documented examples run, and its numbers are those of the command line."""

from __future__ import annotations

import doctest
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.errors import UsageError

DOCUMENT = ROOT / "docs" / "library.md"
GPUS = "platform.node.gpu_count"


MODULES = ["whatif", "whatif.core.platform", "whatif.core.scenario", *sorted(whatif.EXPORTS)]


@pytest.mark.parametrize("name", dict.fromkeys(MODULES))
def test_examples_of_the_docstrings_run(name):
    assert doctest.testmod(import_module(name)).failed == 0


def test_every_public_name_has_an_export_and_a_type():
    text = Path(whatif.__file__).read_text(encoding="utf-8")
    typed = re.findall(r"^    from (\S+) import (\w+) as \2$", text, re.MULTILINE)
    assert typed == sorted(typed, key=lambda pair: (pair[0], pair[1].casefold()))
    assert sorted(typed) == sorted((module, name) for module, names in whatif.EXPORTS.items() for name in names)
    assert list(whatif.EXPORTS) == sorted(whatif.EXPORTS)
    assert set(dir(whatif)) == set(whatif.__all__)


def test_examples_of_the_document_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)  # noqa: S102 - our own document
    assert (tmp_path / "gpus.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_numbers_are_those_of_the_command_line(whatif_main):
    out = whatif_main("run", "minimd", "--platform", "frontier", "--set", f"{GPUS}=4", "--sweep",
                      "application.rank_count=8, 64", "--samples", "64", "--spread", "assumed=20%",
                      "--format", "json")[1]  # fmt: skip
    rows = json.loads(out)["rows"]
    samples = whatif.Sampling(64, spreads={"assumed": 0.2})
    scenario = whatif.load("minimd", platform="frontier", overrides={GPUS: 4})
    found = whatif.sweep(scenario, {"application.rank_count": [8, 64]}, samples=samples)
    frame = found.to_pandas()
    for name in ("total_time", "iteration_time.p95", "terms.force"):
        expected = [row["terms"]["force"] if name == "terms.force" else row[name] for row in rows]
        assert_allclose(frame[name], expected, rtol=1e-15, atol=0)
    assert frame.attrs["units"]["total_time"] == "s"
    assert "<table" in found._repr_html_()


def test_arrays_are_in_base_units_and_xarray_has_a_dimension_for_each_axis():
    bandwidth = "platform.node.gpu.dram_bandwidth"
    swept = whatif.sweep(
        "jacobi2d", {bandwidth: np.array([4e11, 8e11])}, {"platform": ["summit", "lassen"]}, samples=32
    )
    texts = whatif.sweep("jacobi2d", {bandwidth: "400 GB/s, 800 GB/s"}, {"platform": "summit, lassen"})
    assert_allclose(swept["total_time"], texts["total_time"], rtol=1e-12, atol=0)
    found = swept.to_xarray()
    assert found["terms.stencil"].dims == (bandwidth, "platform")
    assert found["total_time"].attrs["units"] == "s"
    assert_allclose(found["total_time"].sel(platform="lassen"), swept["total_time"][:, 1], rtol=0, atol=0)
    assert found["total_time_band"].dims == ("quantile", bandwidth, "platform")
    with pytest.raises(KeyError, match="did you mean `total_time`"):
        _ = swept["total_tim"]
    assert_allclose(swept["stencil"], swept["terms.stencil"], rtol=0, atol=0)


def test_a_second_iteration_of_a_sweep_counts_its_points_once():
    parts = whatif.sweep_parts("jacobi2d", "application.rank_count=16, 17")
    shares: list[float] = []
    parts.progress = shares.append
    _ = (*parts, parts.whole(), *parts)
    assert (parts.tally.points, parts.tally.infeasible) == (2, 0)
    assert shares == [1.0, 1.0, 1.0]


def test_errors_are_those_of_the_command_line():
    with pytest.raises(whatif.WhatifError, match="did you mean `summit`"):
        whatif.run("jacobi2d", platform="sumit")
    with pytest.raises(whatif.WhatifError, match="no such parameter"):
        whatif.sweep("jacobi2d", {"platform.node.gpus": [1, 2]})
    with pytest.raises(whatif.WhatifError, match="is not an axis"):
        whatif.sweep("jacobi2d", ["platform.node.gpu_count=1, 2"])
    with pytest.raises(whatif.WhatifError, match="for a grid, sweep each alone"):
        whatif.sweep("jacobi2d", {"platform.node.gpu_count": [1, 2], "application.rank_count": [6, 12, 24]})


def test_a_budget_without_platforms_is_spent_on_those_of_the_scenarios(tmp_path):
    own = whatif.budget(["jacobi2d", "minife"], power="1 MW")
    assert {offer.platform for offer in own} == {"summit", "lassen"}
    stated = whatif.budget(["jacobi2d", "minife"], ["summit", "lassen"], power="1 MW")
    assert own.to_pandas().equals(stated.to_pandas())
    (tmp_path / "nameless.toml").write_text("[application]\n", encoding="utf-8")
    with pytest.raises(UsageError, match="names no platform: state at least one"):
        whatif.budget(tmp_path / "nameless.toml", power="1 MW")
