"""Platforms and scenarios that are built in Python."""

from __future__ import annotations

import numpy as np
import pytest

import whatif

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
SLEEP = {"kind": "overhead", "overhead_time": "2 ms"}
APPLICATION = {"name": "nap", "rank_count": np.int64(6), "iteration_count": 10, "phases": {"sleep": SLEEP}}


@pytest.fixture
def ours():
    return whatif.Platform.of(extends="summit", name="ours", node={"gpu": {"dram_bandwidth": "3 TB/s"}})


def test_built_platform_gives_the_results_of_the_same_override(ours):
    built = whatif.run("jacobi2d", platform=ours)
    assert built["total_time"] == whatif.run("jacobi2d", overrides={BANDWIDTH: "3 TB/s"})["total_time"]
    assert built.program.loaded.scenario.platform.name == "ours"


def test_built_platform_equals_its_written_file(ours, tmp_path):
    ours.write(tmp_path / "ours.toml")
    expected = whatif.run("jacobi2d", platform=ours)["total_time"]
    assert whatif.run("jacobi2d", platform=str(tmp_path / "ours.toml"))["total_time"] == expected
    assert whatif.run("jacobi2d", platform="ours", platform_dirs=[tmp_path])["total_time"] == expected
    assert whatif.Platform.open("ours", platform_dirs=[tmp_path]).to_toml() == ours.to_toml()


@pytest.mark.parametrize("function", [whatif.run, whatif.sweep, whatif.sweep_parts, whatif.explain, whatif.resolve])
def test_functions_take_built_platforms(function, ours):
    assert "3 TB/s" in whatif.resolve("jacobi2d", platform=ours).to_toml()
    assert function("jacobi2d", platform=ours) is not None


def test_built_platform_is_one_of_a_sweep(ours):
    scenario = whatif.load("jacobi2d", platform=ours)
    swept = whatif.sweep(scenario, {"platform": ["summit", "ours"]})
    assert swept["total_time"][1] == whatif.run(scenario)["total_time"]
    assert swept["total_time"][0] == whatif.run("jacobi2d")["total_time"]


def test_built_platforms_work_in_worker_processes(ours):
    parts = whatif.sweep_parts("jacobi2d", f"{BANDWIDTH}=1 TB/s, 2 TB/s", platform=ours, on="processes", workers=1)
    times = [float(time) for part in parts for time in part["total_time"]]
    assert times == whatif.sweep("jacobi2d", {BANDWIDTH: ["1 TB/s", "2 TB/s"]}, platform=ours)["total_time"].tolist()
    assert parts.tally.points == 2


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"node": {"gpu": {"dram_bandwidth": "3 TB"}}}, "ours:6:1: node.gpu.dram_bandwidth: `3 TB` is in B"),
        ({"node": {"gpu": {"dram_bandwidth": None}}}, "ours: node.gpu.dram_bandwidth: None is not a value of a file"),
        ({"nodes": {}, "node_count": "many"}, "ours:4:1: node_count: "),
        ({"node_cuont": 3}, "node_cuont"),
        ({"nodes": {}}, "ours:5:1: nodes: "),
        ({"extends": "sumit"}, "did you mean `summit`"),
        ({"node": {"gpu": {"dram_bandwidth": object}}}, "expected a text, number, boolean, list or table"),
    ],
)
def test_errors_of_built_platforms_are_those_of_files(tables, message):
    with pytest.raises(whatif.WhatifError) as found:
        whatif.Platform.of({"extends": "summit", "name": "ours", **tables})
    assert message in str(found.value)


def test_errors_without_a_name_say_python():
    with pytest.raises(whatif.WhatifError, match=r"^<python>:2:1: extends: "):
        whatif.Platform.of(extends="nope")
    with pytest.raises(whatif.WhatifError, match=r"^<python>:"):
        _ = whatif.Scenario.of(application={"name": "nap"}, platform="summit").program


@pytest.mark.parametrize("platform", ["summit", {"extends": "summit", "node_count": 8}])
def test_built_scenario_equals_its_written_file(platform, tmp_path):
    nap = whatif.Scenario.of(application=APPLICATION, platform=platform, name="nap")
    assert float(whatif.run(nap)["total_time"]) == 0.02
    nap.write(tmp_path / "nap.toml")
    assert float(whatif.run(tmp_path / "nap.toml")["total_time"]) == 0.02
    assert whatif.load(tmp_path / "nap.toml").to_toml() == nap.to_toml()


def test_scenario_is_written_with_overrides_and_platform(tmp_path):
    changed = whatif.load("jacobi2d", platform="frontier", overrides={"application.rank_count": np.int64(64)})
    changed.write(tmp_path / "changed.toml")
    assert whatif.run(tmp_path / "changed.toml")["total_time"] == whatif.run(changed)["total_time"]
    assert "rank_count = 64" in changed.to_toml()
    assert 'platform = "frontier"' in changed.to_toml()


def test_scenario_on_a_built_platform_is_resolved_into_one_file(ours, tmp_path):
    nap = whatif.Scenario.of(application=APPLICATION, platform=ours, name="nap")
    resolved = whatif.resolve(nap)
    resolved.write(tmp_path / "nap.toml")
    assert "extends" not in resolved.to_toml()
    assert float(whatif.run(tmp_path / "nap.toml")["total_time"]) == 0.02


@pytest.mark.parametrize(
    "shown",
    [
        whatif.load("jacobi2d"),
        whatif.run("jacobi2d"),
        whatif.sweep("jacobi2d", {"platform.node.gpu_count": list(range(1, 7))}),
        whatif.explain("jacobi2d"),
        whatif.check("jacobi2d"),
        whatif.run("jacobi2d").table(),
        whatif.comparisons("counts").table(),
        whatif.comparisons("counts"),
        whatif.Platform.open("summit"),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_repr_has_a_few_lines(shown):
    lines = repr(shown).splitlines()
    assert len(lines) <= 20
    assert all(len(line) <= 160 for line in lines)


def test_repr_of_a_single_point_has_all_of_its_values():
    kind, heading, *rows = (line.split(maxsplit=1) for line in repr(whatif.run("jacobi2d")).splitlines())
    assert (kind[0], heading) == ("<Result:", ["result", "value"])
    assert dict(rows)["terms.halo"] == "150.76 us"
    assert "<td>terms.halo</td><td>150.76 us</td>" in whatif.run("jacobi2d")._repr_html_()
    sought = whatif.seek("minimd", "platform.node.gpu.dram_bandwidth", "iteration_time <= 95 %")
    assert len(repr(sought).splitlines()) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whatif.run("jacobi2d", seed=1), "seed: no effect without samples"),
        (lambda: whatif.run("jacobi2d", level="80%"), "level: no effect without samples"),
        (lambda: whatif.sweep_parts("jacobi2d", workers=2), "--workers and --part-points: no effect without --on"),
        (lambda: whatif.sweep_parts("jacobi2d", "platform.node.gpu_count=1", point=True), "exclude each other"),
        (lambda: whatif.list_("parts", "jacobi2d"), "no effect on the list of parts"),
        (lambda: whatif.list_("parts", platform="turin"), "`turin`: no effect on the list of parts"),
        (lambda: whatif.list_("parameters", "turin"), "its parameters are those of `--platform turin`"),
        (lambda: whatif.check("jacobi2d", update=True), "--update needs --against"),
        (lambda: whatif.run("jacobi2d", overrides={"platform": "summit"}), "use --platform"),
        (lambda: whatif.comparisons("nope"), "no such topic"),
    ],
)
def test_options_without_effect_are_refused(call, message):
    with pytest.raises(whatif.WhatifError, match=message):
        call()
