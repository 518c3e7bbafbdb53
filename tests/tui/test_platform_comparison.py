"""The comparison of machines against the command line, machine by machine."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.scenarios_at_hand import FEW
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.schema.load import stated_platform
from whatif.schema.shipped import shipped_folder, shipped_names
from whatif.schema.toml import parse_document
from whatif.studies.platform_comparison import comparison

PLATFORMS = ("bridges", "lassen", "summit")
GPUS = "platform.node.gpu_count"
NODES = "the ranks need more nodes than the platform has (platform.node_count)"


def over(scenario: Scenario, text: str) -> Grid:
    return grid_of([parse_option(text, scenario.program, 10_000)], 10_000)


def rows_of(whatif_main, *arguments):
    _, out, _ = whatif_main("run", *arguments, "--format", "json")
    return json.loads(out)


def numbers(row):
    """The columns and phases of a row of JSON, null as NaN."""
    marks = ("terms", "infeasible", "grade", "extrapolated")
    columns = {key: math.nan if value is None else value for key, value in row.items() if key not in marks}
    return columns, {key: math.nan if value is None else value for key, value in row["terms"].items()}


def same(one, other) -> bool:
    return list(one) == list(other) and np.array_equal(list(one.values()), list(other.values()), equal_nan=True)


@pytest.mark.parametrize("name", FEW)
def test_each_machine_has_the_numbers_of_the_command_line(whatif_main, name):
    scenario = Scenario.open(name)
    first, *others = comparison(scenario, PLATFORMS, Grid())
    own = stated_platform(scenario.document)
    assert [first.name, *(machine.name for machine in others)] == [own, *(item for item in PLATFORMS if item != own)]
    for machine in (first, *others):
        answer = rows_of(whatif_main, name, "--platform", machine.name, "--point")
        (row,) = answer["rows"]
        columns, phases = numbers(row)
        assert same(machine.columns, columns)
        assert same(machine.phases, phases)
        assert machine.label == answer["platform"]
        assert machine.grade == answer["grade"]
        assert machine.reason.partition("; ")[0] == row.get("infeasible", "")
        assert (machine.curve, machine.curve_reason) == (None, "")


def test_edits_of_the_machine_stay_with_it_and_those_of_the_application_with_all(whatif_main):
    model = "application.phases.halo.model=postal"
    sets = {GPUS: "8", "application.phases.halo.model": "postal", "application.rank_count": "48"}
    found = comparison(Scenario.open("jacobi2d", overrides=sets), PLATFORMS, Grid())
    assert [(machine.name, machine.label) for machine in found] == [
        ("summit", "Summit (edited)"),
        ("summit", "Summit"),
        ("bridges", "Bridges"),
        ("lassen", "Lassen"),
    ]
    application = ("--set", model, "--set", "application.rank_count=48", "--point")
    for machine, edits in zip(found, [("--set", f"{GPUS}=8"), (), (), ()], strict=True):
        answer = rows_of(whatif_main, "jacobi2d", "--platform", machine.name, *application, *edits)
        (row,) = answer["rows"]
        assert same(machine.columns, numbers(row)[0])
        assert machine.grade == answer["grade"]
    assert [machine.grade for machine in found] == ["assumed"] * 4


def test_the_machine_that_the_question_is_asked_on_comes_first():
    scenario = Scenario.open("jacobi2d", platform="lassen", overrides={"application.rank_count": "48"})
    assert [machine.name for machine in comparison(scenario, ["summit", "lassen", "summit"], Grid())] == [
        "lassen",
        "summit",
    ]
    edited = Scenario.open("jacobi2d", platform="lassen", overrides={GPUS: "2"})
    assert [machine.label for machine in comparison(edited, ["lassen"], Grid())] == ["Lassen (edited)", "Lassen"]


def test_a_machine_that_is_too_small_has_a_reason_and_no_numbers():
    _, bridges = comparison(Scenario.open("jacobi2d"), ["bridges"], Grid())
    assert bridges.reason == f"{NODES}; 768 needed, 32 available"
    assert np.isnan(list(bridges.columns.values())).all()
    assert np.isnan(list(bridges.phases.values())).all()
    assert len(bridges.phases) == 6


def test_a_machine_that_lacks_parameters_is_a_row_that_says_so():
    sets = {"application.phases.device_to_host.direction": "peer_to_peer"}
    scenario = Scenario.open("jacobi2d_strong", overrides=sets)
    grid = over(scenario, "application.rank_count=6, 12")
    summit, bridges, nowhere, lassen = comparison(scenario, ["bridges", "nowhere", "lassen"], grid)
    assert "Bridges does not state `platform.node.peer_link`" in bridges.reason
    assert (bridges.columns, bridges.phases, bridges.grade, bridges.curve) == ({}, {}, "", None)
    assert bridges.curve_reason == bridges.reason
    assert "`nowhere`: platform not found; known: alps" in nowhere.reason
    assert (summit.reason, lassen.reason) == ("", "")


def test_a_question_that_fails_is_a_row_as_well():
    wrong = Scenario.open("jacobi2d", overrides={GPUS: "-1"})
    first, unedited = comparison(wrong, [], Grid())
    assert "platform.node.gpu_count: `-1` is not allowed" in first.reason
    assert first.label == "summit (edited)"
    assert unedited.reason == ""


def test_curves_are_those_of_the_command_line(whatif_main):
    scenario = Scenario.open("minife")
    sweep = f"{GPUS}=1, 2, 4, 8, 16"
    second = parse_option("application.rank_count=16, 32", scenario.program, 10)
    found = comparison(scenario, PLATFORMS, Grid((*over(scenario, sweep).axes, second)))
    for machine in found:
        rows = rows_of(whatif_main, "minife", "--platform", machine.name, "--sweep", sweep)["rows"]
        expected = [math.nan if row["iteration_time"] is None else row["iteration_time"] for row in rows]
        assert_array_equal(machine.curve, expected)
        assert machine.curve.shape == (5,)
        assert machine.curve_reason == ""
    # 256 ranks need 32 nodes of 8: there are so many on Bridges, none to spare.
    assert np.isfinite(found[1].curve).tolist() == [False, False, False, True, True]


def test_a_structural_axis_has_a_curve_with_gaps_where_a_choice_does_not_fit():
    scenario = Scenario.open("jacobi2d_strong", overrides={"application.rank_count": "48"})
    grid = over(scenario, "application.phases.device_to_host.direction=device_to_host, peer_to_peer")
    summit, bridges, lassen = comparison(scenario, ["bridges", "lassen"], grid)
    for machine in (summit, lassen):
        expected = []
        for choice in ("device_to_host", "peer_to_peer"):
            sets = {**scenario.overrides, "application.phases.device_to_host.direction": choice}
            alone = run_whole(Scenario.open("jacobi2d_strong", platform=machine.name, overrides=sets), Grid())
            expected.append(float(alone.columns["iteration_time"]))
        assert machine.curve.tolist() == expected
    assert bridges.reason == ""
    alone = run_whole(Scenario.open("jacobi2d_strong", platform="bridges", overrides=scenario.overrides), Grid())
    assert_array_equal(bridges.curve, [float(alone.columns["iteration_time"]), np.nan])


def test_an_axis_over_what_a_machine_lacks_draws_no_flat_line():
    scenario = Scenario.open("jacobi2d_strong", overrides={"application.rank_count": "48"})
    parameter = "platform.node.host_link.link_count"
    summit, bridges = comparison(scenario, ["bridges"], over(scenario, f"{parameter}=1, 2"))
    assert summit.curve[0] > summit.curve[1]
    assert bridges.reason == ""
    assert bridges.curve is None
    assert bridges.curve_reason.startswith(f"`{parameter}`: no such parameter")


def test_an_axis_over_what_a_machine_does_not_use_draws_no_flat_line():
    # Lassen has no other parameters inside a socket; Summit has max-rate ones, which the K-model takes.
    scenario = Scenario.open("jacobi2d", platform="lassen")
    parameter = "platform.network.intra_socket.postal.rendezvous.bandwidth"
    lassen, summit = comparison(scenario, ["summit"], over(scenario, f"{parameter}=1 GB/s, 20 GB/s"))
    assert lassen.curve[0] > lassen.curve[1]
    assert summit.reason == ""
    assert summit.curve is None
    assert summit.curve_reason.startswith(f"`{parameter}` has no effect")


def test_an_axis_over_platforms_is_no_curve_of_one_of_them():
    scenario = Scenario.open("jacobi2d")
    found = comparison(scenario, ["lassen"], over(scenario, "platform=summit, lassen"))
    assert [(machine.curve, machine.curve_reason) for machine in found] == [
        (None, "the axis is the platform itself"),
        (None, "the axis is the platform itself"),
    ]


def test_a_cost_in_another_currency_is_no_curve_on_the_same_axis(tmp_path):
    for name, price in (("dollars", "30 USD/h"), ("euros", "30 EUR/h")):
        text = f'extends = "aws_p5"\n[price]\nnode_rate = "{price}"\n'
        (tmp_path / f"{name}.toml").write_text(text)
    scenario = Scenario.open("jacobi2d", platform="aws_p5", folders=[tmp_path])
    grid = over(scenario, f"{GPUS}=2, 4, 8")
    present, dollars, euros, lassen = comparison(scenario, ["dollars", "euros", "lassen"], grid, "total_cost")
    assert 0 < dollars.curve[0] < present.curve[0]
    assert (euros.curve, euros.curve_reason) == (None, "in EUR, not in USD: currencies are not converted")
    assert lassen.curve_reason == "no total_cost on this platform"
    _, euros, _ = comparison(scenario, ["euros", "lassen"], grid)
    assert euros.curve[0] > 0


def test_another_gpu_costs_by_its_rates():
    """By memory and by operations: P100 against V100, see the roofline of each kernel; Lassen has Summit's."""
    scenario = Scenario.open("jacobi2d", overrides={"application.rank_count": "48"})
    summit, bridges, lassen, nowhere = (
        machine.columns.get("kernel_time") for machine in comparison(scenario, ["bridges", "lassen", "nowhere"], Grid())
    )
    assert nowhere is None
    assert lassen == summit
    assert bridges / summit > 779.4108 / 546.7274


def test_known_platforms_of_a_shipped_scenario_are_the_shipped_ones():
    # Beside it lie other scenarios, one of them (minife_devices) without an application of its own.
    assert Scenario.open("jacobi2d").known_platforms == shipped_names("platforms")
    assert Scenario(parse_document('platform = "summit"', "t.toml")).known_platforms == shipped_names("platforms")


def test_known_platforms_are_found_beside_the_scenario_and_in_its_folders(tmp_path):
    worker, more = tmp_path / "beside", tmp_path / "more"
    worker.mkdir()
    more.mkdir()
    scenario = worker / "asked.toml"
    scenario.write_text('extends = "jacobi2d"\nplatform = "fatter"\n')
    (worker / "fatter.toml").write_text('extends = "summit"\nname = "Fatter"\n[node]\ngpu_count = 8\n')
    (worker / "extends_bridges.toml").write_text('extends = "bridges"\n')
    (worker / "pyproject.toml").write_text('[project]\nname = "no platform"\n')
    (worker / "broken.toml").write_text("[node\n")
    (worker / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (worker / "lost.toml").write_text('extends = "nowhere"\n[node]\ngpu_count = 8\n')
    (worker / "not a name.toml").write_text((shipped_folder("platforms") / "summit.toml").read_text())
    (worker / "empty.toml").write_text("")
    (worker / "folder.toml").mkdir()
    (more / "copied.toml").write_text((shipped_folder("platforms") / "lassen.toml").read_text())
    (more / "wrong.toml").write_text('extends = "summit"\n[node]\ngpu_count = -1\n')
    # A scenario that has the name of a shipped platform does not stand in its way.
    (more / "bridges.toml").write_text('platform = "summit"\n[parameters]\nx = 1\n')
    scenario = Scenario.open(scenario, folders=[more])
    names = scenario.known_platforms
    assert names == tuple(sorted({"copied", "extends_bridges", "fatter", "wrong", *shipped_names("platforms")}))
    some = [name for name in names if name in ("copied", "fatter", "lassen", "summit", "wrong")]
    found = {machine.name: machine for machine in comparison(scenario, some, Grid())}
    assert list(found) == ["fatter", "copied", "lassen", "summit", "wrong"]
    assert found["fatter"].label == "Fatter"
    assert found["copied"].columns == found["lassen"].columns
    # A platform with a mistake is known: its row says what is wrong with it.
    assert "wrong.toml:3:1: platform.node.gpu_count: `-1` is not allowed" in found["wrong"].reason


def test_values_that_the_scenario_itself_gives_its_machine_stay_on_all(whatif_main, tmp_path):
    path = tmp_path / "whole.toml"
    path.write_text(whatif_main("resolve", "jacobi2d")[1])
    own, lassen = comparison(Scenario.open(path), ["lassen"], Grid())
    assert (own.name, own.label, own.reason) == ("", "Summit", "")
    (row,) = rows_of(whatif_main, "jacobi2d", "--point")["rows"]
    assert same(own.columns, numbers(row)[0])
    answer = rows_of(whatif_main, path, "--platform", "lassen", "--point")
    assert same(lassen.columns, numbers(answer["rows"][0])[0])
    assert (lassen.name, lassen.label) == ("lassen", answer["platform"]) == ("lassen", "Summit")


def test_the_question_on_another_platform_keeps_the_edits_of_the_application():
    sets = {GPUS: "8", "parameters.cells": "32", "application.rank_count": "64"}
    other = Scenario.open("minimd", overrides=sets).on_platform("summit")
    assert other.platform == "summit"
    assert other.overrides == {"parameters.cells": "32", "application.rank_count": "64"}


def test_a_comparison_crosses_to_another_process_and_is_small():
    scenario = Scenario.open("jacobi2d")
    found = comparison(scenario, PLATFORMS, over(scenario, f"{GPUS}=1 .. 64 step 1"))
    packed = pickle.dumps(found)
    assert len(packed) < 10_000
    for one, other in zip(found, pickle.loads(packed), strict=True):  # noqa: S301 - what has just been packed
        assert_array_equal(one.curve, other.curve)
        assert same(one.columns, other.columns)
        assert (one.name, one.label, one.reason) == (other.name, other.label, other.reason)
