"""The shipped files: each loads, compiles, runs, and says where its numbers come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tomli
import tomlkit

from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run
from whatif.core.scenario import Scenario
from whatif.core.sweep import file_axes, grid_of
from whatif.schema.load import load_platform
from whatif.schema.parameters import parameter_table
from whatif.schema.shipped import shipped_folder, shipped_names
from whatif.schema.toml import parse_document

FILES = {kind: sorted((ROOT / f"{kind}s").glob("*.toml")) for kind in ("platform", "scenario")}
ALL = [(kind, path) for kind, paths in FILES.items() for path in paths]
PLATFORMS = [path.stem for path in FILES["platform"]]
SCENARIOS = [path.stem for path in FILES["scenario"]]


def identity(value):
    return value.stem if isinstance(value, Path) else value


def test_every_file_is_shipped():
    assert list(shipped_names("platforms")) == PLATFORMS
    assert list(shipped_names("scenarios")) == SCENARIOS
    assert len(PLATFORMS) >= 3
    assert len(SCENARIOS) >= 5
    assert shipped_folder("schemas") == ROOT / "schemas"


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_has_a_finite_answer(name):
    program = Scenario.open(name).program
    evaluation = evaluate(program)
    assert evaluation.reasons() == ()
    for column in program.columns:
        assert np.isfinite(evaluation.column(column)).all(), column
        assert (evaluation.column(column) >= 0).all(), column
    for phase in program.phases:
        assert np.isfinite(evaluation.values[phase.term]).all(), phase
    assert evaluation.column("total_time") > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_own_sweep_runs(name):
    scenario = Scenario.open(name)
    axes = file_axes(scenario.program, 100_000)
    results = list(run(scenario, grid_of(axes, 100_000)))
    assert sum(result.infeasible for result in results) == 0
    times = np.concatenate([result.grid.spread(result.columns["total_time"]).ravel() for result in results])
    assert (times > 0).all()
    if axes:
        assert len(times) > 1
        assert len(np.unique(times)) > 1, "a sweep that moves nothing answers no question"


@pytest.mark.parametrize("name", SCENARIOS)
def test_parts_make_the_whole(name):
    program = Scenario.open(name).program
    evaluation = evaluate(program)
    phases = sum(float(evaluation.values[phase.term]) for phase in program.phases)
    iteration = float(evaluation.column("iteration_time"))
    np.testing.assert_allclose(phases - float(evaluation.column("overlap_time")), iteration, rtol=1e-12, atol=0)
    iterations = float(evaluation.values["application.iteration_count"])
    total = iterations * iteration + float(evaluation.column("setup_time"))
    np.testing.assert_allclose(float(evaluation.column("total_time")), total, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("kind", "path"), ALL, ids=identity)
def test_first_line_names_the_schema(kind, path):
    assert path.read_text(encoding="utf-8").splitlines()[0] == f"#:schema ../schemas/{kind}.schema.json"


@pytest.mark.parametrize("path", FILES["scenario"], ids=identity)
def test_scenario_begins_with_its_question(path):
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    assert lines[0].startswith("# ")
    question = Scenario.open(path).program.loaded.question
    assert question.endswith(("?", "."))
    assert 20 < len(question) < 200
    assert question.startswith(lines[0].removeprefix("# ")[:20])


@pytest.mark.parametrize("name", PLATFORMS)
def test_platform_loads_alone(name):
    platform, _ = load_platform(name)
    assert platform.name
    assert platform.description.startswith(platform.name)
    assert platform.description.endswith(".")


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_source_covers_a_value(name):
    """An entry that says where nothing comes from is a typing error."""
    loaded = Scenario.open("jacobi2d", platform=name).program.loaded
    own = tomli.loads((ROOT / "platforms" / f"{name}.toml").read_text(encoding="utf-8"))["sources"]
    used = {parameter.source for path, parameter in parameter_table(loaded).items() if path.startswith("platform.")}
    assert [path for path, entry in own.items() if entry["source"] not in used] == []


@pytest.mark.parametrize("path", FILES["scenario"], ids=identity)
def test_every_source_of_a_scenario_covers_a_value(path):
    loaded = Scenario.open(path).program.loaded
    own = tomli.loads(path.read_text(encoding="utf-8")).get("sources", {})
    used = {parameter.source for parameter in parameter_table(loaded).values()}
    assert [pattern for pattern, entry in own.items() if entry["source"] not in used] == []


def test_grades_of_values_that_are_overridden():
    path = "platform.node.gpu.dram_bandwidth"
    assert Scenario.open("jacobi2d").program.parameters[path].grade == "measured"
    changed = Scenario.open("jacobi2d", overrides={path: "1 TB/s"}).program.parameters
    assert (changed[path].grade, changed[path].source) == ("assumed", f"--set {path}=1 TB/s")
    assert changed["platform.node.gpu.l2_bandwidth"].grade == "measured"


def test_grade_of_a_value_that_a_scenario_overrides(tmp_path):
    path = "platform.node.gpu.dram_bandwidth"
    file = tmp_path / "mine.toml"
    file.write_text('extends = "jacobi2d"\n[platform.node.gpu]\ndram_bandwidth = "1 TB/s"\n')
    parameter = Scenario.open(file).program.parameters[path]
    assert (parameter.grade, parameter.source) == ("assumed", str(file))
    with file.open("a") as more:
        more.write('[sources]\n"platform.node" = { grade = "datasheet", source = "the data sheet" }\n')
    parameter = Scenario.open(file).program.parameters[path]
    assert (parameter.grade, parameter.source) == ("datasheet", "the data sheet")
    assert Scenario.open(file).program.parameters["platform.node.gpu_count"].source.startswith("Choi et al.")


def test_grade_of_a_default_in_a_table_that_was_replaced(tmp_path):
    """Bridges states the lanes of its PCIe link; they say nothing about an NVLink put in its place."""
    file = tmp_path / "mine.toml"
    link = (ROOT / "platforms" / "summit.toml").read_text().partition("[node.host_link]")[2].partition("[node.")[0]
    file.write_text(f'extends = "jacobi2d"\nplatform.extends = "bridges"\n[platform.node.host_link]{link}')
    table = Scenario.open(file).program.parameters
    bridges = Scenario.open("jacobi2d", platform="bridges").program.parameters
    assert bridges["platform.node.host_link.lane_count"].value == 16
    parameter = table["platform.node.host_link.lane_count"]
    assert (parameter.value, parameter.source, parameter.grade) == (8, "default of the model", "assumed")


def test_result_carries_the_worst_grade_that_it_used():
    published = {"application.congestion": "none"}
    published |= {f"application.phases.{kernel}": "none" for kernel in ("pack", "unpack", "stencil", "reduce")}
    assert Scenario.open("jacobi2d", overrides=published).program.grade == "datasheet"
    assert Scenario.open("jacobi2d", overrides={"application.congestion": "none"}).program.grade == "assumed"
    assert Scenario.open("jacobi2d", overrides={"platform.node.gpu_count": "4"}).program.grade == "assumed"
    unused = Scenario.open("jacobi2d", overrides={"platform.node.gpu.l2_bandwidth": "4 TB/s", **published}).program
    assert unused.parameters["platform.node.gpu.l2_bandwidth"].grade == "assumed"
    assert unused.grade == "datasheet"


@pytest.mark.parametrize(("kind", "path"), ALL, ids=identity)
def test_file_survives_a_careful_editor(kind, path):
    """The explorer writes edits back with comments and order kept: the text must be one that tomlkit reproduces."""
    text = path.read_text(encoding="utf-8")
    assert tomlkit.dumps(tomlkit.parse(text)) == text
    assert text.endswith("\n")
    assert not any(line.rstrip() != line for line in text.splitlines())
    assert json.dumps(tomlkit.parse(text).unwrap(), sort_keys=True) == json.dumps(tomli.loads(text), sort_keys=True)
    assert parse_document(text, f"{kind}.toml").data


def test_every_value_can_be_located_in_its_file():
    from whatif.schema.locate import positions

    for _, path in ALL:
        text = path.read_text(encoding="utf-8")
        found, lines = positions(text), text.splitlines()

        def check(table, at, found=found, lines=lines, path=path):
            for key, value in table.items():
                here = (*at, key)
                if isinstance(value, dict) and here not in found:
                    check(value, here)
                    continue
                line, column = found[here]
                assert key in lines[line - 1][column - 1 :], (path, here)
                if isinstance(value, dict):
                    check(value, here)

        check(tomli.loads(text), ())


def test_a_key_below_a_comment_is_located():
    from whatif.schema.locate import positions

    text = "a = 1 # one\nb = [ 1, # two\n 2]\n[t] # three\nc = { d = 1 } # four\ne = 2\n"
    assert positions(text) == {
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("t",): (4, 1),
        ("t", "c"): (5, 1),
        ("t", "c", "d"): (5, 7),
        ("t", "e"): (6, 1),
    }


def test_a_byte_order_mark_is_no_error(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (ROOT / "scenarios" / "minife_devices.toml").read_bytes())
    assert Scenario.open(path).program.loaded.question.startswith("What if the GPU")
